//! Flow control: RFC 9000 section 4, for the connection and its one stream.

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
}

impl Grant {
    const fn new(window: u64, divisor: u64) -> Self {
        Self { window, divisor, limit: window, due: false }
    }

    /// Processes the total of bytes read. Section 4.2 leaves open when the limit is raised.
    fn on_read(&mut self, read: u64) {
        let rest = self.window - self.window.div_ceil(self.divisor);
        if self.limit.saturating_sub(read) <= rest {
            self.limit = read.saturating_add(self.window);
            self.due = true;
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
    /// has been read.
    pub(crate) const fn new(ours: Windows, divisor: u64, peers: Windows) -> Self {
        Self {
            connection: Grant::new(ours.connection, divisor),
            stream: Grant::new(ours.stream, divisor),
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

    pub(crate) fn on_read(&mut self, read: u64) {
        self.connection.on_read(read);
        self.stream.on_read(read);
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
        let mut flow = FlowControl::new(ours, 2, Windows { connection: 50, stream: 70 });
        flow.on_read(299);
        assert_eq!(flow.take(), (None, None));
        flow.on_read(300);
        assert_eq!(flow.take(), (None, Some(900)));
        flow.on_read(500);
        assert_eq!(flow.take(), (Some(1_500), None));
        flow.on_lost(true, false);
        assert_eq!(flow.take(), (Some(1_500), None));
    }

    #[test]
    fn a_limit_of_quinn_is_raised_after_an_eighth() {
        let ours = Windows { connection: 800, stream: 1_600 };
        let mut flow = FlowControl::new(ours, 8, ours);
        flow.on_read(99);
        assert_eq!(flow.take(), (None, None));
        flow.on_read(100);
        assert_eq!(flow.take(), (Some(900), None));
        flow.on_read(200);
        assert_eq!(flow.take(), (Some(1_000), Some(1_800)));
    }

    #[test]
    fn both_limits_bind_and_neither_shrinks_section_4_1() {
        let windows = |connection, stream| Windows { connection, stream };
        let mut flow = FlowControl::new(windows(9, 9), 2, windows(50, 70));
        assert_eq!(flow.limit(), 50);
        assert!(flow.on_max_data(80) && !flow.on_max_data(60));
        assert_eq!(flow.limit(), 70);
        assert!(flow.on_max_stream_data(100));
        assert_eq!(flow.limit(), 80);
    }
}
