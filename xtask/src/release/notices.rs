//! The licences of what is in the binary.

use std::collections::BTreeMap;

use super::sbom::LinkedPackage;

/// Data of others in the binary that is no crate of its own.
const DATA: &str = "\
## Fonts

The build with the feature `png` embeds the fonts of the crate epaint_default_fonts: Hack (MIT; parts Bitstream
Vera), Ubuntu Light (Ubuntu Font Licence 1.0), Noto Emoji (SIL Open Font License 1.1) emoji-icon-font (MIT) and egui-icons.
Their licence texts are in that crate.

## Published texts

`reproduce` quotes figures and twenty lines of a trace from the sources that it names.
";

/// The page, by licence.
pub(super) fn of(packages: &[LinkedPackage]) -> String {
    let mut by_license: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for package in packages.iter().filter(|package| !package.is_own) {
        let name = format!("{} {}", package.name, package.version);
        by_license.entry(&package.license).or_default().push(name);
    }
    let mut page =
        "# Third-party notices\n\nThe binary contains these crates; each is on crates.io \
                    with the text of its licence.\n\n"
            .to_owned();
    for (license, names) in by_license {
        page += &format!("## {license}\n\n{}.\n\n", names.join(", "));
    }
    page + DATA
}
