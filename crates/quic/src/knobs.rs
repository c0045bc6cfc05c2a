//! The adjustable values of a profile, under the names users know: those of the transport
//! parameters of RFC 9000, of the constants of RFC 9002, and of INET's module parameters. Names
//! without such a source in their help are Ackclock's own.

use cc::quic_newreno::{IncreaseTrigger, QuicAvoidance};
use units::{Bytes, Duration};

use crate::handshake::Flights;
use crate::packet::AckFrequency;
use crate::profile::{QuicProfile, SendRule};

/// The kind of a knob's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicKnobKind {
    /// A whole number without a unit.
    Count,
    /// On or off.
    Switch,
    /// A size.
    Size,
    /// A duration.
    Time,
}

/// A value of a knob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicKnobValue {
    /// See [`QuicKnobKind::Count`].
    Count(u64),
    /// See [`QuicKnobKind::Switch`].
    Switch(bool),
    /// See [`QuicKnobKind::Size`].
    Size(Bytes),
    /// See [`QuicKnobKind::Time`].
    Time(Duration),
}

/// The setter and range of a knob, by kind.
#[derive(Clone, Copy)]
enum QuicKnobSlot {
    Count { set: fn(&mut QuicProfile, u64), least: u64, most: u64 },
    Switch { set: fn(&mut QuicProfile, bool) },
    Size { set: fn(&mut QuicProfile, u64), least: u64, most: u64 },
    Time { set: fn(&mut QuicProfile, Duration), least: Duration, most: Duration },
}

/// An adjustable value of a profile.
#[derive(Clone, Copy)]
pub struct QuicKnob {
    /// Name.
    pub name: &'static str,
    /// What it does and the source of its name, one line.
    pub help: &'static str,
    slot: QuicKnobSlot,
}

/// Error of setting a knob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuicKnobError {
    /// The value is of another kind.
    Kind {
        /// The kind of the knob.
        expected: QuicKnobKind,
    },
    /// The value is out of range.
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
    set: fn(&mut QuicProfile, u64),
    help: &'static str,
) -> QuicKnob {
    QuicKnob { name, help, slot: QuicKnobSlot::Count { set, least, most } }
}

const fn switch(
    name: &'static str,
    set: fn(&mut QuicProfile, bool),
    help: &'static str,
) -> QuicKnob {
    QuicKnob { name, help, slot: QuicKnobSlot::Switch { set } }
}

const fn size(
    name: &'static str,
    least: u64,
    set: fn(&mut QuicProfile, u64),
    help: &'static str,
) -> QuicKnob {
    // RFC 9000 section 16: the largest variable-length integer.
    QuicKnob { name, help, slot: QuicKnobSlot::Size { set, least, most: (1 << 62) - 1 } }
}

const fn time(
    name: &'static str,
    most: Duration,
    set: fn(&mut QuicProfile, Duration),
    help: &'static str,
) -> QuicKnob {
    QuicKnob { name, help, slot: QuicKnobSlot::Time { set, least: Duration::ZERO, most } }
}

/// Defaults of ACK_FREQUENCY where only one of its values is set: those RFC 9000 recommends.
const REQUESTED: AckFrequency = AckFrequency { threshold: 1, max_delay_us: 25_000, reordering: 1 };

/// `max_ack_delay` is below 2^14 ms (RFC 9000 section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// All knobs, in the order they are listed to users.
pub const KNOBS: &[QuicKnob] = &[
    count(
        "numReceivedAckElicitingsBeforeAck",
        (1, 1_000_000),
        |p, n| p.acks.every = n as u32,
        "the n-th unacknowledged packet triggers an ACK (INET; RFC 9000 section 13.2.2: 2)",
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
        "reordering threshold: a packet missing by this number triggers an immediate ACK; 1 any gap, 0 none",
    ),
    count(
        "max_ack_ranges",
        (1, 4_096),
        |p, n| p.acks.max_ranges = n as usize,
        "most ranges of packet numbers in an ACK (RFC 9000 section 13.2.3)",
    ),
    switch(
        "bundleAckForNonAckElicitingPackets",
        |p, on| p.acks.bundle_all = on,
        "data packets carry ACKs also of packets that are not ack-eliciting (INET)",
    ),
    count(
        "ack_eliciting_threshold",
        (0, 1_000_000),
        |p, n| p.ack_frequency.get_or_insert(REQUESTED).threshold = n as u32,
        "packets the peer may leave unacknowledged, requested with ACK_FREQUENCY",
    ),
    time(
        "requested_max_ack_delay",
        MAX_ACK_DELAY,
        |p, span| p.ack_frequency.get_or_insert(REQUESTED).max_delay_us = span.as_micros(),
        "longest delay of the peer's ACKs, requested with ACK_FREQUENCY",
    ),
    size(
        "initial_max_data",
        1,
        |p, n| p.windows.connection = n,
        "flow control window of the connection (transport parameter)",
    ),
    size(
        "initial_max_stream_data",
        1,
        |p, n| p.windows.stream = n,
        "flow control window of its stream (transport parameter)",
    ),
    size("sendQueueLimit", 1, |p, n| p.send_buffer = Bytes(n), "size of the send buffer (INET)"),
    count(
        "kPacketThreshold",
        (1, 1_000_000),
        |p, n| p.loss.packets = n,
        "later packets acknowledged before a packet is lost (RFC 9002 section 6.1.1)",
    ),
    count(
        "time_threshold_eighths",
        (0, 800),
        |p, n| p.loss.time_eighths = (n > 0).then_some(n),
        "time threshold of loss detection in eighths of a round trip; 0 never (kTimeThreshold: 9)",
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
        "datagrams of the initial window, 14,720 bytes at most (RFC 9002 section 7.2: 10)",
    ),
    count(
        "minimum_window",
        (1, 1_000_000),
        |p, n| p.newreno.minimum_window = n as u32,
        "datagrams of the minimum window (kMinimumWindow: 2)",
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
                (false, _) => QuicAvoidance::Fraction { carries: true },
                (true, counted @ QuicAvoidance::Counted { .. }) => counted,
                (true, _) => QuicAvoidance::Counted { trigger: IncreaseTrigger::LastDatagram },
            };
        },
        "count acknowledged bytes up to a window before it grows (INET)",
    ),
    switch(
        "growth_without_remainder",
        |p, on| {
            let carries = !on;
            p.newreno.avoidance = QuicAvoidance::Fraction { carries };
        },
        "grow by a fraction in integers and drop the remainder (RFC 9002 appendix B.5)",
    ),
    switch(
        "growth_by_whole_windows",
        |p, on| {
            let trigger =
                if on { IncreaseTrigger::WholeWindow } else { IncreaseTrigger::LastDatagram };
            p.newreno.avoidance = QuicAvoidance::Counted { trigger };
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
        "a loss clears the count towards the next increase",
    ),
    switch(
        "partial_cleared_when_empty",
        |p, on| p.newreno.counter.cleared_when_empty = on,
        "the count is cleared when nothing is in flight (RFC 4960 section 7.2.2)",
    ),
    switch(
        "send_beyond_window",
        |p, on| p.send = if on { SendRule::Overshoot } else { SendRule::FullPackets },
        "the last packet may exceed the window",
    ),
    switch(
        "losses_before_acks",
        |p, on| p.losses_first = on,
        "losses that an ACK reveals are processed before the packets it acknowledges (appendix A.7)",
    ),
    switch("pacing", |p, on| p.pacing = on, "spread packets over the round trip (section 7.7)"),
    count(
        "pacing_gain_percent",
        (25, 1_000),
        |p, n| (p.pacing_gain.slow_start, p.pacing_gain.avoidance) = (n, n),
        "percent of a window paced in a round trip (section 7.7: 125)",
    ),
    count(
        "pacing_gain_slow_start_percent",
        (25, 1_000),
        |p, n| p.pacing_gain.slow_start = n,
        "the same below the slow-start threshold",
    ),
    switch(
        "handshake",
        |p, on| p.handshake = on.then_some(Flights::TYPICAL),
        "start with a handshake; off: both endpoints are established at once",
    ),
];

/// The knob called `name`.
pub fn find(name: &str) -> Option<&'static QuicKnob> {
    KNOBS.iter().find(|knob| knob.name == name)
}

impl QuicKnob {
    /// The kind of its value.
    pub const fn kind(&self) -> QuicKnobKind {
        match self.slot {
            QuicKnobSlot::Count { .. } => QuicKnobKind::Count,
            QuicKnobSlot::Switch { .. } => QuicKnobKind::Switch,
            QuicKnobSlot::Size { .. } => QuicKnobKind::Size,
            QuicKnobSlot::Time { .. } => QuicKnobKind::Time,
        }
    }

    /// Sets the knob in `profile`.
    ///
    /// # Errors
    /// The value is of another kind or out of range; the profile is unchanged.
    pub fn set(
        &self,
        profile: &mut QuicProfile,
        value: QuicKnobValue,
    ) -> Result<(), QuicKnobError> {
        match (self.slot, value) {
            (QuicKnobSlot::Count { set, least, most }, QuicKnobValue::Count(n)) => {
                within(n, least, most, |n| n.to_string())?;
                set(profile, n);
            }
            (QuicKnobSlot::Switch { set }, QuicKnobValue::Switch(on)) => set(profile, on),
            (QuicKnobSlot::Size { set, least, most }, QuicKnobValue::Size(Bytes(n))) => {
                within(n, least, most, |n| Bytes(n).to_string())?;
                set(profile, n);
            }
            (QuicKnobSlot::Time { set, least, most }, QuicKnobValue::Time(span)) => {
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
        for (index, knob) in KNOBS.iter().enumerate() {
            assert!(KNOBS[..index].iter().all(|other| other.name != knob.name));
            let values = match knob.kind() {
                QuicKnobKind::Count => {
                    let QuicKnobSlot::Count { least, .. } = knob.slot else { unreachable!() };
                    [5, 7].map(|n| QuicKnobValue::Count(least + n))
                }
                QuicKnobKind::Switch => [QuicKnobValue::Switch(true), QuicKnobValue::Switch(false)],
                QuicKnobKind::Size => {
                    [QuicKnobValue::Size(Bytes(5_000)), QuicKnobValue::Size(Bytes(7_000))]
                }
                QuicKnobKind::Time => {
                    [5, 7].map(|ms| QuicKnobValue::Time(Duration::from_millis(ms)))
                }
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
        let error =
            knob.set(&mut profile, QuicKnobValue::Time(Duration::from_secs(17))).unwrap_err();
        assert_eq!(error, QuicKnobError::Range { allowed: "0ns to 16.383s".into() });
        let error = knob.set(&mut profile, QuicKnobValue::Count(3)).unwrap_err();
        assert_eq!(error, QuicKnobError::Kind { expected: QuicKnobKind::Time });
        assert_eq!(profile, INET_2025_02);
    }
}
