//! Linux senders fill deep queues as Linux 6.18 does: figures of real transfers over the same paths
//! (`ackclock wire compare`, see docs/wire.md).

use ackclock_lab::scenario::{Overrides, load};
use sim::FlowOutcome;

/// A transfer of 20 s over a queue that drops what does not fit.
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
    sim::run(&loaded.scenario, &mut record::Off).unwrap().flows.remove(0)
}

/// Largest window in packets within a hundredth of the kernel's.
#[test]
fn the_receive_window_follows_a_round_trip_that_grows() {
    let window = |cc, rate, delay, buffer| transfer(cc, rate, delay, buffer).max_cwnd.get() / 1_448;
    let near = |packets: u64, kernel: u64| packets.abs_diff(kernel) * 100 <= kernel;
    assert!(near(window("cubic", "50Mbit/s", "10ms", "1000p"), 1_139));
    assert!(near(window("cubic", "10Mbit/s", "15ms", "500p"), 598));
    assert!(near(window("reno", "10Mbit/s", "15ms", "500p"), 1_054));
    assert!(near(window("cubic", "10Mbit/s", "10ms", "1000p"), 1_272));
}
