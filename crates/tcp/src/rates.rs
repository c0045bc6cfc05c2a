//! What a controller that sets window and rate itself (`cong_control`: BBR) needs of Linux's stack:
//! delivery rates, and pacing.
//!
//! Sources: Linux 6.18, tcp_rate.c; tcp_input.c (tcp_ack: in what order an acknowledgment is worked
//! off); tcp_output.c (tcp_update_skb_after_send, tcp_pacing_check, tcp_pace_kick: TCP's own pacing,
//! as where no `fq` paces). Other controllers keep none of this: their connections have no [`Rates`].
//!
//! Without SACK duplicates count as deliveries (tcp_add_reno_sack, tcp_remove_reno_sacks), but not as
//! packets that are no longer under way; what is sent again is then RFC 6582's matter, as with
//! Linux's other controllers here.

use cc::{Controller, DeliveryRate, RateSample};
use machine::Cx;
use record::{Cause, Purpose, Recorder};
use recovery::RttEstimator;
use recovery::delivery_rate::DeliveryRates;
use units::{Bytes, Duration, Instant, Offset};

use crate::endpoint::Endpoint;
use crate::loss::Repair;

/// Packets that leave before any is held back (tcp_update_skb_after_send).
const UNPACED: u64 = 10;

/// Rates and pacing of one connection.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Rates {
    pub(crate) delivery: DeliveryRates,
    /// When the next packet may leave (`tp->tcp_wstamp_ns`).
    next_departure: Instant,
    /// Packets under way, and ever lost, before the acknowledgment at hand.
    in_flight_before: u64,
    lost_before: u64,
    /// The round trip of the newest packet sent once that it delivered.
    rtt: Option<Duration>,
    /// A timeout found that the receiver drops what it reported (`tp->is_sack_reneg`).
    pub(crate) reneged: bool,
}

/// What an acknowledgment delivered.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delivery {
    /// Packets acknowledged or reported, each once.
    pub(crate) packets: u64,
    /// Bytes of those acknowledged, if it reports nothing.
    pub(crate) bare_bytes: u64,
}

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Endpoint {
    /// The handshake is over: rates are kept if the controller wants them.
    pub(crate) fn keep_rates(&mut self, now: Instant) {
        self.snd.rates = self.cc.is_whole().then(|| {
            Box::new(Rates {
                delivery: DeliveryRates::new(now, Offset(1)),
                next_departure: now,
                in_flight_before: 0,
                lost_before: 0,
                rtt: None,
                reneged: false,
            })
        });
    }

    /// Does the controller set window and rate itself?
    #[inline]
    pub(crate) const fn is_whole(&self) -> bool {
        self.snd.rates.is_some()
    }

    /// Overrules the window, unless that is the controller's alone.
    pub(crate) fn overrule_window(&mut self, window: Bytes) {
        if !self.is_whole() {
            self.cc.set_window(window);
        }
    }

    /// `sk_pacing_rate` in bytes per second; 0 while unknown.
    pub(crate) fn pacing_rate(&self) -> u64 {
        if !self.is_whole() {
            return self.snd.pacing.rate();
        }
        self.cc.control().pacing.map_or(0, |rate| rate.bits_per_second() / 8)
    }

    /// The application writes: does it hold the sender back (tcp_rate_check_app_limited)?
    pub(crate) fn ask_application(&mut self) {
        let in_flight = self.packets_in_flight();
        let (unsent, mss) = (self.data_end().since(self.snd.nxt).get(), self.mss());
        let limits = unsent < mss
            && in_flight < self.cwnd() / mss
            && self.snd.map.sums().lost.packets <= self.snd.map.sums().resent.packets;
        if let Some(rates) = self.snd.rates.as_mut().filter(|_| limits) {
            rates.delivery.limit_by_application(in_flight);
        }
    }

    /// Data leaves while nothing is under way. The window may widen: a pause is as good as the lull of
    /// PROBE_RTT (bbr_cwnd_event).
    pub(crate) fn restart_rates<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let Some(rates) = &self.snd.rates else { return };
        let before = self.cwnd();
        self.cc.on_restart(cx.now, self.clock.tick(cx.now), rates.delivery.app_limited());
        if self.cwnd() != before {
            self.emit_window(cx, Cause::Idle);
        }
    }

    /// `[start, end)` left, `again` or for the first time: it is noted, and the next one has to wait
    /// (tcp_rate_skb_sent, tcp_update_skb_after_send).
    pub(crate) fn rates_sent(&mut self, now: Instant, start: Offset, end: Offset, again: bool) {
        let rate = self.pacing_rate();
        let paces = rate > 0 && self.totals.data_packets >= UNPACED;
        let Some(rates) = &mut self.snd.rates else { return };
        if again {
            rates.delivery.on_resent(start, end, now);
        }
        rates.delivery.on_sent(&self.snd.map);
        let prior = rates.next_departure;
        rates.next_departure = prior.max(now);
        if paces {
            let nanos = u128::from(end - start) * 1_000_000_000 / u128::from(rate);
            let span = u64::try_from(nanos).unwrap_or(u64::MAX);
            // What the one before left late is made up for.
            let credit = rates.next_departure.since(prior).as_nanos();
            rates.next_departure += Duration::from_nanos(span - credit.min(span / 2));
        }
    }

    /// Is what wants to leave held back? Then a timer lets it go (tcp_pacing_check).
    #[inline(never)]
    pub(crate) fn holds_back(&mut self, now: Instant) -> bool {
        let wants = self.data_end() > self.snd.nxt || self.snd.map.sums().lost.packets > 0;
        let Some(rates) = &self.snd.rates else { return false };
        let held = wants && rates.next_departure > now;
        if held {
            self.timers.set(Purpose::Pacing, rates.next_departure);
        }
        held
    }

    /// An acknowledgment begins to be worked off.
    pub(crate) fn begin_rate_sample(&mut self) {
        let (in_flight, lost) = (self.packets_in_flight(), self.snd.map.lost_ever());
        if let Some(rates) = &mut self.snd.rates {
            (rates.in_flight_before, rates.lost_before, rates.rtt) = (in_flight, lost, None);
        }
    }

    /// The round trip of the newest packet sent once that it delivered.
    pub(crate) fn rate_sample_rtt(&mut self, rtt: Duration) {
        if let Some(rates) = &mut self.snd.rates {
            rates.rtt = Some(rtt);
        }
    }

    /// It is worked off, `snd_una` has moved: the controller is told (tcp_rate_gen,
    /// tcp_cong_control).
    pub(crate) fn end_rate_sample<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, of: &Delivery) {
        let in_flight = self.packets_in_flight();
        let lost = self.snd.map.lost_ever();
        let srtt_us = match &self.rtt {
            RttEstimator::Linux(rtt) => rtt.srtt_us() >> 3,
            other => other.srtt().map_or(0, |srtt| narrow(srtt.as_micros())),
        };
        let (ticks, min_rtt, una) = (self.clock.tick(cx.now), self.totals.min_rtt, self.snd.una);
        let mss = self.mss();
        let Some(rates) = &mut self.snd.rates else { return };
        let rate = rates.delivery.generate(cx.now, of.packets, min_rtt, rates.reneged);
        rates.delivery.acknowledge(una);
        // A lone packet, not a whole one, and nothing else since it left.
        let alone = of.packets == 1 && (1..mss).contains(&of.bare_bytes);
        let sample = RateSample {
            ticks,
            ack_delayed: alone && rate.is_some_and(|rate| rate.delivered == 1),
            rate: rate.map(|rate| DeliveryRate {
                delivered: narrow(rate.delivered),
                interval_us: narrow(rate.interval_us),
                prior_delivered: rate.prior_delivered,
                app_limited: rate.app_limited,
            }),
            acked: narrow(of.packets),
            losses: narrow(lost - rates.lost_before),
            delivered: rates.delivery.delivered(),
            lost,
            delivered_at: rates.delivery.delivered_at(),
            rtt_us: rates.rtt.map(|rtt| narrow(rtt.as_micros())),
            srtt_us,
            prior_in_flight: narrow(rates.in_flight_before),
            in_flight: narrow(in_flight),
            until_next_departure: rates.next_departure.max(cx.now).since(cx.now),
            app_limited_now: rates.delivery.app_limited(),
        };
        let change = self.cc.on_rate_sample(&sample);
        let recovers = self.cc.in_recovery();
        self.note(cx, change, if recovers { Cause::Recovering } else { Cause::Avoidance });
    }

    /// Duplicates that stand for packets delivered where SACK was not agreed, if the controller
    /// counts deliveries.
    pub(crate) fn duplicates_delivered(&self) -> u64 {
        let counted = self.is_whole() && matches!(self.snd.repair, Repair::Duplicates);
        let most = self.snd.map.sums().all.packets.saturating_sub(1);
        if counted { u64::from(self.snd.dup_acks).min(most) } else { 0 }
    }
}
