use super::*;
use crate::profile::TcpProfile;
use units::Bytes;

use crate::profile::BufferGrowth;

#[test]
fn freebsd_advertises_the_windows_of_the_freebsd_net_post() {
    // Seed 000 of the freebsd-net post: SYN `win 65535 ... wscale 10`, then `win 65`; the scale
    // needs a kern.ipc.maxsockbuf of 32 MiB.
    let rule = ReceiveBufferRule::FreeBsd {
        space: Bytes(65_536),
        auto: true,
        max: Bytes(2 << 20),
        maxsockbuf: Bytes(32 << 20),
    };
    let mut window = ReceiveWindow::new(rule, true, 1_460);
    assert_eq!(window.offered_scale(), Some(10));
    assert_eq!(window.syn_field(), 65_535);
    window.on_established(Instant::ZERO, true, 1_460, 1_448);
    let offered = window.window(0, 0);
    assert_eq!(window.field(offered), 65);
}

#[test]
fn linux_advertises_the_windows_of_the_traces() {
    let window = |name: &str, mss| {
        ReceiveWindow::new(TcpProfile::named(name).unwrap().receive_buffer, true, mss)
    };
    // SYN of a client: 44 * 1460; SYN-ACK with timestamps: 45 * 1448; scale 10 for 32 MB.
    assert_eq!(window("linux-6.18", 1_460).syn_field(), 64_240);
    assert_eq!(window("linux-6.18", 1_448).syn_field(), 65_160);
    assert_eq!(window("linux-6.18", 1_448).offered_scale(), Some(10));
}

#[test]
fn linux_scale_follows_tcp_rmem() {
    let rule = ReceiveBufferRule::Linux {
        rmem: [Bytes(4_096), Bytes(131_072), Bytes(6 << 20)],
        auto: true,
        rmem_max: Bytes(212_992),
        growth: BufferGrowth::RcvbufGrow,
        truesize: Bytes::ZERO,
    };
    assert_eq!(ReceiveWindow::new(rule, true, 1_448).offered_scale(), Some(7));
}

#[test]
fn linux_counts_more_than_the_field_of_a_syn_can_hold() {
    // Linux 6.12 with tcp_rmem 4096 540000 15728640: its SYN-ACK has `win 65535`, the segments after the handshake
    // `win 1050` with scale 8 and no ACK in between: 184 * 1460 of 270,000 bytes, in units of 256 rounded up.
    let rule = ReceiveBufferRule::Linux {
        rmem: [Bytes(4_096), Bytes(540_000), Bytes(15_728_640)],
        auto: true,
        rmem_max: Bytes(212_992),
        growth: BufferGrowth::RcvbufGrow,
        truesize: Bytes::ZERO,
    };
    let mut window = ReceiveWindow::new(rule, true, 1_460);
    let promised = window.syn_window();
    assert_eq!((window.syn_field(), promised), (65_535, 184 * 1_460));
    window.on_established(Instant::ZERO, true, 1_460, 1_460);
    let offered = window.window(promised, 0);
    assert_eq!((window.scale, window.field(offered)), (8, 1_050));
}

/// In-order payload of one segment.
fn in_order(len: u64, merged: bool) -> ReceivedPayload {
    ReceivedPayload {
        now: Instant::ZERO,
        len,
        end: Offset(len),
        merged,
        pushed: false,
        options: (12, 12),
        window: 65_160,
        in_order: len,
        waiting: 0,
    }
}

#[test]
fn linux_windows_are_those_of_a_recorded_transfer() {
    // golden/linux b1_lro45_cubic, receiver rows `X`: an aggregate of 14480 bytes is answered
    // with a window of 94208, the next one of 28960 with 81920 (92 and 80 at scale 10).
    let profile = TcpProfile::named("linux-6.18").unwrap();
    let mut window = ReceiveWindow::new(profile.receive_buffer, true, 1_448);
    window.on_established(Instant::ZERO, true, 1_460, 1_448);
    let promised = u64::from(window.syn_field());
    window.on_data(&in_order(14_480, true));
    let first = window.window(promised - 14_480, 0);
    assert_eq!((first, window.field(first)), (94_208, 92));
    window.on_read((Instant::ZERO, Instant::ZERO), 14_480, || 0);
    window.on_data(&in_order(28_960, true));
    let second = window.window(first - 28_960, 0);
    assert_eq!((second, window.field(second)), (81_920, 80));
}

#[test]
fn linux_adjusts_its_buffer_after_each_packet_of_a_read() {
    // tcp_recvmsg_locked calls tcp_rcv_space_adjust for each: after a gap was filled it sees one packet and much unread
    // data, and measures anew. World 228 of seed 1 against a kernel 6.12 in User-Mode Linux.
    let rule = |truesize| ReceiveBufferRule::Linux {
        rmem: [Bytes(4_096), Bytes(131_072), Bytes(6 << 20)],
        auto: true,
        rmem_max: Bytes(212_992),
        growth: BufferGrowth::SpaceAdjust,
        truesize: Bytes(truesize),
    };
    let late = Instant::ZERO + Duration::from_millis(100);
    // Eighteen packets after a gap are merged into one, which the packet that fills the gap cannot join.
    let size_after = |truesize, packets: u64| {
        let mut window = ReceiveWindow::new(rule(truesize), true, 1_448);
        window.on_established(Instant::ZERO, true, 1_460, 1_448);
        window.on_echo(1, 1_448, || 30);
        let packet = |number: u64, in_order| {
            let end = Offset(1 + (number + 1) * 1_448);
            ReceivedPayload { end, in_order, ..in_order_segment() }
        };
        for number in 1..packets {
            window.on_gap(&packet(number, 0), (number + 1) * 1_448, true);
        }
        window.on_data(&packet(0, packets * 1_448));
        window.on_read((late, late), packets * 1_448, || 0);
        window.size()
    };
    assert_eq!(size_after(2_176, 19), 131_072);
    // One packet: the whole read is measured, and exceeds the ten segments of the start.
    assert!(size_after(2_176, 18) > 131_072);
}

#[test]
fn linux_opens_the_window_for_a_fin_merged_with_data_after_a_gap() {
    // World 456 of seed 2 against a kernel 6.12 in User-Mode Linux: win 546, then 568, of 128 bytes.
    let rule = ReceiveBufferRule::Linux {
        rmem: [Bytes(4_096), Bytes(131_072), Bytes(6 << 20)],
        auto: true,
        rmem_max: Bytes(212_992),
        growth: BufferGrowth::SpaceAdjust,
        truesize: Bytes(2_176),
    };
    let mut window = ReceiveWindow::new(rule, true, 1_428);
    window.on_established(Instant::ZERO, true, 1_440, 1_428);
    let segment = |left: u64, len: u64, in_order: u64| {
        let end = Offset(left + len);
        ReceivedPayload { len, end, in_order, pushed: len < 1_428, ..in_order_segment() }
    };
    window.on_data(&segment(1, 1_428, 1_428));
    assert!(window.on_gap(&segment(2_857, 742, 0), 2_170, true));
    let before = window.selected(742);
    assert!(!window.on_merged_fin(&segment(3_599, 0, 0), false), "without SACK");
    assert!(window.on_merged_fin(&segment(3_599, 0, 0), true));
    assert_eq!(window.selected(742) - before, 22 * 128);
}

/// A full segment that extends the stream.
fn in_order_segment() -> ReceivedPayload {
    in_order(1_448, false)
}

#[test]
fn linux_counts_a_window_beyond_what_the_field_can_hold() {
    // Linux 6.12 without window scaling advertises 65535 while `rcv_wnd` is larger, and sends no
    // window update for the rest.
    let profile = TcpProfile::named("linux-6.12").unwrap();
    let mut window = ReceiveWindow::new(profile.receive_buffer, false, 1_240);
    window.on_established(Instant::ZERO, false, 1_240, 1_240);
    assert_eq!((window.field(70_000), window.counted(70_000, 65_535)), (65_535, 70_000));
    assert_eq!(freebsd(64).counted(70_000, 65_535), 65_535);
}

/// A FreeBSD window with a buffer of that many segments of 1,000 bytes, unscaled.
fn freebsd(segments: u64) -> ReceiveWindow {
    let rule = ReceiveBufferRule::FreeBsd {
        space: Bytes(1_000 * segments),
        auto: true,
        max: Bytes(1 << 20),
        maxsockbuf: Bytes(1 << 20),
    };
    let mut window = ReceiveWindow::new(rule, false, 1_000);
    window.on_established(Instant::ZERO, false, 1_000, 1_000);
    window
}

#[test]
fn no_window_grows_by_more_than_the_bound() {
    let mut stream = units::RandomStream::named(1, "window", "test");
    for n in 0..20_000 {
        let fixed = ReceiveBufferRule::Fixed { space: Bytes(1 + stream.below(200_000)) };
        let mut window = match n % 2 {
            0 => freebsd(1 + stream.below(200)),
            _ => ReceiveWindow::new(fixed, true, 1_000),
        };
        window.scale = stream.below(15) as u8;
        window.unread = stream.below(window.size + 1);
        let promised = stream.below(window.size + 2_000);
        let most = window.most_growth(promised);
        let offered = window.window(promised, 0);
        assert!(offered <= promised + most, "{window:?} {promised} {offered}");
    }
}

#[test]
fn freebsd_advertises_a_quarter_of_its_buffer_even_below_a_segment() {
    // tcp_output: the window is 0 if `recwin < so_rcv.sb_hiwat / 4 && recwin < t_maxseg`.
    let offered = |segments: u64, unread: u64| {
        let mut window = freebsd(segments);
        window.on_data(&in_order(unread, false));
        window.window(0, 0)
    };
    assert_eq!(offered(3, 2_250), 750);
    assert_eq!(offered(3, 2_251), 0);
    assert_eq!(offered(8, 7_000), 1_000);
    assert_eq!(offered(8, 7_001), 0);
}

#[test]
fn freebsd_grows_if_more_than_three_eighths_arrive_in_half_a_round_trip() {
    // tcp_autorcvbuf: `rfbuf_cnt > so_rcv.sb_hiwat / 2 / 4 * 3` grows it by a half.
    let after = |bytes: u64| {
        let mut window = freebsd(80);
        window.on_sent(0, || 1);
        assert_eq!(window.autosize(bytes, |_| (5, Some(5))), None);
        window.autosize(1, |_| (6, Some(5)))
    };
    assert_eq!(after(30_000), None);
    assert_eq!(after(30_001), Some(120_000));
}

#[test]
fn freebsd_measures_from_one_segment_sent_to_the_next_in_whole_milliseconds() {
    // tcp_autorcvbuf compares ticks of the millisecond clock, does not count the segment that
    // ends a measurement, and stops until tcp_output sends a segment (`rfbuf_ts == 0`).
    let mut window = freebsd(8);
    let long = |_| (u64::MAX, Some(0));
    assert_eq!(window.autosize(8_000, long), None, "nothing was sent");
    window.on_sent(0, || 1);
    assert_eq!(window.autosize(1, long), Some(12_000));
    window.on_data(&in_order(8_000, false));
    assert_eq!(window.autosize(8_000, long), None, "counted, not measured");
    window.on_sent(0, || 2);
    assert_eq!(window.autosize(8_000, |since| (u64::from(since), Some(2))), None);
    assert_eq!(window.autosize(0, |since| (u64::from(since), Some(1))), Some(18_000));
    // The segments that ended measurements are not counted.
    window.on_sent(0, || 3);
    assert_eq!(window.autosize(8_000, long), None);
}

/// A Linux window with 1,024,000 bytes of buffer at a scale of 7.
fn linux() -> ReceiveWindow {
    let rule = ReceiveBufferRule::Linux {
        rmem: [Bytes(4_096), Bytes(1_024_000), Bytes(6 << 20)],
        auto: true,
        rmem_max: Bytes(212_992),
        growth: BufferGrowth::RcvbufGrow,
        truesize: Bytes::ZERO,
    };
    let mut window = ReceiveWindow::new(rule, true, 1_448);
    window.on_established(Instant::ZERO, true, 1_448, 1_448);
    window
}

#[test]
fn linux_advertises_zero_below_a_sixteenth_and_rounds_down_below_a_half() {
    // __tcp_select_window: whole units of the scaled field, then
    // `free_space < (allowed_space >> 4) || free_space < mss` is 0.
    let offered = |unread: u64| {
        let mut window = linux();
        let ReceiveAutotuning::Linux(linux) = &mut window.system else { unreachable!() };
        (linux.ratio, linux.rcv_ssthresh) = (160, u64::MAX);
        linux.on_grown(1_024_000);
        window.unread = unread;
        window.window(0, 0)
    };
    // 160 of 256 parts are 640,000 bytes; a sixteenth are 40,000.
    assert_eq!(offered(640_000 - 40_191), 313 * 128);
    assert_eq!(offered(640_000 - 40_064), 313 * 128);
    assert_eq!(offered(640_000 - 40_063), 0);
    // More than half is free: rounded up.
    assert_eq!(offered(640_000 - 320_001), 320_128);
}

#[test]
fn the_window_does_not_shrink() {
    for name in ["freebsd-14.3", "linux-6.18"] {
        let profile = TcpProfile::named(name).unwrap();
        let mut window = ReceiveWindow::new(profile.receive_buffer, true, 1_460);
        window.on_established(Instant::ZERO, true, 1_460, 1_448);
        let offered = window.window(0, 0);
        window.on_data(&in_order(20_000, false));
        assert!(window.window(offered - 20_000, 0) >= offered - 20_000, "{name}");
    }
}
