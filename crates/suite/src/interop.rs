//! Stacks in pairs over the path of a scenario: each sender with each receiver alone, and each pair of stacks that
//! share the path.
//!
//! Reading order: [`InteropStack`] (who takes part), `pair_world` (a scenario of two flows), this file (the runs),
//! [`InteropReport`] (the results), `text` and `page` (their forms).

mod page;
mod pair_world;
mod report;
mod stack;
mod text;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use runner::sharing::jain;
use runner::stop;
use runner::sweep::statistics::SampleStatistics;
use sim::{Observer, Scenario};
use units::{Duration, Instant, RandomStream};

use crate::SuiteError;

pub use page::page;
pub use report::{InteropFigure, InteropReport, InteropShare, InteropTransfer};
pub use stack::{InteropStack, InteropStackError};
pub use text::render;

use pair_world::PairFlow;

/// The second flow of a pair starts up to this much after the first, in nanoseconds.
const PHASE: u64 = 2_000_000_000;

/// What to run.
#[derive(Debug)]
pub struct InteropRequest<'a> {
    /// The scenario whose first flow has the path.
    pub scenario: &'a Scenario,
    /// Name of its file.
    pub file: String,
    /// SHA-256 of its text.
    pub sha256: String,
    /// The stacks.
    pub stacks: Vec<InteropStack>,
    /// Seeds of each transfer, and drawn start phases of each pair.
    pub phases: u32,
    /// Virtual time of each run. What is before its last two thirds does not count.
    pub length: Duration,
}

/// The two kinds of runs: a sender with a receiver alone, and two stacks that share the path.
#[derive(Debug, Clone, Copy)]
enum InteropRun {
    Alone { sender: usize, receiver: usize },
    Shared { first: usize, second: usize },
}

/// Figures of the flows of one run.
#[derive(Debug, Clone, Copy, Default)]
struct FlowFigures {
    mbps: f64,
    /// In percent of the data packets.
    retransmitted: f64,
}

impl InteropRequest<'_> {
    /// Virtual time from which the bytes count.
    fn measured_from(&self) -> Duration {
        Duration::from_nanos(self.length.as_nanos() / 3)
    }

    fn runs(&self) -> Vec<InteropRun> {
        let all = 0..self.stacks.len();
        let alone = all.clone().flat_map(|sender| {
            all.clone().map(move |receiver| InteropRun::Alone { sender, receiver })
        });
        let shared = all.clone().flat_map(|first| {
            (first..all.end).map(move |second| InteropRun::Shared { first, second })
        });
        let possible = |run: &InteropRun| match *run {
            InteropRun::Alone { sender, receiver } => {
                self.stacks[sender].speaks_to(&self.stacks[receiver])
            }
            InteropRun::Shared { .. } => true,
        };
        alone.chain(shared).filter(possible).collect()
    }

    /// Number of simulations.
    pub fn simulations(&self) -> u64 {
        self.runs().len() as u64 * u64::from(self.phases)
    }

    fn flows(&self, run: InteropRun, start: Duration) -> Vec<PairFlow<'_>> {
        let flow = |sender: usize, receiver: usize, start| PairFlow {
            sender: &self.stacks[sender].stack,
            receiver: &self.stacks[receiver].stack,
            start,
        };
        match run {
            InteropRun::Alone { sender, receiver } => vec![flow(sender, receiver, Duration::ZERO)],
            InteropRun::Shared { first, second } => {
                vec![flow(first, first, Duration::ZERO), flow(second, second, start)]
            }
        }
    }

    /// Runs one simulation.
    fn simulate(
        &self,
        run: InteropRun,
        phase: u32,
        stop: &AtomicBool,
    ) -> Result<[FlowFigures; 2], SuiteError> {
        let seed = self.scenario.seed.wrapping_add(u64::from(phase));
        let mut draws = RandomStream::named(seed, "interop", "start phases");
        let flows = self.flows(run, Duration::from_nanos(draws.below(PHASE)));
        let world = pair_world::scenario(self.scenario, &flows, self.length, seed);
        let from = self.measured_from();
        let mut meter = InteropMeter { from: Instant::ZERO + from, flows: [(0, 0); 2] };
        let outcome = stop::run_shared(&world, &mut meter, stop)
            .map_err(|error| SuiteError::Run(self.file.clone(), error.to_string()))?;
        let seconds = self.length.saturating_sub(from).as_secs_f64();
        let mut figures = [FlowFigures::default(); 2];
        for ((figures, flow), (bytes, packets)) in
            figures.iter_mut().zip(&outcome.flows).zip(meter.flows)
        {
            figures.mbps = bytes as f64 * 8.0 / 1e6 / seconds;
            figures.retransmitted =
                100.0 * flow.retransmitted_segments as f64 / packets.max(1) as f64;
        }
        Ok(figures)
    }
}

/// Counts bytes read by the receivers, and data packets of the senders; hosts alternate.
struct InteropMeter {
    from: Instant,
    flows: [(u64, u64); 2],
}

impl Recorder for InteropMeter {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, .. } = event
            && who.host.0 % 2 == 1
            && at >= self.from
            && let Some((read, _)) = self.flows.get_mut(who.flow.0 as usize)
        {
            *read += u64::from(bytes);
        }
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        _: &impl Sender,
    ) {
        self.record(at, who, event(), None);
    }

    fn record_packet(&mut self, _: Instant, movement: PacketEvent) {
        if let PacketEvent::Sent { host, flow, len, .. } = movement
            && len > 0
            && host.0 % 2 == 0
            && let Some((_, packets)) = self.flows.get_mut(flow.0 as usize)
        {
            *packets += 1;
        }
    }
}

impl Observer for InteropMeter {}

/// Checks that the path can be run with these stacks, before anything runs.
///
/// # Errors
/// The path without a link lets a sender send without bound, or a stack does not fit it.
pub fn validate(request: &InteropRequest<'_>) -> Result<(), SuiteError> {
    for run in request.runs() {
        let world = pair_world::scenario(
            request.scenario,
            &request.flows(run, Duration::ZERO),
            request.length,
            1,
        );
        sim::validate(&world)
            .map_err(|error| SuiteError::Run(request.file.clone(), error.to_string()))?;
    }
    Ok(())
}

/// Runs all pairs on `threads` threads; the report is the same for any number of them. `finished` is called with the
/// number of simulations done.
///
/// # Errors
/// The first error of a run; `stop` ends the runs with one.
pub fn run(
    request: &InteropRequest<'_>,
    threads: usize,
    stop: &AtomicBool,
    finished: &(impl Fn(u64) + Sync),
) -> Result<InteropReport, SuiteError> {
    let runs = request.runs();
    let phases = request.phases as usize;
    let next = AtomicUsize::new(0);
    let count = AtomicUsize::new(0);
    type Place = Mutex<Option<Result<[FlowFigures; 2], SuiteError>>>;
    let places: Vec<Place> = (0..runs.len() * phases).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(place) = places.get(at) else { return };
                    let result = request.simulate(runs[at / phases], (at % phases) as u32, stop);
                    if let Ok(mut place) = place.lock() {
                        *place = Some(result);
                    }
                    finished(count.fetch_add(1, Ordering::Relaxed) as u64 + 1);
                }
            });
        }
    });
    let mut figures = Vec::with_capacity(places.len());
    for place in places {
        let result = place.into_inner().ok().flatten();
        figures.push(result.ok_or_else(|| SuiteError::World("a thread ended early".to_owned()))??);
    }
    let mut report = InteropReport::new(request);
    for (run, figures) in runs.iter().zip(figures.chunks(phases)) {
        let figure = |of: &dyn Fn(&[FlowFigures; 2]) -> f64| {
            let mut statistics = SampleStatistics::default();
            figures.iter().for_each(|one| statistics.add(of(one)));
            InteropFigure { mean: statistics.mean, confidence: statistics.confidence() }
        };
        match *run {
            InteropRun::Alone { sender, receiver } => {
                let transfer = report.transfer_mut(sender, receiver);
                transfer.goodput_mbps = Some(figure(&|flows| flows[0].mbps));
                transfer.retransmitted_percent = Some(figure(&|flows| flows[0].retransmitted));
            }
            InteropRun::Shared { first, second } => {
                let share = |flows: &[FlowFigures; 2]| {
                    let sum = flows[0].mbps + flows[1].mbps;
                    if sum > 0.0 { 100.0 * flows[0].mbps / sum } else { 50.0 }
                };
                report.shared.push(InteropShare {
                    stacks: [first, second].map(|stack| request.stacks[stack].name.clone()),
                    first_share_percent: figure(&share),
                    goodput_mbps: [0, 1].map(|flow| figure(&|flows| flows[flow].mbps)),
                    retransmitted_percent: [0, 1]
                        .map(|flow| figure(&|flows| flows[flow].retransmitted)),
                    jain: figure(&|flows| jain(&flows.map(|flow| flow.mbps))),
                });
            }
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use scenario::{Overrides, load};

    use super::*;

    const PATH: &str = r#"
        duration = "20s"
        host = { a = { profile = "quic-rfc9002" }, b = { profile = "quic-rfc9002" } }
        path = [ { from = "a", to = "b", forward = [
            { link = { rate = "10Mbit/s", buffer = "50kB" } }, { delay = "10ms" }
        ], return = [ { delay = "10ms" } ] } ]
        flow = [ { name = "up", from = "a", to = "b", bulk = "unlimited" } ]
    "#;

    fn with_threads(threads: usize) -> InteropReport {
        let loaded = load(PATH, "path", &Overrides::default()).unwrap();
        let stacks = ["quinn-0.11", "quic-rfc9002/cubic", "linux-6.18"];
        let request = InteropRequest {
            scenario: &loaded.scenario,
            file: "path.toml".into(),
            sha256: loaded.sha256.clone(),
            stacks: stacks
                .map(|name| InteropStack::read(name, scenario::Stacks::Refused).unwrap())
                .to_vec(),
            phases: 3,
            length: Duration::from_secs(15),
        };
        validate(&request).unwrap();
        // TCP speaks to TCP only: 2 x 2 + 1 transfers, and 6 pairs.
        assert_eq!(request.simulations(), 11 * 3);
        run(&request, threads, &AtomicBool::new(false), &|_| {}).unwrap()
    }

    /// 10 Mbit/s less headers; two equal flows share them; the number of threads makes no difference.
    #[test]
    fn pairs_fill_the_path_and_share_it() {
        let report = with_threads(2);
        for transfer in &report.transfers {
            let is_tcp =
                [&transfer.sender, &transfer.receiver].map(|name| name.starts_with("linux"));
            let Some(goodput) = transfer.goodput_mbps else {
                assert_ne!(is_tcp[0], is_tcp[1]);
                continue;
            };
            assert!((9.0..10.0).contains(&goodput.mean), "{transfer:?}");
            // Nothing is random on this path.
            assert_eq!(goodput.confidence, Some(0.0), "{transfer:?}");
        }
        assert_eq!(report.shared.len(), 6);
        for share in &report.shared {
            let sum = share.goodput_mbps[0].mean + share.goodput_mbps[1].mean;
            assert!((9.0..10.0).contains(&sum), "{share:?}");
            assert!((0.5..=1.0).contains(&share.jain.mean));
        }
        assert_eq!(report.to_json(), with_threads(1).to_json());
        let text = render(&report);
        assert!(text.contains("quic-rfc9002/cubic"), "{text}");
    }
}
