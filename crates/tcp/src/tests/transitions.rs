//! Every transition of the state diagram of RFC 9293 (section 3.3.2, figure 5), each under its own
//! name; and those that its notes mention or omit. One endpoint, with a hand-made peer.

mod closing;
mod opening;
mod resets;

use machine::Signal;
use packet::{Dir, Flags, Segment};
use units::{Duration, SeqNum};

use super::pair::TcpPair;
use crate::profile::NAMES;
use crate::{TcpSide, TcpState};

const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);
const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// One endpoint; no segment of the pair is ever delivered. Numbers are relative to both streams: a
/// SYN is at 0.
struct SingleEndpoint {
    pair: TcpPair,
    side: TcpSide,
}

impl SingleEndpoint {
    fn new(system: &str, side: TcpSide) -> Self {
        let mut pair = TcpPair::of(system, system);
        pair.lose = |_, _| true;
        pair.reads = false;
        Self { pair, side }
    }

    /// An endpoint that has sent its SYN.
    fn syn_sent(system: &str) -> Self {
        let mut lone = Self::new(system, TcpSide::Client);
        lone.open();
        lone
    }

    /// An endpoint that has answered the SYN of a client.
    fn syn_received(system: &str) -> Self {
        let mut lone = Self::new(system, TcpSide::Server);
        lone.hear(Flags::SYN, 0, 0);
        lone
    }

    /// An established endpoint after an active open.
    fn established(system: &str) -> Self {
        let mut lone = Self::syn_sent(system);
        lone.hear(SYN_ACK, 0, 1);
        lone
    }

    /// An endpoint brought into `state` after an active open.
    fn in_state(system: &str, state: TcpState) -> Self {
        let mut lone = Self::established(system);
        match state {
            TcpState::Established => {}
            TcpState::FinWait1 => drop(lone.close()),
            TcpState::FinWait2 => {
                lone.close();
                lone.hear(Flags::ACK, 1, 2);
            }
            TcpState::Closing => {
                lone.close();
                lone.hear(FIN, 1, 1);
            }
            TcpState::TimeWait => {
                lone.close();
                lone.hear(FIN, 1, 2);
            }
            TcpState::CloseWait => drop(lone.hear(FIN, 1, 1)),
            TcpState::LastAck => {
                lone.hear(FIN, 1, 1);
                lone.close();
            }
            _ => panic!("{state:?}"),
        }
        lone.is(state, system);
        lone
    }

    fn is(&self, state: TcpState, system: &str) {
        assert_eq!(self.state(), state, "{system}");
    }

    fn state(&self) -> TcpState {
        match self.side {
            TcpSide::Client => self.pair.client.state(),
            TcpSide::Server => self.pair.server.state(),
        }
    }

    /// Performs an action; returns the segments sent for it.
    fn act(&mut self, what: impl FnOnce(&mut TcpPair)) -> Vec<Segment> {
        let before = self.pair.log.len();
        what(&mut self.pair);
        self.pair.serve();
        self.pair.log[before..].to_vec()
    }

    fn open(&mut self) -> Vec<Segment> {
        let side = self.side;
        self.act(|pair| pair.with(side, |_, end| end.open()))
    }

    fn close(&mut self) -> Vec<Segment> {
        let side = self.side;
        self.act(|pair| pair.with(side, |_, end| end.close()))
    }

    /// Aborts the connection (ABORT of RFC 9293).
    fn abort(&mut self) -> Vec<Segment> {
        let side = self.side;
        self.act(|pair| pair.with(side, |cx, end| end.reset(cx)))
    }

    /// Delivers a segment of the peer.
    fn hear(&mut self, flags: Flags, seq: u32, ack: u32) -> Vec<Segment> {
        let (dir, theirs, ours) = match self.side {
            TcpSide::Client => (Dir::Reverse, 2_000_000_000_u32, 1_000_u32),
            TcpSide::Server => (Dir::Forward, 1_000, 2_000_000_000),
        };
        let segment = Segment {
            dir,
            flags,
            seq: SeqNum(theirs.wrapping_add(seq)),
            ack: if flags.has(Flags::ACK) { SeqNum(ours.wrapping_add(ack)) } else { SeqNum(0) },
            window: 10_000,
            ..Segment::default()
        };
        self.act(|pair| pair.arrive(&segment))
    }

    fn wait(&mut self, span: Duration) -> Vec<Segment> {
        let side = self.side;
        self.pair.now += span;
        self.act(|pair| pair.with(side, |cx, end| machine::Endpoint::handle_timeout(end, cx)))
    }

    fn signalled(&self, signal: Signal) -> bool {
        self.pair.signals.contains(&(self.side, signal))
    }
}

/// Flags and relative numbers of the segments sent.
fn said(lone: &SingleEndpoint, sent: &[Segment]) -> Vec<(Flags, u32, u32)> {
    let (ours, theirs) = match lone.side {
        TcpSide::Client => (1_000_u32, 2_000_000_000_u32),
        TcpSide::Server => (2_000_000_000, 1_000),
    };
    sent.iter()
        .map(|s| {
            let ack = if s.flags.has(Flags::ACK) { s.ack.0.wrapping_sub(theirs) } else { 0 };
            (s.flags, s.seq.0.wrapping_sub(ours), ack)
        })
        .collect()
}
