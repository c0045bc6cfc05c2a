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

/// What mdBook would stumble over: a page that is not in the book, one that is not there, a
/// chapter twice.
#[test]
fn every_page_is_in_the_book() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut named: Vec<&str> = links(&summary).map(|(_, target)| target).collect();
    for line in summary.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert!(line.starts_with("- [") && line.ends_with(".md)"), "docs/SUMMARY.md: {line}");
    }
    let entries = std::fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.into_string().unwrap());
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    named.sort_unstable();
    pages.sort_unstable();
    assert_eq!(named, pages, "docs/SUMMARY.md and docs/ do not agree");
    let book = std::fs::read_to_string(docs.join("../book.toml")).unwrap();
    assert!(book.contains("src = \"docs\""), "{book}");
}

/// Links and pictures of a page, outside of its blocks of code: text and target.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| {
        prose.match_indices("](").filter_map(|(at, _)| {
            let from = prose[..at].rfind('[')?;
            let rest = &prose[at + 2..];
            Some((&prose[from + 1..at], &rest[..rest.find(')')?]))
        })
    })
}

/// The name by which GitHub and mdBook link to a heading.
fn anchor(heading: &str) -> String {
    let plain = heading.trim().to_lowercase();
    let kept = plain.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> =
        docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "bindings/python/README.md"];
    pages.extend(others.map(|name| root.join(name)));
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let is_in_the_book = page.starts_with(root.join("docs"));
        let page = page.display();
        for (_, target) in links(&text).filter(|(_, target)| !target.contains("://")) {
            // The book has the pages of docs alone.
            assert!(!is_in_the_book || !target.starts_with(".."), "{page}: {target}");
            let (file, part) = target.split_once('#').map_or((target, None), |(f, p)| (f, Some(p)));
            let path = match file {
                "" => Path::new(&page.to_string()).to_owned(),
                file => Path::new(&page.to_string()).with_file_name(file),
            };
            assert!(path.exists(), "{page}: {target}");
            if let Some(part) = part {
                let text = std::fs::read_to_string(&path).unwrap();
                let prose = text.split("```").step_by(2).flat_map(str::lines);
                let mut headings = prose.filter(|line| line.starts_with('#'));
                let is_there = headings.any(|line| anchor(line.trim_start_matches('#')) == part);
                assert!(is_there, "{page}: {target}");
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

/// Words of a line of a shell, quotes taken off; what follows `#`, `|`, `>` or `&&` is left out.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | '>' | '&') => break,
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Commands that are only shown, not run, are commands there are: with `--help` behind them they
/// are read up to there, and do nothing.
#[test]
fn commands_that_are_shown_can_be_given() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut count = 0;
    for page in pages.chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```sh\n").skip(1) {
            let (block, _) = block.split_once("```").unwrap();
            let calls = block.lines().flat_map(|line| line.split(" | "));
            for call in calls.filter_map(|call| call.trim().strip_prefix("ackclock ")) {
                let words = words(call);
                let mut command = Command::new(env!("CARGO_BIN_EXE_ackclock"));
                let answer = command.args(&words).arg("--help").output().unwrap();
                let told = String::from_utf8_lossy(&answer.stderr).into_owned();
                assert_eq!(answer.status.code(), Some(0), "{}: {call}: {told}", page.display());
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
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
fn quic() {
    check("docs/quic.md");
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
