//! `--queues`: length and delay of the queue of every link over time, as CSV.

use std::io::{self, BufWriter};
use std::path::Path;

use runner::sharing::Sharing;
use units::{Duration, Instant};

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
            rows(sharing, results.outcome.ended, &mut BufWriter::new(&mut out))?;
        }
        Ok(out)
    }
}

/// One row per link and interval, in the order of links, then of time.
fn rows(sharing: &Sharing, ended: Instant, out: &mut impl io::Write) -> io::Result<()> {
    let text = |delay: Option<Duration>| {
        let ns = delay.map(Duration::as_nanos);
        ns.map_or_else(String::new, |ns| {
            format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
        })
    };
    writeln!(out, "time_s,link,delay_mean_s,delay_max_s,most_packets,most_bytes,lost")?;
    for (link, (width, intervals)) in sharing.queues(ended) {
        for (interval, place) in intervals.iter().zip(0..) {
            let time = text(Some(width.saturating_mul(place)));
            let mean = text(interval.mean());
            let longest = text((interval.packets > 0).then_some(interval.longest));
            let (packets, bytes) = (interval.most_packets, interval.most_bytes);
            writeln!(out, "{time},{link},{mean},{longest},{packets},{bytes},{}", interval.lost)?;
        }
    }
    out.flush()
}
