//! The 3/4 of the document: in how many cycles does a delayed ACK delay an increase?
//!
//! Without delayed ACKs the k-th increase comes k + 1 round trips after the loss was detected. A
//! cycle in which an increase comes half a round trip later than that had a delayed one.

use record::{Cause, Event, EventSource, Recorder, SenderState};
use units::{Duration, Instant};

use super::world::{Loss, MathisVariant};
use crate::cases::{CaseError, CaseRow, Workers};

/// Cycles, and those with a delayed increase.
#[derive(Debug, Default)]
struct Cycles {
    began: Option<Instant>,
    increases: u64,
    delayed: bool,
    counts: CycleCounts,
}

#[derive(Debug, Default, Clone, Copy)]
struct CycleCounts {
    all: u64,
    grown: u64,
    delayed: u64,
}

const RTT: Duration = Duration::from_millis(2);

impl Recorder for Cycles {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, _: Option<&SenderState>) {
        match event {
            Event::Window { cause: Cause::FastRetransmit, .. } => {
                if self.began.is_some() {
                    self.counts.all += 1;
                    self.counts.grown += u64::from(self.increases > 0);
                    self.counts.delayed += u64::from(self.delayed);
                }
                (self.began, self.increases, self.delayed) = (Some(at), 0, false);
            }
            Event::Window { cause: Cause::Avoidance, .. } => {
                let Some(began) = self.began else { return };
                self.increases += 1;
                let due = RTT.as_nanos() * (self.increases + 1) + RTT.as_nanos() / 2;
                self.delayed |= at.since(began).as_nanos() > due;
            }
            // Another phase: this cycle does not count.
            Event::Window { cause: Cause::Timeout | Cause::SlowStart, .. } => self.began = None,
            _ => {}
        }
    }
}

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let mut sum = CycleCounts::default();
    for seed in 1..=4 {
        let (_, cycles) =
            MathisVariant::new(2, Loss::Random(50)).seed(seed).run_with::<Cycles>(workers)?;
        sum.all += cycles.counts.all;
        sum.grown += cycles.counts.grown;
        sum.delayed += cycles.counts.delayed;
    }
    let share = |of: u64| (of > 0).then(|| sum.delayed as f64 / of as f64);
    let name = "random loss, ACK every other packet: cycles with a delayed increase";
    Ok(vec![
        CaseRow::predicted(format!("{name}, of those that grew"), "", Some(0.75), share(sum.grown))
            .note(format!(
                "the document's premise for b = 2.75; {} of {} cycles grew at all before the next \
                 loss",
                sum.grown, sum.all
            )),
        CaseRow::predicted(format!("{name}, of all"), "", Some(0.75), share(sum.all)),
    ])
}
