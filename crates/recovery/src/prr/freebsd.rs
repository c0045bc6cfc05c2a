//! PRR of FreeBSD's base stack.
//!
//! Sources: tcp_input.c (tcp_do_prr_ack), main 2022 to 2024; the kernel's rows in
//! `golden/freebsd/recovery.csv.gz`. It follows a draft of RFC 6937's successor: the number of
//! bytes that may be sent is rounded down to whole segments, and the window is set to allow exactly
//! these. 13.0 (tcp_do_segment, tcp_prr_partialack) still follows RFC 6937.

use units::ratio::scaled_up;

use crate::holes::SackChange;

/// Duplicate ACKs that a recovery without SACK counts in advance (`tcprexmtthresh`).
const DUP_THRESHOLD: u64 = 3;
/// Maximum number of duplicate ACKs that reduce the pipe (`INT_MAX / 65536`).
const MOST_DUPLICATES: u64 = 32_767;

/// The PRR counters of a recovery (`tp->sackhint`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct PrrFreeBsd {
    /// Bytes delivered since it began.
    pub prr_delivered: u64,
    /// Bytes sent since it began.
    pub prr_out: u64,
    /// Bytes in flight when it began.
    pub recover_fs: u64,
}

/// The cause of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryCause {
    /// A loss, with SACK: holes are retransmitted first.
    Sack,
    /// A loss, without SACK: each duplicate ACK counts as a delivered segment.
    Duplicates,
    /// An ECN echo alone.
    Ecn,
}

/// The differences between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum PrrRule {
    /// RFC 6937 with slow start below the threshold (13.0).
    Rfc6937,
    /// Its successor: proportional part rounded up by a segment less one byte; conservative after
    /// new loss.
    Rfc6937bis,
}

/// An acknowledgment in recovery and the sender's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrrFreeBsdInput {
    /// Cause of the recovery.
    pub recovery: RecoveryCause,
    /// Change of the scoreboard.
    pub changed: SackChange,
    /// Payload of a full segment.
    pub maxseg: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Bytes it delivered; unused without SACK.
    pub delivered: u64,
    /// Retransmitted bytes of holes.
    pub sack_bytes_rexmit: u64,
    /// `snd_nxt - snd_una`.
    pub nxt: i64,
    /// `snd_max - snd_una`.
    pub outstanding: u64,
    /// `snd_recover - snd_una`.
    pub recover: i64,
    /// Bytes in flight, which the kernel's quirks can make negative; unused without SACK.
    pub pipe: i64,
    /// Duplicate ACKs in a row (`t_dupacks`).
    pub dup_acks: u64,
}

impl PrrFreeBsd {
    /// A recovery begins with `flight` bytes in flight, `delivered` of which have arrived.
    /// `prr_out` of an earlier recovery that a timeout ended is kept.
    pub const fn begin(&mut self, flight: u64, delivered: u64) {
        self.prr_delivered = delivered;
        self.recover_fs = flight;
    }

    /// A retransmission was lost: this recovery ends and another begins
    /// (tcp_sack_lost_retransmission). The counters continue.
    ///
    /// If less is outstanding than when the first began, the kernel's unsigned 32 bits wrap: the
    /// flight counts as nearly 4 GiB, and nothing is sent until a timeout.
    pub const fn restart(&mut self, outstanding: u64) {
        self.recover_fs = (outstanding as u32).wrapping_sub(self.recover_fs as u32) as u64;
    }

    /// `bytes` were sent, new or retransmitted.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.prr_out += bytes;
    }

    /// Processes an acknowledgment; returns the congestion window in bytes.
    pub fn on_ack(&mut self, rule: PrrRule, ack: &PrrFreeBsdInput) -> u64 {
        let maxseg = ack.maxseg.max(1);
        let (delivered, pipe) = match ack.recovery {
            RecoveryCause::Sack | RecoveryCause::Ecn => (ack.delivered, ack.pipe),
            RecoveryCause::Duplicates => {
                let most = (DUP_THRESHOLD * maxseg).saturating_add_signed(ack.recover);
                let delivered = if self.prr_delivered < most { maxseg } else { 0 };
                let left = ack.dup_acks.min(MOST_DUPLICATES) * maxseg;
                (delivered, ack.outstanding.saturating_sub(left) as i64)
            }
        };
        self.prr_delivered += delivered;
        let bis = rule == PrrRule::Rfc6937bis;
        // An `int` is compared with a `uint32_t`: a negative pipe counts as large.
        let bytes = if u64::from(pipe as u32) >= ack.ssthresh {
            if self.recover_fs == 0 {
                self.recover_fs = u64::try_from(ack.nxt).unwrap_or(0).max(1);
            }
            let due = scaled_up(self.prr_delivered, ack.ssthresh, self.recover_fs);
            let rounding = if bis { maxseg - 1 } else { 0 };
            (due + rounding).saturating_sub(self.prr_out)
        } else {
            let conserved = self.prr_delivered.saturating_sub(self.prr_out);
            let limit = if bis && (ack.changed == SackChange::NewLoss || delivered == 0) {
                conserved
            } else {
                conserved.max(delivered) + maxseg
            };
            limit.min(ack.ssthresh - pipe as u64)
        };
        let burst = bytes / maxseg * maxseg;
        let window = match ack.recovery {
            RecoveryCause::Sack => {
                (ack.sack_bytes_rexmit + burst).saturating_add_signed(ack.nxt - ack.recover)
            }
            RecoveryCause::Duplicates => ack.outstanding + burst,
            RecoveryCause::Ecn => (pipe as u64 + burst).saturating_sub(delivered),
        };
        window.max(maxseg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;
    const RULE: PrrRule = PrrRule::Rfc6937bis;

    fn begun(flight: u64) -> PrrFreeBsd {
        let mut prr = PrrFreeBsd::default();
        prr.begin(flight, MSS);
        prr
    }

    #[test]
    fn one_segment_is_sent_for_every_two_delivered_until_half_is_left() {
        // Ten segments in flight, the first lost: half of them are sent, in order. The kernel
        // rounds up by a segment less one byte: 2 of 10 delivered are worth 1, 3 are worth 1.5 and
        // send 2.
        let mut prr = begun(10 * MSS);
        prr.on_sent(MSS);
        let mut sent = 1;
        for delivered in 2..=6_i64 {
            let ack = PrrFreeBsdInput {
                recovery: RecoveryCause::Sack,
                changed: SackChange::NewData,
                maxseg: MSS,
                ssthresh: 5 * MSS,
                delivered: MSS,
                sack_bytes_rexmit: MSS,
                nxt: (9 + sent) * MSS as i64,
                outstanding: (9 + sent) as u64 * MSS,
                recover: 10 * MSS as i64,
                pipe: (10 - delivered + sent) * MSS as i64,
                dup_acks: 3,
            };
            let before = prr.prr_out;
            let window = prr.on_ack(RULE, &ack);
            // The endpoint subtracts retransmitted and new bytes from the window.
            let room = window.saturating_add_signed(ack.recover - ack.nxt) - MSS;
            prr.on_sent(room);
            sent += (room / MSS) as i64;
            assert_eq!(prr.prr_out, before + room);
            let due = (delivered as u64 * 5).div_ceil(10);
            assert_eq!(prr.prr_out / MSS, due, "after {delivered}");
        }
    }

    #[test]
    fn after_a_new_loss_only_delivered_bytes_may_be_sent() {
        let ack = PrrFreeBsdInput {
            recovery: RecoveryCause::Ecn,
            changed: SackChange::NewLoss,
            maxseg: MSS,
            ssthresh: 20 * MSS,
            delivered: MSS,
            sack_bytes_rexmit: 0,
            nxt: 0,
            outstanding: 0,
            recover: 0,
            pipe: 5 * MSS as i64,
            dup_acks: 0,
        };
        let mut prr = begun(40 * MSS);
        assert_eq!(prr.on_ack(RULE, &ack), (5 + 2 - 1) * MSS);
        let mut prr = begun(40 * MSS);
        assert_eq!(
            prr.on_ack(RULE, &PrrFreeBsdInput { changed: SackChange::NewData, ..ack }),
            (5 + 3 - 1) * MSS
        );
    }

    #[test]
    fn another_recovery_counts_bytes_sent_since_the_first_began() {
        let mut prr = begun(10 * MSS);
        prr.restart(16 * MSS);
        assert_eq!(prr.recover_fs, 6 * MSS);
    }

    #[test]
    fn with_less_outstanding_than_before_nothing_is_due() {
        // struct sackhint holds recover_fs in unsigned 32 bits.
        let mut prr = PrrFreeBsd { prr_delivered: 20 * MSS, prr_out: MSS, recover_fs: 22 * MSS };
        prr.restart(18 * MSS);
        assert_eq!(prr.recover_fs, (1 << 32) - 4 * MSS);
        let ack = PrrFreeBsdInput {
            recovery: RecoveryCause::Sack,
            changed: SackChange::NewData,
            maxseg: MSS,
            ssthresh: 5 * MSS,
            delivered: MSS,
            sack_bytes_rexmit: 0,
            nxt: 0,
            outstanding: 18 * MSS,
            recover: 0,
            pipe: 17 * MSS as i64,
            dup_acks: 0,
        };
        assert_eq!(
            prr.on_ack(RULE, &ack),
            MSS,
            "the minimum window, already filled by outstanding data"
        );
    }
}
