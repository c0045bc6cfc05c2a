//! The suite of slow start: where it ends, on 200 paths.
//!
//! Slow start should end when the window fills the path. It ends early, by a delay that is no queue,
//! or late, when a queue has overflowed. The figure of a path is the window at the end of slow start
//! over the path's capacity, the bandwidth-delay product.

use core::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use sim::{Observer, RunError};
use units::{Duration, Instant};

use crate::SuiteError;
use crate::criteria::{Suite, SuiteCriterion};
use crate::evaluation::{Evaluation, Margin};
use crate::report::WorldText;
use crate::sender::SuiteSender;
use crate::world::{SuiteWorld, WorldFlow};

/// Rates of the links in Mbit/s.
const RATES: [u32; 5] = [10, 20, 50, 100, 200];
/// Round trips without queue in milliseconds.
const RTTS: [u64; 5] = [20, 40, 80, 150, 300];
/// Variation of the delay on the paths that have one.
const JITTER: &str = "{ jitter = \"2ms\" }";
/// A threshold of this size is none: FreeBSD's first value is the largest window.
const UNSET: u64 = 1 << 29;

const LIMITS: &str = "the mean factor between window and capacity at most a tenth above the worst \
                      reference; paths on which slow start ends below half of the capacity at most \
                      as many as for the worst reference, and a tenth of them are free";

/// The suite.
pub static SLOW_START: Suite = Suite {
    name: "slow-start",
    is_drawn: false,
    title: "slow start over 200 paths",
    lead: "The figure of a path is the window at the end of slow start over the capacity of the path, \
           its bandwidth-delay product. The limits are the worst reference with a margin.",
    criteria: &[
        criterion::<1, false>("0.25bdp", "a queue of 0.25 bandwidth-delay products"),
        criterion::<2, false>("0.5bdp", "a queue of 0.5 bandwidth-delay products"),
        criterion::<4, false>("1bdp", "a queue of 1 bandwidth-delay product"),
        criterion::<8, false>("2bdp", "a queue of 2 bandwidth-delay products"),
        criterion::<1, true>("0.25bdp-jitter", "0.25 products, the delay varies by 2 ms"),
        criterion::<2, true>("0.5bdp-jitter", "0.5 products, the delay varies by 2 ms"),
        criterion::<4, true>("1bdp-jitter", "1 product, the delay varies by 2 ms"),
        criterion::<8, true>("2bdp-jitter", "2 products, the delay varies by 2 ms"),
    ],
};

const fn criterion<const QUARTERS: u32, const VARIES: bool>(
    section: &'static str,
    title: &'static str,
) -> SuiteCriterion {
    SuiteCriterion {
        section,
        title,
        limits: LIMITS,
        source: "the factors are this project's",
        not_evaluated: None,
        evaluate: evaluate::<QUARTERS, VARIES>,
    }
}

/// The paths with a queue of this number of quarters of the bandwidth-delay product.
fn evaluate<const QUARTERS: u32, const VARIES: bool>(
    evaluation: &mut Evaluation<'_>,
) -> Result<(), SuiteError> {
    let bdp = f64::from(QUARTERS) / 4.0;
    let kind = if VARIES { "-jitter" } else { "" };
    let mut paths = Vec::new();
    for mbits in RATES {
        for ms in RTTS {
            let rtt = Duration::from_millis(ms);
            let name = format!("{mbits}mbit-{ms}ms-{bdp}bdp{kind}");
            // Fifty round trips through a full queue are enough for any growth of at least a quarter
            // in each.
            let longest = Duration::from_millis((ms as f64 * (1.0 + bdp) * 50.0) as u64);
            let world = |sender: &SuiteSender| {
                let world = SuiteWorld::new(name.clone(), f64::from(mbits), rtt, bdp)
                    .lasts(longest)
                    .flow(WorldFlow::bulk("upload", sender, rtt));
                let world = if VARIES { world.element(JITTER) } else { world };
                WorldText::new(name.clone(), world.text())
            };
            let capacity = f64::from(mbits) * 1e6 / 8.0 * rtt.as_secs_f64();
            let exits = evaluation.each(world, |world, stop| {
                let exit = slow_start_exit(world, stop)?;
                // The window counts payload, the link packets of 1500 bytes.
                Ok(exit.map(|(window, mss)| window as f64 / (capacity * mss as f64 / 1_500.0)))
            })?;
            paths.push((name, exits));
        }
    }
    // The outer index is the sender: the one under test, then the references.
    let senders = paths.first().map_or(0, |(_, exits)| exits.len());
    let ratios: Vec<Vec<f64>> = (0..senders)
        .map(|sender| paths.iter().filter_map(|(_, exits)| exits[sender]).collect())
        .collect();
    // Without a path on which slow start ends there is no evidence.
    let of = |measure: fn(&[f64]) -> f64| -> Vec<Option<f64>> {
        ratios.iter().map(|ratios| (!ratios.is_empty()).then(|| measure(ratios))).collect()
    };
    let group = SLOW_START_GROUP;
    let factor = Margin::AtMost { factor: 1.1, free: 0.0 };
    let mean_factor = of(|ratios| {
        let factors = ratios.iter().map(|&ratio| ratio.max(1.0 / ratio));
        factors.sum::<f64>() / ratios.len() as f64
    });
    evaluation.compared(group, "mean factor between window and capacity", "", factor, &mean_factor);
    let early =
        of(|ratios| percent(ratios.iter().filter(|&&ratio| ratio < 0.5).count(), ratios.len()));
    let margin = Margin::AtMost { factor: 1.0, free: 10.0 };
    evaluation.compared(group, "slow start ends below half of the capacity", "%", margin, &early);
    let late =
        of(|ratios| percent(ratios.iter().filter(|&&ratio| ratio > 2.0).count(), ratios.len()));
    evaluation.compared(group, "above twice the capacity", "%", Margin::Info, &late);
    let ends: Vec<f64> = ratios.iter().map(|ratios| percent(ratios.len(), paths.len())).collect();
    evaluation.compared(group, "slow start ends within the run", "%", Margin::Info, &ends);
    for (name, exits) in &paths {
        if exits.first().copied().flatten().is_some() {
            let values: Vec<f64> = exits.iter().copied().flatten().collect();
            let what = "window at the end of slow start over capacity";
            evaluation.compared(name, what, "", Margin::Info, &values);
        }
    }
    Ok(())
}

/// Name of the figures over all paths of a criterion.
const SLOW_START_GROUP: &str = "25 paths";

fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

/// Watches the first flow until its slow-start threshold is set.
#[derive(Debug, Default)]
struct SlowStartObserver {
    /// The window before the present event.
    cwnd: u64,
    /// The window when slow start ended, and the payload of a full segment.
    exit: Option<(u64, u64)>,
}

impl Recorder for SlowStartObserver {
    const ON: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}

    #[inline]
    fn record_sender(
        &mut self,
        _: Instant,
        who: EventSource,
        _: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        if self.exit.is_some() || who.host.0 != 0 {
            return;
        }
        if sender.ssthresh().is_some_and(|threshold| threshold.get() < UNSET) {
            self.exit = Some((self.cwnd, sender.mss().get()));
        } else {
            self.cwnd = sender.cwnd().get();
        }
    }

    fn record_packet(&mut self, _: Instant, _: PacketEvent) {}
}

impl Observer for SlowStartObserver {
    fn progress(&mut self, _: Instant) -> ControlFlow<()> {
        if self.exit.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The window at the end of slow start and the payload of a segment, in bytes; `None` if it does not
/// end within the run.
fn slow_start_exit(world: &WorldText, stop: &AtomicBool) -> Result<Option<(u64, u64)>, SuiteError> {
    let loaded = world.load()?;
    let mut observer = SlowStartObserver::default();
    match runner::stop::run_shared(&loaded.scenario, &mut observer, stop) {
        Ok(_) => {}
        // The observer ended the run.
        Err(RunError::Stopped) if observer.exit.is_some() => {}
        Err(error) => return Err(SuiteError::Run(world.name.clone(), error.to_string())),
    }
    Ok(observer.exit)
}
