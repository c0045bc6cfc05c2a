//! Logs of the sender's stack, written by runs and read back, whole or damaged.

use std::process::Stdio;

use serde_json::Value;

use crate::place::{Place, SMALL};

/// A place with the small scenario and its two logs.
fn logged(test: &str, arguments: &[&str]) -> Place {
    let place = Place::new(test);
    place.write("small.toml", SMALL);
    let run = ["run", "small.toml", "--bblog", "small.pcapng", "--siftr", "small.log"];
    place.run(&[&run[..], arguments].concat()).ok();
    place
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_short_log_as_text() {
    let place = logged("a_short_log_as_text", &["--set", "flow.0.bulk=3kB", "--seed", "3"]);
    insta::assert_snapshot!("bblog_text", place.run(&["read", "small.pcapng"]).ok());
    insta::assert_snapshot!("siftr_text", place.run(&["read", "small.log"]).ok());
    let siftr = String::from_utf8(place.read("small.log")).unwrap();
    insta::assert_snapshot!("siftr_file", siftr);
}

#[test]
fn a_run_logs_every_packet_of_its_sender() {
    let place = logged("a_run_logs_every_packet_of_its_sender", &[]);
    let trace = place.run(&["run", "small.toml", "--tcpdump"]).ok();
    let log = json_lines(&place.run(&["read", "small.pcapng", "--json"]).ok());
    assert_eq!(log[0]["section"]["connection"]["local"], "10.0.0.1:49152");
    let packets = log.iter().filter(|line| line["record"]["packet"].is_object()).count();
    assert_eq!(packets, trace.lines().count());
    let summary = &log.last().unwrap()["summary"];
    assert_eq!((&summary["missing"], &summary["problems"]), (&0.into(), &0.into()));
    // Of the profile, not of the file.
    assert_eq!(summary["hz"], 1_000);
    // The SYN and its answer have no row.
    let rows = json_lines(&place.run(&["read", "small.log", "--json"]).ok());
    assert_eq!(rows.iter().filter(|line| line["row"].is_object()).count(), packets - 2);
}

#[test]
fn csv_has_a_column_for_every_field() {
    let place = logged("csv_has_a_column_for_every_field", &[]);
    for file in ["small.pcapng", "small.log"] {
        let csv = place.run(&["read", file, "--csv"]).ok();
        let mut columns = csv.lines().map(|line| line.split(',').count());
        let first = columns.next().unwrap();
        assert!(first > 25 && columns.all(|count| count == first), "{file}");
    }
}

#[test]
fn every_generation_of_siftr_reads_as_the_same_run() {
    let place = Place::new("every_generation_of_siftr_reads_as_the_same_run");
    place.write("small.toml", SMALL);
    let windows = |version: &str| -> Vec<Value> {
        let run = ["run", "small.toml", "--siftr", "log", "--siftr-version", version];
        place.run(&run).ok();
        let log = json_lines(&place.run(&["read", "log", "--json"]).ok());
        log.iter().map(|line| line["row"]["cwnd_bytes"].clone()).filter(|c| !c.is_null()).collect()
    };
    assert!(windows("1.3").len() > 50);
    assert_eq!(windows("1.2"), windows("1.3"));
    assert_eq!(windows("2"), windows("1.3"));
}

#[test]
fn a_damaged_log_is_read_and_what_is_wrong_is_told() {
    let place = logged("a_damaged_log_is_read_and_what_is_wrong_is_told", &[]);
    let mut file = place.read("small.pcapng");
    // 40 bytes are gone, and the end.
    file.drain(2_000..2_040);
    file.truncate(file.len() - 5);
    place.write("damaged.pcapng", &file);
    let read = place.run(&["read", "damaged.pcapng"]);
    assert_eq!((read.code, read.err.as_str()), (1, ""));
    let told: Vec<&str> = read.out.lines().filter(|line| line.starts_with("! byte ")).collect();
    assert_eq!(told.len(), 3, "{told:#?}");
    assert!(told[0].contains("bytes skipped: ") && told[1].contains("missing"), "{told:#?}");
    assert!(told[2].contains("the file ends within a block"), "{told:#?}");
    // Beside CSV they stand on standard error.
    let csv = place.run(&["read", "damaged.pcapng", "--csv"]);
    assert_eq!((csv.code, csv.err.lines().count()), (1, 3));

    let text = String::from_utf8(place.read("small.log")).unwrap();
    place.write("damaged.log", text.replacen(",14480,", ",1448 0,", 1));
    let read = place.run(&["read", "damaged.log"]);
    assert_eq!(read.code, 1);
    // 2 + 18 + 9 + 6 + 9 + 5 + 11 bytes stand before it.
    assert!(read.out.contains("\n! line 2, column 61: cwnd: expected a number"), "{}", read.out);
}

#[test]
fn what_is_no_log_is_refused_with_a_place() {
    let place = Place::new("what_is_no_log_is_refused_with_a_place");
    place.write("text", "hello, world\n");
    place.write("bytes", [0; 100]);
    place.write("empty", "");
    place.write("packed.pcapng.xz", b"\xfd7zXZ\0...");
    assert_eq!(
        place.run(&["read", "text"]).refused(),
        "error: text: no record found, taken for a siftr log: line 1, column 1: a row of 2 \
         columns, expected 18 or 26 to 28\n  help: logs are those of tcplog_dumper (pcapng), of \
         siftr (text) and qlog (JSON)\n"
    );
    let bytes = place.run(&["read", "bytes"]).refused();
    assert!(
        bytes.contains("a Black Box Log: byte 0: 100 bytes skipped: a block cannot"),
        "{bytes}"
    );
    assert!(place.run(&["read", "empty"]).refused().contains("no record found"));
    let packed = place.run(&["read", "packed.pcapng.xz"]).refused();
    assert!(packed.contains("xz -dc packed.pcapng.xz | ackclock read -"), "{packed}");
    assert!(place.run(&["read", "missing"]).refused().contains("cannot read missing"));
    // A capture without any log in it.
    place.write("small.toml", SMALL);
    place.run(&["run", "small.toml", "--pcap", "plain.pcapng"]).ok();
    assert!(place.run(&["read", "plain.pcapng"]).refused().contains("no record found"));
}

#[test]
fn a_log_comes_through_a_pipe() {
    let place = logged("a_log_comes_through_a_pipe", &[]);
    let file = std::fs::File::open(place.0.join("small.pcapng")).unwrap();
    let piped = place.command(&["read", "-"]).stdin(Stdio::from(file)).output().unwrap();
    let direct = place.run(&["read", "small.pcapng"]).ok();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), direct);
}

#[test]
fn the_flow_to_log_is_named() {
    let place = Place::new("the_flow_to_log_is_named");
    let second = "\n[[flow]]\nname = \"down\"\nfrom = \"sink\"\nto = \"sender\"\nbulk = \"10kB\"\n";
    place.write("two.toml", SMALL.to_owned() + second);
    place.run(&["run", "two.toml", "--bblog", "log", "--log-flow", "down"]).ok();
    let log = json_lines(&place.run(&["read", "log", "--json"]).ok());
    let section = &log[0]["section"];
    assert_eq!(section["connection"]["id"], "down");
    assert_eq!(section["connection"]["local"], "10.0.0.2:49153");
    assert_eq!(section["stacks"]["0"], "linux-6.18");
    let wrong = place.run(&["run", "two.toml", "--bblog", "log", "--log-flow", "dwn"]).refused();
    assert_eq!(
        wrong,
        "error: --log-flow: there is no flow \"dwn\"\n  help: did you mean \"down\"?\n"
    );
    let alone = place.run(&["run", "two.toml", "--log-flow", "down"]).refused();
    assert!(alone.contains("--log-flow needs --bblog, --siftr or --qlog"), "{alone}");
    let same = place.run(&["run", "two.toml", "--bblog", "x", "--siftr", "./x"]).refused();
    assert_eq!(same, "error: --bblog and --siftr both write ./x\n");
}

#[test]
fn a_qlog_as_text() {
    let place = Place::new("a_qlog_as_text");
    let lossy = SMALL.replace("forward = [", "forward = [{ loss = { packets = [6] } }, ");
    place.write("small.toml", lossy.replace("100kB", "20kB"));
    place.run(&["run", "small.toml", "--qlog", "log.sqlog"]).ok();
    place.run(&["run", "small.toml", "--qlog", "log.qlog", "--qlog-form", "qvis"]).ok();
    let text = place.run(&["read", "log.sqlog"]).ok();
    insta::assert_snapshot!("qlog_text", text);
    // Both forms tell the same.
    let other = place.run(&["read", "log.qlog"]).ok();
    assert!(text.lines().skip(1).eq(other.lines().skip(1)));
    let csv = place.run(&["read", "log.qlog", "--csv"]).ok();
    assert_eq!(csv.lines().count(), text.lines().count() - 1);
    // And the same as the other log of the run: every packet, every window.
    place.run(&["run", "small.toml", "--siftr", "siftr.log"]).ok();
    let json = json_lines(&place.run(&["read", "log.qlog", "--json"]).ok());
    let count = |name: &str| json.iter().filter(|line| line["event"]["name"] == name).count();
    let siftr = json_lines(&place.run(&["read", "siftr.log", "--json"]).ok());
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
    // siftr tells the window before each packet: the last of several changes.
    assert!(windows.iter().filter(|window| seen(window)).count() + 3 >= windows.len());
}

#[test]
fn a_damaged_qlog_is_read_and_what_is_wrong_is_told() {
    let place = Place::new("a_damaged_qlog_is_read_and_what_is_wrong_is_told");
    place.write("small.toml", SMALL);
    place.run(&["run", "small.toml", "--qlog", "log.qlog", "--qlog-form", "qvis"]).ok();
    let mut log = place.read("log.qlog");
    log.drain(3_000..3_040);
    log.truncate(log.len() - 30);
    place.write("damaged.qlog", &log);
    let read = place.run(&["read", "damaged.qlog"]);
    assert_eq!((read.code, read.err.as_str()), (1, ""));
    let told: Vec<&str> = read.out.lines().filter(|line| line.starts_with("! line ")).collect();
    assert!(told.len() >= 2, "{told:#?}");
    assert!(told[0].contains("bytes skipped: "), "{told:#?}");
    assert!(told.last().unwrap().contains("the file ends before it is closed"), "{told:#?}");
    place.write("other.json", "{\"a\": 1}\n");
    let none = place.run(&["read", "other.json"]).refused();
    assert!(none.contains("no record found, taken for a qlog"), "{none}");
}

/// Two hosts with INET's QUIC, 10 kB in nine packets of which the third is lost.
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
fn a_qlog_of_quic_has_its_packets_and_what_was_lost() {
    let place = Place::new("a_qlog_of_quic_has_its_packets_and_what_was_lost");
    place.write("quic.toml", QUIC);
    place.run(&["run", "quic.toml", "--qlog", "log.sqlog", "--csv", "rows.csv"]).ok();
    let text = place.run(&["read", "log.sqlog"]).ok();
    insta::assert_snapshot!("qlog_of_quic", text);
    place.run(&["run", "quic.toml", "--qlog", "log.qlog", "--qlog-form", "qvis"]).ok();
    let other = place.run(&["read", "log.qlog"]).ok();
    assert!(text.lines().skip(1).eq(other.lines().skip(1)));
    // The rows have the same of the sender.
    let rows = String::from_utf8(place.read("rows.csv")).unwrap();
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
fn what_a_quic_sender_has_not_is_refused() {
    let place = Place::new("what_a_quic_sender_has_not_is_refused");
    place.write("quic.toml", QUIC);
    for (option, what) in [
        ("--pcap=x", "--pcap writes packets of TCP, and \"a\" has QUIC"),
        ("--tcpdump", "--tcpdump prints packets of TCP, and \"a\" has QUIC"),
        ("--bblog=x", "--bblog is a log of FreeBSD's TCP, and \"a\" has QUIC"),
        ("--siftr=x", "--siftr is a log of FreeBSD's TCP, and \"a\" has QUIC"),
    ] {
        let refused = place.run(&["run", "quic.toml", option]).refused();
        assert!(refused.contains(what), "{refused}");
        assert!(refused.contains("--qlog writes what a QUIC sender sends"), "{refused}");
    }
}
