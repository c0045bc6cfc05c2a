//! The intervals of `ackclock diagnose --every`.

use core::fmt::Write;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use diagnose::Limiter;
use diagnose::rules::{many, rate, rule, size, time};
use ingest::diagnosis::{DiagnosisReport, DocumentsJson};
use ingest::inputs::{LiveConnection, LiveInterval};
use packet::Dir;
use scenario::units_text;
use serde::Serialize;
use units::Duration;

use crate::cli::DiagnoseArgs;
use crate::failure::Failure;
use crate::output;

/// Shortest interval.
const SHORTEST: Duration = Duration::from_millis(100);
/// Shortest interval that has a rate, in ns: the end of a capture may leave one of a packet.
const SHORTEST_RATED: u64 = 1_000_000;
/// Version of the JSON format.
const FORMAT: u32 = 1;

/// The length of the intervals.
pub(super) fn every(text: &str) -> Result<Duration, Failure> {
    let every = units_text::duration(text)
        .map_err(|error| Failure::new(format!("--every: `{text}` {error}")))?;
    if every < SHORTEST {
        return Err(Failure::new(format!("--every {text}: the shortest interval is 100ms")));
    }
    Ok(every)
}

/// Prints the intervals.
pub(super) struct IntervalPrinter<'a> {
    args: &'a DiagnoseArgs,
    /// Default number of connections in text.
    shown: usize,
    /// Set when standard output is closed: what the capture has yet to say has no reader.
    closed: &'a AtomicBool,
    pub(super) failed: Option<Failure>,
}

impl<'a> IntervalPrinter<'a> {
    pub(super) fn new(args: &'a DiagnoseArgs, shown: usize, closed: &'a AtomicBool) -> Self {
        Self { args, shown, closed, failed: None }
    }

    /// Prints an interval with the connections of `--host`, `--port` and `--flow`.
    pub(super) fn print(&mut self, interval: &LiveInterval) {
        let all = interval.connections.iter();
        let chosen: Vec<_> = all.filter(|one| self.admits(one)).collect();
        let text = if self.args.json {
            json_line(interval.span, &chosen, self.args.limit.unwrap_or(usize::MAX))
        } else {
            text(interval.span, &chosen, self.args.limit.unwrap_or(self.shown))
        };
        if self.failed.is_some() || self.closed.load(Ordering::Relaxed) {
            return;
        }
        let mut out = output::standard_output();
        match io::Write::write_all(&mut out, text.as_bytes())
            .and_then(|()| io::Write::flush(&mut out))
        {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.store(true, Ordering::Relaxed);
            }
            other => self.failed = other.map_err(|error| Failure::stdout(&error)).err(),
        }
    }

    fn admits(&self, one: &LiveConnection) -> bool {
        let ends = [one.ends.src, one.ends.dst];
        let DiagnoseArgs { host, port, flow, .. } = self.args;
        (host.is_empty() || host.iter().any(|ip| ends.iter().any(|end| end.ip() == *ip)))
            && (port.is_empty()
                || port.iter().any(|port| ends.iter().any(|end| end.port() == *port)))
            && flow.is_none_or(|flow| flow == one.number)
    }
}

/// Payload per second, in bytes; `None` if the interval is too short to have a rate.
fn rate_in(one: &LiveConnection, length: u64) -> Option<f64> {
    (length >= SHORTEST_RATED).then(|| one.bytes as f64 * 1e9 / length as f64)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// An interval as text, with at most `limit` connections.
fn text((from, to): (u64, u64), all: &[&LiveConnection], limit: usize) -> String {
    let mut out = String::new();
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
        Dir::Forward => (one.ends.src, one.ends.dst),
        Dir::Reverse => (one.ends.dst, one.ends.src),
    };
    let _ = write!(out, "  flow {}  {from} > {to}  {}", one.number, size(one.bytes));
    if let Some(bytes) = rate_in(one, length) {
        let _ = write!(out, ", {}", rate(bytes));
    }
    if let Some(limiter) = one.limiter {
        let _ = write!(
            out,
            "; {} {}",
            limiter.name(),
            time(one.limited.min(Duration::from_nanos(length)))
        );
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

#[derive(Serialize)]
struct LineJson<'a> {
    format: u32,
    ackclock: &'static str,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<Vec<ConnectionJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<DocumentsJson<'a>>,
}

#[derive(Serialize)]
struct ConnectionJson {
    id: u32,
    client: String,
    server: String,
    sender: &'static str,
    bytes: u64,
    rate_bps: Option<f64>,
    limit: Option<&'static str>,
    limited_s: f64,
    limit_before: Option<&'static str>,
    primary: Option<&'static str>,
    new_findings: Vec<&'static str>,
    is_new: bool,
    is_closed: bool,
}

impl ConnectionJson {
    fn of(one: &LiveConnection, length: u64) -> Self {
        Self {
            id: one.number,
            client: one.ends.src.to_string(),
            server: one.ends.dst.to_string(),
            sender: if one.dir == Dir::Forward { "client" } else { "server" },
            bytes: one.bytes,
            rate_bps: rate_in(one, length).map(|bytes| bytes * 8.0),
            limit: one.limiter.map(Limiter::key),
            limited_s: one.limited.as_secs_f64(),
            limit_before: one.before.map(Limiter::key),
            primary: one.primary,
            new_findings: one.news.clone(),
            is_new: one.is_new,
            is_closed: one.is_closed,
        }
    }
}

/// An interval as a line of JSON.
fn json_line((from, to): (u64, u64), all: &[&LiveConnection], limit: usize) -> String {
    let connections = all.iter().take(limit).map(|one| ConnectionJson::of(one, to - from));
    line(&LineJson {
        format: FORMAT,
        ackclock: env!("CARGO_PKG_VERSION"),
        event: "interval",
        from_s: Some(seconds(from)),
        to_s: Some(seconds(to)),
        connections: Some(connections.collect()),
        files: None,
    })
}

/// The result of the whole capture as a line of JSON, with at most `limit` connections.
pub(super) fn json_end(report: &DiagnosisReport, limit: usize) -> String {
    line(&LineJson {
        format: FORMAT,
        ackclock: env!("CARGO_PKG_VERSION"),
        event: "end",
        from_s: None,
        to_s: None,
        connections: None,
        files: Some(report.documents(limit)),
    })
}

fn line(json: &LineJson<'_>) -> String {
    // Nothing fails in memory.
    serde_json::to_string(json).unwrap_or_default() + "\n"
}
