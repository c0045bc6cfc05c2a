//! Videos and web pages, each run verified, and the latencies of groups.

mod common;

use std::sync::Arc;

use ackclock_sim as sim;
use common::{KBIT, MBIT, bulk, host, link, ms, pair, route};
use net::link::QueueLimit;
use sim::scenario::{
    App, Arrivals, BitrateRule, CDF_WHOLE, ElementSpec, FlowSpec, OutageMode, PageSpec, Scenario,
    TransferSizes, VideoSpec,
};
use sim::{LatencyKind, RunOutcome};
use units::{Bytes, Duration, Rate};

fn run(scenario: &Scenario) -> RunOutcome {
    let audited = sim::audit::run_audited(scenario, &mut record::NullRecorder);
    let outcome = audited.unwrap_or_else(|error| panic!("{error}")).0;
    let packed = sim::run_packing(scenario, &mut record::NullRecorder).unwrap();
    assert_eq!(outcome, packed);
    outcome
}

fn linux_pair(forward: Vec<ElementSpec>, app: App) -> Scenario {
    let hosts = [host("a", "linux-6.18"), host("b", "linux-6.18")];
    let flow = FlowSpec { app, nodelay: true, ..bulk(0) };
    pair(hosts, forward.clone(), forward, flow)
}

/// Two pages of a document and six objects, all of 1 kB.
fn page(connections: u32, streams: u32) -> PageSpec {
    PageSpec {
        html: Bytes(1_000),
        objects: 6,
        sizes: TransferSizes::Cdf([(1_000, CDF_WHOLE)].into()),
        request: Bytes(400),
        connections,
        streams,
        think: ms(500),
        count: Some(2),
    }
}

/// The load times of the two pages, with a round trip of 20 ms and no other time.
fn load_times(connections: u32, streams: u32) -> [Duration; 2] {
    let app = App::Page { page: Arc::new(page(connections, streams)), connection: 0 };
    let mut scenario = linux_pair(vec![ElementSpec::Delay(ms(10))], app);
    scenario.replicate(0, 1, Arrivals::Together, None);
    assert_eq!(scenario.flows.len(), connections as usize);
    let outcome = run(&scenario);
    assert!(outcome.flows.iter().all(|flow| flow.finished));
    assert_eq!(outcome.flows.iter().map(|flow| flow.bytes.get()).sum::<u64>(), 14_000);
    let latency = outcome.group_latencies[0].unwrap();
    assert_eq!((latency.kind, latency.requests), (LatencyKind::Pages, 2));
    [latency.max, latency.min]
}

/// The handshake takes a round trip, as do the document and each object after another.
#[test]
fn one_connection_loads_a_page_object_by_object() {
    assert_eq!(load_times(1, 1), [ms(8 * 20), ms(7 * 20)]);
}

#[test]
fn streams_load_the_objects_of_a_page_at_once() {
    assert_eq!(load_times(1, 6), [ms(3 * 20), ms(2 * 20)]);
    assert_eq!(load_times(1, 3), [ms(4 * 20), ms(3 * 20)]);
}

/// While the five others are opened, the first connection loads an object; on the second page all
/// are open.
#[test]
fn connections_are_opened_after_the_document_and_kept() {
    assert_eq!(load_times(6, 1), [ms(4 * 20), ms(2 * 20)]);
    // Two round trips of objects: one while the other connections open, one with six free slots.
    assert_eq!(load_times(2, 3), [ms(4 * 20), ms(2 * 20)]);
}

#[test]
fn pages_of_several_clients_have_common_percentiles() {
    let app = App::Page { page: Arc::new(page(3, 1)), connection: 0 };
    let mut scenario = linux_pair(route(10 * MBIT, ms(10)), app);
    scenario.replicate(0, 4, Arrivals::Every(ms(70)), None);
    scenario.flows.push(bulk(200_000));
    let outcome = run(&scenario);
    assert_eq!(outcome.flows.len(), 13);
    assert!(outcome.flows.iter().all(|flow| flow.finished));
    let starts: Vec<_> = scenario.flows[..12].iter().map(|flow| flow.start).collect();
    assert_eq!([starts[0], starts[2], starts[3], starts[11]], [0, 0, 70, 210].map(ms));
    assert_eq!(outcome.group_latencies[0].unwrap().requests, 8);
}

/// The run ends although no page is ever loaded.
#[test]
fn an_aborted_connection_ends_its_page() {
    let app = App::Page { page: Arc::new(page(3, 1)), connection: 0 };
    let outage = ElementSpec::Outage {
        from: Duration::ZERO,
        until: Duration::from_secs(100_000),
        period: None,
        during: OutageMode::Drop,
    };
    let mut scenario = linux_pair(vec![outage, ElementSpec::Delay(ms(10))], app);
    scenario.replicate(0, 1, Arrivals::Together, None);
    let outcome = run(&scenario);
    assert!(outcome.ended.as_nanos() < 1_000_000_000_000);
    assert_eq!(outcome.group_latencies, [None]);
}

fn video(ladder: &[u64], chunks: u64) -> VideoSpec {
    let second = Duration::from_secs(1);
    VideoSpec {
        ladder: ladder.iter().map(|rate| Rate::from_bits_per_second(*rate).unwrap()).collect(),
        chunk: second.saturating_mul(2),
        chunks: Some(chunks),
        buffer: second.saturating_mul(10),
        startup: second.saturating_mul(2),
        rule: BitrateRule::Throughput,
        request: Bytes(300),
    }
}

#[test]
fn a_video_on_a_fast_link_plays_at_the_top_of_the_ladder() {
    let spec = video(&[MBIT, 2 * MBIT, 4 * MBIT], 20);
    let scenario = linux_pair(route(50 * MBIT, ms(10)), App::Video(Arc::new(spec)));
    let outcome = run(&scenario);
    let flow = &outcome.flows[0];
    let seen = flow.video.as_deref().unwrap();
    // The first chunk is of the lowest rate, and the next of the highest.
    assert_eq!((seen.chunks, seen.switches, seen.stalls), (20, 1, 0));
    assert_eq!(seen.bitrate_sum, u128::from(MBIT + 19 * 4 * MBIT));
    // Each of 2 s.
    assert_eq!(flow.bytes, Bytes((MBIT + 19 * 4 * MBIT) * 2 / 8));
    assert!(seen.startup[0] < Duration::from_secs(1), "{:?}", seen.startup);
    // 40 s of playing time less the buffer of 10 s, at least.
    assert!(flow.duration > Duration::from_secs(30) && flow.finished);
}

/// A link of half the lowest rate: the last chunk arrives in a stall, when all others have played.
#[test]
fn a_video_above_the_rate_of_the_link_stalls_for_the_rest_of_the_time() {
    let spec = video(&[MBIT, 2 * MBIT], 10);
    let forward = vec![link(500 * KBIT, QueueLimit::Packets(50)), ElementSpec::Delay(ms(10))];
    let scenario = linux_pair(forward, App::Video(Arc::new(spec)));
    let flow = &run(&scenario).flows[0];
    let seen = flow.video.as_deref().unwrap();
    assert_eq!((seen.chunks, seen.switches, seen.stalls), (10, 0, 9));
    assert_eq!(flow.duration, seen.startup[0] + seen.stalled + Duration::from_secs(18));
    // 20 Mbit with headers of 52 bytes on 1,448 take 41 s.
    assert!(flow.duration > Duration::from_secs(41), "{:?}", flow.duration);
}

#[test]
fn the_requests_of_a_group_have_common_percentiles() {
    let requests =
        App::Requests { request: Bytes(100), response: Bytes(1_000), think: ms(5), count: Some(3) };
    let mut scenario = linux_pair(vec![ElementSpec::Delay(ms(10))], requests);
    scenario.replicate(0, 5, Arrivals::Every(ms(3)), None);
    let paced =
        App::Paced { chunk: Bytes(100), every: ms(20), bytes: Some(Bytes(400)), blocking: true };
    scenario.flows.push(FlowSpec { name: "voice".into(), app: paced, ..bulk(0) });
    scenario.replicate(5, 2, Arrivals::Together, None);
    let outcome = run(&scenario);
    let [requests, frames] = outcome.group_latencies[..] else { panic!("two groups") };
    let (requests, frames) = (requests.unwrap(), frames.unwrap());
    assert_eq!((requests.kind, requests.requests), (LatencyKind::Requests, 15));
    assert_eq!((requests.min, requests.p99), (ms(20), Some(ms(20))));
    assert_eq!((frames.kind, frames.requests), (LatencyKind::Frames, 8));
    assert_eq!((frames.min, frames.max), (ms(10), ms(10)));
}
