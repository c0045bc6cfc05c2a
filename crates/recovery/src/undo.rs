//! Was a retransmission needless? By timestamps and by reports of duplicates.
//!
//! Sources: RFC 3522 (Eifel detection), RFC 4015 (its response), RFC 3708; tcp_input.c of Linux
//! (tcp_init_undo, tcp_check_dsack, tcp_may_undo, tcp_packet_delayed) and tcp_output.c
//! (__tcp_retransmit_skb).

use units::Offset;

use crate::dsack::Block;

/// Linux' state of an episode that may prove needless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct Undo {
    /// `snd_una` when the episode began (`undo_marker`); `None` if it can no longer be undone.
    marker: Option<Offset>,
    /// Retransmissions not yet reported as duplicates (`undo_retrans`); `None` before the first.
    retrans: Option<u64>,
    /// Timestamp clock at the first of them (`retrans_stamp`).
    stamp: Option<u32>,
}

impl Undo {
    /// An episode begins with `resent` packets under way again, the first of them sent at `stamp`.
    pub const fn begin(snd_una: Offset, resent: u64, stamp: Option<u32>) -> Self {
        let retrans = if resent > 0 { Some(resent) } else { None };
        Self { marker: Some(snd_una), retrans, stamp }
    }

    /// It cannot be undone any more: it is over, or what it did was needed.
    pub const fn forget(&mut self) {
        self.marker = None;
        self.retrans = None;
        self.stamp = None;
    }

    /// `packets` left again at `stamp` of the timestamp clock.
    pub fn on_resent(&mut self, packets: u64, stamp: u32) {
        self.stamp = self.stamp.or(Some(stamp));
        self.retrans = Some(self.retrans.unwrap_or(0) + packets);
    }

    /// A duplicate of `packets` packets was reported; `prior_una` is `snd_una` before this
    /// acknowledgment. It counts if it was sent in this episode.
    pub fn on_duplicate(&mut self, (_, end): Block, packets: u64, prior_una: Offset) {
        let counts = self.marker.is_some_and(|marker| end > marker) && end <= prior_una;
        if let Some(left) = self.retrans.filter(|_| counts) {
            self.retrans = Some(left.saturating_sub(packets));
        }
    }

    /// A packet that ends at `end`, was sent again and is not acknowledged yet was reported as a
    /// duplicate (tcp_sacktag_one).
    pub fn on_held_duplicate(&mut self, end: Offset) {
        let counts = self.marker.is_some_and(|marker| end > marker);
        if let Some(left) = self.retrans.filter(|&left| counts && left > 0) {
            self.retrans = Some(left - 1);
        }
    }

    /// Was every retransmission reported as a duplicate (tcp_try_undo_dsack)?
    pub fn all_duplicates(&self) -> bool {
        self.marker.is_some() && self.retrans == Some(0)
    }

    /// May the episode be undone, given the timestamp the acknowledgment echoes? So if it is older than
    /// the first retransmission, if every retransmission was reported as a duplicate, or if there has
    /// been none.
    pub fn may(&self, echo: Option<u32>) -> bool {
        if self.marker.is_none() {
            return false;
        }
        let delayed = match (self.stamp, echo) {
            (None, _) => true,
            (Some(stamp), Some(echo)) => older(echo, stamp),
            (Some(_), None) => false,
        };
        delayed || self.retrans == Some(0)
    }
}

/// Does `echo` come before `stamp` on the circle of timestamps? Zero is no echo (RFC 7323).
pub fn older(echo: u32, stamp: u32) -> bool {
    echo != 0 && (echo.wrapping_sub(stamp) as i32) < 0
}

/// Eifel detection (RFC 3522 section 3.2): the first acceptable acknowledgment after a retransmission
/// tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct Eifel {
    /// Timestamp of the first retransmission (`RetransmitTS`), until it is judged.
    stamp: Option<u32>,
}

impl Eifel {
    /// The first retransmission left with this timestamp (steps 1 and 2).
    pub fn on_resent(&mut self, stamp: u32) {
        self.stamp = self.stamp.or(Some(stamp));
    }

    /// The first acknowledgment of new data since: was the retransmission needless (steps 3 to 6)?
    /// `None` if there was none, or it has been judged.
    pub fn on_ack(&mut self, echo: Option<u32>) -> Option<bool> {
        let stamp = self.stamp.take()?;
        Some(echo.is_some_and(|echo| older(echo, stamp)))
    }
}

/// What RFC 4015 sets after a needless timeout (section 3.5, steps 7 and 8): the window and the
/// threshold. `pipe_prev` is the larger of flight and threshold before, `acked` what the acknowledgment
/// covered.
pub fn eifel_response(flight: u64, acked: u64, initial_window: u64, pipe_prev: u64) -> (u64, u64) {
    (flight + acked.min(initial_window), pipe_prev)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, end: u64) -> Block {
        (Offset(start), Offset(end))
    }

    #[test]
    fn an_echo_older_than_the_first_retransmission_undoes() {
        let mut undo = Undo::begin(Offset(100), 0, None);
        undo.on_resent(1, 50);
        undo.on_resent(1, 60);
        assert!(!undo.may(None));
        assert!(!undo.may(Some(50)));
        assert!(!undo.may(Some(0)));
        assert!(undo.may(Some(49)));
        undo.forget();
        assert!(!undo.may(Some(49)));
        // The clock wraps.
        assert!(older(u32::MAX, 3));
    }

    #[test]
    fn reports_of_all_retransmissions_as_duplicates_undo() {
        let mut undo = Undo::begin(Offset(100), 0, None);
        undo.on_resent(2, 50);
        undo.on_duplicate(block(0, 100), 1, Offset(300));
        undo.on_duplicate(block(200, 310), 1, Offset(300));
        undo.on_duplicate(block(100, 200), 1, Offset(300));
        assert!(!undo.may(None));
        undo.on_duplicate(block(200, 300), 1, Offset(300));
        assert!(undo.may(None));
    }

    #[test]
    fn a_duplicate_of_what_is_still_held_counts_at_once() {
        let mut undo = Undo::begin(Offset(100), 0, None);
        undo.on_held_duplicate(Offset(200));
        undo.on_resent(1, 50);
        undo.on_held_duplicate(Offset(100));
        assert!(!undo.all_duplicates());
        undo.on_held_duplicate(Offset(200));
        assert!(undo.all_duplicates());
    }

    #[test]
    fn an_episode_without_a_retransmission_may_be_undone() {
        assert!(Undo::begin(Offset(100), 0, None).may(None));
        assert!(!Undo::begin(Offset(100), 1, Some(7)).may(None));
        assert!(!Undo::default().may(None));
    }

    #[test]
    fn only_the_first_acknowledgment_is_judged() {
        let mut eifel = Eifel::default();
        assert_eq!(eifel.on_ack(Some(1)), None);
        eifel.on_resent(50);
        eifel.on_resent(60);
        assert_eq!(eifel.on_ack(Some(55)), Some(false));
        assert_eq!(eifel.on_ack(Some(1)), None);
        eifel.on_resent(50);
        assert_eq!(eifel.on_ack(Some(49)), Some(true));
    }

    #[test]
    fn the_response_opens_the_window_to_the_flight_and_restores_the_threshold() {
        assert_eq!(eifel_response(3_000, 20_000, 14_480, 90_000), (17_480, 90_000));
    }
}
