//! HyStart++ of RFC 9406: slow start that ends when delay increases.
//!
//! Rounds are delimited by sequence numbers (section 4.2). A round whose minimum RTT exceeds that
//! of the previous round by an eighth (4 ms to 16 ms) starts conservative slow start, with a
//! quarter of the growth; five rounds of it end slow start, a lower RTT resumes it. FreeBSD's own
//! implementation is [`crate::hystart`].

use units::{Duration, Offset};

/// `MIN_RTT_THRESH`, `MAX_RTT_THRESH`.
const RTT_THRESH: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));
/// `MIN_RTT_DIVISOR`.
const MIN_RTT_DIVISOR: u64 = 8;
/// `N_RTT_SAMPLE`.
const N_RTT_SAMPLE: u32 = 8;
/// `CSS_GROWTH_DIVISOR`.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// `CSS_ROUNDS`.
const CSS_ROUNDS: u32 = 5;
/// `L` of a sender without pacing.
const L: u64 = 8;

/// State of one slow start.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct HyStartRfc {
    window_end: Option<Offset>,
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    samples: u32,
    css: Option<ConservativeSlowStart>,
}

/// Conservative slow start.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct ConservativeSlowStart {
    baseline: Duration,
    rounds: u32,
}

impl HyStartRfc {
    /// Processes an acknowledgment of `una` covering `bytes`, with its RTT sample, while `snd_nxt`
    /// is the next byte to send; returns the growth in bytes, or `None` if slow start is over.
    pub fn on_acked(
        &mut self,
        una: Offset,
        snd_nxt: Offset,
        rtt: Option<Duration>,
        bytes: u64,
        smss: u64,
    ) -> Option<u64> {
        let growth = bytes.min(L * smss);
        if let Some(rtt) = rtt {
            self.this_round = Some(self.this_round.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        self.update_css();
        let growth = if self.css.is_some() { growth / CSS_GROWTH_DIVISOR } else { growth };
        if self.window_end.is_none_or(|end| una >= end) && !self.begin_round(snd_nxt) {
            return None;
        }
        Some(growth)
    }

    /// True in conservative slow start.
    pub fn in_css(&self) -> bool {
        self.css.is_some()
    }

    fn update_css(&mut self) {
        let Some(this) = self.this_round.filter(|_| self.samples >= N_RTT_SAMPLE) else { return };
        match (&self.css, self.last_round) {
            (Some(css), _) => {
                if this < css.baseline {
                    self.css = None;
                }
            }
            (None, Some(last)) => {
                let thresh = Duration::from_nanos(last.as_nanos() / MIN_RTT_DIVISOR)
                    .clamp(RTT_THRESH.0, RTT_THRESH.1);
                if this >= last + thresh {
                    self.css = Some(ConservativeSlowStart { baseline: this, rounds: 0 });
                }
            }
            (None, None) => {}
        }
    }

    /// A round begins; returns true if slow start continues.
    fn begin_round(&mut self, snd_nxt: Offset) -> bool {
        self.window_end = Some(snd_nxt);
        self.last_round = self.this_round.take();
        self.samples = 0;
        match &mut self.css {
            Some(css) => {
                css.rounds += 1;
                css.rounds < CSS_ROUNDS
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of ten acknowledgments of one segment; the growth at the last one of each.
    fn rounds(rtts_ms: &[u64]) -> Vec<Option<u64>> {
        let mut hystart = HyStartRfc::default();
        let mut una = 0;
        rtts_ms
            .iter()
            .map(|&ms| {
                let mut growth = None;
                for _ in 0..10 {
                    una += 1_000;
                    let rtt = Some(Duration::from_millis(ms));
                    let next = Offset(una + 10_000);
                    growth = hystart.on_acked(Offset(una), next, rtt, 1_000, 1_000);
                }
                growth
            })
            .collect()
    }

    #[test]
    fn increasing_delay_slows_growth_and_ends_slow_start_after_five_rounds() {
        // The first acknowledgment is its own round: then ten each. 40 to 45 ms is an eighth.
        let [full, quarter] = [Some(1_000), Some(250)];
        assert_eq!(rounds(&[40, 44]), [full, full]);
        assert_eq!(
            rounds(&[40, 45, 45, 45, 45, 45]),
            [full, quarter, quarter, quarter, quarter, quarter]
        );
        let mut hystart = HyStartRfc::default();
        let mut ended = None;
        for packet in 0..100_u64 {
            let rtt = Duration::from_millis(if packet < 11 { 40 } else { 45 });
            let una = Offset(packet);
            if hystart.on_acked(una, Offset(packet + 10), Some(rtt), 1, 1_000).is_none() {
                ended = Some(packet);
                break;
            }
        }
        // The RTT increases in round 11 to 20; that partial round counts as the first of five.
        assert_eq!(ended, Some(60));
    }

    #[test]
    fn a_lower_rtt_resumes_slow_start() {
        assert_eq!(rounds(&[40, 45, 44]), [Some(1_000), Some(250), Some(1_000)]);
    }

    #[test]
    fn fewer_than_eight_samples_have_no_effect() {
        let mut hystart = HyStartRfc::default();
        for packet in 0..50_u64 {
            let rtt = (packet % 10 < 7).then_some(Duration::from_millis(40 + packet));
            let growth = hystart.on_acked(Offset(packet), Offset(packet + 10), rtt, 1, 1_000);
            assert_eq!(growth, Some(1));
        }
        assert!(!hystart.in_css());
    }
}
