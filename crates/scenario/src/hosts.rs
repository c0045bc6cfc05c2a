//! Names of hosts, wherever they are mentioned.

use std::collections::BTreeMap;

use super::keys::{Fields, Key, Reader};
use super::kinds::Words;
use super::nearest::{did_you_mean, one_of};
use super::source::Fault;

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

    /// The host a key names.
    pub(super) fn one(
        &self,
        fields: &Fields<'_>,
        key: &Key<Words>,
        reader: &mut Reader,
    ) -> Option<usize> {
        let name = fields.get(key, reader)?;
        let found = self.places.get(&name.value).copied();
        // Without any host, that is what is wrong.
        if found.is_none() && !self.names.is_empty() {
            let fault = Fault::new(name.place, format!("there is no host {:?}", name.value));
            let names = || self.names.iter().map(String::as_str);
            reader.report(fault.expected(one_of(names())).hint(did_you_mean(&name.value, names())));
        }
        found
    }

    /// Two hosts, which must differ.
    pub(super) fn pair(
        &self,
        fields: &Fields<'_>,
        from: &Key<Words>,
        to: &Key<Words>,
        reader: &mut Reader,
    ) -> Option<(usize, usize)> {
        let (first, second) = (self.one(fields, from, reader), self.one(fields, to, reader));
        let pair = first.zip(second)?;
        if pair.0 != pair.1 {
            return Some(pair);
        }
        let message = format!("{} needs two different hosts", fields.section.what);
        let place = fields.node(to).map_or(fields.place, |node| node.place);
        reader.report(Fault::new(place, message));
        None
    }
}
