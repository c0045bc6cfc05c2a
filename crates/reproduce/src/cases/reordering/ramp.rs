//! The cost of a threshold of five segments: congestion avoidance up to the path's capacity.

use record::{Event, EventSource, Recorder, SenderState};
use units::Instant;

use super::SCENARIO;
use crate::cases::{CaseError, CaseRow, Workers, load, run};

/// The article's capacity of the network: 3,850 to 3,900 packets.
const FULL: [u64; 2] = [3_850, 3_900];

/// When the window reached the capacity, after the first recovery.
#[derive(Default)]
struct Marks {
    began: Option<Instant>,
    reached: [Option<Instant>; 2],
}

impl Recorder for Marks {
    const ON: bool = true;

    fn record(&mut self, at: Instant, source: EventSource, _: Event, state: Option<&SenderState>) {
        let Some(state) = state.filter(|_| source.host.0 == 0) else { return };
        if self.began.is_none() {
            let settled = state.ssthresh.is_some() && !state.in_recovery;
            self.began = settled.then_some(at);
        } else {
            for (mark, segments) in self.reached.iter_mut().zip(FULL) {
                if mark.is_none() && state.cwnd.get() >= segments * state.mss.get() {
                    *mark = Some(at);
                }
            }
        }
    }
}

impl sim::Observer for Marks {}

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    // One packet of the first burst is really lost, and no other.
    let path = "path.0.forward=[{ loss = { bytes = \"0B..1B\" } }, \
                { link = { rate = \"1Gbit/s\", buffer = \"8MB\" } }, { delay = \"22.5ms\" }]";
    let loaded = load(SCENARIO, "reordering.toml", &[path, "duration=185s"])?;
    let mut marks = Marks::default();
    run(&loaded, &mut marks, workers)?;
    let mut rows = Vec::new();
    for (at, segments) in marks.reached.into_iter().zip(FULL) {
        let span = marks.began.zip(at).map(|(from, at)| at.since(from).as_secs_f64());
        rows.push(
            CaseRow::band(
                format!("congestion avoidance from 5 to {segments} packets"),
                "s",
                175.0,
                span,
                170.0,
                180.0,
            )
            .note("published: 170 to 180 s; a packet a round trip"),
        );
    }
    Ok(rows)
}
