//! The Black Box Log of a sender.
//!
//! Events as FreeBSD's default stack logs them: IN, OUT, TIMER and RTO (tcp_timer.c), USERSEND
//! (tcp_usrreq.c), CONNEND. In addition, where the kernel logs nothing but the run has the reason:
//! ENTREC, EXITREC, BAD_RETRAN and CWND for reductions of the window and their undo.

use std::io::{self, Write};

use packet::Segment;
use record::{Cause, Event, EventSource, Purpose, Recorder, SenderState};
use sim::Observer;
use sim::scenario::Scenario;
use tcp::profile::Family;
use trace::bblog::{self, BblogSection, BblogWriter, TcpLogBuffer, TcpLogHeader, flags};
use trace::pcapng::PacketDirection;
use units::Instant;

use super::LoggedEndpoint;
use super::tcb::{LoggedTcb, small};
use crate::capture::EPOCH;

/// Id of the default stack in the file's sections.
const STACK: u8 = 0;

/// Writes the Black Box Log of an endpoint.
#[derive(Debug)]
pub struct BlackBox<W> {
    tcb: LoggedTcb,
    writer: BblogWriter<W>,
    serial: u32,
    /// The connection has ended; its CONNEND record comes last.
    ended: bool,
    last: Instant,
    failed: Option<io::Error>,
}

impl<W: Write> BlackBox<W> {
    /// A recorder that writes the log of `side` to `out`; `comment` goes into the file's header.
    ///
    /// # Errors
    /// Those of `out`; the host of `side` runs QUIC.
    pub fn new(
        scenario: &Scenario,
        side: LoggedEndpoint,
        comment: &str,
        out: W,
    ) -> io::Result<Self> {
        let tcp = side.tcp(scenario)?;
        let tcb = LoggedTcb::new(scenario, side, tcp);
        let between = tcb.between(scenario);
        let profile = &tcp.profile;
        // FreeBSD's name of its stack; other systems have none.
        let stack = match profile.family {
            Family::FreeBsd => "freebsd",
            _ => profile.name,
        };
        let flow = &scenario.flows[side.flow.0 as usize];
        let section = BblogSection {
            version: Some(bblog::VERSION),
            connection: Some(TcpLogHeader {
                local: between.src,
                remote: between.dst,
                boot_micros: EPOCH.as_micros() as i64,
                id: flow.name.clone(),
                reason: "run".to_owned(),
                tag: String::new(),
                length: 0,
            }),
            dumped: Some(EPOCH),
            stacks: vec![(STACK, stack.to_owned())],
            application: concat!("ackclock ", env!("CARGO_PKG_VERSION")).to_owned(),
            comment: comment.to_owned(),
        };
        let writer = BblogWriter::new(out, &section)?;
        Ok(Self { tcb, writer, serial: 0, ended: false, last: Instant::ZERO, failed: None })
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// The first error of the output, or of a segment too long for an IP packet.
    pub fn finish(mut self) -> io::Result<W> {
        if self.ended {
            self.event(self.last, bblog::BblogEvent::CONNEND, [0, 0]);
        }
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }

    /// The next record, with the current state.
    fn next(&mut self, at: Instant, event: bblog::BblogEvent) -> TcpLogBuffer {
        let serial = self.serial;
        self.serial = self.serial.wrapping_add(1);
        self.last = at;
        TcpLogBuffer { serial, stack_id: STACK, event_id: event.0, ..self.tcb.info(at) }
    }

    fn event(&mut self, at: Instant, event: bblog::BblogEvent, flex: [u32; 2]) {
        if self.failed.is_none() {
            let [flex1, flex2] = flex;
            let info = TcpLogBuffer { flex1, flex2, ..self.next(at, event) };
            self.failed = self.writer.event(&info).err();
        }
    }

    /// The event that logs a change of the window, if any, and its two values.
    fn window(&self, cause: Cause, old_cwnd: u32) -> Option<(bblog::BblogEvent, [u32; 2])> {
        match cause {
            Cause::FastRetransmit | Cause::LostRetransmission => {
                let seq = self.tcb.number(self.tcb.sender.snd_una);
                Some((bblog::BblogEvent::ENTREC, [seq, old_cwnd]))
            }
            Cause::Recovered => Some((bblog::BblogEvent::EXITREC, [0, old_cwnd])),
            Cause::Undone => Some((bblog::BblogEvent::BAD_RETRAN, [0, 0])),
            Cause::Timeout
            | Cause::SlowStartExit
            | Cause::Idle
            | Cause::Ecn
            | Cause::PathMtu
            | Cause::WindowProbe => Some((bblog::BblogEvent::CWND, [0, old_cwnd])),
            // Growth, and inflation during recovery, show in every record.
            Cause::Start
            | Cause::SlowStart
            | Cause::Avoidance
            | Cause::PartialAck
            | Cause::LossProbe
            | Cause::Recovering => None,
        }
    }
}

/// Timer id in flex1 of a TIMER record.
const fn timer(purpose: Purpose) -> u32 {
    match purpose {
        Purpose::Retransmit => 0,
        Purpose::Persist => 1,
        Purpose::Keepalive => 2,
        Purpose::TimeWait => 3,
        Purpose::DelayedAck => 4,
        // The base stack does not have these timers; their ids follow its own.
        Purpose::Reorder => 5,
        Purpose::LossProbe => 6,
        Purpose::Pacing => 7,
    }
}

impl<W: Write> Recorder for BlackBox<W> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if !self.tcb.concerns(who) {
            return;
        }
        let old_cwnd = small(self.tcb.sender.cwnd);
        self.tcb.on_event(event, state);
        match event {
            Event::Timer(purpose) => {
                let flex1 = bblog::BblogEvent::timer_processing(timer(purpose));
                self.event(at, bblog::BblogEvent::TIMER, [flex1, 0]);
                if purpose == Purpose::Retransmit {
                    self.event(at, bblog::BblogEvent::RTO, [0, 0]);
                }
            }
            Event::Window { cause, .. } => {
                if let Some((event, flex)) = self.window(cause, old_cwnd) {
                    self.event(at, event, flex);
                }
            }
            Event::AppWrote { .. } => self.event(at, bblog::BblogEvent::USERSEND, [0, 0]),
            Event::Closed | Event::Aborted => (self.ended, self.last) = (true, at),
            _ => {}
        }
    }
}

impl<W: Write> Observer for BlackBox<W> {
    fn tap(&mut self, at: Instant, tap: usize, _: bool, segment: &Segment) {
        let Some(out) = self.tcb.direction(tap, segment) else { return };
        if self.failed.is_some() {
            return;
        }
        let (way, event) = if out {
            (PacketDirection::Out, bblog::BblogEvent::OUT)
        } else {
            (PacketDirection::In, bblog::BblogEvent::IN)
        };
        if out {
            self.tcb.before_out(at, segment);
        }
        let state = self.next(at, event);
        let info = TcpLogBuffer {
            event_flags: state.event_flags | flags::HDR,
            // tcp_output logs before it advances snd_nxt, where the segment starts.
            snd_nxt: if out { segment.seq.0 } else { state.snd_nxt },
            len: segment.payload,
            ..state
        };
        self.failed = self.writer.packet(&info, way, segment).err();
        if out {
            self.tcb.after_out();
        } else {
            self.tcb.after_in(at, segment);
        }
    }
}
