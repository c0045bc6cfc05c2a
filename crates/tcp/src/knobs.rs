//! The adjustable values of a profile, under the names users know. Those of FreeBSD's RACK stack are
//! in `rack`.

mod rack;

use units::{Bytes, Duration};

use crate::profile::{
    AckRule, BurstRule, EcnRule, Family, Profile, ReceiveBufferRule, RtoRule, SendBufferRule,
};

/// What a knob is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number without a unit.
    Count,
    /// On or off.
    Switch,
    /// A size: `"32KiB"`.
    Size,
    /// A span of time: `"40ms"`.
    Time,
    /// Three sizes: least, first, largest.
    Sizes,
}

/// A value of a knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// See [`Kind::Count`].
    Count(u64),
    /// See [`Kind::Switch`].
    Switch(bool),
    /// See [`Kind::Size`].
    Size(Bytes),
    /// See [`Kind::Time`].
    Time(Duration),
    /// See [`Kind::Sizes`].
    Sizes([Bytes; 3]),
}

/// Where a knob of a given kind lives in a profile.
#[derive(Clone, Copy)]
enum Slot {
    Count {
        at: fn(&mut Profile) -> Option<&mut u32>,
        least: u64,
        most: u64,
    },
    Switch {
        at: fn(&mut Profile) -> Option<&mut bool>,
    },
    Size {
        at: fn(&mut Profile) -> Option<&mut Bytes>,
        least: u64,
        most: u64,
    },
    Time {
        at: fn(&mut Profile) -> Option<&mut Duration>,
        least: Duration,
        most: Duration,
    },
    Sizes {
        at: fn(&mut Profile) -> Option<&mut [Bytes; 3]>,
    },
    /// One sysctl for two options.
    Rfc1323,
    /// 0 off, 1 active, 2 passive, in both systems.
    Ecn,
    /// Ticks per second.
    Hz,
    /// Two switches of RACK's threshold.
    RackDsack,
    /// One sysctl for timeout and threshold.
    RackMaxRto,
    /// 0 none, 3 and 4 tail loss probes; what 1 and 2 did is gone since 4.10.
    EarlyRetrans,
}

/// An adjustable value of a profile.
#[derive(Clone, Copy)]
pub struct Knob {
    /// Name as the system spells it.
    pub name: &'static str,
    /// What it does, one line.
    pub help: &'static str,
    family: Family,
    slot: Slot,
}

/// Why a knob was not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnobError {
    /// The profile has no knob of that name.
    Unknown,
    /// The value is of another kind.
    Kind {
        /// What the knob is measured in.
        expected: Kind,
    },
    /// The value lies outside what the system takes.
    Range {
        /// Least and largest value in words, with units.
        allowed: String,
    },
}

impl core::fmt::Display for KnobError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unknown => f.write_str("the profile has no knob of that name"),
            Self::Kind { .. } => f.write_str("the value is of another kind than the knob's"),
            Self::Range { allowed } => write!(f, "the value is out of range: expected {allowed}"),
        }
    }
}

impl core::error::Error for KnobError {}

const MAX_BUFFER: u64 = 1 << 31;
/// Less would not hold one packet (SOCK_MIN_SNDBUF of Linux, rounded).
const MIN_BUFFER: u64 = 2_048;

macro_rules! field {
    ($rule:ident, $family:ident, $field:ident) => {
        |p| match &mut p.$rule {
            rule!($rule, $family, $field) => Some($field),
            _ => None,
        }
    };
}

macro_rules! compression {
    ($field:ident) => {
        |p| match &mut p.acks {
            AckRule::Linux { compression, .. } => Some(&mut compression.$field),
            _ => None,
        }
    };
}

macro_rules! rule {
    (acks, $family:ident, $field:ident) => {
        AckRule::$family { $field, .. }
    };
    (send_buffer, $family:ident, $field:ident) => {
        SendBufferRule::$family { $field, .. }
    };
    (receive_buffer, $family:ident, $field:ident) => {
        ReceiveBufferRule::$family { $field, .. }
    };
    (burst, $family:ident, $field:ident) => {
        BurstRule::$family { $field, .. }
    };
}

const fn freebsd(name: &'static str, slot: Slot, help: &'static str) -> Knob {
    Knob { name, help, family: Family::FreeBsd, slot }
}

const fn linux(name: &'static str, slot: Slot, help: &'static str) -> Knob {
    Knob { name, help, family: Family::Linux, slot }
}

/// A tick is a whole number of microseconds in both kernels (`tick`, `TICK_NSEC`), and not so long
/// that the least timeouts have none.
const HZ_RANGE: core::ops::RangeInclusive<u64> = 10..=1_000_000;
const TIMESTAMPS: Slot = Slot::Switch { at: |p| Some(&mut p.timestamps) };
const SACK: Slot = Slot::Switch { at: |p| Some(&mut p.sack) };
const SCALING: Slot = Slot::Switch { at: |p| Some(&mut p.window_scaling) };
const AFTER_IDLE: Slot = Slot::Switch { at: |p| Some(&mut p.after_idle) };

/// MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL of Linux.
const KEEP_MOST: Duration = Duration::from_secs(32_767);
const KEEP_IDLE: Slot = span(|p| Some(&mut p.keepalive.idle), KEEP_MOST);
const KEEP_INTERVAL: Slot = span(|p| Some(&mut p.keepalive.interval), KEEP_MOST);
/// MAX_TCP_KEEPCNT of Linux.
const KEEP_COUNT: Slot = Slot::Count { at: |p| Some(&mut p.keepalive.count), least: 1, most: 127 };

const fn buffer(at: fn(&mut Profile) -> Option<&mut Bytes>) -> Slot {
    Slot::Size { at, least: MIN_BUFFER, most: MAX_BUFFER }
}

const fn span(at: fn(&mut Profile) -> Option<&mut Duration>, most: Duration) -> Slot {
    Slot::Time { at, least: Duration::from_millis(1), most }
}

/// Knobs by family, in the order they are listed to users.
const KNOBS: &[Knob] = &[
    freebsd(
        "net.inet.tcp.abc_l_var",
        Slot::Count { at: |p| Some(&mut p.newreno.abc_l_var), least: 1, most: 65_535 },
        "segments one ACK may add to the window in slow start (RFC 3465's L)",
    ),
    freebsd(
        "net.inet.tcp.rfc3465",
        Slot::Switch { at: |p| Some(&mut p.newreno.rfc3465) },
        "grow the window by bytes acknowledged, not by ACKs",
    ),
    freebsd(
        "net.inet.tcp.cc.newreno.beta",
        Slot::Count { at: |p| Some(&mut p.newreno.beta), least: 1, most: 100 },
        "percent of the window kept after a loss",
    ),
    freebsd(
        "net.inet.tcp.initcwnd_segments",
        Slot::Count { at: |p| Some(&mut p.newreno.initcwnd_segments), least: 1, most: 1_000 },
        "segments of the initial window",
    ),
    freebsd(
        "net.inet.tcp.sendspace",
        buffer(field!(send_buffer, FreeBsd, space)),
        "size of the send buffer at the start",
    ),
    freebsd(
        "net.inet.tcp.sendbuf_auto",
        Slot::Switch { at: field!(send_buffer, FreeBsd, auto) },
        "enlarge the send buffer as needed",
    ),
    freebsd(
        "net.inet.tcp.sendbuf_inc",
        buffer(field!(send_buffer, FreeBsd, inc)),
        "step by which the send buffer grows",
    ),
    freebsd(
        "net.inet.tcp.sendbuf_max",
        buffer(field!(send_buffer, FreeBsd, max)),
        "largest size of the send buffer",
    ),
    freebsd(
        "net.inet.tcp.recvspace",
        buffer(field!(receive_buffer, FreeBsd, space)),
        "size of the receive buffer at the start",
    ),
    freebsd(
        "net.inet.tcp.recvbuf_auto",
        Slot::Switch { at: field!(receive_buffer, FreeBsd, auto) },
        "enlarge the receive buffer as needed",
    ),
    freebsd(
        "net.inet.tcp.recvbuf_max",
        buffer(field!(receive_buffer, FreeBsd, max)),
        "largest size of the receive buffer",
    ),
    freebsd(
        "kern.ipc.maxsockbuf",
        buffer(field!(receive_buffer, FreeBsd, maxsockbuf)),
        "largest size of any socket buffer; decides the window scale",
    ),
    freebsd(
        "net.inet.tcp.reass.maxqueuelen",
        Slot::Count { at: |p| p.reassembly.as_mut(), least: 1, most: 1_000_000 },
        "ranges held out of order at most; what needs another is dropped",
    ),
    freebsd(
        "net.inet.tcp.delayed_ack",
        Slot::Switch { at: field!(acks, FreeBsd, delayed) },
        "delay the ACK of every first segment",
    ),
    freebsd(
        "net.inet.tcp.delacktime",
        span(field!(acks, FreeBsd, timeout), Duration::from_secs(1)),
        "longest delay of an ACK",
    ),
    freebsd(
        "net.inet.tcp.rfc1323",
        Slot::Rfc1323,
        "0 neither, 1 window scaling and timestamps, 2 only scaling, 3 only timestamps",
    ),
    freebsd(
        "net.inet.tcp.rfc3042",
        Slot::Switch { at: |p| Some(&mut p.limited_transmit) },
        "limited transmit: the first duplicates release new segments",
    ),
    freebsd("net.inet.tcp.ecn.enable", Slot::Ecn, "ECN: 0 off, 1 ask for it, 2 if the peer asks"),
    freebsd("net.inet.tcp.sack.enable", SACK, "offer SACK (RFC 2018)"),
    freebsd("net.inet.tcp.keepidle", KEEP_IDLE, "keepalive: silence before the first probe"),
    freebsd("net.inet.tcp.keepintvl", KEEP_INTERVAL, "keepalive: from one probe to the next"),
    freebsd("net.inet.tcp.keepcnt", KEEP_COUNT, "keepalive: probes before a peer is given up"),
    freebsd(
        "hostcache.ssthresh",
        buffer(|p| Some(&mut p.cached_ssthresh)),
        "slow-start threshold the host cache remembers of an earlier connection; the kernel's own doing, not a sysctl",
    ),
    freebsd("kern.hz", Slot::Hz, "ticks of the kernel clock per second"),
    linux("net.ipv4.tcp_rmem", SIZES_RMEM, "receive buffer: least, first, largest"),
    linux("net.ipv4.tcp_wmem", SIZES_WMEM, "send buffer: least, first, largest"),
    linux(
        "net.core.rmem_max",
        buffer(field!(receive_buffer, Linux, rmem_max)),
        "largest receive buffer an application may ask for",
    ),
    linux(
        "net.ipv4.tcp_moderate_rcvbuf",
        Slot::Switch { at: field!(receive_buffer, Linux, auto) },
        "enlarge the receive buffer as needed",
    ),
    linux(
        "net.ipv4.tcp_min_tso_segs",
        Slot::Count { at: field!(burst, Linux, min_segments), least: 1, most: 45 },
        "least segments of a burst",
    ),
    linux(
        "net.ipv4.tcp_tso_rtt_log",
        Slot::Count { at: field!(burst, Linux, rtt_log), least: 0, most: 31 },
        "how fast the burst allowance of short round trips falls",
    ),
    linux(
        "net.ipv4.tcp_tso_win_divisor",
        Slot::Count { at: field!(burst, Linux, win_divisor), least: 0, most: 255 },
        "a burst waits for this share of the window where the next ACK is near",
    ),
    linux(
        "net.ipv4.tcp_comp_sack_delay_ns",
        Slot::Count { at: compression!(delay_ns), least: 0, most: 1_000_000_000 },
        "nanoseconds that an ACK for packets behind a gap waits for more of them at most",
    ),
    linux(
        "net.ipv4.tcp_comp_sack_slack_ns",
        Slot::Count { at: compression!(slack_ns), least: 0, most: 1_000_000_000 },
        "nanoseconds by which that may be late",
    ),
    linux(
        "net.ipv4.tcp_comp_sack_nr",
        Slot::Count { at: compression!(nr), least: 0, most: 255 },
        "ACKs for packets behind a gap that are put together at most; 0 is off",
    ),
    linux(
        "ip-route.quickack",
        Slot::Switch { at: field!(acks, Linux, always_quick) },
        "never delay an ACK (`ip route ... quickack 1`)",
    ),
    linux("net.ipv4.tcp_timestamps", TIMESTAMPS, "offer timestamps (RFC 7323)"),
    linux("net.ipv4.tcp_window_scaling", SCALING, "offer window scaling (RFC 7323)"),
    linux("net.ipv4.tcp_ecn", Slot::Ecn, "ECN: 0 off, 1 ask for it, 2 if the peer asks"),
    linux("net.ipv4.tcp_sack", SACK, "offer SACK (RFC 2018)"),
    linux(
        "net.ipv4.tcp_early_retrans",
        Slot::EarlyRetrans,
        "3 or 4: probe the tail of a flight, less: do not",
    ),
    linux(
        "net.ipv4.tcp_retries2",
        Slot::Count { at: |p| Some(&mut p.retries), least: 1, most: 255 },
        "timeouts in a row before a connection is given up",
    ),
    linux(
        "net.ipv4.tcp_syn_retries",
        Slot::Count { at: |p| Some(&mut p.syn.retries), least: 1, most: 127 },
        "times a SYN is sent again",
    ),
    linux(
        "net.ipv4.tcp_synack_retries",
        Slot::Count { at: |p| Some(&mut p.syn.answer_retries), least: 1, most: 255 },
        "times the answer to a SYN is sent again",
    ),
    linux(
        "net.ipv4.tcp_syn_linear_timeouts",
        Slot::Count { at: |p| Some(&mut p.syn.linear_timeouts), least: 0, most: 255 },
        "timeouts of a SYN before they double",
    ),
    linux(
        "net.ipv4.tcp_invalid_ratelimit",
        span(|p| Some(&mut p.challenge.1), Duration::from_secs(1_000)),
        "a challenge ACK at most as often",
    ),
    linux("net.ipv4.tcp_slow_start_after_idle", AFTER_IDLE, "shrink the window after an idle time"),
    linux("net.ipv4.tcp_keepalive_time", KEEP_IDLE, "keepalive: silence before the first probe"),
    linux("net.ipv4.tcp_keepalive_intvl", KEEP_INTERVAL, "keepalive: from one probe to the next"),
    linux(
        "net.ipv4.tcp_keepalive_probes",
        KEEP_COUNT,
        "keepalive: probes before a peer is given up",
    ),
    linux("CONFIG_HZ", Slot::Hz, "ticks of the kernel clock per second"),
];

const SIZES_RMEM: Slot = Slot::Sizes { at: field!(receive_buffer, Linux, rmem) };
const SIZES_WMEM: Slot = Slot::Sizes { at: field!(send_buffer, Linux, wmem) };

impl Knob {
    /// What the knob is measured in.
    pub fn kind(&self) -> Kind {
        match self.slot {
            Slot::Count { .. }
            | Slot::Rfc1323
            | Slot::Ecn
            | Slot::Hz
            | Slot::EarlyRetrans
            | Slot::RackDsack => Kind::Count,
            Slot::Switch { .. } => Kind::Switch,
            Slot::Size { .. } => Kind::Size,
            Slot::Time { .. } | Slot::RackMaxRto => Kind::Time,
            Slot::Sizes { .. } => Kind::Sizes,
        }
    }

    /// Sets the knob.
    ///
    /// # Errors
    /// [`KnobError::Kind`] or [`KnobError::Range`]; the profile is then unchanged.
    pub fn set(&self, profile: &mut Profile, value: Value) -> Result<(), KnobError> {
        match (self.slot, value) {
            (Slot::Count { at, least, most }, Value::Count(n)) => {
                if !(least..=most).contains(&n) {
                    return Err(out_of_range(least, most));
                }
                put(at(profile), n as u32)
            }
            (Slot::Switch { at }, Value::Switch(on)) => put(at(profile), on),
            (Slot::Size { at, least, most }, Value::Size(size)) => {
                if !(least..=most).contains(&size.get()) {
                    return Err(out_of_range(Bytes(least), Bytes(most)));
                }
                put(at(profile), size)
            }
            (Slot::Time { at, least, most }, Value::Time(span)) => {
                if !(least..=most).contains(&span) {
                    return Err(out_of_range(least, most));
                }
                put(at(profile), span)
            }
            (Slot::Sizes { at }, Value::Sizes(sizes)) => {
                let [least, first, most] = sizes;
                let rising = least <= first && first <= most;
                if !rising || first.get() < MIN_BUFFER || most.get() > MAX_BUFFER {
                    let (low, high) = (Bytes(MIN_BUFFER), Bytes(MAX_BUFFER));
                    let allowed = format!("rising sizes, the first at least {low}, up to {high}");
                    return Err(KnobError::Range { allowed });
                }
                put(at(profile), sizes)
            }
            (Slot::Rfc1323, Value::Count(n @ 0..=3)) => {
                profile.window_scaling = matches!(n, 1 | 2);
                profile.timestamps = matches!(n, 1 | 3);
                Ok(())
            }
            (Slot::Ecn, Value::Count(n @ 0..=2)) => {
                profile.ecn = [EcnRule::Off, EcnRule::Active, EcnRule::Passive][n as usize];
                Ok(())
            }
            (Slot::RackDsack, Value::Count(n @ 0..=3)) => {
                let thresh = &mut rack::rule(profile).ok_or(KnobError::Unknown)?.thresh;
                (thresh.std_based, thresh.use_dsack) = (n & 1 != 0, n & 2 != 0);
                Ok(())
            }
            (Slot::RackMaxRto, Value::Time(most)) => {
                let (least, longest) = (Duration::from_millis(30), Duration::from_secs(60));
                if !(least..=longest).contains(&most) {
                    return Err(out_of_range(least, longest));
                }
                rack::rule(profile).ok_or(KnobError::Unknown)?.thresh.most = most;
                if let RtoRule::Rack(bounds) = &mut profile.rto {
                    bounds.most = most;
                }
                Ok(())
            }
            (Slot::EarlyRetrans, Value::Count(n @ 0..=4)) => {
                profile.loss_probes = n >= 3;
                Ok(())
            }
            (Slot::EarlyRetrans, Value::Count(_)) => Err(out_of_range(0, 4)),
            (Slot::Ecn, Value::Count(_)) => Err(out_of_range(0, 2)),
            (Slot::Hz, Value::Count(hz)) if HZ_RANGE.contains(&hz) => {
                profile.hz = hz as u32;
                Ok(())
            }
            (Slot::Hz, Value::Count(_)) => {
                let (least, most) = (HZ_RANGE.start(), HZ_RANGE.end());
                let why = "a tick lasts a microsecond at least, a tenth of a second at most";
                Err(KnobError::Range { allowed: format!("{least} to {most}: {why}") })
            }
            (Slot::RackDsack, Value::Count(_)) => Err(out_of_range(0, 3)),
            (Slot::Rfc1323, Value::Count(_)) => Err(out_of_range(0, 3)),
            _ => Err(KnobError::Kind { expected: self.kind() }),
        }
    }
}

fn put<T>(slot: Option<&mut T>, value: T) -> Result<(), KnobError> {
    // Absent only if a profile of one family held a rule of the other.
    *slot.ok_or(KnobError::Unknown)? = value;
    Ok(())
}

fn out_of_range(least: impl core::fmt::Display, most: impl core::fmt::Display) -> KnobError {
    KnobError::Range { allowed: format!("{least} to {most}") }
}

/// The knobs of all systems.
pub fn all() -> impl Iterator<Item = &'static Knob> {
    KNOBS.iter().chain(rack::KNOBS)
}

/// The knobs that only FreeBSD's RACK stack has.
pub fn of_rack() -> impl Iterator<Item = &'static Knob> {
    rack::KNOBS.iter()
}

/// The knobs of a profile.
pub fn of(profile: &Profile) -> impl Iterator<Item = &'static Knob> {
    let family = profile.family;
    let rack = if profile.has_rack() { rack::KNOBS } else { &[] };
    KNOBS.iter().chain(rack).filter(move |knob| knob.family == family)
}

/// The knob of that name, if the profile has it.
pub fn find(profile: &Profile, name: &str) -> Option<&'static Knob> {
    of(profile).find(|knob| knob.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::NAMES;

    #[test]
    fn every_knob_of_every_profile_can_be_set() {
        for name in NAMES {
            let original = Profile::named(name).unwrap();
            for knob in of(&original) {
                let value = match knob.kind() {
                    Kind::Count if knob.name.ends_with("rfc1323") => Value::Count(2),
                    Kind::Count if knob.name.contains("ecn") => Value::Count(1),
                    Kind::Count if knob.name.ends_with("dsack_ctl") => Value::Count(1),
                    Kind::Count if knob.name.contains("early_retrans") => Value::Count(0),
                    Kind::Count => Value::Count(31),
                    Kind::Switch if knob.name.ends_with("quickack") => Value::Switch(true),
                    Kind::Switch => Value::Switch(false),
                    Kind::Size => Value::Size(Bytes(99_999)),
                    Kind::Time => Value::Time(Duration::from_millis(77)),
                    Kind::Sizes => Value::Sizes([Bytes(1), Bytes(5_000), Bytes(6_000)]),
                };
                let mut changed = original.clone();
                knob.set(&mut changed, value).unwrap_or_else(|e| panic!("{}: {e:?}", knob.name));
                assert_ne!(changed, original, "{} changes nothing in {name}", knob.name);
            }
        }
    }

    #[test]
    fn wrong_kinds_and_absurd_values_are_refused() {
        let mut profile = Profile::named("freebsd-13.2").unwrap();
        let knob = find(&profile, "net.inet.tcp.abc_l_var").unwrap();
        let kind = knob.set(&mut profile, Value::Switch(true));
        assert_eq!(kind, Err(KnobError::Kind { expected: Kind::Count }));
        let range = knob.set(&mut profile, Value::Count(0));
        assert_eq!(range, Err(KnobError::Range { allowed: "1 to 65535".into() }));
        assert!(find(&profile, "net.ipv4.tcp_rmem").is_none());
        let hz = find(&profile, "kern.hz").unwrap();
        for (ticks, taken) in [(9, false), (10, true), (1_000_000, true), (1_000_001, false)] {
            assert_eq!(hz.set(&mut profile, Value::Count(ticks)).is_ok(), taken, "{ticks}");
        }
        let Err(KnobError::Range { allowed }) = hz.set(&mut profile, Value::Count(1)) else {
            panic!("a tick of a second was taken");
        };
        assert!(allowed.contains("a tick lasts a microsecond at least"), "{allowed}");
    }
}
