//! Logs read back as written, also damaged ones.

use ackclock_trace as trace;
use packet::{
    Flags, IpVersion, Options, SackBlock, SackBlocks, Segment, SynLayout, SynOptions, Timestamps,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use trace::bblog::{
    BblogEvent, BblogItem, BblogPacket, BblogProblemKind, BblogReader, BblogRecord, BblogSection,
    BblogStats, BblogWriter, BlockFault, Hz, StackData, TcpLogBbr, TcpLogBuffer, TcpLogHeader,
    flags,
};
use trace::pcapng::PacketDirection;
use units::{Duration, SeqNum};

const BOOT: i64 = 1_682_985_600_000_000;

fn section(ip: IpVersion) -> BblogSection {
    let (local, remote) = match ip {
        IpVersion::V4 => ("10.0.0.1:49152", "10.0.0.2:5001"),
        IpVersion::V6 => ("[fd00::1]:49152", "[fd00::2]:5001"),
    };
    BblogSection {
        version: Some(9),
        connection: Some(TcpLogHeader {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            boot_micros: BOOT,
            id: "upload".to_owned(),
            reason: "test".to_owned(),
            tag: "t".to_owned(),
            length: 0,
        }),
        dumped: Some(Duration::from_secs(1_682_985_660)),
        stacks: vec![(0, "freebsd".to_owned()), (1, "rack".to_owned())],
        application: "ackclock".to_owned(),
        comment: "a comment".to_owned(),
    }
}

/// Record number `serial`, a millisecond after the previous one.
fn event(serial: u32) -> TcpLogBuffer {
    TcpLogBuffer {
        tv_sec: i64::from(serial / 1_000),
        tv_usec: i64::from(serial % 1_000) * 1_000,
        ticks: serial,
        serial,
        event_id: BblogEvent::RTO.0,
        snd_cwnd: 1_448 * serial,
        ..TcpLogBuffer::default()
    }
}

fn data(serial: u32) -> (TcpLogBuffer, PacketDirection, Segment) {
    let way = if serial.is_multiple_of(3) { PacketDirection::In } else { PacketDirection::Out };
    let event_id = if way == PacketDirection::In { BblogEvent::IN } else { BblogEvent::OUT }.0;
    let segment = Segment {
        flags: Flags::ACK | Flags::PSH,
        seq: SeqNum(1 + 1_448 * serial),
        ack: SeqNum(77),
        payload: 1_448,
        window: 1_026,
        timestamps: Some(Timestamps { val: serial, ecr: 9 }),
        ..Segment::default()
    };
    let info = TcpLogBuffer { event_id, event_flags: flags::HDR, len: 1_448, ..event(serial) };
    (info, way, segment)
}

/// A log of `records` records, every second one with a packet.
fn log(section: &BblogSection, records: std::ops::Range<u32>) -> Vec<u8> {
    let mut writer = BblogWriter::new(Vec::new(), section).unwrap();
    for serial in records {
        if serial.is_multiple_of(2) {
            let (info, way, segment) = data(serial);
            let v6 = section.connection.as_ref().is_some_and(|c| c.local.is_ipv6());
            let ip = if v6 { IpVersion::V6 } else { IpVersion::V4 };
            writer.packet(&info, way, &Segment { ip, ..segment }).unwrap();
        } else {
            writer.event(&event(serial)).unwrap();
        }
    }
    writer.finish().unwrap()
}

struct Read {
    sections: Vec<BblogSection>,
    records: Vec<BblogRecord>,
    problems: Vec<(u64, BblogProblemKind)>,
    loss: BblogStats,
    hz: Option<Hz>,
}

fn read(file: &[u8]) -> Read {
    let mut reader = BblogReader::new(file);
    let (mut sections, mut records, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for item in reader.by_ref() {
        match item.unwrap() {
            BblogItem::Section(section) => sections.push(section),
            BblogItem::Record(record) => records.push(record),
            BblogItem::Problem(problem) => problems.push((problem.offset, problem.kind)),
        }
    }
    Read { sections, records, problems, loss: *reader.loss(), hz: reader.hz() }
}

fn serials(read: &Read) -> Vec<u32> {
    read.records.iter().map(|record| record.info.serial).collect()
}

/// Offsets of the blocks of an intact file, and of its end.
fn blocks(file: &[u8]) -> Vec<usize> {
    let mut at = vec![0];
    while let Some(last) = at.last().copied().filter(|last| *last < file.len()) {
        let len = u32::from_le_bytes(*file[last + 4..].first_chunk().unwrap());
        at.push(last + len as usize);
    }
    at
}

#[test]
fn a_whole_log_reads_back() {
    let section = section(IpVersion::V4);
    let read = read(&log(&section, 0..400));
    assert_eq!(read.sections, [section]);
    assert_eq!(read.problems, []);
    assert_eq!(read.loss, BblogStats { records: 400, ..BblogStats::default() });
    for (serial, record) in (0..).zip(&read.records) {
        let micros = 1_682_985_600_000_000 + u64::from(serial) * 1_000;
        assert_eq!(record.at, Some(Duration::from_micros(micros)));
        if serial % 2 == 0 {
            let (info, way, segment) = data(serial);
            assert_eq!(record.info, info);
            let packet = record.packet.unwrap();
            assert_eq!((packet.way, packet.segment), (way, segment));
            let outward = packet.between.src.to_string() == "10.0.0.1:49152";
            assert_eq!(outward, way == PacketDirection::Out);
        } else {
            assert_eq!((record.info, record.packet), (event(serial), None));
        }
    }
    // A tick a millisecond.
    assert_eq!(read.hz.unwrap().value, Some(1_000));
}

fn segments() -> impl Strategy<Value = (Segment, PacketDirection)> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), 0_u32..60_000);
    let stamps = proptest::option::of((any::<u32>(), any::<u32>()));
    let sack = proptest::collection::vec((any::<u32>(), any::<u32>()), 0..4);
    (numbers, stamps, sack, any::<(bool, bool, bool, u8)>(), 0_u8..15).prop_map(
        |((seq, ack, window, payload), stamps, sack, (syn, v6, inward, flags), scale)| {
            let flags = Flags(flags).without(Flags::SYN);
            let mut blocks = SackBlocks::EMPTY;
            for (left, right) in sack {
                blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
            }
            let options = match syn {
                true => Options::Syn(SynOptions {
                    mss: 1_460,
                    window_scale: Some(scale),
                    sack_permitted: true,
                    layout: SynLayout::FreeBsd,
                    ..SynOptions::default()
                }),
                false => blocks.into(),
            };
            let segment = Segment {
                ip: if v6 { IpVersion::V6 } else { IpVersion::V4 },
                flags: if syn { flags | Flags::SYN } else { flags },
                seq: SeqNum(seq),
                ack: SeqNum(ack),
                payload,
                window,
                timestamps: stamps.map(|(val, ecr)| Timestamps { val, ecr }),
                options,
                ..Segment::default()
            };
            (segment, if inward { PacketDirection::In } else { PacketDirection::Out })
        },
    )
}

/// Fixed cases: damage may by chance leave a block that looks intact.
fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_record_reads_back(
        bytes in proptest::collection::vec(any::<u8>(), TcpLogBuffer::LEN),
        (segment, way) in segments(),
    ) {
        let mut info = TcpLogBuffer::decode(bytes.first_chunk().unwrap());
        // Any time within the range of a timestamp.
        info.tv_sec = info.tv_sec.rem_euclid(1 << 32);
        info.tv_usec = info.tv_usec.rem_euclid(1_000_000);
        info.event_flags |= flags::HDR;
        let bare = TcpLogBuffer { event_flags: info.event_flags & !flags::HDR, ..info };
        let section = section(segment.ip);
        let mut writer = BblogWriter::new(Vec::new(), &section).unwrap();
        writer.packet(&info, way, &segment).unwrap();
        writer.event(&bare).unwrap();
        let read = read(&writer.finish().unwrap());
        prop_assert_eq!(&read.sections, &[section]);
        prop_assert_eq!(read.records[0].info, info);
        let packet = read.records[0].packet;
        prop_assert_eq!(packet.map(|p: BblogPacket| (p.segment, p.way)), Some((segment, way)));
        prop_assert_eq!(read.records[1].info, bare);
    }

    #[test]
    fn damage_loses_the_affected_records_and_one_more(at in 0_usize..40_000, bytes in 1_usize..300) {
        // Any number may by chance look like the length after the cut block; the block then ends
        // within the next one, since the cut is shorter than any block.
        let file = log(&section(IpVersion::V4), 0..100);
        let at = at % file.len();
        let end = (at + bytes).min(file.len());
        let cut = [&file[..at], &file[end..]].concat();
        let starts = blocks(&file);
        // Section header and interface are the first two blocks, record n is block n + 2.
        let touched = |n: usize| starts[n + 2] < end && at < starts[n + 3];
        let read = read(&cut);
        let found = serials(&read);
        let left =
            (0..100).filter(|&n| !touched(n as usize) && (n == 0 || !touched(n as usize - 1)));
        prop_assert!(left.into_iter().all(|n| found.contains(&n)), "{found:?}");
        for info in read.records.iter().map(|record| record.info) {
            let whole = if info.serial % 2 == 0 { data(info.serial).0 } else { event(info.serial) };
            prop_assert_eq!(info, whole);
        }
        // A gap at the end cannot be detected.
        let last = found.last().map_or(0, |last| u64::from(*last) + 1);
        prop_assert_eq!(read.loss.missing, last - read.loss.records);
        prop_assert!(read.problems.iter().all(|(offset, _)| *offset <= cut.len() as u64));
    }
}

#[test]
fn a_missing_first_part_and_a_gap_between_parts_are_reported() {
    let section = section(IpVersion::V4);
    let parts = [log(&section, 50..60), log(&section, 65..70)].concat();
    let read = read(&parts);
    assert_eq!(serials(&read), (50..60).chain(65..70).collect::<Vec<u32>>());
    let kinds: Vec<_> = read.problems.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(
        kinds,
        [
            BblogProblemKind::Late { serial: 50 },
            BblogProblemKind::Gap { from: 59, to: 65, declared: 0 },
        ]
    );
    assert_eq!(read.loss.missing, 50 + 5);
}

#[test]
fn another_connection_is_counted_separately() {
    let one = section(IpVersion::V4);
    let parts = [log(&one, 0..10), log(&section(IpVersion::V6), 0..10)].concat();
    assert_eq!(read(&parts).problems, []);
    assert_eq!(read(&parts).loss.records, 20);
}

#[test]
fn losses_that_the_log_declares_are_counted_once() {
    let mut writer = BblogWriter::new(Vec::new(), &section(IpVersion::V4)).unwrap();
    writer.event(&event(0)).unwrap();
    writer.skipped(3).unwrap();
    writer.event(&event(4)).unwrap();
    writer.skipped(2).unwrap();
    writer.event(&event(5)).unwrap();
    writer.event(&event(5)).unwrap();
    let read = read(&writer.finish().unwrap());
    let kinds: Vec<_> = read.problems.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(
        kinds,
        [
            BblogProblemKind::Gap { from: 0, to: 4, declared: 3 },
            BblogProblemKind::Declared { records: 2 },
            BblogProblemKind::Back { from: 5, to: 5 },
        ]
    );
    assert_eq!((read.loss.missing, read.loss.declared), (3 + 2, 5));
    assert_eq!(kinds[0].to_string(), "record 4 follows record 0: 3 are missing, declared as lost");
}

#[test]
fn unknown_events_are_kept_with_their_number() {
    let mut writer = BblogWriter::new(Vec::new(), &section(IpVersion::V4)).unwrap();
    writer.event(&TcpLogBuffer { event_id: 200, stack_bytes: [7; 104], ..event(0) }).unwrap();
    let read = read(&writer.finish().unwrap());
    assert_eq!(read.records[0].info.event().to_string(), "200");
    assert_eq!(read.records[0].info.stack(), StackData::Unknown([7; 104]));
    assert_eq!((read.loss.unknown_events, read.loss.problems), (1, 0));
}

#[test]
fn stack_data_is_read() {
    let bbr = TcpLogBbr { inflight: 14_480, flex3: 12, ..TcpLogBbr::default() };
    let info = TcpLogBuffer {
        event_id: 29,
        event_flags: flags::STACKINFO,
        stack_id: 1,
        stack_bytes: bbr.encode(),
        ..event(0)
    };
    let mut writer = BblogWriter::new(Vec::new(), &section(IpVersion::V4)).unwrap();
    writer.event(&info).unwrap();
    let read = read(&writer.finish().unwrap());
    assert_eq!(read.records[0].info.stack(), StackData::Bbr(bbr));
    assert_eq!(read.sections[0].srtt_in_micros(1), Some(true));
    assert_eq!(read.sections[0].srtt_in_micros(0), Some(false));
    assert_eq!(read.sections[0].srtt_in_micros(2), None);
}

#[test]
fn a_log_without_its_section_header_is_read() {
    let whole = log(&section(IpVersion::V4), 0..10);
    let file = &whole[blocks(&whole)[1]..];
    let read = read(file);
    assert_eq!(read.loss.records, 10);
    assert_eq!(read.problems, [(0, BblogProblemKind::NoSection)]);
    // Packets have a timestamp, other events only the time since boot.
    assert_eq!(read.records[2].at, Some(Duration::from_micros(1_682_985_600_002_000)));
    assert_eq!(read.records[1].at, None);
}

#[test]
fn a_section_without_a_connection_is_reported_at_its_first_record() {
    let mut writer = BblogWriter::new(Vec::new(), &BblogSection::default()).unwrap();
    writer.event(&event(0)).unwrap();
    writer.event(&event(1)).unwrap();
    let file = writer.finish().unwrap();
    assert_eq!(read(&file).problems, [(0, BblogProblemKind::NoConnection)]);
    assert_eq!(read(&file).records[0].at, None);
    // Another program's section is not a problem.
    let empty = BblogWriter::new(Vec::new(), &BblogSection::default()).unwrap().finish().unwrap();
    let both = [empty, log(&section(IpVersion::V4), 0..3)].concat();
    assert_eq!(read(&both).problems, []);
    assert_eq!(read(&both).loss.records, 3);
}

#[test]
fn other_files_have_no_records() {
    for file in [&b""[..], b"text\n", &[0; 4_000], &[0xff; 4_000]] {
        let read = read(file);
        assert_eq!(read.loss.records, 0);
        assert_eq!(read.loss.skipped_bytes, file.len() as u64);
        let first = read.problems.first().map(|(offset, _)| *offset);
        assert_eq!(first, (!file.is_empty()).then_some(0));
    }
}

#[test]
fn a_record_of_another_size_is_reported_with_its_position() {
    let mut file = log(&section(IpVersion::V4), 0..2);
    let starts = blocks(&file);
    // The length of the option: 268 bytes, and 8 of numbers.
    let at = starts[3] + 18;
    assert_eq!(file[at..at + 2], 276_u16.to_le_bytes());
    file[at..at + 2].copy_from_slice(&272_u16.to_le_bytes());
    let read = read(&file);
    let offset = starts[3] as u64;
    assert_eq!(read.problems[0], (offset, BblogProblemKind::Length { found: 264, expected: 268 }));
    assert_eq!(*read.problems.last().unwrap(), (offset, BblogProblemKind::NoRecord));
}

#[test]
fn a_packet_that_cannot_be_read_leaves_its_record() {
    let mut file = log(&section(IpVersion::V4), 0..1);
    let starts = blocks(&file);
    // After the block's header, the packet's header and the family: the version of the IP header.
    file[starts[2] + 8 + 20 + 4] = 0x95;
    let read = read(&file);
    assert_eq!(read.records[0].info, data(0).0);
    assert_eq!(read.records[0].packet, None);
    let reported = read.problems[0].1.to_string();
    assert!(reported.starts_with("headers of the packet: "), "{reported}");
}

#[test]
fn a_fault_has_a_kind_and_a_position() {
    let whole = log(&section(IpVersion::V4), 0..3);
    let cut = &whole[..whole.len() - 1];
    let last = blocks(&whole)[4];
    let claimed = (whole.len() - last) as u32;
    let bytes = u64::from(claimed) - 1;
    let fault = BlockFault::End { claimed };
    let read = read(cut);
    assert_eq!(read.problems, [(last as u64, BblogProblemKind::Skipped { bytes, fault })]);
    assert_eq!(
        read.problems[0].1.to_string(),
        format!("{bytes} bytes skipped: the file ends within a block of {claimed} bytes")
    );
}

#[test]
fn unrepresentable_records_are_refused() {
    let section = section(IpVersion::V4);
    let mut writer = BblogWriter::new(Vec::new(), &section).unwrap();
    let (info, way, segment) = data(0);
    let kind = |result: std::io::Result<()>| result.unwrap_err().kind();
    let invalid = std::io::ErrorKind::InvalidInput;
    assert_eq!(kind(writer.event(&info)), invalid);
    assert_eq!(kind(writer.packet(&event(0), way, &segment)), invalid);
    let long = Segment { payload: 65_500, ..segment };
    assert_eq!(kind(writer.packet(&info, way, &long)), invalid);
    let early = TcpLogBuffer { tv_sec: i64::MIN, ..info };
    assert_eq!(kind(writer.packet(&early, way, &segment)), invalid);
    let mut unnamed = BblogWriter::new(Vec::new(), &BblogSection::default()).unwrap();
    assert_eq!(kind(unnamed.packet(&info, way, &segment)), invalid);
}
