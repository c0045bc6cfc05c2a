//! `ackclock scenario profiles`: the systems that a host can have, and what each was measured against.
//!
//! The results of these measurements are in docs/fidelity.md.

use core::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;
use tcp::profile::{NAMES, TcpProfile};

use crate::cli::ProfilesArgs;
use crate::failure::Failure;
use crate::output::print;

/// What a profile was measured against.
#[derive(Debug, Serialize)]
struct Reference {
    /// A kernel with its version, and what of it.
    what: &'static str,
    /// Where the recordings or the results are in the repository.
    place: &'static str,
}

/// Recordings and kernels that the profile's own behaviour was compared with; empty if there are none.
fn references(profile: &str) -> &'static [Reference] {
    const ROWS: Reference =
        Reference { what: "rows of functions of FreeBSD's kernel", place: "golden/freebsd" };
    match profile {
        "freebsd-13.0" => const { &[whole("FreeBSD 13.0 (1300139): 163 whole transfers"), ROWS] },
        "freebsd-14.3" => {
            const { &[whole("FreeBSD 14.3 (5982521fe3dd): 163 whole transfers"), ROWS] }
        }
        "freebsd-main" => {
            const { &[whole("FreeBSD main (f377a0c7dfa9): 165 whole transfers"), ROWS] }
        }
        "freebsd-rack-14.3" => &[Reference {
            what: "tcp_stacks/rack.c of FreeBSD main (1400063): 51 whole transfers",
            place: "golden/freebsd-rack-closed",
        }],
        "linux-6.12" => &[
            Reference {
                what: "Linux 6.12.117: 149 random transfers",
                place: "golden/linux-closed",
            },
            Reference {
                what: "Linux 6.12.117: 1,100 random worlds",
                place: "docs/fidelity.md, random worlds against a kernel",
            },
            Reference {
                what: "the packet scripts of its selftests",
                place: "golden/selftests-6.12.txt",
            },
        ],
        "linux-6.18" => &[
            Reference { what: "Linux 6.18: 28 recorded transfers", place: "golden/linux" },
            Reference {
                what: "Linux 6.18 and 7.1: 35 packet scripts",
                place: "golden/packetdrill",
            },
            Reference { what: "Linux 6.18 on the wire", place: "docs/wire.md" },
        ],
        _ => &[],
    }
}

/// Whole transfers of FreeBSD's complete TCP.
const fn whole(what: &'static str) -> Reference {
    Reference { what, place: "golden/freebsd-closed" }
}

/// Why a profile was not measured.
fn unmeasured(profile: &str) -> &'static str {
    match profile {
        "freebsd-13.2" => "values that 13.0 and main of July 2022 share",
        "freebsd-rack-main" => "freebsd-rack-14.3 with D53832",
        "rfc" => "the text of the RFCs",
        _ => "",
    }
}

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
    text + "\nToday's results are in docs/fidelity.md.\n"
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
