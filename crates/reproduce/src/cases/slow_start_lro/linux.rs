//! The time of Linux on the path of the ramps: about 2 s in the freebsd-net post, 0.92 s in
//! recordings of 6.18 (`golden/linux` b1 and b2).

use std::collections::VecDeque;

use record::{Event, EventSource, Recorder, SenderState};
use units::{Duration, Instant, Offset};

use super::RAMP;
use crate::cases::{CaseError, CaseRow, Workers, load, run};

pub(super) const LINUX: [&str; 3] =
    ["host.sender.profile=linux-6.18", "host.sender.cc=reno", "host.sender.knobs={}"];

/// Recorded in b1 (cubic) and in b2 (reno): the first ACK after which 90 Mbit/s were acknowledged
/// over a round trip, in seconds from the SYN.
const RECORDED: f64 = 0.92;

const ROUND_TRIP: Duration = Duration::from_millis(100);
/// 90 Mbit/s over a round trip.
const BYTES: u64 = 1_125_000;

/// Observes the acknowledged data of the sender.
#[derive(Default)]
struct Acknowledged {
    /// Times and values of `snd_una` within the last round trip, and the last one before it.
    moves: VecDeque<(Instant, Offset)>,
    reached: Option<Instant>,
}

impl Recorder for Acknowledged {
    const ON: bool = true;

    fn record(&mut self, at: Instant, source: EventSource, event: Event, _: Option<&SenderState>) {
        let Event::Acked { una, .. } = event else { return };
        if source.host.0 != 0 || self.reached.is_some() {
            return;
        }
        self.moves.push_back((at, una));
        while self.moves.get(1).is_some_and(|&(moved, _)| at.since(moved) >= ROUND_TRIP) {
            self.moves.pop_front();
        }
        if self.moves.front().is_some_and(|&(_, before)| una - before >= BYTES) {
            self.reached = Some(at);
        }
    }
}

impl sim::Observer for Acknowledged {}

/// The row that compares the model with the recordings. The run begins with the SYN.
pub(super) fn row(cc: &'static str, workers: &Workers<'_>) -> Result<CaseRow, CaseError> {
    let mut set = vec!["duration=10s"];
    set.extend(LINUX);
    let cc_set = format!("host.sender.cc={cc}");
    set.push(&cc_set);
    let mut watcher = Acknowledged::default();
    run(&load(RAMP, "slow-start-ramp.toml", &set)?, &mut watcher, workers)?;
    let measured = watcher.reached.map(|at| at.since(Instant::ZERO).as_secs_f64());
    let (low, high) = (0.9 * RECORDED, 1.1 * RECORDED);
    Ok(CaseRow::band(
        format!("time to 90 Mbit/s over a round trip, Linux, {cc}, from the SYN"),
        "s",
        RECORDED,
        measured,
        low,
        high,
    )
    .note("recorded transfers of 6.18 (golden/linux b1, b2), within 10 %")
    .by("linux-6.18")
    .recorded())
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{FlowId, HostId};

    #[test]
    fn acknowledged_bytes_count_within_a_round_trip() {
        let mut watcher = Acknowledged::default();
        let source = EventSource { host: HostId(0), flow: FlowId(0) };
        let mut ack = |ms: u64, una: u64| {
            let at = Instant::ZERO + Duration::from_millis(ms);
            let event = Event::Acked { una: Offset(una), bytes: 0, nsegs: 1 };
            watcher.record(at, source, event, None);
            watcher.reached
        };
        assert_eq!(ack(0, 1_000), None);
        assert_eq!(ack(50, 500_000), None);
        // More than enough since the beginning, but not within 100 ms.
        assert_eq!(ack(151, 1_624_999), None);
        let reached = Some(Instant::ZERO + Duration::from_millis(152));
        assert_eq!(ack(152, 1_625_000), reached);
        // Only the first time counts.
        assert_eq!(ack(160, 3_000_000), reached);
    }
}
