//! What limits a connection by its kernel's own account: Linux' `struct tcp_info`, as `ss`, iperf3 and
//! netlink report it.
//!
//! The kernel counts the time with data in flight (`tcpi_busy_time`), and of it the time that the
//! peer's window and the send buffer limited (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`). Between two
//! samples the rest of the busy time belongs to the network, and time that is not busy to the
//! application. Retransmissions and the delay of the queue show what the network's time was: the
//! smoothed round trip less the shortest. Retransmissions that D-SACKs (`tcpi_dsack_dups`) report as not needed were
//! not of lost packets; with reordering (`tcpi_reord_seen`) they are its cost.

use units::{Duration, Instant};

/// State of a socket at an instant; values that the source lacks are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketSample {
    /// Time; `None` without one.
    pub at: Option<Instant>,
    /// Payload of a full segment, in bytes.
    pub mss: Option<u64>,
    /// Congestion window, in packets.
    pub cwnd: Option<u64>,
    /// Packets in flight.
    pub unacked: Option<u64>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Shortest round-trip time of the last minutes.
    pub min_rtt: Option<Duration>,
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
    /// D-SACKs received: retransmissions that were not needed.
    pub dsacks: Option<u64>,
    /// Times that packets were found to have overtaken others.
    pub reordered: Option<u64>,
    /// Packets by which they did at most, as known to the sender.
    pub reordering: Option<u64>,
    /// Time with data in flight.
    pub busy: Option<Duration>,
    /// Part of it that the peer's window limited.
    pub rwnd_limited: Option<Duration>,
    /// Part of it that the send buffer limited.
    pub sndbuf_limited: Option<Duration>,
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
    /// Packets overtake others, and the sender takes the late ones for lost.
    Reordering,
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
            Self::Reordering => "reordering",
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
            Self::Reordering => "reordering",
            Self::Queue => "queue",
            Self::Cwnd => "congestion window",
            Self::LocalReader => "local reader",
            Self::Peer => "the peer sends",
            Self::Unknown => "unknown",
        }
    }

    /// Code of the finding that a capture of the connection would have; `None` if it depends on more than the
    /// kernel's account.
    pub const fn code(self) -> Option<&'static str> {
        match self {
            Self::Application => Some("CC501"),
            Self::ReceiveWindow => Some("CC401"),
            Self::SendBuffer => Some("CC503"),
            Self::Reordering => Some("CC301"),
            Self::Queue => Some("CC601"),
            Self::LocalReader => Some("CC403"),
            Self::Idle | Self::Loss | Self::Cwnd | Self::Peer | Self::Unknown => None,
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
            Self::Reordering => {
                "packets overtake others: most of what was retransmitted had arrived, and the window was reduced for it"
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
    /// Time that the shares refer to: between the samples, or without an earlier one the time
    /// with data in flight since the connection began.
    pub time: Duration,
    /// Time without data in flight.
    pub application: Duration,
    /// Time limited by the peer's window.
    pub rwnd: Duration,
    /// Time limited by the send buffer.
    pub sndbuf: Duration,
    /// The rest.
    pub network: Duration,
    /// Bytes acknowledged or received, whichever are more.
    pub bytes: u64,
    /// Whether those are received.
    pub is_receiver: bool,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Those among them that were not needed.
    pub spurious: u64,
    /// Times that packets were found to have overtaken others.
    pub reordered: u64,
    /// Packets by which they did at most; 0 if none did.
    pub reordering: u64,
    /// Delay of the queue: the smoothed round trip less the shortest.
    pub queue: Option<Duration>,
}

/// Least delay that is a queue: less is the work of hosts.
const MIN_QUEUE: Duration = Duration::from_millis(1);
/// One packet in this many must be lost for loss to be the limit.
const LOSS_RATIO: u64 = 2_000;
/// Time by which a local application lags behind the data that arrive, from which it reads slowly.
const MIN_LAG: Duration = Duration::from_millis(20);

impl SocketVerdict {
    /// Compares a sample with an earlier one of the same socket, or with its beginning.
    pub fn of(before: Option<&SocketSample>, now: &SocketSample) -> Self {
        let none = SocketSample::default();
        let start = before.unwrap_or(&none);
        let since = |value: fn(&SocketSample) -> Option<u64>| {
            value(now).unwrap_or(0).saturating_sub(value(start).unwrap_or(0))
        };
        let time_since = |value: fn(&SocketSample) -> Option<Duration>| {
            value(now).unwrap_or_default().saturating_sub(value(start).unwrap_or_default())
        };
        let elapsed = before.and_then(|before| Some(now.at?.since(before.at?)));
        let whole = elapsed.filter(|time| !time.is_zero());
        let busy = time_since(|one| one.busy);
        let time = whole.unwrap_or(busy);
        let busy = busy.min(time);
        let rwnd = time_since(|one| one.rwnd_limited).min(busy);
        let sndbuf = time_since(|one| one.sndbuf_limited).min(busy - rwnd);
        let (acked, received) = (since(|one| one.acked), since(|one| one.received));
        let [retransmitted, reordered] =
            [since(|one| one.retransmitted), since(|one| one.reordered)];
        let mut verdict = Self {
            limit: SocketLimit::Unknown,
            time,
            // iperf3 does not have the time with data in flight.
            application: if now.busy.is_none() && acked > 0 { Duration::ZERO } else { time - busy },
            rwnd,
            sndbuf,
            network: busy - rwnd - sndbuf,
            bytes: acked.max(received),
            is_receiver: received > acked,
            retransmitted,
            spurious: since(|one| one.dsacks).min(retransmitted),
            reordered,
            reordering: now.reordering.filter(|_| reordered > 0).unwrap_or(0),
            queue: now.srtt.zip(now.min_rtt).map(|(srtt, min)| srtt.saturating_sub(min)),
        };
        let is_sending = acked > 0 || !busy.is_zero() || now.unacked.unwrap_or(0) > 0;
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
        if !self.time.is_zero() && now.busy.is_some() {
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
        let base = now.min_rtt.unwrap_or_default();
        if self.queue.is_some_and(|queue| queue >= MIN_QUEUE.max(base / 2)) {
            return SocketLimit::Queue;
        }
        let is_much =
            |packets: u64| packets > 0 && packets.saturating_mul(LOSS_RATIO) >= sent_packets;
        let needed = self.retransmitted - self.spurious;
        if self.reordered > 0 && is_much(self.spurious) && self.spurious >= needed {
            return SocketLimit::Reordering;
        }
        if is_much(needed) {
            return SocketLimit::Loss;
        }
        SocketLimit::Cwnd
    }

    /// Bytes per second; `None` without a time.
    pub fn rate(&self) -> Option<f64> {
        (!self.time.is_zero()).then(|| self.bytes as f64 * 1e9 / self.time.as_nanos() as f64)
    }
}

/// What limits a receiver of `received` bytes in `time`.
fn of_receiver(now: &SocketSample, received: u64, time: Duration) -> SocketLimit {
    let unread = u128::from(now.unread.unwrap_or(0));
    let [time, lag] = [time, MIN_LAG].map(|time| u128::from(time.as_nanos()));
    let is_late = unread * time >= lag * u128::from(received);
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

    const fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    fn before() -> SocketSample {
        SocketSample {
            at: Some(Instant::ZERO),
            mss: Some(1_448),
            cwnd: Some(20),
            unacked: Some(20),
            srtt: ms(41),
            min_rtt: ms(40),
            acked: Some(0),
            received: Some(0),
            sent_packets: Some(0),
            retransmitted: Some(0),
            busy: ms(0),
            rwnd_limited: ms(0),
            sndbuf_limited: ms(0),
            ..SocketSample::default()
        }
    }

    /// A second of work later.
    fn later(change: impl FnOnce(&mut SocketSample)) -> SocketLimit {
        let mut now = SocketSample {
            at: Some(Instant::ZERO + Duration::from_secs(1)),
            acked: Some(1_000_000),
            sent_packets: Some(700),
            busy: ms(1_000),
            ..before()
        };
        change(&mut now);
        SocketVerdict::of(Some(&before()), &now).limit
    }

    #[test]
    fn the_largest_share_of_the_time_is_the_limit() {
        assert_eq!(later(|_| ()), SocketLimit::Cwnd);
        assert_eq!(later(|now| now.rwnd_limited = ms(600)), SocketLimit::ReceiveWindow);
        assert_eq!(later(|now| now.sndbuf_limited = ms(600)), SocketLimit::SendBuffer);
        assert_eq!(later(|now| now.busy = ms(300)), SocketLimit::Application);
        assert_eq!(later(|now| now.retransmitted = Some(7)), SocketLimit::Loss);
        assert_eq!(later(|now| now.srtt = ms(70)), SocketLimit::Queue);
        // Losses of a full queue are the queue's.
        let overflow = |now: &mut SocketSample| {
            (now.srtt, now.retransmitted) = (ms(70), Some(7));
        };
        assert_eq!(later(overflow), SocketLimit::Queue);
    }

    #[test]
    fn a_receiver_knows_its_own_application_only() {
        let receives = |unread: u64| {
            later(|now| {
                (now.acked, now.busy, now.unacked) = (Some(0), ms(0), Some(0));
                (now.received, now.unread) = (Some(5_000_000), Some(unread));
            })
        };
        assert_eq!(receives(0), SocketLimit::Peer);
        assert_eq!(receives(90_000), SocketLimit::Peer);
        assert_eq!(receives(300_000), SocketLimit::LocalReader);
    }

    #[test]
    fn counters_that_run_back_are_no_time() {
        let before = SocketSample { busy: ms(5_000), acked: Some(9), ..before() };
        let now = SocketSample { at: Some(Instant::ZERO), ..self::before() };
        let verdict = SocketVerdict::of(Some(&before), &now);
        assert_eq!((verdict.time, verdict.bytes, verdict.rate()), (Duration::ZERO, 0, None));
    }
}
