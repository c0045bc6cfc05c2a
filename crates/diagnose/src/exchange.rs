//! Where the time of requests and responses went: to the network, to the client, to the server, or
//! to the transfer of data.
//!
//! A *turn* ends when a host sends new data that acknowledge all data of its peer: it has received
//! them and answers. From the last data of the peer to the first of the answer, a capture point sees
//! the round trip between itself and the host that answers, which the handshake and ACKs show, and the
//! time that this host thinks. So the think time of either host is the same from any capture point. Of a message that
//! waits in a queue of the path, the ACKs show when it arrived. While
//! one host sends on, `half_connection` separates pauses of its application, a closed window of
//! its peer, and the repair of losses from the transfer.

use packet::Dir;
use units::{Duration, Instant};

use crate::CapturedPacket;
use crate::capture_point::CaptureDistances;
use crate::half_connection::{FrameTime, HalfConnection};
use crate::rounds::TimeUse;

/// Longest request that a server is expected to answer, in bytes: an initial window (RFC 6928). What
/// is longer may be an upload, after which nothing is due.
const MAX_REQUEST: u64 = 14_600;

/// Shortest wait of a slow response. Linux and FreeBSD retransmit a lost response after 200 ms or so, and again
/// after twice that: it takes two losses in a row to wait as long.
pub const SLOW_RESPONSE: Duration = Duration::from_millis(500);

/// Messages with fewer bytes in both directions are keystrokes and heartbeats.
pub const MIN_MESSAGE: u64 = 100;

/// Most bytes that a server sends between a request and the wait for its response: two session tickets of
/// TLS 1.3 (OpenSSL's have 255 bytes each), settings of HTTP/2, an interim response.
pub const MAX_PRELUDE: u64 = 1_000;

/// Most bytes of the head of a message after which its host waits.
const MAX_HEAD: u64 = 2_000;
/// Shortest and longest wait between the head of a message and the rest. Events of a stream wait longer.
const HELD: core::ops::RangeInclusive<Duration> =
    Duration::from_millis(35)..=Duration::from_secs(5);

/// Shortest time without data that is no scheduling of a host: a time slice of a busy one.
const MIN_INTERRUPTION: Duration = Duration::from_millis(10);

/// What the time of a connection was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeShare {
    /// The handshake, the round trips of turns, and repairs of losses.
    Network,
    /// The client thought, or read slowly.
    Client,
    /// The server thought, or read slowly.
    Server,
    /// Data were in flight.
    Transfer,
    /// The exchange was over, or had not begun.
    Idle,
}

impl ExchangeShare {
    /// All of them, in the order of a table.
    pub const ALL: [Self; 5] =
        [Self::Network, Self::Client, Self::Server, Self::Transfer, Self::Idle];

    /// Its name: `network`, `client`, `server`, `transfer`, `idle`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Client => "client",
            Self::Server => "server",
            Self::Transfer => "transfer",
            Self::Idle => "idle",
        }
    }

    /// The share of the host that sends in this direction.
    const fn of_host(dir: Dir) -> Self {
        match dir {
            Dir::Forward => Self::Client,
            Dir::Reverse => Self::Server,
        }
    }
}

/// A span of time between two packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongestWait {
    /// Its length.
    pub length: Duration,
    /// The packets between which it was, by frame.
    pub frames: (u64, u64),
    /// Time of the second.
    pub until: Instant,
}

impl Default for LongestWait {
    fn default() -> Self {
        Self { length: Duration::ZERO, frames: (0, 0), until: Instant::ZERO }
    }
}

/// Waits of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// Their sum.
    pub total: Duration,
    /// The longest.
    pub longest: LongestWait,
}

impl Waits {
    fn add(&mut self, wait: LongestWait) {
        self.count += 1;
        self.total += wait.length;
        if wait.length > self.longest.length || self.count == 1 {
            self.longest = wait;
        }
    }

    /// Takes this out of each.
    fn shorten(&mut self, each: Duration) {
        self.total = self.total.saturating_sub(each * self.count);
        self.longest.length = self.longest.length.saturating_sub(each);
    }

    /// Adds this to each.
    fn lengthen(&mut self, each: Duration) {
        if self.count > 0 {
            self.total += each * self.count;
            self.longest.length += each;
        }
    }

    /// Their mean; `None` without any.
    pub fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| self.total / self.count)
    }
}

/// The time of a connection by what it was spent on; the parts add up to its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExchangeBudget {
    times: [Duration; 5],
    /// From the first packet to the end of the handshake; part of the network's time.
    pub handshake: Duration,
    /// Think times before the answers of each host, by [`Dir`]: before responses those of the server,
    /// before further requests those of the client.
    pub thinking: [Waits; 2],
    /// Waits of each host, by [`Dir`], after the first bytes of a message that then goes on: for permission, for its
    /// own storage.
    pub held: [Waits; 2],
    /// Round trips of turns, in time: the part of the waits for an answer in which packets travelled.
    pub turning: Duration,
    /// Time that each host paused within its messages, by [`Dir`]. Not rests longer than a timeout,
    /// nor pauses below two round trips, which a window may cause.
    pub pauses: [Duration; 2],
    /// Times that the application of each host had nothing to send within its messages, by [`Dir`], of two round
    /// trips or more: pauses, and rests longer than a timeout.
    pub interruptions: [Waits; 2],
    /// From the end of a request to the first byte of its response, as the client observes it.
    pub first_byte: Waits,
    /// Waits of [`SLOW_RESPONSE`] or more from the ACK of all data of a request, which shows that the server's
    /// host has them, to the first data of the response, one of both of [`MIN_MESSAGE`]. ACK and response take
    /// the same path to the capture point, so neither that point nor a lost request lengthens these waits.
    pub slow_responses: Waits,
    /// Those among them after the first [`MAX_PRELUDE`] bytes of the server or fewer.
    pub preluded: u64,
}

impl ExchangeBudget {
    /// Time spent on this.
    pub const fn of(&self, share: ExchangeShare) -> Duration {
        self.times[share as usize]
    }

    /// The sum.
    pub fn whole(&self) -> Duration {
        self.times.into_iter().sum()
    }

    /// Number of requests that were answered.
    pub const fn requests(&self) -> u64 {
        self.first_byte.count
    }

    /// The largest part apart from idle time; `None` if all is idle.
    pub fn largest(&self) -> Option<ExchangeShare> {
        let shares = ExchangeShare::ALL.into_iter().filter(|one| *one != ExchangeShare::Idle);
        shares.filter(|&one| !self.of(one).is_zero()).max_by_key(|&one| self.of(one))
    }

    fn add(&mut self, share: ExchangeShare, time: Duration) {
        self.times[share as usize] += time;
    }
}

/// What is known when data are captured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeStart {
    /// Time of the first packet.
    pub(crate) at: Instant,
    /// End of the handshake.
    pub(crate) opened: Option<Instant>,
    pub(crate) distances: CaptureDistances,
}

/// Follows the turns of a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExchangeLog {
    budget: ExchangeBudget,
    /// The host that sent the last data; the time up to them is accounted for.
    last: Option<(Dir, FrameTime)>,
    /// Bytes captured of each host when its last turn began.
    begun_at: [u64; 2],
    /// The wait after the head of each host's present message.
    heads: [Option<LongestWait>; 2],
    /// Bytes captured of the server at the last data of the client.
    server_before: u64,
    /// Data packets of each host so far, and its time in use: see [`PauseMark`].
    packets: [u64; 2],
    marks: [PauseMark; 2],
    /// The first FIN or RST.
    closing: Option<Instant>,
}

/// Time of a sender so far that was not spent on the transfer.
#[derive(Debug, Clone, Copy, Default)]
struct PauseMark {
    /// Its application paused, and the part of that which was shorter than a timeout.
    own: Duration,
    pauses: Duration,
    reader: Duration,
    loss: Duration,
}

impl PauseMark {
    fn of(half: &HalfConnection) -> Self {
        let spent = |what: TimeUse| half.rounds.log.spent[what as usize];
        Self {
            own: spent(TimeUse::Application) + spent(TimeUse::Idle),
            pauses: spent(TimeUse::Application),
            reader: spent(TimeUse::Reader),
            loss: spent(TimeUse::Recovery) + spent(TimeUse::Timeout),
        }
    }
}

/// The round trip between the capture point and the host that sends in this direction: the shortest of
/// the handshake, of the ACKs of this host and of its echoes of timestamps. A handshake alone may be
/// longer, as that of a busy server.
fn distance(
    dir: Dir,
    halves: &[Option<Box<HalfConnection>>; 2],
    handshake: CaptureDistances,
) -> Duration {
    let half = |dir: Dir| halves[dir as usize].as_deref();
    trip_to(dir, half(dir), half(dir.reversed()), handshake).unwrap_or_default()
}

/// The same with the data of this host, `own`, and those of the other; `None` if nothing shows it yet.
fn trip_to(
    dir: Dir,
    own: Option<&HalfConnection>,
    peer: Option<&HalfConnection>,
    handshake: CaptureDistances,
) -> Option<Duration> {
    let acks = peer.and_then(|peer| peer.rtt.shortest_to_receiver());
    let echoes = own.and_then(|own| own.rtt.shortest_to_sender());
    [handshake.rtt_to_sender(dir), acks, echoes].into_iter().flatten().min()
}

impl ExchangeLog {
    /// Records the first FIN or RST.
    pub(crate) fn closing(&mut self, at: Instant) {
        self.closing.get_or_insert(at);
    }

    /// Records a data packet, which its sender `own` has processed.
    pub(crate) fn data(
        &mut self,
        packet: &CapturedPacket,
        own: &HalfConnection,
        peer: Option<&HalfConnection>,
        start: ExchangeStart,
    ) {
        let dir = packet.segment.dir;
        let packets = own.packets();
        if packets == self.packets[dir as usize] {
            // A probe of the window or a keepalive.
            return;
        }
        self.packets[dir as usize] = packets;
        let (at, frame) = (packet.at, packet.frame);
        let mark = PauseMark::of(own);
        let before = core::mem::replace(&mut self.marks[dir as usize], mark);
        match self.last {
            None => self.first_data(dir, at, start),
            Some((last, since)) if last == dir => {
                let wait = at.since(since.at);
                let length = self.sent_on(dir, wait, before, mark);
                let rest = LongestWait { length, frames: (since.frame, frame), until: at };
                let head = self.turn_bytes(dir, own)
                    - u64::from(packet.segment.payload).min(self.turn_bytes(dir, own));
                if HELD.contains(&length) && (1..=MAX_HEAD).contains(&head) {
                    self.heads[dir as usize] = Some(rest);
                }
                self.check_slow_response(rest, packet, own, peer);
                if length >= (start.distances.round_trip() * 2).max(MIN_INTERRUPTION) {
                    self.budget.interruptions[dir as usize].add(rest);
                }
                let pause = (mark.pauses - before.pauses).min(wait);
                if pause >= start.distances.round_trip() * 2 {
                    self.budget.pauses[dir as usize] += pause;
                }
            }
            Some((last, since)) => {
                self.end_message(last, peer);
                let length = at.since(since.at);
                let acks_all = |peer: &HalfConnection| {
                    packet.segment.acknowledgment().is_some_and(|ack| peer.is_wholly_acked_by(ack))
                };
                if peer.is_none_or(acks_all) {
                    let wait = LongestWait { length, frames: (since.frame, frame), until: at };
                    if dir == Dir::Reverse {
                        self.budget.first_byte.add(wait);
                    }
                    let trip = trip_to(dir, Some(own), peer, start.distances);
                    let arrived = peer.map(|peer| peer.prompt_ack_here().since(since.at));
                    let travelled = arrived.zip(trip).map_or(Duration::ZERO, |(arrived, trip)| {
                        arrived.saturating_sub(trip).min(length)
                    });
                    self.budget.add(ExchangeShare::Transfer, travelled);
                    let thinks = LongestWait { length: length - travelled, ..wait };
                    self.budget.thinking[dir as usize].add(thinks);
                    self.check_slow_response(wait, packet, own, peer);
                    let payload = u64::from(packet.segment.payload);
                    self.begun_at[dir as usize] = own.bytes.captured.saturating_sub(payload);
                } else {
                    // Both hosts send at once.
                    self.budget.add(ExchangeShare::Transfer, length);
                }
            }
        }
        if dir == Dir::Forward {
            self.server_before = peer.map_or(0, |server| server.bytes.captured);
        }
        self.last = Some((dir, FrameTime { at, frame }));
    }

    /// Bytes of the present message of a host.
    fn turn_bytes(&self, dir: Dir, own: &HalfConnection) -> u64 {
        own.bytes.captured.saturating_sub(self.begun_at[dir as usize])
    }

    /// The message of a host is complete: if its head was a small part of it, the wait after that was one within it.
    fn end_message(&mut self, dir: Dir, own: Option<&HalfConnection>) {
        let head = self.heads[dir as usize].take();
        let is_message = own.is_some_and(|own| self.turn_bytes(dir, own) > MAX_HEAD);
        if let Some(head) = head.filter(|_| is_message) {
            self.budget.held[dir as usize].add(head);
        }
    }

    /// Records the `wait` before data of the server if it is that for a slow response.
    fn check_slow_response(
        &mut self,
        wait: LongestWait,
        packet: &CapturedPacket,
        server: &HalfConnection,
        client: Option<&HalfConnection>,
    ) {
        let Some(client) = client.filter(|_| packet.segment.dir == Dir::Reverse) else { return };
        let payload = u64::from(packet.segment.payload);
        let sent = server.bytes.captured.saturating_sub(payload);
        let prelude = sent.saturating_sub(self.server_before);
        let acked = client.all_acked_here();
        let length = acked.map_or(Duration::ZERO, |acked| wait.until.since(acked).min(wait.length));
        let request = client.bytes.captured.saturating_sub(self.begun_at[Dir::Forward as usize]);
        let is_message = request.max(payload) >= MIN_MESSAGE;
        // After a FIN there is no request, and a gap in the numbers of packets may have been the response.
        let is_doubtful = self.closing.is_some() || server.is_preceded_by_missing();
        if length >= SLOW_RESPONSE && is_message && !is_doubtful && prelude <= MAX_PRELUDE {
            self.budget.preluded += u64::from(prelude > 0);
            self.budget.slow_responses.add(LongestWait { length, ..wait });
        }
    }

    fn first_data(&mut self, dir: Dir, at: Instant, start: ExchangeStart) {
        let Some(opened) = start.opened.map(|opened| opened.min(at)) else {
            return self.budget.add(ExchangeShare::Idle, at.since(start.at));
        };
        self.budget.handshake = opened.since(start.at);
        let wait = at.since(opened);
        let travel = if dir == Dir::Forward { None } else { start.distances.to_server };
        let travel = travel.unwrap_or_default().min(wait);
        self.budget.add(ExchangeShare::Network, self.budget.handshake + travel);
        self.budget.add(ExchangeShare::of_host(dir), wait - travel);
    }

    /// Accounts for the time before more data of the same host; returns the part that it paused.
    fn sent_on(&mut self, dir: Dir, wait: Duration, before: PauseMark, now: PauseMark) -> Duration {
        let loss = (now.loss - before.loss).min(wait);
        let reader = (now.reader - before.reader).min(wait - loss);
        let own = (now.own - before.own).min(wait - loss - reader);
        self.budget.add(ExchangeShare::Network, loss);
        self.budget.add(ExchangeShare::of_host(dir.reversed()), reader);
        self.budget.add(ExchangeShare::of_host(dir), own);
        self.budget.add(ExchangeShare::Transfer, wait - loss - reader - own);
        own
    }

    /// Ends the log at `end`, the last packet; `halves` are finished. `None` without data.
    pub(crate) fn finish(
        mut self,
        halves: &[Option<Box<HalfConnection>>; 2],
        handshake: CaptureDistances,
        end: Instant,
    ) -> Option<ExchangeBudget> {
        let (dir, FrameTime { at: since, .. }) = self.last?;
        let half = halves[dir as usize].as_deref()?;
        self.end_message(dir, halves[dir as usize].as_deref());
        let end = end.max(since);
        let closing = self.closing.map_or(end, |at| at.clamp(since, end));
        let acked = half.all_acked().map_or(closing, |at| at.clamp(since, closing));
        let mark = PauseMark::of(half);
        let before = self.marks[dir as usize];
        let loss = (mark.loss - before.loss).min(acked.since(since));
        self.budget.add(ExchangeShare::Network, loss);
        self.budget.add(ExchangeShare::Transfer, acked.since(since) - loss);
        let is_request = dir == Dir::Forward
            && half.bytes.captured.saturating_sub(self.begun_at[dir as usize]) <= MAX_REQUEST;
        let waits_for = if is_request { ExchangeShare::Server } else { ExchangeShare::Idle };
        self.budget.add(waits_for, closing.since(acked));
        self.budget.add(ExchangeShare::Idle, end.since(closing));
        let travel = [Dir::Forward, Dir::Reverse].map(|dir| distance(dir, halves, handshake));
        self.budget.first_byte.lengthen(travel[Dir::Forward as usize]);
        for dir in [Dir::Forward, Dir::Reverse] {
            let waits = &mut self.budget.thinking[dir as usize];
            let waited = waits.total;
            waits.shorten(travel[dir as usize]);
            let think = waits.total;
            self.budget.add(ExchangeShare::of_host(dir), think);
            self.budget.add(ExchangeShare::Network, waited - think);
            self.budget.turning += waited - think;
        }
        Some(self.budget)
    }
}
