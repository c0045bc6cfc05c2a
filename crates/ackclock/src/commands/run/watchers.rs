//! Who watches a run: taps, rows and logs.

use core::ops::ControlFlow;
use std::io::{BufWriter, ErrorKind, StdoutLock};
use std::process;

use export::capture::{Capture, TraceLines};
use export::curves::Curves;
use export::kernel_log::{BlackBox, Siftr};
use export::qlog::Qlog;
use packet::Segment;
use record::{Event, Recorder, Sender, SenderState, Who};
use runner::series::SenderSeries;
use sim::Observer;
use trace::csv::CsvRecorder;
use units::Instant;

use crate::failure::{FAILED, Failure};
use crate::output::OutFile;
use crate::progress::Progress;
use crate::visible::Visible;

/// What looks through the taps, and the progress bar.
pub(super) struct Taps<'s> {
    pub(super) lines: Option<TraceLines<'s, BufWriter<Visible<StdoutLock<'static>>>>>,
    pub(super) capture: Option<Capture<'s, OutFile>>,
    pub(super) progress: Progress,
    pub(super) files_wanted: bool,
}

impl Recorder for Taps<'_> {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: Who, _: Event, _: Option<&SenderState>) {}
}

impl Observer for Taps<'_> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if let Some(lines) = &mut self.lines {
            lines.tap(at, tap, outbound, segment);
            if let Some(error) = lines.error()
                && !self.files_wanted
            {
                // `ackclock run ... --tcpdump | head`, or a full disk: there is no other output to run for.
                process::exit(match error.kind() {
                    ErrorKind::BrokenPipe => 0,
                    _ => {
                        Failure::stdout(error).report();
                        FAILED.into()
                    }
                });
            }
        }
        if let Some(capture) = &mut self.capture {
            capture.tap(at, tap, outbound, segment);
        }
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.progress.at(now);
        ControlFlow::Continue(())
    }
}

/// What is told of every event: rows, curves and the kernel's logs, as asked for.
pub(in crate::commands) struct Rows {
    pub(in crate::commands) csv: Option<CsvRecorder<OutFile>>,
    pub(in crate::commands) curves: Option<Curves>,
    pub(in crate::commands) series: Option<SenderSeries>,
    pub(in crate::commands) bblog: Option<BlackBox<OutFile>>,
    pub(in crate::commands) siftr: Option<Siftr<OutFile>>,
    pub(in crate::commands) qlog: Option<Qlog<OutFile>>,
    #[cfg(feature = "parquet")]
    pub(in crate::commands) parquet: Option<export::columns::EventColumns<OutFile>>,
}

impl Recorder for Rows {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        if let Some(series) = &mut self.series {
            series.record(at, who, event, state);
        }
        self.record_other(at, who, event, state);
    }

    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        let event = event();
        if let Some(series) = &mut self.series {
            series.record_sender(at, who, || event, sender);
        }
        if self.wants_all() {
            self.record_other(at, who, event, Some(&sender.row()));
        }
    }
}

impl Rows {
    /// Does anybody want to know of every event?
    fn wants_all(&self) -> bool {
        #[cfg(feature = "parquet")]
        if self.parquet.is_some() {
            return true;
        }
        let Self { csv, curves, bblog, siftr, qlog, .. } = self;
        let logs = bblog.is_some() || siftr.is_some() || qlog.is_some();
        logs || csv.is_some() || curves.is_some()
    }

    /// Tells all but the series.
    fn record_other(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        if let Some(csv) = &mut self.csv {
            csv.record(at, who, event, state);
        }
        if let Some(curves) = &mut self.curves {
            curves.record(at, who, event, state);
        }
        if let Some(log) = &mut self.bblog {
            log.record(at, who, event, state);
        }
        if let Some(log) = &mut self.siftr {
            log.record(at, who, event, state);
        }
        if let Some(log) = &mut self.qlog {
            log.record(at, who, event, state);
        }
        #[cfg(feature = "parquet")]
        if let Some(table) = &mut self.parquet {
            table.record(at, who, event, state);
        }
    }
}

impl Observer for Rows {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if let Some(log) = &mut self.bblog {
            log.tap(at, tap, outbound, segment);
        }
        if let Some(log) = &mut self.siftr {
            log.tap(at, tap, outbound, segment);
        }
        if let Some(log) = &mut self.qlog {
            log.tap(at, tap, outbound, segment);
        }
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::Packet) {
        if let Some(log) = &mut self.qlog {
            log.datagram(at, tap, outbound, packet);
        }
    }
}
