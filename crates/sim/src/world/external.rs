//! The interface of the world for external hosts (see [`crate::live`]).

use packet::{Dir, PacketTooBig, Segment};
use units::{Instant, SeqNum};

use super::{CLIENT, SERVER, Simulation, end_of};
use crate::observer::Observer;
use crate::scenario::StackSpec;
use crate::transport::TransportEndpoint;

/// A segment delivered to the stack of an external host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternalDelivery {
    /// Time of delivery.
    pub at: Instant,
    /// Index of the host.
    pub host: usize,
    /// The packet.
    pub packet: ExternalPacket,
}

/// A packet for an external host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExternalPacket {
    /// A segment, possibly merged by the card.
    Tcp(Segment),
    /// An ICMP error about a segment that the host sent.
    TooBig(PacketTooBig),
}

impl<O: Observer> Simulation<'_, O> {
    /// Processes all events due at or before `now`.
    pub(crate) fn run_until(&mut self, now: Instant) {
        while self.network.calendar.next_at().is_some_and(|at| at <= now) {
            let Some((at, wake)) = self.network.calendar.pop() else { break };
            self.network.now = at;
            self.count_turn();
            self.happen(wake);
        }
        self.network.now = now;
    }

    /// Sets the initial sequence number and the timestamp clock of each simulated TCP to those that
    /// `of` returns for its flow and side (`true`: the listener), where its host configures none.
    pub(crate) fn number(&mut self, mut of: impl FnMut(usize, bool) -> [u32; 2]) {
        for index in 0..self.ends.len() {
            self.wake_endpoint(index);
            let end = &mut self.ends[index];
            let TransportEndpoint::Tcp(tcp) = &mut end.stack else { continue };
            let StackSpec::Tcp(own) = &self.scenario.hosts[usize::from(end.host)].stack else {
                continue;
            };
            let [isn, timestamp] = of(index / 2, index % 2 == SERVER);
            tcp.renumber(SeqNum(own.isn.unwrap_or(isn)), own.timestamp.unwrap_or(timestamp));
        }
    }

    /// Returns the TCP at one end of a flow (`listener`: the passive end), once it has been
    /// created.
    pub(crate) fn tcp(&mut self, flow: usize, listener: bool) -> Option<&tcp::TcpEndpoint> {
        let index = end_of(flow, if listener { SERVER } else { CLIENT });
        if matches!(self.ends.get(index)?.stack, TransportEndpoint::Hibernated(_)) {
            self.wake_endpoint(index);
        }
        match &self.ends[index].stack {
            TransportEndpoint::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Returns when the next event is due.
    pub(crate) fn next_at(&mut self) -> Option<Instant> {
        self.network.calendar.next_at()
    }

    /// Returns whether all flows have finished.
    pub(crate) const fn over(&self) -> bool {
        self.open == 0
    }

    /// Transmits a segment, possibly a burst, from an external host's stack now; false if its flow
    /// has no external end there.
    pub(crate) fn inject(&mut self, segment: &Segment) -> bool {
        let side = if segment.dir == Dir::Forward { CLIENT } else { SERVER };
        let index = end_of(segment.flow.0 as usize, side);
        let Some(end) = self.ends.get(index) else { return false };
        if !matches!(end.stack, TransportEndpoint::Outside) {
            return false;
        }
        let (host, route) = (end.host, end.route);
        self.network.model = *segment;
        self.network.depart(host, route);
        true
    }

    /// Moves the segments delivered to external stacks to `into`.
    pub(crate) fn take_leaving(&mut self, into: &mut Vec<ExternalDelivery>) {
        into.append(&mut self.outside);
    }

    /// Returns the payload bytes that the simulated reader of a flow has read; `None` if it is
    /// external.
    pub(crate) fn has_read(&self, flow: usize) -> Option<u64> {
        let sender = usize::from(self.flows.get(flow)?.sender);
        let end = &self.ends[end_of(flow, 1 - sender)];
        (!matches!(end.stack, TransportEndpoint::Outside)).then_some(end.read)
    }

    /// Returns the observer.
    pub(crate) const fn observer(&mut self) -> &mut O {
        self.network.observer
    }
}
