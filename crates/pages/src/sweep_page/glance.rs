//! The comparison of a sweep's points: one row for each, the figure that matters of each flow, and
//! the queues.

use report::table::{ReportTable, TableCell, TableColumn, Tone};
use runner::run_report::FlowReport;
use runner::sweep::SweepRow;
use runner::sweep::statistics::SampleStatistics;

/// Points beyond which there is no table.
const POINTS: usize = 64;
/// Flows with columns of their own.
const FLOWS: usize = 12;

/// Is a larger or a smaller value better?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    Larger,
    Smaller,
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq)]
struct GlanceColumn {
    name: String,
    better: Better,
    /// Decimals.
    digits: usize,
}

/// The table, built run by run.
#[derive(Debug, Clone, Default)]
pub(super) struct Glance {
    columns: Vec<GlanceColumn>,
    points: Vec<(Vec<String>, Vec<SampleStatistics>)>,
    full: bool,
}

impl Glance {
    /// Adds a run.
    pub(super) fn add(&mut self, row: &SweepRow) {
        let point: Vec<String> = row.set.iter().map(|(_, value)| value.clone()).collect();
        let known = self.points.iter().position(|(known, _)| *known == point);
        let place = match known {
            Some(place) => place,
            None if self.points.len() == POINTS => {
                self.full = true;
                return;
            }
            None => {
                self.points.push((point, Vec::new()));
                self.points.len() - 1
            }
        };
        for (column, value) in figures(row) {
            let known = self.columns.iter().position(|known| *known == column);
            let number = known.unwrap_or_else(|| {
                self.columns.push(column);
                self.columns.len() - 1
            });
            let cells = &mut self.points[place].1;
            if cells.len() <= number {
                cells.resize(number + 1, SampleStatistics::default());
            }
            cells[number].add(value);
        }
    }

    /// The point with the lowest delays and what it costs, in a sentence; `None` without delays, or if
    /// no point has the lowest of most.
    pub(super) fn answer(&self) -> Option<String> {
        if self.full || self.points.len() < 2 {
            return None;
        }
        let mean = |point: usize, column: usize| {
            self.points[point].1.get(column).filter(|cell| cell.count > 0).map(|cell| cell.mean)
        };
        let of_kind = |end: &'static str| {
            let columns = self.columns.iter().enumerate();
            columns.filter(move |(_, column)| column.name.ends_with(end)).map(|(number, _)| number)
        };
        let all = 0..self.points.len();
        let extreme = |column: usize, better: Better| {
            all.clone().filter(|&point| mean(point, column).is_some()).reduce(|one, other| {
                let (left, right) = (mean(one, column), mean(other, column));
                let other_is_better = match better {
                    Better::Larger => right > left,
                    Better::Smaller => right < left,
                };
                if other_is_better { other } else { one }
            })
        };
        let delays: Vec<usize> = of_kind(" ms").collect();
        let wins = |point: &usize| {
            delays.iter().filter(|&&d| extreme(d, Better::Smaller) == Some(*point)).count()
        };
        let best =
            all.clone().rev().max_by_key(wins).filter(|best| 2 * wins(best) > delays.len())?;
        let name = |point: usize| self.points[point].0.join(", ");
        let short =
            |column: usize| self.columns[column].name.split(", ").next().unwrap_or_default();
        let won = delays.iter().filter(|&&d| extreme(d, Better::Smaller) == Some(best));
        let won: Vec<String> =
            won.filter_map(|&d| Some(format!("{} {:.1} ms", short(d), mean(best, d)?))).collect();
        let mut text = format!("{} has the lowest delays: {}.", name(best), won.join(", "));
        for rate in of_kind(" Mbit/s") {
            let most = extreme(rate, Better::Larger)?;
            let (own, largest) = (mean(best, rate)?, mean(most, rate)?);
            let flow = short(rate).split(':').next().unwrap_or_default();
            text += &format!(
                " Its {flow} has {own:.2} Mbit/s, {:.1} % of the most ({largest:.2} Mbit/s, {}).",
                own * 100.0 / largest.max(f64::MIN_POSITIVE),
                name(most)
            );
        }
        Some(text)
    }

    /// The table; `None` for a single point or very many.
    pub(super) fn table(&self, keys: &[Vec<String>]) -> Option<ReportTable> {
        if self.full || self.points.len() < 2 || self.columns.is_empty() {
            return None;
        }
        let shown = |cell: &SampleStatistics, digits: usize| {
            let half = cell.confidence().map(|half| match half > 0.0 {
                true => format!(" ± {half:.digits$}"),
                false => " (identical)".to_owned(),
            });
            format!("{:.digits$}{}", cell.mean, half.unwrap_or_default())
        };
        let cell = |point: usize, number: usize| {
            self.points[point].1.get(number).copied().filter(|cell| cell.count > 0)
        };
        let best: Vec<Option<f64>> = (0..self.columns.len())
            .map(|number| {
                let means = (0..self.points.len()).filter_map(|p| Some(cell(p, number)?.mean));
                match self.columns[number].better {
                    Better::Larger => means.reduce(f64::max),
                    Better::Smaller => means.reduce(f64::min),
                }
            })
            .collect();
        let worst: Vec<Option<f64>> = (0..self.columns.len())
            .map(|number| {
                let means = (0..self.points.len()).filter_map(|p| Some(cell(p, number)?.mean));
                match self.columns[number].better {
                    Better::Larger => means.reduce(f64::min),
                    Better::Smaller => means.reduce(f64::max),
                }
            })
            .collect();
        let rows = self.points.iter().enumerate().map(|(place, (point, _))| {
            let names = point.iter().map(|value| TableCell::from(value.clone()));
            let cells = self.columns.iter().enumerate().map(|(number, column)| {
                let Some(cell) = cell(place, number) else { return TableCell::from("–") };
                let is =
                    |mean: Option<f64>| mean == Some(cell.mean) && best[number] != worst[number];
                let tone = match (is(best[number]), is(worst[number])) {
                    (true, _) => Tone::Good,
                    (_, true) => Tone::Bad,
                    _ => Tone::Plain,
                };
                TableCell::from(shown(&cell, column.digits)).tone(tone)
            });
            names.chain(cells).collect()
        });
        let names = keys.iter().flatten().map(|key| TableColumn::words(key));
        let columns = self.columns.iter().map(|column| TableColumn::numbers(&column.name));
        Some(ReportTable {
            caption: "At a glance".into(),
            columns: names.chain(columns).collect(),
            rows: rows.collect(),
            note: "Means over the runs of a point, with half of the 95 % confidence interval. The best of \
                   a column is green, the worst red: what a low delay costs is in the columns of \
                   goodput, losses and marks."
                .into(),
            ..ReportTable::default()
        })
    }
}

/// The figures of a run with their columns.
fn figures(row: &SweepRow) -> Vec<(GlanceColumn, f64)> {
    let mut figures = Vec::new();
    let mut add = |name: String, better, digits, value: Option<f64>| {
        figures.extend(value.map(|value| (GlanceColumn { name, better, digits }, value)));
    };
    for flow in row.flows.iter().take(FLOWS) {
        if let Some(video) = &flow.video {
            let rate = video.bitrate_bps.map(|rate| rate as f64 / 1e6);
            add(format!("{}: bit rate, Mbit/s", flow.name), Better::Larger, 2, rate);
            let stalled = Some(video.stall_s);
            add(format!("{}: stalled, s", flow.name), Better::Smaller, 2, stalled);
            continue;
        }
        let (what, value) = main_figure(flow);
        match what {
            None => add(format!("{}: goodput, Mbit/s", flow.name), Better::Larger, 2, value),
            Some(what) => add(format!("{}: {what}, ms", flow.name), Better::Smaller, 1, value),
        }
    }
    let links = &row.sharing.links;
    let longest = links.iter().filter_map(|link| link.delay_p95_s).reduce(f64::max);
    let waits = longest.map(|seconds| seconds * 1e3);
    add("queue: delay p95, ms".into(), Better::Smaller, 1, waits);
    let sum = |of: fn(&runner::sharing::LinkReport) -> u64| {
        (!links.is_empty()).then(|| links.iter().map(of).sum::<u64>() as f64)
    };
    add("lost".into(), Better::Smaller, 0, sum(|link| link.lost));
    add("marked".into(), Better::Smaller, 0, sum(|link| link.marked));
    figures
}

/// The name of the delay that matters of a flow with its 95th percentile in milliseconds, or `None`
/// with the goodput in Mbit/s.
fn main_figure(flow: &FlowReport) -> (Option<&'static str>, Option<f64>) {
    let ms = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e3);
    match (&flow.latency, &flow.group) {
        (Some(latency), _) => {
            let what = match latency.of.as_deref() {
                None => "response p95",
                Some("pings") => "round trip p95",
                Some("pages") => "page load p95",
                Some(_) => "delay p95",
            };
            (Some(what), ms(latency.p95_s))
        }
        (_, Some(group)) => (Some("completion p95"), ms(group.completion_p95_s)),
        _ => (None, Some(flow.goodput_bps / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_names_the_lowest_delays_and_their_cost() {
        let columns = [
            ("upload: goodput, Mbit/s", Better::Larger),
            ("voice: delay p95, ms", Better::Smaller),
            ("ping: round trip p95, ms", Better::Smaller),
        ];
        let columns =
            columns.map(|(name, better)| GlanceColumn { name: name.into(), better, digits: 1 });
        let mut glance = Glance { columns: columns.into(), ..Glance::default() };
        for (point, values) in [("deep", [9.5, 400.0, 410.0]), ("short", [9.0, 12.0, 22.0])] {
            let cell = |value| {
                let mut cell = SampleStatistics::default();
                cell.add(value);
                cell
            };
            glance.points.push((vec![point.into()], values.map(cell).into()));
        }
        let expected = "short has the lowest delays: voice: delay p95 12.0 ms, ping: round trip p95 \
                        22.0 ms. Its upload has 9.00 Mbit/s, 94.7 % of the most (9.50 Mbit/s, deep).";
        assert_eq!(glance.answer().as_deref(), Some(expected));
        let table = glance.table(&[vec!["queue".into()]]).unwrap();
        assert_eq!((table.columns.len(), table.rows.len()), (4, 2));
        assert_eq!(table.rows[1][2].tone, Tone::Good);
        assert_eq!(table.rows[1][1].tone, Tone::Bad);
    }
}
