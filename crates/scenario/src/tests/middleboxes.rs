//! Middleboxes and accept queues: their conversion and their errors.

use sim::scenario::{AcceptQueueSpec, ElementSpec, PacketClass, ResetTrigger, SynOffers};
use units::{Bytes, Duration, Instant};

use super::*;

fn with(elements: &str) -> String {
    format!(
        "host.a = {{ profile = \"freebsd-13.2\" }}\n\
         host.b = {{ profile = \"linux-6.18\", listen = {{ backlog = 4, accept = \"200ms\" }} }}\n\
         [[path]]\nfrom = \"a\"\nto = \"b\"\nforward = [\n{elements}\n]\nreturn = []\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"1MB\"\n"
    )
}

#[test]
fn every_middlebox_is_converted_and_written() {
    let text = with(
        "{ mtu = \"1300B\" },\n\
         { mtu = { size = \"1300B\", icmp = false, from = \"0.8s\" } },\n\
         { strip = [\"window-scale\", \"sack\", \"timestamps\", \"ecn\"] },\n\
         { forget = { idle = \"5s\" } },\n\
         { forget = { idle = \"5s\", answer = \"reset\" } },\n\
         { reset = { bytes = \"500kB\" } },\n\
         { reset = { at = \"1.2s\" } },\n\
         { loss = { packets = [1] }, only = \"syns\" },\n\
         { loss = { packets = [1] }, only = \"syn-acks\" },\n\
         { loss = \"100%\", only = \"ecn-syns\" },",
    );
    let scenario = loaded(&text, &[]).unwrap_or_else(|errors| panic!("{errors:#?}")).scenario;
    let all = SynOffers::WINDOW_SCALE | SynOffers::SACK | SynOffers::TIMESTAMPS | SynOffers::ECN;
    let (ms, idle) = (Duration::from_millis, Duration::from_secs(5));
    let forward = &scenario.paths[0].forward;
    let expected = [
        ElementSpec::Mtu { size: Bytes(1_300), from: Duration::ZERO, icmp: true },
        ElementSpec::Mtu { size: Bytes(1_300), from: ms(800), icmp: false },
        ElementSpec::Strip(all),
        ElementSpec::Forget { idle, resets: false },
        ElementSpec::Forget { idle, resets: true },
        ElementSpec::Reset(ResetTrigger::Bytes(Bytes(500_000))),
        ElementSpec::Reset(ResetTrigger::At(Instant::ZERO + ms(1_200))),
    ];
    assert_eq!(forward[..7], expected);
    let classes = forward[7..].iter().map(|element| match element {
        ElementSpec::Loss { only, .. } => *only,
        other => panic!("{other:?}"),
    });
    let expected = [PacketClass::Syns, PacketClass::SynAcks, PacketClass::EcnSyns];
    assert!(classes.eq(expected));
    let queue = scenario.hosts[1].stack.tcp().unwrap().listen;
    assert_eq!(queue, Some(AcceptQueueSpec { backlog: 4, accept: ms(200) }));
    let tables = crate::document::ScenarioFile::read(&text, "test").unwrap();
    let again = crate::document::ScenarioFile::read(&tables.to_string(), "test").unwrap();
    assert_eq!(again, tables);
}

#[test]
fn mistakes_point_at_their_value() {
    let one = |elements: &str, expected: &str| {
        let found = mistakes(&with(elements), &[]);
        assert_eq!(found.len(), 1, "{elements}: {found:?}");
        assert!(found[0].contains(expected), "{elements}: {}", found[0]);
    };
    one("{ mtu = \"20B\" }", "test.toml:7:9: `mtu` is out of range (expected 68 B to 65535 B");
    one("{ mtu = 1300 }", "`mtu` has no unit");
    one("{ mtu = { icmp = false } }", "`mtu` needs `size`");
    one("{ mtu = { size = \"1300B\", at = \"1s\" } }", "is called `from`");
    one("{ strip = [] }", "`strip` is empty");
    one("{ strip = [\"sack\", \"sack\"] }", "test.toml:7:20: `strip` has \"sack\" twice");
    one("{ strip = [\"window_scale\"] }", "did you mean `window-scale`?");
    one("{ strip = \"sack\" }", "a list such as [\"window-scale\"]");
    one("{ forget = {} }", "`forget` needs `idle`");
    one("{ forget = { idle = \"5s\", answer = \"rst\" } }", "expected `nothing` or `reset`");
    one("{ reset = {} }", "`bytes` or `at`");
    one("{ reset = { bytes = \"1kB\", at = \"1s\" } }", "either `bytes` or `at`, not both");
    one("{ mtu = \"1300B\", only = \"syns\" }", "`only` goes with");
    one("{ loss = { bytes = \"0B..9B\" }, only = \"syns\" }", "selects packets by their payload");
    one("{ loss = \"1%\", only = \"syn\" }", "did you mean `syns`?");
}

#[test]
fn an_accept_queue_is_of_linux() {
    let text = with("").replace("profile = \"linux-6.18\"", "profile = \"freebsd-14.3\"");
    let found = mistakes(&text, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("the accept queue is modelled for Linux only"), "{}", found[0]);
    let text = with("").replace("backlog = 4", "backlog = -1");
    assert!(mistakes(&text, &[])[0].contains("`backlog` is out of range"));
}
