//! A loss detector in Rust: a segment is lost when three segments beyond it were SACKed, as RFC 6675
//! has it (without its count of bytes). It never finds a lost retransmission: only a timeout does.
//! `cargo run --release -p ackclock-runner --example own_detector FILE` runs the scenario in FILE with
//! it on every TCP host, and with the hosts' own detectors, and prints the retransmissions and
//! timeouts of both.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use std::{env, fs};

use recovery::external::{DetectorFactory, ExternalDetection, UserDetector};
use recovery::rack::{RackInput, RackLosses};
use recovery::sendmap::{SendMap, SentSegment};
use scenario::{Overrides, load};
use sim::scenario::StackSpec;
use tcp::profile::{LossDetectionRule, RackTlpRule};

/// Segments SACKed beyond a lost one (`DupThresh`).
const DUP_THRESH: u64 = 3;

/// The factory of the detector.
#[derive(Debug)]
struct CountingFactory;

impl DetectorFactory for CountingFactory {
    fn make(&self) -> Box<dyn UserDetector> {
        Box::new(Counting)
    }
}

/// The detector has no state: the scoreboard suffices.
#[derive(Debug)]
struct Counting;

impl UserDetector for Counting {
    fn detect(&mut self, map: &mut SendMap, _: &RackInput) -> RackLosses {
        let mut beyond = 0;
        let mut lost = Vec::new();
        for segment in map.iter().rev() {
            if segment.sacked() {
                beyond += 1;
            } else if beyond >= DUP_THRESH && segment.transmissions() == 1 && !segment.lost() {
                lost.push(SentSegment::start(segment));
            }
        }
        // In the order of the stream.
        for &start in lost.iter().rev() {
            map.lose(start);
        }
        RackLosses { packets: lost.len() as u64, reo_timeout: None }
    }

    fn fork(&self) -> Box<dyn UserDetector> {
        Box::new(Self)
    }
}

fn main() {
    let file = env::args().nth(1).expect("the name of a scenario file");
    let text = fs::read_to_string(&file).expect("a scenario file");
    let mut scenario = match load(&text, &file, &Overrides::default()) {
        Ok(loaded) => loaded.scenario,
        Err(mistakes) => panic!("{}", mistakes[0]),
    };
    let before = sim::run(&scenario, &mut record::NullRecorder).expect("a good scenario");
    let detection = ExternalDetection::new(CountingFactory);
    for host in &mut scenario.hosts {
        if let StackSpec::Tcp(tcp) = &mut host.stack {
            tcp.profile.loss = LossDetectionRule::RackTlp(RackTlpRule::External(detection));
        }
    }
    let after = sim::run(&scenario, &mut record::NullRecorder).expect("a good scenario");
    for (what, outcome) in [("of the profile", &before), ("own", &after)] {
        for flow in &outcome.flows {
            println!(
                "{what}: {}, {} B in {}, {} packets retransmitted, {} timeouts",
                flow.name,
                flow.bytes.get(),
                flow.duration,
                flow.retransmitted_segments,
                flow.rtos
            );
        }
    }
}
