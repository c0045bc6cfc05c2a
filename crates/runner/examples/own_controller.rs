//! An external controller in Rust: doubles its window each round trip until a loss, then adds a
//! segment per round trip; halves it at a loss. `cargo run --release -p ackclock-runner --example
//! own_controller FILE` runs the scenario in FILE with the controller as `own` and prints the cost.
//! `bindings/python/bench/overhead.py` has the same controller in Python and compares the two.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use std::{env, fs};

use cc::external::{
    CcDecision, CcReport, ControllerError, ControllerFactory, ExternalAlgorithm, LossReport,
    ReportTrigger, UserController,
};
use cpu_time::ThreadTime;
use scenario::{Overrides, load};
use units::{Bytes, Instant};

/// The factory of the controller.
#[derive(Debug)]
struct ExampleFactory;

impl ControllerFactory for ExampleFactory {
    fn name(&self) -> &'static str {
        "own"
    }

    fn every(&self) -> ReportTrigger {
        ReportTrigger::Round
    }

    fn base_grows(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn UserController> {
        Box::new(ExampleController)
    }
}

/// The controller has no state: the reports suffice.
#[derive(Debug)]
struct ExampleController;

impl UserController for ExampleController {
    fn on_start(&mut self, _: Instant, _: u32, _: Bytes) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision::default())
    }

    fn on_report(&mut self, report: &CcReport) -> Result<CcDecision, ControllerError> {
        let window = match report.ssthresh {
            None => report.window + report.window,
            Some(_) => report.window + Bytes(u64::from(report.mss)),
        };
        Ok(CcDecision { window: Some(window), ..CcDecision::default() })
    }

    fn on_loss(&mut self, loss: &LossReport) -> Result<CcDecision, ControllerError> {
        let half = Bytes((loss.window.get() / 2).max(2 * u64::from(loss.mss)));
        Ok(CcDecision { window: Some(half), ssthresh: Some(half), ..CcDecision::default() })
    }

    fn fork(&self) -> Box<dyn UserController> {
        Box::new(Self)
    }
}

fn main() {
    let file = env::args().nth(1).expect("the name of a scenario file");
    let text = fs::read_to_string(&file).expect("a scenario file");
    let overrides = Overrides {
        controllers: vec![ExternalAlgorithm::new(ExampleFactory)],
        ..Overrides::default()
    };
    let loaded = match load(&text, &file, &overrides) {
        Ok(loaded) => loaded,
        Err(mistakes) => panic!("{}", mistakes[0]),
    };
    let began = ThreadTime::now();
    let outcome = sim::run(&loaded.scenario, &mut record::NullRecorder).expect("a good scenario");
    let time_by_use = began.elapsed().as_nanos();
    let retransmitted: u64 = outcome.flows.iter().map(|flow| flow.retransmitted_segments).sum();
    println!("{} {retransmitted} {time_by_use}", outcome.segments);
}
