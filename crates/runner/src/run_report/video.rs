//! What the players of videos did.

use serde::{Deserialize, Serialize};
use sim::{RunOutcome, VideoOutcome};
use units::Duration;

use super::{aligned, spaced};

/// What the player of a video did, or the players of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VideoReport {
    /// Number of players; with several, the counts are their sums.
    pub players: u64,
    /// Chunks that arrived.
    pub chunks: u64,
    /// Mean bit rate of these chunks, in bit/s; `None` without a chunk.
    pub bitrate_bps: Option<u64>,
    /// Chunks with another bit rate than the one before.
    pub switches: u64,
    /// Times that playback stopped with an empty buffer, after its start.
    pub stalls: u64,
    /// Time that playback was stopped then.
    pub stall_s: f64,
    /// From the first SYN to the start of playback; of several players that have started, the median;
    /// `None` if none has.
    pub startup_s: Option<f64>,
}

impl From<&VideoOutcome> for VideoReport {
    fn from(video: &VideoOutcome) -> Self {
        Self {
            players: video.players,
            chunks: video.chunks,
            bitrate_bps: video.mean_bitrate(),
            switches: video.switches,
            stalls: video.stalls,
            stall_s: video.stalled.as_secs_f64(),
            startup_s: video.median_startup().map(Duration::as_secs_f64),
        }
    }
}

/// The headings of the table of videos, and the row of each flow that plays one.
pub fn video_rows(outcome: &RunOutcome) -> Vec<[String; 8]> {
    let head =
        ["flow", "players", "chunks", "bit rate", "switches", "stalls", "stalled", "startup"];
    let short = |span: Duration| spaced(Duration::from_micros((span.as_nanos() + 500) / 1_000));
    let rows = outcome.flows.iter().filter_map(|flow| {
        let video = flow.video.as_deref()?;
        let rate = video.mean_bitrate().map(|rate| format!("{:.2} Mbit/s", rate as f64 / 1e6));
        Some([
            flow.name.clone(),
            video.players.to_string(),
            video.chunks.to_string(),
            rate.unwrap_or_else(|| "–".to_owned()),
            video.switches.to_string(),
            video.stalls.to_string(),
            short(video.stalled),
            video.median_startup().map_or_else(|| "–".to_owned(), short),
        ])
    });
    core::iter::once(head.map(str::to_owned)).chain(rows).collect()
}

/// The table of videos after an empty line; nothing without a video.
pub(super) fn videos(outcome: &RunOutcome) -> String {
    let rows = video_rows(outcome);
    if rows.len() > 1 { format!("\n{}", aligned(&rows)) } else { String::new() }
}
