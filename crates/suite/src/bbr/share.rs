//! BBR beside loss-based flows in one queue, to compare with the model of `theory::bbr`.

use std::sync::atomic::AtomicBool;

use record::{Event, EventSource, Recorder, SenderState};
use scenario::{Overrides, load};
use sim::Observer;
use units::{Duration, Instant};

use crate::SuiteError;
use crate::sender::SuiteSender;
use crate::world::{SuiteWorld, WorldFlow};

/// A run of BBR beside other flows.
#[derive(Debug, Clone)]
pub struct ShareTrial {
    /// Sender of the BBR flows, and their number.
    pub bbr: (SuiteSender, u32),
    /// Sender of the others, and their number.
    pub others: (SuiteSender, u32),
    /// Rate of the link in bit/s.
    pub rate: u64,
    /// Round trip without queue.
    pub rtt: Duration,
    /// Bytes of the queue.
    pub buffer: u64,
    /// Length of the run, of which the first quarter is not counted.
    pub duration: Duration,
    /// Seed.
    pub seed: u64,
}

/// Bytes that the receivers read after the first quarter, of BBR and of the others.
struct ShareRecorder {
    from: Instant,
    bbr: u32,
    read: [u64; 2],
}

impl Recorder for ShareRecorder {
    const ON: bool = true;
    const STATES: bool = false;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, .. } = event
            && who.host.0 % 2 == 1
            && at >= self.from
        {
            self.read[usize::from(who.flow.0 >= self.bbr)] += u64::from(bytes);
        }
    }
}

impl Observer for ShareRecorder {}

impl ShareTrial {
    /// The share of all BBR flows together.
    ///
    /// # Errors
    /// A world that cannot be run; `stop` ends the run.
    pub fn run(&self, stop: &AtomicBool) -> Result<f64, SuiteError> {
        let mut world = SuiteWorld::new("bbr-share", self.rate as f64 / 1e6, self.rtt, 1.0)
            .lasts(self.duration);
        (world.buffer, world.seed) = (self.buffer, self.seed);
        let all = [(&self.bbr, "bbr"), (&self.others, "other")];
        let mut number = 0;
        for ((sender, count), name) in all {
            for flow in 0..*count {
                // Not at the same instant.
                let start = Duration::from_millis(37 * number);
                number += 1;
                let flow = WorldFlow::bulk(&format!("{name}{flow}"), sender, self.rtt);
                world = world.flow(flow.start(start));
            }
        }
        let loaded = load(&world.text(), "bbr-share", &Overrides::default()).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            SuiteError::World(errors.join("\n"))
        })?;
        let from = Instant::ZERO + Duration::from_nanos(self.duration.as_nanos() / 4);
        let mut recorder = ShareRecorder { from, bbr: self.bbr.1, read: [0; 2] };
        runner::stop::run_shared(&loaded.scenario, &mut recorder, stop)
            .map_err(|error| SuiteError::Run("bbr-share".to_owned(), error.to_string()))?;
        let [bbr, others] = recorder.read;
        Ok(bbr as f64 / (bbr + others).max(1) as f64)
    }
}
