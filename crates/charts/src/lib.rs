//! Charts: the same picture everywhere. Layer 2.
//!
//! - [`svg`]: a chart or a heat map as SVG.
//! - [`thin`]: series of any length in bounded room, without loss of a peak.
//!
//! It opens no file and knows nothing of packets: a series is a list of points.

pub mod svg;
pub mod thin;
