//! Policers, and recoveries that were spurious.

use units::Duration;

use super::startup::state;
use super::{CaseOutcome, SMALL, holds};
use crate::bbr::context::{CaseContext, seconds};
use crate::bbr::course::{BbrCourse, PROBE_RTT};
use crate::bbr::world::BbrWorld;

pub(super) fn policer(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 30) {
        return Ok(Some(SMALL));
    }
    let length = path.startup() + path.cycle().saturating_mul(6);
    let mut world = BbrWorld::bulk(path, length).forward(format!(
        "{{ policer = {{ rate = \"{}bit/s\", burst = \"{}B\" }} }}",
        path.rate,
        4 * path.bdp()
    ));
    world.rates = vec![(Duration::ZERO, 2 * path.rate)];
    let course = context.run("policer", &world)?;
    for name in ["bw_shortterm", "inflight_shortterm"] {
        let set = course.find(0, |at| course.get(at, name).is_some());
        let measured = set.map_or_else(
            || "never".to_owned(),
            |at| format!("at {}, in {}", seconds(course.at(at)), state(course.number(at, "state"))),
        );
        context.check(&format!("{name} is set"), "by the losses", measured, set.is_some());
    }
    let (from, to) = (course.index_at(length / 2), course.samples.len().saturating_sub(1));
    let counts =
        |at: usize| course.samples.get(at).map_or((0, 0), |sample| (sample.sent, sample.lost));
    let (sent, lost) = (counts(to).0 - counts(from).0, counts(to).1 - counts(from).1);
    let share = lost as f64 / (sent.max(1)) as f64;
    context.check(
        "share of packets lost in the second half",
        "at most 5 %",
        format!("{:.2} %", share * 100.0),
        share <= 0.05,
    );
    let expected = path.bytes_per_second(course.number(0, "smss") - 40);
    context.near("goodput in the second half", course.goodput(from, to), expected, [0.3, 0.05]);
    Ok(None)
}

/// The bounds after a recovery was undone are at least those saved at its start.
fn judge_undo(context: &mut CaseContext<'_>, course: &BbrCourse) {
    let undone = course.find(1, |at| {
        course.number(at, "undone") > course.number(at - 1, "undone")
            && course.number(at, "state") != PROBE_RTT
    });
    let measured = undone.map_or_else(|| "never".to_owned(), |at| seconds(course.at(at)));
    context.check("a spurious recovery is undone", "yes", measured, undone.is_some());
    let Some(at) = undone else { return };
    for (name, saved) in [
        ("bw_shortterm", "undo_bw_shortterm"),
        ("inflight_shortterm", "undo_inflight_shortterm"),
        ("inflight_longterm", "undo_inflight_longterm"),
    ] {
        let bound = |name| course.get(at, name).unwrap_or(u64::MAX);
        let text =
            |name| course.get(at, name).map_or_else(|| "infinite".to_owned(), |b| b.to_string());
        context.check(
            &format!("{name} afterwards"),
            &format!("at least {}", text(saved)),
            text(name),
            bound(name) >= bound(saved),
        );
    }
    let (before, after) = (course.get(at - 1, "undo_state"), course.number(at, "state"));
    let restored = match before {
        Some(0) => after == 0,
        Some(5) => after == 4 || after == 5,
        _ => true,
    };
    context.check(
        "the state afterwards",
        "that before the recovery: startup, or a refill before probe_bw_up",
        format!("{}, undo_state {}", state(after), before.map_or_else(|| "none".to_owned(), state)),
        restored,
    );
}

pub(super) fn spurious_recovery(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !context.sender.is_quic() {
        return Ok(Some("the profile `rfc` has no detection of spurious fast recoveries"));
    }
    if !holds(path, 30) {
        return Ok(Some(SMALL));
    }
    // A delay of at least ten packets, below a round trip.
    let packets = Duration::from_nanos(10 * 1_500 * 8 * 1_000_000_000 / path.rate);
    let by = packets.max(Duration::from_nanos(path.rtt.as_nanos() / 8));
    let world = BbrWorld::bulk(path, path.startup() + path.cycle())
        .forward(format!("{{ reorder = {{ every = 500, by = \"{}ns\" }} }}", by.as_nanos()));
    let course = context.run("spurious-recovery", &world)?;
    let lost = course.samples.last().map_or(0, |sample| sample.lost);
    if lost == 0 {
        return Ok(Some(
            "the stack's loss detection tolerates the reordering: nothing was declared lost",
        ));
    }
    judge_undo(context, &course);
    Ok(None)
}

pub(super) fn spurious_timeout(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if context.sender.is_quic() {
        return Ok(Some(
            "QUIC has no RTO recovery: a probe timeout changes no state (RFC 9002 section 6.2)",
        ));
    }
    if !holds(path, 30) {
        return Ok(Some(SMALL));
    }
    let from = path.startup() + path.rounds(4);
    let mut last = None;
    // Packets are held longer than a timeout, but shorter than two: a second one cannot be spurious (RFC 5682).
    for halves in (0..=4).rev() {
        let half = Duration::from_nanos(path.base_rtt().as_nanos() / 2);
        let until = from + Duration::from_millis(1_500) + half.saturating_mul(halves);
        let world = BbrWorld::bulk(path, until + path.rounds(20) + Duration::from_secs(1)).forward(
            format!(
                "{{ outage = {{ from = \"{}ns\", until = \"{}ns\", hold = true }} }}",
                from.as_nanos(),
                until.as_nanos()
            ),
        );
        let course = context.run("spurious-timeout", &world)?;
        let undone = course.find(0, |at| course.number(at, "undone") > 0).is_some();
        last = Some(course);
        if undone {
            break;
        }
    }
    let Some(course) = last else { return Ok(None) };
    judge_undo(context, &course);
    Ok(None)
}
