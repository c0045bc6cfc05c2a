//! Regenerates the pictures of README and docs, the trace of docs/stories.md, the tables and command
//! outputs of docs/scenario.md, the pages of docs/ledger and the table of README.md.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reproduce::cases;
use reproduce::pictures::PICTURES;

use crate::{ledger, readme};

const BEGIN: &str = "<!-- trace -->\n";
const END: &str = "<!-- /trace -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns every generated document: its path below the root and its content.
fn documents() -> Result<Vec<(String, String)>, String> {
    let mut documents = Vec::new();
    for picture in PICTURES {
        let svg = picture.draw().map_err(|error| error.to_string())?;
        documents.push((format!("docs/pictures/{}", picture.file), svg));
    }
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
    let exhibit = case.run().map_err(|error| error.to_string())?.exhibit;
    let lines = exhibit.lines().skip(1).take_while(|line| !line.is_empty());
    let trace: String = lines.map(|line| format!("{}\n", line.trim_start())).collect();
    Ok(format!("{head}{BEGIN}```text\n{trace}```\n{END}{tail}"))
}

const LEDGER: &str = "\
# Fidelity ledger

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
    for case in cases::CASES {
        let result = case.run().map_err(|error| error.to_string())?;
        page.push_str(&cases::ledger::section(&result));
    }
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
