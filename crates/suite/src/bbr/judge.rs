//! Judges a qlog of a stack: recovery metrics and congestion states, against the rules of the draft that a log can show, and
//! against the reference of a case on a path.

use logs::qlog::{Metrics, QlogData, QlogItem, QlogReader};
use units::Duration;

use super::course::{BbrCourse, CRUISE, DOWN, DRAIN, PHASES, PROBE_RTT, REFILL, STARTUP, UP};
use super::paths::BbrPath;
use super::report::BbrCheck;

/// What a log shows of a sender's BBR.
#[derive(Debug, Clone, Default)]
pub struct BbrLog {
    /// When each state began, from the first event on.
    states: Vec<(Duration, u64)>,
    /// Congestion windows, pacing rates in bit/s and bytes in flight, where the log has them.
    windows: Vec<(Duration, u64)>,
    rates: Vec<(Duration, u64)>,
    flights: Vec<(Duration, u64)>,
    /// States that are none of BBR's.
    pub unknown: Vec<String>,
}

/// A log that cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JudgeError {
    /// It is no qlog; the text says why.
    NotQlog(String),
    /// It has no congestion state of BBR.
    NoStates {
        /// Names of the states that it has.
        found: Vec<String>,
    },
}

impl core::fmt::Display for JudgeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotQlog(why) => write!(f, "not a qlog that can be read: {why}"),
            Self::NoStates { found } if found.is_empty() => f.write_str(
                "no `congestion_state_updated` event: the log does not show the state of BBR",
            ),
            Self::NoStates { found } => write!(
                f,
                "no state of BBR among those of `congestion_state_updated`: {}",
                found.join(", ")
            ),
        }
    }
}

impl core::error::Error for JudgeError {}

/// The state that a name means: stacks write `bbr_startup`, `ProbeBW_UP`, `probe_bw_up` and such.
fn state_of(name: &str) -> Option<u64> {
    let letters: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let has = |part: &str| letters.contains(part);
    if has("startup") {
        return Some(STARTUP);
    }
    if has("probertt") {
        return Some(PROBE_RTT);
    }
    if has("drain") && !has("bw") {
        return Some(DRAIN);
    }
    match () {
        () if has("down") => Some(DOWN),
        () if has("cruise") => Some(CRUISE),
        () if has("refill") => Some(REFILL),
        () if has("probebwup") || has("probeup") => Some(UP),
        () => None,
    }
}

/// Reads a qlog of any version.
///
/// # Errors
/// It is no qlog, or has no states of BBR.
pub fn read_log(bytes: &[u8]) -> Result<BbrLog, JudgeError> {
    let mut reader = QlogReader::new(bytes);
    let mut log = BbrLog::default();
    let mut first = None;
    for item in reader.by_ref() {
        let item = item.map_err(|error| JudgeError::NotQlog(error.to_string()))?;
        let QlogItem::Event(event) = item else { continue };
        let at = event.at.saturating_sub(*first.get_or_insert(event.at));
        match event.data {
            QlogData::CongestionStateUpdated { new, .. } => match state_of(&new) {
                Some(state) if log.states.last().is_none_or(|(_, last)| *last != state) => {
                    log.states.push((at, state));
                }
                Some(_) => {}
                None if !log.unknown.contains(&new) => log.unknown.push(new),
                None => {}
            },
            QlogData::MetricsUpdated(Metrics {
                congestion_window,
                pacing_rate,
                bytes_in_flight,
                ..
            }) => {
                log.windows.extend(congestion_window.map(|window| (at, window)));
                log.rates.extend(pacing_rate.map(|rate| (at, rate)));
                log.flights.extend(bytes_in_flight.map(|flight| (at, flight)));
            }
            _ => {}
        }
    }
    if first.is_none() {
        let why = "no event was found in it".to_owned();
        return Err(JudgeError::NotQlog(why));
    }
    if log.states.is_empty() {
        return Err(JudgeError::NoStates { found: log.unknown });
    }
    Ok(log)
}

/// States that may follow a state, or that several transitions of one acknowledgment lead to, as Startup to
/// ProbeBW_CRUISE where the flight is small (sections "State Transition Diagram", "ProbeBW Algorithm Details", "Exiting ProbeRTT",
/// "Handling a Spurious Loss Recovery").
fn may_follow(state: u64) -> &'static [u64] {
    match state {
        STARTUP => &[DRAIN, DOWN, CRUISE, PROBE_RTT],
        DRAIN => &[DOWN, CRUISE, PROBE_RTT, STARTUP],
        DOWN => &[CRUISE, REFILL, PROBE_RTT, STARTUP],
        CRUISE => &[REFILL, PROBE_RTT, STARTUP],
        REFILL => &[UP, DOWN, PROBE_RTT, STARTUP],
        UP => &[DOWN, CRUISE, REFILL, PROBE_RTT, STARTUP],
        _ => &[DOWN, CRUISE, STARTUP],
    }
}

fn name(state: u64) -> &'static str {
    PHASES.get(state as usize).copied().unwrap_or("?")
}

fn seconds(span: Duration) -> String {
    format!("{:.3} s", span.as_secs_f64())
}

impl BbrLog {
    /// The assertions on this log. With a path, those on its bandwidth; with the reference of the same case there, the time
    /// that Startup lasts.
    pub fn judge(&self, path: Option<&BbrPath>, reference: Option<&BbrCourse>) -> Vec<BbrCheck> {
        let mut checks = Vec::new();
        let mut check = |what: &str, wanted: String, measured: String, holds: bool| {
            checks.push(BbrCheck {
                what: what.to_owned(),
                wanted,
                measured,
                holds,
                conflict: None,
            });
        };
        let wrong = self.states.windows(2).find(|pair| !may_follow(pair[0].1).contains(&pair[1].1));
        check(
            "transitions",
            "those of the draft".to_owned(),
            wrong.map_or_else(
                || format!("all {} are", self.states.len().saturating_sub(1)),
                |pair| {
                    format!("{} to {} at {}", name(pair[0].1), name(pair[1].1), seconds(pair[1].0))
                },
            ),
            wrong.is_none(),
        );
        let begins = self.states.first().map_or(STARTUP, |first| first.1);
        check("the first state", "startup".to_owned(), name(begins).to_owned(), begins == STARTUP);
        self.judge_probe_rtt(&mut check);
        if let Some(path) = path {
            self.judge_path(path, &mut check);
        }
        if let Some(reference) = reference {
            let ours = reference.entries(DRAIN).first().map(|&at| reference.at(at));
            let start = reference.samples.first().map_or(Duration::ZERO, |sample| sample.at);
            let ours = ours.map(|at| at.saturating_sub(start));
            let theirs = self.states.iter().find(|(_, state)| *state == DRAIN).map(|(at, _)| *at);
            let text = |at: Option<Duration>| at.map_or_else(|| "never".to_owned(), seconds);
            let close = match (ours, theirs) {
                (Some(ours), Some(theirs)) => {
                    let [ours, theirs] = [ours, theirs].map(Duration::as_secs_f64);
                    let round = path.map_or(0.0, |path| path.base_rtt().as_secs_f64());
                    (ours - theirs).abs() <= ours * 0.5 + 3.0 * round
                }
                (ours, theirs) => ours.is_none() == theirs.is_none(),
            };
            check(
                "time in Startup, from the first event",
                format!("{} as in the reference, within a half and 3 round trips", text(ours)),
                text(theirs),
                close,
            );
        }
        checks
    }

    /// ProbeRTT: at least 200 ms, more than 5 s from one to the next.
    fn judge_probe_rtt(&self, check: &mut impl FnMut(&str, String, String, bool)) {
        let lengths = self
            .states
            .windows(2)
            .filter(|pair| pair[0].1 == PROBE_RTT)
            .map(|pair| pair[1].0.saturating_sub(pair[0].0));
        if let Some(least) = lengths.min() {
            let holds = least >= Duration::from_millis(200);
            check("the shortest ProbeRTT", "at least 0.200 s".to_owned(), seconds(least), holds);
        }
        let begins: Vec<Duration> = self
            .states
            .iter()
            .filter(|(_, state)| *state == PROBE_RTT)
            .map(|(at, _)| *at)
            .collect();
        let gaps = begins.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        if let Some(least) = gaps.min() {
            let holds = least >= Duration::from_secs(5);
            check(
                "the shortest time from one ProbeRTT to the next",
                "at least ProbeRTTInterval, 5 s".to_owned(),
                seconds(least),
                holds,
            );
        }
    }

    /// The pacing rate of ProbeBW_CRUISE over the path's, and the window's least value.
    fn judge_path(&self, path: &BbrPath, check: &mut impl FnMut(&str, String, String, bool)) {
        let state_at = |time: Duration| {
            let after = self.states.partition_point(|(at, _)| *at <= time);
            after.checked_sub(1).and_then(|at| self.states.get(at)).map(|(_, state)| *state)
        };
        let mut cruising: Vec<u64> = self
            .rates
            .iter()
            .filter(|(at, _)| state_at(*at) == Some(CRUISE))
            .map(|(_, rate)| *rate)
            .collect();
        cruising.sort_unstable();
        if let Some(&median) = cruising.get(cruising.len() / 2) {
            let share = median as f64 / path.rate as f64;
            check(
                "the median pacing rate in ProbeBW_CRUISE over the path's rate",
                "0.90 to 1.02".to_owned(),
                format!("{share:.3}"),
                (0.90..=1.02).contains(&share),
            );
        }
        let settled = |at: Duration| state_at(at).is_some_and(|state| (DOWN..=UP).contains(&state));
        let least =
            self.windows.iter().filter(|(at, _)| settled(*at)).map(|(_, window)| *window).min();
        if let Some(least) = least {
            check(
                "the least window in ProbeBW, in bytes",
                "at least 4 datagrams of 1,200".to_owned(),
                least.to_string(),
                least >= 4 * 1_200,
            );
        }
        let startup = self
            .states
            .iter()
            .find(|(_, state)| *state == DRAIN)
            .map(|(drain, _)| self.flights.iter().filter(move |(at, _)| at <= drain));
        if let Some(most) = startup.and_then(|flights| flights.map(|(_, flight)| *flight).max()) {
            let bound = 3 * path.bdp() + 60 * 1_500;
            check(
                "the largest flight in Startup, in bytes",
                format!("at most {bound}: 2 BDP, aggregation and the quantum"),
                most.to_string(),
                most <= bound,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_stacks_are_understood() {
        for (text, state) in [
            ("bbr_startup", STARTUP),
            ("ProbeBW_UP", UP),
            ("probe_bw_up", UP),
            ("bbr_probe_bw_down", DOWN),
            ("probe_bw_cruise", CRUISE),
            ("ProbeBwRefill", REFILL),
            ("probe_rtt", PROBE_RTT),
            ("Drain", DRAIN),
        ] {
            assert_eq!(state_of(text), Some(state), "{text}");
        }
        assert_eq!(state_of("slow_start"), None);
        assert_eq!(state_of("recovery"), None);
    }

    fn log(states: &[(u64, u64)]) -> BbrLog {
        let states = states.iter().map(|&(ms, state)| (Duration::from_millis(ms), state)).collect();
        BbrLog { states, ..BbrLog::default() }
    }

    fn failed(log: &BbrLog) -> Vec<String> {
        log.judge(None, None)
            .into_iter()
            .filter(|check| !check.holds)
            .map(|check| check.what)
            .collect()
    }

    #[test]
    fn transitions_and_probes_of_rtt_are_judged() {
        let good = [
            (0, STARTUP),
            (100, DRAIN),
            (120, DOWN),
            (130, CRUISE),
            (5_100, PROBE_RTT),
            (5_350, CRUISE),
        ];
        assert_eq!(failed(&log(&good)), [""; 0]);
        let short = [(0, STARTUP), (100, DRAIN), (120, DOWN), (5_100, PROBE_RTT), (5_150, CRUISE)];
        assert_eq!(failed(&log(&short)), ["the shortest ProbeRTT"]);
        // Drain is followed by DOWN.
        assert_eq!(failed(&log(&[(0, STARTUP), (100, DRAIN), (200, UP)])), ["transitions"]);
        let soon =
            [(0, STARTUP), (100, PROBE_RTT), (400, STARTUP), (2_000, PROBE_RTT), (2_300, STARTUP)];
        assert_eq!(failed(&log(&soon)), ["the shortest time from one ProbeRTT to the next"]);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        assert!(matches!(read_log(b"hello"), Err(JudgeError::NotQlog(_))));
        assert!(matches!(read_log(b""), Err(JudgeError::NotQlog(_))));
        let other = b"{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON\",\"traces\":[{\"common_fields\":{\"time_format\":\"relative\",\"reference_time\":0},\"vantage_point\":{\"type\":\"client\"},\"events\":[{\"time\":1,\"name\":\"recovery:congestion_state_updated\",\"data\":{\"new\":\"slow_start\"}}]}]}";
        assert_eq!(
            read_log(other).unwrap_err(),
            JudgeError::NoStates { found: vec!["slow_start".to_owned()] }
        );
    }
}
