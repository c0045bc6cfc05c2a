//! Recordings that a scenario names: files beside it, and those that come with the program.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use net::trace::{BadTrace, Schedule};
use sha2::{Digest, Sha256};

use super::presets;

/// What a name of a recording may begin with, in place of that of a file.
pub(super) const PRESET: &str = "preset:";

/// Reads a file that a scenario names, or says in words why it cannot.
pub type ReadFile = dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync;

/// The files that a scenario names; none can be read by default.
#[derive(Clone, Default)]
pub struct Files {
    read: Option<Arc<ReadFile>>,
    /// What was read, by name: a sweep reads a scenario many times.
    known: Arc<Mutex<BTreeMap<String, Recording>>>,
}

type Recording = Result<(Schedule, String), String>;

impl Files {
    /// Files that `read` reads, by the names in the scenario.
    pub fn new(read: impl Fn(&str) -> Result<Vec<u8>, String> + Send + Sync + 'static) -> Self {
        Self { read: Some(Arc::new(read)), known: Arc::default() }
    }

    /// The recording of that name.
    ///
    /// # Errors
    /// What is wrong, in words; with the line, if it is the text.
    pub(super) fn recording(&self, name: &str) -> Result<Schedule, String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(name.to_owned()).or_insert_with(|| self.fetch(name));
        found.clone().map(|(schedule, _)| schedule)
    }

    fn fetch(&self, name: &str) -> Recording {
        if let Some(preset) = name.strip_prefix(PRESET) {
            let known = presets::TRACES.iter().find(|(known, _)| *known == preset);
            let names = || presets::TRACES.map(|(name, _)| format!("{PRESET}{name}")).join(", ");
            return match known {
                Some((_, make)) => Ok((make(), String::new())),
                None => Err(format!("there is no {name:?}; those there are: {}", names())),
            };
        }
        let Some(read) = &self.read else {
            return Err("files cannot be read here".to_owned());
        };
        let bytes = read(name)?;
        let text = core::str::from_utf8(&bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            format!("{name}:{}: no text", line + 1)
        })?;
        let schedule = Schedule::parse(text).map_err(|wrong| in_words(name, &wrong))?;
        Ok((schedule, super::hex(&Sha256::digest(&bytes))))
    }

    /// Names and SHA-256 of all files that were read well, in the order of their names.
    pub fn digests(&self) -> Vec<(String, String)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let good = known.iter().filter_map(|(name, found)| {
            let (_, sha256) = found.as_ref().ok()?;
            (!sha256.is_empty()).then(|| (name.clone(), sha256.clone()))
        });
        good.collect()
    }
}

fn in_words(name: &str, wrong: &BadTrace) -> String {
    match wrong {
        // What the line holds stays there: the name may be that of any file.
        BadTrace::NotANumber { line } => {
            format!("{name}:{line}: expected a whole number of milliseconds up to 4294967295")
        }
        BadTrace::RunsBack { line } => {
            format!("{name}:{line}: this moment is earlier than that of the line before")
        }
        BadTrace::Empty => format!("{name}: no opportunity to send"),
        BadTrace::NoTime => format!("{name}: it lasts 0 ms"),
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("read", &self.read.is_some()).finish_non_exhaustive()
    }
}

/// Equal if they read the same way.
impl PartialEq for Files {
    fn eq(&self, other: &Self) -> bool {
        match (&self.read, &other.read) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Files {}
