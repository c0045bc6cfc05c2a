//! The commands in the `console` blocks of the documentation run and print the documented output.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::test_directory::TestDirectory;

/// A shell command in which `ackclock` is this program.
fn shell(line: &str, directory: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_ackclock")).parent().unwrap();
    let mut command = Command::new("sh");
    let line = format!("PATH='{}':$PATH\n{line}", program.display());
    command.args(["-c", &line]).current_dir(directory);
    command
}

fn check(document: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(document)).unwrap();
    let mut commands = 0;
    for block in text.split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        for call in block.split("$ ").skip(1) {
            let (command, expected) = call.split_once('\n').unwrap();
            let output = shell(command, &root).output().unwrap();
            let mut printed = String::from_utf8(output.stdout).unwrap();
            printed += &String::from_utf8(output.stderr).unwrap();
            assert_eq!(printed, expected, "{document}: {command}");
            commands += 1;
        }
    }
    assert!(commands > 0, "{document}");
}

#[test]
fn readme() {
    check("README.md");
}

#[test]
fn first_run() {
    check("docs/first-run.md");
}

#[test]
fn schemas() {
    check("docs/json.md");
}

#[test]
fn tutorial() {
    check("docs/tutorial.md");
}

#[test]
fn first_mistakes() {
    check("docs/first-mistakes.md");
}

/// The pages of docs, docs/findings and docs/ledger but the table of contents, by their paths below docs.
fn pages() -> Vec<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut pages = Vec::new();
    for folder in ["", "findings/", "ledger/"] {
        for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") && name != "SUMMARY.md" {
                pages.push(format!("{folder}{name}"));
            }
        }
    }
    pages.sort_unstable();
    pages
}

/// The table of contents is complete: every page is in it once, and every entry exists.
#[test]
fn every_page_is_in_the_book() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut named: Vec<&str> = links(&summary).map(|(_, target)| target).collect();
    for line in summary.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert!(line.starts_with("- [") && line.ends_with(".md)"), "docs/SUMMARY.md: {line}");
    }
    named.sort_unstable();
    assert_eq!(named, pages(), "docs/SUMMARY.md and docs/ do not agree");
    let book = std::fs::read_to_string(docs.join("../book.toml")).unwrap();
    assert!(book.contains("src = \"docs\""), "{book}");
}

/// Pages of the guide that begin otherwise: what they need instead of a command that a test can run.
const OTHER_BEGINNINGS: [(&str, &str); 6] = [
    ("kernels.md", "a kernel"),
    ("stacks.md", "Go, and its modules"),
    ("wire.md", "root, or two hosts"),
    ("playground.md", "a browser"),
    ("mcp.md", "a client"),
    ("packages.md", "a release"),
];

/// A page of the guide shows a command and its output before it explains.
#[test]
fn pages_of_the_guide_begin_with_a_command_and_its_output() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let (guide, _) = summary.split_once("\n# Reference\n").unwrap();
    for (_, page) in links(guide) {
        if OTHER_BEGINNINGS.iter().any(|(other, _)| *other == page) {
            continue;
        }
        let text = std::fs::read_to_string(docs.join(page)).unwrap();
        let (_, text) = text.split_once('\n').unwrap();
        assert!(text.trim_start().starts_with("```console\n$ "), "docs/{page}");
    }
}

#[test]
fn beginnings() {
    check("docs/howto.md");
    check("docs/limits.md");
    check("docs/glossary.md");
    check("docs/ci.md");
    check("docs/scale.md");
    check("docs/adding-a-controller.md");
    check("docs/python.md");
}

/// Links and pictures of a page, outside of its blocks of code: text and target.
pub(crate) fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|prose| {
        prose.match_indices("](").filter_map(|(at, _)| {
            let from = prose[..at].rfind('[')?;
            let rest = &prose[at + 2..];
            Some((&prose[from + 1..at], &rest[..rest.find(')')?]))
        })
    })
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor(heading: &str) -> String {
    let plain = heading.trim().to_lowercase();
    let kept = plain.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Each finding has a page, on which the program prints what it does now.
#[test]
fn findings_have_pages() {
    let pages = pages().into_iter().filter(|page| page.starts_with("findings/"));
    pages.for_each(|page| check(&format!("docs/{page}")));
}

#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let others = ["ARCHITECTURE", "CONTRIBUTING", "README", "SECURITY"].map(|n| format!("{n}.md"));
    let mut pages: Vec<_> = pages().iter().map(|page| root.join("docs").join(page)).collect();
    pages.push(root.join("docs/SUMMARY.md"));
    pages.extend(others.map(|name| root.join(name)));
    let mut folders = ["bench", "bindings", "fuzz", "golden", "web"].map(|n| root.join(n)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.file_name().and_then(|name| name.to_str()) {
                // Build output, environments and fetched packages.
                Some("node_modules" | "target" | "corpus") => {}
                Some(name) if name.starts_with('.') => {}
                Some(_) if path.is_dir() => folders.push(path),
                Some("README.md") => pages.push(path),
                _ => {}
            }
        }
    }
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let is_in_the_book = page.starts_with(root.join("docs"));
        let page = page.display();
        for (_, target) in links(&text).filter(|(_, target)| !target.contains("://")) {
            let (file, part) = target.split_once('#').map_or((target, None), |(f, p)| (f, Some(p)));
            let path = match file {
                "" => Path::new(&page.to_string()).to_owned(),
                file => Path::new(&page.to_string()).with_file_name(file),
            };
            assert!(path.exists(), "{page}: {target}");
            // The book contains only the pages of docs.
            let resolved = path.canonicalize().unwrap();
            let is_in_docs = resolved.starts_with(root.join("docs").canonicalize().unwrap());
            assert!(!is_in_the_book || is_in_docs, "{page}: {target}");
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

/// The words of a shell command without quotes, up to `#`, `|`, `>` or `&&`.
pub(crate) fn words(line: &str) -> Vec<String> {
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

/// Commands that are shown but not run are valid: with `--help` appended they are parsed up to
/// there and do nothing.
#[test]
fn commands_that_are_only_shown_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = pages().into_iter().map(|page| root.join("docs").join(page));
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
                let shown = String::from_utf8_lossy(&answer.stderr).into_owned();
                assert_eq!(answer.status.code(), Some(0), "{}: {call}: {shown}", page.display());
                count += 1;
            }
        }
    }
    assert!(count > 30, "{count}");
}

/// Files that stand in for the reader's own.
const OF_READERS: [(&str, &str); 7] = [
    ("my.toml", "scenarios/example.toml"),
    ("transfer.toml", "scenarios/slow-start-lro.toml"),
    ("slow.pcap", "golden/linux/f2_few_losses_cubic/sender.pcap.xz"),
    ("upload.pcap", "golden/linux/h1_rwnd_cubic/sender.pcap.xz"),
    ("mathis_simple.ini", "crates/import-inet/tests/data/mathis_simple.ini"),
    ("scenarios", "scenarios"),
    ("golden", "golden"),
];

/// Time limit of a command of a page: all take seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// The value of a mark in the comment before a block: `<!-- sh: not run: needs root -->` or `<!--
/// sh: status 1 -->`.
fn mark<'t>(before: &'t str, name: &str) -> Option<&'t str> {
    let mark = before.trim_end().lines().last()?.strip_prefix("<!-- sh: ")?;
    mark.strip_suffix(" -->")?.strip_prefix(name)
}

/// Runs the commands of each block in one directory of the page. Each ends with status 0, or with
/// the status that its block's mark declares.
#[cfg(unix)]
fn run_blocks(page: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = TestDirectory::new(&format!("blocks_of_{}", page.replace(['/', '.'], "_")));
    for (name, file) in OF_READERS {
        std::os::unix::fs::symlink(root.join(file), dir.0.join(name)).unwrap();
    }
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let blocks: Vec<&str> = text.split("```sh\n").collect();
    for (before, block) in blocks.iter().zip(&blocks[1..]) {
        if mark(before, "not run: ").is_some() {
            continue;
        }
        let wanted = mark(before, "status ").map_or(0, |status| status.parse().unwrap());
        let (block, _) = block.split_once("```").unwrap();
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (status, shown) = status_within(shell(line, &dir.0), &dir, LIMIT);
            assert_eq!(status, Some(wanted), "{page}: {line}: {shown}");
        }
    }
}

/// The status of a command that ends within `limit`, and its output.
#[expect(clippy::disallowed_methods, reason = "a limit of wall-clock time")]
fn status_within(
    mut command: Command,
    dir: &TestDirectory,
    limit: Duration,
) -> (Option<i32>, String) {
    let shown = dir.0.join("told");
    let errors = std::fs::File::create(&shown).unwrap();
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    let mut child = quiet.spawn().unwrap();
    let step = Duration::from_millis(20);
    for _ in 0..limit.as_millis() / step.as_millis() {
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code(), std::fs::read_to_string(&shown).unwrap());
        }
        std::thread::sleep(step);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    (None, "it takes too long".to_owned())
}

#[cfg(unix)]
#[test]
fn blocks_of_a_shell_run() {
    let pages = pages().into_iter().map(|page| format!("docs/{page}"));
    pages.chain(["README.md".to_owned()]).for_each(|page| run_blocks(&page));
}

/// The scenarios in the cells of the notebooks are valid.
#[test]
fn scenarios_of_notebooks_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = TestDirectory::new("scenarios_of_notebooks_are_right");
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "ipynb") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let notebook: serde_json::Value = serde_json::from_str(&text).unwrap();
        for cell in notebook["cells"].as_array().unwrap() {
            let lines = cell["source"].as_array().unwrap().iter();
            let source: String = lines.map(|line| line.as_str().unwrap()).collect();
            for scenario in source.split("'''").skip(1).step_by(2) {
                dir.write("cell.toml", scenario);
                let shown = dir.run(&["scenario", "check", "cell.toml"]).ok();
                assert!(shown.starts_with("cell.toml: ok"), "{}: {shown}", path.display());
                count += 1;
            }
        }
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn scenario_files() {
    check("docs/scenario.md");
}

#[test]
fn a_scenario_of_your_own() {
    check("docs/scenarios.md");
}

#[test]
fn diagnoses() {
    check("docs/diagnose.md");
}

#[test]
fn many_connections() {
    check("docs/many-connections.md");
}

#[test]
fn requests_and_failures() {
    check("docs/requests.md");
    check("docs/failures.md");
}

#[test]
fn while_it_happens() {
    check("docs/live.md");
}

#[test]
fn findings() {
    check("docs/findings.md");
}

#[test]
fn symptoms_and_gallery() {
    check("docs/symptoms.md");
    check("docs/gallery.md");
}

#[test]
fn other_tools() {
    check("docs/other-tools.md");
}

#[test]
fn logs_of_quic() {
    check("docs/quic-logs.md");
}

#[test]
fn published_cases() {
    check("docs/stories.md");
}

#[test]
fn ini_files() {
    check("docs/inet-ini.md");
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
fn suites() {
    check("docs/suites.md");
}

#[test]
fn hunts() {
    check("docs/hunt.md");
}

/// The result of the sweep that a page shows.
#[test]
fn the_table_of_a_sweep() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = TestDirectory::new("the_table_of_a_sweep");
    dir.write("loss-sweep.toml", std::fs::read(root.join("scenarios/loss-sweep.toml")).unwrap());
    let printed = dir.run(&["sweep", "loss-sweep.toml"]).ok();
    let page = std::fs::read_to_string(root.join("docs/sweeps.md")).unwrap();
    assert!(page.contains(&format!("```text\n{printed}```")), "docs/sweeps.md lacks\n{printed}");
}

/// Pages use `--png` without a word on features.
#[test]
fn png_is_in_the_default_build() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    let default = manifest.lines().find(|line| line.starts_with("default = ")).unwrap();
    assert!(default.contains("\"png\""), "{default}");
}

/// No block of commands with their output is left out.
#[test]
fn every_page_with_outputs_is_checked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = std::fs::read_to_string(root.join("crates/ackclock/tests/cli/documents.rs"));
    let source = source.unwrap();
    let docs = pages().into_iter().map(|page| format!("docs/{page}"));
    let others = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(str::to_owned);
    let mut count = 0;
    for page in docs.chain(others) {
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        if text.contains("```console\n") && !page.starts_with("docs/findings/") {
            assert!(source.contains(&format!("check(\"{page}\");")), "{page} is not checked");
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
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
    let document = std::fs::read_to_string(root.join("docs/scenarios.md")).unwrap();
    let sample = std::fs::read_to_string(root.join("scenarios/example.toml")).unwrap();
    assert!(document.contains(&format!("```toml\n{sample}```")));
}
