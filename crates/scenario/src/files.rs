//! Files that a scenario names, beside it, and built-in packet-delivery traces.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cc::ExternalAlgorithm;
use net::trace::{LinkTrace, LinkTraceError};
use sha2::{Digest, Sha256};

use super::presets;

/// Prefix of the name of a built-in trace.
pub(super) const PRESET: &str = "preset:";

/// Reads a file that a scenario names, or returns an error text.
pub type ReadFile = dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync;

/// Loads the congestion controller in a shared library that a scenario names, and returns the bytes of its file; or an error
/// text.
pub type LoadController =
    dyn Fn(&str) -> Result<(ExternalAlgorithm, Vec<u8>), String> + Send + Sync;

/// The files that a scenario names; none can be read by default.
#[derive(Clone, Default)]
pub struct Files {
    read: Option<Arc<ReadFile>>,
    load: Option<Arc<LoadController>>,
    /// Traces by name: a sweep loads a scenario many times.
    cache: Arc<Mutex<BTreeMap<String, TraceResult>>>,
    /// Other files by name.
    texts: Arc<Mutex<BTreeMap<String, TextResult>>>,
    /// Controllers in shared libraries by name.
    libraries: Arc<Mutex<BTreeMap<String, LibraryResult>>>,
}

type TextResult = Result<(Arc<str>, String), String>;

type LibraryResult = Result<(ExternalAlgorithm, String), String>;

type TraceResult = Result<(LinkTrace, String), String>;

impl Files {
    /// Creates a set of files read by `read`, by the names in the scenario.
    pub fn new(read: impl Fn(&str) -> Result<Vec<u8>, String> + Send + Sync + 'static) -> Self {
        Self { read: Some(Arc::new(read)), ..Self::default() }
    }

    /// The same, with congestion controllers in shared libraries, loaded by `load`.
    #[must_use]
    pub fn with_controllers(
        mut self,
        load: impl Fn(&str) -> Result<(ExternalAlgorithm, Vec<u8>), String> + Send + Sync + 'static,
    ) -> Self {
        self.load = Some(Arc::new(load));
        self
    }

    /// Returns the controller in the shared library of that name; `None` if it is not the name of one.
    pub(super) fn controller(&self, name: &str) -> Option<Result<ExternalAlgorithm, String>> {
        if !name.ends_with(".so") && !name.ends_with(".dylib") {
            return None;
        }
        let Some(load) = &self.load else {
            return Some(Err("controllers in shared libraries cannot be loaded here".to_owned()));
        };
        let mut known = self.libraries.lock().unwrap_or_else(PoisonError::into_inner);
        let fetch = || {
            let (controller, bytes) = load(name)?;
            Ok((controller, super::hex(&Sha256::digest(&bytes))))
        };
        let found = known.entry(name.to_owned()).or_insert_with(fetch);
        Some(found.clone().map(|(controller, _)| controller))
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// A description, with the line number for an error in the text.
    pub(super) fn text(&self, name: &str) -> Result<Arc<str>, String> {
        let mut known = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let fetch = || {
            let bytes = self.bytes(name)?;
            Ok((Arc::from(utf8(name, &bytes)?), super::hex(&Sha256::digest(&bytes))))
        };
        let found = known.entry(name.to_owned()).or_insert_with(fetch);
        found.clone().map(|(text, _)| text)
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        match &self.read {
            Some(read) => read(name),
            None => Err("files cannot be read here".to_owned()),
        }
    }

    /// Returns the trace of that name.
    ///
    /// # Errors
    /// A description, with the line number for an error in the text.
    pub(super) fn trace(&self, name: &str) -> Result<LinkTrace, String> {
        let mut known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(name.to_owned()).or_insert_with(|| self.fetch(name));
        found.clone().map(|(schedule, _)| schedule)
    }

    fn fetch(&self, name: &str) -> TraceResult {
        if let Some(preset) = name.strip_prefix(PRESET) {
            let known = presets::TRACES.iter().find(|(known, _)| *known == preset);
            let names = || presets::TRACES.map(|(name, _)| format!("{PRESET}{name}")).join(", ");
            return match known {
                Some((_, make)) => Ok((make(), String::new())),
                None => Err(format!("unknown preset {name:?}; available: {}", names())),
            };
        }
        let bytes = self.bytes(name)?;
        let text = utf8(name, &bytes)?;
        let schedule = LinkTrace::parse(text).map_err(|wrong| in_words(name, &wrong))?;
        Ok((schedule, super::hex(&Sha256::digest(&bytes))))
    }

    /// Returns names and SHA-256 of all valid files, sorted by name.
    pub fn digests(&self) -> Vec<(String, String)> {
        let known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let good = known.iter().filter_map(|(name, found)| {
            let (_, sha256) = found.as_ref().ok()?;
            (!sha256.is_empty()).then(|| (name.clone(), sha256.clone()))
        });
        let mut all: Vec<(String, String)> = good.collect();
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let read = texts.iter().filter_map(|(name, found)| {
            found.as_ref().ok().map(|(_, sha256)| (name.clone(), sha256.clone()))
        });
        all.extend(read);
        let libraries = self.libraries.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(libraries.iter().filter_map(|(name, found)| {
            found.as_ref().ok().map(|(_, sha256)| (name.clone(), sha256.clone()))
        }));
        all.sort();
        all
    }
}

/// Decodes a file.
fn utf8<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b str, String> {
    core::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!("{name}:{}: not UTF-8 text", line + 1)
    })
}

fn in_words(name: &str, wrong: &LinkTraceError) -> String {
    match wrong {
        // The line is not quoted: the name may be that of any file.
        LinkTraceError::NotANumber { line } => {
            format!("{name}:{line}: expected a whole number of milliseconds up to 4294967295")
        }
        LinkTraceError::RunsBack { line } => {
            format!("{name}:{line}: this time is earlier than that of the line before")
        }
        LinkTraceError::Empty => format!("{name}: no delivery opportunity"),
        LinkTraceError::NoDuration => format!("{name}: its duration is 0 ms"),
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("read", &self.read.is_some()).finish_non_exhaustive()
    }
}

/// Equal if they share the read function.
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
