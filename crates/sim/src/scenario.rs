//! A scenario as plain data: hosts, paths, applications, taps.
//!
//! Everything is resolved here: a profile has its knobs applied, a buffer of `1bdp` is bytes.
//! The crate `scenario` reads the text form with its units and reports its errors.

mod stack;

use core::num::{NonZeroU32, NonZeroU64};

pub use net::choice::{ByteRange, GilbertElliott, Only, Rule};
use net::link::Limit;
pub use net::managed::Capacity;
pub use net::offload::HashRule;
use net::offload::{GroParams, LroParams};
pub use net::outage::During;
pub use net::queue::Policy;
pub use net::reorder::reverse;
use packet::IpVersion;
use units::{Bytes, Duration, Rate};

pub use stack::{QuicStack, Stack, TcpStack};

/// A world to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// What it shows, for people.
    pub title: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Virtual time after which the run ends, finished or not.
    pub duration: Duration,
    /// Machines.
    pub hosts: Vec<Host>,
    /// Pairs of one-way roads between two machines.
    pub paths: Vec<Path>,
    /// Elements that several roads may lead through.
    pub shared: Vec<Shared>,
    /// Connections.
    pub flows: Vec<Flow>,
    /// Capture points.
    pub taps: Vec<Tap>,
}

/// A machine with its transport stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Name in the scenario.
    pub name: String,
    /// The stack that its connections use.
    pub stack: Stack,
    /// What its network card and driver do to bursts.
    pub offload: Offload,
    /// Time from the arrival of a burst to its handling by the stack, and from the stack's
    /// wake-up call to the application's reaction.
    pub delay: Duration,
}

/// What the network card and its driver do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// Bursts leave the stack whole and are split by the card.
    pub tso: bool,
    /// Merging of received packets.
    pub receive: Receive,
    /// What the card claims to be a packet's hash, by which FreeBSD's LRO sorts a pass.
    pub rss_hash: HashRule,
    /// An aggregate is kept this long after its first packet for more to join it, beyond the
    /// interrupt pass that saw it; zero hands it up at the end of the pass.
    pub flush: Duration,
    /// Packets that one pass of the driver takes at most (`rx_budget` of FreeBSD's iflib
    /// drivers); what waits beyond goes through a pass of its own.
    pub budget: Option<NonZeroU32>,
    /// Packets wait for the interrupt this long after the first of them (interrupt moderation,
    /// `rx-usecs` of ethtool), besides the host's delay; the application does not.
    pub moderation: Duration,
}

/// Merging of received packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Receive {
    /// None: every packet reaches the stack alone.
    #[default]
    Off,
    /// FreeBSD's LRO (tcp_lro.c).
    Lro(LroParams),
    /// Linux' GRO (tcp_gro_receive).
    Gro(GroParams),
}

/// Two one-way roads between a pair of hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// Index of the host where `forward` begins.
    pub from: usize,
    /// Index of the host where `forward` ends.
    pub to: usize,
    /// Elements a packet meets from `from` to `to`, in this order.
    pub forward: Vec<Element>,
    /// Elements a packet meets on the way back.
    pub reverse: Vec<Element>,
}

/// An element that several roads may lead through, such as the bottleneck of many hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// Name in the scenario.
    pub name: String,
    /// What it is; not [`Element::Shared`] itself.
    pub element: Element,
}

/// A station on a path; it does one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// A drop-tail queue in front of a line of the given rate.
    Link {
        /// Rate of the line.
        rate: Rate,
        /// Room of the queue, not counting the packet on the line.
        limit: Limit,
    },
    /// A queue with a discipline of its own, or in front of a line that follows a recording.
    ManagedLink {
        /// What the line can send.
        capacity: Capacity,
        /// Room of the queue, not counting the packet on the line.
        limit: Limit,
        /// Its discipline.
        queue: Policy,
    },
    /// A fixed delay.
    Delay(Duration),
    /// A delay drawn for each packet, uniformly from nothing to `most`; order is kept.
    Jitter {
        /// The longest delay.
        most: Duration,
    },
    /// Packets are lost.
    Loss {
        /// Which.
        rule: Rule,
        /// Among which.
        only: Only,
    },
    /// Packets are doubled.
    Duplicate {
        /// Which.
        rule: Rule,
        /// Among which.
        only: Only,
    },
    /// Packets are damaged; the network card they reach drops them.
    Corrupt {
        /// Which.
        rule: Rule,
        /// Among which.
        only: Only,
    },
    /// Groups of packets leave last first.
    Reverse(reverse::Params),
    /// Packets are overtaken by a number of others.
    Displace {
        /// Which.
        rule: Rule,
        /// By how many.
        places: NonZeroU32,
        /// A packet is held no longer than this, even if not so many come.
        timeout: Duration,
        /// Among which.
        only: Only,
    },
    /// Packets come late; others overtake them.
    Late {
        /// Which.
        rule: Rule,
        /// By how much.
        by: Duration,
        /// Among which.
        only: Only,
    },
    /// Bare ACKs are lost in favour of newer ones.
    Thin {
        /// One passes per so many newly acknowledged bytes of a connection,
        bytes: Bytes,
        /// or when it has been held for so long.
        timeout: Duration,
    },
    /// Nothing passes for a while.
    Outage {
        /// Its first moment, from the beginning of the run.
        from: Duration,
        /// The first moment after it.
        until: Duration,
        /// What becomes of packets meanwhile.
        during: During,
    },
    /// A token bucket; what exceeds it is lost.
    Policer {
        /// What flows into the bucket.
        rate: Rate,
        /// What it holds.
        burst: Bytes,
    },
    /// A token bucket; what exceeds it waits.
    Shaper {
        /// What flows into the bucket.
        rate: Rate,
        /// What it holds.
        burst: Bytes,
        /// Room for what waits.
        limit: Limit,
    },
    /// The station of [`Scenario::shared`] with this index.
    Shared(usize),
}

/// A connection with its application.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Name in the scenario.
    pub name: String,
    /// Index of the path.
    pub path: usize,
    /// Index of the host that connects and writes.
    pub from: usize,
    /// Index of the host that listens and reads.
    pub to: usize,
    /// Moment of the first SYN.
    pub start: Duration,
    /// What is written.
    pub app: App,
    /// Version of the internet protocol.
    pub ip: IpVersion,
    /// The application switched Nagle's algorithm off (`TCP_NODELAY`).
    pub nodelay: bool,
    /// How the listening side reads, where it does not read all there is at once; without effect
    /// on [`App::Requests`].
    pub reads: Option<Reads>,
    /// How the connecting side ends the connection.
    pub close: Close,
    /// Both applications want a silent peer to be probed (`SO_KEEPALIVE`).
    pub keepalive: Option<Keepalive>,
}

/// How a slow application reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// Bytes of one read at most.
    pub chunk: Bytes,
    /// From one read to the next.
    pub every: Duration,
}

/// How an application ends its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Close {
    /// A FIN follows the last byte.
    #[default]
    Fin,
    /// A reset goes as soon as the stack has taken the last byte, and what it has not sent is lost
    /// (`SO_LINGER` of zero).
    Reset,
}

/// Keepalive of a connection; what is absent is as on the host (`TCP_KEEPIDLE`, `TCP_KEEPINTVL`,
/// `TCP_KEEPCNT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keepalive {
    /// Silence after which the first probe goes.
    pub idle: Option<Duration>,
    /// From one probe to the next.
    pub interval: Option<Duration>,
    /// Probes without an answer after which the connection is given up.
    pub count: Option<u32>,
}

/// What the applications of a flow do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum App {
    /// Writes as fast as the stack takes it, then closes.
    Bulk {
        /// Bytes in all; `None` writes until the run ends.
        bytes: Option<Bytes>,
        /// Bytes of one write; `None` offers all there is in one.
        write: Option<NonZeroU64>,
    },
    /// Writes a chunk at fixed intervals, then closes.
    Paced {
        /// Bytes of one write.
        chunk: Bytes,
        /// From one write to the next.
        every: Duration,
        /// Bytes in all; `None` writes until the run ends.
        bytes: Option<Bytes>,
    },
    /// Writes in bursts with pauses between them, then closes.
    OnOff {
        /// A burst; within it, it writes as fast as the stack takes it.
        on: Burst,
        /// From the end of a burst to the beginning of the next.
        off: Pause,
        /// Bytes in all; `None` writes until the run ends.
        bytes: Option<Bytes>,
    },
    /// Sends requests one after another; the other side answers each. Then closes.
    Requests {
        /// Bytes of a request.
        request: Bytes,
        /// Bytes of its response.
        response: Bytes,
        /// From the last byte of a response to the next request.
        think: Duration,
        /// Requests in all; `None` goes on until the run ends.
        count: Option<u64>,
    },
}

/// How long a burst of an application lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Burst {
    /// Until the stack has taken so many bytes.
    Bytes(Bytes),
    /// For so long, however much that is.
    For(Duration),
}

/// How long an application rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Always the same.
    Fixed(Duration),
    /// Drawn each time, every whole nanosecond from `least` to `most` equally likely.
    Between {
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
}

/// A capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tap {
    /// Index of the host.
    pub host: usize,
    /// Where on the host.
    pub place: TapPlace,
}

/// Where on a host a capture point sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapPlace {
    /// Between the stack and the offloads, where tcpdump sits: sees bursts and aggregates.
    Stack,
    /// Between the offloads and the path: sees single packets.
    Wire,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Hosts `a` and `b` with a path between them and no flow.
    pub(crate) fn two_hosts(
        forward: Vec<Element>,
        reverse: Vec<Element>,
        shared: Vec<Shared>,
    ) -> Scenario {
        let host = |name: &str| {
            let profile = tcp::profile::Profile::named("freebsd-13.2")?;
            Some(Host {
                name: name.into(),
                stack: Stack::Tcp(TcpStack::new(profile, cc::Algorithm::NewReno)),
                offload: Offload::default(),
                delay: Duration::ZERO,
            })
        };
        Scenario {
            title: String::new(),
            seed: 1,
            duration: Duration::from_secs(3_600),
            hosts: ["a", "b"].into_iter().filter_map(host).collect(),
            paths: vec![Path { from: 0, to: 1, forward, reverse }],
            shared,
            flows: Vec::new(),
            taps: Vec::new(),
        }
    }
}
