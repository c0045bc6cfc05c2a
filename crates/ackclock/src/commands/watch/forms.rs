//! The intervals of `ackclock watch` as text, JSON and OpenMetrics.

use core::fmt::Write;

use diagnose::rules::{many, rate, size, time, time_percent};
use diagnose::socket::SocketLimit;
use ingest::diagnosis::SocketVerdictJson;
use report::openmetrics::{GaugeFamily, exposition};
use serde::Serialize;
use units::Duration;

use super::tracker::{GoneSocket, WatchedInterval, WatchedSocket};

/// Version of the JSON format.
const FORMAT: u32 = 1;

/// The ends of a socket, with the direction of the data.
fn transfer(one: &WatchedSocket) -> String {
    let arrow = if one.receives { '<' } else { '>' };
    format!("{} {arrow} {}", one.socket.local, one.socket.remote)
}

/// An interval as text.
pub(super) fn text(interval: &WatchedInterval, elapsed: Duration, limit: usize) -> String {
    let mut out = String::new();
    let idle = match interval.idle {
        0 => String::new(),
        count => format!(", {count} idle"),
    };
    let active = many(interval.active.len() as u64, "active connection");
    let _ = writeln!(out, "{:.1} s  {active}{idle}", elapsed.as_secs_f64());
    table(&interval.active, limit, &mut out);
    for gone in interval.gone.iter().take(limit) {
        let one = &gone.watched;
        let _ = write!(out, "  gone: {}: {}", transfer(one), gone.ending.meaning());
        if one.verdict.bytes > 0 {
            let bytes = size(one.verdict.bytes);
            let _ = write!(
                out,
                "; {bytes} since it was watched, limited by: {}",
                one.verdict.limit.name()
            );
        }
        out.push('\n');
    }
    if interval.gone.len() > limit {
        let _ = writeln!(out, "  gone: {} more", interval.gone.len() - limit);
    }
    out
}

/// The summary at the end.
pub(super) fn end_text(all: &[WatchedSocket], elapsed: Duration, limit: usize) -> String {
    let mut out = String::new();
    if all.is_empty() {
        let _ = writeln!(out, "end: no connection with data is open");
        return out;
    }
    let _ =
        writeln!(out, "end: what limited the open connections in {:.1} s", elapsed.as_secs_f64());
    table(all, limit, &mut out);
    let mut limits: Vec<SocketLimit> = all.iter().map(|one| one.verdict.limit).collect();
    limits.sort_unstable();
    limits.dedup();
    for limit in limits {
        let _ = writeln!(out, "  {}: {}", limit.name(), limit.meaning());
    }
    out
}

const COLUMNS: [&str; 9] =
    ["connection", "rate", "limited by", "app", "rwnd", "sndbuf", "network", "rtt", "retrans"];

fn table(all: &[WatchedSocket], limit: usize, out: &mut String) {
    if all.is_empty() {
        return;
    }
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    for one in all.iter().take(limit) {
        let verdict = &one.verdict;
        let share = |part| match (one.receives, verdict.time) {
            (true, _) | (_, Duration::ZERO) => "-".to_owned(),
            (_, whole) => time_percent(part, whole),
        };
        let rtt = one.socket.sample.srtt.map_or("-".to_owned(), |srtt| match verdict.queue {
            Some(queue) if !queue.is_zero() => {
                format!("{} (+{})", time(srtt.saturating_sub(queue)), time(queue))
            }
            _ => time(srtt),
        });
        rows.push([
            transfer(one),
            verdict.rate().map_or("-".to_owned(), rate),
            verdict.limit.name().to_owned(),
            share(verdict.application),
            share(verdict.rwnd),
            share(verdict.sndbuf),
            share(verdict.network),
            rtt,
            verdict.retransmitted.to_string(),
        ]);
    }
    let widths: [usize; 9] =
        core::array::from_fn(|n| rows.iter().map(|row| row[n].len()).max().unwrap_or(0));
    for row in &rows {
        let mut line = String::from(" ");
        for (n, (cell, width)) in row.iter().zip(widths).enumerate() {
            let _ = match n {
                0 | 2 => write!(line, " {cell:<width$} "),
                _ => write!(line, " {cell:>width$} "),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if all.len() > limit {
        let _ = writeln!(out, "  ... and {} more (--limit)", all.len() - limit);
    }
}

#[derive(Debug, Serialize)]
struct LineJson {
    format: u32,
    ackclock: &'static str,
    event: &'static str,
    at_s: f64,
    connections: Vec<SocketJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<GoneJson>,
}

#[derive(Debug, Serialize)]
struct GoneJson {
    ending: &'static str,
    #[serde(flatten)]
    socket: SocketJson,
}

#[derive(Debug, Serialize)]
struct SocketJson {
    local: String,
    remote: String,
    state: &'static str,
    cc: String,
    direction: &'static str,
    #[serde(flatten)]
    verdict: SocketVerdictJson,
    rate_bps: Option<f64>,
    rtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    cwnd_packets: Option<u64>,
    peer_window_bytes: Option<u64>,
    unsent_bytes: Option<u64>,
    unread_bytes: Option<u64>,
}

impl SocketJson {
    fn of(one: &WatchedSocket) -> Self {
        let WatchedSocket { socket, verdict, receives } = one;
        let sample = &socket.sample;
        Self {
            local: socket.local.to_string(),
            remote: socket.remote.to_string(),
            state: socket.state,
            cc: socket.cc.clone(),
            direction: if *receives { "receives" } else { "sends" },
            verdict: verdict.into(),
            rate_bps: verdict.rate().map(|bytes| bytes * 8.0),
            rtt_s: sample.srtt.map(Duration::as_secs_f64),
            min_rtt_s: sample.min_rtt.map(Duration::as_secs_f64),
            cwnd_packets: sample.cwnd,
            peer_window_bytes: sample.peer_window,
            unsent_bytes: sample.unsent,
            unread_bytes: sample.unread,
        }
    }
}

/// An interval as a line of JSON.
pub(super) fn json_line(interval: &WatchedInterval, elapsed: Duration) -> String {
    let ended = |one: &GoneSocket| GoneJson {
        ending: one.ending.key(),
        socket: SocketJson::of(&one.watched),
    };
    line(&LineJson {
        format: FORMAT,
        ackclock: env!("CARGO_PKG_VERSION"),
        event: "interval",
        at_s: elapsed.as_secs_f64(),
        connections: interval.active.iter().map(SocketJson::of).collect(),
        idle: Some(interval.idle),
        gone: interval.gone.iter().map(ended).collect(),
    })
}

/// The summary at the end as a line of JSON.
pub(super) fn json_end(all: &[WatchedSocket], elapsed: Duration) -> String {
    line(&LineJson {
        format: FORMAT,
        ackclock: env!("CARGO_PKG_VERSION"),
        event: "end",
        at_s: elapsed.as_secs_f64(),
        connections: all.iter().map(SocketJson::of).collect(),
        idle: None,
        gone: Vec::new(),
    })
}

fn line(json: &LineJson) -> String {
    // Nothing fails in memory.
    serde_json::to_string(json).unwrap_or_default() + "\n"
}

/// An interval as OpenMetrics.
pub(super) fn openmetrics(interval: &WatchedInterval) -> String {
    let gauge = GaugeFamily::new;
    let mut throughput = gauge(
        "ackclock_socket_rate_bits_per_second",
        "bits_per_second",
        "Payload acknowledged or received per second",
    );
    let mut limit = gauge("ackclock_socket_limit", "", "1 for what limits the connection");
    let mut limited =
        gauge("ackclock_socket_limited_ratio", "ratio", "Share of the interval by what limited it");
    let mut round_trip =
        gauge("ackclock_socket_rtt_seconds", "seconds", "Smoothed round-trip time");
    let mut queue =
        gauge("ackclock_socket_queue_seconds", "seconds", "Smoothed less shortest round trip");
    let mut lost =
        gauge("ackclock_socket_retransmitted_packets", "packets", "Packets retransmitted");
    let mut open = gauge("ackclock_sockets", "", "Connections by whether data moved");
    for one in &interval.active {
        let labels = || {
            let (local, remote) = (one.socket.local.to_string(), one.socket.remote.to_string());
            vec![("local", local), ("remote", remote)]
        };
        let with = |key, value: &str| {
            let mut all = labels();
            all.push((key, value.to_owned()));
            all
        };
        let verdict = &one.verdict;
        throughput.add(&labels(), verdict.rate().unwrap_or(0.0) * 8.0);
        limit.add(&with("limit", verdict.limit.key()), 1.0);
        let shares = [
            ("application", verdict.application),
            ("receive_window", verdict.rwnd),
            ("send_buffer", verdict.sndbuf),
            ("network", verdict.network),
        ];
        let whole = verdict.time.as_nanos();
        for (name, part) in shares.into_iter().filter(|_| !one.receives && whole > 0) {
            limited.add(&with("limit", name), part.as_nanos() as f64 / whole as f64);
        }
        if let Some(srtt) = one.socket.sample.srtt {
            round_trip.add(&labels(), srtt.as_secs_f64());
        }
        if let Some(delay) = verdict.queue {
            queue.add(&labels(), delay.as_secs_f64());
        }
        lost.add(&labels(), verdict.retransmitted as f64);
    }
    open.add(&[("state", "active".to_owned())], interval.active.len() as f64);
    open.add(&[("state", "idle".to_owned())], interval.idle as f64);
    exposition(&[throughput, limit, limited, round_trip, queue, lost, open])
}
