//! PSH on what is sent out of turn: again, or as a probe.
//!
//! FreeBSD's tcp_output sets it where a segment reaches the end of the send buffer, whatever is
//! sent. Linux writes it into the control block of the packet that ends a write (tcp_mark_push),
//! where it stays however often the packet is sent; when a packet is cut the last part keeps it
//! (tcp_fragment). The PSH of a burst as such (__tcp_transmit_skb) is that burst's alone.

use record::SentKind;
use units::Offset;

use crate::endpoint::Endpoint;
use crate::profile::Family;

impl Endpoint {
    /// Does a segment of `len` bytes at `at` carry PSH?
    pub(super) fn pushes(&self, at: Offset, len: u64, kind: &SentKind) -> bool {
        if len == 0 {
            return false;
        }
        let end = at + len;
        match self.cfg.profile.family {
            Family::FreeBsd | Family::Rfc => end == self.data_end(),
            Family::Linux if matches!(kind, SentKind::New) => end == self.data_end(),
            Family::Linux => {
                let last = self.snd.map.get(Offset(end.0 - 1));
                last.is_some_and(|piece| piece.pushed() && piece.end() <= end + 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use packet::Flags;
    use record::Purpose;
    use units::Duration;

    use crate::Side;
    use crate::tests::pair::{Pair, config};

    /// Flags of the last data segment when the tail of `bytes` goes again.
    fn tail_again(system: &str, bytes: u64) -> Vec<(u32, bool)> {
        let mut pair = Pair::new(config(system, Side::Client), config(system, Side::Server));
        pair.to_write = bytes;
        pair.lose = |_, segment| segment.payload > 0;
        pair.run(Duration::from_millis(900));
        assert!(pair.client.deadline(Purpose::Retransmit).is_some());
        pair.data().map(|s| (s.payload, s.flags.has(Flags::PSH))).collect()
    }

    #[test]
    fn the_end_of_a_write_is_pushed_whenever_it_is_sent() {
        let linux = tail_again("linux-6.18", 1_000);
        assert!(linux.len() > 1 && linux.iter().all(|&sent| sent == (1_000, true)), "{linux:?}");
        let freebsd = tail_again("freebsd-13.2", 1_000);
        assert!(
            freebsd.len() > 1 && freebsd.iter().all(|&sent| sent == (1_000, true)),
            "{freebsd:?}"
        );
    }

    #[test]
    fn a_burst_within_a_write_goes_again_without_push() {
        // Packets leave in bursts of two; the timeout repeats them one by one.
        let mut client = config("linux-6.18", Side::Client);
        client.profile.loss_probes = false;
        let mut pair = Pair::new(client, config("linux-6.18", Side::Server));
        pair.to_write = 4 * 1_448;
        pair.lose = |number, segment| segment.payload > 0 && number < 5;
        pair.run(Duration::from_millis(900));
        let sent: Vec<_> = pair.data().map(|s| (s.payload, s.flags.has(Flags::PSH))).collect();
        let (burst, one) = ((2_896, true), |push| (1_448, push));
        assert_eq!(sent[..6], [burst, burst, one(false), one(false), one(false), one(true)]);
    }
}
