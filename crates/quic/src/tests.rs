//! Two endpoints and a path between them, packet by packet.

mod closing;
mod flow;
mod handshake;
mod limit_cycle;
mod losses;
mod pair;
mod property;
mod script;
