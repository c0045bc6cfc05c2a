//! The cures of a finding, tried in a simulation of the recorded transfer.

use core::convert::Infallible;
use std::collections::BTreeMap;

use diagnose::rules::{LossProcess, Proof, ProvenCost};
use fit::{FitError, PathFit, PolicerFit, WritePattern};
use ingest::diagnosis::{Prediction, TriedCure, Validity};
use ingest::inputs::CapturedConnection;
use packet::Dir;
use runner::workers::Workers;
use tcp::profile::Family;
use units::Duration;

use super::alternatives::FittedPath;
use super::hypotheses::hypotheses;
use super::reproduction::{Reproduction, reproduce};
use super::{BestSender, MAX_MISFIT, WhatIfError};

/// Default maximum of the receive buffers of Linux (`tcp_init` of Linux 6.18), and the largest buffer of scenarios.
const LEAST_BUFFER: u64 = 6 << 20;
pub(super) const MOST_BUFFER: u64 = 1 << 30;
/// How many bandwidth-delay products a larger buffer holds: Linux keeps a part of it for overhead, and losses are
/// repaired meanwhile.
const BUFFERED_PRODUCTS: u64 = 4;
/// Packets of a larger initial window.
const LARGE_INITIAL_WINDOW: u64 = 30;
/// Setting of the queue of a path.
const QUEUE: &str = "path.forward.link.buffer=";
/// Queues of a path hold at least this.
const LEAST_QUEUE: u64 = 30_000;

/// A change that a finding suggests.
struct Cure {
    /// Argument of `--set`.
    set: String,
    /// Where and what, in words.
    what: String,
    /// Without it the finding is gone: what it saves is the finding's cost.
    removes: bool,
    /// It is no cure that anybody could apply.
    only_removes: bool,
}

impl Cure {
    fn described(what: &str, set: impl Into<String>) -> Self {
        let (set, what) = (set.into(), what.to_owned());
        Self { set, what, removes: false, only_removes: false }
    }

    fn of(place: &str, set: impl Into<String>) -> Self {
        let set = set.into();
        Self::described(&format!("{place}: {set}"), set)
    }

    /// One that removes what the finding names.
    fn removing(self) -> Self {
        Self { removes: true, ..self }
    }

    /// Whether it changes the queue of the path.
    fn is_queue(&self) -> bool {
        self.set.starts_with(QUEUE)
    }

    /// A change that is only for the cost of the finding.
    fn cost(set: &str) -> Self {
        Self { removes: true, only_removes: true, ..Self::described("", set) }
    }
}

/// A finding whose cures are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriedFinding {
    /// Its code.
    pub code: &'static str,
    /// Its kind; empty without one.
    pub kind: &'static str,
}

/// Cures that were tried, and the costs that they show.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TriedCures {
    /// The cures, in the order of their findings.
    pub cures: Vec<TriedCure>,
    /// Costs of the findings without which the transfer was simulated, and the process of its losses.
    pub proof: Proof,
}

impl TriedCures {
    /// The path of a fit carried all data in this time, if that is a figure.
    fn carried(&mut self, fitted: &PathFit, time_s: f64, validity: Validity) {
        if validity == Validity::Figure {
            let rate = fitted.bytes as f64 / time_s;
            self.proof.rate = Some(self.proof.rate.map_or(rate, |before| before.max(rate)));
        }
    }
}

/// Tries the cures of findings of a connection whose packets were kept, the one that limited it first; none if
/// no finding has a cure that is a setting, or the runs are stopped. `others` are further connections of the capture.
pub fn try_cures(
    stream: &CapturedConnection,
    others: &[&CapturedConnection],
    findings: &[TriedFinding],
    workers: &Workers<'_>,
) -> TriedCures {
    let mut tried = TriedCures::default();
    // Findings without such cures are not tried.
    let findings: Vec<_> = findings.iter().filter(|one| HAS_CURES.contains(&one.code)).collect();
    let first = findings.first().map(|one| one.code);
    let Reproduction { fitted, answer, best } = match reproduce(stream, others, workers, None) {
        Ok(reproduction) => reproduction,
        Err(WhatIfError::Fit(FitError::NoPackets) | WhatIfError::Run(_)) => return tried,
        Err(error) => {
            tried.cures.extend(first.map(|code| unpredictable(code, error.to_string())));
            return tried;
        }
    };
    let senders = &answer.senders;
    let path = FittedPath { fitted: &fitted, best: &best, senders, workers, kernels: None };
    let recorded_s = answer.recorded.time_s;
    // An application that writes by a clock ends when that does: what it waits for in between costs its end nothing.
    let is_clocked = fitted.conversation.is_none() && fitted.writes != WritePattern::Bulk;
    let sender = (best.profile, best.cc);
    // The time with a change, and what it is worth; `None` without a result.
    let simulated = |set: &String| {
        let found = path.alternative(sender, core::slice::from_ref(set)).ok();
        Ok::<_, Infallible>(found.map(|found| (found.course.time_s, found.prediction)))
    };
    // The changes whose runs depend on no other's: all of the first finding, one of each other.
    let mut independent: Vec<String> = Vec::new();
    for (number, one) in findings.iter().enumerate() {
        let cures = cures(one, &fitted, &best).into_iter();
        match number {
            0 => independent.extend(cures.map(|cure| cure.set)),
            _ => independent.extend(cures.filter(|cure| cure.removes).map(|cure| cure.set).take(1)),
        }
    }
    let Ok(found) = workers.map(&independent, simulated);
    let found: BTreeMap<String, _> = independent.into_iter().zip(found).collect();
    let mut removed: Vec<(String, Duration)> = Vec::new();
    for (number, one) in findings.iter().enumerate() {
        let mut proven = None;
        // A larger buffer holds more of what the application does not read, which is not read sooner.
        let is_read_slowly =
            fitted.reads.is_some() && findings.iter().any(|one| one.code == "CC403");
        if one.code == "CC401" && is_read_slowly {
            tried.proof.costs.push(ProvenCost {
                code: one.code,
                least: Duration::ZERO,
                most: Duration::ZERO,
            });
            continue;
        }
        for Cure { set, what, removes, only_removes } in cures(one, &fitted, &best) {
            // Of findings that did not limit it, the cost is enough.
            if number > 0 && (!removes || proven.is_some()) {
                continue;
            }
            let Ok(found) = found.get(&set).map_or_else(|| simulated(&set), |one| Ok(one.clone()));
            let Some((duration_s, prediction)) = found else { continue };
            if removes {
                tried.carried(&fitted, duration_s, prediction.validity);
            }
            if removes && proven.is_none() {
                // A sender that does not wait ends fewer flights, whose ends may have been lost for that.
                let is_of_ends = one.code.starts_with("CC5")
                    && prediction.why == super::alternatives::OTHER_LOSSES;
                proven = proven_cost(one.code, best.time_s, duration_s, &prediction)
                    .filter(|_| !is_of_ends);
                // What an earlier finding explains is no other's cost.
                match removed.iter().find(|before| before.0 == set) {
                    Some((_, most)) => {
                        let most = *most / 100 * 99;
                        proven = Some(ProvenCost { code: one.code, least: Duration::ZERO, most });
                    }
                    None => removed.extend(proven.map(|cost| (set.clone(), cost.least))),
                }
            }
            if !only_removes && (number == 0 || prediction.validity != Validity::None) {
                let finding = one.code;
                tried.cures.push(TriedCure {
                    finding,
                    set,
                    what,
                    recorded_s,
                    duration_s,
                    prediction,
                });
            }
        }
        // It fills no buffer of its own, though.
        let is_shown = !is_clocked || one.code == "CC503";
        tried.proof.costs.extend(proven.filter(|_| is_shown));
    }
    tried.proof.losses = outages(&fitted, &path, &tried).or_else(|| losses(&fitted, &best));
    // A small transfer waits for its user more often than for a limit.
    let is_tried = fitted.bytes >= LEAST_BYTES && best.error <= MAX_ERROR;
    let mut hypotheses = if is_tried { hypotheses(&fitted) } else { Vec::new() };
    // What a finding explains is that finding's.
    hypotheses.retain(|(limit, set)| {
        !findings.iter().any(|one| one.code == limit.code)
            && !removed.iter().any(|before| before.0 == *set)
    });
    let Ok(found) = workers.map(&hypotheses, |(_, set)| simulated(set));
    for ((limit, _), found) in hypotheses.into_iter().zip(found) {
        let Some((time_s, prediction)) = found else { continue };
        if prediction.why == super::alternatives::OTHER_LOSSES {
            continue;
        }
        let cost = proven_cost(limit.code, best.time_s, time_s, &prediction);
        if let Some(cost) =
            cost.filter(|cost| cost.least.as_secs_f64() >= LEAST_FOUND * best.time_s)
        {
            tried.carried(&fitted, time_s, prediction.validity);
            tried.proof.costs.push(cost);
            tried.proof.found.push(limit);
        }
    }
    if let Some(losses) = tried.proof.losses {
        for cure in &mut tried.cures {
            cure.finding = losses.code_of(cure.finding).unwrap_or(cure.finding);
        }
        // Two findings that became one name the same cures.
        let mut named: Vec<(&str, String)> = Vec::new();
        tried.cures.retain(|cure| {
            let name = (cure.finding, cure.set.clone());
            let is_new = !named.contains(&name);
            named.push(name);
            is_new
        });
        for cost in &mut tried.proof.costs {
            cost.code = losses.code_of(cost.code).unwrap_or(cost.code);
        }
    }
    tried
}

/// Largest timing error of a simulation that shows limits which no rule found, and their least part of the time.
const MAX_ERROR: f64 = MAX_MISFIT / 2.0;
const LEAST_FOUND: f64 = 0.05;
/// Least bytes of a transfer in which such limits are looked for.
const LEAST_BYTES: u64 = 100_000;

/// Outages, if most of what losses cost is theirs.
fn outages(fitted: &PathFit, path: &FittedPath<'_>, tried: &TriedCures) -> Option<LossProcess> {
    let losses = &fitted.losses;
    let longest = losses.outages.iter().map(|span| span.1.saturating_sub(span.0)).max()?;
    let sender = (path.best.profile, path.best.cc);
    let without = path.alternative(sender, &["path.forward.outage=none".to_owned()]).ok()?;
    // At least.
    let time_s = match without.prediction.validity {
        Validity::Range => without.prediction.high_s,
        _ => without.course.time_s,
    };
    let saved = path.best.time_s - time_s;
    let is_other = |one: &&ProvenCost| one.code.starts_with("CC20") && one.code != "CC204";
    let of_losses = tried.proof.costs.iter().filter(is_other);
    let others = of_losses.map(|one| one.least.as_secs_f64()).fold(0.0, f64::max);
    let is_most = without.prediction.validity != Validity::None && saved >= others && saved > 0.0;
    is_most.then_some(LossProcess::Outages { longest, count: losses.outages.len() as u64 })
}

/// The process of the losses of a fit that reproduces the transfer.
fn losses(fitted: &PathFit, best: &BestSender<'_>) -> Option<LossProcess> {
    let sent = fitted.losses.sent;
    let overflowed = fitted.overflowed.len() as u64;
    // A bucket is shown by the packets themselves.
    let lost = fitted.losses.packets.len() as u64;
    if let Some(PolicerFit { rate, burst }) = fitted.shown_policer {
        return Some(LossProcess::Policer { rate_bps: rate, burst, lost: overflowed.max(lost) });
    }
    if let Some(buffer) = fitted.dropping_queue {
        return Some(LossProcess::FullQueue { buffer, lost: overflowed.max(lost) });
    }
    if best.error > MAX_ERROR {
        return None;
    }
    match (fitted.buffer, fitted.losses.mean_burst()) {
        (Some(buffer), _) if !fitted.may_be_full(buffer) => None,
        (Some(buffer), _) => Some(LossProcess::FullQueue { buffer, lost: overflowed }),
        (None, _) if lost == 0 => None,
        (None, Some(mean)) => Some(LossProcess::Bursts { lost, sent, mean }),
        (None, None) => Some(LossProcess::Single { lost, sent }),
    }
}

/// The cost of a finding: what the simulated sender saves without it; `None` if that cannot be predicted.
fn proven_cost(
    code: &'static str,
    with_s: f64,
    without_s: f64,
    prediction: &Prediction,
) -> Option<ProvenCost> {
    let saved = |time_s: f64| Duration::from_nanos(((with_s - time_s).max(0.0) * 1e9) as u64);
    let (least, most) = match prediction.validity {
        Validity::Figure => (saved(without_s), saved(without_s)),
        Validity::Range => (saved(prediction.high_s), saved(prediction.low_s)),
        Validity::None => return None,
    };
    Some(ProvenCost { code, least, most })
}

/// Codes of findings with cures that are settings, or whose cost a simulation without them shows.
const HAS_CURES: [&str; 23] = [
    "CC002", "CC101", "CC102", "CC103", "CC104", "CC201", "CC202", "CC203", "CC204", "CC205",
    "CC206", "CC301", "CC302", "CC401", "CC402", "CC403", "CC501", "CC502", "CC503", "CC504",
    "CC505", "CC506", "CC601",
];

/// Waits that both kinds of applications do not have.
pub(super) const NO_CLIENT_WAITS: &str = "application.client_waits=0s";
pub(super) const NO_SERVER_WAITS: &str = "application.server_waits=0s";
/// A window of the application that limits nothing.
pub(super) const WIDE: &str = "application.window=1GB";

/// The cures of a finding that are settings of the fitted scenario.
fn cures(found: &TriedFinding, fitted: &PathFit, best: &BestSender<'_>) -> Vec<Cure> {
    let TriedFinding { code, kind } = *found;
    let product = fitted.rate.map(|rate| (rate as f64 / 8.0 * fitted.rtt as f64 / 1e9) as u64);
    let buffer = product.map_or(0, |product| product * BUFFERED_PRODUCTS);
    let buffer = if buffer > LEAST_BUFFER { buffer.next_power_of_two() } else { LEAST_BUFFER };
    let buffer = buffer.min(MOST_BUFFER);
    let is_linux = best.family() == Family::Linux;
    let sends = fitted.dir == Dir::Forward;
    let sender_waits = if sends { NO_CLIENT_WAITS } else { NO_SERVER_WAITS };
    match (code, kind) {
        ("CC401", _) if fitted.opening.no_scaling => {
            vec![Cure::described("both hosts: window scaling", "path.strip=none").removing()]
        }
        ("CC401", _) => {
            vec![Cure::of("receiver", receive_knob(fitted, buffer)).removing()]
        }
        ("CC402", _) => vec![Cure::cost("path.return.thin=none")],
        ("CC403", _) if fitted.reads.is_some() => {
            let what = "receiver: an application that reads at once";
            vec![Cure::described(what, READS_AT_ONCE).removing()]
        }
        ("CC503", _) => {
            let knob = match is_linux {
                true => format!("net.ipv4.tcp_wmem=\"4096 16384 {buffer}\""),
                false => format!("net.inet.tcp.sendspace={buffer}"),
            };
            vec![Cure::of("sender", knob).removing()]
        }
        ("CC502", _) if is_linux => {
            vec![Cure::of("sender", "net.ipv4.tcp_slow_start_after_idle=0").removing()]
        }
        ("CC501", "app-window") => {
            let double = fitted.conversation.as_ref().and_then(|found| found.window);
            let double = double.map(|window| {
                let what = "application: a window twice as large";
                Cure::described(what, format!("application.window={}B", 2 * window))
            });
            double.into_iter().chain([Cure::cost(WIDE)]).collect()
        }
        ("CC501", "round-trips") => {
            let what = "application: all requests at once";
            // What both hosts wait between them is no cost of the round trips.
            vec![
                Cure::described(what, "application.batch=true"),
                Cure::cost("application.batch=same-waits"),
            ]
        }
        ("CC501", _) => {
            vec![
                Cure::described("sender: an application that does not wait", sender_waits)
                    .removing(),
            ]
        }
        ("CC504", _) => {
            vec![Cure::described("sender: TCP_NODELAY", "flow.nodelay=true").removing()]
        }
        ("CC505", _) => {
            vec![Cure::described("server: answers at once", NO_SERVER_WAITS).removing()]
        }
        ("CC506", _) => {
            vec![Cure::described("client: no waits between requests", NO_CLIENT_WAITS).removing()]
        }
        ("CC601", "return-path") => {
            vec![Cure::described("path: ACKs that do not wait", "path.return.link=none").removing()]
        }
        ("CC002", _) | ("CC204", "syn-lost" | "syn-ecn" | "backlog") => {
            vec![Cure::cost("path.opening.loss=0%")]
        }
        ("CC204", "") => {
            let mut cures = vec![Cure::cost("path.forward.outage=none")];
            cures.extend(of_losses(fitted, product, is_linux, best));
            cures.extend(rack(best));
            cures
        }
        ("CC204", _) => Vec::new(),
        ("CC206", _) => {
            let knob = if is_linux { "net.ipv4.tcp_ecn" } else { "net.inet.tcp.ecn.enable" };
            vec![Cure::of("sender", format!("{knob}=0")), Cure::cost("path.forward.marks=none")]
        }
        ("CC101" | "CC102", _) => {
            let knob =
                if is_linux { "ip-route.initcwnd" } else { "net.inet.tcp.initcwnd_segments" };
            vec![Cure::of("sender", format!("{knob}={LARGE_INITIAL_WINDOW}"))]
        }
        ("CC301" | "CC302", _) if fitted.late.is_some() => {
            let cost = Cure::cost("path.forward.reorder=none");
            [cost].into_iter().chain(of_losses(fitted, product, is_linux, best)).collect()
        }
        ("CC103" | "CC104" | "CC301", _) => of_losses(fitted, product, is_linux, best)
            .into_iter()
            // A queue that holds slow start is the finding's end; without losses elsewhere it stays.
            .map(|cure| Cure {
                removes: cure.removes && code == "CC103" && cure.is_queue(),
                ..cure
            })
            .collect(),
        ("CC201" | "CC202" | "CC203" | "CC205", _) => {
            // Outages have a finding of their own.
            let alone = (!fitted.losses.outages.is_empty() && fitted.has_losses_of_packets())
                .then(|| Cure::cost("path.forward.losses=none"));
            let mut cures = of_losses(fitted, product, is_linux, best);
            cures.splice(0..0, alone);
            cures.extend(rack(best));
            if kind == "no-sack" {
                cures.push(Cure::described("both hosts: SACK", "path.strip=none"));
            }
            cures
        }
        _ => Vec::new(),
    }
}

/// The setting of a receiver's buffer of this size.
pub(super) fn receive_knob(fitted: &PathFit, buffer: u64) -> String {
    match fitted.receives_as_linux() {
        true => format!("net.ipv4.tcp_rmem=\"4096 131072 {buffer}\""),
        false => format!("net.inet.tcp.recvspace={buffer}"),
    }
}

/// The cures of losses.
fn of_losses(
    fitted: &PathFit,
    product: Option<u64>,
    is_linux: bool,
    best: &BestSender<'_>,
) -> Vec<Cure> {
    let bbr = (is_linux && best.cc != Some("bbr"))
        .then(|| Cure::described("sender: congestion control bbr", "sender.cc=bbr"));
    let lossless = fitted
        .has_losses()
        .then(|| Cure::described("path: without the losses", "path.forward.loss=0%").removing());
    let of_requests = (!fitted.requests_lost.is_empty()).then(|| {
        let what = "path: without the losses of the other direction";
        Cure::described(what, "path.return.loss=0%").removing()
    });
    let queue = fitted.buffer.zip(product).and_then(|(buffer, product)| {
        let longer = product.max(LEAST_QUEUE);
        let what = format!("path: a queue of {longer} B instead of {buffer} B");
        let set = format!("{QUEUE}{longer}B");
        (longer > buffer).then(|| Cure::described(&what, set).removing())
    });
    // Nothing is wrong with the length of another: its losses cost what a sender that never fills it saves.
    let endless = (fitted.buffer.is_some() && queue.is_none())
        .then(|| Cure::cost(&format!("{QUEUE}{MOST_BUFFER}B")));
    [lossless, of_requests, queue, endless, bbr].into_iter().flatten().collect()
}

/// The RACK stack of FreeBSD in place of its base stack, which has neither that nor tail loss probes.
fn rack(best: &BestSender<'_>) -> Option<Cure> {
    let version =
        best.profile.strip_prefix("freebsd-").filter(|rest| !rest.starts_with("rack-"))?;
    // The first release that is modelled with it.
    let version = if version == "main" { version } else { "14.3" };
    let what = "sender: net.inet.tcp.functions_default=rack, with tail loss probes";
    Some(Cure::described(what, format!("sender.profile=freebsd-rack-{version}")))
}

/// A reader faster than every path.
const READS_AT_ONCE: &str = "flow.reads.rate=100Gbit/s";

/// What remains of a finding whose cures are not tried; `None` if it has none that are settings.
pub(super) fn untried(code: &'static str, why: &str) -> Option<TriedCure> {
    HAS_CURES.contains(&code).then(|| unpredictable(code, why.to_owned()))
}

/// What remains of a finding whose transfer cannot be simulated.
pub(super) fn unpredictable(code: &'static str, why: String) -> TriedCure {
    let prediction = Prediction { validity: Validity::None, low_s: 0.0, high_s: 0.0, why };
    TriedCure {
        finding: code,
        set: String::new(),
        what: "the transfer with a cure".to_owned(),
        recorded_s: 0.0,
        duration_s: 0.0,
        prediction,
    }
}
