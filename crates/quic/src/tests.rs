//! Tests of two endpoints and a path between them.

mod bbr;
mod closing;
mod flow;
mod handshake;
mod limit_cycle;
mod losses;
mod pair;
mod property;
mod script;
mod stacks;
