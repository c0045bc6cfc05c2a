//! Changes by `--set` and `--seed`.

use net::link::QueueLimit;
use sim::scenario::{App, ElementSpec};
use units::Duration;

use super::*;

#[test]
fn keys_lists_and_knobs_can_be_reached() {
    let set = [
        "duration=10s",
        "title=another one",
        "path.0.forward.1.delay = 20ms",
        "path.0.forward.0.link={ rate = \"1Mbit/s\", buffer = \"9p\" }",
        r#"host.sender.knobs."net.inet.tcp.abc_l_var"=2"#,
        "flow.0.bulk=unlimited",
        "host.sink.delay=5us",
    ];
    let scenario = loaded(FULL, &set).unwrap().scenario;
    assert_eq!(scenario.duration, Duration::from_secs(10));
    assert_eq!(scenario.title, "another one");
    let forward = &scenario.paths[0].forward;
    assert!(matches!(forward[0], ElementSpec::Link { limit: QueueLimit::Packets(9), .. }));
    assert_eq!(forward[1], ElementSpec::Delay(Duration::from_millis(20)));
    assert_eq!(scenario.hosts[0].stack.tcp().unwrap().profile.newreno.abc_l_var, 2);
    assert_eq!(scenario.flows[0].app, App::Bulk { bytes: None, write: None });
    assert_eq!(scenario.hosts[1].delay, Duration::from_micros(5));
}

#[test]
fn a_knob_needs_no_quotes() {
    let set = ["host.sender.knobs.net.inet.tcp.sack.enable=0"];
    assert!(!loaded(FULL, &set).unwrap().scenario.hosts[0].stack.tcp().unwrap().profile.sack);
}

#[test]
fn later_changes_apply_to_earlier_ones() {
    let set = ["host.c={ profile = \"freebsd-13.2\" }", "host.c.mtu=1400B", "host.c.mtu=1300B"];
    let scenario = loaded(SMALL, &set).unwrap().scenario;
    let host = scenario.hosts.iter().find(|host| host.name == "c").unwrap();
    assert_eq!(host.stack.mtu(), 1_300);
}

#[test]
fn missing_tables_are_created() {
    let set = ["host.a.knobs.kern.hz=100", "host.a.lro.ack_limit=7"];
    let scenario = loaded(SMALL, &set).unwrap().scenario;
    assert_eq!(scenario.hosts[0].stack.tcp().unwrap().profile.hz, 100);
}

#[test]
fn the_composed_text_equals_the_run() {
    let sets: [&[&str]; 6] = [
        &["duration=10s", "seed=9"],
        &["host.third={ profile = \"linux-6.18\", cc = \"reno\" }", "host.third.mtu=1400B"],
        &["flow.1={ name = \"x\", from = \"sink\", to = \"sender\", bulk = \"5B\" }"],
        &["path=[{ from = \"sink\", to = \"sender\", forward = [], return = [] }]"],
        &["host.sender.knobs={ \"kern.hz\" = 100 }", "host.sender.knobs.\"kern.hz\"=200"],
        &["tap=[]", "host.sink.knobs.CONFIG_HZ=1000", "title=\"a \\\"quoted\\\" one\""],
    ];
    for set in sets {
        let changed = loaded(FULL, set).unwrap_or_else(|errors| panic!("{set:?}: {errors:?}"));
        let reloaded = loaded(&changed.text, &[]).unwrap();
        assert_eq!(reloaded.scenario, changed.scenario, "{set:?}");
        assert_eq!(reloaded.sha256, changed.sha256);
        assert!(changed.text.starts_with("# A comment.\n"));
    }
}

#[test]
fn comments_beside_a_changed_value_stay() {
    let set = ["host.sender.knobs.net.inet.tcp.abc_l_var=2"];
    let text = loaded(FULL, &set).unwrap().text;
    assert_eq!(text, FULL.replace("= 44 # comment", "= 2 # comment"));
}

#[test]
fn the_seed_argument_is_applied() {
    let seeded = |seed| load(SMALL, "test.toml", &Overrides { seed, ..Overrides::default() });
    let loaded = seeded(Some(99)).unwrap();
    assert_eq!(loaded.scenario.seed, 99);
    assert_eq!(loaded.text, format!("{SMALL}seed = 99\n"));
    let errors = seeded(Some(u64::MAX)).unwrap_err();
    assert_eq!((errors.len(), errors[0].file.as_str()), (1, "--seed"));
}

#[test]
fn errors_point_at_the_argument() {
    let cases = [
        ("duration=10", "--set:1:10: `duration` has no unit"),
        ("duration", "--set:1:1: no `=` in this argument"),
        ("=1", "--set:1:1: this is not a valid key"),
        ("a b=1", "--set:1:1: this is not a valid key"),
        ("flow.7.bulk=1MB", "--set:1:6: `flow` has no entry `7`"),
        ("flow.x.bulk=1MB", "--set:1:6: `flow` has no entry `x`"),
        ("duration.x=1", "--set:1:10: `duration` is not a table, it has no `x`"),
        ("host.a.cc=newreon", "--set:1:11: unknown congestion control `newreon`"),
        ("host.a.cd=newreno", "--set:1:8: a host has no key `cd`"),
        ("host.a.knobs.kern.hzz=1", "--set:1:14: freebsd-13.2 has no knob `kern.hzz`"),
        ("host.a.delay= 5", "--set:1:15: `delay` has no unit"),
        ("path.0.forward.0.lro=true", "--set:1:18: an element has no key `lro`"),
    ];
    let with_duration = format!("duration = \"1s\"\n{SMALL}");
    for (argument, expected) in cases {
        let mistakes = mistakes(&with_duration, &[argument]);
        assert!(mistakes.iter().any(|m| m.starts_with(expected)), "{argument}: {mistakes:?}");
    }
}
