//! Groups of connections that follow one template: when they arrive and how much they transfer.
//!
//! A group has its own random streams, named after it, so that another flow of the scenario never
//! changes its arrivals or sizes.

use core::ops::Range;
use std::sync::Arc;

use units::{Bytes, Duration, RandomStream, maths};

use super::{App, FlowSpec, Scenario};

/// Connections that follow one template.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowGroup {
    /// Name in the scenario; its connections have a number after it.
    pub name: String,
    /// Its connections, as indices of [`Scenario::flows`].
    pub flows: Range<usize>,
    /// Time from which connections arrive.
    pub start: Duration,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// What each transfers, if it is not that of the template.
    pub sizes: Option<TransferSizes>,
    /// Consecutive connections that arrive together, those of one web page; 1 for all else.
    pub connections: usize,
}

/// Arrivals of connections.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// All at once.
    Together,
    /// At a fixed interval.
    Every(Duration),
    /// A Poisson process with this mean interval.
    Poisson(Duration),
    /// At these times after the start.
    Listed(Arc<[Duration]>),
}

/// Sizes of transfers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferSizes {
    /// A cumulative distribution: sizes with the fraction of transfers of at most this size, in
    /// 1,000,000,000ths, both in ascending order, the last fraction 1; between two points sizes are
    /// uniform.
    Cdf(Arc<[(u64, u64)]>),
    /// Exponentially distributed with this mean, at least 1 byte.
    Exponential(Bytes),
    /// These, one for each connection.
    Listed(Arc<[u64]>),
}

/// The whole of a [`TransferSizes::Cdf`].
pub const CDF_WHOLE: u64 = 1_000_000_000;

impl TransferSizes {
    /// Draws the size of connection number `index`.
    pub(crate) fn draw(&self, index: usize, draws: &mut RandomStream) -> u64 {
        match self {
            Self::Cdf(points) => {
                let at = draws.below(CDF_WHOLE);
                let next = points.partition_point(|&(_, part)| part <= at).min(points.len() - 1);
                let (high, above) = points[next];
                let (low, below) = next.checked_sub(1).map_or((high, 0), |last| points[last]);
                let width = u128::from(high.saturating_sub(low));
                let part = u128::from(at.saturating_sub(below));
                let step = width * part / u128::from(above.saturating_sub(below).max(1));
                (low + step as u64).max(1)
            }
            Self::Exponential(mean) => exponential(mean.get() as f64, draws).max(1),
            Self::Listed(sizes) => sizes.get(index).copied().unwrap_or(1),
        }
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Cdf(points) => {
                let first = points.first().map_or(0.0, |&(size, part)| size as f64 * part as f64);
                let between = points.windows(2).map(|pair| {
                    let middle = (pair[0].0 as f64 + pair[1].0 as f64) / 2.0;
                    middle * (pair[1].1 - pair[0].1) as f64
                });
                (first + between.sum::<f64>()) / CDF_WHOLE as f64
            }
            Self::Exponential(mean) => mean.get() as f64,
            Self::Listed(sizes) => {
                sizes.iter().map(|&size| size as f64).sum::<f64>() / sizes.len().max(1) as f64
            }
        }
    }
}

/// An exponentially distributed number, rounded down.
pub(crate) fn exponential(mean: f64, draws: &mut RandomStream) -> u64 {
    // Uniform in (0, 1], to 53 bits.
    let uniform = ((draws.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-maths::log2(uniform) * core::f64::consts::LN_2 * mean) as u64
}

impl Arrivals {
    /// The time of each of `count` arrivals after the start.
    fn draw(&self, count: usize, draws: &mut RandomStream) -> Vec<Duration> {
        let mut at = Duration::ZERO;
        let mut arrive = |number: usize| match self {
            Self::Together => Duration::ZERO,
            Self::Every(every) => every.saturating_mul(number as u64),
            Self::Poisson(mean) => {
                at += Duration::from_nanos(exponential(mean.as_nanos() as f64, draws));
                at
            }
            Self::Listed(times) => times.get(number).copied().unwrap_or(Duration::ZERO),
        };
        (0..count).map(&mut arrive).collect()
    }
}

impl Scenario {
    /// Sets the seed and draws the arrivals and sizes of all groups anew.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
        for group in &self.groups {
            group.draw(seed, &mut self.flows[group.flows.clone()]);
        }
    }

    /// Replaces the flow `index` by a group of `count` connections that follow it, or of the
    /// connections of `count` web pages. The flows after it must not be in groups yet. Returns the
    /// number of connections.
    pub fn replicate(
        &mut self,
        index: usize,
        count: usize,
        arrivals: Arrivals,
        sizes: Option<TransferSizes>,
    ) -> usize {
        let template = self.flows[index].clone();
        let connections = template.app.connections();
        let count = count * connections;
        let (name, start) = (template.name.clone(), template.start);
        let numbered = |number: usize| FlowSpec {
            name: format!("{name}-{number}"),
            app: template.app.connection(number % connections),
            ..template.clone()
        };
        self.flows.splice(index..=index, (0..count).map(numbered));
        let flows = index..index + count;
        let group = FlowGroup { name, flows, start, arrivals, sizes, connections };
        group.draw(self.seed, &mut self.flows[group.flows.clone()]);
        self.groups.push(group);
        count
    }
}

impl FlowGroup {
    fn draw(&self, seed: u64, flows: &mut [FlowSpec]) {
        let owner = format!("flows {}", self.name);
        let mut arrivals = RandomStream::named(seed, &owner, "arrival");
        let connections = self.connections.max(1);
        let times = self.arrivals.draw(flows.len() / connections, &mut arrivals);
        let mut draws = RandomStream::named(seed, &owner, "size");
        for (number, flow) in flows.iter_mut().enumerate() {
            flow.start = self.start + times.get(number / connections).copied().unwrap_or_default();
            if let (App::Bulk { bytes, .. }, Some(sizes)) = (&mut flow.app, &self.sizes) {
                *bytes = Some(Bytes(sizes.draw(number, &mut draws)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws() -> RandomStream {
        RandomStream::named(1, "test", "draws")
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_variance_of_the_law() {
        let count = 100_000;
        let times = Arrivals::Poisson(Duration::from_millis(1)).draw(count, &mut draws());
        // The sum has a standard deviation of 1 ms times the root of the count: 0.32 %.
        let last = times[count - 1].as_secs_f64();
        assert!((last - 100.0).abs() < 1.3, "{last}");
        let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64());
        let above = gaps.filter(|gap| *gap > 0.001).count() as f64 / count as f64;
        // e^-1, with a standard deviation of 0.0015.
        assert!((above - 0.367_879).abs() < 0.006, "{above}");
    }

    #[test]
    fn sizes_follow_their_distribution() {
        let points = [(1_000, 0), (2_000, CDF_WHOLE / 2), (10_000, CDF_WHOLE)];
        let sizes = TransferSizes::Cdf(points.into());
        assert!((sizes.mean() - 3_750.0).abs() < 1e-9);
        let mut stream = draws();
        let drawn: Vec<u64> = (0..100_000).map(|n| sizes.draw(n, &mut stream)).collect();
        assert!(drawn.iter().all(|size| (1_000..=10_000).contains(size)));
        let part = |most| drawn.iter().filter(|size| **size <= most).count() as f64 / 1e5;
        // Standard deviations below 0.0016.
        assert!((part(2_000) - 0.5).abs() < 0.0064 && (part(6_000) - 0.75).abs() < 0.0064);
        let mean = drawn.iter().sum::<u64>() as f64 / 1e5;
        assert!((mean - 3_750.0).abs() < 40.0, "{mean}");
    }
}
