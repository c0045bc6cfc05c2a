//! The observers of a run: taps, events, the progress bar.

use core::ops::ControlFlow;
use std::io::{BufWriter, ErrorKind, StdoutLock};
use std::path::Path;
use std::process;

use export::capture::TraceLines;
use export::curves::CurveRecorder;
use packet::{PacketTooBig, Segment};
use record::{Event, EventSource, Recorder, Sender, SenderState};
use runner::series::SenderSeries;
use sim::Observer;
use units::Instant;

use super::outputs::{RunLog, finish};
use crate::failure::{FAILED, Failure};
use crate::progress::Progress;
use crate::visible::Visible;

/// Files that are written during a run.
pub(in crate::commands) struct RunLogs<'s>(Vec<(&'s Path, Box<dyn RunLog + 's>)>);

impl<'s> RunLogs<'s> {
    pub(in crate::commands) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(in crate::commands) fn add(&mut self, path: &'s Path, log: Box<dyn RunLog + 's>) {
        self.0.push((path, log));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn each(&mut self) -> impl Iterator<Item = &mut Box<dyn RunLog + 's>> {
        self.0.iter_mut().map(|(_, log)| log)
    }

    /// Completes the files.
    ///
    /// # Errors
    /// The first error of any file; the files after it are not completed.
    pub(in crate::commands) fn finish(self) -> Result<(), Failure> {
        self.0.into_iter().try_for_each(|(path, log)| finish(log, path))
    }
}

/// The observers of packets at taps, and the progress bar.
pub(super) struct Taps<'s> {
    pub(super) lines: Option<TraceLines<'s, BufWriter<Visible<StdoutLock<'static>>>>>,
    pub(super) captures: RunLogs<'s>,
    pub(super) progress: Progress,
    pub(super) files_wanted: bool,
}

impl Recorder for Taps<'_> {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl Observer for Taps<'_> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if let Some(lines) = &mut self.lines {
            lines.tap(at, tap, outbound, segment);
            if let Some(error) = lines.error()
                && !self.files_wanted
            {
                // `ackclock run ... --tcpdump | head`, or a full disk: no other output needs the
                // run.
                process::exit(match error.kind() {
                    ErrorKind::BrokenPipe => 0,
                    _ => {
                        Failure::stdout(error).report();
                        FAILED.into()
                    }
                });
            }
        }
        self.captures.each().for_each(|log| log.tap(at, tap, outbound, segment));
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        self.captures.each().for_each(|log| log.icmp(at, tap, outbound, message));
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.progress.at(now);
        ControlFlow::Continue(())
    }
}

/// The observers of events: logs, curves and columns, as requested.
pub(in crate::commands) struct EventObserver<'s> {
    pub(in crate::commands) logs: RunLogs<'s>,
    pub(in crate::commands) curves: Option<CurveRecorder>,
    pub(in crate::commands) columns: Option<SenderSeries>,
}

impl Recorder for EventObserver<'_> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if let Some(columns) = &mut self.columns {
            columns.record(at, who, event, state);
        }
        self.record_row(at, who, event, state);
    }

    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        let event = event();
        if let Some(columns) = &mut self.columns {
            columns.record_sender(at, who, || event, sender);
        }
        // Columns need no row for every event.
        if !self.logs.is_empty() || self.curves.is_some() {
            self.record_row(at, who, event, Some(&sender.snapshot()));
        }
    }
}

impl EventObserver<'_> {
    /// Are there no event observers?
    pub(super) fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.curves.is_none() && self.columns.is_none()
    }

    /// Records an event for all observers but the columns.
    fn record_row(
        &mut self,
        at: Instant,
        who: EventSource,
        event: Event,
        state: Option<&SenderState>,
    ) {
        if let Some(curves) = &mut self.curves {
            curves.record(at, who, event, state);
        }
        self.logs.each().for_each(|log| log.record(at, who, event, state));
    }
}

impl Observer for EventObserver<'_> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.logs.each().for_each(|log| log.tap(at, tap, outbound, segment));
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        self.logs.each().for_each(|log| log.datagram(at, tap, outbound, packet));
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        self.logs.each().for_each(|log| log.icmp(at, tap, outbound, message));
    }
}
