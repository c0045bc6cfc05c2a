//! What a run measured.

use units::{Bytes, Duration, Instant};

/// Results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// One for each flow, in the order of the scenario.
    pub flows: Vec<FlowOutcome>,
    /// Data packets that the senders put on their paths, those sent again included.
    pub segments: u64,
    /// Virtual time at which the run ended.
    pub ended: Instant,
}

/// Results of one flow.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowOutcome {
    /// Name in the scenario.
    pub name: String,
    /// Profile of the sending host.
    pub profile: &'static str,
    /// Congestion control of the sending host.
    pub cc: &'static str,
    /// Payload bytes the receiving application has read.
    pub bytes: Bytes,
    /// Did the transfer come to its end?
    pub finished: bool,
    /// From the first SYN to the last byte read; to the end of the run if it did not finish.
    pub duration: Duration,
    /// Data packets sent again.
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
    /// Least round trip the sender measured, in the granularity of its stack.
    pub min_rtt: Option<Duration>,
}

impl FlowOutcome {
    /// Payload read per second, in bit/s; 0 if no time passed.
    pub fn goodput_bps(&self) -> f64 {
        let seconds = self.duration.as_secs_f64();
        if seconds > 0.0 { self.bytes.get() as f64 * 8.0 / seconds } else { 0.0 }
    }
}
