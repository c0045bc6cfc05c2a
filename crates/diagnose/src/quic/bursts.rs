//! Bursts of a sender: data sent in a millisecond, above what a pacer would send.

/// Length of the interval in ns.
const INTERVAL: u64 = 1_000_000;
/// Datagrams that RFC 9002 section 7.7 lets a sender send at once: the initial window. Twice as many are
/// a burst.
const AT_ONCE: u64 = 20;
/// A burst is this many times what the window sends in the interval, beyond [`AT_ONCE`].
const FASTER: u64 = 4;

/// The bursts of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicBursts {
    /// Number.
    pub count: u64,
    /// Packets with data in them.
    pub packets: u64,
    /// Packets with data in all.
    pub all: u64,
    /// Bytes of the longest.
    pub longest: u64,
    /// Its packets.
    pub longest_packets: u64,
    /// Begin of the first and of the last, in ns.
    pub interval: (u64, u64),
    /// First and last event.
    pub events: (u64, u64),
}

/// Counts bursts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BurstMeter {
    begin: u64,
    event: u64,
    bytes: u64,
    packets: u64,
    /// Bytes above which the interval is a burst.
    limit: u64,
}

impl BurstMeter {
    /// A packet with data was sent; `window` in a round trip of `rtt` ns, if both are known.
    pub(super) fn push(
        &mut self,
        (at, event): (u64, u64),
        (bytes, datagram): (u64, u64),
        rate: Option<(u64, u64)>,
        out: &mut QuicBursts,
    ) {
        out.all += 1;
        if self.packets == 0 || at.saturating_sub(self.begin) >= INTERVAL {
            self.close(out);
            let smooth = rate.filter(|rate| rate.1 > 0).map_or(0, |(window, rtt)| {
                (u128::from(window) * u128::from(INTERVAL) / u128::from(rtt)) as u64
            });
            let limit = (AT_ONCE * datagram).saturating_add(smooth.saturating_mul(FASTER));
            *self = Self { begin: at, event, bytes: 0, packets: 0, limit };
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.packets += 1;
    }

    /// Ends the interval.
    pub(super) fn close(&mut self, out: &mut QuicBursts) {
        if self.bytes <= self.limit || self.packets <= AT_ONCE {
            return;
        }
        if out.count == 0 {
            (out.interval.0, out.events.0) = (self.begin, self.event);
        }
        (out.interval.1, out.events.1) = (self.begin, self.event);
        out.count += 1;
        out.packets += self.packets;
        if self.bytes > out.longest {
            (out.longest, out.longest_packets) = (self.bytes, self.packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(packets: impl IntoIterator<Item = u64>, rate: Option<(u64, u64)>) -> QuicBursts {
        let (mut meter, mut out) = (BurstMeter::default(), QuicBursts::default());
        for (n, at) in packets.into_iter().enumerate() {
            meter.push((at, n as u64), (1_200, 1_200), rate, &mut out);
        }
        meter.close(&mut out);
        out
    }

    #[test]
    fn a_window_at_once_is_a_burst_and_a_fast_pacer_is_none() {
        // 60 packets at once each 50 ms.
        let found = bursts((0..300).map(|n| n / 60 * 50_000_000), Some((72_000, 50_000_000)));
        assert_eq!((found.count, found.packets, found.longest_packets), (5, 300, 60));
        // A packet each 10 us, 960 Mbit/s, by a window that sends as much.
        let fast = bursts((0..5_000).map(|n| n * 10_000), Some((1_200 * 5_000, 50_000_000)));
        assert_eq!(fast.count, 0);
        // Ten packets at once: the initial window.
        assert_eq!(bursts((0..300).map(|n| n / 10 * 10_000_000), None).count, 0);
    }
}
