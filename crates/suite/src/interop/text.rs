//! A report as text for a terminal.

use core::fmt::Write as _;

use super::{InteropFigure, InteropReport};
use crate::text::number;

/// A figure with its interval, if that is not 0.
pub(super) fn figure(figure: InteropFigure) -> String {
    match figure.confidence.filter(|half| *half >= 0.005) {
        Some(half) => format!("{} +- {}", number(figure.mean), number(half)),
        None => number(figure.mean),
    }
}

/// The conditions of the runs in one sentence.
pub(super) fn conditions(report: &InteropReport) -> String {
    format!(
        "Measured from {} s to {} s of virtual time, {} seeds; +- half of the 95 % confidence interval",
        number(report.measured_from_s),
        number(report.length_s),
        report.phases
    )
}

/// A part of a report: the title of a matrix and its cells, by row and column; empty where there is no figure.
pub(super) type Matrix<'a> = (&'a str, Box<dyn Fn(usize, usize) -> Option<InteropFigure> + 'a>);

/// All matrices.
pub(super) fn matrices(report: &InteropReport) -> [Matrix<'_>; 4] {
    [
        (
            "Goodput in Mbit/s, alone on the path: senders by row, receivers by column",
            Box::new(|row, column| report.transfer(row, column)?.goodput_mbps),
        ),
        (
            "Retransmissions in % of the data packets, alone on the path",
            Box::new(|row, column| report.transfer(row, column)?.retransmitted_percent),
        ),
        (
            "Share of the stack of the row beside that of the column, in % of the goodput of both",
            Box::new(|row, column| report.share(row, column)),
        ),
        (
            "Jain's index of the two that share the path",
            Box::new(|row, column| {
                if column < row { None } else { report.pair(row, column).map(|pair| pair.jain) }
            }),
        ),
    ]
}

/// The report as text: four matrices.
pub fn render(report: &InteropReport) -> String {
    let mut text = format!("{}: {}\n{}\n", report.file, report.title, conditions(report));
    for (title, cell) in matrices(report) {
        let _ = write!(text, "\n{title}\n\n");
        let all = 0..report.stacks.len();
        let cells: Vec<Vec<String>> = all
            .clone()
            .map(|row| {
                let cells =
                    all.clone().map(|column| cell(row, column).map_or("-".to_owned(), figure));
                core::iter::once(report.stacks[row].clone()).chain(cells).collect()
            })
            .collect();
        let heads: Vec<String> =
            core::iter::once(String::new()).chain(report.stacks.iter().cloned()).collect();
        let widths: Vec<usize> = (0..heads.len())
            .map(|column| {
                let cells = cells.iter().map(|row| row[column].len());
                cells.chain([heads[column].len()]).max().unwrap_or(0)
            })
            .collect();
        for row in core::iter::once(&heads).chain(&cells) {
            let line = row.iter().zip(&widths).enumerate().fold(
                String::new(),
                |line, (at, (cell, &width))| {
                    if at == 0 {
                        format!("{cell:<width$}")
                    } else {
                        format!("{line}  {cell:>width$}")
                    }
                },
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}
