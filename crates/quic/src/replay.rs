//! BBR of the draft, or a dialect of it, in the time of a log: it processes the packets that a sender sent, whatever it
//! would have sent itself.
//!
//! Delivery rates, recoveries and undo are those of the endpoint (`rate_based`). Persistent congestion is not seen.

use std::collections::BTreeMap;

use cc::{BbrDraft, bbr_draft::BbrDraftParams};
use units::{Duration, Instant, RandomStream};

use crate::controller::{AckedPackets, LostPackets};
use crate::packet::AckFrame;
use crate::rate_based::RateController;
use crate::rtt::{Rtt, RttArithmetic};
use crate::sent::{SentFrames, SentQuicPacket};

/// A round trip before the first sample, which no log lacks for long (RFC 9002 section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// A controller that follows a log.
#[derive(Debug, Clone)]
pub struct BbrReplay {
    rate: RateController,
    rtt: Rtt,
    /// Packets in flight, by number.
    outstanding: BTreeMap<u64, SentQuicPacket>,
    flight: u64,
    largest_acked: Option<u64>,
}

impl BbrReplay {
    /// A sender of datagrams of this size that begins with a window of `initial` bytes.
    pub fn new(dialect: &'static BbrDraftParams, datagram: u32, initial: u64) -> Self {
        let draws = RandomStream::named(1, "replay", "controller");
        let cc = BbrDraft::new(dialect, draws).counting_bytes(initial);
        Self {
            rate: RateController::draft(datagram.max(1), cc),
            rtt: Rtt::new(INITIAL_RTT, RttArithmetic::Nanoseconds),
            outstanding: BTreeMap::new(),
            flight: 0,
            largest_acked: None,
        }
    }

    /// A packet of `size` bytes is sent.
    pub fn sent(&mut self, at: Instant, number: u64, size: u32) {
        let delivery = self.rate.on_sent(at, u64::from(size), self.flight);
        self.flight += u64::from(size);
        let packet = SentQuicPacket {
            number,
            order: number,
            at,
            size,
            ack_eliciting: true,
            is_ect: false,
            frames: SentFrames::default(),
            delivery,
            settled: false,
        };
        self.outstanding.insert(number, packet);
    }

    /// The application has nothing to send.
    pub fn app_limited(&mut self) {
        self.rate.on_app_limited(self.flight);
    }

    /// Packets are declared lost.
    pub fn lost(&mut self, at: Instant, numbers: &[u64]) {
        let lost = self.take(numbers);
        let Some(newest) = lost.iter().map(|packet| packet.at).max() else { return };
        let bytes: u64 = lost.iter().map(|packet| u64::from(packet.size)).sum();
        self.flight -= bytes;
        self.rate.on_each_lost(at, &lost);
        let event = LostPackets {
            now: at,
            sent: newest,
            order: 0,
            latest: 0,
            persistent: false,
            packets: lost.len() as u64,
            flight: self.flight,
        };
        let _ = self.rate.on_lost(&event, bytes);
    }

    /// Packets are acknowledged, those among them that were declared lost too.
    pub fn acked(&mut self, at: Instant, numbers: &[u64]) {
        let ranges = numbers.iter().map(|&number| (number, number)).collect();
        let _ = self.rate.on_ack_ranges(at, &AckFrame { ranges, ..AckFrame::default() });
        let mut packets = self.take(numbers);
        packets.sort_by_key(|packet| core::cmp::Reverse(packet.number));
        let Some(&newest) = packets.first() else { return };
        let rtt = (self.largest_acked < Some(newest.number)).then(|| at.since(newest.at));
        self.largest_acked = self.largest_acked.max(Some(newest.number));
        if let Some(rtt) = rtt {
            self.rtt.on_sample(at, rtt, Duration::ZERO);
        }
        let _ = self.rate.on_acked(&AckedPackets {
            now: at,
            packets: &packets,
            flight: self.flight,
            prior_flight: self.flight,
            underused: false,
            rtt,
            smoothed: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            divisor: 1,
        });
        self.flight -= packets.iter().map(|packet| u64::from(packet.size)).sum::<u64>();
    }

    fn take(&mut self, numbers: &[u64]) -> Vec<SentQuicPacket> {
        numbers.iter().filter_map(|number| self.outstanding.remove(number)).collect()
    }

    /// The congestion window in bytes.
    pub fn window(&self) -> u64 {
        self.rate.control().window.get()
    }

    /// The controller.
    pub fn controller(&self) -> Option<&BbrDraft> {
        self.rate.bbr_draft()
    }

    /// Replaces what it drew for the current cycle of ProbeBW.
    pub fn redraw(&mut self, rounds: u64, wait: Duration) {
        self.rate.redraw(rounds, wait);
    }
}

#[cfg(test)]
mod tests {
    use cc::bbr_draft::{BbrDraftPhase, DRAFT};

    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Ten packets of 1,000 bytes, acknowledged after 20 ms: in Startup the window grows by what is delivered.
    #[test]
    fn a_window_follows_the_packets_of_a_log() {
        let mut replay = BbrReplay::new(&DRAFT, 1_000, 10_000);
        assert_eq!(replay.window(), 10_000);
        (0..10).for_each(|number| replay.sent(ms(0), number, 1_000));
        replay.acked(ms(20), &[0, 1]);
        assert_eq!(replay.window(), 12_000);
        assert_eq!(replay.controller().unwrap().model().min_rtt, Some(Duration::from_millis(20)));
        replay.acked(ms(21), &[2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((replay.window(), replay.flight), (20_000, 0));
    }

    /// Packets that the log does not have again, or never had, change nothing.
    #[test]
    fn unknown_numbers_are_ignored() {
        let mut replay = BbrReplay::new(&DRAFT, 1_000, 10_000);
        replay.sent(ms(0), 1, 1_000);
        replay.lost(ms(10), &[2]);
        replay.acked(ms(20), &[1]);
        let window = replay.window();
        replay.acked(ms(30), &[1, 7]);
        replay.lost(ms(30), &[1]);
        assert_eq!((replay.window(), replay.flight), (window, 0));
        assert_eq!(replay.controller().unwrap().model().state, BbrDraftPhase::Startup);
    }
}
