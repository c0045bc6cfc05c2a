//! The result of an exam: confusion by cause, costs and cures, the worst cases.

mod releases;

use core::fmt::Write as _;
use std::collections::BTreeMap;

use ingest::diagnosis::{Prediction, Validity};
use serde::Serialize;
use units::Duration;

use crate::case::RunCase;
use crate::judge::{Answer, Verdict, codes_of};
use crate::world::Transport;
use crate::{Exam, ExamPlan};

pub use releases::releases;

/// A draw with its answer, as plain data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DrawResult {
    /// Number of the draw.
    pub number: u64,
    /// Causes that are right; empty for a healthy transfer.
    pub causes: Vec<&'static str>,
    /// All that was drawn, in words.
    pub drawn: String,
    /// `upload` or `download`.
    pub direction: &'static str,
    /// The capture point.
    pub point: &'static str,
    /// What the applications do.
    pub workload: &'static str,
    /// Sender's profile and congestion control.
    pub sender: String,
    /// Time of the transfer, in seconds.
    pub duration_s: f64,
    /// What the costliest fault costs, in seconds; `null` if the transfer failed.
    pub cost_s: Option<f64>,
    /// The true cost of what the verdict names, in seconds; `null` if it is not right, or the transfer failed.
    pub named_cost_s: Option<f64>,
    /// The program's verdict.
    pub primary: Option<&'static str>,
    /// The kind of its verdict; empty where the code says all.
    pub kind: &'static str,
    /// The kind is one that names the cause; `null` for causes without a kind, and where the verdict is not right.
    pub kind_is_right: Option<bool>,
    /// Its findings above a note.
    pub above_note: Vec<&'static str>,
    /// The cost of its verdict, in seconds.
    pub stated_cost_s: f64,
    /// Rate of the bottleneck, and that of a log of QUIC as the program states it, in bit/s.
    pub rate_bps: f64,
    /// See `rate_bps`.
    pub stated_rate_bps: Option<f64>,
    /// The data take most of the transfer at the rate of the bottleneck.
    pub saturated: bool,
    /// `right`, `buried`, `noted`, `silent`, `wrong` or `false alarm`.
    pub verdict: &'static str,
    /// An error on a healthy transfer.
    pub false_error: bool,
    /// Laws that its findings break.
    pub broken_laws: Vec<String>,
    /// Cures.
    pub cures: Vec<CureResult>,
}

/// Largest error of a predicted time that is right, and of a rate.
const NEAR: f64 = 0.1;
/// Part of a transfer that its data take at the rate of a bottleneck that they saturate.
const SATURATED: f64 = 0.75;
/// True cost in seconds from which stated ones are compared within a fifth.
const LARGE_COST: f64 = 0.3;

/// A cure, predicted and applied.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CureResult {
    /// Its name.
    pub name: &'static str,
    /// Time of the transfer with it, in seconds.
    pub truth_s: f64,
    /// The predicted time, in seconds.
    pub predicted_s: Option<f64>,
    /// What the program says that it is worth.
    pub prediction: Option<Prediction>,
    /// Why there is no prediction.
    pub refused: Option<String>,
}

/// The truth about a case, as it is kept beside its captures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TruthJson {
    /// Time of the transfer, in seconds, and whether it was completed.
    duration_s: f64,
    finished: bool,
    /// A fault leaves no trace at the capture point.
    hidden: bool,
    /// The faults that cost something, the costliest first.
    causes: Vec<CauseJson>,
    /// Codes that are true of the transfer beside them.
    allowed: Vec<&'static str>,
    /// Cures, with the time of the transfer in seconds after each.
    cures: Vec<(&'static str, f64)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct CauseJson {
    cause: &'static str,
    drawn: String,
    place: &'static str,
    /// `null` if the transfer failed by it.
    cost_s: Option<f64>,
}

impl TruthJson {
    pub(crate) fn of(case: &RunCase) -> Self {
        let truth = &case.truth;
        let causes = truth.costs.iter().map(|one| CauseJson {
            cause: one.fault.kind().name(),
            drawn: one.fault.describe(),
            place: one.fault.kind().place(),
            cost_s: one.cost.map(Duration::as_secs_f64),
        });
        Self {
            duration_s: truth.duration.as_secs_f64(),
            finished: truth.finished,
            hidden: truth.hidden,
            causes: causes.collect(),
            allowed: truth.allowed.clone(),
            cures: truth.cures.iter().map(|one| (one.name, one.duration.as_secs_f64())).collect(),
        }
    }
}

impl DrawResult {
    /// The result of a case.
    pub fn of(case: &RunCase, answer: &Answer) -> Self {
        let seconds = |time: Duration| time.as_nanos() as f64 / 1e9;
        let drawn = &case.case;
        let is_healthy = case.truth.costs.is_empty();
        let faults: Vec<String> = drawn.faults.iter().map(crate::Fault::describe).collect();
        Self {
            number: drawn.number,
            causes: case.truth.causes().iter().map(|kind| kind.name()).collect(),
            drawn: if faults.is_empty() { "no fault".to_owned() } else { faults.join(" and ") },
            direction: drawn.world.direction.name(),
            point: drawn.settings.point.name(),
            workload: drawn.world.workload.name(),
            sender: format!("{}/{}", drawn.world.sender.0, drawn.world.sender.1),
            duration_s: seconds(case.truth.duration),
            cost_s: case.truth.costs.first().map_or(Some(0.0), |first| first.cost.map(seconds)),
            named_cost_s: named_cost(case, answer).map(seconds),
            primary: answer.primary,
            kind: answer.kind,
            kind_is_right: kind_is_right(case, answer),
            above_note: answer.above_note.clone(),
            stated_cost_s: seconds(answer.cost),
            rate_bps: drawn.world.rate as f64 * 1e3,
            stated_rate_bps: answer.path_rate.map(|rate| rate * 8.0),
            saturated: is_saturated(case),
            verdict: answer.verdict.name(),
            false_error: is_healthy && answer.has_error && answer.verdict == Verdict::FalseAlarm,
            broken_laws: answer.broken_laws.clone(),
            cures: answer
                .cures
                .iter()
                .map(|cure| CureResult {
                    name: cure.name,
                    truth_s: seconds(cure.truth),
                    predicted_s: cure.prediction.as_ref().ok().map(|one| seconds(one.0)),
                    prediction: cure.prediction.as_ref().ok().map(|one| one.1.clone()),
                    refused: cure.prediction.as_ref().err().cloned(),
                })
                .collect(),
        }
    }

    /// Whether the rate of the bottleneck is stated, and near.
    fn knows_rate(&self) -> bool {
        let off = |stated: f64| (stated - self.rate_bps).abs() / self.rate_bps;
        self.stated_rate_bps.is_some_and(|stated| off(stated) <= NEAR)
    }

    /// The cause under which it is counted.
    fn cause(&self) -> &'static str {
        self.causes.first().copied().unwrap_or("healthy")
    }

    fn is(&self, verdict: Verdict) -> bool {
        self.verdict == verdict.name()
    }

    /// The stated cost relative to the true one, where both are known.
    fn cost_error(&self) -> Option<f64> {
        let truth = self.named_cost_s.filter(|&cost| cost > 0.0 && !self.causes.is_empty())?;
        Some((self.stated_cost_s - truth).abs() / truth)
    }
}

/// The true cost of what a right verdict names.
fn named_cost(case: &RunCase, answer: &Answer) -> Option<Duration> {
    let code = answer.primary.filter(|_| answer.verdict == Verdict::Right)?;
    // Round trips that are no fault are what the transfer costs by itself.
    let of_own = case.truth.own.iter().find(|one| one.0 == code).map(|one| one.1);
    let is_own = case.case.world.transport == Transport::Quic
        && answer.kind == ROUND_TRIPS.1
        && kind_is_right(case, answer) == Some(false);
    let of_fault = || case.truth.cost_of(code, |kind| codes_of(case, kind));
    of_own.filter(|_| is_own).or_else(of_fault)
}

/// Whether the data take most of the transfer at the rate of the bottleneck.
fn is_saturated(case: &RunCase) -> bool {
    let world = &case.case.world;
    let bits = (world.size * world.count) as f64 * 8.0;
    let busy = bits / (world.rate as f64 * 1e3);
    case.truth.finished && busy >= SATURATED * case.truth.duration.as_secs_f64()
}

/// Whether the kind of a right verdict names the cause; `None` for causes without one. A verdict about what the transfer
/// costs by itself is judged by the kind of that.
fn kind_is_right(case: &RunCase, answer: &Answer) -> Option<bool> {
    let primary = answer.primary.filter(|_| answer.verdict == Verdict::Right)?;
    let causes = case.truth.causes();
    let named = causes.iter().filter(|&&cause| codes_of(case, cause).contains(&primary));
    let named: Vec<_> = named.collect();
    if named.is_empty() && !causes.is_empty() {
        let (codes, kind) = ROUND_TRIPS;
        return codes.contains(&primary).then_some(answer.kind == kind);
    }
    let kinds = |cause: &crate::FaultKind| match case.case.world.transport {
        Transport::Tcp => cause.kinds(),
        Transport::Quic => cause.quic_kinds(),
    };
    let is_exact =
        |cause: &&crate::FaultKind| kinds(cause).is_empty() || kinds(cause).contains(&answer.kind);
    let has_kind = named.first().is_some_and(|cause| !kinds(cause).is_empty());
    has_kind.then(|| named.iter().any(is_exact))
}

/// Codes and kind of messages that are not sent together: the only cost of a transfer by itself that has a kind.
const ROUND_TRIPS: ([&str; 2], &str) = (["CC501", "CC831"], "round-trips");

/// What the draws of a transport are drawn from, in words.
pub fn distribution(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => TCP_DISTRIBUTION,
        Transport::Quic => QUIC_DISTRIBUTION,
    }
}

const TCP_DISTRIBUTION: &str = "\
Each transfer is an upload or a download between modelled hosts: Linux 6.18, 6.12 and 6.1 with cubic, reno and BBR
version 1, FreeBSD 14.3, 13.2, main and its RACK stack. Rate 2 to 200 Mbit/s, round trip 2 to 160 ms, queue of one to
two bandwidth-delay products and at least 30 kB, data for 0.5 to 4 s at that rate and at most 6 MB; half of the hosts
with TSO and GRO or LRO, a quarter of the connections with an opening like that of TLS. It is captured at the sender
(two of six), the receiver (two), between them, or at both ends; a quarter with 96 bytes of each packet, a sixth without
the SYNs where these are not the point. A third is healthy: bulk, requests, small messages at fixed intervals, chunks
with pauses as of a video, a few segments, idle connections. A fault is one of 35 kinds with a strength drawn by
doublings; some have a second. A fault counts if the same transfer without it takes at least 3 % and 50 ms less.";

const QUIC_DISTRIBUTION: &str = "\
Each transfer is an upload or a download between modelled hosts with the profiles of quic-go, quiche, quinn, msquic,
neqo, s2n-quic and of RFC 9002, on the same paths and with the same applications as those of TCP, and judged by the
qlog of its sender. Faults are the 18 kinds of TCP's that a log of QUIC shows. A fault counts if the same transfer
without it takes at least 3 % and 50 ms less.";

const REAL_STACK: &str = "
Here the stack itself is both hosts, with its defaults, and the log is its own. Faults that a knob of a model makes are
none of it. Of a log without frames, as quinn's, CC831 names limits of the peer too, and CC811 reordering.";

/// The page of the ledger about exams of both transports.
pub fn ledger(exams: &[(ExamPlan, Exam)]) -> String {
    let mut out =
        String::from("# Verdicts and cures on drawn transfers\n\nMachine: any: virtual time.\n");
    for (plan, exam) in exams {
        let mut from = distribution(plan.transport).to_owned();
        if plan.engine.stack().is_some() {
            from.push_str(REAL_STACK);
        }
        let (name, flag) = match (plan.transport, plan.engine.kernel()) {
            (Transport::Tcp, None) => ("Captures of TCP".to_owned(), "--tcp".to_owned()),
            (Transport::Quic, _) => match plan.engine.stack() {
                None => ("Logs of QUIC".to_owned(), "--quic".to_owned()),
                Some(name) => (
                    format!("Logs that {name} writes, as both hosts"),
                    format!("--quic --stack {name}"),
                ),
            },
            (Transport::Tcp, Some(kernel)) => (
                format!("Captures of TCP, with the kernel {kernel} for all hosts of Linux"),
                format!("--tcp --kernel {kernel}"),
            ),
        };
        let (seed, count) = (plan.seed, plan.numbers.len());
        let _ = writeln!(out, "\n## {name}\n\n{from}\n");
        let _ = writeln!(out, "```text\n$ cargo xtask exam {flag} --seed {seed} --count {count}");
        let _ = writeln!(out, "{}```", text(plan, exam));
    }
    out
}

/// Most confusions and cases that are listed.
const LISTED: usize = 10;

/// The result of an exam as text.
pub fn text(plan: &ExamPlan, exam: &Exam) -> String {
    let Exam { results, failures } = exam;
    let seed = plan.seed;
    let mut out = String::new();
    let faulty: Vec<&DrawResult> = results.iter().filter(|one| !one.causes.is_empty()).collect();
    let healthy: Vec<&DrawResult> = results.iter().filter(|one| one.causes.is_empty()).collect();
    let right = faulty.iter().filter(|one| one.is(Verdict::Right)).count();
    let quiet = healthy.iter().filter(|one| one.is(Verdict::Right)).count();
    let _ = writeln!(
        out,
        "seed {seed}: the cause is the verdict in {} of the faulty transfers; nothing is above a note in \
         {} of the healthy ones",
        of(right, faulty.len()),
        of(quiet, healthy.len()),
    );
    out.push_str(
        "\ncause           draws  right  buried  noted  silent  wrong  cost within 10 %\n",
    );
    let mut causes: BTreeMap<&str, Vec<&DrawResult>> = BTreeMap::new();
    for one in &faulty {
        causes.entry(one.cause()).or_default().push(one);
    }
    for (cause, of_cause) in &causes {
        let count = |verdict| of_cause.iter().filter(|one| one.is(verdict)).count();
        let _ = writeln!(
            out,
            "{cause:<15} {:>5}  {:>5}  {:>6}  {:>5}  {:>6}  {:>5}  {:>16}",
            of_cause.len(),
            count(Verdict::Right),
            count(Verdict::Buried),
            count(Verdict::Noted),
            count(Verdict::Silent),
            count(Verdict::Wrong),
            costs(of_cause),
        );
    }
    let _ = writeln!(out, "all faulty      {:>5}  {right:>5} {:>44}", faulty.len(), costs(&faulty));
    let errors = healthy.iter().filter(|one| one.false_error).count();
    let _ = writeln!(
        out,
        "healthy         {:>5}  {quiet:>5}  false alarms {}, errors among them {errors}",
        healthy.len(),
        healthy.len() - quiet,
    );
    by_workload(&mut out, &healthy);
    confusions(&mut out, results);
    by_dimension(&mut out, &faulty);
    cures(&mut out, results);
    rates(&mut out, plan, results);
    laws(&mut out, results);
    worst(&mut out, plan, results);
    if !failures.is_empty() {
        let _ = writeln!(out, "\n{} draws could not be run:", failures.len());
        for (number, error) in failures.iter().take(LISTED) {
            let _ = writeln!(out, "  draw {number}: {}", error.lines().next().unwrap_or_default());
        }
    }
    out
}

/// "k of n (p %)".
fn of(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "none".to_owned();
    }
    format!("{part} of {whole} ({:.1} %)", 100.0 * part as f64 / whole as f64)
}

/// Stated costs within 10 % of the true ones, among right verdicts.
fn costs(results: &[&DrawResult]) -> String {
    let errors: Vec<f64> = results.iter().filter_map(|one| one.cost_error()).collect();
    of(errors.iter().filter(|&&error| error <= 0.1).count(), errors.len())
}

/// False alarms of healthy transfers by what their applications do.
fn by_workload(out: &mut String, healthy: &[&DrawResult]) {
    let mut workloads: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for one in healthy {
        let (right, all) = workloads.entry(one.workload).or_default();
        *right += usize::from(one.is(Verdict::Right));
        *all += 1;
    }
    let rows = workloads.into_iter().map(|(name, (right, all))| format!("{name} {right} of {all}"));
    let rows: Vec<String> = rows.collect();
    if !rows.is_empty() {
        let _ = writeln!(out, "  without a false alarm, by workload: {}", rows.join(", "));
    }
}

fn confusions(out: &mut String, results: &[DrawResult]) {
    let mut pairs: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for one in results.iter().filter(|one| !one.is(Verdict::Right)) {
        *pairs.entry((one.cause(), one.primary.unwrap_or("nothing"))).or_default() += 1;
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_by_key(|&((cause, answer), count)| (core::cmp::Reverse(count), cause, answer));
    if !pairs.is_empty() {
        out.push_str("\nmost frequent confusions: cause, verdict, draws\n");
    }
    for ((cause, answer), count) in pairs.into_iter().take(LISTED) {
        let _ = writeln!(out, "  {cause:<15} {answer:<8} {count:>4}");
    }
}

fn by_dimension(out: &mut String, faulty: &[&DrawResult]) {
    let dimensions: [fn(&DrawResult) -> &str; 2] = [|one| one.direction, |one| one.point];
    out.push_str("\nright by direction and capture point:");
    let mut comma = " ";
    for dimension in dimensions {
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for one in faulty {
            let (right, all) = counts.entry(dimension(one)).or_default();
            *right += usize::from(one.is(Verdict::Right));
            *all += 1;
        }
        for (name, (right, all)) in counts {
            let _ = write!(out, "{comma}{name} {}", of(right, all));
            comma = ", ";
        }
    }
    out.push('\n');
    let kinds: Vec<bool> = faulty.iter().filter_map(|one| one.kind_is_right).collect();
    if !kinds.is_empty() {
        let right = kinds.iter().filter(|&&right| right).count();
        let _ = writeln!(
            out,
            "of the right verdicts about causes with a kind of finding, the kind is right in {}",
            of(right, kinds.len())
        );
    }
}

fn cures(out: &mut String, results: &[DrawResult]) {
    let mut by_name: BTreeMap<&str, Vec<&CureResult>> = BTreeMap::new();
    for cure in results.iter().flat_map(|one| &one.cures) {
        by_name.entry(cure.name).or_default().push(cure);
    }
    if by_name.is_empty() {
        return;
    }
    out.push_str(
        "\ncure                    applied  figures  within 10 %      off by more  ranges  right           none\n",
    );
    for (name, cures) in by_name {
        let worth = |cure: &&&CureResult| cure.prediction.as_ref().map(|one| one.validity);
        let of_worth = |validity| cures.iter().filter(move |cure| worth(cure) == Some(validity));
        let near = |cure: &&&CureResult| {
            let predicted = cure.predicted_s.unwrap_or(f64::INFINITY);
            (predicted - cure.truth_s).abs() <= NEAR * cure.truth_s
        };
        let is_within = |cure: &&&CureResult| {
            let range = cure.prediction.as_ref().map(|one| (one.low_s, one.high_s));
            range.is_some_and(|(low, high)| {
                low <= cure.truth_s * (1.0 + NEAR) && cure.truth_s * (1.0 - NEAR) <= high
            })
        };
        let figures = of_worth(Validity::Figure).count();
        let good = of_worth(Validity::Figure).filter(near).count();
        let ranges = of_worth(Validity::Range).count();
        let right = of_worth(Validity::Range).filter(is_within).count();
        let _ = writeln!(
            out,
            "{name:<23} {:>7}  {figures:>7}  {:<15}  {:>11}  {ranges:>6}  {:<14}  {:>4}",
            cures.len(),
            of(good, figures),
            figures - good,
            of(right, ranges),
            cures.len() - figures - ranges,
        );
    }
}

/// Large costs of logs of QUIC, and the rates of the bottlenecks that they saturate.
fn rates(out: &mut String, plan: &ExamPlan, results: &[DrawResult]) {
    if plan.transport != Transport::Quic {
        return;
    }
    let [(near, large), (known, saturated)] = [near_costs(results), known_rates(results)];
    let _ = writeln!(
        out,
        "\ncosts above {LARGE_COST} s: within 20 % in {}\nsaturated paths: the rate is stated within 10 % in {}",
        of(near, large),
        of(known, saturated),
    );
}

/// Large costs within a fifth of the true ones, and all large ones.
fn near_costs(results: &[DrawResult]) -> (usize, usize) {
    let is_large = |one: &&DrawResult| one.named_cost_s.is_some_and(|cost| cost > LARGE_COST);
    let large: Vec<f64> =
        results.iter().filter(is_large).filter_map(DrawResult::cost_error).collect();
    (large.iter().filter(|&&error| error <= 2.0 * NEAR).count(), large.len())
}

/// Saturated paths whose rate is stated, and all of them.
fn known_rates(results: &[DrawResult]) -> (usize, usize) {
    let saturated: Vec<_> = results.iter().filter(|one| one.saturated).collect();
    (saturated.iter().filter(|one| one.knows_rate()).count(), saturated.len())
}

fn laws(out: &mut String, results: &[DrawResult]) {
    let broken: Vec<_> = results.iter().filter(|one| !one.broken_laws.is_empty()).collect();
    let _ = writeln!(out, "\nlaws of cost broken in {}", of(broken.len(), results.len()));
    for one in broken.iter().take(LISTED) {
        let _ = writeln!(out, "  draw {}: {}", one.number, one.broken_laws[0]);
    }
}

/// Wrong verdicts by what they cost, then the errors of cost.
fn worst(out: &mut String, plan: &ExamPlan, results: &[DrawResult]) {
    let mut bad: Vec<_> = results.iter().filter(|one| !one.is(Verdict::Right)).collect();
    let weight = |one: &DrawResult| match (one.causes.is_empty(), one.cost_s) {
        // A false alarm costs what it claims.
        (true, _) => one.stated_cost_s,
        (false, Some(cost)) => cost,
        (false, None) => one.duration_s,
    };
    bad.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.number.cmp(&b.number)));
    if bad.is_empty() {
        return;
    }
    let (seed, flag) = (plan.seed, if plan.transport == Transport::Quic { " --quic" } else { "" });
    let command = format!("cargo xtask exam{flag} --seed {seed} --draw N --keep DIR");
    let _ = writeln!(out, "\nworst cases; `{command}` writes one:");
    for one in bad.iter().take(LISTED) {
        let cost = one.cost_s.map_or("failed".to_owned(), |cost| format!("{cost:.2} s"));
        let answer = one.above_note.join(" ");
        let _ = writeln!(
            out,
            "  draw {}: {}, {} {}, at {}: costs {cost}, {}: {}",
            one.number,
            one.drawn,
            one.sender,
            one.direction,
            one.point,
            one.verdict,
            if answer.is_empty() { "nothing above a note" } else { &answer },
        );
    }
}
