//! What is kept of flows, as tables.

use report::page::Part;
use report::table::{Cell, Column, Table, Tone};
use sim::{FlowOutcome, Outcome};
use units::Duration;

use super::flow::Kept;
use runner::run_report::{FlowReport, flow_row, headings, spaced};

/// Rounds that are shown.
const ROUNDS: usize = 500;

/// All flows, as `ackclock run` prints them.
pub(super) fn summary(outcome: &Outcome) -> Part {
    let is_number = |name: &str| !matches!(name, "flow" | "profile" | "cc");
    let column = |name: String| Column { is_number: is_number(&name), name };
    let row = |flow: &FlowOutcome| flow_row(&flow.name, &FlowReport::new(flow));
    Part::Table(Table {
        caption: "What was measured".into(),
        columns: headings().into_iter().map(column).collect(),
        rows: outcome
            .flows
            .iter()
            .map(|flow| row(flow).into_iter().map(Cell::from).collect())
            .collect(),
        note: format!(
            "{} data segments in {} of virtual time.",
            outcome.segments,
            spaced(Duration::from_nanos(outcome.ended.as_nanos()))
        ),
        ..Table::default()
    })
}

/// The figures of a single flow, in large.
pub(super) fn figures(flow: &FlowOutcome) -> Part {
    let known: Vec<(String, String)> =
        headings().into_iter().zip(flow_row(&flow.name, &FlowReport::new(flow))).collect();
    let wanted = ["goodput", "in", "resent", "recoveries", "timeouts", "min RTT"];
    let found = wanted.into_iter().filter_map(|name| {
        let (_, value) = known.iter().find(|(known, _)| known == name)?;
        let name = if name == "in" { "time" } else { name };
        Some((name.to_owned(), value.clone()))
    });
    Part::Figures(found.collect())
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

/// In full segments, to the tenth.
fn in_segments(bytes: i64, mss: i64) -> String {
    let tenths = (bytes * 20 + mss.max(1)) / (2 * mss.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Round by round.
pub(super) fn rounds(kept: &Kept, plots: &str) -> Table {
    let names = [
        "began, s",
        "took, ms",
        "cwnd, B",
        "cwnd, MSS",
        "most in flight, B",
        "sent, B",
        "sent again, B",
        "acked, B",
        "ACKs",
        "RTT, ms",
    ];
    let mut columns = vec![Column::numbers("round")];
    columns.extend(names.map(Column::numbers));
    let rows = kept.rounds.iter().take(ROUNDS).enumerate().map(|(number, round)| {
        let again = if round.again > 0 { Tone::Bad } else { Tone::Quiet };
        let rtt = match (round.min_rtt, round.max_rtt) {
            (Some(least), Some(most)) if least == most => millis(least),
            (Some(least), Some(most)) => format!("{} to {}", millis(least), millis(most)),
            _ => "–".to_owned(),
        };
        vec![
            Cell::from((number + 1).to_string()).leads_to(round.from, round.to),
            seconds(round.from).into(),
            millis(round.to - round.from).into(),
            round.cwnd.to_string().into(),
            in_segments(round.cwnd, kept.mss).into(),
            round.flight.to_string().into(),
            round.sent.to_string().into(),
            Cell::from(round.again.to_string()).tone(again),
            round.acked.to_string().into(),
            round.acks.to_string().into(),
            rtt.into(),
        ]
    });
    let all = kept.rounds.len() as u64 + kept.rounds_left;
    let shown = all.min(ROUNDS as u64);
    let rest = if all > shown {
        format!(" The first {shown} of {all} rounds are shown.")
    } else {
        String::new()
    };
    Table {
        caption: "Round by round".into(),
        columns,
        rows: rows.collect(),
        note: format!(
            "A round ends when more has been acknowledged than was under way when it began \
             (RFC 9406, 4.2). Its number leads to it in the plots.{rest}"
        ),
        plots: plots.into(),
        is_long: true,
    }
}

/// What was of note.
pub(super) fn events(kept: &Kept, plots: &str) -> Table {
    let around = kept.rounds.first().map_or(100_000_000, |round| (round.to - round.from).max(1));
    let notes = &kept.series.notes;
    let rows = notes.iter().map(|note| {
        let from = (note.at - around).max(0);
        vec![
            Cell::from(seconds(note.at)).leads_to(from, note.at + 2 * around),
            Cell::from(note.what).tone(if note.is_bad { Tone::Bad } else { Tone::Plain }),
            note.cwnd.to_string().into(),
            in_segments(note.cwnd, kept.mss).into(),
            note.ssthresh.map_or_else(|| "–".to_owned(), |bytes| bytes.to_string()).into(),
            note.flight.to_string().into(),
        ]
    });
    let left = kept.series.notes_left;
    Table {
        caption: "Events".into(),
        columns: vec![
            Column::numbers("at, s"),
            Column::words("what"),
            Column::numbers("cwnd after, B"),
            Column::numbers("cwnd after, MSS"),
            Column::numbers("ssthresh, B"),
            Column::numbers("in flight, B"),
        ],
        rows: rows.collect(),
        note: match left {
            0 => String::new(),
            left => format!("{left} more are left out."),
        },
        plots: plots.into(),
        is_long: notes.len() > 12,
    }
}
