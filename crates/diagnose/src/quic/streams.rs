//! Flow control of the data that one side sends: bytes sent and limits, of the connection and of
//! each stream (RFC 9000 section 4).

use std::collections::BTreeMap;

use super::record::QuicLimits;

/// Most streams followed at once. The oldest ones are forgotten.
const MAX_STREAMS: usize = 1 << 14;

#[derive(Debug, Clone, Copy, Default)]
struct StreamState {
    /// End of the highest byte.
    end: u64,
    /// Limit; `None` if unknown.
    limit: Option<u64>,
    fin: bool,
    /// STREAM_DATA_BLOCKED was sent and the limit not raised since.
    blocked: bool,
}

impl StreamState {
    fn is_blocked(&self) -> bool {
        !self.fin
            && (self.blocked || self.limit.is_some_and(|limit| limit > 0 && self.end >= limit))
    }
}

/// The streams of one direction.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamsFlow {
    streams: BTreeMap<u64, StreamState>,
    /// Sum of the highest bytes of all streams.
    pub(super) total: u64,
    /// Limit of the connection.
    pub(super) limit: Option<u64>,
    initial: QuicLimits,
    connection_blocked: bool,
    pub(super) count_blocked: bool,
    /// Number of streams at their limit, and the most at one time.
    blocked_streams: usize,
    pub(super) most_blocked: usize,
    /// Number of streams opened.
    pub(super) opened: u64,
    /// Number of bidirectional streams opened, and of those that are not ended. Unidirectional ones (the
    /// control streams of HTTP/3) may never end.
    bidirectional: u64,
    unfinished: usize,
    /// The stream that was last found at its limit, with the limit.
    pub(super) last_blocked: Option<(u64, u64)>,
    /// Limit at which the connection was last blocked.
    pub(super) last_connection: Option<u64>,
    /// Whether the local host is the client; decides which initial limit applies.
    sender_is_client: Option<bool>,
}

impl StreamsFlow {
    pub(super) fn set_sender(&mut self, is_client: Option<bool>) {
        self.sender_is_client = is_client;
    }

    /// Applies the receiver's transport parameters. Streams known before get their limits too.
    pub(super) fn limits(&mut self, limits: QuicLimits) {
        self.limit = self.limit.max(limits.max_data);
        self.initial = limits;
        let ids: Vec<u64> = self.streams.keys().copied().collect();
        for id in ids {
            if let Some(limit) = self.initial_limit(id) {
                self.raise_stream(id, limit);
            }
        }
    }

    /// The receiver's first limit for a stream. The lowest bit of an ID is 0 for streams that the
    /// client opened, the next one 0 for bidirectional streams (RFC 9000 section 2.1).
    pub(super) fn initial_limit(&self, id: u64) -> Option<u64> {
        if id & 2 != 0 {
            return self.initial.uni;
        }
        let sender_opened = (id & 1 == 0) == self.sender_is_client?;
        // `local` and `remote` are those of the receiver, whose parameters these are.
        if sender_opened { self.initial.bidi_remote } else { self.initial.bidi_local }
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut StreamState)) -> StreamState {
        let initial = self.initial_limit(id);
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&id) {
            // A finished stream would be better, but finding one is linear.
            if let Some((old_id, old)) = self.streams.pop_first() {
                self.blocked_streams -= usize::from(old.is_blocked());
                self.unfinished -= usize::from(is_bidirectional(old_id) && !old.fin);
            }
        }
        let (opened, bidirectional) = (&mut self.opened, &mut self.bidirectional);
        let unfinished = &mut self.unfinished;
        let state = self.streams.entry(id).or_insert_with(|| {
            *opened += 1;
            *bidirectional += u64::from(is_bidirectional(id));
            *unfinished += usize::from(is_bidirectional(id));
            StreamState { limit: initial, ..StreamState::default() }
        });
        let before = state.is_blocked();
        let was_open = !state.fin;
        change(state);
        *unfinished -= usize::from(is_bidirectional(id) && was_open && state.fin);
        let after = state.is_blocked();
        match (before, after) {
            (false, true) => {
                self.blocked_streams += 1;
                self.most_blocked = self.most_blocked.max(self.blocked_streams);
            }
            (true, false) => self.blocked_streams -= 1,
            _ => {}
        }
        *state
    }

    /// Adds sent bytes; returns the bytes sent for the first time.
    pub(super) fn send(&mut self, id: u64, offset: u64, length: u64, fin: bool) -> u64 {
        let end = offset.saturating_add(length);
        let mut new = 0;
        let state = self.change(id, |state| {
            // A stream may begin anywhere in a log that lacks its beginning.
            new = end.saturating_sub(state.end);
            state.end = state.end.max(end);
            state.fin |= fin;
        });
        if state.is_blocked() {
            self.last_blocked = Some((id, state.limit.unwrap_or(state.end)));
        }
        self.total = self.total.saturating_add(new);
        let new = new.min(length);
        if self.limit.is_some_and(|limit| limit > 0 && self.total >= limit) {
            self.last_connection = self.limit;
        }
        new
    }

    /// The first limits of the connection and of the stream that was last at its limit.
    pub(super) fn first_limits(&self) -> (Option<u64>, Option<u64>) {
        let stream = self.last_blocked.and_then(|(id, _)| self.initial_limit(id));
        (self.initial.max_data, stream)
    }

    pub(super) fn raise(&mut self, limit: u64) {
        if self.limit.is_none_or(|old| limit > old) {
            self.limit = Some(limit);
            self.connection_blocked = false;
        }
    }

    pub(super) fn raise_stream(&mut self, id: u64, limit: u64) {
        self.change(id, |state| {
            if state.limit.is_none_or(|old| limit > old) {
                state.limit = Some(limit);
                state.blocked = false;
            }
        });
    }

    pub(super) fn report_blocked(&mut self) {
        self.connection_blocked = true;
        self.last_connection = self.limit.or(Some(self.total));
    }

    pub(super) fn report_stream_blocked(&mut self, id: u64) {
        let state = self.change(id, |state| state.blocked = true);
        self.last_blocked = Some((id, state.limit.unwrap_or(state.end)));
    }

    /// Whether the connection is at its limit.
    pub(super) fn is_blocked(&self) -> bool {
        self.connection_blocked || self.limit.is_some_and(|limit| limit > 0 && self.total >= limit)
    }

    /// Whether a stream is at its limit.
    pub(super) const fn is_stream_blocked(&self) -> bool {
        self.blocked_streams > 0
    }

    /// Whether all bidirectional streams that were opened are ended.
    pub(super) const fn are_finished(&self) -> bool {
        self.bidirectional > 0 && self.unfinished == 0
    }

    /// Whether the receiver's limits are known.
    pub(super) fn is_known(&self) -> bool {
        self.limit.is_some()
    }
}

/// Whether a stream with this ID is bidirectional (RFC 9000 section 2.1).
const fn is_bidirectional(id: u64) -> bool {
    id & 2 == 0
}
