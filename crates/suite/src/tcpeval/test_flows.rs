//! Sections 5.2, ramp-up time, and 6.2, fairness: two flows beside background traffic.

use units::{Duration, RandomStream};

use super::measure::{TcpevalRun, run_after};
use super::topology::{CentralLink, EDGES, ROUTES, TopologyText, bytes};
use super::traffic::{SIZES, drawn};
use crate::SuiteError;
use crate::evaluation::{Evaluation, Margin};
use crate::report::WorldText;
use crate::sender::SuiteSender;

/// Each world has this number of draws of its background traffic and start times. The draft averages
/// over at least three runs.
const DRAWS: u64 = 3;

/// A capacity of section 5.2.1: its name, its rate in bit/s, and the length of a run in seconds. The
/// draft's runs take 600 s.
#[derive(Debug, Clone, Copy)]
struct Capacity {
    name: &'static str,
    rate: u64,
    seconds: u64,
}

const TEN_MBIT: Capacity = Capacity { name: "10mbit", rate: 10_000_000, seconds: 60 };
const GIGABIT: Capacity = Capacity { name: "1000mbit", rate: 1_000_000_000, seconds: 10 };

/// A world: the test flows are routes 0 and 1.
struct TestFlows {
    name: String,
    capacity: Capacity,
    /// Queue in milliseconds at the link's rate.
    queue_ms: u64,
    rtts_ms: [u64; 2],
    starts: [Duration; 2],
    draw: u64,
}

impl TestFlows {
    fn world(&self, sender: &SuiteSender) -> WorldText {
        let Capacity { rate, seconds, .. } = self.capacity;
        let link = CentralLink::symmetric(rate, bytes(rate, self.queue_ms));
        let mut text = TopologyText::new(&self.name, seconds);
        link.add(&mut text);
        for rtt in self.rtts_ms {
            link.route(&mut text, sender, rtt * 500);
        }
        let first = link.dumbbell(&mut text, sender, 2_000, EDGES);
        for (route, start) in self.starts.into_iter().enumerate() {
            text.flow(route, start.as_nanos(), "bulk = \"unlimited\"");
        }
        // Half of the capacity, the same for each sender, round trip and queue.
        let total = rate as f64 / 16.0 * seconds as f64;
        let owner = format!("background {} {}", self.capacity.name, self.draw);
        text.transfers(first, &drawn(&owner, total, seconds, SIZES, ROUTES));
        WorldText::new(self.name.clone(), text.finish())
    }

    /// Runs the world with each sender.
    fn each(&self, evaluation: &mut Evaluation<'_>) -> Result<Vec<TcpevalRun>, SuiteError> {
        let warm_up = Duration::from_millis(self.capacity.seconds * 100);
        evaluation.each(|sender| self.world(sender), |world, stop| run_after(world, warm_up, stop))
    }
}

/// A figure of each run; the outer index is the draw, the inner one the sender.
fn by_sender<S>(draws: &[Vec<TcpevalRun>], of: impl Fn(&TcpevalRun) -> S) -> Vec<Vec<S>> {
    let senders = draws.first().map_or(0, Vec::len);
    (0..senders).map(|sender| draws.iter().map(|runs| of(&runs[sender])).collect()).collect()
}

/// Section 5.2: when a new flow beside an existing one has received 15 kB and so on.
pub(super) fn ramp_up(evaluation: &mut Evaluation<'_>) -> Result<(), SuiteError> {
    for (capacity, marks) in [(TEN_MBIT, 3), (GIGABIT, 4)] {
        for rtts_ms in [[80, 80], [120, 30], [30, 120]] {
            let [existing, new] = rtts_ms;
            let world = format!("ramp-up-{}-{existing}ms-{new}ms", capacity.name);
            let start = Duration::from_millis(capacity.seconds * 1_000 / 3);
            let draws = (0..DRAWS)
                .map(|draw| {
                    let name = format!("{world}-{draw}");
                    let starts = [Duration::ZERO, start];
                    TestFlows { name, capacity, queue_ms: 80, rtts_ms, starts, draw }
                        .each(evaluation)
                })
                .collect::<Result<Vec<_>, _>>()?;
            // What is not received counts with the rest of the run.
            let rest = (Duration::from_secs(capacity.seconds) - start).as_secs_f64();
            let margin = Margin::AtMost { factor: 1.2, free: 0.0 };
            for (mark, size) in ["15 kB", "150 kB", "1.5 MB", "15 MB"][..marks].iter().enumerate() {
                let time = |run: &TcpevalRun| {
                    let reached = run.reached_s.get(1).and_then(|reached| reached.get(mark));
                    reached.map_or(rest, |at| at - start.as_secs_f64())
                };
                let what = format!("time until the new flow has received {size}");
                evaluation.sampled(&world, &what, "s", margin, &by_sender(&draws, time));
            }
        }
    }
    Ok(())
}

/// Section 6.2: two flows with the same round trip, and two with different ones.
pub(super) fn fairness(evaluation: &mut Evaluation<'_>) -> Result<(), SuiteError> {
    for queue_ms in [25, 50, 100, 200] {
        for rtt in [10, 20, 40, 80, 160] {
            pair(evaluation, TEN_MBIT, queue_ms, [rtt, rtt])?;
        }
        for rtt in [10, 20, 40, 80] {
            pair(evaluation, TEN_MBIT, queue_ms, [160, rtt])?;
        }
    }
    for rtts in [[10, 10], [40, 40], [160, 160], [160, 10], [160, 40]] {
        pair(evaluation, GIGABIT, 100, rtts)?;
    }
    Ok(())
}

/// Two flows that start within the first tenth of the run; of different ones, that of 160 ms first.
fn pair(
    evaluation: &mut Evaluation<'_>,
    capacity: Capacity,
    queue_ms: u64,
    rtts_ms: [u64; 2],
) -> Result<(), SuiteError> {
    let [one, other] = rtts_ms;
    let world = format!("fairness-{}-queue-{queue_ms}%-{one}ms-{other}ms", capacity.name);
    let draws = (0..DRAWS)
        .map(|draw| {
            let tenth = capacity.seconds * 100_000_000;
            let mut draws = RandomStream::named(draw + 1, "tcpeval", "start times");
            let mut starts = [draws.below(tenth), draws.below(tenth)];
            starts.sort_unstable();
            let starts = starts.map(Duration::from_nanos);
            let name = format!("{world}-{draw}");
            TestFlows { name, capacity, queue_ms, rtts_ms, starts, draw }.each(evaluation)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let rates = |run: &TcpevalRun| {
        let of = |route: usize| run.goodput.get(route).copied().unwrap_or(0.0);
        (of(0), of(1))
    };
    let margin = Margin::AtLeast { factor: 0.9 };
    if one == other {
        let ratio = |run: &TcpevalRun| {
            let (one, other) = rates(run);
            one.min(other) / one.max(other).max(1.0)
        };
        let what = "goodput of the slower flow, over that of the faster";
        evaluation.sampled(&world, what, "", margin, &by_sender(&draws, ratio));
    } else {
        let ratio = |run: &TcpevalRun| {
            let (long, short) = rates(run);
            long / short.max(1.0)
        };
        let what = "goodput of the flow with 160 ms, over that of the other";
        evaluation.sampled(&world, what, "", margin, &by_sender(&draws, ratio));
    }
    let margin = Margin::AtMost { factor: 3.0, free: 1.0 };
    let what = "packets lost at the queue";
    evaluation.sampled(&world, what, "%", margin, &by_sender(&draws, |run| run.loss));
    Ok(())
}
