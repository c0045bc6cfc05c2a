//! Description of the world of a run, as plain data.

use record::ElementId;
use units::{Bytes, Duration, HostId};

use crate::invariants::{ElementChanges, ElementInvariants, HoldTime, Line};

/// Hosts, elements, routes and connections; each list is indexed from 0, as in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorldModel {
    /// Hosts.
    pub hosts: Vec<HostModel>,
    /// Invariants of all elements.
    pub hops: Vec<ElementInvariants>,
    /// One-way routes; several may pass through one element.
    pub routes: Vec<RouteModel>,
    /// Connections.
    pub flows: Vec<FlowModel>,
    /// Link traces: the milliseconds at which 1,500 bytes can be sent, in ascending order; they
    /// repeat after the last, which is not 0.
    pub traces: Vec<Vec<u32>>,
    /// What changes about elements during the run.
    pub changes: Vec<ElementChanges>,
}

/// A host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostModel {
    /// IP bytes of its largest packet.
    pub mtu: Bytes,
    /// The accept queue of its listening applications, if they do not take each connection at once.
    pub listen: Option<AcceptQueueModel>,
}

/// An accept queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptQueueModel {
    /// Maximum number of established connections in it.
    pub room: u64,
    /// The application takes at most one at each multiple of this time.
    pub accept: Duration,
}

/// A one-way route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteModel {
    /// Host at its start.
    pub from: HostId,
    /// Host at its end.
    pub to: HostId,
    /// Elements in order.
    pub hops: Vec<ElementId>,
}

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowModel {
    /// Index of the route from the host that opens it, and of the reverse route.
    pub routes: [usize; 2],
    /// Bytes of the IP header of each packet.
    pub ip_header: Bytes,
    /// Transport protocol.
    pub transport: TransportKind,
    /// Limits of the opening end and of the other in a fast recovery.
    pub recovery_limits: [RecoveryLimit; 2],
    /// When the stacks of the opening end and of the other send.
    pub output_calls: [OutputCalls; 2],
    /// Whether the last segment of the opening end and of the other needs no room in the congestion window
    /// if it carries the FIN (tcp_cwnd_test of Linux before 6.10).
    pub free_fins: [bool; 2],
}

/// When a stack sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputCalls {
    /// After its input is processed: what it sends departs before it sends more.
    AfterInput,
    /// Also while it processes an acknowledgment (tcp_do_segment of FreeBSD's base stack calls
    /// tcp_output before `snd_una` advances), several times at one instant. An ACK repeats a FIN
    /// that is not acknowledged (tcp_outflags of TCPS_FIN_WAIT_1), and has the number `snd_nxt`
    /// while the window is probed.
    WithinInput,
}

/// Limit of a sender in a fast recovery, as far as a record shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryLimit {
    /// The window limits the stack's estimate of the data in the network (`pipe` of RFC 6675; the
    /// windows of PRR in RFC 9937 and in Linux).
    Pipe,
    /// The window limits all unacknowledged data; duplicates inflate it (RFC 6582).
    Flight,
    /// The window limits the data sent since the start of the recovery and not SACKed, new or
    /// retransmitted (tcp_output of FreeBSD's base stack).
    Since,
    /// New bytes match the delivered data while more than the threshold is in flight, and otherwise
    /// fill the threshold (rack_update_prr of FreeBSD's RACK stack).
    Credit,
    /// What is delivered allows more than the room in the window (`snd_cnt` of RFC 6937, in quiche): the largest window of
    /// the connection limits the data.
    Proportional,
    /// A limit that the record does not show.
    Unseen,
}

/// Transport protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// TCP.
    Tcp,
    /// QUIC.
    Quic {
        /// Whether there is a handshake; without one both ends are connected from the start.
        handshake: bool,
    },
    /// A real implementation of QUIC: its packets and what the applications write and read are known, not
    /// what its sender does.
    RealQuic,
    /// UDP: datagrams of any number, without connection, acknowledgments or state.
    Udp,
}

/// Errors in a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorldError {
    /// Route number `route` names a host or an element that does not exist.
    Direction {
        /// Index of the route.
        route: usize,
    },
    /// Flow number `flow` names a route that does not exist, its routes are not the two directions
    /// between two hosts, or both its ends are on one host.
    Flow {
        /// Index of the flow.
        flow: usize,
    },
    /// Element number `hop_index` changes in an undefined way.
    Changes {
        /// Index of the element.
        hop_index: usize,
    },
    /// Element number `hop_index` follows a missing or invalid trace.
    Trace {
        /// Index of the element.
        hop_index: usize,
    },
}

impl core::fmt::Display for WorldError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Direction { route } => {
                write!(f, "route {route} names a host or an element that does not exist")
            }
            Self::Flow { flow } => {
                write!(f, "flow {flow}: its directions do not join two hosts there and back")
            }
            Self::Changes { hop_index } => {
                write!(f, "element {hop_index} has no valid list of changes")
            }
            Self::Trace { hop_index } => write!(f, "element {hop_index} follows no valid trace"),
        }
    }
}

impl core::error::Error for WorldError {}

impl WorldModel {
    /// Checks all references.
    ///
    /// # Errors
    /// The first invalid one.
    pub(crate) fn check(&self) -> Result<(), WorldError> {
        let host = |id: HostId| usize::from(id.0) < self.hosts.len();
        let fits = |route: &RouteModel| {
            host(route.from)
                && host(route.to)
                && route.hops.iter().all(|hop_index| (hop_index.0 as usize) < self.hops.len())
        };
        if let Some(route) = self.routes.iter().position(|route| !fits(route)) {
            return Err(WorldError::Direction { route });
        }
        let follows = |law: &ElementInvariants| match law.hold {
            HoldTime::Managed { line: Line::Trace(trace), .. } => self
                .traces
                .get(trace)
                .is_some_and(|trace| trace.is_sorted() && trace.last().is_some_and(|&at| at > 0)),
            _ => true,
        };
        if let Some(hop_index) = self.hops.iter().position(|law| !follows(law)) {
            return Err(WorldError::Trace { hop_index });
        }
        let changes = |law: &ElementInvariants| match law.changes {
            Some(index) => self.changes.get(index).is_some_and(ElementChanges::are_valid),
            None => law.hold != HoldTime::Changing,
        };
        if let Some(hop_index) = self.hops.iter().position(|law| !changes(law)) {
            return Err(WorldError::Changes { hop_index });
        }
        let joins = |flow: &FlowModel| {
            let [out, back] = flow.routes.map(|route| self.routes.get(route));
            out.zip(back).is_some_and(|(out, back)| {
                out.from != out.to && (out.from, out.to) == (back.to, back.from)
            })
        };
        match self.flows.iter().position(|flow| !joins(flow)) {
            Some(flow) => Err(WorldError::Flow { flow }),
            None => Ok(()),
        }
    }
}
