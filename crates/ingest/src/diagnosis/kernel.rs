//! What limited a connection by the account of the hosts' own kernels: ss, iperf3.

use core::fmt::Write;

use diagnose::Analysis;
use diagnose::rules::{many, size, time, time_percent};
use diagnose::socket::{SocketLimit, SocketVerdict};
use packet::Dir;
use serde::Serialize;
use units::Duration;

const HOSTS: [(Dir, &str); 2] = [(Dir::Forward, "client"), (Dir::Reverse, "server")];

/// What limited the connection by the kernel of its sender; `None` without an account.
pub fn kernel_limit(analysis: &Analysis) -> Option<SocketLimit> {
    let verdicts = HOSTS.map(|(dir, _)| analysis.states.socket_verdict(dir));
    let known = verdicts.into_iter().flatten().map(|verdict| verdict.limit);
    // A receiver only knows that the limit is elsewhere.
    known.min_by_key(|limit| matches!(limit, SocketLimit::Peer | SocketLimit::Idle))
}

/// The accounts, in lines; empty without one.
pub fn kernel_text(analysis: &Analysis) -> String {
    let mut out = String::new();
    for (dir, _) in HOSTS {
        let Some(verdict) = analysis.states.socket_verdict(dir) else { continue };
        let host = if dir == Dir::Forward { analysis.ends.src } else { analysis.ends.dst };
        let _ = writeln!(out, "  kernel of {host}: {}", text(&verdict));
        let _ = match verdict.limit.code() {
            Some(code) => {
                writeln!(out, "        {} (ackclock explain {code})", verdict.limit.meaning())
            }
            None => writeln!(out, "        {}", verdict.limit.meaning()),
        };
    }
    out
}

fn text(verdict: &SocketVerdict) -> String {
    let mut parts = vec![format!("limited by: {}", verdict.limit.name())];
    if !(verdict.network + verdict.rwnd + verdict.sndbuf).is_zero() {
        let share = |part| time_percent(part, verdict.time);
        parts.push(format!(
            "of {} application {}, receive window {}, send buffer {}, network {}",
            time(verdict.time),
            share(verdict.application),
            share(verdict.rwnd),
            share(verdict.sndbuf),
            share(verdict.network)
        ));
    }
    parts.push(size(verdict.bytes));
    if let Some(queue) = verdict.queue {
        parts.push(format!("queue {}", time(queue)));
    }
    let mut retransmitted = format!("{} retransmitted", many(verdict.retransmitted, "packet"));
    if verdict.spurious > 0 {
        retransmitted += &format!(", {} of them not needed", verdict.spurious);
    }
    parts.push(retransmitted);
    if verdict.reordered > 0 {
        let mut reordered = format!("reordering seen {}", times(verdict.reordered));
        if verdict.reordering > 0 {
            reordered += &format!(", by up to {}", many(verdict.reordering, "packet"));
        }
        parts.push(reordered);
    }
    parts.join("; ")
}

/// `once`, `31 times`.
fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// What limited a socket by its kernel's account, as fields of a JSON object; times are in seconds.
#[derive(Debug, Serialize)]
pub struct SocketVerdictJson {
    limit: &'static str,
    code: Option<&'static str>,
    time_s: f64,
    application_s: f64,
    receive_window_s: f64,
    send_buffer_s: f64,
    network_s: f64,
    bytes: u64,
    retransmitted_packets: u64,
    spurious_packets: u64,
    reordering_events: u64,
    reordering_packets: u64,
    queue_s: Option<f64>,
}

impl From<&SocketVerdict> for SocketVerdictJson {
    fn from(verdict: &SocketVerdict) -> Self {
        let seconds = Duration::as_secs_f64;
        Self {
            limit: verdict.limit.key(),
            code: verdict.limit.code(),
            time_s: seconds(verdict.time),
            application_s: seconds(verdict.application),
            receive_window_s: seconds(verdict.rwnd),
            send_buffer_s: seconds(verdict.sndbuf),
            network_s: seconds(verdict.network),
            bytes: verdict.bytes,
            retransmitted_packets: verdict.retransmitted,
            spurious_packets: verdict.spurious,
            reordering_events: verdict.reordered,
            reordering_packets: verdict.reordering,
            queue_s: verdict.queue.map(seconds),
        }
    }
}

/// The account of a host's kernel, for JSON.
#[derive(Debug, Serialize)]
pub(super) struct KernelJson {
    host: &'static str,
    #[serde(flatten)]
    verdict: SocketVerdictJson,
}

/// The accounts of the kernels.
pub(super) fn kernel_json(analysis: &Analysis) -> Vec<KernelJson> {
    let of = |(dir, host)| {
        let verdict = SocketVerdictJson::from(&analysis.states.socket_verdict(dir)?);
        Some(KernelJson { host, verdict })
    };
    HOSTS.into_iter().filter_map(of).collect()
}
