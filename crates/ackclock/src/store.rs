//! The directory of a sweep: its description and the rows of its runs.
//!
//! During the sweep, rows are appended to a journal in the order in which runs end; a run whose row
//! was truncated by a crash is repeated. When all rows are complete, they are written in the order
//! of the runs to files that are renamed into place when complete. A [checksum](checksums) of each
//! row is stored next to them.

mod checksums;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use runner::sweep::{RunSeries, SweepDescription, SweepRow, csv};
use scenario::SeriesPlan;
use scenario::Study;

use crate::failure::{Failure, print_error};
use crate::file_kind::other_command;
use crate::output::OutFile;
use crate::visible::ShownPath as _;
use checksums::{ChecksumFile, RowChecksums};

/// Directory of the series of each run.
const SERIES: &str = "series";
/// End of the name of the queues of each run, in the same directory.
const QUEUES: &str = ".queues.csv";
const ABOUT: &str = "sweep.json";
const JOURNAL: &str = "runs.part.jsonl";
const ROWS: &str = "runs.jsonl";
const TABLE: &str = "runs.csv";
const SUMS: &str = "runs.sums";
/// Checksums of the series of each run.
const SERIES_SUMS: &str = "series.sums";
/// The scenario with the settings common to all runs.
const SCENARIO: &str = "scenario.toml";

/// Reads the description of the sweep in `dir`.
pub(crate) fn read_about(dir: &Path) -> Result<SweepDescription, Failure> {
    let path = dir.join(ABOUT);
    let text = fs::read(&path).map_err(|error| {
        let failure = Failure::new(format!("{} holds no sweep: {ABOUT}: {error}", dir.shown()));
        match other_command(dir, "table") {
            Some(other) => failure.hint(other),
            None => failure,
        }
    })?;
    SweepDescription::from_json(&text)
        .map_err(|error| Failure::new(format!("{} is damaged: {error}", path.shown())))
}

/// A sweep in progress.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    keys: Vec<String>,
    journal: Mutex<Journal>,
    series_sums: Option<Mutex<ChecksumFile>>,
}

/// The journal: rows in the order in which runs end.
#[derive(Debug)]
struct Journal {
    file: File,
    sums: ChecksumFile,
    end: u64,
    /// Offset and length of the row of each run; length 0: none yet.
    positions: Vec<(u64, u32)>,
    kept: u64,
}

/// The state of a sweep's directory.
pub(crate) enum SweepDirectory {
    /// Some runs are missing.
    Unfinished(Store),
    /// All runs are complete.
    Complete,
}

impl Store {
    /// Opens the directory of `study`: a new one, or with `resume` an existing one.
    pub(crate) fn open(
        dir: &Path,
        study: &Study<'_>,
        series: Option<&SeriesPlan>,
        resume: bool,
    ) -> Result<SweepDirectory, Failure> {
        let about = SweepDescription::new(study).with_series(series);
        let begun = dir.join(ABOUT).exists();
        if begun {
            let known = read_about(dir)?;
            same(dir, &known, &about)?;
            if !resume {
                let message = format!("{} holds this sweep already", dir.shown());
                return Err(Failure::new(message).hint("add --resume to continue it"));
            }
            check_scenario(dir, study.text())?;
            if dir.join(ROWS).exists() && !dir.join(JOURNAL).exists() {
                // Verify the rows, and what was written beside them.
                check_table(dir, &about.axes.concat())?;
                check_all_series(dir, &about)?;
                if !dir.join(SUMS).exists() {
                    print_error(&format!(
                        "{} has no {SUMS}: its rows are complete but cannot be verified\n",
                        dir.shown()
                    ));
                }
                return Ok(SweepDirectory::Complete);
            }
        } else {
            if holds_other_things(dir)? {
                let message = format!("{} is not empty and holds no sweep", dir.shown());
                return Err(Failure::new(message).hint("name another directory with --out"));
            }
            fs::create_dir_all(dir).map_err(|error| Failure::file("create", dir, &error))?;
            write_whole(&dir.join(SCENARIO), study.text())?;
            write_whole(&dir.join(ABOUT), about.to_json())?;
        }
        let mut store = Self::journal(dir, &about)?;
        remove_partial_files(dir)?;
        if series.is_some() {
            // After the description: a crash in between can be resumed.
            let series = dir.join(SERIES);
            fs::create_dir_all(&series)
                .map_err(|error| Failure::file("create", &series, &error))?;
            remove_partial_files(&series)?;
            let path = dir.join(SERIES_SUMS);
            let sums = ChecksumFile::open(&path);
            let sums = sums.map_err(|error| Failure::file("write", &path, &error))?;
            store.series_sums = Some(Mutex::new(sums));
        }
        let recovered = store.rows().recover(dir);
        recovered.map_err(|error| Failure::file("read", &dir.join(JOURNAL), &error))?;
        Ok(SweepDirectory::Unfinished(store))
    }

    fn journal(dir: &Path, about: &SweepDescription) -> Result<Self, Failure> {
        let path = dir.join(JOURNAL);
        let failed = |error: &std::io::Error| Failure::file("write", &path, error);
        let options = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = options.map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("another sweep is writing to {}", dir.shown());
                return Err(Failure::new(message));
            }
            // The file system has no locks.
            Err(TryLockError::Error(_)) => {}
        }
        let sums = ChecksumFile::open(&dir.join(SUMS))
            .map_err(|error| Failure::file("write", &dir.join(SUMS), &error))?;
        Ok(Self {
            dir: dir.to_owned(),
            keys: about.axes.concat(),
            journal: Mutex::new(Journal {
                file,
                sums,
                end: 0,
                positions: vec![(0, 0); usize::try_from(about.runs).unwrap_or(usize::MAX)],
                kept: 0,
            }),
            series_sums: None,
        })
    }

    fn rows(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of runs with a row.
    pub(crate) fn kept(&self) -> u64 {
        self.rows().kept
    }

    /// For each run: is it complete?
    pub(crate) fn done(&self) -> Vec<bool> {
        self.rows().positions.iter().map(|(_, length)| *length > 0).collect()
    }

    /// Stores the series of a run and then its row, so that a run with a row has both. Stored data
    /// survives any end of the program.
    pub(crate) fn keep(&self, row: &SweepRow, series: Option<&RunSeries>) -> Result<(), Failure> {
        if let Some(series) = series {
            let dir = self.dir.join(SERIES);
            if let Some(queues) = &series.queues {
                write_whole(&dir.join(format!("{}{QUEUES}", row.run)), queues)?;
            }
            write_whole(&dir.join(format!("{}.csv", row.run)), &series.senders)?;
            if let Some(sums) = &self.series_sums {
                let parts = [series.senders.as_ref(), series.queues.as_deref().unwrap_or_default()];
                let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = sums.keep(row.run, &parts.concat());
                kept.map_err(|error| Failure::file("write", &self.dir.join(SERIES_SUMS), &error))?;
            }
        }
        let line = row.to_line();
        let written = self.rows().append(row.run, &line);
        written.map_err(|error| Failure::file("write", &self.dir.join(JOURNAL), &error))
    }

    /// Are all runs complete?
    pub(crate) fn complete(&self) -> bool {
        let rows = self.rows();
        rows.kept == rows.positions.len() as u64
    }

    /// Writes the rows in the order of the runs, once all are complete.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        debug_assert!(self.complete());
        let mut rows = OutFile::create(&self.dir.join(ROWS))?;
        let mut table = OutFile::create(&self.dir.join(TABLE))?;
        let written = self.rows().sorted(&self.keys, &mut rows, &mut table);
        written.map_err(|error| Failure::file("write the results to", &self.dir, &error))?;
        let sums = self.rows().sums.sync();
        sums.map_err(|error| Failure::file("write", &self.dir.join(SUMS), &error))?;
        if let Some(sums) = &self.series_sums {
            let synced = sums.lock().unwrap_or_else(PoisonError::into_inner).sync();
            synced.map_err(|error| Failure::file("write", &self.dir.join(SERIES_SUMS), &error))?;
        }
        table.commit()?;
        rows.commit()?;
        let journal = self.dir.join(JOURNAL);
        fs::remove_file(&journal).map_err(|error| Failure::file("remove", &journal, &error))
    }
}

impl Journal {
    /// Finds the valid rows and truncates what a crash left. Rows of a version without checksums
    /// get theirs now.
    fn recover(&mut self, dir: &Path) -> std::io::Result<()> {
        let adopts = self.sums.is_empty()?;
        let sums = ChecksumFile::read(&dir.join(SUMS))?;
        let series = ChecksumFile::read(&dir.join(SERIES_SUMS))?;
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
            let row = std::str::from_utf8(&line).ok().and_then(SweepRow::from_line);
            let row = row.filter(|row| adopts || sums.has(row.run, &line));
            // A run whose series is missing or has changed is repeated.
            let row = row.filter(|row| series.is_empty() || has_series(dir, row.run, &series));
            if let Some(row) = row
                && let Some(position) = self.positions.get_mut(row.run as usize)
            {
                if adopts {
                    self.sums.keep(row.run, &line)?;
                }
                self.kept += u64::from(position.1 == 0);
                *position = (at, length as u32);
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

    /// Appends a row with one system call, so that a crash of the program cannot lose it
    /// afterwards.
    fn append(&mut self, run: u64, line: &str) -> std::io::Result<()> {
        let written = self.file.write_all(line.as_bytes());
        if let Err(error) = written.and_then(|()| self.sums.keep(run, line.as_bytes())) {
            // A full disk may have stored the beginning of a row.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.positions[run as usize] = (self.end, line.len() as u32);
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
        for &(at, length) in &self.positions {
            line.resize(length as usize, 0);
            self.file.seek(SeekFrom::Start(at))?;
            self.file.read_exact(&mut line)?;
            rows.write_all(&line)?;
            let row = std::str::from_utf8(&line).ok().and_then(SweepRow::from_line);
            let row = row.ok_or_else(|| std::io::Error::other("a journal row has changed"))?;
            csv::lines(&row, table)?;
        }
        Ok(())
    }
}

/// Passes all rows of a directory to `each`: all verified rows of a finished sweep, or those
/// present in an unfinished one.
pub(crate) fn rows(dir: &Path, mut each: impl FnMut(SweepRow)) -> Result<u64, Failure> {
    let whole = dir.join(ROWS);
    if !whole.exists() {
        return journalled(dir, each);
    }
    let runs = read_about(dir)?.runs;
    let failed = |error: &std::io::Error| Failure::file("read", &whole, error);
    let sums = ChecksumFile::read(&dir.join(SUMS))
        .map_err(|error| Failure::file("read", &dir.join(SUMS), &error))?;
    let mut reader = BufReader::new(File::open(&whole).map_err(|e| failed(&e))?);
    let mut line = Vec::new();
    let (mut run, mut at) = (0, 0);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(|e| failed(&e))?;
        let damaged = |what: &str| {
            let path = whole.shown();
            Failure::new(format!("{path}:{}: {what}, at byte {at} of the file", run + 1)).hint(
                format!("rename it to {JOURNAL}: `sweep --resume` keeps its valid rows and repeats the other runs"),
            )
        };
        match (length, run == runs) {
            (0, true) => return Ok(run),
            (0, false) => return Err(damaged(&format!("ends after {run} of {runs} rows"))),
            (_, true) => return Err(damaged(&format!("continues after its {runs} rows"))),
            _ => {}
        }
        let row = std::str::from_utf8(&line).ok().and_then(SweepRow::from_line);
        let row = row.filter(|row| row.run == run);
        let row = row.ok_or_else(|| damaged(&format!("is not the row of run {run}")))?;
        if !sums.is_empty() && !sums.has(run, &line) {
            return Err(damaged(&format!(
                "the row of run {run} does not match its checksum ({SUMS})"
            )));
        }
        each(row);
        run += 1;
        at += length as u64;
    }
}

/// Do the series of a run match their checksum?
fn has_series(dir: &Path, run: u64, sums: &RowChecksums) -> bool {
    let read = |end: &str| fs::read(dir.join(SERIES).join(format!("{run}{end}")));
    let Ok(mut bytes) = read(".csv") else { return false };
    bytes.extend(read(QUEUES).unwrap_or_default());
    sums.has(run, &bytes)
}

/// Returns an error if the series of a run has changed; those of earlier versions have no checksums.
fn check_all_series(dir: &Path, about: &SweepDescription) -> Result<(), Failure> {
    if about.series.is_none() {
        return Ok(());
    }
    let path = dir.join(SERIES_SUMS);
    let sums = ChecksumFile::read(&path).map_err(|error| Failure::file("read", &path, &error))?;
    if sums.is_empty() {
        return Ok(());
    }
    match (0..about.runs).find(|&run| !has_series(dir, run, &sums)) {
        None => Ok(()),
        Some(run) => {
            let message = format!(
                "{}: the series of run {run} does not match its checksum ({SERIES_SUMS})",
                dir.join(SERIES).join(format!("{run}.csv")).shown()
            );
            Err(Failure::new(message).hint(format!(
                "rename {ROWS} to {JOURNAL}: `sweep --resume` repeats the runs whose series have changed"
            )))
        }
    }
}

/// Returns an error if the scenario beside the rows is not that of the sweep; writes it if it is missing.
fn check_scenario(dir: &Path, text: &str) -> Result<(), Failure> {
    let path = dir.join(SCENARIO);
    match fs::read(&path) {
        Ok(known) if known == text.as_bytes() => Ok(()),
        Ok(_) => {
            let message = format!("{} is not the scenario of this sweep", path.shown());
            Err(Failure::new(message).hint("remove it: `sweep --resume` writes it again"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => write_whole(&path, text),
        Err(error) => Err(Failure::file("read", &path, &error)),
    }
}

/// Verifies the rows, and that the table has the same; writes the table if it is missing.
fn check_table(dir: &Path, keys: &[String]) -> Result<(), Failure> {
    let path = dir.join(TABLE);
    let failed = |error: &std::io::Error| Failure::file("read", &path, error);
    let mut known = match File::open(&path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return write_table(dir, keys);
        }
        Err(error) => return Err(failed(&error)),
    };
    let mut expected = Vec::new();
    let mut found = Vec::new();
    let mut line = 1;
    let mut compare = |expected: &mut Vec<u8>| -> std::io::Result<bool> {
        found.resize(expected.len(), 0);
        let is_same = known.read_exact(&mut found).is_ok() && found == *expected;
        expected.clear();
        Ok(is_same)
    };
    let head = csv::head(keys, &mut expected).and_then(|()| compare(&mut expected));
    let mut first_other = (!head.map_err(|error| failed(&error))?).then_some(line);
    let mut written = Ok(());
    rows(dir, |row| {
        if first_other.is_some() || written.is_err() {
            return;
        }
        written = csv::lines(&row, &mut expected).and_then(|()| {
            let lines = expected.iter().filter(|byte| **byte == b'\n').count();
            if !compare(&mut expected)? {
                first_other = Some(line + 1);
            }
            line += lines;
            Ok(())
        });
    })?;
    written.map_err(|error| failed(&error))?;
    let rest = known.fill_buf().map_err(|error| failed(&error))?;
    let first_other = first_other.or((!rest.is_empty()).then_some(line + 1));
    let Some(line) = first_other else { return Ok(()) };
    let message = format!("{}:{line}: is not what {ROWS} has", path.shown());
    Err(Failure::new(message).hint("remove it: `sweep --resume` writes it again"))
}

/// Writes the table of the rows.
fn write_table(dir: &Path, keys: &[String]) -> Result<(), Failure> {
    let path = dir.join(TABLE);
    let failed = |error: &std::io::Error| Failure::file("write", &path, error);
    let mut out = OutFile::create(&path)?;
    let mut written = csv::head(keys, &mut out);
    rows(dir, |row| {
        if written.is_ok() {
            written = csv::lines(&row, &mut out);
        }
    })?;
    written.map_err(|error| failed(&error))?;
    out.commit()
}

/// Passes the valid rows of an unfinished sweep to `each`.
fn journalled(dir: &Path, mut each: impl FnMut(SweepRow)) -> Result<u64, Failure> {
    let path = dir.join(JOURNAL);
    let failed = |error: &std::io::Error| Failure::file("read", &path, error);
    let sums = ChecksumFile::read(&dir.join(SUMS)).map_err(|error| failed(&error))?;
    let mut reader = BufReader::new(File::open(&path).map_err(|e| failed(&e))?);
    let mut line = Vec::new();
    let mut count = 0;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(|e| failed(&e))? == 0 {
            return Ok(count);
        }
        let row = std::str::from_utf8(&line).ok().and_then(SweepRow::from_line);
        if let Some(row) = row.filter(|row| sums.is_empty() || sums.has(row.run, &line)) {
            each(row);
            count += 1;
        }
    }
}

/// Returns an error if the directory holds another sweep.
fn same(dir: &Path, known: &SweepDescription, about: &SweepDescription) -> Result<(), Failure> {
    if known.sha256 != about.sha256 || known.format != about.format {
        let message = format!("{} holds another sweep", dir.shown());
        let differs = ["scenario", "axes", "repeat", "only"]
            .into_iter()
            .filter(|part| known.definition[part] != about.definition[part])
            .collect::<Vec<_>>()
            .join(", ");
        let hint = format!("it differs in: {differs}; name another directory with --out");
        return Err(Failure::new(message).hint(hint));
    }
    if known.series != about.series {
        let message = format!("{} holds this sweep with other series", dir.shown());
        return Err(Failure::new(message).hint("name another directory with --out"));
    }
    if known.ackclock != about.ackclock {
        let message = format!(
            "{} was started with version {}, this is {}: results of two versions do not mix",
            dir.shown(),
            known.ackclock,
            about.ackclock
        );
        return Err(Failure::new(message).hint("name another directory with --out"));
    }
    if known.model != about.model {
        let of = |model: &str| match model {
            "" => "an unknown model".to_owned(),
            model => format!("model {model}"),
        };
        let message = format!(
            "{} was started with {}, this is {}: results of two models do not mix",
            dir.shown(),
            of(&known.model),
            of(&about.model)
        );
        return Err(Failure::new(message).hint("name another directory with --out"));
    }
    Ok(())
}

/// Does `dir` contain anything but what a sweep leaves that was killed before it wrote its
/// description: its scenario, and partial files of it and of [`ABOUT`]?
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
        let part = name.ends_with(".part") && [SCENARIO, ABOUT].iter().any(|of| name.contains(of));
        if name != SCENARIO && !part {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes partial files of a crash: `.runs.csv.91e0a36b77f2c54d.part`. The lock on the journal
/// proves that no other process is writing them.
fn remove_partial_files(dir: &Path) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| Failure::file("read", dir, error);
    for entry in fs::read_dir(dir).map_err(|error| failed(&error))? {
        let entry = entry.map_err(|error| failed(&error))?;
        if is_partial_file(&entry.file_name().to_string_lossy()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(|error| Failure::file("remove", &path, &error))?;
        }
    }
    Ok(())
}

/// Is it a temporary name of one of the files of a sweep?
fn is_partial_file(name: &str) -> bool {
    let named = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part"));
    let Some((file, random)) = named.and_then(|named| named.rsplit_once('.')) else {
        return false;
    };
    let is_random = !random.is_empty() && random.bytes().all(|b| b.is_ascii_hexdigit());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = file.strip_suffix(QUEUES).or_else(|| file.strip_suffix(".csv"));
    let is_series = number.is_some_and(is_number);
    is_random && (is_series || [ABOUT, ROWS, TABLE, SCENARIO].contains(&file))
}

fn write_whole(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    let mut out = OutFile::create(path)?;
    out.write_all(text.as_ref()).map_err(|error| Failure::file("write", path, &error))?;
    out.commit()
}
