//! Whether an application has nothing to send within a message, again and again: a part of CC501.
//!
//! Between messages the other host, or a user, may be waited for; within one only the sending application is: it
//! reads a disk, or another connection, as a proxy does. Times without data may be longer than a timeout then. Equal
//! times of a second or more are those of a player of media, which takes a piece at a time.

use units::Duration;

use super::case::{DiagnosisCase, count, many, number, seconds, time, time_percent};
use super::{DiagnosisRule, Finding};
use crate::exchange::{LongestWait, Waits};

/// Fewest interruptions that are a habit.
const MIN_COUNT: u64 = 8;
/// Longest interruption of a program that writes by a clock.
const MAX_EQUAL: Duration = Duration::from_millis(900);
/// Interruptions whose longest is this many times their mean are not equal.
const UNEQUAL: u64 = 4;

/// The interruptions of the messages of the direction, if they are a third of the time or more.
pub(super) fn interruptions(case: &DiagnosisCase<'_>) -> Option<Waits> {
    let budget = case.analysis.exchange.as_deref()?;
    let waits = budget.interruptions[case.flow.dir as usize];
    let mean = waits.mean()?;
    let longest = waits.longest.length;
    // A single long rest is that of a user.
    let is_habit = longest * 2 <= waits.total;
    let is_of_program = is_habit && (longest <= MAX_EQUAL || longest >= mean * UNEQUAL);
    // Events and messages to users are small.
    let has_data = case.is_bulk() && case.flow.bytes >= waits.count * case.flow.mss;
    let is_much = waits.total * 3 >= case.analysis.duration();
    (waits.count >= MIN_COUNT && is_of_program && has_data && is_much).then_some(waits)
}

/// The finding about them.
pub(super) fn finding(waits: Waits, case: &DiagnosisCase<'_>, rule: &DiagnosisRule) -> Finding {
    let Waits { count: number_of, total, longest } = waits;
    let LongestWait { length, frames: (first, last), .. } = longest;
    let whole = case.analysis.duration();
    let title = format!(
        "the sending application has nothing to send {} of the time, within its messages",
        time_percent(total, whole)
    );
    let waited = format!("{} in {}", time(total), many(number_of, "pause"));
    let longest = format!("{} in frames {first}..{last}", time(length));
    // Waits after the first bytes of messages.
    let held = case.analysis.exchange.as_deref().map(|one| one.held[case.flow.dir as usize].total);
    let is_in_request = held.is_some_and(|held| held * 2 >= total);
    case.finding(rule, total, title)
        .of_kind(if is_in_request { "in-request" } else { "" })
        .with([
            number("waited_s", seconds(total), "waited", waited),
            number("longest_pause_s", seconds(length), "longest", longest),
            count("pauses", number_of, "", String::new()),
        ])
        .because("the sending application waits for its disk or another host, as a proxy does, or writes by a clock")
        .unseen("what it waits for: a capture of its other connections shows those")
        .unseen(case.bound())
}
