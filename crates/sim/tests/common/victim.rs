//! An endpoint that is told anything at any time, and what is looked at in all it says.

#![allow(dead_code, reason = "each test uses its own part")]

use machine::{Cx, Endpoint as _};
use packet::{Dir, Flags, IpVersion, Options, Segment, SynOptions, Timestamps};
use record::{Off, Who};
use tcp::{Config, Endpoint, Keepalive, Side, State};
use units::{Duration, FlowId, Instant, SeqNum, Stream};

use super::common::{host, tcp, tcp_of};

/// Initial sequence number of the endpoint, near the end of the circle.
const ISN: u32 = 0xffff_f000;
/// That of its peer.
const PEER: u32 = 0xffff_ff00;
/// More than any call may send at once: the largest send buffer in segments of one byte is not
/// reached, since the peer's window bounds what goes.
const MOST_AT_ONCE: u32 = 100_000;

/// A segment of the peer, with numbers relative to what would be right.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) flags: u8,
    pub(crate) seq: i64,
    pub(crate) ack: i64,
    pub(crate) payload: u32,
    pub(crate) window: u16,
    pub(crate) stamps: Option<(u32, u32)>,
    pub(crate) options: Options,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Hear(Word),
    Wait(Duration),
    Write(u64),
    Read,
    Close,
}

pub(crate) struct Victim {
    pub(crate) tcp: Endpoint,
    now: Instant,
    side: Side,
    wrote: u64,
    read: u64,
    /// Last ACK number and right edge it sent, as offsets; `None` before it knows its peer.
    acked: Option<(u64, u64)>,
    /// End of what it sent, and in how many segments.
    sent: u32,
    pub(crate) segments: u64,
    scale: (Option<u8>, Option<u8>),
}

fn ahead(number: u32, of: u32) -> i64 {
    i64::from(number.wrapping_sub(of) as i32)
}

impl Victim {
    pub(crate) fn new(profile: &str, side: Side, mtu: u32, keepalive: bool) -> Self {
        let mut host = host("victim", profile);
        tcp(&mut host).profile.mtu = mtu;
        let stack = tcp_of(&host);
        let tcp = Endpoint::new(Config {
            profile: stack.profile.clone().into(),
            algorithm: stack.cc,
            side,
            flow: FlowId(0),
            ip: IpVersion::V4,
            draws: Stream::named(1, "victim", "controller"),
            isn: SeqNum(ISN),
            timestamp: 7,
            clock_phase: Duration::ZERO,
            tso: true,
            nodelay: false,
            keepalive: keepalive.then_some(Keepalive {
                idle: Duration::from_secs(10),
                interval: Duration::from_secs(1),
                count: 3,
            }),
        });
        let now = Instant::ZERO;
        let mut victim = Self {
            tcp,
            now,
            side,
            wrote: 0,
            read: 0,
            acked: None,
            sent: ISN,
            segments: 0,
            scale: (None, None),
        };
        if side == Side::Client {
            victim.tcp.open();
        }
        victim.settle();
        victim
    }

    pub(crate) fn with<T>(&mut self, what: impl FnOnce(&mut Endpoint, &mut Cx<'_, Off>) -> T) -> T {
        let mut cx = Cx { now: self.now, who: Who::default(), rec: &mut Off };
        what(&mut self.tcp, &mut cx)
    }

    /// Drains what it sends and looks at every segment.
    pub(crate) fn settle(&mut self) {
        let mut slot = Segment::default();
        let mut count = 0;
        while self.with(|tcp, cx| tcp.poll_transmit(cx, &mut slot)).is_ok() {
            self.look(&slot);
            count += 1;
            assert!(count < MOST_AT_ONCE, "it sends without end");
        }
        while self.tcp.poll_signal().is_some() {}
    }

    fn look(&mut self, s: &Segment) {
        self.segments += 1;
        if s.flags.has(Flags::RST) {
            // The answer to what belongs to no connection has numbers of its own.
            return;
        }
        let data = u64::from(s.payload);
        let first = ahead(s.seq.0, ISN);
        assert!(first >= 0 && first as u64 + data <= self.wrote + 2, "sent what was not written");
        let end = s.seq.0.wrapping_add(s.seq_len());
        if ahead(end, self.sent) > 0 {
            self.sent = end;
        }
        if let Some(syn) = s.syn_options() {
            self.scale.0 = syn.window_scale;
        }
        if !s.flags.has(Flags::ACK) {
            return;
        }
        let scaled = s.syn_options().is_none() && self.scale.1.is_some();
        let scale = if scaled { self.scale.0.unwrap_or(0) } else { 0 };
        let ack = ahead(s.ack.0, PEER);
        assert!(ack >= 1, "acknowledges what is before the stream");
        let edge = ack as u64 + (u64::from(s.window) << scale);
        if let Some((last, right)) = self.acked {
            assert!(ack as u64 >= last, "the ACK number went back");
            assert!(edge >= right, "the right edge went back from {right} to {edge}");
        }
        self.acked = Some((ack as u64, edge));
    }

    fn hear(&mut self, word: &Word) {
        let (next, edge) = self.acked.unwrap_or((0, 0));
        // Relative to what it expects, or to the right edge of its window.
        let anchor = if word.seq % 2 == 0 { next } else { edge };
        let seq = PEER.wrapping_add(anchor as u32).wrapping_add((word.seq / 2) as u32);
        let first_syn = self.acked.is_none() && word.flags & 2 != 0;
        if first_syn {
            self.scale.1 = match word.options {
                Options::Syn(syn) => syn.window_scale,
                Options::None | Options::Sack(_) => None,
            };
        }
        let segment = Segment {
            dir: if self.side == Side::Client { Dir::Reverse } else { Dir::Forward },
            flags: Flags(word.flags),
            seq: if first_syn { SeqNum(PEER) } else { SeqNum(seq) },
            ack: SeqNum(self.sent.wrapping_add(word.ack as u32)),
            payload: word.payload,
            window: word.window,
            timestamps: word.stamps.map(|(val, ecr)| Timestamps { val, ecr }),
            options: word.options,
            ..Segment::default()
        };
        self.with(|tcp, cx| tcp.handle_segment(cx, &segment));
    }

    pub(crate) fn step(&mut self, step: &Step) {
        match step {
            Step::Hear(word) => self.hear(word),
            Step::Wait(span) => {
                let until = self.now + *span;
                while let Some((at, _)) = self.tcp.poll_timeout().filter(|&(at, _)| at <= until) {
                    self.now = self.now.max(at);
                    self.with(Endpoint::handle_timeout);
                    let next = self.tcp.poll_timeout();
                    assert!(next.is_none_or(|(at, _)| at > self.now), "a deadline remains");
                    self.settle();
                }
                self.now = until;
            }
            Step::Write(bytes) => self.wrote += self.with(|tcp, cx| tcp.write(cx, *bytes)),
            Step::Read => self.read += self.with(Endpoint::read),
            Step::Close => self.tcp.close(),
        }
        self.settle();
        if self.tcp.state() == State::Listen {
            // Nothing of an earlier knock is remembered.
            self.acked = None;
        }
    }

    /// All that was acknowledged has been read, the SYN and one FIN not counted, and all that was
    /// read is acknowledged in the end.
    pub(crate) fn check_delivered(&mut self) {
        self.step(&Step::Read);
        self.step(&Step::Wait(Duration::from_secs(1)));
        let Some((acked, _)) = self.acked else { return };
        let fin = acked - 1 - self.read.min(acked - 1);
        assert!(fin <= 1, "acknowledged {acked}, read {}", self.read);
        let over = self.tcp.state() == State::Closed;
        assert!(over || self.read < acked, "read {}, acknowledged {acked}", self.read);
    }
}

/// What a well-behaved peer would say next: `flags`, all numbers right.
pub(crate) fn polite(flags: Flags, payload: u32, options: Options) -> Step {
    Step::Hear(Word {
        flags: flags.0,
        seq: 0,
        ack: 0,
        payload,
        window: 60_000,
        stamps: Some((1, 7)),
        options,
    })
}

const SYN: SynOptions = SynOptions {
    mss: 1_460,
    window_scale: Some(7),
    sack_permitted: true,
    layout: packet::SynLayout::FreeBsd,
};

/// The way into each state, for the side that can be in it.
pub(crate) fn way_into(state: State) -> (Side, Vec<Step>) {
    let ack = || polite(Flags::ACK, 0, Options::default());
    let fin = || polite(Flags::ACK | Flags::FIN, 0, Options::default());
    let open = || vec![polite(Flags::SYN | Flags::ACK, 0, Options::Syn(SYN))];
    let after = |mut steps: Vec<Step>, more: &[Step]| {
        steps.extend_from_slice(more);
        (Side::Client, steps)
    };
    match state {
        State::Listen => (Side::Server, vec![]),
        State::SynSent => (Side::Client, vec![]),
        State::SynReceived => (Side::Server, vec![polite(Flags::SYN, 0, Options::Syn(SYN))]),
        State::Established => after(open(), &[]),
        State::FinWait1 => after(open(), &[Step::Close]),
        State::FinWait2 => after(open(), &[Step::Close, ack()]),
        State::Closing => {
            // The peer's FIN, which does not acknowledge ours.
            let Step::Hear(word) = fin() else { unreachable!() };
            after(open(), &[Step::Close, Step::Hear(Word { ack: -1, ..word })])
        }
        State::TimeWait => after(open(), &[Step::Close, ack(), fin()]),
        State::CloseWait => after(open(), &[fin()]),
        State::LastAck => after(open(), &[fin(), Step::Close]),
        State::Closed => after(open(), &[Step::Close, polite(Flags::RST, 0, Options::default())]),
    }
}

pub(crate) const STATES: [State; 11] = [
    State::Listen,
    State::SynSent,
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::Closing,
    State::TimeWait,
    State::CloseWait,
    State::LastAck,
    State::Closed,
];
