//! A report as a Markdown table, for a pull request or a mail.

use core::fmt::Write as _;

use crate::report::{FigureVerdict, SuiteReport};
use crate::text::{limit, reference, summary, value};

/// The report with all figures.
pub fn render(report: &SuiteReport) -> String {
    let mut text = format!(
        "## {}: {} against {}\n\n{}{}.\n\n| section | figure | value | worst reference | limit | |\n|---|---|---:|---:|---:|---|\n",
        report.title(),
        report.sender,
        report.against.join(", "),
        summary(report),
        match report.phases {
            0 | 1 => String::new(),
            draws => format!("; {draws} draws of each world, more where these do not decide"),
        }
    );
    for criterion in &report.criteria {
        let _ = writeln!(
            text,
            "| **{}** | **{}** | {} | | | **{}** |",
            criterion.section,
            criterion.title,
            criterion.reason.as_deref().unwrap_or_default(),
            criterion.verdict.word()
        );
        for figure in &criterion.figures {
            let _ = writeln!(
                text,
                "| | {} | {} | {} | {} | {} |",
                figure.name,
                value(figure),
                reference(figure),
                limit(figure),
                match figure.verdict {
                    FigureVerdict::Holds => "",
                    FigureVerdict::Fails => "**beyond**",
                    FigureVerdict::Undecided => "undecided",
                }
            );
        }
    }
    text
}
