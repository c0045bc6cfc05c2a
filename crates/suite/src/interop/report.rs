//! What the pairs did.

use serde::Serialize;

use super::InteropRequest;

/// A figure, the mean of all seeds or start phases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct InteropFigure {
    /// Mean.
    pub mean: f64,
    /// Half of its 95 % confidence interval; `None` of one run.
    pub confidence: Option<f64>,
}

/// A sender with a receiver, alone on the path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InteropTransfer {
    /// Stack of the sender.
    pub sender: String,
    /// Stack of the receiver.
    pub receiver: String,
    /// Goodput in Mbit/s; `None` if the two cannot have a connection.
    pub goodput_mbps: Option<InteropFigure>,
    /// Retransmitted packets in percent of the data packets.
    pub retransmitted_percent: Option<InteropFigure>,
}

/// Two stacks that share the path, each with both ends of its flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InteropShare {
    /// The stacks.
    pub stacks: [String; 2],
    /// Share of the first in the goodput of both, in percent; 50 is fair.
    pub first_share_percent: InteropFigure,
    /// Goodput of each in Mbit/s.
    pub goodput_mbps: [InteropFigure; 2],
    /// Retransmitted packets of each in percent of its data packets.
    pub retransmitted_percent: [InteropFigure; 2],
    /// Jain's index of the two goodputs.
    pub jain: InteropFigure,
}

/// All pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InteropReport {
    /// Version of Ackclock.
    pub version: String,
    /// File of the scenario.
    pub file: String,
    /// SHA-256 of its text.
    pub scenario_sha256: String,
    /// Title of the scenario.
    pub title: String,
    /// The stacks, in the order given.
    pub stacks: Vec<String>,
    /// Virtual time of each run in seconds.
    pub length_s: f64,
    /// Virtual time in seconds from which the bytes count.
    pub measured_from_s: f64,
    /// Seeds of each transfer, and start phases of each pair.
    pub phases: u32,
    /// Senders with receivers, a row of senders after another.
    pub transfers: Vec<InteropTransfer>,
    /// Pairs that share the path, each once.
    pub shared: Vec<InteropShare>,
}

impl InteropReport {
    pub(super) fn new(request: &InteropRequest<'_>) -> Self {
        let names: Vec<String> = request.stacks.iter().map(|stack| stack.name.clone()).collect();
        let transfer = |sender: &String, receiver: &String| InteropTransfer {
            sender: sender.clone(),
            receiver: receiver.clone(),
            goodput_mbps: None,
            retransmitted_percent: None,
        };
        let pairs =
            names.iter().flat_map(|sender| names.iter().map(move |to| transfer(sender, to)));
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            file: request.file.clone(),
            scenario_sha256: request.sha256.clone(),
            title: request.scenario.title.clone(),
            transfers: pairs.collect(),
            stacks: names,
            length_s: request.length.as_secs_f64(),
            measured_from_s: request.measured_from().as_secs_f64(),
            phases: request.phases,
            shared: Vec::new(),
        }
    }

    pub(super) fn transfer_mut(&mut self, sender: usize, receiver: usize) -> &mut InteropTransfer {
        let at = sender * self.stacks.len() + receiver;
        &mut self.transfers[at]
    }

    /// Returns the transfer of two stacks by their index.
    pub fn transfer(&self, sender: usize, receiver: usize) -> Option<&InteropTransfer> {
        self.transfers.get(sender * self.stacks.len() + receiver)
    }

    /// Returns the share of stack number `row` beside number `column`; the order of a pair does not matter.
    pub fn share(&self, row: usize, column: usize) -> Option<InteropFigure> {
        let pair = self.pair(row, column)?;
        let figure = pair.first_share_percent;
        let mean = if row <= column { figure.mean } else { 100.0 - figure.mean };
        Some(InteropFigure { mean, ..figure })
    }

    /// Returns the pair of two stacks by their index.
    pub fn pair(&self, one: usize, other: usize) -> Option<&InteropShare> {
        let (first, second) = (one.min(other), one.max(other));
        // The rows before have one pair less each.
        let before: usize = (0..first).map(|row| self.stacks.len() - row).sum();
        self.shared.get(before + second - first)
    }

    /// The report as JSON, with a line break at its end.
    pub fn to_json(&self) -> String {
        // A report has only numbers, texts and lists.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}
