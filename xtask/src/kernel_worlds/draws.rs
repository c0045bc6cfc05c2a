//! Worlds of one flow whose kernels have BBR version 3: what a kernel drew at random is inferred from its packets.

use std::fmt::Write as _;

use cc::bbr3::ProbeDraw;
use guest::compare::{Difference, Field, PacketRecord, compare};
use packet::Segment;
use record::{Event, EventSource, Recorder, SenderState};
use sim::scenario::StackSpec;
use sim::{Observer, Scenario};
use units::{Duration, Instant};

use crate::probe_draws::{
    DrawTrial, FirstDifference, InferredDraws, MadeDraw, ShownDraws, infer, padded,
};

/// Difference of packet times at which a run stops being equal to the kernel's for the search. A probe at another time
/// changes the spacing of packets before anything else.
const SEARCH_TOLERANCE: Duration = Duration::from_micros(50);
/// Cycles beyond this number are not inferred: a world lasts four minutes at most, and a cycle two seconds at least.
const MOST_DRAWS: usize = 128;

/// The model with the inferred draws.
pub(super) struct InferredWorld {
    pub(super) model: PacketRecord,
    /// The draws used, as text: `HOST ROUNDS:MICROSECONDS ...`.
    pub(super) draws: String,
}

/// The hosts of a world of one flow that have BBR version 3.
pub(super) fn senders(scenario: &Scenario) -> Vec<usize> {
    let [flow] = scenario.flows.as_slice() else { return Vec::new() };
    let mut hosts = vec![flow.from, flow.to];
    hosts.dedup();
    hosts.retain(|&host| {
        let StackSpec::Tcp(stack) = &scenario.hosts[host].stack else { return false };
        stack.cc == cc::Algorithm::Bbr3
    });
    hosts
}

/// Runs the models of a world with the draws with which they are equal to `real` for longest.
///
/// # Errors
/// The model does not run the scenario.
pub(super) fn inferred(scenario: &Scenario, real: &PacketRecord) -> Result<InferredWorld, String> {
    let senders = senders(scenario);
    let InferredDraws { trial, draws } = infer(senders.len(), |draws| {
        let (record, made) = run(scenario, &senders, draws)?;
        let first = first_difference(scenario, &record, real, SEARCH_TOLERANCE);
        Ok::<_, String>(WorldTrial { record, made, first })
    })?;
    let mut text = String::new();
    for (&host, draws) in senders.iter().zip(&draws).filter(|(_, draws)| !draws.is_empty()) {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}{} {}", scenario.hosts[host].name, ShownDraws(draws));
    }
    Ok(InferredWorld { model: trial.record, draws: text })
}

/// Runs the models with these draws of the senders.
fn run(
    scenario: &Scenario,
    senders: &[usize],
    draws: &[Vec<ProbeDraw>],
) -> Result<(PacketRecord, Vec<MadeDraw>), String> {
    let mut scenario = scenario.clone();
    for (&host, draws) in senders.iter().zip(draws) {
        if let StackSpec::Tcp(stack) = &mut scenario.hosts[host].stack {
            stack.profile.bbr3_draws = padded(draws, MOST_DRAWS);
        }
    }
    let packets = PacketRecord::new(&mut scenario, Instant::ZERO);
    let hosts = senders.to_vec();
    let mut record = DrawRecord { packets, counts: vec![0; hosts.len()], hosts, made: Vec::new() };
    let outcome =
        sim::run(&scenario, &mut record).map_err(|_| "the model does not run it".to_owned())?;
    record.packets.end(outcome.ended);
    Ok((record.packets, record.made))
}

/// Where the packets of a world's flow first differ, or are apart in time by more than the tolerance.
pub(super) fn first_difference(
    scenario: &Scenario,
    model: &PacketRecord,
    real: &PacketRecord,
    tolerance: Duration,
) -> Option<FirstDifference> {
    let flow = compare(scenario, model, real, tolerance).pop()?;
    let first =
        [flow.first, flow.first_late].into_iter().flatten().min_by_key(Difference::at_ns)?;
    let at = first.at_ns();
    let [ours, theirs] =
        first.packets.map(|packet| packet.map(|packet| (packet.at_ns, packet.seq)));
    let ahead = ours.is_some_and(|ours| theirs.is_none_or(|theirs| ours.0 < theirs.0));
    let way = if first.forward { "forward" } else { "return" };
    let shown = ours.map_or_else(|| "none".to_owned(), |(at, seq)| format!("{seq} at {at}"));
    let kind = if first.field == Field::Time { "late" } else { "other" };
    Some(FirstDifference {
        at,
        text: format!("{way} packet {} {shown} {kind}", first.index),
        ahead,
    })
}

struct WorldTrial {
    record: PacketRecord,
    made: Vec<MadeDraw>,
    first: Option<FirstDifference>,
}

impl DrawTrial for WorldTrial {
    fn first(&self) -> Option<&FirstDifference> {
        self.first.as_ref()
    }

    fn made(&self) -> &[MadeDraw] {
        &self.made
    }
}

/// Records packets, and when the senders draw.
struct DrawRecord {
    packets: PacketRecord,
    /// The senders' hosts, and the draws that each has made.
    hosts: Vec<usize>,
    counts: Vec<u32>,
    made: Vec<MadeDraw>,
}

impl Recorder for DrawRecord {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.packets.record(at, who, event, state);
        let sender = self.hosts.iter().position(|&host| host == usize::from(who.host.0));
        let bbr = state.and_then(|state| state.bbr);
        if let (Some(sender), Some(bbr)) = (sender, bbr) {
            // One acknowledgment may make two draws.
            let made = MadeDraw { at: at.as_nanos(), sender };
            self.made.extend((self.counts[sender]..bbr.draws).map(|_| made));
            self.counts[sender] = self.counts[sender].max(bbr.draws);
        }
    }
}

impl Observer for DrawRecord {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.packets.tap(at, tap, outbound, segment);
    }
}

#[cfg(test)]
mod tests {
    use scenario::{Overrides, load};

    use super::*;

    /// A model in place of the kernel: its draws are found from its packets alone.
    #[test]
    fn draws_are_inferred_from_packets() {
        let host = "sender";
        let scenario = world(r#"bulk = "20MB""#);
        let drawn = [
            ProbeDraw { rounds: 0, wait_us: 2_345_678 },
            ProbeDraw { rounds: 1, wait_us: 2_456_789 },
        ];
        let sent: Vec<_> = senders(&scenario)
            .iter()
            .map(|&sender| match scenario.hosts[sender].name == host {
                true => drawn.to_vec(),
                false => Vec::new(),
            })
            .collect();
        let (real, made) = run(&scenario, &senders(&scenario), &sent).unwrap();
        assert!(made.len() >= 2, "{made:?}");
        let inferred = inferred(&scenario, &real).unwrap();
        assert_eq!(first_difference(&scenario, &inferred.model, &real, SEARCH_TOLERANCE), None);
        let (name, draws) = inferred.draws.split_once(' ').unwrap();
        let draws: Vec<(u32, u32)> = draws
            .split(' ')
            .map(|draw| {
                let (rounds, wait_us) = draw.split_once(':').unwrap();
                (rounds.parse().unwrap(), wait_us.parse().unwrap())
            })
            .collect();
        assert_eq!(name, host);
        // A probe begins with an acknowledgment, so a wait is known to the time between two of them; that of a
        // cycle which ends otherwise is not known.
        assert!(drawn[0].wait_us.abs_diff(draws[0].1) < 10_000, "{drawn:?} {draws:?}");
    }

    /// A world of several flows has no sender whose draws are looked for, nor has one of another controller.
    #[test]
    fn only_one_flow_with_version_3_is_inferred() {
        let mut scenario = world(r#"bulk = "1MB""#);
        assert_eq!(senders(&scenario), [scenario.flows[0].from, scenario.flows[0].to]);
        scenario.flows.push(scenario.flows[0].clone());
        assert!(senders(&scenario).is_empty());
    }

    fn world(app: &str) -> Scenario {
        let text = format!(
            r#"
            seed = 7
            duration = "60s"
            host.receiver = {{ profile = "linux-6.12", cc = "bbr3" }}
            host.sender = {{ profile = "linux-6.12", cc = "bbr3" }}
            [[path]]
            from = "sender"
            to = "receiver"
            forward = [{{ link = {{ rate = "20Mbit/s", buffer = "150KB" }} }}, {{ delay = "20ms" }}]
            return = [{{ link = {{ rate = "20Mbit/s", buffer = "150KB" }} }}, {{ delay = "20ms" }}]
            [[flow]]
            name = "up"
            from = "sender"
            to = "receiver"
            {app}
            "#
        );
        load(&text, "world", &Overrides::default()).unwrap().scenario
    }
}
