//! ProbeBW.

use units::Duration;

use super::startup::state;
use super::{CaseOutcome, SMALL, holds};
use crate::bbr::context::{CaseContext, INTERRUPTED, seconds};
use crate::bbr::course::{BbrCourse, CRUISE, DOWN, PROBE_RTT, REFILL, UP};
use crate::bbr::world::BbrWorld;

/// The first ProbeBW_UP that ProbeRTT does not end: its samples of begin and end.
fn first_up(context: &mut CaseContext<'_>, course: &BbrCourse) -> Option<(usize, usize)> {
    let ups: Vec<(usize, usize)> =
        course.entries(UP).into_iter().filter_map(|at| Some((at, course.exit(at)?))).collect();
    let whole = ups.iter().copied().find(|&(_, end)| course.number(end, "state") != PROBE_RTT);
    let measured = match (whole, ups.len()) {
        (Some((at, _)), _) => seconds(course.at(at)),
        (None, 0) => "never".to_owned(),
        (None, count) => format!("ProbeRTT ends all {count}"),
    };
    if ups.is_empty() {
        context.reached("ProbeBW_UP begins, and ends", course, false);
    } else {
        context.conflicting(
            "ProbeBW_UP begins, and ends",
            "yes",
            measured,
            whole.is_some(),
            INTERRUPTED,
        );
    }
    whole
}

fn world(context: &CaseContext<'_>, cycles: u64) -> BbrWorld {
    let path = context.path;
    // ProbeRTT interrupts cycles of long round trips.
    let cycles = if path.rtt >= Duration::from_millis(500) { 3 * cycles } else { cycles };
    BbrWorld::bulk(path, path.startup() + path.cycle().saturating_mul(cycles))
}

pub(super) fn up_plateau(context: &mut CaseContext<'_>) -> CaseOutcome {
    let course = context.run("up-plateau", &world(context, 2))?;
    let Some((begin, end)) = first_up(context, &course) else { return Ok(None) };
    let (now, count) = (course.number(end, "full_bw_now"), course.number(end, "full_bw_count"));
    let rounds = course.number(end, "round_count") - course.number(begin, "round_count");
    context.check(
        "full_bw_now at the end",
        "set after 3 rounds without growth",
        format!("{now}, full_bw_count {count}, after {rounds} rounds"),
        now == 1 && count == 3,
    );
    let high = course.number(end, "prev_probe_too_high");
    context.check("prev_probe_too_high", "0", high.to_string(), high == 0);
    let next = course.number(end, "state");
    context.check("the state after it", "probe_bw_down", state(next), next == DOWN);
    Ok(None)
}

/// Data that the path has carried by `at` at its full rate, and then half of that rate.
fn half_rate_from(context: &CaseContext<'_>, course: &BbrCourse, at: usize) -> String {
    let path = context.path;
    let (time, read) = (course.at(at), course.samples.get(at).map_or(0, |sample| sample.read));
    let half = u128::from(path.rate) / 16;
    let meanwhile = half * u128::from(time.as_nanos()) / 1_000_000_000;
    let first = read.saturating_sub(meanwhile as u64).max(1);
    let every = Duration::from_nanos(path.rtt.as_nanos() / 8)
        .max(Duration::from_nanos(2 * 1_500 * 8 * 1_000_000_000 / path.rate));
    let chunk = (half * u128::from(every.as_nanos()) / 1_000_000_000).max(1);
    format!(
        "exchange = {{ opening = [{{ client = \"{first}B\" }}], steps = [{{ client = \"{chunk}B\", \
         after = \"{}ns\" }}], count = 1000000 }}",
        every.as_nanos()
    )
}

pub(super) fn up_loss(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 8) {
        return Ok(Some(SMALL));
    }
    let world = world(context, 3);
    let first = context.run("up-loss", &world)?;
    let Some((begin, _)) = first_up(context, &first) else { return Ok(None) };
    let app = half_rate_from(context, &first, begin);
    let limited = context.run("up-loss", &world.clone().app(app.clone()))?;
    let Some(begin) = limited.entries(UP).first().copied() else {
        context.check("ProbeBW_UP begins with a limited application", "yes", "no", false);
        return Ok(None);
    };
    let lossy = limited.at(begin) + path.rounds(4);
    let stays = limited.number(limited.index_at(lossy), "state");
    context.check(
        "the state 4 rounds later, without loss",
        "probe_bw_up",
        state(stays),
        stays == UP,
    );
    let course = context.run(
        "up-loss",
        &world.app(app).forward(format!(
            "{{ loss = {{ at = [[\"0s\", \"0%\"], [\"{}ns\", \"10%\"]] }} }}",
            lossy.as_nanos()
        )),
    )?;
    let end = course.exit(course.index_at(lossy));
    let next = end.map(|end| course.number(end, "state"));
    let measured = next.map_or_else(|| "none".to_owned(), state);
    // The limited flight is below the target of DOWN, which then ends with the same acknowledgment.
    let is_down = next.is_some_and(|next| [DOWN, CRUISE].contains(&next));
    context.check("the state after the losses", "probe_bw_down, or past it", measured, is_down);
    let Some(end) = end else { return Ok(None) };
    let high = course.number(end, "prev_probe_too_high");
    context.check("prev_probe_too_high", "1", high.to_string(), high == 1);
    let longterm = course.get(end, "inflight_longterm");
    let measured = longterm.map_or_else(|| "infinite".to_owned(), |bytes| format!("{bytes} B"));
    context.conflicting(
        "inflight_longterm \"regardless of the application-limited state\"",
        "set",
        measured,
        longterm.is_some(),
        "HandleInflightTooHigh sets inflight_longterm only if RS.is_app_limited is false",
    );
    Ok(None)
}

pub(super) fn down_inflight(context: &mut CaseContext<'_>) -> CaseOutcome {
    let course = context.run("down-inflight", &world(context, 2))?;
    let downs = downs(&course);
    let whole = downs.iter().copied().find(|&(_, end)| course.number(end, "state") != PROBE_RTT);
    context.reached("ProbeBW_DOWN after ProbeBW_UP ends by itself", &course, whole.is_some());
    let Some((down, end)) = whole else { return Ok(None) };
    let gain = course.number(down, "pacing_gain");
    context.check("pacing_gain in thousandths", "900", gain.to_string(), gain == 900);
    let next = course.number(end, "state");
    let inflight = course.number(end, "inflight");
    let targets = [course.get(end, "inflight_target"), course.get(end, "inflight_with_headroom")];
    let least = targets.into_iter().flatten().min().unwrap_or(0);
    let waited = course.at(end).saturating_sub(course.at(down));
    if next == REFILL {
        let rounds = course.number(end, "round_count") - course.number(down, "round_count");
        context.check(
            "it is time to probe before the queue has drained",
            "probe_bw_cruise, or a probe that is due",
            format!("probe_bw_refill after {rounds} rounds, {}", seconds(waited)),
            inflight > least || rounds + 1 >= reno_rounds(&course, down),
        );
        return Ok(None);
    }
    context.check("the state after it", "probe_bw_cruise", state(next), next == CRUISE);
    context.check(
        "inflight at the end, in bytes",
        &format!("at most {least}"),
        format!("{inflight} after {}", seconds(waited)),
        inflight <= least,
    );
    Ok(None)
}

/// Each ProbeBW_DOWN that follows ProbeBW_UP: its samples of begin and end.
fn downs(course: &BbrCourse) -> Vec<(usize, usize)> {
    let after_up = |&at: &usize| at > 0 && course.number(at - 1, "state") == UP;
    let downs = course.entries(DOWN).into_iter().filter(after_up);
    downs.filter_map(|at| Some((at, course.exit(at)?))).collect()
}

/// `IsRenoCoexistenceProbeTime` in rounds.
fn reno_rounds(course: &BbrCourse, at: usize) -> u64 {
    let smss = course.number(at, "smss").max(1);
    let bdp = u128::from(course.number(at, "bw")) * u128::from(course.number(at, "min_rtt"))
        / 1_000_000_000;
    (bdp as u64 / smss).min(63)
}

pub(super) fn down_time(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 8) {
        return Ok(Some(SMALL));
    }
    let world = world(context, 6);
    let first = context.run("down-time", &world)?;
    let begins: Vec<Duration> = downs(&first).iter().map(|&(at, _)| first.at(at)).collect();
    let mut found = None;
    // ProbeRTT ends some of them.
    for &at in begins.iter().take(6) {
        let course = context.run("down-time", &world.clone().rate_from(at, 900))?;
        let down = course.index_at(at);
        let Some(end) = course.exit(down) else { continue };
        if course.number(end, "state") != PROBE_RTT {
            found = Some((course, down, end));
            break;
        }
    }
    let Some((course, down, end)) = found else {
        let measured = format!("ProbeRTT ends the first {}", begins.len().min(6));
        let what = "ProbeBW_DOWN with 90 % of the bandwidth is not interrupted";
        if begins.is_empty() {
            context.reached("ProbeBW_DOWN after ProbeBW_UP begins", &first, false);
        } else {
            context.conflicting(what, "yes", measured, false, INTERRUPTED);
        }
        return Ok(None);
    };
    let (next, inflight) = (course.number(end, "state"), course.number(end, "inflight"));
    let waited = course.at(end).saturating_sub(course.at(down));
    let wait = Duration::from_nanos(course.number(down, "bw_probe_wait"));
    let rounds = course.number(end, "round_count") - course.number(down, "round_count");
    let why = "the queue of ProbeBW_UP drains before: DOWN paces at 0.9 x 0.99 of max_bw, which is less than 90 % of the \
               bandwidth";
    context.conflicting(
        "the state after ProbeBW_DOWN",
        "probe_bw_refill",
        format!(
            "{} after {rounds} rounds, {}, inflight {inflight} B",
            state(next),
            seconds(waited)
        ),
        next == REFILL,
        why,
    );
    if next == REFILL {
        let due = waited > wait || rounds + 1 >= reno_rounds(&course, down);
        context.check(
            "the probe was due",
            "bw_probe_wait, or the rounds of Reno coexistence",
            format!("{} of {}, {rounds} rounds", seconds(waited), seconds(wait)),
            due,
        );
    }
    Ok(None)
}

pub(super) fn up_loss_longterm(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 16) {
        return Ok(Some(SMALL));
    }
    // A queue that Startup overflows sets the bound.
    let world = world(context, 4).buffer(path.bdp() / 2);
    let first = context.run("up-loss-longterm", &world)?;
    let set = |at: usize| {
        first.get(at, "inflight_longterm").is_some() && first.number(at, "prev_probe_too_high") == 0
    };
    let quiet =
        |at: usize| first.exit(at).is_some_and(|end| first.at(end) > first.at(at) + path.rounds(1));
    let Some(up) = first.entries(UP).into_iter().find(|&at| set(at) && quiet(at)) else {
        return Ok(Some(
            "no ProbeBW_UP of a round began with inflight_longterm set and no precaution",
        ));
    };
    let lossy = first.at(up);
    let course = context.run(
        "up-loss-longterm",
        &world.forward(format!(
            "{{ loss = {{ at = [[\"0s\", \"0%\"], [\"{}ns\", \"10%\"], [\"{}ns\", \"0%\"]] }} }}",
            lossy.as_nanos(),
            (lossy + path.rounds(3)).as_nanos()
        )),
    )?;
    let begin = course.index_at(lossy);
    let Some(end) = course.exit(begin) else {
        context.check("ProbeBW_UP ends", "yes", "no", false);
        return Ok(None);
    };
    let (next, high) = (course.number(end, "state"), course.number(end, "prev_probe_too_high"));
    context.check("the state after the losses", "probe_bw_down", state(next), next == DOWN);
    context.check("prev_probe_too_high", "1", high.to_string(), high == 1);
    let bdp = u128::from(course.number(end, "bw")) * u128::from(course.number(end, "min_rtt"))
        / 1_000_000_000;
    let target = (bdp as u64).min(course.number(end - 1, "cwnd"));
    let longterm = course.number(end, "inflight_longterm");
    context.check(
        "inflight_longterm, in bytes",
        &format!("at least BBR.Beta x TargetInflight() = {}", target * 7 / 10),
        longterm.to_string(),
        longterm + course.number(end, "smss") >= target * 7 / 10,
    );
    Ok(None)
}

pub(super) fn refill_app_limited(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 8) {
        return Ok(Some(SMALL));
    }
    let world = world(context, 3);
    let first = context.run("refill-app-limited", &world)?;
    let Some(refill) = first.entries(REFILL).first().copied() else {
        context.check("ProbeBW_REFILL begins", "yes", "no", false);
        return Ok(None);
    };
    let (at, before) = (first.at(refill), first.number(refill, "max_bw"));
    let sample = first.samples.get(refill);
    let bytes = sample.map_or(1, |sample| sample.read + first.number(refill, "inflight"));
    let app = format!(
        "exchange = {{ opening = [{{ client = \"{bytes}B\" }}], steps = [{{ client = \"100B\", after \
         = \"{}ns\" }}, {{ client = \"1GB\", after = \"{}ns\" }}], count = 1 }}",
        (at + path.rounds(1)).as_nanos(),
        path.rounds(2).as_nanos()
    );
    let course = context.run("refill-app-limited", &world.app(app))?;
    let refill = course.index_at(at);
    let is_refill = course.number(refill, "state") == REFILL;
    let measured = state(course.number(refill, "state"));
    context.check("the state when the application pauses", "probe_bw_refill", measured, is_refill);
    let Some(end) = course.exit(refill) else {
        context.check("ProbeBW_REFILL ends", "yes", "no", false);
        return Ok(None);
    };
    let (next, after) = (course.number(end, "state"), course.number(end, "max_bw"));
    context.check("the state after it", "probe_bw_up", state(next), next == UP);
    context.check(
        "max_bw after the pause, in bytes per second",
        &format!("at least {before}"),
        after.to_string(),
        after >= before,
    );
    Ok(None)
}
