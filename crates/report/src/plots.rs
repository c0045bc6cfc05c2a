//! Plots over a common axis, in stacked panels. Values are integers with a fixed decimal point:
//! with 9 decimals and the unit s, 1,500,000,000 is 1.5 s.

/// Panels with a common zoom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plots {
    /// Id within the page: letters, digits and hyphens.
    pub id: String,
    /// Title.
    pub title: String,
    /// The common axis.
    pub x: PlotAxis,
    /// Panels from top to bottom.
    pub panels: Vec<PlotPanel>,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlotAxis {
    /// Quantity.
    pub title: String,
    /// Unit after applying the decimal point: s, B and bit/s are shown with prefixes.
    pub unit: String,
    /// Decimals, at most 15.
    pub decimals: u32,
    /// A second unit for values, such as MSS, and its size in the first.
    pub also: Option<(String, u64)>,
}

impl PlotAxis {
    /// An axis of one unit.
    pub fn new(title: &str, unit: &str, decimals: u32) -> Self {
        Self { title: title.into(), unit: unit.into(), decimals, also: None }
    }

    /// Adds a second unit, unless its size is 0.
    #[must_use]
    pub fn and_in(self, unit: &str, size: u64) -> Self {
        Self { also: (size > 0).then(|| (unit.into(), size)), ..self }
    }
}

/// A pair of axes with its series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlotPanel {
    /// The vertical axis.
    pub y: PlotAxis,
    /// Does it always start at zero?
    pub from_zero: bool,
    /// Height in pixels.
    pub height: u32,
    /// The series, later ones drawn over earlier ones.
    pub series: Vec<PlotSeries>,
    /// Explanation of one or two sentences below the plot.
    pub note: String,
}

impl PlotPanel {
    /// A panel that starts at zero.
    pub fn new(y: PlotAxis, series: Vec<PlotSeries>) -> Self {
        Self { y, from_zero: true, height: 220, series, note: String::new() }
    }

    /// Sets the height.
    #[must_use]
    pub fn height(self, height: u32) -> Self {
        Self { height, ..self }
    }

    /// Sets the explanation.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

/// A series of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlotSeries {
    /// Name in the legend.
    pub name: String,
    /// Its role, which determines its colour.
    pub role: SeriesRole,
    /// How it is drawn.
    pub mark: SeriesMark,
    /// Is it shown initially?
    pub is_shown: bool,
    /// Note of thinning, shown next to its name; empty if complete.
    pub thinned: String,
    /// Coordinates on the axis, in ascending order.
    pub x: Vec<i64>,
    /// The values; for bars the lower ends.
    pub y: Vec<i64>,
    /// Upper ends of bars; empty otherwise.
    pub top: Vec<i64>,
    /// Index of each value's label in [`PlotSeries::words`]; empty without labels.
    pub word: Vec<u32>,
    /// Labels.
    pub words: Vec<String>,
}

impl PlotSeries {
    /// A series without values.
    pub fn new(name: &str, role: SeriesRole, mark: SeriesMark) -> Self {
        Self {
            name: name.into(),
            role,
            mark,
            is_shown: true,
            thinned: String::new(),
            x: Vec::new(),
            y: Vec::new(),
            top: Vec::new(),
            word: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Appends points.
    #[must_use]
    pub fn with_points(mut self, points: impl IntoIterator<Item = (i64, i64)>) -> Self {
        (self.x, self.y) = points.into_iter().unzip();
        self
    }

    /// Hides the series initially.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { is_shown: false, ..self }
    }

    /// Appends a value with a label.
    pub fn push(&mut self, x: i64, y: i64, word: &str) {
        let number = self.words.iter().position(|known| known == word).unwrap_or_else(|| {
            self.words.push(word.to_owned());
            self.words.len() - 1
        });
        self.x.push(x);
        self.y.push(y);
        self.word.push(number as u32);
    }

    /// Columns of numbers, in the order in which they are packed.
    pub(crate) fn columns(&self) -> [&[i64]; 3] {
        [&self.x, &self.y, &self.top]
    }
}

/// The role of a series; each has a distinct colour in the style, also for colour-blind readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesRole {
    /// Bytes sent for the first time.
    Data,
    /// Retransmitted bytes.
    Retransmission,
    /// Spuriously retransmitted bytes.
    Spurious,
    /// SACK blocks or ACK ranges.
    Sack,
    /// Cumulative acknowledgments.
    Ack,
    /// A window limit.
    Window,
    /// The slow-start threshold.
    Threshold,
    /// Bytes in flight.
    Flight,
    /// Bytes in flight as estimated by the sender (pipe).
    Pipe,
    /// Individual samples.
    Sample,
    /// A smoothed value.
    Smooth,
    /// A rate.
    Rate,
    /// The result of a formula.
    Theory,
    /// Notable events.
    Event,
    /// One of several of a kind, by number; colours repeat after eight with other dashes.
    Nth(u8),
}

impl SeriesRole {
    /// Its CSS class.
    pub(crate) fn class(self) -> String {
        match self {
            Self::Data => "data".into(),
            Self::Retransmission => "again".into(),
            Self::Spurious => "spurious".into(),
            Self::Sack => "sack".into(),
            Self::Ack => "ack".into(),
            Self::Window => "window".into(),
            Self::Threshold => "threshold".into(),
            Self::Flight => "flight".into(),
            Self::Pipe => "pipe".into(),
            Self::Sample => "sample".into(),
            Self::Smooth => "smooth".into(),
            Self::Rate => "rate".into(),
            Self::Theory => "theory".into(),
            Self::Event => "event".into(),
            Self::Nth(number) => format!("n{}", number % 8),
        }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesMark {
    /// Straight from point to point.
    Line,
    /// A dashed line, straight from point to point.
    Dashes,
    /// Steps: a value holds until the next one.
    Step,
    /// Dashed steps.
    DashedStep,
    /// Dots.
    Dots,
    /// Short horizontal lines.
    Ticks,
    /// Diamonds.
    Diamonds,
    /// Crosses.
    Crosses,
    /// Vertical bars from value to top, with caps.
    Bars,
    /// Vertical bars with a cross in the middle.
    CrossedBars,
    /// Vertical bars with a ring in the middle.
    RingedBars,
    /// Vertical bars without caps.
    BareBars,
    /// The first letter of the label.
    Letters,
    /// Vertical lines through the whole height, with the label.
    Moments,
}

impl SeriesMark {
    /// Its name in the page's program.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Dashes => "dashes",
            Self::Step => "step",
            Self::DashedStep => "dashedstep",
            Self::Dots => "dots",
            Self::Ticks => "ticks",
            Self::Diamonds => "diamonds",
            Self::Crosses => "crosses",
            Self::Bars => "bars",
            Self::CrossedBars => "crossed",
            Self::RingedBars => "ringed",
            Self::BareBars => "bare",
            Self::Letters => "letters",
            Self::Moments => "moments",
        }
    }
}
