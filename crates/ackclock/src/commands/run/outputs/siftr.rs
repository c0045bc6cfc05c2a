//! `--siftr`: the log of the sender as siftr.

use std::io;
use std::path::Path;

use export::kernel_log::{LoggedEndpoint, Siftr};
use logs::siftr::SiftrGeneration;
use packet::Segment;
use record::{Event, EventSource, Recorder, SenderState};
use scenario::Loaded;
use sim::Observer;
use sim::scenario::Scenario;
use units::Instant;

use super::{OpenOutput, Output, OutputSource, RunContext, RunLog};
use crate::cli::{RunArgs, SiftrVersion};
use crate::commands::run::has_tcp;
use crate::failure::Failure;
use crate::output::OutFile;

pub(super) struct SiftrLog;

impl Output for SiftrLog {
    fn option(&self) -> &'static str {
        "--siftr"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.siftr.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Events
    }

    fn logs_sender(&self) -> bool {
        true
    }

    fn prepare(
        &self,
        _: &Loaded,
        scenario: &mut Scenario,
        sender: Option<LoggedEndpoint>,
    ) -> Result<(), Failure> {
        let hosts = sender.map(|side| &scenario.hosts[usize::from(side.host.0)]);
        let why = "--siftr logs a TCP sender";
        hosts.map_or(Ok(()), |host| has_tcp(host, why))
    }

    fn begin<'s>(&self, run: &RunContext<'s>, out: OutFile) -> io::Result<OpenOutput<'s>> {
        let Some(sender) = run.sender else { return Ok(OpenOutput::Later(out)) };
        let generation = match run.args.siftr_version {
            SiftrVersion::V1_2 => SiftrGeneration::V1_2,
            SiftrVersion::V1_3 => SiftrGeneration::V1_3,
            SiftrVersion::V2 => SiftrGeneration::V2,
        };
        Ok(OpenOutput::Log(Box::new(Siftr::new(run.scenario, sender, generation, out)?)))
    }
}

impl RunLog for Siftr<OutFile> {
    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        Recorder::record(self, at, who, event, state);
    }

    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        Observer::tap(self, at, tap, outbound, segment);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        Self::finish(*self)
    }
}
