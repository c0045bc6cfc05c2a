//! Endpoints packed and unpacked ([`crate::packed`]). All other tests do so too, at every step.

use cc::Controller;
use cc::external::{
    CcDecision, CcReport, ControllerError, ControllerFactory, ExternalAlgorithm, LossReport,
    ReportTrigger, UserController,
};
use units::{Bytes, Duration, Instant};

use super::pair::{TcpPair, config};
use crate::{TcpConfig, TcpEndpoint, TcpSide, TcpState};

const PROFILES: [&str; 5] =
    ["freebsd-13.2", "freebsd-14.3", "freebsd-rack-14.3", "linux-6.18", "rfc"];

const SECOND: Duration = Duration::from_secs(1);

/// Both endpoints after a transfer of `bytes` bytes with losses, and a minute of idle time.
fn idle(profile: &str, bytes: u64) -> TcpPair {
    let mut pair = TcpPair::of(profile, profile);
    pair.lose = |number, segment| segment.payload > 0 && number % 37 == 0;
    pair.to_write = bytes;
    pair.run(Duration::from_secs(600));
    assert_eq!((pair.read, pair.client.state()), (bytes, TcpState::Established), "{profile}");
    pair.now += Duration::from_secs(60);
    pair
}

/// The complete state of an endpoint.
fn known(end: &TcpEndpoint) -> String {
    format!("{end:?}")
}

#[test]
fn an_unpacked_endpoint_is_unchanged() {
    for profile in PROFILES {
        for bytes in [0, 1_000, 1_000_000] {
            let pair = idle(profile, bytes);
            for end in [&pair.client, &pair.server] {
                assert_eq!(known(&end.pack().unwrap().wake()), known(end), "{profile} {bytes}");
            }
        }
        // During a transfer.
        let mut pair = TcpPair::of(profile, profile);
        pair.lose = |number, segment| segment.payload > 0 && number % 19 == 10;
        pair.to_write = 1_000_000;
        let mut recovered = false;
        for ms in (200..5_000).step_by(10) {
            pair.run(Duration::from_millis(ms));
            for end in [&pair.client, &pair.server] {
                if let Some(packed) = end.pack() {
                    assert_eq!(known(&packed.wake()), known(end), "{profile} at {ms} ms");
                    recovered |= end.snd.cc.in_recovery();
                }
            }
        }
        assert!(recovered, "{profile}: there was no recovery");
    }
}

/// Measured: 283 to 359 bytes, with FreeBSD's RACK stack up to 500 (7 of them for its mbufs), compared with 1,184 of an
/// endpoint, besides its boxed state.
#[test]
fn an_idle_connection_takes_few_bytes() {
    for profile in PROFILES {
        for bytes in [1_000, 1_000_000] {
            let pair = idle(profile, bytes);
            for end in [&pair.client, &pair.server] {
                assert!(end.is_idle(pair.now, SECOND), "{profile}");
                let len = end.pack().unwrap().size();
                assert!(len <= 500, "{profile}: {len} bytes after {bytes}");
            }
        }
    }
}

#[test]
fn an_endpoint_with_work_to_do_is_not_idle() {
    let pair = idle("linux-6.18", 1_000);
    let silent = pair.client.snd.last.received;
    assert!(!pair.client.is_idle(silent + Duration::from_millis(999), SECOND));
    assert!(pair.client.is_idle(silent + SECOND, SECOND));
    // Unread data, then a pending output call, then data in flight.
    let mut pair = TcpPair::of("rfc", "rfc");
    pair.reads = false;
    pair.to_write = 1_000;
    pair.run(Duration::from_secs(10));
    pair.now += Duration::from_secs(10);
    assert!(pair.client.is_idle(pair.now, SECOND) && !pair.server.is_idle(pair.now, SECOND));
    pair.lose = |_, _| true;
    pair.to_write = 1_000;
    pair.serve();
    pair.with(TcpSide::Client, |cx, end| end.write(cx, 1_000));
    assert!(!pair.client.is_idle(pair.now + Duration::from_secs(10), SECOND), "due");
    pair.serve();
    assert!(!pair.client.is_idle(pair.now + Duration::from_secs(10), SECOND), "in flight");
}

#[test]
fn endpoints_before_the_handshake_or_with_an_external_controller_are_not_packed() {
    let client = TcpEndpoint::new(config("rfc", TcpSide::Client));
    assert!(client.pack().is_none());
    let outside = cc::Algorithm::Outside(ExternalAlgorithm::new(PassiveFactory));
    let client = TcpConfig { algorithm: outside, ..config("rfc", TcpSide::Client) };
    let mut pair = TcpPair::new(client, config("rfc", TcpSide::Server));
    pair.to_write = 1_000;
    pair.run(Duration::from_secs(10));
    pair.now += Duration::from_secs(10);
    assert!(pair.client.is_idle(pair.now, SECOND) && pair.client.pack().is_none());
    assert!(pair.server.is_idle(pair.now, SECOND) && pair.server.pack().is_some());
}

/// A controller without decisions.
#[derive(Debug)]
struct PassiveController;

impl UserController for PassiveController {
    fn on_start(&mut self, _: Instant, _: u32, _: Bytes) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision::default())
    }

    fn on_report(&mut self, _: &CcReport) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision::default())
    }

    fn on_loss(&mut self, _: &LossReport) -> Result<CcDecision, ControllerError> {
        Ok(CcDecision::default())
    }

    fn fork(&self) -> Box<dyn UserController> {
        Box::new(Self)
    }
}

#[derive(Debug)]
struct PassiveFactory;

impl ControllerFactory for PassiveFactory {
    fn name(&self) -> &'static str {
        "statue"
    }

    fn every(&self) -> ReportTrigger {
        ReportTrigger::Round
    }

    fn base_grows(&self) -> bool {
        true
    }

    fn make(&self) -> Box<dyn UserController> {
        Box::new(PassiveController)
    }
}
