//! How much the peer may send: RFC 9000 section 4, for the connection and for its one stream.

/// The windows a receiver grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// `initial_max_data`: bytes of the connection that may be sent beyond those read.
    pub connection: u64,
    /// `initial_max_stream_data_*`: the same for its stream.
    pub stream: u64,
}

/// One limit that a receiver grants.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    window: u64,
    limit: u64,
    /// The peer is to be told.
    due: bool,
}

impl Grant {
    const fn new(window: u64) -> Self {
        Self { window, limit: window, due: false }
    }

    /// So many bytes have been read. Half a window read is told (section 4.2 leaves it open; so do
    /// Chromium and INET).
    fn on_read(&mut self, read: u64) {
        if self.limit.saturating_sub(read) <= self.window / 2 {
            self.limit = read.saturating_add(self.window);
            self.due = true;
        }
    }

    /// The limit, if the peer is to be told of it.
    fn take(&mut self) -> Option<u64> {
        core::mem::take(&mut self.due).then_some(self.limit)
    }
}

/// Both limits, both ways.
#[derive(Debug, Clone)]
pub(crate) struct FlowControl {
    connection: Grant,
    stream: Grant,
    /// What the peer grants.
    max_data: u64,
    max_stream_data: u64,
}

impl FlowControl {
    /// What each side's transport parameters say.
    pub(crate) const fn new(ours: Windows, peers: Windows) -> Self {
        Self {
            connection: Grant::new(ours.connection),
            stream: Grant::new(ours.stream),
            max_data: peers.connection,
            max_stream_data: peers.stream,
        }
    }

    /// Offset up to which may be sent.
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

    /// MAX_DATA and MAX_STREAM_DATA frames that are due.
    pub(crate) fn take(&mut self) -> (Option<u64>, Option<u64>) {
        (self.connection.take(), self.stream.take())
    }

    /// Is one due?
    pub(crate) const fn due(&self) -> bool {
        self.connection.due || self.stream.due
    }

    /// A packet with such frames was lost: the present limits go again (section 13.3).
    pub(crate) fn on_lost(&mut self, max_data: bool, max_stream_data: bool) {
        self.connection.due |= max_data;
        self.stream.due |= max_stream_data;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_told_anew_once_half_of_it_is_read() {
        let ours = Windows { connection: 1_000, stream: 600 };
        let mut flow = FlowControl::new(ours, Windows { connection: 50, stream: 70 });
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
    fn both_limits_bind_and_neither_shrinks_section_4_1() {
        let windows = |connection, stream| Windows { connection, stream };
        let mut flow = FlowControl::new(windows(9, 9), windows(50, 70));
        assert_eq!(flow.limit(), 50);
        assert!(flow.on_max_data(80) && !flow.on_max_data(60));
        assert_eq!(flow.limit(), 70);
        assert!(flow.on_max_stream_data(100));
        assert_eq!(flow.limit(), 80);
    }
}
