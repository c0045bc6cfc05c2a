//! The guide and README as a whole: lengths, the gallery, figures, and what leads where.

use std::path::Path;

use super::documents::links;

/// Pages of the guide can be read: they are those of the table of contents before its reference.
/// Guide and reference are counted whole, with their generated tables and without the pages of findings.
#[test]
fn the_guide_is_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = |page: &str| std::fs::read_to_string(root.join(page)).unwrap();
    let summary = text("docs/SUMMARY.md");
    let (guide, rest) = summary.split_once("\n# Reference\n").unwrap();
    let (reference, _) = rest.split_once("\n# Findings\n").unwrap();
    for (_, page) in links(guide) {
        let words = text(&format!("docs/{page}")).split_whitespace().count();
        assert!(words <= 1_500, "docs/{page} has {words} words: move a part to the reference");
    }
    let pages = links(guide).chain(links(reference));
    let bytes: usize = pages.map(|(_, page)| text(&format!("docs/{page}")).len()).sum();
    assert!(bytes < 300_000, "guide and reference have {bytes} bytes");
    let lines = text("README.md").lines().count();
    assert!(lines <= 90, "README.md has {lines} lines");
}

/// The gallery has twelve entries: a transfer, a sentence about it, a picture.
#[test]
fn the_gallery_has_twelve_entries_with_a_picture_each() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let gallery = std::fs::read_to_string(docs.join("gallery.md")).unwrap();
    let mut pictures = Vec::new();
    for entry in gallery.lines().filter(|line| line.starts_with("| `")) {
        let (name, sentence) = entry[3..].split_once("`: ").unwrap();
        let file = match name.ends_with(".toml") {
            true => format!("../scenarios/{name}"),
            false => format!("../golden/linux/{name}/sender.pcap.xz"),
        };
        assert!(docs.join(&file).exists(), "docs/gallery.md: {file}");
        let (sentence, picture) = sentence.split_once(" | ![").unwrap();
        assert!(!sentence.is_empty() && !sentence.contains(". "), "docs/gallery.md: {entry}");
        pictures.push(picture.rsplit_once('(').unwrap().1);
    }
    assert_eq!(pictures.len(), 12, "{pictures:?}");
    pictures.sort_unstable();
    pictures.dedup();
    assert_eq!(pictures.len(), 12, "{pictures:?}");
}

/// README has figures only in blocks of code, in its picture and its captions, which the program makes, and between
/// the marks of the ledger. Versions and names of documents are no figures.
#[test]
fn figures_of_the_readme_are_those_of_the_ledger() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (head, rest) = text.split_once("<!-- ledger: fidelity -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end of ledger -->\n").unwrap();
    for part in [head, tail] {
        for line in part.split("```").step_by(2).flat_map(str::lines) {
            let quoted = line.split('`').step_by(2).collect::<String>();
            let words = ["CC205", "Apache-2.0", "RFC 9743"]
                .iter()
                .fold(quoted, |line, name| line.replace(name, ""));
            let figures = words.contains(|c: char| c.is_ascii_digit());
            assert!(!figures || line.starts_with("!["), "README.md: {line}");
        }
    }
    // The caption of the picture has the times of the cure, which a block of README shows.
    let caption = head.lines().find(|line| line.starts_with("![")).unwrap();
    let times = caption.split_once("cure: ").unwrap().1.split_once(']').unwrap().0;
    let (before, after) = times.split_once(" become ").unwrap();
    assert!(text.contains(&format!("{before} -> {after}\n")), "README.md: {caption}");
}

/// What a stranger asks first is one link away from README.
#[test]
fn the_readme_leads_to_first_questions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("README.md")).unwrap();
    let targets: Vec<&str> = links(&text).map(|(_, target)| target).collect();
    for page in [
        "many-connections.md",
        "adding-a-controller.md",
        "findings/CC205.md",
        "kernels.md",
        "json.md",
        "limits.md#what-is-not-modelled",
    ] {
        assert!(targets.contains(&format!("docs/{page}").as_str()), "README.md lacks {page}");
    }
}
