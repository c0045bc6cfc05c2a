//! The scenario of the case in all its variants.

use super::SCENARIO;
use crate::cases::{CaseError, Workers, load, run};

/// The result of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Transfer {
    /// Payload in Mbit/s.
    pub(super) mbits: f64,
    /// Retransmission timeouts.
    pub(super) rtos: u64,
}

/// A sender in the LAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LanSender {
    pub(super) hz: u32,
    pub(super) cc: &'static str,
}

/// The two versions that the review compares, and the reference.
pub(super) const STOCK: &str = "cubic-usec";
pub(super) const PATCHED: &str = "cubic-d46546";
pub(super) const NEWRENO: &str = "newreno";

/// Runs the scenario changed by `set`, once per seed; returns the mean.
pub(super) fn transfer(
    seeds: u64,
    set: &[String],
    workers: &Workers<'_>,
) -> Result<Transfer, CaseError> {
    let (mut bits, mut seconds, mut rtos) = (0, 0.0, 0);
    for seed in 1..=seeds {
        let mut all: Vec<String> = set.to_vec();
        all.push(format!("seed={seed}"));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let loaded = load(SCENARIO, "cubic-hz.toml", &all)?;
        let outcome = run(&loaded, &mut record::NullRecorder, workers)?;
        let Some(flow) = outcome.flows.first() else {
            return Err(CaseError("the scenario has no flow".into()));
        };
        bits += flow.bytes.get() * 8;
        seconds += flow.duration.as_secs_f64();
        rtos += flow.rtos;
    }
    Ok(Transfer { mbits: bits as f64 / seconds / 1e6, rtos })
}

/// Which data packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// One in this number, always the last of them.
    Periodic(u32),
    /// Each with the same probability, in percent.
    Random(&'static str),
    /// Those with these numbers, separated by blanks; retransmissions count.
    Listed(&'static str),
}

/// The overrides for this sender and loss.
pub(super) fn sender(sender: LanSender, loss: Loss) -> Vec<String> {
    let LanSender { hz, cc } = sender;
    vec![
        format!("host.sender.cc={cc}"),
        format!("host.sender.knobs.\"kern.hz\"={hz}"),
        format!("host.sink.knobs.\"kern.hz\"={hz}"),
        match loss {
            Loss::Periodic(every) => format!("path.0.forward.1.loss={{ every = {every} }}"),
            Loss::Random(percent) => format!("path.0.forward.1.loss={percent}%"),
            Loss::Listed(numbers) => {
                let numbers = numbers.replace(' ', ", ");
                format!("path.0.forward.1.loss={{ packets = [{numbers}] }}")
            }
        },
    ]
}

/// The overrides for this one-way delay in microseconds.
pub(super) fn delay(micros: f64) -> Vec<String> {
    vec![format!("path.0.forward.2.delay={micros}us"), format!("path.0.return.1.delay={micros}us")]
}

/// The overrides for this link rate in Gbit/s.
pub(super) fn rate(gbits: f64) -> Vec<String> {
    vec![
        format!("path.0.forward.0.link.rate={gbits}Gbit/s"),
        format!("path.0.return.0.link.rate={gbits}Gbit/s"),
    ]
}
