//! ProbeRTT and the minimum RTT.

use units::Duration;

use super::startup::{paced, state};
use super::{CaseOutcome, holds};
use crate::bbr::context::{CaseContext, seconds};
use crate::bbr::course::{BbrCourse, CRUISE, PROBE_RTT, STARTUP};
use crate::bbr::world::BbrWorld;

const INTERVAL: Duration = Duration::from_secs(5);
const LEAST: Duration = Duration::from_millis(200);

/// ProbeRTT from ProbeBW: its samples of begin and end.
fn probe(course: &BbrCourse, full: u64) -> Option<(usize, usize)> {
    let begin = course
        .entries(PROBE_RTT)
        .into_iter()
        .find(|&at| course.number(at, "full_bw_reached") == full)?;
    Some((begin, course.exit(begin)?))
}

pub(super) fn enters_and_exits(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    let length = path.startup() + INTERVAL.saturating_mul(2) + path.rounds(8);
    let length = if path.startup() < Duration::from_secs(2) {
        INTERVAL + Duration::from_secs(1)
    } else {
        length
    };
    let course = context.run("probe-rtt", &BbrWorld::bulk(path, length))?;
    let Some((begin, end)) = probe(&course, 1) else {
        context.reached("ProbeRTT begins after Startup, and ends", &course, false);
        return Ok(None);
    };
    let gain = course.number(begin, "cwnd_gain");
    context.check("cwnd_gain in thousandths", "500", gain.to_string(), gain == 500);
    let lasts = course.at(end).saturating_sub(course.at(begin));
    context.check("its length", "more than 0.200 s", seconds(lasts), lasts > LEAST);
    let rounds = course.number(end, "round_count") - course.number(begin, "round_count");
    context.check("its rounds", "at least 1", rounds.to_string(), rounds >= 1);
    let next = course.number(end, "state");
    context.check("the state after it", "probe_bw_cruise", state(next), next == CRUISE);
    let cwnd = course.number(end - 1, "cwnd");
    let bdp = u128::from(course.number(end - 1, "bw"))
        * u128::from(course.number(end - 1, "min_rtt"))
        / 1_000_000_000;
    let most = (bdp as u64 / 2).max(4 * course.number(end - 1, "smss"));
    context.check(
        "cwnd in ProbeRTT, in bytes",
        &format!("at most {most}"),
        cwnd.to_string(),
        cwnd <= most,
    );
    // Four packets are in flight at least, and an ACK may be of two.
    let most = Duration::from_nanos(path.base_rtt().as_nanos() / 10 * 11) + path.packet_times(4);
    let measured = Duration::from_nanos(course.number(end, "min_rtt"));
    context.check(
        "min_rtt after it",
        &format!("{} to {}", seconds(path.rtt), seconds(most)),
        seconds(measured),
        measured >= path.rtt && measured <= most,
    );
    Ok(None)
}

pub(super) fn skipped_after_idle(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if path.rtt >= Duration::from_secs(1) {
        return Ok(Some("Startup of this path lasts longer than ProbeRTTInterval"));
    }
    let busy = path.startup();
    if busy > Duration::from_secs(4) {
        return Ok(Some("Startup of this path lasts almost as long as ProbeRTTInterval"));
    }
    let bytes = (u128::from(path.rate) * u128::from(busy.as_nanos()) / 8_000_000_000) as u64;
    let pause = busy + INTERVAL + Duration::from_secs(1);
    let after = path.rounds(20).min(Duration::from_secs(2));
    let app = format!(
        "exchange = {{ opening = [{{ client = \"{bytes}B\" }}], steps = [{{ client = \"10GB\", after \
         = \"{}ns\" }}], count = 1 }}",
        pause.as_nanos()
    );
    // The pause begins once the first data is in the send buffer.
    let world = BbrWorld::bulk(path, pause + busy + after).app(app);
    let course = context.run("probe-rtt-idle", &world)?;
    let reached = course.find(0, |at| course.number(at, "full_bw_reached") == 1);
    context.check(
        "Startup ends before the pause",
        "yes",
        if reached.is_some() { "yes" } else { "no" },
        reached.is_some(),
    );
    let later = course.index_at(busy + INTERVAL);
    let restart = course.find(later, |at| course.number(at, "idle_restart") == 1);
    let measured = restart.map_or_else(|| "never".to_owned(), |at| seconds(course.at(at)));
    context.check("idle_restart is set", "at the restart", measured, restart.is_some());
    let Some(restart) = restart else { return Ok(None) };
    let probes = course.entries(PROBE_RTT).into_iter().filter(|&at| at >= restart).count();
    context.check("ProbeRTT after the restart", "none", probes.to_string(), probes == 0);
    Ok(None)
}

pub(super) fn in_startup(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if path.packets() == 0 {
        return Ok(Some(
            "each packet of a limited application restarts from idle here, which replaces ProbeRTT",
        ));
    }
    let length = INTERVAL.saturating_mul(2) + path.rounds(8).min(Duration::from_secs(20));
    let world = BbrWorld::bulk(path, length).app(paced(context, 300));
    let course = context.run("probe-rtt-startup", &world)?;
    let Some((begin, end)) = probe(&course, 0) else {
        context.check("ProbeRTT begins in Startup, and ends", "yes", "no", false);
        return Ok(None);
    };
    let before = course.number(begin.saturating_sub(1), "state");
    context.check("the state before it", "startup", state(before), before == STARTUP);
    let lasts = course.at(end).saturating_sub(course.at(begin));
    context.check("its length", "more than 0.200 s", seconds(lasts), lasts > LEAST);
    let next = course.number(end, "state");
    context.check("the state after it", "startup", state(next), next == STARTUP);
    Ok(None)
}

/// "During a ProbeRTT episode the flow will remember the min_rtt value it measured during the previous one": the filter is
/// twice as long as the interval. And a longer path is learnt within both.
pub(super) fn min_rtt_filter(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 8) || path.rate > 1_000_000_000 {
        return Ok(Some("the minimum RTT of such a path is its packets', or the run too long"));
    }
    let half = Duration::from_nanos(path.rtt.as_nanos() / 2);
    let longer = Duration::from_nanos(path.rtt.as_nanos() * 3 / 4);
    let change = Duration::from_secs(13) + path.startup();
    let mut world = BbrWorld::bulk(path, change + Duration::from_secs(20) + path.rounds(8));
    world.delays = Some(vec![(Duration::ZERO, half), (change, longer)]);
    let course = context.run("min-rtt-filter", &world)?;
    let probes = course.entries(PROBE_RTT);
    let stamps: Vec<Duration> = probes.iter().map(|&at| course.at(at)).collect();
    let gaps = stamps.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let least = gaps.min();
    context.check(
        "the shortest time from one ProbeRTT to the next",
        "more than ProbeRTTInterval, 5 s",
        least.map_or_else(|| "fewer than two".to_owned(), seconds),
        least.is_some_and(|least| least > INTERVAL),
    );
    // An ACK may be of two packets.
    let base = (path.base_rtt() + path.packet_times(1)).as_secs_f64();
    let before: Vec<usize> = probes.iter().copied().filter(|&at| course.at(at) < change).collect();
    let worst = before
        .iter()
        .map(|&at| Duration::from_nanos(course.number(at, "min_rtt")).as_secs_f64() / base)
        .fold(0.0, f64::max);
    context.check(
        "min_rtt when ProbeRTT begins, over the path's, at worst",
        "at most 1.1: it remembers the previous probe",
        format!("{worst:.3} of {} probes", before.len()),
        !before.is_empty() && worst <= 1.1,
    );
    let new = path.base_rtt() + Duration::from_nanos(path.rtt.as_nanos() / 2);
    let learnt = course.find(course.index_at(change) + 1, |at| {
        course.at(at) > change && course.number(at, "min_rtt") >= new.as_nanos() * 99 / 100
    });
    let took = learnt.map(|at| course.at(at).saturating_sub(change));
    let bound = Duration::from_secs(15) + path.rounds(6);
    context.check(
        "time until min_rtt follows a path that has become 1.5 times as long",
        "at most MinRTTFilterLen + ProbeRTTInterval",
        took.map_or_else(|| "never".to_owned(), seconds),
        took.is_some_and(|took| took <= bound),
    );
    Ok(None)
}
