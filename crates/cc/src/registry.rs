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

impl Algorithm {
    /// Its name on its system.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
            Self::Bbr3 => "bbr3",
            Self::BbrDraft(dialect) => dialect.name,
            Self::Cubic(_) => "cubic",
            Self::Outside(outside) => outside.name(),
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
pub const NAMES: [&str; 5 + VARIANTS.len() + DIALECTS.len()] = {
    let mut names = [""; 5 + VARIANTS.len() + DIALECTS.len()];
    names[0] = "bbr";
    names[1] = "bbr3";
    names[2] = "cubic";
    names[3] = "newreno";
    names[4] = "reno";
    let mut at = 0;
    while at < VARIANTS.len() {
        names[5 + at] = VARIANTS[at].0;
        at += 1;
    }
    let mut at = 0;
    while at < DIALECTS.len() {
        names[5 + VARIANTS.len() + at] = DIALECTS[at].name;
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
    match name {
        "newreno" => Ok(Algorithm::NewReno),
        "reno" => Ok(Algorithm::Reno),
        "bbr" => Ok(Algorithm::Bbr),
        "bbr3" => Ok(Algorithm::Bbr3),
        "cubic" => Ok(Algorithm::Cubic(cubic)),
        _ if NOT_MODELLED.contains(&name) => Err(ControllerNameError::NotModelled),
        _ => {
            let variant = VARIANTS.iter().find(|(known, _)| *known == name);
            let dialect = DIALECTS.iter().find(|known| known.name == name);
            variant
                .map(|&(_, variant)| Algorithm::Cubic(variant))
                .or_else(|| dialect.map(|&dialect| Algorithm::BbrDraft(dialect)))
                .ok_or(ControllerNameError::Unknown)
        }
    }
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
    fn cubic_is_the_systems_own_unless_a_variant_is_given() {
        assert_eq!(find("cubic", CubicVariant::Rfc), Ok(Algorithm::Cubic(CubicVariant::Rfc)));
        let ticks = CubicVariant::FreeBsd(CubicParams::FREEBSD_13_0);
        assert_eq!(find("cubic-ticks", CubicVariant::Rfc), Ok(Algorithm::Cubic(ticks)));
    }
}
