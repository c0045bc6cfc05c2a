//! Model of a box that knows connections: what it drops, and what it may send because of that.

use std::collections::BTreeMap;

use record::TcpBits;
use units::Instant;

use crate::contents::PacketContents;
use crate::element::FlowDirection;
use crate::invariants::{Answers, Loss, ResetCondition};

/// The connections that an element has seen, by flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionTable(BTreeMap<u32, ConnectionModel>);

#[derive(Debug, Clone, Copy, Default)]
struct ConnectionModel {
    /// Time of the last packet that passed.
    last: Option<Instant>,
    /// Payload passed, by the end that sent it.
    passed: [u64; 2],
    reset: bool,
}

/// A dropped packet that the element may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerDue {
    pub(crate) at: Instant,
    pub(crate) way: FlowDirection,
    /// Index of the element on the packet's route.
    pub(crate) hop: u32,
    to_sender: bool,
    to_receiver: bool,
}

impl ConnectionTable {
    /// Returns whether the element must drop this packet.
    pub(crate) fn drops(
        &self,
        loss: Loss,
        now: Instant,
        (flow, from): FlowDirection,
        contents: &PacketContents,
    ) -> bool {
        let known = self.0.get(&flow).copied().unwrap_or_default();
        match loss {
            Loss::Idle(idle) => {
                let is_syn = contents.tcp.is_syn() || contents.tcp.is_syn_ack();
                !is_syn && known.last.is_some_and(|last| now >= last + idle)
            }
            Loss::FromReset(condition) => {
                let due = match condition {
                    ResetCondition::After(bytes) => known.passed[usize::from(from)] >= bytes.get(),
                    ResetCondition::From(at) => now >= at,
                };
                known.reset || (due && is_of_connection(contents.tcp))
            }
            _ => false,
        }
    }

    /// A packet passes.
    pub(crate) fn pass(&mut self, now: Instant, (flow, from): FlowDirection, payload: u64) {
        let known = self.0.entry(flow).or_default();
        known.last = Some(now);
        known.passed[usize::from(from)] += payload;
    }

    /// A packet is dropped; returns the answers that are due.
    pub(crate) fn drop(
        &mut self,
        answers: Answers,
        (now, hop): (Instant, u32),
        way: FlowDirection,
        contents: &PacketContents,
    ) -> Option<AnswerDue> {
        let known = self.0.entry(way.0).or_default();
        let first = !known.reset;
        known.reset |= answers == Answers::ResetBoth;
        let both = answers == Answers::ResetBoth;
        let due = match answers {
            Answers::None => false,
            Answers::ResetBoth => first,
            Answers::Icmp | Answers::Reset => contents.tcp != TcpBits::default(),
        };
        due.then_some(AnswerDue { at: now, way, hop, to_sender: true, to_receiver: both })
    }
}

impl AnswerDue {
    /// Returns whether a packet in that direction is due, which is then no longer.
    pub(crate) fn take(&mut self, now: Instant, (flow, from): FlowDirection) -> bool {
        let (about, sender) = self.way;
        let due = if from == sender { &mut self.to_receiver } else { &mut self.to_sender };
        core::mem::replace(due, false) && self.at == now && flow == about
    }
}

/// A packet of TCP has a SYN or an acknowledgment, with the exception of some RSTs.
const fn is_of_connection(tcp: TcpBits) -> bool {
    tcp.is_syn() || tcp.is_ack()
}
