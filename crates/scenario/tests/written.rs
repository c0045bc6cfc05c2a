//! Reading and writing a file preserves its tables and its scenario.

use std::fs;
use std::path::{Path, PathBuf};

use ackclock_scenario::document::{
    ElementTable, FlowTable, HostTable, LinkTable, PathTable, RawValue, ScenarioFile, TransferSize,
    given, named, tables,
};
use ackclock_scenario::units_text::BufferSize;
use ackclock_scenario::{Files, Overrides, load};
use units::{Bytes, Duration, Rate};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// Returns all scenario files below a folder.
fn scenarios(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries
        .flat_map(|entry| if entry.is_dir() { scenarios(&entry) } else { vec![entry] })
        .filter(|file| file.extension().is_some_and(|end| end == "toml"))
        // The folder is a crate, too.
        .filter(|file| !file.ends_with("Cargo.toml"))
        .collect();
    found.sort();
    found
}

#[test]
fn every_scenario_is_preserved_by_reading_and_writing() {
    let files = Files::new(|name| fs::read(folder().join(name)).map_err(|e| e.to_string()));
    let overrides = Overrides { files, ..Overrides::default() };
    let all = scenarios(&folder());
    assert!(all.len() > 10, "{all:?}");
    for file in all {
        let name = file.display().to_string();
        let text = fs::read_to_string(&file).unwrap();
        let tables = ScenarioFile::read(&text, &name).unwrap();
        let written = tables.to_string();
        assert_eq!(ScenarioFile::read(&written, &name).unwrap(), tables, "{written}");
        let scenario = |text: &str| load(text, &name, &overrides).unwrap().scenario;
        assert_eq!(scenario(&text), scenario(&written), "{written}");
    }
}

/// Each names its title and loads as it is.
#[test]
fn the_c4_tests_are_scenarios() {
    let entries = fs::read_dir(folder().join("c4")).unwrap();
    let loaded = entries.map(|entry| {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let read = load(&text, &path.to_string_lossy(), &Overrides::default());
        read.unwrap_or_else(|errors| panic!("{errors:?}")).scenario.title
    });
    assert_eq!(loaded.filter(|title| title.starts_with("C4: ")).count(), 30);
}

#[test]
fn a_program_writes_customary_text() {
    let delay = || ElementTable { delay: given(Duration::from_millis(20)), ..Default::default() };
    let link = LinkTable {
        rate: Rate::from_bits_per_second(1_500_000).and_then(given),
        buffer: given(BufferSize::Packets(100)),
        ..LinkTable::default()
    };
    let link = ElementTable { link: given(link), ..ElementTable::default() };
    let sysctl = vec![Bytes(4_096), Bytes(131_072), Bytes(6 << 20)];
    let server = HostTable {
        profile: given("linux-6.18"),
        cc: given("reno"),
        mtu: given(Bytes(9_000)),
        knobs: named([("net.ipv4.tcp_rmem", RawValue::from(sysctl))]),
        ..HostTable::default()
    };
    let client = HostTable { profile: given("freebsd-14.3"), ..HostTable::default() };
    let path = PathTable {
        from: given("server"),
        to: given("my client"),
        forward: tables([link, delay()]),
        return_: tables([delay()]),
        ..PathTable::default()
    };
    let flow = FlowTable {
        name: given("a \"name\""),
        from: given("server"),
        to: given("my client"),
        bulk: given(TransferSize::Unlimited),
        ..FlowTable::default()
    };
    let file = ScenarioFile {
        comment: vec!["Fitted.".to_owned(), String::new(), "a\nb".to_owned()],
        title: given("as written"),
        duration: given(Duration::from_millis(1_500)),
        host: named([("server", server), ("my client", client)]),
        path: tables([path]),
        flow: tables([flow]),
        ..ScenarioFile::default()
    };
    let expected = r##"# Fitted.
#
# a b

title = "as written"
duration = "1.5s"

[host.server]
profile = "linux-6.18"
cc = "reno"
mtu = "9000B"

[host.server.knobs]
"net.ipv4.tcp_rmem" = ["4KiB", "128KiB", "6MiB"]

[host."my client"]
profile = "freebsd-14.3"

[[path]]
from = "server"
to = "my client"
forward = [
    { link = { rate = "1.5Mbit/s", buffer = "100p" } },
    { delay = "20ms" },
]
return = [
    { delay = "20ms" },
]

[[flow]]
name = 'a "name"'
from = "server"
to = "my client"
bulk = "unlimited"
"##;
    assert_eq!(file.to_string(), expected);
    assert!(load(expected, "written", &Overrides::default()).is_ok());
}
