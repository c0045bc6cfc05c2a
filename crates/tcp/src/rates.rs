//! Support for rate-based controllers (`cong_control`: BBR) in Linux's stack: delivery rates and
//! pacing.
//!
//! Sources: Linux 6.18, tcp_rate.c; tcp_input.c (tcp_ack: the order of the steps of an
//! acknowledgment); tcp_output.c (tcp_update_skb_after_send, tcp_pacing_check, tcp_pace_kick: TCP's
//! internal pacing, without the `fq` qdisc). Connections with other controllers have no
//! [`RateState`], unless their rates are wanted for `tcp_info`.
//!
//! Without SACK, duplicates count as deliveries (tcp_add_reno_sack, tcp_remove_reno_sacks), but not
//! as packets that have left the network; retransmissions then follow RFC 6582, as with Linux's
//! other controllers here.

pub(crate) mod state;
mod tx_state;

use cc::{Controller, DeliveryRate, PathSignals, RateSample};
use machine::Cx;
use record::{Cause, Recorder};
use recovery::RttEstimator;
use recovery::delivery_rate::{DeliveryRateSample, DeliveryRates};
use units::{Duration, Instant, Offset, unlikely};

use crate::connection::Connection;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::timers::Timers;
pub(crate) use state::{AckDelivery, RateState};

/// Packets sent before pacing begins (tcp_update_skb_after_send).
const UNPACED: u64 = 10;

/// Bursts that the device takes before it completes the first (tcp_small_queue_check).
const BURSTS_OF_DEVICE: u32 = 2;

fn narrow(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl SendSide {
    /// Does pacing hold back data or a retransmission? If so, sets the pacing timer
    /// (tcp_pacing_check).
    pub(crate) fn pacing_blocks(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) -> bool {
        let (end, nxt) = (self.data_end(), self.nxt);
        let wants = end > nxt
            || (conn.fin_wanted() && nxt == end)
            || (self.scoreboard.any_lost() && !self.holds_retransmissions());
        if let Some(until) = self.call_reaches(conn, now).filter(|_| wants) {
            timers.reach_output(until);
            let push = self.pushed_until(conn).map(|end| (until, end));
            if let Some(rates) = &mut self.rates {
                rates.awaited_push = push;
            }
            return true;
        }
        let Some(rates) = &self.rates else { return false };
        let held = wants && rates.next_departure > now;
        if held {
            timers.start_pacing(rates.next_departure);
        }
        held
    }

    /// Begins the rate sample of an acknowledgment.
    pub(crate) fn begin_rate_sample(&mut self) {
        let (in_flight, lost) = (self.packets_in_flight(), self.scoreboard.lost_ever());
        if let Some(rates) = &mut self.rates {
            (rates.in_flight_before, rates.lost_before, rates.rtt) = (in_flight, lost, None);
        }
    }

    /// Completes the rate sample when `snd_una` has advanced, and passes it to the controller
    /// (tcp_rate_gen, tcp_cong_control).
    pub(crate) fn end_rate_sample<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        of: &AckDelivery,
    ) {
        let in_flight = self.packets_in_flight();
        let lost = self.scoreboard.lost_ever();
        let srtt_us = match &self.rtt.estimator {
            RttEstimator::Linux(rtt) => rtt.srtt_us() >> 3,
            other => other.srtt().map_or(0, |srtt| narrow(srtt.as_micros())),
        };
        let (ticks, min_rtt, una) = (conn.clock.tick(cx.now), self.totals.min_rtt, self.una);
        let (mss, window_limited) = (conn.mss(), self.usage.limited);
        let Some(rates) = &mut self.rates else { return };
        if rates.echoed {
            rates.delivery.count_marked(of.packets);
        }
        let rate = rates.delivery.generate(cx.now, of.packets, min_rtt, rates.reneged);
        rates.delivery.acknowledge(una);
        let higher = |now: &DeliveryRateSample| {
            rates.measured.is_none_or(|known| {
                !now.app_limited
                    || now.delivered * known.interval_us >= known.delivered * now.interval_us
            })
        };
        rates.measured = rate.filter(higher).or(rates.measured);
        if !rates.controls {
            return;
        }
        // A single packet, not a full one, and no other delivery since it was sent.
        let single_packet = of.packets == 1 && (1..mss).contains(&of.bare_bytes);
        let sample = RateSample {
            ticks,
            ack_delayed: single_packet && rate.is_some_and(|rate| rate.delivered == 1),
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
            delivered_clock: conn.clock.nanos(rates.delivery.delivered_at()),
            rtt_us: rates.rtt.map(|rtt| narrow(rtt.as_micros())),
            srtt_us,
            prior_in_flight: narrow(rates.in_flight_before),
            in_flight: narrow(in_flight),
            until_next_departure: rates.next_departure.max(cx.now).since(cx.now),
            signals: PathSignals {
                now: cx.now,
                tx: rates.tx_sample(lost),
                acks_probe: rates.acks_probe,
                ece: rates.echoed,
                window_limited,
                delivered_ce: rates.delivery.delivered_ce(),
            },
        };
        let change = self.cc.on_rate_sample(&sample);
        if self.cc.rate_based().is_some_and(|cc| cc.sends_little())
            && let Some(rates) = &mut self.rates
        {
            rates.delivery.set_app_limited(in_flight);
        }
        let recover_or_restore = self.cc.in_recovery();
        self.note(
            conn,
            cx,
            change,
            if recover_or_restore { Cause::Recovering } else { Cause::Avoidance },
        );
    }
}

impl Sender {
    /// On a write, checks whether the sender was application-limited (tcp_rate_check_app_limited).
    pub(crate) fn check_app_limited(&mut self, conn: &Connection, now: Instant, in_flight: u64) {
        if self.device_holds_data(conn, now) {
            return;
        }
        let (unsent, mss) = (self.data_end().since(self.nxt).get(), conn.mss());
        let limits = unsent < mss
            && in_flight < self.cwnd() / mss
            && self.scoreboard.sums().lost.packets <= self.scoreboard.sums().retransmission.packets;
        if let Some(rates) = self.rates.as_mut().filter(|_| limits) {
            rates.delivery.set_app_limited(in_flight);
        }
    }

    /// Allocates the rate state after the handshake, if the controller is rate-based.
    pub(crate) fn keep_rates(&mut self, conn: &Connection, now: Instant) {
        let controls = self.cc.rate_based().is_some();
        let wanted = self.cc.kernel().is_some_and(|cc| cc.needs_rates());
        let tracks_tx = self.cc.rate_based().is_some_and(|cc| cc.needs_tx_state());
        if tracks_tx {
            self.scoreboard.list_lost();
        }
        self.rates = (controls || wanted || conn.cfg.profile.measures_rates).then(|| {
            Box::new(RateState {
                delivery: DeliveryRates::new(now, Offset(1)),
                controls,
                tracks_tx,
                call: (!conn.clock.is_exact())
                    .then(|| (conn.clock.exact(now) + conn.clock.reading(), 0)),
                awaited_push: None,
                reached_push: None,
                acks_probe: false,
                echoed: false,
                probe_app_limited: false,
                measured: None,
                next_departure: now,
                in_flight_before: 0,
                lost_before: 0,
                rtt: None,
                reneged: false,
            })
        });
    }

    /// Is the controller rate-based (`cong_control`)?
    #[inline]
    pub(crate) const fn is_rate_based(&self) -> bool {
        matches!(&self.rates, Some(rates) if rates.controls)
    }

    /// Are delivery rates measured, for the controller or not?
    #[inline]
    pub(crate) const fn measures_rates(&self) -> bool {
        self.rates.is_some()
    }

    /// tcp_compute_delivery_rate in bytes a second, and whether the application limited it; `None` if rates are not
    /// measured.
    pub(crate) fn delivery_rate(&self, conn: &Connection) -> Option<(u64, bool)> {
        let rates = self.rates.as_ref()?;
        let Some(measured) = &rates.measured else { return Some((0, true)) };
        let bytes = u128::from(measured.delivered) * u128::from(conn.mss()) * 1_000_000;
        let rate = bytes / u128::from(measured.interval_us.max(1));
        Some((u64::try_from(rate).unwrap_or(u64::MAX), measured.app_limited))
    }

    /// When a segment was last sent, or data may be sent next if the flow is paced (`tcp_wstamp_ns`, which
    /// __tcp_transmit_skb sets for ACKs without data too).
    pub(crate) fn last_departure(&self) -> Instant {
        let paced = self.rates.as_ref().filter(|rates| rates.controls);
        paced.map_or(self.last.sent.max(self.last.acked), |rates| rates.next_departure)
    }

    /// `sk_pacing_rate` in bytes per second; 0 while unknown.
    pub(crate) fn pacing_rate(&self) -> u64 {
        if !self.is_rate_based() {
            return self.pacing.rate();
        }
        self.cc.control().pacing.map_or(0, |rate| rate.bits_per_second() / 8)
    }

    /// Handles data sent while nothing is in flight. The window may grow: the pause replaces that
    /// of PROBE_RTT (bbr_cwnd_event).
    pub(crate) fn restart_rates<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let Some(rates) = self.rates.as_ref().filter(|rates| rates.controls) else { return };
        let before = self.cwnd();
        self.cc.on_restart(cx.now, conn.clock.tick(cx.now), rates.delivery.app_limited());
        if self.cwnd() != before {
            self.emit_window(conn, cx, Cause::Idle);
        }
    }

    /// Records `[start, end)` as sent, new or retransmitted (`repeated`), and sets the next
    /// transmission time (tcp_rate_skb_sent, tcp_update_skb_after_send).
    pub(crate) fn rates_sent(&mut self, now: Instant, start: Offset, end: Offset, repeated: bool) {
        let rate = self.pacing_rate();
        let paces = rate > 0 && self.totals.data_packets >= UNPACED && self.is_rate_based();
        let Some(rates) = &mut self.rates else { return };
        if repeated {
            rates.delivery.on_retransmitted(&self.scoreboard, start, end, now);
        }
        rates.delivery.on_sent(&self.scoreboard);
        if let Some((_, bursts)) = &mut rates.call {
            *bursts += 1;
        }
        let prior = rates.next_departure;
        rates.next_departure = prior.max(now);
        if paces {
            let nanos = u128::from(end - start) * 1_000_000_000 / u128::from(rate);
            let span = u64::try_from(nanos).unwrap_or(u64::MAX);
            // Compensates for a late transmission of the previous one.
            let credit = rates.next_departure.since(prior).as_nanos();
            rates.next_departure += Duration::from_nanos(span - credit.min(span / 2));
        }
    }

    /// An acknowledgment without data is sent: pacing does not delay it, but the next packet is not late since before
    /// it (`tcp_wstamp_ns` of __tcp_transmit_skb).
    #[cold]
    pub(crate) fn ack_departs(&mut self, now: Instant) {
        if let Some(rates) = &mut self.rates {
            rates.next_departure = rates.next_departure.max(now);
        }
    }

    /// When the application's call gets to the next burst, if that is later than now: each output of the call reads the
    /// clock, and sends as many bursts as the device takes at once (tcp_write_xmit, tcp_small_queue_check).
    fn call_reaches(&self, conn: &Connection, now: Instant) -> Option<Instant> {
        let (began, bursts) = self.rates.as_ref()?.call?;
        let readings = 1 + u64::from(bursts.div_ceil(BURSTS_OF_DEVICE));
        let until = began + conn.clock.reading() * readings;
        (until > conn.clock.exact(now)).then_some(until)
    }

    /// The application writes at `now`, where reading the clock takes time.
    pub(crate) fn begin_call(&mut self, now: Instant) {
        if let Some(rates) = &mut self.rates
            && rates.call.is_none_or(|(began, _)| began < now)
        {
            rates.call = Some((now, 0));
        }
    }

    /// The application's process has ended its turn.
    pub(crate) fn end_write_turn(&mut self) {
        if let Some(rates) = &mut self.rates {
            rates.call = None;
            rates.reached_push = None;
        }
    }

    /// The output that pacing, or a call of the application that has read the clock by now, asks for begins.
    pub(crate) fn reach_call(&mut self, conn: &Connection, now: Instant) {
        if let Some(rates) = &mut self.rates {
            let now = conn.clock.exact(now);
            let due = |&mut (at, _): &mut (Instant, Offset)| at <= now;
            rates.reached_push = rates.awaited_push.take_if(due).map(|(_, end)| end);
        }
    }

    /// End of what tcp_push_one sends in the output of a write in progress.
    pub(crate) fn pushed_until(&self, conn: &Connection) -> Option<Offset> {
        match &self.call.write {
            Some(write) => Some(write.pushed()),
            None if unlikely(!conn.clock.is_exact()) => self.rates.as_ref()?.reached_push,
            None => None,
        }
    }

    /// What a timer for data in flight runs longer since pacing holds back the next packet, in whole ticks
    /// (tcp_pacing_delay).
    #[inline(always)]
    pub(crate) fn pacing_delay(&self, conn: &Connection, now: Instant) -> Duration {
        match &self.rates {
            None => Duration::ZERO,
            Some(rates) => conn.delay_of(rates, now),
        }
    }

    /// Lets pacing hold back the next packet until then.
    #[cfg(test)]
    pub(crate) fn pace_until(&mut self, at: Instant) {
        if let Some(rates) = &mut self.rates {
            rates.next_departure = at;
        }
    }

    /// Records the round trip of the newest packet it delivered that was not retransmitted.
    pub(crate) fn rate_sample_rtt(&mut self, rtt: Duration) {
        if let Some(rates) = &mut self.rates {
            rates.rtt = Some(rtt);
        }
    }

    /// Bytes that a write may send at once in bursts of `burst`, by the pacing (tcp_pacing_check): the
    /// burst that completes the first ten segments, and every later one, is followed by a pause.
    pub(crate) fn unpaced(&self, conn: &Connection, now: Instant, burst: u64) -> u64 {
        let Some(rates) = self.rates.as_ref().filter(|rates| rates.controls) else {
            return u64::MAX;
        };
        match UNPACED.saturating_sub(self.totals.data_packets) {
            0 if rates.next_departure > now => 0,
            0 => burst,
            segments => (segments * conn.mss()).next_multiple_of(burst.max(1)),
        }
    }
}

impl Connection {
    #[cold]
    fn delay_of(&self, rates: &RateState, now: Instant) -> Duration {
        if rates.controls && rates.next_departure > now {
            self.clock.whole_ticks(rates.next_departure.since(now))
        } else {
            Duration::ZERO
        }
    }
}
