//! The files that `run` writes besides its result: one table of outputs, each in a file of its own.

mod bblog;
mod charts;
mod csv;
mod jsonl;
#[cfg(feature = "parquet")]
mod parquet;
mod pcap;
mod qlog;
mod report;
mod siftr;

use std::io;
use std::path::Path;

use export::kernel_log::Side;
use logs::series::Collector;
use packet::Segment;
use pages::run_page::RunStory;
use record::{Event, SenderState, Who};
use runner::sharing::Sharing;
use scenario::Loaded;
use sim::Outcome;
use sim::scenario::Scenario;
use units::Instant;

use super::{create, failed};
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::output::OutFile;

/// Every output, in the order in which the files are created.
const OUTPUTS: &[&dyn Output] = &[
    &pcap::Pcap,
    &csv::Csv,
    &charts::Svg,
    &jsonl::Jsonl,
    &charts::Png,
    #[cfg(feature = "parquet")]
    &parquet::Parquet,
    &report::Report,
    &bblog::Bblog,
    &siftr::SiftrLog,
    &qlog::QlogFile,
];

/// The part of a run that an output shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The packets at the scenario's taps.
    Taps,
    /// Every event, and the packets at the taps of the sender that is logged.
    Events,
    /// The columns of `--columns` over time.
    Columns,
    /// Windows and flights over time.
    Curves,
    /// All that a page shows.
    Page,
}

/// An output.
pub(super) trait Output {
    /// Its option.
    fn option(&self) -> &'static str;

    /// The file that the arguments ask for.
    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path>;

    /// The part of a run that it shows.
    fn source(&self, args: &RunArgs) -> Source;

    /// Whether it logs one sender, that of `--log-flow`.
    fn logs_sender(&self) -> bool {
        false
    }

    /// Adds the taps that it needs to `scenario`, which is that of the file with the taps of other
    /// outputs; `sender` is the one that is logged.
    ///
    /// # Errors
    /// It cannot show this scenario.
    fn prepare(
        &self,
        loaded: &Loaded,
        scenario: &mut Scenario,
        sender: Option<Side>,
    ) -> Result<(), Failure> {
        let _ = (loaded, scenario, sender);
        Ok(())
    }

    /// Begins the file of an output that is written while the run goes on.
    fn begin<'s>(&self, run: &Run<'s>, out: OutFile) -> io::Result<Begun<'s>> {
        let _ = run;
        Ok(Begun::Later(out))
    }

    /// Writes the file of an output that is written after the run.
    fn write(&self, results: &mut Results<'_>, out: OutFile) -> Result<OutFile, WriteError> {
        let _ = results;
        Ok(out)
    }
}

/// An output whose file was begun.
pub(super) enum Begun<'s> {
    /// It is written while the run goes on.
    Log(Box<dyn RunLog + 's>),
    /// It is written after the run.
    Later(OutFile),
}

/// A file that is written while a run goes on.
pub(in crate::commands) trait RunLog {
    /// As [`record::Recorder::record`].
    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        let _ = (at, who, event, state);
    }

    /// As [`sim::Observer::tap`].
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        let _ = (at, tap, outbound, segment);
    }

    /// As [`sim::Observer::datagram`].
    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::Packet) {
        let _ = (at, tap, outbound, packet);
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The first error of the file.
    fn finish(self: Box<Self>) -> io::Result<OutFile>;
}

/// A run before it begins.
pub(super) struct Run<'s> {
    pub(super) args: &'s RunArgs,
    pub(super) loaded: &'s Loaded,
    /// That of the file, with the taps of all outputs.
    pub(super) scenario: &'s Scenario,
    /// Title and checksum of the scenario.
    pub(super) comment: &'s str,
    /// The sender that is logged.
    pub(super) sender: Option<Side>,
}

/// A run after its end.
pub(super) struct Results<'s> {
    pub(super) loaded: &'s Loaded,
    pub(super) outcome: &'s Outcome,
    /// Name of the scenario's file.
    pub(super) name: String,
    /// The curves as SVG.
    pub(super) chart: Option<String>,
    pub(super) columns: Option<Collector>,
    pub(super) story: Option<RunStory>,
    pub(super) sharing: Option<&'s Sharing>,
}

/// Why a file was not written.
pub(super) enum WriteError {
    File(io::Error),
    Other(Failure),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

/// An output that the arguments ask for.
pub(super) struct Asked<'a, F> {
    pub(super) output: &'static dyn Output,
    pub(super) path: &'a Path,
    pub(super) file: F,
}

/// Creates the files that the arguments ask for; none of them is the scenario, nor another's.
pub(super) fn create_all<'a>(
    args: &'a RunArgs,
    scenario: &Path,
) -> Result<Vec<Asked<'a, OutFile>>, Failure> {
    let paths = OUTPUTS.iter().filter_map(|output| Some((*output, output.path(args)?)));
    let created =
        paths.map(|(output, path)| create(path, scenario).map(|file| Asked { output, path, file }));
    let created = created.collect::<Result<Vec<_>, _>>()?;
    for (index, Asked { output, path, .. }) in created.iter().enumerate() {
        if let Some(same) = created[..index].iter().find(|other| other.file.is(path)) {
            let (one, other) = (same.output.option(), output.option());
            let path = path.display();
            return Err(Failure::new(format!("{one} and {other} both write {path}")));
        }
    }
    Ok(created)
}

impl<'a> Asked<'a, OutFile> {
    /// Begins the file.
    pub(super) fn begin<'s>(self, run: &Run<'s>) -> Result<Asked<'a, Begun<'s>>, Failure> {
        let Self { output, path, file } = self;
        let file = output.begin(run, file).map_err(|error| failed(Some(path), &error))?;
        Ok(Asked { output, path, file })
    }

    /// Writes the file after the run.
    pub(super) fn write(self, results: &mut Results<'_>) -> Result<(), Failure> {
        let written = self.output.write(results, self.file).map_err(|error| match error {
            WriteError::File(error) => failed(Some(self.path), &error),
            WriteError::Other(failure) => failure,
        });
        written?.commit()
    }
}

/// Completes a file that was written while the run went on.
pub(in crate::commands) fn finish(log: Box<dyn RunLog + '_>, path: &Path) -> Result<(), Failure> {
    log.finish().map_err(|error| failed(Some(path), &error))?.commit()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// The table has every option of `run` that takes a file and no other.
    #[test]
    fn every_option_of_a_file_is_in_the_table() {
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        let files = run.get_arguments().filter(|argument| {
            argument.get_long().is_some()
                && argument.get_value_names().is_some_and(|names| names == ["FILE"])
        });
        let mut files: Vec<String> =
            files.filter_map(|file| Some(format!("--{}", file.get_long()?))).collect();
        files.retain(|option| cfg!(feature = "parquet") || option != "--parquet");
        let mut table: Vec<&str> = OUTPUTS.iter().map(|output| output.option()).collect();
        files.sort();
        table.sort_unstable();
        assert_eq!(files, table);
    }
}
