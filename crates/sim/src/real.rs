//! A real QUIC implementation at one end of a flow, with the events that its interface shows.

use machine::{Cx, Signal};
use quic::real::{Datagram, RealEndpoint, RealFailure, RealState};
use record::{Cause, Event, Recorder, SenderState};
use units::{Bytes, Duration, Instant, Offset};

use crate::transport::EndpointTotals;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct RealTransport {
    inner: Box<dyn RealEndpoint>,
    deadline: Instant,
    written: u64,
    read: u64,
    max_cwnd: Bytes,
    /// Its state at the last recorded event.
    recorded: RealState,
    received_bytes: u64,
    /// Datagrams sent.
    sent: u32,
    /// Reductions of the window.
    reductions: u64,
}

impl RealTransport {
    pub(crate) fn new(inner: Box<dyn RealEndpoint>) -> Self {
        Self {
            inner,
            deadline: Instant::MAX,
            written: 0,
            read: 0,
            max_cwnd: Bytes::ZERO,
            recorded: RealState::default(),
            received_bytes: 0,
            sent: 0,
            reductions: 0,
        }
    }

    pub(crate) fn open<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.inner.open(cx.now);
        self.after_input(cx);
    }

    pub(crate) fn write<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, bytes: u64) -> u64 {
        let taken = self.inner.write(cx.now, bytes);
        if taken > 0 {
            self.written += taken;
            cx.emit(|| Event::AppWrote { bytes: taken as u32 });
        }
        taken
    }

    pub(crate) fn read_up_to<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, most: u64) -> u64 {
        let bytes = self.inner.read(cx.now, most);
        if bytes > 0 {
            self.read += bytes;
            let total = Offset(self.read);
            cx.emit(|| Event::AppRead { bytes: bytes as u32, total });
        }
        bytes
    }

    pub(crate) fn close(&mut self, now: Instant) {
        self.inner.close(now);
    }

    pub(crate) fn reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.inner.reset(cx.now);
        self.after_input(cx);
    }

    pub(crate) fn at_end(&self) -> bool {
        self.inner.at_end()
    }

    pub(crate) fn receive<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, bytes: &[u8], ecn: u8) {
        self.received_bytes += bytes.len() as u64;
        self.inner.receive(cx.now, bytes, ecn);
        self.after_input(cx);
    }

    pub(crate) fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.inner.handle_timeout(cx.now);
        self.after_input(cx);
    }

    /// Writes the next datagram that is ready; false if none is, which also determines the deadline.
    pub(crate) fn poll_transmit(&mut self, now: Instant, into: &mut Datagram) -> bool {
        let sent = self.inner.poll_transmit(now, into);
        if !sent {
            self.deadline = self.inner.deadline();
        }
        sent
    }

    /// Returns the number of the next datagram in its direction, from 0.
    pub(crate) const fn next_number(&mut self) -> u32 {
        let number = self.sent;
        self.sent = self.sent.wrapping_add(1);
        number
    }

    pub(crate) fn poll_signal<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) -> Option<Signal> {
        let signal = self.inner.poll_signal()?;
        match signal {
            Signal::Connected => cx.emit(|| Event::Connected),
            Signal::Closed => cx.emit(|| Event::Closed),
            Signal::Aborted => cx.emit(|| Event::Aborted),
            Signal::Writable | Signal::Readable => {}
        }
        Some(signal)
    }

    pub(crate) fn failure(&self) -> Option<&RealFailure> {
        self.inner.failure()
    }

    pub(crate) const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Records what the input changed.
    fn after_input<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let state = self.inner.state();
        self.max_cwnd = self.max_cwnd.max(state.cwnd);
        let before = core::mem::replace(&mut self.recorded, state);
        self.reductions += u64::from(state.cwnd < before.cwnd);
        if !R::ON {
            return;
        }
        let sender = self.sender_state(&state);
        if let Some(rtt) = state.srtt.filter(|_| state.srtt != before.srtt) {
            cx.rec.record(cx.now, cx.source, Event::RttSample { rtt }, Some(&sender));
        }
        if state.lost_packets > before.lost_packets {
            let packets = (state.lost_packets - before.lost_packets) as u32;
            cx.rec.record(cx.now, cx.source, Event::Lost { packets }, Some(&sender));
        }
        if state.cwnd != before.cwnd && state.cwnd > Bytes::ZERO {
            let cause = match state.cwnd < before.cwnd {
                true => Cause::FastRetransmit,
                false if before.cwnd == Bytes::ZERO => Cause::Start,
                // Its threshold is not part of its interface.
                false => Cause::Avoidance,
            };
            let cwnd = state.cwnd.get().min(u64::from(u32::MAX)) as u32;
            let event = Event::Window { cwnd, ssthresh: u32::MAX, cause };
            cx.rec.record(cx.now, cx.source, event, Some(&sender));
        }
    }

    /// What its interface shows of the sender; offsets are of bytes written, as it shows no others.
    fn sender_state(&self, state: &RealState) -> SenderState {
        let written = Offset(self.written);
        SenderState {
            snd_una: written,
            snd_nxt: written,
            snd_max: written,
            cwnd: state.cwnd,
            ssthresh: None,
            snd_wnd: Bytes::ZERO,
            mss: state.datagram,
            buffered: Bytes::ZERO,
            send_buffer: Bytes::ZERO,
            srtt: state.srtt,
            rto: Duration::ZERO,
            in_recovery: false,
            in_flight: state.in_flight,
            partial_acked: Bytes::ZERO,
            bbr: None,
            pipe: Bytes::ZERO,
            pacing: None,
        }
    }

    pub(crate) fn counted(&self) -> EndpointTotals {
        let state = self.inner.state();
        EndpointTotals {
            data_packets: state.data_packets,
            retransmitted_packets: state.retransmitted_packets,
            recoveries: self.reductions,
            timeouts: 0,
            spurious: 0,
            max_cwnd: self.max_cwnd,
            mss: state.datagram,
            min_rtt: state.min_rtt,
            received_packet_bytes: Some(Bytes(self.received_bytes)),
        }
    }
}
