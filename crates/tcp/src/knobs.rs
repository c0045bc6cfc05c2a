//! The adjustable values of a profile, under the names that users know. Those of FreeBSD's RACK
//! stack are in `rack`.

mod rack;

use cc::hystart::HyStartMode;
use units::{Bytes, Duration};

use crate::profile::{
    BurstRule, DelayedAckRule, EcnRule, Family, LinuxBursts, ReceiveBufferRule, RtoRule,
    SendBufferRule, TcpProfile,
};

/// Kind of a knob's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobKind {
    /// A whole number without a unit.
    Count,
    /// On or off.
    Switch,
    /// A size: `"32KiB"`.
    Size,
    /// A duration: `"40ms"`.
    Time,
    /// Three sizes: minimum, initial, maximum.
    Sizes,
}

/// A value of a knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobValue {
    /// See [`KnobKind::Count`].
    Count(u64),
    /// See [`KnobKind::Switch`].
    Switch(bool),
    /// See [`KnobKind::Size`].
    Size(Bytes),
    /// See [`KnobKind::Time`].
    Time(Duration),
    /// See [`KnobKind::Sizes`].
    Sizes([Bytes; 3]),
}

/// Access to the profile field that a knob sets.
#[derive(Clone, Copy)]
enum KnobSlot {
    Count {
        at: fn(&mut TcpProfile) -> Option<&mut u32>,
        least: u64,
        most: u64,
    },
    Switch {
        at: fn(&mut TcpProfile) -> Option<&mut bool>,
    },
    Size {
        at: fn(&mut TcpProfile) -> Option<&mut Bytes>,
        least: u64,
        most: u64,
    },
    Time {
        at: fn(&mut TcpProfile) -> Option<&mut Duration>,
        least: Duration,
        most: Duration,
    },
    Sizes {
        at: fn(&mut TcpProfile) -> Option<&mut [Bytes; 3]>,
    },
    /// One sysctl for two options.
    Rfc1323,
    /// 0 off, 1 active, 2 passive, in both systems.
    Ecn,
    /// Ticks per second.
    Hz,
    /// Two switches of RACK's threshold.
    RackDsack,
    RackHyStart,
    /// One sysctl for timeout and threshold.
    RackMaxRto,
    /// 0 none, 3 and 4 tail loss probes; 1 and 2 have had no effect since 4.10.
    EarlyRetrans,
}

/// An adjustable value of a profile.
#[derive(Clone, Copy)]
pub struct Knob {
    /// The system's name of the knob.
    pub name: &'static str,
    /// Help text, one line.
    pub help: &'static str,
    family: Family,
    slot: KnobSlot,
}

/// Why a knob was not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnobError {
    /// The profile has no knob of that name.
    Unknown,
    /// The value is of another kind.
    Kind {
        /// Kind of the knob's value.
        expected: KnobKind,
    },
    /// The value is outside the range that the system accepts.
    Range {
        /// Minimum and maximum with units, for the message.
        allowed: String,
    },
}

impl core::fmt::Display for KnobError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unknown => f.write_str("the profile has no knob of that name"),
            Self::Kind { .. } => f.write_str("the value is of the wrong kind for the knob"),
            Self::Range { allowed } => write!(f, "the value is out of range: expected {allowed}"),
        }
    }
}

impl core::error::Error for KnobError {}

const MAX_BUFFER: u64 = 1 << 31;
/// A smaller buffer would not hold one packet (SOCK_MIN_SNDBUF of Linux, rounded).
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
            DelayedAckRule::Linux { compression, .. } => Some(&mut compression.$field),
            _ => None,
        }
    };
}

macro_rules! rule {
    (acks, $family:ident, $field:ident) => {
        DelayedAckRule::$family { $field, .. }
    };
    (send_buffer, $family:ident, $field:ident) => {
        SendBufferRule::$family { $field, .. }
    };
    (receive_buffer, $family:ident, $field:ident) => {
        ReceiveBufferRule::$family { $field, .. }
    };
    (burst, FreeBsd, $field:ident) => {
        BurstRule::FreeBsd { $field, .. }
    };
    (burst, Linux, $field:ident) => {
        BurstRule::Linux(LinuxBursts { $field, .. })
    };
}

const fn freebsd(name: &'static str, slot: KnobSlot, help: &'static str) -> Knob {
    Knob { name, help, family: Family::FreeBsd, slot }
}

const fn linux(name: &'static str, slot: KnobSlot, help: &'static str) -> Knob {
    Knob { name, help, family: Family::Linux, slot }
}

/// A tick is a whole number of microseconds in both kernels (`tick`, `TICK_NSEC`), and shorter than
/// the minimum timeouts.
const HZ_RANGE: core::ops::RangeInclusive<u64> = 10..=1_000_000;
const TIMESTAMPS: KnobSlot = KnobSlot::Switch { at: |p| Some(&mut p.timestamps) };
const SACK: KnobSlot = KnobSlot::Switch { at: |p| Some(&mut p.sack) };
const SCALING: KnobSlot = KnobSlot::Switch { at: |p| Some(&mut p.window_scaling) };
const AFTER_IDLE: KnobSlot = KnobSlot::Switch { at: |p| Some(&mut p.after_idle) };

/// MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL of Linux.
const KEEP_MOST: Duration = Duration::from_secs(32_767);
const KEEP_IDLE: KnobSlot = span(|p| Some(&mut p.keepalive.idle), KEEP_MOST);
const KEEP_INTERVAL: KnobSlot = span(|p| Some(&mut p.keepalive.interval), KEEP_MOST);
/// MAX_TCP_KEEPCNT of Linux.
const KEEP_COUNT: KnobSlot =
    KnobSlot::Count { at: |p| Some(&mut p.keepalive.count), least: 1, most: 127 };

const fn buffer(at: fn(&mut TcpProfile) -> Option<&mut Bytes>) -> KnobSlot {
    KnobSlot::Size { at, least: MIN_BUFFER, most: MAX_BUFFER }
}

const fn span(at: fn(&mut TcpProfile) -> Option<&mut Duration>, most: Duration) -> KnobSlot {
    KnobSlot::Time { at, least: Duration::from_millis(1), most }
}

/// Knobs by family, in the order they are listed to users.
const KNOBS: &[Knob] = &[
    freebsd(
        "net.inet.tcp.abc_l_var",
        KnobSlot::Count { at: |p| Some(&mut p.newreno.abc_l_var), least: 1, most: 65_535 },
        "segments that one ACK may add to the window in slow start (L of RFC 3465)",
    ),
    freebsd(
        "net.inet.tcp.rfc3465",
        KnobSlot::Switch { at: |p| Some(&mut p.newreno.rfc3465) },
        "grow the window by bytes acknowledged, not by ACKs",
    ),
    freebsd(
        "net.inet.tcp.cc.newreno.beta",
        KnobSlot::Count { at: |p| Some(&mut p.newreno.beta), least: 1, most: 100 },
        "percent of the window kept after a loss",
    ),
    freebsd(
        "net.inet.tcp.initcwnd_segments",
        KnobSlot::Count { at: |p| Some(&mut p.newreno.initcwnd_segments), least: 1, most: 1_000 },
        "segments of the initial window",
    ),
    freebsd(
        "net.inet.tcp.sendspace",
        buffer(field!(send_buffer, FreeBsd, space)),
        "size of the send buffer at the start",
    ),
    freebsd(
        "net.inet.tcp.sendbuf_auto",
        KnobSlot::Switch { at: field!(send_buffer, FreeBsd, auto) },
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
        KnobSlot::Switch { at: field!(receive_buffer, FreeBsd, auto) },
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
        KnobSlot::Count { at: |p| p.reassembly.as_mut(), least: 1, most: 1_000_000 },
        "maximum of out-of-order ranges; data that would need another is dropped",
    ),
    freebsd(
        "net.inet.tcp.delayed_ack",
        KnobSlot::Switch { at: field!(acks, FreeBsd, delayed) },
        "delayed ACKs: acknowledge every second segment",
    ),
    freebsd(
        "net.inet.tcp.delacktime",
        span(field!(acks, FreeBsd, timeout), Duration::from_secs(1)),
        "maximum delay of an ACK",
    ),
    freebsd(
        "net.inet.tcp.rfc1323",
        KnobSlot::Rfc1323,
        "0 neither, 1 window scaling and timestamps, 2 only scaling, 3 only timestamps",
    ),
    freebsd(
        "net.inet.tcp.rfc3042",
        KnobSlot::Switch { at: |p| Some(&mut p.limited_transmit) },
        "limited transmit: the first two duplicate ACKs release new segments",
    ),
    freebsd(
        "net.inet.tcp.ecn.enable",
        KnobSlot::Ecn,
        "ECN: 0 off, 1 request it, 2 accept it if the peer requests it",
    ),
    freebsd("net.inet.tcp.sack.enable", SACK, "offer SACK (RFC 2018)"),
    freebsd("net.inet.tcp.keepidle", KEEP_IDLE, "keepalive: idle time before the first probe"),
    freebsd("net.inet.tcp.keepintvl", KEEP_INTERVAL, "keepalive: interval between probes"),
    freebsd(
        "net.inet.tcp.keepcnt",
        KEEP_COUNT,
        "keepalive: unanswered probes before the connection is dropped",
    ),
    freebsd(
        "hostcache.ssthresh",
        buffer(|p| Some(&mut p.cached_ssthresh)),
        "slow-start threshold that the host cache has from an earlier connection; not a sysctl",
    ),
    freebsd("kern.hz", KnobSlot::Hz, "ticks of the kernel clock per second"),
    linux("net.ipv4.tcp_rmem", SIZES_RMEM, "receive buffer: minimum, initial, maximum"),
    linux("net.ipv4.tcp_wmem", SIZES_WMEM, "send buffer: minimum, initial, maximum"),
    linux(
        "net.ipv4.tcp_notsent_lowat",
        KnobSlot::Count {
            at: field!(send_buffer, Linux, notsent_lowat),
            least: 1,
            most: u32::MAX as u64,
        },
        "unsent bytes from which a writer waits",
    ),
    linux(
        "net.core.rmem_max",
        buffer(field!(receive_buffer, Linux, rmem_max)),
        "maximum receive buffer that an application may request",
    ),
    linux(
        "net.ipv4.tcp_moderate_rcvbuf",
        KnobSlot::Switch { at: field!(receive_buffer, Linux, auto) },
        "enlarge the receive buffer as needed",
    ),
    linux(
        "driver.truesize",
        KnobSlot::Size { at: field!(receive_buffer, Linux, truesize), least: 0, most: 1 << 20 },
        "memory that a received packet takes of the receive buffer; 0: as a TUN device; not a sysctl",
    ),
    linux(
        "driver.holds_packets",
        KnobSlot::Switch { at: field!(burst, Linux, device_holds) },
        "the device completes transmission later, which TCP small queues and autocorking see; not a sysctl",
    ),
    linux(
        "driver.clock_step",
        KnobSlot::Count { at: |p| Some(&mut p.clock_step), least: 1, most: 1_000_000 },
        "resolution of the machine's clock in nanoseconds, by which its timers fire late; 256: User-Mode Linux; not a sysctl",
    ),
    linux(
        "driver.recorder",
        KnobSlot::Time {
            at: |p| Some(&mut p.recorder),
            least: Duration::ZERO,
            most: Duration::from_secs(3_600),
        },
        "interval of a process that reads the connection's state on a machine with a coarse clock; 0: none; not a sysctl",
    ),
    linux(
        "net.ipv4.tcp_min_tso_segs",
        KnobSlot::Count { at: field!(burst, Linux, min_segments), least: 1, most: 45 },
        "minimum segments of a burst",
    ),
    linux(
        "net.ipv4.tcp_tso_rtt_log",
        KnobSlot::Count { at: field!(burst, Linux, rtt_log), least: 0, most: 31 },
        "how fast the burst allowance decreases with the round trip",
    ),
    linux(
        "net.ipv4.tcp_tso_win_divisor",
        KnobSlot::Count { at: field!(burst, Linux, win_divisor), least: 0, most: 255 },
        "a burst smaller than this fraction of the window is deferred if the next ACK is near",
    ),
    linux(
        "net.ipv4.tcp_comp_sack_delay_ns",
        KnobSlot::Count { at: compression!(delay_ns), least: 0, most: 1_000_000_000 },
        "SACK compression: maximum delay of an ACK for out-of-order packets, in nanoseconds",
    ),
    linux(
        "net.ipv4.tcp_comp_sack_slack_ns",
        KnobSlot::Count { at: compression!(slack_ns), least: 0, most: 1_000_000_000 },
        "SACK compression: slack of the timer, in nanoseconds",
    ),
    linux(
        "net.ipv4.tcp_comp_sack_nr",
        KnobSlot::Count { at: compression!(nr), least: 0, most: 255 },
        "SACK compression: maximum of ACKs merged into one; 0 is off",
    ),
    linux(
        "bbr.cycle_idx",
        KnobSlot::Count { at: |p| Some(&mut p.bbr_phase), least: 0, most: 7 },
        "phase in which ProbeBW of BBR begins; 1: random, as the kernel; not a sysctl",
    ),
    linux(
        "ip-route.initcwnd",
        KnobSlot::Count { at: |p| Some(&mut p.initial_packets), least: 1, most: 1_000 },
        "packets of the initial window (`ip route ... initcwnd 10`)",
    ),
    linux(
        "ip-route.quickack",
        KnobSlot::Switch { at: field!(acks, Linux, always_quick) },
        "never delay an ACK (`ip route ... quickack 1`)",
    ),
    linux("net.ipv4.tcp_timestamps", TIMESTAMPS, "offer timestamps (RFC 7323)"),
    linux("net.ipv4.tcp_window_scaling", SCALING, "offer window scaling (RFC 7323)"),
    linux(
        "net.ipv4.tcp_ecn",
        KnobSlot::Ecn,
        "ECN: 0 off, 1 request it, 2 accept it if the peer requests it",
    ),
    linux("net.ipv4.tcp_sack", SACK, "offer SACK (RFC 2018)"),
    linux(
        "net.ipv4.tcp_early_retrans",
        KnobSlot::EarlyRetrans,
        "tail loss probes: 3 or 4 on, 0 to 2 off",
    ),
    linux(
        "net.ipv4.tcp_retries2",
        KnobSlot::Count { at: |p| Some(&mut p.retries), least: 1, most: 255 },
        "timeouts before the connection is dropped: the time that as many take, from 200 ms on",
    ),
    linux(
        "net.ipv4.tcp_syn_retries",
        KnobSlot::Count { at: |p| Some(&mut p.syn.retries), least: 1, most: 127 },
        "retransmissions of a SYN",
    ),
    linux(
        "net.ipv4.tcp_synack_retries",
        KnobSlot::Count { at: |p| Some(&mut p.syn.answer_retries), least: 1, most: 255 },
        "retransmissions of a SYN-ACK",
    ),
    linux(
        "net.ipv4.tcp_syn_linear_timeouts",
        KnobSlot::Count { at: |p| Some(&mut p.syn.linear_timeouts), least: 0, most: 255 },
        "timeouts of a SYN before exponential backoff begins",
    ),
    linux(
        "net.ipv4.tcp_invalid_ratelimit",
        span(|p| Some(&mut p.challenge.1), Duration::from_secs(1_000)),
        "minimum interval between challenge ACKs",
    ),
    linux("net.ipv4.tcp_slow_start_after_idle", AFTER_IDLE, "shrink the window after an idle time"),
    linux("net.ipv4.tcp_keepalive_time", KEEP_IDLE, "keepalive: idle time before the first probe"),
    linux("net.ipv4.tcp_keepalive_intvl", KEEP_INTERVAL, "keepalive: interval between probes"),
    linux(
        "net.ipv4.tcp_keepalive_probes",
        KEEP_COUNT,
        "keepalive: unanswered probes before the connection is dropped",
    ),
    linux("CONFIG_HZ", KnobSlot::Hz, "ticks of the kernel clock per second"),
];

/// The modes of HyStart++ by `rack_do_hystart`.
const HYSTART_MODES: [HyStartMode; 4] = [
    HyStartMode::NotAllowed,
    HyStartMode::Plain,
    HyStartMode::ShrinkWindow,
    HyStartMode::ShrinkWindowMean,
];

const SIZES_RMEM: KnobSlot = KnobSlot::Sizes { at: field!(receive_buffer, Linux, rmem) };
const SIZES_WMEM: KnobSlot = KnobSlot::Sizes { at: field!(send_buffer, Linux, wmem) };

impl Knob {
    /// Kind of the knob's value.
    pub fn kind(&self) -> KnobKind {
        match self.slot {
            KnobSlot::Count { .. }
            | KnobSlot::Rfc1323
            | KnobSlot::Ecn
            | KnobSlot::Hz
            | KnobSlot::EarlyRetrans
            | KnobSlot::RackDsack
            | KnobSlot::RackHyStart => KnobKind::Count,
            KnobSlot::Switch { .. } => KnobKind::Switch,
            KnobSlot::Size { .. } => KnobKind::Size,
            KnobSlot::Time { .. } | KnobSlot::RackMaxRto => KnobKind::Time,
            KnobSlot::Sizes { .. } => KnobKind::Sizes,
        }
    }

    /// Sets the knob.
    ///
    /// # Errors
    /// [`KnobError::Kind`] or [`KnobError::Range`]; the profile is then unchanged.
    pub fn set(&self, profile: &mut TcpProfile, value: KnobValue) -> Result<(), KnobError> {
        match (self.slot, value) {
            (KnobSlot::Count { at, least, most }, KnobValue::Count(n)) => {
                if !(least..=most).contains(&n) {
                    return Err(out_of_range(least, most));
                }
                put(at(profile), n as u32)
            }
            (KnobSlot::Switch { at }, KnobValue::Switch(on)) => put(at(profile), on),
            (KnobSlot::Size { at, least, most }, KnobValue::Size(size)) => {
                if !(least..=most).contains(&size.get()) {
                    return Err(out_of_range(Bytes(least), Bytes(most)));
                }
                put(at(profile), size)
            }
            (KnobSlot::Time { at, least, most }, KnobValue::Time(span)) => {
                if !(least..=most).contains(&span) {
                    return Err(out_of_range(least, most));
                }
                put(at(profile), span)
            }
            (KnobSlot::Sizes { at }, KnobValue::Sizes(sizes)) => {
                let [least, first, most] = sizes;
                let rising = least <= first && first <= most;
                if !rising || first.get() < MIN_BUFFER || most.get() > MAX_BUFFER {
                    let (low, high) = (Bytes(MIN_BUFFER), Bytes(MAX_BUFFER));
                    let allowed = format!("increasing sizes from {low} to {high}");
                    return Err(KnobError::Range { allowed });
                }
                put(at(profile), sizes)
            }
            (KnobSlot::Rfc1323, KnobValue::Count(n @ 0..=3)) => {
                profile.window_scaling = matches!(n, 1 | 2);
                profile.timestamps = matches!(n, 1 | 3);
                Ok(())
            }
            (KnobSlot::Ecn, KnobValue::Count(n @ 0..=2)) => {
                profile.ecn = [EcnRule::Off, EcnRule::Active, EcnRule::Passive][n as usize];
                Ok(())
            }
            (KnobSlot::RackDsack, KnobValue::Count(n @ 0..=3)) => {
                let thresh = &mut rack::rule(profile).ok_or(KnobError::Unknown)?.thresh;
                (thresh.std_based, thresh.use_dsack) = (n & 1 != 0, n & 2 != 0);
                Ok(())
            }
            (KnobSlot::RackHyStart, KnobValue::Count(n @ 0..=3)) => {
                put(profile.newreno.hystart.as_mut(), HYSTART_MODES[n as usize])
            }
            (KnobSlot::RackMaxRto, KnobValue::Time(most)) => {
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
            (KnobSlot::EarlyRetrans, KnobValue::Count(n @ 0..=4)) => {
                profile.loss_probes = n >= 3;
                Ok(())
            }
            (KnobSlot::EarlyRetrans, KnobValue::Count(_)) => Err(out_of_range(0, 4)),
            (KnobSlot::Ecn, KnobValue::Count(_)) => Err(out_of_range(0, 2)),
            (KnobSlot::Hz, KnobValue::Count(hz)) if HZ_RANGE.contains(&hz) => {
                profile.hz = hz as u32;
                Ok(())
            }
            (KnobSlot::Hz, KnobValue::Count(_)) => {
                let (least, most) = (HZ_RANGE.start(), HZ_RANGE.end());
                let why = "a tick lasts between a microsecond and a tenth of a second";
                Err(KnobError::Range { allowed: format!("{least} to {most}: {why}") })
            }
            (KnobSlot::RackDsack | KnobSlot::RackHyStart, KnobValue::Count(_)) => {
                Err(out_of_range(0, 3))
            }
            (KnobSlot::Rfc1323, KnobValue::Count(_)) => Err(out_of_range(0, 3)),
            _ => Err(KnobError::Kind { expected: self.kind() }),
        }
    }
}

fn put<T>(slot: Option<&mut T>, value: T) -> Result<(), KnobError> {
    // Absent only if a profile of one family had a rule of the other.
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
pub fn of(profile: &TcpProfile) -> impl Iterator<Item = &'static Knob> {
    let family = profile.family;
    let rack = if profile.has_rack() { rack::KNOBS } else { &[] };
    KNOBS.iter().chain(rack).filter(move |knob| knob.family == family)
}

/// The knob of that name, if the profile has it.
pub fn find(profile: &TcpProfile, name: &str) -> Option<&'static Knob> {
    of(profile).find(|knob| knob.name == name)
}

#[cfg(test)]
mod tests;
