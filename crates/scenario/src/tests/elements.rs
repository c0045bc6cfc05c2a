//! Elements, shared elements, several paths and applications: their conversion and their errors.

use core::num::{NonZeroU32, NonZeroU64};

use net::link::QueueLimit;
use sim::scenario::{
    App, ByteRange, Close, ElementSpec, Framing, GilbertElliott, KeepaliveSpec, LinkCapacity,
    OnPeriod, OutageMode, PacketClass, Pause, QdiscConfig, ReadPattern, Schedule, SelectionRule,
    SharedElement, SlotParams, reverse,
};
use units::{Bytes, Duration, Offset, Rate, Ratio};

use super::agreement::{as_json, schema_json, valid};
use super::*;

/// A file with every kind of element and application.
const ROUGH: &str = r#"duration = "10s"
host.a = { profile = "freebsd-13.2" }
host.b = { profile = "linux-6.18", cc = "reno" }

[shared.radio]
loss = { pass = 50 }
only = "acks"

[shared.line]
link = { rate = "1Gbit/s", buffer = "64KiB" }

[shared.far]
delay = "5ms"

[[path]]
name = "cable"
from = "a"
to = "b"
forward = [
    { jitter = "2ms" },
    { loss = "1%" },
    { loss = { every = 100 }, only = "data" },
    { loss = { packets = [900, 7] } },
    { loss = { bytes = "434400B..435848B" } },
    { loss = { bytes = "48KiB..1MiB", times = 3 }, only = "data" },
    { loss = { gilbert_elliott = { p = "1%", r = "30%" } } },
    { loss = { gilbert_elliott = { p = "1%", r = "30%", h = "50%", k = "99.9%" } } },
    { duplicate = "1%" },
    { corrupt = "0.1%", only = "acks" },
    { shared = "line" },
    { shared = "far" },
]
return = [
    { reorder = { reverse = 4, gap = "15ms", timeout = "700us" } },
    { reorder = { reverse = 2 }, only = "data" },
    { reorder = { fraction = "1%", by = "8ms" } },
    { reorder = { displace = 3, every = 10 } },
    { reorder = { swap = "1%", timeout = "5ms" } },
    { thin = { segments = 16, timeout = "4ms" } },
    { outage = { from = "1.2s", until = "2.6s" } },
    { outage = { from = "3s", until = "4s", hold = true } },
    { policer = { rate = "8Mbit/s", burst = "15kB" } },
    { shaper = { rate = "8Mbit/s", burst = "15kB", buffer = "1bdp" } },
    { shared = "radio" },
    { delay = "15ms" },
]

[[path]]
name = "dsl"
from = "b"
to = "a"
forward = []
return = []

[[flow]]
name = "talk"
from = "a"
to = "b"
path = "dsl"
requests = { request = "200B", response = "64KiB", think = "100ms", count = 50 }

[[flow]]
name = "film"
from = "b"
to = "a"
path = "cable"
on_off = { on = "2MB", off = "1s" }
reads = { chunk = "16KiB", every = "20ms" }
close = "reset"
keepalive = { idle = "2h", interval = "75s", count = 8 }

[[flow]]
name = "game"
from = "a"
to = "b"
path = "cable"
on_off = { on = "2s", off = { least = "0s", most = "1.5s" }, bytes = "1MB" }
reads = { rate = "6.5Mbit/s" }
keepalive = true
"#;

fn percent(n: u64) -> Ratio {
    Ratio::new(n, 100).unwrap()
}

fn nth(n: u64) -> SelectionRule {
    SelectionRule::Every(NonZeroU64::new(n).unwrap())
}

fn bytes(from: u64, until: u64, times: u32) -> SelectionRule {
    SelectionRule::Bytes(ByteRange { from: Offset(from), until: Offset(until), times })
}

#[test]
fn every_element_is_converted() {
    let scenario = loaded(ROUGH, &[]).unwrap_or_else(|errors| panic!("{errors:#?}")).scenario;
    let (ms, all) = (Duration::from_millis, PacketClass::All);
    let plain = GilbertElliott { p: percent(1), r: percent(30), h: percent(0), k: percent(100) };
    let full = GilbertElliott { h: percent(50), k: Ratio::new(999, 1_000).unwrap(), ..plain };
    let forward = [
        ElementSpec::Jitter { most: ms(2) },
        ElementSpec::Loss { rule: SelectionRule::Share(percent(1)), only: all },
        ElementSpec::Loss { rule: nth(100), only: PacketClass::Data },
        ElementSpec::Loss { rule: SelectionRule::Listed(vec![7, 900]), only: all },
        ElementSpec::Loss { rule: bytes(434_400, 435_848, 1), only: all },
        ElementSpec::Loss { rule: bytes(49_152, 1_048_576, 3), only: PacketClass::Data },
        ElementSpec::Loss { rule: SelectionRule::GilbertElliott(plain), only: all },
        ElementSpec::Loss { rule: SelectionRule::GilbertElliott(full), only: all },
        ElementSpec::Duplicate { rule: SelectionRule::Share(percent(1)), only: all },
        ElementSpec::Corrupt {
            rule: SelectionRule::Share(Ratio::new(1, 1_000).unwrap()),
            only: PacketClass::Acks,
        },
        ElementSpec::Shared(1),
        ElementSpec::Shared(2),
    ];
    let same = |a: &Ratio, b: &Ratio| a.num() * b.den() == b.num() * a.den();
    assert_eq!(scenario.paths[0].forward.len(), forward.len());
    for (found, expected) in scenario.paths[0].forward.iter().zip(&forward) {
        match (found, expected) {
            // Equal fractions may differ in numerator and denominator.
            (
                ElementSpec::Loss { rule: SelectionRule::GilbertElliott(a), .. },
                ElementSpec::Loss { rule: SelectionRule::GilbertElliott(b), .. },
            ) => {
                assert!(same(&a.p, &b.p) && same(&a.r, &b.r), "{a:?}");
                assert!(same(&a.h, &b.h) && same(&a.k, &b.k), "{a:?}");
            }
            (
                ElementSpec::Corrupt { rule: SelectionRule::Share(a), only: x },
                ElementSpec::Corrupt { rule: SelectionRule::Share(b), only: y },
            ) => assert!(same(a, b) && x == y),
            _ => assert_eq!(found, expected),
        }
    }
    let group = |n, gap, timeout, only| {
        let group = NonZeroU32::new(n).unwrap();
        ElementSpec::Reverse(reverse::ReverseParams { group, gap, timeout, class: only })
    };
    let us = Duration::from_micros;
    let places = |n| NonZeroU32::new(n).unwrap();
    let rate = Rate::from_bits_per_second(8_000_000).unwrap();
    let swap = SelectionRule::Share(percent(1));
    let back = [
        group(4, ms(15), us(700), all),
        group(2, ms(0), us(500), PacketClass::Data),
        ElementSpec::Late { rule: SelectionRule::Share(percent(1)), by: ms(8), only: all },
        ElementSpec::Displace { rule: nth(10), places: places(3), timeout: ms(100), only: all },
        ElementSpec::Displace { rule: swap, places: places(1), timeout: ms(5), only: all },
        ElementSpec::Thin { bytes: Bytes(16 * 1_448), timeout: ms(4) },
        ElementSpec::Outage {
            from: ms(1_200),
            until: ms(2_600),
            period: None,
            during: OutageMode::Drop,
        },
        ElementSpec::Outage {
            from: ms(3_000),
            until: ms(4_000),
            period: None,
            during: OutageMode::Hold,
        },
        ElementSpec::Policer { rate, burst: Bytes(15_000) },
        // 1 MB/s times 5 ms, of the shared element, and 15 ms.
        ElementSpec::Shaper {
            rate,
            burst: Bytes(15_000),
            limit: QueueLimit::Bytes(Bytes(20_000)),
            framing: Framing::NONE,
        },
        ElementSpec::Shared(0),
        ElementSpec::Delay(ms(15)),
    ];
    assert_eq!(scenario.paths[0].reverse, back);
    let rate = Rate::from_bits_per_second(1_000_000_000).unwrap();
    let shared = [
        ("radio", ElementSpec::Loss { rule: nth(51), only: PacketClass::Acks }),
        ("line", ElementSpec::Link { rate, limit: QueueLimit::Bytes(Bytes(65_536)) }),
        ("far", ElementSpec::Delay(ms(5))),
    ];
    let shared = shared.map(|(name, element)| SharedElement { name: name.into(), element });
    assert_eq!(scenario.shared, shared);
}

#[test]
fn every_application_is_converted() {
    let scenario = loaded(ROUGH, &[]).unwrap().scenario;
    let apps: Vec<_> = scenario.flows.iter().map(|flow| (flow.path, flow.app.clone())).collect();
    let ms = Duration::from_millis;
    let (request, response) = (Bytes(200), Bytes(65_536));
    let chance = Pause::Between { least: ms(0), most: ms(1_500) };
    let expected = [
        (1, App::Requests { request, response, think: ms(100), count: Some(50) }),
        (
            0,
            App::OnOff {
                on: OnPeriod::Bytes(Bytes(2_000_000)),
                off: Pause::Fixed(ms(1_000)),
                bytes: None,
            },
        ),
        (
            0,
            App::OnOff { on: OnPeriod::For(ms(2_000)), off: chance, bytes: Some(Bytes(1_000_000)) },
        ),
    ];
    assert_eq!(apps, expected);
}

#[test]
fn socket_options_are_converted() {
    let scenario = loaded(ROUGH, &[]).unwrap().scenario;
    let [talk, film, game] = scenario.flows.as_slice() else { panic!("three flows") };
    assert_eq!((talk.reads, talk.close, talk.keepalive), (None, Close::Fin, None));
    let ms = Duration::from_millis;
    let often = KeepaliveSpec {
        idle: Some(Duration::from_secs(7_200)),
        interval: Some(Duration::from_secs(75)),
        count: Some(8),
    };
    assert_eq!(film.reads, Some(ReadPattern { chunk: Bytes(16_384), every: ms(20) }));
    assert_eq!((film.close, film.keepalive), (Close::Reset, Some(often)));
    // 6,500,000 bit/s for 10 ms.
    assert_eq!(game.reads, Some(ReadPattern { chunk: Bytes(8_125), every: ms(10) }));
    assert_eq!((game.close, game.keepalive), (Close::Fin, Some(KeepaliveSpec::default())));
    let off = loaded(ROUGH, &["flow.2.keepalive=false"]).unwrap().scenario;
    assert_eq!(off.flows[2].keepalive, None);
}

#[test]
fn errors_in_socket_options() {
    one("chunk = \"16KiB\", every", "every", "`reads` needs `chunk` or `rate`");
    one("chunk = \"16KiB\", every = \"20ms\"", "chunk = \"16KiB\"", "`chunk` needs `every`");
    one("rate = \"6.5Mbit/s\"", "rate = 6.5", "`rate` has no unit");
    one("rate = \"6.5Mbit/s\"", "rate = \"100bit/s\"", "this rate is less than one byte per 10ms");
    one("count = 50 }\n", "count = 50 }\nreads = { rate = \"1Mbit/s\" }\n", "`reads` goes with");
    one("close = \"reset\"", "linger = \"0s\"", "write close = \"reset\"");
    one("close = \"reset\"", "close = \"rst\"", "`close` cannot be \"rst\"");
    one("keepalive = true", "keepalive = 5", "`true`, `false` or { idle = \"2h\" }");
    one("interval = \"75s\"", "intvl = \"75s\"", "is called `interval`");
    one("idle = \"2h\"", "idle = 7200", "did you mean \"7200s\"?");
    one("count = 8", "count = 0", "`count` is out of range");
}

/// Asserts that `ROUGH` with one replacement has exactly this error.
fn one(from: &str, to: &str, expected: &str) {
    assert!(ROUGH.contains(from), "{from}");
    let mistakes = mistakes(&ROUGH.replacen(from, to, 1), &[]);
    assert_eq!(mistakes.len(), 1, "{from} -> {to}: {mistakes:?}");
    assert!(mistakes[0].contains(expected), "{from} -> {to}: {}", mistakes[0]);
}

#[test]
fn errors_in_rules() {
    one("\"1%\"", "\"1\"", "did you mean \"1%\"?");
    one("\"1%\"", "0.01", "did you mean \"1%\"?");
    one("\"1%\"", "0.01", "`loss` has no unit");
    one("\"1%\"", "\"101%\"", "`loss` is more than 100%, the limit");
    one("every = 100", "every = 0", "`every` is out of range");
    one("every = 100", "evry = 100", "did you mean `every`?");
    one("every = 100", "every = 100, pass = 1", "a rule has either `every` or `pass`, not both");
    one("every = 100", "only = \"data\"", "`only` belongs beside it");
    one("[900, 7]", "[900, 900]", "test.toml:23:32: packet 900 is listed twice");
    one("[900, 7]", "[0]", "`packets` is out of range");
    one("[900, 7]", "[]", "`packets` is empty");
    one("[900, 7]", "900", "a list of whole numbers such as [900, 901]");
    one(
        "\"434400B..435848B\"",
        "\"434400..435848\"",
        "`bytes` begins with a size that has no unit",
    );
    one("\"434400B..435848B\"", "\"9B..9B\"", "expected an end beyond 9 B");
    one("\"434400B..435848B\"", "434400", "a range such as");
    one("{ bytes = \"434400B..435848B\" }", "{ seq = 1 }", "write bytes = ");
    one("packets = [900, 7]", "packets = [900, 7], times = 2", "`times` goes with `bytes`");
    one("times = 3", "times = 0", "`times` is out of range");
    one("times = 3 }, only = \"data\"", "times = 3 }, only = \"acks\"", "carry no payload bytes");
    one("p = \"1%\", r = \"30%\" }", "p = \"1%\" }", "`gilbert_elliott` needs `r`");
    one("h = \"50%\"", "1-h = \"50%\"", "100% less what netem calls 1-h");
    one("only = \"data\"", "only = \"syn\"", "`only` cannot be \"syn\"");
    one("{ jitter = \"2ms\" }", "{ jitter = \"2ms\", only = \"data\" }", "`only` goes with `loss`");
}

#[test]
fn errors_in_reordering() {
    one("reverse = 4, ", "", "`reorder` needs `reverse`, `displace`, `swap` or `by`");
    one("reverse = 4", "reverse = 1", "`reverse` is out of range");
    one("gap = \"15ms\"", "gap = 15", "did you mean \"15us\"?");
    one("swap = \"1%\", timeout", "swap = \"1%\", gap", "`gap` does not go with `swap`");
    one("fraction = \"1%\", by", "by", "`by` needs `fraction` or `every`");
    one("displace = 3, every = 10", "displace = 3", "`displace` needs `fraction` or `every`");
    one("every = 10 }", "every = 10, fraction = \"1%\" }", "either `fraction` or `every`");
    one("by = \"8ms\"", "delay = \"8ms\"", "the extra delay is called `by`");
}

#[test]
fn errors_in_outages_buckets_and_ack_filters() {
    one("until = \"2.6s\"", "until = \"1.2s\"", "this outage ends before it begins");
    one("until = \"2.6s\"", "untill = \"2.6s\"", "did you mean `until`?");
    one("hold = true", "for = \"1s\"", "the end of an outage is called `until`");
    one("burst = \"15kB\" } }", "burst = \"15kB\", buffer = \"1p\" } }", "is a `shaper`");
    one("burst = \"15kB\" } }", "burst = \"1kB\" } }", "below the MTU: 1500 B never pass");
    one("buffer = \"1bdp\"", "buffer = \"0p\"", "this buffer has zero capacity");
    one("segments = 16, ", "", "`thin` needs `segments`");
}

#[test]
fn errors_in_shared_elements() {
    one("{ shared = \"line\" }", "{ shared = \"lime\" }", "did you mean `line`?");
    one("{ shared = \"far\" }", "{ shared = \"line\" }", "includes the shared element twice");
    one("delay = \"5ms\"", "shared = \"line\"", "a shared element has no key `shared`");
    one("\"64KiB\" }\n", "\"1bdp\" }\n", "paths of several delays");
    one("duration = \"10s\"\n", "duration = \"10s\"\nlink = {}\n", "[shared.NAME]");
}

#[test]
fn errors_among_several_paths() {
    one("name = \"dsl\"\n", "", "a second path between \"b\" and \"a\"");
    let twice = mistakes(&ROUGH.replace("dsl", "cable"), &[]);
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert!(twice[0].contains("test.toml:49:8: duplicate path name \"cable\""), "{twice:?}");
    one("path = \"dsl\"", "path = \"dls\"", "did you mean `dsl`?");
    one("path = \"dsl\"\n", "", "select one with `path`: `cable` or `dsl`");
    let single = SMALL.replace("bulk =", "path = \"x\", bulk =");
    let mistakes = mistakes(&single, &[]);
    assert!(
        mistakes[0].ends_with("the only path there has no name: add name = \"x\""),
        "{mistakes:?}"
    );
}

#[test]
fn errors_in_applications() {
    one("on = \"2s\"", "on = 2", "did you mean \"2kB\"?");
    one("on = \"2s\"", "on = \"0s\"", "`on` is too short");
    one("most = \"1.5s\"", "most = \"1.5\"", "`most` has no unit");
    one("least = \"0s\"", "least = \"2s\"", "the longest pause is shorter than the shortest");
    one("response = \"64KiB\", ", "", "`requests` needs `response`");
    one("duration = \"10s\"\n", "", "the run would never end");
}

#[test]
fn the_schema_covers_elements_and_applications() {
    let schema = schema_json();
    assert!(valid(&schema, &as_json(ROUGH)));
    let changes = [
        ("jitter = \"2ms\"", "jitter = 2"),
        ("loss = \"1%\"", "loss = 0.01"),
        ("every = 100", "evry = 100"),
        ("every = 100", "every = 100, pass = 1"),
        ("[900, 7]", "[0]"),
        ("[900, 7]", "[]"),
        ("\"434400B..435848B\"", "\"434400..435848\""),
        ("times = 3", "times = 0"),
        ("only = \"data\"", "only = \"syn\""),
        ("reverse = 4, ", ""),
        ("by = \"8ms\"", "delay = \"8ms\""),
        ("segments = 16, ", ""),
        ("delay = \"5ms\"", "shared = \"line\""),
        ("on = \"2s\"", "on = 2"),
        ("most = \"1.5s\"", "longest = \"1.5s\""),
        ("response = \"64KiB\", ", ""),
        ("chunk = \"16KiB\", every", "every"),
        ("rate = \"6.5Mbit/s\"", "rate = 6.5"),
        ("close = \"reset\"", "close = \"rst\""),
        ("keepalive = true", "keepalive = 5"),
        ("count = 8", "count = 0"),
    ];
    for (from, to) in changes {
        let text = ROUGH.replacen(from, to, 1);
        assert!(text != ROUGH && loaded(&text, &[]).is_err(), "{from} -> {to}");
        assert!(!valid(&schema, &as_json(&text)), "{from} -> {to}");
    }
}

#[test]
fn the_samples_are_valid() {
    let samples = [
        include_str!("../../../../scenarios/rough-path.toml"),
        include_str!("../../../../scenarios/shared-bottleneck.toml"),
    ];
    for text in samples {
        assert_eq!(mistakes(text, &[]), [""; 0]);
        assert!(valid(&schema_json(), &as_json(text)));
    }
}

#[test]
fn changes_are_converted() {
    let text = r#"duration = "10s"
host.a = { profile = "freebsd-13.2" }
host.b = { profile = "freebsd-13.2" }

[[path]]
from = "a"
to = "b"
forward = [
    { link = { rate = { at = [["0s", "5Mbit/s"], ["2.5s", "0bit/s"]], period = "5s" }, buffer = { at = [["0s", "1bdp"], ["1s", "10p"]] } } },
    { delay = { at = [["0s", "10ms"], ["1s", "20ms"]], ramp = "250ms" } },
    { loss = { at = [["0s", "0%"], ["4s", "5%"]] } },
    { jitter = { wifi = "7ms" } },
    { slot = { min = "1ms", packets = 5 } },
    { outage = { from = "1s", until = "1100ms", period = "3s" } },
]
return = [{ delay = "10ms" }]

[[flow]]
name = "f"
from = "a"
to = "b"
bulk = "1MB"
"#;
    let scenario = loaded(text, &[]).unwrap_or_else(|errors| panic!("{errors:#?}")).scenario;
    let ms = Duration::from_millis;
    let rates = Schedule::new(vec![(ms(0), 5_000_000), (ms(2_500), 0)], Some(ms(5_000))).unwrap();
    // 5 Mbit/s times 20 ms, the first delays.
    let limits = [(ms(0), QueueLimit::Bytes(Bytes(12_500))), (ms(1_000), QueueLimit::Packets(10))];
    // A quarter of the way each 250 ms.
    let delays = [(0, 10_000), (250, 12_500), (500, 15_000), (750, 17_500), (1_000, 20_000)]
        .map(|(at, us)| (ms(at), Duration::from_micros(us)));
    let share = |n| Ratio::new(n, 100).unwrap();
    let shares = vec![(ms(0), share(0)), (ms(4_000), share(5))];
    let once = |steps| Schedule::new(steps, None).unwrap();
    let rule = SelectionRule::Changing(once(shares));
    let expected = [
        ElementSpec::LinkWithQdisc {
            capacity: LinkCapacity::Changing(rates),
            limit: limits[0].1,
            limits: Some(Schedule::new(limits.to_vec(), None).unwrap()),
            queue: QdiscConfig::DropTail,
        },
        ElementSpec::ChangingDelay(Schedule::new(delays.to_vec(), None).unwrap()),
        ElementSpec::Loss { rule, only: PacketClass::All },
        ElementSpec::WifiJitter(Schedule::new(vec![(ms(0), ms(7))], None).unwrap()),
        ElementSpec::Slot(SlotParams {
            min: ms(1),
            max: ms(1),
            spread: None,
            packets: Some(5),
            bytes: None,
        }),
        ElementSpec::Outage {
            from: ms(1_000),
            until: ms(1_100),
            period: Some(ms(3_000)),
            during: OutageMode::Drop,
        },
    ];
    assert_eq!(scenario.paths[0].forward, expected);
}
