//! A recorded transfer run again in virtual time.

use packet::{Flags, Segment};
use record::{Event, Recorder, SenderState, Who};
use scenario::{Overrides, load};
use sim::Observer;
use sim::live::Live;
use units::{Instant, SeqNum};

use super::recording::{DataPacket, Recording, Row};

/// The fields of a sender at one moment ([`tcp::Endpoint::inspect_tcpcb`]).
pub(super) type Fields = Vec<(&'static str, i64)>;

/// What a run did.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) packets: Vec<DataPacket>,
    /// The sender at the time of each recorded row.
    pub(super) rows: Vec<Fields>,
    /// Bytes that the reader took, and when it took the last.
    pub(super) read: u64,
    pub(super) read_at: u64,
    pub(super) timeouts: u64,
}

/// The wire at the sender, tap 0, and what the application takes.
#[derive(Debug, Default)]
struct Wire {
    isn: Option<SeqNum>,
    packets: Vec<DataPacket>,
    read: u64,
    read_at: u64,
}

impl Recorder for Wire {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: Who, event: Event, _: Option<&SenderState>) {
        if let Event::Read { bytes, .. } = event {
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
/// What of the scenario is not understood.
pub(super) fn run(recording: &Recording) -> Result<Run, String> {
    run_text(&recording.scenario, &recording.rows)
}

/// Runs a scenario and reads the sender at the times of `rows`.
///
/// # Errors
/// What of the scenario is not understood.
pub(super) fn run_text(text: &str, rows: &[Row]) -> Result<Run, String> {
    let loaded = load(text, "scenario", &Overrides::default())
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let scenario = loaded.scenario;
    let mut wire = Wire::default();
    let mut run = Run::default();
    let mut live = Live::new(&scenario, &[], &mut wire)
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
