//! The ends of a connection: FINs, TIME-WAIT, and one that is given up.

use core::hint::cold_path;

use machine::{Cx, Signal};
use record::{Event, Purpose, Recorder};

use crate::endpoint::{Endpoint, State};

impl Endpoint {
    /// The peer's FIN counts once all before it has arrived.
    pub(super) fn take_fin<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.rcv.fin != Some(self.rcv.nxt) {
            return;
        }
        cold_path();
        self.rcv.nxt += 1;
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => {
                self.enter_time_wait(cx);
                State::TimeWait
            }
            other => other,
        };
        self.signal(Signal::Readable);
        self.ack_at_once();
    }

    /// Our FIN has been acknowledged.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_fin_acked<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => {
                self.state = State::TimeWait;
                self.enter_time_wait(cx);
            }
            State::LastAck => {
                self.state = State::Closed;
                self.timers.stop_all();
                cx.emit(|| Event::Closed);
                self.signal(Signal::Closed);
            }
            _ => {}
        }
    }

    pub(super) fn enter_time_wait<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let first = !self.timers.runs(Purpose::TimeWait);
        self.timers.stop_all();
        self.timers.set(Purpose::TimeWait, cx.now + self.cfg.profile.time_wait);
        if first {
            cx.emit(|| Event::Closed);
            self.signal(Signal::Closed);
        }
    }

    pub(crate) fn abort<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.state = State::Closed;
        self.timers.stop_all();
        cx.emit(|| Event::Aborted);
        self.signal(Signal::Aborted);
    }
}
