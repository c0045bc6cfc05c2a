//! Draws, the truth about them, and the results of an exam.

use std::collections::{BTreeMap, BTreeSet};

use ackclock_exam as exam;
use exam::capture::CapturePoint;
use exam::{Case, Engine, ExamPlan, FaultKind, Transport, table};
use ingest::diagnosis::Validity;
use scenario::{Overrides, load};

fn plan(transport: Transport, seed: u64, numbers: core::ops::Range<u64>) -> ExamPlan {
    ExamPlan { transport, seed, numbers: numbers.collect(), engine: Engine::Models }
}

#[test]
fn the_same_seed_gives_the_same_results_on_any_number_of_threads() {
    for transport in [Transport::Tcp, Transport::Quic] {
        let plan = plan(transport, 11, 0..12);
        let (one, two) = (exam::exam(&plan, 1, |_| {}), exam::exam(&plan, 2, |_| {}));
        assert_eq!(one.results, two.results);
        assert_eq!(table::text(&plan, &one), table::text(&plan, &two));
        assert_eq!(one.failures, []);
    }
}

/// Every fault is drawn in both directions and at every capture point; a third of the draws is healthy, and
/// about a tenth has two faults.
#[test]
fn draws_cover_faults_directions_and_points() {
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut healthy, mut double) = (0, 0);
    const DRAWS: u64 = 8_000;
    for number in 0..DRAWS {
        let case = Case::draw(Transport::Tcp, 1, number);
        healthy += u32::from(case.faults.is_empty());
        let has_rests = case.faults.iter().any(|one| one.kind() == FaultKind::IdleRestart);
        double += u32::from(case.faults.len() > 1 && !has_rests);
        for fault in &case.faults {
            let at = seen.entry(fault.kind().name()).or_default();
            at.extend([case.world.direction.name(), case.settings.point.name()]);
        }
    }
    assert_eq!(seen.len(), 35, "{seen:?}");
    for (fault, at) in seen {
        assert_eq!(at.len(), 6, "{fault}: {at:?}");
    }
    assert!((2_500..2_850).contains(&healthy), "{healthy}");
    assert!((700..900).contains(&double), "{double}");
}

/// The scenario of every draw is valid, whatever its fault.
#[test]
fn every_drawn_scenario_can_be_run() {
    for transport in [Transport::Tcp, Transport::Quic] {
        let mut left: BTreeSet<FaultKind> = BTreeSet::new();
        for number in 0..400 {
            let case = Case::draw(transport, 2, number);
            let is_new = |kind: &FaultKind| !left.contains(kind);
            let kinds: Vec<FaultKind> = case.faults.iter().map(exam::Fault::kind).collect();
            if !kinds.iter().any(is_new) {
                continue;
            }
            left.extend(kinds);
            let run = case.run(&Engine::Models).unwrap_or_else(|error| panic!("{number}: {error}"));
            let loaded = load(&run.text, "draw.toml", &Overrides::default());
            assert!(loaded.is_ok(), "{number}: {loaded:?}");
        }
        assert!(left.len() >= 15, "{left:?}");
    }
}

/// A fault costs what the same transfer takes without it, and a cure that removes the fault gives that time.
#[test]
fn a_removed_fault_is_a_cure_that_gains_its_cost() {
    let mut compared = 0;
    for number in 0..300 {
        let case = Case::draw(Transport::Tcp, 3, number);
        let [fault] = &case.faults[..] else { continue };
        if fault.kind() != FaultKind::RandomLoss {
            continue;
        }
        let run = case.run(&Engine::Models).unwrap();
        let (Some(cost), Some(cure)) = (run.truth.costs.first(), run.truth.cures.first()) else {
            continue;
        };
        assert_eq!(run.truth.duration.saturating_sub(cure.duration), cost.cost.unwrap());
        compared += 1;
    }
    assert!(compared > 0);
}

#[test]
fn the_page_of_the_ledger_names_command_and_distribution() {
    let plan = plan(Transport::Tcp, 4, 0..2);
    let exam = exam::exam(&plan, 1, |_| {});
    let page = table::ledger(&[(plan, exam)]);
    assert!(page.contains("$ cargo xtask exam --tcp --seed 4 --count 2\n"), "{page}");
    assert!(page.contains("A third is healthy"), "{page}");
}

/// Losses before a capture between the hosts are fitted: the cure without them has a time.
#[test]
fn losses_before_a_capture_between_the_hosts_are_fitted() {
    let draws = (0..4_000).map(|number| Case::draw(Transport::Tcp, 2, number));
    let is_lossy = |case: &Case| {
        let kinds: Vec<_> = case.faults.iter().map(exam::Fault::kind).collect();
        kinds == [FaultKind::RandomLoss]
            && case.settings.point == CapturePoint::Middle
            && !case.settings.without_syn
    };
    let mut predicted = Vec::new();
    for case in draws.filter(is_lossy) {
        let run = case.run(&Engine::Models).unwrap();
        let answer = exam::judge(&run).unwrap();
        let first = answer.cures.into_iter().find(|cure| cure.name == "loss removed");
        predicted.extend(first.map(|cure| {
            let (time, prediction) = cure.prediction.unwrap();
            let off = time.as_secs_f64() / cure.truth.as_secs_f64() - 1.0;
            (prediction.validity, off)
        }));
        if predicted.len() == 6 {
            break;
        }
    }
    let near =
        predicted.iter().filter(|(validity, off)| *validity != Validity::None && off.abs() <= 0.1);
    assert!(predicted.len() >= 5 && near.count() * 5 >= predicted.len() * 3, "{predicted:?}");
}

/// What is kept of a case has its truth: causes with place and cost.
#[test]
fn a_kept_case_has_its_truth() {
    let case = Case::draw(Transport::Tcp, 3, 1).run(&Engine::Models).unwrap();
    let files = case.files().unwrap();
    let (_, bytes) = files.iter().find(|(name, _)| name == "1-truth.json").unwrap();
    let truth: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let causes = truth["causes"].as_array().unwrap();
    assert_eq!(causes.len(), case.truth.costs.len());
    for (cause, cost) in causes.iter().zip(&case.truth.costs) {
        assert_eq!(cause["place"], cost.fault.kind().place());
        assert_eq!(cause["cost_s"].as_f64(), cost.cost.map(|cost| cost.as_secs_f64()));
    }
}

/// What the hosts wrote and what boxes did is fitted: most cures of these faults have a figure near the truth.
#[test]
fn exchanges_and_boxes_are_fitted() {
    for kind in [
        FaultKind::AppWindow,
        FaultKind::NoScaling,
        FaultKind::ServerThinks,
        FaultKind::SynLost,
        FaultKind::ClientThinks,
    ] {
        let draws = (0..4_000).map(|number| Case::draw(Transport::Tcp, 6, number));
        let is_alone = |case: &Case| {
            case.faults.len() == 1
                && case.faults[0].kind() == kind
                && case.settings.point == CapturePoint::Sender
                && !case.settings.without_syn
        };
        let (mut near, mut cures) = (0, 0);
        for case in draws.filter(is_alone).take(6) {
            let answer = exam::judge(&case.run(&Engine::Models).unwrap()).unwrap();
            for cure in answer.cures {
                cures += 1;
                let truth = cure.truth.as_secs_f64();
                near += u32::from(cure.prediction.is_ok_and(|(time, prediction)| {
                    let is_within =
                        (prediction.low_s * 0.99..=prediction.high_s * 1.01).contains(&truth);
                    let is_figure = (time.as_secs_f64() / truth - 1.0).abs() <= 0.1;
                    prediction.validity != Validity::None && (is_figure || is_within)
                }));
            }
        }
        assert!(cures >= 3 && near * 3 >= cures * 2, "{}: {near} of {cures}", kind.name());
    }
}

/// Draws on which what a transfer costs by itself, and what ends it, was stated wrongly: losses of a queue that is long
/// enough, a host that writes by a clock, and requests at once with an opening before them and an answer after them.
#[test]
fn costs_without_a_fault_and_the_ends_of_batches_are_as_applied() {
    const SEED: u64 = 1_796_140_842;
    for number in [265, 325, 69] {
        let (_, answer) = exam::examine(Transport::Tcp, SEED, number, &Engine::Models).unwrap();
        assert_eq!(answer.verdict, exam::Verdict::Right, "draw {number}: {:?}", answer.primary);
    }
    for number in [264, 308] {
        let (_, answer) = exam::examine(Transport::Tcp, SEED, number, &Engine::Models).unwrap();
        let [cure] = &answer.cures[..] else { panic!("draw {number}: {:?}", answer.cures) };
        let (predicted, _) = cure.prediction.as_ref().unwrap();
        let off = predicted.as_secs_f64() / cure.truth.as_secs_f64() - 1.0;
        assert!(off.abs() <= 0.1, "draw {number}: {predicted} for {}", cure.truth);
    }
}
