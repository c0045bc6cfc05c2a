//! `ackclock scenario profiles`: the systems that a host can have, and what each was measured against.
//!
//! The results of these measurements are in docs/ledger/fidelity.md.

use core::fmt::Write as _;
use std::process::ExitCode;

use reproduce::references::{Reference, references, unmeasured};
use serde_json::json;
use tcp::profile::{NAMES, TcpProfile};

use crate::cli::ProfilesArgs;
use crate::failure::Failure;
use crate::output::print;

pub(super) fn run(args: &ProfilesArgs) -> Result<ExitCode, Failure> {
    print(&if args.json { as_json() } else { as_text() })?;
    Ok(ExitCode::SUCCESS)
}

fn default_cc(name: &str) -> &'static str {
    TcpProfile::named(name).map_or("", |profile| profile.default_cc)
}

fn as_json() -> String {
    let profiles = NAMES.map(|name| {
        let mut profile = json!({
            "name": name,
            "default_cc": default_cc(name),
            "measured_against": references(name),
        });
        if references(name).is_empty() {
            profile["unmeasured"] = unmeasured(name).into();
        }
        profile
    });
    format!("{:#}\n", json!({ "profiles": profiles }))
}

fn as_text() -> String {
    let mut text = format!("{:<19}{:<12}measured against\n", "profile", "default cc");
    for name in NAMES {
        let mut begin = format!("{name:<19}{:<12}", default_cc(name));
        for Reference { what, place } in references(name) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{begin}{what}\n{:33}{place}", "");
            begin = format!("{:31}", "");
        }
        if references(name).is_empty() {
            let _ = writeln!(text, "{begin}nothing of its own: {}", unmeasured(name));
        }
    }
    text + "\nThe results are in docs/ledger/fidelity.md.\n"
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_profile_is_measured_or_says_why_not() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for name in NAMES {
            assert_eq!(references(name).is_empty(), !unmeasured(name).is_empty(), "{name}");
            for Reference { place, .. } in references(name) {
                let path = place.split(',').next().unwrap_or_default();
                assert!(root.join(path).exists(), "{name}: {path}");
            }
        }
    }

    #[test]
    fn the_table_fits_100_columns() {
        let wide: Vec<_> = as_text().lines().map(str::to_owned).filter(|l| l.len() > 100).collect();
        assert!(wide.is_empty(), "{wide:?}");
    }
}
