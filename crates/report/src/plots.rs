//! Plots over a common axis, one panel above the other. Values are integers with a fixed decimal
//! point: with 9 decimals and the unit s, 1,500,000,000 is 1.5 s.

/// Panels that are zoomed together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plots {
    /// Name within the page: letters, digits and hyphens.
    pub id: String,
    /// What they show.
    pub title: String,
    /// The common axis.
    pub x: Axis,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Axis {
    /// What it counts.
    pub title: String,
    /// Unit of a value whose decimal point is set: s, B and bit/s are shown with prefixes.
    pub unit: String,
    /// Digits behind the decimal point, at most 15.
    pub decimals: u32,
    /// Another unit that values are told in, such as MSS, and what it holds of the first.
    pub also: Option<(String, u64)>,
}

impl Axis {
    /// An axis of one unit.
    pub fn new(title: &str, unit: &str, decimals: u32) -> Self {
        Self { title: title.into(), unit: unit.into(), decimals, also: None }
    }

    /// The axis with values told in a second unit as well; without one of size 0.
    #[must_use]
    pub fn and_in(self, unit: &str, size: u64) -> Self {
        Self { also: (size > 0).then(|| (unit.into(), size)), ..self }
    }
}

/// A pair of axes with what is drawn there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Panel {
    /// The upright axis.
    pub y: Axis,
    /// Does it begin at zero, whatever is in view?
    pub from_zero: bool,
    /// Height in pixels.
    pub height: u32,
    /// What is drawn, later ones over earlier ones.
    pub series: Vec<Series>,
    /// How to read it; one or two sentences below the plot.
    pub note: String,
}

impl Panel {
    /// A panel that begins at zero.
    pub fn new(y: Axis, series: Vec<Series>) -> Self {
        Self { y, from_zero: true, height: 220, series, note: String::new() }
    }

    /// The panel with another height.
    #[must_use]
    pub fn height(self, height: u32) -> Self {
        Self { height, ..self }
    }

    /// The panel with words below it.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

/// Values along the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// What it is, which decides its colour.
    pub role: Role,
    /// How it is drawn.
    pub mark: Mark,
    /// Is it shown before anybody asks for it?
    pub is_shown: bool,
    /// Why it is not every value, if it is not; told beside its name.
    pub thinned: String,
    /// Places on the axis, in rising order.
    pub x: Vec<i64>,
    /// The values; of bars their lower ends.
    pub y: Vec<i64>,
    /// Upper ends of bars; empty otherwise.
    pub top: Vec<i64>,
    /// Number in [`Series::words`] of what is told of each; empty if nothing is.
    pub word: Vec<u32>,
    /// What is told.
    pub words: Vec<String>,
}

impl Series {
    /// A series without values yet.
    pub fn new(name: &str, role: Role, mark: Mark) -> Self {
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

    /// The series with these points.
    #[must_use]
    pub fn with_points(mut self, points: impl IntoIterator<Item = (i64, i64)>) -> Self {
        (self.x, self.y) = points.into_iter().unzip();
        self
    }

    /// The series, shown once somebody asks for it.
    #[must_use]
    pub fn hidden(self) -> Self {
        Self { is_shown: false, ..self }
    }

    /// Adds a value that is told of in words.
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

/// What a series is; each has a colour in the style that differs from the others for every eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Bytes sent for the first time.
    Data,
    /// Bytes sent again.
    Again,
    /// Bytes sent again that need not have been.
    Spurious,
    /// Blocks a receiver reported.
    Sack,
    /// What is acknowledged.
    Ack,
    /// A window that limits.
    Window,
    /// The slow-start threshold.
    Threshold,
    /// Bytes under way.
    Flight,
    /// Bytes under way, as the sender estimates them.
    Pipe,
    /// Single measurements.
    Sample,
    /// A smoothed one.
    Smooth,
    /// A rate.
    Rate,
    /// What a formula says.
    Theory,
    /// Moments of note.
    Event,
    /// One of several alike, by number; after eight the colours come again with other dashes.
    Nth(u8),
}

impl Role {
    /// Its name in the style.
    pub(crate) fn class(self) -> String {
        match self {
            Self::Data => "data".into(),
            Self::Again => "again".into(),
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
pub enum Mark {
    /// Straight from point to point.
    Line,
    /// A broken line, straight from point to point.
    Dashes,
    /// A value holds until the next one.
    Step,
    /// A broken one that holds until the next.
    DashedStep,
    /// A dot for each.
    Dots,
    /// A short level line for each.
    Ticks,
    /// A diamond for each.
    Diamonds,
    /// A cross for each.
    Crosses,
    /// An upright bar from value to top, with ends.
    Bars,
    /// The same with a cross in its middle.
    CrossedBars,
    /// The same with a ring in its middle.
    RingedBars,
    /// A bare upright bar from value to top.
    BareBars,
    /// The first letter of what is told of it.
    Letters,
    /// A line through the whole height at each, with what is told of it.
    Moments,
}

impl Mark {
    /// Its name in the program.
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
