//! What sysctls mean to the engine: knobs of the profile, the controller, values it has anyway,
//! and names that change nothing a script can see.

use cc::{Algorithm, NoController};
use tcp::knobs::{self, Kind, KnobError, Value};
use tcp::profile::{Family, Profile};
use units::{Bytes, Duration};

/// A host as its system and the script's settings make it.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its system.
    pub profile: Profile,
    /// Congestion control of new connections.
    pub algorithm: Algorithm,
    /// The card splits bursts.
    pub tso: bool,
}

/// Settings that the engine follows as they are and knows no other of.
const FIXED: &[(&str, &[&str])] = &[
    ("net.ipv4.tcp_dsack", &["1"]),
    ("net.ipv4.tcp_frto", &["1", "2"]),
    ("net.ipv4.tcp_recovery", &["1"]),
    ("net.ipv4.tcp_reordering", &["3"]),
    ("net.ipv4.tcp_max_reordering", &["300"]),
    ("net.ipv4.tcp_shrink_window", &["0"]),
    ("net.ipv4.tcp_mtu_probing", &["0"]),
    ("net.ipv4.tcp_thin_linear_timeouts", &["0"]),
    ("net.ipv4.tcp_abort_on_overflow", &["0"]),
    ("net.ipv4.tcp_adv_win_scale", &["1"]),
    ("net.ipv4.tcp_workaround_signed_windows", &["0"]),
    ("net.ipv4.tcp_rto_min_us", &["200000"]),
    ("net.ipv4.tcp_rto_max_ms", &["120000"]),
    ("net.ipv4.ip_no_pmtu_disc", &["0"]),
    ("net.inet.tcp.rexmit_slop", &["200"]),
    ("net.inet.tcp.functions_default", &["freebsd"]),
];

/// Settings that change nothing a script can see here: there is one connection, without deferral
/// of bursts, cookies, caches or a queue.
const WITHOUT_EFFECT: &[&str] = &[
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fastopen_key",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_fack",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_challenge_ack_limit",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.ip_local_port_range",
    "net.core.wmem_max",
    "net.core.netdev_max_backlog",
    "net.core.default_qdisc",
    "net.core.somaxconn",
    "net.inet.tcp.hostcache.purgenow",
    "net.inet.tcp.hostcache.enable",
    "net.inet.tcp.syncookies",
    "net.inet.tcp.syncache.rexmtlimit",
    "net.inet.tcp.log_debug",
];

/// Why a setting was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The engine has no such thing.
    NotModelled(String),
    /// The value is none.
    Bad {
        /// What would be right.
        expected: String,
    },
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotModelled(why) => f.write_str(why),
            Self::Bad { expected } => write!(f, "expected {expected}"),
        }
    }
}

impl core::error::Error for Refusal {}

impl Host {
    /// A host of that system, with its own congestion control.
    pub fn new(profile: Profile) -> Self {
        let algorithm = profile.controller();
        Self { profile, algorithm, tso: true }
    }

    /// Sets one sysctl.
    ///
    /// # Errors
    /// Why it was not taken; the host is then unchanged.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        if matches!(name, "net.ipv4.tcp_congestion_control" | "net.inet.tcp.cc.algorithm") {
            self.check_family(name)?;
            self.algorithm = self.controller(value)?;
            return Ok(());
        }
        if let Some(knob) = knobs::find(&self.profile, name) {
            let value = read(knob.kind(), name, value)?;
            return knob.set(&mut self.profile, value).map_err(|error| match error {
                KnobError::Range { allowed } => {
                    Refusal::NotModelled(format!("Ackclock takes {allowed} for it"))
                }
                KnobError::Kind { .. } | KnobError::Unknown => {
                    Refusal::NotModelled("it cannot be set".to_owned())
                }
            });
        }
        self.check_family(name)?;
        if WITHOUT_EFFECT.contains(&name) {
            return Ok(());
        }
        match FIXED.iter().find(|(fixed, _)| *fixed == name) {
            Some((_, allowed)) if allowed.contains(&value) => Ok(()),
            Some((_, allowed)) => {
                Err(Refusal::NotModelled(format!("only {} is modelled", allowed.join(" or "))))
            }
            None => Err(Refusal::NotModelled("it is not modelled".to_owned())),
        }
    }

    /// The controller of that name, as this system has it.
    pub(crate) fn controller(&self, name: &str) -> Result<Algorithm, Refusal> {
        self.profile.algorithm(name).map_err(|why| match why {
            NoController::OtherStack => {
                Refusal::NotModelled(format!("`{name}` needs the stack of Linux"))
            }
            NoController::NotModelled => Refusal::NotModelled(format!("`{name}` is not modelled")),
            NoController::Unknown => Refusal::Bad { expected: "a congestion control".to_owned() },
        })
    }

    fn check_family(&self, name: &str) -> Result<(), Refusal> {
        let linux = ["net.ipv4.", "net.core.", "net.ipv6."].iter().any(|own| name.starts_with(own));
        let other = match self.profile.family {
            Family::Linux => !linux,
            Family::FreeBsd | Family::Rfc => linux,
        };
        if other {
            let profile = self.profile.name;
            return Err(Refusal::NotModelled(format!("{profile} has no such setting")));
        }
        Ok(())
    }
}

/// Reads a value as the systems write it: bare numbers, times in the unit of that sysctl.
fn read(kind: Kind, name: &str, value: &str) -> Result<Value, Refusal> {
    let bad = |expected: &str| Refusal::Bad { expected: expected.to_owned() };
    let numbers: Result<Vec<u64>, _> = value.split_whitespace().map(str::parse).collect();
    let numbers = numbers.map_err(|_| bad("a whole number"))?;
    match (kind, numbers.as_slice()) {
        (Kind::Count, &[n]) => Ok(Value::Count(n)),
        // tcp_timestamps=2 and the like are on, too.
        (Kind::Switch, &[n]) => Ok(Value::Switch(n != 0)),
        (Kind::Size, &[n]) => Ok(Value::Size(Bytes(n))),
        (Kind::Time, &[n]) if in_seconds(name) => {
            Ok(Value::Time(Duration::from_secs(n.min(1_000_000))))
        }
        (Kind::Time, &[n]) => Ok(Value::Time(Duration::from_millis(n.min(1_000_000_000)))),
        (Kind::Sizes, &[least, first, most]) => {
            Ok(Value::Sizes([Bytes(least), Bytes(first), Bytes(most)]))
        }
        (Kind::Sizes, _) => Err(bad("three sizes")),
        _ => Err(bad("one number")),
    }
}

/// Linux's times of keepalive; FreeBSD's, and all others, count milliseconds.
fn in_seconds(name: &str) -> bool {
    name.starts_with("net.ipv4.tcp_keepalive")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux() -> Host {
        Host::new(Profile::named("linux-6.18").unwrap())
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
        let mut host = Host::new(Profile::named("freebsd-14.3").unwrap());
        host.set("net.inet.tcp.keepidle", "2000").unwrap();
        assert_eq!(host.profile.keepalive.idle, Duration::from_secs(2));
    }

    #[test]
    fn what_is_not_modelled_is_refused_and_what_is_so_anyway_taken() {
        let mut host = linux();
        assert_eq!(host.set("net.ipv4.tcp_dsack", "1"), Ok(()));
        assert_eq!(host.set("net.ipv4.tcp_syncookies", "2"), Ok(()));
        for (name, value) in [
            ("net.ipv4.tcp_dsack", "0"),
            ("net.ipv4.tcp_sackk", "1"),
            ("net.inet.tcp.sack.enable", "1"),
            ("net.ipv4.tcp_congestion_control", "vegas"),
        ] {
            assert!(matches!(host.set(name, value), Err(Refusal::NotModelled(_))), "{name}");
        }
        for (name, value) in [
            ("net.ipv4.tcp_rmem", "1 2"),
            ("net.ipv4.tcp_sack", "yes"),
            ("net.ipv4.tcp_congestion_control", "rneo"),
        ] {
            assert!(matches!(host.set(name, value), Err(Refusal::Bad { .. })), "{name}");
        }
    }
}
