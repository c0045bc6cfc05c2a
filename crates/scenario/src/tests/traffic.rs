//! Datagrams, groups of connections, replicated hosts and fabrics.

use sim::scenario::{App, Arrivals, ElementSpec};
use units::{Bytes, Duration};

use super::{SMALL, loaded, mistakes};
use crate::{Files, Overrides, load};

const FLOW: &str = "bulk = \"1MB\"";

/// The scenario with another application.
fn with(app: &str) -> String {
    SMALL.replace(FLOW, app)
}

fn error(text: &str) -> String {
    mistakes(text, &[]).first().cloned().unwrap_or_default()
}

#[test]
fn datagrams_have_an_interval_a_rate_or_a_law() {
    let app =
        |text: &str| loaded(&with(text), &["duration=1s"]).unwrap().scenario.flows[0].app.clone();
    let every = |ns| sim::scenario::DatagramInterval::Fixed(Duration::from_nanos(ns));
    let App::Datagrams(spec) = app("udp = { size = \"1250B\", rate = \"10Mbit/s\" }") else {
        panic!("a flow of datagrams")
    };
    assert_eq!((spec.size, spec.interval, spec.echo), (Bytes(1_250), every(1_000_000), false));
    let App::Datagrams(spec) = app("ping = {}") else { panic!("a flow of datagrams") };
    assert_eq!((spec.size, spec.interval, spec.echo), (Bytes(56), every(1_000_000_000), true));
    let endless = error(&with("ping = {}"));
    assert!(endless.contains("the run would never end"), "{endless}");
    let large = error(&with("udp = { size = \"1473B\", every = \"1ms\", count = 1 }"));
    assert!(large.contains("needs a packet above the MTU of 1500 B"), "{large}");
    let option = error(&with("ping = { count = 1 }, nodelay = true"));
    assert!(option.contains("`nodelay` goes with connections"), "{option}");
}

#[test]
fn a_group_has_its_connections_and_a_name() {
    let text = with("transfer = { mean = \"30kB\" }, count = 50, arrivals = { poisson = \"1ms\" }");
    let scenario = loaded(&text, &[]).unwrap().scenario;
    assert_eq!((scenario.flows.len(), scenario.groups.len()), (50, 1));
    assert_eq!((scenario.flows[7].name.as_str(), scenario.groups[0].name.as_str()), ("f-7", "f"));
    assert_eq!(scenario.groups[0].arrivals, Arrivals::Poisson(Duration::from_millis(1)));
    assert!(scenario.flows.is_sorted_by_key(|flow| flow.start));
    let missing = error(&with("bulk = \"1kB\", arrivals = { every = \"1ms\" }"));
    assert!(missing.contains("`arrivals` needs the `count` of connections"), "{missing}");
    let unknown = error(&with("transfer = { cdf = \"preset:web\" }"));
    assert!(unknown.contains("unknown distribution \"preset:web\""), "{unknown}");
}

#[test]
fn traces_of_arrivals_are_files() {
    let with_file = |text: &str, file: &'static str| {
        let files = Files::new(move |_| Ok(file.as_bytes().to_vec()));
        load(text, "test.toml", &Overrides { files, ..Overrides::default() })
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<String>())
    };
    let text = with("transfer = { trace = \"t.txt\" }, arrivals = { trace = \"t.txt\" }");
    let scenario = with_file(&text, "0.5 100\n2 7\n").unwrap().scenario;
    let found: Vec<_> = scenario.flows.iter().map(|flow| (flow.start, flow.app.clone())).collect();
    let bulk = |bytes| App::Bulk { bytes: Some(Bytes(bytes)), write: None };
    let ms = Duration::from_millis;
    assert_eq!(found, [(ms(500), bulk(100)), (ms(2_000), bulk(7))]);
    let wrong = with_file(&text, "2 7\n0.5 100\n").unwrap_err();
    assert!(
        wrong.contains("t.txt:2: this time is earlier than that of the line before"),
        "{wrong}"
    );
    let late = with_file(&format!("duration = \"1s\"\n{text}"), "0.5 100\n2 7\n").unwrap_err();
    assert!(late.contains("connection number 1 of this trace starts after the end"), "{late}");
}

#[test]
fn a_replicated_host_has_paths_and_flows_of_its_own() {
    let text = SMALL.replace("host.a = { ", "host.a = { count = 3, ");
    let scenario = loaded(&text, &[]).unwrap().scenario;
    let hosts: Vec<&str> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(hosts, ["a-0", "a-1", "a-2", "b"]);
    let flows: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(flows, ["f-0", "f-1", "f-2"]);
    let ends: Vec<_> = scenario.paths.iter().map(|path| (path.from, path.to)).collect();
    assert_eq!(ends, [(0, 3), (1, 3), (2, 3)]);
}

const FABRIC: &str = r#"
host.w = { profile = "linux-6.18", count = 4 }
fabric = { hosts = "w", leaves = 2, spines = 2, host_link = { rate = "10Gbit/s", buffer = "100kB" }, spine_link = { rate = "40Gbit/s", buffer = "100kB" } }
flow = [ { name = "f", from = "w-0", to = "w", bulk = "1MB" } ]
"#;

#[test]
fn a_fabric_has_the_links_that_flows_cross() {
    let scenario = loaded(FABRIC, &[]).unwrap().scenario;
    assert_eq!((scenario.flows.len(), scenario.paths.len()), (3, 3));
    let links = |path: usize| {
        let route = &scenario.paths[path].forward;
        route.iter().filter(|element| matches!(element, ElementSpec::Shared(_))).count()
    };
    // w-1 is on the same leaf, w-2 and w-3 are on the other.
    assert_eq!([links(0), links(1), links(2)], [2, 4, 4]);
    let unequal = error(&FABRIC.replace("leaves = 2", "leaves = 3"));
    assert!(unequal.contains("4 hosts do not fill 3 leaves equally"), "{unequal}");
    let single = error(&FABRIC.replace(", count = 4", "").replace("w-0", "v"));
    assert!(single.contains("\"w\" is not a host with `count`"), "{single}");
}
