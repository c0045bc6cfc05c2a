//! What the stacks behind a figure were measured against.

use serde::Serialize;

/// What a profile was measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reference {
    /// A kernel with its version, and what of it.
    pub what: &'static str,
    /// Where the recordings or the results are in the repository.
    pub place: &'static str,
}

/// Recordings and kernels that the profile's own behaviour was compared with; empty if there are none.
pub fn references(profile: &str) -> &'static [Reference] {
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
        "linux-6.1" => &[Reference {
            what: "Linux 6.1.192: 79 random transfers",
            place: "golden/linux-closed",
        }],
        "linux-6.12" => &[
            Reference {
                what: "Linux 6.12.117: 149 random transfers, and 80 with ECN",
                place: "golden/linux-closed",
            },
            Reference {
                what: "Linux 6.12.117: 2,000 random worlds",
                place: "docs/ledger/fidelity.md, random worlds against a kernel",
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
            Reference { what: "Linux 6.18 on the wire", place: "docs/ledger/wire.md" },
        ],
        _ => &[],
    }
}

/// Whole transfers of FreeBSD's complete TCP.
const fn whole(what: &'static str) -> Reference {
    Reference { what, place: "golden/freebsd-closed" }
}

/// Why a profile was not measured.
pub fn unmeasured(profile: &str) -> &'static str {
    match profile {
        "freebsd-13.2" => "values that 13.0 and main of July 2022 share",
        "freebsd-rack-main" => "freebsd-rack-14.3 with D53832",
        "rfc" => "the text of the RFCs",
        "quic-inet-2025-02" | "quic-inet-2025-03" => "the published model of INET",
        _ => "",
    }
}
