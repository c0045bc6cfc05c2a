//! A controller of one's own in Rust: doubles its window each round trip until a loss, then adds a
//! segment each; half at a loss. `cargo run --release -p ackclock-runner --example own_controller FILE`
//! runs the scenario in FILE with the controller as `own` and prints what it cost. The same in Python
//! is in `bindings/python/bench/overhead.py`, which compares the two.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use std::{env, fs};

use cc::outside::{Decision, Every, Gone, LossReport, Maker, Outside, Pilot, Report};
use scenario::{Overrides, load};
use units::{Bytes, Instant};

/// Makes the controller.
#[derive(Debug)]
struct Own;

impl Maker for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn every(&self) -> Every {
        Every::Round
    }

    fn base_grows(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn Pilot> {
        Box::new(Growing)
    }
}

/// All it needs to know is in the reports.
#[derive(Debug)]
struct Growing;

impl Pilot for Growing {
    fn on_start(&mut self, _: Instant, _: u32, _: Bytes) -> Result<Decision, Gone> {
        Ok(Decision::default())
    }

    fn on_report(&mut self, report: &Report) -> Result<Decision, Gone> {
        let window = match report.ssthresh {
            None => report.window + report.window,
            Some(_) => report.window + Bytes(u64::from(report.mss)),
        };
        Ok(Decision { window: Some(window), ..Decision::default() })
    }

    fn on_loss(&mut self, loss: &LossReport) -> Result<Decision, Gone> {
        let half = Bytes((loss.window.get() / 2).max(2 * u64::from(loss.mss)));
        Ok(Decision { window: Some(half), ssthresh: Some(half), ..Decision::default() })
    }

    fn fork(&self) -> Box<dyn Pilot> {
        Box::new(Self)
    }
}

fn main() {
    let file = env::args().nth(1).expect("the name of a scenario file");
    let text = fs::read_to_string(&file).expect("a scenario file");
    let overrides = Overrides { controllers: vec![Outside::new(Own)], ..Overrides::default() };
    let loaded = match load(&text, &file, &overrides) {
        Ok(loaded) => loaded,
        Err(mistakes) => panic!("{}", mistakes[0]),
    };
    let began = nanoseconds();
    let outcome = sim::run(&loaded.scenario, &mut record::Off).expect("a good scenario");
    let spent = nanoseconds() - began;
    let resent: u64 = outcome.flows.iter().map(|flow| flow.retransmitted_segments).sum();
    println!("{} {resent} {spent}", outcome.segments);
}

/// What the processor has given to this thread (Linux).
fn nanoseconds() -> u64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat of Linux");
    told.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).expect("a number")
}
