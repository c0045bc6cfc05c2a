//! The accept queue of a host, for connections that its applications have not taken yet.
//!
//! Linux drops SYNs while the queue is full (tcp_conn_request), and the last ACK of a handshake
//! that finds it full: the request stays, and its timer repeats the SYN-ACK
//! (tcp_v4_syn_recv_sock, tcp_check_req). Data with that ACK are not acknowledged. A connection in
//! the queue receives into its buffer. SYN cookies, which a full queue of requests answers with, are
//! not modelled.

use std::collections::VecDeque;

use machine::PacketId;
use packet::Flags;
use tcp::TcpState;
use units::{Instant, unlikely};

use super::packet_slots::StoredPacket;
use super::{SERVER, SimEvent, Simulation};
use crate::observer::Observer;
use crate::scenario::{AcceptQueueSpec, Scenario};
use crate::transport::TransportEndpoint;

/// How far a connection is from its application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptStage {
    /// The application has it.
    Accepted,
    /// It is not established.
    Opening,
    /// It is in the accept queue.
    Queued,
}

/// The accept queue of a host.
#[derive(Debug)]
pub(super) struct AcceptQueue {
    spec: AcceptQueueSpec,
    /// Indices of endpoints, the first in first.
    queue: VecDeque<u32>,
    /// When the last was taken.
    last: Option<Instant>,
}

/// The accept queue of each host that has one.
pub(super) fn queues(scenario: &Scenario) -> Vec<Option<AcceptQueue>> {
    let queue = |spec| AcceptQueue { spec, queue: VecDeque::new(), last: None };
    scenario.hosts.iter().map(|host| host.stack.tcp()?.listen.map(queue)).collect()
}

impl AcceptQueue {
    /// sk_acceptq_is_full
    fn is_full(&self) -> bool {
        self.queue.len() > self.spec.backlog as usize
    }

    /// Returns when the application takes the next connection, now at the earliest.
    fn next(&self, now: Instant) -> Instant {
        let every = self.spec.accept;
        let rounds = now.as_nanos().div_ceil(every.as_nanos()).max(1);
        let next = Instant::ZERO + every.saturating_mul(rounds);
        self.last.map_or(next, |last| next.max(last + every))
    }
}

impl<O: Observer> Simulation<'_, O> {
    /// Returns the stage of a new endpoint.
    pub(super) fn first_stage(&self, host: usize, side: usize) -> AcceptStage {
        match self.accept_queues[host] {
            Some(_) if side == SERVER => AcceptStage::Opening,
            _ => AcceptStage::Accepted,
        }
    }

    /// Returns whether a full accept queue refuses a packet for an endpoint that is not established.
    #[cold]
    pub(super) fn refuses(&self, index: usize, id: PacketId) -> bool {
        let end = &self.ends[index];
        let queue = self.accept_queues[usize::from(end.host)].as_ref();
        if end.stage != AcceptStage::Opening || !queue.is_some_and(AcceptQueue::is_full) {
            return false;
        }
        let StoredPacket::Tcp(segment) = self.network.slots.packet(id) else { return false };
        let flags = segment.flags;
        let state = match &end.stack {
            TransportEndpoint::Tcp(tcp) => tcp.state(),
            _ => TcpState::Listen,
        };
        match state {
            TcpState::Closed | TcpState::Listen => flags.has(Flags::SYN),
            TcpState::SynReceived => {
                flags.has(Flags::ACK) && !flags.has(Flags::SYN) && !flags.has(Flags::RST)
            }
            _ => false,
        }
    }

    /// Queues a connection once it is established.
    #[cold]
    pub(super) fn queue_if_established(&mut self, index: usize) {
        let end = &mut self.ends[index];
        let TransportEndpoint::Tcp(tcp) = &end.stack else { return };
        let opening = matches!(
            tcp.state(),
            TcpState::Closed | TcpState::Listen | TcpState::SynSent | TcpState::SynReceived
        );
        if end.stage != AcceptStage::Opening || opening {
            return;
        }
        end.stage = AcceptStage::Queued;
        let host = end.host;
        let Some(queue) = &mut self.accept_queues[usize::from(host)] else { return };
        queue.queue.push_back(index as u32);
        if queue.queue.len() == 1 {
            let at = queue.next(self.network.now);
            self.network.calendar.push(at, SimEvent::Accept(host));
        }
    }

    /// The application takes the first connection of the queue of a host.
    pub(super) fn accept(&mut self, host: u16) {
        let now = self.network.now;
        let Some(queue) = &mut self.accept_queues[usize::from(host)] else { return };
        let Some(index) = queue.queue.pop_front() else { return };
        queue.last = Some(now);
        if !queue.queue.is_empty() {
            self.network.calendar.push(queue.next(now), SimEvent::Accept(host));
        }
        let index = index as usize;
        if self.ends[index].stack.sleeps() {
            self.wake_endpoint(index);
        }
        let delay = self.scenario.hosts[usize::from(host)].delay;
        let end = &mut self.ends[index];
        end.stage = AcceptStage::Accepted;
        end.app.begin(now + delay);
        if end.delays {
            self.schedule_app(index, now + delay);
        } else {
            self.act(index);
        }
        self.serve(index);
    }

    /// Returns whether the connection waits for its application.
    #[inline(always)]
    pub(super) fn waits(&self, index: usize) -> bool {
        unlikely(self.ends[index].stage != AcceptStage::Accepted)
    }
}
