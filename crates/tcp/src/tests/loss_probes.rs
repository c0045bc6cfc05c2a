//! Tail loss probes of Linux (tcp_send_loss_probe).

use cc::Controller;
use units::Duration;

use super::pair::TcpPair;

#[test]
fn a_probe_of_new_data_is_a_burst_and_the_only_one() {
    // tcp_send_loss_probe lets tcp_write_xmit send one packet of its queue, as large as the windows and tcp_tso_autosize
    // allow (two segments here); wide worlds 3 and 4 of seed 4711 against a kernel 6.12.
    let mut pair = TcpPair::of("linux-6.12", "linux-6.12");
    pair.lose = |_, segment| segment.payload > 0;
    pair.to_write = 22 * 1_448;
    pair.run(Duration::from_millis(110));
    let sent = |pair: &TcpPair| pair.data().map(|s| s.payload / 1_448).collect::<Vec<_>>();
    assert_eq!(sent(&pair), [2; 5]);
    // Room that no acknowledgment has released.
    pair.client.snd.cc.set_window(units::Bytes(30 * 1_448));
    pair.run(Duration::from_millis(320));
    assert_eq!(sent(&pair), [2; 6]);
    // The last segment of the window may be a small one: a probe heeds neither Nagle nor deferral.
    let mut pair = TcpPair::of("linux-6.12", "linux-6.12");
    pair.lose = |_, segment| segment.payload > 0;
    pair.to_write = 22 * 1_448;
    pair.run(Duration::from_millis(110));
    pair.client.snd.cc.set_window(units::Bytes(30 * 1_448));
    pair.client.snd.peer.wnd = 11 * 1_448 + 100;
    pair.run(Duration::from_millis(320));
    assert_eq!(pair.data().last().unwrap().payload, 1_548);
}
