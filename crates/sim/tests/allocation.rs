//! After warm-up a long transfer does not allocate memory per packet.

#![expect(unsafe_code, reason = "a counting allocator requires unsafe code")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use ackclock_sim as sim;
use common::{MBIT, bulk, host, link, ms, pair, route, us};
use net::link::QueueLimit;
use net::offload::{GroParams, LroParams};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{App, ElementSpec, ReceiveOffloadSpec, Scenario};
use units::{Duration, Instant};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: all calls are forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Reads the counter at every event between two instants.
struct Meter {
    from: Instant,
    to: Instant,
    first: Option<u64>,
    last: u64,
    sent: u64,
}

impl Recorder for Meter {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, _: Option<&SenderState>) {
        if at < self.from || at > self.to {
            return;
        }
        self.last = ALLOCATIONS.load(Ordering::Relaxed);
        self.first.get_or_insert(self.last);
        if let Event::Sent { len, .. } = event {
            self.sent += u64::from(len);
        }
    }
}

impl Observer for Meter {}

/// Allocations between two virtual seconds, and bytes sent in that time.
fn measure(scenario: &Scenario, from: u64, to: u64) -> (u64, u64) {
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let mut meter = Meter { from: at(from), to: at(to), first: None, last: 0, sent: 0 };
    sim::run(scenario, &mut meter).unwrap();
    (meter.last - meter.first.unwrap(), meter.sent)
}

fn long(sender: &str, sink: &str, forward: Vec<ElementSpec>) -> Scenario {
    let hosts = [host("sender", sender), host("sink", sink)];
    let mut scenario = pair(hosts, forward, route(100 * MBIT, ms(10)), bulk(0));
    scenario.flows[0].app = App::Bulk { bytes: None, write: None };
    scenario.duration = Duration::from_secs(25);
    scenario
}

// A single test: the counter is global to the process.
#[test]
fn a_steady_transfer_does_not_allocate_per_packet() {
    let wide = || route(100 * MBIT, ms(10));
    let narrow = || vec![link(100 * MBIT, QueueLimit::Packets(50)), ElementSpec::Delay(ms(10))];
    let mut worlds = vec![
        ("FreeBSD", long("freebsd-13.2", "freebsd-14.3", wide())),
        ("Linux", long("linux-6.18", "linux-6.18", wide())),
        ("FreeBSD with losses", long("freebsd-main", "linux-6.18", narrow())),
        ("Linux with losses", long("linux-6.18", "freebsd-13.2", narrow())),
    ];
    let mut merged = long("freebsd-13.2", "linux-6.18", narrow());
    for (host, receive) in merged.hosts.iter_mut().zip([
        ReceiveOffloadSpec::Lro(LroParams::FREEBSD_14),
        ReceiveOffloadSpec::Gro(GroParams::LINUX),
    ]) {
        host.offload.tso = true;
        host.offload.receive = receive;
        host.delay = us(200);
    }
    worlds.push(("offloads", merged));
    for (name, scenario) in worlds {
        let (allocations, sent) = measure(&scenario, 8, 25);
        let packets = sent / 1_448;
        assert!(packets > 100_000, "{name}: {packets} packets sent");
        // With merging offloads, one buffer grows again per hundred thousand packets.
        let most = u64::from(name == "offloads");
        assert!(allocations <= most, "{name}: {allocations} for {packets} packets");
    }
}
