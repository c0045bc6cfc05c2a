//! Pages of docs/ledger that are written from recorded measurements.
//!
//! A file of xtask/measured is a page: its title, the class of machine, and for each part the command that
//! measures it, with a table, a text, or the file of the repository that has the output.

use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerPage {
    title: String,
    machine: String,
    part: Vec<LedgerPart>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerPart {
    title: String,
    command: String,
    /// Units and conditions.
    figure: Option<String>,
    table: Option<String>,
    text: Option<String>,
    /// File of the repository with the output.
    source: Option<String>,
}

/// Returns each page of recorded measurements: its path below the root and its content.
///
/// # Errors
/// A file that cannot be read, or is not such a page.
pub(crate) fn pages(root: &Path) -> Result<Vec<(String, String)>, String> {
    let folder = root.join("xtask/measured");
    let entries = fs::read_dir(&folder).map_err(|error| format!("xtask/measured: {error}"))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let mut pages = Vec::new();
    for name in names {
        let name = name.to_string_lossy().into_owned();
        let Some(subject) = name.strip_suffix(".toml") else { continue };
        let text = fs::read_to_string(folder.join(&name)).map_err(|e| format!("{name}: {e}"))?;
        let page: LedgerPage = toml::from_str(&text).map_err(|e| format!("{name}: {e}"))?;
        pages.push((format!("docs/ledger/{subject}.md"), rendered(root, subject, &page)?));
    }
    Ok(pages)
}

fn rendered(root: &Path, subject: &str, page: &LedgerPage) -> Result<String, String> {
    let mut out = format!(
        "<!-- cargo xtask docs writes this page from xtask/measured/{subject}.toml -->\n\n# {}\n\nMachine: {}.\n",
        page.title, page.machine
    );
    for part in &page.part {
        out.push_str(&format!("\n## {}\n\n`{}`\n", part.title, part.command));
        if let Some(figure) = &part.figure {
            out.push_str(&format!("\n{figure}:\n"));
        }
        if let Some(table) = &part.table {
            out.push_str(&format!("\n{table}"));
        }
        let output = part.source.as_deref().map(|path| recorded(root, path)).transpose()?;
        for text in part.text.iter().chain(&output) {
            out.push_str(&format!("\n```text\n{text}```\n"));
        }
    }
    Ok(out)
}

/// The content of a file, of a snapshot without its head.
fn recorded(root: &Path, path: &str) -> Result<String, String> {
    let text = fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
    let body = match path.ends_with(".snap") {
        true => text.split_once("\n---\n").map(|(_, body)| body).ok_or(path)?,
        false => &text,
    };
    Ok(format!("{}\n", body.trim_end_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_is_that_of_the_recorded_measurements() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let pages = pages(&root).unwrap();
        assert!(pages.len() > 5, "{}", pages.len());
        for (name, text) in pages {
            let stored = fs::read_to_string(root.join(&name)).unwrap_or_default();
            assert!(stored == text, "{name} is stale: run cargo xtask docs --pictures");
        }
    }

    /// Every page of the ledger names the class of machine and a command.
    #[test]
    fn pages_of_the_ledger_name_machine_and_command() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ledger");
        let commands = ["`cargo ", "`ackclock ", "`make ", "\n$ cargo ", "`bench/", "`packaging/"];
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let name = path.display();
            assert!(text.contains("\nMachine: "), "{name} names no machine");
            assert!(commands.iter().any(|command| text.contains(command)), "{name} has no command");
            count += 1;
        }
        assert!(count > 10, "{count}");
    }
}
