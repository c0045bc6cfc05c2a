//! What FreeBSD's own loggers would have written of a run's sender: Black Box Log and siftr.
//!
//! [`Side`] says which connection and which end of it; [`BlackBox`] and [`Siftr`] listen to the
//! run. Both need the tap between stack and offloads of the sender's host ([`Side::tap`]).
//!
//! A record tells what the stack knew before the packet, as the kernel's does: TCP_LOG_IN stands
//! at the door of tcp_do_segment, TCP_LOG_OUT before tcp_output moves snd_nxt, and siftr's hook
//! sits below the stack. What the model does not have stays 0: the variance of the round-trip
//! time, segments waiting for their order, holes of the scoreboard, t_flags2.

mod black_box;
mod siftr;
mod tcb;

pub use black_box::BlackBox;
pub use siftr::Siftr;

use std::io;

use packet::Dir;
use sim::scenario::{App, Scenario, TapPlace, TcpStack};
use units::{FlowId, HostId};

use crate::capture;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// The connection.
    pub flow: FlowId,
    /// The host whose stack logs.
    pub host: HostId,
    /// Way of the segments that this end sends.
    pub out: Dir,
    /// Number of the tap between this host's stack and its offloads.
    pub tap: usize,
}

impl Side {
    /// The end of flow number `flow` that sends most: of requests the answering one. Adds its tap
    /// to the scenario; `None` if there is no such flow.
    pub fn sender(scenario: &mut Scenario, flow: usize) -> Option<Self> {
        let (from, to, app) =
            scenario.flows.get(flow).map(|flow| (flow.from, flow.to, flow.app))?;
        let (host, out) = match app {
            App::Requests { .. } => (to, Dir::Reverse),
            _ => (from, Dir::Forward),
        };
        let tap = capture::tap(scenario, host, TapPlace::Stack);
        Some(Self { flow: FlowId(flow as u32), host: HostId(host as u16), out, tap })
    }

    /// The TCP of its host.
    fn tcp(self, scenario: &Scenario) -> io::Result<&TcpStack> {
        let host = &scenario.hosts[usize::from(self.host.0)];
        host.stack.tcp().ok_or_else(|| {
            let message = format!("a log of FreeBSD's TCP, and {:?} has QUIC", host.name);
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    }
}

#[cfg(test)]
mod tests;
