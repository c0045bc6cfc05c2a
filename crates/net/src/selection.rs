//! Selection of packets to drop, duplicate, corrupt or delay.
//!
//! A rule counts and draws only for packets it covers, and draws once for each of them, whatever
//! the result of the previous draw.

mod byte_range;
mod correlated;

use core::num::NonZeroU64;

use machine::{PacketAck, PacketView};
use units::{Instant, RandomStream, Ratio};

pub use byte_range::ByteRange;
pub(crate) use correlated::CorrelatedDraws;

use byte_range::ByteRangeSelector;
use correlated::FourStateChain;

use crate::schedule::Schedule;

/// Class of packets that a rule covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PacketClass {
    /// All packets.
    #[default]
    All,
    /// Packets with payload.
    Data,
    /// Bare ACKs: no payload, no SACK blocks, no flag besides ACK.
    Acks,
    /// SYNs without ACK.
    Syns,
    /// SYNs with ACK.
    SynAcks,
    /// SYNs without ACK that ask for ECN.
    EcnSyns,
}

impl PacketClass {
    /// Returns whether the class includes this packet.
    #[inline]
    pub const fn covers(self, view: &PacketView) -> bool {
        match self {
            Self::All => true,
            Self::Data => view.payload > 0,
            Self::Acks => matches!(view.ack, PacketAck::Pure(_)),
            Self::Syns => view.syn && matches!(view.ack, PacketAck::None),
            Self::SynAcks => view.syn && matches!(view.ack, PacketAck::Piggybacked(_)),
            Self::EcnSyns => view.ecn_syn,
        }
    }
}

/// A rule by which packets are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectionRule {
    /// Every n-th: number n, 2n, 3n ... To select one after n others, use n + 1.
    Every(NonZeroU64),
    /// These packets, counted from 1; in ascending order.
    Listed(Vec<u64>),
    /// Each with this probability, independently of the others (Bernoulli).
    Share(Ratio),
    /// In bursts.
    GilbertElliott(GilbertElliott),
    /// By the bytes they carry.
    Bytes(ByteRange),
    /// Each with the probability of its instant, independently of the others.
    Changing(Schedule<Ratio>),
    /// Each by a draw that depends on the one before (netem's correlation).
    Correlated {
        /// The threshold of the draws. With a correlation the fraction selected is another: the
        /// draws are no longer uniform.
        share: Ratio,
        /// Weight of the previous draw.
        correlation: Ratio,
    },
    /// By a Markov chain of four states (netem's `loss state`).
    FourState(FourState),
}

/// The four-state chain of netem (`loss_4state`): it starts in state 1. States 1 and 2 pass packets,
/// states 3 and 4 drop them; 2 and 3 are a burst, 4 is an isolated loss in the gap between bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FourState {
    /// Probability of the transition from 1 to 3.
    pub p13: Ratio,
    /// Probability of the transition from 3 to 1.
    pub p31: Ratio,
    /// Probability of the transition from 3 to 2.
    pub p32: Ratio,
    /// Probability of the transition from 2 to 3.
    pub p23: Ratio,
    /// Probability of the transition from 1 to 4.
    pub p14: Ratio,
}

/// A channel with a good and a bad state (Gilbert 1960, Elliott 1963), in the notation and the
/// order of Linux's netem (sch_netem.c, loss_gilb_ell): the current state decides the outcome of a
/// packet, and the transition follows. A channel starts in the good state.
///
/// Long-run fraction selected: (p (1 - h) + r (1 - k)) / (p + r). With h = 0 and k = 1, bursts have
/// the mean length 1 / r.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Transition probability from the good to the bad state.
    pub p: Ratio,
    /// Transition probability from the bad to the good state.
    pub r: Ratio,
    /// Probability that a packet passes in the bad state.
    pub h: Ratio,
    /// Probability that a packet passes in the good state.
    pub k: Ratio,
}

/// Source of the random streams of one element: `owner` is the element, the purpose is that of the
/// draw.
#[derive(Debug, Clone, Copy)]
pub struct RandomSource<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the element, such as `loss 0 from a to b`.
    pub owner: &'a str,
}

impl RandomSource<'_> {
    /// Returns the stream for `purpose`.
    pub fn stream(&self, purpose: &str) -> RandomStream {
        RandomStream::named(self.seed, self.owner, purpose)
    }
}

/// State of a [`SelectionRule`].
#[derive(Debug, Clone)]
pub struct PacketSelector {
    only: PacketClass,
    state: SelectorState,
}

#[derive(Debug, Clone)]
enum SelectorState {
    Every {
        n: u64,
        since: u64,
    },
    Listed {
        numbers: Vec<u64>,
        next: usize,
        count: u64,
    },
    Share {
        share: Ratio,
        draws: RandomStream,
    },
    GilbertElliott {
        channel: GilbertElliott,
        bad: bool,
        fates: RandomStream,
        changes: RandomStream,
    },
    Bytes(ByteRangeSelector),
    Changing {
        share: Schedule<Ratio>,
        draws: RandomStream,
    },
    Correlated {
        share: Ratio,
        draws: CorrelatedDraws,
    },
    FourState(FourStateChain),
}

impl PacketSelector {
    /// Creates a selector that has seen no packet.
    pub fn new(rule: &SelectionRule, only: PacketClass, random_source: &RandomSource<'_>) -> Self {
        let state = match rule {
            SelectionRule::Every(n) => SelectorState::Every { n: n.get(), since: 0 },
            SelectionRule::Listed(numbers) => {
                SelectorState::Listed { numbers: numbers.clone(), next: 0, count: 0 }
            }
            SelectionRule::Share(share) => {
                SelectorState::Share { share: *share, draws: random_source.stream("choice") }
            }
            SelectionRule::GilbertElliott(channel) => SelectorState::GilbertElliott {
                channel: *channel,
                bad: false,
                fates: random_source.stream("choice"),
                changes: random_source.stream("state"),
            },
            SelectionRule::Bytes(range) => SelectorState::Bytes(ByteRangeSelector::new(*range)),
            SelectionRule::Changing(share) => SelectorState::Changing {
                share: share.clone(),
                draws: random_source.stream("choice"),
            },
            SelectionRule::Correlated { share, correlation } => SelectorState::Correlated {
                share: *share,
                draws: CorrelatedDraws::new(random_source.stream("choice"), *correlation),
            },
            SelectionRule::FourState(chain) => {
                let draws = random_source.stream("state");
                SelectorState::FourState(FourStateChain::new(*chain, draws))
            }
        };
        Self { only, state }
    }

    /// Returns whether this packet, the next one, is selected.
    #[inline]
    pub fn picks(&mut self, now: Instant, view: &PacketView) -> bool {
        match &mut self.state {
            SelectorState::Bytes(bytes) => bytes.picks(view) && self.only.covers(view),
            SelectorState::Changing { share, draws } => {
                self.only.covers(view) && draws.chance(share.at(now))
            }
            state => self.only.covers(view) && state.next(),
        }
    }
}

impl SelectorState {
    #[inline]
    fn next(&mut self) -> bool {
        match self {
            Self::Share { share, draws } => draws.chance(*share),
            other => other.next_slow(),
        }
    }

    fn next_slow(&mut self) -> bool {
        match self {
            Self::Every { n, since } => {
                *since += 1;
                let picked = *since == *n;
                if picked {
                    *since = 0;
                }
                picked
            }
            Self::Listed { numbers, next, count } => {
                *count += 1;
                let picked = numbers.get(*next) == Some(count);
                *next += usize::from(picked);
                picked
            }
            Self::Share { share, draws } => draws.chance(*share),
            Self::GilbertElliott { channel, bad, fates, changes } => {
                let (pass, change) =
                    if *bad { (channel.h, channel.r) } else { (channel.k, channel.p) };
                *bad ^= changes.chance(change);
                !fates.chance(pass)
            }
            Self::Correlated { share, draws } => draws.chance(*share),
            Self::FourState(chain) => chain.loses(),
            // They need the packet or its time, see `PacketSelector::picks`.
            Self::Bytes(_) | Self::Changing { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bare_ack, data, handshake};
    use units::{Dir, SeqNum};

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };

    fn percent(n: u64) -> Ratio {
        Ratio::new(n, 100).unwrap()
    }

    /// Numbers, from 1, of the packets selected among the first `of`.
    fn picked(rule: &SelectionRule, of: u64) -> Vec<u64> {
        let mut chooser = PacketSelector::new(rule, PacketClass::All, &RNG);
        (1..=of).filter(|_| chooser.picks(Instant::ZERO, &data(1_500))).collect()
    }

    /// Outcomes of a million packets.
    fn fates(rule: &SelectionRule) -> Vec<bool> {
        let mut chooser = PacketSelector::new(rule, PacketClass::All, &RNG);
        (0..1_000_000).map(|_| chooser.picks(Instant::ZERO, &data(1_500))).collect()
    }

    /// Returns whether `found` is within four standard deviations of `expected`.
    fn within_four_sigma(found: f64, expected: f64, variance: f64) -> bool {
        (found - expected) * (found - expected) <= 16.0 * variance
    }

    fn share_of(fates: &[bool]) -> f64 {
        fates.iter().filter(|&&fate| fate).count() as f64 / fates.len() as f64
    }

    /// Lengths of the runs of selected packets.
    fn bursts(fates: &[bool]) -> Vec<usize> {
        fates.split(|&fate| !fate).map(<[bool]>::len).filter(|&len| len > 0).collect()
    }

    #[test]
    fn every_nth_and_listed_packets_are_counted_from_one() {
        let every = |n| SelectionRule::Every(NonZeroU64::new(n).unwrap());
        assert_eq!(picked(&every(100), 350), [100, 200, 300]);
        assert_eq!(picked(&every(1), 3), [1, 2, 3]);
        // 50 pass, one is dropped.
        assert_eq!(picked(&every(51), 160), [51, 102, 153]);
        assert_eq!(picked(&SelectionRule::Listed(vec![2, 3, 900]), 1_000), [2, 3, 900]);
        assert_eq!(picked(&SelectionRule::Listed(Vec::new()), 10), [0; 0]);
    }

    #[test]
    fn packets_of_other_classes_are_not_counted() {
        let second = SelectionRule::Listed(vec![2]);
        let syn = PacketView { syn: true, ..handshake() };
        let ecn_syn = PacketView { ecn_syn: true, ..syn };
        let syn_ack =
            PacketView { dir: Dir::Reverse, ack: PacketAck::Piggybacked(SeqNum(1)), ..syn };
        let packets = [handshake(), bare_ack(1), data(1_500), bare_ack(2), data(1_500)];
        let opening = [ecn_syn, syn_ack, syn, ecn_syn, syn_ack];
        let of = |packets: &[PacketView], only| -> Vec<bool> {
            let mut chooser = PacketSelector::new(&second, only, &RNG);
            packets.iter().map(|view| chooser.picks(Instant::ZERO, view)).collect()
        };
        let picked = |only| of(&packets, only);
        assert_eq!(picked(PacketClass::All), [false, true, false, false, false]);
        assert_eq!(picked(PacketClass::Data), [false, false, false, false, true]);
        assert_eq!(picked(PacketClass::Acks), [false, false, false, true, false]);
        assert_eq!(of(&opening, PacketClass::Syns), [false, false, true, false, false]);
        assert_eq!(of(&opening, PacketClass::SynAcks), [false, false, false, false, true]);
        assert_eq!(of(&opening, PacketClass::EcnSyns), [false, false, false, true, false]);
        for only in [PacketClass::Syns, PacketClass::SynAcks, PacketClass::EcnSyns] {
            assert_eq!(picked(only), [false; 5]);
        }
    }

    #[test]
    fn a_probability_selects_its_fraction() {
        for p in [1, 2, 30] {
            let fates = fates(&SelectionRule::Share(percent(p)));
            let (n, p) = (fates.len() as f64, p as f64 / 100.0);
            assert!(within_four_sigma(share_of(&fates), p, p * (1.0 - p) / n), "{p}");
            // Independent draws: a packet after a selected one is selected as often as any other.
            let pairs = fates.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / n;
            // Neighbouring pairs share a packet: Var = p^2 (1 - p^2) + 2 p^3 (1 - p), over n.
            let variance = p * p * (1.0 - p * p) + 2.0 * p * p * p * (1.0 - p);
            assert!(within_four_sigma(pairs, p * p, variance / n), "{p}");
        }
        assert!(picked(&SelectionRule::Share(percent(0)), 1_000).is_empty());
        assert_eq!(picked(&SelectionRule::Share(percent(100)), 1_000).len(), 1_000);
    }

    /// Gilbert's channel with h = 0 and k = 1: loss is the bad state itself.
    #[test]
    fn bursts_have_the_length_of_the_bad_state() {
        let channel =
            GilbertElliott { p: percent(1), r: percent(30), h: percent(0), k: percent(100) };
        let fates = fates(&SelectionRule::GilbertElliott(channel));
        let (n, p, r) = (fates.len() as f64, 0.01, 0.3);
        // Stationary probability of the bad state; correlation between neighbours is 1 - p - r.
        let (share, lambda) = (p / (p + r), 1.0 - p - r);
        let variance = share * (1.0 - share) * (1.0 + lambda) / (1.0 - lambda) / n;
        assert!(within_four_sigma(share_of(&fates), share, variance), "{}", share_of(&fates));
        // Lengths are geometric: mean 1 / r, variance (1 - r) / r^2.
        let bursts = bursts(&fates);
        let count = bursts.len() as f64;
        let mean = bursts.iter().sum::<usize>() as f64 / count;
        assert!(within_four_sigma(mean, 1.0 / r, (1.0 - r) / (r * r) / count), "{mean}");
    }

    /// All four parameters, against the chain's closed form.
    #[test]
    fn each_state_has_its_loss_probability() {
        let channel =
            GilbertElliott { p: percent(2), r: percent(20), h: percent(40), k: percent(99) };
        let fates = fates(&SelectionRule::GilbertElliott(channel));
        let n = fates.len() as f64;
        let (p, r, in_bad, in_good) = (0.02, 0.2, 0.6, 0.01);
        let (bad, good) = (p / (p + r), r / (p + r));
        let share = bad * in_bad + good * in_good;
        let lambda: f64 = 1.0 - p - r;
        // Covariance of two outcomes k packets apart is c lambda^k.
        let c = bad * good * (in_bad - in_good) * (in_bad - in_good);
        let variance = (share * (1.0 - share) + 2.0 * c * lambda / (1.0 - lambda)) / n;
        assert!(within_four_sigma(share_of(&fates), share, variance), "{}", share_of(&fates));
        // A packet and the next both lost: by the current state and the transition after it.
        let both = good * in_good * ((1.0 - p) * in_good + p * in_bad)
            + bad * in_bad * (r * in_good + (1.0 - r) * in_bad);
        // A burst starts at a lost packet whose predecessor was not lost.
        let mean = share / (share - both);
        let bursts = bursts(&fates);
        let found = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        // Variance of the measured lengths: their distribution is a mixture.
        let spread = bursts.iter().map(|&len| (len as f64 - found) * (len as f64 - found));
        let variance = spread.sum::<f64>() / (bursts.len() as f64 * bursts.len() as f64);
        assert!(within_four_sigma(found, mean, variance), "{found}, not {mean}");
    }

    #[test]
    fn a_channel_without_memory_is_bernoulli() {
        // r = 1 - p, h = 0, k = 1: the state is independent for every packet (netem's Bernoulli).
        let channel =
            GilbertElliott { p: percent(5), r: percent(95), h: percent(0), k: percent(100) };
        let fates = fates(&SelectionRule::GilbertElliott(channel));
        let (n, p) = (fates.len() as f64, 0.05);
        assert!(within_four_sigma(share_of(&fates), p, p * (1.0 - p) / n));
    }
}
