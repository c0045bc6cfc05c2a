//! `--queues`: length and delay of the queue of every link over time, as CSV.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use super::{Output, OutputSource, Results, WriteError};
use crate::cli::RunArgs;
use crate::output::OutFile;

pub(super) struct Queues;

impl Output for Queues {
    fn option(&self) -> &'static str {
        "--queues"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.queues.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Outcome
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        if let Some(sharing) = results.sharing {
            let mut buffered = BufWriter::new(&mut out);
            sharing.write_queues(results.outcome.ended, &mut buffered)?;
            buffered.flush()?;
            drop(buffered);
        }
        Ok(out)
    }
}
