//! What limits a connection by its kernel's own account: Linux' `struct tcp_info`, as `ss`, iperf3 and
//! netlink report it.
//!
//! The kernel counts the time with data in flight (`tcpi_busy_time`), and of it the time that the
//! peer's window and the send buffer limited (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`). Between two
//! samples the rest of the busy time belongs to the network, and time that is not busy to the
//! application. Retransmissions and the delay of the queue show what the network's time was: the
//! smoothed round trip less the shortest.

/// State of a socket at an instant; values that the source lacks are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketSample {
    /// Time, in ns; `None` without one.
    pub at: Option<u64>,
    /// Payload of a full segment, in bytes.
    pub mss: Option<u64>,
    /// Congestion window, in packets.
    pub cwnd: Option<u64>,
    /// Packets in flight.
    pub unacked: Option<u64>,
    /// Smoothed round-trip time, in ns.
    pub srtt: Option<u64>,
    /// Shortest round-trip time of the last minutes, in ns.
    pub min_rtt: Option<u64>,
    /// The peer's window, in bytes.
    pub peer_window: Option<u64>,
    /// Bytes in the send buffer that were not sent.
    pub unsent: Option<u64>,
    /// Bytes that the local application has not read.
    pub unread: Option<u64>,
    /// Bytes acknowledged by the peer.
    pub acked: Option<u64>,
    /// Bytes received.
    pub received: Option<u64>,
    /// Data packets sent, retransmissions included.
    pub sent_packets: Option<u64>,
    /// Packets retransmitted.
    pub retransmitted: Option<u64>,
    /// Time with data in flight, in ns.
    pub busy: Option<u64>,
    /// Part of it that the peer's window limited, in ns.
    pub rwnd_limited: Option<u64>,
    /// Part of it that the send buffer limited, in ns.
    pub sndbuf_limited: Option<u64>,
    /// The application had nothing to send when the delivery rate was measured.
    pub app_limited: bool,
}

/// What limits a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SocketLimit {
    /// No data in either direction.
    Idle,
    /// The application has nothing to send.
    Application,
    /// The peer's receive window is full.
    ReceiveWindow,
    /// The send buffer is full.
    SendBuffer,
    /// Packets are lost without a queue.
    Loss,
    /// The path is full: its queue delays packets.
    Queue,
    /// The congestion window, pacing or a processor, with an empty queue and without losses.
    Cwnd,
    /// Data arrive, and the local application does not read them.
    LocalReader,
    /// Data arrive; what limits them is known at the peer.
    Peer,
    /// The source has too few values.
    Unknown,
}

impl SocketLimit {
    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Application => "application",
            Self::ReceiveWindow => "receive_window",
            Self::SendBuffer => "send_buffer",
            Self::Loss => "loss",
            Self::Queue => "queue",
            Self::Cwnd => "congestion_window",
            Self::LocalReader => "local_reader",
            Self::Peer => "peer",
            Self::Unknown => "unknown",
        }
    }

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Application => "application",
            Self::ReceiveWindow => "receive window",
            Self::SendBuffer => "send buffer",
            Self::Loss => "loss",
            Self::Queue => "queue",
            Self::Cwnd => "congestion window",
            Self::LocalReader => "local reader",
            Self::Peer => "the peer sends",
            Self::Unknown => "unknown",
        }
    }

    /// What it means, in a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Idle => "no data in either direction",
            Self::Application => "the local application has nothing to send",
            Self::ReceiveWindow => {
                "the peer's receive window is full: its buffer is small, or its application reads slowly"
            }
            Self::SendBuffer => {
                "the send buffer is full: SO_SNDBUF or the third figure of net.ipv4.tcp_wmem is too small for the path"
            }
            Self::Loss => "packets are lost while no queue delays others",
            Self::Queue => "the path is full: its queue lengthens the round trip",
            Self::Cwnd => {
                "the congestion window, pacing or a processor, with an empty queue and without losses"
            }
            Self::LocalReader => "the local application does not read what has arrived",
            Self::Peer => "data arrive; what limits them is known at the peer",
            Self::Unknown => "too few values",
        }
    }
}

/// What limited a socket between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketVerdict {
    /// What limited it.
    pub limit: SocketLimit,
    /// Time that the shares refer to, in ns: between the samples, or without an earlier one the time
    /// with data in flight since the connection began.
    pub time: u64,
    /// Time without data in flight, in ns.
    pub application: u64,
    /// Time limited by the peer's window, in ns.
    pub rwnd: u64,
    /// Time limited by the send buffer, in ns.
    pub sndbuf: u64,
    /// The rest, in ns.
    pub network: u64,
    /// Bytes acknowledged or received, whichever are more.
    pub bytes: u64,
    /// Whether those are received.
    pub is_receiver: bool,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Delay of the queue: the smoothed round trip less the shortest, in ns.
    pub queue: Option<u64>,
}

/// Least delay that is a queue, in ns: less is the work of hosts.
const MIN_QUEUE: u64 = 1_000_000;
/// One packet in this many must be lost for loss to be the limit.
const LOSS_RATIO: u64 = 2_000;
/// Time by which a local application lags behind the data that arrive, from which it reads slowly, in
/// ns.
const MIN_LAG: u64 = 20_000_000;

impl SocketVerdict {
    /// Compares a sample with an earlier one of the same socket, or with its beginning.
    pub fn of(before: Option<&SocketSample>, now: &SocketSample) -> Self {
        let none = SocketSample::default();
        let start = before.unwrap_or(&none);
        let since = |value: fn(&SocketSample) -> Option<u64>| {
            value(now).unwrap_or(0).saturating_sub(value(start).unwrap_or(0))
        };
        let elapsed = before.and_then(|before| now.at?.checked_sub(before.at?));
        let whole = elapsed.filter(|&ns| ns > 0);
        let busy = since(|one| one.busy);
        let time = whole.unwrap_or(busy);
        let busy = busy.min(time);
        let rwnd = since(|one| one.rwnd_limited).min(busy);
        let sndbuf = since(|one| one.sndbuf_limited).min(busy - rwnd);
        let (acked, received) = (since(|one| one.acked), since(|one| one.received));
        let mut verdict = Self {
            limit: SocketLimit::Unknown,
            time,
            // iperf3 does not have the time with data in flight.
            application: if now.busy.is_none() && acked > 0 { 0 } else { time - busy },
            rwnd,
            sndbuf,
            network: busy - rwnd - sndbuf,
            bytes: acked.max(received),
            is_receiver: received > acked,
            retransmitted: since(|one| one.retransmitted),
            queue: now.srtt.zip(now.min_rtt).map(|(srtt, min)| srtt.saturating_sub(min)),
        };
        let is_sending = acked > 0 || busy > 0 || now.unacked.unwrap_or(0) > 0;
        verdict.limit = if is_sending && acked >= received {
            verdict.of_sender(before, now, since(|one| one.sent_packets))
        } else {
            of_receiver(now, received, time)
        };
        verdict
    }

    fn of_sender(
        &self,
        before: Option<&SocketSample>,
        now: &SocketSample,
        sent_packets: u64,
    ) -> SocketLimit {
        if self.time > 0 && now.busy.is_some() {
            let most = self.application.max(self.rwnd).max(self.sndbuf).max(self.network);
            if most == self.rwnd {
                return SocketLimit::ReceiveWindow;
            }
            if most == self.sndbuf {
                return SocketLimit::SendBuffer;
            }
            if most == self.application {
                return SocketLimit::Application;
            }
        }
        let waits_for_data = now.app_limited && now.unsent.unwrap_or(0) == 0;
        if waits_for_data && before.is_none_or(|before| before.app_limited) {
            return SocketLimit::Application;
        }
        self.of_network(now, sent_packets)
    }

    fn of_network(&self, now: &SocketSample, sent_packets: u64) -> SocketLimit {
        let window = |packets: u64| packets.saturating_mul(now.mss.unwrap_or(1_448));
        let is_window_full = now
            .peer_window
            .zip(now.cwnd)
            .is_some_and(|(peer, cwnd)| peer < window(cwnd) && now.busy.is_none());
        if is_window_full {
            return SocketLimit::ReceiveWindow;
        }
        let base = now.min_rtt.unwrap_or(0);
        if self.queue.is_some_and(|queue| queue >= MIN_QUEUE.max(base / 2)) {
            return SocketLimit::Queue;
        }
        if self.retransmitted > 0 && self.retransmitted.saturating_mul(LOSS_RATIO) >= sent_packets {
            return SocketLimit::Loss;
        }
        SocketLimit::Cwnd
    }

    /// Bytes per second; `None` without a time.
    pub fn rate(&self) -> Option<f64> {
        (self.time > 0).then(|| self.bytes as f64 * 1e9 / self.time as f64)
    }
}

/// `received` bytes in `time` ns.
fn of_receiver(now: &SocketSample, received: u64, time: u64) -> SocketLimit {
    let unread = u128::from(now.unread.unwrap_or(0));
    let is_late = unread * u128::from(time) >= u128::from(MIN_LAG) * u128::from(received);
    if unread > 0 && is_late {
        SocketLimit::LocalReader
    } else if received > 0 {
        SocketLimit::Peer
    } else {
        SocketLimit::Idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn before() -> SocketSample {
        SocketSample {
            at: Some(0),
            mss: Some(1_448),
            cwnd: Some(20),
            unacked: Some(20),
            srtt: Some(41 * MILLI),
            min_rtt: Some(40 * MILLI),
            acked: Some(0),
            received: Some(0),
            sent_packets: Some(0),
            retransmitted: Some(0),
            busy: Some(0),
            rwnd_limited: Some(0),
            sndbuf_limited: Some(0),
            ..SocketSample::default()
        }
    }

    /// A second of work later.
    fn later(change: impl FnOnce(&mut SocketSample)) -> SocketLimit {
        let mut now = SocketSample {
            at: Some(1_000 * MILLI),
            acked: Some(1_000_000),
            sent_packets: Some(700),
            busy: Some(1_000 * MILLI),
            ..before()
        };
        change(&mut now);
        SocketVerdict::of(Some(&before()), &now).limit
    }

    #[test]
    fn the_largest_share_of_the_time_is_the_limit() {
        assert_eq!(later(|_| ()), SocketLimit::Cwnd);
        assert_eq!(later(|now| now.rwnd_limited = Some(600 * MILLI)), SocketLimit::ReceiveWindow);
        assert_eq!(later(|now| now.sndbuf_limited = Some(600 * MILLI)), SocketLimit::SendBuffer);
        assert_eq!(later(|now| now.busy = Some(300 * MILLI)), SocketLimit::Application);
        assert_eq!(later(|now| now.retransmitted = Some(7)), SocketLimit::Loss);
        assert_eq!(later(|now| now.srtt = Some(70 * MILLI)), SocketLimit::Queue);
        // Losses of a full queue are the queue's.
        let overflow = |now: &mut SocketSample| {
            (now.srtt, now.retransmitted) = (Some(70 * MILLI), Some(7));
        };
        assert_eq!(later(overflow), SocketLimit::Queue);
    }

    #[test]
    fn a_receiver_knows_its_own_application_only() {
        let receives = |unread: u64| {
            later(|now| {
                (now.acked, now.busy, now.unacked) = (Some(0), Some(0), Some(0));
                (now.received, now.unread) = (Some(5_000_000), Some(unread));
            })
        };
        assert_eq!(receives(0), SocketLimit::Peer);
        assert_eq!(receives(90_000), SocketLimit::Peer);
        assert_eq!(receives(300_000), SocketLimit::LocalReader);
    }

    #[test]
    fn counters_that_run_back_are_no_time() {
        let before = SocketSample { busy: Some(5_000 * MILLI), acked: Some(9), ..before() };
        let now = SocketSample { at: Some(0), ..self::before() };
        let verdict = SocketVerdict::of(Some(&before), &now);
        assert_eq!((verdict.time, verdict.bytes, verdict.rate()), (0, 0, None));
    }
}
