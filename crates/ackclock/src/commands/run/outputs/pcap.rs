//! `--pcap`: the packets at the scenario's taps, as pcapng.

use std::io;
use std::path::Path;

use export::capture::{self, PcapngRecorder};
use export::kernel_log::LoggedEndpoint;
use packet::{PacketTooBig, Segment};
use scenario::Loaded;
use sim::Observer;
use sim::scenario::{Scenario, TapPoint, TapSpec};
use units::Instant;

use super::{OpenOutput, Output, OutputSource, RunContext, RunLog};
use crate::cli::RunArgs;
use crate::commands::run::{first_sender, has_tcp};
use crate::failure::Failure;
use crate::output::OutFile;

pub(super) struct Pcap;

impl Output for Pcap {
    fn option(&self) -> &'static str {
        "--pcap"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.pcap.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Taps
    }

    fn prepare(
        &self,
        loaded: &Loaded,
        scenario: &mut Scenario,
        _: Option<LoggedEndpoint>,
    ) -> Result<(), Failure> {
        if loaded.scenario.taps.is_empty() {
            let sender = first_sender(scenario);
            has_tcp(&scenario.hosts[sender], "--pcap writes TCP packets")?;
            capture::tap(scenario, sender, TapPoint::Stack);
        }
        Ok(())
    }

    fn begin<'s>(&self, run: &RunContext<'s>, out: OutFile) -> io::Result<OpenOutput<'s>> {
        let default = TapSpec { host: first_sender(run.scenario), place: TapPoint::Stack };
        let taps: Vec<usize> = match run.loaded.scenario.taps.len() {
            0 => run.scenario.taps.iter().position(|tap| *tap == default).into_iter().collect(),
            own => (0..own).collect(),
        };
        let capture = PcapngRecorder::new(run.scenario, &taps, run.comment, out)?;
        Ok(OpenOutput::Log(Box::new(capture)))
    }
}

impl RunLog for PcapngRecorder<'_, OutFile> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        Observer::tap(self, at, tap, outbound, segment);
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        Observer::icmp(self, at, tap, outbound, message);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        PcapngRecorder::finish(*self)
    }
}
