//! The adjustable values of a profile, under the names users know: those of the transport
//! parameters of RFC 9000, of the constants of RFC 9002, and of INET's module parameters. Names
//! without such a source in their help are Ackclock's own.

use cc::quic_newreno::{Avoidance, Trigger};
use units::{Bytes, Duration};

use crate::handshake::Flights;
use crate::packet::AckFrequency;
use crate::profile::{Profile, SendRule};

/// What a knob is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number without a unit.
    Count,
    /// On or off.
    Switch,
    /// A size.
    Size,
    /// A span of time.
    Time,
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
}

/// How a knob of a given kind is set, and the values it takes.
#[derive(Clone, Copy)]
enum Slot {
    Count { set: fn(&mut Profile, u64), least: u64, most: u64 },
    Switch { set: fn(&mut Profile, bool) },
    Size { set: fn(&mut Profile, u64), least: u64, most: u64 },
    Time { set: fn(&mut Profile, Duration), least: Duration, most: Duration },
}

/// An adjustable value of a profile.
#[derive(Clone, Copy)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// What it does and whose name it bears, one line.
    pub help: &'static str,
    slot: Slot,
}

/// Why a knob was not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuicKnobError {
    /// The value is of another kind.
    Kind {
        /// What the knob is measured in.
        expected: Kind,
    },
    /// The value lies outside what is allowed.
    Range {
        /// Least and largest value in words, with units.
        allowed: String,
    },
}

impl core::fmt::Display for QuicKnobError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Kind { .. } => f.write_str("the value is of another kind than the knob's"),
            Self::Range { allowed } => write!(f, "the value is out of range: expected {allowed}"),
        }
    }
}

impl core::error::Error for QuicKnobError {}

const fn count(
    name: &'static str,
    (least, most): (u64, u64),
    set: fn(&mut Profile, u64),
    help: &'static str,
) -> Knob {
    Knob { name, help, slot: Slot::Count { set, least, most } }
}

const fn switch(name: &'static str, set: fn(&mut Profile, bool), help: &'static str) -> Knob {
    Knob { name, help, slot: Slot::Switch { set } }
}

const fn size(
    name: &'static str,
    least: u64,
    set: fn(&mut Profile, u64),
    help: &'static str,
) -> Knob {
    // RFC 9000 section 16: the largest variable-length integer.
    Knob { name, help, slot: Slot::Size { set, least, most: (1 << 62) - 1 } }
}

const fn time(
    name: &'static str,
    most: Duration,
    set: fn(&mut Profile, Duration),
    help: &'static str,
) -> Knob {
    Knob { name, help, slot: Slot::Time { set, least: Duration::ZERO, most } }
}

/// What is asked for where only one value of ACK_FREQUENCY is given: what RFC 9000 recommends.
const ASKED: AckFrequency = AckFrequency { threshold: 1, max_delay_us: 25_000, reordering: 1 };

/// `max_ack_delay` is below 2^14 ms (RFC 9000 section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// All knobs, in the order they are listed to users.
pub const KNOBS: &[Knob] = &[
    count(
        "numReceivedAckElicitingsBeforeAck",
        (1, 1_000_000),
        |p, n| p.acks.every = n as u32,
        "the n-th unacknowledged packet draws an ACK (INET; RFC 9000 section 13.2.2: 2)",
    ),
    time(
        "max_ack_delay",
        MAX_ACK_DELAY,
        |p, span| p.acks.max_delay = span,
        "longest delay of an ACK (transport parameter)",
    ),
    count(
        "ack_reordering_threshold",
        (0, 1_000_000),
        |p, n| p.acks.reordering = n as u32,
        "a packet missing by so many draws an ACK at once; 1 any gap, 0 none",
    ),
    count(
        "max_ack_ranges",
        (1, 4_096),
        |p, n| p.acks.max_ranges = n as usize,
        "ranges of packet numbers that an ACK tells of at most (RFC 9000 section 13.2.3)",
    ),
    switch(
        "bundleAckForNonAckElicitingPackets",
        |p, on| p.acks.bundle_all = on,
        "packets with data take along ACKs of what drew none (INET)",
    ),
    count(
        "ack_eliciting_threshold",
        (0, 1_000_000),
        |p, n| p.ack_frequency.get_or_insert(ASKED).threshold = n as u32,
        "packets the peer may leave unacknowledged, asked for with ACK_FREQUENCY",
    ),
    time(
        "requested_max_ack_delay",
        MAX_ACK_DELAY,
        |p, span| p.ack_frequency.get_or_insert(ASKED).max_delay_us = span.as_micros(),
        "longest delay of the peer's ACKs, asked for with ACK_FREQUENCY",
    ),
    size(
        "initial_max_data",
        1,
        |p, n| p.windows.connection = n,
        "bytes of a connection granted beyond those read (transport parameter)",
    ),
    size(
        "initial_max_stream_data",
        1,
        |p, n| p.windows.stream = n,
        "bytes of its stream granted beyond those read (transport parameter)",
    ),
    size(
        "sendQueueLimit",
        1,
        |p, n| p.send_buffer = Bytes(n),
        "bytes held for the application until they are acknowledged (INET)",
    ),
    count(
        "kPacketThreshold",
        (1, 1_000_000),
        |p, n| p.loss.packets = n,
        "packets behind a loss that reveal it (RFC 9002 section 6.1.1)",
    ),
    count(
        "time_threshold_eighths",
        (0, 800),
        |p, n| p.loss.time_eighths = (n > 0).then_some(n),
        "eighths of a round trip after which a passed packet is lost; 0 never (kTimeThreshold: 9)",
    ),
    time(
        "kInitialRtt",
        Duration::from_secs(60),
        |p, span| p.pto.initial_rtt = span,
        "round trip assumed before the first sample (RFC 9002 section 6.2.2)",
    ),
    count(
        "initial_window",
        (1, 1_000_000),
        |p, n| p.newreno.initial_window = n as u32,
        "datagrams of the first window, 14,720 bytes at most (RFC 9002 section 7.2: 10)",
    ),
    count(
        "minimum_window",
        (1, 1_000_000),
        |p, n| p.newreno.minimum_window = n as u32,
        "datagrams of the least window (kMinimumWindow: 2)",
    ),
    count(
        "loss_reduction_percent",
        (1, 100),
        |p, n| p.newreno.beta = n as u32,
        "percent of the window kept after a loss (kLossReductionFactor: 50)",
    ),
    switch(
        "accurateIncreaseInNewRenoCongestionAvoidance",
        |p, on| {
            p.newreno.avoidance = match (on, p.newreno.avoidance) {
                (false, _) => Avoidance::Fraction { carries: true },
                (true, counted @ Avoidance::Counted { .. }) => counted,
                (true, _) => Avoidance::Counted { trigger: Trigger::LastDatagram },
            };
        },
        "count acknowledged bytes up to a window before it grows (INET)",
    ),
    switch(
        "growth_without_remainder",
        |p, on| {
            let carries = !on;
            p.newreno.avoidance = Avoidance::Fraction { carries };
        },
        "grow by a fraction in integers and drop what the division leaves (RFC 9002 appendix B.5)",
    ),
    switch(
        "growth_by_whole_windows",
        |p, on| {
            let trigger = if on { Trigger::WholeWindow } else { Trigger::LastDatagram };
            p.newreno.avoidance = Avoidance::Counted { trigger };
        },
        "a counted increase waits for the whole window",
    ),
    switch(
        "partial_counts_in_recovery",
        |p, on| p.newreno.counter.counts_in_recovery = on,
        "packets of a recovery count towards the next increase (INET since March 2025)",
    ),
    switch(
        "partial_cleared_at_loss",
        |p, on| p.newreno.counter.cleared_at_loss = on,
        "a loss clears what is counted towards the next increase",
    ),
    switch(
        "partial_cleared_when_empty",
        |p, on| p.newreno.counter.cleared_when_empty = on,
        "an empty flight clears it (RFC 4960 section 7.2.2)",
    ),
    switch(
        "send_beyond_window",
        |p, on| p.send = if on { SendRule::Overshoot } else { SendRule::FullPackets },
        "the last packet may go beyond the window",
    ),
    switch(
        "losses_before_acks",
        |p, on| p.losses_first = on,
        "an ACK's losses are answered before what it acknowledges is counted (appendix A.7)",
    ),
    switch("pacing", |p, on| p.pacing = on, "spread packets over the round trip (section 7.7)"),
    switch(
        "handshake",
        |p, on| p.handshake = on.then_some(Flights::TYPICAL),
        "begin with a handshake; off: both sides are established at once",
    ),
];

/// The knob called `name`.
pub fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|knob| knob.name == name)
}

impl Knob {
    /// What it is measured in.
    pub const fn kind(&self) -> Kind {
        match self.slot {
            Slot::Count { .. } => Kind::Count,
            Slot::Switch { .. } => Kind::Switch,
            Slot::Size { .. } => Kind::Size,
            Slot::Time { .. } => Kind::Time,
        }
    }

    /// Sets it.
    ///
    /// # Errors
    /// The value is of another kind, or outside what is allowed; the profile is as it was.
    pub fn set(&self, profile: &mut Profile, value: Value) -> Result<(), QuicKnobError> {
        match (self.slot, value) {
            (Slot::Count { set, least, most }, Value::Count(n)) => {
                within(n, least, most, |n| n.to_string())?;
                set(profile, n);
            }
            (Slot::Switch { set }, Value::Switch(on)) => set(profile, on),
            (Slot::Size { set, least, most }, Value::Size(Bytes(n))) => {
                within(n, least, most, |n| Bytes(n).to_string())?;
                set(profile, n);
            }
            (Slot::Time { set, least, most }, Value::Time(span)) => {
                within(span, least, most, |span| span.to_string())?;
                set(profile, span);
            }
            _ => return Err(QuicKnobError::Kind { expected: self.kind() }),
        }
        Ok(())
    }
}

fn within<T: PartialOrd + Copy>(
    value: T,
    least: T,
    most: T,
    words: impl Fn(T) -> String,
) -> Result<(), QuicKnobError> {
    if least <= value && value <= most {
        return Ok(());
    }
    Err(QuicKnobError::Range { allowed: format!("{} to {}", words(least), words(most)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::INET_2025_02;

    #[test]
    fn names_are_unique_and_every_knob_changes_something() {
        for (place, knob) in KNOBS.iter().enumerate() {
            assert!(KNOBS[..place].iter().all(|other| other.name != knob.name));
            let values = match knob.kind() {
                Kind::Count => [Value::Count(5), Value::Count(7)],
                Kind::Switch => [Value::Switch(true), Value::Switch(false)],
                Kind::Size => [Value::Size(Bytes(5_000)), Value::Size(Bytes(7_000))],
                Kind::Time => [5, 7].map(|ms| Value::Time(Duration::from_millis(ms))),
            };
            let [one, other] = values.map(|value| {
                let mut profile = INET_2025_02;
                knob.set(&mut profile, value).unwrap();
                profile
            });
            assert_ne!(one, other, "{}", knob.name);
        }
    }

    #[test]
    fn a_value_outside_its_range_changes_nothing() {
        let mut profile = INET_2025_02;
        let knob = find("max_ack_delay").unwrap();
        let error = knob.set(&mut profile, Value::Time(Duration::from_secs(17))).unwrap_err();
        assert_eq!(error, QuicKnobError::Range { allowed: "0ns to 16.383s".into() });
        let error = knob.set(&mut profile, Value::Count(3)).unwrap_err();
        assert_eq!(error, QuicKnobError::Kind { expected: Kind::Time });
        assert_eq!(profile, INET_2025_02);
    }
}
