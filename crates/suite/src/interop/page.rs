//! A report as a page for a browser.

use report::page::{Page, PagePart};
use report::table::{ReportTable, TableCell, TableColumn, Tone};

use super::text::{conditions, figure, matrices};
use super::{InteropFigure, InteropReport};

/// The page: four matrices, and the goodputs of each pair.
pub fn page(report: &InteropReport) -> Page {
    let names = || report.stacks.iter().map(String::as_str);
    let mut parts = Vec::new();
    for (number, (title, cell)) in matrices(report).into_iter().enumerate() {
        let columns =
            core::iter::once(TableColumn::words("stack")).chain(names().map(TableColumn::numbers));
        let row = |row: usize| -> Vec<TableCell> {
            let cells = (0..report.stacks.len()).map(|column| match cell(row, column) {
                Some(value) => {
                    let tone = if number == 2 { share_tone(value) } else { Tone::Plain };
                    TableCell::from(figure(value)).tone(tone)
                }
                None => TableCell::from("-").tone(Tone::Quiet),
            });
            core::iter::once(TableCell::from(report.stacks[row].as_str())).chain(cells).collect()
        };
        parts.push(PagePart::Heading(title.to_owned()));
        parts.push(PagePart::Table(ReportTable {
            columns: columns.collect(),
            rows: (0..report.stacks.len()).map(row).collect(),
            note: if number == 2 { SHARE_NOTE.to_owned() } else { String::new() },
            ..ReportTable::default()
        }));
    }
    parts.push(PagePart::Heading("Pairs that share the path".to_owned()));
    parts.push(PagePart::Table(pairs(report)));
    Page {
        title: format!("Stacks in pairs: {}", report.title),
        lead: format!("{}.", conditions(report)),
        facts: vec![
            ("scenario".to_owned(), report.file.clone()),
            ("SHA-256 of the scenario".to_owned(), report.scenario_sha256.clone()),
            ("stacks".to_owned(), report.stacks.join(", ")),
            ("seeds".to_owned(), report.phases.to_string()),
        ],
        maker: format!("Ackclock {}", report.version),
        parts,
    }
}

const SHARE_NOTE: &str = "50 is fair. Marked as good: 50 is within the confidence interval; as bad: less than half of \
                          what the other has.";

/// Emphasis of a share.
fn share_tone(share: InteropFigure) -> Tone {
    let off = (share.mean - 50.0).abs();
    if off <= share.confidence.unwrap_or(0.0) {
        Tone::Good
    } else if share.mean < 100.0 / 3.0 {
        Tone::Bad
    } else {
        Tone::Plain
    }
}

fn pairs(report: &InteropReport) -> ReportTable {
    let columns = ["first", "second"].map(TableColumn::words).into_iter();
    let numbers = [
        "first, Mbit/s",
        "second, Mbit/s",
        "first, retransmitted in %",
        "second, retransmitted in %",
        "share of the first in %",
        "Jain's index",
    ];
    ReportTable {
        columns: columns.chain(numbers.map(TableColumn::numbers)).collect(),
        rows: report
            .shared
            .iter()
            .map(|pair| {
                let [one, other] = &pair.stacks;
                let figures = pair.goodput_mbps.into_iter().chain(pair.retransmitted_percent);
                let figures = figures.chain([pair.first_share_percent, pair.jain]);
                let names = [one, other].map(|name| TableCell::from(name.as_str()));
                names
                    .into_iter()
                    .chain(figures.map(|value| TableCell::from(figure(value))))
                    .collect()
            })
            .collect(),
        is_searchable: true,
        ..ReportTable::default()
    }
}
