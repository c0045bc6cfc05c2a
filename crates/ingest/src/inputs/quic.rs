//! Reads QUIC connections from the qlog of one endpoint.
//!
//! Each trace of a file is a connection. A log need not have all events;
//! [`diagnose::quic::QuicAnalysis::missing`] lists what it lacks, and results that need it are left
//! out.

pub(super) mod beside;
mod both_ends;
mod close_code;
mod fields;
mod frameless;
mod records;
mod stack;

use std::io::{BufReader, Read};

use diagnose::quic::{QuicAnalysis, QuicAnalyzer};
use logs::qlog::{QlogData, QlogItem, QlogReader, Trace, Vantage};
use units::Duration;

use super::{CapturedQuicConnection, DecryptedCounts, File, Reason};
pub use both_ends::{ClockOrigin, QuicPair, QuicTransit};
use both_ends::{MAX_PACKETS, PacketTrace};
pub use fields::quic_log_fields;
use frameless::FrameInference;
use records::RecordBuffer;
pub use stack::LoggedSender;

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
    /// The sender that the log names.
    pub sender: Option<LoggedSender>,
    /// What the log shows.
    pub analysis: QuicAnalysis,
    /// Numbers of packets, if they are those of a capture that were decrypted.
    pub decrypted: Option<DecryptedCounts>,
}

/// The connection of a capture, if its packets were decrypted.
pub(super) fn decrypted(captured: &mut CapturedQuicConnection) -> Option<QuicConnection> {
    let (is_client, analysis, counts) = *captured.decrypted.take()?;
    Some(QuicConnection {
        file: captured.file,
        number: captured.number,
        title: captured
            .client_hello
            .as_ref()
            .and_then(|hello| hello.server_name.clone())
            .unwrap_or_default(),
        group: captured.ids[1].first().map(ToString::to_string).unwrap_or_default(),
        vantage: if is_client { Vantage::Client } else { Vantage::Server },
        sender: None,
        analysis,
        decrypted: Some(counts),
    })
}

/// The connections of all logs.
#[derive(Debug, Default)]
pub(super) struct QuicLogs {
    logs: Vec<(QuicConnection, PacketTrace)>,
    /// Packets that may still be kept, to compare logs.
    left: usize,
    /// Keeps the data of each connection.
    keeps: bool,
}

impl QuicLogs {
    /// `compare`: there are several logs, whose packets are kept. `keeps`: their data are, for a fit.
    pub(super) fn new(compare: bool, keeps: bool) -> Self {
        Self { logs: Vec::new(), left: if compare { MAX_PACKETS } else { 0 }, keeps }
    }

    /// Adds connections whose packets are not compared.
    pub(super) fn extend(&mut self, connections: Vec<QuicConnection>) {
        self.logs.extend(connections.into_iter().map(|one| (one, PacketTrace::default())));
    }

    /// The connections, and those that two logs have.
    pub(super) fn finish(self) -> (Vec<QuicConnection>, Vec<QuicPair>) {
        let pairs = both_ends::join(&self.logs);
        (self.logs.into_iter().map(|(one, _)| one).collect(), pairs)
    }
}

struct OpenTrace {
    title: String,
    group: String,
    vantage: Vantage,
    sender: Option<LoggedSender>,
    analyzer: QuicAnalyzer,
    frames: FrameInference,
    packets: PacketTrace,
    /// Time since 1970 that the times of the log count from.
    epoch: Option<u64>,
    /// Time of its first event, which the times of the analysis count from.
    begin: Option<u64>,
}

impl OpenTrace {
    fn new(trace: &Trace, sender: Option<LoggedSender>, keeps: bool) -> Self {
        let client = match trace.vantage {
            Vantage::Client => Some(true),
            Vantage::Server => Some(false),
            Vantage::Network | Vantage::Unknown => None,
        };
        let mut analyzer = QuicAnalyzer::new(client);
        if keeps {
            analyzer.keep_transfer();
        }
        Self {
            title: trace.title.clone(),
            group: trace.group_id.clone(),
            vantage: trace.vantage,
            sender,
            analyzer,
            frames: FrameInference::default(),
            packets: PacketTrace::default(),
            epoch: trace.epoch.map(Duration::as_nanos),
            begin: None,
        }
    }

    /// Time of an event since the first, whatever the clock of the log counts from.
    fn since_begin(&mut self, at: u64) -> u64 {
        let begin = *self.begin.get_or_insert_with(|| {
            self.packets.begins_at(self.epoch, at);
            self.frames.begins_at(at);
            at
        });
        at.saturating_sub(begin)
    }
}

/// Reads the traces of a file.
pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
    all: &mut QuicLogs,
) -> Result<(), Reason> {
    let QuicLogs { logs, left, keeps } = all;
    let keeps = *keeps;
    let compare = *left > 0;
    let earlier = logs.len();
    let mut open: Option<OpenTrace> = None;
    let mut buffer = RecordBuffer::default();
    let mut close = |trace: Option<OpenTrace>| {
        let Some(trace) = trace else { return };
        let OpenTrace { title, group, vantage, sender, mut analyzer, mut frames, packets, .. } =
            trace;
        frames.finish(&mut analyzer);
        if let Some(analysis) = analyzer.finish() {
            let number_in_file = (logs.len() - earlier) as u32;
            let connection = QuicConnection {
                file: number,
                number: number_in_file,
                title,
                group,
                vantage,
                sender,
                analysis,
                decrypted: None,
            };
            logs.push((connection, packets));
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
                open = Some(OpenTrace::new(trace, LoggedSender::of_header(&info), keeps));
            }
            Ok(QlogItem::Event(event)) => {
                file.frames += 1;
                let trace =
                    open.get_or_insert_with(|| OpenTrace::new(&Trace::default(), None, keeps));
                if let QlogData::Scenario { details, .. } = &event.data {
                    trace.sender = LoggedSender::of_scenario(details).or(trace.sender.take());
                }
                let record = buffer.record(&event);
                let logged_at = event.at.as_nanos();
                let at = trace.since_begin(logged_at);
                if trace.frames.is_idle() {
                    trace.analyzer.push(at, file.frames, &record);
                } else {
                    let packets = match &event.data {
                        QlogData::MetricsUpdated(metrics) => metrics.packets_in_flight,
                        _ => None,
                    };
                    let OpenTrace { frames, analyzer, .. } = trace;
                    frames.push((at, file.frames), &record, packets, analyzer);
                }
                if compare {
                    trace.packets.push(logged_at, &record, left);
                }
            }
        }
    }
    close(open.take());
    if logs.len() == earlier {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(())
}
