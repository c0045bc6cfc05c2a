//! Connections present in two captures: loss, reordering and delay between the two capture points.

use std::collections::BTreeSet;

use diagnose::rules::{many, time};
use packet::Dir;
use serde::Serialize;
use units::Duration;

use super::{ConnectionReport, DiagnosisReport, FileReport};
use crate::inputs::{CapturePair, CapturedConnection, TwoPointTransit};

/// A connection at one of two capture points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FlowRef {
    file: String,
    flow: u32,
}

/// The comparison of two captures of a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CapturePairReport {
    /// The capture point nearer to the client.
    near: FlowRef,
    far: FlowRef,
    /// Seconds by which the clock of `far` is ahead of that of `near`, both counted from the first
    /// packet of their files; `None` if only packets of one direction match.
    clock_ahead_s: Option<f64>,
    /// Clock drift, in seconds per second.
    clock_drift: Option<f64>,
    /// Shortest round trip between the points; bounds the error of the offset to half of it.
    round_trip_s: Option<f64>,
    from_client: PathTransit,
    from_server: PathTransit,
}

/// Outcomes of the data packets of one direction between the points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct PathTransit {
    packets: u64,
    lost: u64,
    lost_in_part: u64,
    reordered: u64,
    duplicated: u64,
    /// Captured at the second point only: the first capture missed them.
    unseen: u64,
    /// Minimum, median, 99th percentile and maximum one-way delay, in seconds.
    delays_s: Option<[f64; 4]>,
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

impl PathTransit {
    fn of(crossing: &TwoPointTransit) -> Self {
        Self {
            packets: crossing.fates.len() as u64,
            lost: crossing.lost,
            lost_in_part: crossing.lost_in_part,
            reordered: crossing.reordered,
            duplicated: crossing.duplicated,
            unseen: crossing.unseen,
            delays_s: crossing.delays.map(|delays| delays.map(seconds)),
        }
    }

    /// As text, if there were any packets.
    fn text(&self) -> Option<String> {
        if self.packets + self.unseen == 0 {
            return None;
        }
        let mut text = format!("{}: {} lost", many(self.packets, "packet"), self.lost);
        let counts = [
            (self.lost_in_part, "partly lost"),
            (self.reordered, "reordered"),
            (self.duplicated, "duplicated"),
            (self.unseen, "only in the second capture"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            text += &format!(", {count} {what}");
        }
        if let Some(delays) = self.delays_s {
            let [least, middle, late, most] =
                delays.map(|delay| time(Duration::from_nanos((delay.max(0.0) * 1e9) as u64)));
            text += &format!(
                "; one-way delay {least} at least, {middle} median, {late} 99th percentile, \
                 {most} at most"
            );
        }
        Some(text)
    }
}

impl CapturePairReport {
    pub(super) fn of(
        pair: &CapturePair,
        streams: &[CapturedConnection],
        names: &[String],
    ) -> Option<Self> {
        let point = |index: usize| {
            let stream = streams.get(index)?;
            let file = names.get(stream.file)?.clone();
            Some(FlowRef { file, flow: stream.stream() })
        };
        let [from_client, from_server] = [Dir::Forward, Dir::Reverse].map(|dir| {
            let of_dir = pair.transits.iter().find(|crossing| crossing.dir == dir);
            of_dir.map_or_else(|| PathTransit::of(&TwoPointTransit::default()), PathTransit::of)
        });
        Some(Self {
            near: point(pair.near)?,
            far: point(pair.far)?,
            clock_ahead_s: pair.offset.map(|offset| seconds(offset.ahead)),
            clock_drift: pair.offset.and_then(|offset| offset.drift).map(|drift| drift / 1e9),
            round_trip_s: pair.offset.map(|offset| seconds(offset.round_trip)),
            from_client,
            from_server,
        })
    }

    /// File and connection of both points.
    pub(super) fn points(&self) -> [(&str, u32); 2] {
        [&self.near, &self.far].map(|point| (point.file.as_str(), point.flow))
    }

    pub(super) fn concerns(&self, file: &str, flow: u32) -> bool {
        [&self.near, &self.far].into_iter().any(|point| point.file == file && point.flow == flow)
    }

    /// Both capture points are in one file.
    pub(super) fn is_single_file(&self) -> bool {
        self.near.file == self.far.file
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.near.file == file || self.far.file == file
    }

    fn text(&self) -> String {
        let Self { near, far, .. } = self;
        let mut out = if self.is_single_file() {
            let FlowRef { file, flow } = near;
            format!(
                "\nflow {flow} and flow {} of {file} are one connection at two capture points\n",
                far.flow
            )
        } else {
            format!("\nflow {} of {} is flow {} of {}\n", near.flow, near.file, far.flow, far.file)
        };
        let clocks = self.clock_ahead_s.zip(self.round_trip_s);
        let has_one_clock = self.is_single_file() && self.clock_ahead_s == Some(0.0);
        if let Some((ahead, round_trip)) = clocks.filter(|_| !has_one_clock) {
            let gains = self
                .clock_drift
                .map_or_else(String::new, |drift| format!(", gains {:+.1} us/s", drift * 1e6));
            let place = if ahead < 0.0 { "behind" } else { "ahead of" };
            out += &format!(
                "  the second clock, both counted from the first packets, is {:.6} s {place} the \
                 first{gains}; certain to {:.6} s\n",
                ahead.abs(),
                round_trip / 2.0
            );
        }
        for (who, way) in [("client", &self.from_client), ("server", &self.from_server)] {
            if let Some(text) = way.text() {
                out += &format!("  from the {who}  {text}\n");
            }
        }
        out
    }
}

impl DiagnosisReport {
    /// Number of connections of `report` that are another capture point's view of one of its
    /// connections.
    pub(super) fn duplicate_connections(&self, report: &FileReport) -> usize {
        let shown: BTreeSet<u32> =
            report.connections.iter().map(ConnectionReport::number).collect();
        let has = |flow: u32| shown.contains(&flow);
        let name = &report.file.name;
        let here = self.joined.iter().filter(|pair| pair.is_single_file() && pair.has(name));
        here.filter(|pair| has(pair.near.flow) && has(pair.far.flow)).count()
    }

    /// The comparisons of captures, and of the logs of both endpoints, as text; empty without any.
    pub fn joined_text(&self) -> String {
        let captures: String = self.joined.iter().map(CapturePairReport::text).collect();
        captures + &self.both_ends_text() + &self.beside_text()
    }
}
