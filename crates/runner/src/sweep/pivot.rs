//! A table with axes along its sides and a figure in its cells.

mod lines;

use std::collections::BTreeMap;

use serde::Serialize;
use trace::svg::{HeatCell, HeatMap};

use super::Row;
use super::csv::Figure;
use super::statistics::Summary;

pub use lines::NoLines;

/// What a table is to show.
#[derive(Debug, Clone)]
pub struct Question {
    /// Keys down the side.
    pub rows: Vec<String>,
    /// Keys along the top.
    pub columns: Vec<String>,
    /// Figure in the cells.
    pub figure: Figure,
    /// Only this flow; all if `None`.
    pub flow: Option<String>,
}

/// A table of means, filled row by row.
#[derive(Debug, Clone)]
pub struct Pivot {
    question: Question,
    sides: Lines,
    tops: Lines,
    cells: Vec<Vec<Summary>>,
}

/// The values of the keys along one side, in the order in which they first appeared.
#[derive(Debug, Clone, Default)]
struct Lines {
    values: Vec<Vec<String>>,
    /// Place of each among them.
    places: BTreeMap<Vec<String>, usize>,
}

impl Lines {
    fn place(&mut self, values: Vec<String>) -> usize {
        if let Some(&known) = self.places.get(&values) {
            return known;
        }
        let place = self.values.len();
        self.values.push(values.clone());
        self.places.insert(values, place);
        place
    }
}

/// A cell for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Values of the keys down the side.
    pub row: Vec<String>,
    /// Values of the keys along the top.
    pub column: Vec<String>,
    /// Flows counted.
    pub count: u64,
    /// Their mean, in the unit of the figure's name.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval.
    pub confidence_95: Option<f64>,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Pivot {
    /// An empty table.
    pub fn new(question: Question) -> Self {
        Self { question, sides: Lines::default(), tops: Lines::default(), cells: Vec::new() }
    }

    /// Adds a run; values of keys come in the order in which they first appear.
    pub fn add(&mut self, row: &Row) {
        let side = values(&self.question.rows, row);
        let top = values(&self.question.columns, row);
        let (side, top) = (self.sides.place(side), self.tops.place(top));
        if self.cells.len() <= side {
            self.cells.resize_with(side + 1, Vec::new);
        }
        if self.cells[side].len() <= top {
            self.cells[side].resize_with(top + 1, Summary::default);
        }
        for flow in &row.flows {
            if self.question.flow.as_ref().is_none_or(|name| *name == flow.name)
                && let Some(value) = (self.question.figure.of)(row, flow)
            {
                self.cells[side][top].add(value);
            }
        }
    }

    /// All cells that hold anything.
    pub fn cells(&self) -> Vec<Cell> {
        let mut found = Vec::new();
        for (side, line) in self.sides.values.iter().zip(&self.cells) {
            for (top, cell) in self.tops.values.iter().zip(line) {
                if cell.count > 0 {
                    found.push(Cell {
                        row: side.clone(),
                        column: top.clone(),
                        count: cell.count,
                        mean: cell.mean,
                        confidence_95: cell.confidence(),
                        min: cell.min,
                        max: cell.max,
                    });
                }
            }
        }
        found
    }

    /// Does anything stand along the top?
    pub fn has_columns(&self) -> bool {
        !self.question.columns.is_empty()
    }

    /// As text, every number with its unit.
    pub fn text(&self) -> String {
        let (scale, unit) = self.unit();
        let mut head: Vec<String> = self.question.rows.clone();
        head.extend(self.tops.values.iter().map(|top| {
            let pair = |(key, value): (&String, &String)| format!("{key}={value}");
            let pairs: Vec<String> = self.question.columns.iter().zip(top).map(pair).collect();
            if pairs.is_empty() { self.question.figure.name.to_owned() } else { pairs.join(" ") }
        }));
        let mut rows = vec![head];
        for (side, line) in self.sides.values.iter().zip(&self.cells) {
            let mut cells = side.clone();
            for top in 0..self.tops.values.len() {
                let cell = line.get(top).copied().unwrap_or_default();
                cells.push(match (cell.count, cell.confidence()) {
                    (0, _) => "–".to_owned(),
                    (_, None) => format!("{}{unit}", number(cell.mean / scale)),
                    (_, Some(0.0)) => format!("{} ± 0{unit}", number(cell.mean / scale)),
                    (_, Some(half)) => {
                        let (mean, half) = (cell.mean / scale, half / scale);
                        // What the interval leaves open is not worth its digits.
                        let digits = decimals(half, 2).min(decimals(mean, 4));
                        format!("{mean:.digits$} ± {half:.digits$}{unit}")
                    }
                });
            }
            rows.push(cells);
        }
        crate::run_report::aligned(&rows)
    }

    /// As a picture: a heat map in SVG, every colour a mean.
    pub fn heat_map(&self, title: &str, subtitle: &str) -> String {
        let (scale, unit) = self.unit();
        let known = || self.cells.iter().flatten().filter(|cell| cell.count > 0);
        let least = known().map(|cell| cell.mean).fold(f64::INFINITY, f64::min);
        let most = known().map(|cell| cell.mean).fold(f64::NEG_INFINITY, f64::max);
        let cell = |cell: Summary| {
            let part = if most > least { (cell.mean - least) / (most - least) } else { 0.5 };
            let digits = decimals(cell.mean / scale, 4);
            HeatCell {
                text: format!("{:.digits$}", cell.mean / scale),
                half: cell.confidence().map_or_else(String::new, |half| {
                    let digits = decimals(half / scale, 2).min(digits);
                    format!("± {:.digits$}", half / scale)
                }),
                part: (part * 1_000.0) as u16,
            }
        };
        let cells = self.cells.iter().flat_map(|line| {
            (0..self.tops.values.len())
                .map(|top| line.get(top).copied().filter(|found| found.count > 0).map(cell))
        });
        let end = |value: f64| match value.is_finite() {
            true => format!("{}{unit}", number(value / scale)),
            false => String::new(),
        };
        let figure = self.question.figure.short().replace('_', " ");
        let subtitle = format!("{figure}{unit}, mean of each cell; {subtitle}");
        let map = HeatMap {
            title,
            subtitle: &subtitle,
            sides: [&self.question.rows.join(", "), &self.question.columns.join(", ")],
            rows: self.sides.values.iter().map(|side| side.join(", ")).collect(),
            columns: self.tops.values.iter().map(|top| top.join(", ")).collect(),
            cells: cells.collect(),
            ends: [end(least), end(most)],
        };
        let mut svg = Vec::new();
        // Writing into memory does not fail.
        let written = map.write(&mut svg);
        debug_assert!(written.is_ok());
        String::from_utf8_lossy(&svg).into_owned()
    }

    /// What numbers are divided by for people, and the unit they then have.
    fn unit(&self) -> (f64, &'static str) {
        let largest = self.cells.iter().flatten().fold(0.0_f64, |most, cell| most.max(cell.max));
        match self.question.figure.name {
            name if name.ends_with("_bps") => match largest {
                most if most >= 1e9 => (1e9, " Gbit/s"),
                most if most >= 1e6 => (1e6, " Mbit/s"),
                most if most >= 1e3 => (1e3, " kbit/s"),
                _ => (1.0, " bit/s"),
            },
            name if name.ends_with("_s") => match largest {
                most if most >= 1.0 => (1.0, " s"),
                most if most >= 1e-3 => (1e-3, " ms"),
                _ => (1e-6, " us"),
            },
            name if name.ends_with("bytes") => match largest {
                most if most >= 1e9 => (1e9, " GB"),
                most if most >= 1e6 => (1e6, " MB"),
                most if most >= 1e3 => (1e3, " kB"),
                _ => (1.0, " B"),
            },
            _ => (1.0, ""),
        }
    }
}

fn values(keys: &[String], row: &Row) -> Vec<String> {
    let value = |key: &String| {
        let found = row.set.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        match key.as_str() {
            "seed" => row.seed.to_string(),
            _ => found.unwrap_or_default(),
        }
    };
    keys.iter().map(value).collect()
}

/// With four significant digits, without idle zeros.
fn number(value: f64) -> String {
    let digits = decimals(value, 4);
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Decimals that show `digits` significant digits; none of nothing.
fn decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 {
        return 0;
    }
    let whole = libm::floor(libm::log10(value.abs().max(1e-6))) as i32 + 1;
    (digits - whole).clamp(0, 9) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_report::FlowReport;

    fn row(run: u64, delay: &str, cc: &str, goodput_bps: f64) -> Row {
        let flow = FlowReport {
            name: "up".into(),
            profile: "linux-6.18".into(),
            cc: "reno".into(),
            bytes: 1,
            finished: true,
            duration_s: 1.0,
            goodput_bps,
            retransmitted_segments: 0,
            fast_recoveries: 0,
            rtos: 0,
            spurious_recoveries: 0,
            max_cwnd_bytes: 1,
            mss_bytes: 1,
            min_rtt_s: None,
            latency: None,
        };
        let set = vec![("delay".into(), delay.into()), ("cc".into(), cc.into())];
        let sharing = crate::sharing::SharingReport::default();
        Row { run, seed: run, set, ended_s: 1.0, segments_simulated: 1, flows: vec![flow], sharing }
    }

    fn pivot(rows: &[&str], columns: &[&str], of: &[Row]) -> Pivot {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let figure = Figure::named("goodput").unwrap();
        let question = Question { rows: names(rows), columns: names(columns), figure, flow: None };
        let mut pivot = Pivot::new(question);
        of.iter().for_each(|row| pivot.add(row));
        pivot
    }

    #[test]
    fn cells_hold_means_and_intervals() {
        let rows = [
            row(0, "5ms", "reno", 8e6),
            row(1, "5ms", "reno", 10e6),
            row(2, "9ms", "reno", 5e6),
            row(3, "9ms", "cubic", 0.5e6),
        ];
        // Mean 9, deviation sqrt(2), interval 12.706 * sqrt(2) / sqrt(2).
        let expected = "\
delay  cc=reno        cc=cubic
5ms    9 ± 13 Mbit/s  –
9ms    5 Mbit/s       0.5 Mbit/s
";
        assert_eq!(pivot(&["delay"], &["cc"], &rows).text(), expected);
        let cells = pivot(&["delay"], &[], &rows).cells();
        assert_eq!(cells.len(), 2);
        assert_eq!((cells[1].count, cells[1].min, cells[1].max), (2, 0.5e6, 5e6));
    }

    #[test]
    fn a_heat_map_has_every_cell_once() {
        let rows =
            [row(0, "5ms", "reno", 8e6), row(1, "9ms", "reno", 5e6), row(2, "9ms", "cubic", 1e6)];
        let svg = pivot(&["delay"], &["cc"], &rows).heat_map("t", "s");
        for text in [">8.000<", ">5.000<", ">1.000<", ">8 Mbit/s<", ">goodput Mbit/s, mean of each"]
        {
            assert_eq!(svg.matches(text).count(), 1, "{text}: {svg}");
        }
        // One cell holds nothing.
        assert_eq!(svg.matches("#eaeef2").count(), 1);
    }

    #[test]
    fn lines_need_quantities_along_their_axis() {
        let rows = |values: &[&str]| -> Vec<Row> {
            values
                .iter()
                .flat_map(|value| [8e6, 10e6].map(|bps| row(0, value, "reno", bps)))
                .collect()
        };
        let lines = |values: &[&str]| pivot(&["delay"], &["cc"], &rows(values)).lines("t", "s");
        let svg = lines(&["5ms", "10ms", "20ms"]).unwrap();
        assert!(svg.contains(">delay (ms)<") && svg.contains(">goodput (Mbit/s)<"), "{svg}");
        assert!(svg.contains(">mean, by cc, with its 95 % confidence interval; s<"), "{svg}");
        // A decade and more: logarithms.
        let svg = lines(&["0.1%", "1%", "10%"]).unwrap();
        assert!(svg.contains(">log10 of delay in %<"), "{svg}");
        for wrong in [&["reno", "cubic"][..], &["5ms", "5MB"], &["5ms"]] {
            assert_eq!(lines(wrong), Err(NoLines::Side), "{wrong:?}");
        }
        let many: Vec<Row> = (0..9)
            .flat_map(|n| ["1ms", "2ms"].map(|delay| row(0, delay, &format!("cc{n}"), 1e6)))
            .collect();
        assert_eq!(pivot(&["delay"], &["cc"], &many).lines("t", "s"), Err(NoLines::Columns(9)));
    }

    #[test]
    fn digits_follow_the_interval() {
        let rows: Vec<Row> =
            [1.0e6, 1.001e6, 1.002e6].iter().map(|&bps| row(0, "", "", bps)).collect();
        // Deviation 1000, interval 4.303 * 1000 / sqrt(3) = 2484 bit/s.
        assert!(pivot(&[], &[], &rows).text().ends_with("1.001 ± 0.002 Mbit/s\n"));
        let alike = |bps: f64| {
            let rows: Vec<Row> = [bps; 3].iter().map(|&bps| row(0, "", "", bps)).collect();
            pivot(&[], &[], &rows).text()
        };
        assert!(
            alike(1.2345e6).ends_with("1.234 ± 0 Mbit/s\n")
                || alike(1.2345e6).ends_with("1.235 ± 0 Mbit/s\n")
        );
        assert!(alike(0.0).ends_with("\n0 ± 0 bit/s\n"), "{}", alike(0.0));
        assert!(pivot(&[], &[], &[row(0, "", "", 0.0)]).heat_map("t", "s").contains(">0<"));
    }
}
