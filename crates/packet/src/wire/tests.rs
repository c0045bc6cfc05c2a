//! Packets of a real kernel, the checksums of RFC 1071, and round trips of random segments.

use std::net::SocketAddr;

use proptest::prelude::*;
use units::{Offset, SeqNum};

use super::*;
use crate::{
    Flags, IpVersion, Options, SackBlock, SackBlocks, Segment, SynLayout, SynOptions, Timestamps,
};

/// Client and server of the Linux 6.18 capture that the vectors below come from.
fn linux_pair() -> Endpoints {
    Endpoints {
        src: SocketAddr::from(([10, 83, 77, 1], 40_001)),
        dst: SocketAddr::from(([10, 83, 77, 2], 47_101)),
    }
}

fn bytes_of(segment: &Segment, between: &Endpoints, id: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit(segment, between, id, Offset(0), &mut bytes).unwrap();
    bytes
}

fn hex(words: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        words.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[test]
fn a_syn_has_the_bytes_linux_sent() {
    let kernel =
        hex("4500 003c a5f4 4000 4006 e61e 0a53 4d01 0a53 4d02 9c41 b7fd 18c5 c064 0000 0000
         a002 faf0 544e 0000 0204 05b4 0402 080a e6dd 35ce 0000 0000 0103 030a");
    let syn = Segment {
        flags: Flags::SYN,
        seq: SeqNum(415_613_028),
        window: 64_240,
        timestamps: Some(Timestamps { val: 3_873_256_910, ecr: 0 }),
        options: Options::Syn(SynOptions {
            mss: 1_460,
            window_scale: Some(10),
            sack_permitted: true,
            layout: SynLayout::Linux,
            ..SynOptions::default()
        }),
        ..Segment::default()
    };
    assert_eq!(bytes_of(&syn, &linux_pair(), 0xa5f4), kernel);
    let seen = parse(&kernel, Link::Raw).unwrap();
    assert_eq!((seen.segment, seen.endpoints, seen.id), (syn, linux_pair(), 0xa5f4));
    assert!(seen.options_complete && seen.payload.is_empty());
    // The reserved bits end with AE (RFC 9768 section 3.1).
    let mut accurate = kernel;
    accurate[32] |= 1;
    let seen = parse(&accurate, Link::Raw).unwrap();
    assert!(seen.segment.syn_options().unwrap().extras.accurate_ecn);
}

#[test]
fn a_sack_has_the_bytes_linux_sent() {
    let kernel =
        hex("4500 0040 6e72 4000 4006 1d9d 0a53 4d02 0a53 4d01 b7fd 9c41 349e 411d bfc8 fa2c
         b010 0067 eabc 0000 0101 080a ed26 f7f4 e6db c115 0101 050a bfc8 ffd4 bfc9 1674");
    let isn = 3_217_549_619_u32;
    let mut blocks = SackBlocks::EMPTY;
    // tcpdump: sack 1 {71329:77121}, relative to the ISN of the other side.
    blocks.push(SackBlock {
        left: SeqNum(isn.wrapping_add(71_329)),
        right: SeqNum(isn.wrapping_add(77_121)),
    });
    let ack = Segment {
        flags: Flags::ACK,
        seq: SeqNum(882_786_589),
        ack: SeqNum(isn.wrapping_add(69_881)),
        window: 103,
        timestamps: Some(Timestamps { val: 3_978_754_036, ecr: 3_873_161_493 }),
        options: blocks.into(),
        ..Segment::default()
    };
    assert_eq!(bytes_of(&ack, &linux_pair().reversed(), 0x6e72), kernel);
    assert_eq!(parse(&kernel, Link::Raw).unwrap().segment, ack);
}

#[test]
fn a_cut_off_packet_keeps_its_length() {
    let data = Segment { flags: Flags::ACK, payload: 1_448, ..Segment::default() };
    let bytes = bytes_of(&data, &linux_pair(), 1);
    let seen = parse(&bytes[..96], Link::Raw).unwrap();
    assert_eq!(seen.segment.payload, 1_448);
    assert_eq!(seen.payload.len(), 96 - 40);

    let cut = parse(&bytes[..30], Link::Raw).unwrap_err();
    assert_eq!(cut, WireError { offset: 20, problem: WireProblem::Cut { needed: 10 } });
}

#[test]
fn an_ip_length_of_zero_means_the_whole_capture() {
    for (ip, length_at) in [(IpVersion::V4, 2), (IpVersion::V6, 4)] {
        let data = Segment { ip, flags: Flags::ACK, payload: 9, ..Segment::default() };
        let mut bytes = bytes_of(&data, &pair(ip), 1);
        bytes[length_at..length_at + 2].fill(0);
        assert_eq!(parse(&bytes, Link::Raw).unwrap().segment.payload, 9);
    }
}

#[test]
fn truncated_options_are_flagged() {
    let mut blocks = SackBlocks::EMPTY;
    blocks.push(SackBlock { left: SeqNum(5), right: SeqNum(9) });
    let timestamps = Some(Timestamps { val: 1, ecr: 2 });
    let sack = Segment { timestamps, options: blocks.into(), payload: 100, ..Segment::default() };
    let bytes = bytes_of(&sack, &linux_pair(), 1);
    let whole = parse(&bytes, Link::Raw).unwrap();
    assert!(whole.options_complete && !whole.options_cut);
    // 20 of IP, 20 of TCP, 12 of timestamps; of the SACK option only kind and length.
    let seen = parse(&bytes[..56], Link::Raw).unwrap();
    assert!(!seen.options_complete && seen.options_cut && seen.payload.is_empty());
    assert_eq!(seen.segment, Segment { options: Options::None, ..sack });
    let seen = parse(&bytes[..45], Link::Raw).unwrap();
    let bare = Segment { options: Options::None, timestamps: None, ..sack };
    assert_eq!((seen.segment, seen.options_complete), (bare, false));
}

#[test]
fn super_packets_of_big_tcp_have_their_length() {
    // IPv4: a length of 0; the capture has the original length.
    let data = Segment { flags: Flags::ACK, payload: 60_000, ..Segment::default() };
    let mut bytes = bytes_of(&data, &linux_pair(), 1);
    bytes[2..4].fill(0);
    let seen = parse_cut(&bytes[..96], 200_040, Link::Raw).unwrap();
    assert_eq!((seen.segment.payload, seen.payload.len()), (200_000, 56));
    // IPv6: a length of 0 and a hop-by-hop header with 200,020 + 8 bytes after the IPv6 header.
    let data = Segment { ip: IpVersion::V6, ..data };
    let mut bytes = bytes_of(&data, &pair(IpVersion::V6), 1);
    bytes[4..6].fill(0);
    bytes[6] = 0;
    let length = 200_028_u32.to_be_bytes();
    let option = [&[6, 0, 0xc2, 4][..], &length].concat();
    bytes.splice(40..40, option);
    let seen = parse(&bytes[..150], Link::Raw).unwrap();
    assert_eq!((seen.segment.payload, seen.payload.len()), (200_000, 150 - 68));
    // Without the option, the captured length counts.
    bytes[42] = 1;
    let seen = parse_cut(&bytes[..150], 268, Link::Raw).unwrap();
    assert_eq!(seen.segment.payload, 200);
}

#[test]
fn the_header_below_is_stripped_by_link_type() {
    let segment = Segment { flags: Flags::ACK, payload: 5, ..Segment::default() };
    let ip = bytes_of(&segment, &linux_pair(), 1);
    let below: [(u16, Vec<u8>); 8] = [
        (1, [&[0; 12][..], &[8, 0]].concat()),
        (1, [&[0; 12][..], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7, 8, 0]].concat()),
        (1, [&[0; 12][..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 47, 0, 0x21]].concat()),
        (1, [&[0; 12][..], &[0x81, 0, 0, 7, 8, 0]].concat()),
        (0, vec![2, 0, 0, 0]),
        (113, [&[0; 14][..], &[8, 0]].concat()),
        (276, [&[8, 0][..], &[0; 18]].concat()),
        (101, vec![]),
    ];
    for (linktype, header) in below {
        let link = Link::from_linktype(linktype).unwrap();
        let mut bytes = [&header[..], &ip].concat();
        // Ethernet pads short frames: bytes beyond the IP length are no payload.
        bytes.extend([0; 7]);
        let seen = parse(&bytes, link).unwrap();
        assert_eq!((seen.segment, seen.payload.len()), (segment, 5), "{link:?}");
    }
    assert_eq!(Link::from_linktype(147), None);
}

#[test]
fn errors_have_the_offset() {
    let error = |bytes: &[u8], link| parse(bytes, link).unwrap_err();
    let at = |offset, problem| WireError { offset, problem };
    assert_eq!(error(&[], Link::Raw), at(0, WireProblem::Cut { needed: 1 }));
    assert_eq!(error(&[0x15; 40], Link::Raw), at(0, WireProblem::NotIp));
    let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
    assert_eq!(error(&arp, Link::Ethernet), at(12, WireProblem::NotIp));

    let good = bytes_of(&Segment::default(), &linux_pair(), 1);
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    assert_eq!(error(&changed(9, 17), Link::Raw), at(20, WireProblem::NotTcp(17)));
    assert_eq!(error(&changed(6, 0x20), Link::Raw), at(20, WireProblem::Fragment));
    assert_eq!(error(&changed(32, 0x40), Link::Raw), at(32, WireProblem::BadLength));
    assert_eq!(error(&changed(32, 0x60), Link::Raw), at(32, WireProblem::BadLength));
}

/// The record of a capture may claim any length; an IP length of zero means that length.
#[test]
fn a_packet_is_not_longer_than_offloads_allow() {
    let mut bytes = bytes_of(&Segment::default(), &linux_pair(), 1);
    bytes[2..4].fill(0);
    let long = parse_cut(&bytes, 20 + 8 * 65_535, Link::Raw).unwrap();
    assert_eq!(long.segment.payload, 8 * 65_535 - 20);
    for claimed in [21 + 8 * 65_535, 3_760_000_000] {
        let error = parse_cut(&bytes, claimed, Link::Raw).unwrap_err();
        assert_eq!(error, WireError { offset: 20, problem: WireProblem::TooLong });
    }
}

#[test]
fn oversized_segments_are_refused_without_output() {
    let mut out = Vec::new();
    let mut refused = |segment: &Segment, between: &Endpoints| {
        let error = emit(segment, between, 0, Offset(0), &mut out).unwrap_err();
        assert!(out.is_empty());
        error
    };
    // 65,535 = 20 (IP) + 20 (TCP) + 65,495.
    let long = Segment { payload: 65_496, ..Segment::default() };
    assert_eq!(refused(&long, &linux_pair()), EmitError::TooLong { bytes: 65_536 });
    let v6 = Segment { ip: IpVersion::V6, ..Segment::default() };
    let family = EmitError::Family { segment: IpVersion::V6, between: linux_pair() };
    assert_eq!(refused(&v6, &linux_pair()), family);
    bytes_of(&Segment { payload: 65_495, ..Segment::default() }, &linux_pair(), 0);
}

fn pair(ip: IpVersion) -> Endpoints {
    match ip {
        IpVersion::V4 => linux_pair(),
        IpVersion::V6 => Endpoints {
            src: "[2001:db8::1]:40001".parse().unwrap(),
            dst: "[2001:db8::2]:47101".parse().unwrap(),
        },
    }
}

/// Sum of 16-bit words in one's complement (RFC 1071): 0xffff where a checksum is right.
fn ones_sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn checksums_are_valid(bytes: &[u8]) -> bool {
    if bytes[0] >> 4 == 4 {
        let tcp = &bytes[20..];
        let pseudo = [&bytes[12..20], &[0, 6], &(tcp.len() as u16).to_be_bytes()].concat();
        ones_sum(&[&bytes[..20]]) == 0xffff && ones_sum(&[&pseudo, tcp]) == 0xffff
    } else {
        let tcp = &bytes[40..];
        let pseudo = [&bytes[8..40], &(tcp.len() as u32).to_be_bytes(), &[0, 0, 0, 6]].concat();
        ones_sum(&[&pseudo, tcp]) == 0xffff
    }
}

fn timestamps() -> impl Strategy<Value = Option<Timestamps>> {
    proptest::option::of(
        (any::<u32>(), any::<u32>()).prop_map(|(val, ecr)| Timestamps { val, ecr }),
    )
}

fn sack_options() -> impl Strategy<Value = (bool, Options)> {
    proptest::collection::vec((any::<u32>(), any::<u32>()), 0..=3).prop_map(|ranges| {
        let mut blocks = SackBlocks::EMPTY;
        for (left, right) in ranges {
            blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
        }
        (false, blocks.into())
    })
}

fn syn_options() -> impl Strategy<Value = (bool, Options)> {
    (any::<u16>(), proptest::option::of(0..=14_u8), any::<bool>(), any::<bool>()).prop_map(
        |(mss, window_scale, sack_permitted, linux)| {
            let layout = if linux { SynLayout::Linux } else { SynLayout::FreeBsd };
            (
                true,
                Options::Syn(SynOptions {
                    mss,
                    window_scale,
                    sack_permitted,
                    layout,
                    ..SynOptions::default()
                }),
            )
        },
    )
}

prop_compose! {
    fn segment()(
        v6 in any::<bool>(),
        ecn in 0..4_u8,
        flags in any::<u8>(),
        (seq, ack, window) in any::<(u32, u32, u16)>(),
        payload in 0..20_000_u32,
        timestamps in timestamps(),
        (is_syn, options) in prop_oneof![sack_options(), syn_options()],
    ) -> Segment {
        let flags = Flags(flags).without(Flags::SYN);
        Segment {
            ip: if v6 { IpVersion::V6 } else { IpVersion::V4 },
            ecn,
            flags: if is_syn { flags | Flags::SYN } else { flags },
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            window,
            payload,
            timestamps,
            options,
            ..Segment::default()
        }
    }
}

/// `segment` with the layout of `other`.
fn with_layout_of(segment: Segment, other: &Segment) -> Segment {
    match (segment.options, other.syn_options()) {
        (Options::Syn(syn), Some(&SynOptions { layout, .. })) => {
            Segment { options: Options::Syn(SynOptions { layout, ..syn }), ..segment }
        }
        _ => segment,
    }
}

proptest! {
    #[test]
    fn any_segment_round_trips(sent in segment(), id in any::<u16>(), place in any::<u32>()) {
        let between = pair(sent.ip);
        let mut bytes = Vec::new();
        emit(&sent, &between, id, Offset(u64::from(place)), &mut bytes).unwrap();
        prop_assert_eq!(bytes.len() as u64, sent.wire_len().get());
        prop_assert!(checksums_are_valid(&bytes));

        let seen = parse(&bytes, Link::Raw).unwrap();
        // Some options look the same in both layouts; then the bytes must be the same too.
        prop_assert_eq!(seen.segment, with_layout_of(sent, &seen.segment));
        prop_assert_eq!(seen.endpoints, between);
        prop_assert!(seen.options_complete);
        let expected: Vec<u8> =
            (0..sent.payload).map(|n| ((u64::from(place) + u64::from(n)) % 251) as u8).collect();
        prop_assert_eq!(seen.payload, expected);

        let mut repeated = Vec::new();
        emit(&seen.segment, &between, id, Offset(u64::from(place)), &mut repeated).unwrap();
        prop_assert_eq!(bytes, repeated);
    }

    #[test]
    fn any_bytes_parse_or_are_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
        version in prop_oneof![Just(0x45), Just(0x60), any::<u8>()],
        link in prop_oneof![
            Just(Link::Raw), Just(Link::Ethernet), Just(Link::Loopback),
            Just(Link::LinuxSll), Just(Link::LinuxSll2)
        ],
    ) {
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        match parse(&bytes, link) {
            Ok(seen) => prop_assert!(seen.payload.len() <= bytes.len()),
            Err(error) => prop_assert!(error.offset <= bytes.len() + 40, "{}", error),
        }
    }

    #[test]
    fn a_corrupted_packet_parses_or_is_refused(
        sent in segment(), place in 0..100_usize, byte in any::<u8>(), keep in 0..200_usize,
    ) {
        let mut bytes = bytes_of(&sent, &pair(sent.ip), 0);
        if let Some(target) = bytes.get_mut(place) {
            *target = byte;
        }
        bytes.truncate(keep);
        let _ = parse(&bytes, Link::Raw);
    }
}

#[test]
fn layouts_that_differ_on_the_wire_are_distinguished() {
    for layout in [SynLayout::FreeBsd, SynLayout::Linux] {
        let options = Options::Syn(SynOptions {
            mss: 1_440,
            window_scale: Some(7),
            sack_permitted: true,
            layout,
            ..SynOptions::default()
        });
        let syn = Segment { flags: Flags::SYN, options, ..Segment::default() };
        let bytes = bytes_of(&syn, &linux_pair(), 0);
        assert_eq!(parse(&bytes, Link::Raw).unwrap().segment.options, options);
    }
}

#[test]
fn a_given_payload_replaces_the_pattern() {
    let segment = Segment { flags: Flags::ACK, payload: 5, ..Segment::default() };
    let between = Endpoints {
        src: SocketAddr::from(([10, 0, 0, 1], 1)),
        dst: SocketAddr::from(([10, 0, 0, 2], 2)),
    };
    let (mut pattern, mut given) = (Vec::new(), Vec::new());
    emit(&segment, &between, 7, Offset(250), &mut pattern).unwrap();
    emit_payload(&segment, &between, 7, &[250, 0, 1, 2, 3], &mut given).unwrap();
    assert_eq!(pattern, given);
    let short = emit_payload(&segment, &between, 7, &[1], &mut given);
    assert_eq!(short, Err(EmitError::Payload { expected: 5, given: 1 }));
    assert_eq!(pattern, given, "nothing is appended on an error");
}

/// Found by fuzzing: destination options followed by a hop-by-hop header, which may only come
/// first, in a packet without a length.
#[test]
fn misplaced_extension_headers_are_refused() {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 60, 64];
    packet.extend([0; 32]);
    packet.extend([0, 0, 1, 4, 0, 0, 0, 0]);
    assert!(parse(&packet, Link::Raw).is_err());
    packet.extend([6, 0, 0xc2, 4, 0, 0, 0, 20]);
    assert!(parse(&packet, Link::Raw).is_err());
}
