//! A client and a server joined by a path: a rate in each direction, a delay, and a loss filter.
//! Time is virtual; simultaneous events keep their order.

use std::collections::BTreeMap;

use machine::{Cx, Endpoint as _, Signal};
use packet::IpVersion;
use record::{Event, EventSource, Recorder, SenderState};
use units::{Duration, FlowId, Instant, RandomStream, Rate};

use crate::congestion_control::CongestionControl;
use crate::endpoint::{QuicConfig, QuicEndpoint, QuicSide};
use crate::packet::QuicPacket;
use crate::profile::QuicProfile;

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// The recorded events, each with the state after it where there is one.
#[derive(Debug, Default)]
pub(super) struct EventTrace(pub(super) Vec<(Instant, Event, Option<SenderState>)>);

impl Recorder for EventTrace {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, state: Option<&SenderState>) {
        self.0.push((at, event, state.copied()));
    }
}

/// A sent packet and whether it is lost.
#[derive(Debug, Clone)]
pub(super) struct TracedPacket {
    pub(super) at: Instant,
    pub(super) from: usize,
    pub(super) packet: QuicPacket,
    pub(super) lost: bool,
}

#[derive(Debug)]
enum PairEvent {
    Arrive(usize, QuicPacket),
    Timer(usize),
}

type LossFilter = Box<dyn FnMut(usize, &QuicPacket) -> bool>;

pub(super) struct QuicPair {
    pub(super) now: Instant,
    pub(super) ends: [QuicEndpoint; 2],
    pub(super) traces: [EventTrace; 2],
    /// Every packet sent, if `keep` is set.
    pub(super) sent: Vec<TracedPacket>,
    pub(super) keep: bool,
    pub(super) signals: [Vec<Signal>; 2],
    pub(super) delay: Duration,
    rate: Option<Rate>,
    free_at: [Instant; 2],
    carry: [u64; 2],
    loses: LossFilter,
    /// Numbers of the client's packets that the path marks CE.
    pub(super) marks: Option<core::ops::RangeInclusive<u64>>,
    /// The applications read at once.
    pub(super) reads: bool,
    event_queue: BTreeMap<(Instant, u64), PairEvent>,
    entries: u64,
}

impl QuicPair {
    pub(super) fn new(client: QuicProfile, server: QuicProfile, delay: Duration) -> Self {
        Self::with_cc(client, server, delay, CongestionControl::NewReno)
    }

    pub(super) fn with_cc(
        client: QuicProfile,
        server: QuicProfile,
        delay: Duration,
        cc: CongestionControl,
    ) -> Self {
        let end = |side, own: QuicProfile, peer: &QuicProfile| {
            QuicEndpoint::new(QuicConfig {
                profile: own,
                peer: peer.parameters(),
                handshake: client.handshake,
                cc,
                side,
                flow: FlowId(0),
                ip: IpVersion::V4,
                draws: RandomStream::named(1, "pair", "controller"),
            })
        };
        Self {
            now: Instant::ZERO,
            ends: [end(QuicSide::Client, client, &server), end(QuicSide::Server, server, &client)],
            traces: Default::default(),
            sent: Vec::new(),
            keep: true,
            signals: Default::default(),
            delay,
            rate: None,
            free_at: [Instant::ZERO; 2],
            carry: [0; 2],
            loses: Box::new(|_, _| false),
            marks: None,
            reads: true,
            event_queue: BTreeMap::new(),
            entries: 0,
        }
    }

    pub(super) fn rate(mut self, bits: u64) -> Self {
        self.rate = Rate::from_bits_per_second(bits);
        self
    }

    /// `rule` decides on the loss of every packet, given its sender.
    pub(super) fn losing(mut self, rule: impl FnMut(usize, &QuicPacket) -> bool + 'static) -> Self {
        self.loses = Box::new(rule);
        self
    }

    pub(super) fn act<T>(
        &mut self,
        side: usize,
        what: impl FnOnce(&mut QuicEndpoint, &mut Cx<'_, EventTrace>) -> T,
    ) -> T {
        let mut cx =
            Cx { now: self.now, source: EventSource::default(), rec: &mut self.traces[side] };
        let answer = what(&mut self.ends[side], &mut cx);
        self.serve(side);
        answer
    }

    pub(super) fn open(&mut self) {
        self.act(CLIENT, |client, cx| client.open(cx));
    }

    /// Opens the connection and runs until both endpoints are established.
    pub(super) fn connected(&mut self) {
        self.open();
        self.run_for(Duration::from_secs(2));
        assert!(self.ends.iter().all(QuicEndpoint::is_open));
    }

    pub(super) fn write(&mut self, side: usize, bytes: u64) -> u64 {
        self.act(side, |end, cx| end.write(cx, bytes))
    }

    pub(super) fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        while let Some((&key, _)) = self.event_queue.first_key_value() {
            if key.0 > end {
                break;
            }
            let Some(happening) = self.event_queue.remove(&key) else { break };
            assert!(self.entries < 3_000_000, "no end at {:?}", key.0);
            self.now = key.0;
            match happening {
                PairEvent::Arrive(side, packet) => {
                    self.act(side, |end, cx| end.handle_segment(cx, &packet));
                }
                PairEvent::Timer(side) => {
                    self.act(side, |end, cx| {
                        end.handle_timeout(cx);
                        let next = end.poll_timeout();
                        assert!(next.is_none_or(|(at, _)| at > cx.now), "{next:?}");
                    });
                }
            }
        }
        self.now = end;
    }

    pub(super) fn events(&self, side: usize) -> impl Iterator<Item = Event> + '_ {
        self.traces[side].0.iter().map(|&(_, event, _)| event)
    }

    fn push(&mut self, at: Instant, happening: PairEvent) {
        self.event_queue.insert((at, self.entries), happening);
        self.entries += 1;
    }

    fn serve(&mut self, side: usize) {
        for round in 0.. {
            assert!(round < 1_000_000, "time does not advance at {:?}", self.now);
            let mut packet = QuicPacket::default();
            let mut cx =
                Cx { now: self.now, source: EventSource::default(), rec: &mut self.traces[side] };
            if self.ends[side].poll_transmit(&mut cx, &mut packet).is_ok() {
                self.depart(side, packet);
                continue;
            }
            let Some(signal) = self.ends[side].poll_signal() else { break };
            self.signals[side].push(signal);
            if signal == Signal::Readable && self.reads {
                self.ends[side].read_up_to(&mut cx, u64::MAX);
            }
        }
        if let Some((at, _)) = self.ends[side].poll_timeout() {
            self.push(at.max(self.now), PairEvent::Timer(side));
        }
    }

    fn depart(&mut self, side: usize, packet: QuicPacket) {
        let lost = (self.loses)(side, &packet);
        if self.keep {
            self.sent.push(TracedPacket { at: self.now, from: side, packet: packet.clone(), lost });
        }
        if lost {
            return;
        }
        let begins = self.now.max(self.free_at[side]);
        let takes = match self.rate {
            Some(rate) => rate.time_to_send(packet.wire_len(), &mut self.carry[side]),
            None => Duration::ZERO,
        };
        self.free_at[side] = begins + takes;
        let mut packet = packet;
        let marks = self.marks.as_ref().filter(|_| side == CLIENT && packet.ecn != 0);
        if marks.is_some_and(|marks| marks.contains(&packet.number)) {
            packet.ecn = packet::ECN_CE;
        }
        self.push(begins + takes + self.delay, PairEvent::Arrive(1 - side, packet));
    }
}
