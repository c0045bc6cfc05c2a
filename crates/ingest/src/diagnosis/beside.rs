//! A log of a QUIC host and a capture of the same connection, as text and JSON.

use core::fmt::Write;

use diagnose::rules::{many, time};
use serde::Serialize;
use units::Duration;

use super::DiagnosisReport;
use super::both_ends::LogRef;
use crate::inputs::{PacketsBeside, QuicBeside, Reading};

/// The comparison of a log and a capture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct QuicBesideReport {
    log: LogRef,
    capture: LogRef,
    same_id: bool,
    sent: PacketsBesideJson,
    received: PacketsBesideJson,
    lost_after_capture: u64,
    lost_before_capture: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct PacketsBesideJson {
    logged: u64,
    captured: u64,
    matched: u64,
    not_captured: u64,
    not_logged: u64,
    reordered: u64,
    /// Median, 99th percentile and maximum above the least.
    delays_s: Option<[f64; 3]>,
}

impl PacketsBesideJson {
    fn of(packets: &PacketsBeside) -> Self {
        Self {
            logged: packets.logged,
            captured: packets.captured,
            matched: packets.matched,
            not_captured: packets.not_captured(),
            not_logged: packets.not_logged(),
            reordered: packets.reordered,
            delays_s: packets.delays.map(|delays| delays.map(|ns| ns as f64 / 1e9)),
        }
    }

    /// A line; `way` is the path from the first point to the second.
    fn text(&self, what: &str, way: &str, out: &mut String) {
        let _ = write!(
            out,
            "  {what:8}  {} in the log, {} in the capture: {} not captured, {} not logged",
            many(self.logged, "packet"),
            self.captured,
            self.not_captured,
            self.not_logged
        );
        if self.reordered > 0 {
            let _ = write!(out, "; {} reordered {way}", self.reordered);
        }
        out.push('\n');
        if let Some([middle, late, most]) = self.delays_s {
            let span = |seconds: f64| time(Duration::from_nanos((seconds * 1e9) as u64));
            let _ = writeln!(
                out,
                "            {way} {} median, {} 99th percentile, {} at most, above the least",
                span(middle),
                span(late),
                span(most)
            );
        }
    }
}

impl QuicBesideReport {
    pub(super) fn of(beside: &QuicBeside, reading: &Reading, names: &[String]) -> Option<Self> {
        let log = reading.quic.get(beside.log)?;
        let capture = reading.captured_quic.get(beside.capture)?;
        Some(Self {
            log: LogRef { file: names.get(log.file)?.clone(), connection: log.number },
            capture: LogRef { file: names.get(capture.file)?.clone(), connection: capture.number },
            same_id: beside.same_id,
            sent: PacketsBesideJson::of(&beside.sent),
            received: PacketsBesideJson::of(&beside.received),
            lost_after_capture: beside.lost_after,
            lost_before_capture: beside.lost_before,
        })
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.log.file == file || self.capture.file == file
    }

    pub(super) fn concerns(&self, file: &str, connection: u32) -> bool {
        self.log.is(file, connection) || self.capture.is(file, connection)
    }

    fn text(&self) -> String {
        let Self { log, capture, sent, received, .. } = self;
        let mut out = format!(
            "\nconnection {} of {} is quic {} of {}{}\n",
            log.connection,
            log.file,
            capture.connection,
            capture.file,
            if self.same_id { ", by its connection ID" } else { ", the only one" }
        );
        sent.text("sent", "from the log to the capture", &mut out);
        if self.lost_after_capture + self.lost_before_capture > 0 {
            let _ = writeln!(
                out,
                "            of those declared lost {} were captured, and were lost after that or late; {} were not",
                self.lost_after_capture, self.lost_before_capture
            );
        }
        received.text("received", "from the capture to the log", &mut out);
        out.push_str("  packets with short headers, by their order, lengths and times\n");
        out
    }
}

impl DiagnosisReport {
    /// The comparisons of logs with captures as text; empty without any.
    pub(super) fn beside_text(&self) -> String {
        self.beside.iter().map(QuicBesideReport::text).collect()
    }
}
