//! The last packets of both sides, and the clock in the timestamps of the sender.

use units::{Duration, Instant};

use super::FrameTime;

/// Least time from which the rate of a timestamp clock is known: 20 ticks of 10 ms.
const MIN_CLOCK_TIME: Duration = Duration::from_millis(200);

/// Shortest pause before data of which a timestamp shows that they were sent earlier.
const MIN_HELD_TIME: Duration = Duration::from_millis(50);

/// The first data of a direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum StreamProgress {
    /// No data were captured.
    #[default]
    Empty,
    /// All data so far are probes, or were acknowledged before they were captured.
    Seen(FrameTime),
    /// There are new data.
    Begun(FrameTime),
}

impl StreamProgress {
    /// The first data; `None` without any.
    pub(crate) const fn first_data(&self) -> Option<FrameTime> {
        match self {
            Self::Empty => None,
            Self::Seen(first) | Self::Begun(first) => Some(*first),
        }
    }

    /// Whether there are new data.
    pub(super) const fn has_begun(&self) -> bool {
        matches!(self, Self::Begun(_))
    }

    /// Records new data, which are not the first packet with data.
    pub(super) const fn begin(&mut self) {
        if let Self::Seen(first) = self {
            *self = Self::Begun(*first);
        }
    }
}

/// The last packet of the receiver that the sender received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LastAnswer {
    #[default]
    None,
    /// An ACK without data.
    Ack,
    /// Data with an ACK.
    Data,
}

/// The last packets of both sides.
#[derive(Debug, Clone)]
pub(crate) struct LastPackets {
    /// Time of the last data.
    pub(crate) sent: Instant,
    /// Time between the last data and those before.
    spacing: Duration,
    /// Time of the last ACK.
    pub(super) ack: Instant,
    /// Time of the first ACK after the last data; `None` before it.
    first_ack: Option<Instant>,
    answer: LastAnswer,
    /// The last data have PSH or FIN.
    pub(super) push: bool,
    /// The last data are less than a segment.
    pub(super) short: bool,
    /// The last data had been sent before.
    pub(super) repeated: bool,
    /// Number of the last frame.
    pub(crate) frame: u64,
}

impl LastPackets {
    pub(super) const fn new(start: Instant) -> Self {
        Self {
            sent: start,
            spacing: Duration::ZERO,
            ack: start,
            first_ack: None,
            answer: LastAnswer::None,
            push: true,
            short: false,
            repeated: false,
            frame: 0,
        }
    }

    /// An ACK was captured after the first data.
    pub(crate) fn is_answered(&self) -> bool {
        self.answer != LastAnswer::None
    }

    /// The sender receives an ACK, without data if it is `pure`.
    pub(super) const fn on_ack(&mut self, at: Instant, pure: bool) {
        self.ack = at;
        if self.first_ack.is_none() {
            self.first_ack = Some(at);
        }
        self.answer = if pure { LastAnswer::Ack } else { LastAnswer::Data };
    }

    /// The sender sends data.
    pub(super) const fn on_data(&mut self, at: Instant) {
        self.spacing = at.since(self.sent);
        self.sent = at;
        self.first_ack = None;
    }

    /// Whether data at `at` follow the ACK that admits them within `reaction`. A sender that has sent all it had and
    /// lets an ACK pass without sending has nothing to send, whichever ACK comes next.
    pub(super) fn is_triggered(&self, at: Instant, reaction: Duration) -> bool {
        // Those of a flight that are acknowledged one by one may be waited for together.
        let passed = self.first_ack.filter(|_| self.has_drained());
        let has_nothing = passed.is_some_and(|first| at.since(first) > reaction * 2);
        !has_nothing && at.since(self.ack) <= reaction && !self.has_request()
    }

    /// Whether the sender had sent all it had: its last data have PSH or are short.
    pub(super) const fn has_drained(&self) -> bool {
        self.push || self.short
    }

    /// Whether the last answer is a request, which is no ACK that opens the window.
    pub(super) fn has_request(&self) -> bool {
        self.answer == LastAnswer::Data && self.push
    }

    /// Time of the last packet.
    pub(super) fn latest(&self) -> Instant {
        self.ack.max(self.sent)
    }

    /// Whether data at `at` are about as far behind the last as those were behind the ones before: spaced by a link, or by
    /// their application.
    pub(super) fn is_spaced(&self, at: Instant) -> bool {
        at.since(self.sent) <= self.spacing * 2
    }

    /// Time since the sender sent data.
    pub(super) fn silence_of_data(&self, at: Instant) -> Duration {
        at.since(self.sent)
    }

    /// Time since the sender sent or received something.
    pub(super) fn silence_before(&self, at: Instant) -> Duration {
        at.since(self.latest())
    }
}

/// Timestamps of new data.
#[derive(Debug, Clone)]
pub(super) struct DataStamps {
    /// The first, and its time.
    first: (u32, Instant),
    /// The last, and its time.
    last: (u32, Instant),
}

impl Default for DataStamps {
    fn default() -> Self {
        Self { first: (0, Instant::ZERO), last: (0, Instant::ZERO) }
    }
}

impl DataStamps {
    /// Records the timestamp of new data; 0 without one.
    pub(super) const fn push(&mut self, stamp: u32, at: Instant) {
        if self.first.0 == 0 {
            self.first = (stamp, at);
        }
        self.last = (stamp, at);
    }

    /// Whether the last new data have this timestamp; false without timestamps.
    pub(super) const fn is_last(&self, stamp: u32) -> bool {
        stamp != 0 && self.last.0 == stamp
    }

    /// Whether data captured after a pause were sent before it, by their timestamps: their clock made
    /// less than half of the ticks that it makes in such a time. Its rate is that before the pause,
    /// since it differs between systems (RFC 7323 section 5.4: a tick of 1 ms to 1 s).
    pub(super) fn were_held(&self, at: Instant, stamp: u32) -> bool {
        let ((first, first_at), (last, last_at)) = (self.first, self.last);
        let known = last_at.since(first_at);
        let pause = at.since(last_at);
        let [before, ticks] =
            [(last, first), (stamp, last)].map(|(to, from)| u64::from(to.wrapping_sub(from)));
        let is_known = stamp != 0 && first != 0 && known >= MIN_CLOCK_TIME && before < 1 << 31;
        let expected = units::ratio::scaled(before, pause.as_nanos(), known.as_nanos().max(1));
        is_known && ticks < 1 << 31 && pause >= MIN_HELD_TIME && ticks < expected / 2
    }
}
