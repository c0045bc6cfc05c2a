//! A directory that holds a sweep: what it is, and the rows of its runs.
//!
//! While it runs, rows are appended to a journal in the order in which runs end; one that was cut
//! off by a crash is done again. Once all are there, they are put in the order of the runs, in
//! files that take their names only when they are whole. A [checksum](sums) of each row lies beside
//! them.

mod sums;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use runner::sweep::{About, Row, csv};
use scenario::Plan;
use scenario::Study;

use crate::failure::{Failure, tell};
use crate::output::OutFile;
use sums::Sums;

/// Directory of what is kept of each run over time.
const SERIES: &str = "series";
const ABOUT: &str = "sweep.json";
const JOURNAL: &str = "runs.part.jsonl";
const ROWS: &str = "runs.jsonl";
const TABLE: &str = "runs.csv";
const SUMS: &str = "runs.sums";
/// The scenario with what holds for every run worked in.
const SCENARIO: &str = "scenario.toml";

/// What `dir` says of its sweep.
pub(crate) fn read_about(dir: &Path) -> Result<About, Failure> {
    let path = dir.join(ABOUT);
    let text = fs::read(&path).map_err(|error| {
        Failure::new(format!("{} holds no sweep: {ABOUT}: {error}", dir.display()))
    })?;
    About::from_json(&text)
        .map_err(|error| Failure::new(format!("{} is damaged: {error}", path.display())))
}

/// A sweep under way.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    keys: Vec<String>,
    journal: Mutex<Journal>,
}

/// The rows in the order in which runs end.
#[derive(Debug)]
struct Journal {
    file: File,
    sums: Sums,
    end: u64,
    /// Where the row of each run stands, and its length; 0 for none yet.
    places: Vec<(u64, u32)>,
    kept: u64,
}

/// What was found under a name.
pub(crate) enum Found {
    /// Runs are left to be done.
    Unfinished(Store),
    /// All are done.
    Complete,
}

impl Store {
    /// The directory for `study`: a new one, or with `resume` one that was begun.
    pub(crate) fn open(
        dir: &Path,
        study: &Study<'_>,
        series: Option<&Plan>,
        resume: bool,
    ) -> Result<Found, Failure> {
        let about = About::new(study).with_series(series);
        let begun = dir.join(ABOUT).exists();
        if begun {
            let known = read_about(dir)?;
            same(dir, &known, &about)?;
            if !resume {
                let message = format!("{} holds this sweep already", dir.display());
                return Err(Failure::new(message).hint("add --resume to go on with it"));
            }
            if dir.join(ROWS).exists() && !dir.join(JOURNAL).exists() {
                // Is it what was written?
                rows(dir, |_| {})?;
                if !dir.join(SUMS).exists() {
                    tell(&format!(
                        "{} has no {SUMS}: its rows are all there, whether one has changed is not known\n",
                        dir.display()
                    ));
                }
                return Ok(Found::Complete);
            }
        } else {
            if holds_other_things(dir)? {
                let message = format!("{} is not empty and holds no sweep", dir.display());
                return Err(Failure::new(message).hint("name another directory with --out"));
            }
            fs::create_dir_all(dir).map_err(|error| Failure::file("create", dir, &error))?;
            write_whole(&dir.join(SCENARIO), study.text())?;
            write_whole(&dir.join(ABOUT), about.to_json())?;
        }
        let store = Self::journal(dir, &about)?;
        remove_pieces(dir)?;
        if series.is_some() {
            // Behind what says that this is a sweep: a crash in between can be resumed.
            let series = dir.join(SERIES);
            fs::create_dir_all(&series)
                .map_err(|error| Failure::file("create", &series, &error))?;
            remove_pieces(&series)?;
        }
        let recovered = store.rows().recover(dir);
        recovered.map_err(|error| Failure::file("read", &dir.join(JOURNAL), &error))?;
        Ok(Found::Unfinished(store))
    }

    fn journal(dir: &Path, about: &About) -> Result<Self, Failure> {
        let path = dir.join(JOURNAL);
        let failed = |error: &std::io::Error| Failure::file("write", &path, error);
        let options = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = options.map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("another sweep is writing to {}", dir.display());
                return Err(Failure::new(message));
            }
            // A file system without locks.
            Err(TryLockError::Error(_)) => {}
        }
        let sums = Sums::open(&dir.join(SUMS))
            .map_err(|error| Failure::file("write", &dir.join(SUMS), &error))?;
        Ok(Self {
            dir: dir.to_owned(),
            keys: about.axes.concat(),
            journal: Mutex::new(Journal {
                file,
                sums,
                end: 0,
                places: vec![(0, 0); usize::try_from(about.runs).unwrap_or(usize::MAX)],
                kept: 0,
            }),
        })
    }

    fn rows(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs whose rows are kept.
    pub(crate) fn kept(&self) -> u64 {
        self.rows().kept
    }

    /// Which runs are done.
    pub(crate) fn done(&self) -> Vec<bool> {
        self.rows().places.iter().map(|(_, length)| *length > 0).collect()
    }

    /// Keeps a row, and the series of its run before it: a run whose row is there has both. What
    /// is kept outlives the program, however it ends.
    pub(crate) fn keep(&self, row: &Row, series: Option<&[u8]>) -> Result<(), Failure> {
        if let Some(series) = series {
            let path = self.dir.join(SERIES).join(format!("{}.csv", row.run));
            write_whole(&path, series)?;
        }
        let line = row.to_line();
        let written = self.rows().append(row.run, &line);
        written.map_err(|error| Failure::file("write", &self.dir.join(JOURNAL), &error))
    }

    /// Are all runs done?
    pub(crate) fn complete(&self) -> bool {
        let rows = self.rows();
        rows.kept == rows.places.len() as u64
    }

    /// Puts the rows in their order, once all are there.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        debug_assert!(self.complete());
        let mut rows = OutFile::create(&self.dir.join(ROWS))?;
        let mut table = OutFile::create(&self.dir.join(TABLE))?;
        let written = self.rows().sorted(&self.keys, &mut rows, &mut table);
        written.map_err(|error| Failure::file("write the results to", &self.dir, &error))?;
        let sums = self.rows().sums.sync();
        sums.map_err(|error| Failure::file("write", &self.dir.join(SUMS), &error))?;
        table.commit()?;
        rows.commit()?;
        let journal = self.dir.join(JOURNAL);
        fs::remove_file(&journal).map_err(|error| Failure::file("remove", &journal, &error))
    }
}

impl Journal {
    /// Finds the rows that are as they were written; what a crash cut off is taken away. The rows of a version
    /// without checksums get theirs now.
    fn recover(&mut self, dir: &Path) -> std::io::Result<()> {
        let adopts = self.sums.is_empty()?;
        let sums = Sums::read(&dir.join(SUMS))?;
        let mut reader = BufReader::new(&self.file);
        let mut line = Vec::new();
        let mut at = 0;
        let mut end = 0;
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)?;
            if length == 0 {
                break;
            }
            let row = std::str::from_utf8(&line).ok().and_then(Row::from_line);
            let row = row.filter(|row| adopts || sums.has(row.run, &line));
            if let Some(row) = row
                && let Some(place) = self.places.get_mut(row.run as usize)
            {
                if adopts {
                    self.sums.keep(row.run, &line)?;
                }
                self.kept += u64::from(place.1 == 0);
                *place = (at, length as u32);
            }
            at += length as u64;
            if line.ends_with(b"\n") {
                end = at;
            }
        }
        self.file.set_len(end)?;
        self.end = end;
        Ok(())
    }

    /// One call of the system for each row: from then on it is the system's, which a crash of the
    /// program does not concern.
    fn append(&mut self, run: u64, line: &str) -> std::io::Result<()> {
        let written = self.file.write_all(line.as_bytes());
        if let Err(error) = written.and_then(|()| self.sums.keep(run, line.as_bytes())) {
            // A full disk takes the beginning of a row.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.places[run as usize] = (self.end, line.len() as u32);
        self.end += line.len() as u64;
        self.kept += 1;
        Ok(())
    }

    /// Writes the rows in the order of the runs.
    fn sorted(
        &mut self,
        keys: &[String],
        rows: &mut impl Write,
        table: &mut impl Write,
    ) -> std::io::Result<()> {
        csv::head(keys, table)?;
        let mut line = Vec::new();
        for &(at, length) in &self.places {
            line.resize(length as usize, 0);
            self.file.seek(SeekFrom::Start(at))?;
            self.file.read_exact(&mut line)?;
            rows.write_all(&line)?;
            let row = std::str::from_utf8(&line).ok().and_then(Row::from_line);
            let row =
                row.ok_or_else(|| std::io::Error::other("a row of the journal has changed"))?;
            csv::lines(&row, table)?;
        }
        Ok(())
    }
}

/// All rows of a directory, one after the other: of a finished sweep every one, as it was written; of another
/// those that are.
pub(crate) fn rows(dir: &Path, mut each: impl FnMut(Row)) -> Result<u64, Failure> {
    let whole = dir.join(ROWS);
    if !whole.exists() {
        return journalled(dir, each);
    }
    let runs = read_about(dir)?.runs;
    let failed = |error: &std::io::Error| Failure::file("read", &whole, error);
    let sums = Sums::read(&dir.join(SUMS))
        .map_err(|error| Failure::file("read", &dir.join(SUMS), &error))?;
    let mut reader = BufReader::new(File::open(&whole).map_err(|e| failed(&e))?);
    let mut line = Vec::new();
    let (mut run, mut at) = (0, 0);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(|e| failed(&e))?;
        let damaged = |what: &str| {
            let path = whole.display();
            Failure::new(format!("{path}:{}: {what}, at byte {at} of the file", run + 1)).hint(
                format!("rename it to {JOURNAL}: `sweep --resume` keeps its good rows and does the other runs"),
            )
        };
        match (length, run == runs) {
            (0, true) => return Ok(run),
            (0, false) => return Err(damaged(&format!("ends after {run} of {runs} rows"))),
            (_, true) => return Err(damaged(&format!("goes on after its {runs} rows"))),
            _ => {}
        }
        let row = std::str::from_utf8(&line).ok().and_then(Row::from_line);
        let row = row.filter(|row| row.run == run);
        let row = row.ok_or_else(|| damaged(&format!("is not the row of run {run}")))?;
        if !sums.is_empty() && !sums.has(run, &line) {
            return Err(damaged(&format!(
                "the row of run {run} is not as it was written ({SUMS})"
            )));
        }
        each(row);
        run += 1;
        at += length as u64;
    }
}

/// The good rows of a sweep that is not finished.
fn journalled(dir: &Path, mut each: impl FnMut(Row)) -> Result<u64, Failure> {
    let path = dir.join(JOURNAL);
    let failed = |error: &std::io::Error| Failure::file("read", &path, error);
    let sums = Sums::read(&dir.join(SUMS)).map_err(|error| failed(&error))?;
    let mut reader = BufReader::new(File::open(&path).map_err(|e| failed(&e))?);
    let mut line = Vec::new();
    let mut count = 0;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|e| failed(&e))? == 0 {
            return Ok(count);
        }
        let row = std::str::from_utf8(&line).ok().and_then(Row::from_line);
        if let Some(row) = row.filter(|row| sums.is_empty() || sums.has(row.run, &line)) {
            each(row);
            count += 1;
        }
    }
}

/// Refuses a directory that holds something else.
fn same(dir: &Path, known: &About, about: &About) -> Result<(), Failure> {
    if known.sha256 != about.sha256 || known.format != about.format {
        let message = format!("{} holds another sweep", dir.display());
        let differs = ["scenario", "axes", "repeat", "only"]
            .into_iter()
            .filter(|part| known.definition[part] != about.definition[part])
            .collect::<Vec<_>>()
            .join(", ");
        let hint = format!("it differs in: {differs}; name another directory with --out");
        return Err(Failure::new(message).hint(hint));
    }
    if known.series != about.series {
        let message = format!("{} holds this sweep with other series", dir.display());
        return Err(Failure::new(message).hint("name another directory with --out"));
    }
    if known.ackclock != about.ackclock {
        let message = format!(
            "{} was begun with version {}, this is {}: results of two versions do not mix",
            dir.display(),
            known.ackclock,
            about.ackclock
        );
        return Err(Failure::new(message).hint("name another directory with --out"));
    }
    Ok(())
}

/// Is there anything in `dir` that a sweep does not leave which was killed before it had written
/// what it is: its scenario, and pieces of it and of [`ABOUT`] under temporary names?
fn holds_other_things(dir: &Path) -> Result<bool, Failure> {
    let failed = |error: &std::io::Error| Failure::file("read", dir, error);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(&error)),
    };
    for entry in entries {
        let name = entry.map_err(|error| failed(&error))?.file_name();
        let name = name.to_string_lossy();
        let piece = name.ends_with(".part") && [SCENARIO, ABOUT].iter().any(|of| name.contains(of));
        if name != SCENARIO && !piece {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Takes away what a crash left of files that had no name yet: `.runs.csv.91e0a36b77f2c54d.part`. The lock on
/// the journal says that nobody is writing them.
fn remove_pieces(dir: &Path) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| Failure::file("read", dir, error);
    for entry in fs::read_dir(dir).map_err(|error| failed(&error))? {
        let entry = entry.map_err(|error| failed(&error))?;
        if is_piece(&entry.file_name().to_string_lossy()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(|error| Failure::file("remove", &path, &error))?;
        }
    }
    Ok(())
}

/// Is it a temporary name of one of the files of a sweep?
fn is_piece(name: &str) -> bool {
    let named = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part"));
    let Some((file, random)) = named.and_then(|named| named.rsplit_once('.')) else {
        return false;
    };
    let is_random = !random.is_empty() && random.bytes().all(|b| b.is_ascii_hexdigit());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_series = file.strip_suffix(".csv").is_some_and(is_number);
    is_random && (is_series || [ABOUT, ROWS, TABLE, SCENARIO].contains(&file))
}

fn write_whole(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut out = OutFile::create(path)?;
    out.write_all(text.as_ref()).map_err(|error| Failure::file("write", path, &error))?;
    out.commit()
}
