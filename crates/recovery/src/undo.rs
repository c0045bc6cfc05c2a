//! Detection of spurious retransmissions by timestamps and D-SACKs.
//!
//! Sources: RFC 3522 (Eifel detection), RFC 4015 (its response), RFC 3708; tcp_input.c of Linux
//! (tcp_init_undo, tcp_check_dsack, tcp_may_undo, tcp_packet_delayed) and tcp_output.c
//! (__tcp_retransmit_skb).

use units::Offset;

use crate::dsack::SackRange;

/// Linux's undo state of a recovery that may be spurious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct UndoState {
    /// `snd_una` at the start of the recovery (`undo_marker`); `None` if it cannot be undone.
    marker: Option<Offset>,
    /// Retransmissions not yet covered by D-SACKs (`undo_retrans`); `None` before the first.
    retrans: Option<u64>,
    /// Timestamp clock at the first of them (`retrans_stamp`).
    stamp: Option<u32>,
}

impl UndoState {
    /// A recovery begins with `retransmitted` retransmitted packets in flight, the first of them
    /// sent at `stamp`.
    pub const fn begin(snd_una: Offset, retransmitted: u64, stamp: Option<u32>) -> Self {
        let retrans = if retransmitted > 0 { Some(retransmitted) } else { None };
        Self { marker: Some(snd_una), retrans, stamp }
    }

    /// Another recovery begins with `retransmitted` retransmitted packets in flight. The time of the
    /// first retransmission stays if packets retransmitted before are outstanding
    /// (tcp_retrans_stamp_cleanup).
    pub const fn begin_again(&mut self, snd_una: Offset, retransmitted: u64, outstanding: bool) {
        let stamp = if outstanding { self.stamp } else { None };
        *self = Self::begin(snd_una, retransmitted, stamp);
    }

    /// The recovery is over. D-SACKs may still show that it was spurious (tcp_try_undo_dsack in
    /// TCP_CA_Open). The time of the first retransmission stays if retransmitted packets are
    /// outstanding (tcp_any_retrans_done in tcp_try_to_open).
    pub const fn end(&mut self, outstanding: bool) {
        if !outstanding {
            self.stamp = None;
        }
    }

    /// The recovery can no longer be undone; `outstanding` as in [`UndoState::end`].
    pub const fn forget(&mut self, outstanding: bool) {
        self.marker = None;
        self.retrans = None;
        self.end(outstanding);
    }

    /// Timestamp clock at the first retransmission of the recovery.
    pub const fn retrans_stamp(&self) -> Option<u32> {
        self.stamp
    }

    /// `packets` packets were retransmitted at `stamp` of the timestamp clock.
    pub fn on_retransmitted(&mut self, packets: u64, stamp: u32) {
        self.stamp = self.stamp.or(Some(stamp));
        self.retrans = Some(self.retrans.unwrap_or(0) + packets);
    }

    /// A D-SACK of `packets` packets arrived; `prior_una` is `snd_una` before this acknowledgment.
    /// It counts if the packets were sent in this recovery.
    pub fn on_duplicate(&mut self, (_, end): SackRange, packets: u64, prior_una: Offset) {
        let counts = self.marker.is_some_and(|marker| end > marker) && end <= prior_una;
        if let Some(left) = self.retrans.filter(|_| counts) {
            self.retrans = Some(left.saturating_sub(packets));
        }
    }

    /// A D-SACK arrived for a retransmitted packet that ends at `end` and is not acknowledged yet
    /// (tcp_sacktag_one).
    pub fn on_unacked_duplicate(&mut self, end: Offset) {
        let counts = self.marker.is_some_and(|marker| end > marker);
        if let Some(left) = self.retrans.filter(|&left| counts && left > 0) {
            self.retrans = Some(left - 1);
        }
    }

    /// True if D-SACKs cover every retransmission (tcp_try_undo_dsack).
    pub fn all_duplicates(&self) -> bool {
        self.marker.is_some() && self.retrans == Some(0)
    }

    /// True if the echoed timestamp is older than the first retransmission, or there was none
    /// (tcp_packet_delayed).
    pub fn was_delayed(&self, echo: Option<u32>) -> bool {
        self.marker.is_some()
            && match (self.stamp, echo) {
                (None, _) => true,
                (Some(stamp), Some(echo)) => tsecr_before(echo, stamp),
                (Some(_), None) => false,
            }
    }

    /// True if the recovery may be undone, given the timestamp that the acknowledgment echoes: if
    /// it is older than the first retransmission, if D-SACKs cover every retransmission, or if
    /// there was none.
    pub fn may(&self, echo: Option<u32>) -> bool {
        self.was_delayed(echo) || self.all_duplicates()
    }
}

/// True if `echo` is before `stamp` in wrapping order. Zero is no echo (RFC 7323).
pub fn tsecr_before(echo: u32, stamp: u32) -> bool {
    echo != 0 && (echo.wrapping_sub(stamp) as i32) < 0
}

/// Eifel detection (RFC 3522 section 3.2): the first acceptable acknowledgment after a
/// retransmission decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct EifelDetector {
    /// Timestamp of the first retransmission (`RetransmitTS`), until the decision.
    stamp: Option<u32>,
}

impl EifelDetector {
    /// The first retransmission was sent with this timestamp (steps 1 and 2).
    pub fn on_retransmitted(&mut self, stamp: u32) {
        self.stamp = self.stamp.or(Some(stamp));
    }

    /// The first acknowledgment of new data after a retransmission: true if the retransmission was
    /// spurious (steps 3 to 6). `None` if there was none, or it has been decided.
    pub fn on_ack(&mut self, echo: Option<u32>) -> Option<bool> {
        let stamp = self.stamp.take()?;
        Some(echo.is_some_and(|echo| tsecr_before(echo, stamp)))
    }
}

/// The window and threshold that RFC 4015 sets after a spurious timeout (section 3.5, steps 7 and
/// 8). `pipe_prev` is the larger of flight and threshold before it, `acked` the bytes newly
/// acknowledged.
pub fn eifel_response(flight: u64, acked: u64, initial_window: u64, pipe_prev: u64) -> (u64, u64) {
    (flight + acked.min(initial_window), pipe_prev)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, end: u64) -> SackRange {
        (Offset(start), Offset(end))
    }

    #[test]
    fn an_echo_older_than_the_first_retransmission_undoes() {
        let mut undo = UndoState::begin(Offset(100), 0, None);
        undo.on_retransmitted(1, 50);
        undo.on_retransmitted(1, 60);
        assert!(!undo.may(None));
        assert!(!undo.may(Some(50)));
        assert!(!undo.may(Some(0)));
        assert!(undo.may(Some(49)));
        undo.forget(false);
        assert!(!undo.may(Some(49)));
        // The timestamp clock wraps.
        assert!(tsecr_before(u32::MAX, 3));
    }

    #[test]
    fn duplicates_may_arrive_after_the_recovery() {
        // tcp_try_undo_recovery leaves `undo_marker`, tcp_try_to_open clears `retrans_stamp`.
        let mut undo = UndoState::begin(Offset(100), 0, None);
        undo.on_retransmitted(1, 50);
        undo.end(false);
        assert!(!undo.all_duplicates());
        undo.on_duplicate(block(100, 200), 1, Offset(300));
        assert!(undo.all_duplicates());
        undo.on_retransmitted(1, 90);
        assert!(undo.was_delayed(Some(89)) && !undo.was_delayed(Some(90)));
    }

    #[test]
    fn a_recovery_that_follows_another_keeps_the_time_of_what_is_outstanding() {
        for (in_flight, outstanding, undone) in
            [(1, true, false), (0, true, false), (0, false, true)]
        {
            let mut undo = UndoState::begin(Offset(100), 0, None);
            undo.on_retransmitted(1, 50);
            undo.forget(outstanding);
            undo.begin_again(Offset(200), in_flight, outstanding);
            assert_eq!(undo.may(Some(55)), undone, "{in_flight} {outstanding}");
            assert!(undo.may(Some(49)));
        }
    }

    #[test]
    fn dsacks_of_all_retransmissions_undo() {
        let mut undo = UndoState::begin(Offset(100), 0, None);
        undo.on_retransmitted(2, 50);
        undo.on_duplicate(block(0, 100), 1, Offset(300));
        undo.on_duplicate(block(200, 310), 1, Offset(300));
        undo.on_duplicate(block(100, 200), 1, Offset(300));
        assert!(!undo.may(None));
        undo.on_duplicate(block(200, 300), 1, Offset(300));
        assert!(undo.may(None));
    }

    #[test]
    fn a_dsack_of_an_unacknowledged_packet_counts_at_once() {
        let mut undo = UndoState::begin(Offset(100), 0, None);
        undo.on_unacked_duplicate(Offset(200));
        undo.on_retransmitted(1, 50);
        undo.on_unacked_duplicate(Offset(100));
        assert!(!undo.all_duplicates());
        undo.on_unacked_duplicate(Offset(200));
        assert!(undo.all_duplicates());
    }

    #[test]
    fn a_recovery_without_a_retransmission_may_be_undone() {
        assert!(UndoState::begin(Offset(100), 0, None).may(None));
        assert!(!UndoState::begin(Offset(100), 1, Some(7)).may(None));
        assert!(!UndoState::default().may(None));
    }

    #[test]
    fn only_the_first_acknowledgment_decides() {
        let mut eifel = EifelDetector::default();
        assert_eq!(eifel.on_ack(Some(1)), None);
        eifel.on_retransmitted(50);
        eifel.on_retransmitted(60);
        assert_eq!(eifel.on_ack(Some(55)), Some(false));
        assert_eq!(eifel.on_ack(Some(1)), None);
        eifel.on_retransmitted(50);
        assert_eq!(eifel.on_ack(Some(49)), Some(true));
    }

    #[test]
    fn the_response_opens_the_window_to_the_flight_and_restores_the_threshold() {
        assert_eq!(eifel_response(3_000, 20_000, 14_480, 90_000), (17_480, 90_000));
    }
}
