//! HyStart++ of FreeBSD's RACK stack (`net.inet.tcp.rack.features.hystartplusplus`) acts where the
//! queue is deep: no recording of the kernel exists, so only its effect is checked here. Its
//! functions are compared with the kernel's in golden/freebsd.

use ackclock_scenario::{Overrides, load};
use sim::FlowOutcome;

fn transfer(mode: u32) -> FlowOutcome {
    let text = format!(
        r#"
        title = "deep queue"
        duration = "20s"
        host.b = {{ profile = "linux-6.18" }}
        flow = [{{ name = "bulk", from = "a", to = "b", bulk = "5MB" }}]
        [host.a]
        profile = "freebsd-rack-14.3"
        [host.a.knobs]
        "net.inet.tcp.rack.features.hystartplusplus" = {mode}
        "net.inet.tcp.sendspace" = "2MB"
        "net.inet.tcp.sendbuf_auto" = false
        [[path]]
        from = "a"
        to = "b"
        forward = [{{ link = {{ rate = "10Mbit/s", buffer = "1000p" }} }}, {{ delay = "20ms" }}]
        return = [{{ delay = "20ms" }}]
        "#
    );
    let loaded = load(&text, "hystart", &Overrides::default()).unwrap();
    sim::run(&loaded.scenario, &mut record::NullRecorder).unwrap().flows.remove(0)
}

#[test]
fn slow_start_ends_before_the_queue_is_full() {
    let window = |mode| transfer(mode).max_cwnd.get() / 1_448;
    let [off, on, shrinking, mean] = [window(0), window(1), window(2), window(3)];
    assert!(off > 900, "{off}");
    assert!(on < off / 2, "{on} of {off}");
    assert!(shrinking < on && mean < on, "{shrinking} and {mean} of {on}");
}

#[test]
fn a_mode_that_the_kernel_does_not_have_is_refused() {
    let text = "host.a = { profile = \"freebsd-rack-14.3\", knobs = { \
                \"net.inet.tcp.rack.features.hystartplusplus\" = 4 } }";
    let errors = load(text, "hystart", &Overrides::default()).unwrap_err();
    let about = |error: &ackclock_scenario::ScenarioError| error.to_string().contains("0 to 3");
    assert!(errors.iter().any(about), "{errors:?}");
}
