//! Logs read back as written, also damaged ones, in every version.

use ackclock_logs as logs;
use logs::siftr::{
    FlowInfo, SiftrFooter, SiftrGeneration, SiftrHeader, SiftrItem, SiftrProblem, SiftrProblemKind,
    SiftrReader, SiftrRow, SiftrStats, SiftrWriter,
};
use proptest::prelude::*;
use trace::pcapng::PacketDirection;
use units::Duration;

/// A log in the format that siftr(4) documents for 1.2.
const OLD: &str = "\
enable_time_secs=1238556193\tenable_time_usecs=462104\tsiftrver=1.2.2\thz=1000\t\
tcp_rtt_scale=32\tsysname=FreeBSD\tsysver=604000\tipmode=4
o,0xbec491a5,1238556193.463551,172.16.7.28,22,172.16.2.5,55931,1073725440,172312,6144,66560,66608,\
8,1,4,1448,936,1,996,255,33304,208,66608,0,208,0
disable_time_secs=1238556197\tdisable_time_usecs=933607\tnum_inbound_tcp_pkts=356\t\
num_outbound_tcp_pkts=627\ttotal_tcp_pkts=983\ttotal_skipped_tcp_pkts=2\t\
flow_list=172.16.7.28;22-172.16.2.5;55931,
";

fn read(log: &[u8]) -> (Vec<SiftrItem>, Vec<SiftrProblem>, SiftrStats) {
    let mut reader = SiftrReader::new(log);
    let (mut items, mut problems) = (Vec::new(), Vec::new());
    for item in reader.by_ref() {
        match item.unwrap() {
            SiftrItem::Problem(problem) => problems.push(problem),
            item => items.push(item),
        }
    }
    (items, problems, *reader.loss())
}

fn rows(log: &[u8]) -> Vec<SiftrRow> {
    let row = |item| match item {
        SiftrItem::Row(row) => Some(row),
        _ => None,
    };
    read(log).0.into_iter().filter_map(row).collect()
}

fn write(header: &SiftrHeader, rows: &[SiftrRow]) -> Vec<u8> {
    let mut writer = SiftrWriter::new(Vec::new(), header).unwrap();
    rows.iter().for_each(|row| writer.row(row).unwrap());
    writer.finish().unwrap()
}

fn row(generation: SiftrGeneration) -> SiftrRow {
    let one = generation != SiftrGeneration::V2;
    SiftrRow {
        way: PacketDirection::Out,
        at: Duration::from_micros(1_682_985_600_123_000),
        local: one.then(|| "10.0.0.1:49152".parse().unwrap()),
        remote: one.then(|| "[fd00::2]:5001".parse().unwrap()),
        flow_id: (generation != SiftrGeneration::V1_2).then_some(0xbec4_91a5),
        flow_type: (generation == SiftrGeneration::V1_3).then_some(130),
        hash: (generation == SiftrGeneration::V1_2).then_some(0x00c4_91a5),
        ssthresh: 1_073_725_440,
        cwnd: 14_480,
        bwnd: (generation == SiftrGeneration::V1_2).then_some(6_144),
        snd_wnd: 66_560,
        rcv_wnd: 66_608,
        snd_scale: one.then_some(8),
        rcv_scale: one.then_some(1),
        state: one.then_some(4),
        mss: one.then_some(1_460),
        // 3,200 / 32 ms: an integer in every unit.
        srtt: Some(Duration::from_millis(100)),
        sack: one.then_some(true),
        t_flags: 996,
        t_flags2: (generation != SiftrGeneration::V1_2).then_some(1_026),
        rto: Some(Duration::from_millis(330)),
        snd_hiwat: 33_304,
        snd_cc: 208,
        rcv_hiwat: 66_608,
        rcv_cc: 7,
        in_flight: 209,
        segqlen: 1,
        payload: (!one).then_some(1_448),
    }
}

const ALL: [SiftrGeneration; 3] =
    [SiftrGeneration::V1_2, SiftrGeneration::V1_3, SiftrGeneration::V2];

fn header(generation: SiftrGeneration) -> SiftrHeader {
    SiftrHeader {
        enabled: Duration::from_secs(1_682_985_600),
        sysname: "FreeBSD".to_owned(),
        sysver: "1500000".to_owned(),
        ipmode: Some(6),
        ..SiftrHeader::new(generation)
    }
}

#[test]
fn the_manuals_log_is_read() {
    let (items, problems, loss) = read(OLD.as_bytes());
    assert_eq!(problems, []);
    assert_eq!(loss, SiftrStats { rows: 1, lost_packets: 2, ended: true, ..SiftrStats::default() });
    let [SiftrItem::Header(header), SiftrItem::Row(row), SiftrItem::Footer(footer)] = &items[..]
    else {
        panic!("{items:#?}");
    };
    assert_eq!((header.generation, header.hz), (SiftrGeneration::V1_2, Some(1_000)));
    assert_eq!(row.at, Duration::from_micros(1_238_556_193_463_551));
    assert_eq!((row.cwnd, row.bwnd, row.mss), (172_312, Some(6_144), Some(1_448)));
    // 936 / 32 = 29.25 ticks of a millisecond; 255 ticks.
    assert_eq!(row.srtt, Some(Duration::from_micros(29_250)));
    assert_eq!(row.rto, Some(Duration::from_millis(255)));
    assert_eq!((row.hash, row.flow_id, row.in_flight), (Some(0xbec4_91a5), None, 208));
    assert_eq!(footer.flows[0].remote, "172.16.2.5:55931".parse().unwrap());
}

#[test]
fn the_manuals_log_is_written_as_it_was() {
    let (items, ..) = read(OLD.as_bytes());
    let [SiftrItem::Header(header), SiftrItem::Row(row), SiftrItem::Footer(footer)] = &items[..]
    else {
        panic!("{items:#?}");
    };
    let mut writer = SiftrWriter::new(Vec::new(), header).unwrap();
    writer.row(row).unwrap();
    writer.footer(footer).unwrap();
    assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), OLD);
}

#[test]
fn every_generation_reads_back() {
    for generation in ALL {
        let (header, row) = (header(generation), row(generation));
        let inward = SiftrRow { way: PacketDirection::In, ..row };
        let log = write(&header, &[row, inward]);
        let (items, problems, _) = read(&log);
        assert_eq!(problems, [], "{generation:?}");
        assert_eq!(items, [SiftrItem::Header(header), SiftrItem::Row(row), SiftrItem::Row(inward)]);
    }
}

#[test]
fn rows_have_the_columns_of_the_kernel() {
    let line = |generation| {
        let log = write(&header(generation), &[row(generation)]);
        String::from_utf8(log).unwrap().lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        line(SiftrGeneration::V1_3),
        "o,1682985600.123000,10.0.0.1,49152,fd00::2,5001,1073725440,14480,1026,66560,66608,8,1,4,\
         1460,100000,1,996,330000,33304,208,66608,7,209,1,3200553381,130"
    );
    // 0x7b ms after the log began.
    assert_eq!(
        line(SiftrGeneration::V2),
        "bec491a5,o,7b,3890,3fffc000,186a0,5a8,10400,10430,3e4,402,50910,8218,d0,10430,7,d1,1"
    );
    assert!(line(SiftrGeneration::V1_2).starts_with("o,0x00c491a5,1682985600.123000,10.0.0.1,"));
}

#[test]
fn a_footer_reads_back_in_every_generation() {
    for generation in ALL {
        let two = generation == SiftrGeneration::V2;
        let flow = FlowInfo {
            id: two.then_some(0xbec4_91a5),
            local: "10.0.0.1:49152".parse().unwrap(),
            remote: "10.0.0.2:5001".parse().unwrap(),
            rest: if two { vec!["freebsd".to_owned(), "newreno".to_owned()] } else { vec![] },
        };
        let footer = SiftrFooter {
            disabled: Duration::from_micros(1_682_985_601_000_002),
            fields: vec![("ring_drops".to_owned(), "3".to_owned())],
            flows: vec![flow.clone(), flow],
        };
        let mut writer = SiftrWriter::new(Vec::new(), &header(generation)).unwrap();
        writer.footer(&footer).unwrap();
        let (items, problems, loss) = read(&writer.finish().unwrap());
        assert_eq!(problems, []);
        assert_eq!((loss.lost_packets, loss.ended), (3, true));
        let Some(SiftrItem::Footer(found)) = items.last() else { panic!("{items:#?}") };
        assert_eq!((&found.flows, found.disabled), (&footer.flows, footer.disabled));
        assert_eq!(found.fields[0], footer.fields[0]);
    }
}

#[test]
fn a_log_without_a_header_is_detected_by_its_columns() {
    for generation in ALL {
        let log = write(&header(generation), &[row(generation); 2]);
        let log = String::from_utf8(log).unwrap();
        let (_, rest) = log.split_once('\n').unwrap();
        let (items, problems, loss) = read(rest.as_bytes());
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].line, &problems[0].kind), (1, &SiftrProblemKind::NoHeader));
        assert_eq!(loss.rows, 2);
        let SiftrItem::Row(found) = items[0] else { panic!("{items:#?}") };
        assert_eq!(found.cwnd, 14_480);
        // Ticks are no time without hz.
        assert_eq!(found.srtt.is_none(), generation == SiftrGeneration::V1_2);
    }
}

#[test]
fn a_damaged_line_is_reported_and_reading_continues() {
    let log = write(&header(SiftrGeneration::V1_3), &[row(SiftrGeneration::V1_3); 4]);
    let log = String::from_utf8(log).unwrap();
    let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
    lines[1] = lines[1].replace(",14480,", ",1448x,");
    lines[2].truncate(40);
    lines[3] = lines[3].replace("fd00::2", "fd00::g");
    let text = lines.join("\n");
    let (_, problems, loss) = read(text.as_bytes());
    let reported: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        reported,
        [
            // 2 + 18 + 9 + 6 + 8 + 5 + 11 bytes precede it.
            "line 2, column 60: cwnd: expected a number up to 4294967295, found \"1448x\"",
            "line 3, column 1: a row of 5 columns, expected 27",
            "line 4, column 36: foreign address: expected an IP address, found \"fd00::g\"",
            &format!("line 5, column {}: the last line has no newline", lines[4].len() + 1),
        ]
    );
    assert_eq!((loss.rows, loss.bad_lines), (1, 3));
    // The offset is that of the cell.
    assert!(text[problems[0].offset as usize..].starts_with("1448x,"));
}

/// siftr2 with `rec_fmt=binary`: 18 numbers per row.
fn binary(rows: u32) -> (Vec<u8>, usize) {
    let header = "enable_time_secs=100\tenable_time_usecs=0\tsiftrver=2.5\tipmode=4\t\
                  sysver=FreeBSD 16\trec_fmt=binary\n";
    let mut log = header.as_bytes().to_vec();
    for n in 0..rows {
        let mut words = [n; 18];
        (words[0], words[1]) = (0x8000_0001, n % 2);
        words.iter().for_each(|word| log.extend_from_slice(&word.to_le_bytes()));
    }
    (log, header.len())
}

#[test]
fn binary_rows_are_read_up_to_the_footer() {
    let (mut log, _) = binary(5);
    log.extend_from_slice(
        b"disable_time_secs=101\tdisable_time_usecs=0\tring_drops=1\tflow_list=\n",
    );
    let (items, problems, loss) = read(&log);
    assert_eq!(problems, []);
    assert_eq!(loss, SiftrStats { rows: 5, lost_packets: 1, ended: true, ..SiftrStats::default() });
    let SiftrItem::Row(last) = items[5] else { panic!("{items:#?}") };
    assert_eq!((last.way, last.cwnd, last.segqlen), (PacketDirection::In, 4, 4));
    // 4 ms after the log began.
    assert_eq!(last.at, Duration::from_millis(100_004));
}

#[test]
fn missing_bytes_among_binary_rows_cost_one_row() {
    let (mut log, header) = binary(10);
    // Ten bytes of the fourth row.
    log.drain(header + 3 * 72 + 20..header + 3 * 72 + 30);
    let (items, problems, loss) = read(&log);
    // The rest of the fourth row still begins like one and takes ten bytes of the fifth.
    assert_eq!(loss.rows, 9);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].line, 0);
    assert_eq!(problems[0].kind, SiftrProblemKind::Skipped { bytes: 62 });
    let Some(SiftrItem::Row(last)) = items.last() else { panic!("{items:#?}") };
    assert_eq!(last.cwnd, 9);
}

#[test]
fn an_overlong_line_is_skipped() {
    let mut log = write(&header(SiftrGeneration::V1_3), &[row(SiftrGeneration::V1_3)]);
    log.extend(std::iter::repeat_n(b'x', 3 * 1_024 * 1_024));
    log.push(b'\n');
    let more = write(&header(SiftrGeneration::V1_3), &[row(SiftrGeneration::V1_3)]);
    log.extend_from_slice(&more);
    let (_, problems, loss) = read(&log);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, SiftrProblemKind::Long { bytes: 3 * 1_024 * 1_024 + 1 });
    assert_eq!((problems[0].line, loss.rows), (3, 2));
}

#[test]
fn other_files_have_no_rows() {
    for log in [&b""[..], b"hello\nworld\n", &[0xff; 100]] {
        assert_eq!(rows(log), []);
    }
}

proptest! {
    #[test]
    fn any_number_reads_back(
        numbers in proptest::collection::vec(any::<u32>(), 10),
        micros in 0_u64..2_000_000_000_000,
        small in any::<(u8, u8, bool)>(),
    ) {
        for generation in ALL {
            // Times are integers in the unit of the column; siftr2 has 32 bits of milliseconds.
            let unit = match generation {
                SiftrGeneration::V1_2 => 31_250,
                _ => 1_000,
            };
            let span = |n: u32| Some(Duration::from_nanos(u64::from(n / 1_000) * unit));
            let one = generation != SiftrGeneration::V2;
            let row = SiftrRow {
                at: Duration::from_secs(1_682_985_600)
                    + Duration::from_micros(if one { micros } else { micros / 1_000 * 1_000 }),
                ssthresh: numbers[0],
                cwnd: numbers[1],
                snd_wnd: numbers[2],
                srtt: span(numbers[3]),
                rto: Some(Duration::from_millis(u64::from(numbers[4] % 64_000))),
                t_flags: numbers[5],
                segqlen: numbers[6],
                snd_scale: one.then_some(small.0),
                rcv_scale: one.then_some(small.1),
                sack: one.then_some(small.2),
                in_flight: numbers[7],
                rcv_cc: numbers[8],
                snd_cc: numbers[9],
                ..row(generation)
            };
            prop_assert_eq!(rows(&write(&header(generation), &[row])), [row]);
        }
    }
}
