//! A pivot table as a line chart: the row axis as the x axis, one line per column.

use charts::svg::{Chart, ChartAxis, ChartPanel, ChartPoint, ChartSeries, Draw};

use super::{Pivot, PivotLayout};
use scenario::units_text::{Measure, Quantity};

/// Lines with distinct styles.
const MOST: usize = 7;
/// Values over more than this ratio get a logarithmic axis.
const DECADE: f64 = 12.0;

/// Error: the table cannot be drawn as lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineChartError {
    /// The rows are not one axis of at least two quantities of one kind.
    Side,
    /// More columns than distinguishable lines.
    Columns(usize),
}

impl core::fmt::Display for LineChartError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Side => f.write_str("lines need one axis of at least two quantities of one kind"),
            Self::Columns(count) => write!(f, "{count} lines are too many to distinguish"),
        }
    }
}

impl core::error::Error for LineChartError {}

/// The x coordinates and the x axis.
struct LineAxis {
    at: Vec<i64>,
    title: String,
    unit: &'static str,
    decimals: u32,
}

impl Pivot {
    /// The table as lines in SVG: means with their 95 % confidence intervals.
    ///
    /// # Errors
    /// [`LineChartError`] if the table is not suitable.
    pub fn lines(&self, title: &str, subtitle: &str) -> Result<String, LineChartError> {
        let PivotLayout { row_keys, column_keys, sides, tops, cells } = self.layout();
        let along = along(&row_keys, &sides).ok_or(LineChartError::Side)?;
        if tops.len() > MOST {
            return Err(LineChartError::Columns(tops.len()));
        }
        let (scale, unit) = self.unit();
        let thousandths = |value: f64| (value / scale * 1_000.0) as i64;
        let mut order: Vec<usize> = (0..along.at.len()).collect();
        order.sort_by_key(|&side| along.at[side]);
        let mut means: Vec<Vec<ChartPoint>> = vec![Vec::new(); tops.len()];
        let mut ends: Vec<Vec<ChartPoint>> = vec![Vec::new(); tops.len()];
        for side in order {
            for (top, cell) in cells[side].iter().enumerate() {
                let Some(cell) = cell else { continue };
                let (x, mean) = (along.at[side], cell.summary.mean);
                means[top].push(ChartPoint { x, y: thousandths(mean) });
                if let Some(half) = cell.confidence() {
                    // Figures are never negative.
                    let low =
                        if cell.summary.min < 0.0 { mean - half } else { (mean - half).max(0.0) };
                    ends[top].push(ChartPoint { x, y: thousandths(low) });
                    ends[top].push(ChartPoint { x, y: thousandths(mean + half) });
                }
            }
        }
        let names: Vec<String> = tops.iter().map(|top| top.join(", ")).collect();
        let has_intervals = ends.iter().any(|points| !points.is_empty());
        let interval = if has_intervals { ", with its 95 % confidence interval" } else { "" };
        let bars = ends.iter().zip(0..).map(|(points, look)| ChartSeries {
            name: "",
            look,
            draw: Draw::Whiskers,
            points,
        });
        let curves = means.iter().zip(&names).zip(0..).map(|((points, name), look)| ChartSeries {
            name,
            look,
            draw: Draw::Line,
            points,
        });
        let figure = self.question.figure.short().replace('_', " ");
        let by = match &column_keys[..] {
            [] => String::new(),
            keys => format!(", by {}", keys.join(", ")),
        };
        let chart = Chart {
            title,
            subtitle: &format!("mean{by}{interval}; {subtitle}"),
            x: ChartAxis { title: &along.title, unit: along.unit, decimals: along.decimals },
            panels: vec![ChartPanel {
                y: ChartAxis { title: &figure, unit: unit.trim(), decimals: 3 },
                series: bars.chain(curves).collect(),
                height: 320,
            }],
            ..Chart::default()
        };
        let mut svg = Vec::new();
        // Writing into memory does not fail.
        let written = chart.write(&mut svg);
        debug_assert!(written.is_ok());
        Ok(String::from_utf8_lossy(&svg).into_owned())
    }
}

/// The x coordinates of the row values; of keys that change together, the first is used.
fn along(row_keys: &[String], sides: &[Vec<String>]) -> Option<LineAxis> {
    let key = row_keys.first()?;
    let read = |side: &Vec<String>| Measure::read(side.first()?);
    let measures: Vec<Measure> = sides.iter().map(read).collect::<Option<_>>()?;
    let first = *measures.first()?;
    let (least, most) = measures
        .iter()
        .fold((u64::MAX, 0), |(least, most), m| (least.min(m.steps), most.max(m.steps)));
    let alike = measures.iter().all(|measure| measure.quantity == first.quantity);
    let mut seen: Vec<u64> = measures.iter().map(|measure| measure.steps).collect();
    seen.sort_unstable();
    if !alike || least == most || seen.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let (unit, decimals) = unit_of(first.quantity, most);
    let title = row_keys.join(", ");
    if least > 0 && most as f64 / least as f64 > DECADE {
        let one = 10_u64.pow(decimals) as f64;
        let place = |m: &Measure| (libm::log10(m.steps as f64 / one) * 1_000.0) as i64;
        let title = if unit.is_empty() {
            format!("log10 of {key}")
        } else {
            format!("log10 of {key} in {unit}")
        };
        return Some(LineAxis {
            at: measures.iter().map(place).collect(),
            title,
            unit: "",
            decimals: 3,
        });
    }
    let place = |measure: &Measure| i64::try_from(measure.steps).unwrap_or(i64::MAX);
    Some(LineAxis { at: measures.iter().map(place).collect(), title, unit, decimals })
}

/// The unit for values of at most `most` steps, and the decimals of a step in it.
fn unit_of(quantity: Quantity, most: u64) -> (&'static str, u32) {
    let known: &[(u64, &'static str, u32)] = match quantity {
        Quantity::Number => &[(0, "", 6)],
        Quantity::Time => &[(1_000_000_000, "s", 9), (1_000_000, "ms", 6), (0, "us", 3)],
        Quantity::Size => {
            &[(1_000_000_000, "GB", 9), (1_000_000, "MB", 6), (1_000, "kB", 3), (0, "B", 0)]
        }
        Quantity::Rate => &[
            (1_000_000_000, "Gbit/s", 9),
            (1_000_000, "Mbit/s", 6),
            (1_000, "kbit/s", 3),
            (0, "bit/s", 0),
        ],
        Quantity::Share => &[(0, "%", 10)],
        Quantity::Packets => &[(0, "packets", 0)],
        Quantity::Bdp => &[(0, "BDP", 6)],
    };
    known
        .iter()
        .find(|(from, ..)| most >= *from)
        .map_or(("", 0), |&(_, unit, digits)| (unit, digits))
}
