//! Comparison of the captures at both hosts of the recorded transfers.

use std::fs::File;

use super::*;

pub(super) fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux").join(name)
}

pub(super) fn files(transfer: &str, names: &[&str]) -> Vec<InputFile<'static>> {
    let open = |name: &&str| InputFile {
        name: (*name).to_owned(),
        bytes: Box::new(File::open(golden(transfer).join(name)).unwrap()),
    };
    names.iter().map(open).collect()
}

const BOTH: [&str; 2] = ["sender.pcap.xz", "receiver.pcap.xz"];

#[test]
fn packet_outcomes_match_the_emulator() {
    let fates = std::fs::read_to_string(golden("fates.csv")).unwrap();
    for row in fates.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let (transfer, port) = (cells[0], cells[1].parse::<u16>().unwrap());
        let truth = std::fs::read_to_string(golden(transfer).join("scenario.json")).unwrap();
        let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
        let flows = truth["flows"].as_array().unwrap();
        let flow = flows.iter().find(|flow| flow["sport"] == port).unwrap();
        let reading = read(files(transfer, &BOTH), AnalysisSettings::default()).unwrap();
        let pair = reading
            .pairs
            .iter()
            .find(|pair| reading.streams[pair.near].analysis().ends.src.port() == port)
            .unwrap();
        let offset = pair.offset.unwrap();
        let begins = |index: usize| {
            let file = &reading.files[reading.streams[index].file];
            file.begins.unwrap().as_nanos().cast_signed()
        };
        let ahead = offset.ahead + begins(pair.far) - begins(pair.near);
        let crossing = &pair.transits[0];
        // The columns of golden/linux/fates.csv: packets, retransmitted, spurious, lost.
        let count = |cell: usize| cells[cell].parse::<u64>().unwrap();
        assert_eq!((crossing.lost, crossing.lost_in_part), (count(5), 0), "{transfer}");
        assert_eq!((crossing.duplicated, crossing.unseen), (0, 0), "{transfer}");
        // The recording counts all packets that arrive after later bytes, retransmissions included.
        let behind = flow["arrived_out_of_order"].as_u64().unwrap();
        assert!(behind - crossing.reordered <= count(3), "{transfer}: {}", crossing.reordered);
        // Both captures share a clock; the emulator is slower in one direction by up to 90 us.
        assert!(ahead.abs() < 50_000, "{transfer}: {ahead}");
        assert_eq!(offset.drift, None, "{transfer}");
        let round_trip = truth["path"]["base_rtt_ms"].as_u64().unwrap().cast_signed() * 1_000_000;
        let more = offset.round_trip - round_trip;
        assert!((0..150_000).contains(&more), "{transfer}: {more}");
    }
}

#[test]
fn the_receivers_capture_may_come_first() {
    let there = read(files("f2_few_losses_cubic", &BOTH), AnalysisSettings::default()).unwrap();
    let back = ["receiver.pcap.xz", "sender.pcap.xz"];
    let back = read(files("f2_few_losses_cubic", &back), AnalysisSettings::default()).unwrap();
    let (one, other) = (&there.pairs[0], &back.pairs[0]);
    assert_eq!((one.near, one.far, other.near, other.far), (0, 1, 1, 0));
    assert_eq!(one.transits, other.transits);
    let (one, other) = (one.offset.unwrap(), other.offset.unwrap());
    assert_eq!(
        (one.ahead, one.round_trip, one.matches),
        (other.ahead, other.round_trip, other.matches)
    );
}

/// The outcome of packets `(milliseconds, seq, bytes, timestamp)` between two points.
fn crossing(first: &[(u64, u32, u32, u32)], second: &[(u64, u32, u32, u32)]) -> TwoPointTransit {
    let one = ends(4_000, 80);
    let file = |base: u64, packets: &[(u64, u32, u32, u32)]| {
        let section =
            PcapngSection { epoch: Duration::from_secs(base), ..PcapngSection::default() };
        let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
        let tap = writer.add_interface(&PcapngInterface::default()).unwrap();
        let mut put = |millis: u64, between: &Endpoints, segment: &Segment| {
            let at = Instant::from_nanos(millis * 1_000_000);
            writer
                .segment(
                    PacketMeta { tap, at, way: PacketDirection::In },
                    segment,
                    between,
                    0,
                    Offset(0),
                )
                .unwrap();
        };
        // Ten milliseconds each way.
        let late = if base == 1_000 { 0 } else { 10 };
        put(late, &one, &Segment { flags: SYN, seq: SeqNum(99), ..Segment::default() });
        let (seq, ack) = (SeqNum(7), SeqNum(100));
        put(
            20 - late,
            &one.reversed(),
            &Segment { flags: SYN_ACK, seq, ack, ..Segment::default() },
        );
        for &(millis, seq, payload, stamp) in packets {
            let timestamps = Some(packet::Timestamps { val: stamp, ecr: 0 });
            let seq = SeqNum(seq);
            let data = Segment { flags: ACK, seq, payload, timestamps, ..Segment::default() };
            put(millis, &one, &data);
        }
        writer.finish().unwrap()
    };
    // The second clock is 500 s ahead.
    let (near, far) = (file(1_000, first), file(1_500, second));
    let reading = read(vec![source("near", &near), source("far", &far)], KEEP).unwrap();
    let [pair] = &reading.pairs[..] else { panic!("{}", reading.pairs.len()) };
    let offset = pair.offset.unwrap();
    // Each file counts from its first packet, which is the SYN, 10 ms later at the far point.
    assert_eq!((offset.ahead, offset.round_trip), (-10_000_000, 20_000_000));
    pair.transits[0].clone()
}

#[test]
fn split_and_merged_bursts_are_matched_byte_by_byte() {
    // One burst of 3000; single packets that GRO merges; the middle one is lost and retransmitted.
    let sent = [
        (100, 100, 3_000, 1),
        (101, 3_100, 1_000, 2),
        (102, 4_100, 1_000, 2),
        (103, 5_100, 1_000, 2),
        (150, 4_100, 1_000, 50),
    ];
    let came = [
        (110, 100, 1_000, 1),
        (111, 1_100, 2_000, 1),
        (112, 3_100, 1_000, 2),
        (113, 5_100, 1_000, 2),
        (160, 4_100, 1_000, 50),
    ];
    let found = crossing(&sent, &came);
    let fates: Vec<_> =
        found.fates.iter().map(|fate| (fate.arrived, fate.as_frame, fate.overtaken)).collect();
    let expected =
        [(3_000, 3, false), (1_000, 5, false), (0, 0, false), (1_000, 6, false), (1_000, 7, false)];
    assert_eq!(fates, expected);
    assert_eq!((found.lost, found.lost_in_part, found.reordered), (1, 0, 0));
    assert_eq!((found.duplicated, found.unseen), (0, 0));
}

#[test]
fn duplicated_and_unseen_packets_are_counted() {
    let sent = [(100, 100, 1_000, 1), (101, 1_100, 2_000, 1), (102, 3_100, 1_000, 1)];
    let came = [
        (110, 100, 1_000, 1),
        // Before the previous packet, of which one half is missing; then duplicated.
        (112, 3_100, 1_000, 1),
        (113, 1_100, 1_000, 1),
        (114, 3_100, 1_000, 1),
        (115, 9_100, 1_000, 1),
        (200, 20_100, 10, 1),
    ];
    let found = crossing(&sent, &came);
    assert_eq!((found.lost, found.lost_in_part, found.reordered), (0, 1, 1));
    assert_eq!((found.duplicated, found.unseen), (1, 2));
    assert!(found.fates[1].overtaken);
    assert_eq!(found.delays, Some([10_000_000, 10_000_000, 10_000_000, 12_000_000]));
}

#[test]
fn packets_after_the_end_of_the_second_capture_are_open() {
    let sent = [(100, 100, 1_000, 1), (101, 1_100, 1_000, 1), (200, 2_100, 1_000, 1)];
    let found = crossing(&sent, &[(110, 100, 1_000, 1)]);
    assert!(found.fates[1].open && found.fates[2].open);
    assert_eq!(found.lost, 0);
}
