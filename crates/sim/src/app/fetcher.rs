//! The client's side of one connection of a web page. The world decides what it fetches: see
//! [`pages`](crate::world).

use std::collections::VecDeque;

use units::{Bytes, Instant};

/// Makes requests and counts the responses.
#[derive(Debug, Clone)]
pub(crate) struct Fetcher {
    /// Index of the page in the world.
    pub(crate) page: u32,
    /// Number of the connection.
    pub(crate) connection: u32,
    request: u64,
    /// Bytes of requests not yet accepted by the stack.
    pending: u64,
    /// Sizes of the outstanding responses.
    expected: VecDeque<u64>,
    /// Bytes of the first of them so far.
    got: u64,
    /// Responses that the world has not counted yet.
    complete: u32,
    /// When the connection can be used.
    connected: Option<Instant>,
    /// When the next page begins, on the first connection.
    due: Option<Instant>,
    /// All pages are loaded, or the load has failed.
    over: bool,
}

impl Fetcher {
    pub(crate) const fn new(request: Bytes, page: u32, connection: u32) -> Self {
        Self {
            page,
            connection,
            request: if request.get() == 0 { 1 } else { request.get() },
            pending: 0,
            expected: VecDeque::new(),
            got: 0,
            complete: 0,
            connected: None,
            due: None,
            over: false,
        }
    }

    /// Called when the connection is established; it can be used from `at`.
    pub(crate) const fn begin(&mut self, at: Instant) {
        self.connected = Some(at);
    }

    /// Can it be used now?
    pub(crate) fn is_connected(&self, now: Instant) -> bool {
        self.connected.is_some_and(|at| at <= now)
    }

    /// Number of outstanding requests.
    pub(crate) fn outstanding(&self) -> usize {
        self.expected.len()
    }

    /// Makes a request whose response has this size.
    pub(crate) fn ask(&mut self, size: u64) {
        self.pending += self.request;
        self.expected.push_back(size);
    }

    /// The next page begins at this time.
    pub(crate) const fn wait(&mut self, due: Option<Instant>) {
        self.due = due;
    }

    /// Nothing more is fetched.
    pub(crate) const fn end(&mut self) {
        self.over = true;
    }

    /// The responses that have arrived since the last call.
    pub(crate) const fn take_complete(&mut self) -> u32 {
        core::mem::replace(&mut self.complete, 0)
    }

    /// Called when `bytes` were read.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.got += bytes;
        while let Some(size) = self.expected.front().copied().filter(|size| *size <= self.got) {
            self.expected.pop_front();
            self.got -= size;
            self.complete += 1;
        }
    }

    /// Bytes to offer to the stack now.
    pub(crate) const fn offer(&self) -> u64 {
        self.pending
    }

    /// Called when the stack has accepted `bytes` of the offer.
    pub(crate) const fn taken(&mut self, bytes: u64) {
        self.pending -= bytes;
    }

    /// Returns whether nothing more is fetched.
    pub(crate) const fn done(&self) -> bool {
        self.over
    }

    /// Returns when the next page is due, if none is being loaded.
    pub(crate) const fn next_act(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_in_the_order_of_the_requests() {
        let mut fetcher = Fetcher::new(Bytes(300), 0, 0);
        fetcher.begin(Instant::from_nanos(7));
        assert!(!fetcher.is_connected(Instant::from_nanos(6)));
        fetcher.ask(1_000);
        fetcher.ask(10);
        fetcher.ask(500);
        assert_eq!((fetcher.offer(), fetcher.outstanding()), (900, 3));
        fetcher.taken(900);
        fetcher.read(999);
        assert_eq!(fetcher.take_complete(), 0);
        fetcher.read(12);
        assert_eq!((fetcher.take_complete(), fetcher.take_complete()), (2, 0));
        assert_eq!(fetcher.outstanding(), 1);
    }
}
