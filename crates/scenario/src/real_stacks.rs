//! Real QUIC implementations as hosts: those of this build, by `profile`, and programs, by `stack` of `[host.NAME]`.

use std::fmt;
use std::sync::Arc;

use quic::real::{NAMES, RealStack};
use sim::scenario::{RealQuicStack, StackSpec};

use super::host::HostTable;
use super::keys::{Key, Located, ScenarioReader};
use super::kinds::TextType;
use super::source::SpannedError;

pub(super) static STACK: Key<TextType> = Key::optional(
    "stack",
    TextType,
    "none, the host is modelled",
    "the host is a real QUIC stack in virtual time: its name in `ackclock stack list`; the profile, one of QUIC, models \
     the host in runs without it",
);

/// Returns the implementation with this name; `None` if the build does not include it.
pub(crate) fn named(name: &str) -> Option<&'static dyn RealStack> {
    let included: &[&'static dyn RealStack] = &[
        #[cfg(feature = "quinn")]
        &quinn_host::QUINN,
    ];
    included.iter().copied().find(|stack| stack.name() == name)
}

/// Finds the program of a stack by its name.
pub type FindStack = dyn Fn(&str) -> Result<&'static dyn RealStack, MissingStack> + Send + Sync;

/// A stack that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingStack {
    /// The error.
    pub message: String,
    /// The cure.
    pub hint: String,
}

/// Hosts that are real QUIC stacks, by their key `stack`.
#[derive(Clone, Default)]
pub enum Stacks {
    /// An error.
    #[default]
    Refused,
    /// Modelled by their profiles.
    Modelled,
    /// The programs that this function finds.
    Programs(Arc<FindStack>),
}

impl Stacks {
    /// The programs that `find` finds.
    pub fn programs(
        find: impl Fn(&str) -> Result<&'static dyn RealStack, MissingStack> + Send + Sync + 'static,
    ) -> Self {
        Self::Programs(Arc::new(find))
    }
}

impl fmt::Debug for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "Refused",
            Self::Modelled => "Modelled",
            Self::Programs(_) => "Programs",
        })
    }
}

impl PartialEq for Stacks {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused, Self::Refused) | (Self::Modelled, Self::Modelled) => true,
            (Self::Programs(one), Self::Programs(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

impl Eq for Stacks {}

/// A host that is a real QUIC stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackHost {
    /// Index of the host.
    pub host: usize,
    /// Name of the stack.
    pub stack: String,
}

/// Returns the stack of a host with `stack`; `modelled` is that of its profile.
pub(super) fn replaced(
    named: &Located<String>,
    modelled: StackSpec,
    table: &HostTable,
    reader: &mut ScenarioReader,
) -> StackSpec {
    let stacks = reader.stacks.clone();
    let mut error = |span, message: &str, hint: &str| {
        reader.report(SpannedError::new(span, message).hint(hint.to_owned()));
    };
    if modelled.quic().is_none() {
        error(
            named.span,
            "`stack` is a real QUIC stack, and the profile is no model of one",
            "give the host a profile such as \"quic-go-0.65\"",
        );
        return modelled;
    }
    if table.kernel.is_some() || table.guest.is_some() {
        error(named.span, "a host has one of `kernel`, `guest` and `stack`", "remove the others");
        return modelled;
    }
    if let Some(knobs) = &table.knobs {
        let message = "a host with `stack` has no knobs: the stack runs with its defaults";
        error(knobs.span, message, "remove them, or `stack`");
        return modelled;
    }
    let find = match stacks {
        Stacks::Refused => {
            let message = "a host that is a real QUIC stack cannot be part of this command";
            error(
                named.span,
                message,
                "`ackclock run` can run it; without `stack` the host is modelled",
            );
            return modelled;
        }
        Stacks::Modelled => return modelled,
        Stacks::Programs(find) => find,
    };
    match find(&named.value) {
        Ok(stack) => {
            let offered = stack.controllers();
            let wanted = table.cc.as_ref();
            let cc = match wanted {
                Some(cc) => offered.iter().find(|offered| **offered == cc.value),
                None => offered.first(),
            };
            let mtu = table.mtu.as_ref().map_or(1_500, |mtu| mtu.value.get() as u32);
            match (cc, wanted) {
                (Some(cc), _) => return StackSpec::Real(RealQuicStack { stack, cc, mtu }),
                (None, Some(cc)) => {
                    let message = format!("`{}` is not offered by {}", cc.value, stack.name());
                    let offered: Vec<String> =
                        offered.iter().map(|cc| format!("\"{cc}\"")).collect();
                    error(cc.span, &message, &format!("it has {}", offered.join(", ")));
                }
                (None, None) => {}
            }
        }
        Err(MissingStack { message, hint }) => error(named.span, &message, &hint),
    }
    modelled
}

/// Returns how a host is given this implementation: a key and its value.
pub(super) fn setting(name: &str) -> String {
    let key = if NAMES.contains(&name) { "profile" } else { "stack" };
    format!("{key} = \"{name}\"")
}
