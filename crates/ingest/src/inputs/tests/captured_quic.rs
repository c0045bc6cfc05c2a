//! QUIC connections in captures: packets made by hand, with the headers of RFC 9000 and random payload.

use diagnose::quic::captured::ONE_RTT;
use packet::quic::QuicVersion;
use units::RandomStream;

use super::*;

/// A datagram: milliseconds, addresses, UDP payload.
type SentUdp = (u64, Endpoints, Vec<u8>);

const CLIENT_ID: [u8; 4] = [0xc1; 4];
const FIRST_ID: [u8; 8] = [0xf1; 8];
const SERVER_ID: [u8; 8] = [0x51; 8];
const V1: u32 = 1;

fn file(datagrams: &[SentUdp], snaplen: usize) -> Vec<u8> {
    let section = PcapngSection { epoch: Duration::from_secs(1_000), ..PcapngSection::default() };
    let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
    let interface = PcapngInterface { name: "eth0", ..PcapngInterface::default() };
    let tap = writer.add_interface(&interface).unwrap();
    for (millis, between, payload) in datagrams {
        let at = Instant::from_nanos(millis * 1_000_000);
        let mut bytes = ip(*between, payload);
        // The writer keeps whole packets: the length fields show what a snap length cut.
        bytes.truncate(snaplen);
        writer.packet(PacketMeta { tap, at, way: PacketDirection::Out }, &bytes).unwrap();
    }
    writer.finish().unwrap()
}

fn ip(between: Endpoints, payload: &[u8]) -> Vec<u8> {
    let (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) =
        (between.src.ip(), between.dst.ip())
    else {
        panic!("IPv4")
    };
    let udp = 8 + payload.len() as u16;
    let mut out = vec![0x45, 2];
    out.extend((20 + udp).to_be_bytes());
    out.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    out.extend(src.octets());
    out.extend(dst.octets());
    for half in [between.src.port(), between.dst.port(), udp, 0] {
        out.extend(half.to_be_bytes());
    }
    out.extend_from_slice(payload);
    out
}

/// A packet of type 0 to 2 (Initial, 0-RTT, Handshake) with `len` bytes in all.
fn long(version: u32, kind: u8, to: &[u8], from: &[u8], len: usize) -> Vec<u8> {
    let mut out = vec![0xc3 | kind << 4];
    out.extend(version.to_be_bytes());
    for id in [to, from] {
        out.push(id.len() as u8);
        out.extend_from_slice(id);
    }
    if kind == 0 {
        out.push(0);
    }
    let rest = len - out.len() - 2;
    out.extend((0x4000 | rest as u16).to_be_bytes());
    out.resize(len, 0xaa);
    out
}

fn short(to: &[u8], spin: bool, len: usize) -> Vec<u8> {
    let mut out = vec![if spin { 0x61 } else { 0x41 }];
    out.extend_from_slice(to);
    out.resize(len, 0xbb);
    out
}

/// The handshake of a connection and a datagram of each host.
fn opened(between: Endpoints) -> Vec<SentUdp> {
    let back = between.reversed();
    let coalesced =
        [long(V1, 0, &CLIENT_ID, &SERVER_ID, 150), long(V1, 2, &CLIENT_ID, &SERVER_ID, 1_050)];
    vec![
        (0, between, long(V1, 0, &FIRST_ID, &CLIENT_ID, 1_200)),
        (30, back, coalesced.concat()),
        (
            40,
            between,
            [long(V1, 2, &SERVER_ID, &CLIENT_ID, 80), short(&SERVER_ID, false, 90)].concat(),
        ),
        (70, back, short(&CLIENT_ID, false, 600)),
    ]
}

fn quic(datagrams: &[SentUdp]) -> Vec<CapturedQuicConnection> {
    read_bytes(&file(datagrams, usize::MAX)).captured_quic
}

#[test]
fn a_connection_is_followed_from_its_initial_to_short_headers() {
    let between = ends(50_000, 443);
    let [one] = &quic(&opened(between))[..] else { panic!("one connection") };
    assert_eq!((one.ends, one.has_opening), (between, true));
    assert_eq!(one.versions.len(), 2);
    let [client, server] = &one.analysis.directions;
    assert_eq!((client.datagrams, server.datagrams), (2, 2));
    // Coalesced packets are counted one by one.
    assert_eq!((client.packets[ONE_RTT], client.packets[2]), (1, 1));
    assert_eq!((server.packets[0], server.packets[2], server.packets[ONE_RTT]), (1, 1, 1));
    assert_eq!(one.analysis.handshake.duration(), Some(30_000_000));
    assert_eq!(one.ids[0].len(), 1);
    let ids: Vec<_> = one.ids[1].iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["f1".repeat(8), "51".repeat(8)]);
}

#[test]
fn a_known_id_at_another_address_is_a_migration() {
    let (between, other) = (ends(50_000, 443), ends(50_777, 443));
    let mut datagrams = opened(between);
    datagrams.push((100, other, short(&SERVER_ID, true, 400)));
    datagrams.push((130, other.reversed(), short(&CLIENT_ID, true, 700)));
    // An unknown ID at an unknown address is not joined.
    datagrams.push((140, ends(50_888, 443), short(&[9; 8], true, 400)));
    let reading = read_bytes(&file(&datagrams, usize::MAX));
    let [one] = &reading.captured_quic[..] else { panic!("one connection") };
    let [moved] = &one.migrations[..] else { panic!("one migration") };
    assert_eq!((moved.ends, moved.frame), (other, 5));
    assert_eq!(one.analysis.directions[1].datagrams, 3);
    assert_eq!(reading.files[0].others.protocols.get(&17), Some(&1));
    // An Initial with the ID that the client chose first, from another port, is the same connection.
    let mut datagrams = opened(between)[..1].to_vec();
    datagrams.push((200, other, long(V1, 0, &FIRST_ID, &CLIENT_ID, 1_200)));
    assert_eq!(quic(&datagrams).len(), 1);
}

#[test]
fn connections_between_the_same_addresses_are_distinct() {
    let between = ends(50_000, 443);
    let mut datagrams = opened(between);
    let second = [[7; 8], [8; 8]];
    datagrams.push((500, between, long(V1, 0, &second[0], &[0xc2; 4], 1_200)));
    datagrams.push((530, between.reversed(), long(V1, 0, &[0xc2; 4], &second[1], 1_200)));
    datagrams.push((540, between, short(&second[1], false, 300)));
    datagrams.push((541, between, short(&SERVER_ID, false, 200)));
    let connections = quic(&datagrams);
    let sent: Vec<_> = connections.iter().map(|one| one.analysis.directions[0].bytes).collect();
    assert_eq!(sent, [1_200 + 170 + 200, 1_200 + 300]);
}

#[test]
fn retries_and_version_negotiations_belong_to_their_connection() {
    let between = ends(50_000, 443);
    let back = between.reversed();
    let grease = 0x1a2a_3a4a;
    let negotiation = [
        &[0x80, 0, 0, 0, 0, 4][..],
        &CLIENT_ID,
        &[8],
        &FIRST_ID,
        &V1.to_be_bytes(),
        &QuicVersion::V2.0.to_be_bytes(),
    ]
    .concat();
    let retry = [&[0xf0, 0, 0, 0, 1, 4][..], &CLIENT_ID, &[8], &SERVER_ID, &[5; 40]].concat();
    let datagrams = [
        (0, between, long(grease, 0, &FIRST_ID, &CLIENT_ID, 1_200)),
        (20, back, negotiation.clone()),
        (30, between, long(V1, 0, &[0xf2; 8], &CLIENT_ID, 1_200)),
        (50, back, retry),
        (60, between, long(V1, 0, &SERVER_ID, &CLIENT_ID, 1_200)),
        (80, back, long(V1, 2, &CLIENT_ID, &[0x52; 8], 1_200)),
    ];
    let [one] = &quic(&datagrams)[..] else { panic!("one connection") };
    let known = one.analysis.handshake;
    assert_eq!((known.retries.0, known.negotiations.0, known.round_trips()), (1, 1, 3));
    assert_eq!(known.duration(), Some(80_000_000));
    assert_eq!(one.offered, [QuicVersion::V1, QuicVersion::V2]);
    assert_eq!(one.versions[0].1, QuicVersion(grease));
    // Alone, a datagram of an unknown version is none, nor is a negotiation that answers nothing.
    assert!(quic(&datagrams[..1]).is_empty());
    assert!(quic(&[(0, back, negotiation)]).is_empty());
}

#[test]
fn other_protocols_of_udp_are_no_quic() {
    let between = ends(50_000, 443);
    let mut draws = RandomStream::named(1, "captured_quic", "payload");
    let mut random = |begin: &[u8], len: usize| {
        let mut bytes = begin.to_vec();
        bytes.resize_with(len, || draws.below(256) as u8);
        bytes
    };
    let mut datagrams: Vec<Vec<u8>> = vec![
        // A query of DNS whose id has the bits of a long header; its flags and counts follow.
        random(&[0xc0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], 1_200),
        random(&[0xc3, 0, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0], 1_200),
        // STUN, DTLS (ClientHello), RTP, RTCP, WireGuard (initiation, data).
        random(&[0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42], 1_200),
        random(&[22, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 0, 0], 1_200),
        random(&[0x80, 0x60, 0, 1], 1_200),
        random(&[0x81, 200, 0, 6], 1_200),
        random(&[1, 0, 0, 0], 148),
        random(&[4, 0, 0, 0], 1_300),
        // A long header that is too short for an Initial, without the fixed bit, or too long for its datagram.
        long(V1, 0, &FIRST_ID, &CLIENT_ID, 1_199),
        long(V1, 0, &FIRST_ID, &CLIENT_ID, 1_200)
            .iter()
            .enumerate()
            .map(|(at, byte)| if at == 0 { byte & 0xbf } else { *byte })
            .collect(),
        long(V1, 0, &FIRST_ID, &CLIENT_ID, 1_300)[..1_250].to_vec(),
        short(&SERVER_ID, false, 800),
    ];
    datagrams.extend((0..2_000).map(|_| random(&[], 1_250)));
    let sent: Vec<_> = datagrams.into_iter().zip(0..).map(|(one, n)| (n, between, one)).collect();
    let reading = read_bytes(&file(&sent, usize::MAX));
    assert!(reading.captured_quic.is_empty());
    assert_eq!(reading.files[0].others.protocols.get(&17), Some(&(sent.len() as u64)));
}

#[test]
fn a_snap_length_leaves_the_headers() {
    let between = ends(50_000, 443);
    let whole = quic(&opened(between));
    // IP, UDP, and the long headers up to the length.
    let reading = read_bytes(&file(&opened(between), 28 + 30));
    let [one] = &reading.captured_quic[..] else { panic!("one connection") };
    assert_eq!(one.analysis.bytes(), whole[0].analysis.bytes());
    assert_eq!(one.analysis.handshake.client_initial, whole[0].analysis.handshake.client_initial);
    for snaplen in 0..60 {
        let _ = read_bytes(&file(&opened(between), snaplen.max(20)));
    }
}

#[test]
fn tcp_is_read_as_without_quic() {
    let tcp = ends(4_000, 80);
    let packets: &[Sent] = &[(0, 500, tcp, SYN, 100, 0, 0), (0, 520, tcp, ACK, 101, 901, 1_000)];
    let alone = read_bytes(&capture(packets));
    // The frames of one file after those of the other.
    let mut joined = file(&opened(ends(50_000, 443)), usize::MAX);
    joined.extend(capture(packets));
    let both = read_bytes(&joined);
    assert_eq!(both.captured_quic.len(), 1);
    let frames = |reading: &Reading| {
        let analysis = reading.streams[0].analysis().into_owned();
        (
            analysis.first,
            analysis.last,
            analysis.frames,
            reading.files[0].begins,
            reading.files[0].tcp,
        )
    };
    assert_eq!(frames(&both), frames(&alone));
}

#[test]
fn one_wrong_time_moves_no_others() {
    let mut datagrams = opened(ends(50_000, 443));
    datagrams[1].0 = 4_000_000_000;
    let [one] = &quic(&datagrams)[..] else { panic!("one connection") };
    assert_eq!(one.analysis.duration(), 70_000_000);
}
