//! Rounds and bytes in flight at each transmission, for HyStart++.

use std::collections::VecDeque;

use units::Offset;

/// Rounds and bytes in flight at each transmission.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct HyStartReports {
    /// Number of the round (`current_round`), and the offset whose acknowledgment ends it
    /// (`roundends`).
    pub(super) round: u32,
    pub(super) round_end: Offset,
    /// An ACK was processed whose output is not complete.
    pub(super) ack_pending: bool,
    /// Ends of the segments outstanding, in order, each with the bytes in flight when it was last
    /// sent (`r_fas`).
    pub(super) flights: VecDeque<(Offset, u64)>,
    /// Samples of the ACK in progress, in microseconds, with that flight.
    pub(super) samples: Vec<(u64, u64)>,
}

impl HyStartReports {
    /// A segment was sent, new or retransmitted, with `flight` bytes then in flight.
    pub(super) fn on_sent(&mut self, start: Offset, end: Offset, flight: u64) {
        if self.flights.back().is_none_or(|&(last, _)| start >= last) {
            self.flights.push_back((end, flight));
            return;
        }
        let first = self.flights.partition_point(|&(last, _)| last <= start);
        for entry in self.flights.range_mut(first..).take_while(|entry| entry.0 <= end) {
            entry.1 = flight;
        }
    }

    /// The segment that begins at `start` showed a round trip.
    pub(super) fn on_rtt(&mut self, start: Offset, rtt_us: u64) {
        let at = self.flights.partition_point(|&(end, _)| end <= start);
        if let Some(&(_, flight)) = self.flights.get(at) {
            self.samples.push((rtt_us, flight));
        }
    }

    /// Everything before `una` was acknowledged.
    pub(super) fn forget_before(&mut self, una: Offset) {
        let gone = self.flights.partition_point(|&(end, _)| end <= una);
        self.flights.drain(..gone);
    }

    /// The output that follows an ACK is complete: does a round begin?
    pub(super) fn begins_round(&mut self, una: Offset, max: Offset) -> Option<u32> {
        if !core::mem::take(&mut self.ack_pending) {
            return None;
        }
        // The draft ends a round at `una == round_end` alone: an application that pauses would then
        // end rounds without sending.
        if una > self.round_end || (una == self.round_end && max > una) {
            self.round += 1;
            self.round_end = max;
            return Some(self.round);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_carries_the_flight_of_the_last_transmission() {
        let mut reports = HyStartReports::default();
        for n in 0..4_u64 {
            reports.on_sent(Offset(1 + 1_000 * n), Offset(1_001 + 1_000 * n), 1_000 * (n + 1));
        }
        reports.on_sent(Offset(1_001), Offset(2_001), 3_500);
        reports.on_rtt(Offset(1_001), 20);
        reports.on_rtt(Offset(2_001), 30);
        assert_eq!(reports.samples, [(20, 3_500), (30, 3_000)]);
        reports.forget_before(Offset(2_001));
        assert_eq!(reports.flights, [(Offset(3_001), 3_000), (Offset(4_001), 4_000)]);
    }

    #[test]
    fn a_round_ends_when_what_was_outstanding_at_its_start_is_acknowledged() {
        let mut reports = HyStartReports::default();
        let mut ack = |una, max| {
            reports.ack_pending = true;
            reports.begins_round(Offset(una), Offset(max))
        };
        assert_eq!(ack(1, 10_001), Some(1));
        assert_eq!(ack(5_001, 15_001), None);
        assert_eq!(ack(10_001, 10_001), None, "nothing is outstanding");
        assert_eq!(ack(10_001, 20_001), Some(2));
        assert_eq!(ack(20_001, 30_001), Some(3));
        assert_eq!(reports.begins_round(Offset(40_001), Offset(50_001)), None, "no ACK");
    }
}
