//! `--svg` and `--png`: congestion window and bytes in flight of every flow over time as a chart.

use std::io::Write as _;
use std::path::Path;

use super::{Output, OutputSource, Results, WriteError};
use crate::cli::RunArgs;
use crate::output::OutFile;
use crate::png;

pub(super) struct Svg;
pub(super) struct Png;

impl Output for Svg {
    fn option(&self) -> &'static str {
        "--svg"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.svg.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Curves
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        if let Some(chart) = &results.chart {
            out.write_all(chart.as_bytes())?;
        }
        Ok(out)
    }
}

impl Output for Png {
    fn option(&self) -> &'static str {
        "--png"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.png.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Curves
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        if let Some(chart) = &results.chart {
            out.write_all(&png::of_svg(chart)?)?;
        }
        Ok(out)
    }
}
