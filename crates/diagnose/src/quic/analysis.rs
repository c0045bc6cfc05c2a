//! What the log of a QUIC endpoint shows: the input of the rules.

use std::collections::BTreeMap;

use super::budget::{QuicBudget, QuicLimiter, QuicSpan};
use super::bursts::QuicBursts;
use super::exchange::QuicExchange;
use super::handshake::QuicHandshake;
use super::policer::QuicPolicer;
use super::rates::{RateDrop, RateHistory};
use super::record::QuicLossTrigger;
use super::rhythm::QuicRhythm;
use super::transfer::QuicTransfer;

/// A congestion event: the losses of one recovery period (RFC 9002 section 7.3.2), and what
/// followed until the window was regained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicEpisode {
    /// When its first packet was declared lost, in ns.
    pub at: u64,
    /// First and last event of its losses.
    pub events: (u64, u64),
    /// Packets declared lost.
    pub lost: u64,
    /// Those that arrived.
    pub spurious: u64,
    /// Congestion window before it.
    pub window_before: Option<u64>,
    /// Lowest congestion window since, until it was regained.
    pub window_after: Option<u64>,
    /// Whether its controller or its window shows persistent congestion (RFC 9002 section 7.6).
    pub persistent: bool,
    /// Whether a probe timeout began it.
    pub by_timeout: bool,
    /// Whether it began with CE marks rather than losses.
    pub by_ce: bool,
    /// Whether a queue was standing when it began.
    pub is_queued: bool,
    /// Time in ns in which the bottleneck was idle where its lost packets would have been.
    pub stall: u64,
    /// Whether it followed an outage: several probe timeouts in a row, or one after which all of a full window was missing.
    pub after_outage: bool,
    /// Time in which the window limited the sender, until it was regained.
    pub span: QuicSpan,
}

/// The rate of the bottleneck by the spacing of packets that waited there one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QuicSpacing {
    /// Rate in bytes per second.
    pub rate: f64,
    /// When it fell for the rest of the transfer, in ns, and the rate after that.
    pub fell: Option<(u64, f64)>,
    /// Time in which the spacings show it busy, in ns, and the bytes of the transfer that it carried then.
    pub busy: (u64, u64),
    /// Begin of the first spacing and end of the last one, in ns.
    pub interval: (u64, u64),
}

impl QuicSpacing {
    /// Time in ns in which the link carried what others sent.
    pub fn of_others(&self) -> u64 {
        let (ns, bytes) = self.busy;
        ns.saturating_sub((bytes as f64 * 1e9 / self.rate.max(1.0)) as u64)
    }
}

/// Reordering of packets that were declared lost and arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicReordering {
    /// Most packets that overtook one of them.
    pub packets: u64,
    /// Longest time between the declaration and the acknowledgment, in ns.
    pub late: u64,
    /// Longest time between the transmission and the acknowledgment, in ns.
    pub delay: u64,
    /// First and last event.
    pub events: (u64, u64),
    /// Begin and end, in ns.
    pub interval: (u64, u64),
}

/// Delays of the ACKs received, as the peer reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicAckDelays {
    /// ACK frames with a delay, for a newly acknowledged ack-eliciting packet.
    pub count: u64,
    /// Sum of the delays, in ns.
    pub sum: u64,
    /// Largest, in ns.
    pub max: u64,
    /// Number above the peer's `max_ack_delay`.
    pub above: u64,
    /// Event of the largest.
    pub event: u64,
    /// Ack-eliciting packets that they acknowledged.
    pub packets: u64,
}

/// Data received: gaps between packet numbers, and the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicArrivals {
    /// 1-RTT packets.
    pub packets: u64,
    /// Bytes of the packets.
    pub bytes: u64,
    /// Stream bytes received for the first time.
    pub stream_bytes: u64,
    /// Packet numbers never received below the largest.
    pub missing: u64,
    /// Packets that arrived after a larger number.
    pub late: u64,
    /// Most packets that overtook one.
    pub max_overtaken: u64,
    /// Time and event of the first and last packet with data.
    pub interval: Option<(u64, u64)>,
    /// See `interval`.
    pub events: (u64, u64),
}

/// How the connection ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuicClose {
    /// Time in ns.
    pub at: u64,
    /// Event.
    pub event: u64,
    /// True if the peer closed it.
    pub by_peer: Option<bool>,
    /// Error code or name.
    pub code: String,
    /// Reason phrase.
    pub reason: String,
    /// Whether it ended by the idle timeout.
    pub idle_timeout: bool,
    /// Whether the code is an error.
    pub is_error: bool,
}

/// A flow control limit that stopped the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicFlowLimits {
    /// Last limit of the connection that was reached, in bytes.
    pub connection: Option<u64>,
    /// Stream that was last at its limit, and the limit.
    pub stream: Option<(u64, u64)>,
    /// First limit of the connection, and of the stream that was last at its limit, in bytes.
    pub first: (Option<u64>, Option<u64>),
    /// Streams opened.
    pub streams: u64,
}

/// Sizes of datagrams around a change of the path MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicSizes {
    /// Largest packet sent.
    pub largest_sent: u64,
    /// Largest packet acknowledged.
    pub largest_acked: u64,
    /// Packets with stream data that were lost.
    pub lost_data: u64,
    /// Those of them larger than any packet acknowledged by then.
    pub lost_larger: u64,
    /// First and last event of these.
    pub events: (u64, u64),
    /// Begin and end, in ns.
    pub interval: (u64, u64),
    /// Path MTU as the log has it: first, largest, last.
    pub mtu: Option<[u64; 3]>,
    /// Packets of sizes that arrived before and vanish from some time on.
    pub vanished: Option<QuicVanished>,
}

/// Packets lost since the last one of their size that arrived, while smaller ones arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicVanished {
    /// Their number.
    pub lost: u64,
    /// Size of the smallest of them, in bytes.
    pub bytes: u64,
    /// Largest packet sent since that arrived, in bytes.
    pub smaller: u64,
    /// Number of smaller packets sent since that arrived.
    pub arrived: u64,
    /// When the first was declared lost, in ns.
    pub at: u64,
    /// Time between the transmissions of the first and of the last one lost, in ns.
    pub span: u64,
    /// First and last event.
    pub events: (u64, u64),
}

/// The window at its longest constant stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicPlateau {
    /// Time in which it limited the sender, in ns.
    pub ns: u64,
    /// The window in bytes.
    pub window: u64,
    /// Begin and end, in ns.
    pub interval: (u64, u64),
    /// First and last event.
    pub events: (u64, u64),
}

/// How the pacer and the window were used, weighted by time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QuicPacing {
    /// Time with a pacing rate, a window and a round trip, in ns.
    pub ns: u64,
    /// Integral of the pacing rate over the window's rate (window / smoothed RTT).
    pub ratio: f64,
    /// Integral of the bytes in flight over the window.
    pub used: f64,
    /// Time of `used`.
    pub used_ns: u64,
    /// Whether the log has pacing rates.
    pub logged: bool,
}

/// The number of packets that the receiver of data gets, at least, for each packet with data that it sends.
const RECEIVER_PACKETS: u64 = 4;

/// The analysis of a QUIC connection from the log of one endpoint.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuicAnalysis {
    /// Whether the log is the client's; `None` if unknown.
    pub client: Option<bool>,
    /// Time of its first event, in ns.
    pub first: u64,
    /// Time of its last event, in ns.
    pub last: u64,
    /// Index of the first and last event.
    pub range: (u64, u64),
    /// Events.
    pub events: u64,
    /// Packets sent.
    pub sent: u64,
    /// Bytes of the packets sent, if the log has their lengths.
    pub sent_bytes: u64,
    /// Stream bytes sent for the first time.
    pub stream_bytes: u64,
    /// Packets sent with stream data.
    pub data_packets: u64,
    /// Time and event of the first and the last packet sent with data.
    pub data: Option<(u64, u64)>,
    /// Packets received.
    pub received: u64,
    /// Time of the last packet received, in ns.
    pub last_received: Option<u64>,
    /// ACK frames received.
    pub acks: u64,
    /// Packets declared lost, by trigger.
    pub lost: BTreeMap<QuicLossTrigger, u64>,
    /// 1-RTT packets that were never acknowledged although later ones were, if the log has no losses at all.
    pub passed_over: u64,
    /// Packets declared lost and acknowledged later.
    pub spurious: u64,
    /// Packets that the log itself calls spuriously lost.
    pub reported_spurious: u64,
    /// Reordering of these.
    pub reordering: QuicReordering,
    /// Congestion events.
    pub episodes: Vec<QuicEpisode>,
    /// Probe timeouts, and most in a row.
    pub timeouts: u64,
    /// See `timeouts`.
    pub max_timeouts: u64,
    /// Probe timeouts since data were last acknowledged.
    pub unanswered: u64,
    /// Parts of the silences before probe timeouts until the ACKs were due, in ns.
    pub acks_due: u64,
    /// Minimum RTT, last smoothed RTT and largest RTT sample, in ns.
    pub round_trips: Option<[u64; 3]>,
    /// Mean RTT, weighted by time, in ns.
    pub mean_rtt: Option<u64>,
    /// First, largest and last congestion window, in bytes.
    pub windows: Option<[u64; 3]>,
    /// Lowest slow-start threshold, in bytes.
    pub ssthresh: Option<u64>,
    /// Most bytes in flight.
    pub max_in_flight: Option<u64>,
    /// Largest datagram.
    pub datagram: u64,
    /// Rate of the bottleneck, in bytes per second: by the spacing of packets, or while it had a queue.
    pub bottleneck: Option<f64>,
    /// Largest rate of deliveries over a round trip, in bytes per second: the path carries at least that.
    pub largest_rate: Option<f64>,
    /// The rate of the bottleneck by the spacing of packets.
    pub spacing: Option<QuicSpacing>,
    /// Time budget of the side that sends the data.
    pub budget: QuicBudget,
    /// Slow start before the first congestion event.
    pub slow_start: QuicSpan,
    /// Window-limited time that no congestion event explains.
    pub plain_window: QuicSpan,
    /// Longest constant window.
    pub plateau: QuicPlateau,
    /// The handshake.
    pub handshake: QuicHandshake,
    /// Flow control limits that were reached.
    pub flow: QuicFlowLimits,
    /// Delays of ACKs.
    pub ack_delays: QuicAckDelays,
    /// The peer's `max_ack_delay`, in ns.
    pub max_ack_delay: Option<u64>,
    /// Data received.
    pub arrivals: QuicArrivals,
    /// Sizes of packets.
    pub sizes: QuicSizes,
    /// Use of the window and of the pacer.
    pub pacing: QuicPacing,
    /// Event at which ECN validation failed.
    pub ecn_failed: Option<(u64, u64)>,
    /// CE marks that the peer reported.
    pub ce: u64,
    /// Path challenges sent or received after the handshake: number, first time and event.
    pub challenges: (u64, u64, u64),
    /// Window before and after the first path challenge.
    pub challenge_windows: Option<(u64, u64)>,
    /// How it ended.
    pub close: Option<QuicClose>,
    /// Reordering threshold in packets, if the log has it.
    pub reordering_threshold: Option<u64>,
    /// Whether the controller reported that the application limited it.
    pub reported_application: u64,
    /// Bursts of the data sent.
    pub bursts: QuicBursts,
    /// Rhythm of the data sent.
    pub rhythm: QuicRhythm,
    /// Bytes acknowledged and bytes received over time.
    pub rates: RateHistory,
    /// Nanoseconds in which the path limited the sender, and others, over time.
    pub busy: RateHistory,
    /// A token bucket that drops the lost packets.
    pub policer: Option<QuicPolicer>,
    /// The way back is the limit: ACKs arrive at its rate in bytes per second, whatever they acknowledge.
    pub return_path: Option<f64>,
    /// A lasting drop of the rate of the path: it was the limit afterwards.
    pub path_drop: Option<RateDrop>,
    /// Messages of both hosts, and the waits before them.
    pub exchange: QuicExchange,
    /// The congestion window is inferred from the packets, as captures have none.
    pub window_inferred: bool,
    /// The log has no frames; those of the packets sent are inferred from the packets in flight.
    pub frames_inferred: bool,
    /// Information that the log lacks.
    pub missing: Vec<&'static str>,
    /// Packets of the data sent, if they were to be kept.
    pub transfer: Option<Box<QuicTransfer>>,
}

impl QuicAnalysis {
    /// Whether this host sends the data that are diagnosed.
    pub const fn is_sender(&self) -> bool {
        if self.frames_inferred {
            // Of what is received only the number of packets is known. Who receives data sends hardly any.
            return self.data_packets.saturating_mul(RECEIVER_PACKETS) >= self.received;
        }
        self.stream_bytes >= self.arrivals.stream_bytes
    }

    /// Stream bytes of the main direction.
    pub const fn bytes(&self) -> u64 {
        if self.is_sender() { self.stream_bytes } else { self.arrivals.stream_bytes }
    }

    /// Duration in ns.
    pub const fn duration(&self) -> u64 {
        self.last - self.first
    }

    /// Goodput in bytes per second, over the whole log.
    pub fn goodput(&self) -> f64 {
        match self.duration() {
            0 => 0.0,
            ns => self.bytes() as f64 * 1e9 / ns as f64,
        }
    }

    /// Packets declared lost.
    pub fn all_lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Whether a queue was standing for at least a round trip.
    pub fn has_standing_queue(&self) -> bool {
        self.round_trips.is_some_and(|[min, ..]| self.time(QuicLimiter::Path) >= min)
    }

    /// Whether the rate of the bottleneck is known.
    pub fn is_bottleneck_known(&self) -> bool {
        self.bottleneck.is_some()
    }

    /// Lost time of a span: its length less the time its bytes take at the rate of the bottleneck.
    /// With an unknown rate the whole span counts, an upper bound.
    pub fn lost_time(&self, span: &QuicSpan) -> u64 {
        match self.path_rate_at(span.interval.0) {
            Some(rate) if rate > 0.0 => {
                span.ns.saturating_sub((span.bytes as f64 * 1e9 / rate) as u64)
            }
            _ => span.ns,
        }
    }

    /// When the rate of the path fell, in ns.
    pub fn path_drop_at(&self) -> Option<u64> {
        Some(self.first + self.path_drop?.at)
    }

    /// Rate of the bottleneck at a time in ns: the lower one after it fell.
    fn path_rate_at(&self, at: u64) -> Option<f64> {
        let drop = self.path_drop.filter(|drop| at >= self.first + drop.at);
        drop.map(|drop| drop.rates.1).or(self.bottleneck)
    }

    /// Time of the connection in ns beyond its bytes at the rate of the bottleneck; `None` if that is not known.
    pub fn spare(&self) -> Option<u64> {
        let rate = self.bottleneck.filter(|&rate| rate > 0.0)?;
        Some(self.duration().saturating_sub((self.bytes() as f64 * 1e9 / rate) as u64))
    }

    /// Time in ns without the rests of its users.
    pub fn work(&self) -> u64 {
        self.budget.whole().saturating_sub(self.rests())
    }

    /// Rests of users in ns: waits of the client, and pauses within messages, that are longer than any program's. A server
    /// has no user.
    pub const fn rests(&self) -> u64 {
        let exchange = &self.exchange;
        let of_client = match self.client {
            Some(true) => exchange.local().rests.1,
            Some(false) => exchange.remote().rests.1,
            None => exchange.local().rests.1 + exchange.remote().rests.1,
        };
        of_client + exchange.pause_rests
    }

    /// Whether what limited most of the active time is not in the log.
    pub fn is_limit_unknown(&self) -> bool {
        self.time(QuicLimiter::Unknown) * 2 > self.budget.active()
    }

    /// Time of a limiter, in ns.
    pub const fn time(&self, limiter: QuicLimiter) -> u64 {
        self.budget.of(limiter).ns
    }
}
