//! Scripts without a clock: two endpoints, or one and a hand-made peer, packet by packet.
//! One test a rule, filed by mechanism.

mod closing;
mod delivery;
mod handshake;
mod loss;
mod pair;
mod sending;
