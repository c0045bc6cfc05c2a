//! `--columns` and `--series`: which columns over time, and how much of them.

use clap::Args;
use logs::series::{COLUMNS, Columns, Thinning};
use scenario::Plan;
use scenario::nearest;
use scenario::units_text;
use units::Duration;

use crate::failure::Failure;

/// How much of a series is kept.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ThinningArgs {
    /// Of every span of this length keep the first and last row and those with the lowest and the
    /// highest value of each column: 10ms
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) every: Option<Duration>,
    /// Keep about so many rows of each flow, and every peak
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) points: Option<u32>,
}

fn span(text: &str) -> Result<Duration, String> {
    match units_text::duration(text) {
        Ok(span) if span.is_zero() => Err("a span above zero is wanted".to_owned()),
        Ok(span) => Ok(span),
        Err(misread) => Err(format!("it {}; {} is wanted", misread.message, misread.expected)),
    }
}

impl ThinningArgs {
    /// As [`Self::plan`], where another plan may be known already.
    pub(crate) fn plan_or(
        &self,
        option: &str,
        columns: Option<&str>,
        known: Option<&Plan>,
    ) -> Result<Option<Plan>, Failure> {
        match (columns, known) {
            (None, Some(known)) => {
                let thinning = self.thinning().unwrap_or(known.thinning);
                Ok(Some(Plan { thinning, ..known.clone() }))
            }
            (columns, _) => self.plan(option, columns),
        }
    }

    fn thinning(&self) -> Option<Thinning> {
        let points = self.points.map(|points| Thinning::Points(points as usize));
        self.every.map(Thinning::Every).or(points)
    }

    /// What is wanted of the columns named so; `option` is what they were given with.
    pub(crate) fn plan(
        &self,
        option: &str,
        columns: Option<&str>,
    ) -> Result<Option<Plan>, Failure> {
        let Some(columns) = columns else {
            let given = [self.every.map(|_| "--every"), self.points.map(|_| "--points")];
            return match given.into_iter().flatten().next() {
                Some(thinning) => Err(Failure::new(format!("{thinning} needs {option}"))),
                None => Ok(None),
            };
        };
        let columns = Columns::parse(columns).map_err(|unknown| {
            let names = || COLUMNS.iter().map(|column| column.short());
            let failure = Failure::new(format!("{option}: there is no column {:?}", unknown.0));
            failure.hint(match nearest(&unknown.0, names()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("columns are {}", names().collect::<Vec<_>>().join(", ")),
            })
        })?;
        Ok(Some(Plan { columns, thinning: self.thinning().unwrap_or(Thinning::None) }))
    }
}
