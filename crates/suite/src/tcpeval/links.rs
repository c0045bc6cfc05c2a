//! Section 4.4 of the draft, the six links; section 5.1, the trade-off between delay and throughput.

use core::fmt::Write as _;

use super::compare;
use super::measure::CENTRAL;
use super::traffic::{DrawnFlow, drawn};
use crate::SuiteError;
use crate::evaluation::Evaluation;
use crate::sender::SuiteSender;

/// A central link with three nodes on each side. Edge links are delays: their rates, which are no
/// lower than the central link's, are left out.
#[derive(Debug)]
pub(super) struct CentralLink {
    name: &'static str,
    /// Rate from right to left, in which the data flows, in bit/s.
    down: u64,
    /// Rate from left to right.
    up: u64,
    /// One-way delay in microseconds.
    delay_us: u64,
    /// Queue in milliseconds at the link's rate, down and up.
    queue_ms: (u64, u64),
    /// One-way delays of the edge links in microseconds, left and right.
    edges_us: ([u64; 3], [u64; 3]),
    /// Length of a run: the draft has minutes to days.
    seconds: u64,
    /// Least and largest transfer in bytes.
    sizes: (f64, f64),
}

/// Delays of the edge links of the draft, section 4.1.
const EDGES: ([u64; 3], [u64; 3]) = ([0, 12_000, 25_000], [2_000, 37_000, 75_000]);
const SIZES: (f64, f64) = (5e4, 2e7);

pub(super) static DATA_CENTER: CentralLink = CentralLink {
    name: "data-center",
    down: 1_000_000_000,
    up: 1_000_000_000,
    delay_us: 0,
    queue_ms: (10, 10),
    edges_us: ([10, 10, 100], [10, 100, 100]),
    seconds: 3,
    sizes: SIZES,
};

pub(super) static ACCESS: CentralLink = CentralLink {
    name: "access-link",
    down: 100_000_000,
    up: 100_000_000,
    delay_us: 2_000,
    queue_ms: (100, 100),
    edges_us: EDGES,
    seconds: 30,
    sizes: SIZES,
};

pub(super) static TRANS_OCEANIC: CentralLink = CentralLink {
    name: "trans-oceanic",
    down: 1_000_000_000,
    up: 1_000_000_000,
    delay_us: 65_000,
    queue_ms: (100, 100),
    edges_us: EDGES,
    seconds: 10,
    sizes: SIZES,
};

pub(super) static SATELLITE: CentralLink = CentralLink {
    name: "satellite",
    down: 40_000_000,
    up: 4_000_000,
    delay_us: 300_000,
    queue_ms: (100, 1_000),
    edges_us: EDGES,
    seconds: 60,
    sizes: SIZES,
};

pub(super) static DIAL_UP: CentralLink = CentralLink {
    name: "dial-up",
    down: 64_000,
    up: 64_000,
    delay_us: 5_000,
    queue_ms: (1_250, 1_250),
    edges_us: EDGES,
    seconds: 1_800,
    sizes: (2e3, 2e5),
};

/// A link at 60, 85 and 110 % load.
pub(super) fn loads(evaluation: &mut Evaluation<'_>, link: &CentralLink) -> Result<(), SuiteError> {
    for load in [60, 85, 110] {
        link.compare(evaluation, load, bytes(link.down, link.queue_ms.0), "")?;
    }
    Ok(())
}

/// The access link at 85 % load with queues of 10 to 200 % of the product of its rate and 100 ms.
pub(super) fn trade_off(evaluation: &mut Evaluation<'_>) -> Result<(), SuiteError> {
    for percent in [10, 20, 50, 100, 200] {
        let queue = bytes(ACCESS.down, percent);
        ACCESS.compare(evaluation, 85, queue, &format!("-queue-{percent}%"))?;
    }
    Ok(())
}

/// Bytes at this rate in this number of milliseconds.
const fn bytes(rate: u64, ms: u64) -> u64 {
    rate / 8 * ms / 1_000
}

impl CentralLink {
    fn compare(
        &self,
        evaluation: &mut Evaluation<'_>,
        load: u64,
        queue: u64,
        suffix: &str,
    ) -> Result<(), SuiteError> {
        let name = format!("{}-{load}%{suffix}", self.name);
        let total = self.down as f64 / 8.0 * self.seconds as f64 * load as f64 / 100.0;
        // The flows of a load are the same with every queue.
        let owner = format!("{} {load}", self.name);
        let flows = drawn(&owner, total, self.seconds, self.sizes, 9);
        let text = |sender: &SuiteSender| self.scenario(&name, sender, queue, &flows);
        compare(evaluation, &name, text, |run| {
            100.0 * run.goodput.iter().sum::<f64>() / self.down as f64
        })?;
        Ok(())
    }

    fn scenario(
        &self,
        name: &str,
        sender: &SuiteSender,
        queue: u64,
        flows: &[DrawnFlow],
    ) -> String {
        let mut text = format!("title = {name:?}\nseed = 1\nduration = \"{}s\"\n\n", self.seconds);
        for (key, rate, buffer) in
            [(CENTRAL, self.down, queue), ("back", self.up, bytes(self.up, self.queue_ms.1))]
        {
            let _ = writeln!(
                text,
                "[shared.{key}]\nlink = {{ rate = \"{rate}bit/s\", buffer = \"{buffer}B\" }}\n"
            );
        }
        let (left, right) = self.edges_us;
        for route in 0..9 {
            let (from, to) = (format!("sender{route}"), format!("sink{route}"));
            let way = self.delay_us + left[route % 3] + right[route / 3];
            let _ = writeln!(
                text,
                "{}\n[[path]]\nfrom = {from:?}\nto = {to:?}\nforward = [{{ shared = {CENTRAL:?} }}, \
                 {{ delay = \"{way}us\" }}]\nreturn = [{{ shared = \"back\" }}, {{ delay = \
                 \"{way}us\" }}]\n",
                sender.hosts(&from, &to, None)
            );
        }
        write_flows(&mut text, flows);
        text
    }
}

/// The flows as text, between the hosts of their routes.
pub(super) fn write_flows(text: &mut String, flows: &[DrawnFlow]) {
    for (number, flow) in flows.iter().enumerate() {
        let _ = writeln!(
            text,
            "[[flow]]\nname = \"f{number}\"\nfrom = \"sender{0}\"\nto = \"sink{0}\"\nstart = \
             \"{1}ns\"\nbulk = \"{2}B\"\n",
            flow.route, flow.start, flow.bytes
        );
    }
}
