//! A scenario as plain data: hosts, paths, applications, taps.
//!
//! All values are resolved: a profile has its knobs applied, a buffer of `1bdp` is in bytes. The
//! crate `scenario` parses the text form with its units and reports its errors.

mod exchange;
mod fetches;
mod stack;
mod traffic;

use core::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use net::link::QueueLimit;
pub use net::netem::{Distribution, NetemParams, NetemRate, NetemReorder};
pub use net::offload::HashRule;
use net::offload::{GroParams, LroParams};
pub use net::outage::OutageMode;
pub use net::qdisc_link::LinkCapacity;
pub use net::queue::QdiscConfig;
pub use net::reorder::reverse;
pub use net::reset::ResetTrigger;
pub use net::schedule::Schedule;
pub use net::selection::{ByteRange, FourState, GilbertElliott, PacketClass, SelectionRule};
pub use net::slot::{SlotParams, SlotSpread};
pub use net::token_bucket::Framing;
use packet::IpVersion;
pub use record::SynOffers;
use units::{Bytes, Duration, Rate};

pub use exchange::{ExchangeSide, ExchangeSpec, ExchangeStep, WINDOW_UPDATE};
pub use fetches::{BitrateRule, PageSpec, VideoSpec};
pub use stack::{AcceptQueueSpec, QuicStack, RealQuicStack, StackSpec, TcpStack};
pub(crate) use traffic::exponential;
pub use traffic::{Arrivals, CDF_WHOLE, FlowGroup, TransferSizes};

/// A world to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Title for display.
    pub title: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Virtual time after which the run ends, finished or not.
    pub duration: Duration,
    /// Hosts.
    pub hosts: Vec<HostSpec>,
    /// Pairs of one-way routes between two hosts.
    pub paths: Vec<PathSpec>,
    /// Elements that several routes may pass through.
    pub shared: Vec<SharedElement>,
    /// Connections.
    pub flows: Vec<FlowSpec>,
    /// Groups of consecutive flows that follow one template, in the order of the flows.
    pub groups: Vec<FlowGroup>,
    /// Capture points.
    pub taps: Vec<TapSpec>,
}

/// A host with its transport stack.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSpec {
    /// Name in the scenario.
    pub name: String,
    /// Stack of its connections.
    pub stack: StackSpec,
    /// Offloads of its network card and driver.
    pub offload: Offload,
    /// Time from the arrival of a burst to its processing by the stack, and from the stack's
    /// wake-up of the application to the application's reaction.
    pub delay: Duration,
}

/// Offloads of a network card and its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// TSO: the card splits bursts.
    pub tso: bool,
    /// Merging of received packets.
    pub receive: ReceiveOffloadSpec,
    /// Packet hash claimed by the card, by which FreeBSD's LRO sorts a pass.
    pub rss_hash: HashRule,
    /// Time after its first packet for which an aggregate accepts more, beyond the interrupt pass
    /// that received it; with zero it is delivered at the end of the pass.
    pub flush: Duration,
    /// Maximum number of packets in one driver pass (`rx_budget` of FreeBSD's iflib drivers); the
    /// rest are processed in further passes.
    pub budget: Option<NonZeroU32>,
    /// Delay of the interrupt after the first waiting packet (interrupt moderation, `rx-usecs` of
    /// ethtool), in addition to the host's delay; it does not apply to the application.
    pub moderation: Duration,
}

/// Merging of received packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReceiveOffloadSpec {
    /// None: every packet reaches the stack unmerged.
    #[default]
    Off,
    /// FreeBSD's LRO (tcp_lro.c).
    Lro(LroParams),
    /// Linux's GRO (tcp_gro_receive).
    Gro(GroParams),
}

/// Two one-way routes between a pair of hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    /// Index of the host where `forward` starts.
    pub from: usize,
    /// Index of the host where `forward` ends.
    pub to: usize,
    /// Elements from `from` to `to`, in this order.
    pub forward: Vec<ElementSpec>,
    /// Elements from `to` to `from`, in this order.
    pub reverse: Vec<ElementSpec>,
}

/// An element that several routes may pass through, such as a common bottleneck of many hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedElement {
    /// Name in the scenario.
    pub name: String,
    /// The element; not [`ElementSpec::Shared`] itself.
    pub element: ElementSpec,
}

/// An element of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementSpec {
    /// A drop-tail queue in front of a line of the given rate.
    Link {
        /// Rate of the line.
        rate: Rate,
        /// Capacity of the queue, excluding the packet in transmission.
        limit: QueueLimit,
    },
    /// A queue with a queue discipline, or in front of a line that follows a trace or changes.
    LinkWithQdisc {
        /// Capacity of the line.
        capacity: LinkCapacity,
        /// Capacity of the queue, excluding the packet in transmission.
        limit: QueueLimit,
        /// The capacity of the queue over time, if it changes.
        limits: Option<Schedule<QueueLimit>>,
        /// Queue discipline.
        queue: QdiscConfig,
    },
    /// A fixed delay.
    Delay(Duration),
    /// A delay that changes over time; order is kept.
    ChangingDelay(Schedule<Duration>),
    /// The random delay of a congested Wi-Fi channel, with this average over time; order is kept.
    WifiJitter(Schedule<Duration>),
    /// Releases packets in slots; order is kept.
    Slot(SlotParams),
    /// A random delay per packet, uniform from 0 to `most`; order is kept.
    Jitter {
        /// The longest delay.
        most: Duration,
    },
    /// netem's queue by time: random delays that reorder packets, a rate and a limit for all.
    Netem(NetemParams),
    /// Drops packets.
    Loss {
        /// Selects the packets.
        rule: SelectionRule,
        /// Class of packets that the rule covers.
        only: PacketClass,
    },
    /// Duplicates packets.
    Duplicate {
        /// Selects the packets.
        rule: SelectionRule,
        /// Class of packets that the rule covers.
        only: PacketClass,
    },
    /// Corrupts packets; the network card that receives them drops them.
    Corrupt {
        /// Selects the packets.
        rule: SelectionRule,
        /// Class of packets that the rule covers.
        only: PacketClass,
    },
    /// Reverses groups of packets.
    Reverse(reverse::ReverseParams),
    /// Moves packets back by a number of positions.
    Displace {
        /// Selects the packets.
        rule: SelectionRule,
        /// Number of positions.
        places: NonZeroU32,
        /// Maximum hold time, if too few packets follow.
        timeout: Duration,
        /// Class of packets that the rule covers.
        only: PacketClass,
    },
    /// Delays single packets, which others then overtake.
    Late {
        /// Selects the packets.
        rule: SelectionRule,
        /// Extra delay.
        by: Duration,
        /// Class of packets that the rule covers.
        only: PacketClass,
    },
    /// ACK filter: drops bare ACKs in favour of newer ones.
    Thin {
        /// Newly acknowledged bytes of a connection per ACK passed.
        bytes: Bytes,
        /// Maximum time for which an ACK is held.
        timeout: Duration,
    },
    /// Passes no packets for a period.
    Outage {
        /// Start, from the beginning of the run.
        from: Duration,
        /// End, exclusive.
        until: Duration,
        /// Time from the start of one outage to that of the next, longer than an outage; without it
        /// there is one.
        period: Option<Duration>,
        /// Treatment of packets that arrive meanwhile.
        during: OutageMode,
    },
    /// A token bucket that drops excess packets.
    Policer {
        /// Token rate.
        rate: Rate,
        /// Capacity of the bucket.
        burst: Bytes,
    },
    /// A token bucket that queues excess packets.
    Shaper {
        /// Token rate.
        rate: Rate,
        /// Capacity of the bucket.
        burst: Bytes,
        /// Capacity of the queue.
        limit: QueueLimit,
        /// What the queue and the bucket count beside the bytes of IP packets.
        framing: Framing,
    },
    /// Drops packets above a size.
    Mtu {
        /// IP bytes of the largest packet that passes.
        size: Bytes,
        /// Start, from the beginning of the run.
        from: Duration,
        /// Whether it reports them to their sender.
        icmp: bool,
    },
    /// Removes what SYNs offer.
    Strip(SynOffers),
    /// Forgets idle connections.
    Forget {
        /// Time without packets.
        idle: Duration,
        /// Whether it answers the packets of a forgotten connection by a RST.
        resets: bool,
    },
    /// Resets connections.
    Reset(ResetTrigger),
    /// The element of [`Scenario::shared`] with this index.
    Shared(usize),
}

/// A connection with its application.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    /// Name in the scenario.
    pub name: String,
    /// Index of the path.
    pub path: usize,
    /// Index of the host that connects and writes.
    pub from: usize,
    /// Index of the host that listens and reads.
    pub to: usize,
    /// Time of the first SYN.
    pub start: Duration,
    /// Application workload.
    pub app: App,
    /// Version of the internet protocol.
    pub ip: IpVersion,
    /// Whether the application disables Nagle's algorithm (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Read pattern of the listening side, if it does not read all available data at once; no
    /// effect on [`App::Requests`] and [`App::Exchange`].
    pub reads: Option<ReadPattern>,
    /// How the connecting side closes the connection.
    pub close: Close,
    /// Keepalive of both applications (`SO_KEEPALIVE`).
    pub keepalive: Option<KeepaliveSpec>,
}

/// Read pattern of a slow application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPattern {
    /// Maximum bytes per read.
    pub chunk: Bytes,
    /// Interval between reads.
    pub every: Duration,
}

/// How an application closes its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Close {
    /// A FIN follows the last byte.
    #[default]
    Fin,
    /// A reset follows when the stack has accepted the last byte; unsent data is discarded
    /// (`SO_LINGER` of zero).
    Reset,
}

/// Keepalive parameters of a connection; absent ones default to the host's (`TCP_KEEPIDLE`,
/// `TCP_KEEPINTVL`, `TCP_KEEPCNT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepaliveSpec {
    /// Idle time before the first probe.
    pub idle: Option<Duration>,
    /// Interval between probes.
    pub interval: Option<Duration>,
    /// Unanswered probes after which the connection is aborted.
    pub count: Option<u32>,
}

/// Workload of a flow's applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum App {
    /// Writes as fast as the stack accepts data, then closes.
    Bulk {
        /// Total bytes; `None` writes until the run ends.
        bytes: Option<Bytes>,
        /// Bytes per write; `None` offers all remaining bytes in one.
        write: Option<NonZeroU64>,
    },
    /// Writes a chunk at fixed intervals, then closes.
    Paced {
        /// Bytes per write.
        chunk: Bytes,
        /// Interval between writes.
        every: Duration,
        /// Total bytes; `None` writes until the run ends.
        bytes: Option<Bytes>,
        /// A write waits for space in the send buffer; otherwise the rest of a write that did not fit is
        /// written together with what has fallen due since.
        blocking: bool,
    },
    /// Alternates between writing and pausing, then closes.
    OnOff {
        /// Length of an on period, in which it writes as fast as the stack accepts data.
        on: OnPeriod,
        /// Time from the end of an on period to the start of the next.
        off: Pause,
        /// Total bytes; `None` writes until the run ends.
        bytes: Option<Bytes>,
    },
    /// Sends requests one after another, each answered by the other side, then closes.
    Requests {
        /// Bytes per request.
        request: Bytes,
        /// Bytes per response.
        response: Bytes,
        /// Time from the last byte of a response to the next request.
        think: Duration,
        /// Number of requests; `None` continues until the run ends.
        count: Option<u64>,
    },
    /// Writes step by step, each side after what precedes its step, then closes.
    Exchange(Arc<ExchangeSpec>),
    /// Plays a video that the other side sends in chunks, each on request, then closes.
    Video(Arc<VideoSpec>),
    /// Loads web pages one after another, then closes.
    Page {
        /// The pages.
        page: Arc<PageSpec>,
        /// Number of the connection; those of a page are consecutive flows, in this order.
        connection: u32,
    },
    /// Sends datagrams over UDP, whatever arrives; the stacks of the hosts have no part in it.
    Datagrams(DatagramSpec),
}

impl App {
    /// Does the listening side send the bytes that results count?
    pub fn is_answered(&self) -> bool {
        match self {
            Self::Exchange(exchange) => exchange.is_answered(),
            _ => matches!(self, Self::Requests { .. } | Self::Video(_) | Self::Page { .. }),
        }
    }

    /// Number of connections that it needs.
    pub fn connections(&self) -> usize {
        match self {
            Self::Page { page, .. } => page.connections.max(1) as usize,
            _ => 1,
        }
    }

    /// The same on its connection of this number.
    fn connection(&self, number: usize) -> Self {
        match self {
            Self::Page { page, .. } => Self::Page { page: page.clone(), connection: number as u32 },
            other => other.clone(),
        }
    }
}

/// A flow of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatagramSpec {
    /// Payload of a datagram.
    pub size: Bytes,
    /// Time from one datagram to the next.
    pub interval: DatagramInterval,
    /// Number of datagrams; `None` continues until the run ends.
    pub count: Option<u64>,
    /// The receiver returns each datagram, as to `ping`.
    pub echo: bool,
}

/// Time from one datagram to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramInterval {
    /// A constant.
    Fixed(Duration),
    /// Exponentially distributed with this mean: a Poisson process.
    Poisson(Duration),
}

/// Length of an on period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPeriod {
    /// Until the stack has accepted this many bytes.
    Bytes(Bytes),
    /// A fixed duration, whatever the number of bytes.
    For(Duration),
}

/// Length of an off period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// A constant.
    Fixed(Duration),
    /// Drawn each time, uniformly in whole nanoseconds from `least` to `most`.
    Between {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
}

/// A capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapSpec {
    /// Index of the host.
    pub host: usize,
    /// Position on the host.
    pub place: TapPoint,
}

/// Position of a capture point on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapPoint {
    /// Between the stack and the offloads, as tcpdump: captures bursts and aggregates.
    Stack,
    /// Between the offloads and the path: captures single packets.
    Wire,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Hosts `a` and `b` with a path between them and no flow.
    pub(crate) fn two_hosts(
        forward: Vec<ElementSpec>,
        reverse: Vec<ElementSpec>,
        shared: Vec<SharedElement>,
    ) -> Scenario {
        let host = |name: &str| {
            let profile = tcp::profile::TcpProfile::named("freebsd-13.2")?;
            Some(HostSpec {
                name: name.into(),
                stack: StackSpec::Tcp(TcpStack::new(profile, cc::Algorithm::NewReno)),
                offload: Offload::default(),
                delay: Duration::ZERO,
            })
        };
        Scenario {
            title: String::new(),
            seed: 1,
            duration: Duration::from_secs(3_600),
            hosts: ["a", "b"].into_iter().filter_map(host).collect(),
            paths: vec![PathSpec { from: 0, to: 1, forward, reverse }],
            shared,
            flows: Vec::new(),
            groups: Vec::new(),
            taps: Vec::new(),
        }
    }
}
