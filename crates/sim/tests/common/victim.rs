//! An endpoint that receives arbitrary segments, and checks of everything it sends.

#![allow(dead_code, reason = "each test uses its own part")]

use machine::{Cx, Endpoint as _};
use packet::{Dir, Flags, IpVersion, Options, Segment, SynOptions, Timestamps};
use record::{EventSource, NullRecorder};
use tcp::{Keepalive, TcpConfig, TcpEndpoint, TcpSide, TcpState};
use units::{Duration, FlowId, Instant, RandomStream, SeqNum};

use super::common::{host, tcp, tcp_of};

/// Initial sequence number of the endpoint, shortly before the wrap.
const ISN: u32 = 0xffff_f000;
/// Initial sequence number of its peer.
const PEER: u32 = 0xffff_ff00;
/// More than any call may send at once: the largest send buffer in segments of one byte is not
/// reached, since the peer's window limits the flight.
const MOST_AT_ONCE: u32 = 100_000;

/// A segment of the peer, with numbers relative to the expected ones.
#[derive(Debug, Clone)]
pub(crate) struct PeerSegment {
    pub(crate) flags: u8,
    pub(crate) seq: i64,
    pub(crate) ack: i64,
    pub(crate) payload: u32,
    pub(crate) window: u16,
    pub(crate) stamps: Option<(u32, u32)>,
    pub(crate) options: Options,
}

#[derive(Debug, Clone)]
pub(crate) enum VictimStep {
    Incoming(PeerSegment),
    Wait(Duration),
    Write(u64),
    Read,
    Close,
}

pub(crate) struct Victim {
    pub(crate) tcp: TcpEndpoint,
    now: Instant,
    side: TcpSide,
    wrote: u64,
    read: u64,
    /// Last ACK number and right edge it sent, as offsets; `None` before its peer's SYN.
    acked: Option<(u64, u64)>,
    /// Highest sequence number sent, and number of segments.
    sent: u32,
    pub(crate) segments: u64,
    scale: (Option<u8>, Option<u8>),
    linux: bool,
    scales_alone: bool,
}

fn ahead(number: u32, of: u32) -> i64 {
    i64::from(number.wrapping_sub(of) as i32)
}

impl Victim {
    pub(crate) fn new(profile: &str, side: TcpSide, mtu: u32, keepalive: bool) -> Self {
        let mut host = host("victim", profile);
        tcp(&mut host).profile.mtu = mtu;
        let stack = tcp_of(&host);
        let tcp = TcpEndpoint::new(TcpConfig {
            profile: stack.profile.clone().into(),
            algorithm: stack.cc,
            side,
            flow: FlowId(0),
            ip: IpVersion::V4,
            draws: RandomStream::named(1, "victim", "controller"),
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
            linux: profile.starts_with("linux"),
            scales_alone: false,
        };
        if side == TcpSide::Client {
            victim.tcp.open();
        }
        victim.settle();
        victim
    }

    pub(crate) fn with<T>(
        &mut self,
        what: impl FnOnce(&mut TcpEndpoint, &mut Cx<'_, NullRecorder>) -> T,
    ) -> T {
        let mut cx = Cx { now: self.now, source: EventSource::default(), rec: &mut NullRecorder };
        what(&mut self.tcp, &mut cx)
    }

    /// Drains its output and checks every segment.
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
            // The reply to a segment without a connection has numbers of its own.
            return;
        }
        let data = u64::from(s.payload);
        let first = ahead(s.seq.0, ISN);
        assert!(first >= 0 && first as u64 + data <= self.wrote + 2, "sent unwritten bytes");
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
        // In SYN-RECEIVED FreeBSD's syncache answers with the window of the SYN-ACK, not scaled
        // (syncache_respond); a peer that scales it must not rely on it.
        if s.syn_options().is_none() && self.tcp.info().state == TcpState::SynReceived {
            return;
        }
        // After crossed SYNs Linux scales its windows whatever the peer offers.
        let crossed = s.syn_options().is_some() && self.side == TcpSide::Client;
        self.scales_alone |= crossed && self.linux;
        let scaled = s.syn_options().is_none() && (self.scale.1.is_some() || self.scales_alone);
        let scale = if scaled { self.scale.0.unwrap_or(0) } else { 0 };
        let ack = ahead(s.ack.0, PEER);
        assert!(ack >= 1, "acknowledges a byte before the stream");
        let edge = ack as u64 + (u64::from(s.window) << scale);
        if let Some((last, right)) = self.acked {
            assert!(ack as u64 >= last, "the ACK number went back");
            assert!(edge >= right, "the right edge went back from {right} to {edge}");
        }
        self.acked = Some((ack as u64, edge));
    }

    fn hear(&mut self, word: &PeerSegment) {
        let (next, edge) = self.acked.unwrap_or((0, 0));
        // Relative to the expected number, or to the right edge of its window.
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
            dir: if self.side == TcpSide::Client { Dir::Reverse } else { Dir::Forward },
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

    pub(crate) fn step(&mut self, step: &VictimStep) {
        match step {
            VictimStep::Incoming(word) => self.hear(word),
            VictimStep::Wait(span) => {
                let until = self.now + *span;
                while let Some((at, _)) = self.tcp.poll_timeout().filter(|&(at, _)| at <= until) {
                    self.now = self.now.max(at);
                    self.with(TcpEndpoint::handle_timeout);
                    let next = self.tcp.poll_timeout();
                    assert!(next.is_none_or(|(at, _)| at > self.now), "a deadline remains");
                    self.settle();
                }
                self.now = until;
            }
            VictimStep::Write(bytes) => self.wrote += self.with(|tcp, cx| tcp.write(cx, *bytes)),
            VictimStep::Read => self.read += self.with(TcpEndpoint::read),
            VictimStep::Close => self.tcp.close(),
        }
        self.settle();
        if self.tcp.state() == TcpState::Listen {
            // No state of an earlier SYN remains.
            self.acked = None;
        }
    }

    /// Checks that all acknowledged bytes have been read, the SYN and one FIN not counted, and that
    /// all bytes read are acknowledged in the end.
    pub(crate) fn check_delivered(&mut self) {
        self.step(&VictimStep::Read);
        self.step(&VictimStep::Wait(Duration::from_secs(1)));
        let Some((acked, _)) = self.acked else { return };
        let fin = acked - 1 - self.read.min(acked - 1);
        assert!(fin <= 1, "acknowledged {acked}, read {}", self.read);
        let over = self.tcp.state() == TcpState::Closed;
        assert!(over || self.read < acked, "read {}, acknowledged {acked}", self.read);
    }
}

/// The next segment of a well-behaved peer: `flags`, all numbers as expected.
pub(crate) fn polite(flags: Flags, payload: u32, options: Options) -> VictimStep {
    VictimStep::Incoming(PeerSegment {
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
    fast_open: None,
    extras: packet::SynExtras::NONE,
};

/// The steps into each state, for the side that can be in it.
pub(crate) fn steps_into(state: TcpState) -> (TcpSide, Vec<VictimStep>) {
    let ack = || polite(Flags::ACK, 0, Options::default());
    let fin = || polite(Flags::ACK | Flags::FIN, 0, Options::default());
    let open = || vec![polite(Flags::SYN | Flags::ACK, 0, Options::Syn(SYN))];
    let after = |mut steps: Vec<VictimStep>, more: &[VictimStep]| {
        steps.extend_from_slice(more);
        (TcpSide::Client, steps)
    };
    match state {
        TcpState::Listen => (TcpSide::Server, vec![]),
        TcpState::SynSent => (TcpSide::Client, vec![]),
        TcpState::SynReceived => (TcpSide::Server, vec![polite(Flags::SYN, 0, Options::Syn(SYN))]),
        TcpState::Established => after(open(), &[]),
        TcpState::FinWait1 => after(open(), &[VictimStep::Close]),
        TcpState::FinWait2 => after(open(), &[VictimStep::Close, ack()]),
        TcpState::Closing => {
            // The peer's FIN, which does not acknowledge ours.
            let VictimStep::Incoming(word) = fin() else { unreachable!() };
            after(
                open(),
                &[VictimStep::Close, VictimStep::Incoming(PeerSegment { ack: -1, ..word })],
            )
        }
        TcpState::TimeWait => after(open(), &[VictimStep::Close, ack(), fin()]),
        TcpState::CloseWait => after(open(), &[fin()]),
        TcpState::LastAck => after(open(), &[fin(), VictimStep::Close]),
        TcpState::Closed => {
            after(open(), &[VictimStep::Close, polite(Flags::RST, 0, Options::default())])
        }
    }
}

pub(crate) const STATES: [TcpState; 11] = [
    TcpState::Listen,
    TcpState::SynSent,
    TcpState::SynReceived,
    TcpState::Established,
    TcpState::FinWait1,
    TcpState::FinWait2,
    TcpState::Closing,
    TcpState::TimeWait,
    TcpState::CloseWait,
    TcpState::LastAck,
    TcpState::Closed,
];
