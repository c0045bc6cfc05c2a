//! `[shared.NAME]`: elements that several roads may lead through.

use sim::scenario::{Element, Shared};

use super::element::{self, ElementTable};
use super::keys::{Located, Reader};
use super::nearest::{did_you_mean, one_of};
use super::source::Fault;

/// The shared elements by name, right or wrong in themselves.
#[derive(Debug, Default)]
pub(super) struct SharedElements {
    names: Vec<String>,
    /// `None` for one that is wrong.
    elements: Vec<Option<Element>>,
}

impl SharedElements {
    /// The elements of all tables.
    pub(super) fn of(tables: &[(Located<String>, ElementTable)], reader: &mut Reader) -> Self {
        let mut shared = Self::default();
        for (name, table) in tables {
            let draft = element::draft(table, None, reader);
            shared.names.push(name.value.clone());
            shared.elements.push(draft.and_then(|draft| draft.resolve(None, reader)));
        }
        shared
    }

    /// The element of that index, unless it is wrong.
    pub(super) fn get(&self, index: usize) -> Option<&Element> {
        self.elements[index].as_ref()
    }

    /// Those that are right.
    pub(super) fn all(self) -> Vec<Shared> {
        let named = self.names.into_iter().zip(self.elements);
        named.filter_map(|(name, element)| Some(Shared { name, element: element? })).collect()
    }

    /// Index of the one a key names.
    pub(super) fn find(&self, name: &Located<String>, reader: &mut Reader) -> Option<usize> {
        let found = self.names.iter().position(|shared| *shared == name.value);
        if found.is_none() {
            let names = || self.names.iter().map(String::as_str);
            let fault = Fault::new(name.place, format!("there is no [shared.{}]", name.value));
            let fault = match self.names.is_empty() {
                true => fault.hint("declare it: [shared.NAME] link = { ... }".to_owned()),
                false => fault.expected(one_of(names())).hint(did_you_mean(&name.value, names())),
            };
            reader.report(fault);
        }
        found
    }
}
