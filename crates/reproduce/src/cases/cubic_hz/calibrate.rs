//! The search for what the review does not tell: round trip, line rate, and whether every hundredth
//! packet is lost or each with a chance of one in a hundred. A grid, declared here, over the two
//! figures of NewReno.

use super::world::{Loss, NEWRENO, Sender, delay, rate, sender, transfer};
use crate::cases::CaseError;
use runner::leave::NEVER;

/// What the search found, as the scenario has it.
pub(super) const DELAY: &str = "45 us each way";
/// See [`DELAY`].
pub(super) const RATE: &str = "1 Gbit/s";

/// NewReno's figures in Mbit/s: loss of 1 % and of 2 %.
const FIGURES: [f64; 2] = [915.0, 767.0];
/// Both kinds of loss at 1 % and at 2 %.
const LOSS: [[Loss; 2]; 2] =
    [[Loss::Periodic(100), Loss::Periodic(50)], [Loss::Random("1"), Loss::Random("2")]];
/// Line rates tried, in Gbit/s: Gigabit Ethernet, and what virtual machines of one host may have.
const RATES: [f64; 4] = [1.0, 1.5, 2.5, 10.0];
/// Delays tried each way, in microseconds.
const DELAYS: [f64; 10] = [5.0, 10.0, 20.0, 30.0, 40.0, 45.0, 50.0, 55.0, 60.0, 80.0];

/// A point of the grid and what NewReno makes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Is every hundredth or fiftieth packet lost? At random otherwise.
    pub periodic: bool,
    /// Line rate in Gbit/s.
    pub rate: f64,
    /// Delay each way in microseconds.
    pub delay: f64,
    /// Mbit/s at 1 % and at 2 %.
    pub mbits: [f64; 2],
    /// Timeouts in 10 s.
    pub rtos: [u64; 2],
}

impl Point {
    /// The larger of the two relative deviations.
    pub fn misfit(&self) -> f64 {
        let off = |at: usize| (self.mbits[at] / FIGURES[at] - 1.0).abs();
        off(0).max(off(1))
    }
}

/// Runs every point of the grid at 100 Hz, tells each, and returns the best of either kind of loss.
///
/// # Errors
/// [`CaseError`] if the scenario cannot be read.
pub fn search(mut tell: impl FnMut(&Point)) -> Result<Vec<Point>, CaseError> {
    let mut best = Vec::new();
    for kind in LOSS {
        let periodic = matches!(kind[0], Loss::Periodic(_));
        let mut closest: Option<Point> = None;
        for gbits in RATES {
            for micros in DELAYS {
                let (mut mbits, mut rtos) = ([0.0; 2], [0; 2]);
                for (at, loss) in kind.into_iter().enumerate() {
                    let mut set = sender(Sender { hz: 100, cc: NEWRENO }, loss);
                    set.extend(delay(micros));
                    set.extend(rate(gbits));
                    set.push("duration=5s".into());
                    let came = transfer(if periodic { 1 } else { 2 }, &set, &NEVER)?;
                    (mbits[at], rtos[at]) = (came.mbits, came.rtos);
                }
                let point = Point { periodic, rate: gbits, delay: micros, mbits, rtos };
                tell(&point);
                if closest.is_none_or(|closest| point.misfit() < closest.misfit()) {
                    closest = Some(point);
                }
            }
        }
        best.extend(closest);
    }
    Ok(best)
}
