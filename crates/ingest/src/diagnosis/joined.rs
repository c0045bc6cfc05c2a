//! Connections that two captures saw: what became of each packet on the way between them.

use diagnose::rules::{many, time};
use packet::Dir;
use serde::Serialize;

use super::{FileReport, Report};
use crate::inputs::{Crossing, Pair, Stream};

/// A connection at one of two points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Point {
    file: String,
    flow: u32,
}

/// What two captures of a connection say together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Joined {
    /// Nearer to who opened the connection.
    near: Point,
    far: Point,
    /// By how much the clock of `far` is ahead of that of `near`, both counted from the first
    /// packet of their files, in seconds; none if packets of one direction only match.
    clock_ahead_s: Option<f64>,
    /// Seconds a second by which it gains.
    clock_drift: Option<f64>,
    /// Least round trip between the points: the offset is within half of it for certain.
    round_trip_s: Option<f64>,
    from_client: Way,
    from_server: Way,
}

/// What became of the packets with payload of one direction between the points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Way {
    packets: u64,
    lost: u64,
    lost_in_part: u64,
    reordered: u64,
    duplicated: u64,
    /// Seen at the second point only: the first capture missed them.
    unseen: u64,
    /// Least, median, 99th percentile and largest, in seconds.
    delays_s: Option<[f64; 4]>,
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

impl Way {
    fn of(crossing: &Crossing) -> Self {
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

    /// In words, if anything passed.
    fn text(&self) -> Option<String> {
        if self.packets + self.unseen == 0 {
            return None;
        }
        let mut text = format!("{}: {} lost", many(self.packets, "packet"), self.lost);
        let counts = [
            (self.lost_in_part, "lost in part"),
            (self.reordered, "overtaken"),
            (self.duplicated, "doubled"),
            (self.unseen, "that only the second capture has"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            text += &format!(", {count} {what}");
        }
        if let Some(delays) = self.delays_s {
            let [least, middle, late, most] =
                delays.map(|delay| time((delay.max(0.0) * 1e9) as u64));
            text += &format!(
                "; under way for {least} at least, {middle} in the median, {late} at the 99th \
                 percentile, {most} at most"
            );
        }
        Some(text)
    }
}

impl Joined {
    pub(super) fn of(pair: &Pair, streams: &[Stream], names: &[String]) -> Option<Self> {
        let point = |index: usize| {
            let stream = streams.get(index)?;
            let file = names.get(stream.file)?.clone();
            Some(Point { file, flow: stream.analysis.stream })
        };
        let [from_client, from_server] = [Dir::Forward, Dir::Reverse].map(|dir| {
            let of_dir = pair.crossings.iter().find(|crossing| crossing.dir == dir);
            of_dir.map_or_else(|| Way::of(&Crossing::default()), Way::of)
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

    pub(super) fn concerns(&self, file: &str, flow: u32) -> bool {
        [&self.near, &self.far].into_iter().any(|point| point.file == file && point.flow == flow)
    }

    /// Two capture points of one file.
    pub(super) fn is_of_one_file(&self) -> bool {
        self.near.file == self.far.file
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.near.file == file || self.far.file == file
    }

    fn text(&self) -> String {
        let Self { near, far, .. } = self;
        let mut out = if self.is_of_one_file() {
            let Point { file, flow } = near;
            format!(
                "\nflow {flow} and flow {} of {file} are one connection at two capture points\n",
                far.flow
            )
        } else {
            format!("\nflow {} of {} is flow {} of {}\n", near.flow, near.file, far.flow, far.file)
        };
        let clocks = self.clock_ahead_s.zip(self.round_trip_s);
        let has_one_clock = self.is_of_one_file() && self.clock_ahead_s == Some(0.0);
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

impl Report {
    /// Connections of `report` that are others of it, seen at another capture point.
    pub(super) fn seen_twice(&self, report: &FileReport) -> usize {
        let has =
            |flow: u32| report.connections.iter().any(|one| one.stream.analysis.stream == flow);
        let name = &report.file.name;
        let here = self.joined.iter().filter(|pair| pair.is_of_one_file() && pair.has(name));
        here.filter(|pair| has(pair.near.flow) && has(pair.far.flow)).count()
    }

    /// What captures say together, in words; empty if none are of one transfer.
    pub fn joined_text(&self) -> String {
        self.joined.iter().map(Joined::text).collect()
    }
}
