//! `[shared.NAME]`: elements that several paths can include.

use sim::scenario::{ElementSpec, SharedElement};

use super::element::{self, ElementTable};
use super::keys::{Located, ScenarioReader};
use super::nearest::{did_you_mean, one_of};
use super::source::SpannedError;

/// The shared elements by name, including those with errors.
#[derive(Debug, Default)]
pub(super) struct SharedElements {
    names: Vec<String>,
    /// `None` for an element with an error.
    elements: Vec<Option<ElementSpec>>,
}

impl SharedElements {
    /// Reads the elements of all tables.
    pub(super) fn of(
        tables: &[(Located<String>, ElementTable)],
        reader: &mut ScenarioReader,
    ) -> Self {
        let mut shared = Self::default();
        for (name, table) in tables {
            let draft = element::parse_element(table, None, reader);
            shared.names.push(name.value.clone());
            shared.elements.push(draft.and_then(|draft| draft.resolve(None, reader)));
        }
        shared
    }

    /// Returns the element with that index, unless it has an error.
    pub(super) fn get(&self, index: usize) -> Option<&ElementSpec> {
        self.elements[index].as_ref()
    }

    /// Returns the elements without errors.
    pub(super) fn all(self) -> Vec<SharedElement> {
        let named = self.names.into_iter().zip(self.elements);
        named
            .filter_map(|(name, element)| Some(SharedElement { name, element: element? }))
            .collect()
    }

    /// Returns the index of the element that a key refers to.
    pub(super) fn find(
        &self,
        name: &Located<String>,
        reader: &mut ScenarioReader,
    ) -> Option<usize> {
        let found = self.names.iter().position(|shared| *shared == name.value);
        if found.is_none() {
            let names = || self.names.iter().map(String::as_str);
            let fault =
                SpannedError::new(name.span, format!("there is no [shared.{}]", name.value));
            let fault = match self.names.is_empty() {
                _ if !reader.suggests() => fault,
                true => fault.hint("declare it: [shared.NAME] link = { ... }".to_owned()),
                false => fault.expected(one_of(names())).hint(did_you_mean(&name.value, names())),
            };
            reader.report(fault);
        }
        found
    }
}
