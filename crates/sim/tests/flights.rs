//! The flights of the freebsd-net post in seed 000: the data that a FreeBSD 13.2 sender with
//! NewReno sends per round trip when the receiver acknowledges a whole flight with one ACK.

mod common;

use ackclock_sim as sim;
use common::{GBIT, bulk, host, ms, pair, route, tcp, us};
use net::offload::LroParams;
use packet::{Dir, Flags, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{Offload, ReceiveOffloadSpec, TapPoint, TapSpec};
use units::Instant;

/// A line of tcpdump: seconds to the millisecond, outbound, flags, sequence and acknowledgment
/// number relative to the initial ones, payload.
type DumpLine = (String, bool, String, u32, u32, u32);

/// Captures as tcpdump on the sender, and records the window after each flight.
#[derive(Default)]
struct Dump {
    lines: Vec<DumpLine>,
    windows: Vec<u16>,
    timestamps: Vec<u32>,
    syn: Option<Segment>,
    /// Congestion window in whole segments at each transmission of data.
    cwnd_at_send: Vec<u64>,
}

impl Recorder for Dump {
    const ON: bool = true;

    fn record(&mut self, _: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if let (Event::Sent { len: 1.., .. }, Some(state), 0) = (event, state, who.host.0) {
            self.cwnd_at_send.push(state.cwnd.get() / state.mss.get());
        }
    }
}

impl Observer for Dump {
    fn tap(&mut self, at: Instant, _: usize, outbound: bool, s: &Segment) {
        let millis = (at.as_nanos() + 500_000) / 1_000_000;
        let when = format!("{}.{:03}", millis / 1_000, millis % 1_000);
        let (isn, irs) = if s.dir == Dir::Forward { (0, 7_000) } else { (7_000, 0) };
        let ack = if s.flags.has(Flags::ACK) { s.ack.0.wrapping_sub(irs) } else { 0 };
        let line = (when, outbound, s.flags.to_string(), s.seq.0.wrapping_sub(isn), ack, s.payload);
        if s.flags == Flags::SYN {
            self.syn = Some(*s);
        }
        self.windows.push(s.window);
        self.timestamps.extend(s.timestamps.map(|stamps| stamps.val));
        self.lines.push(line);
    }
}

fn dump() -> Dump {
    let lro = ReceiveOffloadSpec::Lro(LroParams::FREEBSD_14);
    let mut sender = host("sender", "freebsd-13.2");
    let mut sink = host("sink", "linux-6.18");
    for host in [&mut sender, &mut sink] {
        host.offload = Offload { tso: true, receive: lro, ..Offload::default() };
        host.delay = us(200);
        tcp(host).clock_phase = us(700);
        tcp(host).timestamp = Some(1_000);
    }
    tcp(&mut sender).isn = Some(0);
    tcp(&mut sink).isn = Some(7_000);
    let way = route(100 * GBIT, ms(50));
    let mut scenario = pair([sender, sink], way.clone(), way, bulk(1_000_000));
    scenario.taps = vec![TapSpec { host: 0, place: TapPoint::Stack }];
    let mut dump = Dump::default();
    sim::run(&scenario, &mut dump).unwrap();
    dump
}

#[test]
fn the_first_lines_of_the_post() {
    let dump = dump();
    let line = |when: &str, outbound, flags: &str, seq, ack, len| {
        (when.to_owned(), outbound, flags.to_owned(), seq, ack, len)
    };
    let mail = [
        line("0.000", true, "S", 0, 0, 0),
        line("0.100", false, "S.", 0, 1, 0),
        line("0.100", true, ".", 1, 1, 0),
        line("0.101", true, ".", 1, 1, 14_480),
        line("0.201", false, ".", 1, 14_481, 0),
        line("0.201", true, ".", 14_481, 1, 17_376),
        line("0.301", false, ".", 1, 31_857, 0),
        line("0.301", true, ".", 31_857, 1, 20_272),
        line("0.402", false, ".", 1, 52_129, 0),
        line("0.402", true, "P.", 52_129, 1, 21_500),
        line("0.402", true, ".", 73_629, 1, 1_448),
    ];
    for (got, expected) in dump.lines.iter().zip(&mail) {
        assert_eq!(got, expected);
    }
    assert!(dump.lines.len() > mail.len());
}

#[test]
fn cwnd_is_10_12_14_16_segments() {
    // The fifth segment is sent within the same window as the fourth.
    assert_eq!(dump().cwnd_at_send[..5], [10, 12, 14, 16, 16]);
}

#[test]
fn the_sender_offers_the_options_of_the_post() {
    let dump = dump();
    let syn = dump.syn.unwrap();
    let options = syn.syn_options().unwrap();
    assert_eq!((syn.window, options.mss, options.sack_permitted), (65_535, 1_460, true));
    // The sink's SYN-ACK.
    assert_eq!(dump.windows[1], 65_160);
    // `TS val 495212525` at 0.000, `495212626` in the ACK of the SYN-ACK.
    assert_eq!(dump.timestamps[2] - dump.timestamps[0], 495_212_626 - 495_212_525);
}
