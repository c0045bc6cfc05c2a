//! One run of a world: what the draft asks for, section 4.5.

use std::sync::atomic::AtomicBool;

use record::{Event, EventSource, PacketEvent, Recorder, SenderState};
use runner::sharing::{LinkReport, Sharing};
use serde::{Deserialize, Serialize};
use sim::Observer;
use units::{Duration, Instant};

use super::topology::CENTRAL;
use crate::SuiteError;
use crate::report::WorldText;

/// What a run showed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct TcpevalRun {
    /// Packets dropped at the queues under test, in percent of those that arrived there; `None` without
    /// any.
    pub(super) loss: Option<f64>,
    /// The longest median of the queue delay of a link under test; `None` without packets.
    pub(super) median_delay_ms: Option<f64>,
    /// The longest 95th percentile.
    pub(super) delay_p95_ms: Option<f64>,
    /// Goodput of each route after the warm-up, in bit/s.
    pub(super) goodput: Vec<f64>,
    /// When the receiver of each route had read 15 kB, 150 kB and so on, in seconds.
    pub(super) reached_s: Vec<Vec<f64>>,
}

/// What the receiver of a route read.
#[derive(Debug, Clone, Default)]
struct RouteRead {
    bytes: u64,
    after_warm_up: u64,
    reached_s: Vec<f64>,
}

impl RouteRead {
    /// The `(1500 * 10^n)`-th bytes of section 5.2.3, for n from 1 on.
    fn next_mark(&self) -> u64 {
        15_000 * 10_u64.pow(self.reached_s.len() as u32)
    }
}

struct ReadObserver {
    sharing: Sharing,
    warm_up: Instant,
    routes: Vec<RouteRead>,
}

impl Recorder for ReadObserver {
    const ON: bool = true;
    const PACKETS: bool = true;
    const STATES: bool = false;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.sharing.record(at, who, event, state);
        // Hosts alternate: the sender and the receiver of each route.
        if let Event::AppRead { bytes, .. } = event
            && who.host.0 % 2 == 1
        {
            let route = usize::from(who.host.0 / 2);
            if self.routes.len() <= route {
                self.routes.resize_with(route + 1, RouteRead::default);
            }
            let read = &mut self.routes[route];
            read.bytes += u64::from(bytes);
            if at >= self.warm_up {
                read.after_warm_up += u64::from(bytes);
            }
            while read.bytes >= read.next_mark() {
                read.reached_s.push(at.as_secs_f64());
            }
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.sharing.record_packet(at, movement);
    }
}

impl Observer for ReadObserver {}

/// Runs a world.
pub(super) fn run(world: &WorldText, stop: &AtomicBool) -> Result<TcpevalRun, SuiteError> {
    run_after(world, Duration::ZERO, stop)
}

/// Runs a world; the goodput is that after the warm-up.
pub(super) fn run_after(
    world: &WorldText,
    warm_up: Duration,
    stop: &AtomicBool,
) -> Result<TcpevalRun, SuiteError> {
    let loaded = world.load()?;
    let mut observer = ReadObserver {
        sharing: Sharing::new(&loaded.scenario),
        warm_up: Instant::ZERO + warm_up,
        routes: Vec::new(),
    };
    let outcome = runner::stop::run_shared(&loaded.scenario, &mut observer, stop)
        .map_err(|error| SuiteError::Run(world.name.clone(), error.to_string()))?;
    let report = observer.sharing.report(&loaded.scenario, &outcome);
    let prefix = format!("shared.{CENTRAL}");
    let links: Vec<_> = report.links.iter().filter(|link| link.link.starts_with(&prefix)).collect();
    let packets: u64 = links.iter().map(|link| link.packets + link.lost).sum();
    let lost: u64 = links.iter().map(|link| link.lost).sum();
    let longest = |of: fn(&LinkReport) -> Option<f64>| {
        links.iter().filter_map(|link| of(link)).reduce(f64::max).map(|seconds| seconds * 1e3)
    };
    let seconds = (loaded.scenario.duration - warm_up).as_secs_f64();
    let goodput = |read: &RouteRead| read.after_warm_up as f64 * 8.0 / seconds;
    Ok(TcpevalRun {
        loss: (packets > 0).then(|| 100.0 * lost as f64 / packets as f64),
        median_delay_ms: longest(|link| link.delay_p50_s),
        delay_p95_ms: longest(|link| link.delay_p95_s),
        goodput: observer.routes.iter().map(goodput).collect(),
        reached_s: observer.routes.into_iter().map(|read| read.reached_s).collect(),
    })
}
