//! Linux senders fill deep queues as Linux 6.18 does: results of real transfers over the same paths
//! (`ackclock wire compare`, see docs/wire.md).

use ackclock_scenario::{Overrides, load};
use sim::FlowOutcome;

/// Runs a transfer of 20 s over a drop-tail queue.
fn transfer(cc: &str, rate: &str, delay: &str, buffer: &str) -> FlowOutcome {
    let text = format!(
        r#"
        title = "deep queue"
        duration = "20s"
        host.a = {{ profile = "linux-6.18", cc = "{cc}" }}
        host.b = {{ profile = "linux-6.18" }}
        flow = [{{ name = "bulk", from = "a", to = "b", bulk = "unlimited" }}]
        [[path]]
        from = "a"
        to = "b"
        forward = [{{ link = {{ rate = "{rate}", buffer = "{buffer}" }} }}, {{ delay = "{delay}" }}]
        return = [{{ delay = "{delay}" }}]
        "#
    );
    let loaded = load(&text, "deep", &Overrides::default()).unwrap();
    sim::run(&loaded.scenario, &mut record::NullRecorder).unwrap().flows.remove(0)
}

/// The maximum window in packets is within 1 % of the kernel's.
#[test]
fn the_receive_window_follows_a_round_trip_that_grows() {
    let window = |cc, rate, delay, buffer| transfer(cc, rate, delay, buffer).max_cwnd.get() / 1_448;
    let near = |packets: u64, kernel: u64| packets.abs_diff(kernel) * 100 <= kernel;
    assert!(near(window("cubic", "50Mbit/s", "10ms", "1000p"), 1_139));
    assert!(near(window("cubic", "10Mbit/s", "15ms", "500p"), 598));
    assert!(near(window("reno", "10Mbit/s", "15ms", "500p"), 1_054));
    assert!(near(window("cubic", "10Mbit/s", "10ms", "1000p"), 1_272));
    // The send buffer of 4 MiB does not limit the window (tcp_sendmsg_locked checks for memory only
    // when it starts a packet): 3152, 3167, 3174 and 3202 packets in four transfers of the kernel.
    let limited = window("cubic", "100Mbit/s", "20ms", "8bdp");
    assert!((3_152..=3_202).contains(&limited), "{limited}");
}

/// Retransmitted packets are within 5 % of the kernel's: RACK does not mark packets lost that were
/// sent at the time of a delivered retransmission, but after it.
#[test]
fn only_dropped_packets_are_retransmitted() {
    let retransmitted =
        |cc, rate, delay, buffer| transfer(cc, rate, delay, buffer).retransmitted_segments;
    let near = |packets: u64, kernel: u64| packets.abs_diff(kernel) * 20 <= kernel;
    assert!(near(retransmitted("cubic", "50Mbit/s", "10ms", "1000p"), 63));
    assert!(near(retransmitted("cubic", "10Mbit/s", "15ms", "500p"), 93));
    assert!(near(retransmitted("reno", "10Mbit/s", "15ms", "500p"), 528));
    assert!(near(retransmitted("cubic", "10Mbit/s", "10ms", "1000p"), 257));
    // 152 to 220 in four transfers of the kernel.
    let limited = retransmitted("cubic", "100Mbit/s", "20ms", "8bdp");
    assert!((152..=220).contains(&limited), "{limited}");
}

/// In seven transfers the kernel retransmits 536 to 541 packets, and once 740, on a cellular link whose round-trip time
/// grows to seven seconds, and never times out: SACKs rearm the timer (`FLAG_SET_XMIT_TIMER`).
#[test]
fn no_timeout_fires_while_sacks_arrive() {
    let text = r#"
        title = "cellular line"
        duration = "60s"
        host.server = { profile = "linux-6.18", tso = true }
        flow = [{ name = "download", from = "server", to = "phone", bulk = "20MB" }]
        [host.phone]
        profile = "linux-6.18"
        gro = true
        knobs."net.ipv4.tcp_rmem" = ["4KiB", "128KiB", "6MiB"]
        [[path]]
        from = "server"
        to = "phone"
        forward = [{ link = { trace = "preset:lte-down", buffer = "1000p" } }, { delay = "20ms" }]
        return = [{ link = { trace = "preset:lte-up", buffer = "1000p" } }, { delay = "20ms" }]
    "#;
    let loaded = load(text, "cellular", &Overrides::default()).unwrap();
    let flow = sim::run(&loaded.scenario, &mut record::NullRecorder).unwrap().flows.remove(0);
    assert_eq!((flow.rtos, flow.fast_recoveries), (0, 2));
    assert!((536..=740).contains(&flow.retransmitted_segments), "{}", flow.retransmitted_segments);
}
