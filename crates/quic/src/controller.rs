//! Congestion control of a QUIC sender: NewReno of RFC 9002, per packet, and the controllers of TCP
//! stacks, driven by the same packets; BBR is in `rate_based`.
//!
//! A TCP controller works with sequence numbers. Here they count the bytes of acknowledged packets:
//! an acknowledged packet advances `snd_una` by its size. Recovery follows RFC 9002 section 7.3.2,
//! by the send times of packets, and the window is reduced at once.

use cc::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, RecoveryEnd, SmoothedRtt,
};
use cc::cubic::{CubicVariant, FreeBsdCubic, LinuxCubic, RfcCubic};
use cc::external::ControllerError;
use cc::quic_newreno::{PacketAcked, PacketsLost};
use cc::{
    AnyController, BbrDraft, Control, Controller as _, LinuxReno, QuicNewReno, WindowChange,
    newreno,
};
use units::{Bytes, Duration, Instant, Offset, RandomStream};

use crate::congestion_control::CongestionControl;
use crate::packet::AckFrame;
use crate::profile::{QuicCubicRule, QuicProfile};
use crate::quic_cubic::{CubicAck, QuicCubic};
use crate::rate_based::{DeliveryStamp, RateController};
use crate::sent::SentQuicPacket;

/// Ticks per second of the clock that TCP controllers see, as in most kernels.
pub(crate) const HZ: u32 = 1_000;

pub(crate) const fn ticks(now: Instant) -> u64 {
    now.as_nanos() / (1_000_000_000 / HZ as u64)
}

/// A congestion controller of a QUIC sender.
#[derive(Debug, Clone)]
pub(crate) enum QuicController {
    NewReno(QuicNewReno),
    Cubic(QuicCubic),
    Tcp(Box<TcpController>),
    Rate(Box<RateController>),
}

/// The packets that one ACK frame newly acknowledges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckedPackets<'a> {
    pub(crate) now: Instant,
    /// Ack-eliciting packets, the largest number first.
    pub(crate) packets: &'a [SentQuicPacket],
    /// Bytes in flight before these packets are removed.
    pub(crate) flight: u64,
    /// Bytes in flight before the frame was processed.
    pub(crate) prior_flight: u64,
    /// The congestion window is underutilized (RFC 9002 section 7.8).
    pub(crate) underused: bool,
    /// The round-trip sample of the frame.
    pub(crate) rtt: Option<Duration>,
    /// The smoothed round-trip time, with that sample if losses are processed first.
    pub(crate) smoothed: Duration,
    /// The smallest round-trip time.
    pub(crate) min_rtt: Duration,
    /// By this the growth of slow start is divided.
    pub(crate) divisor: u64,
}

/// Packets declared lost together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LostPackets {
    pub(crate) now: Instant,
    /// When the packet with the largest number was sent.
    pub(crate) sent: Instant,
    /// Its place in the order of sending, and that of the last packet sent.
    pub(crate) order: u64,
    pub(crate) latest: u64,
    pub(crate) persistent: bool,
    /// Their number.
    pub(crate) packets: u64,
    /// Bytes in flight after these packets are removed.
    pub(crate) flight: u64,
}

impl LostPackets {
    const fn event(&self) -> PacketsLost {
        let Self { now, sent, order, latest, persistent, packets, .. } = *self;
        PacketsLost { now, sent, order, latest, persistent, packets }
    }
}

impl QuicController {
    /// A controller of packets of at most `datagram` bytes; `draws` has its random numbers.
    pub(crate) fn new(
        cc: CongestionControl,
        profile: &QuicProfile,
        datagram: u32,
        draws: RandomStream,
    ) -> Self {
        match cc {
            CongestionControl::Bbr => Self::Rate(Box::new(RateController::bbr(datagram, draws))),
            CongestionControl::BbrDraft(dialect) => {
                let window = profile.newreno.initial_window(datagram);
                let cc = BbrDraft::new(dialect, draws).counting_bytes(window);
                Self::Rate(Box::new(RateController::draft(datagram, cc)))
            }
            CongestionControl::NewReno => {
                Self::NewReno(QuicNewReno::new(profile.newreno, datagram))
            }
            CongestionControl::Reno => {
                Self::Tcp(Box::new(TcpController::new(LinuxReno::new().into(), datagram)))
            }
            CongestionControl::Cubic(CubicVariant::FreeBsd(params)) => {
                let cubic =
                    FreeBsdCubic::new(params, newreno::NewRenoParams::FREEBSD_MAIN_2025, HZ);
                Self::Tcp(Box::new(TcpController::new(cubic.into(), datagram)))
            }
            CongestionControl::Cubic(CubicVariant::Linux) => {
                Self::Tcp(Box::new(TcpController::new(LinuxCubic::new(HZ).into(), datagram)))
            }
            CongestionControl::Cubic(CubicVariant::Rfc) => match profile.cubic {
                QuicCubicRule::Rfc9438 => {
                    Self::Tcp(Box::new(TcpController::new(RfcCubic::new().into(), datagram)))
                }
                QuicCubicRule::Quinn => {
                    let window = profile.newreno.initial_window(datagram);
                    Self::Cubic(QuicCubic::new(None, datagram, window))
                }
                QuicCubicRule::Packets(params) => {
                    let window = profile.newreno.initial_window(datagram);
                    Self::Cubic(QuicCubic::new(Some(params), datagram, window))
                }
            },
            CongestionControl::External(outside) => {
                Self::Tcp(Box::new(TcpController::new(outside.on_linux(), datagram)))
            }
        }
    }

    /// Initializes a TCP controller when the connection is established.
    pub(crate) fn on_established(&mut self, now: Instant) {
        match self {
            Self::Tcp(tcp) => tcp.establish(now),
            Self::Rate(rate) => rate.establish(now),
            Self::NewReno(_) | Self::Cubic(_) => {}
        }
    }

    /// Processes the transmission of a packet; `in_flight` are the bytes before it.
    pub(crate) fn on_sent(&mut self, now: Instant, size: u64, in_flight: u64) -> DeliveryStamp {
        match self {
            Self::Tcp(tcp) => {
                tcp.sent += size;
                let out = (tcp.sent - tcp.settled) / tcp.datagram;
                tcp.max_packets_out = tcp.max_packets_out.max(out);
            }
            Self::Rate(rate) => return rate.on_sent(now, size, in_flight),
            Self::Cubic(cubic) => cubic.on_sent(size),
            Self::NewReno(_) => {}
        }
        DeliveryStamp::NONE
    }

    /// The application has nothing to send while the window has room for more than `in_flight` bytes.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        if let Self::Rate(rate) = self {
            rate.on_app_limited(in_flight);
        }
    }

    /// Packets that a sender which paces at the controller's rate sends at once; `None` if it sets no rate.
    pub(crate) fn paced_burst(&self) -> Option<u64> {
        match self {
            Self::Rate(rate) => Some(rate.burst()),
            Self::NewReno(_) | Self::Cubic(_) | Self::Tcp(_) => None,
        }
    }

    pub(crate) fn on_acked(&mut self, acked: &AckedPackets<'_>) -> WindowChange {
        match self {
            Self::NewReno(newreno) => {
                let mut flight = acked.flight;
                let mut change = WindowChange::None;
                for packet in acked.packets {
                    let size = u64::from(packet.size);
                    flight = flight.saturating_sub(size);
                    let slow = newreno.in_slow_start();
                    let one = newreno.on_packet_acked(&PacketAcked {
                        sent: packet.at,
                        order: packet.order,
                        size: if slow { size / acked.divisor } else { size },
                        flight_is_empty: flight == 0,
                        underused: acked.underused,
                        prior_flight: acked.prior_flight,
                    });
                    change = if one == WindowChange::None { change } else { one };
                }
                change
            }
            Self::Cubic(cubic) => {
                let mut change = WindowChange::None;
                // `on_ack_received` iterates over the numbers in ascending order.
                for packet in acked.packets.iter().rev() {
                    let size = u64::from(packet.size);
                    let event = PacketAcked {
                        sent: packet.at,
                        order: packet.order,
                        size,
                        flight_is_empty: false,
                        underused: acked.underused,
                        prior_flight: acked.prior_flight,
                    };
                    let ack = CubicAck {
                        smoothed: acked.smoothed,
                        min: acked.min_rtt,
                        flight: acked.flight,
                        divisor: acked.divisor,
                    };
                    let one = cubic.on_packet_acked(acked.now, &event, ack);
                    change = if one == WindowChange::None { change } else { one };
                }
                change
            }
            Self::Tcp(tcp) => tcp.on_acked(acked),
            Self::Rate(rate) => rate.on_acked(acked),
        }
    }

    /// Reports each packet declared lost, before [`QuicController::on_lost`] has all of them.
    pub(crate) fn on_each_lost(&mut self, now: Instant, lost: &[SentQuicPacket]) {
        if let Self::Rate(rate) = self {
            rate.on_each_lost(now, lost);
        }
    }

    /// The ranges of an ACK frame: were all losses of the last recovery spurious?
    pub(crate) fn on_ack_ranges(&mut self, now: Instant, ack: &AckFrame) -> WindowChange {
        match self {
            Self::Rate(rate) => rate.on_ack_ranges(now, ack),
            Self::NewReno(_) | Self::Cubic(_) | Self::Tcp(_) => WindowChange::None,
        }
    }

    /// BBR of the draft, if it is that.
    pub(crate) fn bbr_draft(&self) -> Option<&BbrDraft> {
        match self {
            Self::Rate(rate) => rate.bbr_draft(),
            Self::NewReno(_) | Self::Cubic(_) | Self::Tcp(_) => None,
        }
    }

    pub(crate) fn on_lost(&mut self, lost: &LostPackets, bytes: u64) -> WindowChange {
        match self {
            Self::NewReno(newreno) => newreno.on_packets_lost(&lost.event()),
            Self::Cubic(cubic) => cubic.on_packets_lost(&lost.event(), lost.flight + bytes),
            Self::Tcp(tcp) => tcp.on_lost(lost, bytes),
            Self::Rate(rate) => rate.on_lost(lost, bytes),
        }
    }

    /// A packet with this place in the order of sending that had been declared lost was acknowledged.
    pub(crate) fn on_spurious_loss(&mut self, order: u64) -> WindowChange {
        match self {
            Self::NewReno(newreno) => newreno.on_spurious_loss(order),
            Self::Cubic(cubic) => cubic.on_spurious_loss(),
            Self::Tcp(_) | Self::Rate(_) => WindowChange::None,
        }
    }

    /// Full datagrams have this size from now on. NewReno and CUBIC count in them; of the others only the least window,
    /// two datagrams (RFC 9002 section 7.2), follows.
    pub(crate) fn set_datagram(&mut self, datagram: u32) {
        let least = 2 * u64::from(datagram);
        match self {
            Self::NewReno(newreno) => newreno.set_datagram(datagram),
            Self::Cubic(cubic) => cubic.set_datagram(u64::from(datagram)),
            Self::Tcp(tcp) => tcp.least = least,
            Self::Rate(rate) => rate.set_least(least),
        }
    }

    /// Is this the slow start before the first loss, of a controller whose end a monitor may choose?
    pub(crate) fn in_initial_slow_start(&self) -> bool {
        match self {
            Self::NewReno(newreno) => newreno.control().ssthresh.is_none(),
            Self::Cubic(cubic) => cubic.control().ssthresh.is_none(),
            Self::Tcp(_) | Self::Rate(_) => false,
        }
    }

    /// Ends slow start with the present window; `conservative`: when a conservative slow start before it began.
    pub(crate) const fn leave_slow_start(&mut self, conservative: Option<Instant>) {
        match self {
            Self::NewReno(newreno) => newreno.leave_slow_start(),
            Self::Cubic(cubic) => cubic.leave_slow_start(conservative),
            Self::Tcp(_) | Self::Rate(_) => {}
        }
    }

    /// Bytes that may be sent in a recovery beside the room in the window.
    pub(crate) const fn beside_window(&self) -> u64 {
        match self {
            Self::Cubic(cubic) => cubic.beside_window(),
            Self::NewReno(_) | Self::Tcp(_) | Self::Rate(_) => 0,
        }
    }

    pub(crate) fn take_extra_packet(&mut self) -> bool {
        match self {
            Self::NewReno(newreno) => newreno.take_extra_packet(),
            Self::Cubic(_) | Self::Tcp(_) | Self::Rate(_) => false,
        }
    }

    pub(crate) fn control(&self) -> Control {
        match self {
            Self::NewReno(newreno) => newreno.control(),
            Self::Cubic(cubic) => cubic.control(),
            Self::Tcp(tcp) => tcp.control(),
            Self::Rate(rate) => rate.control(),
        }
    }

    pub(crate) fn in_recovery(&self) -> bool {
        match self {
            Self::NewReno(newreno) => newreno.in_recovery(),
            Self::Cubic(cubic) => cubic.in_recovery(),
            Self::Tcp(tcp) => tcp.in_recovery,
            Self::Rate(rate) => rate.in_recovery(),
        }
    }

    /// The error of a user-defined controller, if it failed.
    pub(crate) fn failure(&self) -> Option<&ControllerError> {
        match self {
            Self::NewReno(_) | Self::Cubic(_) | Self::Rate(_) => None,
            Self::Tcp(tcp) => tcp.cc.failure(),
        }
    }

    /// `partialBytesAcked` of NewReno; 0 for others.
    pub(crate) fn partial(&self) -> Bytes {
        match self {
            Self::NewReno(newreno) => newreno.partial_bytes_acked(),
            Self::Cubic(_) | Self::Tcp(_) | Self::Rate(_) => Bytes::ZERO,
        }
    }
}

/// A TCP congestion controller driven by a QUIC sender.
#[derive(Debug, Clone)]
pub(crate) struct TcpController {
    cc: AnyController,
    datagram: u64,
    /// Total bytes of packets sent, and of packets acknowledged or lost.
    sent: u64,
    settled: u64,
    recovery_start: Option<Instant>,
    in_recovery: bool,
    /// Most packets in flight since the last ACK (`max_packets_out`).
    max_packets_out: u64,
    /// Round-trip samples so far.
    samples: u32,
    /// Least window in bytes.
    least: u64,
}

impl TcpController {
    fn new(cc: AnyController, datagram: u32) -> Self {
        let mut tcp = Self {
            cc,
            datagram: u64::from(datagram),
            sent: 0,
            settled: 0,
            recovery_start: None,
            in_recovery: false,
            max_packets_out: 0,
            samples: 0,
            least: 2 * u64::from(datagram),
        };
        // For the packets of the handshake.
        tcp.establish(Instant::ZERO);
        tcp
    }

    fn establish(&mut self, now: Instant) {
        let datagram = self.datagram as u32;
        let _ = self.cc.on_established(&ConnectionStart {
            now,
            ticks: ticks(now),
            created_ticks: ticks(now),
            una: Offset(self.settled),
            mss: datagram,
            maxseg: datagram,
            snd_scale: 14,
            syn_retransmitted: false,
            rtt: None,
            ssthresh: None,
        });
    }

    /// The window of the controller, which counts in the datagrams of the start, and at least two of the present ones.
    fn control(&self) -> Control {
        let control = self.cc.control();
        Control { window: control.window.max(Bytes(self.least)), ..control }
    }

    fn belongs_to_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }

    fn on_acked(&mut self, acked: &AckedPackets<'_>) -> WindowChange {
        self.samples += u32::from(acked.rtt.is_some());
        let all: u64 = acked.packets.iter().map(|packet| u64::from(packet.size)).sum();
        self.settled += all;
        let counted = acked.packets.iter().filter(|packet| !self.belongs_to_recovery(packet.at));
        let (packets, bytes) =
            counted.fold((0, 0), |(n, sum), packet| (n + 1, sum + u64::from(packet.size)));
        if packets == 0 {
            return WindowChange::None;
        }
        let una = Offset(self.settled);
        let mut change = WindowChange::None;
        if core::mem::take(&mut self.in_recovery) {
            let pipe = acked.flight.saturating_sub(all);
            change = self.cc.on_recovered(&RecoveryEnd { th_ack: una, pipe });
        }
        if acked.underused {
            return change;
        }
        let grown = self.cc.on_acked(&AckEvent {
            now: acked.now,
            ticks: ticks(acked.now),
            rtt: acked.rtt,
            srtt: SmoothedRtt {
                ticks: ticks(Instant::ZERO + acked.smoothed) as u32,
                micros: u32::try_from(acked.smoothed.as_micros()).unwrap_or(u32::MAX),
                samples: self.samples,
            },
            snd_nxt: Offset(self.sent),
            una,
            bytes,
            packets,
            nsegs: 1,
            ends_recovery: false,
            retransmitting: false,
            snd_wnd: u64::MAX,
            window_limited: true,
            max_packets_out: u32::try_from(self.max_packets_out).unwrap_or(u32::MAX),
        });
        self.max_packets_out = (self.sent - self.settled) / self.datagram;
        if grown == WindowChange::None { change } else { grown }
    }

    fn on_lost(&mut self, lost: &LostPackets, bytes: u64) -> WindowChange {
        self.settled += bytes;
        let congested = |signal| CongestionEvent {
            signal,
            now: lost.now,
            ticks: ticks(lost.now),
            th_ack: Offset(self.settled),
            snd_max: Offset(self.sent),
            pipe: lost.flight,
            snd_wnd: u64::MAX,
            lost: 0,
        };
        let mut change = WindowChange::None;
        if !self.belongs_to_recovery(lost.sent) {
            change = self.cc.on_congested(&congested(CongestionSignal::Loss));
            self.recovery_start = Some(lost.now);
            self.in_recovery = true;
            let control = self.cc.control();
            let kept = control.ssthresh.unwrap_or(control.window).min(control.window);
            self.cc.set_window(kept.max(Bytes(2 * self.datagram)));
        }
        if lost.persistent {
            change = self.cc.on_congested(&congested(CongestionSignal::Timeout { shift: 1 }));
            self.cc.set_window(Bytes(2 * self.datagram));
            self.recovery_start = None;
            self.in_recovery = false;
        }
        change
    }
}
