//! One endpoint of a QUIC connection: its state, the application interface and the
//! [`machine::Endpoint`] contract.

use cc::{Growth, WindowChange};
use machine::{Cx, Signal};
use packet::{Dir, IpVersion};
use record::{Cause, Event, Purpose, Recorder, SendLimit, Sender as _, SenderState};
use units::{Bytes, Duration, FlowId, Instant, Offset, RandomStream, Rate};

use crate::ack_policy::QuicAckPolicy;
use crate::congestion_control::CongestionControl;
use crate::controller::QuicController;
use crate::ecn::EcnValidator;
use crate::flow_control::{FlowControl, Windows};
use crate::handshake::{Flights, Handshake};
use crate::mtu::MtuSearch;
use crate::pacer::{Pacer, PacingBasis};
use crate::packet::{QuicPacket, Space, max_datagram};
use crate::profile::QuicProfile;
use crate::pto;
use crate::received::ReceivedPackets;
use crate::recv_stream::RecvStream;
use crate::reordered::ReorderedPackets;
use crate::rtt::Rtt;
use crate::send_stream::SendStream;
use crate::sent::{SentPackets, SentQuicPacket};
use crate::slow_start::SlowStartMonitor;
use crate::spurious::SpuriousLosses;

/// The role of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicSide {
    /// Opens the connection.
    Client,
    /// Accepts the connection.
    Server,
}

/// The transport parameters that an endpoint declares (RFC 9000 section 18.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportParameters {
    /// Initial flow control limits for the peer.
    pub windows: Windows,
    /// Longest delay of an acknowledgment (`max_ack_delay`).
    pub max_ack_delay: Duration,
    /// Exponent of the ACK Delay field (`ack_delay_exponent`).
    pub ack_delay_exponent: u32,
}

impl QuicProfile {
    /// The transport parameters of this endpoint.
    pub const fn parameters(&self) -> TransportParameters {
        TransportParameters {
            windows: self.windows,
            max_ack_delay: self.acks.max_delay,
            ack_delay_exponent: self.acks.exponent,
        }
    }
}

/// The configuration of an endpoint.
#[derive(Debug, Clone)]
pub struct QuicConfig {
    /// The profile of this endpoint.
    pub profile: QuicProfile,
    /// The transport parameters of the peer.
    pub peer: TransportParameters,
    /// The handshake as the client declares it; `None`: both endpoints start established.
    pub handshake: Option<Flights>,
    /// Congestion control.
    pub cc: CongestionControl,
    /// Client or server.
    pub side: QuicSide,
    /// Connection number, copied into every packet.
    pub flow: FlowId,
    /// IP version.
    pub ip: IpVersion,
    /// Random numbers of the controller.
    pub draws: RandomStream,
}

/// Counters of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicTotals {
    /// Packets sent with stream data.
    pub data_packets: u64,
    /// Packets sent with retransmitted stream data.
    pub retransmitted_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Recovery periods entered.
    pub recoveries: u64,
    /// Probe timeouts.
    pub timeouts: u64,
    /// Times persistent congestion was established.
    pub persistent: u64,
    /// Bytes of received packets with stream data, QUIC headers included, duplicates excluded.
    pub received_bytes: u64,
    /// Largest congestion window.
    pub max_cwnd: Bytes,
    /// Smallest round-trip sample.
    pub min_rtt: Option<Duration>,
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuicState {
    /// Not started, or waiting for the first packet.
    Idle,
    /// Handshake in progress.
    Opening,
    /// Established.
    Open,
    /// Closed by this endpoint: it answers packets with CONNECTION_CLOSE (section 10.2.1).
    Closing,
    /// Closed by the peer or timed out: it sends nothing (section 10.2.2).
    Draining,
}

/// The state of a packet number space.
#[derive(Debug, Clone)]
pub(crate) struct PacketSpace {
    /// Number of the next packet.
    pub(crate) next: u64,
    pub(crate) packets: SentPackets,
    pub(crate) largest_acked: Option<u64>,
    /// When the next packet reaches the time threshold (`loss_time`).
    pub(crate) loss_time: Option<Instant>,
    pub(crate) last_eliciting: Instant,
    /// Probe packets still to send.
    pub(crate) probes: u32,
    pub(crate) received: ReceivedPackets,
    pub(crate) policy: QuicAckPolicy,
    pub(crate) crypto_out: SendStream,
    pub(crate) crypto_in: RecvStream,
}

/// One endpoint of a QUIC connection.
#[derive(Debug, Clone)]
pub struct QuicEndpoint {
    pub(crate) cfg: QuicConfig,
    pub(crate) state: QuicState,
    pub(crate) handshake: Handshake,
    pub(crate) spaces: [PacketSpace; 3],
    /// UDP payload of a full packet.
    pub(crate) datagram: u32,
    /// The search of a larger one.
    pub(crate) mtu: Option<MtuSearch>,
    pub(crate) cc: QuicController,
    pub(crate) ecn: EcnValidator,
    pub(crate) rtt: Rtt,
    pub(crate) pacer: Pacer,
    pub(crate) slow_start: SlowStartMonitor,
    pub(crate) bytes_in_flight: u64,
    /// The application or flow control, not the congestion window, limits the sender.
    pub(crate) underused: bool,
    /// Consecutive probe timeouts.
    pub(crate) pto_count: u32,
    /// Timeouts since a packet was received: a client's count of timeouts goes on until the server
    /// has validated its address, whatever it answers (section 6.2.1).
    pub(crate) silent_timeouts: u32,
    /// The loss detection timer (RFC 9002 appendix A.8).
    pub(crate) loss_timer: Option<(Instant, Purpose)>,
    /// When the pacer allows the next packet.
    pub(crate) paced_until: Option<Instant>,
    pub(crate) send: SendStream,
    pub(crate) recv: RecvStream,
    pub(crate) flow: FlowControl,
    pub(crate) ack_frequency_due: bool,
    /// The packet that is built follows another one in its datagram, whose departure is recorded.
    pub(crate) coalescing: bool,
    /// NEW_CONNECTION_ID frames are to be sent.
    pub(crate) connection_ids_due: bool,
    pub(crate) close_due: bool,
    /// A write was cut short: [`Signal::Writable`] is due once the send buffer has space.
    pub(crate) write_blocked: bool,
    /// Both streams are complete.
    pub(crate) finished: bool,
    /// A packet may be ready: polling is worthwhile.
    pub(crate) due: bool,
    pub(crate) waiting: SendLimit,
    pub(crate) signals: u8,
    pub(crate) totals: QuicTotals,
    /// `snd_una` as last recorded.
    pub(crate) recorded_una: u64,
    /// Scratch lists, reused to avoid allocation.
    pub(crate) newly_acked: Vec<SentQuicPacket>,
    pub(crate) newly_lost: Vec<SentQuicPacket>,
    /// Losses of application data that may prove spurious.
    pub(crate) spurious: SpuriousLosses,
    pub(crate) reordered: ReorderedPackets,
    /// Packets sent since the last one that is acknowledged.
    pub(crate) unanswered: u32,
    /// Packets sent so far, in all spaces.
    pub(crate) order: u64,
    /// Place in that order of the last ack-eliciting packet.
    pub(crate) latest: u64,
}

impl QuicEndpoint {
    /// A new endpoint: a client opens with [`QuicEndpoint::open`], a server waits.
    pub fn new(cfg: QuicConfig) -> Self {
        let profile = &cfg.profile;
        let most = max_datagram(profile.mtu, cfg.ip);
        let mtu = profile.mtu_discovery.map(|rule| MtuSearch::new(rule, most));
        let datagram = mtu.as_ref().map_or(most, MtuSearch::size);
        let numbers = || PacketSpace {
            next: 0,
            packets: SentPackets::default(),
            largest_acked: None,
            loss_time: None,
            last_eliciting: Instant::ZERO,
            probes: 0,
            received: ReceivedPackets::default(),
            policy: QuicAckPolicy::new(profile.acks),
            crypto_out: SendStream::new(u64::from(u32::MAX)),
            crypto_in: RecvStream::default(),
        };
        let cc = QuicController::new(cfg.cc, profile, datagram, cfg.draws.clone());
        Self {
            state: QuicState::Idle,
            handshake: Handshake::new(cfg.handshake),
            spaces: [numbers(), numbers(), numbers()],
            datagram,
            mtu,
            pacer: Pacer::new(cc.control().window.get(), profile.bursts, datagram),
            slow_start: SlowStartMonitor::new(profile.slow_start),
            cc,
            ecn: EcnValidator::new(profile.ecn),
            rtt: Rtt::new(profile.pto.initial_rtt, profile.rtt),
            bytes_in_flight: 0,
            underused: true,
            pto_count: 0,
            silent_timeouts: 0,
            loss_timer: None,
            paced_until: None,
            send: SendStream::new(profile.send_buffer.get()).in_writes_of(profile.write_unit),
            recv: RecvStream::default(),
            flow: FlowControl::new(
                profile.windows,
                profile.raise_divisor,
                profile.grown_windows.unwrap_or(profile.windows),
                cfg.peer.windows,
            ),
            ack_frequency_due: profile.ack_frequency.is_some(),
            coalescing: false,
            connection_ids_due: false,
            close_due: false,
            write_blocked: false,
            finished: false,
            due: false,
            waiting: SendLimit::Handshake,
            signals: 0,
            totals: QuicTotals::default(),
            recorded_una: 0,
            newly_acked: Vec::new(),
            newly_lost: Vec::new(),
            spurious: SpuriousLosses::default(),
            reordered: ReorderedPackets::default(),
            unanswered: 0,
            order: 0,
            latest: 0,
            cfg,
        }
    }

    /// Opens the connection. Without a handshake it is established at once.
    pub fn open<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.state != QuicState::Idle || self.cfg.side == QuicSide::Server {
            return;
        }
        match self.handshake.flights {
            Some(flights) => {
                self.state = QuicState::Opening;
                let hello = u64::from(flights.client_hello);
                self.spaces[Space::Initial.index()].crypto_out.write(hello);
            }
            None => self.establish(cx),
        }
        self.due = true;
    }

    /// Queues up to `bytes` for sending; returns the number accepted. After a short write,
    /// [`Signal::Writable`] reports that the rest can be offered.
    pub fn write<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, bytes: u64) -> u64 {
        if self.state != QuicState::Open || self.send.is_finished() {
            return 0;
        }
        let taken = self.send.write(bytes.min(u64::from(u32::MAX)));
        self.write_blocked = taken < bytes;
        if taken > 0 {
            cx.emit(|| Event::AppWrote { bytes: taken as u32 });
            self.due = true;
        }
        taken
    }

    /// Reads up to `most` bytes that are in order; returns the number read.
    pub fn read_up_to<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, most: u64) -> u64 {
        let bytes = self.recv.read(most.min(u64::from(u32::MAX)));
        if bytes > 0 {
            let upto = Offset(self.recv.taken());
            cx.emit(|| Event::AppRead { bytes: bytes as u32, total: upto });
            self.flow.on_read(self.recv.taken(), cx.now, self.rtt.smoothed());
            self.due |= self.flow.due();
        }
        bytes
    }

    /// Ends the sending stream after the last byte written.
    pub fn close(&mut self) {
        if self.state == QuicState::Open && !self.send.is_finished() {
            self.send.finish();
            self.due = true;
        }
    }

    /// Closes the connection at once with CONNECTION_CLOSE.
    pub fn reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let reports = matches!(self.state, QuicState::Opening | QuicState::Open);
        self.abort(cx, QuicState::Closing);
        self.close_due = reports;
        self.due = reports;
    }

    /// Has the application read the peer's whole stream?
    pub fn at_end(&self) -> bool {
        self.recv.at_end()
    }

    /// Is the connection established?
    pub fn is_open(&self) -> bool {
        self.state == QuicState::Open
    }

    /// The error of a user-defined congestion controller, if it failed.
    pub fn controller_failure(&self) -> Option<&cc::external::ControllerError> {
        self.cc.failure()
    }

    /// Counters so far.
    pub const fn totals(&self) -> &QuicTotals {
        &self.totals
    }

    /// Payload bytes acknowledged by the peer.
    pub const fn acknowledged(&self) -> Bytes {
        Bytes(self.send.una())
    }

    /// A snapshot of the sender's state.
    pub fn sender_state(&self) -> SenderState {
        self.snapshot()
    }

    /// The pacing rate; `None` before the first round-trip sample or without pacing.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        if self.cc.paced_burst().is_some() {
            return self.cc.control().pacing;
        }
        self.rtt.first_sample().filter(|_| self.cfg.profile.pacing)?;
        self.pacing_basis().rate()
    }

    /// What the pacer's rate follows from.
    pub(crate) fn pacing_basis(&self) -> PacingBasis {
        let control = self.cc.control();
        let gain = self.cfg.profile.pacing_gain;
        let slow = control.ssthresh.is_none_or(|ssthresh| control.window < ssthresh);
        PacingBasis {
            window: control.window,
            smoothed: self.rtt.smoothed(),
            gain: if slow { gain.slow_start } else { gain.avoidance },
        }
    }

    /// May polling give a packet?
    #[inline]
    pub const fn wants_to_send(&self) -> bool {
        self.due
    }

    pub(crate) const fn dir(&self) -> Dir {
        match self.cfg.side {
            QuicSide::Client => Dir::Forward,
            QuicSide::Server => Dir::Reverse,
        }
    }

    pub(crate) fn is_server(&self) -> bool {
        self.cfg.side == QuicSide::Server
    }

    pub(crate) const fn space_mut(&mut self, space: Space) -> &mut PacketSpace {
        &mut self.spaces[space.index()]
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.signals |= 1 << signal as u8;
    }

    /// Enters the established state.
    pub(crate) fn establish<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.state = QuicState::Open;
        self.handshake.complete = true;
        self.handshake.install(Space::Application);
        self.connection_ids_due = !self.is_server() && self.cfg.profile.connection_ids > 0;
        self.cc.on_established(cx.now);
        cx.emit(|| Event::Connected);
        self.signal(Signal::Connected);
        self.record_window(cx, WindowChange::None, Some(Cause::Start));
    }

    pub(crate) fn abort<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, into: QuicState) {
        if matches!(self.state, QuicState::Closing | QuicState::Draining) {
            return;
        }
        self.state = into;
        self.loss_timer = None;
        self.paced_until = None;
        self.due = false;
        cx.emit(|| Event::Aborted);
        self.signal(Signal::Aborted);
    }

    /// Signals the close once both streams are complete and acknowledged.
    pub(crate) fn check_finished<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if !self.finished && self.send.is_done() && self.recv.is_complete() {
            self.finished = true;
            cx.emit(|| Event::Closed);
            self.signal(Signal::Closed);
        }
    }

    /// The longest delay of the peer's acknowledgments: the larger of its `max_ack_delay` and the
    /// delay requested with ACK_FREQUENCY (draft-ietf-quic-ack-frequency section 4).
    pub(crate) fn max_ack_delay(&self) -> Duration {
        let requested = self.cfg.profile.ack_frequency;
        let requested = requested.map(|requested| Duration::from_micros(requested.max_delay_us));
        self.cfg.peer.max_ack_delay.max(requested.unwrap_or_default())
    }

    pub(crate) fn pto_period(&self, space: Space) -> Duration {
        // Section 6.2.1: the peer delays acknowledgments of application data only.
        let delay = match space {
            Space::Application => self.max_ack_delay(),
            Space::Initial | Space::Handshake => Duration::ZERO,
        };
        pto::period(&self.rtt, self.cfg.profile.loss.granularity, delay, self.pto_count)
    }

    /// Records a change of the congestion window.
    pub(crate) fn record_window<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        change: WindowChange,
        cause: Option<Cause>,
    ) {
        let control = self.cc.control();
        self.totals.max_cwnd = self.totals.max_cwnd.max(control.window);
        let by_rule = match change {
            WindowChange::None => None,
            WindowChange::Grew(Growth::SlowStart) => Some(Cause::SlowStart),
            WindowChange::Grew(Growth::Avoidance) => Some(Cause::Avoidance),
            WindowChange::SlowStartEnded => Some(Cause::SlowStartExit),
            WindowChange::Undone => Some(Cause::Undone),
            WindowChange::RecoveryEnded => Some(Cause::Recovered),
            WindowChange::RecoveryBegan => Some(Cause::FastRetransmit),
            WindowChange::Collapsed | WindowChange::Shrank => Some(Cause::Timeout),
        };
        let Some(cause) = cause.or(by_rule) else { return };
        cx.emit_with_state(self, || self.window_event(cause));
    }

    /// The congestion window as an event.
    fn window_event(&self, cause: Cause) -> Event {
        let control = self.cc.control();
        let cwnd = control.window.get().min(u64::from(u32::MAX)) as u32;
        let ssthresh = control.ssthresh.map_or(u32::MAX, |bytes| bytes.get() as u32);
        Event::Window { cwnd, ssthresh, cause }
    }
}

impl machine::Endpoint for QuicEndpoint {
    type Segment = QuicPacket;

    fn handle_segment<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, packet: &QuicPacket) {
        self.input(cx, packet);
    }

    fn handle_timeout<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.space_mut(Space::Application).policy.on_timeout(cx.now) {
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
        slot: &mut QuicPacket,
    ) -> Result<(), SendLimit> {
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
