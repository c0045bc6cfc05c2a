//! BBR of a QUIC sender over a bottleneck whose queue has no limit.

use record::{Cause, Event};
use units::Duration;

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::congestion_control::CongestionControl;
use crate::profile::RFC9002;

/// 10 Mbit/s and 41.2 ms, with the transmission of a packet, hold 51.5 kB. Once the bandwidth is known the window is
/// twice that; added are six packets for bursts of the host, two in ProbeBW, two as the window is even
/// (`bbr_quantization_budget`), and two that one ACK covers (`bbr_ack_aggregation_cwnd`). NewReno would fill the queue
/// without end.
#[test]
fn the_window_is_twice_the_capacity_of_the_path() {
    let ms = Duration::from_millis;
    let mut pair =
        QuicPair::with_cc(RFC9002, RFC9002, ms(20), CongestionControl::Bbr).rate(10_000_000);
    pair.open();
    pair.run_for(ms(200));
    let mut left = 20_000_000;
    for _ in 0..25 {
        left -= pair.write(CLIENT, left);
        pair.run_for(ms(100));
    }
    let window = pair.ends[CLIENT].cc.control().window.get();
    assert!((103_000..=103_000 + 12 * 1_472).contains(&window), "{window}");
    let read = pair.ends[SERVER].recv.taken();
    // 2.7 s of 10 Mbit/s, less headers, handshake and start.
    assert!((2_500_000..3_375_000).contains(&read), "{read}");
    let totals = pair.ends[CLIENT].totals();
    assert_eq!((totals.lost_packets, totals.recoveries), (0, 0));
}

/// The application pauses in PROBE_RTT: that pause is enough, and the window grows back when sending resumes.
#[test]
fn every_change_of_the_window_has_an_event() {
    let ms = Duration::from_millis;
    let mut pair =
        QuicPair::with_cc(RFC9002, RFC9002, ms(20), CongestionControl::Bbr).rate(1_000_000);
    pair.open();
    pair.run_for(ms(200));
    for step in 0..1_400 {
        // A longer path: no packet has the shortest round trip again, which is probed after 10 s.
        if step == 100 {
            pair.delay = ms(25);
        }
        if step > 500 && pair.ends[CLIENT].cc.control().window.get() <= 4 * 1_472 {
            break;
        }
        // 0.96 Mbit/s: little waits in the send buffer.
        pair.write(CLIENT, 1_200);
        pair.run_for(ms(10));
    }
    pair.run_for(ms(1_000));
    pair.write(CLIENT, 10_000);
    pair.run_for(ms(1_000));
    let mut reported = None;
    let mut after_idle = 0;
    for &(at, event, ref state) in &pair.traces[CLIENT].0 {
        if let Event::Window { cwnd, cause, .. } = event {
            reported = Some(u64::from(cwnd));
            after_idle += u32::from(cause == Cause::Idle);
        }
        // An ACK is reported before the window that it makes.
        if let (Event::Sent { .. }, Some(reported), Some(state)) = (event, reported, state.as_ref())
        {
            assert_eq!(state.cwnd.get(), reported, "{at:?} {event:?}");
        }
    }
    assert!(after_idle > 0);
}
