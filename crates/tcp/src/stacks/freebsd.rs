//! FreeBSD's base stack (tcp_input.c, tcp_output.c, tcp_sack.c, tcp_timer.c; 13.0, 14.3 and main of
//! October 2024): loss detection by duplicates and by the holes of the scoreboard.
//!
//! An acknowledgment is processed in the steps of tcp_do_segment (`do_segment`), one that advances
//! `snd_una` in `process_ack`, with the functions of tcp_sack.c (`tcp_sack`) and `steps` of this
//! state. `tcp_output` plans and records segments; `timers` has the timeouts, `persist` the probes of
//! a closed window.

pub(crate) mod do_segment;
mod persist;
mod process_ack;
pub(crate) mod state;
mod steps;
pub(crate) mod tcp_output;
mod tcp_sack;
mod timers;

use crate::sender::{FlightEstimate, Sender};
use state::FreeBsdState;

/// The base stack of a connection, for one step.
#[derive(Debug)]
pub(crate) struct FreeBsd<'a> {
    snd: &'a mut Sender,
    state: &'a mut FreeBsdState,
}

impl<'a> FreeBsd<'a> {
    /// The stack with this state and sender.
    pub(crate) const fn new(snd: &'a mut Sender, state: &'a mut FreeBsdState) -> Self {
        Self { snd, state }
    }

    /// Corrects the bytes in flight after a change of the scoreboard.
    fn settle_flight(&mut self) {
        self.snd.flight = FlightEstimate::Corrected(self.state.flight_correction());
    }

    /// Wakes a blocked writer once the send buffer has space.
    fn wake_writer(&mut self) {
        if self.snd.buffer.starved() {
            self.snd.signal_space();
        }
    }
}
