//! Requests and their responses, one at a time.

use units::{Bytes, Duration, Instant};

/// The requesting side.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    request: u64,
    response: u64,
    think: Duration,
    /// Requests still to be made; `None` for unlimited.
    left: Option<u64>,
    /// Bytes of the current request not yet accepted by the stack.
    pending: u64,
    /// When the outstanding request was made.
    asked: Option<Instant>,
    /// Bytes of its response so far.
    got: u64,
    /// When the next request is due.
    next: Instant,
    latencies: Vec<Duration>,
}

impl Requester {
    pub(crate) fn new(
        request: Bytes,
        response: Bytes,
        think: Duration,
        count: Option<u64>,
    ) -> Self {
        Self {
            request: request.get().max(1),
            response: response.get().max(1),
            think,
            left: count,
            pending: 0,
            asked: None,
            got: 0,
            next: Instant::ZERO,
            latencies: Vec::new(),
        }
    }

    /// Makes the first request due, when the connection is established.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.next = now;
    }

    /// Called when `bytes` were read.
    pub(crate) fn read(&mut self, now: Instant, bytes: u64) {
        self.got += bytes;
        if let Some(asked) = self.asked.filter(|_| self.got >= self.response) {
            self.latencies.push(now.since(asked));
            self.got -= self.response;
            self.asked = None;
            self.next = now + self.think;
        }
    }

    /// Bytes to offer to the stack now.
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        if self.asked.is_none() && self.next <= now && self.left != Some(0) {
            self.left = self.left.map(|left| left - 1);
            self.asked = Some(now);
            self.pending = self.request;
        }
        self.pending
    }

    /// Called when the stack has accepted `bytes` of the offer.
    pub(crate) fn taken(&mut self, bytes: u64) {
        self.pending -= bytes;
    }

    /// Returns whether the last response has been read.
    pub(crate) fn done(&self) -> bool {
        self.left == Some(0) && self.asked.is_none()
    }

    /// Returns when the next request is due, if none is outstanding.
    pub(crate) fn next_write(&self) -> Option<Instant> {
        (self.asked.is_none() && self.left != Some(0)).then_some(self.next)
    }

    /// Returns the response times so far.
    pub(crate) fn latencies(&self) -> &[Duration] {
        &self.latencies
    }
}

/// The responding side.
#[derive(Debug, Clone)]
pub(crate) struct Responder {
    request: u64,
    response: u64,
    /// Bytes of the current request so far.
    got: u64,
    /// Bytes of responses not yet accepted by the stack.
    pending: u64,
}

impl Responder {
    pub(crate) fn new(request: Bytes, response: Bytes) -> Self {
        let (request, response) = (request.get().max(1), response.get().max(1));
        Self { request, response, got: 0, pending: 0 }
    }

    /// Called when `bytes` were read.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.got += bytes;
        let whole = self.got / self.request;
        self.got %= self.request;
        self.pending = self.pending.saturating_add(whole.saturating_mul(self.response));
    }

    /// Bytes to offer to the stack now.
    pub(crate) fn offer(&self) -> u64 {
        self.pending
    }

    /// Called when the stack has accepted `bytes` of the offer.
    pub(crate) fn taken(&mut self, bytes: u64) {
        self.pending -= bytes;
    }

    /// Returns whether all requests have been answered.
    pub(crate) fn done(&self) -> bool {
        self.pending == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_next_request_follows_the_response_after_the_think_time() {
        let ms = Duration::from_millis;
        let mut asker = Requester::new(Bytes(100), Bytes(1_000), ms(30), Some(2));
        asker.begin(at(5));
        assert_eq!(asker.offer(at(5)), 100);
        asker.taken(100);
        assert_eq!((asker.offer(at(6)), asker.next_write()), (0, None));
        asker.read(at(10), 999);
        assert_eq!(asker.latencies(), []);
        asker.read(at(12), 1);
        assert_eq!((asker.offer(at(12)), asker.next_write()), (0, Some(at(42))));
        assert_eq!(asker.offer(at(42)), 100);
        asker.taken(100);
        assert!(!asker.done());
        asker.read(at(52), 1_000);
        assert!(asker.done());
        assert_eq!(asker.next_write(), None);
        assert_eq!(asker.latencies(), [ms(7), ms(10)]);
    }

    #[test]
    fn a_request_is_answered_when_complete() {
        let mut answerer = Responder::new(Bytes(100), Bytes(1_000));
        answerer.read(99);
        assert_eq!(answerer.offer(), 0);
        answerer.read(102);
        assert_eq!(answerer.offer(), 2_000);
        answerer.taken(1_500);
        assert!(!answerer.done());
        answerer.taken(500);
        assert!(answerer.done());
        answerer.read(99);
        assert_eq!(answerer.offer(), 1_000);
    }
}
