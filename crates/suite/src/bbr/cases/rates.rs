//! Bandwidth: aggregation, paths of less than a packet, and changes by a factor of ten.

use units::Duration;

use super::startup::state;
use super::{CaseOutcome, SMALL, holds};
use crate::bbr::context::{CaseContext, seconds};
use crate::bbr::course::{CRUISE, DOWN, DRAIN, PROBE_RTT, REFILL, STARTUP, UP};
use crate::bbr::world::BbrWorld;

/// A link layer that delivers once in a quarter to half of a round trip.
fn slotted(context: &CaseContext<'_>, duration: Duration) -> BbrWorld {
    let path = context.path;
    let nanos = path.rtt.as_nanos();
    BbrWorld::bulk(path, duration).back(format!(
        "{{ slot = {{ min = \"{}ns\", max = \"{}ns\" }} }}",
        nanos / 4,
        nanos / 2
    ))
}

pub(super) fn startup_aggregation(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 30) {
        return Ok(Some(SMALL));
    }
    let course = context.run("startup-aggregation", &slotted(context, path.rounds(60)))?;
    let Some(drain) = course.entries(DRAIN).first().copied() else {
        context.reached("Startup ends in Drain", &course, false);
        return Ok(None);
    };
    let last = drain - 1;
    let extra = course.number(last, "extra_acked");
    context.check("extra_acked, in bytes", "more than 0", extra.to_string(), extra > 0);
    let bdp = u128::from(course.number(last, "bw")) * u128::from(course.number(last, "min_rtt"))
        / 1_000_000_000;
    let cwnd = course.number(last, "cwnd");
    context.check(
        "cwnd, in bytes",
        &format!("more than 2 x BDP = {}", 2 * bdp),
        cwnd.to_string(),
        u128::from(cwnd) > 2 * bdp,
    );
    // The appendix asks for the full bandwidth; nothing bounds what bursts of ACKs add.
    let expected = path.bytes_per_second(course.number(drain, "smss"));
    let ratio = course.number(drain, "max_bw") as f64 / expected;
    context.check("max_bw over the path's", "at least 0.98", format!("{ratio:.3}"), ratio >= 0.98);
    Ok(None)
}

pub(super) fn cruise_aggregation(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 30) {
        return Ok(Some(SMALL));
    }
    let length = path.startup() + path.cycle().saturating_mul(2);
    let course = context.run("cruise-aggregation", &slotted(context, length))?;
    let long = |at: usize| {
        course.exit(at).is_some_and(|end| {
            course.number(end, "round_count") >= course.number(at, "round_count") + 5
        })
    };
    let Some(begin) = course.entries(CRUISE).into_iter().find(|&at| long(at)) else {
        return Ok(Some(
            "no ProbeBW_CRUISE lasts five rounds: a probe for bandwidth follows within 3 s",
        ));
    };
    let Some(end) = course.exit(begin) else { return Ok(None) };
    let extra = course.number(end - 1, "extra_acked");
    context.check("extra_acked, in bytes", "more than 0", extra.to_string(), extra > 0);
    let bdp = u128::from(course.number(end - 1, "bw"))
        * u128::from(course.number(end - 1, "min_rtt"))
        / 1_000_000_000;
    let cwnd = course.number(end - 1, "cwnd");
    context.check(
        "cwnd, in bytes",
        &format!("more than 2 x BDP = {}", 2 * bdp),
        cwnd.to_string(),
        u128::from(cwnd) > 2 * bdp,
    );
    // Payload: headers of QUIC are at most 40 bytes of a datagram.
    let expected = path.bytes_per_second(course.number(begin, "smss") - 40);
    context.near("goodput in ProbeBW_CRUISE", course.goodput(begin, end), expected, [0.05, 0.05]);
    Ok(None)
}

pub(super) fn sub_packet(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if path.packets() > 0 {
        return Ok(Some("the path holds a packet"));
    }
    let course = context.run("sub-packet", &BbrWorld::bulk(path, path.startup() + path.cycle()))?;
    let probing: Vec<usize> = (0..course.samples.len())
        .filter(|&at| (DOWN..=UP).contains(&course.number(at, "state")))
        .collect();
    context.check(
        "ProbeBW begins",
        "yes",
        if probing.is_empty() { "no" } else { "yes" },
        !probing.is_empty(),
    );
    let Some((&first, &last)) = probing.first().zip(probing.last()) else { return Ok(None) };
    let smss = course.number(first, "smss");
    let least = probing.iter().map(|&at| course.number(at, "cwnd")).min().unwrap_or(0);
    context.check(
        "least cwnd in ProbeBW, in bytes",
        &format!("at least MinPipeCwnd = {}", 4 * smss),
        least.to_string(),
        least >= 4 * smss,
    );
    let cruising = probing.iter().copied().find(|&at| course.number(at, "state") == CRUISE);
    if let Some(at) = cruising {
        let expected = path.bytes_per_second(smss);
        let rate = course.number(at, "pacing_rate") as f64;
        context.near("pacing_rate in ProbeBW_CRUISE", rate, expected, [0.05, 0.02]);
    }
    let expected = path.bytes_per_second(smss - 40);
    context.near("goodput in ProbeBW", course.goodput(first, last), expected, [0.05, 0.05]);
    Ok(None)
}

/// A change of the rate in the second ProbeBW_CRUISE.
fn change(
    context: &mut CaseContext<'_>,
    title: &str,
    world: &BbrWorld,
) -> Result<Option<Duration>, crate::SuiteError> {
    let first = context.run(title, world)?;
    let at = first.entries(CRUISE).first().map(|&at| first.at(at));
    context.check(
        "ProbeBW_CRUISE begins",
        "yes",
        at.map_or_else(|| "no".to_owned(), seconds),
        at.is_some(),
    );
    Ok(at)
}

pub(super) fn rate_up(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 30) {
        return Ok(Some(SMALL));
    }
    let length = path.startup().saturating_mul(3) + path.cycle().saturating_mul(10);
    let mut world = BbrWorld::bulk(path, length);
    world.rates = vec![(Duration::ZERO, path.rate / 10)];
    let mut short = world.clone();
    short.duration = path.startup().saturating_mul(3) + Duration::from_secs(1);
    let Some(at) = change(context, "rate-up", &short)? else { return Ok(None) };
    world.rates.push((at, path.rate));
    let course = context.run("rate-up", &world)?;
    let expected = path.bytes_per_second(course.number(0, "smss"));
    let from = course.index_at(at);
    let found = course.find(from, |at| course.number(at, "max_bw") as f64 >= 0.9 * expected);
    let Some(found) = found else {
        let most = (from..course.samples.len()).map(|at| course.number(at, "max_bw")).max();
        let share = most.unwrap_or(0) as f64 / expected;
        context.check("max_bw over the path's", "at least 0.9", format!("{share:.3}"), false);
        return Ok(None);
    };
    let rounds_in = |state: u64| {
        (from + 1..=found)
            .filter(|&at| course.number(at, "state") == state)
            .filter(|&at| course.number(at, "round_count") > course.number(at - 1, "round_count"))
            .count() as u64
    };
    let probing = rounds_in(UP) + rounds_in(REFILL) + rounds_in(STARTUP);
    let all = course.number(found, "round_count") - course.number(from, "round_count");
    let logarithm = u64::from(path.packets().max(2).ilog2());
    let probes = course.entries(UP).iter().filter(|&&up| up > from && up <= found).count();
    context.check(
        "max_bw reaches 0.9 of the path's",
        &format!("after O(log2(BDP)) rounds of probing: at most 4 x {logarithm}"),
        format!(
            "after {probing} rounds in {probes} probes, {all} rounds in all, {}",
            seconds(course.at(found).saturating_sub(at))
        ),
        probing <= 4 * logarithm,
    );
    // The additive increase doubles with each round while the bound limits the flight.
    let up_limited = |at: usize| {
        course.number(at, "state") == UP
            && course
                .get(at, "inflight_longterm")
                .is_some_and(|bound| course.number(at, "cwnd") >= bound)
    };
    let steps: Vec<(u64, u64)> = (from..=found)
        .filter(|&at| up_limited(at) && at > 0 && up_limited(at - 1))
        .filter_map(|at| {
            let step = |at| course.get(at, "probe_up_acked_per_inc");
            step(at - 1).zip(step(at)).filter(|(before, now)| before != now)
        })
        .collect();
    if !steps.is_empty() {
        let halves = steps.iter().all(|&(before, now)| now < before);
        context.check(
            "probe_up_acked_per_inc falls with each round",
            "always",
            format!("{} steps", steps.len()),
            halves,
        );
    }
    Ok(None)
}

pub(super) fn rate_down(context: &mut CaseContext<'_>) -> CaseOutcome {
    let path = context.path;
    if !holds(path, 30) {
        return Ok(Some(SMALL));
    }
    let mut world = BbrWorld::bulk(path, path.startup() + path.cycle()).buffer(path.bdp() / 2);
    let Some(at) = change(context, "rate-down", &world)? else { return Ok(None) };
    // A tenth of the bandwidth fills the queue: its delay counts, too.
    let slow = path.rounds(1).saturating_mul(10);
    world.duration =
        at + path.cycle().saturating_mul(3) + slow.saturating_mul(8) + Duration::from_secs(10);
    let course = context.run("rate-down", &world.rate_from(at, 100))?;
    let from = course.index_at(at);
    let low = course.find(from, |at| course.get(at, "bw_shortterm").is_some());
    let measured = low.map_or_else(
        || "never".to_owned(),
        |low| {
            format!(
                "after {}, in {}",
                seconds(course.at(low).saturating_sub(at)),
                state(course.number(low, "state"))
            )
        },
    );
    context.check("bw_shortterm is set", "by the losses", measured, low.is_some());
    let expected = path.bytes_per_second(course.number(0, "smss")) / 10.0;
    let found = course.find(from, |at| (course.number(at, "max_bw") as f64) <= 1.1 * expected);
    let end = found.unwrap_or(course.samples.len().saturating_sub(1));
    let probes = course.entries(UP).iter().filter(|&&up| up > from && up <= end).count();
    let rtts = course.entries(PROBE_RTT).iter().filter(|&&up| up > from && up <= end).count();
    context.conflicting(
        "max_bw falls to the new rate",
        "within 2 cycles: at most 3 probes for bandwidth",
        match found {
            Some(found) => format!(
                "after {}, {probes} probes for bandwidth and {rtts} ProbeRTT",
                seconds(course.at(found).saturating_sub(at))
            ),
            None => format!("not in {probes} probes and {rtts} ProbeRTT"),
        },
        found.is_some() && probes <= 3,
        "AdaptLongTermModel advances the filter a round after ProbeBW_UP, in a ProbeBW state and by a sample that is not \
         application-limited; on this round trip ProbeRTT, which marks the samples, comes between",
    );
    // Without ProbeRTT in most cycles that is no reason.
    if rtts < probes
        && let Some(check) = context.checks.last_mut()
    {
        check.conflict = None;
    }
    Ok(None)
}
