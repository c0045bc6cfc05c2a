//! BBR of a QUIC sender: the controller of [`cc::Bbr`], with delivery rates of QUIC's packets
//! (draft-cheng-iccrg-delivery-rate-estimation-00).
//!
//! As in QUIC each packet has a number of its own, a sample needs no scoreboard. A recovery starts with a packet lost
//! that was sent after the last one began, and ends with the acknowledgment of a packet sent after its start (RFC 9002
//! section 7.3.2). Persistent congestion is BBR's timeout. The draft of BBR (draft-cardwell-iccrg-bbr-congestion-control-00)
//! saves the window in a recovery and restores it; no other reduction follows a loss.

use cc::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, DeliveryRate, RateSample,
    RecoveryEnd, SmoothedRtt,
};
use cc::{AnyController, Bbr, Control, Controller as _, WindowChange};
use units::{Bytes, Duration, Instant, Offset, RandomStream};

use crate::controller::{AckedPackets, HZ, LostPackets, ticks};

/// State of the deliveries when a packet was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliveryStamp {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    app_limited: bool,
}

impl DeliveryStamp {
    /// That of a packet whose delivery is not measured.
    pub(crate) const NONE: Self = Self {
        delivered: 0,
        delivered_at: Instant::ZERO,
        first_sent: Instant::ZERO,
        app_limited: false,
    };
}

/// A rate-based controller with its estimate of the delivery rate.
#[derive(Debug, Clone)]
pub(crate) struct RateController {
    cc: AnyController,
    datagram: u64,
    /// Bytes sent, and acknowledged or lost: offsets for the controller.
    sent: u64,
    settled: u64,
    /// Packets delivered, one at the start, and lost in total.
    delivered: u64,
    lost: u64,
    /// Packets lost since the last sample.
    losses: u64,
    delivered_at: Instant,
    /// When the packet that was delivered last was sent.
    first_sent: Instant,
    /// The samples are limited by the application until this number of packets is delivered.
    app_limited: Option<u64>,
    recovery_start: Option<Instant>,
    in_recovery: bool,
    samples: u32,
    /// Least window in bytes.
    least: u64,
}

impl RateController {
    /// BBR, which draws its phases from `draws`.
    pub(crate) fn bbr(datagram: u32, draws: RandomStream) -> Self {
        let mut controller = Self {
            cc: Bbr::new(HZ, draws).into(),
            datagram: u64::from(datagram),
            sent: 0,
            settled: 0,
            delivered: 1,
            lost: 0,
            losses: 0,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            app_limited: None,
            recovery_start: None,
            in_recovery: false,
            samples: 0,
            least: 2 * u64::from(datagram),
        };
        // For the packets of the handshake.
        controller.establish(Instant::ZERO);
        controller
    }

    /// Starts the controller.
    pub(crate) fn establish(&mut self, now: Instant) {
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

    /// Sets the least window.
    pub(crate) const fn set_least(&mut self, least: u64) {
        self.least = least;
    }

    /// Processes the transmission of a packet; `in_flight` are the bytes before it.
    pub(crate) fn on_sent(&mut self, now: Instant, size: u64, in_flight: u64) -> DeliveryStamp {
        self.sent += size;
        if in_flight == 0 {
            self.cc.on_restart(now, ticks(now), self.app_limited.is_some());
            (self.first_sent, self.delivered_at) = (now, now);
        }
        DeliveryStamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited.is_some(),
        }
    }

    /// The application has nothing to send while the window has room.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited = Some(self.delivered + in_flight / self.datagram);
    }

    /// Processes acknowledged packets.
    pub(crate) fn on_acked(&mut self, acked: &AckedPackets<'_>) -> WindowChange {
        self.samples += u32::from(acked.rtt.is_some());
        let all: u64 = acked.packets.iter().map(|packet| u64::from(packet.size)).sum();
        self.settled += all;
        let after = acked.flight.saturating_sub(all);
        let outside = |sent: Instant| self.recovery_start.is_none_or(|start| sent > start);
        let mut change = WindowChange::None;
        if self.in_recovery && acked.packets.iter().any(|packet| outside(packet.at)) {
            self.in_recovery = false;
            let recovered = RecoveryEnd { th_ack: Offset(self.settled), pipe: after };
            change = self.cc.on_recovered(&recovered);
        }
        let _ = self.cc.on_acked(&self.ack_event(acked, all));
        let sample = self.sample(acked, after);
        let sampled = self.cc.on_rate_sample(&sample);
        self.losses = 0;
        if sampled == WindowChange::None { change } else { sampled }
    }

    /// The acknowledgment as TCP's controllers see it.
    fn ack_event(&self, acked: &AckedPackets<'_>, bytes: u64) -> AckEvent {
        AckEvent {
            now: acked.now,
            ticks: ticks(acked.now),
            rtt: acked.rtt,
            srtt: SmoothedRtt {
                ticks: ticks(Instant::ZERO + acked.smoothed) as u32,
                micros: micros(acked.smoothed),
                samples: self.samples,
            },
            snd_nxt: Offset(self.sent),
            una: Offset(self.settled),
            bytes,
            packets: acked.packets.len() as u32,
            nsegs: 1,
            ends_recovery: false,
            retransmitting: false,
            snd_wnd: u64::MAX,
            window_limited: true,
            max_packets_out: u32::MAX,
        }
    }

    /// Updates the estimate; section 3.3 of the draft of the delivery rate.
    fn sample(&mut self, acked: &AckedPackets<'_>, after: u64) -> RateSample {
        let packets = acked.packets.len() as u64;
        self.delivered += packets;
        self.app_limited = self.app_limited.filter(|until| self.delivered <= *until);
        // The largest number is the one sent last.
        let rate = acked.packets.first().and_then(|newest| {
            let stamp = newest.delivery;
            let sent = newest.at.since(stamp.first_sent.min(newest.at));
            let received = acked.now.since(stamp.delivered_at.min(acked.now));
            self.first_sent = newest.at;
            let interval = sent.max(received);
            (interval >= acked.min_rtt && !interval.is_zero()).then_some(DeliveryRate {
                delivered: (self.delivered - stamp.delivered) as u32,
                interval_us: micros(interval).max(1),
                prior_delivered: stamp.delivered,
                app_limited: stamp.app_limited,
            })
        });
        self.delivered_at = acked.now;
        RateSample {
            ticks: ticks(acked.now),
            rate,
            acked: packets as u32,
            losses: self.losses as u32,
            delivered: self.delivered,
            lost: self.lost,
            delivered_at: self.delivered_at,
            rtt_us: acked.rtt.map(micros),
            ack_delayed: false,
            srtt_us: if self.samples > 0 { micros(acked.smoothed) } else { 0 },
            prior_in_flight: (acked.flight / self.datagram) as u32,
            in_flight: (after / self.datagram) as u32,
            until_next_departure: Duration::ZERO,
            signals: cc::PathSignals::NONE,
        }
    }

    /// Processes packets declared lost, of that many bytes and number.
    pub(crate) fn on_lost(&mut self, lost: &LostPackets, bytes: u64) -> WindowChange {
        self.settled += bytes;
        let packets = bytes.div_ceil(self.datagram);
        self.lost += packets;
        self.losses += packets;
        let event = |signal| CongestionEvent {
            signal,
            now: lost.now,
            ticks: ticks(lost.now),
            th_ack: Offset(self.settled),
            snd_max: Offset(self.sent),
            pipe: lost.flight,
            snd_wnd: u64::MAX,
            lost: self.lost,
        };
        if lost.persistent {
            let change = self.cc.on_congested(&event(CongestionSignal::Timeout { shift: 1 }));
            self.recovery_start = None;
            self.in_recovery = false;
            return change;
        }
        if self.recovery_start.is_some_and(|start| lost.sent <= start) {
            return WindowChange::None;
        }
        let change = self.cc.on_congested(&event(CongestionSignal::Loss));
        self.recovery_start = Some(lost.now);
        self.in_recovery = true;
        change
    }

    /// The window is at least two datagrams (RFC 9002 section 7.2). Linux's BBR falls to one packet in a
    /// recovery, with which a sender that keeps its flight below the window sends nothing.
    pub(crate) fn control(&self) -> Control {
        let control = self.cc.control();
        Control { window: control.window.max(Bytes(self.least)), ..control }
    }

    /// Packets that may be sent at once (`bbr_min_tso_segs`).
    pub(crate) fn burst(&self) -> u64 {
        u64::from(self.cc.rate_based().map_or(1, |cc| cc.min_burst()))
    }

    pub(crate) const fn in_recovery(&self) -> bool {
        self.in_recovery
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}
