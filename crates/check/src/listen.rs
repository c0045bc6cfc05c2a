//! Model of the accept queues of hosts: how many connections they hold, and when applications take
//! them.

use std::collections::BTreeSet;

use record::{Event, EventSource};
use units::Instant;

use crate::violation::{Subject, ViolationKind, ViolationLog};
use crate::world::{AcceptQueueModel, TransportKind, WorldModel};

/// The accept queues.
#[derive(Debug, Clone)]
pub(crate) struct AcceptQueues {
    hosts: Vec<Option<QueueState>>,
    /// Which flows are of TCP.
    flows: Vec<bool>,
}

#[derive(Debug, Clone)]
struct QueueState {
    queue: AcceptQueueModel,
    /// Connections established.
    established: u64,
    /// Connections whose application has read or written.
    taken: BTreeSet<u32>,
}

impl AcceptQueues {
    pub(crate) fn new(world: &WorldModel) -> Self {
        let state = |queue| QueueState { queue, established: 0, taken: BTreeSet::new() };
        Self {
            hosts: world.hosts.iter().map(|host| host.listen.map(state)).collect(),
            flows: world.flows.iter().map(|flow| flow.transport == TransportKind::Tcp).collect(),
        }
    }

    /// Processes an event of the listening end of a connection.
    pub(crate) fn on_event(&mut self, log: &mut ViolationLog, who: EventSource, event: &Event) {
        // Datagrams and QUIC have no listening socket that accepts.
        if self.flows.get(who.flow.0 as usize) != Some(&true) {
            return;
        }
        let Some(Some(state)) = self.hosts.get_mut(usize::from(who.host.0)) else { return };
        let rounds = log.now.since(Instant::ZERO).as_nanos() / state.queue.accept.as_nanos();
        match event {
            Event::Connected => {
                state.established += 1;
                if state.established > rounds.saturating_add(state.queue.room) {
                    log.note(Subject::End(who), ViolationKind::AcceptQueueFull);
                }
            }
            Event::AppRead { .. } | Event::AppWrote { .. } => {
                state.taken.insert(who.flow.0);
                if state.taken.len() as u64 > rounds {
                    log.note(Subject::End(who), ViolationKind::NotAccepted);
                }
            }
            _ => {}
        }
    }
}
