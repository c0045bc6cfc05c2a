//! Memory use: per idle connection that has sent data, per connection not yet started, and per
//! packet in flight.

#![expect(unsafe_code, reason = "a counting allocator requires unsafe code")]
#![expect(clippy::print_stdout, reason = "docs/ledger/speed.md lists the figures")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use ackclock_sim as sim;
use common::{GBIT, MBIT, bulk, host, link, ms, pair, route};
use net::link::QueueLimit;
use record::{Event, EventSource, NullRecorder, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{App, ElementSpec, FlowSpec, Scenario};
use units::{Bytes, Duration, Instant};

/// Bytes allocated now.
static LIVE: AtomicI64 = AtomicI64::new(0);

struct Counting;

// SAFETY: all calls are forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LIVE.fetch_add(size as i64 - layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes allocated at the last event, and the largest flight, in bytes.
#[derive(Default)]
struct Meter {
    live: i64,
    flight: u64,
}

impl Recorder for Meter {
    const ON: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, state: Option<&SenderState>) {
        self.live = LIVE.load(Ordering::Relaxed);
        if let Some(state) = state {
            self.flight = self.flight.max(state.in_flight.get());
        }
    }
}

impl Observer for Meter {}

/// Bytes that the world allocates up to its last event, and its largest flight.
fn measure(scenario: &Scenario) -> (i64, u64) {
    let before = LIVE.load(Ordering::Relaxed);
    let mut meter = Meter::default();
    sim::run(scenario, &mut meter).unwrap();
    (meter.live - before, meter.flight)
}

/// Difference in bytes between a world with more flows and one with fewer, per flow.
fn per_flow(worlds: [Scenario; 2]) -> i64 {
    let [few, many] = worlds.map(|world| (measure(&world).0, world.flows.len() as i64));
    (many.0 - few.0) / (many.1 - few.1)
}

/// A number of connections in sequence that each send `bytes` and are then idle for an hour.
fn idle(profile: &str, flows: usize, bytes: u64, apart: Duration) -> Scenario {
    let hosts = [host("sender", profile), host("sink", profile)];
    // A queue so short that large transfers have losses.
    let forward = vec![link(100 * MBIT, QueueLimit::Packets(50)), ElementSpec::Delay(ms(10))];
    let mut scenario = pair(hosts, forward, route(100 * MBIT, ms(10)), bulk(0));
    let app = App::Paced { chunk: Bytes(bytes), every: HOUR, bytes: None, blocking: true };
    // In sequence: memory for simultaneous packets is measured separately.
    let start = |n: usize| apart.saturating_mul(n as u64);
    scenario.flows =
        (0..flows).map(|n| FlowSpec { app: app.clone(), start: start(n), ..bulk(0) }).collect();
    scenario.duration = start(flows) + Duration::from_secs(10);
    scenario
}

/// A connection that sends a little, and a number of others that start after it has finished.
fn not_yet(profile: &str, flows: usize) -> Scenario {
    let mut scenario = idle(profile, flows, 1_000, Duration::ZERO);
    scenario.flows.iter_mut().skip(1).for_each(|flow| flow.start = HOUR);
    scenario
}

const HOUR: Duration = Duration::from_secs(3_600);

/// A transfer at that rate, whose packets are in flight for 100 ms.
fn long(profile: &str, bits_per_second: u64) -> Scenario {
    let hosts = [host("sender", profile), host("sink", profile)];
    let forward = route(bits_per_second, ms(50));
    let mut scenario = pair(hosts, forward, route(bits_per_second, ms(50)), bulk(0));
    scenario.flows[0].app = App::Bulk { bytes: None, write: None };
    scenario.duration = Duration::from_secs(3);
    scenario
}

// A single test: the counter is global to the process.
#[test]
fn memory_per_connection_and_per_packet_is_small() {
    for profile in ["linux-6.18", "freebsd-14.3", "rfc"] {
        let silent = |flows| idle(profile, flows, 1_000, ms(10));
        let time_by_use = |flows| idle(profile, flows, 1_000_000, ms(500));
        let lost =
            sim::run(&time_by_use(1), &mut NullRecorder).unwrap().flows[0].retransmitted_segments;
        assert!(lost > 0, "{profile}: the transfer had no loss");
        let held = [
            per_flow([silent(1_000), silent(3_000)]),
            per_flow([time_by_use(600), time_by_use(800)]),
            per_flow([not_yet(profile, 1_000), not_yet(profile, 3_000)]),
        ];
        println!(
            "{profile}: both ends take {held:?} bytes, idle after 1 kB, after 1 MB, not started"
        );
        for (held, most) in held.into_iter().zip(MOST_PER_FLOW) {
            assert!(held <= most, "{profile}: {held} bytes per connection");
        }
    }
    let (small, large) = (measure(&long("rfc", 10 * MBIT)), measure(&long("rfc", GBIT)));
    let packets = (large.1 - small.1) / 1_448;
    let per_packet = (large.0 - small.0) / packets as i64;
    println!("rfc: {per_packet} bytes per packet in flight, of {packets}");
    assert!(packets > 5_000, "{packets} packets in flight");
    assert!(per_packet <= MOST_PER_PACKET, "{per_packet} bytes per packet, of {packets}");
}

/// Slightly above the measured values (1,163, 1,135 and 1,077 bytes after a small, 1,233, 1,197 and
/// 1,154 after a large transfer, 336 before the start): 97 of them are the arrivals of the frames, which
/// the reader of a paced application notes. The goal is 2,048.
const MOST_PER_FLOW: [i64; 3] = [1_175, 1_260, 345];
/// Slightly above the measured value (91 bytes). The goal is 100. Queues double as they grow: the
/// measurement includes up to twice the capacity in use.
const MOST_PER_PACKET: i64 = 95;
