//! Queue disciplines, links with traces, and built-in paths.

use net::queue::{QdiscConfig, codel, fq_codel, pie, red};
use sim::scenario::{ElementSpec, LinkCapacity};
use units::{Bytes, Duration, Ratio};

use super::super::Files;
use super::super::presets;
use super::*;

fn with_link(link: &str) -> String {
    SMALL.replace(
        "{ delay = \"5ms\" }",
        &format!("{{ link = {{ {link} }} }}, {{ delay = \"5ms\" }}"),
    )
}

fn first(text: &str) -> ElementSpec {
    let loaded = loaded(text, &[]).unwrap_or_else(|errors| panic!("{errors:?}"));
    loaded.scenario.paths[0].forward[0].clone()
}

fn policy(queue: &str) -> QdiscConfig {
    match first(&with_link(&format!("rate = \"1Mbit/s\", buffer = \"9p\", queue = {queue}"))) {
        ElementSpec::LinkWithQdisc { queue, .. } => queue,
        ElementSpec::Link { .. } => QdiscConfig::DropTail,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_selects_the_default_parameters() {
    assert_eq!(policy("\"drop-tail\""), QdiscConfig::DropTail);
    assert_eq!(policy("\"codel\""), QdiscConfig::CoDel(codel::CoDelParams::default()));
    assert_eq!(policy("\"fq_codel\""), QdiscConfig::FqCoDel(fq_codel::FqCoDelParams::default()));
    assert_eq!(policy("\"pie\""), QdiscConfig::Pie(pie::PieParams::default()));
    assert_eq!(policy("\"red\""), QdiscConfig::Red(red::RedParams::default()));
    assert_eq!(policy("{ red = {} }"), QdiscConfig::Red(red::RedParams::default()));
}

#[test]
fn parameters_are_converted() {
    let ms = Duration::from_millis;
    let codel = codel::CoDelParams { target: ms(10), interval: ms(200), ecn: true };
    let text = "{ codel = { target = \"10ms\", interval = \"200ms\", ecn = true } }";
    assert_eq!(policy(text), QdiscConfig::CoDel(codel));
    let text = "{ fq_codel = { target = \"10ms\", interval = \"200ms\", quantum = \"300B\", \
                flows = 8 } }";
    assert_eq!(
        policy(text),
        QdiscConfig::FqCoDel(fq_codel::FqCoDelParams { codel, quantum: Bytes(300), flows: 8 })
    );
    let text = "{ pie = { target = \"20ms\", update = \"30ms\", burst = \"0s\", ecn = true } }";
    let pie = pie::PieParams { target: ms(20), update: ms(30), burst: Duration::ZERO, ecn: true };
    assert_eq!(policy(text), QdiscConfig::Pie(pie));
    let QdiscConfig::Red(red) =
        policy("{ red = { min = 1, max = 3, weight = \"1%\", gentle = false } }")
    else {
        panic!("no RED")
    };
    assert_eq!((red.min, red.max, red.gentle, red.ecn), (1, 3, false, false));
    assert_eq!(red.weight.of(1_000), Ratio::new(1, 100).unwrap().of(1_000));
}

fn wrong(link: &str) -> Vec<String> {
    mistakes(&with_link(link), &[])
}

#[test]
fn invalid_disciplines_are_rejected() {
    let queue =
        |queue: &str| wrong(&format!("rate = \"1Mbit/s\", buffer = \"9p\", queue = {queue}"));
    let cases = [
        ("\"codle\"", "did you mean `codel`?"),
        ("5", "`queue` has a value of the wrong type"),
        ("{}", "`queue` needs `codel`, `fq_codel`, `pie` or `red`"),
        ("{ codel = {}, pie = {} }", "either `codel` or `pie`, not both"),
        ("{ codel = { target = 5 } }", "`target` has no unit"),
        ("{ codel = { target = \"0s\" } }", "`target` is too short"),
        ("{ codel = { limit = 5 } }", "the link's `buffer`"),
        ("{ red = { min = 15 } }", "the lower threshold is not below the upper one"),
        ("{ red = { weight = \"0%\" } }", "a `weight` of zero never changes the average"),
        ("{ red = { min_th = 5 } }", "called `min` and `max`"),
    ];
    for (text, expected) in cases {
        let found = queue(text);
        assert!(found.len() == 1 && found[0].contains(expected), "{text}: {found:?}");
    }
    let found = wrong("rate = \"1Mbit/s\", buffer = \"9p\", aqm = \"codel\"");
    assert!(found[0].contains("queue = \"codel\""), "{found:?}");
}

fn load_with(text: &str, file: &'static [u8]) -> Result<Loaded, Vec<ScenarioError>> {
    let read = move |name: &str| match name {
        "down.trace" => Ok(file.to_vec()),
        _ => Err(format!("cannot read {name}: no such file")),
    };
    load(text, "test.toml", &Overrides { files: Files::new(read), ..Overrides::default() })
}

const TRACE: &str = "trace = \"down.trace\", buffer = \"1bdp\"";

#[test]
fn a_link_follows_the_trace_in_a_file() {
    let loaded = load_with(&with_link(TRACE), b"1\n2\n2\n5\n").unwrap();
    let ElementSpec::LinkWithQdisc {
        capacity: LinkCapacity::Trace(schedule), limit, queue, ..
    } = loaded.scenario.paths[0].forward[0].clone()
    else {
        panic!("{:?}", loaded.scenario.paths)
    };
    assert_eq!((schedule.opportunities_ms(), queue), (&[1, 2, 2, 5][..], QdiscConfig::DropTail));
    // Four packets in 5 ms are 9.6 Mbit/s; the delay of the path is 5 ms.
    assert_eq!(limit, net::link::QueueLimit::Bytes(Bytes(6_000)));
    // The digest covers the file.
    let other = load_with(&with_link(TRACE), b"1\n2\n2\n6\n").unwrap();
    assert_ne!(loaded.sha256, other.sha256);
    assert_eq!(loaded.text, other.text);
}

#[test]
fn an_invalid_trace_is_rejected_with_its_line() {
    let cases: [(&[u8], &str); 6] = [
        (b"1\n2x\n", "down.trace:2: expected a whole number of milliseconds up to 4294967295"),
        (b"1\n5\n4\n", "down.trace:3: this time is earlier than that of the line before"),
        (b"", "down.trace: no delivery opportunity"),
        (b"0\n", "down.trace: its duration is 0 ms"),
        (b"1\n\xff\n", "down.trace:2: not UTF-8 text"),
        (b"1\n\n2\n", "down.trace:2: expected"),
    ];
    for (file, expected) in cases {
        let errors = load_with(&with_link(TRACE), file).unwrap_err();
        let text = errors.iter().map(ToString::to_string).collect::<String>();
        assert!(text.contains(expected), "{text}");
        assert!(text.starts_with("test.toml:3:"), "{text}");
    }
    let missing = TRACE.replace("down", "up");
    let errors = load_with(&with_link(&missing), b"").unwrap_err();
    assert!(errors[0].to_string().contains("cannot read up.trace: no such file"), "{errors:?}");
    // Without access to files, the error says so.
    assert!(wrong(TRACE)[0].contains("files cannot be read here"));
    assert!(wrong("trace = \"preset:lte\", buffer = \"9p\"")[0].contains("preset:lte-down"));
    assert!(wrong("buffer = \"9p\"")[0].contains("a link needs `rate` or `trace`"));
}

#[test]
fn every_preset_is_a_scenario_and_a_path() {
    for name in presets::NAMES {
        let file = format!("../../scenarios/presets/{name}.toml");
        let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let own = loaded(&std::fs::read_to_string(place).unwrap(), &[]).unwrap();
        let key = format!("preset = {name:?}");
        let text = SMALL.replace("forward = [ { delay = \"5ms\" } ], return = []", &key);
        let taken = loaded(&text, &[]).unwrap_or_else(|errors| panic!("{errors:?}"));
        let [one, other] = [&own, &taken].map(|loaded| &loaded.scenario.paths[0]);
        assert_eq!((&one.forward, &one.reverse), (&other.forward, &other.reverse), "{name}");
        let outcome = sim::run(&own.scenario, &mut record::NullRecorder).unwrap();
        assert!(outcome.flows[0].bytes.get() > 1_000_000, "{name}: {:?}", outcome.flows[0]);
    }
    let set = |set: &str| mistakes(SMALL, &[set]);
    assert!(set("path.0.preset=lte")[0].contains("either `preset` or `forward`, not both"));
    let text = SMALL.replace("forward = [ { delay = \"5ms\" } ], return = []", "preset = \"let\"");
    assert!(mistakes(&text, &[])[0].contains("did you mean `lte`?"));
    let text = SMALL.replace(", return = []", "");
    assert!(mistakes(&text, &[])[0].contains("a path needs `return`"));
}
