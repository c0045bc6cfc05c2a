//! The latency spin bit (RFC 9000 section 17.4, RFC 9312 section 3.8).
//!
//! A client that spins sends the opposite of the bit that it received last, a server the same. So the bit
//! makes a square wave with a period of two round trips, whose edges alternate between the directions.
//! Hosts need not spin, and must not on one connection in sixteen at least: then the bit is constant, or
//! random in each packet or connection.

use packet::Dir;

/// Fewest edges that are tested.
const LEAST: u64 = 10;
/// Most samples kept.
const SAMPLES: usize = 256;

/// Whether the bit spins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpinVerdict {
    /// No 1-RTT packet was captured.
    #[default]
    NoPackets,
    /// It never changed.
    Constant,
    /// It changed too rarely to test.
    TooFew,
    /// It changed in no order: it is random.
    Random,
    /// It spins.
    Spins,
}

/// Round trips in the order of time, all or every n-th of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoundTripSamples {
    /// Number of all.
    pub count: u64,
    /// Those kept, in ns.
    kept: Vec<u64>,
    /// One of this many is kept, as a power of two.
    shift: u32,
}

impl RoundTripSamples {
    fn push(&mut self, ns: u64) {
        if self.count.trailing_zeros() >= self.shift {
            if self.kept.len() == SAMPLES {
                self.shift += 1;
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
            }
            if self.count.trailing_zeros() >= self.shift {
                self.kept.push(ns);
            }
        }
        self.count += 1;
    }

    /// Smallest, median and largest of those kept, in ns; `None` without samples.
    pub fn summary(&self) -> Option<[u64; 3]> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        Some([*sorted.first()?, sorted[sorted.len() / 2], *sorted.last()?])
    }
}

/// What the spin bit shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpinBit {
    /// Whether it spins.
    pub verdict: SpinVerdict,
    /// 1-RTT packets whose bit was read.
    pub packets: u64,
    /// Changes of the bit in either direction.
    pub edges: u64,
    /// Edges that were the next of the square wave.
    pub in_turn: u64,
    /// Round trips between the hosts.
    pub whole: RoundTripSamples,
    /// Round trips from the capture point to the server.
    pub server_side: RoundTripSamples,
    /// Round trips from the capture point to the client.
    pub client_side: RoundTripSamples,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    dir: Dir,
    value: bool,
    at: u64,
    /// It was the next of the wave.
    in_turn: bool,
}

/// Follows the bit.
#[derive(Debug, Default)]
pub(super) struct SpinAnalyzer {
    bit: SpinBit,
    value: [Option<bool>; 2],
    packets: [u64; 2],
    edges: [u64; 2],
    edge: Option<Edge>,
    /// Time of the last edge of each direction.
    at: [Option<u64>; 2],
}

impl SpinAnalyzer {
    pub(super) fn push(&mut self, dir: Dir, value: bool, at: u64) {
        let index = dir as usize;
        self.bit.packets += 1;
        self.packets[index] += 1;
        if self.value[index].replace(value).is_none_or(|before| before == value) {
            return;
        }
        self.bit.edges += 1;
        self.edges[index] += 1;
        let last = self.at[index].replace(at);
        let before = self.edge;
        // The server reflects the client's edge, the client inverts the server's.
        let in_turn = before
            .is_some_and(|edge| edge.dir != dir && (edge.value == value) == (dir == Dir::Reverse));
        self.edge = Some(Edge { dir, value, at, in_turn });
        if self.is_one_way() {
            if let Some(last) = last {
                self.bit.whole.push(at - last);
            }
            return;
        }
        let Some(before) = before.filter(|_| in_turn) else { return };
        self.bit.in_turn += 1;
        let half = match dir {
            Dir::Reverse => &mut self.bit.server_side,
            Dir::Forward => &mut self.bit.client_side,
        };
        half.push(at - before.at);
        if let Some(last) = last.filter(|_| before.in_turn) {
            self.bit.whole.push(at - last);
        }
    }

    /// Only one direction has 1-RTT packets.
    const fn is_one_way(&self) -> bool {
        self.packets[0] == 0 || self.packets[1] == 0
    }

    pub(super) fn finish(mut self) -> SpinBit {
        self.bit.verdict = self.verdict();
        self.bit
    }

    fn verdict(&self) -> SpinVerdict {
        let SpinBit { packets, edges, in_turn, .. } = self.bit;
        if packets == 0 {
            return SpinVerdict::NoPackets;
        }
        if edges == 0 {
            return SpinVerdict::Constant;
        }
        if edges <= LEAST {
            return SpinVerdict::TooFew;
        }
        // A random bit has each edge in turn with a probability of a half at most, and in one direction it
        // changes from packet to packet with that probability. The difference is significant beyond
        // 3.16 standard deviations (p < 0.001).
        let (trials, successes) = if self.is_one_way() {
            (packets - 1, packets - 1 - edges)
        } else {
            (edges - 1, in_turn)
        };
        let above = (2 * successes).saturating_sub(trials);
        if u128::from(above) * u128::from(above) > 10 * u128::from(trials) {
            SpinVerdict::Spins
        } else {
            SpinVerdict::Random
        }
    }
}
