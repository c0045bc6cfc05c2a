//! Scenarios that the program has in it: `preset:NAME`, and `scenario new`.

use crate::test_directory::TestDirectory;

#[test]
fn a_preset_stands_where_a_file_can() {
    let dir = TestDirectory::new("a_preset_stands_where_a_file_can");
    let named = dir.run(&["run", "preset:example", "--json"]).ok();
    let text = dir.run(&["scenario", "show", "preset:example"]).ok();
    dir.write("example.toml", &text);
    assert_eq!(named, dir.run(&["run", "example.toml", "--json"]).ok());
    // Alone it is run.
    assert_eq!(dir.run(&["preset:example", "--json"]).ok(), named);
    dir.run(&["scenario", "check", "preset:c4/black-hole"]).ok();
    dir.run(&["sweep", "preset:loss-sweep", "--dry-run"]).ok();
    let error = dir.run(&["run", "preset:lta"]).refused();
    assert!(error.contains("there is no preset \"lta\""), "{error}");
    assert!(error.contains("did you mean preset:lte?"), "{error}");
}

#[test]
fn a_new_scenario_replaces_nothing_by_itself() {
    let dir = TestDirectory::new("a_new_scenario_replaces_nothing_by_itself");
    let said = dir.run(&["scenario", "new", "my.toml"]).ok();
    assert!(said.ends_with("next: ackclock run my.toml\n"), "{said}");
    dir.run(&["run", "my.toml"]).ok();
    let first = dir.read("my.toml");
    let error = dir.run(&["scenario", "new", "my.toml", "--from", "preset:lte"]).refused();
    assert!(error.contains("my.toml is there already"), "{error}");
    assert_eq!(dir.read("my.toml"), first);
    dir.run(&["scenario", "new", "my.toml", "--from", "preset:lte", "--force"]).ok();
    assert_ne!(dir.read("my.toml"), first);
    let list = dir.run(&["scenario", "new", "--list"]).ok();
    assert!(list.contains("preset:lte"), "{list}");
    dir.run(&["demo", "--save", "demo.pcap.xz"]).ok();
    dir.run(&["scenario", "new", "fitted.toml", "--from", "demo.pcap.xz"]).ok();
    dir.run(&["run", "fitted.toml"]).ok();
}
