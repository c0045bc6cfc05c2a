//! The logs of FreeBSD's own loggers for the sender of a run: Black Box Log and siftr.
//!
//! [`LoggedEndpoint`] selects the connection and its endpoint; [`BlackBox`] and [`Siftr`] observe
//! the run. Both need the tap between stack and offloads of the sender's host
//! ([`LoggedEndpoint::tap`]).
//!
//! A record has the state before the packet, as in the kernel: TCP_LOG_IN is at the entry of
//! tcp_do_segment, TCP_LOG_OUT before tcp_output advances snd_nxt, and siftr's hook is below the
//! stack. Fields that the model does not have are 0: the variance of the round-trip time, the
//! reassembly queue, the holes of the scoreboard, t_flags2.

mod black_box;
mod siftr;
mod tcb;

pub use black_box::BlackBox;
pub use siftr::Siftr;

use std::io;

use packet::Dir;
use sim::scenario::{Scenario, TapPoint, TcpStack};
use units::{FlowId, HostId};

use crate::capture;

/// The logged endpoint of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedEndpoint {
    /// The connection.
    pub flow: FlowId,
    /// The host of the endpoint.
    pub host: HostId,
    /// Direction of the segments that the endpoint sends.
    pub out: Dir,
    /// Index of the tap between the stack and the offloads of the host.
    pub tap: usize,
}

impl LoggedEndpoint {
    /// The endpoint of flow number `flow` that sends the data: for requests the server. Adds its
    /// tap to the scenario; `None` if there is no such flow.
    pub fn sender(scenario: &mut Scenario, flow: usize) -> Option<Self> {
        let spec = scenario.flows.get(flow)?;
        let (host, out) = match spec.app.is_answered() {
            true => (spec.to, Dir::Reverse),
            false => (spec.from, Dir::Forward),
        };
        let tap = capture::tap(scenario, host, TapPoint::Stack);
        Some(Self { flow: FlowId(flow as u32), host: HostId(host as u16), out, tap })
    }

    /// The TCP stack of the host.
    fn tcp(self, scenario: &Scenario) -> io::Result<&TcpStack> {
        let host = &scenario.hosts[usize::from(self.host.0)];
        host.stack.tcp().ok_or_else(|| {
            let message =
                format!("a FreeBSD TCP log needs a TCP host, and `{}` runs QUIC", host.name);
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })
    }
}

#[cfg(test)]
mod tests;
