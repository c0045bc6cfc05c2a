//! Recorded state of one sender at every event (`kstate_f<N>.csv.gz`).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use csv::Reader;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Deserializer};

use super::super::rows::GoldenError;

/// `TCP_INFINITE_SSTHRESH`, recorded as `inf`.
const UNSET: u32 = 0x7fff_ffff;

/// The columns of a [`KstateRow`].
pub(super) const COLUMNS: [&str; 38] = [
    "t_us",
    "ev",
    "seq",
    "end",
    "una",
    "nxt",
    "cwnd",
    "cwnd_cnt",
    "ssthresh",
    "packets_out",
    "sacked_out",
    "inflight",
    "delivered",
    "lost_total",
    "prr_delivered",
    "reordering",
    "rack_rtt_us",
    "srtt_us",
    "rto_ms",
    "ca_state",
    "new_state",
    "retransmits",
    "cwnd_limited",
    "max_packets_out",
    "pacing_Bps",
    "cu_cnt",
    "cu_last_max",
    "cu_last_cwnd",
    "cu_last_time",
    "cu_origin",
    "cu_K",
    "cu_delay_min_us",
    "cu_epoch_start",
    "cu_ack_cnt",
    "cu_tcp_cwnd",
    "hy_sample_cnt",
    "hy_found",
    "hy_curr_rtt_us",
];

/// Event of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum KstateEvent {
    /// An ACK arrived; the row has the state before it.
    #[serde(rename = "A")]
    Ack,
    /// A packet or burst is about to be sent; the state does not include it yet.
    #[serde(rename = "X")]
    Sent,
    /// A packet was retransmitted.
    #[serde(rename = "R")]
    Repeated,
    /// The congestion state is about to change (`icsk_ca_state`).
    #[serde(rename = "C")]
    State,
}

/// Congestion states (`icsk_ca_state`).
pub(super) mod ca {
    pub(in super::super) const CWR: u32 = 2;
    pub(in super::super) const RECOVERY: u32 = 3;
    pub(in super::super) const LOSS: u32 = 4;
}

/// One row; the names are the recorder's.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct KstateRow {
    /// Microseconds since the first SYN; negative before it.
    pub(super) t_us: f64,
    pub(super) ev: KstateEvent,
    /// First byte and end of the sent data.
    pub(super) seq: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) una: i64,
    pub(super) nxt: i64,
    pub(super) cwnd: u32,
    pub(super) cwnd_cnt: u32,
    #[serde(deserialize_with = "threshold")]
    pub(super) ssthresh: u32,
    pub(super) packets_out: u32,
    pub(super) sacked_out: u32,
    pub(super) inflight: u32,
    pub(super) delivered: u32,
    pub(super) lost_total: u32,
    pub(super) prr_delivered: u32,
    pub(super) reordering: u32,
    pub(super) rack_rtt_us: u32,
    pub(super) srtt_us: u32,
    pub(super) rto_ms: u32,
    pub(super) ca_state: u32,
    /// The next state, in rows of [`KstateEvent::State`].
    pub(super) new_state: Option<u32>,
    pub(super) retransmits: Option<u32>,
    pub(super) cwnd_limited: Option<u32>,
    pub(super) max_packets_out: u32,
    #[serde(rename = "pacing_Bps", deserialize_with = "rate")]
    pub(super) pacing_rate: u64,
    #[serde(rename = "cu_cnt")]
    pub(super) cnt: Option<u32>,
    #[serde(rename = "cu_last_max")]
    pub(super) last_max: Option<u32>,
    #[serde(rename = "cu_last_cwnd")]
    pub(super) last_cwnd: Option<u32>,
    #[serde(rename = "cu_last_time")]
    pub(super) last_time: Option<u64>,
    #[serde(rename = "cu_origin")]
    pub(super) origin: Option<u32>,
    #[serde(rename = "cu_K")]
    pub(super) k: Option<u32>,
    #[serde(rename = "cu_delay_min_us")]
    pub(super) delay_min: Option<u32>,
    #[serde(rename = "cu_epoch_start")]
    pub(super) epoch_start: Option<u64>,
    #[serde(rename = "cu_ack_cnt")]
    pub(super) ack_cnt: Option<u32>,
    #[serde(rename = "cu_tcp_cwnd")]
    pub(super) tcp_cwnd: Option<u32>,
    #[serde(rename = "hy_sample_cnt")]
    pub(super) sample_cnt: Option<u32>,
    #[serde(rename = "hy_found")]
    pub(super) found: Option<u32>,
    #[serde(rename = "hy_curr_rtt_us")]
    pub(super) curr_rtt: Option<u32>,
    /// Phase of BBR.
    #[serde(rename = "bbr_mode", default)]
    pub(super) mode: Option<String>,
}

fn threshold<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    finite(from).map(|value| value.map_or(UNSET, |value| value as u32))
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    finite(from).map(|value| value.unwrap_or(u64::MAX))
}

/// A number; `None` for `inf`.
fn finite<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = <&str>::deserialize(from)?;
    match text {
        "inf" => Ok(None),
        _ => text.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

impl KstateRow {
    /// Returns the number of packets of `mss` bytes that are sent.
    pub(super) fn packets(&self, mss: i64) -> u32 {
        let bytes = self.end.unwrap_or(0) - self.seq.unwrap_or(0);
        u32::try_from((bytes.max(0) + mss - 1) / mss).unwrap_or(u32::MAX)
    }
}

/// Controller of a recording, by its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordedAlgorithm {
    Reno,
    Cubic,
    Bbr,
}

/// All rows of one sender; row 0 is on line 2.
pub(super) struct KstateRecording {
    pub(super) algorithm: RecordedAlgorithm,
    pub(super) samples: Vec<KstateRow>,
}

impl KstateRecording {
    /// Reads a compressed file.
    pub(super) fn open(file: &Path) -> Result<Self, GoldenError> {
        let file = File::open(file).map_err(|error| GoldenError::at(0, error.to_string()))?;
        Self::read(MultiGzDecoder::new(file))
    }

    /// Reads CSV text.
    pub(super) fn read(text: impl Read) -> Result<Self, GoldenError> {
        let mut reader = Reader::from_reader(text);
        let garbled = |error: csv::Error| {
            let line = error.position().map_or(1, csv::Position::line);
            GoldenError::at(line, error.to_string())
        };
        let names = reader.headers().map_err(garbled)?;
        let algorithm = match names {
            _ if names.iter().any(|name| name == "cu_cnt") => RecordedAlgorithm::Cubic,
            _ if names.iter().any(|name| name == "bbr_mode") => RecordedAlgorithm::Bbr,
            _ => RecordedAlgorithm::Reno,
        };
        let samples: Vec<KstateRow> =
            reader.deserialize().collect::<Result<_, _>>().map_err(garbled)?;
        if samples.is_empty() {
            return Err(GoldenError::at(0, "no rows"));
        }
        Ok(Self { algorithm, samples })
    }
}
