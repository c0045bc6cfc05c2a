//! Queues that thin themselves out, under the load of real senders: what their papers promise.
//! Every run is verified as well.

mod common;

use ackclock_sim as sim;
use common::{MBIT, bulk, host, ms, pair, tcp};
use net::link::Limit;
use net::queue::{Policy, codel, fq_codel, pie, red};
use net::trace::Schedule;
use record::{Event, Movement, PacketNumber, Recorder, SenderState, StationId, Who};
use sim::audit::run_audited;
use sim::scenario::{App, Capacity, Element, Flow, Path, Scenario};
use sim::{Observer, Outcome};
use units::{Bytes, Duration, Instant, Rate};

/// What the first station did from some moment on.
#[derive(Debug)]
struct Watch {
    from: Instant,
    entered: Vec<(PacketNumber, Instant)>,
    /// Nanoseconds that packets were there, the time on the line included.
    stays: Vec<u64>,
    lost: u64,
    marked: u64,
    left: u64,
}

impl Recorder for Watch {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: Who, _: Event, _: Option<&SenderState>) {}

    fn moved(&mut self, at: Instant, movement: Movement) {
        const STATION: StationId = StationId(0);
        match movement {
            Movement::Entered { station: STATION, packet } => self.entered.push((packet, at)),
            Movement::Dropped { station: STATION, packet } => {
                self.entered.retain(|(other, _)| *other != packet);
                self.lost += u64::from(at >= self.from);
            }
            Movement::Marked { station: STATION, .. } => self.marked += u64::from(at >= self.from),
            Movement::Left { station: STATION, packet } => {
                let place = self.entered.iter().position(|(other, _)| *other == packet).unwrap();
                let (_, since) = self.entered.remove(place);
                if at >= self.from {
                    self.left += 1;
                    self.stays.push(at.since(since).as_nanos());
                }
            }
            _ => {}
        }
    }
}

impl Observer for Watch {}

impl Watch {
    /// The stay that so many percent do not exceed.
    fn percentile(&mut self, percent: usize) -> Duration {
        self.stays.sort_unstable();
        Duration::from_nanos(self.stays[(self.stays.len() - 1) * percent / 100])
    }

    fn mean(&self) -> Duration {
        Duration::from_nanos(self.stays.iter().sum::<u64>() / self.stays.len() as u64)
    }
}

fn queue(policy: Policy, limit: Limit) -> Element {
    let capacity = Capacity::Rate(Rate::from_bits_per_second(10 * MBIT).unwrap());
    Element::ManagedLink { capacity, limit, queue: policy }
}

/// `flows` bulk transfers of a minute from one host to another over 10 Mbit/s and 100 ms; the
/// line has room for a second.
fn loaded(policy: Policy, flows: usize, ecn: bool) -> Scenario {
    let mut hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    if ecn {
        hosts.iter_mut().for_each(|host| tcp(host).profile.ecn = tcp::profile::EcnRule::Active);
    }
    let forward = vec![queue(policy, Limit::Packets(833)), Element::Delay(ms(50))];
    let flow = |n: usize| Flow {
        name: format!("bulk {n}"),
        app: App::Bulk { bytes: None, write: None },
        start: ms(37 * n as u64),
        ..bulk(0)
    };
    let mut scenario = pair(hosts, forward, vec![Element::Delay(ms(50))], flow(0));
    scenario.flows = (0..flows).map(flow).collect();
    scenario.duration = Duration::from_secs(60);
    scenario
}

fn watched(scenario: &Scenario) -> (Outcome, Watch) {
    let from = Instant::ZERO + Duration::from_secs(10);
    let mut watch =
        Watch { from, entered: Vec::new(), stays: Vec::new(), lost: 0, marked: 0, left: 0 };
    let (outcome, _) =
        run_audited(scenario, &mut watch).unwrap_or_else(|error| panic!("{error:?}"));
    (outcome, watch)
}

fn utilisation(watch: &Watch) -> f64 {
    // Full packets of 1,500 bytes over 50 s of 10 Mbit/s.
    watch.left as f64 * 1_500.0 * 8.0 / 50.0 / 10e6
}

/// RFC 8289 section 4.3: a target of 5 ms, a twentieth of the round trip of 100 ms, keeps the
/// standing queue there and leaves the line well used; a queue of drop-tail stands at its limit.
#[test]
fn rfc_8289_codel_keeps_the_standing_queue_at_its_target_over_100_ms() {
    let (_, mut plain) = watched(&loaded(Policy::DropTail, 4, false));
    let codel = Policy::CoDel(codel::Params::default());
    let (_, mut managed) = watched(&loaded(codel, 4, false));
    assert!(plain.percentile(50) > ms(500), "{}", plain.percentile(50));
    assert!(managed.percentile(50) < ms(15), "{}", managed.percentile(50));
    assert!(managed.percentile(95) < ms(100), "{}", managed.percentile(95));
    assert!(utilisation(&managed) > 0.85, "{}", utilisation(&managed));
    assert!(managed.lost > 0 && managed.marked == 0);
}

#[test]
fn rfc_3168_connections_with_ecn_are_marked_and_lose_nothing() {
    let fq = fq_codel::Params::default();
    let policies = [
        Policy::CoDel(codel::Params { ecn: true, ..codel::Params::default() }),
        Policy::FqCoDel(fq),
        Policy::Pie(pie::Params { ecn: true, ..pie::Params::default() }),
        Policy::Red(red::Params { ecn: true, max: 50, ..red::Params::default() }),
    ];
    for policy in policies {
        let (outcome, watch) = watched(&loaded(policy, 4, true));
        let resent: u64 = outcome.flows.iter().map(|flow| flow.retransmitted_segments).sum();
        assert!(watch.marked > 10, "{policy:?}: {} marks", watch.marked);
        assert_eq!(watch.lost, 0, "{policy:?}");
        assert!(utilisation(&watch) > 0.85, "{policy:?}: {}", utilisation(&watch));
        // Before the first ten seconds are over a queue may have been full.
        assert!(resent < 2_000, "{policy:?}: {resent}");
        let (_, without) = watched(&loaded(policy, 4, false));
        assert!(without.marked == 0 && without.lost > 10, "{policy:?}");
    }
}

/// RFC 8290 sections 1 and 4.2: flows share the line alike, whatever their round trips; a sparse
/// one hardly waits. With so late a CoDel only the turns count: a single Reno over 100 ms would
/// not use its share with a queue of 5 ms.
#[test]
fn rfc_8290_flows_share_alike_and_a_sparse_one_hardly_waits() {
    let (target, interval) = (ms(100), ms(500));
    let late = codel::Params { target, interval, ecn: false };
    let shares = |policy| {
        let mut scenario = loaded(policy, 2, false);
        let mut near = scenario.hosts[1].clone();
        near.name = "c".into();
        scenario.hosts.push(near);
        // One line for both: 100 ms there and back to `b`, 10 ms to `c`.
        let line = queue(policy, Limit::Packets(833));
        scenario.shared = vec![sim::scenario::Shared { name: "line".into(), element: line }];
        let road = |to, delay| Path {
            from: 0,
            to,
            forward: vec![Element::Shared(0), Element::Delay(ms(delay))],
            reverse: vec![Element::Delay(ms(delay))],
        };
        scenario.paths = vec![road(1, 50), road(2, 5)];
        scenario.flows[1] = Flow { to: 2, path: 1, ..scenario.flows[1].clone() };
        let app = App::Requests {
            request: Bytes(100),
            response: Bytes(100),
            think: ms(100),
            count: None,
        };
        let sparse =
            Flow { name: "sparse".into(), app, nodelay: true, ..scenario.flows[1].clone() };
        scenario.flows.push(sparse);
        let (outcome, _) =
            run_audited(&scenario, &mut record::Off).unwrap_or_else(|error| panic!("{error:?}"));
        let rates: Vec<f64> = outcome.flows.iter().map(sim::FlowOutcome::goodput_bps).collect();
        (rates[0] / rates[1], outcome.flows[2].latency.unwrap().median)
    };
    let fq = fq_codel::Params { codel: late, ..fq_codel::Params::default() };
    let (fair, latency) = shares(Policy::FqCoDel(fq));
    assert!((0.95..=1.05).contains(&fair), "{fair}");
    // 10 ms of the path, and at most the packet on the line and a quantum of each flow.
    assert!(latency <= ms(10 + 4), "{latency}");
    // Without queues of their own, the near one gets more, and the sparse one waits.
    let (unfair, latency) = shares(Policy::CoDel(late));
    assert!(unfair < 0.7 && latency > ms(40), "{unfair} {latency}");
}

/// RFC 8033: "can effectively control the average queuing latency to a target value".
#[test]
fn rfc_8033_pie_holds_the_average_delay_at_its_reference() {
    for (target, flows) in [(15, 5), (15, 10), (30, 10)] {
        let params = pie::Params { target: ms(target), ..pie::Params::default() };
        let (_, watch) = watched(&loaded(Policy::Pie(params), flows, false));
        let mean = watch.mean().as_secs_f64() * 1e3;
        let off = mean / target as f64;
        assert!((0.6..=1.4).contains(&off), "{flows} flows: {mean} ms, not {target}");
        assert!(utilisation(&watch) > 0.85, "{}", utilisation(&watch));
    }
}

/// Floyd and Jacobson 1993, section 1: the average queue stays between the thresholds, though the
/// line has room for many more.
#[test]
fn floyd_jacobson_1993_red_keeps_the_average_queue_between_its_thresholds() {
    let params = red::Params { min: 10, max: 40, ..red::Params::default() };
    let (_, watch) = watched(&loaded(Policy::Red(params), 10, false));
    // 1.2 ms for each packet in front and for itself.
    let packets = watch.mean().as_secs_f64() / 1.2e-3 - 1.0;
    assert!((10.0..=40.0).contains(&packets), "{packets}");
    assert!(watch.lost > 0 && utilisation(&watch) > 0.85, "{}", utilisation(&watch));
}

/// A recording of one opportunity a millisecond is a line of 12 Mbit/s.
#[test]
fn a_line_follows_its_recording() {
    let even = Schedule::new((1..=1_000).collect()).unwrap();
    // All opportunities of 20 ms in the first ten, and one at the end.
    let uneven = Schedule::new((1..=10).flat_map(|at| [at, at]).chain([20]).collect()).unwrap();
    for (schedule, mbits) in [(even, 12.0), (uneven, 12.6)] {
        let mut scenario = loaded(Policy::DropTail, 1, false);
        let (capacity, limit) = (Capacity::Trace(schedule), Limit::Packets(300));
        scenario.paths[0].forward[0] =
            Element::ManagedLink { capacity, limit, queue: Policy::DropTail };
        let (_, watch) = watched(&scenario);
        let rate = watch.left as f64 * 1_500.0 * 8.0 / 50.0 / 1e6;
        assert!(rate > 0.97 * mbits && rate <= mbits + 0.01, "{rate}");
    }
}
