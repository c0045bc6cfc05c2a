//! Round-trip times from a capture.
//!
//! From data to their ACK, for data sent once (Karn and Partridge, SIGCOMM 1987), by the newest
//! data an ACK reports, cumulative or by SACK; and from an ACK's timestamp to the first data that
//! echo it (RFC 7323 section 3): the round trip to the sender, which a capture at the receiver
//! shows.

use std::collections::VecDeque;

use units::{Duration, Instant};

/// No packet takes longer than an hour; clocks that jump can give more.
const MAX_RTT: Duration = Duration::from_secs(3_600);

/// Most timestamps of ACKs that wait for their echo.
const MAX_PENDING_ECHOES: usize = 512;

#[derive(Debug, Clone, Default)]
pub(crate) struct RoundTrip {
    /// Latest sample.
    pub(crate) latest: Option<Duration>,
    pub(crate) min: Option<Duration>,
    pub(crate) max: Option<Duration>,
    /// Smoothed as RFC 6298 does.
    pub(crate) smoothed: Option<Duration>,
    pub(crate) samples: u64,
    /// Round trip of the last data that were acknowledged in order, and when the sender had their ACK.
    pub(crate) of_front: Option<(Duration, Instant)>,
    /// What the round trip to the sender is at most, by the first data.
    bound: Option<Duration>,
    min_to_receiver: Option<Duration>,
    min_to_sender: Option<Duration>,
    /// Shortest round trip to the sender in the last two windows of 16 samples; it delays the
    /// pending ACKs.
    recent_to_sender: [Option<Duration>; 2],
    recent_count: u32,
    waiting: VecDeque<(u32, Instant)>,
    last_stamp: Option<u32>,
}

impl RoundTrip {
    /// Takes the round trips of the handshake.
    pub(crate) fn opening(&mut self, to_receiver: Option<Duration>, to_sender: Option<Duration>) {
        let [to_receiver, to_sender] =
            [to_receiver, to_sender].map(|part| part.map(|rtt| rtt.min(MAX_RTT)));
        (self.min_to_receiver, self.min_to_sender) = (to_receiver, to_sender);
        if let (Some(to_receiver), Some(to_sender)) = (to_receiver, to_sender) {
            self.sample(to_receiver + to_sender);
        }
    }

    /// Records an ACK that passed towards the sender.
    pub(crate) fn ack_passed(&mut self, at: Instant, stamp: Option<u32>) {
        let Some(stamp) = stamp else { return };
        if self.last_stamp == Some(stamp) {
            return;
        }
        self.last_stamp = Some(stamp);
        if self.waiting.len() == MAX_PENDING_ECHOES {
            self.waiting.pop_front();
        }
        self.waiting.push_back((stamp, at));
    }

    /// Processes the timestamp echo of data; true if it gave a sample. `after_pause`: the data came
    /// after a pause, so the application may have delayed them beyond the RTT.
    pub(crate) fn echo(&mut self, at: Instant, echo: u32, whole: bool, after_pause: bool) -> bool {
        let mut took = None;
        while let Some(&(stamp, passed_at)) = self.waiting.front() {
            let ahead = echo.wrapping_sub(stamp) as i32;
            if ahead < 0 {
                break;
            }
            self.waiting.pop_front();
            if ahead == 0 {
                took = Some(at.since(passed_at).min(MAX_RTT));
            }
        }
        let Some(took) = took.filter(|_| !after_pause) else { return false };
        self.min_to_sender = Some(self.min_to_sender.map_or(took, |min| min.min(took)));
        let current = &mut self.recent_to_sender[0];
        *current = Some(current.map_or(took, |min| min.min(took)));
        self.recent_count += 1;
        if self.recent_count >= 16 {
            self.recent_to_sender[1] = self.recent_to_sender[0].take();
            self.recent_count = 0;
        }
        if whole {
            self.sample(took + self.min_to_receiver.unwrap_or_default());
        }
        true
    }

    /// Takes the time from data to their ACK. `rest` is the round trip on the other side of the
    /// capture point, for captures where this part contains the queue delay.
    pub(crate) fn acked(&mut self, took: Duration, rest: Option<Duration>) {
        let took = took.min(MAX_RTT);
        self.min_to_receiver = Some(self.min_to_receiver.map_or(took, |min| min.min(took)));
        if let Some(rest) = rest {
            self.sample(took + rest);
        }
    }

    /// Shortest round trip from the capture point to the receiver; `None` without a sample.
    pub(crate) const fn shortest_to_receiver(&self) -> Option<Duration> {
        self.min_to_receiver
    }

    /// Shortest round trip from the capture point to the sender; `None` without a sample.
    pub(crate) const fn shortest_to_sender(&self) -> Option<Duration> {
        self.min_to_sender
    }

    /// Shortest round trip from the capture point to the receiver, 0 without a sample.
    pub(crate) fn to_receiver(&self) -> Duration {
        self.min_to_receiver.unwrap_or_default()
    }

    /// Shortest round trip from the capture point to the sender, 0 without a sample.
    pub(crate) fn to_sender(&self) -> Duration {
        self.min_to_sender.unwrap_or_default()
    }

    /// Recent round trip from the capture point to the sender: from an ACK to the data it triggers.
    pub(crate) fn recent_rtt_to_sender(&self) -> Duration {
        self.recent_rtt_of_data_to_sender().or(self.min_to_sender).unwrap_or_default()
    }

    /// Recent round trip from the capture point to the sender that data showed; `None` before the first.
    pub(crate) fn recent_rtt_of_data_to_sender(&self) -> Option<Duration> {
        self.recent_to_sender.iter().flatten().min().copied()
    }

    /// The smoothed round-trip time, or else the shortest, or else its bound; 0 without any.
    pub(crate) fn usual(&self) -> Duration {
        self.smoothed.or(self.least()).unwrap_or_default()
    }

    /// The shortest round-trip time; before the first sample the bound of its part to the sender, if there is one.
    pub(crate) fn least(&self) -> Option<Duration> {
        self.min.or(self.bound)
    }

    /// The first data answer a packet that passed here this time ago: a bound of the round trip to the sender, since its
    /// application may have delayed them.
    pub(crate) fn bound_by_first_data(&mut self, took: Duration) {
        let took = took.min(MAX_RTT);
        self.bound = Some(took);
        self.min_to_sender.get_or_insert(took);
    }

    fn sample(&mut self, took: Duration) {
        self.latest = Some(took);
        self.min = Some(self.min.map_or(took, |min| min.min(took)));
        self.max = Some(self.max.map_or(took, |max| max.max(took)));
        self.smoothed = Some(self.smoothed.map_or(took, |old| old - old / 8 + took / 8));
        self.samples += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_jumps_give_no_rtt_of_years() {
        let mut rtt = RoundTrip::default();
        rtt.opening(Some(Duration::MAX), Some(Duration::from_nanos(u64::MAX - 1)));
        rtt.acked(Duration::MAX, Some(rtt.to_sender()));
        rtt.ack_passed(Instant::ZERO, Some(7));
        assert!(rtt.echo(Instant::MAX, 7, true, false));
        assert_eq!((rtt.max, rtt.recent_rtt_to_sender()), (Some(MAX_RTT * 2), MAX_RTT));
    }
}
