//! The congestion controllers of a QUIC sender: its own NewReno, packet by packet, and those of
//! TCP stacks, driven by the same packets.
//!
//! A TCP controller speaks of places in a stream. Here the stream is what was ever acknowledged,
//! in bytes of packets: an acknowledged packet moves `snd_una` on by its size. Recovery is judged
//! as RFC 9002 section 7.3.2 says, by when packets left, and the window is cut at once.

use cc::contract::{Acked, Congested, Established, Recovered, Signal, Smoothed};
use cc::cubic::{FreeBsdCubic, LinuxCubic, RfcCubic, Variant};
use cc::outside::Gone;
use cc::quic_newreno::{PacketAcked, PacketsLost};
use cc::{AnyController, Change, Control, Controller as _, LinuxReno, QuicNewReno, newreno};
use units::{Bytes, Duration, Instant, Offset};

use crate::congestion_control::CongestionControl;
use crate::profile::Profile;
use crate::sent::Sent;

/// Ticks a second of the clock that TCP's controllers are told of: that of most kernels.
const HZ: u32 = 1_000;

const fn ticks(now: Instant) -> u64 {
    now.as_nanos() / (1_000_000_000 / HZ as u64)
}

/// A congestion controller of a QUIC sender.
#[derive(Debug, Clone)]
pub(crate) enum Controller {
    NewReno(QuicNewReno),
    Tcp(Box<Tcp>),
}

/// Packets that one ACK frame acknowledges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckedPackets<'a> {
    pub(crate) now: Instant,
    /// Ack-eliciting ones, the largest number first.
    pub(crate) packets: &'a [Sent],
    /// Bytes in flight, they included.
    pub(crate) flight: u64,
    /// Not the window holds the sender back.
    pub(crate) underused: bool,
    /// The round trip that the frame brought.
    pub(crate) rtt: Option<Duration>,
    /// The smoothed one.
    pub(crate) smoothed: Duration,
}

/// Packets found lost at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LostPackets {
    pub(crate) now: Instant,
    /// When the one with the largest number left.
    pub(crate) sent: Instant,
    pub(crate) persistent: bool,
    /// Bytes in flight without them.
    pub(crate) flight: u64,
}

impl Controller {
    pub(crate) fn new(cc: CongestionControl, profile: &Profile, datagram: u32) -> Self {
        match cc {
            CongestionControl::NewReno => {
                Self::NewReno(QuicNewReno::new(profile.newreno, datagram))
            }
            CongestionControl::Reno => {
                Self::Tcp(Box::new(Tcp::new(LinuxReno::new().into(), datagram)))
            }
            CongestionControl::Cubic(Variant::FreeBsd(params)) => {
                let cubic = FreeBsdCubic::new(params, newreno::Params::FREEBSD_MAIN_2025, HZ);
                Self::Tcp(Box::new(Tcp::new(cubic.into(), datagram)))
            }
            CongestionControl::Cubic(Variant::Linux) => {
                Self::Tcp(Box::new(Tcp::new(LinuxCubic::new(HZ).into(), datagram)))
            }
            CongestionControl::Cubic(Variant::Rfc) => {
                Self::Tcp(Box::new(Tcp::new(RfcCubic::new().into(), datagram)))
            }
            CongestionControl::External(outside) => {
                Self::Tcp(Box::new(Tcp::new(outside.on_linux(), datagram)))
            }
        }
    }

    /// The connection is established. A controller of TCP begins now.
    pub(crate) fn on_established(&mut self, now: Instant) {
        if let Self::Tcp(tcp) = self {
            tcp.establish(now);
        }
    }

    pub(crate) fn on_sent(&mut self, size: u64) {
        if let Self::Tcp(tcp) = self {
            tcp.sent += size;
            tcp.most_packets = tcp.most_packets.max((tcp.sent - tcp.settled) / tcp.datagram);
        }
    }

    pub(crate) fn on_acked(&mut self, acked: &AckedPackets<'_>) -> Change {
        match self {
            Self::NewReno(newreno) => {
                let mut flight = acked.flight;
                let mut change = Change::None;
                for packet in acked.packets {
                    let size = u64::from(packet.size);
                    flight = flight.saturating_sub(size);
                    let one = newreno.on_packet_acked(&PacketAcked {
                        sent: packet.at,
                        size,
                        flight_is_empty: flight == 0,
                        underused: acked.underused,
                    });
                    change = if one == Change::None { change } else { one };
                }
                change
            }
            Self::Tcp(tcp) => tcp.on_acked(acked),
        }
    }

    pub(crate) fn on_lost(&mut self, lost: &LostPackets, bytes: u64) -> Change {
        match self {
            Self::NewReno(newreno) => {
                let LostPackets { now, sent, persistent, .. } = *lost;
                newreno.on_packets_lost(&PacketsLost { now, sent, persistent })
            }
            Self::Tcp(tcp) => tcp.on_lost(lost, bytes),
        }
    }

    pub(crate) fn take_extra_packet(&mut self) -> bool {
        match self {
            Self::NewReno(newreno) => newreno.take_extra_packet(),
            Self::Tcp(_) => false,
        }
    }

    pub(crate) fn control(&self) -> Control {
        match self {
            Self::NewReno(newreno) => newreno.control(),
            Self::Tcp(tcp) => tcp.cc.control(),
        }
    }

    pub(crate) fn in_recovery(&self) -> bool {
        match self {
            Self::NewReno(newreno) => newreno.in_recovery(),
            Self::Tcp(tcp) => tcp.in_recovery,
        }
    }

    /// What a user-defined controller failed with, if it did.
    pub(crate) fn failure(&self) -> Option<&Gone> {
        match self {
            Self::NewReno(_) => None,
            Self::Tcp(tcp) => tcp.cc.failure(),
        }
    }

    /// `partialBytesAcked` of NewReno; 0 for others.
    pub(crate) fn partial(&self) -> Bytes {
        match self {
            Self::NewReno(newreno) => newreno.partial_bytes_acked(),
            Self::Tcp(_) => Bytes::ZERO,
        }
    }
}

/// A controller of a TCP stack under a QUIC sender.
#[derive(Debug, Clone)]
pub(crate) struct Tcp {
    cc: AnyController,
    datagram: u64,
    /// Bytes of packets ever sent, and of those acknowledged or lost.
    sent: u64,
    settled: u64,
    recovery_start: Option<Instant>,
    in_recovery: bool,
    /// Largest flight of late, in packets.
    most_packets: u64,
    /// Round-trip samples so far.
    samples: u32,
}

impl Tcp {
    fn new(cc: AnyController, datagram: u32) -> Self {
        let mut tcp = Self {
            cc,
            datagram: u64::from(datagram),
            sent: 0,
            settled: 0,
            recovery_start: None,
            in_recovery: false,
            most_packets: 0,
            samples: 0,
        };
        // For the packets of the handshake.
        tcp.establish(Instant::ZERO);
        tcp
    }

    fn establish(&mut self, now: Instant) {
        let datagram = self.datagram as u32;
        let _ = self.cc.on_established(&Established {
            now,
            ticks: ticks(now),
            una: Offset(self.settled),
            mss: datagram,
            maxseg: datagram,
            snd_scale: 14,
            syn_retransmitted: false,
            rtt: None,
            ssthresh: None,
        });
    }

    fn belongs_to_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }

    fn on_acked(&mut self, acked: &AckedPackets<'_>) -> Change {
        self.samples += u32::from(acked.rtt.is_some());
        let all: u64 = acked.packets.iter().map(|packet| u64::from(packet.size)).sum();
        self.settled += all;
        let counted = acked.packets.iter().filter(|packet| !self.belongs_to_recovery(packet.at));
        let (packets, bytes) =
            counted.fold((0, 0), |(n, sum), packet| (n + 1, sum + u64::from(packet.size)));
        if packets == 0 {
            return Change::None;
        }
        let una = Offset(self.settled);
        let mut change = Change::None;
        if core::mem::take(&mut self.in_recovery) {
            let pipe = acked.flight.saturating_sub(all);
            change = self.cc.on_recovered(&Recovered { th_ack: una, pipe });
        }
        if acked.underused {
            return change;
        }
        let grown = self.cc.on_acked(&Acked {
            now: acked.now,
            ticks: ticks(acked.now),
            rtt: acked.rtt,
            srtt: Smoothed {
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
            resending: false,
            snd_wnd: u64::MAX,
            window_limited: true,
            max_packets_out: u32::try_from(self.most_packets).unwrap_or(u32::MAX),
        });
        self.most_packets = (self.sent - self.settled) / self.datagram;
        if grown == Change::None { change } else { grown }
    }

    fn on_lost(&mut self, lost: &LostPackets, bytes: u64) -> Change {
        self.settled += bytes;
        let congested = |signal| Congested {
            signal,
            now: lost.now,
            ticks: ticks(lost.now),
            th_ack: Offset(self.settled),
            snd_max: Offset(self.sent),
            pipe: lost.flight,
            snd_wnd: u64::MAX,
        };
        let mut change = Change::None;
        if !self.belongs_to_recovery(lost.sent) {
            change = self.cc.on_congested(&congested(Signal::Loss));
            self.recovery_start = Some(lost.now);
            self.in_recovery = true;
            let control = self.cc.control();
            let kept = control.ssthresh.unwrap_or(control.window).min(control.window);
            self.cc.set_window(kept.max(Bytes(2 * self.datagram)));
        }
        if lost.persistent {
            change = self.cc.on_congested(&congested(Signal::Timeout { shift: 1 }));
            self.cc.set_window(Bytes(2 * self.datagram));
            self.recovery_start = None;
            self.in_recovery = false;
        }
        change
    }
}
