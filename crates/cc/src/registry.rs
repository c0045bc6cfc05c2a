//! Names of controllers, as the systems' own sysctls spell them, and of CUBIC's variants.

use crate::cubic::{VARIANTS, Variant};
use crate::outside::Outside;

/// A controller that can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// FreeBSD's `newreno` ([`crate::NewReno`], by [`crate::newreno::Params`]).
    NewReno,
    /// Linux's `reno` ([`crate::LinuxReno`]).
    Reno,
    /// Linux's `bbr` ([`crate::Bbr`]).
    Bbr,
    /// CUBIC of some system and version ([`crate::cubic`]).
    Cubic(Variant),
    /// One that is written elsewhere, over the system's own Reno.
    Outside(Outside),
}

impl Algorithm {
    /// Its name on the system that has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
            Self::Cubic(_) => "cubic",
            Self::Outside(outside) => outside.name(),
        }
    }
}

/// Why a name gives no controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoController {
    /// A real one, which Ackclock does not model yet.
    NotModelled,
    /// It needs more of the stack than this system's has: `bbr` needs Linux's delivery rates.
    OtherStack,
    /// No system has it.
    Unknown,
}

impl core::fmt::Display for NoController {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotModelled => "this congestion control is not modelled yet",
            Self::OtherStack => "this congestion control needs the delivery rates of Linux's stack",
            Self::Unknown => "no system has a congestion control of that name",
        })
    }
}

impl core::error::Error for NoController {}

/// Names that [`find`] takes: those of the systems in alphabetical order, then those of variants.
pub const NAMES: [&str; 4 + VARIANTS.len()] = {
    let mut names = [""; 4 + VARIANTS.len()];
    names[0] = "bbr";
    names[1] = "cubic";
    names[2] = "newreno";
    names[3] = "reno";
    let mut at = 0;
    while at < VARIANTS.len() {
        names[4 + at] = VARIANTS[at].0;
        at += 1;
    }
    names
};

/// Names that systems know and [`find`] answers with [`NoController::NotModelled`].
pub const NOT_MODELLED: [&str; 7] = ["cdg", "chd", "dctcp", "hd", "htcp", "vegas", "westwood"];

/// The controller called `name` (`net.inet.tcp.cc.algorithm`, `net.ipv4.tcp_congestion_control`)
/// on a system whose own CUBIC is `cubic`.
///
/// # Errors
///
/// [`NoController`] says whether the name is real at all.
pub fn find(name: &str, cubic: Variant) -> Result<Algorithm, NoController> {
    match name {
        "newreno" => Ok(Algorithm::NewReno),
        "reno" => Ok(Algorithm::Reno),
        "bbr" => Ok(Algorithm::Bbr),
        "cubic" => Ok(Algorithm::Cubic(cubic)),
        _ if NOT_MODELLED.contains(&name) => Err(NoController::NotModelled),
        _ => VARIANTS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, variant)| Algorithm::Cubic(variant))
            .ok_or(NoController::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::Params;

    #[test]
    fn every_listed_name_is_found() {
        let own = Variant::Rfc;
        assert!(NAMES.iter().all(|name| find(name, own).is_ok()));
        assert!(NOT_MODELLED.iter().all(|name| find(name, own) == Err(NoController::NotModelled)));
        assert_eq!(find("newreon", own), Err(NoController::Unknown));
    }

    #[test]
    fn cubic_is_the_systems_own_unless_a_variant_is_named() {
        assert_eq!(find("cubic", Variant::Rfc), Ok(Algorithm::Cubic(Variant::Rfc)));
        let ticks = Variant::FreeBsd(Params::FREEBSD_13_0);
        assert_eq!(find("cubic-ticks", Variant::Rfc), Ok(Algorithm::Cubic(ticks)));
    }
}
