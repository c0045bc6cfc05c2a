//! After warm-up a long transfer allocates nothing for a packet.

#![expect(unsafe_code, reason = "an allocator that counts must be one")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use ackclock_sim as sim;
use common::{MBIT, bulk, host, link, ms, pair, road, us};
use net::link::Limit;
use net::offload::{GroParams, LroParams};
use record::{Event, Recorder, SenderState, Who};
use sim::Observer;
use sim::scenario::{App, Element, Receive, Scenario};
use units::{Duration, Instant};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Reads the counter at every event between two moments.
struct Meter {
    from: Instant,
    to: Instant,
    first: Option<u64>,
    last: u64,
    sent: u64,
}

impl Recorder for Meter {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: Who, event: Event, _: Option<&SenderState>) {
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

fn long(sender: &str, sink: &str, forward: Vec<Element>) -> Scenario {
    let hosts = [host("sender", sender), host("sink", sink)];
    let mut scenario = pair(hosts, forward, road(100 * MBIT, ms(10)), bulk(0));
    scenario.flows[0].app = App::Bulk { bytes: None, write: None };
    scenario.duration = Duration::from_secs(25);
    scenario
}

// One test: the counter belongs to the process.
#[test]
fn a_steady_transfer_allocates_nothing_for_a_packet() {
    let wide = || road(100 * MBIT, ms(10));
    let narrow = || vec![link(100 * MBIT, Limit::Packets(50)), Element::Delay(ms(10))];
    let mut worlds = vec![
        ("FreeBSD", long("freebsd-13.2", "freebsd-14.3", wide())),
        ("Linux", long("linux-6.18", "linux-6.18", wide())),
        ("FreeBSD with losses", long("freebsd-main", "linux-6.18", narrow())),
        ("Linux with losses", long("linux-6.18", "freebsd-13.2", narrow())),
    ];
    let mut merged = long("freebsd-13.2", "linux-6.18", narrow());
    for (host, receive) in merged
        .hosts
        .iter_mut()
        .zip([Receive::Lro(LroParams::FREEBSD_14), Receive::Gro(GroParams::LINUX)])
    {
        host.offload.tso = true;
        host.offload.receive = receive;
        host.delay = us(200);
    }
    worlds.push(("offloads", merged));
    for (name, scenario) in worlds {
        let (allocations, sent) = measure(&scenario, 8, 25);
        let packets = sent / 1_448;
        assert!(packets > 100_000, "{name}: {packets} packets sent");
        // Where offloads merge, one buffer grows once more in a hundred thousand packets.
        let most = u64::from(name == "offloads");
        assert!(allocations <= most, "{name}: {allocations} for {packets} packets");
    }
}
