//! netem's correlated random numbers (`get_crandom`) and its four-state loss model (`loss_4state`).

use units::{RandomStream, Ratio};

use super::FourState;

/// Random numbers of 32 bits, each a weighted mean of a new one and the one before.
#[derive(Debug, Clone)]
pub(crate) struct CorrelatedDraws {
    draws: RandomStream,
    rho: u32,
    last: u64,
}

/// Converts a fraction to 32 bits, as tc does.
fn scaled(share: Ratio) -> u32 {
    let den = u128::from(share.den());
    let scaled = (u128::from(share.num()) * u128::from(u32::MAX) + den / 2) / den;
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

impl CorrelatedDraws {
    pub(crate) fn new(mut draws: RandomStream, correlation: Ratio) -> Self {
        let rho = scaled(correlation);
        // `init_crandom` draws the first value.
        let last = if rho == 0 { 0 } else { u64::from(draws.next_u32()) };
        Self { draws, rho, last }
    }

    pub(crate) fn next_u32(&mut self) -> u32 {
        let value = u64::from(self.draws.next_u32());
        if self.rho == 0 {
            return value as u32;
        }
        let rho = u128::from(self.rho) + 1;
        let mean = u128::from(value) * ((1 << 32) - rho) + u128::from(self.last) * rho;
        self.last = (mean >> 32) as u64;
        self.last as u32
    }

    /// Returns true if the next number is at most the threshold of this fraction.
    pub(crate) fn chance(&mut self, share: Ratio) -> bool {
        let number = self.next_u32();
        let threshold = scaled(share);
        threshold > 0 && threshold >= number
    }
}

/// State of a [`FourState`].
#[derive(Debug, Clone)]
pub(super) struct FourStateChain {
    chain: FourState,
    state: ChainState,
    draws: RandomStream,
}

#[derive(Debug, Clone, Copy)]
enum ChainState {
    PassInGap,
    PassInBurst,
    LostInBurst,
    LostInGap,
}

impl FourStateChain {
    pub(super) fn new(chain: FourState, draws: RandomStream) -> Self {
        Self { chain, state: ChainState::PassInGap, draws }
    }

    /// Returns whether the next packet is lost.
    pub(super) fn loses(&mut self) -> bool {
        let draw = u64::from(self.draws.next_u32());
        let of = |share| u64::from(scaled(share));
        let FourState { p13, p31, p32, p23, p14 } = self.chain;
        let (state, lost) = match self.state {
            ChainState::PassInGap if draw < of(p14) => (ChainState::LostInGap, true),
            ChainState::PassInGap if draw < of(p13) + of(p14) => (ChainState::LostInBurst, true),
            ChainState::PassInGap => (ChainState::PassInGap, false),
            ChainState::PassInBurst if draw < of(p23) => (ChainState::LostInBurst, true),
            ChainState::PassInBurst => (ChainState::PassInBurst, false),
            ChainState::LostInBurst if draw < of(p32) => (ChainState::PassInBurst, false),
            ChainState::LostInBurst if draw < of(p31) + of(p32) => (ChainState::PassInGap, false),
            ChainState::LostInBurst => (ChainState::LostInBurst, true),
            ChainState::LostInGap => (ChainState::PassInGap, false),
        };
        self.state = state;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(n: u64) -> Ratio {
        Ratio::new(n, 100).unwrap()
    }

    fn stream() -> RandomStream {
        RandomStream::named(1, "test", "choice")
    }

    /// Mean losses of a million packets, and the mean length of a burst.
    fn losses(chain: FourState) -> (f64, f64) {
        let mut chain = FourStateChain::new(chain, stream());
        let fates: Vec<bool> = (0..1_000_000).map(|_| chain.loses()).collect();
        let lost = fates.iter().filter(|&&lost| lost).count() as f64;
        let bursts = fates.split(|&lost| !lost).filter(|burst| !burst.is_empty()).count() as f64;
        (lost / 1e6, lost / bursts)
    }

    #[test]
    fn draws_without_correlation_are_uniform() {
        let mut draws = CorrelatedDraws::new(stream(), Ratio::ZERO);
        let selected = (0..100_000).filter(|_| draws.chance(percent(30))).count();
        // Standard deviation 145.
        assert!(selected.abs_diff(30_000) < 580, "{selected}");
        assert!((0..1_000).all(|_| !draws.chance(Ratio::ZERO) && draws.chance(percent(100))));
    }

    /// x[n] = (1 - rho) u[n] + rho x[n - 1] has the correlation rho, and a variance of (1 - rho) / (1
    /// + rho) of that of u: with 50 %, a third of 1/12.
    #[test]
    fn draws_have_their_correlation() {
        let mut draws = CorrelatedDraws::new(stream(), percent(50));
        let numbers: Vec<f64> =
            (0..200_000).map(|_| f64::from(draws.next_u32()) / f64::from(u32::MAX) - 0.5).collect();
        let count = numbers.len() as f64;
        let variance = numbers.iter().map(|x| x * x).sum::<f64>() / count;
        let covariance = numbers.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / count;
        assert!((variance - 1.0 / 36.0).abs() < 0.0006, "{variance}");
        assert!((covariance / variance - 0.5).abs() < 0.01, "{}", covariance / variance);
    }

    #[test]
    fn states_have_their_shares() {
        let zero = Ratio::ZERO;
        // Two states: loss p13 / (p13 + p31), bursts of 1 / p31.
        let two = FourState { p13: percent(2), p31: percent(25), p32: zero, p23: zero, p14: zero };
        let (share, length) = losses(two);
        assert!(
            (share - 2.0 / 27.0).abs() < 0.003 && (length - 4.0).abs() < 0.1,
            "{share} {length}"
        );
        // Isolated losses only.
        let gap = FourState { p13: zero, p31: percent(100), p14: percent(5), ..two };
        let (share, length) = losses(gap);
        assert!((share - 0.05 / 1.05).abs() < 0.002 && length < 1.000_001, "{share} {length}");
        // A burst of which a third is lost.
        let burst = FourState {
            p13: percent(1),
            p31: percent(5),
            p32: percent(40),
            p23: percent(20),
            p14: zero,
        };
        // Stationary: x3 p31 = x1 p13, x2 p23 = x3 p32.
        let x3 = 1.0 / (1.0 + 5.0 + 2.0);
        assert!((losses(burst).0 - x3).abs() < 0.005, "{}", losses(burst).0);
    }
}
