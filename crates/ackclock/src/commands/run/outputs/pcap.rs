//! `--pcap`: the packets at the scenario's taps, as pcapng.

use std::io;
use std::path::Path;

use export::capture::{self, Capture};
use export::kernel_log::Side;
use packet::Segment;
use scenario::Loaded;
use sim::Observer;
use sim::scenario::{Scenario, Tap, TapPlace};
use units::Instant;

use super::{Begun, Output, Run, RunLog, Source};
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

    fn source(&self, _: &RunArgs) -> Source {
        Source::Taps
    }

    fn prepare(
        &self,
        loaded: &Loaded,
        scenario: &mut Scenario,
        _: Option<Side>,
    ) -> Result<(), Failure> {
        if loaded.scenario.taps.is_empty() {
            let sender = first_sender(scenario);
            has_tcp(&scenario.hosts[sender], "--pcap writes packets of TCP")?;
            capture::tap(scenario, sender, TapPlace::Stack);
        }
        Ok(())
    }

    fn begin<'s>(&self, run: &Run<'s>, out: OutFile) -> io::Result<Begun<'s>> {
        let default = Tap { host: first_sender(run.scenario), place: TapPlace::Stack };
        let taps: Vec<usize> = match run.loaded.scenario.taps.len() {
            0 => run.scenario.taps.iter().position(|tap| *tap == default).into_iter().collect(),
            own => (0..own).collect(),
        };
        let capture = Capture::new(run.scenario, &taps, run.comment, out)?;
        Ok(Begun::Log(Box::new(capture)))
    }
}

impl RunLog for Capture<'_, OutFile> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        Observer::tap(self, at, tap, outbound, segment);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        Capture::finish(*self)
    }
}
