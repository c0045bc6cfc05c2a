//! The first card of a page: the answer as a sentence, a bar of where the time went, and the cure with its gain.

/// The answer to the question of a page's title.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// The answer; omitted if empty, for a page whose lead has it.
    pub sentence: String,
    /// What the bar divides, such as `Where the time went: 3.27 s`.
    pub whole: String,
    /// Parts of the bar, from left to right; no bar without any.
    pub parts: Vec<VerdictPart>,
    /// What was tried, the best first.
    pub changes: Vec<VerdictChange>,
    /// Further figures with their names.
    pub facts: Vec<(String, String)>,
}

/// A part of the bar.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictPart {
    /// Its name.
    pub name: String,
    /// Letter in the bar, so that parts are distinguished without colours.
    pub letter: char,
    /// Its size, in a unit that all parts have in common.
    pub weight: u64,
    /// Its size in words, such as `2.8 s, 85 %`.
    pub text: String,
    /// Its colour.
    pub colour: PartColour,
}

impl VerdictPart {
    /// A part whose size is a number of things.
    pub fn count(name: &str, letter: char, count: usize, colour: PartColour) -> Self {
        Self {
            name: name.to_owned(),
            letter,
            weight: count as u64,
            text: count.to_string(),
            colour,
        }
    }
}

/// Colours of parts: those of the palette of plots, and two greys for times in which nothing is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is its name")]
pub enum PartColour {
    Blue,
    Vermilion,
    Green,
    Pink,
    Amber,
    Sky,
    Olive,
    Ink,
    /// Nothing was to be sent.
    Faint,
    /// It is not known.
    Hatched,
}

impl PartColour {
    /// Class of the style sheet.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Blue => "c0",
            Self::Vermilion => "c1",
            Self::Green => "c2",
            Self::Pink => "c3",
            Self::Amber => "c4",
            Self::Sky => "c5",
            Self::Olive => "c6",
            Self::Ink => "c7",
            Self::Faint => "cf",
            Self::Hatched => "ch",
        }
    }
}

/// A change that was tried, with the time before and after it.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictChange {
    /// What is changed, and where.
    pub what: String,
    /// The time without it, in words.
    pub before: String,
    /// The time with it, in words: a figure, a range, or why it cannot be predicted.
    pub after: String,
    /// Shortest and longest time with it, in thousandths of the time without it; `None` if it cannot be predicted.
    pub permille: Option<(u32, u32)>,
    /// Why it is no figure; omitted if empty.
    pub note: String,
}
