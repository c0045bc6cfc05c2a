//! Which connections a condition of `--fail-on` can judge: a gate must not pass on nothing.

use diagnose::quic::captured::CAPTURED_CODES;
use diagnose::quic::rules::quic_rule;
use diagnose::rules::{many, rule};

use super::{ConnectionReport, DiagnosisReport, FailOn, FileReport, QuicReport};
use crate::inputs::{CapturedQuicConnection, InputKind};

/// Why nothing is found in a connection, whatever it suffered.
const ACCOUNT: &str = "a kernel's account without packets";
const PARTIAL: &str = "packets of one host only, or no bare ACKs";
const EMPTY_LOG: &str = "a log without packets";

impl FailOn {
    /// Whether its findings can be those of a TCP connection.
    fn concerns_tcp(self) -> bool {
        match self {
            Self::Severity(_) => true,
            Self::Code(code) => rule(code).is_some(),
        }
    }

    /// Whether its findings can be those of the log of a QUIC connection.
    fn concerns_quic(self) -> bool {
        match self {
            Self::Severity(_) => true,
            Self::Code(code) => quic_rule(code).is_some(),
        }
    }

    /// Whether its findings can be those of a QUIC connection of a capture.
    fn concerns_captured_quic(self) -> bool {
        match self {
            Self::Severity(_) => true,
            Self::Code(code) => CAPTURED_CODES.contains(&code),
        }
    }
}

impl ConnectionReport {
    /// Why no condition can judge it; `None` if one can.
    pub(super) fn unjudged(&self) -> Option<&'static str> {
        match (self.is_judged, self.analysis().frames) {
            (true, _) => None,
            (false, 0) => Some(ACCOUNT),
            (false, _) => Some(PARTIAL),
        }
    }

    /// Why `on` cannot judge it; `None` if it can.
    pub(super) fn unjudged_by(&self, on: FailOn) -> Option<&'static str> {
        let other =
            (!on.concerns_tcp()).then_some("a connection of TCP, the finding is one of QUIC");
        self.unjudged().or(other)
    }
}

impl QuicReport {
    fn unjudged(&self) -> Option<&'static str> {
        let analysis = &self.connection.analysis;
        (analysis.sent == 0 && analysis.received == 0 && self.diagnosis.findings.is_empty())
            .then_some(EMPTY_LOG)
    }

    /// Why `on` cannot judge it; `None` if it can.
    pub(super) fn unjudged_by(&self, on: FailOn) -> Option<&'static str> {
        let other =
            (!on.concerns_quic()).then_some("a connection of QUIC, the finding is one of TCP");
        self.unjudged().or(other)
    }
}

impl CapturedQuicConnection {
    /// Why `on` cannot judge it; `None` if it can.
    pub(super) fn unjudged_by(on: FailOn) -> Option<&'static str> {
        (!on.concerns_captured_quic())
            .then_some("a captured connection of QUIC, which does not show this finding")
    }
}

impl FileReport {
    /// Why none of its connections is judged; `None` if one is. `is_joined`: the connections of a
    /// log are those of the captures beside it.
    pub(super) fn reason_unjudged(&self, is_joined: bool) -> Option<String> {
        let is_quic = matches!(self.file.kind, InputKind::Qlog | InputKind::NetLog);
        let all = self.connections.len() + self.quic.len() + self.captured_quic.len();
        if all == 0 {
            let is_account = self.file.kind.is_log() && !is_quic;
            let what = if is_quic { "QUIC" } else { "TCP or QUIC" };
            return (!(is_account && is_joined)).then(|| format!("it has no connection of {what}"));
        }
        if !self.captured_quic.is_empty() {
            return None;
        }
        let of_tcp = self.connections.iter().map(ConnectionReport::unjudged);
        let reasons = of_tcp.chain(self.quic.iter().map(QuicReport::unjudged));
        let reason = reasons.collect::<Option<Vec<_>>>()?.first().copied()?;
        Some(match all {
            1 => format!("its connection is {reason}"),
            _ => format!("it has {}, the first is {reason}", many(all as u64, "connection")),
        })
    }
}

impl DiagnosisReport {
    /// The files in which no connection was judged, each with the reason; those that a filter left
    /// without connections are not among them.
    pub fn unjudged(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|file| Some((file.file.name.as_str(), file.unjudged.as_deref()?)))
    }

    /// Number of the connections that can meet the condition or not.
    pub fn judged_by(&self, on: FailOn) -> usize {
        let judged = |file: &FileReport| {
            file.connections.iter().filter(|one| one.unjudged_by(on).is_none()).count()
                + file.quic.iter().filter(|one| one.unjudged_by(on).is_none()).count()
                + match CapturedQuicConnection::unjudged_by(on) {
                    None => file.captured_quic.len(),
                    Some(_) => 0,
                }
        };
        self.files.iter().map(judged).sum()
    }
}
