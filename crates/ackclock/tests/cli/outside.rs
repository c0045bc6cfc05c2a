//! Captures and logs of a run, read by tcpdump and tshark.

use std::process::Command;

use super::test_directory::TestDirectory;

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

/// Output lines of a program; `None` if it is not installed, which must not happen in CI.
#[expect(clippy::disallowed_methods, reason = "whether a skipped test is a failure depends on CI")]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub(crate) fn lines(dir: &TestDirectory, program: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&dir.0).env("TZ", "UTC");
    let Ok(output) = command.output() else {
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!in_ci, "{program} not found, and CI=true allows no skipped test");
        eprintln!("skipped: {program} not found, install it to run this test");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn tcpdump_prints_a_run_as_we_do() {
    let dir = TestDirectory::new("tcpdump_prints_a_run_as_we_do");
    // Without its taps the capture has one interface, the sender's stack.
    let example = std::fs::read_to_string(format!("{SCENARIOS}/example.toml")).unwrap();
    dir.write("example.toml", example.split("[[tap]]").next().unwrap());
    let run = ["run", "example.toml", "--pcap", "run.pcapng", "--tcpdump"];
    let ours = dir.run(&run).ok();
    let Some(theirs) = lines(&dir, "tcpdump", &["-n", "-ttttt", "-r", "run.pcapng"]) else {
        return;
    };
    assert!(theirs.len() > 10_000);
    assert!(ours.lines().eq(theirs.iter().map(String::as_str)));
}

#[test]
fn tshark_finds_no_error_in_the_published_trace() {
    let dir = TestDirectory::new("tshark_finds_nothing_wrong_with_the_published_trace");
    let scenario = format!("{SCENARIOS}/slow-start-lro.toml");
    dir.run(&["run", &scenario, "--pcap", "run.pcapng"]).ok();
    let read =
        ["-r", "run.pcapng", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    let wrong = "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0 \
                 || _ws.expert.severity == error";
    let Some(found) = lines(&dir, "tshark", &[&read[..], &["-Y", wrong]].concat()) else {
        return;
    };
    assert!(found.is_empty(), "{found:#?}");
    // It sees the flights of the freebsd-net post, as the sender's stack passed them to the NIC.
    let fields = ["-Y", "tcp.len > 0", "-T", "fields", "-e", "tcp.len"];
    let lengths = lines(&dir, "tshark", &[&read[..], &fields].concat()).unwrap();
    assert_eq!(lengths[..5], ["14480", "17376", "20272", "21500", "1448"]);
}

#[test]
fn tshark_dissects_every_record_of_a_run() {
    let dir = TestDirectory::new("tshark_dissects_every_record_of_a_run");
    let scenario = format!("{SCENARIOS}/example.toml");
    dir.run(&["run", &scenario, "--bblog", "log.pcapng"]).ok();
    let whole = dir.run(&["read", "log.pcapng", "--json"]).ok();
    let is_record = |line: &&str| line.starts_with("{\"record\":");
    let (packets, events): (Vec<&str>, Vec<&str>) =
        whole.lines().filter(is_record).partition(|line| line.contains("\"packet\":{"));
    let read = ["-r", "log.pcapng"];
    let wrong = ["-Y", "_ws.malformed || _ws.expert.severity == error"];
    let Some(found) = lines(&dir, "tshark", &[&read[..], &wrong].concat()) else { return };
    assert!(found.is_empty(), "{found:#?}");
    let frames = lines(&dir, "tshark", &[&read[..], &["-Y", "tcp"]].concat()).unwrap();
    assert_eq!(frames.len(), packets.len());
    // Plain events are dissected field by field: the numbers agree with those of our reader.
    let fields = ["-Y", "bblog", "-T", "fields", "-e", "bblog.serial_nr", "-e", "bblog.snd_cwnd"];
    let theirs = lines(&dir, "tshark", &[&read[..], &fields].concat()).unwrap();
    let ours: Vec<String> = events
        .iter()
        .map(|line| {
            let json: serde_json::Value = serde_json::from_str(line).unwrap();
            let record = &json["record"];
            format!("{}\t{}", record["serial"], record["snd_cwnd"])
        })
        .collect();
    assert!(ours.len() > 100);
    assert_eq!(theirs, ours);
    let verbose = lines(&dir, "tshark", &[&read[..], &["-V", "-Y", "bblog"]].concat()).unwrap();
    assert!(!verbose.iter().any(|line| line.contains("Malformed")));
}
