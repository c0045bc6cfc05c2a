//! The published cases as a page: each document's observation, run again and drawn, and every
//! figure of it beside the measured one.
//!
//! Reading order: [`page`] (the whole), `stories` (what each case shows, in words and plots),
//! `tables` (figures and inputs).

mod stories;
mod tables;

use report::page::{Page, Part};

use crate::cases::{CaseError, CaseResult, Report};
use pages::run_page::maker;

/// The page of the cases that were run.
///
/// # Errors
/// [`CaseError`] if a run that is drawn cannot be set up.
pub fn page(report: &Report) -> Result<Page, CaseError> {
    let mut parts = vec![tables::verdicts(&report.cases)];
    for case in &report.cases {
        parts.push(Part::Heading(case.title.to_owned()));
        parts.push(Part::Text(format!("Published in: {}.", case.source)));
        parts.extend(stories::of(case.id)?);
        parts.push(tables::figures(case));
        parts.push(tables::knobs(case));
        if !case.exhibit.is_empty() {
            let title = "What happens, in words, and the traces and grids behind it".to_owned();
            parts.push(Part::Folded { title, text: case.exhibit.clone() });
        }
    }
    Ok(Page {
        title: "Published observations, run again".into(),
        lead: "Each of these was seen on real machines or in another simulator, and written down. \
               Here the same senders meet the same paths in virtual time. Every published figure \
               stands beside what was measured for this page; what is not met says so."
            .into(),
        facts: vec![("made by".into(), format!("{}: reproduce --report", maker()))],
        maker: maker(),
        parts,
    })
}

/// Figures that must hold, and those of them that do.
fn count(case: &CaseResult) -> (usize, usize) {
    let asserted = case.rows.iter().filter_map(|row| row.holds);
    (asserted.clone().filter(|holds| *holds).count(), asserted.count())
}
