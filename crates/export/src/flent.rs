//! A run as a data file of flent: what an upload test would have measured, as JSON.
//!
//! Format: flent's documentation, "The Data File Format", version 4. Rates are those of acknowledged
//! payload; `tcp_rtt` is the sender's smoothed round-trip time, `tcp_cwnd` counts segments, as polls of
//! `ss` do. Nothing pings in a run, so there is no series of pings. Times count from the beginning
//! of the run, as if it were 1970.

use record::{Event, EventSource, Recorder, SenderState};
use serde_json::{Map, Value, json};
use sim::Observer;
use sim::scenario::Scenario;
use units::{Duration, Instant};

/// Time between two values, flent's default.
const STEP: Duration = Duration::from_millis(200);
const STEPS_PER_SECOND: f64 = 5.0;
/// The beginning of a run.
const BEGIN: &str = "1970-01-01T00:00:00.000000Z";

/// The state of a sender at the end of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct StepState {
    acked: u64,
    cwnd: u64,
    mss: u64,
    srtt: Option<Duration>,
}

/// Records the senders of all flows.
#[derive(Debug, Clone)]
pub struct FlentRecorder {
    title: String,
    note: String,
    local: String,
    remote: String,
    /// Index of the sending host of each flow.
    senders: Vec<usize>,
    steps: Vec<Vec<StepState>>,
}

impl FlentRecorder {
    /// A recorder for the flows of `scenario`; `note` says what was run.
    pub fn new(scenario: &Scenario, note: &str) -> Self {
        let name = |index: usize| scenario.hosts.get(index).map_or("", |host| host.name.as_str());
        let first = scenario.flows.first();
        Self {
            title: scenario.title.clone(),
            note: note.to_owned(),
            local: first.map_or("", |flow| name(flow.from)).to_owned(),
            remote: first.map_or("", |flow| name(flow.to)).to_owned(),
            senders: scenario.flows.iter().map(|flow| flow.from).collect(),
            steps: vec![Vec::new(); scenario.flows.len()],
        }
    }

    /// The data file.
    pub fn to_json(&self) -> String {
        let steps = self.steps.iter().map(Vec::len).max().unwrap_or(0);
        let time = |step: usize| step as f64 / STEPS_PER_SECOND;
        let (mut results, mut raw) = (Map::new(), Map::new());
        let mut rates: Vec<Vec<Option<f64>>> = Vec::new();
        let only = self.steps.len() == 1;
        for (flow, states) in self.steps.iter().enumerate() {
            let name =
                if only { "TCP upload".to_owned() } else { format!("TCP upload::{}", flow + 1) };
            let before = [StepState::default()];
            let pairs = before.iter().chain(states).zip(states);
            let rate: Vec<Option<f64>> = pairs
                .map(|(one, next)| {
                    Some((next.acked - one.acked) as f64 * 8.0 * STEPS_PER_SECOND / 1e6)
                })
                .collect();
            let rtt: Vec<_> = states.iter().map(|at| at.srtt.map(millis)).collect();
            let cwnd: Vec<_> = states.iter().map(segments).collect();
            let values = (0..states.len()).map(|step| {
                json!({ "t": time(step), "dur": 1.0 / STEPS_PER_SECOND, "val": rate[step],
                        "tcp_cwnd": cwnd[step], "tcp_rtt": rtt[step] })
            });
            raw.insert(name.clone(), values.collect());
            results.insert(format!("{name}::tcp_rtt"), filled(&rtt, steps));
            results.insert(format!("{name}::tcp_cwnd"), filled(&cwnd, steps));
            results.insert(name, filled(&rate, steps));
            rates.push(rate);
        }
        if !only {
            let sum = |step: usize| -> f64 {
                rates.iter().filter_map(|rate| rate.get(step).copied().flatten()).sum()
            };
            let sums: Vec<f64> = (0..steps).map(sum).collect();
            let count = rates.len().max(1) as f64;
            let means: Vec<f64> = sums.iter().map(|sum| sum / count).collect();
            results.insert("TCP upload sum".to_owned(), json!(sums));
            results.insert("TCP upload avg".to_owned(), json!(means));
        }
        let units = results.keys().filter(|name| !name.contains("::tcp_"));
        let units: Map<_, _> =
            units.map(|name| (name.clone(), json!({ "UNITS": "Mbits/s" }))).collect();
        let length = time(steps.saturating_sub(1));
        let file = json!({
            "version": logs::flent::VERSION,
            "x_values": (0..steps).map(time).collect::<Vec<_>>(),
            "results": results,
            "raw_values": raw,
            "metadata": {
                "NAME": if only { "tcp_1up" } else { "tcp_nup" },
                "TITLE": self.title,
                "NOTE": self.note,
                "HOST": self.remote,
                "HOSTS": [self.remote],
                "LOCAL_HOST": self.local,
                "LENGTH": length.ceil(),
                "TOTAL_LENGTH": length.ceil(),
                "STEP_SIZE": 1.0 / STEPS_PER_SECOND,
                "TIME": BEGIN,
                "T0": BEGIN,
                "TEST_PARAMETERS": { "upload_streams": self.steps.len().to_string() },
                "SERIES_META": units,
            },
        });
        format!("{file:#}\n")
    }
}

/// Values up to the end of the longest flow.
fn filled(values: &[Option<f64>], steps: usize) -> Value {
    let missing = core::iter::repeat_n(&None, steps - values.len());
    values.iter().chain(missing).map(|value| json!(value)).collect()
}

fn millis(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e6
}

fn segments(state: &StepState) -> Option<f64> {
    (state.mss > 0).then(|| state.cwnd as f64 / state.mss as f64)
}

impl Recorder for FlentRecorder {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, _: Event, state: Option<&SenderState>) {
        let flow = who.flow.0 as usize;
        if self.senders.get(flow) != Some(&usize::from(who.host.0)) {
            return;
        }
        let (Some(state), Some(steps)) = (state, self.steps.get_mut(flow)) else { return };
        let step = (at.as_nanos() / STEP.as_nanos()) as usize;
        // A step without an event has the state of the last event.
        let last = steps.last().copied().unwrap_or_default();
        steps.resize((step + 1).max(steps.len()), last);
        steps[step] = StepState {
            acked: state.snd_una.0.max(last.acked),
            cwnd: state.cwnd.get(),
            mss: state.mss.get(),
            srtt: state.srtt,
        };
    }
}

impl Observer for FlentRecorder {}
