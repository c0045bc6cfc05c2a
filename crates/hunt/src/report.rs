//! What a hunt found.

use serde::{Deserialize, Serialize};

use crate::HuntRequest;
use crate::measure::WorldFigure;
use crate::space::{NUMBERS, PARTS, SpaceLimits};
use crate::world::{Dimension, HuntWorld};

/// The figure of a case without one of its causes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HuntAblation {
    /// The cause that returned to the plain path.
    pub cause: String,
    /// The figure of the goal then.
    pub value: f64,
}

/// A bad case and what causes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HuntCase {
    /// What causes it: parts, or numbers that are not those of the plain path.
    pub causes: Vec<String>,
    /// The figure of the goal.
    pub value: f64,
    /// Data packets that all flows retransmitted.
    pub retransmitted: u64,
    /// The figure without each cause, in their order.
    #[serde(default)]
    pub ablation: Vec<HuntAblation>,
    /// The numbers of the world in words.
    pub numbers: String,
    /// The scenario file.
    pub scenario: String,
}

impl HuntCase {
    pub(crate) fn new(
        request: &HuntRequest,
        limits: &SpaceLimits,
        causes: &[Dimension],
        world: &HuntWorld,
        figure: WorldFigure,
        ablated: &[f64],
    ) -> Self {
        let name = |cause: &Dimension| match *cause {
            Dimension::Number(index) => NUMBERS[index].name.to_owned(),
            Dimension::Part(index) => PARTS[index].name.to_owned(),
        };
        let causes: Vec<String> = causes.iter().map(name).collect();
        let ablation = causes
            .iter()
            .zip(ablated)
            .map(|(cause, &value)| HuntAblation { cause: cause.clone(), value })
            .collect();
        Self {
            causes,
            value: figure.value,
            retransmitted: figure.retransmitted,
            ablation,
            numbers: world.numbers_in_words(limits),
            scenario: world.text(&request.sender),
        }
    }

    /// The causes in words.
    pub fn title(&self) -> String {
        if self.causes.is_empty() { "the plain path".to_owned() } else { self.causes.join(", ") }
    }

    /// A name for its file, without the ending.
    pub fn file_name(&self, number: usize) -> String {
        let causes =
            if self.causes.is_empty() { "plain".to_owned() } else { self.causes.join("-") };
        format!("{number:02}-{causes}")
    }
}

/// The result of a hunt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HuntReport {
    /// Version of the program.
    pub version: String,
    /// The sender.
    pub sender: String,
    /// The goal.
    pub goal: String,
    /// What the figure of a case is.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// The figure beyond which a world counts.
    pub limit: f64,
    /// Seed of the search.
    pub seed: u64,
    /// Numbers and parts that were left out.
    pub without: Vec<String>,
    /// Worlds that were run.
    pub worlds: usize,
    /// Those of them that differ from the plain path in one number or part.
    #[serde(default)]
    pub single_changes: usize,
    /// Single changes beyond the limit.
    #[serde(default)]
    pub single_changes_beyond: usize,
    /// Worlds that were drawn at random; the others are of local searches and of shrinking.
    pub drawn: usize,
    /// Drawn worlds beyond the limit.
    pub beyond: usize,
    /// Those of them whose cause was not checked, because the budget was used.
    pub unchecked: usize,
    /// A case for each cause, the worst first.
    pub cases: Vec<HuntCase>,
}

/// Numbers of worlds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HuntCounts {
    pub(crate) worlds: usize,
    pub(crate) single_changes: usize,
    pub(crate) single_changes_beyond: usize,
    pub(crate) drawn: usize,
    pub(crate) beyond: usize,
    pub(crate) unchecked: usize,
}

impl HuntReport {
    pub(crate) fn new(request: &HuntRequest, counts: HuntCounts, cases: Vec<HuntCase>) -> Self {
        let HuntCounts { worlds, single_changes, single_changes_beyond, drawn, beyond, unchecked } =
            counts;
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sender: request.sender.to_string(),
            goal: request.goal.to_string(),
            figure: request.goal.figure().to_owned(),
            unit: request.goal.unit().to_owned(),
            limit: request.limit,
            seed: request.seed,
            without: request.without.clone(),
            worlds,
            single_changes,
            single_changes_beyond,
            drawn,
            beyond,
            unchecked,
            cases,
        }
    }

    /// The report as JSON, with a final line break.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The report as text for a terminal.
    pub fn to_text(&self) -> String {
        use core::fmt::Write as _;
        let side =
            if self.goal == "starvation" || self.goal == "utilisation" { "below" } else { "above" };
        let mut text = format!(
            "{} of {}, seed {}\n{} worlds tried, {} of them drawn; {} of those {side} {} {}\n",
            self.goal,
            self.sender,
            self.seed,
            self.worlds,
            self.drawn,
            self.beyond,
            self.limit,
            self.unit
        );
        let _ = writeln!(
            text,
            "{} single changes of the plain path; {} of those {side} {} {}",
            self.single_changes, self.single_changes_beyond, self.limit, self.unit
        );
        if !self.without.is_empty() {
            let _ = writeln!(text, "without {}", self.without.join(", "));
        }
        if self.unchecked > 0 {
            let _ = writeln!(
                text,
                "the causes of {} of them were not checked: more --worlds may find more",
                self.unchecked
            );
        }
        if self.cases.is_empty() {
            let _ = writeln!(text, "nothing found within these limits");
            return text;
        }
        let _ = writeln!(text, "\n{}:", self.figure);
        for case in &self.cases {
            let figure = format!("{:.2} {}", case.value, self.unit);
            let _ = writeln!(
                text,
                "{figure:>10}  {}\n            {}; {} retransmitted",
                case.title(),
                case.numbers,
                case.retransmitted
            );
            let ablation: Vec<String> = case
                .ablation
                .iter()
                .map(|one| format!("without {}: {:.2} {}", one.cause, one.value, self.unit))
                .collect();
            if !ablation.is_empty() {
                let _ = writeln!(text, "            {}", ablation.join(", "));
            }
        }
        if let Some(worst) = self.cases.first() {
            let _ = write!(text, "\nthe worst:\n\n{}", worst.scenario.trim_end());
            text.push('\n');
        }
        text
    }
}
