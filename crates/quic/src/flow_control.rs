//! Flow control: RFC 9000 section 4, for the connection and its one stream; windows that grow are quic-go's
//! (`flow_controller_base.go`, `maybeAdjustWindowSize`).

use units::ratio::scaled;
use units::{Duration, Instant};

/// The flow control windows of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// `initial_max_data`: bytes of the connection that the peer may send beyond those read.
    pub connection: u64,
    /// `initial_max_stream_data_*`: the same for its stream.
    pub stream: u64,
}

/// A flow control limit that a receiver advertises.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    window: u64,
    /// The limit is raised once this part of the window has been read.
    divisor: u64,
    limit: u64,
    /// A frame with the new limit is due.
    due: bool,
    /// To this the window grows.
    most: u64,
    /// When the window was last adjusted, or the first byte read, and the bytes read by then.
    epoch: Option<(Instant, u64)>,
}

/// Windows of the connection are this part of those of the stream, in halves (`ConnectionFlowControlMultiplier`).
const CONNECTION_HALVES: u64 = 3;

impl Grant {
    const fn new(window: u64, divisor: u64, most: u64) -> Self {
        Self { window, divisor, limit: window, due: false, most, epoch: None }
    }

    /// Processes the total of bytes read; returns whether the window has grown. Section 4.2 leaves open when the limit is
    /// raised.
    fn on_read(&mut self, read: u64, now: Instant, rtt: Duration) -> bool {
        let (since, from) = *self.epoch.get_or_insert((now, 0));
        let rest = self.window - self.window.div_ceil(self.divisor);
        if self.limit.saturating_sub(read) > rest {
            return false;
        }
        let before = self.window;
        let consumed = read.saturating_sub(from);
        if self.window < self.most && consumed > self.window / 2 {
            // Half a window in less than two round trips.
            let span = scaled(rtt.as_nanos().saturating_mul(4), consumed, self.window);
            if now.since(since).as_nanos() < span {
                self.window = (2 * self.window).min(self.most);
            }
            self.epoch = Some((now, read));
        }
        self.limit = read.saturating_add(self.window);
        self.due = true;
        self.window > before
    }

    /// Makes the window at least this.
    fn ensure(&mut self, window: u64, read: u64, now: Instant) {
        if window > self.window {
            self.window = window.min(self.most.max(self.window));
            self.epoch = Some((now, read));
        }
    }

    /// The limit to advertise, if one is due.
    fn take(&mut self) -> Option<u64> {
        core::mem::take(&mut self.due).then_some(self.limit)
    }
}

/// The flow control state of both directions.
#[derive(Debug, Clone)]
pub(crate) struct FlowControl {
    connection: Grant,
    stream: Grant,
    /// Limits advertised by the peer.
    max_data: u64,
    max_stream_data: u64,
}

impl FlowControl {
    /// The state after the exchange of transport parameters. The own limits are raised once a `divisor`-th of the window
    /// has been read; the windows grow to `most`.
    pub(crate) const fn new(ours: Windows, divisor: u64, most: Windows, peers: Windows) -> Self {
        Self {
            connection: Grant::new(ours.connection, divisor, most.connection),
            stream: Grant::new(ours.stream, divisor, most.stream),
            max_data: peers.connection,
            max_stream_data: peers.stream,
        }
    }

    /// The offset up to which the peer's limits allow sending.
    pub(crate) fn limit(&self) -> u64 {
        self.max_data.min(self.max_stream_data)
    }

    pub(crate) fn on_max_data(&mut self, max: u64) -> bool {
        let before = self.limit();
        self.max_data = self.max_data.max(max);
        self.limit() > before
    }

    pub(crate) fn on_max_stream_data(&mut self, max: u64) -> bool {
        let before = self.limit();
        self.max_stream_data = self.max_stream_data.max(max);
        self.limit() > before
    }

    /// Processes the total of bytes read at a smoothed round trip of `rtt`.
    pub(crate) fn on_read(&mut self, read: u64, now: Instant, rtt: Duration) {
        if self.stream.on_read(read, now, rtt) {
            self.connection.ensure(self.stream.window * CONNECTION_HALVES / 2, read, now);
        }
        self.connection.on_read(read, now, rtt);
    }

    /// The MAX_DATA and MAX_STREAM_DATA frames that are due.
    pub(crate) fn take(&mut self) -> (Option<u64>, Option<u64>) {
        (self.connection.take(), self.stream.take())
    }

    /// Is such a frame due?
    pub(crate) const fn due(&self) -> bool {
        self.connection.due || self.stream.due
    }

    /// Schedules the current limits after a packet with such frames was lost (section 13.3).
    pub(crate) fn on_lost(&mut self, max_data: bool, max_stream_data: bool) {
        self.connection.due |= max_data;
        self.stream.due |= max_stream_data;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_once_half_a_window_is_read() {
        let ours = Windows { connection: 1_000, stream: 600 };
        let mut flow = FlowControl::new(ours, 2, ours, Windows { connection: 50, stream: 70 });
        flow.on_read(299, Instant::ZERO, Duration::ZERO);
        assert_eq!(flow.take(), (None, None));
        flow.on_read(300, Instant::ZERO, Duration::ZERO);
        assert_eq!(flow.take(), (None, Some(900)));
        flow.on_read(500, Instant::ZERO, Duration::ZERO);
        assert_eq!(flow.take(), (Some(1_500), None));
        flow.on_lost(true, false);
        assert_eq!(flow.take(), (Some(1_500), None));
    }

    #[test]
    fn a_limit_of_quinn_is_raised_after_an_eighth() {
        let ours = Windows { connection: 800, stream: 1_600 };
        let mut flow = FlowControl::new(ours, 8, ours, ours);
        flow.on_read(99, Instant::ZERO, Duration::ZERO);
        assert_eq!(flow.take(), (None, None));
        flow.on_read(100, Instant::ZERO, Duration::ZERO);
        assert_eq!(flow.take(), (Some(900), None));
        flow.on_read(200, Instant::ZERO, Duration::ZERO);
        assert_eq!(flow.take(), (Some(1_000), Some(1_800)));
    }

    #[test]
    fn both_limits_bind_and_neither_shrinks_section_4_1() {
        let windows = |connection, stream| Windows { connection, stream };
        let mut flow = FlowControl::new(windows(9, 9), 2, windows(9, 9), windows(50, 70));
        assert_eq!(flow.limit(), 50);
        assert!(flow.on_max_data(80) && !flow.on_max_data(60));
        assert_eq!(flow.limit(), 70);
        assert!(flow.on_max_stream_data(100));
        assert_eq!(flow.limit(), 80);
    }

    /// A window that is read in less than four round trips doubles, with that of the connection.
    #[test]
    fn windows_of_quic_go_double_while_they_are_read_fast() {
        let windows = |connection, stream| Windows { connection, stream };
        let mut flow =
            FlowControl::new(windows(1_500, 1_000), 4, windows(15_000, 3_000), windows(1, 1));
        let (rtt, at) = (Duration::from_millis(10), |ms| Instant::ZERO + Duration::from_millis(ms));
        flow.on_read(1, at(0), rtt);
        // A quarter: the limit is raised, but half of the window is not yet read.
        flow.on_read(250, at(5), rtt);
        assert_eq!(flow.take(), (None, Some(1_250)));
        // 600 of 1,000 bytes in less than 24 ms.
        flow.on_read(600, at(23), rtt);
        assert_eq!(flow.take(), (Some(3_600), Some(2_600)));
        // The second thousand takes longer than 4 * 1,100 / 2,000 round trips.
        flow.on_read(1_700, at(46), rtt);
        assert_eq!(flow.take().1, Some(3_700));
        flow.on_read(2_800, at(50), rtt);
        assert_eq!(flow.take().1, Some(5_800));
    }
}
