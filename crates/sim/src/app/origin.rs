//! The server of requests whose responses have sizes of their own.

use std::collections::VecDeque;

use units::Bytes;

/// Answers each request once it is complete, in order. The simulator passes the size of the response
/// directly, as what the request says.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    request: u64,
    /// Bytes of the current request so far.
    got: u64,
    /// Sizes of the responses to the requests that are not yet complete.
    expected: VecDeque<u64>,
    /// Bytes of responses not yet accepted by the stack.
    pending: u64,
}

impl Origin {
    pub(crate) fn new(request: Bytes) -> Self {
        Self { request: request.get().max(1), got: 0, expected: VecDeque::new(), pending: 0 }
    }

    /// The client makes a request whose response has this size.
    pub(crate) fn expect(&mut self, size: u64) {
        self.expected.push_back(size);
    }

    /// Called when `bytes` were read.
    pub(crate) fn read(&mut self, bytes: u64) {
        self.got += bytes;
        while self.got >= self.request
            && let Some(size) = self.expected.pop_front()
        {
            self.got -= self.request;
            self.pending = self.pending.saturating_add(size);
        }
    }

    /// Bytes to offer to the stack now.
    pub(crate) const fn offer(&self) -> u64 {
        self.pending
    }

    /// Called when the stack has accepted `bytes` of the offer.
    pub(crate) fn taken(&mut self, bytes: u64) {
        self.pending -= bytes;
    }

    /// Returns whether all requests have been answered.
    pub(crate) const fn done(&self) -> bool {
        self.pending == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_a_response_of_its_own_size() {
        let mut origin = Origin::new(Bytes(100));
        origin.expect(5_000);
        origin.expect(70);
        origin.read(99);
        assert_eq!((origin.offer(), origin.done()), (0, true));
        origin.read(1);
        assert_eq!(origin.offer(), 5_000);
        origin.taken(4_000);
        origin.read(100);
        assert_eq!((origin.offer(), origin.done()), (1_070, false));
        origin.taken(1_070);
        assert!(origin.done());
    }
}
