//! The congestion control of a system: its default, and each by its name.

use cc::cubic::CubicVariant;
use cc::registry::{self, Algorithm, ControllerNameError, ControllerStacks};
use cc::{
    AnyController, Bbr, Bbr3, BbrDraft, FreeBsdCubic, KernelController, LinuxCubic, LinuxReno,
    NewReno, RfcCubic,
};
use units::RandomStream;

use super::{Family, RtoRule, TcpProfile};

impl TcpProfile {
    /// The system's default congestion control.
    pub fn controller(&self) -> Algorithm {
        // A default is a name of the registry, as a test shows.
        self.algorithm(self.default_cc).unwrap_or(Algorithm::Cubic(self.cubic))
    }

    /// The congestion control of that name on this system.
    ///
    /// # Errors [`ControllerNameError`]: whether the name is unknown or belongs to another stack.
    pub fn algorithm(&self, name: &str) -> Result<Algorithm, ControllerNameError> {
        use ControllerNameError::{OtherStack, RfcOnly};
        let found = registry::find(name, self.cubic)?;
        match found.stacks() {
            _ if self.runs(found) => Ok(found),
            ControllerStacks::RfcAndQuic => Err(RfcOnly),
            ControllerStacks::Any | ControllerStacks::Linux | ControllerStacks::LinuxAndQuic => {
                Err(OtherStack)
            }
        }
    }

    /// Can this system run it?
    pub fn runs(&self, algorithm: Algorithm) -> bool {
        match algorithm.stacks() {
            ControllerStacks::Any => true,
            ControllerStacks::Linux | ControllerStacks::LinuxAndQuic => {
                self.family == Family::Linux
            }
            ControllerStacks::RfcAndQuic => self.family == Family::Rfc,
        }
    }

    /// Builds a controller of that kind as this system runs it; `draws` is its random stream.
    pub fn build(&self, algorithm: Algorithm, draws: &RandomStream) -> AnyController {
        match algorithm {
            Algorithm::NewReno => NewReno::new(self.newreno).into(),
            Algorithm::Reno => LinuxReno::new().beginning_at(self.initial_packets).into(),
            Algorithm::Bbr => {
                let bbr = Bbr::new(self.hz, draws.clone()).beginning_at(self.initial_packets);
                bbr.beginning_with(self.bbr_phase as u8).drawing(self.bbr_phases).into()
            }
            Algorithm::Bbr3 => Bbr3::new(self.hz, draws.clone())
                .beginning_at(self.initial_packets)
                .drawing(self.bbr3_draws)
                .into(),
            Algorithm::BbrDraft(dialect) => BbrDraft::new(dialect, draws.clone()).into(),
            Algorithm::Cubic(CubicVariant::FreeBsd(params)) => {
                FreeBsdCubic::new(params, self.newreno, self.hz).into()
            }
            Algorithm::Cubic(CubicVariant::Linux) => {
                LinuxCubic::new(self.hz).beginning_at(self.initial_packets).into()
            }
            Algorithm::Cubic(CubicVariant::Rfc) => RfcCubic::new().into(),
            Algorithm::Outside(outside) => match (outside.library(), self.rto) {
                (Some(library), _) => KernelController::new(library, self.hz, draws.clone())
                    .beginning_at(self.initial_packets)
                    .into(),
                (None, RtoRule::Linux) => outside.on_linux(),
                (None, _) => outside.on_freebsd(self.newreno),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubic_is_the_default_of_freebsd_from_14_on_and_each_has_its_own() {
        use cc::cubic::{CubicParams, CubicVariant};

        let own = |name: &str| {
            let profile = TcpProfile::named(name).unwrap();
            (profile.default_cc, profile.cubic)
        };
        let freebsd = CubicVariant::FreeBsd;
        assert_eq!(own("freebsd-13.2"), ("newreno", freebsd(CubicParams::FREEBSD_13_0)));
        for name in ["freebsd-14.3", "freebsd-rack-14.3"] {
            assert_eq!(own(name), ("cubic", freebsd(CubicParams::FREEBSD_STABLE_14)));
        }
        for name in ["freebsd-main", "freebsd-rack-main"] {
            assert_eq!(own(name), ("cubic", freebsd(CubicParams::FREEBSD_D46546)));
        }
        assert_eq!(own("linux-6.18"), ("cubic", CubicVariant::Linux));
        assert_eq!(own("rfc").1, CubicVariant::Rfc);
    }
}
