//! What the applications of both hosts wrote, message by message, each with the wait before it.
//!
//! A host that answers has received all data of its peer, and waited since. Between the last of these data at the
//! capture point and the first of the answer there are the round trip to the host that answers and its wait. A host
//! that sends on after all its data were acknowledged waited since it had written the data before.

use std::collections::VecDeque;

use diagnose::CapturedPacket;
use packet::{Dir, Flags};

use crate::losses::{MOST_MERGED, SequenceUnwrapper};

/// Most messages that are reproduced.
const MOST_MESSAGES: usize = 4_000;
/// A message of up to this size is in the send buffer at once.
const WRITTEN_AT_ONCE: u64 = 64 << 10;
/// Most bytes with which a reader asks for more.
const MOST_ASKED: u64 = 64;
/// Fewest of them that show a window of the application.
const FEWEST_ASKED: u64 = 4;
/// One message of this number may overlap with one of the peer.
const TURNS: u64 = 20;
/// Part of the gaps of segments that are shorter than those of a link that sends one after another: one of this number.
const SENDING: usize = 4;
/// Shortest wait in ns that is the application's and not of the host.
const SHORTEST: u64 = 300_000;
/// Times in ns between an ACK and the data that it releases.
const RELEASED: u64 = 500_000;
/// Two round trips after one another differ by less, unless an ACK is delayed.
const AT_ONCE: u64 = 10_000_000;
/// Longest time in ns for which ACKs are delayed (TCP_DELACK_MAX of Linux).
const DELAYED_ACK: u64 = 200_000_000;
/// Times that a message of this size, and no larger one, is repeated: a request.
const FEWEST_REQUESTS: usize = 3;
/// One message of this number may be of the peer of a host that takes no turns.
const ONE_SIDED: usize = 8;

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The host that connected sends it.
    pub by_client: bool,
    /// Its bytes.
    pub bytes: u64,
    /// Wait of the application before it, in ns.
    pub after: u64,
}

/// The messages of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// In their order.
    pub messages: Vec<Message>,
    /// Segments that Nagle's algorithm held until an ACK.
    pub held: u64,
    /// Window of the application of the host that sends more, in bytes.
    pub window: Option<u64>,
    /// Of a batch of requests, the longest wait of the server for one of them, in ns.
    pub longest_wait: Option<u64>,
}

/// Round trips in ns from the capture point to both hosts, by [`Dir`] of what the host sends.
pub(crate) type Distances = [u64; 2];

/// What was captured of a host.
#[derive(Debug, Clone, Copy, Default)]
struct HostState {
    /// End of its data, and what its peer acknowledged.
    top: Option<u64>,
    acked: u64,
    acked_at: u64,
    /// Time of its last data, repeated or new.
    last: u64,
    /// Its last segment was shorter than the largest.
    is_short: bool,
    /// The last segment ended what the application had written.
    is_pushed: bool,
}

/// How long data of the present message of a host took from the capture point to its peer and back.
#[derive(Debug, Default)]
struct Travels {
    /// Ends of the data that are not acknowledged, with their times.
    sent: VecDeque<(u64, u64)>,
    /// The last two round trips.
    before: Option<u64>,
    last: Option<u64>,
}

impl Travels {
    /// Data of this range of the stream were sent, in segments that a capture at the sender shows as one.
    fn sent_at(&mut self, at: u64, (start, end): (u64, u64), mss: u64) {
        let segments = (end - start).div_ceil(mss).min(MOST_MERGED);
        self.sent.extend((1..segments).map(|number| (start + number * mss, at)));
        self.sent.push_back((end, at));
    }

    fn acked(&mut self, ack: u64, at: u64, is_answer: bool) {
        let mut sent = None;
        while self.sent.front().is_some_and(|one| one.0 <= ack) {
            sent = self.sent.pop_front().map(|one| one.1);
        }
        if let Some(sent) = sent.filter(|_| !is_answer) {
            self.before = self.last.replace(at.saturating_sub(sent));
        }
    }

    /// The round trip of the last data, queue included: not that of a delayed ACK.
    fn of_last(&self) -> Option<u64> {
        match (self.before, self.last) {
            (Some(before), Some(last)) if last > before + AT_ONCE => Some(before),
            (Some(_), last) => last,
            // One sample may be a delayed ACK.
            (None, _) => None,
        }
    }
}

/// Collects the messages.
struct Builder {
    hosts: [HostState; 2],
    distances: Distances,
    mss: u64,
    travels: [Travels; 2],
    messages: Vec<Message>,
    /// The host that pauses for a window.
    windowed: Option<usize>,
    /// Time of the first data of the last message.
    begun: u64,
    overlaps: u64,
    asked: u64,
    held: u64,
    /// Times of data that a timer of the sender released.
    timeouts: Vec<u64>,
    /// When ACKs of new data arrived at each host, by [`Dir`] of what it sends; of the last round trip.
    arrivals: [VecDeque<u64>; 2],
    /// Time in ns that a segment of each direction takes at the capture point: what an ACK releases is there later by that.
    sending: [u64; 2],
    /// When each host, by [`Dir`] of what it sends, was connected: its own time and the way from there to the capture
    /// point.
    connected: [Option<u64>; 2],
}

/// What of TCP limits the sender of the larger direction, so that its silences are no waits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SenderLimits<'a> {
    /// The receive window may.
    pub(crate) is_window_limited: bool,
    /// Times of data that its timer released, in ns.
    pub(crate) timeouts: &'a [u64],
}

impl Conversation {
    /// The messages of a connection whose larger direction is `dir`, where TCP may limit the sender so; `None` if both
    /// hosts send at the same time, or too many.
    pub(crate) fn of(
        packets: &[CapturedPacket],
        dir: Dir,
        mss: u64,
        distances: Distances,
        limits: SenderLimits<'_>,
    ) -> Option<Self> {
        let SenderLimits { is_window_limited, timeouts } = limits;
        let asked = Asks::of(packets, dir, distances[dir as usize]);
        let mut builder = Builder {
            hosts: [HostState::default(); 2],
            distances,
            mss: mss.max(1),
            travels: [Travels::default(), Travels::default()],
            messages: Vec::new(),
            windowed: (asked.is_some() || is_window_limited).then_some(dir as usize),
            begun: 0,
            overlaps: 0,
            asked: 0,
            held: 0,
            timeouts: timeouts.to_vec(),
            arrivals: [VecDeque::new(), VecDeque::new()],
            sending: [Dir::Forward, Dir::Reverse].map(|dir| sending_time(packets, dir, mss)),
            connected: [None; 2],
        };
        let mut streams = [SequenceUnwrapper::default(); 2];
        for packet in packets {
            builder.packet(packet, &mut streams, asked.is_some().then_some(dir.reversed()))?;
        }
        let Builder { messages, overlaps, held, asked: number, .. } = builder;
        if messages.is_empty() || overlaps * TURNS > messages.len() as u64 {
            return None;
        }
        let by_client = dir == Dir::Forward;
        // Data that leave in pieces with each ACK, without an answer between them, are those of a small buffer.
        let answers = messages.iter().filter(|one| one.by_client != by_client).count() as u64;
        if held > 2 * answers + FEWEST_ASKED {
            return None;
        }
        let sent: u64 =
            messages.iter().filter(|one| one.by_client == by_client).map(|one| one.bytes).sum();
        let window = asked.filter(|_| number >= FEWEST_ASKED).map(|flight| {
            let window = 2 * sent / number;
            // The largest flight, unless it is not that of the window.
            if flight.abs_diff(window) * 4 <= window { flight } else { window }
        });
        Some(Self { messages, held, window, longest_wait: None })
    }

    /// Bytes of one host.
    pub fn bytes(&self, by_client: bool) -> u64 {
        self.messages.iter().filter(|one| one.by_client == by_client).map(|one| one.bytes).sum()
    }

    /// Whether it is more than one transfer after one request.
    pub fn has_turns(&self) -> bool {
        let is_more = self.messages.len() > 2 || self.window.is_some();
        is_more || self.messages.iter().any(|one| one.after >= SHORTEST)
    }

    /// The same without waits of one host longer than `most` ns.
    #[must_use]
    pub fn with_waits(&self, by_client: bool, most: u64) -> Self {
        let mut other = self.clone();
        for one in other.messages.iter_mut().filter(|one| one.by_client == by_client) {
            one.after = one.after.min(most);
        }
        other
    }

    /// The same with all requests at once, and all responses after them. The client waits as before its first request,
    /// and the server as for all of them: whether it works at one after the other, [`Self::served_together`] leaves open.
    /// What precedes the first request is the opening, and stays.
    #[must_use]
    pub fn batched(&self) -> Self {
        let mut other = self.batched_with_waits();
        let (first, batch) = (self.first_request(), other.messages.len());
        let rest = &self.messages[first..];
        let of_host = |by_client| move |one: &&Message| one.by_client == by_client;
        if let Some(own) = rest.iter().find(of_host(true)) {
            let of_batch = &mut other.messages[first.min(batch)..];
            of_batch.iter_mut().filter(|one| one.by_client).for_each(|one| one.after = own.after);
        }
        other.longest_wait = rest.iter().filter(of_host(false)).map(|one| one.after).max();
        other
    }

    /// The same with all requests at once that both hosts wait for as long as for all of them: what the round trips cost.
    #[must_use]
    pub fn batched_with_waits(&self) -> Self {
        let (opening, rest) = self.messages.split_at(self.first_request());
        let mut messages = opening.to_vec();
        // In the order in which both hosts begin.
        let starts = rest.first().is_some_and(|one| one.by_client);
        for by_client in [starts, !starts] {
            let of_host = || rest.iter().filter(|one| one.by_client == by_client);
            let bytes = of_host().map(|one| one.bytes).sum();
            let after = of_host().map(|one| one.after).fold(0, u64::saturating_add);
            if bytes > 0 {
                messages.push(Message { by_client, bytes, after });
            }
        }
        Self { messages, ..self.clone() }
    }

    /// The same with a server that works at all requests of a batch together: it waits as long as for one of them. `None`
    /// if there is no batch, or nothing else.
    #[must_use]
    pub fn served_together(&self) -> Option<Self> {
        let longest = self.longest_wait?;
        let mut other = self.clone();
        let last = other.messages.iter_mut().rfind(|one| !one.by_client)?;
        if last.after <= longest {
            return None;
        }
        last.after = longest;
        Some(other)
    }

    /// Number of the first message with a request: of the size that the client sends most often, or one that the server
    /// answers with as many bytes as most of these, for the first may be in the last message of the opening.
    fn first_request(&self) -> usize {
        let messages = &self.messages;
        let of_client = |one: &&Message| one.by_client;
        let Some(request) = most_usual(messages.iter().filter(of_client)) else { return 0 };
        let is_request = |one: &Message| one.by_client && one.bytes == request;
        let first = messages.iter().position(is_request).unwrap_or(0);
        let pairs =
            || messages.windows(2).filter(|pair| is_request(&pair[0]) && !pair[1].by_client);
        let Some(answer) = most_usual(pairs().map(|pair| &pair[1])) else { return first };
        match first.checked_sub(2).map(|before| &messages[before..first]) {
            Some([asked, answered])
                if asked.by_client
                    && asked.bytes > request
                    && !answered.by_client
                    && answered.bytes == answer =>
            {
                first - 2
            }
            _ => first,
        }
    }

    /// Bytes of the host that sends less, if the connection ends with its message, whose end it waits for.
    pub fn answer(&self, by_client: bool) -> Option<u64> {
        let is_last = self.messages.last().is_some_and(|one| one.by_client != by_client);
        is_last.then(|| self.bytes(!by_client))
    }

    /// Whether nearly all messages are of one host: it takes no turns with its peer.
    pub fn is_one_sided(&self) -> bool {
        let of_client = self.messages.iter().filter(|one| one.by_client).count();
        let fewer = of_client.min(self.messages.len() - of_client);
        self.window.is_none() && fewer * ONE_SIDED <= self.messages.len()
    }
}

/// The size of most of these messages, if a few have it.
fn most_usual<'m>(messages: impl Iterator<Item = &'m Message>) -> Option<u64> {
    let mut sizes: Vec<u64> = messages.map(|one| one.bytes).collect();
    sizes.sort_unstable();
    let usual = sizes.chunk_by(|one, other| one == other).max_by_key(|same| same.len());
    usual.filter(|same| same.len() >= FEWEST_REQUESTS).map(|same| same[0])
}

impl Builder {
    fn packet(
        &mut self,
        packet: &CapturedPacket,
        streams: &mut [SequenceUnwrapper; 2],
        asks: Option<Dir>,
    ) -> Option<()> {
        let segment = &packet.segment;
        let (own, peer) = (segment.dir as usize, segment.dir.reversed() as usize);
        let at = packet.at.as_nanos();
        if let Some(ack) = segment.acknowledgment()
            && self.hosts[peer].top.is_some()
        {
            let ack = streams[peer].place(ack.0);
            let host = &mut self.hosts[peer];
            if ack > host.acked {
                (host.acked, host.acked_at) = (ack, at);
                if segment.payload == 0 {
                    self.arrivals[peer].push_back(at + self.distances[peer]);
                }
                // An answer is no sample: it may be late.
                self.travels[peer].acked(ack, at, segment.payload > 0);
            }
        }
        self.note_opening(packet);
        if segment.payload == 0 {
            return Some(());
        }
        let start = streams[own].place(segment.seq.0);
        let end = start + u64::from(segment.payload);
        let host = self.hosts[own];
        let top = host.top.unwrap_or(start);
        let now = HostState {
            top: Some(top.max(end)),
            acked: host.acked.max(if host.top.is_none() { start } else { 0 }),
            last: at,
            is_pushed: segment.flags.has(Flags::PSH),
            is_short: !u64::from(segment.payload).is_multiple_of(self.mss),
            ..host
        };
        self.hosts[own] =
            if end > top || host.top.is_none() { now } else { HostState { last: at, ..host } };
        if end <= top {
            return Some(());
        }
        let bytes = end - top;
        self.travels[own].sent_at(at, (top.max(start), end), self.mss);
        let by_client = segment.dir == Dir::Forward;
        if asks == Some(segment.dir) && bytes <= MOST_ASKED && self.is_amid(own) {
            self.asked += 1;
            return Some(());
        }
        let last = self.messages.last().map(|last| last.by_client == by_client);
        let after = match last {
            Some(true) => self.wait_within(own, host, at),
            Some(false) => {
                let sent = self.hosts[peer];
                // The answer acknowledges all that was received.
                self.overlaps += u64::from(sent.top.is_some_and(|top| sent.acked < top));
                let travel = self.travels[peer].of_last().unwrap_or(0).max(self.distances[own]);
                let wait = at.saturating_sub(sent.last).saturating_sub(travel);
                Some(if wait >= SHORTEST { wait } else { 0 })
            }
            // What was captured without its opening has no wait that is known.
            None => {
                let connected = self.connected[own].unwrap_or(at);
                Some(
                    Some(at.saturating_sub(connected))
                        .filter(|&wait| wait >= SHORTEST)
                        .unwrap_or(0),
                )
            }
        };
        match (after, self.messages.last_mut()) {
            (None, Some(last)) => last.bytes += bytes,
            (after, _) => {
                self.messages.push(Message { by_client, bytes, after: after.unwrap_or(0) });
                self.begun = at;
                self.travels[own] = Travels::default();
                self.travels[own].sent_at(at, (top.max(start), end), self.mss);
            }
        }
        (self.messages.len() <= MOST_MESSAGES).then_some(())
    }

    /// Notes when the packets of a handshake connect both hosts: the client with the first answer to its SYN, the server
    /// with what follows that.
    fn note_opening(&mut self, packet: &CapturedPacket) {
        let (flags, dir) = (packet.segment.flags, packet.segment.dir);
        let own = dir as usize;
        let peer = dir.reversed() as usize;
        let is_answer = flags.has(Flags::SYN) && flags.has(Flags::ACK);
        let is_third = !flags.has(Flags::SYN) && self.connected[own].is_some();
        // Of several answers the client has the last one before what it sends next.
        let is_repeated = is_answer && self.connected[own].is_none();
        if (is_answer || is_third) && (is_repeated || self.connected[peer].is_none()) {
            self.connected[peer] = Some(packet.at.as_nanos() + self.distances[peer]);
        }
    }

    /// Whether the message of the peer of this host is not all that it sends.
    fn is_amid(&self, own: usize) -> bool {
        self.messages.last().is_some_and(|last| last.by_client != (own == Dir::Forward as usize))
    }

    /// Whether what a host sends at `at` leaves as an ACK arrives there.
    fn is_released(&mut self, own: usize, at: u64) -> bool {
        let first = at.saturating_sub(self.sending[own] + RELEASED);
        let arrivals = &mut self.arrivals[own];
        while arrivals.front().is_some_and(|&arrival| arrival < first) {
            arrivals.pop_front();
        }
        arrivals.front().is_some_and(|&arrival| arrival <= at + RELEASED)
    }

    /// The wait of a host before it sends more, `host` before that; `None` if it sends on.
    fn wait_within(&mut self, own: usize, host: HostState, at: u64) -> Option<u64> {
        let top = host.top?;
        if self.timeouts.contains(&at) {
            return None;
        }
        let last = *self.messages.last()?;
        // Data that an ACK releases leave when it has arrived; what is not the end of a write was lost.
        let released = host.acked_at + self.distances[own];
        let has_arrived = released <= at + RELEASED;
        let is_acked = host.acked >= top && has_arrived;
        let ready = if has_arrived { released.max(host.last) } else { host.last };
        let idle = at.saturating_sub(ready).saturating_sub(self.sending[own]);
        let pause = SHORTEST.max(self.distances[own] / 8);
        if is_acked && host.is_short && idle <= RELEASED && released > host.last + SHORTEST {
            self.held += 1;
            return Some(0);
        }
        // An ACK wakes no application, but a sender that has more than the window or its buffer permits.
        if !is_acked && self.is_released(own, at) {
            return None;
        }
        // Without an ACK for longer, they were lost.
        let is_open = idle <= self.distances[0] + self.distances[1] + DELAYED_ACK;
        let is_written = is_acked || (host.is_short && is_open);
        if idle <= pause || !is_written || !host.is_pushed || self.windowed == Some(own) {
            return None;
        }
        let written = match last.bytes {
            0..=WRITTEN_AT_ONCE => self.begun,
            _ => self.begun.max(host.last.saturating_sub(self.distances[0] + self.distances[1])),
        };
        Some(at.saturating_sub(written))
    }
}

/// Time in ns from one segment of `mss` to the next of a direction, where they follow one another immediately: one of
/// [`SENDING`] gaps is shorter.
fn sending_time(packets: &[CapturedPacket], dir: Dir, mss: u64) -> u64 {
    let full = packets
        .iter()
        .filter(|packet| packet.segment.dir == dir && u64::from(packet.segment.payload) == mss);
    let times: Vec<u64> = full.map(|packet| packet.at.as_nanos()).collect();
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / SENDING).copied().unwrap_or(0)
}

/// Small messages with which a reader asks for more while data are on their way.
struct Asks;

impl Asks {
    /// The largest flight of the data if there are such messages: most small ones of the peer of `dir` were sent while
    /// data followed that they cannot have caused.
    fn of(packets: &[CapturedPacket], dir: Dir, to_sender: u64) -> Option<u64> {
        let (mut amid, mut all) = (0_u64, 0_u64);
        let mut waiting: Option<u64> = None;
        let (mut top, mut acked, mut flight) = (None::<u64>, 0, 0);
        let mut stream = SequenceUnwrapper::default();
        for packet in packets {
            let segment = &packet.segment;
            let (at, payload) = (packet.at.as_nanos(), u64::from(segment.payload));
            if segment.dir == dir {
                if payload == 0 {
                    continue;
                }
                let end = stream.place(segment.seq.0) + payload;
                if let Some(asked) = waiting.take() {
                    amid += u64::from(at.saturating_sub(asked) < to_sender);
                }
                top = Some(top.map_or(end, |top: u64| top.max(end)));
                flight = flight.max(end.saturating_sub(acked.max(end - payload)));
                if acked > 0 {
                    flight = flight.max(top.unwrap_or(end).saturating_sub(acked));
                }
                continue;
            }
            if let Some(ack) = segment.acknowledgment().filter(|_| top.is_some()) {
                acked = stream.place(ack.0).max(acked);
            }
            if (1..=MOST_ASKED).contains(&payload) {
                all += 1;
                // At the sender, what it has sent and was not acknowledged shows the same.
                match to_sender {
                    0..SHORTEST => {
                        amid += u64::from(top.is_some_and(|top| acked > 0 && acked < top));
                    }
                    _ => waiting = Some(at),
                }
            }
        }
        (all >= FEWEST_ASKED && amid * 2 > all).then_some(flight)
    }
}

#[cfg(test)]
mod tests;
