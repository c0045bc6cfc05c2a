//! Endpoints packed and woken ([`crate::packed`]). Those of all other tests are too, at every step.

use cc::Controller;
use cc::outside::{Decision, Every, Gone, LossReport, Maker, Outside, Pilot, Report};
use units::{Bytes, Duration, Instant};

use super::pair::{Pair, config};
use crate::{Config, Endpoint, Side, State};

const PROFILES: [&str; 5] =
    ["freebsd-13.2", "freebsd-14.3", "freebsd-rack-14.3", "linux-6.18", "rfc"];

const SECOND: Duration = Duration::from_secs(1);

/// Both ends after a transfer of that many bytes, some of them lost, and a minute of silence.
fn idle(profile: &str, bytes: u64) -> Pair {
    let mut pair = Pair::of(profile, profile);
    pair.lose = |number, segment| segment.payload > 0 && number % 37 == 0;
    pair.to_write = bytes;
    pair.run(Duration::from_secs(600));
    assert_eq!((pair.read, pair.client.state()), (bytes, State::Established), "{profile}");
    pair.now += Duration::from_secs(60);
    pair
}

/// All that an endpoint knows.
fn known(end: &Endpoint) -> String {
    format!("{end:?}")
}

#[test]
fn who_wakes_is_as_before() {
    for profile in PROFILES {
        for bytes in [0, 1_000, 1_000_000] {
            let pair = idle(profile, bytes);
            for end in [&pair.client, &pair.server] {
                assert_eq!(known(&end.pack().unwrap().wake()), known(end), "{profile} {bytes}");
            }
        }
        // In the midst of a transfer.
        let mut pair = Pair::of(profile, profile);
        pair.lose = |number, segment| segment.payload > 0 && number % 19 == 10;
        pair.to_write = 1_000_000;
        let mut recovered = false;
        for ms in (200..5_000).step_by(10) {
            pair.run(Duration::from_millis(ms));
            for end in [&pair.client, &pair.server] {
                if let Some(packed) = end.pack() {
                    assert_eq!(known(&packed.wake()), known(end), "{profile} at {ms} ms");
                    recovered |= end.cc.in_recovery();
                }
            }
        }
        assert!(recovered, "{profile}: no loss was repaired");
    }
}

/// Measured: 283 to 359 bytes, with FreeBSD's RACK stack up to 460, of the 1,184 of an endpoint and what it
/// has apart.
#[test]
fn a_connection_at_rest_takes_few_bytes() {
    for profile in PROFILES {
        for bytes in [1_000, 1_000_000] {
            let pair = idle(profile, bytes);
            for end in [&pair.client, &pair.server] {
                assert!(end.is_at_rest(pair.now, SECOND), "{profile}");
                let len = end.pack().unwrap().size();
                assert!(len < 480, "{profile}: {len} bytes after {bytes}");
            }
        }
    }
}

#[test]
fn who_has_something_to_do_is_not_at_rest() {
    let pair = idle("linux-6.18", 1_000);
    let silent = pair.client.snd.last_heard;
    assert!(!pair.client.is_at_rest(silent + Duration::from_millis(999), SECOND));
    assert!(pair.client.is_at_rest(silent + SECOND, SECOND));
    // Unread, then under way, then not acknowledged.
    let mut pair = Pair::of("rfc", "rfc");
    pair.reads = false;
    pair.to_write = 1_000;
    pair.run(Duration::from_secs(10));
    pair.now += Duration::from_secs(10);
    assert!(pair.client.is_at_rest(pair.now, SECOND) && !pair.server.is_at_rest(pair.now, SECOND));
    pair.lose = |_, _| true;
    pair.to_write = 1_000;
    pair.serve();
    pair.with(Side::Client, |cx, end| end.write(cx, 1_000));
    assert!(!pair.client.is_at_rest(pair.now + Duration::from_secs(10), SECOND), "due");
    pair.serve();
    assert!(!pair.client.is_at_rest(pair.now + Duration::from_secs(10), SECOND), "under way");
}

#[test]
fn who_has_not_begun_or_is_steered_from_outside_stays_awake() {
    let client = Endpoint::new(config("rfc", Side::Client));
    assert!(client.pack().is_none());
    let outside = cc::Algorithm::Outside(Outside::new(Statues));
    let client = Config { algorithm: outside, ..config("rfc", Side::Client) };
    let mut pair = Pair::new(client, config("rfc", Side::Server));
    pair.to_write = 1_000;
    pair.run(Duration::from_secs(10));
    pair.now += Duration::from_secs(10);
    assert!(pair.client.is_at_rest(pair.now, SECOND) && pair.client.pack().is_none());
    assert!(pair.server.is_at_rest(pair.now, SECOND) && pair.server.pack().is_some());
}

/// Decides nothing.
#[derive(Debug)]
struct Statue;

impl Pilot for Statue {
    fn on_start(&mut self, _: Instant, _: u32, _: Bytes) -> Result<Decision, Gone> {
        Ok(Decision::default())
    }

    fn on_report(&mut self, _: &Report) -> Result<Decision, Gone> {
        Ok(Decision::default())
    }

    fn on_loss(&mut self, _: &LossReport) -> Result<Decision, Gone> {
        Ok(Decision::default())
    }

    fn fork(&self) -> Box<dyn Pilot> {
        Box::new(Self)
    }
}

#[derive(Debug)]
struct Statues;

impl Maker for Statues {
    fn name(&self) -> &'static str {
        "statue"
    }

    fn every(&self) -> Every {
        Every::Round
    }

    fn base_grows(&self) -> bool {
        true
    }

    fn make(&self) -> Box<dyn Pilot> {
        Box::new(Statue)
    }
}
