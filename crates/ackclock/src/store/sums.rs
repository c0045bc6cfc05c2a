//! Checksums of rows: 16 hexadecimal digits and a newline for each run, in the order of the runs. They are the
//! first half of a SHA-256 of the row's line, its newline included.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

const DIGITS: usize = 16;
const LINE: usize = DIGITS + 1;

/// The file while rows are added.
#[derive(Debug)]
pub(super) struct Sums(File);

impl Sums {
    /// The file under that name, which may be there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map(Self)
    }

    /// Are there none?
    pub(super) fn is_empty(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.len() == 0)
    }

    /// Writes that of a row.
    pub(super) fn keep(&mut self, run: u64, row: &[u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(run * LINE as u64))?;
        self.0.write_all((sum(row) + "\n").as_bytes())
    }

    /// Puts them on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// Those under that name; none if no file is there, as a former version has left it.
    pub(super) fn read(path: &Path) -> io::Result<Known> {
        match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Known(Vec::new())),
            all => all.map(Known),
        }
    }
}

/// The checksums of a directory.
pub(super) struct Known(Vec<u8>);

impl Known {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Is the row of that run as it was written?
    pub(super) fn has(&self, run: u64, row: &[u8]) -> bool {
        let known = self.0.chunks_exact(LINE).nth(run as usize);
        known.is_some_and(|known| known == (sum(row) + "\n").as_bytes())
    }
}

fn sum(row: &[u8]) -> String {
    let digest = Sha256::digest(row);
    digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}
