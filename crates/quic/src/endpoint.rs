//! One side of a connection: its state and the doors through which the world reaches it.

use cc::{Change, Growth};
use machine::{Cx, Signal};
use packet::{Dir, IpVersion};
use record::{Cause, Event, Purpose, Recorder, Sender as _, SenderState, Waiting};
use units::{Bytes, Duration, FlowId, Instant, Offset, Rate};

use crate::ack_policy::AckPolicy;
use crate::congestion_control::CongestionControl;
use crate::controller::Controller;
use crate::flow_control::{FlowControl, Windows};
use crate::handshake::{Flights, Handshake};
use crate::pacer::Pacer;
use crate::packet::{Packet, Space, max_datagram};
use crate::profile::Profile;
use crate::pto;
use crate::received::Received;
use crate::recv_stream::RecvStream;
use crate::rtt::Rtt;
use crate::send_stream::SendStream;
use crate::sent::{Sent, SentPackets};

/// Which side opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Sends the first packet.
    Client,
    /// Waits for it.
    Server,
}

/// The transport parameters that one side tells the other (RFC 9000 section 18.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// What the other side may send.
    pub windows: Windows,
    /// Longest delay of an acknowledgment.
    pub max_ack_delay: Duration,
    /// Shift of the ACK Delay field.
    pub ack_delay_exponent: u32,
}

impl Profile {
    /// The transport parameters of this side.
    pub const fn parameters(&self) -> Parameters {
        Parameters {
            windows: self.windows,
            max_ack_delay: self.acks.max_delay,
            ack_delay_exponent: self.acks.exponent,
        }
    }
}

/// Everything that must be said before a connection can begin.
#[derive(Debug, Clone)]
pub struct Config {
    /// What this side does.
    pub profile: Profile,
    /// What the peer will say of itself.
    pub peer: Parameters,
    /// The handshake, the client's; `None` where both begin established.
    pub handshake: Option<Flights>,
    /// Congestion control.
    pub cc: CongestionControl,
    /// Which side opens.
    pub side: Side,
    /// Number of the connection, copied into every packet.
    pub flow: FlowId,
    /// Version of the internet protocol.
    pub ip: IpVersion,
}

/// What a connection has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Packets with stream data sent.
    pub data_packets: u64,
    /// Those of them that carried bytes sent before.
    pub retransmitted_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Recovery periods entered.
    pub recoveries: u64,
    /// Times the probe timeout fired.
    pub timeouts: u64,
    /// Times losses proved persistent congestion.
    pub persistent: u64,
    /// Bytes of packets with stream data that came, QUIC headers included; each packet once.
    pub received_bytes: u64,
    /// Largest congestion window.
    pub max_cwnd: Bytes,
    /// Least round trip measured.
    pub min_rtt: Option<Duration>,
}

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Not begun, or waiting for the first packet.
    Idle,
    /// The handshake runs.
    Opening,
    /// Data flows.
    Open,
    /// Given up by this side: what comes is answered with CONNECTION_CLOSE (section 10.2.1).
    Closing,
    /// Given up by the peer, or by silence: nothing is sent any more (section 10.2.2).
    Draining,
}

/// What belongs to one packet number space.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    /// Number of the next packet.
    pub(crate) next: u64,
    pub(crate) packets: SentPackets,
    pub(crate) largest_acked: Option<u64>,
    /// When the next packet that was passed is lost.
    pub(crate) loss_time: Option<Instant>,
    pub(crate) last_eliciting: Instant,
    /// Probes that are due.
    pub(crate) probes: u32,
    pub(crate) received: Received,
    pub(crate) policy: AckPolicy,
    pub(crate) crypto_out: SendStream,
    pub(crate) crypto_in: RecvStream,
}

/// One side of a QUIC connection.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub(crate) cfg: Config,
    pub(crate) state: State,
    pub(crate) handshake: Handshake,
    pub(crate) spaces: [Numbers; 3],
    /// UDP payload of a full packet.
    pub(crate) datagram: u32,
    pub(crate) cc: Controller,
    pub(crate) rtt: Rtt,
    pub(crate) pacer: Pacer,
    pub(crate) bytes_in_flight: u64,
    /// The application or flow control, not the window, holds the sender back.
    pub(crate) underused: bool,
    /// Probe timeouts in a row.
    pub(crate) pto_count: u32,
    /// The loss detection timer (RFC 9002 appendix A.8).
    pub(crate) loss_timer: Option<(Instant, Purpose)>,
    /// When pacing lets the next packet go.
    pub(crate) paced_until: Option<Instant>,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
    pub(crate) flow: FlowControl,
    pub(crate) ack_frequency_due: bool,
    pub(crate) close_due: bool,
    /// The application was refused: it is to be called when there is room.
    pub(crate) refused: bool,
    /// Both sides have finished.
    pub(crate) finished: bool,
    /// Asked to send; polling may give a packet.
    pub(crate) due: bool,
    pub(crate) waiting: Waiting,
    pub(crate) signals: u8,
    pub(crate) totals: Totals,
    /// `snd_una` as last recorded.
    pub(crate) told_una: u64,
    /// Scratch lists, kept so that nothing is allocated later.
    pub(crate) newly_acked: Vec<Sent>,
    pub(crate) newly_lost: Vec<Sent>,
}

impl Endpoint {
    /// An endpoint that has not begun: a client opens with [`Endpoint::open`], a server waits.
    pub fn new(cfg: Config) -> Self {
        let profile = &cfg.profile;
        let datagram = max_datagram(profile.mtu, cfg.ip);
        let numbers = || Numbers {
            next: 0,
            packets: SentPackets::default(),
            largest_acked: None,
            loss_time: None,
            last_eliciting: Instant::ZERO,
            probes: 0,
            received: Received::default(),
            policy: AckPolicy::new(profile.acks),
            crypto_out: SendStream::new(u64::from(u32::MAX)),
            crypto_in: RecvStream::default(),
        };
        let cc = Controller::new(cfg.cc, profile, datagram);
        Self {
            state: State::Idle,
            handshake: Handshake::new(cfg.handshake),
            spaces: [numbers(), numbers(), numbers()],
            datagram,
            pacer: Pacer::new(cc.control().window.get()),
            cc,
            rtt: Rtt::new(profile.pto.initial_rtt),
            bytes_in_flight: 0,
            underused: true,
            pto_count: 0,
            loss_timer: None,
            paced_until: None,
            send: SendStream::new(profile.send_buffer.get()),
            recv: RecvStream::default(),
            flow: FlowControl::new(profile.windows, cfg.peer.windows),
            ack_frequency_due: profile.ack_frequency.is_some(),
            close_due: false,
            refused: false,
            finished: false,
            due: false,
            waiting: Waiting::Handshake,
            signals: 0,
            totals: Totals::default(),
            told_una: 0,
            newly_acked: Vec::new(),
            newly_lost: Vec::new(),
            cfg,
        }
    }

    /// Opens the connection. Where there is no handshake it is established at once.
    pub fn open<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.state != State::Idle || self.cfg.side == Side::Server {
            return;
        }
        match self.handshake.flights {
            Some(flights) => {
                self.state = State::Opening;
                let hello = u64::from(flights.client_hello);
                self.spaces[Space::Initial.index()].crypto_out.write(hello);
            }
            None => self.establish(cx),
        }
        self.due = true;
    }

    /// Hands over up to `bytes`; returns how many were taken. What was not taken is offered again
    /// after [`Signal::Writable`].
    pub fn write<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, bytes: u64) -> u64 {
        if self.state != State::Open || self.send.is_finished() {
            return 0;
        }
        let taken = self.send.write(bytes.min(u64::from(u32::MAX)));
        self.refused = taken < bytes;
        if taken > 0 {
            cx.emit(|| Event::Wrote { bytes: taken as u32 });
            self.due = true;
        }
        taken
    }

    /// Takes what lies ready, but no more than `most` bytes; returns how many.
    pub fn read_up_to<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, most: u64) -> u64 {
        let bytes = self.recv.read(most.min(u64::from(u32::MAX)));
        if bytes > 0 {
            let upto = Offset(self.recv.taken());
            cx.emit(|| Event::Read { bytes: bytes as u32, upto });
            self.flow.on_read(self.recv.taken());
            self.due |= self.flow.due();
        }
        bytes
    }

    /// No more bytes follow: the stream ends behind the last one.
    pub fn close(&mut self) {
        if self.state == State::Open && !self.send.is_finished() {
            self.send.finish();
            self.due = true;
        }
    }

    /// Gives the connection up at once: the peer is told with CONNECTION_CLOSE.
    pub fn reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let tells = matches!(self.state, State::Opening | State::Open);
        self.abort(cx, State::Closing);
        self.close_due = tells;
        self.due = tells;
    }

    /// Has the peer finished, and has all it sent been read?
    pub fn at_end(&self) -> bool {
        self.recv.at_end()
    }

    /// Is the connection established?
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// What a user-defined congestion controller failed with, if it did.
    pub fn controller_failure(&self) -> Option<&cc::outside::Gone> {
        self.cc.failure()
    }

    /// Counters so far.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Payload bytes acknowledged by the peer.
    pub const fn acknowledged(&self) -> Bytes {
        Bytes(self.send.una())
    }

    /// The sender's state as a row.
    pub fn sender_state(&self) -> SenderState {
        self.row()
    }

    /// What pacing lets leave, once there is a round trip to spread packets over.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.rtt.first_sample().filter(|_| self.cfg.profile.pacing)?;
        Pacer::rate(self.cc.control().window, self.rtt.smoothed())
    }

    /// Has the endpoint been asked to send, so that polling it may give a packet?
    #[inline]
    pub const fn wants_to_send(&self) -> bool {
        self.due
    }

    pub(crate) const fn dir(&self) -> Dir {
        match self.cfg.side {
            Side::Client => Dir::Forward,
            Side::Server => Dir::Reverse,
        }
    }

    pub(crate) fn is_server(&self) -> bool {
        self.cfg.side == Side::Server
    }

    pub(crate) const fn numbers(&mut self, space: Space) -> &mut Numbers {
        &mut self.spaces[space.index()]
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.signals |= 1 << signal as u8;
    }

    /// Data may flow.
    pub(crate) fn establish<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.state = State::Open;
        self.handshake.complete = true;
        self.handshake.install(Space::Application);
        self.cc.on_established(cx.now);
        cx.emit(|| Event::Connected);
        self.signal(Signal::Connected);
        self.note(cx, Change::None, Some(Cause::Start));
    }

    pub(crate) fn abort<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, into: State) {
        if matches!(self.state, State::Closing | State::Draining) {
            return;
        }
        self.state = into;
        self.loss_timer = None;
        self.paced_until = None;
        self.due = false;
        cx.emit(|| Event::Aborted);
        self.signal(Signal::Aborted);
    }

    /// Both sides have finished, and each has heard so.
    pub(crate) fn check_finished<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if !self.finished && self.send.is_done() && self.recv.is_complete() {
            self.finished = true;
            cx.emit(|| Event::Closed);
            self.signal(Signal::Closed);
        }
    }

    /// How long the peer may delay an acknowledgment: as long as it has said, or as it was asked to
    /// (draft-ietf-quic-ack-frequency section 4: who asks for more counts with more).
    pub(crate) fn max_ack_delay(&self) -> Duration {
        let asked = self.cfg.profile.ack_frequency;
        let asked = asked.map(|asked| Duration::from_micros(asked.max_delay_us));
        self.cfg.peer.max_ack_delay.max(asked.unwrap_or_default())
    }

    pub(crate) fn pto_period(&self, space: Space) -> Duration {
        // Section 6.2.1: the peer delays acknowledgments of application data only.
        let delay = match space {
            Space::Application => self.max_ack_delay(),
            Space::Initial | Space::Handshake => Duration::ZERO,
        };
        pto::period(&self.rtt, self.cfg.profile.loss.granularity, delay, self.pto_count)
    }

    /// Records what an event did to the window.
    pub(crate) fn note<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        change: Change,
        cause: Option<Cause>,
    ) {
        let control = self.cc.control();
        self.totals.max_cwnd = self.totals.max_cwnd.max(control.window);
        let by_rule = match change {
            Change::None => None,
            Change::Grew(Growth::SlowStart) => Some(Cause::SlowStart),
            Change::Grew(Growth::Avoidance) => Some(Cause::Avoidance),
            Change::SlowStartEnded => Some(Cause::SlowStartExit),
            Change::Undone => Some(Cause::Undone),
            Change::RecoveryEnded => Some(Cause::Recovered),
            Change::RecoveryBegan => Some(Cause::FastRetransmit),
            Change::Collapsed | Change::Shrank => Some(Cause::Timeout),
        };
        let Some(cause) = cause.or(by_rule) else { return };
        cx.emit_of(self, || {
            let control = self.cc.control();
            let cwnd = control.window.get().min(u64::from(u32::MAX)) as u32;
            let ssthresh = control.ssthresh.map_or(u32::MAX, |bytes| bytes.get() as u32);
            Event::Window { cwnd, ssthresh, cause }
        });
    }
}

impl machine::Endpoint for Endpoint {
    type Segment = Packet;

    fn handle_segment<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, packet: &Packet) {
        self.input(cx, packet);
    }

    fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.numbers(Space::Application).policy.on_timeout(cx.now) {
            cx.emit(|| Event::Timer(Purpose::DelayedAck));
            self.due = true;
        }
        if self.paced_until.is_some_and(|at| at <= cx.now) {
            self.paced_until = None;
            self.due = true;
        }
        while let Some((_, purpose)) = self.loss_timer.filter(|&(at, _)| at <= cx.now) {
            self.on_loss_timer(cx, purpose);
        }
    }

    #[inline]
    fn poll_transmit<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Packet,
    ) -> Result<(), Waiting> {
        if self.due { self.output(cx, slot) } else { Err(self.waiting) }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<(Instant, Purpose)> {
        let ack = self.spaces[Space::Application.index()].policy.deadline();
        let ack = ack.map(|at| (at, Purpose::DelayedAck));
        let paced = self.paced_until.map(|at| (at, Purpose::Pacing));
        [ack, paced, self.loss_timer].into_iter().flatten().min()
    }

    #[inline]
    fn poll_signal(&mut self) -> Option<Signal> {
        const ALL: [Signal; 5] = [
            Signal::Connected,
            Signal::Writable,
            Signal::Readable,
            Signal::Closed,
            Signal::Aborted,
        ];
        let signal = *ALL.get(self.signals.trailing_zeros() as usize)?;
        self.signals &= self.signals - 1;
        Some(signal)
    }
}
