//! The published cases as a page: each document's observation, reproduced and drawn, and every
//! figure of it with the measured one.
//!
//! Reading order: [`page`] (the whole), `stories` (the explanation of each case, with plots),
//! `tables` (figures and inputs).

mod stories;
mod tables;

use report::page::{Page, PagePart};

use crate::cases::{CaseError, CaseReport, CaseResult};
use pages::run_page::maker;

/// The page of the given cases.
///
/// # Errors
/// [`CaseError`] if a run that is drawn cannot be set up.
pub fn page(report: &CaseReport) -> Result<Page, CaseError> {
    let mut parts = vec![tables::verdicts(&report.cases)];
    for case in &report.cases {
        parts.push(PagePart::Heading(case.title.to_owned()));
        parts.push(PagePart::Text(format!("Published in: {}.", case.source)));
        parts.extend(stories::of(case.id)?);
        parts.push(tables::figures(case));
        parts.push(tables::knobs(case));
        if !case.exhibit.is_empty() {
            let title = "Explanation, traces and grids".to_owned();
            parts.push(PagePart::Folded { title, text: case.exhibit.clone() });
        }
    }
    Ok(Page {
        title: "Published observations, reproduced".into(),
        lead: "Each of these was observed on real machines or in another simulator and published. \
               Here the same senders run over the same paths in virtual time. Every published \
               figure is listed with the one measured for this page; misses are marked."
            .into(),
        facts: vec![("made by".into(), format!("{}: reproduce --report", maker()))],
        maker: maker(),
        parts,
    })
}

/// Number of asserted figures that hold, and of all asserted figures.
fn count(case: &CaseResult) -> (usize, usize) {
    let asserted = case.rows.iter().filter_map(|row| row.holds);
    (asserted.clone().filter(|holds| *holds).count(), asserted.count())
}
