//! Names of hosts, wherever they are mentioned.

use std::collections::BTreeMap;

use super::keys::{Located, Reader};
use super::nearest::{did_you_mean, one_of};
use super::source::{Fault, Place};

/// The hosts of a scenario by name, right or wrong in themselves.
#[derive(Debug)]
pub(super) struct Hosts {
    names: Vec<String>,
    /// Their places in the list.
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

    /// The host of that name.
    pub(super) fn one(&self, name: &Located<String>, reader: &mut Reader) -> Option<usize> {
        let found = self.places.get(&name.value).copied();
        // Without any host, that is what is wrong.
        if found.is_none() && !self.names.is_empty() {
            let fault = Fault::new(name.place, format!("there is no host {:?}", name.value));
            let names = || self.names.iter().map(String::as_str);
            reader.report(fault.expected(one_of(names())).hint(did_you_mean(&name.value, names())));
        }
        found
    }

    /// Two hosts, which must differ, of `what` at `place`.
    pub(super) fn pair(
        &self,
        what: &str,
        place: Place,
        [from, to]: [&Option<Located<String>>; 2],
        reader: &mut Reader,
    ) -> Option<(usize, usize)> {
        let mut one = |name: &Option<Located<String>>| self.one(name.as_ref()?, reader);
        let (from, last) = (one(from), one(to));
        let pair = from.zip(last)?;
        if pair.0 != pair.1 {
            return Some(pair);
        }
        let message = format!("{what} needs two different hosts");
        let place = to.as_ref().map_or(place, |to| to.place);
        reader.report(Fault::new(place, message));
        None
    }
}
