//! PSH on retransmissions and probes.
//!
//! FreeBSD's tcp_output sets it on any segment that reaches the end of the send buffer. Linux
//! writes it into the control block of the packet that ends a write (tcp_mark_push), where it stays
//! for all retransmissions; when a packet is split the last part keeps it (tcp_fragment). The PSH
//! that ends a burst (__tcp_transmit_skb) is not kept.

use record::SentKind;
use units::Offset;

use crate::connection::Connection;
use crate::profile::PushRule;
use crate::sender::Sender;

impl Sender {
    /// Does a segment of `len` bytes at `at` carry PSH?
    pub(super) fn pushes(&self, conn: &Connection, at: Offset, len: u64, kind: &SentKind) -> bool {
        if len == 0 {
            return false;
        }
        let end = at + len;
        match conn.cfg.profile.rules.sending.push {
            PushRule::EndOfData => end == self.data_end(),
            // A packet of several segments always carries it (__tcp_transmit_skb).
            PushRule::WriteQueue if len > conn.mss() => true,
            PushRule::WriteQueue if matches!(kind, SentKind::New) => self.ends_push(conn, at, end),
            PushRule::WriteQueue => {
                let last = self.scoreboard.get(Offset(end.0 - 1));
                last.is_some_and(|sent_segment| {
                    sent_segment.pushed() && sent_segment.end() <= end + 1
                })
            }
        }
    }

    /// Linux: do new data from `at` to `end` end a packet of the write queue with PSH? What is sent
    /// while the write goes on has none yet (tcp_push_one).
    pub(super) fn ends_push(&self, conn: &Connection, at: Offset, end: Offset) -> bool {
        let data_end = self.data_end();
        if !conn.cfg.tso {
            return end == data_end;
        }
        let writes = self.pushed_until(conn).is_some_and(|pushed| at < pushed);
        !writes && self.buffer.pushes(end, data_end)
    }
}

#[cfg(test)]
mod tests {
    use packet::Flags;
    use record::Purpose;
    use units::Duration;

    use crate::TcpSide;
    use crate::tests::pair::{TcpPair, config};

    /// Length and PSH of the data segments when the tail of `bytes` is retransmitted.
    fn retransmitted_tail(system: &str, bytes: u64) -> Vec<(u32, bool)> {
        let mut pair =
            TcpPair::new(config(system, TcpSide::Client), config(system, TcpSide::Server));
        pair.to_write = bytes;
        pair.lose = |_, segment| segment.payload > 0;
        pair.run(Duration::from_millis(900));
        assert!(pair.client.deadline(Purpose::Retransmit).is_some());
        pair.data().map(|s| (s.payload, s.flags.has(Flags::PSH))).collect()
    }

    #[test]
    fn psh_at_the_end_of_a_write_is_kept_on_retransmissions() {
        let linux = retransmitted_tail("linux-6.18", 1_000);
        assert!(linux.len() > 1 && linux.iter().all(|&sent| sent == (1_000, true)), "{linux:?}");
        let freebsd = retransmitted_tail("freebsd-13.2", 1_000);
        assert!(
            freebsd.len() > 1 && freebsd.iter().all(|&sent| sent == (1_000, true)),
            "{freebsd:?}"
        );
    }

    #[test]
    fn retransmissions_within_a_write_carry_no_psh() {
        // Packets are sent in bursts of two; after the timeout they are retransmitted one by one.
        let mut client = config("linux-6.18", TcpSide::Client);
        client.profile.loss_probes = false;
        let mut pair = TcpPair::new(client, config("linux-6.18", TcpSide::Server));
        pair.to_write = 4 * 1_448;
        pair.lose = |number, segment| segment.payload > 0 && number < 5;
        pair.run(Duration::from_millis(900));
        let sent: Vec<_> = pair.data().map(|s| (s.payload, s.flags.has(Flags::PSH))).collect();
        let (burst, one) = ((2_896, true), |push| (1_448, push));
        assert_eq!(sent[..6], [burst, burst, one(false), one(false), one(false), one(true)]);
    }
}
