//! Outputs of commands: their contents, their destination, and the files that stay untouched.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::test_directory::{SMALL, TestDirectory};

#[test]
fn json_has_the_documented_fields() {
    let dir = TestDirectory::new("json_has_the_promised_fields");
    dir.write("small.toml", SMALL);
    let out = dir.run(&["run", "small.toml", "--json", "--seed", "5"]).ok();
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["seed"], 5);
    let flow = &json["flows"][0];
    assert_eq!(flow["name"], "bulk");
    assert_eq!(flow["profile"], "freebsd-13.2");
    assert_eq!(flow["cc"], "newreno");
    assert_eq!(flow["bytes"], 100_000);
    // 1448 bytes per segment: 69.06 segments.
    assert_eq!(json["segments_simulated"], 70);
    for counter in ["retransmitted_segments", "fast_recoveries", "rtos", "spurious_recoveries"] {
        assert_eq!(flow[counter], 0, "{counter}");
    }
    // At 10 Mbit/s the bytes and headers alone take 82.9 ms; the round trips of slow start add to
    // this.
    let duration = flow["duration_s"].as_f64().unwrap();
    assert!((0.083..1.0).contains(&duration), "{duration}");
    let goodput = flow["goodput_bps"].as_f64().unwrap();
    assert!((goodput * duration - 800_000.0).abs() < 0.01, "{goodput}");
    assert!(flow["max_cwnd_bytes"].as_u64().unwrap() >= 14_480);
    // In ticks of a millisecond; the path takes 20 ms.
    assert!((0.020..0.025).contains(&flow["min_rtt_s"].as_f64().unwrap()));

    // The digest covers the text with the seed applied.
    let text = dir.run(&["scenario", "show", "small.toml", "--seed", "5"]).ok();
    dir.write("shown.toml", text);
    let repeated = dir.run(&["run", "shown.toml", "--json"]).ok();
    assert_eq!(repeated, out);
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    let dir = TestDirectory::new("the_same_scenario_gives_the_same_bytes");
    dir.write("small.toml", SMALL);
    for name in ["a", "b"] {
        let (pcap, csv) = (format!("{name}.pcapng"), format!("{name}.csv"));
        dir.run(&["run", "small.toml", "--pcap", &pcap, "--csv", &csv]).ok();
    }
    assert!(dir.read("a.pcapng") == dir.read("b.pcapng"));
    assert!(dir.read("a.csv") == dir.read("b.csv"));
    assert_eq!(&dir.read("a.pcapng")[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(dir.read("a.csv").starts_with(b"time_s,"));
}

#[test]
fn a_trace_shows_the_view_of_the_host_asked_for() {
    let dir = TestDirectory::new("a_trace_shows_the_view_of_the_host_asked_for");
    dir.write("small.toml", SMALL);
    let sender = dir.run(&["run", "small.toml", "--tcpdump"]).ok();
    assert_eq!(dir.run(&["run", "small.toml", "--tcpdump", "sender"]).ok(), sender);
    let sink = dir.run(&["run", "small.toml", "--tcpdump=sink"]).ok();
    let first = sender.lines().next().unwrap();
    assert!(first.starts_with(" 0.000 IP sender > sink: Flags [S], seq "), "{first}");
    // The SYN-ACK leaves the sink when the SYN arrives and takes 10 ms to the sender: timestamps
    // count from the first packet of each view.
    let second = |trace: &str| trace.lines().nth(1).unwrap()[..7].to_owned();
    assert_eq!((second(&sender).as_str(), second(&sink).as_str()), (" 0.020 ", " 0.000 "));
}

#[test]
fn a_pcap_has_one_interface_for_each_tap() {
    let dir = TestDirectory::new("a_pcap_has_one_interface_for_each_tap");
    let taps = "\n[[tap]]\nhost = \"sink\"\nat = \"wire\"\n\n[[tap]]\nhost = \"sender\"\n";
    dir.write("taps.toml", SMALL.to_owned() + taps);
    dir.run(&["run", "taps.toml", "--pcap", "taps.pcapng"]).ok();
    dir.write("small.toml", SMALL);
    dir.run(&["run", "small.toml", "--pcap", "small.pcapng"]).ok();
    let names = |file: &str| {
        let bytes = dir.read(file);
        let has = |name: &str| bytes.windows(name.len()).any(|w| w == name.as_bytes());
        ["sink-wire", "sender-stack", "sink-stack"].map(has)
    };
    assert_eq!(names("taps.pcapng"), [true, true, false]);
    assert_eq!(names("small.pcapng"), [false, true, false]);
}

#[test]
fn a_chart_is_drawn_beside_rows() {
    let dir = TestDirectory::new("a_chart_is_drawn_beside_rows");
    dir.write("small.toml", SMALL);
    dir.run(&["run", "small.toml", "--svg", "a.svg", "--csv", "a.csv"]).ok();
    dir.run(&["run", "small.toml", "--svg", "b.svg"]).ok();
    assert!(dir.read("a.csv").starts_with(b"time_s,"));
    assert!(dir.read("a.svg").starts_with(b"<svg "));
    assert_eq!(dir.read("a.svg"), dir.read("b.svg"));
    let both = dir.run(&["run", "small.toml", "--csv", "x", "--svg", "./x"]).refused();
    assert_eq!(both, "error: --csv and --svg both write ./x\n");
}

#[test]
fn reproduce_lists_its_cases_and_refuses_others() {
    let dir = TestDirectory::new("reproduce_lists_its_cases_and_refuses_others");
    let list = dir.run(&["reproduce", "--list"]).ok();
    assert!(list.starts_with("slow-start-lro  "), "{list}");
    let json: serde_json::Value =
        serde_json::from_str(&dir.run(&["reproduce", "--list", "--json"]).ok()).unwrap();
    assert_eq!(json[0]["id"], "slow-start-lro");
    let err = dir.run(&["reproduce", "slow-start-lor"]).refused();
    assert!(
        err.contains("unknown case `slow-start-lor`") && err.contains("slow-start-lro"),
        "{err}"
    );
}

#[test]
fn a_run_that_fails_leaves_the_old_file() {
    let dir = TestDirectory::new("a_run_that_fails_leaves_the_old_file");
    dir.write("small.toml", SMALL);
    dir.write("old.csv", "old");
    // The second output cannot be created, so the first must not be either.
    let arguments = ["run", "small.toml", "--pcap", "old.csv", "--csv", "none/x.csv"];
    let err = dir.run(&arguments).refused();
    assert!(err.starts_with("error: cannot write none/x.csv: No such file"), "{err}");
    assert_eq!(dir.read("old.csv"), b"old");
    assert_eq!(dir.files(), ["old.csv", "small.toml"]);
    // A successful run replaces it.
    dir.run(&["run", "small.toml", "--csv", "old.csv"]).ok();
    assert!(dir.read("old.csv").starts_with(b"time_s,"));
    assert_eq!(dir.files(), ["old.csv", "small.toml"]);
}

#[test]
fn outputs_that_cannot_be_written_are_reported_before_the_run() {
    let dir = TestDirectory::new("what_cannot_be_written_is_said_before_the_run");
    dir.write("small.toml", SMALL);
    dir.write("old.csv", "old");
    fs::create_dir(dir.0.join("dir")).unwrap();
    let mut permissions = fs::metadata(dir.0.join("old.csv")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(dir.0.join("old.csv"), permissions).unwrap();
    let refused = |out: &str| dir.run(&["run", "small.toml", "--csv", out]).refused();
    assert!(refused("old.csv").starts_with("error: cannot write old.csv: "));
    assert!(refused("dir").starts_with("error: cannot write dir: "));
    assert!(refused("none/a.csv").starts_with("error: cannot write none/a.csv: "));
    assert_eq!(refused("small.toml"), "error: small.toml is the scenario itself\n");
    let both = dir.run(&["run", "small.toml", "--csv", "x", "--pcap", "./x"]).refused();
    assert_eq!(both, "error: --pcap and --csv both write x\n");
    assert_eq!(dir.read("small.toml"), SMALL.as_bytes());
    assert_eq!(dir.files(), ["dir", "old.csv", "small.toml"]);
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_written_through() {
    let dir = TestDirectory::new("links_and_devices_are_written_through");
    dir.write("small.toml", SMALL);
    dir.write("target.csv", "old");
    std::os::unix::fs::symlink("target.csv", dir.0.join("link.csv")).unwrap();
    dir.run(&["run", "small.toml", "--csv", "link.csv", "--pcap", "/dev/null"]).ok();
    assert!(dir.read("target.csv").starts_with(b"time_s,"));
    assert!(fs::symlink_metadata(dir.0.join("link.csv")).unwrap().is_symlink());
}

/// A shell's `> out.txt`: the file gets both the output to /dev/stdout and the printed text.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_may_be_named() {
    let dir = TestDirectory::new("standard_output_may_be_named");
    dir.write("small.toml", SMALL);
    let table = dir.run(&["run", "small.toml"]).ok();
    let json = dir.run(&["run", "small.toml", "--json"]).ok();
    dir.run(&["run", "small.toml", "--csv", "rows.csv"]).ok();
    let rows = String::from_utf8(dir.read("rows.csv")).unwrap();
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "out.txt"] {
        for (more, printed) in [(&[][..], &table), (&["--json"], &json)] {
            let arguments = [&["run", "small.toml", "--csv", name], more].concat();
            let out = fs::File::create(dir.0.join("out.txt")).unwrap();
            let status = dir.command(&arguments).stdout(out).status().unwrap();
            assert_eq!(status.code(), Some(0), "{name}");
            let found = String::from_utf8(dir.read("out.txt")).unwrap();
            assert!(found == rows.clone() + printed, "{name} {more:?}");
            // Through a pipe as well.
            if name != "out.txt" {
                assert!(dir.run(&arguments).ok() == found, "{name} {more:?}");
            }
        }
    }
    assert_eq!(dir.files(), ["out.txt", "rows.csv", "small.toml"]);
    let both = ["run", "small.toml", "--csv", "/dev/stdout", "--svg", "/dev/fd/1"];
    assert!(dir.run(&both).refused().contains("--csv and --svg both write /dev/fd/1"));
    // The previous content of a file in append mode stays.
    dir.write("log.txt", "before\n");
    let log = fs::OpenOptions::new().append(true).open(dir.0.join("log.txt")).unwrap();
    let svg = ["run", "small.toml", "--svg", "/dev/stdout"];
    dir.command(&svg).stdout(log).status().unwrap();
    let log = String::from_utf8(dir.read("log.txt")).unwrap();
    assert!(log.starts_with("before\n<svg ") && log.ends_with(&table), "{log}");
}

/// /dev/full is full: each output reports this, and no file is left under its name.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let dir = TestDirectory::new("a_full_disk_is_an_error");
    dir.write("small.toml", SMALL);
    let outputs = ["--csv", "--pcap", "--svg", "--report", "--bblog", "--siftr", "--qlog"];
    let more = [
        cfg!(feature = "png").then_some("--png"),
        cfg!(feature = "parquet").then_some("--parquet"),
    ];
    for option in outputs.into_iter().chain(more.into_iter().flatten()) {
        let answer = dir.run(&["run", "small.toml", option, "/dev/full"]);
        assert_eq!(answer.code, 2, "{option}");
        let (what, why) = ("error: cannot write /dev/full: ", "No space left on device");
        assert!(answer.err.starts_with(what), "{option}: {}", answer.err);
        assert!(answer.err.contains(why), "{option}: {}", answer.err);
    }
    let columns = ["run", "small.toml", "--columns", "cwnd", "--jsonl", "/dev/full"];
    assert!(dir.run(&columns).err.contains("No space left on device"));
    // The same holds for printed output.
    for arguments in
        [&["run", "small.toml"][..], &["run", "small.toml", "--json"], &["scenario", "keys"]]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = dir.command(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let shown = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            shown.starts_with("error: cannot write to standard output: No space left"),
            "{shown}"
        );
    }
    assert_eq!(dir.files(), ["small.toml"]);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let dir = TestDirectory::new("a_reader_who_leaves_is_no_error");
    dir.write("big.toml", SMALL.replace("100kB", "10MB"));
    let mut command = dir.command(&["run", "big.toml", "--tcpdump"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_pipe_of_csv_rows_is_no_error() {
    let dir = TestDirectory::new("a_reader_of_rows_who_leaves_is_no_error_either");
    dir.write("big.toml", SMALL.replace("100kB", "10MB"));
    let mut command = dir.command(&["run", "big.toml", "--csv", "/dev/stdout"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn check_summarizes_a_scenario() {
    let dir = TestDirectory::new("check_says_what_a_scenario_holds");
    dir.write("small.toml", SMALL);
    let out = dir.run(&["scenario", "check", "small.toml"]).ok();
    assert!(out.starts_with("small.toml: ok, 2 hosts, 1 path, 1 flow, 0 taps, sha256 "), "{out}");
    let json = dir.run(&["scenario", "check", "small.toml", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["errors"], serde_json::json!([]));
    assert!(out.trim_end().ends_with(json["scenario_sha256"].as_str().unwrap()));
}

#[test]
fn every_help_has_examples() {
    let dir = TestDirectory::new("every_help_has_examples");
    for command in [
        &[][..],
        &["run"],
        &["scenario"],
        &["scenario", "check"],
        &["scenario", "show"],
        &["scenario", "keys"],
        &["scenario", "profiles"],
        &["scenario", "schema"],
        &["reproduce"],
        &["read"],
        &["wire"],
        &["wire", "send"],
        &["wire", "receive"],
        &["wire", "link"],
        &["wire", "compare"],
    ] {
        let out = dir.run(&[command, &["--help"]].concat()).ok();
        assert!(out.contains("Examples:\n  ackclock"), "{command:?}");
    }
}

/// The folder of the scenarios is a crate, too.
fn is_scenario(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|end| end == "toml")
        && path.file_name().is_some_and(|name| name != "Cargo.toml")
}

#[test]
fn the_sample_scenarios_run() {
    let dir = TestDirectory::new("the_sample_scenarios_run");
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut count = 0;
    let presets = fs::read_dir(format!("{directory}/presets")).unwrap();
    for entry in fs::read_dir(directory).unwrap().chain(presets) {
        let path = entry.unwrap().path();
        if path.is_dir() || !is_scenario(&path) {
            continue;
        }
        dir.run(&["run", path.to_str().unwrap(), "--set", "duration=12s"]).ok();
        count += 1;
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn columns_over_time_keep_every_peak() {
    let dir = TestDirectory::new("columns_over_time_keep_every_peak");
    dir.write("small.toml", SMALL);
    let run = |more: &[&str]| dir.run(&[&["run", "small.toml"][..], more].concat());
    run(&["--csv", "all.csv"]).ok();
    run(&[
        "--csv",
        "some.csv",
        "--jsonl",
        "some.jsonl",
        "--columns",
        "cwnd,flight",
        "--every",
        "20ms",
    ])
    .ok();
    let read = |name: &str| String::from_utf8(dir.read(name)).unwrap();
    let column = |text: &str, name: &str| -> Vec<u64> {
        let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let at = head.iter().position(|known| *known == name).unwrap();
        let host = head.iter().position(|known| *known == "host");
        let ours = |line: &&str| host.is_none_or(|at| line.split(',').nth(at) == Some("0"));
        let cells = text.lines().skip(1).filter(ours).filter_map(|line| line.split(',').nth(at));
        cells.filter_map(|cell| cell.parse().ok()).collect()
    };
    let (all, some) = (read("all.csv"), read("some.csv"));
    assert!(some.starts_with("time_s,flow,cwnd_bytes,flight_bytes\n"), "{some}");
    assert!(some.lines().count() * 3 < all.lines().count());
    for name in ["cwnd_bytes", "flight_bytes"] {
        assert_eq!(column(&all, name).iter().max(), column(&some, name).iter().max(), "{name}");
    }
    let first: serde_json::Value =
        serde_json::from_str(read("some.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["flow"], read("some.jsonl").lines().count() + 1),
        (&"bulk".into(), some.lines().count())
    );
    let err = run(&["--csv", "x", "--columns", "cwmd"]).refused();
    assert!(err.contains("--columns: unknown column `cwmd`") && err.contains("`cwnd`"), "{err}");
    let err = run(&["--csv", "x", "--every", "10ms"]).refused();
    assert!(err.contains("--every needs --columns"), "{err}");
    let err = run(&["--columns", "cwnd"]).refused();
    assert!(err.contains("--columns needs --csv"), "{err}");
    let err = run(&["--csv", "x", "--columns", "cwnd", "--every", "10"]).refused();
    assert!(err.contains("has no unit"), "{err}");
}

#[test]
fn a_page_is_one_file_and_the_same_each_time() {
    let dir = TestDirectory::new("a_page_is_one_file_and_the_same_each_time");
    dir.write("small.toml", SMALL);
    for name in ["a.html", "b.html"] {
        dir.run(&["run", "small.toml", "--report", name]).ok();
    }
    assert!(dir.read("a.html") == dir.read("b.html"));
    assert!(dir.read("a.html").starts_with(b"<!doctype html>"));
    assert_eq!(dir.files(), ["a.html", "b.html", "small.toml"]);
    let err = dir.run(&["run", "small.toml", "--report", "none/a.html"]).refused();
    assert!(err.contains("none/a.html"), "{err}");
}

#[cfg(feature = "png")]
#[test]
fn a_chart_as_png_is_the_same_each_time() {
    let dir = TestDirectory::new("a_chart_as_png_is_the_same_each_time");
    dir.write("small.toml", SMALL);
    for name in ["a.png", "b.png"] {
        dir.run(&["run", "small.toml", "--png", name]).ok();
    }
    assert!(dir.read("a.png") == dir.read("b.png"));
    assert_eq!(&dir.read("a.png")[..8], b"\x89PNG\r\n\x1a\n");
    // Twice the width of the SVG.
    let width = u32::from_be_bytes(dir.read("a.png")[16..20].try_into().unwrap());
    assert_eq!(width, 1_760);
}

#[test]
fn a_chart_may_be_of_a_part_of_the_run() {
    let dir = TestDirectory::new("a_chart_may_be_of_a_part_of_the_run");
    dir.write("small.toml", SMALL);
    let ends = |name: &str, more: &[&str]| {
        dir.run(&[&["run", "small.toml", "--svg", name][..], more].concat()).ok();
        String::from_utf8(dir.read(name)).unwrap()
    };
    let whole = ends("whole.svg", &[]);
    let part = ends("part.svg", &["--from", "50ms", "--until", "90ms"]);
    // Numbers on the time axis.
    assert!(whole.contains(">0.10<") && !part.contains(">0.10<"), "{part}");
    assert!(part.contains(">0.06"), "{part}");
    let refused = |more: &[&str]| dir.run(&[&["run", "small.toml"][..], more].concat()).refused();
    assert!(refused(&["--from", "1s"]).contains("--from and --until need --svg or --png"));
    let order = ["--svg", "x.svg", "--from", "2s", "--until", "1s"];
    assert!(refused(&order).contains("expected an instant before --until"));
    assert!(!dir.files().contains(&"x.svg".to_owned()));
}
