//! The world as whoever drives it from outside sees it (see [`crate::live`]).

use packet::{Dir, Segment};
use units::{Instant, SeqNum};

use super::{CLIENT, SERVER, World, end_of};
use crate::observer::Observer;
use crate::scenario::Stack;
use crate::transport::Transport;

/// A segment that has come to the stack of a host outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// The moment.
    pub at: Instant,
    /// Index of the host.
    pub host: usize,
    /// What has come, perhaps merged by the card.
    pub segment: Segment,
}

impl<O: Observer> World<'_, O> {
    /// Lets everything happen that is due at or before `now`.
    pub(crate) fn run_until(&mut self, now: Instant) {
        while self.network.calendar.next_at().is_some_and(|at| at <= now) {
            let Some((at, wake)) = self.network.calendar.pop() else { break };
            self.network.now = at;
            self.count_turn();
            self.happen(wake);
        }
        self.network.now = now;
    }

    /// Gives each TCP inside the initial sequence number and the timestamp clock that `of` says for
    /// its flow and side (`true`: the listener), where its host has none of its own.
    pub(crate) fn number(&mut self, mut of: impl FnMut(usize, bool) -> [u32; 2]) {
        for index in 0..self.ends.len() {
            self.rouse(index);
            let end = &mut self.ends[index];
            let Transport::Tcp(tcp) = &mut end.stack else { continue };
            let Stack::Tcp(own) = &self.scenario.hosts[usize::from(end.host)].stack else {
                continue;
            };
            let [isn, timestamp] = of(index / 2, index % 2 == SERVER);
            tcp.renumber(SeqNum(own.isn.unwrap_or(isn)), own.timestamp.unwrap_or(timestamp));
        }
    }

    /// The TCP at one end of a flow (`listener`: the end that was called), once something has
    /// happened to it.
    pub(crate) fn tcp(&mut self, flow: usize, listener: bool) -> Option<&tcp::Endpoint> {
        let index = end_of(flow, if listener { SERVER } else { CLIENT });
        if matches!(self.ends.get(index)?.stack, Transport::Asleep(_)) {
            self.rouse(index);
        }
        match &self.ends[index].stack {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// When something is due next.
    pub(crate) fn next_at(&mut self) -> Option<Instant> {
        self.network.calendar.next_at()
    }

    /// Are all flows over?
    pub(crate) const fn over(&self) -> bool {
        self.open == 0
    }

    /// A segment, perhaps a burst, leaves the stack of a host outside now; false if no end of
    /// its flow is there.
    pub(crate) fn inject(&mut self, segment: &Segment) -> bool {
        let side = if segment.dir == Dir::Forward { CLIENT } else { SERVER };
        let index = end_of(segment.flow.0 as usize, side);
        let Some(end) = self.ends.get(index) else { return false };
        if !matches!(end.stack, Transport::Outside) {
            return false;
        }
        let (host, road) = (end.host, end.road);
        self.network.model = *segment;
        self.network.depart(host, road);
        true
    }

    /// Takes what has come to stacks outside.
    pub(crate) fn take_leaving(&mut self, into: &mut Vec<Leaving>) {
        into.append(&mut self.outside);
    }

    /// Payload bytes that our application at the end of a flow has read; `None` if it is outside.
    pub(crate) fn has_read(&self, flow: usize) -> Option<u64> {
        let sender = self.flows.get(flow)?.sender;
        let end = &self.ends[end_of(flow, 1 - sender)];
        (!matches!(end.stack, Transport::Outside)).then_some(end.read)
    }

    /// Who watches.
    pub(crate) const fn observer(&mut self) -> &mut O {
        self.network.observer
    }
}
