//! Paths in virtual time. Layer 3.
//!
//! Reading order: [`calendar`] (what happens next), [`pool`] (where packets lie while they
//! travel), then the elements of a path, each of which does one thing. What takes time: [`link`]
//! (a queue and a line), [`managed`] (the same with a [`queue`] that marks or loses packets before
//! it is full, or with a line that follows a [`trace`]), [`delay`], [`jitter`], [`token_bucket`]. What goes wrong: [`choice`]
//! (which packets are picked), [`loss`], [`duplicate`], [`corrupt`], [`reorder`], [`outage`],
//! [`thin`]. At the ends of a path: [`offload`] (TSO, LRO, GRO: what a host's network card does to
//! bursts).
//!
//! What it does not do: it knows no connection and no congestion; it moves packets.

pub mod calendar;
pub mod choice;
pub mod corrupt;
pub mod delay;
pub mod duplicate;
pub mod jitter;
pub mod link;
pub mod loss;
pub mod managed;
pub mod offload;
pub mod outage;
pub mod pool;
pub mod queue;
pub mod reorder;
mod row;
pub mod thin;
pub mod token_bucket;
pub mod trace;

#[cfg(test)]
mod testing;
