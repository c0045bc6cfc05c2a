//! Tables of flows.

use report::page::PagePart;
use report::table::{ReportTable, TableCell, TableColumn, Tone};
use sim::{FlowOutcome, LatencyKind, RunOutcome};
use units::Duration;

use super::flow::FlowData;
use runner::run_report::{
    FlowReport, LATENCIES, completion_rows, flow_row, headings, latency_rows, spaced, video_rows,
};
use runner::sharing::OneWayReport;

/// Limit of the shown rounds.
const ROUNDS: usize = 500;

/// All flows, as `ackclock run` prints them.
pub(super) fn summary(outcome: &RunOutcome) -> PagePart {
    let is_number = |name: &str| !matches!(name, "flow" | "profile" | "cc");
    let column = |name: String| TableColumn { is_number: is_number(&name), name };
    let row = |flow: &FlowOutcome| flow_row(&flow.name, &FlowReport::new(flow));
    PagePart::Table(ReportTable {
        caption: "Results".into(),
        columns: headings().into_iter().map(column).collect(),
        rows: outcome
            .flows
            .iter()
            .map(|flow| row(flow).into_iter().map(TableCell::from).collect())
            .collect(),
        note: format!(
            "{} data segments in {} of virtual time.",
            outcome.segments,
            spaced(Duration::from_nanos(outcome.ended.as_nanos()))
        ),
        ..ReportTable::default()
    })
}

/// The completion times of groups of connections; nothing without groups.
pub(super) fn completions(outcome: &RunOutcome) -> Option<PagePart> {
    let rows = completion_rows(outcome);
    let (head, rows) = rows.split_first().filter(|(_, rows)| !rows.is_empty())?;
    Some(PagePart::Table(ReportTable {
        caption: "Completion times".into(),
        columns: named(head),
        rows: rows.iter().map(|row| row.clone().map(TableCell::from).into()).collect(),
        note:
            "From the first SYN to the last byte read. Slowdowns are these times over those of an \
               empty path: a round trip, then the transfer at the rate of the slowest link."
                .into(),
        is_long: rows.len() > 16,
        ..ReportTable::default()
    }))
}

/// The response times of requests and the delays of frames, a table each.
pub(super) fn latencies(outcome: &RunOutcome) -> impl Iterator<Item = PagePart> {
    LATENCIES.into_iter().filter_map(|kind| {
        let (caption, note) = match kind {
            LatencyKind::Requests => {
                ("Response times", "From the write of a request to the last byte of its response.")
            }
            LatencyKind::Pages => (
                "Page loads",
                "To the last byte of the last object: the first page of a client from its SYN, others \
                 from the request of the document.",
            ),
            LatencyKind::Frames => {
                ("Frame delays", "From the time at which a chunk was due to its last byte read.")
            }
            LatencyKind::Pings => ("Pings", "Round trips of echo requests."),
            LatencyKind::Datagrams => ("Datagrams", "One-way delays from source to receiver."),
        };
        let rows = latency_rows(outcome, kind);
        let (head, rows) = rows.split_first().filter(|(_, rows)| !rows.is_empty())?;
        Some(PagePart::Table(ReportTable {
            caption: caption.into(),
            columns: named(head),
            rows: rows.iter().map(|row| row.clone().map(TableCell::from).into()).collect(),
            note: note.into(),
            is_long: rows.len() > 16,
            ..ReportTable::default()
        }))
    })
}

/// What the players of videos did; nothing without a video.
pub(super) fn videos(outcome: &RunOutcome) -> Option<PagePart> {
    let rows = video_rows(outcome);
    let (head, rows) = rows.split_first().filter(|(_, rows)| !rows.is_empty())?;
    Some(PagePart::Table(ReportTable {
        caption: "Videos".into(),
        columns: named(head),
        rows: rows.iter().map(|row| row.clone().map(TableCell::from).into()).collect(),
        note: "The bit rate is the mean of the chunks that arrived. A stall begins when the buffer is \
               empty, and ends with the next chunk. The startup time is that from the first SYN to the \
               start of playback, of several players the median."
            .into(),
        is_long: rows.len() > 16,
        ..ReportTable::default()
    }))
}

/// The one-way delays of data packets; nothing if none were measured.
pub(super) fn one_way(delays: &[Option<OneWayReport>], outcome: &RunOutcome) -> Option<PagePart> {
    let short = |seconds: f64| spaced(Duration::from_micros((seconds * 1e6 + 0.5) as u64));
    let measured = outcome.flows.iter().zip(delays);
    let rows: Vec<Vec<TableCell>> = measured
        .filter_map(|(flow, delays)| {
            let d = delays.as_ref()?;
            let times = [d.min_s, d.median_s, d.p95_s, d.p99_s, d.max_s, d.jitter_s].map(short);
            let head = [flow.name.clone(), d.packets.to_string()];
            Some(head.into_iter().chain(times).map(TableCell::from).collect())
        })
        .collect();
    let columns = ["flow", "packets", "min", "p50", "p95", "p99", "max", "jitter"];
    (!rows.is_empty()).then(|| {
        PagePart::Table(ReportTable {
            caption: "One-way delays of data packets".into(),
            columns: named(&columns.map(str::to_owned)),
            is_long: rows.len() > 16,
            rows,
            note: "From the network card of the sender to that of the receiver. The jitter is that of \
                   RFC 3550, section 6.4.1, after the last packet."
                .into(),
            ..ReportTable::default()
        })
    })
}

/// Columns with these names, numbers but for the flow.
fn named(names: &[String]) -> Vec<TableColumn> {
    let column = |name: &String| match name.as_str() {
        "flow" => TableColumn::words(name),
        _ => TableColumn::numbers(name),
    };
    names.iter().map(column).collect()
}

/// The figures of a single flow as large figures.
pub(super) fn figures(flow: &FlowOutcome) -> PagePart {
    let known: Vec<(String, String)> =
        headings().into_iter().zip(flow_row(&flow.name, &FlowReport::new(flow))).collect();
    let wanted = ["goodput", "in", "retrans", "recoveries", "timeouts", "min RTT"];
    let found = wanted.into_iter().filter_map(|name| {
        let (_, value) = known.iter().find(|(known, _)| known == name)?;
        let name = if name == "in" { "time" } else { name };
        Some((name.to_owned(), value.clone()))
    });
    PagePart::Figures(found.collect())
}

/// Seconds to the microsecond.
fn seconds(nanos: i64) -> String {
    let micros = nanos / 1_000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Milliseconds to the microsecond.
fn millis(nanos: i64) -> String {
    let micros = nanos / 1_000;
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}

/// Full segments, to the tenth.
fn in_segments(bytes: i64, mss: i64) -> String {
    let tenths = (bytes * 20 + mss.max(1)) / (2 * mss.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The rounds.
pub(super) fn rounds(data: &FlowData, plots: &str) -> ReportTable {
    let names = [
        "began, s",
        "took, ms",
        "cwnd, B",
        "cwnd, MSS",
        "most in flight, B",
        "sent, B",
        "retransmitted, B",
        "acked, B",
        "ACKs",
        "RTT, ms",
    ];
    let mut columns = vec![TableColumn::numbers("round")];
    columns.extend(names.map(TableColumn::numbers));
    let rows = data.rounds.iter().take(ROUNDS).enumerate().map(|(number, round)| {
        let tone = if round.retransmitted > 0 { Tone::Bad } else { Tone::Quiet };
        let rtt = match (round.min_rtt, round.max_rtt) {
            (Some(least), Some(most)) if least == most => millis(least),
            (Some(least), Some(most)) => format!("{} to {}", millis(least), millis(most)),
            _ => "–".to_owned(),
        };
        vec![
            TableCell::from((number + 1).to_string()).leads_to(round.from, round.to),
            seconds(round.from).into(),
            millis(round.to - round.from).into(),
            round.cwnd.to_string().into(),
            in_segments(round.cwnd, data.mss).into(),
            round.flight.to_string().into(),
            round.sent.to_string().into(),
            TableCell::from(round.retransmitted.to_string()).tone(tone),
            round.acked.to_string().into(),
            round.acks.to_string().into(),
            rtt.into(),
        ]
    });
    let all = data.rounds.len() as u64 + data.rounds_left;
    let shown = all.min(ROUNDS as u64);
    let rest = if all > shown {
        format!(" The first {shown} of {all} rounds are shown.")
    } else {
        String::new()
    };
    ReportTable {
        caption: "Round by round".into(),
        columns,
        rows: rows.collect(),
        note: format!(
            "A round ends when more is acknowledged than was in flight at its start \
             (RFC 9406, 4.2). Its number leads to it in the plots.{rest}"
        ),
        plots: plots.into(),
        is_long: true,
        is_searchable: false,
    }
}

/// The notable events.
pub(super) fn events(data: &FlowData, plots: &str) -> ReportTable {
    let around = data.rounds.first().map_or(100_000_000, |round| (round.to - round.from).max(1));
    let notes = &data.series.notes;
    let rows = notes.iter().map(|note| {
        let from = (note.at - around).max(0);
        vec![
            TableCell::from(seconds(note.at)).leads_to(from, note.at + 2 * around),
            TableCell::from(note.what).tone(if note.is_bad { Tone::Bad } else { Tone::Plain }),
            note.cwnd.to_string().into(),
            in_segments(note.cwnd, data.mss).into(),
            note.ssthresh.map_or_else(|| "–".to_owned(), |bytes| bytes.to_string()).into(),
            note.flight.to_string().into(),
        ]
    });
    let left = data.series.notes_left;
    ReportTable {
        caption: "Events".into(),
        columns: vec![
            TableColumn::numbers("at, s"),
            TableColumn::words("what"),
            TableColumn::numbers("cwnd after, B"),
            TableColumn::numbers("cwnd after, MSS"),
            TableColumn::numbers("ssthresh, B"),
            TableColumn::numbers("in flight, B"),
        ],
        rows: rows.collect(),
        note: match left {
            0 => String::new(),
            left => format!("{left} more are not shown."),
        },
        plots: plots.into(),
        is_long: notes.len() > 12,
        is_searchable: false,
    }
}
