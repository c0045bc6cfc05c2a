//! The findings about a run: its capture, or its qlog, is diagnosed like a recorded one.

use std::io::{self, Write};

use export::capture::PcapngRecorder;
use export::kernel_log::LoggedEndpoint;
use export::qlog::Qlog;
use ingest::diagnosis::DiagnosisReport;
use ingest::inputs::InputFile;
use logs::qlog::QlogFormat;
use serde_json::{Value, json};

use crate::requests::Failure;
use crate::runs::{NAME, loaded};

/// Most bytes of a capture; the rest of the run has no findings.
const CAPTURE: usize = 256 << 20;

/// Diagnoses what the sender of the first flow would have captured: findings with their times.
pub(crate) fn findings(text: &str) -> Result<Value, Failure> {
    let loaded = loaded(text)?;
    let mut scenario = loaded.scenario.clone();
    let side = LoggedEndpoint::sender(&mut scenario, 0).ok_or("the scenario has no flow")?;
    let mut bytes = Bounded(Vec::new());
    let is_tcp =
        scenario.hosts.get(usize::from(side.host.0)).is_some_and(|host| host.stack.tcp().is_some());
    if is_tcp {
        let mut capture = PcapngRecorder::new(&scenario, &[side.tap], "", &mut bytes)?;
        sim::run_shared(&scenario, &mut capture)?;
        // The bound is no failure: what was written is a capture that ends early.
        let _ = capture.finish();
    } else {
        let mut log = Qlog::new(&scenario, side, &loaded.sha256, QlogFormat::Current, &mut bytes)?;
        sim::run_shared(&scenario, &mut log)?;
        let _ = log.finish();
    }
    let whole = bytes.0.len() < CAPTURE;
    let source = InputFile { name: NAME.to_owned(), bytes: Box::new(io::Cursor::new(bytes.0)) };
    let report = DiagnosisReport::read(vec![source], false)?;
    Ok(json!({ "json": report.json(1), "whole": whole }))
}

/// Output of at most [`CAPTURE`] bytes.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CAPTURE - self.0.len());
        if taken == 0 && !bytes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the capture is too long"));
        }
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
