//! The short form of results: the answer in a sentence, and each asserted figure beside the published
//! one. Figures that kernels recorded are summed up, as are those without a bound.

use core::fmt::Write;

use super::text::{band, columns, figure};
use super::{CASES, CaseReport, CaseResult, CaseRow};

/// Widest cells of each column: figure, published, measured, unit, tolerance, holds.
const WIDEST: [usize; 6] = [35, 14, 14, 8, 14, 5];

/// The answer: the number of asserted figures that hold.
pub fn answer(report: &CaseReport) -> String {
    let rows = || report.cases.iter().flat_map(|case| &case.rows).filter(|row| is_asserted(row));
    let (asserted, held) = (rows().count(), rows().filter(|row| row.holds == Some(true)).count());
    let recorded = rows().filter(|row| row.recorded).count();
    let kinds = match asserted - recorded {
        0 => "recorded of kernels".to_owned(),
        published if recorded == 0 => format!("{published} published"),
        published => format!("{published} published, {recorded} recorded of kernels"),
    };
    let status = if held == asserted { "" } else { " (exit status 1)" };
    let more = match report.cases.iter().map(|case| case.rows.len()).sum::<usize>() - asserted {
        0 => String::new(),
        more => format!("; {more} more have no bound"),
    };
    format!("{held} of {asserted} asserted figures hold{status}: {kinds}{more}\n")
}

/// The command for every figure with its source.
pub fn hint(report: &CaseReport) -> String {
    let names: Vec<&str> = report.cases.iter().map(|case| case.id).collect();
    let cases =
        if names.len() == CASES.len() { String::new() } else { format!(" {}", names.join(" ")) };
    format!("\nEvery figure with its source: ackclock reproduce{cases} --full\n")
}

/// The case: how many figures hold, and a table of those that were published.
pub fn summary(case: &CaseResult) -> String {
    let asserted: Vec<&CaseRow> = case.rows.iter().filter(|row| is_asserted(row)).collect();
    let held = asserted.iter().filter(|row| row.holds == Some(true)).count();
    let others: Vec<&CaseRow> = case.rows.iter().filter(|row| !is_asserted(row)).collect();
    let mut out = format!("{}: {}\n", case.id, case.title);
    let more = match others.len() {
        0 => String::new(),
        more => format!("; {more} more without a bound{}", deviations(&others)),
    };
    let _ = writeln!(out, "  {held} of {} asserted figures hold{more}\n", asserted.len());
    let header = ["  figure", "published", "measured", "unit", "tolerance", "holds"];
    let mut lines = vec![header.map(str::to_owned)];
    // A recorded figure is shown if it does not hold.
    let shown = |row: &&&CaseRow| !row.recorded || row.holds == Some(false);
    lines.extend(asserted.iter().filter(shown).map(|row| {
        [
            format!("  {}", row.name),
            figure(row.published.as_ref()),
            figure(row.measured.as_ref()),
            row.unit.to_owned(),
            band(row),
            if row.holds == Some(true) { "yes" } else { "NO" }.to_owned(),
        ]
    }));
    if lines.len() > 1 {
        columns(&mut out, &lines, &[1, 2], &WIDEST);
    }
    let recorded: Vec<&CaseRow> = asserted.into_iter().filter(|row| row.recorded).collect();
    if !recorded.is_empty() {
        let held = recorded.iter().filter(|row| row.holds == Some(true)).count();
        let _ = writeln!(
            out,
            "  recorded of kernels: {held} of {} hold{}",
            recorded.len(),
            deviations(&recorded)
        );
    }
    out
}

const fn is_asserted(row: &CaseRow) -> bool {
    row.holds.is_some()
}

/// The range of the deviations from the published figures; empty if there are none.
fn deviations(rows: &[&CaseRow]) -> String {
    let percents = || rows.iter().filter_map(|row| row.deviation_percent());
    match percents().count() {
        0 => String::new(),
        _ => {
            let least = percents().fold(f64::INFINITY, f64::min);
            let most = percents().fold(f64::NEG_INFINITY, f64::max);
            let text = |percent: f64| format!("{percent:+.1}").replace("-0.0", "+0.0");
            format!(", {} to {} % off the published", text(least), text(most))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rows: Vec<CaseRow>) -> CaseReport {
        let case = CaseResult {
            id: "prr",
            title: "t",
            source: "s",
            knobs: vec![],
            rows,
            exhibit: String::new(),
        };
        CaseReport { cases: vec![case], ..CaseReport::new() }
    }

    #[test]
    fn every_asserted_figure_is_beside_the_published_one() {
        let report = report(vec![
            CaseRow::exact("good", "B", 1.0, Some(1.0)),
            CaseRow::band("near", "s", 2.0, Some(2.5), 1.0, 3.0),
            CaseRow::exact("bad", "B", 1.0, Some(2.0)),
            CaseRow::band("kernel", "s", 10.0, Some(10.5), 9.0, 11.0).recorded(),
            CaseRow::exact("other kernel", "s", 10.0, None).recorded(),
            CaseRow::predicted("guess", "B", Some(4.0), Some(3.0)),
        ]);
        assert_eq!(
            answer(&report),
            "3 of 5 asserted figures hold (exit status 1): 3 published, 2 recorded of kernels; \
             1 more have no bound\n"
        );
        assert_eq!(
            summary(&report.cases[0]),
            "\
prr: t
  3 of 5 asserted figures hold; 1 more without a bound, -25.0 to -25.0 % off the published

  figure        published  measured  unit  tolerance  holds
  good                  1         1  B     exact      yes
  near                  2       2.5  s     1 to 3     yes
  bad                   1         2  B     exact      NO
  other kernel         10         -  s     exact      NO
  recorded of kernels: 1 of 2 hold, +5.0 to +5.0 % off the published
"
        );
        assert!(hint(&report).contains("ackclock reproduce prr --full"));
    }

    #[test]
    fn the_answer_names_what_holds() {
        let held = report(vec![CaseRow::exact("good", "B", 1.0, Some(1.0))]);
        assert_eq!(answer(&held), "1 of 1 asserted figures hold: 1 published\n");
        assert!(!summary(&held.cases[0]).contains("recorded"));
    }
}
