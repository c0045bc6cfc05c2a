//! Scripted tests: two endpoints, or one and a hand-made peer, packet by packet. One test for each
//! rule, ordered by mechanism.

mod base;
mod bbr;
mod closing;
mod delivery;
mod ecn;
mod handshake;
mod intruders;
mod loss;
mod loss_probes;
mod packing;
pub(crate) mod pair;
mod probes;
mod rack;
mod sending;
mod shrunk_window;
mod timestamps;
mod transitions;
