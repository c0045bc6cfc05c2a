//! Charts with reproducible output. Layer 2.
//!
//! - [`svg`]: a chart or a heat map as SVG.
//! - [`downsample`]: series of any length in bounded memory, without loss of a peak.
//!
//! It opens no files and is independent of packets: a series is a list of points.

pub mod downsample;
pub mod svg;
