//! Causes of lost time, and the cause of each recovery episode.

use units::Duration;

use crate::FlowAnalysis;
use crate::capture_point::CapturePoint;
use crate::episodes::{RecoveryEpisode, RecoveryTrigger};
use crate::path::{PathEstimate, queue_noise};

/// Cause of lost time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LostTimeCause {
    /// The handshake.
    Opening,
    /// The first slow start.
    SlowStart,
    /// A first slow start that overflowed the queue, and its recovery.
    Overshoot,
    /// Linear growth after a slow start that ended without a loss.
    EarlyExit,
    /// Slow start after an idle time.
    IdleRestart,
    /// Losses with an empty queue.
    Random,
    /// Losses with a full queue.
    QueueOverflow,
    /// ECN marks.
    Mark,
    /// Losses not followed by data that would have revealed them.
    TailLoss,
    /// A timeout after the loss of the whole flight.
    Timeout,
    /// A spurious fast recovery.
    SpuriousFastRecovery,
    /// A spurious timeout.
    SpuriousRto,
    /// The receive window.
    Window,
    /// A receiving application that reads late.
    Reader,
    /// The application.
    Application,
    /// Waits of ACKs on their way back.
    WayBack,
}

pub(crate) const LOST_TIME_CAUSES: usize = 16;

/// The fraction `share` of `time`, rounded down.
pub(crate) fn fraction(time: Duration, share: f64) -> Duration {
    Duration::from_nanos((time.as_nanos() as f64 * share) as u64)
}

/// Cause of a recovery episode.
pub(crate) fn blame(
    episode: &RecoveryEpisode,
    flow: &FlowAnalysis,
    path: &PathEstimate,
) -> LostTimeCause {
    let timer = episode.timeouts > 0;
    if episode.trigger == RecoveryTrigger::Mark {
        return LostTimeCause::Mark;
    }
    if episode.trigger == RecoveryTrigger::Inferred {
        return if episode.tail { LostTimeCause::TailLoss } else { LostTimeCause::Timeout };
    }
    // Expiry after expiry, though the ACKs passed the capture point: the path back is out.
    if episode.timeouts >= 2 && episode.acked_before >= episode.retransmitted {
        return LostTimeCause::Timeout;
    }
    if episode.spurious > 0 && episode.spurious >= episode.retransmitted {
        return if timer {
            LostTimeCause::SpuriousRto
        } else {
            LostTimeCause::SpuriousFastRecovery
        };
    }
    // Tail losses: no packet followed that would have made the receiver report them. After the
    // recovery there was little new data to send.
    // A chain of expiries is an outage, wherever in the data it began.
    if episode.timeouts >= 2 {
        return LostTimeCause::Timeout;
    }
    let at_end = episode.sent_above * 2 < episode.window;
    if episode.trigger == RecoveryTrigger::Probe || (timer && at_end) {
        return LostTimeCause::TailLoss;
    }
    // Where most of the flight arrived, the path was not silent: the repair of single losses failed. What is not repaired
    // yet says nothing of that.
    let lost = episode.retransmitted - episode.spurious;
    if timer && (!episode.over || lost * flow.mss * 2 >= episode.flight) {
        return LostTimeCause::Timeout;
    }
    let base = path.base_rtt.unwrap_or_default();
    let first = flow.episodes.first().is_some_and(|e| e.begin == episode.begin);
    // Random loss of a sixteenth of a window at once takes a loss rate of 6 %; then half of the
    // longest queue is enough, for the first loss may have come before the queue was full.
    let window = episode.window.max(episode.flight);
    let many = lost * flow.mss * 16 >= window;
    // A receiver sees few round trips: what came through the queue shows it by its timestamps. Bursts are lost of short
    // queues too; one of half a round trip, and many packets, are an overflow.
    let there = wait_on_way_there(episode, flow);
    let there = if many && there * 2 >= base { there } else { Duration::ZERO };
    let waited = episode.rtt.saturating_sub(base).max(there);
    // A queue that overflows is at its longest.
    let longest = path.queue.max(waited);
    let full = if many { waited * 2 >= longest } else { waited * 4 >= longest * 3 };
    if waited < queue_noise(base) || !full {
        return LostTimeCause::Random;
    }
    if first {
        // Slow start sends two packets for each that leaves the queue until the first loss is
        // reported one RTT later, so it loses many packets (RFC 9406 section 1). A sixteenth of the
        // window leaves room for pacing and for a late overflow.
        if many { LostTimeCause::QueueOverflow } else { LostTimeCause::Random }
    } else {
        LostTimeCause::QueueOverflow
    }
}

/// How long data waited on their way to a capture at the receiver in the round of an episode and the one before.
fn wait_on_way_there(episode: &RecoveryEpisode, flow: &FlowAnalysis) -> Duration {
    if flow.point != CapturePoint::Receiver {
        return Duration::ZERO;
    }
    let next = flow.rounds.partition_point(|round| round.start <= episode.begin);
    let rounds = &flow.rounds[next.saturating_sub(2)..next];
    rounds.iter().map(|round| round.wait_on_way_there).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;

    /// A timer that ends the repair of a few losses is no silence of the path.
    #[test]
    fn a_timeout_is_an_outage_if_most_of_the_flight_is_lost() {
        let start = Instant::ZERO;
        let flow = FlowAnalysis { mss: 1_000, ..FlowAnalysis::empty(start, start) };
        let path = PathEstimate::of(&flow);
        let of = |retransmitted| RecoveryEpisode {
            retransmitted,
            timeouts: 1,
            flight: 40_000,
            window: 40_000,
            sent_above: 40_000,
            over: true,
            ..RecoveryEpisode::new(RecoveryTrigger::Timer, start, 1)
        };
        assert_eq!(blame(&of(30), &flow, &path), LostTimeCause::Timeout);
        assert_eq!(blame(&of(4), &flow, &path), LostTimeCause::Random);
        let unanswered = RecoveryEpisode { over: false, ..of(1) };
        assert_eq!(blame(&unanswered, &flow, &path), LostTimeCause::Timeout);
    }
}
