//! A zoo of senders whose verdicts are known: broken ones, each in one way, and sound ones.
//!
//! `cargo xtask zoo` evaluates all of them. Each criterion must fail at least one broken sender, or it
//! tests nothing, and no sound one, or its limit is wrong. The controllers are those of a user: they
//! set the window of Linux's stack, which detects losses and runs recoveries.

mod broken;
mod rules;
mod sound;

use cc::ExternalAlgorithm;
use cc::external::{ControllerFactory, ReportTrigger, UserController};

use crate::sender::{SenderError, SuiteSender};

/// The profile of the senders.
const PROFILE: &str = "linux-6.18";

/// A sender of the zoo.
#[derive(Debug)]
pub struct ZooSender {
    /// Its name.
    pub name: &'static str,
    /// What is wrong with it, or where a sound one is from.
    pub what: &'static str,
    /// Whether no criterion may fail it.
    pub is_sound: bool,
    pub(crate) kind: ZooKind,
}

/// How a sender is made.
#[derive(Debug)]
pub(crate) enum ZooKind {
    /// A controller of the zoo.
    Own { every: ReportTrigger, base_grows: bool, make: fn() -> Box<dyn UserController> },
    /// A congestion control of Ackclock on this profile.
    BuiltIn(&'static str),
}

/// All senders: the broken ones first.
pub fn senders() -> impl Iterator<Item = &'static ZooSender> {
    broken::SENDERS.iter().chain(&sound::SENDERS)
}

impl ZooSender {
    /// The sender of a suite.
    ///
    /// # Errors
    /// This version has no such sender.
    pub fn sender(&'static self) -> Result<SuiteSender, SenderError> {
        match self.kind {
            ZooKind::Own { .. } => {
                SuiteSender::external(PROFILE, ExternalAlgorithm::new(ZooFactory(self)))
            }
            ZooKind::BuiltIn(cc) => SuiteSender::read(&format!("{PROFILE}/{cc}")),
        }
    }
}

#[derive(Debug)]
struct ZooFactory(&'static ZooSender);

impl ControllerFactory for ZooFactory {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn every(&self) -> ReportTrigger {
        match self.0.kind {
            ZooKind::Own { every, .. } => every,
            ZooKind::BuiltIn(_) => ReportTrigger::Round,
        }
    }

    fn base_grows(&self) -> bool {
        matches!(self.0.kind, ZooKind::Own { base_grows: true, .. } | ZooKind::BuiltIn(_))
    }

    fn make(&self) -> Box<dyn UserController> {
        match self.0.kind {
            ZooKind::Own { make, .. } => make(),
            ZooKind::BuiltIn(_) => Box::new(rules::Window::new(rules::Own)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn there_are_twelve_broken_senders_and_six_sound_ones_that_all_exist() {
        assert!(broken::SENDERS.len() >= 12 && sound::SENDERS.len() >= 6);
        let names: BTreeSet<_> = senders().map(|one| one.name).collect();
        assert_eq!(names.len(), senders().count());
        for one in senders() {
            assert!(one.sender().is_ok(), "{}", one.name);
        }
    }
}
