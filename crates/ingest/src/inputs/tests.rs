//! Tests of reading captures and text into connections.

use std::path::Path;

use diagnose::AnalysisSettings;
use packet::wire::Endpoints;
use packet::{Dir, Flags, SackBlock, SackBlocks, Segment};
use trace::pcapng::{PacketDirection, PacketMeta, PcapngInterface, PcapngSection, PcapngWriter};
use units::{Bytes, Duration, Instant, Offset, SeqNum};

use super::*;

mod captured_quic;
mod convertible;
mod fragments;
mod joined;
mod logs;
mod quic;

const KEEP: AnalysisSettings = AnalysisSettings { packets: usize::MAX, turns: 0 };

fn source<'a>(name: &str, bytes: &'a [u8]) -> InputFile<'a> {
    InputFile { name: name.to_owned(), bytes: Box::new(bytes) }
}

fn read_bytes(bytes: &[u8]) -> Reading {
    read(vec![source("a", bytes)], KEEP).unwrap()
}

fn refused(bytes: &[u8]) -> String {
    read(vec![source("a", bytes)], KEEP).unwrap_err().to_string()
}

fn ends(client: u16, server: u16) -> Endpoints {
    Endpoints { src: ([10, 0, 0, 1], client).into(), dst: ([10, 0, 0, 2], server).into() }
}

/// A packet of a capture: interface, milliseconds, addresses, flags, seq, ack, payload.
type Sent = (usize, u64, Endpoints, Flags, u32, u32, u32);

const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const SYN_ACK: Flags = Flags(0x12);

fn capture(packets: &[Sent]) -> Vec<u8> {
    let section = PcapngSection { epoch: Duration::from_secs(1_000), ..PcapngSection::default() };
    let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
    let taps = ["eth0", "eth1"].map(|name| {
        writer
            .add_interface(&PcapngInterface { name, snaplen: 96, ..PcapngInterface::default() })
            .unwrap()
    });
    for (&(tap, millis, between, flags, seq, ack, payload), id) in packets.iter().zip(1..) {
        let at = Instant::from_nanos(millis * 1_000_000);
        let (seq, ack) = (SeqNum(seq), SeqNum(ack));
        let segment = Segment { flags, seq, ack, payload, window: 1_000, ..Segment::default() };
        let seen = PacketMeta { tap: taps[tap], at, way: PacketDirection::Out };
        writer.segment(seen, &segment, &between, id, Offset(0)).unwrap();
    }
    writer.finish().unwrap()
}

/// Addresses and frames of each connection.
fn connections(reading: &Reading) -> Vec<(Endpoints, Vec<u64>)> {
    let frames = |stream: &CapturedConnection| {
        stream.analysis().packets.iter().map(|packet| packet.frame).collect::<Vec<_>>()
    };
    reading.streams.iter().map(|stream| (stream.analysis().ends, frames(stream))).collect()
}

#[test]
fn packets_of_both_directions_are_one_connection() {
    let (one, two) = (ends(4_000, 80), ends(4_001, 80));
    let file = capture(&[
        (0, 500, one, SYN, 100, 0, 0),
        (0, 501, two, SYN, 100, 0, 0),
        (0, 510, one.reversed(), SYN_ACK, 900, 101, 0),
        (0, 520, one, ACK, 101, 901, 1_000),
        (0, 530, two.reversed(), SYN_ACK, 50, 101, 0),
    ]);
    let reading = read_bytes(&file);
    assert_eq!(connections(&reading), [(one, vec![1, 3, 4]), (two, vec![2, 5])]);
    let file = &reading.files[0];
    assert_eq!((file.kind, file.frames, file.tcp), (InputKind::Capture, 5, 5));
    assert_eq!(file.begins, Some(Duration::from_millis(1_000_500)));
    let packet = &reading.streams[0].analysis().packets[2];
    assert_eq!(packet.at, Instant::from_nanos(20_000_000));
    assert_eq!((packet.segment.dir, packet.segment.payload), (Dir::Forward, 1_000));
    assert_eq!(packet.captured, 96);
    assert_eq!(reading.streams[0].analysis().packets[1].segment.dir, Dir::Reverse);
    assert_eq!(reading.streams.iter().map(|s| s.stream()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn the_client_is_known_by_the_syn_ack_or_is_the_first_sender() {
    let one = ends(4_000, 80);
    let file =
        capture(&[(0, 0, one.reversed(), SYN_ACK, 900, 101, 0), (0, 1, one, ACK, 101, 901, 5)]);
    assert_eq!(connections(&read_bytes(&file)), [(one, vec![1, 2])]);
    let file = capture(&[(0, 0, one.reversed(), ACK, 900, 101, 7), (0, 1, one, ACK, 101, 907, 0)]);
    assert_eq!(connections(&read_bytes(&file)), [(one.reversed(), vec![1, 2])]);
}

#[test]
fn reused_ports_are_another_connection() {
    let one = ends(4_000, 80);
    let file = capture(&[
        // Without its handshake.
        (0, 0, one, ACK, 7_000, 1, 10),
        (0, 1, one.reversed(), ACK, 1, 7_010, 0),
        (0, 2, one, SYN, 100, 0, 0),
        // A retransmitted SYN, its SYN-ACK late.
        (0, 3, one, SYN, 100, 0, 0),
        (0, 4, one.reversed(), SYN_ACK, 900, 101, 0),
        (0, 5, one, ACK, 101, 901, 10),
        // A new connection from the other host.
        (0, 6, one.reversed(), SYN, 5_000, 0, 0),
        (0, 7, one, SYN_ACK, 6_000, 5_001, 0),
        // One of which only the SYN-ACK was captured.
        (0, 8, one.reversed(), SYN_ACK, 12, 33, 0),
    ]);
    let expected =
        [(one, vec![1, 2]), (one, vec![3, 4, 5, 6]), (one.reversed(), vec![7, 8]), (one, vec![9])];
    assert_eq!(connections(&read_bytes(&file)), expected);
}

#[test]
fn a_syn_ack_before_its_syn_is_of_the_same_connection() {
    let one = ends(4_000, 80);
    let file = capture(&[
        (0, 0, one.reversed(), SYN_ACK, 900, 101, 0),
        (0, 0, one, SYN, 100, 0, 0),
        (0, 1, one, ACK, 101, 901, 0),
    ]);
    assert_eq!(connections(&read_bytes(&file)), [(one, vec![1, 2, 3])]);
}

#[test]
fn each_capture_point_has_its_own_connection() {
    let one = ends(4_000, 80);
    let file = capture(&[(0, 0, one, SYN, 1, 0, 0), (1, 5, one, SYN, 1, 0, 0)]);
    let reading = read_bytes(&file);
    assert_eq!(connections(&reading), [(one, vec![1]), (one, vec![2])]);
    let points: Vec<_> = reading.streams.iter().map(|stream| stream.interface).collect();
    assert_eq!(points, [0, 1]);
    assert_eq!(reading.files[0].interfaces[1].name, "eth1");
}

/// A SYN-ACK is repeated after a SYN of another connection: it answers the earlier one. One that
/// acknowledges its own host's SYN begins no connection.
#[test]
fn a_repeated_syn_ack_belongs_to_its_syn() {
    let one = ends(4_000, 80);
    let file = capture(&[
        (0, 0, one, SYN, 3_000, 0, 0),
        (0, 1, one.reversed(), SYN_ACK, 7_000, 3_001, 0),
        (0, 100, one, SYN, 7_777_777, 0, 0),
        (0, 200, one.reversed(), SYN_ACK, 7_000, 3_001, 0),
        (0, 201, one, SYN_ACK, 424_242, 7_777_778, 0),
        (0, 300, one.reversed(), SYN_ACK, 9_000, 7_777_778, 0),
    ]);
    assert_eq!(connections(&read_bytes(&file)), [(one, vec![1, 2, 4]), (one, vec![3, 5, 6])]);
}

/// A tap has an interface for each direction; mergecap keeps one for each of its inputs. Without a
/// packet in common these are parts of one connection, whether they have few packets or many.
#[test]
fn an_interface_per_direction_is_one_connection() {
    let one = ends(4_000, 80);
    let other = ends(4_001, 80);
    for count in [3, 300] {
        let mut packets = vec![
            (0, 0, one, SYN, 99, 0, 0),
            (1, 5, one.reversed(), SYN_ACK, 7, 100, 0),
            (0, 10, one, ACK, 100, 8, 0),
        ];
        for n in 0..count {
            let at = 10 + 20 * u64::from(n);
            packets.push((0, at, one, ACK, 100 + 1_000 * n, 8, 1_000));
            packets.push((1, at + 5, one.reversed(), ACK, 8, 1_100 + 1_000 * n, 0));
        }
        packets.push((1, 100_000, other, SYN, 1, 0, 0));
        let reading = read_bytes(&capture(&packets));
        let frames: Vec<u64> = (1..packets.len() as u64).collect();
        let last = packets.len() as u64;
        assert_eq!(connections(&reading), [(one, frames), (other, vec![last])], "{count}");
        assert_eq!(reading.streams.iter().map(|s| s.stream()).collect::<Vec<_>>(), [0, 1]);
        let analysis = reading.streams[0].analysis();
        let flow = analysis.main().unwrap();
        assert!(analysis.opened && flow.answered && reading.pairs.is_empty());
        // Without the option the MSS is 536: two packets each.
        assert_eq!((flow.counts.new, flow.unseen), (2 * u64::from(count), 0));
    }
}

#[test]
fn a_timestamp_far_in_the_future_does_not_move_later_packets() {
    let one = ends(4_000, 80);
    let times = |stamps: [u64; 5]| {
        let packets = stamps.map(|ms| (0, ms, one, ACK, 101, 901, 10));
        let reading = read_bytes(&capture(&packets));
        let at = |packet: &diagnose::CapturedPacket| packet.at.as_nanos() / 1_000_000;
        let times: Vec<_> = reading.streams[0].analysis().packets.iter().map(at).collect();
        (times, reading.files[0].problems.clone())
    };
    let far = 3_600_000;
    let (seen, problems) = times([0, 10, far, 20, 30]);
    assert_eq!((seen, problems.count), (vec![0, 10, 10, 20, 30], 1));
    let reported = "frame 3: its time is 3600.0 s after that of the next packet; taken as that of the \
                packet before";
    assert_eq!(problems.first, [reported]);
    let (seen, problems) = times([far, 10, 20, 30, 40]);
    assert_eq!((seen, problems.count), (vec![0, 0, 10, 20, 30], 1));
    // A clock set forward, slight disorder, and a clock set back.
    assert_eq!(times([0, 10, far, far + 10, far + 20]).1.count, 0);
    assert_eq!(times([0, 10, 900, 20, 30]).1.count, 0);
    assert_eq!(times([far, far + 10, 20, 30, 40]).1.count, 0);
    // No packet follows the last one to check its time; a silence of ten months is accepted.
    let month = 30 * 86_400_000;
    let (seen, problems) = times([0, 10, 20, 30, 13 * month]);
    assert_eq!((seen, problems.count), (vec![0, 10, 20, 30, 30], 1));
    assert!(
        problems.first[0].starts_with("frame 5: its time is 33696000.0 s after"),
        "{problems:?}"
    );
    assert_eq!(times([0, 10, 20, 30, 10 * month]).1.count, 0);
}

#[test]
fn other_frames_are_counted() {
    let udp = |port: u16| {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 9, (port >> 8) as u8, port as u8, 0, 8, 0, 0]);
        packet
    };
    let mut gre = udp(0);
    gre[9] = 47;
    let mut fragment = udp(0);
    fragment[6] = 0x20;
    let mut cut = udp(0);
    cut[9] = 6;
    let mut writer = PcapngWriter::new(Vec::new(), &PcapngSection::default()).unwrap();
    let tap = writer.add_interface(&PcapngInterface::default()).unwrap();
    for packet in [&udp(443)[..], &udp(4_789), &gre, &fragment, &cut, &[0; 30]] {
        writer
            .packet(PacketMeta { tap, at: Instant::ZERO, way: PacketDirection::In }, packet)
            .unwrap();
    }
    let reading = read_bytes(&writer.finish().unwrap());
    let others = &reading.files[0].others;
    assert_eq!((others.tunnelled, others.fragments, others.cut, others.not_ip), (2, 1, 1, 1));
    assert_eq!(others.protocols.get(&17), Some(&1));
    assert_eq!((others.total(), reading.files[0].frames, reading.files[0].tcp), (6, 6, 0));
    assert!(reading.streams.is_empty());
}

/// A mirror port copies each frame when it enters and when it leaves, behind a router the time to
/// live is one less. A retransmission has another identification.
#[test]
fn frames_captured_twice_count_once() {
    let between = ends(1, 2);
    let mut writer = PcapngWriter::new(Vec::new(), &PcapngSection::default()).unwrap();
    let tap = writer.add_interface(&PcapngInterface::default()).unwrap();
    let mut frame = |us: u64, id: u16, seq: u32, ttl: u8| {
        let segment = Segment { flags: ACK, seq: SeqNum(seq), payload: 100, ..Segment::default() };
        let mut bytes = Vec::new();
        packet::wire::emit(&segment, &between, id, Offset(0), &mut bytes).unwrap();
        bytes[8] = ttl;
        let at = Instant::from_nanos(us * 1_000);
        writer.packet(PacketMeta { tap, at, way: PacketDirection::In }, &bytes).unwrap();
    };
    for n in 0..10 {
        let (us, id, seq) = (u64::from(n) * 10_000, 100 + n as u16, n * 100);
        frame(us, id, seq, 64);
        frame(us + 30, id, seq, if n < 5 { 64 } else { 63 });
    }
    // The last one again.
    frame(300_000, 120, 900, 64);
    let reading = read_bytes(&writer.finish().unwrap());
    assert_eq!((reading.files[0].duplicates, reading.files[0].tcp), (10, 21));
    let analysis = reading.streams[0].analysis();
    let flow = analysis.main().unwrap();
    assert_eq!((flow.counts.new, flow.counts.retransmitted, flow.bytes), (10, 1, 1_000));
}

/// A connection at more interfaces than are compared: the others stay connections of their own, and the file says so.
#[test]
fn parts_that_stay_apart_are_reported() {
    let read_with = |count: usize| {
        let mut writer = PcapngWriter::new(Vec::new(), &PcapngSection::default()).unwrap();
        let taps: Vec<_> = (0..count)
            .map(|_| writer.add_interface(&PcapngInterface::default()).unwrap())
            .collect();
        for (n, &tap) in taps.iter().enumerate() {
            let seq = SeqNum(100 * n as u32);
            let segment = Segment { flags: ACK, seq, payload: 100, ..Segment::default() };
            let at = Instant::from_nanos(1_000_000 * n as u64);
            let seen = PacketMeta { tap, at, way: PacketDirection::Out };
            writer.segment(seen, &segment, &ends(1, 2), n as u16, Offset(0)).unwrap();
        }
        let reading = read_bytes(&writer.finish().unwrap());
        (reading.files[0].problems.count, reading.files[0].problems.first.first().cloned())
    };
    assert_eq!(read_with(64), (0, None));
    let text = "connections at more than 64 interfaces are not joined beyond these: 3 stay apart";
    assert_eq!(read_with(67), (1, Some(text.to_owned())));
}

#[test]
fn compressed_files_are_read() {
    use std::io::Write;
    let file = capture(&[(0, 0, ends(1, 2), SYN, 1, 0, 0)]);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&file).unwrap();
    let packed = packer.finish().unwrap();
    let reading = read_bytes(&packed);
    assert_eq!((reading.files[0].packing, reading.streams.len()), (Some(Packing::Gzip), 1));
    // Truncated: the readable part counts, and the problem is reported.
    let reading = read_bytes(&packed[..packed.len() - 3]);
    assert_eq!((reading.streams.len(), reading.files[0].problems.count), (1, 1));
    let reported = &reading.files[0].problems.first[0];
    assert!(reported.contains("the compressed file is damaged"), "{reported}");
}

#[test]
fn unusable_files_are_refused_by_name() {
    assert_eq!(refused(b""), "a: the file is empty");
    let expected = "a: expected a capture or a log of TCP or QUIC, found a file that begins with ";
    assert_eq!(refused(b"GIF89a"), format!("{expected}\"GIF89a\""));
    assert_eq!(refused(&[1, 2, 3]), format!("{expected}01 02 03"));
    let mut file = capture(&[]);
    let expected = "a: no packet or record found, taken for a capture";
    let whole =
        ": it is intact and ends after its header; did the capture's filter match anything?";
    assert_eq!(refused(&file), format!("{expected}{whole}"));
    file.pop();
    let place = file.len() + 1 - 40;
    let refused = refused(&file);
    assert!(refused.starts_with(&format!("{expected}: byte {place}: ")), "{refused}");
}

/// The freebsd-net post on slow start.
const MAIL: &str = include_str!("../../../trace/tests/data/slow-start-mail.txt");

#[test]
fn the_freebsd_net_post_is_a_connection() {
    let reading = read_bytes(MAIL.as_bytes());
    let file = &reading.files[0];
    assert_eq!(
        (file.kind, file.frames, &file.problems),
        (InputKind::TcpdumpText, 11, &Problems::default())
    );
    let [stream] = &reading.streams[..] else { panic!("{:?}", reading.streams.len()) };
    assert_eq!(stream.names, Some(Box::new(["sender".to_owned(), "sink".to_owned()])));
    let packets = &stream.analysis().packets;
    // The ISN of the sender, 205083268, and of its peer.
    let data: Vec<_> = packets
        .iter()
        .filter(|packet| packet.segment.payload > 0)
        .map(|packet| (packet.segment.seq.0 - 205_083_268, packet.segment.payload))
        .collect();
    let expected =
        [(1, 14_480), (14_481, 17_376), (31_857, 20_272), (52_129, 21_500), (73_629, 1_448)];
    assert_eq!(data, expected);
    let acks: Vec<_> = packets
        .iter()
        .filter(|packet| packet.segment.dir == Dir::Reverse)
        .map(|packet| (packet.segment.ack.0 - 205_083_268, packet.segment.seq.0 - 708_257_395))
        .collect();
    assert_eq!(acks, [(1, 0), (14_481, 1), (31_857, 1), (52_129, 1)]);
    assert_eq!(packets[10].at, Instant::from_nanos(402_000_000));
    // The frame number is the line of the text.
    assert!(MAIL.lines().nth(packets[3].frame as usize - 1).unwrap().contains("seq 1:14481"));
}

#[test]
fn text_without_a_handshake_counts_from_its_first_packet() {
    let text = "\
12:00:00.000000 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [.], seq 5000:6000, ack 77, win 9, length 1000
12:00:00.000100 IP 10.0.0.1.4000 > 10.0.0.2.80: Flags [.], seq 1000:2000, ack 1, win 9, length 1000
12:00:00.020000 IP 10.0.0.2.80 > 10.0.0.1.4000: Flags [.], ack 1000, win 9, options [nop,nop,sack 1 {1500:2000}], length 0
12:00:00.030000 IP 10.0.0.2.http > 10.0.0.1.4000: Flags [.], ack 2000, win 9, length 0
";
    let reading = read_bytes(text.as_bytes());
    let [stream] = &reading.streams[..] else { panic!("{}", reading.streams.len()) };
    assert_eq!((stream.analysis().ends, &stream.names), (ends(4_000, 80), &None));
    let packets = &stream.analysis().packets;
    assert_eq!((packets[1].segment.seq, packets[1].segment.ack), (SeqNum(6_000), SeqNum(77)));
    assert_eq!((packets[2].segment.seq, packets[2].segment.ack), (SeqNum(76), SeqNum(6_000)));
    let mut blocks = SackBlocks::EMPTY;
    blocks.push(SackBlock { left: SeqNum(6_500), right: SeqNum(7_000) });
    assert_eq!(packets[2].segment.options, blocks.into());
    assert_eq!(packets[3].segment.ack, SeqNum(7_000));
}

/// Every pair of hosts is a connection, however many names the text has.
#[test]
fn each_host_name_of_a_text_is_a_host() {
    for ip in ["IP", "IP6"] {
        let text: String = (0..700)
            .map(|n| {
                let (at, client) = (n / 1_000, format!("client-{n}.example"));
                format!(
                    "12:00:{at:02}.{n:06} {ip} {client}.4000 > server.example.https: Flags [S], seq {n}, win 9, length 0\n"
                )
            })
            .collect();
        let reading = read_bytes(text.as_bytes());
        assert_eq!(reading.streams.len(), 700, "{ip}");
        let names = reading.streams[699].names.as_ref().unwrap();
        assert_eq!(**names, ["client-699.example.4000", "server.example.https"]);
    }
}

#[test]
fn a_broken_line_ends_a_text_and_is_located() {
    let cut = MAIL.find("0.301 IP sender").unwrap() + 40;
    let reading = read_bytes(&MAIL.as_bytes()[..cut]);
    assert_eq!((reading.files[0].tcp, reading.files[0].problems.count), (7, 1));
    assert!(reading.files[0].problems.first[0].starts_with("line "), "{:?}", reading.files[0]);
}

#[test]
fn the_recorded_transfers_are_one_connection_each() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux");
    for (name, flows) in [("f1_single_loss_reno", 1), ("k1_two_flows", 2)] {
        for end in ["sender", "receiver"] {
            let file = std::fs::File::open(golden.join(name).join(format!("{end}.pcap.xz")));
            let bytes = Box::new(file.unwrap());
            let reading = read(vec![InputFile { name: end.into(), bytes }], KEEP).unwrap();
            assert_eq!(reading.streams.len(), flows);
            assert_eq!(reading.files[0].packing, Some(Packing::Xz));
            for stream in &reading.streams {
                assert_eq!(stream.analysis().ends.dst.port(), 47_101);
                assert_eq!(stream.analysis().packets.len() as u64, stream.analysis().frames);
                let bytes: u64 = stream
                    .analysis()
                    .packets
                    .iter()
                    .filter(|packet| packet.segment.dir == Dir::Reverse)
                    .map(|packet| u64::from(packet.segment.payload))
                    .sum();
                assert_eq!(Bytes(bytes), Bytes(0));
            }
        }
    }
}

/// A capture saved with a display filter: of no connection there is an ACK without data. Those with
/// few packets are as incomplete as the others.
#[test]
fn a_capture_without_any_bare_ack_marks_all_its_connections() {
    let mut packets: Vec<Sent> = Vec::new();
    for (client, turns) in [(1, 12), (2, 2)] {
        for n in 0..turns {
            let at = u64::from(n) * 100;
            packets.push((0, at, ends(client, 80), ACK, 100 + n * 10, 900 + n * 20, 10));
            let reply = ends(client, 80).reversed();
            packets.push((0, at + 50, reply, ACK, 900 + n * 20, 110 + n * 10, 20));
        }
    }
    let marked = |packets: &[Sent]| -> Vec<bool> {
        let reading = read_bytes(&capture(packets));
        reading.streams.iter().map(|stream| stream.analysis().has_no_bare_acks()).collect()
    };
    assert_eq!(marked(&packets), [true, true]);
    // One bare ACK shows that the capture was not filtered.
    packets.push((0, 2_000, ends(1, 80), ACK, 220, 1_140, 0));
    assert_eq!(marked(&packets), [false, false]);
}

/// The answer to a SYN with data (RFC 7413) acknowledges them; it is of the same connection.
#[test]
fn a_syn_with_data_and_its_answer_are_one_connection() {
    let (there, back) = (ends(1, 80), ends(1, 80).reversed());
    let packets = [
        (0, 0, there, SYN, 10, 0, 100),
        (0, 1, back, SYN_ACK, 50, 111, 0),
        (0, 2, there, ACK, 111, 51, 20),
    ];
    assert_eq!(read_bytes(&capture(&packets)).streams.len(), 1);
    // An answer to another SYN is not.
    let packets = [(0, 0, there, SYN, 10, 0, 100), (0, 1, back, SYN_ACK, 50, 112, 0)];
    assert_eq!(read_bytes(&capture(&packets)).streams.len(), 2);
}
