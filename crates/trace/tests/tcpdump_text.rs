//! Packet lines in mails and in the output of tcpdump.

use ackclock_trace as trace;

use std::net::IpAddr;

use packet::wire::Endpoints;
use packet::{Flags, IpVersion, Options, SackBlock, Segment, SynLayout, SynOptions, Timestamps};
use proptest::prelude::*;
use trace::tcpdump::{
    Address, SeqNumbering, SeqRange, Style, TcpdumpLine, TcpdumpLines, TcpdumpWriter, TextError,
    TimestampKind, read,
};
use units::{Duration, Instant, SeqNum};

const MAIL: &str = include_str!("data/slow-start-mail.txt");

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn the_mail_is_read_completely() {
    let packets = read(MAIL).unwrap();
    // (line, ms, from the sender?, seq, ack, window, length)
    let rows: Vec<_> = packets
        .iter()
        .map(|p| {
            let seq = p.seq.map(|SeqRange { start, end }| (start, end));
            (p.line, p.at.as_millis(), p.src.host == "sender", seq, p.ack, p.window, p.length)
        })
        .collect();
    let expected = [
        (9, 0, true, Some((205_083_268, 205_083_268)), None, 65_535, 0),
        (11, 100, false, Some((708_257_395, 708_257_395)), Some(205_083_269), 65_160, 0),
        (14, 100, true, None, Some(1), 65, 0),
        (19, 101, true, Some((1, 14_481)), Some(1), 65, 14_480),
        (22, 201, false, None, Some(14_481), 427, 0),
        (23, 201, true, Some((14_481, 31_857)), Some(1), 65, 17_376),
        (26, 301, false, None, Some(31_857), 411, 0),
        (27, 301, true, Some((31_857, 52_129)), Some(1), 65, 20_272),
        (30, 402, false, None, Some(52_129), 395, 0),
        (31, 402, true, Some((52_129, 73_629)), Some(1), 65, 21_500),
        (33, 402, true, Some((73_629, 75_077)), Some(1), 65, 1_448),
    ];
    assert_eq!(rows, expected);

    let [syn, syn_ack, ack, rest @ ..] = &packets[..] else { panic!() };
    let options = syn.options.unwrap();
    assert_eq!((options.mss, options.window_scale), (Some(1_460), Some(10)));
    assert!(options.sack_permitted);
    assert_eq!(options.timestamps, Some(Timestamps { val: 495_212_525, ecr: 0 }));
    let options = syn_ack.options.unwrap();
    assert_eq!(options.timestamps, Some(Timestamps { val: 563_185_696, ecr: 495_212_525 }));
    assert_eq!(options.window_scale, Some(7));
    let options = ack.options.unwrap();
    assert_eq!((options.mss, options.window_scale), (None, None));
    // Omitted options differ from no options.
    assert!(rest.iter().all(|p| p.options.is_none()));
    assert_eq!(syn.flags, Flags::SYN);
    assert_eq!(rest[6].flags, Flags::PSH | Flags::ACK);
    assert_eq!((syn.numbers, syn_ack.numbers), (SeqNumbering::Absolute, SeqNumbering::Absolute));
    assert!(packets[2..].iter().all(|p| p.numbers == SeqNumbering::Relative));
    assert!(packets.iter().all(|p| p.clock == TimestampKind::Seconds && p.ip == IpVersion::V4));
    assert!(packets.iter().all(|p| p.src.port.is_none() && p.dst.port.is_none()));
}

/// The mail with each packet on one line.
fn unwrapped() -> String {
    let joined = MAIL.replace("\n", "\n\n");
    joined
        .replace("options\n\n[", "options [")
        .replace("win\n\n65160", "win 65160")
        .replace("ecr\n\n495", "ecr 495")
        .replace("[nop,nop,TS\n\nval", "[nop,nop,TS val")
        .replace("65,\n\nlength", "65, length")
        .replace("\n\n", "\n")
}

fn without_lines<'a>(packets: &[TcpdumpLine<'a>]) -> Vec<TcpdumpLine<'a>> {
    packets.iter().map(|p| TcpdumpLine { line: 0, ..*p }).collect()
}

#[test]
fn it_does_not_matter_where_lines_are_wrapped() {
    let flat = unwrapped();
    let expected = without_lines(&read(MAIL).unwrap());
    assert_eq!(without_lines(&read(&flat).unwrap()), expected);
    // After every blank that follows `IP`.
    let mut all_wrapped = String::new();
    for line in flat.lines() {
        match line.split_once(" IP ") {
            Some((stamp, rest)) => {
                all_wrapped += &format!("{stamp} IP {}\n", rest.replace(' ', "\n"));
            }
            None => all_wrapped += &format!("{line}\n"),
        }
    }
    assert_eq!(without_lines(&read(&all_wrapped).unwrap()), expected);
    let indented_and_dos = MAIL.replace("\n[", "\n\t  [").replace('\n', "\r\n");
    assert_eq!(without_lines(&read(&indented_and_dos).unwrap()), expected);
    let quoted: String = MAIL.lines().map(|line| format!("> > {line}\n")).collect();
    assert_eq!(without_lines(&read(&quoted).unwrap()), expected);
}

/// The segment of a line of the mail. Sequence numbers of a stream begin with its SYN.
fn segment(line: &TcpdumpLine<'_>, isn: SeqNum, peer_isn: SeqNum) -> Segment {
    let absolute = |number: u32, isn: SeqNum| match line.numbers {
        SeqNumbering::Absolute => SeqNum(number),
        _ => SeqNum(isn.0.wrapping_add(number)),
    };
    let options = line.options.unwrap_or_default();
    let is_syn = line.flags.has(Flags::SYN);
    // The sender runs FreeBSD, the sink Linux.
    let from_sender = line.src.host == "sender";
    let syn = SynOptions {
        mss: options.mss.unwrap_or(0),
        window_scale: options.window_scale,
        sack_permitted: options.sack_permitted,
        layout: if from_sender { SynLayout::FreeBsd } else { SynLayout::Linux },
        ..SynOptions::default()
    };
    Segment {
        flags: line.flags,
        // A pure ACK does not print its sequence number.
        seq: line.seq.map_or(isn, |seq| absolute(seq.start, isn)),
        ack: line.ack.map_or(SeqNum(0), |ack| absolute(ack, peer_isn)),
        payload: line.length,
        window: line.window,
        // The mail omits them after the handshake, the packets have them.
        timestamps: Some(options.timestamps.unwrap_or(Timestamps { val: 5, ecr: 6 })),
        options: if is_syn { Options::Syn(syn) } else { options.sack.into() },
        ..Segment::default()
    }
}

#[test]
fn the_mail_is_written_identically() {
    let hosts: [(IpAddr, String); 2] = [("sender", [10, 0, 0, 1]), ("sink", [10, 0, 0, 2])]
        .map(|(name, address)| (address.into(), name.to_owned()));
    let sender = Endpoints { src: (hosts[0].0, 40_000).into(), dst: (hosts[1].0, 5_001).into() };
    let mut writer = TcpdumpWriter::new(Vec::new(), Style::brief(hosts.into()));
    for line in read(MAIL).unwrap() {
        let isns = [SeqNum(205_083_268), SeqNum(708_257_395)];
        let (between, [own, peer]) = match line.src.host {
            "sender" => (sender, isns),
            _ => (sender.reversed(), [isns[1], isns[0]]),
        };
        let at = Instant::ZERO + line.at;
        writer.segment(at, &segment(&line, own, peer), &between).unwrap();
    }
    let written = String::from_utf8(writer.finish().unwrap()).unwrap();
    let flat = unwrapped();
    let expected: Vec<&str> = flat.lines().filter(|line| line.contains(" IP ")).collect();
    assert_eq!(written.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn timestamps_and_addresses_of_every_format() {
    let tail = "Flags [.], ack 1, win 63, options [nop,nop,TS val 7 ecr 8], length 0";
    let epoch = 1_795_288_474_638_166_000;
    for (head, clock, at) in [
        (
            "19:14:34.638166 IP",
            TimestampKind::TimeOfDay,
            (19 * 3_600 + 14 * 60 + 34) * 1_000_000_000 + 638_166_000,
        ),
        ("1795288474.638166 IP", TimestampKind::Seconds, epoch),
        ("2026-11-21 19:14:34.638166 IP", TimestampKind::Date, epoch),
        ("2026-11-21 19:14:34.638166 eth0  Out IP", TimestampKind::Date, epoch),
        (" 00:00:00.045354487 IP", TimestampKind::TimeOfDay, 45_354_487),
    ] {
        let text = format!("{head} 10.83.77.1.40001 > 10.83.77.2.47101: {tail}\n");
        let packet = read(&text).unwrap()[0];
        assert_eq!((packet.clock, packet.at), (clock, Duration::from_nanos(at)), "{head}");
        assert_eq!(packet.src, Address { host: "10.83.77.1", port: Some("40001") });
        assert_eq!(packet.dst, Address { host: "10.83.77.2", port: Some("47101") });
        assert_eq!(packet.numbers, SeqNumbering::Unknown);
    }
    let v6 = format!("0.5 IP6 2001:db8::1.40001 > www.example.org.https: {tail}");
    let packet = read(&v6).unwrap()[0];
    assert_eq!(packet.ip, IpVersion::V6);
    assert_eq!(packet.src, Address { host: "2001:db8::1", port: Some("40001") });
    assert_eq!(packet.dst, Address { host: "www.example.org", port: Some("https") });
}

#[test]
fn the_verbose_form_is_read() {
    // As `tcpdump -vv` prints it.
    let text = "\
19:14:34.592811 IP (tos 0x0, ttl 64, id 41123, offset 0, flags [DF], proto TCP (6), length 64)
    10.83.77.2.47101 > 10.83.77.1.40001: Flags [.], cksum 0xeabc (correct), seq 1, ack 69881, \
win 103, options [nop,nop,TS val 3978754036 ecr 3873161493,nop,nop,sack 2 {71329:77121}{1:2}], length 0
19:14:34.592900 IP (tos 0x0, ttl 64, id 1, offset 0, flags [DF], proto UDP (17), length 30)
    10.83.77.2.53 > 10.83.77.1.40001: UDP, length 2
";
    let packets = read(text).unwrap();
    assert_eq!(packets.len(), 1);
    let options = packets[0].options.unwrap();
    let block = |left, right| SackBlock { left: SeqNum(left), right: SeqNum(right) };
    assert_eq!(options.sack.as_slice(), [block(71_329, 77_121), block(1, 2)]);
    assert_eq!(packets[0].seq, Some(SeqRange { start: 1, end: 1 }));
}

#[test]
fn other_protocols_are_skipped() {
    let text = "\
12:00:00.000000 ARP, Request who-has 10.0.0.1 tell 10.0.0.2, length 28
12:00:00.000001 IP 10.0.0.1.5353 > 224.0.0.251.5353: 0 PTR (QM)? _ipp._tcp.local. (32)
12:00:00.000002 IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 1, seq 1, length 64
12:00:00.000003 IP 10.0.0.1.80 > 10.0.0.2.4000: Flags [P.], seq 1:6, ack 1, win 5, length 5: HTTP: GET /
12:00:00.000004 IP6 fe80::1 > ff02::16: ICMP6, multicast listener report v2, length 28
";
    let packets = read(text).unwrap();
    assert_eq!(packets.iter().map(|p| p.line).collect::<Vec<_>>(), [4]);
}

#[test]
fn time_continues_past_midnight() {
    let line = |stamp| format!("{stamp} IP a > b: Flags [.], ack 1, win 1, length 0\n");
    let text = [line("23:59:59.900000"), line("00:00:00.100000"), line("00:00:00.099999")].concat();
    let packets = read(&text).unwrap();
    assert_eq!(packets[1].at, Duration::from_secs(86_400) + ms(100));
    assert_eq!(packets[2].at, Duration::from_nanos(86_400_099_999_000));
}

#[test]
fn absolute_and_relative_numbers_are_distinguished() {
    // A connection as printed with and without `tcpdump -S`.
    let text = |ack, seq: &str| {
        format!(
            "0.0 IP a.1 > b.2: Flags [S], seq 3000000000, win 1, length 0\n\
             0.1 IP b.2 > a.1: Flags [S.], seq 4000000000, ack 3000000001, win 1, length 0\n\
             0.2 IP a.1 > b.2: Flags [.], ack {ack}, win 1, length 0\n\
             0.3 IP a.1 > b.2: Flags [.], seq {seq}, ack {ack}, win 1, length 10\n\
             0.4 IP a.1 > b.2: Flags [R], seq 3000000011, win 1, length 0\n"
        )
    };
    let numbers = |text: &str| read(text).unwrap().iter().map(|p| p.numbers).collect::<Vec<_>>();
    use SeqNumbering::{Absolute, Relative};
    let relative = [Absolute, Absolute, Relative, Relative, Absolute];
    assert_eq!(numbers(&text(1, "1:11")), relative);
    assert_eq!(numbers(&text(4_000_000_001_u32, "3000000001:3000000011")), [Absolute; 5]);
}

/// The error of a text, as displayed.
fn complaint(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn errors_point_at_the_place() {
    let good = "0.1 IP a > b: Flags [.], seq 1:11, ack 1, win 65, length 10\n";
    assert!(read(good).is_ok());
    for (from, to, column, expected, found) in [
        ("Flags", "Flag", 15, "`Flags`", "`Flag`"),
        ("[.]", "[x]", 22, "a flag of `FSRP.UEW` or `]`", "`x`"),
        ("[.]", "[]", 22, "a flag of `FSRP.UEW` or `]`", "`]`"),
        ("1:11", "1-11", 31, "`,`", "`-`"),
        ("1:11", "1:12", 32, "11 (1 and the length of 10)", "`12`"),
        ("ack 1", "ack one", 40, "the acknowledgment number, a number of 32 bits", "`one`"),
        ("ack 1, ", "", 36, "`ack`", "`win`"),
        ("seq 1:11, ", "", 26, "`seq`", "`ack`"),
        ("win 65", "win 65536", 47, "the window, a number of 16 bits", "`65536`"),
        ("win 65", "wnd 65", 43, "`win`", "`wnd`"),
        ("length 10", "length 1o", 58, "the length of the payload, a number of 32 bits", "`1o`"),
        (
            "win 65",
            "win 65, options [TS val x]",
            65 + 2,
            "the timestamp, a number of 32 bits",
            "`x`",
        ),
        ("win 65", "win 65, options [sack 5 {1:2}]", 65, "at most 4 SACK blocks", "`5`"),
        ("b:", "b", 12, "the receiver's address and `:`", "`b`"),
        (">", "<", 10, "`>`", "`<`"),
        ("IP", "PI", 5, "`IP` or `IP6`", "`PI`"),
        ("0.1", "0.x", 1, "a time stamp (`0.100`, `07:46:01.100400`) and `IP`", "`0`"),
        ("0.1 ", "", 1, "a time stamp (`0.100`, `07:46:01.100400`) and `IP`", "`IP`"),
    ] {
        let text = format!("Some words\nbefore.\n{}", good.replacen(from, to, 1));
        let expected = format!("line 3, column {column}: expected {expected}, found {found}");
        assert_eq!(complaint(&text), expected, "{text}");
    }
}

#[test]
fn a_truncated_text_is_an_error_at_its_end() {
    let end = "found the end of the text";
    // Line 31 of the mail; four lines before it were joined.
    let packet = "Flags [P.], seq 52129:73629, ack 1, win 65, length 215";
    for (upto, expected) in [
        ("Flags [P.],", format!("line 27, column 37: expected `seq` or `ack`, {end}")),
        ("52129:73629,", format!("line 27, column 54: expected `ack`, {end}")),
        (", win 65,", format!("line 27, column 69: expected `length`, {end}")),
        (
            "65, length",
            format!(
                "line 27, column 76: expected the length of the payload, a number of 32 bits, {end}"
            ),
        ),
        // A truncated number is detected by the sequence numbers.
        (
            "length 215",
            "line 27, column 48: expected 52344 (52129 and the length of 215), found `73629`"
                .to_owned(),
        ),
    ] {
        let text = unwrapped();
        let begin = text.find(packet).unwrap();
        let at = begin + packet.find(upto).unwrap() + upto.len();
        assert_eq!(complaint(&text[..at]), expected);
    }
}

#[test]
fn the_next_packet_ends_a_broken_one() {
    let text =
        "0.1 IP a > b: Flags [.], ack 1, win\n0.2 IP b > a: Flags [.], ack 1, win 1, length 0\n";
    let expected = "line 1, column 36: expected the window, a number of 16 bits, \
                    found the end of the packet";
    assert_eq!(complaint(text), expected);
}

#[test]
fn a_text_without_a_packet_is_an_error() {
    let error = read("Dear list,\nit is slow. 0.5 IP packets per second!\n").unwrap_err();
    assert_eq!((error.line, error.column), (1, 1));
    assert_eq!(error.found, "a text without one");
    assert!(read("").is_err());
}

#[test]
fn lines_end_at_the_first_error() {
    let text = "0.1 IP a > b: Flags [.]\n\n0.2 IP b > a: Flags [.], ack 1, win 1, length 0\n";
    let mut lines = TcpdumpLines::new(text);
    assert!(matches!(lines.next(), Some(Err(TextError { line: 1, column: 24, .. }))));
    assert_eq!(lines.next(), None);
}

/// Changes to the mail: at an offset, a number of bytes is replaced.
fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, usize, String)>> {
    let part = prop_oneof![
        "[ -~\n]{0,6}",
        "\\PC{0,3}",
        Just("\n0.5 IP ".to_owned()),
        Just("4294967296".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("2023-05-02 07:46:01.1 IP ".to_owned()),
        Just("options [sack 4 {1:2}".to_owned()),
        Just("((".to_owned()),
        Just("> ".to_owned()),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, part), 1..5)
}

proptest! {
    #[test]
    fn mutated_text_is_read_or_refused(edits in edits(), cut in any::<prop::sample::Index>()) {
        let mut text = MAIL.to_owned();
        for (place, len, part) in edits {
            let from = text.floor_char_boundary(place.index(text.len()));
            let to = text.ceil_char_boundary((from + len).min(text.len()));
            text.replace_range(from..to, &part);
        }
        text.truncate(text.floor_char_boundary(cut.index(2 * text.len() + 1)));
        let lines = text.split('\n').count();
        match read(&text) {
            Ok(packets) => prop_assert!(packets.iter().all(|p| p.line <= lines)),
            Err(error) => {
                let line = text.split('\n').nth(error.line - 1).unwrap();
                prop_assert!(error.column <= line.chars().count() + 1, "{}", error);
            }
        }
    }

    #[test]
    fn a_truncated_mail_loses_only_its_tail(cut in 0..MAIL.len()) {
        let whole = read(MAIL).unwrap();
        let upto: Vec<_> = TcpdumpLines::new(&MAIL[..cut]).collect();
        for (read, true_one) in upto.iter().zip(&whole) {
            match read {
                // Missing last digits of a window or of options cannot be detected, but then the
                // length is missing, too.
                Ok(read) => prop_assert_eq!(read, true_one),
                Err(error) => prop_assert!(error.line >= true_one.line),
            }
        }
    }
}

/// `tcpdump -e`: a link header is in place of `IP`, with `-v` the packet is in the next line.
#[test]
fn link_headers_precede_packets() {
    let text = "\
12:00:00.000000 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype IPv4 (0x0800), length 74: 10.0.0.1.40000 > 10.0.0.2.5001: Flags [S], seq 100, win 64240, options [mss 1460], length 0
12:00:00.040000 02:00:00:00:00:02 (oui Unknown) > 02:00:00:00:00:01, ethertype 802.1Q (0x8100), length 78: vlan 5, p 0, ethertype IPv4 (0x0800), 10.0.0.2.5001 > 10.0.0.1.40000: Flags [S.], seq 500, ack 101, win 65160, options [mss 1460], length 0
12:00:00.040100 02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype IPv4 (0x0800), length 66: (tos 0x0, ttl 64, id 2, offset 0, flags [DF], proto TCP (6), length 52)
    10.0.0.1.40000 > 10.0.0.2.5001: Flags [.], cksum 0x1234 (correct), ack 501, win 502, length 0
12:00:00.040200 eth0  Out ifindex 2 02:00:00:00:00:01 ethertype IPv6 (0x86dd), length 1520: 2001:db8::1.40000 > 2001:db8::2.5001: Flags [.], seq 101:1549, ack 501, win 502, length 1448
";
    let lines = read(text).unwrap();
    assert_eq!(lines.len(), 4);
    assert_eq!((lines[0].src.host, lines[0].src.port), ("10.0.0.1", Some("40000")));
    assert_eq!((lines[1].dst.host, lines[2].window), ("10.0.0.1", 502));
    assert_eq!((lines[3].src.host, lines[3].length), ("2001:db8::1", 1_448));
}
