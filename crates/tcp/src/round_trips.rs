//! Round trips: their samples, and what the controller learns of them.

use cc::{AckSample, Controller, SmoothedRtt, WindowChange, WindowController};
use machine::Cx;
use packet::Segment;
use record::{Cause, Event, Recorder};
use recovery::sendmap::DeliveredRun;
use recovery::{RttEstimator, RttInput, RttMeasurement};
use units::ratio::scaled;
use units::{Duration, Instant, Offset, unlikely};

use crate::connection::Connection;
use crate::sender::Sender;
use crate::sent::DeliveredPackets;

impl Sender {
    /// The smoothed round trip for the controller.
    #[inline]
    pub(crate) fn smoothed(&self, conn: &Connection) -> SmoothedRtt {
        if self.cc.uses_srtt() { self.smoothed_now(conn) } else { SmoothedRtt::default() }
    }

    fn smoothed_now(&self, conn: &Connection) -> SmoothedRtt {
        let samples = self.rtt.samples;
        if let RttEstimator::FreeBsd(rtt) = &self.rtt.estimator {
            let micros = u32::try_from(rtt.srtt_micros()).unwrap_or(u32::MAX);
            return SmoothedRtt { ticks: rtt.srtt_ticks(), micros, samples };
        }
        let srtt = self.rtt.estimator.srtt().unwrap_or(Duration::ZERO);
        let hz = u64::from(conn.cfg.profile.hz);
        let ticks = scaled(srtt.as_nanos(), hz, Duration::from_secs(1).as_nanos());
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        SmoothedRtt { ticks: narrow(ticks), micros: narrow(srtt.as_micros()), samples }
    }

    /// Takes a round-trip sample. FreeBSD uses every echoed timestamp, else the byte being timed;
    /// Linux the time since the oldest segment acknowledged was sent, and an echo only if that was
    /// retransmitted (tcp_ack_update_rtt).
    pub(crate) fn take_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
        delivered: &DeliveredPackets,
    ) {
        let echo =
            segment.timestamps.filter(|stamps| conn.negotiated.timestamps && stamps.ecr != 0);
        let timed = self.rtt.timing.filter(|&(at, _)| ack > at);
        if timed.is_some() {
            self.rtt.timing = None;
        }
        let by_echo = || {
            let stamps = echo?;
            let ms = conn.clock.timestamp(cx.now).wrapping_sub(stamps.ecr);
            Some(RttMeasurement::Echo { ms })
        };
        // The kernel's ticks have a phase of their own.
        let phase = conn.clock.phase();
        let (clock, now) = (conn.clock, conn.clock.stamp(cx.now));
        let since = |sent: Instant| RttMeasurement::Timed {
            sent: clock.stamp(sent) + phase,
            acked: now + phase,
        };
        let timed = timed.map(|(_, sent)| sent);
        let sample = match self.rtt.estimator {
            RttEstimator::FreeBsd(_) | RttEstimator::Rfc(_) => by_echo().or(timed.map(since)),
            RttEstimator::Rack(_) => delivered.newest_sent().or(timed).map(since),
            // No sample of a retransmission: only the SYN is timed otherwise.
            RttEstimator::Linux(_) => {
                let syn = timed.filter(|_| delivered.packets == 0);
                delivered.oldest_sent().or(syn).map(since).or_else(by_echo)
            }
        };
        let Some(sample) = sample else { return };
        let rtt = self.rtt.estimator.on_sample(&RttInput {
            sample,
            shift: self.rexmt.shift,
            snd_una: ack,
            snd_nxt: self.nxt,
        });
        // Linux takes the minimum from the newest segment acknowledged (ca_rtt).
        let newest = match (&self.rtt.estimator, delivered.newest_sent()) {
            (RttEstimator::Linux(_), Some(sent)) => now.since(clock.stamp(sent)).min(rtt),
            _ => rtt,
        };
        self.note_rtt(conn, cx, ack, rtt, newest);
    }

    /// [`Sender::take_rtt`] on the fast path, for a batch of packets.
    #[inline(always)]
    pub(crate) fn take_batch_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
        row: &DeliveredRun,
    ) {
        let RttEstimator::Linux(linux) = &mut self.rtt.estimator else {
            return self.take_rtt(conn, cx, segment, ack, &DeliveredPackets::row(row));
        };
        let (clock, now) = (conn.clock, conn.clock.stamp(cx.now));
        let since = |sent| now.since(clock.stamp(sent));
        let rtt = linux.on_round_trip(since(row.first.sent_at), ack, self.nxt);
        if self.rtt.timing.is_some_and(|(at, _)| ack > at) {
            self.rtt.timing = None;
        }
        self.note_rtt(conn, cx, ack, rtt, since(row.last.sent_at).min(rtt));
    }

    /// Records a round-trip sample; `newest` is that of the newest segment acknowledged.
    #[inline(always)]
    pub(crate) fn note_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        rtt: Duration,
        newest: Duration,
    ) {
        self.rtt.sample = Some(rtt);
        self.rtt.samples = self.rtt.samples.saturating_add(1);
        // tcp_update_rtt_min: a round trip of less than a microsecond counts as a jiffy.
        let counted = match self.rtt.estimator {
            RttEstimator::Linux(_) if unlikely(newest.as_micros() == 0) => conn.clock.jiffy(),
            _ => newest,
        };
        let least = self.totals.min_rtt.map_or(counted, |least| least.min(counted));
        self.totals.min_rtt = Some(least);
        self.rate_sample_rtt(newest);
        cx.emit(|| Event::RttSample { rtt });
        if !conn.cfg.profile.rules.sending.reports_round_trips {
            return;
        }
        if self.cc.uses_ack_samples() {
            self.report_ack_sample(conn, cx, ack, newest);
        } else {
            self.note(conn, cx, WindowChange::None, Cause::SlowStartExit);
        }
    }

    fn report_ack_sample<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        rtt: Duration,
    ) {
        let pacing_rate = if self.cc.in_slow_start() { self.pacing_rate() } else { 0 };
        let change = self.cc.on_ack_sample(&AckSample {
            now: cx.now,
            ticks: conn.clock.tick(cx.now),
            rtt,
            una: ack,
            snd_nxt: self.nxt,
            pacing_rate,
        });
        self.note(conn, cx, change, Cause::SlowStartExit);
    }
}
