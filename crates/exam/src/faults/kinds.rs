//! The kinds of faults, and the codes of findings that name each.

use FaultKind as K;

use crate::capture::CapturePoint;
use crate::draft::DataDirection;
use crate::world::Workload;

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Independent losses; hundredths of a percent.
    RandomLoss,
    /// Losses in bursts of some packets; hundredths of a percent that a burst begins.
    BurstLoss,
    /// Short outages that return: bursts in time; their length in µs.
    BurstsInTime,
    /// A token bucket without a queue; kbit/s.
    Policer,
    /// A queue of a few packets.
    ShortQueue,
    /// A receive buffer that holds less than the path; bytes.
    SmallReceiveBuffer,
    /// A receiver that reads slowly; kbit/s.
    SlowReader,
    /// A send buffer that holds less than the path; bytes.
    SmallSendBuffer,
    /// A sender whose application writes slowly; µs between chunks.
    SlowWriter,
    /// The server waits before each response; µs.
    ServerThinks,
    /// The client waits before each request; µs.
    ClientThinks,
    /// Many requests one after another; their number.
    RoundTrips,
    /// A wait within each message; µs.
    WaitInRequest,
    /// A message in two writes, Nagle's algorithm and delayed acknowledgments.
    NagleDelayedAcks,
    /// Slow start again after each rest.
    IdleRestart,
    /// A window of the application above TCP; bytes.
    AppWindow,
    /// Packets that arrive late; µs.
    Reordering,
    /// An outage; its length in ms.
    Outage,
    /// The last packet of each message is lost.
    TailLoss,
    /// The first SYNs are lost; their number.
    SynLost,
    /// The first SYN-ACKs are lost; their number.
    SynAckLost,
    /// SYNs that ask for ECN are dropped.
    EcnSyns,
    /// The path of the ACKs is slow; kbit/s.
    SlowAckPath,
    /// ACKs are merged on the way; segments for each that passes.
    ThinnedAcks,
    /// Packets above a size vanish; bytes.
    MtuHole,
    /// A firewall forgets the idle connection; ms.
    Forgotten,
    /// A box resets the connection; bytes.
    BoxReset,
    /// A box removes window scaling from the SYNs.
    NoScaling,
    /// A box removes SACK from the SYNs, and bursts are lost; hundredths of a percent that one begins.
    NoSack,
    /// An AQM marks far below the queue that the path needs.
    Marks,
    /// Other senders share the bottleneck; their number.
    CompetingTraffic,
    /// The queue of the listener is full; ms between two connections that are taken.
    Backlog,
    /// The server needs long for its part of the opening; µs.
    SlowOpening,
    /// The rate of the path falls; kbit/s.
    RateDrop,
    /// The server is a proxy, and the way behind it loses packets; hundredths of a percent.
    Proxy,
}

/// All kinds.
pub(crate) const KINDS: [FaultKind; 35] = [
    K::RandomLoss,
    K::BurstLoss,
    K::BurstsInTime,
    K::Policer,
    K::ShortQueue,
    K::SmallReceiveBuffer,
    K::SlowReader,
    K::SmallSendBuffer,
    K::SlowWriter,
    K::ServerThinks,
    K::ClientThinks,
    K::RoundTrips,
    K::WaitInRequest,
    K::NagleDelayedAcks,
    K::IdleRestart,
    K::AppWindow,
    K::Reordering,
    K::Outage,
    K::TailLoss,
    K::SynLost,
    K::SynAckLost,
    K::EcnSyns,
    K::SlowAckPath,
    K::ThinnedAcks,
    K::MtuHole,
    K::Forgotten,
    K::BoxReset,
    K::NoScaling,
    K::NoSack,
    K::Marks,
    K::CompetingTraffic,
    K::Backlog,
    K::SlowOpening,
    K::RateDrop,
    K::Proxy,
];

impl FaultKind {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RandomLoss => "random-loss",
            Self::BurstLoss => "burst-loss",
            Self::BurstsInTime => "bursts-in-time",
            Self::Policer => "policer",
            Self::ShortQueue => "short-queue",
            Self::SmallReceiveBuffer => "receive-buffer",
            Self::SlowReader => "slow-reader",
            Self::SmallSendBuffer => "send-buffer",
            Self::SlowWriter => "slow-writer",
            Self::ServerThinks => "think-server",
            Self::ClientThinks => "think-client",
            Self::RoundTrips => "round-trips",
            Self::WaitInRequest => "in-request",
            Self::NagleDelayedAcks => "nagle",
            Self::IdleRestart => "idle-restart",
            Self::AppWindow => "app-window",
            Self::Reordering => "reordering",
            Self::Outage => "outage",
            Self::TailLoss => "tail-loss",
            Self::SynLost => "syn-lost",
            Self::SynAckLost => "syn-ack-lost",
            Self::EcnSyns => "syn-ecn",
            Self::SlowAckPath => "return-path",
            Self::ThinnedAcks => "thinned-acks",
            Self::MtuHole => "mtu",
            Self::Forgotten => "forgotten",
            Self::BoxReset => "box-reset",
            Self::NoScaling => "no-scaling",
            Self::NoSack => "no-sack",
            Self::Marks => "marks",
            Self::CompetingTraffic => "competing",
            Self::Backlog => "backlog",
            Self::SlowOpening => "slow-opening",
            Self::RateDrop => "rate-drop",
            Self::Proxy => "proxy",
        }
    }

    /// Where the fault is.
    pub const fn place(self) -> &'static str {
        match self {
            Self::SmallReceiveBuffer | Self::SlowReader => "receiver",
            Self::SmallSendBuffer | Self::SlowWriter => "sender",
            Self::ServerThinks | Self::Backlog | Self::SlowOpening => "server",
            Self::Proxy => "behind the server",
            Self::ClientThinks => "client",
            Self::RoundTrips | Self::WaitInRequest | Self::AppWindow => "application",
            Self::NagleDelayedAcks | Self::IdleRestart => "both hosts",
            Self::SynLost | Self::SynAckLost | Self::EcnSyns => "opening",
            Self::SlowAckPath | Self::ThinnedAcks => "path back",
            _ => "path there",
        }
    }

    /// The codes of which one as the connection's verdict is right: what `ackclock explain` says of each,
    /// and the labels of captures of the same faults.
    pub const fn codes(self) -> &'static [&'static str] {
        match self {
            Self::RandomLoss => &["CC201", "CC205"],
            Self::BurstLoss | Self::BurstsInTime | Self::Policer | Self::NoSack => {
                &["CC201", "CC202"]
            }
            Self::ShortQueue => &["CC202", "CC103"],
            Self::SmallReceiveBuffer | Self::NoScaling => &["CC401"],
            Self::SlowReader => &["CC403"],
            Self::SmallSendBuffer => &["CC503", "CC501"],
            // Of a download it writes late, of an upload it reads late.
            Self::Proxy => &["CC501", "CC505", "CC403"],
            Self::SlowWriter | Self::RoundTrips | Self::AppWindow => &["CC501"],
            Self::ServerThinks | Self::SlowOpening => &["CC505"],
            Self::ClientThinks => &["CC506"],
            Self::WaitInRequest => &["CC506", "CC505", "CC501"],
            Self::NagleDelayedAcks => &["CC504"],
            Self::IdleRestart => &["CC502"],
            Self::Reordering => &["CC301", "CC302"],
            Self::Outage | Self::MtuHole | Self::Forgotten => &["CC204"],
            Self::BoxReset => &["CC003"],
            Self::TailLoss => &["CC203", "CC204"],
            Self::SynLost | Self::SynAckLost | Self::EcnSyns => &["CC002", "CC204"],
            // A connection that waits in the queue is answered late.
            Self::Backlog => &["CC002", "CC204", "CC505"],
            Self::SlowAckPath => &["CC601", "CC602", "CC402"],
            Self::ThinnedAcks => &["CC402", "CC101"],
            Self::Marks => &["CC206"],
            // From the capture of one flow they look alike: what it gets is less than the path carried.
            Self::CompetingTraffic | Self::RateDrop => &["CC602", "CC603", "CC601", "CC202"],
        }
    }

    /// The kinds of findings that name it exactly; empty where the code says all.
    pub const fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::BurstLoss | Self::BurstsInTime => &["burst"],
            Self::Policer => &["policer"],
            Self::ServerThinks | Self::SlowOpening => &["think-server"],
            Self::ClientThinks | Self::IdleRestart => &["think-client"],
            Self::RoundTrips => &["round-trips"],
            Self::WaitInRequest => &["in-request", "think-client", "think-server"],
            Self::AppWindow => &["app-window"],
            Self::MtuHole => &["mtu"],
            Self::Forgotten => &["forgotten"],
            Self::NoScaling => &["no-scaling"],
            Self::NoSack => &["no-sack"],
            Self::SynLost | Self::SynAckLost => &["syn-lost"],
            Self::EcnSyns => &["syn-ecn"],
            Self::Backlog => &["backlog", "syn-lost", "think-server"],
            Self::SlowAckPath => &["return-path"],
            _ => &[],
        }
    }

    /// The same of the log of a QUIC sender; `None` for faults that are not drawn there.
    pub const fn quic_codes(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::RandomLoss | Self::BurstLoss | Self::BurstsInTime | Self::Policer => &["CC811"],
            Self::ShortQueue => &["CC811", "CC834"],
            Self::SmallReceiveBuffer | Self::SlowReader => &["CC821", "CC822"],
            Self::SlowWriter
            | Self::ServerThinks
            | Self::ClientThinks
            | Self::RoundTrips
            | Self::WaitInRequest
            | Self::AppWindow => &["CC831"],
            Self::Reordering => &["CC812"],
            Self::Outage => &["CC813", "CC814"],
            Self::CompetingTraffic | Self::RateDrop => &["CC837", "CC835", "CC811"],
            Self::SlowAckPath | Self::ThinnedAcks => &["CC841", "CC836"],
            _ => return None,
        })
    }

    /// The kinds of findings of QUIC that name it exactly; empty where the code says all.
    pub const fn quic_kinds(self) -> &'static [&'static str] {
        match self {
            Self::Policer => &["policer"],
            Self::SlowReader => &["slow-reader"],
            Self::SmallReceiveBuffer => &["small-window"],
            Self::ServerThinks => &["think-server"],
            Self::ClientThinks => &["think-client"],
            Self::RoundTrips => &["round-trips"],
            Self::WaitInRequest => &["in-request", "think-client", "think-server"],
            Self::RateDrop => &["rate-drop"],
            Self::SlowAckPath => &["return-path"],
            _ => &[],
        }
    }

    /// Can a capture at this point show the fault? What vanishes on the way to it cannot be seen there. The faults
    /// of a path are at the sender of the data, those of SYNs at the client.
    pub(crate) fn is_seen_at(self, point: CapturePoint, direction: DataDirection) -> bool {
        let is_upload = direction == DataDirection::Upload;
        match (self, point) {
            (_, CapturePoint::Both) => true,
            // Only what hosts send is captured there.
            (Self::BoxReset, CapturePoint::Middle) => false,
            (Self::MtuHole, _) => point == CapturePoint::Sender,
            // It drops what the client sends.
            (Self::Forgotten, CapturePoint::Middle) => !is_upload,
            (Self::SynLost | Self::EcnSyns, CapturePoint::Middle) => false,
            (Self::SynLost | Self::EcnSyns | Self::Forgotten, _) => {
                is_upload == (point == CapturePoint::Sender)
            }
            _ => true,
        }
    }

    /// What the applications do in worlds with this fault.
    pub(crate) const fn workload(self) -> Workload {
        match self {
            Self::ServerThinks
            | Self::ClientThinks
            | Self::RoundTrips
            | Self::WaitInRequest
            | Self::NagleDelayedAcks
            | Self::IdleRestart
            | Self::TailLoss
            | Self::SynLost
            | Self::SynAckLost
            | Self::EcnSyns
            | Self::Backlog
            | Self::SlowOpening => Workload::Dialogue,
            // Few, for each rests longer than the box remembers.
            Self::Forgotten => Workload::Requests,
            _ => Workload::Bulk,
        }
    }

    /// May it be drawn beside another?
    pub(crate) const fn combines(self) -> bool {
        matches!(
            self,
            Self::RandomLoss
                | Self::ShortQueue
                | Self::BurstLoss
                | Self::SmallReceiveBuffer
                | Self::SmallSendBuffer
                | Self::SlowReader
                | Self::ServerThinks
                | Self::ClientThinks
                | Self::Outage
                | Self::Reordering
                | Self::SlowAckPath
        )
    }
}
