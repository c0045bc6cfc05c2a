//! Section 4.4 of the draft, the six links; section 5.1, the trade-off between delay and throughput.

use super::compare;
use super::topology::{CentralLink, EDGES, ROUTES, TopologyText, bytes};
use super::traffic::{DrawnFlow, SIZES, drawn};
use crate::SuiteError;
use crate::evaluation::Evaluation;
use crate::sender::SuiteSender;

/// A link of section 4.4.
#[derive(Debug)]
pub(super) struct LoadedLink {
    name: &'static str,
    /// Rate from right to left, in which the data flows, in bit/s, and the queue in milliseconds.
    down: (u64, u64),
    /// The same from left to right; `None`: the link is a medium for both directions.
    up: Option<(u64, u64)>,
    /// One-way delay in microseconds.
    delay_us: u64,
    /// One-way delays of the edge links in microseconds, left and right.
    edges_us: ([u64; 3], [u64; 3]),
    /// Length of a run: the draft has minutes to days.
    seconds: u64,
    /// Least and largest transfer in bytes.
    sizes: (f64, f64),
}

const fn gigabit(
    name: &'static str,
    delay_us: u64,
    queue_ms: u64,
    edges_us: ([u64; 3], [u64; 3]),
    seconds: u64,
) -> LoadedLink {
    let way = (1_000_000_000, queue_ms);
    LoadedLink { name, down: way, up: Some(way), delay_us, edges_us, seconds, sizes: SIZES }
}

pub(super) static DATA_CENTER: LoadedLink =
    gigabit("data-center", 0, 10, ([10, 10, 100], [10, 100, 100]), 3);

pub(super) static ACCESS: LoadedLink = LoadedLink {
    name: "access-link",
    down: (100_000_000, 100),
    up: Some((100_000_000, 100)),
    delay_us: 2_000,
    edges_us: EDGES,
    seconds: 30,
    sizes: SIZES,
};

pub(super) static TRANS_OCEANIC: LoadedLink = gigabit("trans-oceanic", 65_000, 100, EDGES, 10);

pub(super) static SATELLITE: LoadedLink = LoadedLink {
    name: "satellite",
    down: (40_000_000, 100),
    up: Some((4_000_000, 1_000)),
    delay_us: 300_000,
    edges_us: EDGES,
    seconds: 60,
    sizes: SIZES,
};

/// The draft's nominal rate of 802.11g, one queue for both directions of 100 ms, the mean round trip.
/// The wired link of 100 Mbit/s behind the base station is its delay.
pub(super) static WIRELESS: LoadedLink = LoadedLink {
    name: "wireless-lan",
    down: (6_000_000, 100),
    up: None,
    delay_us: 2_000,
    edges_us: EDGES,
    seconds: 120,
    sizes: SIZES,
};

pub(super) static DIAL_UP: LoadedLink = LoadedLink {
    name: "dial-up",
    down: (64_000, 1_250),
    up: Some((64_000, 1_250)),
    delay_us: 5_000,
    edges_us: EDGES,
    seconds: 1_800,
    sizes: (2e3, 2e5),
};

/// A link at 60, 85 and 110 % load.
pub(super) fn loads(evaluation: &mut Evaluation<'_>, link: &LoadedLink) -> Result<(), SuiteError> {
    for load in [60, 85, 110] {
        link.compare(evaluation, load, link.down.1, "")?;
    }
    Ok(())
}

/// The access link at 85 % load with queues of 10 to 200 % of the product of its rate and 100 ms.
pub(super) fn trade_off(evaluation: &mut Evaluation<'_>) -> Result<(), SuiteError> {
    for percent in [10, 20, 50, 100, 200] {
        ACCESS.compare(evaluation, 85, percent, &format!("-queue-{percent}%"))?;
    }
    Ok(())
}

impl LoadedLink {
    fn compare(
        &self,
        evaluation: &mut Evaluation<'_>,
        load: u64,
        queue_ms: u64,
        suffix: &str,
    ) -> Result<(), SuiteError> {
        let name = format!("{}-{load}%{suffix}", self.name);
        let rate = self.down.0;
        let total = rate as f64 / 8.0 * self.seconds as f64 * load as f64 / 100.0;
        // The flows of a load are the same with every queue.
        let owner = format!("{} {load}", self.name);
        let flows = drawn(&owner, total, self.seconds, self.sizes, ROUTES);
        let text = |sender: &SuiteSender| self.scenario(&name, sender, queue_ms, &flows);
        compare(evaluation, &name, text, |run| {
            100.0 * run.goodput.iter().sum::<f64>() / rate as f64
        })?;
        Ok(())
    }

    fn scenario(
        &self,
        name: &str,
        sender: &SuiteSender,
        queue_ms: u64,
        flows: &[DrawnFlow],
    ) -> String {
        let link = CentralLink {
            down: (self.down.0, bytes(self.down.0, queue_ms)),
            up: self.up.map(|(rate, ms)| (rate, bytes(rate, ms))),
        };
        let mut text = TopologyText::new(name, self.seconds);
        link.add(&mut text);
        let first = link.dumbbell(&mut text, sender, self.delay_us, self.edges_us);
        text.transfers(first, flows);
        text.finish()
    }
}
