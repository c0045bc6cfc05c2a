//! The first goodput measurement of FreeBSD's RACK stack: its completion ends the pause after a
//! burst.
//!
//! Source: tcp_stacks/rack.c (rack_start_gp_measurement, rack_need_set_test,
//! rack_enough_for_measurement, rack_do_goodput_measurement, tcp_rack_xmit_timer_commit). Without
//! pacing the estimate itself is not used; later measurements have no effect and are not modelled.

use units::Offset;

/// Minimum number of segments of a measurement (`MIN_GP_WIN`).
const LEAST_SEGMENTS: u64 = 6;

/// A burst of new data, as in the kernel's send map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct SentBurst {
    start: Offset,
    end: Offset,
    /// A call after it found nothing more to send (`r_just_ret`).
    just_returned: bool,
    /// The sender was application-limited after it (`RACK_APP_LIMITED`).
    app_limited: bool,
}

/// A measurement in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct Measurement {
    /// First byte and target end (`gput_seq`, `gput_ack`).
    from: Offset,
    to: Offset,
    /// Start time in microseconds (`gput_ts`).
    since: u64,
    /// The first acknowledgment has yet to set the start (`app_limited_needs_set`).
    needs_set: bool,
}

/// The round-trip sample of an acknowledgment, for the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GoodputSample {
    /// Sample in microseconds (`rs_us_rtt`).
    rtt: Option<u64>,
    confident: bool,
}

/// The goodput measurement of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct GoodputEstimator {
    /// A measurement was completed (`rc_gp_filled`, `gp_ready`).
    filled: bool,
    measurement: Option<Measurement>,
    /// Smoothed RTT in microseconds (`rc_gp_srtt`).
    srtt: Option<u64>,
    bursts: Vec<SentBurst>,
}

impl GoodputEstimator {
    /// True once a measurement was completed.
    pub const fn is_measured(&self) -> bool {
        self.filled
    }

    /// New data `[start, end)` was sent at `now` microseconds; `window` is the initial window.
    pub fn on_sent(&mut self, start: Offset, end: Offset, now: u64, window: u64, mss: u64) {
        if self.filled {
            return;
        }
        self.bursts.push(SentBurst { start, end, just_returned: false, app_limited: false });
        let span = window.max(LEAST_SEGMENTS * mss);
        self.measurement.get_or_insert(Measurement {
            from: start,
            to: start + span,
            since: now,
            needs_set: true,
        });
    }

    /// A call sent nothing, because data ran out (`app_limited`) or not. `max` is `snd_max`.
    pub fn on_just_returned(&mut self, app_limited: bool, max: Offset, mss: u64) {
        if self.filled {
            return;
        }
        if let Some(last) = self.bursts.last_mut() {
            last.just_returned = true;
            last.app_limited |= app_limited;
        }
        if app_limited
            && let Some(measurement) = &mut self.measurement
            && measurement.to > max
        {
            measurement.to = max;
            if max.since(measurement.from).get() < LEAST_SEGMENTS * mss {
                self.measurement = None;
            }
        }
    }

    /// A second probe or timeout in a row aborts the measurement in progress.
    pub const fn abandon(&mut self) {
        self.measurement = None;
    }

    /// The segment `[start, end)` was acknowledged (`cumulative` is `th_ack`) or SACKed; `rtt` is
    /// its round trip if it was sent once.
    pub fn on_delivered(
        &mut self,
        (start, end): (Offset, Offset),
        rtt: Option<u64>,
        cumulative: Option<Offset>,
        now: u64,
        sample: &mut GoodputSample,
    ) {
        if self.filled {
            return;
        }
        if let Some(rtt) = rtt {
            let burst = self.bursts.iter().find(|burst| burst.start <= start && start < burst.end);
            let just_returned = burst.is_none_or(|burst| burst.just_returned);
            let needs_set = self.measurement.is_some_and(|measurement| measurement.needs_set);
            sample.take(rtt, cumulative.is_none() || !(just_returned || needs_set));
        }
        if cumulative.is_none() {
            self.split(start, end);
        }
        if let Some(measurement) = &mut self.measurement
            && measurement.needs_set
            && rtt.is_some()
            && end >= measurement.from
        {
            let span = measurement.to - measurement.from;
            measurement.needs_set = false;
            measurement.since = now;
            measurement.from = measurement.from.max(cumulative.unwrap_or(end));
            if measurement.from > measurement.to {
                measurement.to = measurement.from + span;
            }
        }
    }

    /// A SACK block splits a burst: the part before it loses its flags (rack_proc_sack_blk).
    fn split(&mut self, start: Offset, end: Offset) {
        let holds = |burst: &SentBurst| burst.start <= start && start < burst.end;
        let Some(at) = self.bursts.iter().position(holds) else { return };
        let whole = self.bursts[at];
        let before = SentBurst { end: start, just_returned: false, app_limited: false, ..whole };
        let after = SentBurst { start: end, ..whole };
        let left = [before, after].into_iter().filter(|burst| burst.start < burst.end);
        drop(self.bursts.splice(at..=at, left));
    }

    /// Processes an acknowledgment of `th_ack`, before `snd_una` moves to it. Returns true if it
    /// completes the first measurement.
    pub fn on_ack(&mut self, th_ack: Offset, max: Offset, now: u64, window: u64, mss: u64) -> bool {
        let Some(measurement) = self.measurement.filter(|_| !self.filled) else { return false };
        let first_limit = self.bursts.iter().find(|burst| burst.app_limited).map(|burst| burst.end);
        self.bursts.retain(|burst| burst.end > th_ack);
        let bytes = th_ack.since(measurement.from).get();
        let least = window.max(LEAST_SEGMENTS * mss);
        let enough = th_ack == max
            || (th_ack >= measurement.from
                && (th_ack >= measurement.to || bytes >= least)
                && (first_limit.is_some_and(|end| th_ack >= end)
                    || now - measurement.since >= self.srtt.unwrap_or(0)));
        if !enough {
            return false;
        }
        // The measurement ends, valid or not.
        self.measurement = None;
        let least = window.min(LEAST_SEGMENTS * mss).saturating_sub(2 * mss);
        if bytes < least || measurement.needs_set || th_ack < measurement.from {
            return false;
        }
        self.filled = true;
        self.bursts = Vec::new();
        true
    }

    /// Commits the sample of an acknowledgment to the smoothed RTT.
    pub fn commit(&mut self, sample: GoodputSample) {
        let Some(rtt) = sample.rtt.filter(|_| !self.filled) else { return };
        match &mut self.srtt {
            None => self.srtt = Some(rtt),
            Some(srtt) if sample.confident => *srtt = *srtt - *srtt / 8 + rtt / 8,
            Some(_) => {}
        }
    }

    /// The RTT of the SYN, in microseconds.
    pub fn on_syn(&mut self, rtt: u64) {
        self.srtt.get_or_insert(rtt);
    }
}

impl GoodputSample {
    /// tcp_rack_xmit_timer: the smallest of the samples, with its confidence.
    fn take(&mut self, rtt: u64, confident: bool) {
        let lower = self.rtt.is_none_or(|least| rtt < least);
        if lower {
            *self = Self { rtt: Some(rtt), confident };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    fn at(segments: u64) -> Offset {
        Offset(1 + segments * MSS)
    }

    /// The first flight of ten segments at 45.009 ms (golden/freebsd-rack-closed, lost-rtx-0).
    fn sending() -> GoodputEstimator {
        let mut goodput = GoodputEstimator::default();
        goodput.on_syn(45_000);
        goodput.on_sent(at(0), at(10), 45_009, 10 * MSS, MSS);
        goodput.on_just_returned(false, at(10), MSS);
        goodput
    }

    fn acked(goodput: &mut GoodputEstimator, from: u64, to: u64, max: u64, now: u64) -> bool {
        let mut sample = GoodputSample::default();
        for segment in from..to {
            let span = (at(segment), at(segment + 1));
            goodput.on_delivered(span, Some(45_248), Some(at(to)), now, &mut sample);
        }
        let made = goodput.on_ack(at(to), at(max), now, 10 * MSS, MSS);
        goodput.commit(sample);
        made
    }

    #[test]
    fn the_first_measurement_takes_one_rtt_after_the_first_ack() {
        let mut goodput = sending();
        assert!(!acked(&mut goodput, 0, 2, 10, 90_257));
        goodput.on_sent(at(10), at(14), 90_257, 10 * MSS, MSS);
        assert!(!acked(&mut goodput, 2, 10, 14, 91_217));
        goodput.on_sent(at(14), at(30), 104_250, 10 * MSS, MSS);
        assert!(!acked(&mut goodput, 10, 11, 30, 135_200));
        assert!(acked(&mut goodput, 11, 12, 30, 135_502));
        assert!(goodput.is_measured());
    }

    #[test]
    fn a_sack_restores_confidence_in_earlier_segments() {
        // reorder-0: segments acknowledged after a SACK are trusted, though nothing followed the
        // burst.
        let mut goodput = sending();
        let mut sample = GoodputSample::default();
        goodput.on_delivered((at(3), at(4)), Some(24_893), None, 44_989, &mut sample);
        assert!(sample.confident);
        for (segment, trusted) in [(0, true), (4, false)] {
            let mut sample = GoodputSample::default();
            let span = (at(segment), at(segment + 1));
            goodput.on_delivered(span, Some(25_037), Some(at(5)), 45_133, &mut sample);
            assert_eq!(sample.confident, trusted);
        }
    }

    #[test]
    fn too_little_data_gives_no_measurement() {
        let mut goodput = GoodputEstimator::default();
        goodput.on_sent(at(0), at(3), 0, 10 * MSS, MSS);
        goodput.on_just_returned(true, at(3), MSS);
        assert!(!acked(&mut goodput, 0, 3, 3, 100_000));
        assert!(!goodput.is_measured());
    }
}
