//! Requests and responses, captured at the client, between the hosts and at the server.

use packet::{Dir, Flags, Segment};
use units::{Duration, SeqNum};

use crate::tests::{ISN, TestConnection};
use crate::{ExchangeBudget, ExchangeShare};

impl TestConnection {
    /// A packet with `len` bytes from `offset` on that acknowledges all before `acked`.
    fn exchange(&mut self, us: u64, dir: Dir, (offset, len): (u64, u32), acked: u64) {
        let seq = |offset: u64| SeqNum(ISN.wrapping_add(1).wrapping_add(offset as u32));
        let flags = if len > 0 { Flags::ACK | Flags::PSH } else { Flags::ACK };
        let (seq, ack) = (seq(offset), seq(acked));
        let segment =
            Segment { dir, flags, seq, ack, payload: len, window: 4_000, ..Segment::default() };
        self.push(us, segment, (0, 0));
    }

    pub(crate) fn sends_request(&mut self, us: u64, offset: u64, len: u32, acked: u64) {
        self.exchange(us, Dir::Forward, (offset, len), acked);
    }

    pub(crate) fn sends_response(&mut self, us: u64, acked: u64, offset: u64, len: u32) {
        self.exchange(us, Dir::Reverse, (offset, len), acked);
    }
}

/// Round trip, in microseconds.
const RTT: u64 = 40_000;

/// Where a capture is taken: the part of the round trip on the side of the client, in quarters.
const POINTS: [u64; 3] = [0, 1, 4];

/// Three requests; the server thinks 300 ms before each response of 5 kB, the client 100 ms before
/// each further request. `missing`: the first request is lost after the capture point, and repeated
/// after 200 ms.
fn session(point: u64, missing: bool) -> ExchangeBudget {
    let (to_client, to_server) = (RTT * point / 4, RTT - RTT * point / 4);
    let mut connection = TestConnection::new();
    connection.open_between(to_server, to_client);
    let mut at = RTT;
    for n in 0..3 {
        connection.sends_request(at, n * 200, 200, n * 5_000);
        if n == 0 && missing {
            at += 200_000;
            connection.sends_request(at, 0, 200, 0);
        }
        connection.sends_response(at + to_server, n * 200 + 200, n * 5_000, 0);
        at += to_server + 300_000;
        for part in 0..5 {
            let (offset, acked) = (n * 5_000 + part * 1_000, n * 200 + 200);
            connection.sends_response(at + part * 100, acked, offset, 1_000);
        }
        at += 400;
        connection.sends_request(at + to_client, n * 200 + 200, 0, n * 5_000 + 5_000);
        at += to_client + 100_000;
    }
    let analysis = connection.finish();
    *analysis.exchange.expect("there are data")
}

fn is_about(found: Duration, millis: u64) -> bool {
    found.as_nanos().abs_diff(millis * 1_000_000) <= 2_000_000
}

#[test]
fn think_times_are_equal_at_any_capture_point() {
    for point in POINTS {
        let budget = session(point, false);
        assert!(is_about(budget.of(ExchangeShare::Server), 900), "{point}: {budget:?}");
        assert!(is_about(budget.of(ExchangeShare::Client), 200), "{point}: {budget:?}");
        // The handshake and three turns, the last without a further request.
        let turns = 3 * (RTT - RTT * point / 4) + 2 * RTT * point / 4;
        let network = (RTT + turns) / 1_000;
        assert!(is_about(budget.of(ExchangeShare::Network), network), "{point}: {budget:?}");
        assert_eq!(budget.requests(), 3);
        assert!(is_about(budget.first_byte.total, 3 * 340), "{point}: {budget:?}");
        assert_eq!(budget.largest(), Some(ExchangeShare::Server));
    }
}

/// The repair of a lost request is the network's time, not the server's.
#[test]
fn a_lost_request_is_no_think_time() {
    let budget = session(0, true);
    assert!(is_about(budget.of(ExchangeShare::Server), 900), "{budget:?}");
    assert!(is_about(budget.of(ExchangeShare::Network), 40 + 200 + 120), "{budget:?}");
}

/// The parts are the whole time, whatever happens.
#[test]
fn the_parts_add_up_to_the_duration() {
    for point in POINTS {
        let mut connection = TestConnection::new();
        let (to_client, to_server) = (RTT * point / 4, RTT - RTT * point / 4);
        connection.open_between(to_server, to_client);
        connection.sends_request(50_000, 0, 700, 0);
        connection.sends_response(50_000 + to_server, 700, 0, 0);
        connection.sends_response(3_000_000, 700, 0, 1_000);
        connection.sends_request(3_000_100, 700, 700, 1_000);
        let analysis = connection.finish();
        let budget = analysis.exchange.as_deref().unwrap();
        assert_eq!(budget.whole(), analysis.duration());
    }
}

/// A server that never answers: the wait is its own, unless the request was not acknowledged.
#[test]
fn a_request_without_response_is_the_servers() {
    for acked in [true, false] {
        let mut connection = TestConnection::new();
        connection.open(RTT);
        connection.sends_request(50_000, 0, 200, 0);
        if acked {
            connection.sends_response(50_000 + RTT, 200, 0, 0);
        }
        connection.sends_request(9_000_000, 200, 0, 0);
        let budget = *connection.finish().exchange.unwrap();
        let server = budget.of(ExchangeShare::Server);
        assert!(if acked { is_about(server, 8_910) } else { server.is_zero() }, "{budget:?}");
    }
}

/// Both hosts send at once after a turn of the server: the last data are the client's, fewer than the
/// server had sent by then.
#[test]
fn data_that_cross_are_no_turn() {
    let mut connection = TestConnection::new();
    connection.open(RTT);
    for n in 0..2 {
        let at = 50_000 + n * 100_000;
        connection.sends_request(at, n * 100, 100, n * 5_000);
        connection.sends_response(at + RTT, n * 100 + 100, n * 5_000, 5_000);
    }
    connection.sends_request(191_000, 200, 100, 5_000);
    let budget = *connection.finish().exchange.unwrap();
    assert_eq!(budget.requests(), 2);
}

/// An upload of ten segments that a slow link sends one after another: the time until they are there is no think time.
#[test]
fn the_way_of_a_large_request_is_no_think_time() {
    let mut connection = TestConnection::new();
    connection.open_between(RTT, 0);
    let mut at = RTT + 1_000;
    for n in 0..4 {
        let start = n * 10_000;
        for part in 0..10 {
            connection.sends_request(at, start + part * 1_000, 1_000, n * 200);
        }
        // 5 ms a segment: the last two arrive 50 ms after the first byte.
        for two in 1..=5 {
            connection.sends_response(at + RTT + two * 10_000, start + two * 2_000, n * 200, 0);
        }
        at += RTT + 50_000 + 100_000;
        connection.sends_response(at, start + 10_000, n * 200, 200);
        at += 100;
    }
    let budget = *connection.finish().exchange.expect("there are data");
    assert!(is_about(budget.of(ExchangeShare::Server), 400), "{budget:?}");
    assert!(is_about(budget.first_byte.mean().unwrap(), 190), "{budget:?}");
}
