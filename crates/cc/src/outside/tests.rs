use super::*;
use crate::Smoothed;

/// Two segments more in each report; a quarter off at a loss.
#[derive(Debug, Clone)]
struct Two;

impl Pilot for Two {
    fn on_start(&mut self, _: Instant, mss: u32, _: Bytes) -> Result<Decision, Gone> {
        Ok(Decision { window: Some(Bytes(4 * u64::from(mss))), ..Decision::default() })
    }

    fn on_report(&mut self, report: &Report) -> Result<Decision, Gone> {
        let window = Bytes(report.window.get() + 2 * u64::from(report.mss));
        Ok(Decision { window: Some(window), ..Decision::default() })
    }

    fn on_loss(&mut self, loss: &LossReport) -> Result<Decision, Gone> {
        Ok(Decision { window: Some(Bytes(loss.window.get() * 3 / 4)), ..Decision::default() })
    }

    fn fork(&self) -> Box<dyn Pilot> {
        Box::new(self.clone())
    }
}

#[derive(Debug)]
struct Twos(Every);

impl Maker for Twos {
    fn name(&self) -> &'static str {
        "two"
    }

    fn every(&self) -> Every {
        self.0
    }

    fn base_grows(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn Pilot> {
        Box::new(Two)
    }
}

fn established(every: Every) -> AnyController {
    started(Outside::new(Twos(every)).on_linux())
}

fn started(mut cc: AnyController) -> AnyController {
    let _ = cc.on_established(&Established {
        now: Instant::ZERO,
        ticks: 0,
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

fn acked(millis: u64, una: u64, snd_nxt: u64) -> Acked {
    Acked {
        now: Instant::ZERO + Duration::from_millis(millis),
        ticks: millis,
        rtt: Some(Duration::from_millis(40)),
        srtt: Smoothed::default(),
        snd_nxt: Offset(snd_nxt),
        una: Offset(una),
        bytes: 1_000,
        packets: 1,
        nsegs: 1,
        ends_recovery: false,
        resending: false,
        snd_wnd: 1 << 20,
        window_limited: true,
        max_packets_out: 4,
    }
}

#[test]
fn a_round_is_reported_once_what_was_under_way_is_acknowledged() {
    let mut cc = established(Every::Round);
    assert_eq!(cc.control().window, Bytes(4_000));
    // The first acknowledgment ends the round of the handshake; 5,000 are sent by then.
    let grew = Change::Grew(Growth::SlowStart);
    assert_eq!(cc.on_acked(&acked(40, 1_000, 5_000)), grew);
    assert_eq!(cc.control().window, Bytes(6_000));
    for una in [2_000, 3_000, 4_000] {
        assert_eq!(cc.on_acked(&acked(41, una, 9_000)), Change::None);
    }
    assert_eq!(cc.on_acked(&acked(80, 5_000, 11_000)), grew);
    assert_eq!(cc.control().window, Bytes(8_000));
}

#[test]
fn an_interval_ends_with_the_first_acknowledgment_behind_it() {
    let mut cc = established(Every::Interval(Duration::from_millis(100)));
    assert_eq!(cc.on_acked(&acked(99, 1_000, 5_000)), Change::None);
    assert_ne!(cc.on_acked(&acked(101, 2_000, 5_000)), Change::None);
    assert_eq!(cc.on_acked(&acked(200, 3_000, 5_000)), Change::None);
    assert_ne!(cc.on_acked(&acked(201, 4_000, 5_000)), Change::None);
}

fn lost() -> Congested {
    Congested {
        now: Instant::ZERO,
        ticks: 0,
        signal: Signal::Loss,
        th_ack: Offset(0),
        snd_max: Offset(4_000),
        pipe: 4_000,
        snd_wnd: 1 << 20,
    }
}

#[test]
fn a_recovery_leads_where_the_pilot_says() {
    let mut cc = established(Every::Interval(Duration::from_secs(10)));
    let change = cc.on_congested(&lost());
    assert_eq!(change, Change::RecoveryBegan);
    assert_eq!(cc.control().ssthresh, Some(Bytes(3_000)));
    let _ = cc.on_recovered(&Recovered { th_ack: Offset(4_000), pipe: 0 });
    assert_eq!(cc.control().window, Bytes(3_000));
    assert!(!cc.in_recovery());
}

/// Fails at its first report.
#[derive(Debug, Clone)]
struct Failing;

impl Pilot for Failing {
    fn on_start(&mut self, _: Instant, _: u32, _: Bytes) -> Result<Decision, Gone> {
        Ok(Decision::default())
    }

    fn on_report(&mut self, _: &Report) -> Result<Decision, Gone> {
        Err(Gone("out of ideas".into()))
    }

    fn on_loss(&mut self, _: &LossReport) -> Result<Decision, Gone> {
        unreachable!("a pilot that has failed is not called")
    }

    fn fork(&self) -> Box<dyn Pilot> {
        Box::new(self.clone())
    }
}

#[derive(Debug)]
struct Failings;

impl Maker for Failings {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn every(&self) -> Every {
        Every::Ack
    }

    fn base_grows(&self) -> bool {
        false
    }

    fn make(&self) -> Box<dyn Pilot> {
        Box::new(Failing)
    }
}

#[test]
fn a_pilot_that_fails_is_reported_and_not_called_again() {
    let mut cc = started(Outside::new(Failings).on_linux());
    assert_eq!(cc.failure(), None);
    let _ = cc.on_acked(&acked(40, 1_000, 5_000));
    assert_eq!(cc.failure(), Some(&Gone("out of ideas".into())));
    let _ = cc.on_acked(&acked(41, 2_000, 5_000));
    let _ = cc.on_congested(&lost());
    assert_eq!(cc.clone().failure(), Some(&Gone("out of ideas".into())));
}
