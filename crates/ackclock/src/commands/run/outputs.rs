//! The output files of `run`: one table, each output in its own module.

mod bblog;
mod charts;
mod csv;
mod flent;
mod jsonl;
mod openmetrics;
#[cfg(feature = "parquet")]
mod parquet;
mod pcap;
mod qlog;
mod queues;
mod report;
mod siftr;

use std::io;
use std::path::Path;

use export::kernel_log::LoggedEndpoint;
use logs::series::Collector;
use packet::{PacketTooBig, Segment};
use pages::run_page::RunPageRecorder;
use record::{Event, EventSource, SenderState};
use runner::sharing::Sharing;
use scenario::Loaded;
use sim::RunOutcome;
use sim::scenario::Scenario;
use units::Instant;

use super::{create, failed};
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::output::OutFile;
use crate::visible::ShownPath as _;

/// All outputs, in the order in which the files are created.
const OUTPUTS: &[&dyn Output] = &[
    &pcap::Pcap,
    &csv::Csv,
    &charts::Svg,
    &jsonl::Jsonl,
    &charts::Png,
    #[cfg(feature = "parquet")]
    &parquet::Parquet,
    &report::ReportOutput,
    &bblog::Bblog,
    &siftr::SiftrLog,
    &qlog::QlogFile,
    &openmetrics::OpenMetrics,
    &flent::Flent,
    &queues::Queues,
];

/// The data source of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputSource {
    /// The packets at the scenario's taps.
    Taps,
    /// All events, and the packets at the taps of the logged sender.
    Events,
    /// The columns of `--columns` over time.
    Columns,
    /// Congestion windows and bytes in flight over time.
    Curves,
    /// The data of a page.
    Page,
    /// The outcome of the run.
    Outcome,
}

/// An output file of `run`.
pub(super) trait Output {
    /// The option that requests it.
    fn option(&self) -> &'static str;

    /// Its path in the arguments, if requested.
    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path>;

    /// Its data source.
    fn source(&self, args: &RunArgs) -> OutputSource;

    /// Does it log one sender, that of `--log-flow`?
    fn logs_sender(&self) -> bool {
        false
    }

    /// Adds the taps that the output needs to `scenario`, which already has the taps of other
    /// outputs; `sender` is the logged endpoint.
    ///
    /// # Errors
    /// The output does not support this scenario.
    fn prepare(
        &self,
        loaded: &Loaded,
        scenario: &mut Scenario,
        sender: Option<LoggedEndpoint>,
    ) -> Result<(), Failure> {
        let _ = (loaded, scenario, sender);
        Ok(())
    }

    /// Starts an output that is written during the run.
    fn begin<'s>(&self, run: &RunContext<'s>, out: OutFile) -> io::Result<OpenOutput<'s>> {
        let _ = run;
        Ok(OpenOutput::Later(out))
    }

    /// Writes an output after the run.
    fn write(&self, results: &mut Results<'_>, out: OutFile) -> Result<OutFile, WriteError> {
        let _ = results;
        Ok(out)
    }
}

/// A created output.
pub(super) enum OpenOutput<'s> {
    /// Written during the run.
    Log(Box<dyn RunLog + 's>),
    /// Written after the run.
    Later(OutFile),
}

/// A file that is written during a run.
pub(in crate::commands) trait RunLog {
    /// As [`record::Recorder::record`].
    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        let _ = (at, who, event, state);
    }

    /// As [`sim::Observer::tap`].
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        let _ = (at, tap, outbound, segment);
    }

    /// As [`sim::Observer::datagram`].
    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        let _ = (at, tap, outbound, packet);
    }

    /// As [`sim::Observer::icmp`].
    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        let _ = (at, tap, outbound, message);
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The first error of the file.
    fn finish(self: Box<Self>) -> io::Result<OutFile>;
}

/// The parameters of a run.
pub(super) struct RunContext<'s> {
    pub(super) args: &'s RunArgs,
    pub(super) loaded: &'s Loaded,
    /// The scenario with the taps of all outputs.
    pub(super) scenario: &'s Scenario,
    /// Title and checksum of the scenario.
    pub(super) comment: &'s str,
    /// The logged endpoint.
    pub(super) sender: Option<LoggedEndpoint>,
}

/// The results of a run.
pub(super) struct Results<'s> {
    pub(super) loaded: &'s Loaded,
    pub(super) outcome: &'s RunOutcome,
    /// Name of the scenario's file.
    pub(super) name: String,
    /// The chart as SVG.
    pub(super) chart: Option<String>,
    pub(super) columns: Option<Collector>,
    pub(super) story: Option<RunPageRecorder>,
    pub(super) sharing: Option<&'s Sharing>,
}

/// Error of writing an output.
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

/// A requested output.
pub(super) struct RequestedOutput<'a, F> {
    pub(super) output: &'static dyn Output,
    pub(super) path: &'a Path,
    pub(super) file: F,
}

/// Creates the requested files; none may be the scenario or the file of another output.
pub(super) fn create_all<'a>(
    args: &'a RunArgs,
    scenario: &Path,
) -> Result<Vec<RequestedOutput<'a, OutFile>>, Failure> {
    let paths = OUTPUTS.iter().filter_map(|output| Some((*output, output.path(args)?)));
    let created = paths.map(|(output, path)| {
        create(path, scenario).map(|file| RequestedOutput { output, path, file })
    });
    let created = created.collect::<Result<Vec<_>, _>>()?;
    for (index, RequestedOutput { output, path, .. }) in created.iter().enumerate() {
        if let Some(same) = created[..index].iter().find(|other| other.file.is(path)) {
            let (one, other) = (same.output.option(), output.option());
            let path = path.shown();
            return Err(Failure::new(format!("{one} and {other} both write {path}")));
        }
    }
    Ok(created)
}

impl<'a> RequestedOutput<'a, OutFile> {
    /// Starts the output.
    pub(super) fn begin<'s>(
        self,
        run: &RunContext<'s>,
    ) -> Result<RequestedOutput<'a, OpenOutput<'s>>, Failure> {
        let Self { output, path, file } = self;
        let file = output.begin(run, file).map_err(|error| failed(Some(path), &error))?;
        Ok(RequestedOutput { output, path, file })
    }

    /// Writes the output after the run.
    pub(super) fn write(self, results: &mut Results<'_>) -> Result<(), Failure> {
        let written = self.output.write(results, self.file).map_err(|error| match error {
            WriteError::File(error) => failed(Some(self.path), &error),
            WriteError::Other(failure) => failure,
        });
        written?.commit()
    }
}

/// Completes a file that was written during the run.
pub(in crate::commands) fn finish(log: Box<dyn RunLog + '_>, path: &Path) -> Result<(), Failure> {
    log.finish().map_err(|error| failed(Some(path), &error))?.commit()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// The table has exactly the options of `run` that take a file.
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
