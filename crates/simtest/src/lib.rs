//! Development support: random worlds that must pass the verifier ([`worlds`]), the fixed transfers
//! of the benchmarks ([`workloads`]), fingerprints of fixed runs ([`digests`]), and the properties
//! of all parsers of foreign input ([`properties`], which the fuzz targets use).

pub mod digests;
pub mod properties;
pub mod workloads;
pub mod worlds;
