//! Logs of the sender, written by runs and read back, intact or damaged.

use std::process::Stdio;

use serde_json::Value;

use crate::test_directory::{SMALL, TestDirectory};

/// A directory with the small scenario and its logs.
fn logged(test: &str, arguments: &[&str]) -> TestDirectory {
    let dir = TestDirectory::new(test);
    dir.write("small.toml", SMALL);
    let run = ["run", "small.toml", "--bblog", "small.pcapng", "--siftr", "small.log"];
    dir.run(&[&run[..], arguments].concat()).ok();
    dir
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_short_log_as_text() {
    let dir = logged("a_short_log_as_text", &["--set", "flow.0.bulk=3kB", "--seed", "3"]);
    insta::assert_snapshot!("bblog_text", dir.run(&["read", "small.pcapng"]).ok());
    insta::assert_snapshot!("siftr_text", dir.run(&["read", "small.log"]).ok());
    let siftr = String::from_utf8(dir.read("small.log")).unwrap();
    insta::assert_snapshot!("siftr_file", siftr);
}

#[test]
fn a_run_logs_every_packet_of_its_sender() {
    let dir = logged("a_run_logs_every_packet_of_its_sender", &[]);
    let trace = dir.run(&["run", "small.toml", "--tcpdump"]).ok();
    let log = json_lines(&dir.run(&["read", "small.pcapng", "--json"]).ok());
    assert_eq!(log[0]["section"]["connection"]["local"], "10.0.0.1:49152");
    let packets = log.iter().filter(|line| line["record"]["packet"].is_object()).count();
    assert_eq!(packets, trace.lines().count());
    let summary = &log.last().unwrap()["summary"];
    assert_eq!((&summary["missing"], &summary["problems"]), (&0.into(), &0.into()));
    // From the profile, not from the file.
    assert_eq!(summary["hz"], 1_000);
    // The SYN and the SYN-ACK have no row.
    let rows = json_lines(&dir.run(&["read", "small.log", "--json"]).ok());
    assert_eq!(rows.iter().filter(|line| line["row"].is_object()).count(), packets - 2);
}

#[test]
fn csv_has_a_column_for_every_field() {
    let dir = logged("csv_has_a_column_for_every_field", &[]);
    for file in ["small.pcapng", "small.log"] {
        let csv = dir.run(&["read", file, "--csv"]).ok();
        let mut columns = csv.lines().map(|line| line.split(',').count());
        let first = columns.next().unwrap();
        assert!(first > 25 && columns.all(|count| count == first), "{file}");
    }
}

#[test]
fn every_generation_of_siftr_reads_as_the_same_run() {
    let dir = TestDirectory::new("every_generation_of_siftr_reads_as_the_same_run");
    dir.write("small.toml", SMALL);
    let windows = |version: &str| -> Vec<Value> {
        let run = ["run", "small.toml", "--siftr", "log", "--siftr-version", version];
        dir.run(&run).ok();
        let log = json_lines(&dir.run(&["read", "log", "--json"]).ok());
        log.iter().map(|line| line["row"]["cwnd_bytes"].clone()).filter(|c| !c.is_null()).collect()
    };
    assert!(windows("1.3").len() > 50);
    assert_eq!(windows("1.2"), windows("1.3"));
    assert_eq!(windows("2"), windows("1.3"));
}

#[test]
fn a_damaged_log_is_read_and_its_problems_are_reported() {
    let dir = logged("a_damaged_log_is_read_and_the_damage_reported", &[]);
    let mut file = dir.read("small.pcapng");
    // 40 bytes and the end are missing.
    file.drain(2_000..2_040);
    file.truncate(file.len() - 5);
    dir.write("damaged.pcapng", &file);
    let read = dir.run(&["read", "damaged.pcapng"]);
    assert_eq!((read.code, read.err.as_str()), (1, ""));
    let printed: Vec<&str> = read.out.lines().filter(|line| line.starts_with("! byte ")).collect();
    assert_eq!(printed.len(), 3, "{printed:#?}");
    assert!(
        printed[0].contains("bytes skipped: ") && printed[1].contains("missing"),
        "{printed:#?}"
    );
    assert!(printed[2].contains("the file ends within a block"), "{printed:#?}");
    // With --csv they are on standard error.
    let csv = dir.run(&["read", "damaged.pcapng", "--csv"]);
    assert_eq!((csv.code, csv.err.lines().count()), (1, 3));

    let text = String::from_utf8(dir.read("small.log")).unwrap();
    dir.write("damaged.log", text.replacen(",14480,", ",1448 0,", 1));
    let read = dir.run(&["read", "damaged.log"]);
    assert_eq!(read.code, 1);
    // It follows 2 + 18 + 9 + 6 + 9 + 5 + 11 bytes.
    assert!(read.out.contains("\n! line 2, column 61: cwnd: expected a number"), "{}", read.out);
}

#[test]
fn other_files_than_logs_are_refused_with_a_position() {
    let dir = TestDirectory::new("what_is_no_log_is_refused_with_a_place");
    dir.write("text", "hello, world\n");
    dir.write("bytes", [0; 100]);
    dir.write("empty", "");
    dir.write("packed.pcapng.xz", b"\xfd7zXZ\0...");
    assert_eq!(
        dir.run(&["read", "text"]).refused(),
        "error: text: no record found, read as a siftr log: line 1, column 1: a row of 2 \
         columns, expected 18 or 26 to 28\n  help: logs are those of tcplog_dumper (pcapng), of \
         siftr (text) and qlog (JSON)\n"
    );
    let bytes = dir.run(&["read", "bytes"]).refused();
    assert!(
        bytes.contains("a Black Box Log: byte 0: 100 bytes skipped: a block cannot"),
        "{bytes}"
    );
    assert!(dir.run(&["read", "empty"]).refused().contains("no record found"));
    let packed = dir.run(&["read", "packed.pcapng.xz"]).refused();
    assert!(packed.contains("xz -dc packed.pcapng.xz | ackclock read -"), "{packed}");
    assert!(dir.run(&["read", "missing"]).refused().contains("cannot read missing"));
    // A capture without any log in it.
    dir.write("small.toml", SMALL);
    dir.run(&["run", "small.toml", "--pcap", "plain.pcapng"]).ok();
    assert!(dir.run(&["read", "plain.pcapng"]).refused().contains("no record found"));
}

#[test]
fn a_log_is_read_from_a_pipe() {
    let dir = logged("a_log_comes_through_a_pipe", &[]);
    let file = std::fs::File::open(dir.0.join("small.pcapng")).unwrap();
    let piped = dir.command(&["read", "-"]).stdin(Stdio::from(file)).output().unwrap();
    let direct = dir.run(&["read", "small.pcapng"]).ok();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), direct);
}

#[test]
fn the_flow_to_log_is_named() {
    let dir = TestDirectory::new("the_flow_to_log_is_named");
    let second = "\n[[flow]]\nname = \"down\"\nfrom = \"sink\"\nto = \"sender\"\nbulk = \"10kB\"\n";
    dir.write("two.toml", SMALL.to_owned() + second);
    dir.run(&["run", "two.toml", "--bblog", "log", "--log-flow", "down"]).ok();
    let log = json_lines(&dir.run(&["read", "log", "--json"]).ok());
    let section = &log[0]["section"];
    assert_eq!(section["connection"]["id"], "down");
    assert_eq!(section["connection"]["local"], "10.0.0.2:49153");
    assert_eq!(section["stacks"]["0"], "linux-6.18");
    let wrong = dir.run(&["run", "two.toml", "--bblog", "log", "--log-flow", "dwn"]).refused();
    assert_eq!(wrong, "error: --log-flow: unknown flow `dwn`\n  help: did you mean `down`?\n");
    let single_packet = dir.run(&["run", "two.toml", "--log-flow", "down"]).refused();
    assert!(
        single_packet.contains("--log-flow needs --bblog, --siftr or --qlog"),
        "{single_packet}"
    );
    let same = dir.run(&["run", "two.toml", "--bblog", "x", "--siftr", "./x"]).refused();
    assert_eq!(same, "error: --bblog and --siftr both write ./x\n");
}

#[test]
fn a_qlog_as_text() {
    let dir = TestDirectory::new("a_qlog_as_text");
    let lossy = SMALL.replace("forward = [", "forward = [{ loss = { packets = [6] } }, ");
    dir.write("small.toml", lossy.replace("100kB", "20kB"));
    dir.run(&["run", "small.toml", "--qlog", "log.sqlog"]).ok();
    dir.run(&["run", "small.toml", "--qlog", "log.qlog", "--qlog-form", "qvis"]).ok();
    let text = dir.run(&["read", "log.sqlog"]).ok();
    insta::assert_snapshot!("qlog_text", text);
    // Both formats have the same contents.
    let other = dir.run(&["read", "log.qlog"]).ok();
    assert!(text.lines().skip(1).eq(other.lines().skip(1)));
    let csv = dir.run(&["read", "log.qlog", "--csv"]).ok();
    assert_eq!(csv.lines().count(), text.lines().count() - 1);
    // They agree with the siftr log of the run: every packet, every window.
    dir.run(&["run", "small.toml", "--siftr", "siftr.log"]).ok();
    let json = json_lines(&dir.run(&["read", "log.qlog", "--json"]).ok());
    let count = |name: &str| json.iter().filter(|line| line["event"]["name"] == name).count();
    let siftr = json_lines(&dir.run(&["read", "siftr.log", "--json"]).ok());
    let rows = siftr.iter().filter(|line| line["row"].is_object()).count();
    assert_eq!(count("quic:packet_sent") + count("quic:packet_received"), rows + 2);
    assert_eq!(count("quic:packet_lost"), 1);
    let windows: Vec<&Value> = json
        .iter()
        .map(|line| &line["event"]["data"]["congestion_window"])
        .filter(|window| !window.is_null())
        .collect();
    let seen = |window: &Value| siftr.iter().any(|line| line["row"]["cwnd_bytes"] == *window);
    assert!(windows.len() > 10);
    // siftr reports the window before each packet: the last of several changes.
    assert!(windows.iter().filter(|window| seen(window)).count() + 3 >= windows.len());
}

#[test]
fn a_damaged_qlog_is_read_and_its_problems_are_reported() {
    let dir = TestDirectory::new("a_damaged_qlog_is_read_and_the_damage_reported");
    dir.write("small.toml", SMALL);
    dir.run(&["run", "small.toml", "--qlog", "log.qlog", "--qlog-form", "qvis"]).ok();
    let mut log = dir.read("log.qlog");
    log.drain(3_000..3_040);
    log.truncate(log.len() - 30);
    dir.write("damaged.qlog", &log);
    let read = dir.run(&["read", "damaged.qlog"]);
    assert_eq!((read.code, read.err.as_str()), (1, ""));
    let printed: Vec<&str> = read.out.lines().filter(|line| line.starts_with("! line ")).collect();
    assert!(printed.len() >= 2, "{printed:#?}");
    assert!(printed[0].contains("bytes skipped: "), "{printed:#?}");
    assert!(
        printed.last().unwrap().contains("the file ends before the document is closed"),
        "{printed:#?}"
    );
    dir.write("other.json", "{\"a\": 1}\n");
    let none = dir.run(&["read", "other.json"]).refused();
    assert!(none.contains("no record found, read as a qlog"), "{none}");
}

/// Two hosts with INET's QUIC; 10 kB in nine packets, the third of which is lost.
const QUIC: &str = r#"
duration = "5s"

[host.a]
profile = "quic-inet-2025-02"
cc = "newreno"
mtu = "1280B"

[host.b]
profile = "quic-inet-2025-02"
cc = "newreno"
mtu = "1280B"
knobs = { numReceivedAckElicitingsBeforeAck = 1 }

[[path]]
from = "a"
to = "b"
forward = [{ loss = { packets = [3] } }, { link = { rate = "10Mbit/s", buffer = "20p" } }, { delay = "10ms" }]
return = [{ delay = "10ms" }]

[[flow]]
name = "up"
from = "a"
to = "b"
bulk = "10kB"
"#;

#[test]
fn a_qlog_of_quic_has_its_packets_and_losses() {
    let dir = TestDirectory::new("a_qlog_of_quic_has_its_packets_and_what_was_lost");
    dir.write("quic.toml", QUIC);
    dir.run(&["run", "quic.toml", "--qlog", "log.sqlog", "--csv", "rows.csv"]).ok();
    let text = dir.run(&["read", "log.sqlog"]).ok();
    insta::assert_snapshot!("qlog_of_quic", text);
    dir.run(&["run", "quic.toml", "--qlog", "log.qlog", "--qlog-form", "qvis"]).ok();
    let other = dir.run(&["read", "log.qlog"]).ok();
    assert!(text.lines().skip(1).eq(other.lines().skip(1)));
    // The CSV rows have the same states of the sender.
    let rows = String::from_utf8(dir.read("rows.csv")).unwrap();
    let names: Vec<&str> = rows.lines().next().unwrap().split(',').collect();
    let column = |name: &str| names.iter().position(|one| *one == name).unwrap();
    let lost = rows.lines().find(|row| row.contains(",packet_lost,")).unwrap();
    assert!(lost.contains("packet=2 space=2 by=packet_threshold"), "{lost}");
    let sent = rows.lines().filter(|row| row.contains(",sent,") && row.contains("kind=new"));
    let flights: Vec<&str> =
        sent.map(|row| row.split(',').nth(column("bytes_in_flight")).unwrap()).collect();
    // Packets of 1,252 bytes, the last of 152 and its header.
    assert_eq!(flights[..3], ["1252", "2504", "3756"]);
}

#[test]
fn tcp_outputs_of_a_quic_sender_are_refused() {
    let dir = TestDirectory::new("what_a_quic_sender_has_not_is_refused");
    dir.write("quic.toml", QUIC);
    for (option, what) in [
        ("--pcap=x", "--pcap writes TCP packets, and `a` runs QUIC"),
        ("--tcpdump", "--tcpdump prints TCP packets, and `a` runs QUIC"),
        ("--bblog=x", "--bblog logs a TCP sender, and `a` runs QUIC"),
        ("--siftr=x", "--siftr logs a TCP sender, and `a` runs QUIC"),
    ] {
        let refused = dir.run(&["run", "quic.toml", option]).refused();
        assert!(refused.contains(what), "{refused}");
        assert!(refused.contains("--qlog logs a QUIC sender"), "{refused}");
    }
}

/// nstat of a host whose peers report that most retransmissions were not needed, with a full accept queue.
const NSTAT: &str = "\
#kernel
TcpOutSegs                      200000             0.0
TcpRetransSegs                  1000               0.0
TcpExtListenOverflows           12                 0.0
TcpExtTCPSACKReorder            77                 0.0
TcpExtTCPDSACKRecv              990                0.0
";

#[test]
fn counters_of_a_host_distinguish_reordering_from_loss() {
    let dir = TestDirectory::new("counters_of_a_host_distinguish_reordering_from_loss");
    dir.write("host.txt", NSTAT);
    let text = dir.run(&["diagnose", "host.txt"]).ok();
    let first = "by the counters of the host: 12 times a connection was refused or delayed by a full accept queue";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("990 of 1000 retransmissions were not needed"), "{text}");
    let json: Value =
        serde_json::from_str(&dir.run(&["diagnose", "host.txt", "--json"]).ok()).unwrap();
    let kinds = json["host"]["limits"].as_array().unwrap().iter().map(|limit| &limit["kind"]);
    assert_eq!(kinds.collect::<Vec<_>>(), ["listen-overflow", "reordering"]);
    assert_eq!(json["host"]["spurious"], 990);
    // Beside another input the counters have a section of their own.
    dir.write("small.toml", SMALL);
    dir.run(&["run", "small.toml", "--pcap", "small.pcap"]).ok();
    let beside = dir.run(&["diagnose", "small.pcap", "host.txt"]).ok();
    assert!(beside.contains("\nhost.txt: counters of a host, 5 counters\n"), "{beside}");
    assert!(!beside.starts_with("by the counters"), "{beside}");
}

#[test]
fn counters_with_a_second_table_are_read_once() {
    let dir = TestDirectory::new("counters_with_a_second_table_are_read_once");
    dir.write("twice.txt", format!("{NSTAT}{NSTAT}"));
    let text = dir.run(&["diagnose", "twice.txt"]).ok();
    assert!(text.contains("line 8: `TcpOutSegs` for the second time"), "{text}");
    let json: Value =
        serde_json::from_str(&dir.run(&["diagnose", "twice.txt", "--json"]).ok()).unwrap();
    assert_eq!(json["host"]["segments_sent"], 200_000);
    dir.write("wrong.txt", "TcpOutSegs  many  0.0\nTcpRetransSegs 3 0.0\n");
    let text = dir.run(&["diagnose", "wrong.txt"]).ok();
    assert!(text.contains("line 1, column 13: value: expected a number, found \"many\""), "{text}");
}
