//! What a stranger tries first: the program alone, with a file, with the wrong file.

use std::path::Path;
use std::process::Stdio;

use crate::test_directory::{SMALL, TestDirectory};

/// A capture of two kernels, taken at the sender.
fn capture() -> Vec<u8> {
    golden("h1_rwnd_cubic")
}

fn golden(name: &str) -> Vec<u8> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux");
    std::fs::read(golden.join(name).join("sender.pcap.xz")).unwrap()
}

#[test]
fn alone_it_lists_what_can_be_done_here() {
    let dir = TestDirectory::new("alone_it_lists_what_can_be_done_here");
    let empty = dir.run(&[]).ok();
    assert!(empty.contains("ackclock demo") && !empty.contains("In this directory"), "{empty}");
    dir.write("slow.pcap.xz", capture());
    // A block of its compression is longer than 64 KiB.
    dir.write("large.pcap.xz", golden("f2_few_losses_cubic"));
    dir.write("small.toml", SMALL);
    dir.write("notes.txt", "nothing of ours\n");
    let shown = dir.run(&[]).ok();
    assert!(shown.contains("  ackclock diagnose slow.pcap.xz "), "{shown}");
    assert!(shown.contains("  ackclock diagnose large.pcap.xz "), "{shown}");
    assert!(shown.contains("  ackclock run small.toml "), "{shown}");
    assert!(!shown.contains("notes.txt"), "{shown}");
    // Files of other programs, and a page that quotes a scenario.
    dir.write("Cargo.toml", "[package]\nname = \"x\"\n\n[dependencies]\n");
    dir.write("book.toml", "[book]\ntitle = \"x\"\n");
    dir.write("guide.md", format!("# Guide\n{SMALL}"));
    dir.write("package.json", "{ \"name\": \"x\", \"version\": \"1.0\" }\n");
    std::fs::create_dir(dir.0.join("scenarios")).unwrap();
    dir.write("scenarios/below.toml", SMALL);
    dir.write("scenarios/guide.md", SMALL);
    let shown = dir.run(&[]).ok();
    assert!(shown.contains("  ackclock run small.toml "), "{shown}");
    assert!(shown.contains("  ackclock run scenarios/below.toml "), "{shown}");
    for other in ["Cargo.toml", "book.toml", "guide.md", "package.json"] {
        assert!(!shown.contains(other), "{shown}");
    }
    assert!(shown.lines().count() <= 20 && shown.lines().all(|line| line.len() <= 100), "{shown}");
}

#[test]
fn a_file_alone_chooses_its_command() {
    let dir = TestDirectory::new("a_file_alone_chooses_its_command");
    dir.write("slow.pcap.xz", capture());
    // The name says something else than the content.
    dir.write("small.txt", SMALL);
    dir.write("a.pkt", "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n");
    for (arguments, command) in [
        (&["slow.pcap.xz"][..], "diagnose"),
        (&["slow.pcap.xz", "--json"], "diagnose"),
        (&["small.txt", "--seed", "3"], "run"),
        (&["a.pkt"], "packetdrill"),
    ] {
        let short = dir.run(arguments);
        let long = dir.run(&[&[command], arguments].concat());
        assert_eq!((short.code, short.out), (long.code, long.out), "{arguments:?}");
        let said = format!("ackclock {command} {}\n", arguments[0]);
        assert!(short.err.contains(&said), "{arguments:?}: {}", short.err);
    }
    // A folder is its captures and logs, those of its subfolders too.
    std::fs::create_dir_all(dir.0.join("all/one")).unwrap();
    dir.write("all/one/slow.pcap.xz", capture());
    dir.write("all/large.pcap.xz", golden("f2_few_losses_cubic"));
    dir.write("all/notes.txt", "nothing of ours\n");
    dir.write("all/one/settings.json", "{ \"name\": \"x\" }\n");
    let folder = dir.run(&["all"]);
    assert!(folder.err.contains("all is a folder with captures or logs: ackclock diagnose all\n"));
    let file = dir.run(&["diagnose", "all/large.pcap.xz", "all/one/slow.pcap.xz"]).ok();
    assert_eq!((folder.code, folder.out), (0, file));
    let other = dir.run(&["run", "all"]).refused();
    assert!(other.contains("ackclock diagnose all"), "{other}");
    std::fs::create_dir(dir.0.join("worlds")).unwrap();
    let empty = dir.run(&["worlds"]).refused();
    assert!(empty.contains("worlds is nothing that Ackclock knows"), "{empty}");
    dir.write("worlds/small.toml", SMALL);
    let worlds = dir.run(&["worlds"]).refused();
    assert!(worlds.contains("ackclock run worlds/small.toml"), "{worlds}");
    // A command of that name stays the command.
    dir.write("theory", SMALL);
    assert_eq!(dir.run(&["theory", "--help"]).code, 0);
    let missing = dir.run(&["slow.pcp"]).refused();
    assert!(missing.starts_with("error: cannot read slow.pcp"), "{missing}");
    let slip = dir.run(&["diagose"]).refused();
    assert!(slip.contains("'diagnose'"), "{slip}");
}

#[test]
fn the_demo_needs_no_file() {
    let dir = TestDirectory::new("the_demo_needs_no_file");
    let shown = dir.run(&["demo"]).ok();
    assert!(shown.contains("error[CC401]"), "{shown}");
    // The window of 80 kB limits a transfer of 4 MB to 3.3 s; without it the rate of the path
    // would allow 0.3 s and slow start takes some round trips of 60 ms.
    assert!(shown.contains("0.737 s"), "{shown}");
    assert!(shown.contains("= cure: receiver: net.ipv4.tcp_rmem"), "{shown}");
    assert!(dir.files().is_empty());
    dir.run(&["demo", "--save", "demo.pcap.xz"]).ok();
    assert!(dir.read("demo.pcap.xz") == capture());
}

#[test]
fn a_scenario_comes_from_standard_input_too() {
    let dir = TestDirectory::new("a_scenario_comes_from_standard_input_too");
    dir.write("small.toml", SMALL);
    for command in [&["run", "-"][..], &["scenario", "check", "-"], &["scenario", "show", "-"]] {
        let file = std::fs::File::open(dir.0.join("small.toml")).unwrap();
        let output = dir.command(command).stdin(Stdio::from(file)).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command:?}");
        let named: Vec<&str> =
            command.iter().map(|&word| if word == "-" { "small.toml" } else { word }).collect();
        let named = dir.run(&named).ok();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(shown.replace("-: ok", "small.toml: ok"), named);
    }
    dir.write("bad.toml", SMALL.replace("\"100kB\"", "100"));
    let file = std::fs::File::open(dir.0.join("bad.toml")).unwrap();
    let output = dir.command(&["run", "-"]).stdin(Stdio::from(file)).output().unwrap();
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains("--> standard input:22:8"), "{shown}");
}

#[test]
fn every_command_names_the_right_one_for_a_wrong_file() {
    let dir = TestDirectory::new("every_command_names_the_right_one_for_a_wrong_file");
    dir.write("slow.pcap.xz", capture());
    dir.write("small.toml", SMALL);
    let capture = [
        &["run"][..],
        &["sweep"],
        &["compare"],
        &["scenario", "check"],
        &["read"],
        &["packetdrill"],
        &["import-ini"],
        &["table"],
    ];
    for command in capture {
        let refused = dir.run(&[command, &["slow.pcap.xz"]].concat()).refused();
        assert!(refused.contains("ackclock diagnose slow.pcap.xz"), "{command:?}: {refused}");
    }
    for command in [&["diagnose"][..], &["whatif"], &["read"], &["packetdrill"], &["table"]] {
        let refused = dir.run(&[command, &["small.toml"]].concat()).refused();
        assert!(refused.contains("ackclock run small.toml"), "{command:?}: {refused}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_of_root_leads_to_chmod() {
    use std::os::unix::fs::PermissionsExt;

    let dir = TestDirectory::new("a_file_of_root_leads_to_chmod");
    dir.write("slow.pcap", capture());
    let path = dir.0.join("slow.pcap");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads it nevertheless.
    if std::fs::read(&path).is_err() {
        let refused = dir.run(&["diagnose", "slow.pcap"]).refused();
        assert!(refused.contains("sudo chmod a+r slow.pcap"), "{refused}");
    }
}

#[test]
fn published_cases_are_summed_up() {
    let dir = TestDirectory::new("published_cases_are_summed_up");
    let short = dir.run(&["reproduce", "slow-start-lro"]).ok();
    assert!(short.starts_with("47 of 47 asserted figures hold: "), "{short}");
    assert!(short.lines().count() <= 70, "{short}");
    assert!(short.lines().all(|line| line.chars().count() <= 100), "{short}");
    // The published figure beside the measured one.
    let row = short.lines().find(|line| line.contains("cwnd at flight 4")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["cwnd", "at", "flight", "4", "16", "16", "MSS", "exact", "yes"]
    );
    let one = dir.run(&["reproduce", "slow-start-lro", "--jobs", "1"]).ok();
    let many = dir.run(&["reproduce", "slow-start-lro", "--jobs", "5"]).ok();
    assert_eq!((&one, &many), (&short, &short));
    assert!(short.contains("ackclock reproduce slow-start-lro --full"), "{short}");
    let full = dir.run(&["reproduce", "slow-start-lro", "--full"]).ok();
    assert!(full.contains("cwnd at flight 4"), "{full}");
    let table = full
        .lines()
        .skip_while(|line| !line.contains("published"))
        .take_while(|line| !line.is_empty());
    let wide: Vec<&str> = table.filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:?}");
}

#[test]
fn completions_and_manual_pages_have_every_command() {
    let dir = TestDirectory::new("completions_and_manual_pages_have_every_command");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let text = dir.run(&["completions", shell]).ok();
        for word in ["diagnose", "whatif", "fail-on", "ack-delay"] {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    dir.run(&["man", "pages"]).ok();
    let pages = ["ackclock", "ackclock-diagnose", "ackclock-theory-mathis", "ackclock-wire-link"];
    for name in pages {
        let page = String::from_utf8(dir.read(&format!("pages/{name}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains("Examples:"), "{name}: {page}");
    }
}
