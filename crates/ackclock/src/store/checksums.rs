//! Checksums of rows: 16 hexadecimal digits and a newline per run, in the order of the runs: the
//! first half of the SHA-256 of the row's line, newline included.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

const DIGITS: usize = 16;
const LINE: usize = DIGITS + 1;

/// The checksum file of a sweep in progress.
#[derive(Debug)]
pub(super) struct ChecksumFile(File);

impl ChecksumFile {
    /// Opens or creates the file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map(Self)
    }

    /// Is the file empty?
    pub(super) fn is_empty(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.len() == 0)
    }

    /// Writes the checksum of a row.
    pub(super) fn keep(&mut self, run: u64, row: &[u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(run * LINE as u64))?;
        self.0.write_all((sum(row) + "\n").as_bytes())
    }

    /// Syncs the file.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// Reads the checksums; none if the file does not exist, as in sweeps of earlier versions.
    pub(super) fn read(path: &Path) -> io::Result<RowChecksums> {
        match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(RowChecksums(Vec::new())),
            all => all.map(RowChecksums),
        }
    }
}

/// The checksums of a directory.
pub(super) struct RowChecksums(Vec<u8>);

impl RowChecksums {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Does the row of the run match its checksum?
    pub(super) fn has(&self, run: u64, row: &[u8]) -> bool {
        let known = self.0.chunks_exact(LINE).nth(run as usize);
        known.is_some_and(|known| known == (sum(row) + "\n").as_bytes())
    }
}

fn sum(row: &[u8]) -> String {
    let digest = Sha256::digest(row);
    digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}
