//! The page of the ledger about logs of releases of QUIC stacks.

use core::fmt::Write as _;

use super::{LARGE_COST, QUIC_DISTRIBUTION, REAL_STACK, known_rates, near_costs, of, text};
use crate::judge::Verdict;
use crate::{DrawResult, Exam, ExamPlan};

/// The page about exams of stacks, each with the release that was examined.
pub fn releases(exams: &[(&str, ExamPlan, Exam)]) -> String {
    let names: Vec<&str> = exams.iter().filter_map(|(_, plan, _)| plan.engine.stack()).collect();
    let (seed, count) =
        exams.first().map_or((0, 0), |(_, plan, _)| (plan.seed, plan.numbers.len()));
    let names = names.join(",");
    let mut out = format!(
        "<!-- cargo xtask exam --quic --ledger --stack {names} --seed {seed} --count {count} writes this page -->\n\n\
         # Verdicts on logs of QUIC stacks\n\nMachine: any: virtual time.\n\n{QUIC_DISTRIBUTION}{REAL_STACK}\n\n"
    );
    let _ = writeln!(
        out,
        "| release | draws | verdicts right | healthy silent | costs above {LARGE_COST} s within 20 % | \
         rates of saturated paths within 10 % |\n|---|---|---|---|---|---|"
    );
    for (release, _, exam) in exams {
        let right = |is_healthy: bool| {
            let all = exam.results.iter().filter(|one| one.causes.is_empty() == is_healthy);
            let all: Vec<&DrawResult> = all.collect();
            of(all.iter().filter(|one| one.is(Verdict::Right)).count(), all.len())
        };
        let [(near, large), (known, saturated)] =
            [near_costs(&exam.results), known_rates(&exam.results)];
        let _ = writeln!(
            out,
            "| {release} | {} | {} | {} | {} | {} |",
            exam.results.len(),
            right(false),
            right(true),
            of(near, large),
            of(known, saturated),
        );
    }
    for (release, plan, exam) in exams {
        let name = plan.engine.stack().unwrap_or_default();
        let (seed, count) = (plan.seed, plan.numbers.len());
        let _ = writeln!(
            out,
            "\n## {release}\n\n```text\n$ cargo xtask exam --quic --stack {name} --seed {seed} --count {count}\n{}```",
            text(plan, exam)
        );
    }
    out
}
