//! The way behind a proxy: a transfer of its own, simulated first, at whose pace the proxy passes data on.

use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use units::{Duration, Instant};

use crate::capture::parse;
use crate::world::World;

/// Bytes that the proxy passes on together, and the shortest time between two of its writes.
const CHUNK: u64 = 20_000;
const PACE: Duration = Duration::from_millis(20);

/// Bytes that the proxy has got, and the wait before them.
#[derive(Debug, Clone, Copy)]
pub(super) struct OriginChunk {
    pub(super) bytes: u64,
    pub(super) wait: Duration,
}

/// What a proxy gets of a transfer as large as that of the world, over a way with this loss (hundredths of a percent)
/// and round trip (ms).
pub(super) fn chunks(world: &World, loss: u64, round_trip: u64) -> Vec<OriginChunk> {
    let text = format!(
        "seed = 7\nduration = \"80s\"\n\
         [host.origin]\nprofile = \"linux-6.18\"\ncc = \"cubic\"\n\
         [host.proxy]\nprofile = \"linux-6.18\"\n\
         [[path]]\nfrom = \"origin\"\nto = \"proxy\"\n\
         forward = [{{ loss = \"{}.{:02}%\" }}, {{ link = {{ rate = \"{}kbit/s\", buffer = \"300kB\" }} }}, \
         {{ delay = \"{}us\" }}]\nreturn = [{{ delay = \"{}us\" }}]\n\
         [[flow]]\nname = \"origin\"\nfrom = \"origin\"\nto = \"proxy\"\nbulk = \"{}B\"\n",
        loss / 100,
        loss % 100,
        world.rate,
        round_trip * 500,
        round_trip * 500,
        world.size,
    );
    let start = Instant::ZERO;
    let mut reads = OriginReads { chunks: Vec::new(), pending: 0, passed_on: start, last: start };
    if let Ok(scenario) = parse(&text) {
        // A way that carries nothing gives no chunks.
        let _ = sim::run_shared(&scenario, &mut reads);
    }
    reads.finish()
}

/// Collects what the proxy reads.
#[derive(Debug)]
struct OriginReads {
    chunks: Vec<OriginChunk>,
    /// Read since the last chunk, and when that was.
    pending: u64,
    passed_on: Instant,
    last: Instant,
}

impl OriginReads {
    fn pass_on(&mut self) {
        let wait = self.last.since(self.passed_on);
        self.chunks.push(OriginChunk { bytes: core::mem::take(&mut self.pending), wait });
        self.passed_on = self.last;
    }

    fn finish(mut self) -> Vec<OriginChunk> {
        if self.pending > 0 {
            self.pass_on();
        }
        self.chunks
    }
}

impl Recorder for OriginReads {
    const ON: bool = true;
    const STATES: bool = false;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, _: Option<&SenderState>) {
        let Event::AppRead { bytes, .. } = event else { return };
        self.last = at;
        self.pending += u64::from(bytes);
        if self.pending >= CHUNK && at.since(self.passed_on) >= PACE {
            self.pass_on();
        }
    }
}

impl Observer for OriginReads {}
