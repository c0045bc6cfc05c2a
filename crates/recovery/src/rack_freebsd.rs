//! How FreeBSD's RACK stack judges losses by time.
//!
//! Source: tcp_stacks/rack.c (rack_calc_thresh_rack, rack_check_recovery_mode, rack_timer_start,
//! rack_note_dsack, rack_exit_recovery; D31506); the kernel's rows in
//! `golden/freebsd/recovery.csv.gz`. Whole microseconds throughout, as its clock has.

use units::{Duration, Instant, Offset};

use crate::sendmap::Piece;

/// Round trip before any is known.
const NO_RTT: Duration = Duration::from_secs(1);
/// Recoveries for which duplicates count (`dsack_persist`).
const DSACK_PERSIST: u8 = 16;
/// Duplicate acknowledgments that stand for a loss without SACK (`DUP_ACK_THRESHOLD`).
const DUP_THRESHOLD: u32 = 3;

/// The knobs of the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct ThreshParams {
    /// A quarter of the round trip is added always; else `pkt_delay`, and a share once reordering was
    /// seen (bit 0 of `rack_dsack_std_based`).
    pub std_based: bool,
    /// Rounds with duplicates widen it (bit 1 of the same).
    pub use_dsack: bool,
    /// What is added without `std_based` (`rack_pkt_delay`).
    pub pkt_delay: Duration,
    /// The share is the round trip shifted right by this; 0 counts as 2 (`rack_reorder_thresh`).
    pub reorder_shift: u32,
    /// For how long reordering is remembered; zero for ever (`rack_reorder_fade`).
    pub reorder_fade: Duration,
    /// Longest threshold (`rack_rto_max`).
    pub most: Duration,
    /// Shortest time to the next look (`rack_min_to`).
    pub least_wait: Duration,
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
        least_wait: Duration::from_millis(1),
    };
}

/// The state of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RackFreeBsd {
    params: ThreshParams,
    /// When reordering was seen last (`rc_reorder_ts`).
    reorder_ts: Option<Instant>,
    /// Rounds with duplicates (`num_dsack`).
    num_dsack: u32,
    dsack_persist: u8,
    /// Until this is acknowledged, further duplicates belong to the round.
    dsack_round_end: Option<Offset>,
}

impl RackFreeBsd {
    /// No reordering seen, no duplicate reported.
    pub const fn new(params: ThreshParams) -> Self {
        Self { params, reorder_ts: None, num_dsack: 0, dsack_persist: 0, dsack_round_end: None }
    }

    /// A segment that had been passed arrived, or a retransmission proved needless.
    pub const fn on_reordering(&mut self, now: Instant) {
        self.reorder_ts = Some(now);
    }

    /// When reordering was seen last, if that is remembered.
    pub const fn reorder_ts(&self) -> Option<Instant> {
        self.reorder_ts
    }

    /// Rounds with duplicates that count.
    pub const fn num_dsack(&self) -> u32 {
        self.num_dsack
    }

    /// Sets the rounds with duplicates, as the kernel's rows do.
    pub const fn set_num_dsack(&mut self, rounds: u32) {
        self.num_dsack = rounds;
    }

    /// An acknowledgment up to `th_ack` came: a round may end.
    pub fn on_ack(&mut self, th_ack: Offset) {
        if self.dsack_round_end.is_some_and(|end| th_ack >= end) {
            self.dsack_round_end = None;
        }
    }

    /// A duplicate was reported that was no probe's: counts once per round.
    pub fn on_duplicate(&mut self, snd_max: Offset) {
        if self.dsack_round_end.is_none() {
            self.dsack_round_end = Some(snd_max);
            self.num_dsack += 1;
            self.dsack_persist = DSACK_PERSIST;
        }
    }

    /// A recovery ended: after sixteen the duplicates no longer count.
    pub fn on_recovered(&mut self) {
        if self.dsack_persist > 0 {
            self.dsack_persist -= 1;
            if self.dsack_persist == 0 {
                self.num_dsack = 0;
            }
        }
    }

    /// The round trip to judge by: that of the latest-sent packet delivered, else the smoothed one,
    /// else a second.
    pub fn rtt(latest: Duration, srtt: Option<Duration>) -> Duration {
        if latest.is_zero() { srtt.unwrap_or(NO_RTT) } else { latest }
    }

    /// How long after it was sent a packet that was passed is lost (rack_calc_thresh_rack). Forgets
    /// reordering that lies too far back.
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

    /// Is reordering remembered?
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
        // The kernel takes a moment that lies ahead for none.
        now >= seen
    }

    /// Is a packet that was passed, or had three duplicate acknowledgments, lost (tcp_rack_output)?
    pub fn is_lost(piece: &Piece, dup_acks: u32, thresh: Duration, now: Instant) -> bool {
        Self::is_suspected(piece, dup_acks) && Self::is_overdue(piece, thresh, now)
    }

    /// Has it been passed, or had three duplicate acknowledgments?
    pub const fn is_suspected(piece: &Piece, dup_acks: u32) -> bool {
        piece.passed() || dup_acks >= DUP_THRESHOLD
    }

    /// Was it sent as long ago as the threshold (rack_check_recovery_mode)?
    pub fn is_overdue(piece: &Piece, thresh: Duration, now: Instant) -> bool {
        let since = micros(now).saturating_sub(micros(piece.sent_at()));
        since > 0 && since >= thresh.as_micros()
    }

    /// Time until a packet is lost, at least a millisecond (rack_timer_start).
    pub fn time_left(&self, piece: &Piece, thresh: Duration, now: Instant) -> Duration {
        let exp = micros(piece.sent_at()) + thresh.as_micros();
        let left = Duration::from_micros(exp.saturating_sub(micros(now)));
        left.max(self.params.least_wait)
    }

    /// Longest threshold (`rack_rto_max`).
    pub const fn longest(&self) -> Duration {
        self.params.most
    }

    /// Shortest time to the next look.
    pub const fn least_wait(&self) -> Duration {
        self.params.least_wait
    }
}

/// A moment on the kernel's clock of microseconds.
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
    fn a_quarter_more_and_another_for_each_round_with_duplicates_once_reordering_was_seen() {
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
        // Twice the round trip at most.
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

    /// Four packets a millisecond apart, the third one reported.
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
        let mut look = |now, resent: Option<(u64, u64)>| {
            if let Some((place, when)) = resent {
                map.resend(Offset(place), Offset(place + 10), at(when), false);
            }
            let oldest = map.oldest().copied().unwrap();
            let lost = RackFreeBsd::is_lost(&oldest, 0, thresh, at(now));
            (lost, rack.time_left(&oldest, thresh, at(now)).as_micros())
        };
        assert_eq!(look(30_000, None), (false, 10_000));
        assert_eq!(look(39_999, None), (false, 1_000));
        assert_eq!(look(40_000, None), (true, 1_000));
        // Retransmitted it is the youngest; the next one is due a millisecond later.
        assert_eq!(look(40_001, Some((0, 40_000))), (false, 1_000));
        assert_eq!(look(41_000, None), (true, 1_000));
        // The fourth was not passed.
        assert!(!look(99_000, Some((10, 41_000))).0);
    }

    #[test]
    fn three_duplicates_suspect_a_segment_as_a_report_does() {
        let mut map = SendMap::new();
        map.push(Offset(0), Offset(10), at(0));
        let oldest = map.oldest().copied().unwrap();
        let lost = |dup_acks, now| RackFreeBsd::is_lost(&oldest, dup_acks, us(40), at(now));
        assert_eq!([lost(2, 50), lost(3, 39), lost(3, 40)], [false, false, true]);
    }
}
