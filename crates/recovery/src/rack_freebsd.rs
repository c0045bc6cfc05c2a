//! Time-based loss detection of FreeBSD's RACK stack.
//!
//! Source: tcp_stacks/rack.c (rack_calc_thresh_rack, rack_check_recovery_mode, rack_timer_start,
//! rack_note_dsack, rack_exit_recovery; D31506); the kernel's rows in
//! `golden/freebsd/recovery.csv.gz`. Whole microseconds throughout, as in the kernel.

use units::{Duration, Instant, Offset};

use crate::sendmap::SentSegment;

/// RTT before the first sample.
const NO_RTT: Duration = Duration::from_secs(1);
/// Recoveries for which D-SACKs count (`dsack_persist`).
const DSACK_PERSIST: u8 = 16;
/// Duplicate ACKs that indicate a loss without SACK (`DUP_ACK_THRESHOLD`).
const DUP_THRESHOLD: u32 = 3;

/// The knobs of the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct ThreshParams {
    /// If true, a quarter of the RTT is always added; else `pkt_delay`, and a fraction of the RTT
    /// once reordering was seen (bit 0 of `rack_dsack_std_based`).
    pub std_based: bool,
    /// Rounds with D-SACKs widen the threshold (bit 1 of the same).
    pub use_dsack: bool,
    /// Added without `std_based` (`rack_pkt_delay`).
    pub pkt_delay: Duration,
    /// The fraction is the RTT shifted right by this; 0 counts as 2 (`rack_reorder_thresh`).
    pub reorder_shift: u32,
    /// How long reordering is remembered; zero for ever (`rack_reorder_fade`).
    pub reorder_fade: Duration,
    /// Maximum threshold (`rack_rto_max`).
    pub most: Duration,
    /// Minimum timer (`rack_min_to`).
    pub min_timer: Duration,
}

impl ThreshParams {
    /// The defaults of 14.3 and main.
    pub const DEFAULT: Self = Self {
        std_based: true,
        use_dsack: true,
        pkt_delay: Duration::from_millis(1),
        reorder_shift: 2,
        reorder_fade: Duration::from_secs(60),
        most: Duration::from_secs(4),
        min_timer: Duration::from_millis(1),
    };
}

/// The RACK state of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RackFreeBsd {
    params: ThreshParams,
    /// When reordering was last seen (`rc_reorder_ts`).
    reorder_ts: Option<Instant>,
    /// Rounds with D-SACKs (`num_dsack`).
    num_dsack: u32,
    dsack_persist: u8,
    /// Until this is acknowledged, further D-SACKs belong to the same round.
    dsack_round_end: Option<Offset>,
}

impl RackFreeBsd {
    /// No reordering seen, no D-SACK received.
    pub const fn new(params: ThreshParams) -> Self {
        Self { params, reorder_ts: None, num_dsack: 0, dsack_persist: 0, dsack_round_end: None }
    }

    /// A segment that had been passed arrived, or a retransmission was spurious.
    pub const fn on_reordering(&mut self, now: Instant) {
        self.reorder_ts = Some(now);
    }

    /// When reordering was last seen, if it is still remembered.
    pub const fn reorder_ts(&self) -> Option<Instant> {
        self.reorder_ts
    }

    /// Rounds with D-SACKs that count.
    pub const fn num_dsack(&self) -> u32 {
        self.num_dsack
    }

    /// Sets the rounds with D-SACKs, for the replay of the kernel's rows.
    pub const fn set_num_dsack(&mut self, rounds: u32) {
        self.num_dsack = rounds;
    }

    /// An acknowledgment of `th_ack` arrived: it may end a round.
    pub fn on_ack(&mut self, th_ack: Offset) {
        if self.dsack_round_end.is_some_and(|end| th_ack >= end) {
            self.dsack_round_end = None;
        }
    }

    /// A D-SACK that is not of a probe arrived: counts once per round.
    pub fn on_duplicate(&mut self, snd_max: Offset) {
        if self.dsack_round_end.is_none() {
            self.dsack_round_end = Some(snd_max);
            self.num_dsack += 1;
            self.dsack_persist = DSACK_PERSIST;
        }
    }

    /// A recovery ended: after sixteen the D-SACKs no longer count.
    pub fn on_recovered(&mut self) {
        if self.dsack_persist > 0 {
            self.dsack_persist -= 1;
            if self.dsack_persist == 0 {
                self.num_dsack = 0;
            }
        }
    }

    /// The RTT for the threshold: that of the latest-sent packet delivered, else the smoothed one,
    /// else one second.
    pub fn rtt(latest: Duration, srtt: Option<Duration>) -> Duration {
        if latest.is_zero() { srtt.unwrap_or(NO_RTT) } else { latest }
    }

    /// The time after its transmission at which a passed packet is lost (rack_calc_thresh_rack).
    /// Clears reordering that has faded.
    pub fn thresh(&mut self, rtt: Duration, now: Instant) -> Duration {
        let rtt = rtt.as_micros();
        let quarter = rtt / 4;
        let reordering = self.reordering(now);
        let mut thresh = rtt;
        if self.params.std_based {
            thresh += quarter;
        } else {
            thresh += self.params.pkt_delay.as_micros();
            if reordering {
                let shift =
                    if self.params.reorder_shift == 0 { 2 } else { self.params.reorder_shift };
                thresh += rtt.checked_shr(shift).unwrap_or(0);
            }
        }
        if self.params.use_dsack && reordering {
            thresh += u64::from(self.num_dsack) * quarter;
        }
        Duration::from_micros(thresh.min(2 * rtt).min(self.params.most.as_micros()))
    }

    /// True if reordering is remembered.
    fn reordering(&mut self, now: Instant) -> bool {
        let (Some(seen), fade) = (self.reorder_ts, self.params.reorder_fade.as_micros()) else {
            return false;
        };
        if fade == 0 {
            return true;
        }
        let (seen, now) = (micros(seen), micros(now));
        if now.saturating_sub(seen) > fade {
            self.reorder_ts = None;
            return false;
        }
        // The kernel ignores a time in the future.
        now >= seen
    }

    /// True if a packet that was passed, or had three duplicate ACKs, is lost (tcp_rack_output).
    pub fn is_lost(segment: &SentSegment, dup_acks: u32, thresh: Duration, now: Instant) -> bool {
        Self::is_suspected(segment, dup_acks) && Self::is_overdue(segment, thresh, now)
    }

    /// True if the segment was passed, or had three duplicate ACKs.
    pub const fn is_suspected(segment: &SentSegment, dup_acks: u32) -> bool {
        segment.passed() || dup_acks >= DUP_THRESHOLD
    }

    /// True if the time since its transmission has reached the threshold
    /// (rack_check_recovery_mode).
    pub fn is_overdue(segment: &SentSegment, thresh: Duration, now: Instant) -> bool {
        let since = micros(now).saturating_sub(micros(segment.sent_at()));
        since > 0 && since >= thresh.as_micros()
    }

    /// Time until a packet is lost, at least a millisecond (rack_timer_start).
    pub fn time_left(&self, segment: &SentSegment, thresh: Duration, now: Instant) -> Duration {
        let exp = micros(segment.sent_at()) + thresh.as_micros();
        let left = Duration::from_micros(exp.saturating_sub(micros(now)));
        left.max(self.params.min_timer)
    }

    /// Maximum threshold (`rack_rto_max`).
    pub const fn longest(&self) -> Duration {
        self.params.most
    }

    /// Minimum timer.
    pub const fn min_timer(&self) -> Duration {
        self.params.min_timer
    }
}

/// A time on the kernel's microsecond clock.
pub fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sendmap::SendMap;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn the_threshold_grows_by_a_quarter_rtt_per_dsack_round_after_reordering() {
        let mut rack = RackFreeBsd::new(ThreshParams::DEFAULT);
        let thresh = |rack: &mut RackFreeBsd| rack.thresh(us(40_003), at(1_000)).as_micros();
        assert_eq!(thresh(&mut rack), 50_003);
        rack.on_duplicate(Offset(100));
        rack.on_duplicate(Offset(200));
        assert_eq!(thresh(&mut rack), 50_003);
        rack.on_reordering(at(500));
        assert_eq!(thresh(&mut rack), 60_003);
        rack.on_ack(Offset(99));
        rack.on_duplicate(Offset(200));
        assert_eq!(rack.num_dsack(), 1);
        for _ in 0..5 {
            rack.on_ack(Offset(200));
            rack.on_duplicate(Offset(200));
        }
        // At most twice the RTT.
        assert_eq!((rack.num_dsack(), thresh(&mut rack)), (6, 80_006));
        for _ in 0..15 {
            rack.on_recovered();
        }
        assert_eq!(rack.num_dsack(), 6);
        rack.on_recovered();
        assert_eq!(thresh(&mut rack), 50_003);
    }

    #[test]
    fn reordering_fades_after_a_minute() {
        let params = ThreshParams { std_based: false, ..ThreshParams::DEFAULT };
        let mut rack = RackFreeBsd::new(params);
        rack.on_reordering(at(0));
        assert_eq!(rack.thresh(us(40_000), at(60_000_000)), us(51_000));
        assert_eq!(rack.thresh(us(40_000), at(60_000_001)), us(41_000));
        assert_eq!(rack.reorder_ts(), None);
    }

    /// Four packets a millisecond apart, the third one SACKed.
    fn passed() -> SendMap {
        let mut map = SendMap::new();
        for i in 0..4 {
            map.push(Offset(i * 10), Offset(i * 10 + 10), at(i * 1_000));
        }
        map.apply_sack(&[(Offset(20), Offset(30))], |_| {});
        map.pass(at(2_000), Offset(30));
        map
    }

    #[test]
    fn the_oldest_packet_that_was_passed_is_lost_after_the_threshold() {
        let mut map = passed();
        let rack = RackFreeBsd::new(ThreshParams::DEFAULT);
        let thresh = us(40_000);
        let mut look = |now, retransmission: Option<(u64, u64)>| {
            if let Some((place, when)) = retransmission {
                map.retransmit(Offset(place), Offset(place + 10), at(when), false);
            }
            let oldest = map.oldest().copied().unwrap();
            let lost = RackFreeBsd::is_lost(&oldest, 0, thresh, at(now));
            (lost, rack.time_left(&oldest, thresh, at(now)).as_micros())
        };
        assert_eq!(look(30_000, None), (false, 10_000));
        assert_eq!(look(39_999, None), (false, 1_000));
        assert_eq!(look(40_000, None), (true, 1_000));
        // Once retransmitted it is the newest; the next one is due a millisecond later.
        assert_eq!(look(40_001, Some((0, 40_000))), (false, 1_000));
        assert_eq!(look(41_000, None), (true, 1_000));
        // The fourth was not passed.
        assert!(!look(99_000, Some((10, 41_000))).0);
    }

    #[test]
    fn three_duplicate_acks_suspect_a_segment_like_a_sack() {
        let mut map = SendMap::new();
        map.push(Offset(0), Offset(10), at(0));
        let oldest = map.oldest().copied().unwrap();
        let lost = |dup_acks, now| RackFreeBsd::is_lost(&oldest, dup_acks, us(40), at(now));
        assert_eq!([lost(2, 50), lost(3, 39), lost(3, 40)], [false, false, true]);
    }
}
