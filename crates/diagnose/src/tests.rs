//! Hand-made connections, packet by packet.

use packet::wire::Endpoints;
use packet::{Dir, Flags, Options, SackBlock, SackBlocks, Segment, SynOptions, Timestamps};
use units::{Instant, SeqNum};

use crate::capture_point::CapturePoint;
use crate::{
    Analysis, AnalysisSettings, CapturedPacket, ConnectionAnalyzer, Limiter, TimeBudget, Timeline,
};

/// A connection described by a test: times in microseconds, offsets relative to the first byte.
pub(crate) struct TestConnection {
    connection: ConnectionAnalyzer,
    frame: u64,
    stamps: bool,
    mss: u16,
    /// The client's packets are numbered in the IPv4 header.
    pub(crate) numbered: bool,
    pub(crate) id: u16,
    /// Bytes of the requests so far.
    requested: u32,
    /// Time to live of each host's packets.
    pub(crate) ttl: [u8; 2],
}

mod lost_flights;
mod paths;
mod rests;
mod wild;

pub(crate) const ISN: u32 = 0xffff_ff00;

impl TestConnection {
    pub(crate) fn new() -> Self {
        let ends =
            Endpoints { src: ([10, 0, 0, 1], 40_000).into(), dst: ([10, 0, 0, 2], 5_001).into() };
        Self {
            connection: ConnectionAnalyzer::new(ends, 0, AnalysisSettings::default()),
            frame: 0,
            stamps: false,
            mss: 1_000,
            numbered: false,
            id: 0,
            requested: 0,
            ttl: [0; 2],
        }
    }

    pub(crate) fn push(&mut self, us: u64, mut segment: Segment, stamps: (u32, u32)) {
        self.frame += 1;
        if self.stamps {
            segment.timestamps = Some(Timestamps { val: stamps.0, ecr: stamps.1 });
        }
        let at = Instant::from_nanos(us * 1_000);
        self.id = self.id.wrapping_add(u16::from(segment.dir == Dir::Forward));
        let id = if segment.dir == Dir::Forward && self.numbered { self.id } else { 0 };
        let packet = CapturedPacket {
            at,
            frame: self.frame,
            segment,
            captured: 100,
            id,
            ttl: self.ttl[segment.dir as usize],
            options_cut: false,
        };
        self.connection.push(&packet);
    }

    /// The handshake captured at the sender, with an RTT of `rtt`.
    pub(crate) fn open(&mut self, rtt: u64) {
        self.open_at(0, rtt);
    }

    pub(crate) fn open_at(&mut self, us: u64, rtt: u64) {
        let syn = self.syn(us);
        let flags = Flags::SYN | Flags::ACK;
        self.push(us + rtt, Segment { flags, dir: Dir::Reverse, ..syn }, (0, 0));
        self.push(us + rtt + 10, Segment { flags: Flags::ACK, ..Segment::default() }, (0, 0));
    }

    /// The handshake captured between the hosts, with these round trips to the receiver and to the
    /// sender.
    pub(crate) fn open_between(&mut self, to_receiver: u64, behind: u64) {
        let syn = self.syn(0);
        let flags = Flags::SYN | Flags::ACK;
        self.push(to_receiver, Segment { flags, dir: Dir::Reverse, ..syn }, (0, 0));
        self.push(
            to_receiver + behind,
            Segment { flags: Flags::ACK, ..Segment::default() },
            (0, 0),
        );
    }

    pub(crate) fn syn(&mut self, us: u64) -> Segment {
        let options = Options::Syn(SynOptions {
            mss: self.mss,
            window_scale: Some(4),
            sack_permitted: true,
            ..SynOptions::default()
        });
        let syn = Segment { flags: Flags::SYN, seq: SeqNum(ISN), options, ..Segment::default() };
        self.push(us, syn, (0, 0));
        syn
    }

    /// The number that acknowledges all requests; 0 without any.
    const fn acked_requests(&self) -> SeqNum {
        match self.requested {
            0 => SeqNum(0),
            bytes => SeqNum(ISN.wrapping_add(1).wrapping_add(bytes)),
        }
    }

    pub(crate) fn data(&mut self, us: u64, place: u64, len: u32) {
        let seq = SeqNum(ISN.wrapping_add(1).wrapping_add(place as u32));
        let (flags, ack) = (Flags::ACK, self.acked_requests());
        let data = Segment { flags, seq, ack, payload: len, ..Segment::default() };
        self.push(us, data, ((us / 1_000) as u32, 0));
    }

    pub(crate) fn pushed(&mut self, us: u64, place: u64, len: u32) {
        let seq = SeqNum(ISN.wrapping_add(1).wrapping_add(place as u32));
        let (flags, ack) = (Flags::ACK | Flags::PSH, self.acked_requests());
        let data = Segment { flags, seq, ack, payload: len, ..Segment::default() };
        self.push(us, data, ((us / 1_000) as u32, 0));
    }

    /// Data of a sender that has reduced its window; `ce`: a queue marked them.
    pub(crate) fn reduced(&mut self, us: u64, place: u64, len: u32, ce: bool) {
        let seq = SeqNum(ISN.wrapping_add(1).wrapping_add(place as u32));
        let flags = Flags::ACK | Flags::CWR;
        let ecn = if ce { 3 } else { 2 };
        let data = Segment { flags, seq, payload: len, ecn, ..Segment::default() };
        self.push(us, data, ((us / 1_000) as u32, 0));
    }

    /// An ACK that echoes a mark.
    pub(crate) fn echo(&mut self, us: u64, place: u64) {
        let ack = SeqNum(ISN.wrapping_add(1).wrapping_add(place as u32));
        let flags = Flags::ACK | Flags::ECE;
        let echo =
            Segment { dir: Dir::Reverse, flags, ack, window: 60_000 >> 4, ..Segment::default() };
        self.push(us, echo, ((us / 1_000) as u32, 0));
    }

    pub(crate) fn ack(&mut self, us: u64, place: u64, blocks: &[(u64, u64)]) {
        self.ack_window(us, place, blocks, 60_000);
    }

    pub(crate) fn ack_window(&mut self, us: u64, place: u64, blocks: &[(u64, u64)], window: u64) {
        let seq = |place: u64| SeqNum(ISN.wrapping_add(1).wrapping_add(place as u32));
        let mut sack = SackBlocks::EMPTY;
        for &(left, right) in blocks {
            sack.push(SackBlock { left: seq(left), right: seq(right) });
        }
        let ack = Segment {
            dir: Dir::Reverse,
            flags: Flags::ACK,
            ack: seq(place),
            window: (window >> 4) as u16,
            options: sack.into(),
            ..Segment::default()
        };
        self.push(us, ack, ((us / 1_000) as u32, 0));
    }

    pub(crate) fn state(&mut self, sample: &crate::StateSample) {
        self.connection.push_state(sample);
    }

    pub(crate) fn finish(self) -> Analysis {
        self.connection.finish()
    }

    /// Data of the server, below those of the client.
    pub(crate) fn request(&mut self, us: u64, acked: u64) {
        let ack = SeqNum(ISN.wrapping_add(1).wrapping_add(acked as u32));
        let flags = Flags::ACK | Flags::PSH;
        let seq = SeqNum(ISN.wrapping_add(1).wrapping_add(self.requested));
        self.requested += 20;
        let data = Segment {
            dir: Dir::Reverse,
            flags,
            seq,
            ack,
            payload: 20,
            window: 60_000 >> 4,
            ..Segment::default()
        };
        self.push(us, data, ((us / 1_000) as u32, 0));
    }
}

fn budget(analysis: &Analysis) -> TimeBudget {
    let budget = Timeline::of(analysis.main().unwrap()).budget;
    assert_eq!(budget.whole(), analysis.duration());
    budget
}

/// The MSS option may be smaller than the timestamps option.
#[test]
fn an_absurd_segment_size_is_no_reason_to_stop() {
    let mut script = TestConnection::new();
    script.mss = 3;
    script.stamps = true;
    script.open(50_000);
    script.data(60_000, 0, 1_000);
    script.ack(110_000, 1_000, &[]);
    let analysis = script.finish();
    assert_eq!(analysis.main().map(|flow| (flow.mss, flow.bytes)), Some((1, 1_000)));
}

/// A capture of several NIC queues has packets out of order in time; a damaged one has any times.
#[test]
fn time_runs_on_where_stamps_run_back() {
    let mut script = TestConnection::new();
    script.open(50_000);
    script.data(60_000, 0, 1_000);
    script.ack(110_000, 1_000, &[]);
    script.data(100_000, 1_000, 1_000);
    script.ack(u64::MAX / 1_000, 2_000, &[]);
    script.data(0, 2_000, 1_000);
    script.ack(1, 3_000, &[]);
    let analysis = script.finish();
    assert_eq!(analysis.main().unwrap().bytes, 3_000);
    assert!(analysis.first <= analysis.last);
    let _ = budget(&analysis);
}

#[test]
fn a_lost_packet_is_retransmitted() {
    let mut script = TestConnection::new();
    script.open(50_000);
    for n in 0..5 {
        script.data(50_020 + n, n * 1_000, 1_000);
    }
    // The second is lost; SACK reports the others, it is retransmitted, and all is acknowledged.
    script.ack(100_020, 1_000, &[]);
    script.ack(100_022, 1_000, &[(2_000, 3_000)]);
    script.ack(100_024, 1_000, &[(2_000, 5_000)]);
    script.data(100_030, 1_000, 1_000);
    script.ack(150_040, 5_000, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!(flow.point, CapturePoint::Sender);
    assert_eq!((flow.mss, flow.bytes), (1_000, 5_000));
    assert_eq!((flow.counts.new, flow.counts.retransmitted, flow.counts.spurious), (5, 1, 0));
    assert_eq!(flow.reordering.packets, 0);
    assert_eq!(flow.episodes.len(), 1);
    let budget = budget(&analysis);
    assert_eq!(budget.of(Limiter::Handshake).as_nanos(), 50_020_000);
    assert_eq!(budget.of(Limiter::Recovery).as_nanos(), 50_010_000);
}

/// Round trips of 20 ms to the receiver and 30 ms to the sender; a queue lengthens the first.
#[test]
fn between_the_hosts_the_round_trip_has_two_parts() {
    let mut script = TestConnection::new();
    script.open_between(20_000, 30_000);
    script.data(50_000, 0, 1_000);
    script.ack(70_000, 1_000, &[]);
    script.data(100_000, 1_000, 1_000);
    script.ack(165_000, 2_000, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!(flow.point, CapturePoint::Middle);
    let (shortest, _, longest) = flow.rtt.unwrap();
    assert_eq!((shortest.as_millis(), longest.as_millis()), (50, 95));
}

#[test]
fn a_late_packet_is_no_loss() {
    let mut script = TestConnection::new();
    script.open(50_000);
    for n in 0..4 {
        script.data(50_020 + n, n * 1_000, 1_000);
    }
    // Packet 3 and 4 overtake packet 2.
    script.ack(100_020, 1_000, &[]);
    script.ack(100_022, 1_000, &[(2_000, 3_000)]);
    script.ack(100_024, 1_000, &[(2_000, 4_000)]);
    script.ack(100_026, 4_000, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.counts.new, flow.counts.retransmitted), (4, 0));
    assert_eq!((flow.reordering.packets, flow.reordering.extent), (1, 3_000));
}

/// RFC 2883 section 4: the first block of a D-SACK is below the cumulative ACK.
#[test]
fn a_dsack_reports_a_spurious_retransmission() {
    let mut script = TestConnection::new();
    script.open(50_000);
    for n in 0..4 {
        script.data(50_020 + n, n * 1_000, 1_000);
    }
    script.ack(100_020, 0, &[(1_000, 2_000)]);
    script.ack(100_022, 0, &[(1_000, 4_000)]);
    script.data(100_030, 0, 1_000);
    script.ack(140_040, 4_000, &[]);
    script.ack(150_040, 4_000, &[(0, 1_000)]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.counts.retransmitted, flow.counts.spurious), (1, 1));
    assert_eq!(flow.counts.unexplained_duplicates, 0);
    assert_eq!(flow.episodes[0].spurious, 1);
}

/// RFC 3522: the ACK echoes the first copy's timestamp.
#[test]
fn an_old_echo_reveals_a_spurious_retransmission() {
    let mut script = TestConnection::new();
    script.stamps = true;
    script.open(50_000);
    // A segment less twelve bytes of timestamps.
    script.data(50_020, 0, 988);
    script.data(400_000, 0, 988);
    script.ack(420_000, 988, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.counts.retransmitted, flow.counts.spurious), (1, 1));
}

#[test]
fn a_full_receive_window_limits_the_sender() {
    let mut script = TestConnection::new();
    script.open(50_000);
    script.ack_window(50_015, 0, &[], 4_000);
    for round in 0..20_u64 {
        let at = 50_020 + round * 50_100;
        for n in 0..4 {
            script.data(at + n, (round * 4 + n) * 1_000, 1_000);
        }
        script.ack_window(at + 50_050, (round + 1) * 4_000, &[], 4_000);
    }
    let analysis = script.finish();
    let budget = budget(&analysis);
    assert!(budget.of(Limiter::Rwnd) * 10 > budget.whole() * 8, "{budget:?}");
}

#[test]
fn application_pauses_and_idle_times_differ() {
    let mut script = TestConnection::new();
    script.open(20_000);
    let mut at = 20_020;
    for n in 0..10_u64 {
        script.pushed(at, n * 700, 700);
        script.ack(at + 20_000, (n + 1) * 700, &[]);
        at += 100_000;
    }
    at += 2_000_000;
    script.pushed(at, 7_000, 700);
    script.ack(at + 20_000, 7_700, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!(flow.pauses, 9);
    let budget = budget(&analysis);
    // Nine pauses with the messages before them, and the two messages before idle times: 700 B fill
    // no window.
    assert_eq!(budget.of(Limiter::Application).as_nanos(), 9 * 100_000_000 + 2 * 20_000_000);
    // From the ACK to the next write.
    assert_eq!(budget.of(Limiter::Idle).as_nanos(), 2_080_000_000);
}

#[test]
fn a_capture_that_begins_in_the_middle() {
    let mut script = TestConnection::new();
    for round in 0..300_u64 {
        let at = round * 10_000;
        script.data(at, round * 2_000, 1_000);
        script.data(at + 10, round * 2_000 + 1_000, 1_000);
        script.ack(at + 9_000, round * 2_000 + 2_000, &[]);
    }
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.bytes, flow.counts.new, flow.counts.retransmitted), (600_000, 600, 0));
    assert_eq!(flow.window, None, "its scale is not known");
    budget(&analysis);
}

#[test]
fn acknowledged_but_never_seen() {
    let mut script = TestConnection::new();
    script.open(10_000);
    script.data(10_020, 0, 1_000);
    script.ack(20_020, 3_000, &[]);
    let analysis = script.finish();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.bytes, flow.unseen, flow.counts.new), (3_000, 2_000, 1));
}

#[test]
fn no_packets_and_one_direction_alone() {
    let analysis = TestConnection::new().finish();
    assert!(analysis.main().is_none());
    let mut script = TestConnection::new();
    script.ack(0, 5_000, &[]);
    script.ack(10, 6_000, &[]);
    assert!(script.finish().main().is_none());
    let mut script = TestConnection::new();
    script.data(0, 5_000, 1_000);
    script.data(10_000, 6_000, 1_000);
    let analysis = script.finish();
    assert_eq!(analysis.main().unwrap().bytes, 2_000);
    budget(&analysis);
}

mod any_packets {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For any packets: no panic, and the time budget adds up to the duration.
        #[test]
        fn the_budget_adds_up_to_the_duration(
            opening in any::<bool>(),
            stamps in any::<bool>(),
            steps in proptest::collection::vec(
                (0_u64..300_000, 0_u64..40, 0_u32..3, any::<bool>(), 0_u64..40, 0_u64..5),
                0..400,
            ),
        ) {
            let mut script = TestConnection::new();
            script.stamps = stamps;
            if opening {
                script.open(30_000);
            }
            let mut at = 30_020;
            for (gap, place, kind, push, right, window) in steps {
                at += if gap < 200_000 { gap / 1_000 } else { gap };
                match kind {
                    0 if push => script.pushed(at, place * 500, 1_000),
                    0 => script.data(at, place * 1_000, 1_000),
                    1 => script.ack_window(at, place * 1_000, &[], window * 10_000),
                    _ => script.ack(at, place * 1_000, &[(right * 1_000, right * 1_000 + 2_000)]),
                }
            }
            let analysis = script.finish();
            if let Some(exchange) = &analysis.exchange {
                prop_assert_eq!(exchange.whole(), analysis.duration());
            }
            for flow in analysis.flows.iter().flatten() {
                let course = Timeline::of(flow);
                prop_assert_eq!(course.budget.whole(), analysis.duration());
                prop_assert!(flow.counts.spurious <= flow.counts.retransmitted);
            }
        }
    }
}
