//! Two endpoints and the path between them, which a test may disturb.

use machine::{Cx, Endpoint as _, Signal};
use packet::{Dir, IpVersion, Segment};
use record::{EventSource, NullRecorder, Purpose};
use units::{Duration, FlowId, Instant, RandomStream, SeqNum};

use crate::profile::TcpProfile;
use crate::{TcpConfig, TcpEndpoint, TcpSide};

/// One-way delay of the path.
pub(crate) const ONE_WAY: Duration = Duration::from_millis(50);

pub(crate) fn config(profile: &str, side: TcpSide) -> TcpConfig {
    let profile = TcpProfile::named(profile).unwrap();
    let linux = profile.name.starts_with("linux");
    TcpConfig {
        profile: profile.into(),
        algorithm: if linux { cc::Algorithm::Reno } else { cc::Algorithm::NewReno },
        side,
        flow: FlowId(0),
        ip: IpVersion::V4,
        draws: RandomStream::named(1, "pair", "controller"),
        isn: SeqNum(if side == TcpSide::Client { 1_000 } else { 2_000_000_000 }),
        timestamp: 100,
        clock_phase: Duration::ZERO,
        tso: true,
        nodelay: false,
        keepalive: None,
    }
}

/// Two endpoints and the segments in flight between them.
pub(crate) struct TcpPair {
    pub(crate) now: Instant,
    pub(crate) client: TcpEndpoint,
    pub(crate) server: TcpEndpoint,
    /// Segments in flight with their arrival times, in the order sent.
    flying: Vec<(Instant, Segment)>,
    /// All segments sent, lost or not.
    pub(crate) log: Vec<Segment>,
    /// Transmission times of the segments in `log`.
    pub(crate) times: Vec<Instant>,
    /// Decides which segments (by number in `log`) are lost.
    pub(crate) lose: fn(usize, &Segment) -> bool,
    /// Number in `log` from which on the first ECN-capable segment is marked CE.
    pub(crate) mark: Option<usize>,
    /// Bytes the client's application still wants to write.
    pub(crate) to_write: u64,
    /// Close once all is written.
    pub(crate) close_after: bool,
    /// Does the server's application read data on arrival?
    pub(crate) reads: bool,
    /// Bytes the server's application has read.
    pub(crate) read: u64,
    pub(crate) signals: Vec<(TcpSide, Signal)>,
}

impl TcpPair {
    pub(crate) fn new(client: TcpConfig, server: TcpConfig) -> Self {
        Self {
            now: Instant::ZERO,
            client: TcpEndpoint::new(client),
            server: TcpEndpoint::new(server),
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
        Self::new(config(client, TcpSide::Client), config(server, TcpSide::Server))
    }

    /// Opens the connection, then runs until no event is left or `until` is reached.
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
            for side in [TcpSide::Client, TcpSide::Server] {
                self.with(side, |cx, end| end.handle_timeout(cx));
            }
            self.serve();
        }
    }

    /// Delivers a segment to its destination.
    pub(crate) fn arrive(&mut self, segment: &Segment) {
        let side = if segment.dir == Dir::Forward { TcpSide::Server } else { TcpSide::Client };
        self.with(side, |cx, end| end.handle_segment(cx, segment));
    }

    /// Forges a segment from the server; numbers are relative to both streams.
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

    /// Delivers a segment to the client; returns the segments that the client sends in response.
    pub(crate) fn hear(&mut self, segment: &Segment) -> Vec<Segment> {
        let before = self.log.len();
        self.arrive(segment);
        self.serve();
        self.log[before..].to_vec()
    }

    fn next(&self) -> Option<Instant> {
        let timers = [&self.client, &self.server].into_iter().filter_map(|end| {
            // No test waits for the end of TIME-WAIT.
            end.poll_timeout().filter(|&(_, why)| why != Purpose::TimeWait).map(|(at, _)| at)
        });
        timers.chain(self.flying.iter().map(|&(at, _)| at)).min()
    }

    pub(crate) fn with<T>(
        &mut self,
        side: TcpSide,
        what: impl FnOnce(&mut Cx<'_, NullRecorder>, &mut TcpEndpoint) -> T,
    ) -> T {
        let mut cx = Cx { now: self.now, source: EventSource::default(), rec: &mut NullRecorder };
        let end = match side {
            TcpSide::Client => &mut self.client,
            TcpSide::Server => &mut self.server,
        };
        let answer = what(&mut cx, end);
        // After every call: packing and unpacking must make no difference.
        if let Some(packed) = end.pack() {
            *end = packed.wake();
        }
        answer
    }

    /// Sends the pending segments of both endpoints and lets both applications act.
    pub(crate) fn serve(&mut self) {
        for side in [TcpSide::Client, TcpSide::Server] {
            self.drain(side);
            while let Some(signal) = self.with(side, |_, end| end.poll_signal()) {
                self.signals.push((side, signal));
                if side == TcpSide::Server && signal == Signal::Readable && self.reads {
                    self.read_all();
                }
                if side == TcpSide::Client {
                    self.write();
                }
            }
        }
    }

    /// The server's application reads all there is, and closes at the end.
    pub(crate) fn read_all(&mut self) {
        self.read += self.with(TcpSide::Server, |cx, end| end.read(cx));
        if self.server.at_end() {
            self.server.close();
        }
        self.drain(TcpSide::Server);
    }

    fn write(&mut self) {
        loop {
            let offered = self.to_write;
            let taken = self.with(TcpSide::Client, |cx, end| end.write(cx, offered));
            if taken == 0 {
                break;
            }
            self.to_write -= taken;
            self.drain(TcpSide::Client);
        }
        if self.to_write == 0 && self.close_after {
            self.client.close();
            self.drain(TcpSide::Client);
        }
    }

    fn drain(&mut self, side: TcpSide) {
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

    /// Data segments sent by the client.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Segment> {
        self.log.iter().filter(|s| s.dir == Dir::Forward && s.payload > 0)
    }

    /// Segments sent by the server, the handshake's not counted.
    pub(crate) fn acks(&self) -> impl Iterator<Item = &Segment> {
        self.log.iter().filter(|s| s.dir == Dir::Reverse && s.syn_options().is_none())
    }
}
