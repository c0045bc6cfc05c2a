//! The answer as a page for a browser: recorded and simulated figures, with their curves.

use report::page::{Page, PagePart};
use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
use report::table::{ReportTable, TableCell, TableColumn, Tone};

use super::{MAX_MISFIT, TransferProgress, WhatIf};

/// Most points of a recorded curve; every n-th of more is drawn.
const MAX_POINTS: usize = 2_000;
/// A difference of the time that is marked.
const NOTABLE: f64 = 0.01;
/// Alternatives beyond this number are listed, and their curves hidden at first.
const SHOWN: usize = 6;

impl WhatIf {
    /// The page; `file` is the recording.
    pub fn page(&self, file: &str) -> Page {
        let mut parts = vec![
            PagePart::Verdict(self.verdict()),
            PagePart::Heading("The same transfer simulated".to_owned()),
            PagePart::Table(self.candidates_table()),
        ];
        if !self.licensed {
            parts.push(PagePart::Text(format!(
                "The first of them does not match the recorded transfer within {:.0} %: predictions for this path \
                 are unreliable.",
                MAX_MISFIT * 100.0
            )));
        }
        let of_senders = self.senders.iter().map(|one| (one.sender.as_str(), &one.progress));
        parts.extend(self.plots("recorded-and-simulated", &of_senders.collect::<Vec<_>>()));
        if !self.alternatives.is_empty() {
            parts.push(PagePart::Heading("What if".to_owned()));
            parts.push(PagePart::Table(self.alternatives_table()));
            let best = self.senders.iter().take(1);
            let curves = best.map(|one| (one.sender.as_str(), &one.progress));
            let others = self.alternatives.iter().map(|one| (one.what.as_str(), &one.progress));
            parts.extend(self.plots("what-if", &curves.chain(others).collect::<Vec<_>>()));
        }
        parts.push(PagePart::Heading("Fitted path and hosts".to_owned()));
        parts.push(PagePart::Table(self.fitted_table()));
        Page {
            title: format!("What if: {file}"),
            lead: "A path was fitted to the recording. The recorded sender is simulated on it first, to show how well \
                   the fit matches; then other senders and other paths."
                .to_owned(),
            facts: vec![("recording".to_owned(), file.to_owned())],
            maker: format!("Ackclock {}", self.ackclock),
            parts,
        }
    }

    fn candidates_table(&self) -> ReportTable {
        let words = ["sender", "windows"].map(TableColumn::words);
        let numbers =
            ["time in s", "goodput in Mbit/s", "against recorded in %", "timing error in %"];
        let row = |one: &super::Candidate| {
            let ratio = (one.course.goodput_bps / self.recorded.goodput_bps - 1.0) * 100.0;
            let tone = if one.misfit <= MAX_MISFIT { Tone::Good } else { Tone::Bad };
            vec![
                TableCell::from(one.sender.as_str()),
                TableCell::from(if one.shown_by_windows { "as recorded" } else { "" }),
                TableCell::from(format!("{:.3}", one.course.time_s)),
                TableCell::from(format!("{:.2}", one.course.goodput_bps / 1e6)),
                TableCell::from(format!("{ratio:+.1}")),
                TableCell::from(format!("{:.1}", one.misfit * 100.0)).tone(tone),
            ]
        };
        ReportTable {
            columns: words.into_iter().chain(numbers.map(TableColumn::numbers)).collect(),
            rows: self.senders.iter().map(row).collect(),
            note: "The timing error is the mean difference of the times at which the same bytes were delivered, in % \
                   of the whole time."
                .to_owned(),
            ..ReportTable::default()
        }
    }

    fn alternatives_table(&self) -> ReportTable {
        let numbers = [
            "time in s",
            "goodput in Mbit/s",
            "shortest in s",
            "longest in s",
            "runs",
            "relative time",
        ];
        let columns = [TableColumn::words("sender and changes")].into_iter();
        let row = |one: &super::Alternative| {
            let tone = if one.spread_s.1 < self.recorded.time_s * (1.0 - NOTABLE) {
                Tone::Good
            } else if one.spread_s.0 > self.recorded.time_s * (1.0 + NOTABLE) {
                Tone::Bad
            } else {
                Tone::Plain
            };
            vec![
                TableCell::from(one.what.as_str()),
                TableCell::from(format!("{:.3}", one.course.time_s)).tone(tone),
                TableCell::from(format!("{:.2}", one.course.goodput_bps / 1e6)),
                TableCell::from(format!("{:.3}", one.spread_s.0)),
                TableCell::from(format!("{:.3}", one.spread_s.1)),
                TableCell::from(one.runs.to_string()),
                TableCell::from(format!("{:.2}", one.time_ratio)),
            ]
        };
        ReportTable {
            columns: columns.chain(numbers.map(TableColumn::numbers)).collect(),
            rows: self.alternatives.iter().map(row).collect(),
            note: "The median run. Marked as good: all runs are shorter than the recorded transfer by 1 %; as bad: all are \
                   longer. The relative time is that of the first simulated sender."
                .to_owned(),
            ..ReportTable::default()
        }
    }

    fn fitted_table(&self) -> ReportTable {
        let row = |one: &super::FittedValue| {
            vec![TableCell::from(one.what), TableCell::from(one.why.as_str())]
        };
        ReportTable {
            columns: ["value", "evidence"].map(TableColumn::words).to_vec(),
            rows: self.fitted.iter().map(row).collect(),
            ..ReportTable::default()
        }
    }

    /// The recorded curves with those of simulated transfers: bytes over time, and windows over bytes.
    fn plots(&self, id: &str, simulated: &[(&str, &TransferProgress)]) -> Vec<PagePart> {
        let series = |of: &dyn Fn(&TransferProgress) -> &[(u64, u64)]| {
            let recorded = ("recorded", SeriesRole::Nth(0), true, &self.recorded_progress);
            let others = simulated.iter().enumerate().map(|(number, (name, progress))| {
                (*name, SeriesRole::Nth(number as u8 + 1), number < SHOWN, *progress)
            });
            let all = core::iter::once(recorded).chain(others);
            let all = all.filter(|(.., progress)| !of(progress).is_empty());
            let one = |(name, role, is_shown, progress): (&str, SeriesRole, bool, _)| PlotSeries {
                is_shown,
                ..PlotSeries::new(name, role, SeriesMark::Line).with_points(points(of(progress)))
            };
            all.map(one).collect::<Vec<_>>()
        };
        let mut parts = vec![PagePart::Plots(Plots {
            id: id.to_owned(),
            title: "Bytes delivered".to_owned(),
            x: PlotAxis::new("time", "s", 9),
            panels: vec![
                PlotPanel::new(
                    PlotAxis::new("bytes delivered", "B", 0),
                    series(&|progress| &progress.delivered),
                )
                .height(320),
            ],
        })];
        let windows = series(&|progress| &progress.windows);
        if !windows.is_empty() {
            parts.push(PagePart::Plots(Plots {
                id: format!("{id}-windows"),
                title: "Congestion windows".to_owned(),
                x: PlotAxis::new("bytes delivered", "B", 0),
                panels: vec![
                    PlotPanel::new(PlotAxis::new("congestion window", "B", 0), windows)
                        .note("Simulated windows are those at fifty points of the transfer."),
                ],
            }));
        }
        parts
    }
}

/// Points of a curve, thinned, with its last one.
fn points(curve: &[(u64, u64)]) -> impl Iterator<Item = (i64, i64)> {
    let step = curve.len().div_ceil(MAX_POINTS).max(1);
    let last = curve.last().filter(|_| !(curve.len() - 1).is_multiple_of(step));
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    curve.iter().step_by(step).chain(last).map(move |&(x, y)| (number(x), number(y)))
}
