//! Queue disciplines under the load of real senders, against the claims of their papers. The
//! verifier checks every run as well.

mod common;

use ackclock_sim as sim;
use common::{MBIT, bulk, host, ms, pair, tcp};
use net::link::QueueLimit;
use net::queue::{QdiscConfig, codel, fq_codel, pie, red};
use net::trace::LinkTrace;
use record::{ElementId, Event, EventSource, PacketEvent, PacketNumber, Recorder, SenderState};
use sim::audit::run_audited;
use sim::scenario::{App, ElementSpec, FlowSpec, LinkCapacity, PathSpec, Scenario};
use sim::{Observer, RunOutcome};
use units::{Bytes, Duration, Instant, Rate};

/// Statistics of the first element from a given time on.
#[derive(Debug)]
struct QueueStatistics {
    from: Instant,
    entered: Vec<(PacketNumber, Instant)>,
    /// Sojourn times in nanoseconds, transmission included.
    stays: Vec<u64>,
    lost: u64,
    marked: u64,
    left: u64,
}

impl Recorder for QueueStatistics {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        const ELEMENT: ElementId = ElementId(0);
        match movement {
            PacketEvent::Accepted { hop_index: ELEMENT, packet } => self.entered.push((packet, at)),
            PacketEvent::Dropped { hop_index: ELEMENT, packet } => {
                self.entered.retain(|(other, _)| *other != packet);
                self.lost += u64::from(at >= self.from);
            }
            PacketEvent::Marked { hop_index: ELEMENT, .. } => {
                self.marked += u64::from(at >= self.from);
            }
            PacketEvent::Forwarded { hop_index: ELEMENT, packet } => {
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

impl Observer for QueueStatistics {}

impl QueueStatistics {
    /// Returns the sojourn time at that percentile.
    fn percentile(&mut self, percent: usize) -> Duration {
        self.stays.sort_unstable();
        Duration::from_nanos(self.stays[(self.stays.len() - 1) * percent / 100])
    }

    fn mean(&self) -> Duration {
        Duration::from_nanos(self.stays.iter().sum::<u64>() / self.stays.len() as u64)
    }
}

fn queue(policy: QdiscConfig, limit: QueueLimit) -> ElementSpec {
    let capacity = LinkCapacity::Rate(Rate::from_bits_per_second(10 * MBIT).unwrap());
    ElementSpec::LinkWithQdisc { capacity, limit, limits: None, queue: policy }
}

/// `flows` bulk transfers of a minute from one host to another over 10 Mbit/s and 100 ms; the
/// buffer holds a second of data.
fn loaded(policy: QdiscConfig, flows: usize, ecn: bool) -> Scenario {
    let mut hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    if ecn {
        hosts.iter_mut().for_each(|host| tcp(host).profile.ecn = tcp::profile::EcnRule::Active);
    }
    let forward = vec![queue(policy, QueueLimit::Packets(833)), ElementSpec::Delay(ms(50))];
    let flow = |n: usize| FlowSpec {
        name: format!("bulk {n}"),
        app: App::Bulk { bytes: None, write: None },
        start: ms(37 * n as u64),
        ..bulk(0)
    };
    let mut scenario = pair(hosts, forward, vec![ElementSpec::Delay(ms(50))], flow(0));
    scenario.flows = (0..flows).map(flow).collect();
    scenario.duration = Duration::from_secs(60);
    scenario
}

fn watched(scenario: &Scenario) -> (RunOutcome, QueueStatistics) {
    let from = Instant::ZERO + Duration::from_secs(10);
    let mut watch = QueueStatistics {
        from,
        entered: Vec::new(),
        stays: Vec::new(),
        lost: 0,
        marked: 0,
        left: 0,
    };
    let (outcome, _) =
        run_audited(scenario, &mut watch).unwrap_or_else(|error| panic!("{error:?}"));
    (outcome, watch)
}

fn utilisation(watch: &QueueStatistics) -> f64 {
    // Full packets of 1,500 bytes in 50 s at 10 Mbit/s.
    watch.left as f64 * 1_500.0 * 8.0 / 50.0 / 10e6
}

/// RFC 8289 section 4.3: a target of 5 ms, a twentieth of the round-trip time of 100 ms, keeps the
/// standing queue at the target and the line well utilised; a drop-tail queue stays at its limit.
#[test]
fn rfc_8289_codel_keeps_the_standing_queue_at_its_target_over_100_ms() {
    let (_, mut plain) = watched(&loaded(QdiscConfig::DropTail, 4, false));
    let codel = QdiscConfig::CoDel(codel::CoDelParams::default());
    let (_, mut managed) = watched(&loaded(codel, 4, false));
    assert!(plain.percentile(50) > ms(500), "{}", plain.percentile(50));
    assert!(managed.percentile(50) < ms(15), "{}", managed.percentile(50));
    assert!(managed.percentile(95) < ms(100), "{}", managed.percentile(95));
    assert!(utilisation(&managed) > 0.85, "{}", utilisation(&managed));
    assert!(managed.lost > 0 && managed.marked == 0);
}

#[test]
fn rfc_3168_connections_with_ecn_are_marked_without_drops() {
    let fq = fq_codel::FqCoDelParams::default();
    let policies = [
        QdiscConfig::CoDel(codel::CoDelParams { ecn: true, ..codel::CoDelParams::default() }),
        QdiscConfig::FqCoDel(fq),
        QdiscConfig::Pie(pie::PieParams { ecn: true, ..pie::PieParams::default() }),
        QdiscConfig::Red(red::RedParams { ecn: true, max: 50, ..red::RedParams::default() }),
    ];
    for policy in policies {
        let (outcome, watch) = watched(&loaded(policy, 4, true));
        let retransmission: u64 =
            outcome.flows.iter().map(|flow| flow.retransmitted_segments).sum();
        assert!(watch.marked > 10, "{policy:?}: {} marks", watch.marked);
        assert_eq!(watch.lost, 0, "{policy:?}");
        assert!(utilisation(&watch) > 0.85, "{policy:?}: {}", utilisation(&watch));
        // A queue may have been full before the first ten seconds are over.
        assert!(retransmission < 2_000, "{policy:?}: {retransmission}");
        let (_, without) = watched(&loaded(policy, 4, false));
        assert!(without.marked == 0 && without.lost > 10, "{policy:?}");
    }
}

/// RFC 8290 sections 1 and 4.2: flows share the line equally, whatever their round-trip times; a
/// sparse flow hardly waits. With so slow a CoDel only the scheduling matters: a single Reno over
/// 100 ms would not use its share with a queue of 5 ms.
#[test]
fn rfc_8290_flows_share_equally_and_a_sparse_one_hardly_waits() {
    let (target, interval) = (ms(100), ms(500));
    let late = codel::CoDelParams { target, interval, ecn: false };
    let shares = |policy| {
        let mut scenario = loaded(policy, 2, false);
        let mut near = scenario.hosts[1].clone();
        near.name = "c".into();
        scenario.hosts.push(near);
        // One line for both: a round trip of 100 ms to `b`, 10 ms to `c`.
        let line = queue(policy, QueueLimit::Packets(833));
        scenario.shared = vec![sim::scenario::SharedElement { name: "line".into(), element: line }];
        let route = |to, delay| PathSpec {
            from: 0,
            to,
            forward: vec![ElementSpec::Shared(0), ElementSpec::Delay(ms(delay))],
            reverse: vec![ElementSpec::Delay(ms(delay))],
        };
        scenario.paths = vec![route(1, 50), route(2, 5)];
        scenario.flows[1] = FlowSpec { to: 2, path: 1, ..scenario.flows[1].clone() };
        let app = App::Requests {
            request: Bytes(100),
            response: Bytes(100),
            think: ms(100),
            count: None,
        };
        let sparse =
            FlowSpec { name: "sparse".into(), app, nodelay: true, ..scenario.flows[1].clone() };
        scenario.flows.push(sparse);
        let (outcome, _) = run_audited(&scenario, &mut record::NullRecorder)
            .unwrap_or_else(|error| panic!("{error:?}"));
        let rates: Vec<f64> = outcome.flows.iter().map(sim::FlowOutcome::goodput_bps).collect();
        (rates[0] / rates[1], outcome.flows[2].latency.unwrap().median)
    };
    let fq = fq_codel::FqCoDelParams { codel: late, ..fq_codel::FqCoDelParams::default() };
    let (fair, latency) = shares(QdiscConfig::FqCoDel(fq));
    assert!((0.95..=1.05).contains(&fair), "{fair}");
    // 10 ms of the path, and at most the packet in transmission and a quantum of each flow.
    assert!(latency <= ms(10 + 4), "{latency}");
    // Without flow queues, the nearer flow gets more, and the sparse one waits.
    let (unfair, latency) = shares(QdiscConfig::CoDel(late));
    assert!(unfair < 0.7 && latency > ms(40), "{unfair} {latency}");
}

/// RFC 8033: "can effectively control the average queuing latency to a target value".
#[test]
fn rfc_8033_pie_holds_the_average_delay_at_its_reference() {
    for (target, flows) in [(15, 5), (15, 10), (30, 10)] {
        let params = pie::PieParams { target: ms(target), ..pie::PieParams::default() };
        let (_, watch) = watched(&loaded(QdiscConfig::Pie(params), flows, false));
        let mean = watch.mean().as_secs_f64() * 1e3;
        let off = mean / target as f64;
        assert!((0.6..=1.4).contains(&off), "{flows} flows: {mean} ms, not {target}");
        assert!(utilisation(&watch) > 0.85, "{}", utilisation(&watch));
    }
}

/// Floyd and Jacobson 1993, section 1: the average queue stays between the thresholds, though the
/// buffer has space for many more packets.
#[test]
fn floyd_jacobson_1993_red_keeps_the_average_queue_between_its_thresholds() {
    let params = red::RedParams { min: 10, max: 40, ..red::RedParams::default() };
    let (_, watch) = watched(&loaded(QdiscConfig::Red(params), 10, false));
    // 1.2 ms for each packet ahead and for the packet itself.
    let packets = watch.mean().as_secs_f64() / 1.2e-3 - 1.0;
    assert!((10.0..=40.0).contains(&packets), "{packets}");
    assert!(watch.lost > 0 && utilisation(&watch) > 0.85, "{}", utilisation(&watch));
}

/// A trace with one opportunity per millisecond is a line of 12 Mbit/s.
#[test]
fn a_line_follows_its_trace() {
    let even = LinkTrace::new((1..=1_000).collect()).unwrap();
    // All opportunities of 20 ms in the first ten, and one at the end.
    let uneven = LinkTrace::new((1..=10).flat_map(|at| [at, at]).chain([20]).collect()).unwrap();
    for (schedule, mbits) in [(even, 12.0), (uneven, 12.6)] {
        let mut scenario = loaded(QdiscConfig::DropTail, 1, false);
        let (capacity, limit) = (LinkCapacity::Trace(schedule), QueueLimit::Packets(300));
        scenario.paths[0].forward[0] = ElementSpec::LinkWithQdisc {
            capacity,
            limit,
            limits: None,
            queue: QdiscConfig::DropTail,
        };
        let (_, watch) = watched(&scenario);
        let rate = watch.left as f64 * 1_500.0 * 8.0 / 50.0 / 1e6;
        assert!(rate > 0.97 * mbits && rate <= mbits + 0.01, "{rate}");
    }
}
