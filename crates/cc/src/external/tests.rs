use super::*;
use crate::SmoothedRtt;

/// Adds two segments per report; keeps three quarters at a loss.
#[derive(Debug, Clone)]
struct Two;

impl UserController for Two {
    fn on_start(&mut self, _: Instant, mss: u32, _: Bytes) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision { window: Some(Bytes(4 * u64::from(mss))), ..CcDecision::default() })
    }

    fn on_report(&mut self, report: &CcReport) -> Result<CcDecision, ControllerError> {
        let window = Bytes(report.window.get() + 2 * u64::from(report.mss));
        Ok(CcDecision { window: Some(window), ..CcDecision::default() })
    }

    fn on_loss(&mut self, loss: &LossReport) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision { window: Some(Bytes(loss.window.get() * 3 / 4)), ..CcDecision::default() })
    }

    fn fork(&self) -> Box<dyn UserController> {
        Box::new(self.clone())
    }
}

#[derive(Debug)]
struct Twos(ReportTrigger);

impl ControllerFactory for Twos {
    fn name(&self) -> &'static str {
        "two"
    }

    fn every(&self) -> ReportTrigger {
        self.0
    }

    fn base_grows(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn UserController> {
        Box::new(Two)
    }
}

fn established(every: ReportTrigger) -> AnyController {
    started(ExternalAlgorithm::new(Twos(every)).on_linux())
}

fn started(mut cc: AnyController) -> AnyController {
    let _ = cc.on_established(&ConnectionStart {
        now: Instant::ZERO,
        ticks: 0,
        created_ticks: 0,
        una: Offset(0),
        mss: 1_000,
        maxseg: 1_000,
        snd_scale: 7,
        syn_retransmitted: false,
        rtt: None,
        ssthresh: None,
    });
    cc
}

fn acked(millis: u64, una: u64, snd_nxt: u64) -> AckEvent {
    AckEvent {
        now: Instant::ZERO + Duration::from_millis(millis),
        ticks: millis,
        rtt: Some(Duration::from_millis(40)),
        srtt: SmoothedRtt::default(),
        snd_nxt: Offset(snd_nxt),
        una: Offset(una),
        bytes: 1_000,
        packets: 1,
        nsegs: 1,
        ends_recovery: false,
        retransmitting: false,
        snd_wnd: 1 << 20,
        window_limited: true,
        max_packets_out: 4,
    }
}

/// Adds a tenth of a segment per acknowledgment.
#[derive(Debug, Clone)]
struct Tenth;

impl UserController for Tenth {
    fn on_start(&mut self, _: Instant, mss: u32, _: Bytes) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision { window: Some(Bytes(10 * u64::from(mss))), ..CcDecision::default() })
    }

    fn on_report(&mut self, report: &CcReport) -> Result<CcDecision, ControllerError> {
        let window = Bytes(report.window.get() + u64::from(report.mss) / 10);
        Ok(CcDecision { window: Some(window), ..CcDecision::default() })
    }

    fn on_loss(&mut self, _: &LossReport) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision::default())
    }

    fn fork(&self) -> Box<dyn UserController> {
        Box::new(self.clone())
    }
}

#[derive(Debug)]
struct Tenths;

impl ControllerFactory for Tenths {
    fn name(&self) -> &'static str {
        "tenth"
    }

    fn every(&self) -> ReportTrigger {
        ReportTrigger::Ack
    }

    fn base_grows(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn UserController> {
        Box::new(Tenth)
    }
}

#[test]
fn parts_of_a_packet_add_up_where_the_base_counts_packets() {
    let mut cc = started(ExternalAlgorithm::new(Tenths).on_linux());
    for ack in 1..=10_u64 {
        assert_eq!(cc.control().window, Bytes(10_000), "before acknowledgment {ack}");
        let _ = cc.on_acked(&acked(40 + ack, 1_000 * ack, 20_000));
    }
    assert_eq!(cc.control().window, Bytes(11_000));
}

#[test]
fn reports_have_flight_totals_and_rounds() {
    #[derive(Debug, Clone, Default)]
    struct Watch(std::sync::Arc<std::sync::Mutex<Vec<CcReport>>>);
    impl UserController for Watch {
        fn on_start(
            &mut self,
            _: Instant,
            _: u32,
            _: Bytes,
        ) -> Result<CcDecision, ControllerError> {
            Ok(CcDecision::default())
        }
        fn on_report(&mut self, report: &CcReport) -> Result<CcDecision, ControllerError> {
            self.0.lock().unwrap().push(*report);
            Ok(CcDecision::default())
        }
        fn on_loss(&mut self, _: &LossReport) -> Result<CcDecision, ControllerError> {
            Ok(CcDecision::default())
        }
        fn fork(&self) -> Box<dyn UserController> {
            Box::new(self.clone())
        }
    }
    #[derive(Debug, Default)]
    struct Watches(Watch);
    impl ControllerFactory for Watches {
        fn name(&self) -> &'static str {
            "watch"
        }
        fn every(&self) -> ReportTrigger {
            ReportTrigger::Ack
        }
        fn base_grows(&self) -> bool {
            false
        }
        fn make(&self) -> Box<dyn UserController> {
            Box::new(self.0.clone())
        }
    }
    let watches = Watches::default();
    let seen = watches.0.0.clone();
    let mut cc = started(ExternalAlgorithm::new(watches).on_linux());
    for (millis, una, snd_nxt) in [(40, 1_000, 5_000), (41, 2_000, 6_000), (80, 5_000, 11_000)] {
        let _ = cc.on_acked(&acked(millis, una, snd_nxt));
    }
    let seen = seen.lock().unwrap();
    let of = |report: &CcReport| (report.flight, report.delivered, report.rounds, report.packets);
    // The first acknowledgment ends the round of the handshake, the third the one it began.
    let expected = [(4_000, 1_000, 1, 1), (4_000, 2_000, 1, 1), (6_000, 3_000, 2, 1)];
    assert_eq!(seen.iter().map(of).collect::<Vec<_>>(), expected);
    assert!(seen.iter().all(|report| report.window_limited && report.peer_window == 1 << 20));
}

#[test]
fn a_round_is_reported_once_its_flight_is_acknowledged() {
    let mut cc = established(ReportTrigger::Round);
    assert_eq!(cc.control().window, Bytes(4_000));
    // The first acknowledgment ends the round of the handshake; 5,000 bytes are sent by then.
    let grew = WindowChange::Grew(Growth::SlowStart);
    assert_eq!(cc.on_acked(&acked(40, 1_000, 5_000)), grew);
    assert_eq!(cc.control().window, Bytes(6_000));
    for una in [2_000, 3_000, 4_000] {
        assert_eq!(cc.on_acked(&acked(41, una, 9_000)), WindowChange::None);
    }
    assert_eq!(cc.on_acked(&acked(80, 5_000, 11_000)), grew);
    assert_eq!(cc.control().window, Bytes(8_000));
}

#[test]
fn an_interval_ends_with_the_first_acknowledgment_after_it() {
    let mut cc = established(ReportTrigger::Interval(Duration::from_millis(100)));
    assert_eq!(cc.on_acked(&acked(99, 1_000, 5_000)), WindowChange::None);
    assert_ne!(cc.on_acked(&acked(101, 2_000, 5_000)), WindowChange::None);
    assert_eq!(cc.on_acked(&acked(200, 3_000, 5_000)), WindowChange::None);
    assert_ne!(cc.on_acked(&acked(201, 4_000, 5_000)), WindowChange::None);
}

fn lost() -> CongestionEvent {
    CongestionEvent {
        now: Instant::ZERO,
        ticks: 0,
        signal: CongestionSignal::Loss,
        th_ack: Offset(0),
        snd_max: Offset(4_000),
        pipe: 4_000,
        snd_wnd: 1 << 20,
        lost: 0,
    }
}

#[test]
fn recovery_ends_at_the_decided_window() {
    let mut cc = established(ReportTrigger::Interval(Duration::from_secs(10)));
    let change = cc.on_congested(&lost());
    assert_eq!(change, WindowChange::RecoveryBegan);
    assert_eq!(cc.control().ssthresh, Some(Bytes(3_000)));
    let _ = cc.on_recovered(&RecoveryEnd { th_ack: Offset(4_000), pipe: 0 });
    assert_eq!(cc.control().window, Bytes(3_000));
    assert!(!cc.in_recovery());
}

/// Fails at its first report.
#[derive(Debug, Clone)]
struct Failing;

impl UserController for Failing {
    fn on_start(&mut self, _: Instant, _: u32, _: Bytes) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision::default())
    }

    fn on_report(&mut self, _: &CcReport) -> Result<CcDecision, ControllerError> {
        Err(ControllerError("out of ideas".into()))
    }

    fn on_loss(&mut self, _: &LossReport) -> Result<CcDecision, ControllerError> {
        unreachable!("a controller that has failed is not called")
    }

    fn fork(&self) -> Box<dyn UserController> {
        Box::new(self.clone())
    }
}

#[derive(Debug)]
struct Failings;

impl ControllerFactory for Failings {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn every(&self) -> ReportTrigger {
        ReportTrigger::Ack
    }

    fn base_grows(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn UserController> {
        Box::new(Failing)
    }
}

#[test]
fn a_pilot_that_fails_is_reported_and_not_called_again() {
    let mut cc = started(ExternalAlgorithm::new(Failings).on_linux());
    assert_eq!(cc.failure(), None);
    let _ = cc.on_acked(&acked(40, 1_000, 5_000));
    assert_eq!(cc.failure(), Some(&ControllerError("out of ideas".into())));
    let _ = cc.on_acked(&acked(41, 2_000, 5_000));
    let _ = cc.on_congested(&lost());
    assert_eq!(cc.clone().failure(), Some(&ControllerError("out of ideas".into())));
}
