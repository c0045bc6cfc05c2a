//! What the streams of a test of flent do, step by step.

use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use units::Instant;

use super::{FlentRequest, StreamKind};

/// Time between two values, flent's default, in nanoseconds.
pub(super) const STEP: u64 = 200_000_000;

/// What a stream did.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamSamples {
    /// Bytes that the receiving application read in each step.
    pub(super) bytes: Vec<u64>,
    /// When each response was complete, and the time since its request, in nanoseconds.
    pub(super) pings: Vec<(u64, u64)>,
    /// When the request without a response was written.
    asked: Option<u64>,
}

/// Records all streams.
#[derive(Debug)]
pub(super) struct StreamRecorder {
    kinds: Vec<StreamKind>,
    pub(super) streams: Vec<StreamSamples>,
}

impl StreamRecorder {
    pub(super) fn new(request: &FlentRequest) -> Self {
        let kinds: Vec<StreamKind> = request.streams().iter().map(|stream| stream.kind).collect();
        let steps = (request.total_s() * 1_000_000_000 / STEP) as usize;
        let streams = kinds
            .iter()
            .map(|_| StreamSamples { bytes: vec![0; steps], ..StreamSamples::default() })
            .collect();
        Self { kinds, streams }
    }
}

impl Recorder for StreamRecorder {
    const ON: bool = true;
    const STATES: bool = false;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        let flow = who.flow.0 as usize;
        let (Some(kind), Some(stream)) = (self.kinds.get(flow), self.streams.get_mut(flow)) else {
            return;
        };
        let now = at.as_nanos();
        // Hosts alternate: the one that connects and the other.
        let connects = who.host.0.is_multiple_of(2);
        match (kind, event, connects) {
            (StreamKind::Upload | StreamKind::Download, Event::AppRead { bytes, .. }, false) => {
                if let Some(step) = stream.bytes.get_mut((now / STEP) as usize) {
                    *step += u64::from(bytes);
                }
            }
            (StreamKind::Ping, Event::AppWrote { .. }, true) => {
                stream.asked.get_or_insert(now);
            }
            (StreamKind::Ping, Event::AppRead { .. }, true) => {
                if let Some(asked) = stream.asked.take() {
                    stream.pings.push((now, now - asked));
                }
            }
            _ => {}
        }
    }
}

impl Observer for StreamRecorder {}
