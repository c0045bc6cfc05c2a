//! `cargo xtask words`: refuses phrases of the former private dialect.
//!
//! `xtask/words.toml` lists what is refused, what is only counted, and which lines quote others.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;
use serde::Deserialize;

/// Files whose text is checked.
const EXTENSIONS: [&str; 7] = ["rs", "md", "toml", "py", "snap", "mjs", "pyi"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WordList {
    refused: Vec<RefusedPhrase>,
    /// Refused in the guide only.
    refused_in_docs: Vec<RefusedPhrase>,
    counted: Vec<String>,
    quoted: Vec<QuotedLine>,
    unread: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusedPhrase {
    phrase: String,
    write: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotedLine {
    file: String,
    text: String,
}

/// The result of a survey.
#[derive(Debug, Default)]
pub(crate) struct WordSurvey {
    /// Refused phrases: `FILE:LINE: …`.
    pub(crate) complaints: Vec<String>,
    /// For each counted word the files with most of it.
    pub(crate) counts: BTreeMap<String, Vec<(usize, PathBuf)>>,
}

/// Checks all text files under `root`.
///
/// # Errors
/// A word list that cannot be read, or a file that cannot.
pub(crate) fn survey(root: &Path) -> Result<WordSurvey, String> {
    let path = root.join("xtask/words.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let list: WordList =
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let (refused, in_docs) = (compiled(&list.refused)?, compiled(&list.refused_in_docs)?);
    let mut survey = WordSurvey::default();
    for file in text_files(root)? {
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        if list.unread.iter().any(|prefix| name.starts_with(prefix.as_str())) {
            continue;
        }
        let text = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        let is_guide = name == "README.md" || name.starts_with("docs/");
        let mut is_in_code = false;
        for (number, line) in text.lines().enumerate() {
            is_in_code ^= line.trim_start().starts_with("```");
            let is_quoted =
                |quoted: &QuotedLine| name.starts_with(&quoted.file) && line.contains(&quoted.text);
            if list.quoted.iter().any(is_quoted) {
                continue;
            }
            let mut complaints = refused_in(&refused, line);
            if is_guide && !is_in_code {
                complaints.extend(refused_in(&in_docs, line));
            }
            for (found, write) in complaints {
                let line = number + 1;
                survey.complaints.push(format!("{name}:{line}: `{found}`; write {write}"));
            }
        }
        count_words(&mut survey, &list.counted, Path::new(&name), &text);
    }
    for files in survey.counts.values_mut() {
        files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    }
    Ok(survey)
}

fn compiled(phrases: &[RefusedPhrase]) -> Result<Vec<(Regex, &RefusedPhrase)>, String> {
    phrases.iter().map(|refused| Ok((whole_words(&refused.phrase)?, refused))).collect()
}

fn whole_words(phrase: &str) -> Result<Regex, String> {
    Regex::new(&format!(r"\b(?:{phrase})\b")).map_err(|error| format!("`{phrase}`: {error}"))
}

/// The refused phrases of a line, each with what to write.
fn refused_in<'a>(refused: &[(Regex, &'a RefusedPhrase)], line: &str) -> Vec<(String, &'a str)> {
    let line = line.to_lowercase().replace('_', " ");
    refused
        .iter()
        .filter_map(|(regex, refused)| {
            Some((regex.find(&line)?.as_str().to_owned(), refused.write.as_str()))
        })
        .collect()
}

fn count_words(survey: &mut WordSurvey, words: &[String], name: &Path, text: &str) {
    let text = text.to_lowercase();
    for word in words {
        let of_word = |found: &&str| {
            found.strip_prefix(word.as_str()).is_some_and(|rest| rest.is_empty() || rest == "s")
        };
        let count = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(of_word).count();
        if count > 0 {
            survey.counts.entry(word.clone()).or_default().push((count, name.to_owned()));
        }
    }
}

fn text_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            if path.is_dir() {
                // Build output and hidden folders.
                if !name.starts_with('.') && name != "target" && name != "node_modules" {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| EXTENSIONS.iter().any(|known| e == *known)) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_project_uses_a_refused_phrase() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let complaints = survey(&root).unwrap().complaints;
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }

    #[test]
    fn a_phrase_is_found_in_prose_and_in_identifiers() {
        let refused =
            RefusedPhrase { phrase: "under way".to_owned(), write: "in flight".to_owned() };
        let refused = [(whole_words(&refused.phrase).unwrap(), &refused)];
        let found = |line| refused_in(&refused, line).len();
        assert_eq!(found("/// Bytes Under way."), 1);
        assert_eq!(found("let under_way = 3;"), 1);
        assert_eq!(found("the underway crew"), 0);
    }
    #[test]
    fn the_guide_has_no_dates_goals_or_histories() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let list = fs::read_to_string(root.join("xtask/words.toml")).unwrap();
        let list: WordList = toml::from_str(&list).unwrap();
        let refused = compiled(&list.refused_in_docs).unwrap();
        let found = |line| refused_in(&refused, line).len();
        for line in [
            "Measured on 27 November 2026",
            "Until November 2026 six paths were",
            "as of 2026-11-27",
            "these faults are mended",
            "The goal is 99.5 %",
            "1.4 times today, 1.7 is the aim",
            "files of an earlier version",
            "the TCP of this machine",
            "as said above",
            "our goal is speed",
            "it aims to be fast",
            "of former versions",
        ] {
            assert_ne!(found(line), 0, "{line}");
        }
        for line in ["`--goal loss`", "quic-inet-2025-02", "linux-6.18", "RFC 9438", "claims"] {
            assert_eq!(found(line), 0, "{line}");
        }
    }
}
