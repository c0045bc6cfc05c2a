//! The time of slow start to 100 Mbit/s.

use record::{Event, EventSource, Recorder, SenderState, SentKind};
use units::Instant;

use super::RAMP;
use super::linux::{self, LINUX};
use crate::cases::{CaseError, CaseRow, Workers, load, run};

/// 100 Mbit/s at 100 ms, in segments of 1448 bytes.
const TARGET_SEGMENTS: u64 = 863;

/// Observes the sender's flight and the receiver's aggregates.
#[derive(Default)]
struct RampWatcher {
    first_data: Option<Instant>,
    reached: Option<Instant>,
    largest_aggregate: u32,
}

impl Recorder for RampWatcher {
    const ON: bool = true;

    fn record(
        &mut self,
        at: Instant,
        source: EventSource,
        event: Event,
        state: Option<&SenderState>,
    ) {
        match event {
            Event::Sent { kind: SentKind::New, .. } if source.host.0 == 0 => {
                self.first_data.get_or_insert(at);
                let enough = |state: &SenderState| {
                    state.flight_size().get() >= TARGET_SEGMENTS * state.mss.get()
                };
                if self.reached.is_none() && state.is_some_and(enough) {
                    self.reached = Some(at);
                }
            }
            Event::Aggregated { bytes, .. } if source.host.0 == 1 => {
                self.largest_aggregate = self.largest_aggregate.max(bytes);
            }
            _ => {}
        }
    }
}

impl sim::Observer for RampWatcher {}

/// The result of a ramp.
struct Ramp {
    /// Time from the first data segment until 863 segments are in flight.
    seconds: Option<f64>,
    largest_aggregate: u32,
}

fn ramp(set: &[&str], workers: &Workers<'_>) -> Result<Ramp, CaseError> {
    let loaded = load(RAMP, "slow-start-ramp.toml", set)?;
    let mut watcher = RampWatcher::default();
    run(&loaded, &mut watcher, workers)?;
    let span = watcher.reached.zip(watcher.first_data).map(|(end, start)| end.since(start));
    Ok(Ramp {
        seconds: span.map(|span| span.as_secs_f64()),
        largest_aggregate: watcher.largest_aggregate,
    })
}

const SENDER_LRO: &str = "host.sender.lro=true";
const CUBIC: &str = "host.sender.cc=cubic";
const AS_SHIPPED: [&str; 2] = [
    "host.sender.knobs.\"net.inet.tcp.sendspace\"=32KiB",
    "host.sink.knobs.\"ip-route.quickack\"=false",
];

/// All rows of the ramps, each with the `duration` it needs.
pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    // Seconds to the target for FreeBSD with the given settings of `host.sender`.
    let seconds = |set: &[&str]| Ok::<_, CaseError>(ramp(set, workers)?.seconds);
    let within = |limit: &'static str, set: &[&'static str]| {
        let mut all = vec![limit];
        all.extend_from_slice(set);
        all
    };
    let long = "duration=50s";
    let short = "duration=10s";

    let receiver_only = ramp(&within(short, &[]), workers)?;
    let mut rows = vec![
        CaseRow::exact("largest aggregate", "B", 65_160.0, Some(receiver_only.largest_aggregate.into()))
            .note("45 x 1448"),
        CaseRow::band(
            "time to 100 Mbit/s, one ACK per flight",
            "s",
            20.0,
            seconds(&within(long, &[SENDER_LRO]))?,
            41.4,
            43.4,
        )
        .note("published: more than 20 s, the model says 42.4; from the first data segment to 863 MSS in flight, all ACKs of a round trip merged"),
        CaseRow::band(
            "time to 100 Mbit/s, receiver LRO alone",
            "s",
            7.7,
            receiver_only.seconds,
            7.5,
            7.9,
        )
        .note("one ACK per 45 MSS or less: receiver LRO alone cannot explain the published ramp"),
    ];
    // CUBIC's slow start is NewReno's (cubic_does_slow_start).
    let cubic = seconds(&within(long, &[SENDER_LRO, CUBIC]))?;
    let name = "time to 100 Mbit/s, one ACK per flight, CUBIC instead of NewReno";
    rows.push(
        CaseRow::band(name, "s", 42.4, cubic, 41.4, 43.4)
            .note("published: does not help; same ramp"),
    );
    let merged: [(u32, f64); 7] =
        [(2, 12.6), (3, 16.5), (4, 19.7), (5, 22.5), (6, 24.9), (8, 28.8), (10, 32.2)];
    for (acks, published) in merged {
        let budget = format!("host.sender.rx_budget={acks}");
        let measured = seconds(&[long, SENDER_LRO, &budget])?;
        let name = format!("time to 100 Mbit/s, sender's LRO merges {acks} ACKs");
        rows.push(CaseRow::predicted(name, "s", Some(published), measured).note("model"));
    }
    for (l, published) in [(4, 4.0), (8, 2.1), (16, 1.2), (45, 0.7)] {
        let knob = format!("host.sender.knobs.\"net.inet.tcp.abc_l_var\"={l}");
        let measured = seconds(&[short, &knob])?;
        let name = format!("time to 100 Mbit/s, receiver LRO alone, abc_l_var {l}");
        rows.push(CaseRow::predicted(name, "s", Some(published), measured).note("model"));
    }
    rows.push(
        CaseRow::predicted(
            "time to 100 Mbit/s, all ACKs merged, LRO of 13.0",
            "s",
            Some(7.7),
            seconds(&within(short, &["host.sender.lro={counts_pure_acks=true}"]))?,
        )
        .note("model; the older LRO counts the ACKs it merges"),
    );
    rows.push(
        CaseRow::info("time to 100 Mbit/s, Linux", "s", 2.0, seconds(&within(short, &LINUX))?)
            .note("published: ~2 s; growth by bytes acknowledged gives 0.7 s after the first data segment")
            .by("linux-6.18"),
    );
    for cc in ["cubic", "reno"] {
        rows.push(linux::row(cc, workers)?);
    }
    let shipped = |first: &[&'static str]| {
        let mut all = first.to_vec();
        all.extend_from_slice(&AS_SHIPPED);
        seconds(&all)
    };
    rows.push(
        CaseRow::predicted(
            "as shipped (send buffer, delayed ACKs), all ACKs merged",
            "s",
            None,
            shipped(&[long, SENDER_LRO])?,
        )
        .note("a small send buffer and delayed ACKs split flights, so more ACKs count"),
    );
    rows.push(
        CaseRow::predicted(
            "as shipped (send buffer, delayed ACKs), receiver LRO alone",
            "s",
            None,
            shipped(&[long])?,
        )
        .note("no published figure"),
    );
    Ok(rows)
}
