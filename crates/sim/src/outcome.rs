//! Results of a run.

use std::borrow::Cow;

use units::{Bytes, Duration, Instant};

/// Results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// One per flow, in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// The latencies of all connections of each group, in the order of [`Scenario::groups`]; `None`
    /// without any.
    ///
    /// [`Scenario::groups`]: crate::scenario::Scenario::groups
    pub group_latencies: Vec<Option<Latency>>,
    /// Data packets that the senders transmitted, retransmissions included.
    pub segments: u64,
    /// Virtual time at which the run ended.
    pub ended: Instant,
}

/// Results of one flow.
///
/// Sender statistics are those of the host that sends the counted bytes: the connecting one, or the
/// answering one where the application makes requests.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowOutcome {
    /// Name in the scenario.
    pub name: String,
    /// Profile of the sending host.
    pub profile: &'static str,
    /// Congestion control of the sending host; of a real kernel, the one that its socket has.
    pub cc: Cow<'static, str>,
    /// Payload bytes the receiving application has read; with requests, those of the responses.
    pub bytes: Bytes,
    /// Whether the transfer completed.
    pub finished: bool,
    /// From the first SYN to the last byte read; to the end of the run if it did not finish.
    pub duration: Duration,
    /// Data packets retransmitted.
    pub retransmitted_segments: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Times the retransmission timer fired.
    pub rtos: u64,
    /// Recoveries and timeouts that proved spurious and were undone.
    pub spurious_recoveries: u64,
    /// Largest congestion window.
    pub max_cwnd: Bytes,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Minimum round-trip time measured by the sender, in the granularity of its stack.
    pub min_rtt: Option<Duration>,
    /// Bytes of QUIC packets with stream data that reached the receiver, QUIC headers included, UDP
    /// and IP headers excluded; `None` for TCP.
    pub received_packet_bytes: Option<Bytes>,
    /// Response times of requests, delays of frames or others; `None` without any.
    pub latency: Option<Latency>,
    /// What the player of a video did; `None` for other applications.
    pub video: Option<Box<VideoOutcome>>,
    /// Datagrams sent and received; `None` for a connection.
    pub datagrams: Option<DatagramOutcome>,
    /// The connections of a group, where the other figures are their sums; `None` for a single
    /// connection.
    pub group: Option<Box<GroupOutcome>>,
}

/// Completion of the connections of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupOutcome {
    /// Connections that began within the run.
    pub flows: u64,
    /// Connections that finished.
    pub finished: u64,
    /// Median, 95th and 99th percentile and maximum of the completion times; empty if none finished.
    pub completion: Vec<Duration>,
    /// The same of the slowdowns: completion times over those of an empty path.
    pub slowdown: Vec<f64>,
}

/// What the players of videos did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VideoOutcome {
    /// Number of players.
    pub players: u64,
    /// Chunks that arrived.
    pub chunks: u64,
    /// Sum of the bit rates of these chunks, in bit/s.
    pub bitrate_sum: u128,
    /// Chunks with another bit rate than the one before.
    pub switches: u64,
    /// Times that playback stopped with an empty buffer, after its start.
    pub stalls: u64,
    /// Time that playback was stopped then.
    pub stalled: Duration,
    /// Time from the first SYN to the start of playback of each player that has started, in ascending
    /// order.
    pub startup: Vec<Duration>,
}

impl VideoOutcome {
    /// Mean bit rate of the chunks, in bit/s; `None` without a chunk.
    pub fn mean_bitrate(&self) -> Option<u64> {
        self.bitrate_sum.checked_div(u128::from(self.chunks)).map(|mean| mean as u64)
    }

    /// Median of the startup times; of an even number, the lower of the two middle values.
    pub fn median_startup(&self) -> Option<Duration> {
        let middle = self.startup.len().checked_sub(1)? / 2;
        self.startup.get(middle).copied()
    }

    /// Adds the players of `other`.
    pub fn add(&mut self, other: &Self) {
        self.players += other.players;
        self.chunks += other.chunks;
        self.bitrate_sum += other.bitrate_sum;
        self.switches += other.switches;
        self.stalls += other.stalls;
        self.stalled += other.stalled;
        self.startup.extend_from_slice(&other.startup);
        self.startup.sort_unstable();
    }
}

/// What the times of a [`Latency`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyKind {
    /// Response times, each from the write of the request to the last byte read.
    Requests,
    /// Delays of the chunks of a paced application, each from the time at which it was due to be
    /// written to its last byte read.
    Frames,
    /// Times to load a web page: the first from the SYN, others from the write of the first request, to
    /// the last byte of the last object read.
    Pages,
    /// Round trips of echo requests.
    Pings,
    /// One-way delays of datagrams.
    Datagrams,
}

/// Datagrams of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramOutcome {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that arrived, or whose replies did, each once.
    pub received: u64,
}

/// Response times of requests, or other delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// What the times are.
    pub kind: LatencyKind,
    /// Requests that were answered, pages that were loaded, or frames or datagrams that arrived.
    pub requests: u64,
    /// The shortest.
    pub min: Duration,
    /// The median; of an even number, the lower of the two middle values.
    pub median: Duration,
    /// The time that 95 of 100 do not exceed; `None` if it is not measured.
    pub p95: Option<Duration>,
    /// The time that 99 of 100 do not exceed; `None` if it is not measured.
    pub p99: Option<Duration>,
    /// The longest.
    pub max: Duration,
}

impl Latency {
    /// Computes the statistics of these durations; `None` if there are none.
    pub(crate) fn of(mut spans: Vec<Duration>, kind: LatencyKind) -> Option<Self> {
        spans.sort_unstable();
        let (&min, &max) = spans.first().zip(spans.last())?;
        let median = spans[(spans.len() - 1) / 2];
        let most = |percent: usize| Some(spans[(spans.len() * percent).div_ceil(100) - 1]);
        let (p95, p99) = (most(95), most(99));
        Some(Self { kind, requests: spans.len() as u64, min, median, p95, p99, max })
    }
}

impl FlowOutcome {
    /// Payload read per second, in bit/s; 0 if no time passed.
    pub fn goodput_bps(&self) -> f64 {
        let seconds = self.duration.as_secs_f64();
        if seconds > 0.0 { self.bytes.get() as f64 * 8.0 / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1 to 200 ms: 190 do not exceed 190 ms, 198 do not exceed 198 ms.
    #[test]
    fn percentiles_are_those_of_the_requests() {
        let ms = Duration::from_millis;
        let latency = Latency::of((1..=200).rev().map(ms).collect(), LatencyKind::Frames).unwrap();
        assert_eq!((latency.requests, latency.min, latency.max), (200, ms(1), ms(200)));
        assert_eq!(
            (latency.median, latency.p95, latency.p99),
            (ms(100), Some(ms(190)), Some(ms(198)))
        );
        let one = Latency::of(vec![ms(7)], LatencyKind::Frames).unwrap();
        assert_eq!((one.median, one.p95, one.p99), (ms(7), Some(ms(7)), Some(ms(7))));
    }
}
