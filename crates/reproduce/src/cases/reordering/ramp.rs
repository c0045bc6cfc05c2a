//! What a threshold of five segments costs: congestion avoidance up to the path's capacity.

use record::{Event, Recorder, SenderState, Who};
use units::Instant;

use super::SCENARIO;
use crate::cases::{CaseError, Row, Stop, load, run};

/// Where the article takes the network to be full: 3,850 to 3,900 packets.
const FULL: [u64; 2] = [3_850, 3_900];

/// When the window reached the marks, after the first recovery.
#[derive(Default)]
struct Marks {
    began: Option<Instant>,
    reached: [Option<Instant>; 2],
}

impl Recorder for Marks {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, _: Event, state: Option<&SenderState>) {
        let Some(state) = state.filter(|_| who.host.0 == 0) else { return };
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

pub(super) fn rows(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    // One packet of the first burst is lost for good reason; nothing else happens.
    let road = "path.0.forward=[{ loss = { bytes = \"0B..1B\" } }, \
                { link = { rate = \"1Gbit/s\", buffer = \"8MB\" } }, { delay = \"22.5ms\" }]";
    let loaded = load(SCENARIO, "reordering.toml", &[road, "duration=185s"])?;
    let mut marks = Marks::default();
    run(&loaded, &mut marks, stop)?;
    let mut rows = Vec::new();
    for (at, segments) in marks.reached.into_iter().zip(FULL) {
        let span = marks.began.zip(at).map(|(from, at)| at.since(from).as_secs_f64());
        rows.push(
            Row::band(
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
