//! The congestion controllers of a QUIC sender, by name.

use cc::cubic::CubicVariant;
use cc::external::ExternalAlgorithm;
use cc::{Algorithm, ControllerNameError, registry};

use crate::profile::QuicProfile;

/// The congestion controller of a QUIC sender. BBR is not available: it needs the delivery-rate
/// samples of Linux TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    /// NewReno of RFC 9002 ([`cc::QuicNewReno`]).
    NewReno,
    /// Linux's `reno` ([`cc::LinuxReno`]).
    Reno,
    /// CUBIC of some system and version ([`cc::cubic`]).
    Cubic(CubicVariant),
    /// A user-defined controller.
    External(ExternalAlgorithm),
}

impl CongestionControl {
    /// The controller called `name`; `cubic` is that of RFC 9438.
    ///
    /// # Errors
    /// [`ControllerNameError::OtherStack`] if only a TCP stack offers it, else as
    /// [`registry::find`].
    pub fn named(name: &str) -> Result<Self, ControllerNameError> {
        registry::find(name, CubicVariant::Rfc)?.try_into()
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

impl TryFrom<Algorithm> for CongestionControl {
    type Error = ControllerNameError;

    fn try_from(algorithm: Algorithm) -> Result<Self, ControllerNameError> {
        match algorithm {
            Algorithm::NewReno => Ok(Self::NewReno),
            Algorithm::Reno => Ok(Self::Reno),
            Algorithm::Cubic(variant) => Ok(Self::Cubic(variant)),
            Algorithm::Outside(outside) => Ok(Self::External(outside)),
            Algorithm::Bbr => Err(ControllerNameError::OtherStack),
        }
    }
}

impl From<CongestionControl> for Algorithm {
    fn from(cc: CongestionControl) -> Self {
        match cc {
            CongestionControl::NewReno => Self::NewReno,
            CongestionControl::Reno => Self::Reno,
            CongestionControl::Cubic(variant) => Self::Cubic(variant),
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
    fn bbr_is_refused_and_not_replaced() {
        assert_eq!(CongestionControl::named("bbr"), Err(ControllerNameError::OtherStack));
        assert_eq!(
            CongestionControl::try_from(Algorithm::Bbr),
            Err(ControllerNameError::OtherStack)
        );
        assert_eq!(CongestionControl::named("newreon"), Err(ControllerNameError::Unknown));
    }

    #[test]
    fn names_are_those_of_the_registry_without_bbr() {
        let others = registry::NAMES.into_iter().filter(|name| *name != "bbr");
        assert!(CongestionControl::names().eq(others));
    }

    #[test]
    fn the_default_of_every_profile_has_a_controller() {
        for name in NAMES {
            let profile = QuicProfile::named(name).unwrap();
            assert!(CongestionControl::named(profile.default_cc).is_ok(), "{name}");
        }
    }
}
