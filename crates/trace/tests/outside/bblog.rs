//! tshark reads the written logs: all events and packets, with the same numbers.

use packet::{Flags, IpVersion, Segment, Timestamps};
use units::{Duration, SeqNum};

use crate::tool;
use crate::trace::bblog::{
    BblogEvent, BblogSection, BblogWriter, TcpLogBuffer, TcpLogHeader, flags, t_flags,
};
use crate::trace::pcapng::PacketDirection;

fn section(ip: IpVersion) -> BblogSection {
    let (local, remote) = match ip {
        IpVersion::V4 => ("10.0.0.1:49152", "10.0.0.2:5001"),
        IpVersion::V6 => ("[fd00::1]:49152", "[fd00::2]:5001"),
    };
    BblogSection {
        connection: Some(TcpLogHeader {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            boot_micros: 1_682_985_600_000_000,
            id: "upload".to_owned(),
            reason: "test".to_owned(),
            tag: String::new(),
            length: 0,
        }),
        dumped: Some(Duration::from_secs(1_682_985_660)),
        stacks: vec![(0, "freebsd".to_owned())],
        application: "ackclock".to_owned(),
        ..BblogSection::default()
    }
}

/// All numbers differ, so that none can be mistaken for another.
fn info(serial: u32, event: BblogEvent, event_flags: u16) -> TcpLogBuffer {
    TcpLogBuffer {
        tv_sec: 12,
        tv_usec: 345_678,
        ticks: 12_345,
        serial,
        event_id: event.0,
        event_flags,
        rxbuf_acc: 1,
        rxbuf_ccc: 2,
        txbuf_acc: 3,
        txbuf_ccc: 4,
        state: 4,
        starttime: 11,
        iss: 1_000,
        t_flags: t_flags::SACK_PERMIT | t_flags::FASTRECOVERY | t_flags::TSO,
        snd_una: 1_001,
        snd_max: 30_001,
        snd_cwnd: 14_480,
        snd_nxt: 29_001,
        snd_recover: 28_001,
        snd_wnd: 65_535,
        snd_ssthresh: 7_240,
        srtt: 3_201,
        rttvar: 17,
        rcv_up: 5,
        rcv_adv: 6,
        rcv_nxt: 7,
        rcv_wnd: 8,
        dupacks: 3,
        segqlen: 9,
        snd_numholes: 10,
        flex1: 13,
        flex2: 14,
        fbyte_in: 15,
        fbyte_out: 16,
        scales: 0x6a,
        len: 1_448,
        ..TcpLogBuffer::default()
    }
}

fn log(ip: IpVersion) -> Vec<u8> {
    let mut writer = BblogWriter::new(Vec::new(), &section(ip)).unwrap();
    writer.event(&info(0, BblogEvent::RTO, flags::RXBUF | flags::TXBUF)).unwrap();
    writer.event(&info(1, BblogEvent::TIMER, 0)).unwrap();
    // These payloads produce a checksum of 0xffff, and carries.
    for (serial, payload) in [(2, 0), (3, 1), (4, 1_448), (5, 32_000), (6, 65_000)] {
        let segment = Segment {
            ip,
            flags: Flags::ACK,
            seq: SeqNum(1_001 + serial),
            ack: SeqNum(7),
            payload,
            window: 513,
            timestamps: Some(Timestamps { val: 1, ecr: 2 }),
            ..Segment::default()
        };
        let way = if serial % 2 == 0 { PacketDirection::Out } else { PacketDirection::In };
        let event = if serial % 2 == 0 { BblogEvent::OUT } else { BblogEvent::IN };
        let info = TcpLogBuffer { len: payload, ..info(serial, event, flags::HDR) };
        writer.packet(&info, way, &segment).unwrap();
    }
    writer.skipped(3).unwrap();
    writer.event(&info(10, BblogEvent::CONNEND, 0)).unwrap();
    writer.finish().unwrap()
}

#[test]
fn tshark_finds_no_malformed_block() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        let wrong = "_ws.malformed || _ws.expert.severity == error || ip.checksum.status == Bad";
        let args = ["-o", "ip.check_checksum:TRUE", "-Y", wrong];
        let Some(found) = tool::lines("tshark", &args, &log(ip)) else { return };
        assert_eq!(found, Vec::<String>::new());
        // Checksums can be verified if the payload is within the 104 captured bytes.
        let good = "tcp.checksum.status == Good";
        let args = ["-o", "tcp.check_checksum:TRUE", "-Y", good];
        assert_eq!(tool::lines("tshark", &args, &log(ip)).unwrap().len(), 2);
        let all = tool::lines("tshark", &[], &log(ip)).unwrap();
        assert_eq!(all.len(), 9);
    }
}

#[test]
fn tshark_reads_every_number_of_an_event() {
    let expected = [
        ("bblog.ticks", "12345"),
        ("bblog.serial_nr", "0"),
        ("bblog.stack_id", "0"),
        ("bblog.event_id", "26"),
        ("bblog.errno", "0"),
        ("bblog.rxb_acc", "1"),
        ("bblog.rxb_ccc", "2"),
        ("bblog.txb_acc", "3"),
        ("bblog.txb_accs", "4"),
        ("bblog.state", "4"),
        ("bblog.starttime", "11"),
        ("bblog.iss", "1000"),
        ("bblog.t_flags_sack_permitted", "1"),
        ("bblog.t_flags_be_in_fast_recovery", "1"),
        ("bblog.t_flags_tso", "1"),
        ("bblog.t_flags_delayed_ack", "0"),
        ("bblog.snd_una", "1001"),
        ("bblog.snd_max", "30001"),
        ("bblog.snd_cwnd", "14480"),
        ("bblog.snd_nxt", "29001"),
        ("bblog.snd_recover", "28001"),
        ("bblog.snd_wnd", "65535"),
        ("bblog.snd_ssthresh", "7240"),
        ("bblog.srtt", "3201"),
        ("bblog.rttvar", "17"),
        ("bblog.rcv_up", "5"),
        ("bblog.rcv_adv", "6"),
        ("bblog.rcv_nxt", "7"),
        ("bblog.rcv_wnd", "8"),
        ("bblog.dupacks", "3"),
        ("bblog.seg_qlen", "9"),
        ("bblog.snd_num_holes", "10"),
        ("bblog.flex_1", "13"),
        ("bblog.flex_2", "14"),
        ("bblog.first_byte_in", "15"),
        ("bblog.first_byte_out", "16"),
        ("bblog.snd_shift", "10"),
        ("bblog.rcv_shift", "6"),
        ("bblog.payload_length", "1448"),
    ];
    let mut args = vec!["-Y", "bblog.serial_nr == 0", "-T", "fields", "-E", "separator=/s"];
    for (field, _) in expected {
        args.extend(["-e", field]);
    }
    let Some(found) = tool::lines("tshark", &args, &log(IpVersion::V4)) else { return };
    let values: Vec<&str> = found[0].split(' ').collect();
    let named: Vec<_> =
        expected.iter().map(|(name, _)| *name).zip(values.iter().copied()).collect();
    assert_eq!(named, expected);
}

#[test]
fn tshark_reads_packets_and_losses() {
    let fields = ["-e", "frame.time_epoch", "-e", "tcp.seq_raw", "-e", "tcp.len"];
    let args = [&["-Y", "tcp", "-T", "fields", "-E", "separator=/s"], &fields[..]].concat();
    let Some(found) = tool::lines("tshark", &args, &log(IpVersion::V6)) else { return };
    let expected: Vec<String> = [(2, 0), (3, 1), (4, 1_448), (5, 32_000), (6, 65_000)]
        .map(|(serial, payload)| {
            // 1,682,985,600 s and 12.345678 s of uptime.
            format!("1682985612.345678000 {} {payload}", 1_001 + serial)
        })
        .to_vec();
    assert_eq!(found, expected);
    let lines = tool::lines("tshark", &[], &log(IpVersion::V6)).unwrap();
    assert!(lines[7].ends_with("Number of skipped events: 3"), "{}", lines[7]);
}
