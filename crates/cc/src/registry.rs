//! Names of controllers, as in the sysctls of the systems, and of CUBIC's variants.

use crate::bbr_draft::{BbrDraftParams, DIALECTS};
use crate::cubic::{CubicVariant, VARIANTS};
use crate::external::ExternalAlgorithm;

/// An available controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// FreeBSD's `newreno` ([`crate::NewReno`], by [`crate::newreno::NewRenoParams`]).
    NewReno,
    /// Linux's `reno` ([`crate::LinuxReno`]).
    Reno,
    /// Linux's `bbr` ([`crate::Bbr`]).
    Bbr,
    /// Linux's `bbr` of kernels with version 3 ([`crate::Bbr3`]).
    Bbr3,
    /// BBR of the IETF draft, or a dialect of it ([`crate::BbrDraft`]).
    BbrDraft(&'static BbrDraftParams),
    /// CUBIC of some system and version ([`crate::cubic`]).
    Cubic(CubicVariant),
    /// A user-defined controller, on top of the system's own Reno.
    Outside(ExternalAlgorithm),
}

/// The stacks that a controller runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerStacks {
    /// All.
    Any,
    /// Those with Linux's delivery rates.
    Linux,
    /// Linux's, and QUIC with the delivery rates of its packets.
    LinuxAndQuic,
    /// TCP by the RFCs, and QUIC.
    RfcAndQuic,
}

impl ControllerStacks {
    /// Does it run on QUIC?
    pub const fn has_quic(self) -> bool {
        !matches!(self, Self::Linux)
    }
}

/// What is known of a controller besides its algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControllerEntry {
    /// Its name on its system, which [`find`] accepts.
    pub name: &'static str,
    /// The stacks that it runs on.
    pub stacks: ControllerStacks,
    /// Its name in Linux's kernel (`net.ipv4.tcp_congestion_control`). A kernel with BBR version 3 has
    /// it under the name of version 1.
    pub linux: Option<&'static str>,
}

/// Defines [`ControllerName`] and [`CONTROLLERS`], in alphabetical order.
macro_rules! names {
    ($($variant:ident = $name:literal, $stacks:ident, $linux:expr;)*) => {
        /// A controller with a name of its own; the variants of CUBIC and the dialects of BBR have
        /// tables of their own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum ControllerName {
            $($variant,)*
        }

        /// The controllers with a name of their own.
        pub const CONTROLLERS: &[ControllerEntry] = &[
            $(ControllerEntry { name: $name, stacks: ControllerStacks::$stacks, linux: $linux },)*
        ];

        const KNOWN: &[ControllerName] = &[$(ControllerName::$variant,)*];
    };
}

names! {
    Bbr = "bbr", LinuxAndQuic, Some("bbr");
    Bbr3 = "bbr3", Linux, Some("bbr");
    Cubic = "cubic", Any, Some("cubic");
    NewReno = "newreno", Any, None;
    Reno = "reno", Any, Some("reno");
}

impl ControllerName {
    const fn entry(self) -> &'static ControllerEntry {
        &CONTROLLERS[self as usize]
    }

    /// The algorithm on a system whose own CUBIC is `cubic`.
    const fn algorithm(self, cubic: CubicVariant) -> Algorithm {
        match self {
            Self::Bbr => Algorithm::Bbr,
            Self::Bbr3 => Algorithm::Bbr3,
            Self::Cubic => Algorithm::Cubic(cubic),
            Self::NewReno => Algorithm::NewReno,
            Self::Reno => Algorithm::Reno,
        }
    }
}

impl Algorithm {
    /// Its entry in the table; `None` for a dialect of BBR and for a controller of the user.
    fn entry(self) -> Option<&'static ControllerEntry> {
        let name = match self {
            Self::NewReno => ControllerName::NewReno,
            Self::Reno => ControllerName::Reno,
            Self::Bbr => ControllerName::Bbr,
            Self::Bbr3 => ControllerName::Bbr3,
            Self::Cubic(_) => ControllerName::Cubic,
            Self::BbrDraft(_) | Self::Outside(_) => return None,
        };
        Some(name.entry())
    }

    /// Its name on its system.
    pub fn name(self) -> &'static str {
        match self {
            Self::BbrDraft(dialect) => dialect.name,
            Self::Outside(outside) => outside.name(),
            _ => self.entry().map_or("", |entry| entry.name),
        }
    }

    /// The stacks that it runs on.
    pub fn stacks(self) -> ControllerStacks {
        match self {
            Self::BbrDraft(_) => ControllerStacks::RfcAndQuic,
            _ => self.entry().map_or(ControllerStacks::Any, |entry| entry.stacks),
        }
    }

    /// The name by which Linux's kernel has it, which has no other CUBIC than its own.
    pub fn linux_name(self) -> Option<&'static str> {
        match self {
            Self::Cubic(variant) if variant != CubicVariant::Linux => None,
            // A file of the kernel's: the kernel has it under its own name.
            Self::Outside(outside) => outside.library().map(crate::kernel::KernelLibrary::own_name),
            _ => self.entry().and_then(|entry| entry.linux),
        }
    }
}

/// Why a name is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerNameError {
    /// A real controller that Ackclock does not model yet.
    NotModelled,
    /// It needs another stack: `bbr` and `bbr3` need Linux's delivery rates.
    OtherStack,
    /// BBR of the draft runs on QUIC and on TCP by the RFCs.
    RfcOnly,
    /// No system has it.
    Unknown,
}

impl core::fmt::Display for ControllerNameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotModelled => "this congestion control is not modelled yet",
            Self::OtherStack => "this congestion control needs the delivery rates of Linux's stack",
            Self::RfcOnly => {
                "BBR of the IETF draft is for hosts of QUIC and for the TCP profile `rfc`; Linux has `bbr` and `bbr3`"
            }
            Self::Unknown => "no system has a congestion control of that name",
        })
    }
}

impl core::error::Error for ControllerNameError {}

/// Names that [`find`] accepts: those of the systems in alphabetical order, then the variants of CUBIC and the dialects of BBR.
pub const NAMES: [&str; CONTROLLERS.len() + VARIANTS.len() + DIALECTS.len()] = {
    let mut names = [""; CONTROLLERS.len() + VARIANTS.len() + DIALECTS.len()];
    let mut at = 0;
    while at < CONTROLLERS.len() {
        names[at] = CONTROLLERS[at].name;
        at += 1;
    }
    let mut at = 0;
    while at < VARIANTS.len() {
        names[CONTROLLERS.len() + at] = VARIANTS[at].0;
        at += 1;
    }
    let mut at = 0;
    while at < DIALECTS.len() {
        names[CONTROLLERS.len() + VARIANTS.len() + at] = DIALECTS[at].name;
        at += 1;
    }
    names
};

/// Real names for which [`find`] returns [`ControllerNameError::NotModelled`].
pub const NOT_MODELLED: [&str; 20] = [
    "bbr2",
    "bic",
    "cdg",
    "chd",
    "copa",
    "dctcp",
    "hd",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "ledbat",
    "lp",
    "nv",
    "prague",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// The controller called `name` (`net.inet.tcp.cc.algorithm`, `net.ipv4.tcp_congestion_control`)
/// on a system whose own CUBIC is `cubic`.
///
/// # Errors
///
/// [`ControllerNameError`] distinguishes real names from unknown ones.
pub fn find(name: &str, cubic: CubicVariant) -> Result<Algorithm, ControllerNameError> {
    if let Some(known) = KNOWN.iter().find(|known| known.entry().name == name) {
        return Ok(known.algorithm(cubic));
    }
    if NOT_MODELLED.contains(&name) {
        return Err(ControllerNameError::NotModelled);
    }
    let variant = VARIANTS.iter().find(|(known, _)| *known == name);
    let dialect = DIALECTS.iter().find(|known| known.name == name);
    variant
        .map(|&(_, variant)| Algorithm::Cubic(variant))
        .or_else(|| dialect.map(|&dialect| Algorithm::BbrDraft(dialect)))
        .ok_or(ControllerNameError::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::CubicParams;

    #[test]
    fn every_listed_name_is_found() {
        let own = CubicVariant::Rfc;
        assert!(NAMES.iter().all(|name| find(name, own).is_ok()));
        assert!(
            NOT_MODELLED
                .iter()
                .all(|name| find(name, own) == Err(ControllerNameError::NotModelled))
        );
        assert_eq!(find("newreon", own), Err(ControllerNameError::Unknown));
    }

    #[test]
    fn every_entry_is_that_of_its_algorithm_and_in_order() {
        for (known, entry) in KNOWN.iter().zip(CONTROLLERS) {
            let algorithm = known.algorithm(CubicVariant::Linux);
            assert_eq!(algorithm.entry(), Some(entry));
            assert_eq!((algorithm.name(), algorithm.linux_name()), (entry.name, entry.linux));
        }
        assert!(CONTROLLERS.is_sorted_by_key(|entry| entry.name));
    }

    #[test]
    fn cubic_is_the_systems_own_unless_a_variant_is_given() {
        assert_eq!(find("cubic", CubicVariant::Rfc), Ok(Algorithm::Cubic(CubicVariant::Rfc)));
        let ticks = CubicVariant::FreeBsd(CubicParams::FREEBSD_13_0);
        assert_eq!(find("cubic-ticks", CubicVariant::Rfc), Ok(Algorithm::Cubic(ticks)));
    }
}
