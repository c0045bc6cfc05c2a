//! A user's own loss detector against the built-in one: RFC 8985 written as the former gives the
//! same packets.

use ackclock_simtest as simtest;
use cc::Algorithm;
use record::Digest;
use recovery::external::{DetectorFactory, ExternalDetection, UserDetector};
use recovery::rack::{DeliveredSegment, Rack, RackInput, RackLosses};
use recovery::sendmap::SendMap;
use scenario::Overrides;
use sim::scenario::{Scenario, StackSpec, TcpStack};
use simtest::worlds::draw;
use tcp::profile::{LossDetectionRule, RackTlpRule, TcpProfile};
use units::{Duration, Instant, Offset};

#[derive(Debug)]
struct RackFactory;

impl DetectorFactory for RackFactory {
    fn make(&self) -> Box<dyn UserDetector> {
        Box::new(OwnRack(Rack::new()))
    }
}

#[derive(Debug, Clone)]
struct OwnRack(Rack);

impl UserDetector for OwnRack {
    fn on_delivered(&mut self, segment: &DeliveredSegment, now: Instant, min_rtt: Duration) {
        self.0.on_delivered(segment, now, min_rtt);
    }

    fn on_duplicate(&mut self, una: Offset, max: Offset) {
        self.0.on_duplicate(una, max);
    }

    fn detect(&mut self, map: &mut SendMap, input: &RackInput) -> RackLosses {
        self.0.detect_loss(map, input)
    }

    fn on_timeout(&mut self, map: &mut SendMap, input: &RackInput) {
        self.0.on_timeout(map, input);
    }

    fn on_recovered(&mut self) {
        self.0.on_recovered();
    }

    fn fork(&self) -> Box<dyn UserDetector> {
        Box::new(self.clone())
    }
}

/// Runs a scenario with every TCP host on the RFCs' profile and this rule; returns the digest of its events,
/// and the packets retransmitted.
fn run(scenario: &Scenario, cc: &Algorithm, rule: RackTlpRule) -> (u64, u64) {
    let mut scenario = scenario.clone();
    for host in &mut scenario.hosts {
        if let StackSpec::Tcp(stack) = &mut host.stack {
            let mut profile = TcpProfile::named("rfc").unwrap();
            profile.loss = LossDetectionRule::RackTlp(rule);
            *stack = TcpStack { profile, cc: *cc, ..stack.clone() };
        }
    }
    scenario.duration = scenario.duration.min(Duration::from_secs(20));
    let mut digest = Digest::default();
    let outcome = sim::run(&scenario, &mut digest).unwrap();
    (digest.value(), outcome.flows.iter().map(|flow| flow.retransmitted_segments).sum())
}

#[test]
fn rack_as_an_external_detector_sends_the_same_packets() {
    let own = RackTlpRule::External(ExternalDetection::new(RackFactory));
    let cc = TcpProfile::named("rfc").unwrap().controller();
    let mut retransmitted = 0;
    for number in 0..300 {
        let text = draw(11, number);
        let scenario = scenario::load(&text, "world", &Overrides::default()).unwrap().scenario;
        let built_in = run(&scenario, &cc, RackTlpRule::Rfc);
        assert_eq!(built_in, run(&scenario, &cc, own), "world {number} of seed 11\n{text}");
        retransmitted += built_in.1;
    }
    assert!(retransmitted > 3_000, "{retransmitted} packets retransmitted");
}
