//! Reads QUIC connections from the qlog of one endpoint.
//!
//! Each trace of a file is a connection. A log need not have all events;
//! [`diagnose::quic::QuicAnalysis::missing`] lists what it lacks, and results that need it are left
//! out.

mod records;

use std::io::{BufReader, Read};

use diagnose::quic::{QuicAnalysis, QuicAnalyzer};
use logs::qlog::{QlogItem, QlogReader, Vantage};

use super::{File, Reason};
use records::RecordBuffer;

/// A QUIC connection from its log.
#[derive(Debug, Clone, PartialEq)]
pub struct QuicConnection {
    /// Index of its file in [`Reading::files`](super::Reading::files).
    pub file: usize,
    /// Index in its file, from 0.
    pub number: u32,
    /// Title of the trace; empty if it has none.
    pub title: String,
    /// Connection ID of the trace; empty if it has none.
    pub group: String,
    /// Vantage point of the log.
    pub vantage: Vantage,
    /// What the log shows.
    pub analysis: QuicAnalysis,
}

struct OpenTrace {
    title: String,
    group: String,
    vantage: Vantage,
    analyzer: QuicAnalyzer,
}

impl OpenTrace {
    fn new(title: String, group: String, vantage: Vantage) -> Self {
        let client = match vantage {
            Vantage::Client => Some(true),
            Vantage::Server => Some(false),
            Vantage::Network | Vantage::Unknown => None,
        };
        Self { title, group, vantage, analyzer: QuicAnalyzer::new(client) }
    }
}

/// Reads the traces of a file.
pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
) -> Result<Vec<QuicConnection>, Reason> {
    let mut connections = Vec::new();
    let mut open: Option<OpenTrace> = None;
    let mut buffer = RecordBuffer::default();
    let mut close = |trace: Option<OpenTrace>| {
        let Some(OpenTrace { title, group, vantage, analyzer }) = trace else { return };
        if let Some(analysis) = analyzer.finish() {
            let number_in_file = connections.len() as u32;
            connections.push(QuicConnection {
                file: number,
                number: number_in_file,
                title,
                group,
                vantage,
                analysis,
            });
        }
    };
    for item in QlogReader::lean(BufReader::with_capacity(1 << 16, input)) {
        match item {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                file.problems.push(&error);
                break;
            }
            Err(error) => return Err(Reason::Read(error)),
            Ok(QlogItem::Problem(problem)) => {
                // The position of a damaged event: that of the event after it in the log.
                file.problems.push(&format_args!("event {}, {problem}", file.frames + 1));
            }
            Ok(QlogItem::Header(info)) => {
                close(open.take());
                let trace = &info.trace;
                file.begins = file.begins.or(trace.epoch);
                open = Some(OpenTrace::new(
                    trace.title.clone(),
                    trace.group_id.clone(),
                    trace.vantage,
                ));
            }
            Ok(QlogItem::Event(event)) => {
                file.frames += 1;
                let trace = open.get_or_insert_with(|| {
                    OpenTrace::new(String::new(), String::new(), Vantage::Unknown)
                });
                let record = buffer.record(&event);
                trace.analyzer.push(event.at.as_nanos(), file.frames, &record);
            }
        }
    }
    close(open.take());
    if connections.is_empty() {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(connections)
}
