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
use cc::{
    AnyController, Bbr, BbrDraft, Control, Controller as _, LostSegment, PathSignals, RateBased,
    TxSample, WindowChange,
};
use units::{Bytes, Duration, Instant, Offset, RandomStream};

use crate::controller::{AckedPackets, HZ, LostPackets, ticks};
use crate::packet::AckFrame;
use crate::sent::SentQuicPacket;

/// State of the deliveries when a packet was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliveryStamp {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    app_limited: bool,
    /// In flight, the packet included, and lost in total.
    in_flight: u64,
    lost: u64,
}

impl DeliveryStamp {
    /// That of a packet whose delivery is not measured.
    pub(crate) const NONE: Self = Self {
        delivered: 0,
        delivered_at: Instant::ZERO,
        first_sent: Instant::ZERO,
        app_limited: false,
        in_flight: 0,
        lost: 0,
    };
}

/// A rate-based controller with its estimate of the delivery rate.
#[derive(Debug, Clone)]
pub(crate) struct RateController {
    cc: AnyController,
    datagram: u64,
    /// What deliveries and losses count in: the bytes of a datagram, or 1 for a controller that counts bytes.
    unit: u64,
    /// Bytes sent, and acknowledged or lost: offsets for the controller.
    sent: u64,
    settled: u64,
    /// Units delivered, one at the start, and lost in total.
    delivered: u64,
    lost: u64,
    /// Units lost since the last sample.
    losses: u64,
    delivered_at: Instant,
    /// When the packet that was delivered last was sent.
    first_sent: Instant,
    /// The samples are limited by the application until this number of units is delivered.
    app_limited: Option<u64>,
    /// The window limits the flight until this number of units is delivered.
    window_limited: u64,
    /// Packets declared lost in the last recovery and not acknowledged since.
    lost_numbers: Vec<u64>,
    recovery_start: Option<Instant>,
    in_recovery: bool,
    samples: u32,
    /// Least window in bytes.
    least: u64,
}

impl RateController {
    /// BBR, which draws its phases from `draws`.
    pub(crate) fn bbr(datagram: u32, draws: RandomStream) -> Self {
        Self::new(datagram, u64::from(datagram), Bbr::new(HZ, draws).into())
    }

    /// BBR of the draft, which counts bytes.
    pub(crate) fn draft(datagram: u32, cc: BbrDraft) -> Self {
        Self::new(datagram, 1, cc.into())
    }

    fn new(datagram: u32, unit: u64, cc: AnyController) -> Self {
        let mut controller = Self {
            cc,
            datagram: u64::from(datagram),
            unit,
            window_limited: 0,
            lost_numbers: Vec::new(),
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
        let out = in_flight + size;
        if out + self.datagram > self.cc.control().window.get() {
            self.window_limited = self.delivered + out / self.unit;
        }
        DeliveryStamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited.is_some(),
            in_flight: out,
            lost: self.lost,
        }
    }

    /// The application has nothing to send while the window has room.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited = Some(self.delivered + in_flight / self.unit);
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
        if self.uses_tx_state() && self.cc.rate_based().is_some_and(|cc| cc.sends_little()) {
            self.on_app_limited(after);
        }
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
        let newly = match self.unit {
            1 => acked.packets.iter().map(|packet| u64::from(packet.size)).sum(),
            _ => acked.packets.len() as u64,
        };
        self.delivered += newly;
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
            acked: newly as u32,
            losses: self.losses as u32,
            delivered: self.delivered,
            lost: self.lost,
            delivered_at: self.delivered_at,
            delivered_clock: self.delivered_at.as_nanos(),
            rtt_us: acked.rtt.map(micros),
            ack_delayed: false,
            srtt_us: if self.samples > 0 { micros(acked.smoothed) } else { 0 },
            prior_in_flight: (acked.flight / self.unit) as u32,
            in_flight: (after / self.unit) as u32,
            until_next_departure: Duration::ZERO,
            signals: self.signals(acked),
        }
    }

    /// Does the controller bound its flight by losses?
    fn uses_tx_state(&self) -> bool {
        self.cc.rate_based().is_some_and(|cc| cc.needs_tx_state())
    }

    /// What the newest acknowledged packet says of losses.
    fn signals(&self, acked: &AckedPackets<'_>) -> PathSignals {
        let Some(newest) = acked.packets.first().filter(|_| self.uses_tx_state()) else {
            return PathSignals::NONE;
        };
        let stamp = newest.delivery;
        PathSignals {
            now: acked.now,
            tx: TxSample {
                in_flight: (stamp.in_flight / self.unit) as u32,
                lost: (self.lost - stamp.lost) as u32,
                delivered: (self.delivered - stamp.delivered) as u32,
                delivered_ce: 0,
                app_limited: stamp.app_limited,
            },
            window_limited: self.delivered <= self.window_limited,
            ..PathSignals::NONE
        }
    }

    /// Reports each packet declared lost to a controller that bounds its flight by losses.
    pub(crate) fn on_each_lost(&mut self, now: Instant, lost: &[SentQuicPacket]) {
        if !self.uses_tx_state() {
            return;
        }
        let newest = lost.iter().map(|packet| packet.at).max();
        if newest.is_some_and(|sent| self.recovery_start.is_none_or(|start| sent > start)) {
            self.lost_numbers.clear();
        }
        for packet in lost.iter().filter(|packet| packet.ack_eliciting) {
            let units = if self.unit == 1 { u64::from(packet.size) } else { 1 };
            self.lost += units;
            self.losses += units;
            self.lost_numbers.push(packet.number);
            let stamp = packet.delivery;
            self.cc.on_segment_lost(&LostSegment {
                now,
                packets: units as u32,
                in_flight: (stamp.in_flight / self.unit) as u32,
                lost_since: (self.lost - stamp.lost) as u32,
                app_limited: stamp.app_limited,
                sacked_before: false,
                delivered: self.delivered,
            });
        }
    }

    /// A recovery was spurious once every packet declared lost in it has been acknowledged.
    pub(crate) fn on_ack_ranges(&mut self, now: Instant, ack: &AckFrame) -> WindowChange {
        if self.lost_numbers.is_empty() {
            return WindowChange::None;
        }
        let is_acked =
            |number: u64| ack.ranges.iter().any(|&(low, high)| (low..=high).contains(&number));
        self.lost_numbers.retain(|&number| !is_acked(number));
        if !self.lost_numbers.is_empty() {
            return WindowChange::None;
        }
        self.in_recovery = false;
        self.cc.on_congested(&CongestionEvent {
            signal: CongestionSignal::SpuriousRecovery,
            now,
            ticks: ticks(now),
            th_ack: Offset(self.settled),
            snd_max: Offset(self.sent),
            pipe: 0,
            snd_wnd: u64::MAX,
            lost: self.lost,
        })
    }

    /// BBR of the draft, if it is that.
    pub(crate) fn bbr_draft(&self) -> Option<&BbrDraft> {
        self.cc.bbr_draft()
    }

    /// Replaces what BBR of the draft drew for its current cycle.
    pub(crate) fn redraw(&mut self, rounds: u64, wait: Duration) {
        self.cc.redraw_draft(rounds, wait);
    }

    /// Processes packets declared lost, of that many bytes and number.
    pub(crate) fn on_lost(&mut self, lost: &LostPackets, bytes: u64) -> WindowChange {
        self.settled += bytes;
        // A controller that bounds its flight by losses has had each of them.
        if !self.uses_tx_state() {
            let packets = bytes.div_ceil(self.datagram);
            self.lost += packets;
            self.losses += packets;
        }
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

    /// Packets that may be sent at once (`bbr_min_tso_segs`, `C.send_quantum` of the draft).
    pub(crate) fn burst(&self) -> u64 {
        let burst = |cc: RateBased<'_>| cc.burst(u64::MAX).unwrap_or(cc.min_burst());
        u64::from(self.cc.rate_based().map_or(1, burst))
    }

    pub(crate) const fn in_recovery(&self) -> bool {
        self.in_recovery
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}
