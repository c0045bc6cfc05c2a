//! A client and a server joined by a path: a line of a rate each way, a delay, and a rule by which
//! packets are lost. Time is virtual; equal moments keep their order.

use std::collections::BTreeMap;

use machine::{Cx, Endpoint as _, Signal};
use packet::IpVersion;
use record::{Event, Recorder, SenderState, Who};
use units::{Duration, FlowId, Instant, Rate};

use crate::congestion_control::CongestionControl;
use crate::endpoint::{Config, Endpoint, Side};
use crate::packet::Packet;
use crate::profile::Profile;

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// What happened, with the state after it where there is one.
#[derive(Debug, Default)]
pub(super) struct Tape(pub(super) Vec<(Instant, Event, Option<SenderState>)>);

impl Recorder for Tape {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: Who, event: Event, state: Option<&SenderState>) {
        self.0.push((at, event, state.copied()));
    }
}

/// A packet that was sent, and its fate.
#[derive(Debug, Clone)]
pub(super) struct Sending {
    pub(super) at: Instant,
    pub(super) from: usize,
    pub(super) packet: Packet,
    pub(super) lost: bool,
}

#[derive(Debug)]
enum Happening {
    Arrive(usize, Packet),
    Timer(usize),
}

type LossRule = Box<dyn FnMut(usize, &Packet) -> bool>;

pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) ends: [Endpoint; 2],
    pub(super) tapes: [Tape; 2],
    /// Every packet that left, if it is kept.
    pub(super) sent: Vec<Sending>,
    pub(super) keep: bool,
    pub(super) signals: [Vec<Signal>; 2],
    pub(super) delay: Duration,
    rate: Option<Rate>,
    free_at: [Instant; 2],
    carry: [u64; 2],
    loses: LossRule,
    /// The server's application reads at once.
    pub(super) reads: bool,
    calendar: BTreeMap<(Instant, u64), Happening>,
    entries: u64,
}

impl Pair {
    pub(super) fn new(client: Profile, server: Profile, delay: Duration) -> Self {
        Self::with_cc(client, server, delay, CongestionControl::NewReno)
    }

    pub(super) fn with_cc(
        client: Profile,
        server: Profile,
        delay: Duration,
        cc: CongestionControl,
    ) -> Self {
        let end = |side, own: Profile, peer: &Profile| {
            Endpoint::new(Config {
                profile: own,
                peer: peer.parameters(),
                handshake: client.handshake,
                cc,
                side,
                flow: FlowId(0),
                ip: IpVersion::V4,
            })
        };
        Self {
            now: Instant::ZERO,
            ends: [end(Side::Client, client, &server), end(Side::Server, server, &client)],
            tapes: Default::default(),
            sent: Vec::new(),
            keep: true,
            signals: Default::default(),
            delay,
            rate: None,
            free_at: [Instant::ZERO; 2],
            carry: [0; 2],
            loses: Box::new(|_, _| false),
            reads: true,
            calendar: BTreeMap::new(),
            entries: 0,
        }
    }

    pub(super) fn rate(mut self, bits: u64) -> Self {
        self.rate = Rate::from_bits_per_second(bits);
        self
    }

    /// `rule` is asked for every packet: who sent it, and what it is.
    pub(super) fn losing(mut self, rule: impl FnMut(usize, &Packet) -> bool + 'static) -> Self {
        self.loses = Box::new(rule);
        self
    }

    pub(super) fn act<T>(
        &mut self,
        side: usize,
        what: impl FnOnce(&mut Endpoint, &mut Cx<'_, Tape>) -> T,
    ) -> T {
        let mut cx = Cx { now: self.now, who: Who::default(), rec: &mut self.tapes[side] };
        let answer = what(&mut self.ends[side], &mut cx);
        self.serve(side);
        answer
    }

    pub(super) fn open(&mut self) {
        self.act(CLIENT, |client, cx| client.open(cx));
    }

    /// Both sides are established.
    pub(super) fn connected(&mut self) {
        self.open();
        self.run_for(Duration::from_secs(2));
        assert!(self.ends.iter().all(Endpoint::is_open));
    }

    pub(super) fn write(&mut self, side: usize, bytes: u64) -> u64 {
        self.act(side, |end, cx| end.write(cx, bytes))
    }

    pub(super) fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        while let Some((&key, _)) = self.calendar.first_key_value() {
            if key.0 > end {
                break;
            }
            let Some(happening) = self.calendar.remove(&key) else { break };
            assert!(self.entries < 3_000_000, "no end at {:?}", key.0);
            self.now = key.0;
            match happening {
                Happening::Arrive(side, packet) => {
                    self.act(side, |end, cx| end.handle_segment(cx, &packet));
                }
                Happening::Timer(side) => {
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
        self.tapes[side].0.iter().map(|&(_, event, _)| event)
    }

    fn push(&mut self, at: Instant, happening: Happening) {
        self.calendar.insert((at, self.entries), happening);
        self.entries += 1;
    }

    fn serve(&mut self, side: usize) {
        for round in 0.. {
            assert!(round < 1_000_000, "time stands still at {:?}", self.now);
            let mut packet = Packet::default();
            let mut cx = Cx { now: self.now, who: Who::default(), rec: &mut self.tapes[side] };
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
            self.push(at.max(self.now), Happening::Timer(side));
        }
    }

    fn depart(&mut self, side: usize, packet: Packet) {
        let lost = (self.loses)(side, &packet);
        if self.keep {
            self.sent.push(Sending { at: self.now, from: side, packet: packet.clone(), lost });
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
        self.push(begins + takes + self.delay, Happening::Arrive(1 - side, packet));
    }
}
