//! Fragments of IP packets.

use packet::wire::{Endpoints, emit};
use packet::{Flags, Segment};
use units::{Offset, SeqNum};

use super::super::{FragmentCounts, InputKind, ReadMode, Reading, read_with};
use super::{KEEP, read_bytes, source};

/// A capture of raw IP packets, a millisecond apart, truncated to `snap` bytes.
fn pcap(packets: &[Vec<u8>], snap: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 101] {
        bytes.extend(word.to_le_bytes());
    }
    for (n, packet) in packets.iter().enumerate() {
        let kept = packet.len().min(snap);
        for word in [1_000, n as u32 * 1_000, kept as u32, packet.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(&packet[..kept]);
    }
    bytes
}

fn ends(v6: bool) -> Endpoints {
    if v6 {
        Endpoints {
            src: "[2001:db8::1]:40000".parse().unwrap(),
            dst: "[2001:db8::2]:80".parse().unwrap(),
        }
    } else {
        Endpoints { src: ([10, 0, 0, 1], 40_000).into(), dst: ([10, 0, 0, 2], 80).into() }
    }
}

/// A segment of `payload` bytes with this identification, in fragments that begin at `cuts`.
fn fragmented(v6: bool, id: u16, seq: u32, payload: u32, cuts: &[usize]) -> Vec<Vec<u8>> {
    let segment = Segment { flags: Flags::ACK, seq: SeqNum(seq), payload, ..Segment::default() };
    let segment = match v6 {
        true => Segment { ip: packet::IpVersion::V6, ..segment },
        false => segment,
    };
    let mut whole = Vec::new();
    emit(&segment, &ends(v6), id, Offset(0), &mut whole).unwrap();
    let header = if v6 { 40 } else { 20 };
    let contents = whole.split_off(header);
    let ends = cuts.iter().skip(1).copied().chain([contents.len()]);
    cuts.iter().zip(ends).map(|(&from, to)| part(&whole, id, (from, to), &contents)).collect()
}

/// The fragment with these bytes of `contents`.
fn part(header: &[u8], id: u16, (from, to): (usize, usize), contents: &[u8]) -> Vec<u8> {
    let mut out = header.to_vec();
    let more = u16::from(to < contents.len());
    if header.len() == 40 {
        // RFC 8200 section 4.5: next header, reserved, offset and flag, identification.
        out[4..6].copy_from_slice(&(8 + (to - from) as u16).to_be_bytes());
        out[6] = 44;
        out.extend([6, 0]);
        out.extend((from as u16 | more).to_be_bytes());
        out.extend(u32::from(id).to_be_bytes());
    } else {
        // RFC 791 section 3.1: total length, flags and offset in words of eight bytes.
        out[2..4].copy_from_slice(&(20 + (to - from) as u16).to_be_bytes());
        out[6..8].copy_from_slice(&((from / 8) as u16 | more << 13).to_be_bytes());
    }
    out.extend(&contents[from..to]);
    out
}

fn outcome(reading: &Reading) -> (u64, FragmentCounts) {
    let file = &reading.files[0];
    assert_eq!(file.kind, InputKind::Capture);
    (file.tcp, file.others.fragmented)
}

fn bytes(reading: &Reading) -> u64 {
    reading.streams.iter().map(|one| one.analysis().main().map_or(0, |flow| flow.bytes)).sum()
}

/// In order, in reverse, with a fragment captured twice, with a TCP header in three fragments, and
/// truncated by the snap length.
#[test]
fn fragments_are_reassembled_in_any_order() {
    for v6 in [false, true] {
        let parts = fragmented(v6, 7, 1_000, 3_000, &[0, 8, 16, 1_480, 2_960]);
        let mut reversed = parts.clone();
        reversed.reverse();
        let mut twice = parts.clone();
        twice.insert(2, parts[1].clone());
        for (packets, snap, used) in
            [(&parts, 65_535, 5), (&reversed, 65_535, 5), (&twice, 65_535, 6), (&parts, 96, 5)]
        {
            let reading = read_bytes(&pcap(packets, snap));
            let counts = FragmentCounts { reassembled: 1, used, ..FragmentCounts::default() };
            assert_eq!(outcome(&reading), (1, counts), "IPv6: {v6}");
            assert_eq!(bytes(&reading), 3_000);
            let packet = reading.streams[0].analysis().packets[0];
            assert_eq!((packet.segment.seq, packet.frame), (SeqNum(1_000), packets.len() as u64));
            assert_eq!(packet.captured < 3_000, snap < 100);
        }
    }
}

#[test]
fn incomplete_and_overlapping_fragments_are_counted() {
    let mut packets = fragmented(false, 1, 1_000, 3_000, &[0, 1_480, 2_960]);
    packets.remove(1);
    // The second fragment begins before the end of the first.
    let other = fragmented(false, 2, 4_000, 3_000, &[0, 1_480, 2_960]);
    let overlap = fragmented(false, 2, 4_000, 3_000, &[0, 1_472, 2_960]);
    packets.extend([other[0].clone(), overlap[1].clone(), other[1].clone(), other[2].clone()]);
    packets.extend(fragmented(false, 3, 7_000, 1_000, &[0, 800]));
    let reading = read_bytes(&pcap(&packets, 65_535));
    let counts =
        FragmentCounts { reassembled: 1, used: 2, unused: 6, incomplete: 1, overlapping: 1 };
    assert_eq!(outcome(&reading), (1, counts));
    assert_eq!(bytes(&reading), 1_000);
}

/// Fragments of more packets than are kept: the oldest are given up.
#[test]
fn memory_for_fragments_is_bounded() {
    let first = |id: u16| fragmented(false, id, 1_000, 3_000, &[0, 1_480]).remove(0);
    let packets: Vec<_> = (1..=5_000).map(first).collect();
    let reading = read_bytes(&pcap(&packets, 96));
    let (_, counts) = outcome(&reading);
    assert_eq!((counts.reassembled, counts.incomplete), (0, 5_000));
}

/// Only the first fragment of a packet was captured: its header shows the connection, and the bytes of
/// the fragment, less the header of 20 bytes, were captured.
#[test]
fn a_first_fragment_alone_shows_its_connection() {
    let packets = [fragmented(false, 1, 1_000, 3_000, &[0, 1_480]).remove(0)];
    let reading = read_bytes(&pcap(&packets, 65_535));
    assert_eq!((reading.streams.len(), bytes(&reading)), (1, 1_460));
    assert_eq!(reading.streams[0].analysis().packets[0].frame, 1);
    let counts = FragmentCounts { unused: 1, incomplete: 1, ..FragmentCounts::default() };
    assert_eq!(outcome(&reading), (1, counts));
}

/// The parts of a ring may end between the fragments of a packet.
#[test]
fn fragments_in_two_parts_of_a_ring_are_reassembled() {
    let mut packets = fragmented(false, 7, 1_000, 3_000, &[0, 1_480, 2_960]);
    packets.extend(fragmented(false, 8, 4_000, 1_000, &[0, 800]));
    let whole = pcap(&packets, 65_535);
    let first = 24 + packets[..2].iter().map(|packet| 16 + packet.len()).sum::<usize>();
    let parts = [&whole[..first], &[&whole[..24], &whole[first..]].concat()];
    let sources = parts.iter().map(|bytes| source("part", bytes)).collect();
    let mode = ReadMode { is_ring: true, ..ReadMode::default() };
    let reading = read_with(sources, KEEP, mode).unwrap();
    let alone = read_bytes(&whole);
    let counts = FragmentCounts { reassembled: 2, used: 5, ..FragmentCounts::default() };
    assert_eq!(outcome(&reading), (2, counts));
    assert_eq!(bytes(&reading), 4_000);
    let packets = |reading: &Reading| reading.streams[0].analysis().packets.clone();
    assert_eq!(packets(&reading), packets(&alone));
}
