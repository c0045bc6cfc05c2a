//! Tests of hand-made captures: every feature of the formats, and every kind of damage.

use std::io::{self, Read};

use units::Duration;

use super::*;
use crate::blocks::BlockFault;

/// Encodes numbers in a byte order.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
}
use Order::{Big, Little};

impl Order {
    fn words(self, words: &[u32]) -> Vec<u8> {
        let bytes = |word: &u32| match self {
            Little => word.to_le_bytes(),
            Big => word.to_be_bytes(),
        };
        words.iter().flat_map(bytes).collect()
    }

    fn halves(self, halves: &[u16]) -> Vec<u8> {
        let bytes = |half: &u16| match self {
            Little => half.to_le_bytes(),
            Big => half.to_be_bytes(),
        };
        halves.iter().flat_map(bytes).collect()
    }

    fn pcap_header(self, magic: u32, linktype: u32) -> Vec<u8> {
        [self.words(&[magic]), self.halves(&[2, 4]), self.words(&[0, 0, 96, linktype])].concat()
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let len = body.len() as u32 + 12;
        [self.words(&[kind, len]), body, self.words(&[len])].concat()
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [&self.halves(&[code, value.len() as u16])[..], value].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    fn section(self) -> Vec<u8> {
        let body = [self.words(&[0x1a2b_3c4d]), self.halves(&[1, 0]), vec![0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, linktype: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
        let head = [self.halves(&[linktype, 0]), self.words(&[snaplen])].concat();
        self.block(1, &[&head[..], options].concat())
    }

    fn packet(self, interface: u32, stamp: u64, original: u32, data: &[u8]) -> Vec<u8> {
        let stamp = [(stamp >> 32) as u32, stamp as u32];
        let head = self.words(&[interface, stamp[0], stamp[1], data.len() as u32, original]);
        self.block(6, &[&head[..], data].concat())
    }
}

/// The items of a file: frames as (number, nanoseconds, original length, bytes), and problems.
#[derive(Debug, Default, PartialEq)]
struct ReadResult {
    frames: Vec<(u64, Option<u64>, u32, Vec<u8>)>,
    ways: Vec<Option<PacketDirection>>,
    links: Vec<(u32, u16)>,
    problems: Vec<CaptureProblem>,
    interfaces: Vec<CaptureInterface>,
    tally: CaptureStats,
}

fn read(file: &[u8]) -> ReadResult {
    let mut reader = CaptureReader::new(file).expect("a capture");
    let mut reported = ReadResult::default();
    while let Some(item) = reader.next().unwrap() {
        match item {
            CaptureItem::Frame(frame) => {
                let at = frame.at.map(Duration::as_nanos);
                reported.frames.push((frame.number, at, frame.original, frame.bytes.to_vec()));
                reported.ways.push(frame.way);
                reported.links.push((frame.interface, frame.linktype));
            }
            CaptureItem::Problem(problem) => reported.problems.push(problem),
            CaptureItem::Secrets(_) => {}
        }
    }
    reported.interfaces = reader.interfaces().to_vec();
    reported.tally = *reader.tally();
    assert_eq!(reported.tally.frames, reported.frames.len() as u64);
    assert_eq!(reported.tally.problems, reported.problems.len() as u64);
    reported
}

fn problem(offset: u64, kind: CaptureProblemKind) -> CaptureProblem {
    CaptureProblem { offset, kind }
}

#[test]
fn pcap_of_each_magic_and_order() {
    for order in [Little, Big] {
        for (magic, nanos, extra) in [
            (0xa1b2_c3d4, 5_000, 0),
            (0xa1b2_3c4d, 5, 0),
            // Kuznetzov's: interface, protocol and packet type (4: outgoing) after the lengths.
            (0xa1b2_cd34, 5_000, 8),
        ] {
            let more = [&order.words(&[2])[..], &order.halves(&[0x0800]), &[4, 0]].concat();
            let file = [
                order.pcap_header(magic, 101),
                order.words(&[7, 5, 3, 60]),
                more[..extra].to_vec(),
                vec![1, 2, 3],
            ]
            .concat();
            let reported = read(&file);
            let at = Some(7_000_000_000 + nanos);
            assert_eq!(reported.frames, [(1, at, 60, vec![1, 2, 3])], "{magic:x}");
            assert_eq!(reported.links, [(0, 101)]);
            assert_eq!(reported.ways, [(extra > 0).then_some(PacketDirection::Out)]);
            assert_eq!((reported.interfaces[0].snaplen, reported.interfaces[0].frames), (96, 1));
            assert_eq!(reported.problems, []);
        }
    }
}

#[test]
fn lengths_of_old_versions_are_exchanged() {
    let mut file = Little.pcap_header(0xa1b2_c3d4, 1);
    file[6] = 2;
    file.extend([Little.words(&[0, 0, 60, 2]), vec![8, 9]].concat());
    assert_eq!(read(&file).frames, [(1, Some(0), 60, vec![8, 9])]);
}

#[test]
fn the_upper_half_of_a_link_type_is_of_check_sequences() {
    let file = Little.pcap_header(0xa1b2_c3d4, 0x2400_0001);
    assert_eq!(read(&file).interfaces[0].linktype, 1);
}

#[test]
fn a_pcap_that_ends_within_a_frame_reports_the_missing_bytes() {
    let file = [
        Little.pcap_header(0xa1b2_c3d4, 101),
        Little.words(&[1, 0, 2, 2]),
        vec![1, 2],
        Little.words(&[1, 0, 9, 9]),
        vec![3, 4, 5],
    ]
    .concat();
    let reported = read(&file);
    assert_eq!(reported.frames.len(), 1);
    let end = CaptureProblemKind::End { there: 19, expected: 25 };
    assert_eq!(reported.problems, [problem(42, end)]);
    // Within the header of a record, and of the file.
    let end = CaptureProblemKind::End { there: 5, expected: 16 };
    assert_eq!(read(&file[..47]).problems, [problem(42, end)]);
    let end = CaptureProblemKind::End { there: 10, expected: 24 };
    assert_eq!(read(&file[..10]).problems, [problem(0, end)]);
}

#[test]
fn an_invalid_record_is_skipped() {
    let frame = |second: u32| [Little.words(&[second, 7, 4, 4]), vec![second as u8; 4]].concat();
    let mut bad = frame(101);
    // The captured length.
    bad[11] = 0x7f;
    let file = [
        Little.pcap_header(0xa1b2_c3d4, 101),
        frame(100),
        bad,
        (102..110).flat_map(frame).collect(),
    ]
    .concat();
    let reported = read(&file);
    assert_eq!(reported.frames.len(), 9);
    assert_eq!(reported.frames[1], (2, Some(102_000_007_000), 4, vec![102; 4]));
    let kind = CaptureProblemKind::Record {
        captured: 0x7f00_0004,
        most: 262_144,
        skipped: 20,
        resumed: true,
    };
    assert_eq!(reported.problems, [problem(44, kind)]);
    assert_eq!(
        reported.problems[0].to_string(),
        "byte 44: expected a frame of at most 262144 bytes, found 2130706436: \
         20 bytes skipped up to the next frame"
    );
    // Nothing follows it.
    let reported = read(&file[..64]);
    let kind = CaptureProblemKind::Record {
        captured: 0x7f00_0004,
        most: 262_144,
        skipped: 20,
        resumed: false,
    };
    assert_eq!((reported.frames.len(), reported.problems), (1, vec![problem(44, kind)]));
}

#[test]
fn pcapng_of_both_orders_in_one_file() {
    let resolution = |order: Order, value: u8| order.option(9, &[value]);
    let mut file = Vec::new();
    for order in [Little, Big] {
        // Microseconds by default; nanoseconds; units of 2^-10 s with 5 s to be added.
        let offset = match order {
            Little => 5_i64.to_le_bytes(),
            Big => 5_i64.to_be_bytes(),
        };
        let binary = [resolution(order, 0x8a), order.option(14, &offset)].concat();
        let name = [order.option(2, b"eth0"), resolution(order, 9), vec![0; 4]].concat();
        file.extend(
            [
                order.section(),
                order.interface(1, 0, &[]),
                order.interface(101, 96, &name),
                order.interface(113, 0, &binary),
                order.packet(0, 3_000_001, 60, &[1]),
                order.packet(1, 5_000_000_000, 2, &[1, 2]),
                order.packet(2, 1_536, 3, &[1, 2, 3]),
            ]
            .concat(),
        );
    }
    let reported = read(&file);
    assert_eq!(reported.problems, []);
    let section = |first: u64| {
        [
            (first, Some(3_000_001_000), 60, vec![1]),
            (first + 1, Some(5_000_000_000), 2, vec![1, 2]),
            (first + 2, Some(6_500_000_000), 3, vec![1, 2, 3]),
        ]
    };
    assert_eq!(reported.frames, [section(1), section(4)].concat());
    let links = [(0, 1), (1, 101), (2, 113), (3, 1), (4, 101), (5, 113)];
    assert_eq!(reported.links, links);
    assert_eq!((reported.tally.sections, reported.interfaces.len()), (2, 6));
    let eth = &reported.interfaces[4];
    assert_eq!((&*eth.name, eth.snaplen, eth.frames), ("eth0", 96, 1));
}

#[test]
fn times_of_any_resolution_and_offset() {
    let stamped = |resolution: u8, offset: i64, stamp: u64| {
        let options =
            [Little.option(9, &[resolution]), Little.option(14, &offset.to_le_bytes())].concat();
        let interface = Little.interface(101, 0, &options);
        let file = [Little.section(), interface, Little.packet(0, stamp, 1, &[0])].concat();
        read(&file).frames[0].1
    };
    assert_eq!(stamped(0, 0, 7), Some(7_000_000_000));
    assert_eq!(stamped(3, -1, 7_001), Some(6_001_000_000));
    assert_eq!(stamped(12, 0, 1_999), Some(1));
    assert_eq!(stamped(0xff, 0, u64::MAX), Some(0));
    // Before 1970, and beyond the year 2554.
    assert_eq!(stamped(6, -8, 7_000_000), None);
    assert_eq!(stamped(0, 0, u64::MAX), None);
    assert_eq!(stamped(127, i64::MAX, u64::MAX), None);
}

#[test]
fn simple_and_obsolete_packet_blocks() {
    let simple = Little.block(3, &[&Little.words(&[60])[..], &[1, 2, 3, 4]].concat());
    let head = [Little.halves(&[0, 65_535]), Little.words(&[0, 9_000_000, 2, 2])].concat();
    let obsolete = Little.block(2, &[&head[..], &[5, 6]].concat());
    let file = [Little.section(), Little.interface(101, 3, &[]), simple, obsolete].concat();
    let reported = read(&file);
    assert_eq!(reported.problems, []);
    // The snap length separates the bytes from the padding.
    assert_eq!(reported.frames[0], (1, None, 60, vec![1, 2, 3]));
    assert_eq!(reported.frames[1], (2, Some(9_000_000_000), 2, vec![5, 6]));
}

#[test]
fn directions_and_drops_are_read() {
    let flagged = |flags: u32, drops: u64| {
        let head = Little.words(&[0, 0, 0, 1, 1]);
        let options = [
            Little.option(2, &flags.to_le_bytes()),
            Little.option(4, &drops.to_le_bytes()),
            vec![0; 4],
        ];
        Little.block(6, &[&head[..], &[9, 0, 0, 0], &options.concat()].concat())
    };
    let statistics = [
        Little.words(&[0, 0, 0]),
        Little.option(5, &40_u64.to_le_bytes()),
        Little.option(7, &2_u64.to_le_bytes()),
    ];
    let file = [
        Little.section(),
        Little.interface(101, 0, &[]),
        flagged(1, 0),
        flagged(2, 3),
        flagged(0, 4),
    ]
    .concat();
    let reported = read(&file);
    assert_eq!(reported.ways, [Some(PacketDirection::In), Some(PacketDirection::Out), None]);
    assert_eq!(reported.interfaces[0].dropped, 7);
    let reported = read(&[file, Little.block(5, &statistics.concat())].concat());
    assert_eq!(reported.interfaces[0].dropped, 42);
}

#[test]
fn cooked_headers_have_directions() {
    let cooked = |kind: u8| {
        let mut header = [0; 20];
        header[1] = kind;
        Little.packet(0, 0, 20, &header)
    };
    let second = |kind: u8| {
        let mut header = [0; 20];
        header[10] = kind;
        Little.packet(1, 0, 20, &header)
    };
    let file = [
        Little.section(),
        Little.interface(113, 0, &[]),
        Little.interface(276, 0, &[]),
        cooked(0),
        cooked(4),
        cooked(3),
        second(0),
        second(4),
    ]
    .concat();
    let (to_us, from_us) = (Some(PacketDirection::In), Some(PacketDirection::Out));
    assert_eq!(read(&file).ways, [to_us, from_us, None, to_us, from_us]);
}

#[test]
fn blocks_without_frames_are_skipped() {
    let kinds = [4, 10, 0x0bad, 0x4000_0bad, 0x8000_0001, 77];
    let others = kinds.map(|kind| Little.block(kind, &[0, 0, 0x2a, 0xc5, 1, 2, 3, 4]));
    let file = [
        Little.section(),
        Little.interface(1, 0, &[]),
        others.concat(),
        Little.packet(0, 0, 1, &[7]),
    ]
    .concat();
    let reported = read(&file);
    assert_eq!((reported.problems, reported.frames.len()), (vec![], 1));
    assert_eq!(reported.tally.other_blocks, 6);
}

#[test]
fn a_damaged_block_loses_only_itself() {
    let packets: Vec<_> = (0..4).map(|n| Little.packet(0, 0, 4, &[n; 4])).collect();
    let mut file = [Little.section(), Little.interface(1, 0, &[]), packets.concat()].concat();
    let second = 28 + 20 + 36;
    // Its length; the next one lacks 7 bytes.
    file[second + 4] = 13;
    file.drain(second + 40..second + 47);
    let reported = read(&file);
    let bytes: Vec<_> = reported.frames.iter().map(|frame| frame.3[0]).collect();
    assert_eq!(bytes, [0, 3]);
    let fault = BlockFault::Length { claimed: 13 };
    let kind = CaptureProblemKind::Skipped { bytes: 36 + 36 - 7, fault };
    assert_eq!(reported.problems, [problem(second as u64, kind)]);
}

#[test]
fn invalid_blocks_are_reported_with_their_position() {
    let file = |block: &[u8]| [&Little.section()[..], &Little.interface(1, 0, &[]), block].concat();
    let kind = CaptureProblemKind::Interface { number: 3, declared: 1 };
    assert_eq!(read(&file(&Little.packet(3, 0, 1, &[1]))).problems, [problem(48, kind)]);
    let kind = CaptureProblemKind::Short { bytes: 4, expected: 20 };
    assert_eq!(read(&file(&Little.block(6, &[0; 4]))).problems, [problem(48, kind)]);
    // 100 bytes claimed, 4 available: the frame has 4 bytes.
    let head = Little.words(&[0, 0, 0, 100, 200]);
    let reported = read(&file(&Little.block(6, &[&head[..], &[1, 2, 3, 4]].concat())));
    assert_eq!(reported.frames, [(1, Some(0), 200, vec![1, 2, 3, 4])]);
    let kind = CaptureProblemKind::Captured { claimed: 100, there: 4 };
    assert_eq!(reported.problems, [problem(48, kind)]);
    // An option that exceeds its block.
    let reported = read(&file(&Little.interface(1, 0, &[9, 0, 40, 0])));
    assert_eq!(reported.problems, [problem(48, CaptureProblemKind::Option)]);
    assert_eq!(reported.interfaces.len(), 2);
}

#[test]
fn another_version_is_reported_and_read() {
    let mut file = [Little.section(), Little.interface(1, 0, &[])].concat();
    file[12] = 3;
    let kind = CaptureProblemKind::Version { major: 3, minor: 0 };
    let reported = read(&file);
    assert_eq!((reported.problems, reported.interfaces.len()), (vec![problem(0, kind)], 1));
    let mut file = Little.pcap_header(0xa1b2_c3d4, 1);
    file[4] = 9;
    let kind = CaptureProblemKind::Version { major: 9, minor: 4 };
    assert_eq!(read(&file).problems, [problem(4, kind)]);
}

#[test]
fn a_damaged_section_header_leaves_the_rest() {
    let mut file =
        [Little.section(), Little.interface(1, 0, &[]), Little.packet(0, 0, 1, &[1])].concat();
    file[8] ^= 0xff;
    let reported = read(&file);
    let magic = 0x1a2b_3cb2;
    let skipped = CaptureProblemKind::Skipped { bytes: 28, fault: BlockFault::ByteOrder { magic } };
    let no_section = problem(28, CaptureProblemKind::NoSection);
    assert_eq!(reported.problems, [problem(0, skipped), no_section]);
    assert_eq!(reported.frames.len(), 1);
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(CaptureReader::new(&b""[..]), Err(OpenError::Empty)));
    let error = CaptureReader::new(&b"GIF89a"[..]).unwrap_err().to_string();
    let expected = "byte 0: expected the magic number of pcap or pcapng, found 47 49 46 38";
    assert_eq!(error, expected);
    assert!(CaptureReader::new(&[0xd4, 0xc3][..]).is_err());
    let gone = io::Error::other("the disk is gone");
    let error = CaptureReader::new(Fails(Some(gone))).unwrap_err();
    assert_eq!(error.to_string(), "the disk is gone");
}

/// Fails once, then ends.
#[derive(Debug)]
struct Fails(Option<io::Error>);

impl Read for Fails {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

#[test]
fn an_input_error_follows_all_frames_before_it() {
    let file = [Little.section(), Little.interface(1, 0, &[]), Little.packet(0, 0, 1, &[1])];
    for (kind, damage) in [(io::ErrorKind::InvalidData, true), (io::ErrorKind::TimedOut, false)] {
        let file = file.concat();
        let input = file.chain(Fails(Some(io::Error::new(kind, "gzip: cut off"))));
        let mut reader = CaptureReader::new(input).unwrap();
        assert!(matches!(reader.next(), Ok(Some(CaptureItem::Frame(_)))));
        match reader.next() {
            Ok(Some(CaptureItem::Problem(reported))) if damage => {
                let kind = CaptureProblemKind::Packed { message: "gzip: cut off".into() };
                assert_eq!(reported, problem(84, kind));
                assert!(matches!(reader.next(), Ok(None)));
            }
            Err(error) if !damage => assert_eq!(error.kind(), io::ErrorKind::TimedOut),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_super_packet_of_big_tcp_is_a_frame() {
    let big = vec![3; 500_000];
    let file =
        [Little.section(), Little.interface(101, 0, &[]), Little.packet(0, 0, 500_000, &big)];
    let reported = read(&file.concat());
    assert_eq!((reported.frames[0].3.len(), reported.problems), (500_000, vec![]));
}
