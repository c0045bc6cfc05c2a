//! Maps sysctls to the engine: knobs of the profile, the congestion controller, settings with a
//! fixed value, and settings without a visible effect.

mod defaults;
mod fast_open;

use cc::{Algorithm, ControllerNameError};
use tcp::knobs::{self, KnobError, KnobKind, KnobValue};
use tcp::profile::{EcnRule, Family, TcpProfile};
use units::{Bytes, Duration};

use defaults::{FIXED, WITHOUT_EFFECT};
pub use fast_open::{FastOpenCache, FastOpenHost, HostAddresses};

/// A host with its system and the script's settings.
#[derive(Debug, Clone)]
pub struct ScriptHost {
    /// Profile of the system.
    pub profile: TcpProfile,
    /// Congestion control of new connections.
    pub algorithm: Algorithm,
    /// TSO: the NIC splits bursts.
    pub tso: bool,
    /// FreeBSD: ICMP errors end a connection that is being opened (`net.inet.tcp.icmp_may_rst`).
    pub icmp_may_rst: bool,
    /// TCP Fast Open.
    pub fast_open: FastOpenHost,
}

/// Error of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SysctlError {
    /// The engine does not model the setting or value.
    NotModelled(String),
    /// The value is invalid.
    Bad {
        /// The expected value.
        expected: String,
    },
}

impl core::fmt::Display for SysctlError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotModelled(why) => f.write_str(why),
            Self::Bad { expected } => write!(f, "expected {expected}"),
        }
    }
}

impl core::error::Error for SysctlError {}

impl ScriptHost {
    /// Creates a host of that system, with its default congestion control.
    pub fn new(mut profile: TcpProfile) -> Self {
        profile.measures_rates = profile.family == Family::Linux;
        let algorithm = profile.controller();
        Self {
            profile,
            algorithm,
            tso: true,
            icmp_may_rst: true,
            fast_open: FastOpenHost::default(),
        }
    }

    /// Returns whether the system answers certain SYN-ACKs with accurate ECN, although its SYN asks for ECN of RFC
    /// 3168: Linux 6.18, whose sysctl does not enable accurate ECN yet.
    pub(crate) fn answers_accurate_ecn(&self) -> bool {
        self.counts_ecn_fields() && self.profile.ecn == EcnRule::Active
    }

    /// Returns whether the system counts the ECN fields that arrive: Linux 6.18.
    pub(crate) fn counts_ecn_fields(&self) -> bool {
        self.profile.name == "linux-6.18"
    }

    /// Checks a setting of accurate ECN, whose limits were read on Linux 6.18.44; `None` for another one.
    fn set_accurate_ecn(&self, name: &str, value: &str) -> Option<Result<(), SysctlError>> {
        let newest = self.counts_ecn_fields();
        let most = match name {
            "net.ipv4.tcp_ecn" if matches!(value, "3" | "4" | "5") => {
                let profile = self.profile.name;
                return Some(Err(SysctlError::NotModelled(format!(
                    "{profile} refuses {value} (EINVAL), as its kernel does: later kernels have accurate ECN"
                ))));
            }
            "net.ipv4.tcp_ecn_option" if newest => 2,
            "net.ipv4.tcp_ecn_option_beacon" if newest => 3,
            // The shell scripts of public suites set it on earlier kernels, too, and go on.
            "net.ipv4.tcp_ecn_option" | "net.ipv4.tcp_ecn_option_beacon" => return Some(Ok(())),
            _ => return None,
        };
        let valid = value.parse::<u32>().is_ok_and(|value| value <= most);
        Some(if valid {
            Ok(())
        } else {
            Err(SysctlError::Bad { expected: format!("a number from 0 to {most}") })
        })
    }

    /// Sets one sysctl.
    ///
    /// # Errors
    /// The setting was rejected; the host is then unchanged.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SysctlError> {
        if matches!(name, "net.ipv4.tcp_congestion_control" | "net.inet.tcp.cc.algorithm") {
            self.check_family(name)?;
            self.algorithm = self.controller(value)?;
            return Ok(());
        }
        if self.profile.family == Family::Linux
            && let Some(checked) = self.set_accurate_ecn(name, value)
        {
            return checked;
        }
        let lax = &mut self.profile.lax;
        let rule = match name {
            "net.inet.tcp.insecure_rst" => Some(&mut lax.insecure_rst),
            "net.inet.tcp.insecure_syn" => Some(&mut lax.insecure_syn),
            "net.inet.tcp.drop_synfin" => Some(&mut lax.drop_synfin),
            "net.inet.tcp.icmp_may_rst" => Some(&mut self.icmp_may_rst),
            _ => None,
        };
        if let Some(rule) = rule.filter(|_| self.profile.family == Family::FreeBsd) {
            *rule = match value {
                "0" => false,
                "1" => true,
                _ => return Err(SysctlError::Bad { expected: "0 or 1".to_owned() }),
            };
            return Ok(());
        }
        if let Some(knob) = knobs::find(&self.profile, name) {
            let value = read(knob.kind(), name, value)?;
            return knob.set(&mut self.profile, value).map_err(|error| match error {
                KnobError::Range { allowed } => {
                    SysctlError::NotModelled(format!("Ackclock takes {allowed} for it"))
                }
                KnobError::Kind { .. } | KnobError::Unknown => {
                    SysctlError::NotModelled("it cannot be set".to_owned())
                }
            });
        }
        self.check_family(name)?;
        if let Some(done) = self.fast_open.set(name, value) {
            return done;
        }
        if WITHOUT_EFFECT.contains(&name) {
            return Ok(());
        }
        match FIXED.iter().find(|(fixed, _)| *fixed == name) {
            Some((_, allowed)) if allowed.contains(&value) => Ok(()),
            Some((_, allowed)) => {
                Err(SysctlError::NotModelled(format!("only {} is modelled", allowed.join(" or "))))
            }
            None => Err(SysctlError::NotModelled("it is not modelled".to_owned())),
        }
    }

    /// Returns the controller of that name on this system.
    pub(crate) fn controller(&self, name: &str) -> Result<Algorithm, SysctlError> {
        self.profile.algorithm(name).map_err(|why| match why {
            ControllerNameError::OtherStack => {
                SysctlError::NotModelled(format!("`{name}` needs the stack of Linux"))
            }
            ControllerNameError::RfcOnly => {
                SysctlError::NotModelled(format!("`{name}` is not of this system"))
            }
            ControllerNameError::NotModelled => {
                SysctlError::NotModelled(format!("`{name}` is not modelled"))
            }
            ControllerNameError::Unknown => {
                SysctlError::Bad { expected: "a congestion control".to_owned() }
            }
        })
    }

    fn check_family(&self, name: &str) -> Result<(), SysctlError> {
        let linux =
            ["net.ipv4.", "net.core.", "net.ipv6.conf."].iter().any(|own| name.starts_with(own));
        let other = match self.profile.family {
            Family::Linux => !linux,
            Family::FreeBsd | Family::Rfc => linux,
        };
        if other {
            let profile = self.profile.name;
            return Err(SysctlError::NotModelled(format!("{profile} has no such setting")));
        }
        Ok(())
    }
}

/// Parses a value as sysctl writes it: bare numbers, times in the unit of that sysctl.
fn read(kind: KnobKind, name: &str, value: &str) -> Result<KnobValue, SysctlError> {
    let bad = |expected: &str| SysctlError::Bad { expected: expected.to_owned() };
    let numbers: Result<Vec<u64>, _> = value.split_whitespace().map(str::parse).collect();
    let numbers = numbers.map_err(|_| bad("a whole number"))?;
    match (kind, numbers.as_slice()) {
        (KnobKind::Count, &[n]) => Ok(KnobValue::Count(n)),
        // tcp_timestamps=2 and similar are also on.
        (KnobKind::Switch, &[n]) => Ok(KnobValue::Switch(n != 0)),
        (KnobKind::Size, &[n]) => Ok(KnobValue::Size(Bytes(n))),
        (KnobKind::Time, &[n]) if in_seconds(name) => {
            Ok(KnobValue::Time(Duration::from_secs(n.min(1_000_000))))
        }
        (KnobKind::Time, &[n]) => Ok(KnobValue::Time(Duration::from_millis(n.min(1_000_000_000)))),
        (KnobKind::Sizes, &[least, first, most]) => {
            Ok(KnobValue::Sizes([Bytes(least), Bytes(first), Bytes(most)]))
        }
        (KnobKind::Sizes, _) => Err(bad("three sizes")),
        _ => Err(bad("one number")),
    }
}

/// Linux's keepalive times are in seconds; FreeBSD's, and all others, are in milliseconds.
fn in_seconds(name: &str) -> bool {
    name.starts_with("net.ipv4.tcp_keepalive")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux() -> ScriptHost {
        ScriptHost::new(TcpProfile::named("linux-6.18").unwrap())
    }

    #[test]
    fn knobs_are_set_in_the_units_of_the_system() {
        let mut host = linux();
        host.set("net.ipv4.tcp_keepalive_time", "2").unwrap();
        assert_eq!(host.profile.keepalive.idle, Duration::from_secs(2));
        host.set("net.ipv4.tcp_timestamps", "0").unwrap();
        assert!(!host.profile.timestamps);
        host.set("net.ipv4.tcp_rmem", "4096 540000 15728640").unwrap();
        host.set("net.ipv4.tcp_congestion_control", "reno").unwrap();
        assert_eq!(host.algorithm, Algorithm::Reno);
        let mut host = ScriptHost::new(TcpProfile::named("freebsd-14.3").unwrap());
        host.set("net.inet.tcp.keepidle", "2000").unwrap();
        assert_eq!(host.profile.keepalive.idle, Duration::from_secs(2));
    }

    #[test]
    fn settings_of_accurate_ecn_have_the_limits_of_the_kernel() {
        let mut host = linux();
        for (name, value) in
            [("net.ipv4.tcp_ecn_option", "2"), ("net.ipv4.tcp_ecn_option_beacon", "3")]
        {
            assert_eq!(host.set(name, value), Ok(()), "{name}");
            assert!(matches!(host.set(name, "4"), Err(SysctlError::Bad { .. })), "{name}");
            let mut older = ScriptHost::new(TcpProfile::named("linux-6.12").unwrap());
            assert_eq!(older.set(name, "9"), Ok(()), "{name}");
        }
        let refused = host.set("net.ipv4.tcp_ecn", "3").unwrap_err().to_string();
        assert!(refused.starts_with("linux-6.18 refuses 3"), "{refused}");
    }

    #[test]
    fn unmodelled_settings_are_rejected_and_fixed_ones_accepted() {
        let mut host = linux();
        assert_eq!(host.set("net.ipv4.tcp_dsack", "1"), Ok(()));
        assert_eq!(host.set("net.ipv4.tcp_syncookies", "2"), Ok(()));
        for (name, value) in [
            ("net.ipv4.tcp_dsack", "0"),
            ("net.ipv4.tcp_sackk", "1"),
            ("net.inet.tcp.sack.enable", "1"),
            ("net.ipv4.tcp_congestion_control", "vegas"),
        ] {
            assert!(matches!(host.set(name, value), Err(SysctlError::NotModelled(_))), "{name}");
        }
        for (name, value) in [
            ("net.ipv4.tcp_rmem", "1 2"),
            ("net.ipv4.tcp_sack", "yes"),
            ("net.ipv4.tcp_congestion_control", "rneo"),
        ] {
            assert!(matches!(host.set(name, value), Err(SysctlError::Bad { .. })), "{name}");
        }
    }
}
