//! The cures of a finding of QUIC, tried in a simulation of the logged transfer.

use core::convert::Infallible;

use diagnose::rules::size;
use fit::{FitError, QuicFit};
use ingest::diagnosis::{TriedCure, Validity};
use ingest::inputs::QuicConnection;
use runner::workers::Workers;
use tcp::profile::TcpProfile;

use super::alternatives::FittedPath;
use super::quic::{LoggedReproduction, UNFINISHED, reproduce};
use super::tried::{NO_CLIENT_WAITS, NO_SERVER_WAITS, TriedFinding, unpredictable};
use super::{BestSender, WhatIfError};

/// Codes of findings with cures that are settings.
const HAS_CURES: [&str; 8] =
    ["CC811", "CC812", "CC813", "CC814", "CC821", "CC822", "CC831", "CC841"];
/// How much larger a window is tried.
const LARGER: u64 = 8;

/// A change that a finding suggests: an argument of `--set`, and where and what it is, in words.
struct QuicCure {
    set: String,
    what: String,
}

impl QuicCure {
    fn of(what: impl Into<String>, set: impl Into<String>) -> Self {
        Self { set: set.into(), what: what.into() }
    }
}

/// Tries the cures of the `finding` that limited a connection whose data were kept; none if it has no cure that is
/// a setting, its log has no data of a sender, or the runs are stopped.
pub fn try_quic_cures(
    connection: &QuicConnection,
    finding: TriedFinding,
    workers: &Workers<'_>,
) -> Vec<TriedCure> {
    let code = finding.code;
    if !HAS_CURES.contains(&code) || !connection.analysis.is_sender() {
        return Vec::new();
    }
    let LoggedReproduction { fitted, answer, best } = match reproduce(connection, None, workers) {
        Ok(reproduction) => reproduction,
        Err(WhatIfError::Fit(FitError::NoPackets) | WhatIfError::Run(_)) => return Vec::new(),
        Err(error) => return vec![unpredictable(code, error.to_string())],
    };
    let path = FittedPath { fitted: &fitted, best: &best, senders: &[], workers, kernels: None };
    let cures = cures(finding, &fitted.fit, &best);
    let Ok(found) = workers.map(&cures, |QuicCure { set, .. }| {
        let found = path.alternative((best.profile, best.cc), core::slice::from_ref(set));
        Ok::<_, Infallible>(found.ok())
    });
    let tried = cures.into_iter().zip(found).filter_map(|(QuicCure { set, what }, found)| {
        let found = found?;
        let mut prediction = found.prediction;
        if fitted.fit.unfinished {
            prediction.validity = Validity::None;
            UNFINISHED.clone_into(&mut prediction.why);
        }
        let (recorded_s, duration_s) = (answer.recorded.time_s, found.course.time_s);
        Some(TriedCure { finding: code, set, what, recorded_s, duration_s, prediction })
    });
    tried.collect()
}

/// The cures of a finding that are settings of the fitted scenario.
fn cures(finding: TriedFinding, fitted: &QuicFit, best: &BestSender<'_>) -> Vec<QuicCure> {
    let sender_waits = match fitted.is_client {
        true => NO_CLIENT_WAITS,
        false => NO_SERVER_WAITS,
    };
    let reads = || {
        let what = "receiver: an application that reads at once";
        QuicCure::of(what, "flow.reads.rate=100Gbit/s")
    };
    match (finding.code, finding.kind) {
        ("CC811" | "CC813" | "CC814", _) => of_losses(fitted, best),
        ("CC812", _) => {
            // One more than the most packets that overtook one.
            let extent = fitted.late.map_or(0, |(_, extent)| extent);
            let threshold = extent.saturating_add(1).min(1_000_000);
            let set = format!("sender.knobs.kPacketThreshold={threshold}");
            vec![QuicCure::of(format!("sender: kPacketThreshold={threshold}"), set)]
        }
        ("CC821" | "CC822" | "CC831", _) if fitted.reads.is_some() => vec![reads()],
        ("CC821" | "CC822", _) => {
            let window = fitted.windows_of_peer[usize::from(finding.code == "CC822")];
            let larger = window.map(|window| {
                let larger = window.saturating_mul(LARGER);
                let what =
                    format!("receiver: limits of connection and stream {} ahead", size(larger));
                QuicCure::of(what, format!("receiver.window={larger}B"))
            });
            larger.into_iter().collect()
        }
        ("CC831", "round-trips") => {
            vec![QuicCure::of("application: all requests at once", "application.batch=true")]
        }
        ("CC831", "think-client") => {
            vec![QuicCure::of("client: no waits between requests", NO_CLIENT_WAITS)]
        }
        ("CC831", "think-server") => {
            vec![QuicCure::of("server: answers at once", NO_SERVER_WAITS)]
        }
        ("CC831", _) => {
            vec![QuicCure::of("sender: an application that does not wait", sender_waits)]
        }
        ("CC841", "return-path") => {
            vec![QuicCure::of("path: ACKs that do not wait", "path.return.link=none")]
        }
        _ => Vec::new(),
    }
}

/// The cures of losses: none of them, a longer queue, the other controller of the stack.
fn of_losses(fitted: &QuicFit, best: &BestSender<'_>) -> Vec<QuicCure> {
    let losses = &fitted.losses;
    let has_losses = !losses.packets.is_empty() || !losses.outages.is_empty();
    let lossless = (has_losses || fitted.policer.is_some())
        .then(|| QuicCure::of("path: without the losses", "path.forward.loss=0%"));
    let queue = fitted.buffer.zip(fitted.rate).and_then(|(buffer, rate)| {
        let product = (rate as f64 / 8.0 * fitted.rtt as f64 / 1e9) as u64;
        let what = format!("path: a queue of {product} B instead of {buffer} B");
        let set = format!("path.forward.link.buffer={product}B");
        (buffer < product).then(|| QuicCure::of(what, set))
    });
    // The log of a stack that has no profile of QUIC is of a TCP sender.
    let is_quic = TcpProfile::named(best.profile).is_none();
    let other = if best.cc == Some("cubic") { "newreno" } else { "cubic" };
    let controller = is_quic.then(|| {
        QuicCure::of(format!("sender: congestion control {other}"), format!("sender.cc={other}"))
    });
    [lossless, queue, controller].into_iter().flatten().collect()
}
