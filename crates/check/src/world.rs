//! The world a run is said to have happened in, as plain data.

use record::StationId;
use units::{Bytes, HostId};

use crate::law::{Hold, Law, Line};

/// Hosts, stations, roads and connections; each list is counted from 0, as in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// Machines.
    pub hosts: Vec<Host>,
    /// The laws of all stations.
    pub stations: Vec<Law>,
    /// One-way roads; several may lead through one station.
    pub roads: Vec<Road>,
    /// Connections.
    pub flows: Vec<Flow>,
    /// Recordings that lines follow: the milliseconds at which there is room for 1,500 bytes, none
    /// before the one in front of it; begun anew at the last, which is not 0.
    pub traces: Vec<Vec<u32>>,
}

/// A machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// IP bytes of its largest packet.
    pub mtu: Bytes,
}

/// A one-way road.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Road {
    /// Host at its beginning.
    pub from: HostId,
    /// Host at its end.
    pub to: HostId,
    /// Stations that a packet meets, in this order.
    pub stations: Vec<StationId>,
}

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Index of the road from the host that opens it, and of the road back.
    pub roads: [usize; 2],
    /// Bytes of the IP header of each packet.
    pub ip_header: Bytes,
    /// What carries it.
    pub transport: Transport,
    /// What holds the end that opens it back in a fast recovery of TCP, and what the other.
    pub brakes: [Brake; 2],
}

/// What holds a sender back in a fast recovery, as far as a record tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brake {
    /// The window holds what the stack takes to be in the network (`pipe` of RFC 6675; the windows of
    /// PRR in RFC 9937 and in Linux).
    Pipe,
    /// The window holds all that is not acknowledged; duplicates inflate it (RFC 6582).
    Flight,
    /// The window holds what was sent since the recovery began and not reported, new or again
    /// (tcp_output of FreeBSD's base stack).
    Since,
    /// New bytes follow what was delivered while more than the threshold is under way, and fill it
    /// up else (rack_update_prr of FreeBSD's RACK stack).
    Credit,
    /// Something of which no record tells.
    Unseen,
}

/// What carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// QUIC.
    Quic {
        /// It begins with a handshake; else both ends are connected at once.
        handshake: bool,
    },
}

/// What is wrong with a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorldError {
    /// Road number `road` names a host or a station that is not there.
    Road {
        /// Index of the road.
        road: usize,
    },
    /// Flow number `flow` names a road that is not there, its roads do not lead there and back,
    /// or both its ends are on one host.
    Flow {
        /// Index of the flow.
        flow: usize,
    },
    /// Station number `station` follows a recording that is not there, or is none.
    Trace {
        /// Index of the station.
        station: usize,
    },
}

impl core::fmt::Display for WorldError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Road { road } => {
                write!(f, "direction {road} names a host or an element that does not exist")
            }
            Self::Flow { flow } => {
                write!(f, "flow {flow}: its directions do not join two hosts there and back")
            }
            Self::Trace { station } => write!(f, "element {station} follows no valid recording"),
        }
    }
}

impl core::error::Error for WorldError {}

impl World {
    /// Do all names stand for something?
    ///
    /// # Errors
    /// The first that does not.
    pub(crate) fn check(&self) -> Result<(), WorldError> {
        let host = |id: HostId| usize::from(id.0) < self.hosts.len();
        let fits = |road: &Road| {
            host(road.from)
                && host(road.to)
                && road.stations.iter().all(|station| (station.0 as usize) < self.stations.len())
        };
        if let Some(road) = self.roads.iter().position(|road| !fits(road)) {
            return Err(WorldError::Road { road });
        }
        let follows = |law: &Law| match law.hold {
            Hold::Managed { line: Line::Trace(trace), .. } => self
                .traces
                .get(trace)
                .is_some_and(|trace| trace.is_sorted() && trace.last().is_some_and(|&at| at > 0)),
            _ => true,
        };
        if let Some(station) = self.stations.iter().position(|law| !follows(law)) {
            return Err(WorldError::Trace { station });
        }
        let joins = |flow: &Flow| {
            let [out, back] = flow.roads.map(|road| self.roads.get(road));
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
