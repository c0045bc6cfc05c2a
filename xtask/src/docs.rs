//! Draws the pictures of README and docs anew, and sets the README's trace.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::cases;
use lab::pictures::PICTURES;

const BEGIN: &str = "<!-- trace -->\n";
const END: &str = "<!-- /trace -->\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every generated document: its path below the root and what it should hold.
fn documents() -> Result<Vec<(String, String)>, String> {
    let mut documents = Vec::new();
    for picture in PICTURES {
        let svg = picture.draw().map_err(|error| error.to_string())?;
        documents.push((format!("docs/pictures/{}", picture.file), svg));
    }
    documents.push(("README.md".to_owned(), readme()?));
    Ok(documents)
}

/// The README with the trace of the present program.
fn readme() -> Result<String, String> {
    let place = root().join("README.md");
    let text = std::fs::read_to_string(&place).map_err(|e| format!("README.md: {e}"))?;
    let split = text.split_once(BEGIN).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(END)?;
        Some((head, tail))
    });
    let (head, tail) = split.ok_or("README.md has lost the marks around its trace")?;
    let case = cases::find("slow-start-lro").ok_or("no case slow-start-lro")?;
    let exhibit = case.run().map_err(|error| error.to_string())?.exhibit;
    let lines = exhibit.lines().skip(1).take_while(|line| !line.is_empty());
    let trace: String = lines.map(|line| format!("{}\n", line.trim_start())).collect();
    Ok(format!("{head}{BEGIN}```text\n{trace}```\n{END}{tail}"))
}

pub(crate) fn run() -> ExitCode {
    let written = documents().and_then(|documents| {
        for (name, text) in documents {
            std::fs::write(root().join(&name), text).map_err(|e| format!("{name}: {e}"))?;
            println!("{name}");
        }
        Ok(())
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
    fn pictures_and_trace_are_those_of_the_present_program() {
        for (name, text) in documents().unwrap() {
            let stored = std::fs::read_to_string(root().join(&name)).unwrap_or_default();
            assert!(stored == text, "{name} is stale: run cargo xtask docs");
        }
    }
}
