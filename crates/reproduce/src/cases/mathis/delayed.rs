//! The document's 3/4: in how many cycles does a delayed acknowledgment hold an increase back?
//!
//! Without such a delay the k-th increase comes k + 1 round trips after the loss was found. A cycle
//! in which some increase comes half a round trip later than that has seen a delayed one.

use record::{Cause, Event, Recorder, SenderState, Who};
use units::{Duration, Instant};

use super::world::{Loss, Variant};
use crate::cases::{CaseError, Row, Stop};

/// Cycles, and those with a delayed increase.
#[derive(Debug, Default)]
struct Cycles {
    began: Option<Instant>,
    increases: u64,
    delayed: bool,
    counts: Counts,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    all: u64,
    grown: u64,
    delayed: u64,
}

const RTT: Duration = Duration::from_millis(2);

impl Recorder for Cycles {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: Who, event: Event, _: Option<&SenderState>) {
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
            // Another phase: this cycle tells nothing.
            Event::Window { cause: Cause::Timeout | Cause::SlowStart, .. } => self.began = None,
            _ => {}
        }
    }
}

pub(super) fn rows(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let mut sum = Counts::default();
    for seed in 1..=4 {
        let (_, cycles) = Variant::new(2, Loss::Random(50)).seed(seed).run_with::<Cycles>(stop)?;
        sum.all += cycles.counts.all;
        sum.grown += cycles.counts.grown;
        sum.delayed += cycles.counts.delayed;
    }
    let share = |of: u64| (of > 0).then(|| sum.delayed as f64 / of as f64);
    let name = "random loss, ACK every other packet: cycles with a delayed increase";
    Ok(vec![
        Row::predicted(format!("{name}, of those that grew"), "", Some(0.75), share(sum.grown))
            .note(format!(
                "the document's premise for b = 2.75; {} of {} cycles grew at all before the next \
                 loss",
                sum.grown, sum.all
            )),
        Row::predicted(format!("{name}, of all"), "", Some(0.75), share(sum.all)),
    ])
}
