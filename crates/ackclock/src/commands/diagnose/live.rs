//! The intervals of `ackclock diagnose --every`.

use core::fmt::Write;

use diagnose::rules::{many, rate, rule, size, time};
use ingest::inputs::{LiveConnection, LiveInterval};
use scenario::units_text;
use units::Duration;

use crate::failure::Failure;

/// Shortest interval.
const SHORTEST: Duration = Duration::from_millis(100);

/// The length of the intervals.
pub(super) fn every(text: &str) -> Result<Duration, Failure> {
    let every = units_text::duration(text)
        .map_err(|error| Failure::new(format!("--every: `{text}` {error}")))?;
    if every < SHORTEST {
        return Err(Failure::new(format!("--every {text}: the shortest interval is 100ms")));
    }
    Ok(every)
}

/// An interval as text, with at most `limit` connections.
pub(super) fn text(interval: &LiveInterval, limit: usize) -> String {
    let mut out = String::new();
    let (from, to) = interval.span;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let all = &interval.connections;
    let count = |is: fn(&LiveConnection) -> bool| all.iter().filter(|one| is(one)).count();
    let bytes = all.iter().map(|one| one.bytes).sum();
    let _ = writeln!(
        out,
        "{:.1}-{:.1} s  {}, {} new, {} closed; {}",
        seconds(from),
        seconds(to),
        many(all.len() as u64, "active connection"),
        count(|one| one.is_new),
        count(|one| one.is_closed),
        size(bytes)
    );
    for one in all.iter().take(limit) {
        connection(one, to - from, &mut out);
    }
    if all.len() > limit {
        let _ = writeln!(out, "  ... and {} more (--limit)", all.len() - limit);
    }
    out
}

fn connection(one: &LiveConnection, length: u64, out: &mut String) {
    let (from, to) = match one.dir {
        packet::Dir::Forward => (one.ends.src, one.ends.dst),
        packet::Dir::Reverse => (one.ends.dst, one.ends.src),
    };
    let speed = rate(one.bytes as f64 * 1e9 / length.max(1) as f64);
    let _ = write!(out, "  flow {}  {from} > {to}  {}, {speed}", one.number, size(one.bytes));
    if let Some(limiter) = one.limiter {
        let _ = write!(out, "; {} {}", limiter.name(), time(one.limited.min(length)));
        if let Some(before) = one.before.filter(|before| *before != limiter) {
            let _ = write!(out, " (before: {})", before.name());
        }
    }
    for code in one.news.iter().filter(|code| !code.starts_with("CC9")) {
        let name = rule(code).map_or("", |rule| rule.name);
        let is_limit = if one.primary == Some(code) { ", limits it" } else { "" };
        let _ = write!(out, "; new {code} {name}{is_limit}");
    }
    out.push('\n');
}
