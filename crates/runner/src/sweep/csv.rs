//! The table of all runs: a row for each flow of each run, a column for each key of the axes and
//! each figure.

use std::io::{self, Write};

use super::Row;
use crate::run_report::FlowReport;
use crate::sharing::LineReport;

/// Figures of a flow, and behind them those of its run: the name of the column, what it says with its unit, and how it is read.
pub const FIGURES: [Figure; 21] = [
    Figure::counted("bytes", "payload read by the receiving application, in bytes", |_, f| {
        Some(f.bytes as f64)
    }),
    Figure::counted("finished", "1 if the transfer came to its end, 0 if not", |_, f| {
        Some(f64::from(u8::from(f.finished)))
    }),
    Figure::of_flow(
        "duration_s",
        "from the first SYN to the last byte read, or to the end of the run, in seconds",
        |_, f| Some(f.duration_s),
    ),
    Figure::counted("goodput_bps", "payload read per second, in bit/s", |_, f| Some(f.goodput_bps)),
    Figure::counted("retransmitted_segments", "data packets sent again", |_, f| {
        Some(f.retransmitted_segments as f64)
    }),
    Figure::counted("fast_recoveries", "fast recoveries entered", |_, f| {
        Some(f.fast_recoveries as f64)
    }),
    Figure::counted("rtos", "times the retransmission timer fired", |_, f| Some(f.rtos as f64)),
    Figure::counted(
        "spurious_recoveries",
        "recoveries and timeouts that proved spurious and were undone",
        |_, f| Some(f.spurious_recoveries as f64),
    ),
    Figure::of_flow("max_cwnd_bytes", "largest congestion window, in bytes", |_, f| {
        Some(f.max_cwnd_bytes as f64)
    }),
    Figure::of_flow("mss_bytes", "payload of a full segment, in bytes", |_, f| {
        Some(f.mss_bytes as f64)
    }),
    Figure::of_flow("min_rtt_s", "least round trip the sender measured, in seconds", |_, f| {
        f.min_rtt_s
    }),
    Figure::of_run("jain_index", "Jain's index of the goodputs of the run's flows", |row, _| {
        row.sharing.fairness.as_ref().map(|fair| fair.jain_index)
    }),
    Figure::of_run(
        "mean_jain_index",
        "mean of Jain's index over the seconds of the run",
        |row, _| row.sharing.fairness.as_ref().and_then(|fair| fair.mean_jain_index),
    ),
    Figure::of_run(
        "convergence_s",
        "from the last start to the end of the first second with fair shares, in seconds",
        |row, _| row.sharing.fairness.as_ref().and_then(|fair| fair.convergence_s),
    ),
    Figure::of_run("link_lost_packets", "packets lost in front of lines", |row, _| {
        total(row, |line| line.lost)
    }),
    Figure::of_run("link_marked_packets", "packets marked in front of lines (ECN)", |row, _| {
        total(row, |line| line.marked)
    }),
    Figure::of_run(
        "queue_delay_p50_s",
        "queue delay that half of the packets do not exceed, of the line where it is longest",
        |row, _| longest(row, |line| line.delay_p50_s),
    ),
    Figure::of_run(
        "queue_delay_p95_s",
        "queue delay that 95 % of the packets do not exceed, of the line where it is longest",
        |row, _| longest(row, |line| line.delay_p95_s),
    ),
    Figure::of_run(
        "queue_delay_p99_s",
        "queue delay that 99 % of the packets do not exceed, of the line where it is longest",
        |row, _| longest(row, |line| line.delay_p99_s),
    ),
    Figure::of_run("queue_delay_max_s", "longest queue delay, in seconds", |row, _| {
        longest(row, |line| line.delay_max_s)
    }),
    Figure::of_flow(
        "share",
        "of what all flows of the run read, the part of this one",
        |row, f| {
            let all: u64 = row.flows.iter().map(|flow| flow.bytes).sum();
            (all > 0 && row.flows.len() > 1).then(|| f.bytes as f64 / all as f64)
        },
    ),
];

fn total(row: &Row, of: fn(&LineReport) -> u64) -> Option<f64> {
    let links = &row.sharing.links;
    (!links.is_empty()).then(|| links.iter().map(of).sum::<u64>() as f64)
}

fn longest(row: &Row, of: fn(&LineReport) -> Option<f64>) -> Option<f64> {
    row.sharing.links.iter().filter_map(of).reduce(f64::max)
}

/// A figure of a flow.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Name of the column, with its unit.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// What it is a figure of.
    pub scope: Scope,
    /// Its value; `None` if there is none.
    pub of: Of,
}

/// What a figure measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A flow, with a sum over the flows of a run that is a figure of the run: bytes, goodput, counts.
    Sum,
    /// A flow; a sum over flows means nothing.
    Flow,
    /// A run: the same for all of its flows.
    Run,
}

/// How a figure is read.
type Of = fn(&Row, &FlowReport) -> Option<f64>;

impl Figure {
    const fn counted(name: &'static str, help: &'static str, of: Of) -> Self {
        Self { name, help, scope: Scope::Sum, of }
    }

    const fn of_flow(name: &'static str, help: &'static str, of: Of) -> Self {
        Self { name, help, scope: Scope::Flow, of }
    }

    const fn of_run(name: &'static str, help: &'static str, of: Of) -> Self {
        Self { name, help, scope: Scope::Run, of }
    }

    /// Its name without the unit: `goodput`.
    pub fn short(&self) -> &'static str {
        let units = ["_s", "_bps", "_bytes"];
        units.iter().find_map(|unit| self.name.strip_suffix(unit)).unwrap_or(self.name)
    }

    /// The figure of that name; the unit may be left out.
    pub fn named(name: &str) -> Option<Self> {
        FIGURES.into_iter().find(|figure| figure.name == name || figure.short() == name)
    }
}

/// Writes the head of the table for axes over `keys`.
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
pub fn lines(row: &Row, out: &mut impl Write) -> io::Result<()> {
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

/// As RFC 4180 wants it.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
