//! A report as a page for a browser.

use report::page::{Page, PagePart};
use report::table::{ReportTable, TableCell, TableColumn, Tone};
use report::verdict::{PartColour, Verdict, VerdictPart};

use crate::report::{CriterionReport, CriterionVerdict, SuiteFigure, SuiteReport, WorldText};
use crate::text::{limit, reference, summary, value};

/// More scenario files than this are folded together.
const MOST_FOLDED: usize = 8;

/// The page: the verdicts, then the figures of each criterion with the scenario files of its worlds.
pub fn page(report: &SuiteReport) -> Page {
    let mut parts = vec![PagePart::Verdict(verdict(report)), PagePart::Table(verdicts(report))];
    for criterion in &report.criteria {
        // A section is a number, or has a name, as in `1bdp`.
        let is_number = criterion.section.chars().all(|one| one.is_ascii_digit() || one == '.');
        let colon = if is_number { "" } else { ":" };
        let heading = format!("{}{colon} {}", criterion.section, criterion.title);
        parts.push(PagePart::Heading(heading));
        if let Some(reason) = &criterion.reason {
            parts.push(PagePart::Text(format!("Not evaluated: {reason}.")));
            continue;
        }
        let phases = match criterion.phases > report.phases {
            true => format!(" Up to {} draws of a world.", criterion.phases),
            false => String::new(),
        };
        let source = match criterion.source.as_str() {
            "" => String::new(),
            source => format!(" Source: {source}."),
        };
        parts.push(PagePart::Text(format!("Limits: {}.{source}{phases}", criterion.limits)));
        parts.push(PagePart::Table(figures(criterion)));
        parts.extend(scenarios(&criterion.texts));
    }
    let mut facts = vec![
        ("sender".to_owned(), report.sender.clone()),
        ("references".to_owned(), report.against.join(", ")),
    ];
    if report.phases > 1 {
        let phases = report.phases.to_string();
        facts.push(("draws of each world, at least".to_owned(), phases));
        facts.push(("noise of the hosts".to_owned(), report.noise.clone()));
    }
    Page {
        title: format!("{}: {}", report.title(), report.sender),
        lead: report.of_suite().map_or("", |suite| suite.lead).to_owned(),
        facts,
        maker: format!("Ackclock {}", report.version),
        parts,
    }
}

/// The answer, and how many criteria had which verdict.
fn verdict(report: &SuiteReport) -> Verdict {
    let kinds = [
        (CriterionVerdict::Pass, "passed", '+', PartColour::Green),
        (CriterionVerdict::Fail, "failed", '!', PartColour::Vermilion),
        (CriterionVerdict::Undecided, "undecided", '?', PartColour::Amber),
        (CriterionVerdict::NotEvaluated, "not evaluated", '-', PartColour::Faint),
    ];
    let part = |(kind, name, letter, colour): (CriterionVerdict, &str, char, PartColour)| {
        let count = report.criteria.iter().filter(|one| one.verdict == kind).count();
        VerdictPart::count(name, letter, count, colour)
    };
    Verdict {
        sentence: format!("{}.", summary(report)),
        whole: format!("{} criteria", report.criteria.len()),
        parts: kinds.into_iter().map(part).collect(),
        ..Verdict::default()
    }
}

const fn tone(verdict: CriterionVerdict) -> Tone {
    match verdict {
        CriterionVerdict::Pass => Tone::Good,
        CriterionVerdict::Fail => Tone::Bad,
        CriterionVerdict::Undecided => Tone::Plain,
        CriterionVerdict::NotEvaluated => Tone::Quiet,
    }
}

/// The scenario files, each folded; many as one.
fn scenarios(worlds: &[WorldText]) -> Vec<PagePart> {
    if worlds.len() > MOST_FOLDED {
        let text =
            |world: &WorldText| format!("# {}.toml\n\n{}", world.name, world.text.trim_end());
        return vec![PagePart::Folded {
            title: format!("Scenarios of {} worlds", worlds.len()),
            text: worlds.iter().map(text).collect::<Vec<_>>().join("\n\n"),
        }];
    }
    let folded = |world: &WorldText| PagePart::Folded {
        title: format!("Scenario {}", world.name),
        text: world.text.clone(),
    };
    worlds.iter().map(folded).collect()
}

/// The figures that decide a verdict: those beyond their limits, else the undecided ones, else the one
/// that is nearest to its limit.
fn evidence(criterion: &CriterionReport) -> String {
    if let Some(reason) = &criterion.reason {
        return reason.clone();
    }
    let in_words = |figure: &SuiteFigure, note: &str| {
        let limit = with_unit(limit(figure), &figure.unit);
        format!("{}: {} ({limit}{note})", figure.name, typeset(&value(figure)))
    };
    let of = |is: fn(&SuiteFigure) -> bool, note: &str| -> Vec<String> {
        criterion.figures.iter().filter(|one| is(one)).map(|one| in_words(one, note)).collect()
    };
    let beyond = of(|figure| !figure.holds, "");
    if !beyond.is_empty() {
        return beyond.join("; ");
    }
    let undecided = of(SuiteFigure::is_undecided, ", undecided");
    if !undecided.is_empty() {
        return undecided.join("; ");
    }
    let nearest = criterion.figures.iter().filter(|figure| figure.use_of_limit().is_some());
    let nearest = nearest.max_by(|a, b| {
        let of = |figure: &SuiteFigure| figure.use_of_limit().unwrap_or(0.0);
        of(a).total_cmp(&of(b))
    });
    nearest.map_or_else(String::new, |figure| format!("nearest: {}", in_words(figure, "")))
}

fn verdicts(report: &SuiteReport) -> ReportTable {
    let row = |criterion: &CriterionReport| {
        vec![
            TableCell::from(criterion.section.as_str()),
            TableCell::from(criterion.title.as_str()),
            TableCell::from(match criterion.verdict {
                CriterionVerdict::Undecided => "undecided",
                other => other.word(),
            })
            .tone(tone(criterion.verdict)),
            TableCell::from(evidence(criterion)),
        ]
    };
    ReportTable {
        caption: "Verdicts".to_owned(),
        columns: vec![
            TableColumn::words("section"),
            TableColumn::words("criterion"),
            TableColumn::words("verdict"),
            TableColumn::words("figures that decide it"),
        ],
        rows: report.criteria.iter().map(row).collect(),
        ..ReportTable::default()
    }
}

fn figures(criterion: &CriterionReport) -> ReportTable {
    ReportTable {
        columns: vec![
            TableColumn::words("figure"),
            TableColumn::numbers("value"),
            TableColumn::numbers("worst reference"),
            TableColumn::numbers("limit"),
        ],
        rows: criterion
            .figures
            .iter()
            .map(|figure| {
                let tone = if figure.holds { Tone::Plain } else { Tone::Bad };
                let undecided = if figure.is_undecided() { ", undecided" } else { "" };
                let value = format!("{}{undecided}", typeset(&value(figure)));
                vec![
                    TableCell::from(figure.name.as_str()),
                    TableCell::from(value).tone(tone),
                    TableCell::from(typeset(&with_unit(reference(figure), &figure.unit))),
                    TableCell::from(with_unit(limit(figure), &figure.unit)),
                ]
            })
            .collect(),
        ..ReportTable::default()
    }
}

/// A value as a page has it.
fn typeset(value: &str) -> String {
    value.replace("+-", "±")
}

/// A figure with its unit; nothing without a figure.
fn with_unit(figure: String, unit: &str) -> String {
    if figure.is_empty() || unit.is_empty() { figure } else { format!("{figure} {unit}") }
}
