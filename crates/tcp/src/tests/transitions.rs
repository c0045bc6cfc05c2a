//! Every arrow of the state diagram of RFC 9293 (section 3.3.2, figure 5), each under its own
//! name; and those that its notes tell of or leave out. One endpoint, its peer made by hand.

mod closing;
mod opening;
mod resets;

use machine::Signal;
use packet::{Dir, Flags, Segment};
use units::{Duration, SeqNum};

use super::pair::Pair;
use crate::profile::NAMES;
use crate::{Side, State};

const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);
const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// One endpoint, and nothing that the other end of the pair says ever arrives. Numbers are
/// relative to both streams: a SYN stands at 0.
struct Lone {
    pair: Pair,
    side: Side,
}

impl Lone {
    fn new(system: &str, side: Side) -> Self {
        let mut pair = Pair::of(system, system);
        pair.lose = |_, _| true;
        pair.reads = false;
        Self { pair, side }
    }

    /// It has sent its SYN.
    fn syn_sent(system: &str) -> Self {
        let mut lone = Self::new(system, Side::Client);
        lone.open();
        lone
    }

    /// It has answered the SYN of a client.
    fn syn_received(system: &str) -> Self {
        let mut lone = Self::new(system, Side::Server);
        lone.hear(Flags::SYN, 0, 0);
        lone
    }

    /// It has opened actively.
    fn established(system: &str) -> Self {
        let mut lone = Self::syn_sent(system);
        lone.hear(SYN_ACK, 0, 1);
        lone
    }

    /// Brought into `state` from an active opening, if that can be.
    fn in_state(system: &str, state: State) -> Self {
        let mut lone = Self::established(system);
        match state {
            State::Established => {}
            State::FinWait1 => drop(lone.close()),
            State::FinWait2 => {
                lone.close();
                lone.hear(Flags::ACK, 1, 2);
            }
            State::Closing => {
                lone.close();
                lone.hear(FIN, 1, 1);
            }
            State::TimeWait => {
                lone.close();
                lone.hear(FIN, 1, 2);
            }
            State::CloseWait => drop(lone.hear(FIN, 1, 1)),
            State::LastAck => {
                lone.hear(FIN, 1, 1);
                lone.close();
            }
            _ => panic!("{state:?}"),
        }
        lone.is(state, system);
        lone
    }

    fn is(&self, state: State, system: &str) {
        assert_eq!(self.state(), state, "{system}");
    }

    fn state(&self) -> State {
        match self.side {
            Side::Client => self.pair.client.state(),
            Side::Server => self.pair.server.state(),
        }
    }

    /// Does it; returns what was sent for it.
    fn act(&mut self, what: impl FnOnce(&mut Pair)) -> Vec<Segment> {
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

    /// The connection is given up by its user (ABORT of RFC 9293).
    fn abort(&mut self) -> Vec<Segment> {
        let side = self.side;
        self.act(|pair| pair.with(side, |cx, end| end.reset(cx)))
    }

    /// A segment of the peer arrives.
    fn hear(&mut self, flags: Flags, seq: u32, ack: u32) -> Vec<Segment> {
        let (dir, theirs, ours) = match self.side {
            Side::Client => (Dir::Reverse, 2_000_000_000_u32, 1_000_u32),
            Side::Server => (Dir::Forward, 1_000, 2_000_000_000),
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

/// Flags and numbers of what was sent, relative as above.
fn said(lone: &Lone, sent: &[Segment]) -> Vec<(Flags, u32, u32)> {
    let (ours, theirs) = match lone.side {
        Side::Client => (1_000_u32, 2_000_000_000_u32),
        Side::Server => (2_000_000_000, 1_000),
    };
    sent.iter()
        .map(|s| {
            let ack = if s.flags.has(Flags::ACK) { s.ack.0.wrapping_sub(theirs) } else { 0 };
            (s.flags, s.seq.0.wrapping_sub(ours), ack)
        })
        .collect()
}
