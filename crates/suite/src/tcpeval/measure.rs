//! One run of a world: what the draft asks for, section 4.5.

use std::sync::atomic::AtomicBool;

use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use runner::sharing::Sharing;
use sim::Observer;
use units::Instant;

use crate::SuiteError;
use crate::report::WorldText;

/// The name that the links under test have in scenarios: the first is `shared.central`, and further
/// ones continue it.
pub(super) const CENTRAL: &str = "central";

/// What a run showed.
#[derive(Debug, Clone)]
pub(super) struct TcpevalRun {
    /// Packets dropped at the queues under test, in percent of those that arrived there.
    pub(super) loss: f64,
    /// The longest median of the queue delay of a link under test.
    pub(super) median_delay_ms: f64,
    /// The longest 95th percentile.
    pub(super) delay_p95_ms: f64,
    /// Goodput of each route over the whole run, in bit/s.
    pub(super) goodput: Vec<f64>,
}

struct ReadObserver {
    sharing: Sharing,
    read: Vec<u64>,
}

impl Recorder for ReadObserver {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.sharing.record(at, who, event, state);
        // Hosts alternate: the sender and the receiver of each route.
        if let Event::AppRead { bytes, .. } = event
            && who.host.0 % 2 == 1
        {
            let route = usize::from(who.host.0 / 2);
            if self.read.len() <= route {
                self.read.resize(route + 1, 0);
            }
            self.read[route] += u64::from(bytes);
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

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.sharing.record_packet(at, movement);
    }
}

impl Observer for ReadObserver {}

/// Runs a world.
pub(super) fn run(world: &WorldText, stop: &AtomicBool) -> Result<TcpevalRun, SuiteError> {
    let loaded = world.load()?;
    let mut observer = ReadObserver { sharing: Sharing::new(&loaded.scenario), read: Vec::new() };
    let outcome = runner::stop::run_shared(&loaded.scenario, &mut observer, stop)
        .map_err(|error| SuiteError::Run(world.name.clone(), error.to_string()))?;
    let report = observer.sharing.report(&loaded.scenario, &outcome);
    let prefix = format!("shared.{CENTRAL}");
    let links: Vec<_> = report.links.iter().filter(|link| link.link.starts_with(&prefix)).collect();
    let packets: u64 = links.iter().map(|link| link.packets + link.lost).sum();
    let lost: u64 = links.iter().map(|link| link.lost).sum();
    let longest = |of: fn(&runner::sharing::LinkReport) -> Option<f64>| {
        links.iter().filter_map(|link| of(link)).fold(0.0, f64::max) * 1e3
    };
    let seconds = loaded.scenario.duration.as_secs_f64();
    let goodput = observer.read.iter().map(|&bytes| bytes as f64 * 8.0 / seconds).collect();
    Ok(TcpevalRun {
        loss: 100.0 * lost as f64 / packets.max(1) as f64,
        median_delay_ms: longest(|link| link.delay_p50_s),
        delay_p95_ms: longest(|link| link.delay_p95_s),
        goodput,
    })
}
