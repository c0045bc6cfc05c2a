//! The CSV table of all runs: a row per flow of each run, a column per key of the axes and per
//! figure.

use std::io::{self, Write};

use super::SweepRow;
use crate::run_report::FlowReport;
use crate::sharing::LinkReport;

/// The figures of a flow, followed by those of its run: column name, description with unit, and
/// accessor.
pub const FIGURES: [SweepFigure; 35] = [
    SweepFigure::counted("bytes", "payload read by the receiving application, in bytes", |_, f| {
        Some(f.bytes as f64)
    }),
    SweepFigure::counted("finished", "1 if the transfer completed, 0 if not", |_, f| {
        Some(f64::from(u8::from(f.finished)))
    }),
    SweepFigure::of_flow(
        "duration_s",
        "from the first SYN to the last byte read, or to the end of the run, in seconds",
        |_, f| Some(f.duration_s),
    ),
    SweepFigure::counted("goodput_bps", "payload read per second, in bit/s", |_, f| {
        Some(f.goodput_bps)
    }),
    SweepFigure::counted("retransmitted_segments", "data packets retransmitted", |_, f| {
        Some(f.retransmitted_segments as f64)
    }),
    SweepFigure::counted("fast_recoveries", "fast recoveries entered", |_, f| {
        Some(f.fast_recoveries as f64)
    }),
    SweepFigure::counted("rtos", "retransmission timeouts", |_, f| Some(f.rtos as f64)),
    SweepFigure::counted(
        "spurious_recoveries",
        "recoveries and timeouts that proved spurious and were undone",
        |_, f| Some(f.spurious_recoveries as f64),
    ),
    SweepFigure::of_flow("max_cwnd_bytes", "largest congestion window, in bytes", |_, f| {
        Some(f.max_cwnd_bytes as f64)
    }),
    SweepFigure::of_flow("mss_bytes", "payload of a full segment, in bytes", |_, f| {
        Some(f.mss_bytes as f64)
    }),
    SweepFigure::of_flow(
        "min_rtt_s",
        "smallest round-trip sample of the sender, in seconds",
        |_, f| f.min_rtt_s,
    ),
    SweepFigure::of_run(
        "jain_index",
        "Jain's index of the goodputs of the run's flows",
        |row, _| row.sharing.fairness.as_ref().map(|fair| fair.jain_index),
    ),
    SweepFigure::of_run(
        "mean_jain_index",
        "mean of Jain's index over the seconds of the run",
        |row, _| row.sharing.fairness.as_ref().and_then(|fair| fair.mean_jain_index),
    ),
    SweepFigure::of_run(
        "convergence_s",
        "from the last start to the end of the first second with fair shares, in seconds",
        |row, _| row.sharing.fairness.as_ref().and_then(|fair| fair.convergence_s),
    ),
    SweepFigure::of_run("link_lost_packets", "packets dropped at link queues", |row, _| {
        total(row, |line| line.lost)
    }),
    SweepFigure::of_run("link_marked_packets", "packets marked at link queues (ECN)", |row, _| {
        total(row, |line| line.marked)
    }),
    SweepFigure::of_run(
        "queue_delay_p50_s",
        "median queue delay, of the link where it is longest",
        |row, _| longest(row, |line| line.delay_p50_s),
    ),
    SweepFigure::of_run(
        "queue_delay_p95_s",
        "95th percentile of the queue delay, of the link where it is longest",
        |row, _| longest(row, |line| line.delay_p95_s),
    ),
    SweepFigure::of_run(
        "queue_delay_p99_s",
        "99th percentile of the queue delay, of the link where it is longest",
        |row, _| longest(row, |line| line.delay_p99_s),
    ),
    SweepFigure::of_run("queue_delay_max_s", "longest queue delay, in seconds", |row, _| {
        longest(row, |line| line.delay_max_s)
    }),
    SweepFigure::of_flow(
        "share",
        "fraction of the bytes of all flows that this flow read",
        |row, f| {
            let all: u64 = row.flows.iter().map(|flow| flow.bytes).sum();
            (all > 0 && row.flows.len() > 1).then(|| f.bytes as f64 / all as f64)
        },
    ),
    SweepFigure::of_flow(
        "latency_p50_s",
        "median response time of requests, load time of pages, or delay of frames, in seconds",
        |_, f| f.latency.as_ref().map(|latency| latency.median_s),
    ),
    SweepFigure::of_flow(
        "latency_p95_s",
        "95th percentile of the response time of requests, load time of pages, or delay of frames, in seconds",
        |_, f| f.latency.as_ref()?.p95_s,
    ),
    SweepFigure::of_flow(
        "latency_p99_s",
        "99th percentile of the response time of requests, load time of pages, or delay of frames, in seconds",
        |_, f| f.latency.as_ref()?.p99_s,
    ),
    SweepFigure::of_flow(
        "completion_p50_s",
        "median completion time of a group's connections, in seconds",
        |_, f| f.group.as_ref()?.completion_p50_s,
    ),
    SweepFigure::of_flow(
        "completion_p95_s",
        "95th percentile of the completion times of a group's connections, in seconds",
        |_, f| f.group.as_ref()?.completion_p95_s,
    ),
    SweepFigure::of_flow(
        "completion_p99_s",
        "99th percentile of the completion times of a group's connections, in seconds",
        |_, f| f.group.as_ref()?.completion_p99_s,
    ),
    SweepFigure::of_flow(
        "slowdown_p50",
        "median slowdown of a group's connections: completion times over those of an empty path",
        |_, f| f.group.as_ref()?.slowdown_p50,
    ),
    SweepFigure::of_flow(
        "slowdown_p95",
        "95th percentile of the slowdowns of a group's connections: completion times over those of an empty path",
        |_, f| f.group.as_ref()?.slowdown_p95,
    ),
    SweepFigure::of_flow(
        "slowdown_p99",
        "99th percentile of the slowdowns of a group's connections: completion times over those of an empty path",
        |_, f| f.group.as_ref()?.slowdown_p99,
    ),
    SweepFigure::of_flow(
        "video_bitrate_bps",
        "mean bit rate of the chunks of a video, in bit/s",
        |_, f| f.video.as_ref()?.bitrate_bps.map(|rate| rate as f64),
    ),
    SweepFigure::of_flow(
        "video_switches",
        "chunks of a video with another bit rate than the one before",
        |_, f| Some(f.video.as_ref()?.switches as f64),
    ),
    SweepFigure::of_flow("video_stalls", "stalls of a video", |_, f| {
        Some(f.video.as_ref()?.stalls as f64)
    }),
    SweepFigure::of_flow("video_stall_s", "time that a video was stalled, in seconds", |_, f| {
        Some(f.video.as_ref()?.stall_s)
    }),
    SweepFigure::of_flow(
        "video_startup_s",
        "from the first SYN to the start of playback of a video, in seconds",
        |_, f| f.video.as_ref()?.startup_s,
    ),
];

fn total(row: &SweepRow, of: fn(&LinkReport) -> u64) -> Option<f64> {
    let links = &row.sharing.links;
    (!links.is_empty()).then(|| links.iter().map(of).sum::<u64>() as f64)
}

fn longest(row: &SweepRow, of: fn(&LinkReport) -> Option<f64>) -> Option<f64> {
    row.sharing.links.iter().filter_map(of).reduce(f64::max)
}

/// A figure of a flow.
#[derive(Debug, Clone, Copy)]
pub struct SweepFigure {
    /// Name of the column, with its unit.
    pub name: &'static str,
    /// Description.
    pub help: &'static str,
    /// Its scope.
    pub scope: Scope,
    /// Its value; `None` if there is none.
    pub of: FigureValue,
}

/// The scope of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A flow; the sum over the flows of a run is a figure of the run: bytes, goodput, counts.
    Sum,
    /// A flow; a sum over flows is meaningless.
    Flow,
    /// A run: the same for all of its flows.
    Run,
}

/// Accessor of a figure.
type FigureValue = fn(&SweepRow, &FlowReport) -> Option<f64>;

impl SweepFigure {
    const fn counted(name: &'static str, help: &'static str, of: FigureValue) -> Self {
        Self { name, help, scope: Scope::Sum, of }
    }

    const fn of_flow(name: &'static str, help: &'static str, of: FigureValue) -> Self {
        Self { name, help, scope: Scope::Flow, of }
    }

    const fn of_run(name: &'static str, help: &'static str, of: FigureValue) -> Self {
        Self { name, help, scope: Scope::Run, of }
    }

    /// Its name without the unit: `goodput`.
    pub fn short(&self) -> &'static str {
        let units = ["_s", "_bps", "_bytes"];
        units.iter().find_map(|unit| self.name.strip_suffix(unit)).unwrap_or(self.name)
    }

    /// The figure of that name, with or without its unit.
    pub fn named(name: &str) -> Option<Self> {
        FIGURES.into_iter().find(|figure| figure.name == name || figure.short() == name)
    }
}

/// Writes the header line of the table for axes over `keys`.
///
/// # Errors
/// Those of the writer.
pub fn head(keys: &[String], out: &mut impl Write) -> io::Result<()> {
    let names = ["flow", "profile", "cc"].into_iter().chain(FIGURES.map(|figure| figure.name));
    let keys = keys.iter().map(|key| field(key));
    let columns = ["run".to_owned(), "seed".to_owned()].into_iter().chain(keys);
    let columns: Vec<String> = columns.chain(names.map(str::to_owned)).collect();
    writeln!(out, "{}", columns.join(","))
}

/// Writes the lines of a run.
///
/// # Errors
/// Those of the writer.
pub fn lines(row: &SweepRow, out: &mut impl Write) -> io::Result<()> {
    for flow in &row.flows {
        write!(out, "{},{}", row.run, row.seed)?;
        for (_, value) in &row.set {
            write!(out, ",{}", field(value))?;
        }
        write!(out, ",{},{},{}", field(&flow.name), flow.profile, flow.cc)?;
        for figure in FIGURES {
            match (figure.of)(row, flow) {
                Some(value) => write!(out, ",{value}")?,
                None => write!(out, ",")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Quotes a field as in RFC 4180.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
