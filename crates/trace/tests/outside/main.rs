//! Other programs read the written files: tcpdump prints the same lines, tshark finds no errors.

mod bblog;
mod packets;
mod tool;

use packet::wire::Endpoints;
use packet::{Flags, IpVersion};
use packets::Packet;
use trace::pcapng::{self, PacketDirection, PacketMeta, PcapngInterface, PcapngSection};
use trace::tcpdump::{self, SeqNumbering, Stamp, Style};
use units::Duration;

use ackclock_trace as trace;

/// Tue, 02 May 2023 07:46:01.000123456 UTC.
const EPOCH: Duration = Duration::from_nanos(1_683_013_561_000_123_456);

/// A capture with one capture point, at the client.
fn capture(packets: &[Packet]) -> Vec<u8> {
    let section = PcapngSection {
        os: "virtual",
        application: "ackclock",
        comment: "scenario with an umlaut: ü",
        epoch: EPOCH,
    };
    let mut writer = pcapng::PcapngWriter::new(Vec::new(), &section).unwrap();
    let tap = writer
        .add_interface(&PcapngInterface {
            name: "client",
            description: "at the client",
            ..PcapngInterface::default()
        })
        .unwrap();
    for (id, p) in packets.iter().enumerate() {
        let seen = PacketMeta { tap, at: p.at, way: p.way };
        writer.segment(seen, &p.segment, &p.between, id as u16, p.offset).unwrap();
    }
    writer.finish().unwrap()
}

fn our_lines(packets: &[Packet], stamp: Stamp) -> Vec<String> {
    let mut writer = tcpdump::TcpdumpWriter::new(Vec::new(), Style::tcpdump(stamp, EPOCH));
    for p in packets {
        writer.segment(p.at, &p.segment, &p.between).unwrap();
    }
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn tcpdump_prints_the_same(packets: &[Packet]) {
    let capture = capture(packets);
    for (stamp, option) in [
        (Stamp::TimeOfDay, None),
        (Stamp::Epoch, Some("-tt")),
        (Stamp::SincePrevious, Some("-ttt")),
        (Stamp::Date, Some("-tttt")),
        (Stamp::SinceFirst, Some("-ttttt")),
    ] {
        let args: Vec<&str> = ["-n"].into_iter().chain(option).collect();
        let Some(theirs) = tool::lines("tcpdump", &args, &capture) else { return };
        let ours = our_lines(packets, stamp);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs);
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

fn tshark_finds_nothing_wrong(packets: &[Packet]) {
    let wrong = "_ws.malformed || _ws.expert.severity == error || tcp.checksum.status == Bad \
                 || ip.checksum.status == Bad";
    let checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    let capture = capture(packets);
    let args = [&checks[..], &["-Y", wrong]].concat();
    let Some(found) = tool::lines("tshark", &args, &capture) else { return };
    assert_eq!(found, Vec::<String>::new());
    // The checksums were verified.
    let good = "tcp.checksum.status == Good && (ipv6 || ip.checksum.status == Good)";
    let args = [&checks[..], &["-Y", good]].concat();
    assert_eq!(tool::lines("tshark", &args, &capture).unwrap().len(), packets.len());
}

/// Connections over IPv4 and IPv6, one of them with wrapping sequence numbers.
fn connections() -> Vec<Packet> {
    let v4 = |port| packets::pair(IpVersion::V4, port);
    [
        packets::whole_connection(v4(40_000), 205_083_268),
        packets::whole_connection(packets::pair(IpVersion::V6, 40_001), 205_083_268),
        // Wraps within the large burst; the client's port is the lower one.
        packets::whole_connection(v4(4_000), u32::MAX - 30_000),
        // Reuses the ports of the first connection.
        packets::whole_connection(v4(40_000), 7),
    ]
    .concat()
}

#[test]
fn tcpdump_prints_our_lines_of_whole_connections() {
    tcpdump_prints_the_same(&connections());
}

#[test]
fn tcpdump_prints_our_lines_when_the_handshake_was_missed() {
    let packets = packets::whole_connection(packets::pair(IpVersion::V4, 40_000), 99);
    tcpdump_prints_the_same(&packets[4..]);
}

#[test]
fn tcpdump_prints_our_lines_of_random_packets() {
    tcpdump_prints_the_same(&packets::random(3_000));
}

#[test]
fn tcpdump_prints_our_addresses() {
    let odd = [
        "::1",
        "::",
        "::102:304",
        "::ffff:10.0.0.1",
        "1::2",
        "1:0:0:2::",
        "fe80::1:0:0:1",
        "1:0:2:0:3:0:4:0",
        "2001:db8:0:0:1:0:0:1",
        "a:b:c:d:e:f:a:b",
        "0:1::",
        "::1:0:0:0:0",
    ];
    let template = packets::whole_connection(packets::pair(IpVersion::V6, 40_000), 99)[0];
    let packets: Vec<Packet> = odd
        .iter()
        .map(|address| {
            let src = (address.parse::<std::net::Ipv6Addr>().unwrap(), 40_000).into();
            Packet { between: Endpoints { src, ..template.between }, ..template }
        })
        .collect();
    tcpdump_prints_the_same(&packets);
}

#[test]
fn our_reader_parses_our_lines() {
    let between = packets::pair(IpVersion::V6, 40_000);
    let packets = packets::whole_connection(between, u32::MAX - 30_000);
    let stamps = [
        Stamp::TimeOfDay,
        Stamp::Epoch,
        Stamp::SincePrevious,
        Stamp::Date,
        Stamp::SinceFirst,
        Stamp::Seconds,
    ];
    for stamp in stamps {
        let text = our_lines(&packets, stamp).join("\n");
        let lines = tcpdump::read(&text).unwrap();
        assert_eq!(lines.len(), packets.len());
        for (number, (line, p)) in lines.iter().zip(&packets).enumerate() {
            assert_eq!(line.line, number + 1);
            assert_eq!((line.flags, line.ip), (p.segment.flags, p.segment.ip));
            assert_eq!((line.length, line.window), (p.segment.payload, p.segment.window));
            let src = p.between.src;
            assert_eq!(line.src.host.parse(), Ok(src.ip()));
            assert_eq!(line.src.port.unwrap().parse(), Ok(src.port()));
            let options = line.options.unwrap();
            assert_eq!(options.timestamps, p.segment.timestamps);
            assert_eq!(options.sack.as_slice().len(), p.segment.sack_blocks().len());
            let marked = p.segment.flags.has(Flags::SYN) || !p.segment.flags.has(Flags::ACK);
            assert_eq!(line.numbers == SeqNumbering::Absolute, marked);
            match stamp {
                Stamp::Epoch | Stamp::Date => {
                    let micros = (EPOCH.as_nanos() + p.at.as_nanos()) / 1_000;
                    assert_eq!(line.at, Duration::from_micros(micros));
                }
                Stamp::Seconds => {
                    let nanos = p.at.as_nanos() - packets[0].at.as_nanos();
                    assert_eq!(line.at.as_millis(), (nanos + 500_000) / 1_000_000);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_brief_line_is_that_of_a_mail() {
    let packets = packets::whole_connection(packets::pair(IpVersion::V4, 40_000), 205_083_268);
    let hosts = [("10.0.0.1", "sender"), ("10.0.0.2", "sink")]
        .map(|(address, name)| (address.parse().unwrap(), name.to_owned()));
    let mut writer = tcpdump::TcpdumpWriter::new(Vec::new(), Style::brief(hosts.into()));
    for p in &packets {
        writer.segment(p.at, &p.segment, &p.between).unwrap();
    }
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    // Packets are 12.345 ms apart: 0, 12.345, 24.69, 37.035, 49.38, ... 98.76, 111.105, 123.45 ms.
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..5],
        [
            " 0.000 IP sender > sink: Flags [S], seq 205083268, win 65535, options \
         [mss 1460,nop,wscale 10,sackOK,TS val 12 ecr 563185696], length 0",
            " 0.012 IP sink > sender: Flags [S.], seq 708257395, ack 205083269, win 65160, options \
         [mss 1460,sackOK,TS val 24 ecr 563185696,nop,wscale 7], length 0",
            " 0.025 IP sender > sink: Flags [.], ack 1, win 65, options \
         [nop,nop,TS val 37 ecr 563185696], length 0",
            " 0.037 IP sender > sink: Flags [.], seq 1:14481, ack 1, win 65, length 14480",
            " 0.049 IP sink > sender: Flags [.], ack 14481, win 427, length 0",
        ]
    );
    assert_eq!(
        lines[8],
        " 0.099 IP sink > sender: Flags [.], ack 14481, win 427, options \
         [sack 1 {15929:17377}], length 0"
    );
}

#[test]
fn tshark_finds_whole_connections_sound() {
    tshark_finds_nothing_wrong(&connections());
}

#[test]
fn tshark_finds_random_packets_sound() {
    // Without SYN flags: tshark rightly reports a SYN in mid-connection as an error.
    let packets: Vec<Packet> =
        packets::random(1_000).into_iter().filter(|p| p.segment.syn_options().is_none()).collect();
    tshark_finds_nothing_wrong(&packets);
}

#[test]
fn tshark_reads_taps_stamps_directions_and_sizes() {
    let packets = packets::whole_connection(packets::pair(IpVersion::V4, 40_000), 99);
    let section =
        PcapngSection { application: "ackclock", epoch: EPOCH, ..PcapngSection::default() };
    let mut writer = pcapng::PcapngWriter::new(Vec::new(), &section).unwrap();
    let whole = writer
        .add_interface(&PcapngInterface { name: "client", ..PcapngInterface::default() })
        .unwrap();
    let cut = writer
        .add_interface(&PcapngInterface {
            name: "server",
            snaplen: 96,
            ..PcapngInterface::default()
        })
        .unwrap();
    let mut expected = Vec::new();
    for (id, p) in packets.iter().enumerate() {
        let back = match p.way {
            PacketDirection::In => PacketDirection::Out,
            PacketDirection::Out => PacketDirection::In,
        };
        for (tap, name, way) in [(whole, "client", p.way), (cut, "server", back)] {
            let seen = PacketMeta { tap, at: p.at, way };
            writer.segment(seen, &p.segment, &p.between, id as u16, p.offset).unwrap();
            // One packet on the wire, even if it is a burst.
            let len = 40 + p.segment.options_len() + p.segment.payload;
            let kept = if name == "server" { len.min(96) } else { len };
            let direction = if way == PacketDirection::In { 1 } else { 2 };
            let nanos = EPOCH.as_nanos() + p.at.as_nanos();
            let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            let (seq, payload) = (p.segment.seq.0, p.segment.payload);
            expected.push(format!(
                "{name} {seconds}.{nanos:09} {direction} {len} {kept} {seq} {payload}"
            ));
        }
    }
    let capture = writer.finish().unwrap();
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "frame.packet_flags_direction",
        "frame.len",
        "frame.cap_len",
        "tcp.seq_raw",
        "tcp.len",
    ];
    let mut args = vec!["-T", "fields", "-E", "separator=/s"];
    for field in fields {
        args.extend(["-e", field]);
    }
    let Some(found) = tool::lines("tshark", &args, &capture) else { return };
    // Some versions print the direction in hexadecimal.
    let found: Vec<String> = found.iter().map(|line| line.replace(" 0x0000000", " ")).collect();
    assert_eq!(found, expected);
}
