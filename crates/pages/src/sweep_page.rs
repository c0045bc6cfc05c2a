//! The page of a sweep: heat maps over any two of its axes, and the table of means.

mod glance;

use report::grid::{GridAxis, GridFigure, GridPlot, GridPoint, GridScope};
use report::page::{Page, PagePart};
use report::verdict::Verdict;

use crate::run_page::maker;
use glance::Glance;
use runner::sweep::SweepRow;
use runner::sweep::csv::{FIGURES, Scope};
use runner::sweep::pivot::Pivot;
use scenario::units_text::Measure;

/// Limit of the flows of all runs on a page.
pub const MOST: usize = 200_000;

/// Error: more runs than a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFullError;

impl core::fmt::Display for PageFullError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "more than {MOST} rows: a page holds no more")
    }
}

impl core::error::Error for PageFullError {}

/// A page built run by run.
#[derive(Debug, Clone)]
pub struct SweepPage {
    /// Keys of each axis.
    keys: Vec<Vec<String>>,
    grid: GridPlot,
    glance: Glance,
    runs: u64,
}

impl SweepPage {
    /// A page for a sweep over these axes, each of one key or of several that change together.
    pub fn new(keys: Vec<Vec<String>>) -> Self {
        let mut axes: Vec<GridAxis> = keys
            .iter()
            .map(|keys| GridAxis { name: keys.join(", "), ..GridAxis::default() })
            .collect();
        axes.push(GridAxis { name: "seed".into(), ..GridAxis::default() });
        let figures = FIGURES.map(|figure| GridFigure {
            name: figure.short().replace('_', " "),
            unit: unit(figure.name).into(),
            scope: match figure.scope {
                Scope::Sum => GridScope::Sum,
                Scope::Flow => GridScope::Flow,
                Scope::Run => GridScope::Run,
            },
        });
        let grid =
            GridPlot { id: "sweep".into(), axes, figures: figures.into(), ..GridPlot::default() };
        Self { keys, grid, glance: Glance::default(), runs: 0 }
    }

    /// Adds a run; values of an axis keep the order of their first appearance.
    ///
    /// # Errors
    /// [`PageFullError`] if the page is full.
    pub fn add(&mut self, row: &SweepRow) -> Result<(), PageFullError> {
        if self.grid.points.len() + row.flows.len() > MOST {
            return Err(PageFullError);
        }
        let value = |key: &String| {
            let found = row.set.iter().find(|(known, _)| known == key);
            found.map_or("", |(_, value)| value.as_str())
        };
        let mut at: Vec<u32> = Vec::new();
        for (axis, keys) in self.grid.axes.iter_mut().zip(&self.keys) {
            let values: Vec<&str> = keys.iter().map(value).collect();
            at.push(index_of(&mut axis.values, &values.join(", ")));
        }
        if let Some(seeds) = self.grid.axes.last_mut() {
            at.push(index_of(&mut seeds.values, &row.seed.to_string()));
        }
        for flow in &row.flows {
            self.grid.points.push(GridPoint {
                at: at.clone(),
                flow: index_of(&mut self.grid.flows, &flow.name),
                figures: FIGURES.iter().map(|figure| (figure.of)(row, flow)).collect(),
            });
        }
        self.glance.add(row);
        self.runs += 1;
        Ok(())
    }

    /// Builds the page, with the table of means that `ackclock table` prints; `facts` identify the
    /// sweep.
    pub fn page(mut self, title: &str, facts: Vec<(String, String)>, means: &Pivot) -> Page {
        // Figures without any value are omitted.
        let points = &self.grid.points;
        let is_known: Vec<bool> = (0..self.grid.figures.len())
            .map(|figure| points.iter().any(|point| point.figures[figure].is_some()))
            .collect();
        let mut known = is_known.iter();
        self.grid.figures.retain(|_| known.next() == Some(&true));
        for point in &mut self.grid.points {
            let mut known = is_known.iter();
            point.figures.retain(|_| known.next() == Some(&true));
        }
        for axis in &mut self.grid.axes {
            axis.numbers = numbers(&axis.values).unwrap_or_default();
        }
        // Goodput is the first figure.
        if let Some(first) = self.grid.figures.iter().position(|figure| figure.name == "goodput") {
            self.grid.figures[..=first].rotate_right(1);
            for point in &mut self.grid.points {
                point.figures[..=first].rotate_right(1);
            }
        }
        let answer = self
            .glance
            .answer()
            .map(|sentence| PagePart::Verdict(Verdict { sentence, ..Verdict::default() }));
        let glance = answer.into_iter().chain(self.glance.table(&self.keys).map(PagePart::Table));
        let lead = format!(
            "{} runs over {}. Cells show the mean over all runs that fall into them, of a flow or of \
             the sum over all flows; half of its 95 % confidence interval where the runs differ in their \
             seeds alone; each has its extremes in its title.",
            self.runs,
            match self.keys.len() {
                1 => "1 axis".to_owned(),
                axes => format!("{axes} axes"),
            }
        );
        Page {
            title: title.into(),
            lead,
            facts,
            maker: maker(),
            parts: glance
                .chain([
                    PagePart::Grid(self.grid),
                    PagePart::Subheading("Goodput of each flow".into()),
                    PagePart::Verbatim(means.text()),
                ])
                .collect(),
        }
    }
}

fn index_of(values: &mut Vec<String>, value: &str) -> u32 {
    let found = values.iter().position(|known| known == value);
    found.unwrap_or_else(|| {
        values.push(value.to_owned());
        values.len() - 1
    }) as u32
}

/// Axis coordinates of values: of the first key, if its values are quantities of one kind.
fn numbers(values: &[String]) -> Option<Vec<f64>> {
    let first = |value: &String| Measure::read(value.split(',').next()?);
    let measures: Vec<Measure> = values.iter().map(first).collect::<Option<_>>()?;
    let kind = measures.first()?.quantity;
    let is_line = measures.iter().all(|measure| measure.quantity == kind);
    is_line.then(|| measures.iter().map(|measure| measure.steps as f64).collect())
}

/// Unit of a column, by its name.
fn unit(name: &str) -> &'static str {
    let known = [("_bps", "bit/s"), ("_s", "s"), ("bytes", "B")];
    known.into_iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner::run_report::FlowReport;

    fn row(run: u64, loss: &str, delay: &str) -> SweepRow {
        let flow = FlowReport {
            name: "up".into(),
            profile: "linux-6.18".into(),
            cc: "reno".into(),
            bytes: 1,
            finished: true,
            duration_s: 1.0,
            goodput_bps: 1e6 * run as f64,
            retransmitted_segments: 0,
            fast_recoveries: 0,
            rtos: 0,
            spurious_recoveries: 0,
            max_cwnd_bytes: 1,
            mss_bytes: 1,
            min_rtt_s: None,
            latency: None,
            one_way: None,
            video: None,
            datagrams: None,
            group: None,
        };
        let pairs = [("loss", loss), ("there", delay), ("back", delay)];
        let set = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        SweepRow {
            run,
            seed: run % 2,
            set,
            ended_s: 1.0,
            segments_simulated: 1,
            flows: vec![flow],
            sharing: runner::sharing::SharingReport::default(),
        }
    }

    #[test]
    fn keys_that_change_together_are_one_axis() {
        let keys = vec![vec!["loss".to_owned()], vec!["there".into(), "back".into()]];
        let mut page = SweepPage::new(keys);
        for (run, loss, delay) in [(0, "0%", "1ms"), (1, "0%", "2ms"), (2, "1%", "1ms")] {
            page.add(&row(run, loss, delay)).unwrap();
        }
        let names: Vec<&str> = page.grid.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(names, ["loss", "there, back", "seed"]);
        assert_eq!(page.grid.axes[1].values, ["1ms, 1ms", "2ms, 2ms"]);
        let places: Vec<&[u32]> = page.grid.points.iter().map(|point| &point.at[..]).collect();
        assert_eq!(places, [&[0, 0, 0], &[0, 1, 1], &[1, 0, 0]]);
        let units = ["goodput", "duration", "max cwnd", "rtos"].map(|name| {
            page.grid.figures.iter().find(|figure| figure.name == name).unwrap().unit.clone()
        });
        assert_eq!(units, ["bit/s", "s", "B", ""]);
    }

    #[test]
    fn quantities_of_one_kind_have_axis_coordinates() {
        let of = |values: &[&str]| {
            numbers(&values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["1ms", "20us"]), Some(vec![1e6, 2e4]));
        assert_eq!(of(&["1ms, 2ms", "5ms, 6ms"]), Some(vec![1e6, 5e6]));
        assert_eq!(of(&["0.1%", "1%"]), Some(vec![1e9, 1e10]));
        assert_eq!(of(&["1ms", "1MB"]), None);
        assert_eq!(of(&["reno", "cubic"]), None);
    }
}
