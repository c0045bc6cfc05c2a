//! Regenerates the pictures of README and docs, the trace of docs/stories.md, the tables and command
//! outputs of docs/scenario.md, the pages of docs/ledger and the table of README.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reproduce::cases;
use reproduce::pictures::PICTURES;

use crate::{gallery, ledger, loop_picture, processors, readme};

const BEGIN: &str = "<!-- trace -->\n";
const END: &str = "<!-- /trace -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns every generated document: its path below the root and its content.
fn documents() -> Result<Vec<(String, String)>, String> {
    let mut documents = Vec::new();
    let drawn = processors::workers().map(PICTURES, |picture| {
        let svg = picture.draw().map_err(|error| error.to_string())?;
        Ok::<_, String>((format!("docs/pictures/{}", picture.file), svg))
    })?;
    documents.extend(drawn);
    documents.push((loop_picture::FILE.to_owned(), loop_picture::draw(&root())?));
    documents.extend(gallery::pictures(&root())?);
    documents.push(("docs/stories.md".to_owned(), stories()?));
    Ok(documents)
}

/// Returns docs/scenario.md with the tables and command outputs of the current program. It is
/// tested in crates/scenario and crates/ackclock.
fn scenario_document() -> Result<String, String> {
    let text = std::fs::read_to_string(root().join("docs/scenario.md"))
        .map_err(|e| format!("docs/scenario.md: {e}"))?;
    let (begin, end) = ("<!-- ackclock scenario keys -->\n\n", "<!-- end of keys -->");
    let (head, rest) = text.split_once(begin).ok_or("docs/scenario.md has lost its tables")?;
    let (_, tail) = rest.split_once(end).ok_or("docs/scenario.md has lost its tables")?;
    let text = format!("{head}{begin}{}{end}{tail}", scenario::reference());
    let mut blocks = text.split("```console\n");
    let mut out = blocks.next().unwrap_or_default().to_owned();
    for block in blocks {
        let (calls, after) = block.split_once("```").ok_or("a console block has no end")?;
        out.push_str("```console\n");
        for call in calls.split("$ ").skip(1) {
            let command = call.split('\n').next().unwrap_or_default();
            out.push_str(&format!("$ {command}\n{}", answer(command)?));
        }
        out.push_str(&format!("```{after}"));
    }
    Ok(out)
}

/// Returns the output of a command of the documentation.
fn answer(command: &str) -> Result<String, String> {
    let program = "cargo run --quiet --release --package ackclock --all-features --";
    let script = command.replacen("ackclock", program, 1);
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(root())
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8(printed).map_err(|error| format!("{command}: {error}"))
}

/// Marks around the list of findings in docs/findings.md.
const FINDINGS: [&str; 2] =
    ["<!-- findings: written by cargo xtask docs --findings -->\n", "<!-- end of findings -->\n"];

/// Findings of which `ackclock demo` has no example, with a command that prints a report with them: of a recording of
/// the repository, or of a capture that lacks something.
const RECORDED: [(&str, &str); 22] = [
    ("CC001", "ackclock diagnose golden/captures/recorded/failures/refused.client.pcap.gz"),
    ("CC004", "ackclock diagnose golden/captures/recorded/failures/time-wait.client.pcap.gz"),
    ("CC005", "ackclock diagnose golden/captures/recorded/failures/ttl.client.pcap.gz"),
    ("CC301", "ackclock diagnose golden/linux/d3_delayed_rtt45_cubic/sender.pcap.xz"),
    ("CC402", "ackclock diagnose golden/linux/b1_lro45_cubic/sender.pcap.xz"),
    ("CC802", "ackclock diagnose docs/samples/both-ends.client.pcap"),
    ("CC804", "ackclock diagnose golden/quic/quic-go-mtu.server.sqlog.xz"),
    ("CC815", "ackclock diagnose golden/quic/quic-go-marks.server.sqlog.xz"),
    ("CC823", "ackclock diagnose golden/quic/quic-go-stream-limit.client.sqlog.xz"),
    (
        "CC833",
        "ackclock run scenarios/c4/low-and-up.toml --set client.profile=quinn-0.11 --set server.profile=quinn-0.11 \
         --qlog target/CC833.sqlog > target/CC833.txt; ackclock diagnose target/CC833.sqlog",
    ),
    (
        "CC836",
        "ackclock run scenarios/c4/bad-wifi.toml --set client.profile=quic-inet-2025-03 \
         --set server.profile=quic-inet-2025-03 --qlog target/CC836.sqlog > target/CC836.txt; \
         ackclock diagnose target/CC836.sqlog",
    ),
    ("CC837", "ackclock diagnose golden/quic/quic-go-rate-drop.server.sqlog.xz"),
    ("CC838", "ackclock diagnose golden/quic/quiche-application.server.sqlog.xz"),
    ("CC851", "ackclock diagnose golden/quic/quic-go-rebinding.server.sqlog.xz"),
    ("CC852", "ackclock diagnose golden/quic/quic-go-mtu.server.sqlog.xz"),
    ("CC853", "ackclock diagnose golden/quic/quic-go-rebinding.server.sqlog.xz"),
    (
        "CC901",
        "ackclock run scenarios/slow-start-lro.toml --tcpdump | sed 1,3d | ackclock diagnose -",
    ),
    (
        "CC902",
        "ackclock run scenarios/slow-start-lro.toml --tcpdump | grep 'sender > sink' | ackclock diagnose -",
    ),
    (
        "CC903",
        "ackclock run scenarios/slow-start-lro.toml --tcpdump | sed 60,64d | ackclock diagnose -",
    ),
    ("CC904", "ackclock diagnose golden/linux/b1_lro45_cubic/sender.pcap.xz"),
    ("CC905", "ackclock diagnose golden/linux/f2_few_losses_cubic/receiver.pcap.xz"),
    (
        "CC906",
        "ackclock run scenarios/slow-start-lro.toml --tcpdump | grep -v '], ack .* length 0' | ackclock diagnose -",
    ),
];

/// Returns the page of each finding, docs/findings.md with the list of them, and docs/SUMMARY.md.
fn findings() -> Result<Vec<(String, String)>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = program.with_file_name("ackclock");
    let printed = |command: &str| -> Result<String, String> {
        let line = format!("PATH='{}':$PATH; {command}", program.with_file_name("").display());
        let output =
            std::process::Command::new("sh").args(["-c", &line]).current_dir(root()).output();
        let output = output.map_err(|error| format!("{command}: {error}"))?;
        String::from_utf8([output.stdout, output.stderr].concat())
            .map_err(|error| format!("{command}: {error}"))
    };
    if !program.is_file() {
        return Err(format!("{} is missing: build ackclock first", program.display()));
    }
    let list = printed("ackclock explain")?;
    let (mut pages, mut rows, mut entries) = (Vec::new(), String::new(), String::new());
    for line in list.lines().take_while(|line| !line.is_empty()) {
        let (code, name) = line.split_once("  ").ok_or("ackclock explain has another form")?;
        let demo = format!("ackclock demo {code}");
        let recorded = RECORDED.iter().find(|(known, _)| *known == code);
        let (report, has_example) = match recorded {
            Some((_, command)) => ((*command).to_owned(), true),
            None => (demo.clone(), !printed(&demo)?.starts_with("error")),
        };
        let example = match has_example {
            true => format!("{report} | sed -n '/\\[{code}\\]/,/^$/p'"),
            false => demo,
        };
        if has_example && printed(&example)?.is_empty() {
            return Err(format!("{report} has no {code}"));
        }
        let explain = format!("ackclock explain {code}");
        let has_example = if has_example { "yes" } else { "" };
        rows += &format!("| [{code}](findings/{code}.md) | {name} | {has_example} |\n");
        entries += &format!("- [{code}: {name}](findings/{code}.md)\n");
        let page = format!(
            "# {code}: {name}\n\n```console\n$ {example}\n{}$ {explain}\n{}```\n",
            printed(&example)?,
            printed(&explain)?
        );
        pages.push((format!("docs/findings/{code}.md"), page));
    }
    let read = |name: &str| {
        std::fs::read_to_string(root().join(name)).map_err(|error| format!("{name}: {error}"))
    };
    let page = read("docs/findings.md")?;
    let [begin, end] = FINDINGS;
    let (head, rest) = page.split_once(begin).ok_or("docs/findings.md has lost its list")?;
    let (_, tail) = rest.split_once(end).ok_or("docs/findings.md has lost its list")?;
    let table = format!("| code | finding | example |\n|---|---|---|\n{rows}");
    pages.push(("docs/findings.md".to_owned(), format!("{head}{begin}{table}{end}{tail}")));
    let summary = read("docs/SUMMARY.md")?;
    let (begin, end) = ("\n# Findings\n\n", "\n# Reports about stacks\n");
    let (head, rest) = summary.split_once(begin).ok_or("docs/SUMMARY.md has no findings")?;
    let (_, tail) = rest.split_once(end).ok_or("docs/SUMMARY.md has no reports")?;
    pages.push(("docs/SUMMARY.md".to_owned(), format!("{head}{begin}{entries}{end}{tail}")));
    Ok(pages)
}

/// Writes the pages of findings by the program `ackclock` beside this one.
pub(crate) fn run_findings() -> ExitCode {
    let written = findings().and_then(|documents| {
        std::fs::create_dir_all(root().join("docs/findings")).map_err(|error| error.to_string())?;
        documents.into_iter().try_for_each(|(name, text)| {
            std::fs::write(root().join(&name), text).map_err(|error| format!("{name}: {error}"))
        })
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Returns docs/stories.md with the trace of the current program.
fn stories() -> Result<String, String> {
    let path = root().join("docs/stories.md");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("docs/stories.md: {e}"))?;
    let split = text.split_once(BEGIN).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(END)?;
        Some((head, tail))
    });
    let (head, tail) = split.ok_or("docs/stories.md has lost the marks around its trace")?;
    let case = cases::find("slow-start-lro").ok_or("no case slow-start-lro")?;
    let exhibit = case.on(&processors::workers()).map_err(|error| error.to_string())?.exhibit;
    let lines = exhibit.lines().skip(1).take_while(|line| !line.is_empty());
    let trace: String = lines.map(|line| format!("{}\n", line.trim_start())).collect();
    Ok(format!("{head}{BEGIN}```text\n{trace}```\n{END}{tail}"))
}

const LEDGER: &str = "\
# Fidelity ledger

Machine: any: virtual time.

What Ackclock is compared with, and the result. `cargo xtask docs` writes this page; nothing in it is
typed. `make test` fails when a figure that held no longer does, and when this page is stale.

A row of kind *assert* must lie in its band. *Predicted* follows from inputs that were fitted to other
figures, *calibrated* is what an input was fitted to, *info* cannot be derived from what was published.

";

/// What `cargo xtask worlds --against kernel` printed last: it needs a kernel, and minutes.
const KERNEL_WORLDS: &str = include_str!("../kernel-worlds.md");

/// Returns docs/ledger/fidelity.md: every published figure and golden file, with the current result.
fn fidelity() -> Result<String, String> {
    let mut page = LEDGER.to_owned();
    let workers = processors::workers();
    let sections = workers.map(cases::CASES, |case| {
        let result = case.on(&workers).map_err(|error| error.to_string())?;
        Ok::<_, String>(cases::ledger::section(&result))
    })?;
    page.push_str(&sections.concat());
    page.push_str(
        "## Golden rows\n\nRows taken from FreeBSD's own functions, and recorded Linux transfers, ",
    );
    page.push_str(
        "replayed through our crates\n(`cargo xtask golden`; origins in `golden/*/README.md`).\n\n",
    );
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = std::process::Command::new(program)
        .arg("golden")
        .output()
        .map_err(|error| format!("golden: {error}"))?;
    let printed = String::from_utf8(output.stdout).map_err(|error| format!("golden: {error}"))?;
    Ok(format!(
        "{page}<!-- golden -->\n```text\n{printed}```\n<!-- end of golden -->\n{KERNEL_WORLDS}"
    ))
}

/// Takes a screenshot of the page of `ackclock reproduce --report`. Pixels depend on the browser
/// and its fonts, so no test compares them.
fn photograph(name: &str) -> Result<(), String> {
    let scratch = root().join("target/photograph");
    std::fs::create_dir_all(&scratch).map_err(|error| format!("{name}: {error}"))?;
    let scratch = scratch.canonicalize().map_err(|error| format!("{name}: {error}"))?;
    let page = scratch.join("published.html");
    answer(&format!("ackclock reproduce --report {} > {0}.txt", page.display()))?;
    let picture = scratch.join("picture.png");
    let status = std::process::Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--window-size=1280,1345", "--virtual-time-budget=20000"])
        .arg(format!("--user-data-dir={}", scratch.join("browser").display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()))
        .stderr(std::process::Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("{name}: chromium: {status}")),
        Err(error) => {
            eprintln!("{name} stays as it is: chromium: {error}");
            return Ok(());
        }
    }
    std::fs::copy(&picture, root().join(name)).map_err(|error| format!("{name}: {error}"))?;
    println!("{name}");
    Ok(())
}

/// Writes all documents, or without `all` only those that need no build of the command line
/// program.
pub(crate) fn run(all: bool) -> ExitCode {
    let written = documents().and_then(|mut documents| {
        documents.extend(ledger::pages(&root())?);
        if all {
            documents.push(("docs/scenario.md".to_owned(), scenario_document()?));
            let fidelity = fidelity()?;
            let readme = std::fs::read_to_string(root().join("README.md"))
                .map_err(|error| format!("README.md: {error}"))?;
            documents.push(("README.md".to_owned(), readme::filled(&readme, &fidelity)?));
            documents.push(("docs/ledger/fidelity.md".to_owned(), fidelity));
        }
        for (name, text) in documents {
            std::fs::write(root().join(&name), text).map_err(|e| format!("{name}: {e}"))?;
            println!("{name}");
        }
        if all { photograph("docs/pictures/reproduce-report.png") } else { Ok(()) }
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_and_trace_are_current() {
        for (name, text) in documents().unwrap() {
            let stored = std::fs::read_to_string(root().join(&name)).unwrap_or_default();
            assert!(stored == text, "{name} is stale: run cargo xtask docs");
        }
    }
}
