//! Startup and Drain.

use units::Duration;

use super::{CaseOutcome, SMALL, holds};
use crate::bbr::context::{CaseContext, INTERRUPTED};
use crate::bbr::course::{BbrCourse, CRUISE, DOWN, DRAIN, PROBE_RTT, STARTUP};
use crate::bbr::world::BbrWorld;

/// The samples at which Drain begins and ends; `None` if ProbeRTT ends it, or Startup ends past it.
fn drain(context: &mut CaseContext<'_>, course: &BbrCourse) -> Option<(usize, usize)> {
    let begin = course.entries(DRAIN).first().copied();
    context.reached("Startup ends in Drain", course, begin.is_some());
    let begin = begin?;
    let end = course.exit(begin);
    context.check("Drain ends", "yes", yes(end.is_some()), end.is_some());
    let end = end?;
    let is_probe = course.number(end, "state") == PROBE_RTT;
    let measured = if is_probe { "ProbeRTT ends it" } else { "no" };
    context.conflicting("Drain is interrupted", "no", measured, !is_probe, INTERRUPTED);
    (!is_probe).then_some((begin, end))
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

pub(super) fn plateau(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    let course = context.run("startup-plateau", &BbrWorld::bulk(path, path.startup()))?;
    let begin = course.entries(DRAIN).first().copied();
    context.reached("Startup ends in Drain", &course, begin.is_some());
    let Some(begin) = begin else { return Ok(None) };
    let before = course.number(begin - 1, "state");
    context.check("the state before Drain", "startup", state(before), before == STARTUP);
    let full = course.find(0, |at| course.number(at, "full_bw_now") == 1);
    let count = full.map_or(0, |at| course.number(at, "full_bw_count"));
    context.check("full_bw_count when full_bw_now is set", "3", count.to_string(), count == 3);
    let reached = course.number(begin, "full_bw_reached") == 1;
    context.check("full_bw_reached in Drain", "yes", yes(reached), reached);
    let expected = path.bytes_per_second(course.number(begin, "smss"));
    context.near("max_bw", course.number(begin, "max_bw") as f64, expected, [0.02, 0.02]);
    Ok(None)
}

pub(super) fn state(number: u64) -> String {
    crate::bbr::course::PHASES
        .get(number as usize)
        .map_or_else(|| number.to_string(), |&name| name.to_owned())
}

/// Chunks that use this share of the path's rate, in thousandths, from the start on.
pub(super) fn paced(context: &CaseContext<'_>, thousandths: u64) -> String {
    let path = context.path;
    let least = Duration::from_nanos(2 * 1_500 * 8 * 1_000_000_000 / path.rate);
    let every = Duration::from_nanos(path.rtt.as_nanos() / 8).max(least);
    let bytes = u128::from(path.rate) * u128::from(every.as_nanos()) / 8_000_000_000;
    let bytes = (bytes as u64 * thousandths / 1_000).max(1);
    format!("paced = {{ chunk = \"{bytes}B\", every = \"{}ns\" }}", every.as_nanos())
}

pub(super) fn loss(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 40) {
        return Ok(Some(SMALL));
    }
    let lossy = path.rounds(10);
    let world = BbrWorld::bulk(path, path.rounds(60) + Duration::from_millis(100))
        .app(paced(context, 500))
        .forward(format!(
            "{{ loss = {{ at = [[\"0s\", \"0%\"], [\"{}ns\", \"20%\"]] }} }}",
            lossy.as_nanos()
        ));
    let course = context.run("startup-loss", &world)?;
    let before = course.index_at(lossy);
    let is_startup = course.number(before, "state") == STARTUP;
    context.check("the state before the losses", "startup", yes(is_startup), is_startup);
    // A limited flight is below the target of Drain, which then ends with the same acknowledgment.
    let end = course.find(before, |at| {
        let left = [STARTUP, PROBE_RTT].contains(&course.number(at, "state"));
        !left && course.at(at) > lossy
    });
    let measured = end.map_or_else(|| "never".to_owned(), |at| state(course.number(at, "state")));
    context.check(
        "Startup ends in Drain, or in the state after it",
        "yes",
        measured,
        end.is_some(),
    );
    let Some(begin) = end else { return Ok(None) };
    let reached = course.number(begin, "full_bw_reached") == 1;
    context.check("full_bw_reached", "yes", yes(reached), reached);
    let now = course.number(begin, "full_bw_now") == 1;
    context.conflicting(
        "full_bw_now",
        "yes",
        yes(now),
        now,
        "section \"Exiting Startup Based on Packet Loss\" sets full_bw_reached only",
    );
    Ok(None)
}

pub(super) fn drain_inflight(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    let course = context.run("drain-inflight", &BbrWorld::bulk(path, path.startup()))?;
    let Some((begin, end)) = drain(context, &course) else { return Ok(None) };
    let gain = course.number(begin, "pacing_gain");
    context.check("pacing_gain in thousandths", "500", gain.to_string(), gain == 500);
    judge_drain_by_inflight(context, &course, begin, end);
    let next = course.number(end, "state");
    // With headroom, DOWN ends with the same acknowledgment.
    let is_probe_bw = [DOWN, CRUISE].contains(&next);
    context.check("the state after Drain", "probe_bw_down, or past it", state(next), is_probe_bw);
    Ok(None)
}

fn judge_drain_by_inflight(
    context: &mut CaseContext<'_>,
    course: &BbrCourse,
    begin: usize,
    end: usize,
) {
    let (inflight, target) =
        (course.number(end, "inflight"), course.number(end, "inflight_target"));
    let rounds = course.number(end, "round_count") - course.number(begin, "round_count");
    context.check(
        "inflight at the end of Drain, in bytes",
        &format!("at most Inflight(1.0) = {target}"),
        format!("{inflight} after {rounds} rounds"),
        inflight <= target,
    );
}

pub(super) fn drain_time(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 10) {
        return Ok(Some(SMALL));
    }
    let world = BbrWorld::bulk(path, path.startup() + path.rounds(20));
    let first = context.run("drain-time", &world)?;
    let Some(begin) = first.entries(DRAIN).first().copied() else {
        context.reached("Startup ends in Drain", &first, false);
        return Ok(None);
    };
    let at = first.at(begin);
    // The pacing gain of Drain leaves less than half of the bandwidth: the queue cannot drain.
    for (thousandths, share) in [(450, "45 %"), (900, "90 %")] {
        let course = context.run("drain-time", &world.clone().rate_from(at, thousandths))?;
        let Some((begin, end)) = drain(context, &course) else { continue };
        let rounds = course.number(end, "round_count") - course.number(begin, "drain_start_round");
        let (inflight, target) =
            (course.number(end, "inflight"), course.number(end, "inflight_target"));
        let what = format!("Drain ends by time with {share} of the bandwidth");
        let measured = format!("{rounds} rounds, inflight {inflight} B");
        let wanted = format!("after 3 rounds, inflight above {target} B");
        let by_time = rounds > 3 && inflight > target;
        if thousandths == 450 {
            context.check(&what, &wanted, measured, by_time);
        } else {
            context.conflicting(
                &what,
                &wanted,
                measured,
                by_time,
                "with DrainPacingGain 0.5 and 90 % of the bandwidth the queue of Startup, at most a \
                 bandwidth-delay product, drains before 3 rounds have passed",
            );
        }
    }
    Ok(None)
}

pub(super) fn app_limited(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    let length = path.rounds(60).max(Duration::from_secs(6)).min(Duration::from_secs(60));
    let world = BbrWorld::bulk(path, length).app(paced(context, 300));
    let course = context.run("app-limited", &world)?;
    let left: Vec<usize> = (0..course.samples.len())
        .filter(|&at| ![STARTUP, PROBE_RTT].contains(&course.number(at, "state")))
        .collect();
    let measured = left.first().map_or_else(
        || "never".to_owned(),
        |&at| {
            format!("{} at {:.3} s", state(course.number(at, "state")), course.at(at).as_secs_f64())
        },
    );
    context.check("leaves Startup for Drain", "never", measured, left.is_empty());
    let probes = course.entries(PROBE_RTT);
    let measured = probes.first().map_or_else(
        || "always".to_owned(),
        |&at| format!("probe_rtt at {:.3} s", course.at(at).as_secs_f64()),
    );
    context.conflicting(
        "stays in Startup \"indefinitely\"",
        "always",
        measured,
        probes.is_empty(),
        "CheckProbeRTT enters ProbeRTT from any state once ProbeRTTInterval has passed without a lower RTT, and returns to \
         Startup",
    );
    Ok(None)
}
