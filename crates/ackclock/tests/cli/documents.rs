//! The documentation says what happens: each command of its `console` blocks is run, and what it
//! prints is what stands there.

use std::path::Path;
use std::process::Command;

fn check(document: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(document)).unwrap();
    let mut commands = 0;
    for block in text.split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        for call in block.split("$ ").skip(1) {
            let (command, expected) = call.split_once('\n').unwrap();
            let (command, pipe) = match command.split_once(" | ") {
                Some((command, pipe)) => (command, Some(pipe)),
                None => (command, None),
            };
            assert!(matches!(pipe, None | Some("sha256sum")), "{command}");
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(words[0], "ackclock", "{command}");
            let mut call = Command::new(env!("CARGO_BIN_EXE_ackclock"));
            let output = call.args(&words[1..]).current_dir(&root).output().unwrap();
            let mut printed = String::from_utf8(output.stdout).unwrap();
            if pipe.is_some() {
                let sum = Command::new(env!("CARGO_BIN_EXE_ackclock"))
                    .args(["scenario", "check", words[3]])
                    .current_dir(&root)
                    .output()
                    .unwrap();
                let sum = String::from_utf8(sum.stdout).unwrap();
                let sum = sum.trim_end().rsplit(' ').next().unwrap();
                printed = format!("{sum}  -\n");
            }
            printed += &String::from_utf8(output.stderr).unwrap();
            assert_eq!(printed, expected, "{document}: {command}");
            commands += 1;
        }
    }
    assert!(commands > 0, "{document}");
}

#[test]
fn first_run() {
    check("docs/first-run.md");
}

#[test]
fn every_page_is_in_the_book() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut pages = 0;
    for entry in std::fs::read_dir(&docs).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") && name != "SUMMARY.md" {
            assert!(summary.contains(&format!("({name})")), "docs/SUMMARY.md lacks {name}");
            pages += 1;
        }
    }
    assert_eq!(
        summary.matches(".md)").count(),
        pages,
        "docs/SUMMARY.md names pages that are not there"
    );
}

#[test]
fn scenario_files() {
    check("docs/scenario.md");
}

#[test]
fn diagnoses() {
    check("docs/diagnose.md");
}

#[test]
fn what_if() {
    check("docs/whatif.md");
}

#[test]
fn sweeps() {
    check("docs/sweeps.md");
}

#[test]
fn reports() {
    check("docs/reports.md");
}

#[test]
fn closed_forms() {
    check("docs/theory.md");
}

#[test]
fn qlogs() {
    check("docs/qlog.md");
}

#[test]
fn logs_of_the_stack() {
    check("docs/formats.md");
}

#[test]
fn packet_scripts() {
    check("docs/packet-scripts.md");
}

#[test]
fn the_example_is_the_sample_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = std::fs::read_to_string(root.join("docs/scenario.md")).unwrap();
    let sample = std::fs::read_to_string(root.join("scenarios/example.toml")).unwrap();
    assert!(document.contains(&format!("```toml\n{sample}```")));
}
