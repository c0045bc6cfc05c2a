//! The congestion controllers of a QUIC sender, by name.

use cc::bbr_draft::BbrDraftParams;
use cc::cubic::CubicVariant;
use cc::external::ExternalAlgorithm;
use cc::{Algorithm, ControllerNameError, registry};

use crate::profile::QuicProfile;

/// The congestion controller of a QUIC sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    /// NewReno of RFC 9002 ([`cc::QuicNewReno`]).
    NewReno,
    /// Linux's `reno` ([`cc::LinuxReno`]).
    Reno,
    /// CUBIC of some system and version ([`cc::cubic`]).
    Cubic(CubicVariant),
    /// BBR version 1 ([`cc::Bbr`]), with the delivery rates of QUIC's packets.
    Bbr,
    /// BBR of the IETF draft, or a dialect of it ([`cc::BbrDraft`]).
    BbrDraft(&'static BbrDraftParams),
    /// A user-defined controller.
    External(ExternalAlgorithm),
}

impl CongestionControl {
    /// The controller called `name`; `cubic` is that of RFC 9438.
    ///
    /// # Errors
    /// As [`registry::find`].
    pub fn named(name: &str) -> Result<Self, ControllerNameError> {
        match registry::find(name, CubicVariant::Rfc)? {
            // Version 3 of BBR needs what Linux's packets record when they are sent.
            found if !found.stacks().has_quic() => Err(ControllerNameError::OtherStack),
            found => Ok(Self::from(found)),
        }
    }

    /// Every name that [`CongestionControl::named`] accepts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        registry::NAMES.into_iter().filter(|name| Self::named(name).is_ok())
    }

    /// The name in the results of a run.
    pub fn name(self) -> &'static str {
        Algorithm::from(self).name()
    }
}

impl From<Algorithm> for CongestionControl {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::NewReno => Self::NewReno,
            Algorithm::Reno => Self::Reno,
            Algorithm::Cubic(variant) => Self::Cubic(variant),
            Algorithm::Outside(outside) => Self::External(outside),
            Algorithm::Bbr | Algorithm::Bbr3 => Self::Bbr,
            Algorithm::BbrDraft(dialect) => Self::BbrDraft(dialect),
        }
    }
}

impl From<CongestionControl> for Algorithm {
    fn from(cc: CongestionControl) -> Self {
        match cc {
            CongestionControl::NewReno => Self::NewReno,
            CongestionControl::Reno => Self::Reno,
            CongestionControl::Cubic(variant) => Self::Cubic(variant),
            CongestionControl::Bbr => Self::Bbr,
            CongestionControl::BbrDraft(dialect) => Self::BbrDraft(dialect),
            CongestionControl::External(outside) => Self::Outside(outside),
        }
    }
}

impl QuicProfile {
    /// The default congestion controller of the implementation.
    pub fn controller(&self) -> CongestionControl {
        // Every default is a name of the registry; a test checks this.
        CongestionControl::named(self.default_cc).unwrap_or(CongestionControl::NewReno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::NAMES;

    #[test]
    fn names_are_those_of_the_registry() {
        assert_eq!(CongestionControl::named("bbr"), Ok(CongestionControl::Bbr));
        assert_eq!(CongestionControl::named("newreon"), Err(ControllerNameError::Unknown));
        for name in CongestionControl::names() {
            assert!(CongestionControl::named(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn the_default_of_every_profile_has_a_controller() {
        for name in NAMES {
            let profile = QuicProfile::named(name).unwrap();
            assert!(CongestionControl::named(profile.default_cc).is_ok(), "{name}");
        }
    }
}
