//! Paths in virtual time. Layer 3.
//!
//! Reading order: [`event_queue`] (events in time order), [`pool`] (storage of packets in transit),
//! then the elements of a path, each of which does one thing. Elements that take time: [`link`] (a
//! drop-tail queue and a line), [`qdisc_link`] (a line with a [`queue`] discipline that marks or
//! drops packets before the queue is full, or a line that follows a [`trace`] or a [`schedule`]),
//! [`delay`], [`jitter`], [`netem`] (a delay that reorders), [`slot`], [`token_bucket`]. Impairments: [`selection`] (selects the packets), [`loss`],
//! [`duplicate`], [`corrupt`], [`reorder`], [`outage`], [`ack_filter`]. Middleboxes: [`mtu`] (a link with a small MTU),
//! [`strip`] (removes options of SYNs), [`forget`] (forgets idle connections), [`reset`]. At the ends of a path:
//! [`offload`] (TSO, LRO, GRO: burst handling in a host's network card).
//!
//! The crate has no notion of connections or congestion; it moves packets.

pub mod ack_filter;
pub mod corrupt;
pub mod delay;
pub mod duplicate;
pub mod event_queue;
pub mod forget;
pub mod jitter;
pub mod link;
pub mod loss;
pub mod mtu;
pub mod netem;
pub mod offload;
pub mod outage;
pub mod pool;
pub mod qdisc_link;
pub mod queue;
pub mod reorder;
pub mod reset;
mod ring_buffer;
pub mod schedule;
pub mod selection;
pub mod slot;
pub mod strip;
pub mod token_bucket;
pub mod trace;
pub mod wifi;

#[cfg(test)]
mod testing;
