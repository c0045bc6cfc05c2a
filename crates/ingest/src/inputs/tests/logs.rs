//! Tests of logs with and without captures.

use super::joined::files;
use super::*;

fn sample(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples").join(path))
        .unwrap()
}

#[test]
fn tcp_probe_and_ss_join_the_capture() {
    for (transfer, rows, polls) in
        [("c3_loss1r_rtt45_cubic", 522, 108), ("h1_rwnd_cubic", 1_813, 34)]
    {
        let names = ["ss.txt.gz", "tcp_probe.csv.gz", "sender.pcap.xz"];
        let reading = read(files(transfer, &names), AnalysisSettings::default()).unwrap();
        let kinds: Vec<_> = reading.files.iter().map(|file| (file.kind, file.frames)).collect();
        assert_eq!(kinds[..2], [(InputKind::Ss, polls), (InputKind::TcpProbe, rows)]);
        let [stream] = &reading.streams[..] else { panic!("{}", reading.streams.len()) };
        assert_eq!(stream.analysis().states.samples, [rows + polls, 0]);
        // The recording counts from the first SYN, as the capture does: the probe records an ACK a
        // few microseconds after it.
        let [clock] = reading.files[1].clocks[..] else { panic!("no clock") };
        let begins = reading.files[2].begins.unwrap().as_nanos().cast_signed();
        let behind = clock.ahead + begins;
        assert!((1_000..40_000).contains(&behind), "{transfer}: {behind} ns");
        assert_eq!(clock.other, 2);
        assert!(clock.matches as u64 > rows / 2, "{}", clock.matches);
    }
}

#[test]
fn windows_in_packets_become_bytes_by_the_segments_of_the_connection() {
    let names = ["tcp_probe.csv.gz", "sender.pcap.xz"];
    let reading = read(files("h1_rwnd_cubic", &names), AnalysisSettings::default()).unwrap();
    // 112 packets of 1448 bytes (`zcat tcp_probe.csv.gz | cut -d, -f6 | sort -n | tail -1`).
    assert_eq!(reading.streams[0].analysis().states.cwnd_max[0], 112 * 1_448);
}

#[test]
fn logs_alone_are_connections_too() {
    let bblog = sample("upload.bblog.pcapng");
    let reading = read(vec![source("a", &bblog)], KEEP).unwrap();
    assert_eq!(reading.files[0].kind, InputKind::BlackBox);
    let [stream] = &reading.streams[..] else { panic!("{}", reading.streams.len()) };
    let states = &stream.analysis().states;
    assert_eq!(states.samples[0], reading.files[0].frames);
    assert!(states.ticks.is_some() && states.declared_hz.is_some(), "{states:?}");
    assert!(!stream.analysis().packets.is_empty());
    assert_eq!(reading.files[0].tcp, stream.analysis().packets.len() as u64);

    let siftr = sample("upload.siftr.log");
    let reading = read(vec![source("a", &siftr)], KEEP).unwrap();
    assert_eq!((reading.files[0].kind, reading.streams.len()), (InputKind::Siftr, 1));
    assert_eq!(reading.streams[0].analysis().states.samples[0], reading.files[0].frames);
    assert!(reading.streams[0].analysis().packets.is_empty());

    let names = ["tcp_probe.csv.gz"];
    let reading = read(files("k1_two_flows", &names), KEEP).unwrap();
    let ports: Vec<_> =
        reading.streams.iter().map(|stream| stream.analysis().ends.src.port()).collect();
    assert_eq!(ports, [40_001, 40_002]);
}

#[test]
fn a_log_joins_the_capture_of_the_same_transfer() {
    // The packets of the log as a separate capture whose clock is 3 s behind the log's.
    let bblog = sample("upload.bblog.pcapng");
    let single_packet = read(vec![source("a", &bblog)], KEEP).unwrap();
    let begins = single_packet.files[0].begins.unwrap();
    let section =
        PcapngSection { epoch: begins - Duration::from_secs(3), ..PcapngSection::default() };
    let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
    let tap = writer.add_interface(&PcapngInterface::default()).unwrap();
    let stream = &single_packet.streams[0];
    for packet in &stream.analysis().packets {
        let ends = stream.analysis().ends;
        let between = if packet.segment.dir == Dir::Forward { ends } else { ends.reversed() };
        let seen = PacketMeta { tap, at: packet.at, way: PacketDirection::In };
        writer.segment(seen, &packet.segment, &between, 0, Offset(0)).unwrap();
    }
    let capture = writer.finish().unwrap();
    let reading = read(vec![source("log", &bblog), source("capture", &capture)], KEEP).unwrap();
    let [stream] = &reading.streams[..] else { panic!("{}", reading.streams.len()) };
    assert_eq!(
        (stream.file, stream.analysis().states.samples[0]),
        (1, single_packet.files[0].frames)
    );
    let [clock] = reading.files[0].clocks[..] else { panic!("no clock") };
    // Timestamps of the log are in microseconds.
    assert!((clock.ahead - 3_000_000_000).abs() < 1_000, "{}", clock.ahead);
    assert_eq!(reading.files[0].tcp, 0);
}

#[test]
fn polls_without_a_time_are_reported() {
    let text = "ESTAB 0 0 10.0.0.1:4000 10.0.0.2:80 cubic rtt:1/2 mss:1000 cwnd:3\n";
    let reading = read_bytes(text.as_bytes());
    // A single poll needs no time.
    assert_eq!(reading.files[0].problems.count, 0);
    assert_eq!(reading.streams[0].analysis().states.cwnd_last[0], 3_000);
    assert_eq!(read_bytes(text.repeat(2).as_bytes()).files[0].problems.count, 1);
}

#[test]
fn two_logs_of_one_transfer_are_one_connection() {
    let (bblog, siftr) = (sample("upload.bblog.pcapng"), sample("upload.siftr.log"));
    let reading = read(vec![source("a", &bblog), source("b", &siftr)], KEEP).unwrap();
    let [stream] = &reading.streams[..] else { panic!("{}", reading.streams.len()) };
    let records: u64 = reading.files.iter().map(|file| file.frames).sum();
    assert_eq!(stream.analysis().states.samples, [records, 0]);
}

/// What limited the sender of two polls, a second apart, with these words in the second.
fn limit_by_ss(words: &str) -> &'static str {
    let socket = "ESTAB 0 0 10.0.0.1:4000 10.0.0.2:80";
    let values = "cubic rtt:41/2 minrtt:40 mss:1448 cwnd:20";
    let text = format!(
        "1700000000.0\n{socket}\n\t {values} data_segs_out:100 bytes_acked:100000 busy:100ms\n\
         1700000001.0\n{socket}\n\t {values} data_segs_out:900 bytes_acked:1100000 busy:1100ms {words}\n"
    );
    let reading = read_bytes(text.as_bytes());
    let verdict = reading.streams[0].analysis().states.socket_verdict(Dir::Forward);
    verdict.unwrap().limit.key()
}

/// Words as iproute2 prints them; Linux counts a D-SACK for each retransmission that was not needed, and the
/// packets that overtook others (`tcp_check_sack_reordering`).
#[test]
fn retransmissions_of_reordered_packets_are_no_losses() {
    assert_eq!(limit_by_ss("retrans:0/40"), "loss");
    let reordered = "retrans:0/40 dsack_dups:38 reordering:25 reord_seen:31";
    assert_eq!(limit_by_ss(reordered), "reordering");
    // A packet in a thousand was lost beside them.
    assert_eq!(limit_by_ss("retrans:0/40 dsack_dups:2 reord_seen:1"), "loss");
    // Reordering that caused no retransmission limits nothing.
    assert_eq!(limit_by_ss("reordering:25 reord_seen:31"), "congestion_window");
    // Of timeouts that were too early.
    assert_eq!(limit_by_ss("retrans:0/40 dsack_dups:40"), "congestion_window");
}
