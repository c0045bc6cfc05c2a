//! The cures of a finding, tried in a simulation of the recorded transfer.

use fit::{FitError, PathFit};
use ingest::diagnosis::{Prediction, TriedCure, Validity};
use ingest::inputs::CapturedConnection;
use runner::stop::StopFlag;
use tcp::profile::Family;

use super::alternatives::FittedPath;
use super::reproduction::{Reproduction, reproduce};
use super::{BestSender, WhatIfError};

/// Default maximum of the receive buffers of Linux (`tcp_init` of Linux 6.18), and the largest buffer of scenarios.
const LEAST_BUFFER: u64 = 6 << 20;
const MOST_BUFFER: u64 = 1 << 30;
/// How many bandwidth-delay products a larger buffer holds: Linux keeps a part of it for overhead, and losses are
/// repaired meanwhile.
const BUFFERED_PRODUCTS: u64 = 4;
/// Queues of a path hold at least this.
const LEAST_QUEUE: u64 = 30_000;

/// A change that a finding suggests.
struct Cure {
    /// Argument of `--set`.
    set: String,
    /// Where and what, in words.
    what: String,
}

impl Cure {
    fn of(place: &str, set: impl Into<String>) -> Self {
        let set = set.into();
        Self { what: format!("{place}: {set}"), set }
    }

    fn described(what: &str, set: impl Into<String>) -> Self {
        Self { set: set.into(), what: what.to_owned() }
    }
}

/// Tries the cures of the finding `code` of a connection whose packets were kept; none if the finding has no
/// cure that is a setting, or the runs are stopped.
pub fn try_cures(
    stream: &CapturedConnection,
    code: &'static str,
    stop: StopFlag<'_>,
) -> Vec<TriedCure> {
    // Findings without such cures are not fitted.
    if !HAS_CURES.contains(&code) {
        return Vec::new();
    }
    let Reproduction { fitted, answer, best } = match reproduce(stream, stop, None) {
        Ok(reproduction) => reproduction,
        Err(WhatIfError::Fit(FitError::NoPackets) | WhatIfError::Run(_)) => return Vec::new(),
        Err(error) => return vec![unpredictable(code, error.to_string())],
    };
    let senders = &answer.senders;
    let path = FittedPath { fitted: &fitted, best: &best, senders, stop, kernels: None };
    let recorded_s = answer.recorded.time_s;
    let cures = cures(code, &fitted, &best).into_iter();
    let tried = cures.filter_map(|Cure { set, what }| {
        let sender = (best.profile, best.cc);
        let one = path.alternative(sender, core::slice::from_ref(&set)).ok()?;
        let duration_s = one.course.time_s;
        Some(TriedCure {
            finding: code,
            set,
            what,
            recorded_s,
            duration_s,
            prediction: one.prediction,
        })
    });
    tried.collect()
}

/// Codes of findings with cures that are settings.
const HAS_CURES: [&str; 13] = [
    "CC101", "CC102", "CC103", "CC104", "CC201", "CC202", "CC203", "CC205", "CC301", "CC401",
    "CC403", "CC502", "CC503",
];

/// The cures of a finding that are settings of the fitted scenario.
fn cures(code: &str, fitted: &PathFit, best: &BestSender<'_>) -> Vec<Cure> {
    let product = fitted.rate.map(|rate| (rate as f64 / 8.0 * fitted.rtt as f64 / 1e9) as u64);
    let buffer = product.map_or(0, |product| product * BUFFERED_PRODUCTS);
    let buffer = if buffer > LEAST_BUFFER { buffer.next_power_of_two() } else { LEAST_BUFFER };
    let buffer = buffer.min(MOST_BUFFER);
    let is_linux = best.family() == Family::Linux;
    let bbr = (is_linux && best.cc != Some("bbr"))
        .then(|| Cure::described("sender: congestion control bbr", "sender.cc=bbr"));
    let lossless = (!fitted.losses.packets.is_empty())
        .then(|| Cure::described("path: without the losses", "path.forward.loss=0%"));
    let queue = fitted.buffer.zip(product).and_then(|(buffer, product)| {
        let longer = product.max(LEAST_QUEUE);
        let what = format!("path: a queue of {longer} B instead of {buffer} B");
        (longer > buffer).then(|| Cure { set: format!("path.forward.link.buffer={longer}B"), what })
    });
    match code {
        "CC401" => match fitted.receives_as_linux() {
            true => {
                vec![Cure::of("receiver", format!("net.ipv4.tcp_rmem=\"4096 131072 {buffer}\""))]
            }
            false => vec![Cure::of("receiver", format!("net.inet.tcp.recvspace={buffer}"))],
        },
        "CC403" if fitted.reads.is_some() => {
            vec![Cure::described("receiver: an application that reads at once", READS_AT_ONCE)]
        }
        "CC503" => match is_linux {
            true => vec![Cure::of("sender", format!("net.ipv4.tcp_wmem=\"4096 16384 {buffer}\""))],
            false => vec![Cure::of("sender", format!("net.inet.tcp.sendspace={buffer}"))],
        },
        "CC502" if is_linux => vec![Cure::of("sender", "net.ipv4.tcp_slow_start_after_idle=0")],
        "CC101" | "CC102" if !is_linux => {
            vec![Cure::of("sender", "net.inet.tcp.initcwnd_segments=30")]
        }
        "CC103" | "CC104" | "CC201" | "CC202" | "CC203" | "CC205" | "CC301" => {
            [lossless, queue, bbr].into_iter().flatten().collect()
        }
        _ => Vec::new(),
    }
}

/// A reader faster than every path.
const READS_AT_ONCE: &str = "flow.reads.rate=100Gbit/s";

/// What remains of a finding whose transfer cannot be simulated.
fn unpredictable(code: &'static str, why: String) -> TriedCure {
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
