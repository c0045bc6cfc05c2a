//! Chosen columns of the senders of a run over time ([`trace::series`]).

use record::{Event, Recorder, Sender, SenderState, Who};
use sim::Observer;
use sim::scenario::{App, Flow, Scenario};
use trace::series::{Collector, Columns, Thinning};
use units::Instant;

/// What is wanted of each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Columns, in their order.
    pub columns: Columns,
    /// How much is kept.
    pub thinning: Thinning,
}

/// Host whose bytes count, as in [`sim::FlowOutcome`].
pub(crate) fn sender(flow: &Flow) -> usize {
    if matches!(flow.app, App::Requests { .. }) { flow.to } else { flow.from }
}

/// Collects the states of the senders of a run.
#[derive(Debug)]
pub struct SenderSeries {
    senders: Vec<usize>,
    collector: Collector,
}

impl SenderSeries {
    /// For the flows of `scenario`.
    pub fn new(scenario: &Scenario, plan: &Plan) -> Self {
        let names = scenario.flows.iter().map(|flow| flow.name.clone());
        Self {
            senders: scenario.flows.iter().map(sender).collect(),
            collector: Collector::new(plan.columns.clone(), plan.thinning, names),
        }
    }

    /// What was collected.
    pub fn into_collector(self) -> Collector {
        self.collector
    }
}

impl Recorder for SenderSeries {
    const ON: bool = true;

    #[inline(always)]
    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        if let Some(state) = state {
            self.record_sender(at, who, || event, state);
        }
    }

    #[inline(always)]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        _: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        let flow = who.flow.0 as usize;
        if self.senders.get(flow) == Some(&usize::from(who.host.0)) {
            self.collector.add(at, flow, sender);
        }
    }
}

impl Observer for SenderSeries {}

#[cfg(test)]
mod tests {
    use trace::series::Form;
    use units::Duration;

    use super::*;
    use crate::scenario::{Overrides, load};

    /// Has every sender's whole state made, and hands it on.
    struct Whole(SenderSeries);

    impl Recorder for Whole {
        const ON: bool = true;

        fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
            self.0.record(at, who, event, state);
        }
    }

    impl Observer for Whole {}

    /// TCP of both repairs and QUIC, requests too.
    #[test]
    fn what_is_asked_of_a_sender_is_what_its_whole_state_says() {
        let example = include_str!("../../../scenarios/example.toml");
        let quic = include_str!("../../../scenarios/mathis.toml");
        let worlds = (0..40).map(|number| crate::worlds::draw(3, number));
        let all = "snd_una,snd_nxt,snd_max,flight,bytes_in_flight,partial_bytes_acked,pipe,\
            cwnd_bytes,cwnd_mss,flight_mss,ssthresh,snd_wnd,buffered,send_buffer,srtt,rto,pacing,\
            in_recovery";
        let all = all.replace("flight,b", "flight_bytes,b");
        let columns = Columns::parse(&all).unwrap();
        for text in [example, quic].map(str::to_owned).into_iter().chain(worlds) {
            let mut scenario = load(&text, "", &Overrides::default()).unwrap().scenario;
            scenario.duration = scenario.duration.min(Duration::from_millis(500));
            for thinning in [Thinning::None, Thinning::Every(Duration::from_millis(1))] {
                let plan = Plan { columns: columns.clone(), thinning };
                let mut parts = SenderSeries::new(&scenario, &plan);
                let mut whole = Whole(SenderSeries::new(&scenario, &plan));
                sim::run(&scenario, &mut parts).unwrap();
                sim::run(&scenario, &mut whole).unwrap();
                let text = |series: SenderSeries| {
                    let mut csv = Vec::new();
                    series.into_collector().write(Form::Csv, &mut csv).unwrap();
                    String::from_utf8(csv).unwrap()
                };
                assert_eq!(text(parts), text(whole.0), "{}", scenario.title);
            }
        }
    }
}
