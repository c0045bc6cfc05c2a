//! Random changes of a path: some of its constants become values over time, and some elements that
//! exist only for that are added.

use toml::{Table, Value};

use super::random::{WorldRandom, span, table};

/// Replaces constants of a path by changes before `end`, in microseconds.
pub(super) fn vary(path: &mut Value, end: u64, random_source: &mut WorldRandom) {
    let Some(path) = path.as_table_mut() else { return };
    for direction in ["forward", "return"] {
        let Some(route) = path.get_mut(direction).and_then(Value::as_array_mut) else { continue };
        route.iter_mut().for_each(|element| vary_element(element, end, random_source));
        if random_source.once_in(6) {
            let place = random_source.within(0..=route.len() as u64) as usize;
            route.insert(place, slot(random_source));
        }
        if random_source.once_in(6) {
            let place = random_source.within(0..=route.len() as u64) as usize;
            let average = if random_source.once_in(2) {
                random_source.span(1..=20_000)
            } else {
                changes(end, true, random_source, |random_source| random_source.span(1..=100_000))
            };
            route.insert(place, table([("jitter", table([("wifi", average)]))]));
        }
    }
}

fn vary_element(element: &mut Value, end: u64, random_source: &mut WorldRandom) {
    let Some(keys) = element.as_table_mut() else { return };
    if let Some(delay) = keys.get_mut("delay").filter(|_| random_source.once_in(3)) {
        let first = delay.clone();
        *delay = changes(end, true, random_source, |random_source| {
            if random_source.once_in(8) { span(0) } else { random_source.span(1..=100_000) }
        });
        // Buffers of `1bdp` are sized by the first delays.
        if let Some(step) = delay.get_mut("at").and_then(|at| at.get_mut(0)?.get_mut(1)) {
            *step = first;
        }
    }
    for kind in ["loss", "duplicate", "corrupt"] {
        if let Some(rule) = keys.get_mut(kind).filter(|rule| rule.is_str()) {
            *rule = changes(end, true, random_source, |random_source| {
                if random_source.once_in(3) {
                    return "0%".into();
                }
                if random_source.once_in(10) {
                    return "100%".into();
                }
                random_source.share(1..=800)
            });
        }
    }
    if let Some(outage) = keys.get_mut("outage").and_then(Value::as_table_mut)
        && random_source.once_in(2)
    {
        let (from, until) =
            (random_source.magnitude(1..=500_000), random_source.magnitude(1..=300_000));
        let period = until + random_source.magnitude(1..=2_000_000);
        outage.insert("from".into(), span(from));
        outage.insert("until".into(), span(from + until));
        outage.insert("period".into(), span(period));
    }
    let Some(link) = keys.get_mut("link").and_then(Value::as_table_mut) else { return };
    if let Some(rate) = link.get_mut("rate").filter(|_| random_source.once_in(2)) {
        let least = random_source.rate(500..=1_000_000);
        *rate =
            changes(end, true, random_source, |random_source| match random_source.within(0..=7) {
                0 => "0bit/s".into(),
                1 => least.clone(),
                _ => random_source.rate(500..=1_000_000),
            });
        never_ends_suspended(rate, least);
    }
    if let Some(buffer) = link.get_mut("buffer").filter(|_| random_source.once_in(3)) {
        *buffer =
            changes(end, false, random_source, |random_source| match random_source.once_in(2) {
                true => random_source.size(1_500..=1_000_000),
                false => format!("{}p", random_source.magnitude(1..=1_000)).into(),
            });
    }
}

/// A link that stays suspended, or always is, stalls its flows: the last rate is another.
fn never_ends_suspended(rate: &mut Value, least: Value) {
    let steps = rate.get_mut("at").and_then(Value::as_array_mut);
    if let Some(last) = steps.and_then(|steps| steps.last_mut()).and_then(Value::as_array_mut)
        && last[1].as_str() == Some("0bit/s")
    {
        last[1] = least;
    }
}

/// Draws a list of times and values.
fn changes(
    end: u64,
    may_ramp: bool,
    random_source: &mut WorldRandom,
    mut value: impl FnMut(&mut WorldRandom) -> Value,
) -> Value {
    let mut keys = Table::new();
    let mut times: Vec<u64> = (0..random_source.within(0..=4))
        .map(|_| random_source.magnitude(1..=end.max(2)).min(end.saturating_sub(1)))
        .filter(|&at| at > 0)
        .collect();
    times.sort_unstable();
    times.dedup();
    let last = times.last().copied().unwrap_or(0);
    let steps = core::iter::once(0).chain(times);
    let steps: Vec<Value> =
        steps.map(|at| Value::Array(vec![span(at), value(random_source)])).collect();
    keys.insert("at".into(), steps.into());
    if random_source.once_in(2) {
        keys.insert("period".into(), span(last + random_source.magnitude(1..=1_000_000)));
    }
    if may_ramp && random_source.once_in(3) {
        // At most some hundred steps.
        let least = (last + 1_000_000) / 100;
        keys.insert("ramp".into(), random_source.span(least..=10 * least));
    }
    Value::Table(keys)
}

fn slot(random_source: &mut WorldRandom) -> Value {
    let mut keys = Table::new();
    let min = random_source.within(0..=1) * random_source.magnitude(1..=20_000);
    keys.insert("min".into(), span(min));
    if random_source.once_in(2) {
        keys.insert("max".into(), span(min + random_source.magnitude(1..=20_000)));
    }
    if random_source.once_in(3) {
        keys.insert("packets".into(), random_source.count(1..=64));
    }
    if random_source.once_in(3) {
        keys.insert("bytes".into(), random_source.size(1_500..=100_000));
    }
    table([("slot", Value::Table(keys))])
}
