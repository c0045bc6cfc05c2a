//! A report as a page for a browser.

use report::page::{Page, PagePart};
use report::table::{ReportTable, TableCell, TableColumn, Tone};

use crate::report::{CriterionReport, CriterionVerdict, SuiteReport};
use crate::text::{limit, reference, summary, value};

/// The page: the verdicts, then the figures of each criterion with the scenario files of its worlds.
pub fn page(report: &SuiteReport) -> Page {
    let mut parts = vec![PagePart::Table(verdicts(report))];
    for criterion in &report.criteria {
        parts.push(PagePart::Heading(format!("{} {}", criterion.section, criterion.title)));
        if let Some(reason) = &criterion.reason {
            parts.push(PagePart::Text(format!("Not evaluated: {reason}.")));
            continue;
        }
        parts.push(PagePart::Text(format!("Limits: {}.", criterion.limits)));
        parts.push(PagePart::Table(figures(criterion)));
        for world in &criterion.texts {
            parts.push(PagePart::Folded {
                title: format!("Scenario {}", world.name),
                text: world.text.clone(),
            });
        }
    }
    let mut facts = vec![
        ("sender".to_owned(), report.sender.clone()),
        ("references".to_owned(), report.against.join(", ")),
    ];
    if report.phases > 1 {
        let phases = report.phases.to_string();
        facts.push(("start phases of worlds with several flows".to_owned(), phases));
    }
    Page {
        title: format!("{}: {}", report.title(), report.sender),
        lead: format!("{}. {}", summary(report), report.of_suite().map_or("", |suite| suite.lead)),
        facts,
        maker: format!("Ackclock {}", report.version),
        parts,
    }
}

const fn tone(verdict: CriterionVerdict) -> Tone {
    match verdict {
        CriterionVerdict::Pass => Tone::Good,
        CriterionVerdict::Fail => Tone::Bad,
        CriterionVerdict::NotEvaluated => Tone::Quiet,
    }
}

fn verdicts(report: &SuiteReport) -> ReportTable {
    let row = |criterion: &CriterionReport| {
        let beyond: Vec<String> = criterion
            .figures
            .iter()
            .filter(|figure| !figure.holds)
            .map(|figure| format!("{}: {} ({})", figure.name, value(figure), limit(figure)))
            .collect();
        let evidence = criterion.reason.clone().unwrap_or_else(|| beyond.join("; "));
        vec![
            TableCell::from(criterion.section.as_str()),
            TableCell::from(criterion.title.as_str()),
            TableCell::from(criterion.verdict.word()).tone(tone(criterion.verdict)),
            TableCell::from(evidence),
        ]
    };
    ReportTable {
        caption: "Verdicts".to_owned(),
        columns: vec![
            TableColumn::words("section"),
            TableColumn::words("criterion"),
            TableColumn::words("verdict"),
            TableColumn::words("figures beyond their limits"),
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
                vec![
                    TableCell::from(figure.name.as_str()),
                    TableCell::from(value(figure)).tone(tone),
                    TableCell::from(with_unit(reference(figure), &figure.unit)),
                    TableCell::from(with_unit(limit(figure), &figure.unit)),
                ]
            })
            .collect(),
        ..ReportTable::default()
    }
}

/// A figure with its unit; nothing without a figure.
fn with_unit(figure: String, unit: &str) -> String {
    if figure.is_empty() || unit.is_empty() { figure } else { format!("{figure} {unit}") }
}
