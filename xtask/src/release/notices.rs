//! The licences of what is in the binary, with their texts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::sbom::LinkedPackage;

/// The crate whose fonts a binary may embed.
const FONTS: &str = "epaint_default_fonts";

/// Fonts in the binary.
const OF_FONTS: &str = "\
## Fonts

The build with the feature `png` embeds the fonts of the crate epaint_default_fonts: Hack (MIT; parts Bitstream
Vera), Ubuntu Light (Ubuntu Font Licence 1.0), Noto Emoji (SIL Open Font License 1.1), emoji-icon-font (MIT) and
egui-icons. Their licences are among the texts below.

";

/// Data of others in the binary that is no crate of its own.
const DATA: &str = "\
## Published texts

`reproduce` quotes figures and twenty lines of a trace from the sources that it names.

";

/// Beginnings of the names of files with licences.
const NAMES: [&str; 6] = ["license", "licence", "copying", "notice", "unlicense", "copyright"];

/// The page: crates by licence, and every text once, after the names of the crates that have it.
/// `what` contains the crates, as in "The binary".
///
/// # Errors
/// A source that cannot be read.
pub(super) fn of(what: &str, packages: &[LinkedPackage]) -> Result<String, String> {
    let others = || packages.iter().filter(|package| !package.is_own);
    let mut by_license: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in others() {
        let name = format!("{} {}", package.name, package.version);
        by_license.entry(&package.license).or_default().push(name.clone());
        let files = files(&package.folder)?;
        if files.is_empty() {
            without.push(name.clone());
        }
        for file in files {
            let bytes = fs::read(&file).map_err(super::text(&file))?;
            let text = String::from_utf8_lossy(&bytes).replace('\r', "");
            let of = by_text.entry(text.trim_end().to_owned()).or_default();
            if of.last() != Some(&name) {
                of.push(name.clone());
            }
        }
    }
    let mut page =
        format!("# Third-party notices\n\n{what} contains these crates of crates.io.\n\n");
    for (license, names) in by_license {
        page += &format!("## {license}\n\n{}.\n\n", names.join(", "));
    }
    if others().any(|package| package.name == FONTS) {
        page += OF_FONTS;
    }
    page += DATA;
    page += "## Texts\n\n";
    if !without.is_empty() {
        page += &format!(
            "Published without a text, so under the common one of the licence that is named above: {}.\n\n",
            without.join(", ")
        );
    }
    for (text, names) in by_text {
        // No text contains a longer fence.
        page += &format!("{}:\n\n`````text\n{text}\n`````\n\n", names.join(", "));
    }
    Ok(page)
}

/// Files with licences in the folder of a crate, and those next to fonts.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for (place, is_fonts) in [(folder.to_owned(), false), (folder.join("fonts"), true)] {
        let Ok(entries) = fs::read_dir(&place) else { continue };
        for entry in entries {
            let path = entry.map_err(super::text(&place))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            let is_license = NAMES.iter().any(|begin| name.starts_with(begin));
            if path.is_file() && (is_license || is_fonts && name.ends_with(".txt")) {
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
    fn texts_of_crates_and_fonts_are_in_the_page() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let materials =
            super::super::sbom::of(&root, "ackclock", "x86_64-unknown-linux-gnu").unwrap();
        let page = of("The binary", &materials.packages).unwrap();
        for text in [
            "Permission is hereby granted, free of charge",
            "UBUNTU FONT LICENCE",
            "SIL OPEN FONT LICENSE",
            "Bitstream Vera",
            "## Fonts",
        ] {
            assert!(page.contains(text), "{text}");
        }
        let fences = page.lines().filter(|line| line.starts_with("`````")).count();
        assert_eq!(fences % 2, 0);
    }
}
