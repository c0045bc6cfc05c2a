//! Two endpoints with a road between them that a test may bend.

use machine::{Cx, Endpoint as _, Signal};
use packet::{Dir, IpVersion, Segment};
use record::{Off, Purpose, Who};
use units::{Duration, FlowId, Instant, SeqNum, Stream};

use crate::profile::Profile;
use crate::{Config, Endpoint, Side};

/// One way of the road.
pub(crate) const ONE_WAY: Duration = Duration::from_millis(50);

pub(crate) fn config(profile: &str, side: Side) -> Config {
    let profile = Profile::named(profile).unwrap();
    let linux = profile.name.starts_with("linux");
    Config {
        profile: profile.into(),
        algorithm: if linux { cc::Algorithm::Reno } else { cc::Algorithm::NewReno },
        side,
        flow: FlowId(0),
        ip: IpVersion::V4,
        draws: Stream::named(1, "pair", "controller"),
        isn: SeqNum(if side == Side::Client { 1_000 } else { 2_000_000_000 }),
        timestamp: 100,
        clock_phase: Duration::ZERO,
        tso: true,
        nodelay: false,
        keepalive: None,
    }
}

/// Two endpoints and what is on its way between them.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    /// Arrival time and segment, in order of sending.
    flying: Vec<(Instant, Segment)>,
    /// All that was ever sent, lost or not.
    pub(crate) log: Vec<Segment>,
    /// When each of them was sent.
    pub(crate) times: Vec<Instant>,
    /// Says which of them (by number in `log`) are lost.
    pub(crate) lose: fn(usize, &Segment) -> bool,
    /// Number in `log` from which on the first capable segment meets congestion (ECN CE).
    pub(crate) mark: Option<usize>,
    /// Bytes the client's application still wants to write.
    pub(crate) to_write: u64,
    /// Close once all is written.
    pub(crate) close_after: bool,
    /// Does the server's application read what comes?
    pub(crate) reads: bool,
    /// Bytes the server's application has read.
    pub(crate) read: u64,
    pub(crate) signals: Vec<(Side, Signal)>,
}

impl Pair {
    pub(crate) fn new(client: Config, server: Config) -> Self {
        Self {
            now: Instant::ZERO,
            client: Endpoint::new(client),
            server: Endpoint::new(server),
            flying: Vec::new(),
            log: Vec::new(),
            times: Vec::new(),
            lose: |_, _| false,
            mark: None,
            to_write: 0,
            close_after: false,
            reads: true,
            read: 0,
            signals: Vec::new(),
        }
    }

    pub(crate) fn of(client: &str, server: &str) -> Self {
        Self::new(config(client, Side::Client), config(server, Side::Server))
    }

    /// Opens, then runs until nothing happens any more or `until` is reached.
    pub(crate) fn run(&mut self, until: Duration) {
        if self.log.is_empty() {
            self.client.open();
        }
        self.serve();
        let end = Instant::ZERO + until;
        while let Some(next) = self.next().filter(|&at| at <= end) {
            self.now = next;
            if let Some(place) = self.flying.iter().position(|&(at, _)| at <= next) {
                let (_, segment) = self.flying.remove(place);
                self.arrive(&segment);
            }
            for side in [Side::Client, Side::Server] {
                self.with(side, |cx, end| end.handle_timeout(cx));
            }
            self.serve();
        }
    }

    /// A segment reaches the end it is for.
    pub(crate) fn arrive(&mut self, segment: &Segment) {
        let side = if segment.dir == Dir::Forward { Side::Server } else { Side::Client };
        self.with(side, |cx, end| end.handle_segment(cx, segment));
    }

    /// A segment from the server that was never sent: numbers relative to both streams.
    pub(crate) fn forge(&self, flags: packet::Flags, seq: i64, ack: i64) -> Segment {
        let of = |dir| self.log.iter().rfind(|s| s.dir == dir).and_then(|s| s.timestamps);
        let (ours, theirs) = (of(Dir::Forward), of(Dir::Reverse).or(of(Dir::Forward)));
        Segment {
            dir: Dir::Reverse,
            flags,
            seq: SeqNum(2_000_000_000_u32.wrapping_add(seq as u32)),
            ack: SeqNum(1_000_u32.wrapping_add(ack as u32)),
            window: 1_000,
            timestamps: ours
                .zip(theirs)
                .map(|(ours, theirs)| packet::Timestamps { val: theirs.val, ecr: ours.val }),
            ..Segment::default()
        }
    }

    /// The forged segment arrives at the client; returns what the client sends in answer.
    pub(crate) fn hear(&mut self, segment: &Segment) -> Vec<Segment> {
        let before = self.log.len();
        self.arrive(segment);
        self.serve();
        self.log[before..].to_vec()
    }

    fn next(&self) -> Option<Instant> {
        let timers = [&self.client, &self.server].into_iter().filter_map(|end| {
            // The last state of a connection is waited for by nobody here.
            end.poll_timeout().filter(|&(_, why)| why != Purpose::TimeWait).map(|(at, _)| at)
        });
        timers.chain(self.flying.iter().map(|&(at, _)| at)).min()
    }

    pub(crate) fn with<T>(
        &mut self,
        side: Side,
        what: impl FnOnce(&mut Cx<'_, Off>, &mut Endpoint) -> T,
    ) -> T {
        let mut cx = Cx { now: self.now, who: Who::default(), rec: &mut Off };
        let end = match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        let answer = what(&mut cx, end);
        // Wherever anything is said to it: to be packed and woken must make no difference.
        if let Some(packed) = end.pack() {
            *end = packed.wake();
        }
        answer
    }

    /// Sends what both ends want to send and lets both applications act.
    pub(crate) fn serve(&mut self) {
        for side in [Side::Client, Side::Server] {
            self.drain(side);
            while let Some(signal) = self.with(side, |_, end| end.poll_signal()) {
                self.signals.push((side, signal));
                if side == Side::Server && signal == Signal::Readable && self.reads {
                    self.read_all();
                }
                if side == Side::Client {
                    self.write();
                }
            }
        }
    }

    /// The server's application reads all there is, and closes at the end.
    pub(crate) fn read_all(&mut self) {
        self.read += self.with(Side::Server, |cx, end| end.read(cx));
        if self.server.at_end() {
            self.server.close();
        }
        self.drain(Side::Server);
    }

    fn write(&mut self) {
        loop {
            let offered = self.to_write;
            let taken = self.with(Side::Client, |cx, end| end.write(cx, offered));
            if taken == 0 {
                break;
            }
            self.to_write -= taken;
            self.drain(Side::Client);
        }
        if self.to_write == 0 && self.close_after {
            self.client.close();
            self.drain(Side::Client);
        }
    }

    fn drain(&mut self, side: Side) {
        let mut slot = Segment::default();
        while self.with(side, |cx, end| end.poll_transmit(cx, &mut slot)).is_ok() {
            let number = self.log.len();
            let lost = (self.lose)(number, &slot);
            self.log.push(slot);
            self.times.push(self.now);
            if slot.ecn != 0 && self.mark.is_some_and(|from| number >= from) {
                self.mark = None;
                slot.ecn = 3;
            }
            if !lost {
                self.flying.push((self.now + ONE_WAY, slot));
            }
        }
    }

    /// Data segments the client has sent.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Segment> {
        self.log.iter().filter(|s| s.dir == Dir::Forward && s.payload > 0)
    }

    /// Bare acknowledgments the server has sent, the handshake's not counted.
    pub(crate) fn acks(&self) -> impl Iterator<Item = &Segment> {
        self.log.iter().filter(|s| s.dir == Dir::Reverse && s.syn_options().is_none())
    }
}
