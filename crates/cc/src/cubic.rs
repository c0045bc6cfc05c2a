//! CUBIC of each system.
//!
//! Reading order: [`rfc9438`] (the specification, the reference for the others), [`fixed`]
//! (FreeBSD's three functions in fixed point), [`freebsd`] (its controller, one for all versions),
//! [`params`] (the differences between versions), [`linux`] (Linux's, with its HyStart).
//!
//! The versions of FreeBSD differ most in the TCP-friendly window, the window of an equivalent Reno
//! sender: first modelled from time in whole ticks, then in microseconds that advance by ticks,
//! then (review D46546) not modelled but grown like NewReno's, by acknowledged bytes.

pub mod fixed;
pub mod freebsd;
pub mod linux;
pub mod params;
pub mod rfc9438;

pub use freebsd::FreeBsdCubic;
pub use linux::LinuxCubic;
pub use params::{ClockUnit, CubicGrowth, CubicParams, CubicTimeoutRule, FriendlyWindow};
pub use rfc9438::RfcCubic;

/// The implementation of CUBIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum CubicVariant {
    /// FreeBSD's, in one of its versions.
    FreeBsd(CubicParams),
    /// Linux's, of 6.18.
    Linux,
    /// RFC 9438 as written.
    Rfc,
}

/// Names of the variants, for selecting another than the system's own, in order of age.
pub const VARIANTS: [(&str, CubicVariant); 7] = [
    ("cubic-ticks", CubicVariant::FreeBsd(CubicParams::FREEBSD_13_0)),
    ("cubic-ticks-2022", CubicVariant::FreeBsd(CubicParams::FREEBSD_MAIN_2022_07)),
    ("cubic-usec", CubicVariant::FreeBsd(CubicParams::FREEBSD_BEFORE_D46546)),
    ("cubic-d46546", CubicVariant::FreeBsd(CubicParams::FREEBSD_D46546)),
    ("cubic-freebsd-rfc9438", CubicVariant::FreeBsd(CubicParams::FREEBSD_RFC9438)),
    ("cubic-linux", CubicVariant::Linux),
    ("cubic-rfc9438", CubicVariant::Rfc),
];
