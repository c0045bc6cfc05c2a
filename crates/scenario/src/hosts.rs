//! Resolves names of hosts.

use std::collections::BTreeMap;

use super::keys::{Located, ScenarioReader};
use super::nearest::{did_you_mean, one_of};
use super::source::{SpannedError, TextSpan};

/// The hosts of a scenario by name, including those with errors.
#[derive(Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
    /// Index of each host by name.
    places: BTreeMap<String, usize>,
}

impl Hosts {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names: Vec<String> = names.into_iter().collect();
        let places = names.iter().enumerate().map(|(place, name)| (name.clone(), place)).collect();
        Self { names, places }
    }

    pub(super) fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// Returns the index of the host with that name.
    pub(super) fn one(&self, name: &Located<String>, reader: &mut ScenarioReader) -> Option<usize> {
        let found = self.places.get(&name.value).copied();
        // A scenario without hosts has an error of its own.
        if found.is_none() && !self.names.is_empty() {
            let fault = SpannedError::new(name.span, format!("there is no host {:?}", name.value));
            let names = || self.names.iter().map(String::as_str);
            reader.report(match reader.suggests() {
                true => fault.expected(one_of(names())).hint(did_you_mean(&name.value, names())),
                false => fault,
            });
        }
        found
    }

    /// Returns the indices of two different hosts of `what`, a table at `place`.
    pub(super) fn pair(
        &self,
        what: &str,
        place: TextSpan,
        [from, to]: [&Option<Located<String>>; 2],
        reader: &mut ScenarioReader,
    ) -> Option<(usize, usize)> {
        let mut one = |name: &Option<Located<String>>| self.one(name.as_ref()?, reader);
        let (from, last) = (one(from), one(to));
        let pair = from.zip(last)?;
        if pair.0 != pair.1 {
            return Some(pair);
        }
        let message = format!("{what} needs two different hosts");
        let place = to.as_ref().map_or(place, |to| to.span);
        reader.report(SpannedError::new(place, message));
        None
    }
}
