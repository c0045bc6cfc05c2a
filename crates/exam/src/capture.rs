//! Runs a scenario and writes what a user's capture of it would hold.

use export::capture::PcapngRecorder;
use scenario::{Overrides, load};
use sim::scenario::Scenario;
use trace::capture::{CaptureItem, CaptureReader};
use units::Duration;

/// Where and how the transfer was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureSettings {
    /// The points.
    pub point: CapturePoint,
    /// The capture began after the handshake.
    pub without_syn: bool,
    /// Bytes kept of each packet; `None`: all.
    pub snaplen: Option<usize>,
}

/// A capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturePoint {
    /// At the sender of the data.
    Sender,
    /// At its receiver.
    Receiver,
    /// At both.
    Both,
}

impl CapturePoint {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Both => "both ends",
        }
    }
}

/// Captures of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunCapture {
    /// At the client and at the server, as pcapng with all packets.
    pcapng: Vec<u8>,
}

/// Times of one run of the transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TransferTime {
    pub(crate) duration: Duration,
    /// All data arrived.
    pub(crate) finished: bool,
}

/// Parses a scenario.
pub(crate) fn parse(text: &str) -> Result<Scenario, String> {
    let loaded = load(text, "draw.toml", &Overrides::default());
    loaded
        .map(|loaded| loaded.scenario)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Runs a scenario; its first flow is the transfer.
pub(crate) fn time(scenario: &Scenario) -> Result<TransferTime, String> {
    run(scenario, &mut record_nothing())
}

/// Runs a scenario and captures it at both hosts.
pub(crate) fn captured(scenario: &Scenario) -> Result<(TransferTime, RunCapture), String> {
    let mut recorder = PcapngRecorder::new(scenario, &[0, 1], "", Vec::new())
        .map_err(|error| error.to_string())?;
    let time = run(scenario, &mut recorder)?;
    let pcapng = recorder.finish().map_err(|error| error.to_string())?;
    Ok((time, RunCapture { pcapng }))
}

fn record_nothing() -> impl sim::Observer {
    record::NullRecorder
}

fn run<O: sim::Observer>(scenario: &Scenario, observer: &mut O) -> Result<TransferTime, String> {
    let outcome = sim::run_shared(scenario, observer).map_err(|error| error.to_string())?;
    let flow = outcome.flows.first().ok_or("no flow")?;
    Ok(TransferTime { duration: flow.duration, finished: flow.finished })
}

/// Flags of a segment: its handshake.
const SYN: u8 = 2;
/// LINKTYPE_RAW: a frame is an IP packet.
const LINKTYPE_RAW: u32 = 101;

impl RunCapture {
    /// The capture at one host as a pcap file (draft-ietf-opsawg-pcap), in ns.
    ///
    /// `host`: 0 for the client, 1 for the server.
    pub(crate) fn pcap(&self, host: u32, settings: &CaptureSettings) -> Result<Vec<u8>, String> {
        let snaplen = settings.snaplen.unwrap_or(262_144);
        let mut out = Vec::with_capacity(self.pcapng.len() / 2);
        for word in [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, snaplen as u32, LINKTYPE_RAW] {
            out.extend(word.to_le_bytes());
        }
        let mut reader = CaptureReader::new(&self.pcapng[..]).map_err(|error| error.to_string())?;
        while let Some(item) = reader.next().map_err(|error| error.to_string())? {
            let CaptureItem::Frame(frame) = item else { continue };
            let is_dropped =
                settings.without_syn && flags(frame.bytes).is_some_and(|f| f & SYN != 0);
            if frame.interface != host || is_dropped {
                continue;
            }
            let at = frame.at.unwrap_or_default().as_nanos();
            let kept = &frame.bytes[..frame.bytes.len().min(snaplen)];
            let seconds = (at / 1_000_000_000) as u32;
            for word in [seconds, (at % 1_000_000_000) as u32, kept.len() as u32, frame.original] {
                out.extend(word.to_le_bytes());
            }
            out.extend(kept);
        }
        Ok(out)
    }
}

/// The TCP flags of an IPv4 packet.
fn flags(packet: &[u8]) -> Option<u8> {
    let header = usize::from(packet.first()? & 15) * 4;
    packet.get(header + 13).copied()
}
