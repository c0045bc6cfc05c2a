//! Runs a recorded transfer in simulated time.

use packet::{Flags, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use scenario::{Overrides, load};
use sim::Observer;
use sim::live::LiveSimulation;
use sim::scenario::App;
use units::{Instant, SeqNum};

use super::recording::{ClosedRecording, DataPacket, TcpcbRow};

/// The fields of a sender at one time ([`tcp::TcpEndpoint::inspect_tcpcb`]).
pub(super) type TcpcbFields = Vec<(&'static str, i64)>;

/// Result of a run.
#[derive(Debug, Default)]
pub(super) struct ClosedRun {
    pub(super) packets: Vec<DataPacket>,
    /// State of the sender at the time of each recorded row.
    pub(super) rows: Vec<TcpcbFields>,
    /// Bytes read, and the time of the last read.
    pub(super) read: u64,
    pub(super) read_at: u64,
    pub(super) timeouts: u64,
}

/// Records the wire at the sender (tap 0) and the reads of the application.
#[derive(Debug, Default)]
struct Wire {
    isn: Option<SeqNum>,
    packets: Vec<DataPacket>,
    read: u64,
    read_at: u64,
}

impl Recorder for Wire {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, _: Option<&SenderState>) {
        if let Event::AppRead { bytes, .. } = event {
            self.read += u64::from(bytes);
            self.read_at = at.as_nanos();
        }
    }
}

impl Observer for Wire {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if tap != 0 || !outbound {
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.isn = Some(segment.seq);
        }
        if segment.payload > 0
            && let Some(isn) = self.isn
        {
            let seq = u64::from(segment.seq.0.wrapping_sub(isn.0));
            self.packets.push(DataPacket { ns: at.as_nanos(), seq, len: segment.payload });
        }
    }
}

/// Runs the scenario of a recording.
///
/// # Errors
/// The scenario is invalid.
pub(super) fn run(recording: &ClosedRecording) -> Result<ClosedRun, String> {
    run_text(&recording.scenario, &recording.rows)
}

/// Runs a scenario and reads the sender's state at the times of `rows`.
///
/// # Errors
/// The scenario is invalid.
pub(super) fn run_text(text: &str, rows: &[TcpcbRow]) -> Result<ClosedRun, String> {
    let loaded = load(text, "scenario", &Overrides::default())
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let mut scenario = loaded.scenario;
    for flow in &mut scenario.flows {
        if let App::Paced { blocking, .. } = &mut flow.app {
            // The recorder's application does not wait for space.
            *blocking = false;
        }
    }
    let mut wire = Wire::default();
    let mut run = ClosedRun::default();
    let mut live = LiveSimulation::new(&scenario, &[], &mut wire)
        .map_err(|_| "the scenario cannot be set up".to_owned())?;
    let end = Instant::ZERO + scenario.duration;
    for row in rows {
        live.advance(Instant::from_nanos(row.ns));
        let mut fields = Vec::new();
        if let Some(tcp) = live.tcp(0, false) {
            tcp.inspect_tcpcb(&mut |name, value| fields.push((name, value)));
        }
        run.rows.push(fields);
    }
    while !live.over()
        && let Some(at) = live.next_at().filter(|&at| at <= end)
    {
        live.advance(at);
    }
    run.timeouts = live.tcp(0, false).map_or(0, |tcp| tcp.totals().timeouts);
    run.packets = wire.packets;
    (run.read, run.read_at) = (wire.read, wire.read_at);
    Ok(run)
}
