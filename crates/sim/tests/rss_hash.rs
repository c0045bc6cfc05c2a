//! A receiver whose card reports garbage as the hash that LRO sorts by.

mod common;

use core::num::NonZeroU32;

use ackclock_sim as sim;
use common::{GBIT, bulk, host, ms, pair, route, tcp, us};
use net::offload::LroParams;
use packet::{Dir, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{HashRule, Offload, ReceiveOffloadSpec, TapPoint, TapSpec};
use units::Instant;

/// Payload of a full segment with timestamps.
const MSS: u32 = 1_448;

/// Data delivered to the sink's stack.
#[derive(Default)]
struct Handed {
    /// Number of the first packet of each, from 1, and packets in it.
    data: Vec<(u32, u16)>,
}

impl Recorder for Handed {
    const ON: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl Observer for Handed {
    fn tap(&mut self, _: Instant, _: usize, _: bool, s: &Segment) {
        if s.dir == Dir::Forward && s.payload > 0 {
            // The sender's first byte has sequence number 1.
            self.data.push(((s.seq.0 - 1) / MSS + 1, s.nsegs));
        }
    }
}

/// A first window of ten segments over 1 Gbit/s and 45 ms, through LRO with that hash.
fn first_burst(rss_hash: HashRule) -> Vec<(u32, u16)> {
    let mut hosts = ["sender", "sink"].map(|name| host(name, "freebsd-14.3"));
    tcp(&mut hosts[0]).isn = Some(0);
    let receive = ReceiveOffloadSpec::Lro(LroParams::FREEBSD_14);
    hosts[1].offload = Offload { receive, rss_hash, ..Offload::default() };
    // Ten packets take 120 us: within one interrupt pass.
    hosts[1].delay = us(200);
    // The ACK that ends the handshake is in a pass of its own.
    hosts[0].delay = us(400);
    let way = route(GBIT, us(22_500));
    let mut scenario = pair(hosts, way.clone(), way, bulk(10 * u64::from(MSS)));
    scenario.taps = vec![TapSpec { host: 1, place: TapPoint::Stack }];
    scenario.duration = ms(100);
    let mut handed = Handed::default();
    sim::run(&scenario, &mut handed).unwrap();
    handed.data
}

#[test]
fn a_decreasing_hash_reverses_groups_and_prevents_merging() {
    let four = NonZeroU32::new(4).unwrap();
    let expected = [4, 3, 2, 1, 8, 7, 6, 5, 10, 9].map(|number| (number, 1));
    assert_eq!(first_burst(HashRule::Decreasing(four)), expected);
}

#[test]
fn a_constant_hash_does_no_harm() {
    assert_eq!(first_burst(HashRule::Flow), [(1, 10)]);
    assert_eq!(first_burst(HashRule::Constant(0)), [(1, 10)]);
}

#[test]
fn a_random_hash_shuffles_and_prevents_merging() {
    let mut handed = first_burst(HashRule::Random);
    let order: Vec<u32> = handed.iter().map(|&(number, _)| number).collect();
    assert!(!order.is_sorted(), "{order:?}");
    handed.sort_unstable();
    assert!(handed.into_iter().eq((1..=10).map(|number| (number, 1))));
    // The same seed gives the same result.
    assert!(first_burst(HashRule::Random).into_iter().map(|(number, _)| number).eq(order));
}
