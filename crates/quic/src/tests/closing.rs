//! The end of a stream and of a connection (RFC 9000 sections 3 and 10.2).

use machine::Signal;
use units::Duration;

use super::pair::{CLIENT, QuicPair, SERVER};
use crate::profile::RFC9002;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn both_endpoints_close_once_both_streams_are_acknowledged() {
    for lost in [None, Some(0), Some(1), Some(2)] {
        let mut fins = 0;
        let mut pair = QuicPair::new(RFC9002, RFC9002, ms(10)).losing(move |_, packet| {
            let fin = packet.stream.is_some_and(|chunk| chunk.fin);
            fins += u32::from(fin);
            fin && Some(fins - 1) == lost
        });
        pair.connected();
        pair.write(CLIENT, 5_000);
        pair.act(CLIENT, |client, _| client.close());
        pair.run_for(ms(2_000));
        assert!(pair.ends[SERVER].at_end());
        assert!(!pair.signals[CLIENT].contains(&Signal::Closed));
        pair.act(SERVER, |server, _| server.close());
        pair.run_for(ms(3_000));
        for side in [CLIENT, SERVER] {
            assert_eq!(pair.signals[side].iter().filter(|&&s| s == Signal::Closed).count(), 1);
        }
    }
}

#[test]
fn nothing_is_written_after_the_fin() {
    let mut pair = QuicPair::new(RFC9002, RFC9002, ms(10));
    pair.connected();
    pair.act(CLIENT, |client, _| client.close());
    assert_eq!(pair.write(CLIENT, 10), 0);
}

#[test]
fn connection_close_is_repeated_until_the_peer_stops_sending_section_10_2_1() {
    let mut closes = 0;
    let mut pair = QuicPair::new(RFC9002, RFC9002, ms(10)).losing(move |_, packet| {
        closes += u32::from(packet.close);
        packet.close && closes < 3
    });
    pair.connected();
    pair.write(SERVER, 500_000);
    pair.act(CLIENT, |client, cx| client.reset(cx));
    pair.run_for(ms(5_000));
    assert!(pair.signals[CLIENT].contains(&Signal::Aborted));
    assert!(pair.signals[SERVER].contains(&Signal::Aborted));
    let last = pair.sent.last().unwrap();
    assert!(last.packet.close);
}
