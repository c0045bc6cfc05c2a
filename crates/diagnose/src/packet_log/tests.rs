use proptest::prelude::*;

use super::*;

fn options() -> impl Strategy<Value = Options> {
    let fast_open =
        (0..8_usize, any::<[u8; 16]>(), any::<bool>()).prop_map(|(n, bytes, experimental)| {
            // 0, or 4 to 16.
            let len = if n == 0 { 0 } else { 2 + 2 * n };
            FastOpenOption::new(&bytes[..len], experimental)
        });
    let extras =
        any::<(bool, bool, Option<u8>)>().prop_map(|(multipath, accurate_ecn, fast_open)| {
            SynExtras { multipath, accurate_ecn, fast_open }
        });
    let syn = (any::<u16>(), any::<Option<u8>>(), any::<bool>(), 0..3_usize, fast_open, extras)
        .prop_map(|(mss, window_scale, sack_permitted, layout, fast_open, extras)| {
            let layout = [SynLayout::FreeBsd, SynLayout::Linux, SynLayout::Other][layout];
            Options::Syn(SynOptions {
                mss,
                window_scale,
                sack_permitted,
                layout,
                fast_open,
                extras,
            })
        });
    let blocks = proptest::collection::vec(any::<(u32, u32)>(), 0..=4).prop_map(|list| {
        let mut blocks = SackBlocks::EMPTY;
        for (left, right) in list {
            blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
        }
        Options::from(blocks)
    });
    prop_oneof![Just(Options::None), syn, blocks]
}

fn packet() -> impl Strategy<Value = CapturedPacket> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), any::<u32>());
    let small = (any::<u16>(), any::<u16>(), any::<u16>(), any::<u16>(), 0..4_u8, 0..3_u8);
    let stamps = any::<Option<(u32, u32)>>();
    let rest = (any::<u8>(), any::<[bool; 4]>(), any::<u32>(), 0..3_u32);
    (numbers, small, stamps, rest, options()).prop_map(
        |(numbers, small, stamps, (flags, bools, captured, flow), options)| {
            let (at, frame, seq, ack, payload) = numbers;
            let (window, gso_size, nsegs, id, ecn, ttl) = small;
            let [reverse, v6, options_cut, whole] = bools;
            let segment = Segment {
                flow: FlowId(flow),
                seq: SeqNum(seq),
                // The length of a burst is computed in 32 bits.
                payload: payload >> 12,
                dir: if reverse { Dir::Reverse } else { Dir::Forward },
                ip: if v6 { IpVersion::V6 } else { IpVersion::V4 },
                ecn,
                flags: Flags(flags),
                ack: SeqNum(ack),
                window,
                gso_size,
                nsegs,
                timestamps: stamps.map(|(val, ecr)| Timestamps { val, ecr }),
                options,
            };
            let wire = segment.wire_len().get() as u32;
            CapturedPacket {
                at: Instant::from_nanos(at >> 1),
                frame,
                segment,
                captured: if whole { wire } else { captured },
                id,
                ttl,
                options_cut,
            }
        },
    )
}

fn ends(v6: bool) -> Endpoints {
    let end = |last: u8, port| match v6 {
        true => SocketAddr::from(([0xfe80, 1, 2, 3, 4, 5, 6, u16::from(last)], port)),
        false => SocketAddr::from(([192, 0, 2, last], port)),
    };
    Endpoints { src: end(1, 40_000), dst: end(2, 65_535) }
}

proptest! {
    /// Any packets are read as they were written.
    #[test]
    fn packets_survive(packets in proptest::collection::vec(packet(), 0..20), src6: bool, dst6: bool) {
        let ends = Endpoints { src: ends(src6).src, dst: ends(dst6).dst };
        let mut log = PacketLog::new(ends, [0, 7, u32::MAX, 9]);
        packets.iter().for_each(|packet| log.push(packet));
        prop_assert_eq!(log.reader().ends(), ends);
        prop_assert_eq!(log.reader().numbers(), [0, 7, u32::MAX, 9]);
        let bytes = log.into_bytes();
        prop_assert_eq!(PacketLogReader::new(&bytes).collect::<Vec<_>>(), packets);
    }
}

/// The sum of the fields of a data packet with timestamps, in order: 3 bytes of bits, 3 of time
/// (1 ms), 1 of frame, 1 each of sequence and acknowledgment number, 2 of window, 2 of payload,
/// 2 of identification, 1 each of the timestamps.
#[test]
fn a_usual_packet_takes_seventeen_bytes() {
    let mut log = PacketLog::new(ends(false), [0; 4]);
    let mut before = 0;
    for n in 1..=3_u32 {
        let segment = Segment {
            flags: Flags::ACK,
            seq: SeqNum(7_000 + n * 1_448),
            ack: SeqNum(9_000),
            payload: 1_448,
            window: 500,
            timestamps: Some(Timestamps { val: 80_000 + n, ecr: 90_000 }),
            ..Segment::default()
        };
        let packet = CapturedPacket {
            at: Instant::from_nanos(u64::from(n) * 1_000_000),
            frame: u64::from(n),
            segment,
            captured: segment.wire_len().get() as u32,
            id: 100 + n as u16,
            ttl: 64,
            options_cut: false,
        };
        before = log.len();
        log.push(&packet);
    }
    // The other host has sent nothing that predicts the acknowledgment number and the echo:
    // 2 more bytes for each.
    assert_eq!(log.len() - before, 17 + 2 + 2);
}
