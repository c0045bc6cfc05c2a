//! Controllers as rules for a window in segments: growth with acknowledgments, reduction at losses.

use core::fmt::Debug;

use cc::CongestionSignal;
use cc::external::{CcDecision, CcReport, ControllerError, LossReport, UserController};
use units::{Bytes, Duration, Instant, RandomStream, Rate};

/// A window that changes by fewer segments is the same.
const LEAST_CHANGE: f64 = 1e-9;

/// What a connection knows, in segments and seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// Time since the connection was established.
    pub(super) since_start: f64,
    /// Congestion window.
    pub(super) window: f64,
    /// Segments acknowledged since the last report.
    pub(super) acked: f64,
    /// Below the slow-start threshold.
    pub(super) slow_start: bool,
    /// The stack's smoothed round trip.
    pub(super) rtt: f64,
    /// The shortest round trip of the connection.
    pub(super) least_rtt: f64,
}

/// A rule of a controller.
pub(super) trait Rule: Debug + Clone + Send + Sync + 'static {
    /// The window after an acknowledgment.
    fn grown(&mut self, now: &Now, draws: &mut RandomStream) -> f64 {
        let _ = draws;
        if now.slow_start { now.window + now.acked } else { now.window + now.acked / now.window }
    }

    /// The window after a loss or an echo of congestion.
    fn reduced(&mut self, now: &Now, signal: CongestionSignal, draws: &mut RandomStream) -> f64 {
        let _ = (signal, draws);
        now.window / 2.0
    }

    /// The window from which the connection goes on after a timeout, if it is not one segment with a
    /// slow start up to the reduced window.
    fn after_timeout(&self, now: &Now) -> Option<f64> {
        let _ = now;
        None
    }

    /// The pacing rate in segments a second.
    fn pacing(&self, now: &Now) -> Option<f64> {
        let _ = now;
        None
    }

    /// Whether slow start lasts after a loss too.
    fn stays_in_slow_start(&self) -> bool {
        false
    }
}

/// The stack's own Reno.
#[derive(Debug, Clone)]
pub(super) struct Own;

impl Rule for Own {
    fn grown(&mut self, now: &Now, _: &mut RandomStream) -> f64 {
        now.window
    }
}

/// `add` segments a round trip, and `keep` of the window after a loss.
#[derive(Debug, Clone)]
pub(super) struct Aimd {
    pub(super) add: f64,
    pub(super) keep: f64,
}

impl Rule for Aimd {
    fn grown(&mut self, now: &Now, _: &mut RandomStream) -> f64 {
        let add = if now.slow_start { now.acked } else { self.add * now.acked / now.window };
        now.window + add
    }

    fn reduced(&mut self, now: &Now, _: CongestionSignal, _: &mut RandomStream) -> f64 {
        now.window * self.keep
    }
}

/// The controller of a rule.
#[derive(Debug, Clone)]
pub(super) struct Window<R> {
    rule: R,
    draws: RandomStream,
    started: Instant,
    mss: f64,
    least_rtt: f64,
    rtt: f64,
}

impl<R: Rule> Window<R> {
    pub(super) fn new(rule: R) -> Self {
        let draws = RandomStream::named(0, "zoo", "controller");
        let (started, mss) = (Instant::ZERO, 1.0);
        Self { rule, draws, started, mss, least_rtt: f64::INFINITY, rtt: 0.0 }
    }

    fn bytes(&self, segments: f64) -> Bytes {
        // Two segments are the least window of a reduction, 2^30 bytes the largest of TCP.
        Bytes((segments.max(2.0) * self.mss).min(f64::from(1_u32 << 30)) as u64)
    }

    fn now(&self, at: Instant, window: Bytes) -> Now {
        Now {
            since_start: at.since(self.started).as_secs_f64(),
            window: window.get() as f64 / self.mss,
            acked: 0.0,
            slow_start: false,
            rtt: self.rtt,
            least_rtt: self.least_rtt,
        }
    }

    fn paced(&self, now: &Now) -> Option<Rate> {
        let segments = self.rule.pacing(now)?;
        Rate::from_bits_per_second((segments * self.mss * 8.0) as u64)
    }
}

impl<R: Rule> UserController for Window<R> {
    fn on_start(
        &mut self,
        now: Instant,
        mss: u32,
        _: Bytes,
    ) -> Result<CcDecision, ControllerError> {
        self.started = now;
        self.mss = f64::from(mss);
        // Start times are drawn, so the connections of a world differ.
        self.draws = RandomStream::named(now.as_nanos(), "zoo", "controller");
        Ok(CcDecision::default())
    }

    fn on_report(&mut self, report: &CcReport) -> Result<CcDecision, ControllerError> {
        self.rtt = f64::from(report.srtt_micros) / 1e6;
        if let Some(rtt) = report.rtt_min.map(Duration::as_secs_f64) {
            self.least_rtt = self.least_rtt.min(rtt);
        }
        if report.in_recovery {
            return Ok(CcDecision::default());
        }
        let mut now = self.now(report.now, report.window);
        now.acked = report.acked as f64 / self.mss;
        now.slow_start = report.ssthresh.is_none_or(|ssthresh| report.window < ssthresh);
        let window = self.rule.grown(&now, &mut self.draws);
        let pacing = self.paced(&now);
        // A window after a timeout may be a single segment.
        let changes = (window - now.window).abs() > LEAST_CHANGE;
        let window = changes.then(|| self.bytes(window));
        Ok(CcDecision { window, pacing, ..CcDecision::default() })
    }

    fn on_loss(&mut self, loss: &LossReport) -> Result<CcDecision, ControllerError> {
        let now = self.now(loss.now, loss.window);
        let reduced = self.rule.reduced(&now, loss.signal, &mut self.draws);
        let window = match loss.signal {
            CongestionSignal::Timeout { .. } => self.rule.after_timeout(&now),
            _ => Some(reduced),
        };
        let ssthresh = match self.rule.stays_in_slow_start() {
            true => Bytes(1 << 30),
            false => self.bytes(reduced),
        };
        let window = window.map(|window| self.bytes(window));
        Ok(CcDecision { window, ssthresh: Some(ssthresh), ..CcDecision::default() })
    }

    fn fork(&self) -> Box<dyn UserController> {
        Box::new(self.clone())
    }
}
