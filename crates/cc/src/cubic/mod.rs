//! CUBIC, as the systems have it.
//!
//! Reading order: [`rfc9438`] (the specification as written, the measure of the others),
//! [`fixed`] (FreeBSD's three functions in fixed point), [`freebsd`] (its controller, one for all
//! versions), [`params`] (what tells a version from another), [`linux`] (Linux's, with its HyStart).
//!
//! The versions of FreeBSD differ most in the TCP-friendly window, the one a Reno sender would
//! have: first modelled from time in whole ticks, then in microseconds that advance by ticks,
//! then (review D46546) not modelled at all but grown as NewReno grows, by acknowledged bytes.

pub mod fixed;
pub mod freebsd;
pub mod linux;
pub mod params;
pub mod rfc9438;

pub use freebsd::FreeBsdCubic;
pub use linux::LinuxCubic;
pub use params::{Avoidance, ClockUnit, Friendly, Params, TimeoutRule};
pub use rfc9438::RfcCubic;

/// Whose CUBIC it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Variant {
    /// FreeBSD's, in one of its versions.
    FreeBsd(Params),
    /// Linux's, of 6.18.
    Linux,
    /// RFC 9438 as written.
    Rfc,
}

/// Names of the variants, for those who want another than their system's, in order of age.
pub const VARIANTS: [(&str, Variant); 7] = [
    ("cubic-ticks", Variant::FreeBsd(Params::FREEBSD_13_0)),
    ("cubic-ticks-2022", Variant::FreeBsd(Params::FREEBSD_MAIN_2022_07)),
    ("cubic-usec", Variant::FreeBsd(Params::FREEBSD_BEFORE_D46546)),
    ("cubic-d46546", Variant::FreeBsd(Params::FREEBSD_D46546)),
    ("cubic-freebsd-rfc9438", Variant::FreeBsd(Params::FREEBSD_RFC9438)),
    ("cubic-linux", Variant::Linux),
    ("cubic-rfc9438", Variant::Rfc),
];
