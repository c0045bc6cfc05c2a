//! `--columns` and `--series`: columns over time and their thinning.

use clap::Args;
use logs::series::{COLUMNS, Downsampling, SeriesColumns};
use scenario::SeriesPlan;
use scenario::nearest;
use scenario::units_text;
use units::Duration;

use crate::failure::Failure;

/// The thinning of a series.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ThinningArgs {
    /// Per interval of this length, keep the first and last row and the rows with the minimum and
    /// the maximum of each column: 10ms
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) every: Option<Duration>,
    /// Keep about this number of rows per flow, and every peak
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) points: Option<u32>,
}

fn span(text: &str) -> Result<Duration, String> {
    match units_text::duration(text) {
        Ok(span) if span.is_zero() => Err("expected a duration above zero".to_owned()),
        Ok(span) => Ok(span),
        Err(misread) => Err(format!("{}, expected {}", misread.message, misread.expected)),
    }
}

/// Reads an instant of a run.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    units_text::duration(text)
        .map_err(|misread| format!("{}, expected {}", misread.message, misread.expected))
}

impl ThinningArgs {
    /// As [`Self::plan`], with a default plan.
    pub(crate) fn plan_or(
        &self,
        option: &str,
        columns: Option<&str>,
        known: Option<&SeriesPlan>,
    ) -> Result<Option<SeriesPlan>, Failure> {
        match (columns, known) {
            (None, Some(known)) => {
                let thinning = self.thinning().unwrap_or(known.thinning);
                Ok(Some(SeriesPlan { thinning, ..known.clone() }))
            }
            (columns, _) => self.plan(option, columns),
        }
    }

    fn thinning(&self) -> Option<Downsampling> {
        let points = self.points.map(|points| Downsampling::Points(points as usize));
        self.every.map(Downsampling::Every).or(points)
    }

    /// The plan for the named columns; `option` is the option that named them.
    pub(crate) fn plan(
        &self,
        option: &str,
        columns: Option<&str>,
    ) -> Result<Option<SeriesPlan>, Failure> {
        let Some(columns) = columns else {
            let given = [self.every.map(|_| "--every"), self.points.map(|_| "--points")];
            return match given.into_iter().flatten().next() {
                Some(thinning) => Err(Failure::new(format!("{thinning} needs {option}"))),
                None => Ok(None),
            };
        };
        let columns = SeriesColumns::parse(columns).map_err(|unknown| {
            let names = || COLUMNS.iter().map(|column| column.short());
            let failure = Failure::new(format!("{option}: unknown column `{}`", unknown.0));
            failure.hint(match nearest(&unknown.0, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("columns are {}", names().collect::<Vec<_>>().join(", ")),
            })
        })?;
        let thinning = self.thinning().unwrap_or(Downsampling::None);
        Ok(Some(SeriesPlan { columns, thinning, queues: false }))
    }
}
