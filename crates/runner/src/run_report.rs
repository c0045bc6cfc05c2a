//! The result of a run as JSON and as a table.

mod delays;
mod metrics;
mod video;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use sim::{FlowOutcome, LatencyKind, RunOutcome};
use units::{Bytes, Duration};

use crate::groups::{GroupReport, grouped};
use crate::sharing::{OneWayReport, SecondsReport, Sharing, SharingReport};
use scenario::Loaded;

pub use delays::{LATENCIES, completion_rows, latency_rows};
pub use metrics::openmetrics;
pub use video::{VideoReport, video_rows};

use delays::{completions, latencies};
use video::videos;

/// Version of the JSON format; a new field does not change it, a changed or missing one does.
pub const FORMAT: u32 = 1;

/// The results of a run, with the data needed to repeat it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Ackclock.
    pub ackclock: &'static str,
    /// [`crate::MODEL`].
    pub model: &'static str,
    /// Title of the scenario.
    pub title: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// SHA-256 of the scenario's text with all overrides applied.
    pub scenario_sha256: String,
    /// Data packets sent, retransmissions included.
    pub segments_simulated: u64,
    /// Virtual time at which the run ended, in seconds.
    pub ended_s: f64,
    /// One for each flow, in the order of the scenario.
    pub flows: Vec<FlowReport>,
    /// Fairness and link statistics, for several flows or managed queues.
    #[serde(flatten)]
    pub sharing: SharingReport,
    /// Per-second rates, for several flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_second: Option<SecondsReport>,
}

/// The results of one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Name in the scenario.
    pub name: String,
    /// Profile of the sending host.
    pub profile: Cow<'static, str>,
    /// Congestion control of the sending host.
    pub cc: Cow<'static, str>,
    /// Payload bytes read by the receiving application.
    pub bytes: u64,
    /// Has the transfer completed?
    pub finished: bool,
    /// From the first SYN to the last byte read, or to the end of the run.
    pub duration_s: f64,
    /// Payload read per second, in bit/s.
    pub goodput_bps: f64,
    /// Data packets retransmitted.
    pub retransmitted_segments: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Retransmission timeouts.
    pub rtos: u64,
    /// Recoveries and timeouts that proved spurious and were undone.
    pub spurious_recoveries: u64,
    /// Largest congestion window.
    pub max_cwnd_bytes: u64,
    /// Payload of a full segment.
    pub mss_bytes: u64,
    /// Smallest round-trip sample of the sender; `None` without a sample.
    pub min_rtt_s: Option<f64>,
    /// Response times of requests or delays of frames; omitted for a flow without either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyReport>,
    /// One-way delays of data packets; omitted where they are not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWayReport>,
    /// What the player of a video did; omitted for other applications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoReport>,
    /// Datagrams; omitted for a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramReport>,
    /// The connections of a group, of which the other figures are the sums, the largest window and
    /// the shortest round trip; omitted for a single connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupReport>,
}

/// Datagrams of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatagramReport {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived, or whose replies did, each once.
    pub received: u64,
}

/// Response times, from the write of the request to the last byte of the response read, or delays of
/// frames, the chunks of a paced application, from when they were due to their last byte read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// `frames` for delays of frames, `pages` for times to load a web page, `pings` for round trips of echo requests, `datagrams` for
    /// one-way delays; omitted for response times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Completed requests or pages, or frames or datagrams that arrived.
    pub requests: u64,
    /// The shortest.
    pub min_s: f64,
    /// The median; of an even number, the lower of the two middle values.
    pub median_s: f64,
    /// The time that 95 of 100 do not exceed; `None` if it is not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_s: Option<f64>,
    /// The time that 99 of 100 do not exceed; `None` if it is not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: f64,
}

impl From<&sim::Latency> for LatencyReport {
    fn from(latency: &sim::Latency) -> Self {
        let of = match latency.kind {
            LatencyKind::Requests => None,
            LatencyKind::Frames => Some("frames".to_owned()),
            LatencyKind::Pages => Some("pages".to_owned()),
            LatencyKind::Pings => Some("pings".to_owned()),
            LatencyKind::Datagrams => Some("datagrams".to_owned()),
        };
        Self {
            of,
            requests: latency.requests,
            min_s: latency.min.as_secs_f64(),
            median_s: latency.median.as_secs_f64(),
            p95_s: latency.p95.map(Duration::as_secs_f64),
            p99_s: latency.p99.map(Duration::as_secs_f64),
            max_s: latency.max.as_secs_f64(),
        }
    }
}

impl RunReport {
    /// The report of a run of `loaded`.
    pub fn new(loaded: &Loaded, outcome: &RunOutcome) -> Self {
        let (_, outcome) = &grouped(&loaded.scenario, outcome);
        Self {
            format: FORMAT,
            ackclock: env!("CARGO_PKG_VERSION"),
            model: crate::MODEL,
            title: loaded.scenario.title.clone(),
            seed: loaded.scenario.seed,
            scenario_sha256: loaded.sha256.clone(),
            segments_simulated: outcome.segments,
            ended_s: outcome.ended.as_secs_f64(),
            flows: outcome.flows.iter().map(FlowReport::new).collect(),
            sharing: SharingReport::default(),
            by_second: None,
        }
    }

    /// Adds the fairness and link statistics.
    #[must_use]
    pub fn with(mut self, seen: &Sharing, loaded: &Loaded, outcome: &RunOutcome) -> Self {
        self.sharing = seen.report(&loaded.scenario, outcome);
        self.by_second = seen.seconds(&loaded.scenario, outcome);
        for (flow, one_way) in self.flows.iter_mut().zip(seen.one_way()) {
            flow.one_way = one_way;
        }
        self
    }

    /// The report as JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        json + "\n"
    }
}

impl FlowReport {
    /// The report of a flow's outcome.
    pub fn new(flow: &FlowOutcome) -> Self {
        Self {
            name: flow.name.clone(),
            profile: flow.profile.into(),
            cc: flow.cc.clone(),
            bytes: flow.bytes.get(),
            finished: flow.finished,
            duration_s: flow.duration.as_secs_f64(),
            goodput_bps: flow.goodput_bps(),
            retransmitted_segments: flow.retransmitted_segments,
            fast_recoveries: flow.fast_recoveries,
            rtos: flow.rtos,
            spurious_recoveries: flow.spurious_recoveries,
            max_cwnd_bytes: flow.max_cwnd.get(),
            mss_bytes: flow.mss.get(),
            min_rtt_s: flow.min_rtt.map(Duration::as_secs_f64),
            latency: flow.latency.as_ref().map(LatencyReport::from),
            one_way: None,
            video: flow.video.as_deref().map(VideoReport::from),
            datagrams: flow
                .datagrams
                .map(|counts| DatagramReport { sent: counts.sent, received: counts.received }),
            group: flow.group.as_deref().map(GroupReport::from),
        }
    }
}

const HEADINGS: [&str; 11] = [
    "flow",
    "profile",
    "cc",
    "read",
    "in",
    "goodput",
    "retrans",
    "recoveries",
    "timeouts",
    "max cwnd",
    "min RTT",
];

/// The result as a table, one row per flow, with a line about the run above it.
pub fn table(loaded: &Loaded, outcome: &RunOutcome) -> String {
    let title = match loaded.scenario.title.as_str() {
        "" => String::new(),
        title => format!("{title}\n"),
    };
    let (_, outcome) = &grouped(&loaded.scenario, outcome);
    let mut rows = vec![headings()];
    rows.extend(outcome.flows.iter().map(|flow| flow_row(&flow.name, &FlowReport::new(flow))));
    format!(
        "{title}seed {}, {} data segments in {} s of virtual time\n\n{}{}{}{}",
        loaded.scenario.seed,
        outcome.segments,
        seconds(Duration::from_nanos(outcome.ended.as_nanos())),
        aligned(&rows),
        completions(outcome),
        latencies(outcome),
        videos(outcome)
    )
}

/// Headings of [`flow_row`].
pub fn headings() -> Vec<String> {
    HEADINGS.map(str::to_owned).to_vec()
}

/// A row of the table from a flow's report, with another name.
pub fn flow_row(name: &str, flow: &FlowReport) -> Vec<String> {
    let span = |seconds: f64| Duration::from_nanos((seconds * 1e9 + 0.5) as u64);
    let unfinished = if flow.finished { "" } else { " (unfinished)" };
    let undone = match flow.spurious_recoveries {
        0 => String::new(),
        n => format!(" ({n} undone)"),
    };
    vec![
        name.to_owned(),
        flow.profile.to_string(),
        flow.cc.to_string(),
        Bytes(flow.bytes).to_string(),
        format!("{} s{unfinished}", seconds(span(flow.duration_s))),
        format!("{:.2} Mbit/s", flow.goodput_bps / 1e6),
        flow.retransmitted_segments.to_string(),
        format!("{}{undone}", flow.fast_recoveries),
        flow.rtos.to_string(),
        window(Bytes(flow.max_cwnd_bytes), Bytes(flow.mss_bytes)),
        flow.min_rtt_s.map_or_else(|| "unknown".to_owned(), |rtt| spaced(span(rtt))),
    ]
}

/// Formats a duration with a space before the unit.
pub fn spaced(span: Duration) -> String {
    let text = span.to_string();
    let unit = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

/// Formats seconds, rounded to the millisecond.
fn seconds(span: Duration) -> String {
    let millis = (span.as_nanos() + 500_000) / 1_000_000;
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

/// Formats a window in bytes and in full segments.
fn window(cwnd: Bytes, mss: Bytes) -> String {
    if mss == Bytes::ZERO {
        return cwnd.to_string();
    }
    let tenths = (cwnd.get() * 20 + mss.get()) / (2 * mss.get());
    match tenths % 10 {
        0 => format!("{cwnd} ({} MSS)", tenths / 10),
        tenth => format!("{cwnd} ({}.{tenth} MSS)", tenths / 10),
    }
}

/// Columns of a terminal that tables fit.
pub const TABLE_WIDTH: usize = 100;

/// Widest first column of a table that would be too wide otherwise.
const WIDEST_FIRST: usize = 44;

/// Rows as aligned columns, separated by two spaces. In a table wider than [`TABLE_WIDTH`] long
/// texts of the first column are wrapped; if it is still too wide, it continues below itself, after
/// an empty line, with its first column repeated.
pub fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or_default();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.as_ref().get(column));
    let width = |column: usize| cells(column).map(|cell| cell.chars().count()).max();
    let mut widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let first = |row: &R| -> Vec<String> {
        row.as_ref().first().map_or_else(Vec::new, |cell| wrapped(cell, WIDEST_FIRST))
    };
    let wraps = span(&widths) > TABLE_WIDTH;
    if wraps && columns > 1 {
        let lines = rows.iter().flat_map(first).map(|line| line.chars().count());
        widths[0] = lines.max().unwrap_or_default();
    }
    let block = |columns: &[usize]| -> String {
        let line = |row: &R| {
            let (head, below) = match first(row).split_first() {
                Some((head, below)) if wraps && widths.len() > 1 => (head.clone(), below.to_vec()),
                _ => (row.as_ref().first().cloned().unwrap_or_default(), Vec::new()),
            };
            let cells = columns.iter().filter_map(|&column| {
                let cell = if column == 0 { &head } else { row.as_ref().get(column)? };
                Some(format!("{cell:0$}", widths[column]))
            });
            let line = cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n";
            below.iter().fold(line, |text, more| text + more + "\n")
        };
        rows.iter().map(line).collect()
    };
    let blocks = folded(&widths);
    blocks.iter().map(|columns| block(columns)).collect::<Vec<_>>().join("\n")
}

/// Width of columns of these widths; columns without text need none.
fn span(widths: &[usize]) -> usize {
    widths
        .iter()
        .filter(|width| **width > 0)
        .map(|width| width + 2)
        .sum::<usize>()
        .saturating_sub(2)
}

/// Lines of at most `width` characters, broken after a space or a comma. A longer word has a line
/// of its own; indentation stays, also on the lines that follow.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let body = text.trim_start();
    let indent = &text[..text.len() - body.len()];
    let mut lines = vec![indent.to_owned()];
    for word in body.split_inclusive([' ', ',']) {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        if line > indent.len() && line + word.trim_end().chars().count() > width {
            lines.push(indent.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The columns of each block of a table. Blocks have about the same number of columns, and all
/// begin with the first.
fn folded(widths: &[usize]) -> Vec<Vec<usize>> {
    let span =
        |columns: &[usize]| span(&columns.iter().map(|&column| widths[column]).collect::<Vec<_>>());
    let all: Vec<usize> =
        (0..widths.len()).filter(|&column| column == 0 || widths[column] > 0).collect();
    let others = all.get(1..).unwrap_or_default();
    let split = |blocks: usize| -> Vec<Vec<usize>> {
        let parts = others.chunks(others.len().div_ceil(blocks));
        parts.map(|part| [&all[..1], part].concat()).collect()
    };
    if span(&all) <= TABLE_WIDTH || others.is_empty() {
        return vec![all];
    }
    let fits = |blocks: &Vec<Vec<usize>>| blocks.iter().all(|block| span(block) <= TABLE_WIDTH);
    (2..=others.len()).map(split).find(fits).unwrap_or_else(|| split(others.len()))
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;
    use scenario::{Overrides, load};

    const SCENARIO: &str = r#"
title = "two hosts"
seed = 7
host.a = { profile = "freebsd-13.2" }
host.b = { profile = "linux-6.18", cc = "reno" }
path = [ { from = "a", to = "b", forward = [], return = [] } ]
flow = [ { name = "bulk", from = "a", to = "b", bulk = "1MB" } ]
"#;

    fn outcome() -> RunOutcome {
        RunOutcome {
            flows: vec![FlowOutcome {
                name: "bulk".into(),
                profile: "freebsd-13.2",
                cc: "newreno".into(),
                bytes: Bytes(1_000_000),
                finished: true,
                duration: Duration::from_millis(1_600),
                retransmitted_segments: 3,
                fast_recoveries: 2,
                rtos: 1,
                spurious_recoveries: 1,
                max_cwnd: Bytes(15_928),
                mss: Bytes(1_448),
                min_rtt: Some(Duration::from_micros(100_250)),
                latency: None,
                video: None,
                datagrams: None,
                group: None,
                received_packet_bytes: None,
            }],
            group_latencies: Vec::new(),
            segments: 694,
            ended: Instant::from_nanos(1_700_400_000),
        }
    }

    #[test]
    fn every_number_of_the_table_has_its_unit() {
        let loaded = load(SCENARIO, "two.toml", &Overrides::default()).unwrap();
        // 8,000,000 bits in 1.6 s are 5 Mbit/s; 15,928 = 11 * 1,448.
        let expected = "\
two hosts
seed 7, 694 data segments in 1.700 s of virtual time

flow  profile       cc       read       in       goodput
bulk  freebsd-13.2  newreno  1000000 B  1.600 s  5.00 Mbit/s

flow  retrans  recoveries    timeouts  max cwnd          min RTT
bulk  3        2 (1 undone)  1         15928 B (11 MSS)  100.25 ms
";
        assert_eq!(table(&loaded, &outcome()), expected);
    }

    #[test]
    fn requests_have_a_table_of_response_times() {
        let loaded = load(SCENARIO, "two.toml", &Overrides::default()).unwrap();
        let mut outcome = outcome();
        let ms = Duration::from_millis;
        outcome.flows[0].latency = Some(sim::Latency {
            kind: LatencyKind::Requests,
            requests: 50,
            min: ms(20),
            median: ms(21),
            p95: Some(ms(48)),
            p99: None,
            max: ms(90),
        });
        let expected = "
flow  requests  response p50  p95    p99  max
bulk  50        21 ms         48 ms  –    90 ms
";
        assert!(table(&loaded, &outcome).ends_with(expected), "{}", table(&loaded, &outcome));
    }

    #[test]
    fn an_unfinished_flow_says_so() {
        let loaded = load(SCENARIO, "two.toml", &Overrides::default()).unwrap();
        let mut outcome = outcome();
        outcome.flows[0].finished = false;
        outcome.flows[0].min_rtt = None;
        outcome.flows[0].max_cwnd = Bytes(2_172);
        let table = table(&loaded, &outcome);
        assert!(table.contains("1.600 s (unfinished)"), "{table}");
        assert!(table.ends_with("2172 B (1.5 MSS)  unknown\n"), "{table}");
    }

    #[test]
    fn a_wide_table_continues_below_itself() {
        let cells = |n: usize, width: usize| vec!["x".repeat(width); n];
        // 10 columns of 8 and their gaps are 98 wide.
        assert_eq!(aligned(&[cells(10, 8)]).lines().count(), 1);
        // 11 are 108 wide: the first, and five of the other ten in each block.
        let row = ["xxxxxxxx"; 6].join("  ");
        assert_eq!(aligned(&[cells(11, 8)]), format!("{row}\n\n{row}\n"));
        assert_eq!(aligned(&[cells(1, 200)]), "x".repeat(200) + "\n");
        assert_eq!(aligned(&[cells(2, 90)]).lines().count(), 1);
        let row =
            ["  a sender with a setting of a rather long name, and more", "1", "", &"x".repeat(50)];
        let wrapped = "  a sender with a setting of a rather long  1  ".to_owned()
            + &"x".repeat(50)
            + "\n  name, and more\n";
        assert_eq!(aligned(&[row.map(str::to_owned)]), wrapped);
        for width in 1..40 {
            let text = aligned(&[cells(25, width)]);
            assert!(text.lines().all(|line| line.len() <= TABLE_WIDTH), "{text}");
        }
        assert_eq!(aligned::<Vec<String>>(&[]), "");
    }

    #[test]
    fn the_json_has_the_documented_fields() {
        let loaded = load(SCENARIO, "two.toml", &Overrides::default()).unwrap();
        let json = RunReport::new(&loaded, &outcome()).to_json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["seed"], 7);
        assert_eq!(json["scenario_sha256"], loaded.sha256);
        assert_eq!(json["segments_simulated"], 694);
        let flow = &json["flows"][0];
        assert_eq!(flow["name"], "bulk");
        assert_eq!(flow["profile"], "freebsd-13.2");
        assert_eq!(flow["cc"], "newreno");
        assert_eq!(flow["bytes"], 1_000_000);
        assert_eq!(flow["duration_s"], 1.6);
        assert_eq!(flow["goodput_bps"], 5_000_000.0);
        assert_eq!(flow["retransmitted_segments"], 3);
        assert_eq!(flow["fast_recoveries"], 2);
        assert_eq!(flow["rtos"], 1);
        assert_eq!(flow["spurious_recoveries"], 1);
        assert_eq!(flow["max_cwnd_bytes"], 15_928);
        assert_eq!(flow["min_rtt_s"], 0.10025);
    }
}
