//! What commands write, where, and what they leave alone.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::place::{Place, SMALL};

#[test]
fn json_has_the_promised_fields() {
    let place = Place::new("json_has_the_promised_fields");
    place.write("small.toml", SMALL);
    let out = place.run(&["run", "small.toml", "--json", "--seed", "5"]).ok();
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["seed"], 5);
    let flow = &json["flows"][0];
    assert_eq!(flow["name"], "bulk");
    assert_eq!(flow["profile"], "freebsd-13.2");
    assert_eq!(flow["cc"], "newreno");
    assert_eq!(flow["bytes"], 100_000);
    // 1448 bytes a segment: 69.06 of them.
    assert_eq!(json["segments_simulated"], 70);
    for counter in ["retransmitted_segments", "fast_recoveries", "rtos", "spurious_recoveries"] {
        assert_eq!(flow[counter], 0, "{counter}");
    }
    // At 10 Mbit/s the bytes and headers alone take 82.9 ms, the round trips of slow start more.
    let duration = flow["duration_s"].as_f64().unwrap();
    assert!((0.083..1.0).contains(&duration), "{duration}");
    let goodput = flow["goodput_bps"].as_f64().unwrap();
    assert!((goodput * duration - 800_000.0).abs() < 0.01, "{goodput}");
    assert!(flow["max_cwnd_bytes"].as_u64().unwrap() >= 14_480);
    // In ticks of a millisecond, the path being 20 ms long.
    assert!((0.020..0.025).contains(&flow["min_rtt_s"].as_f64().unwrap()));

    // The digest is that of the text with the seed worked in.
    let text = place.run(&["scenario", "show", "small.toml", "--seed", "5"]).ok();
    place.write("shown.toml", text);
    let again = place.run(&["run", "shown.toml", "--json"]).ok();
    assert_eq!(again, out);
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    let place = Place::new("the_same_scenario_gives_the_same_bytes");
    place.write("small.toml", SMALL);
    for name in ["a", "b"] {
        let (pcap, csv) = (format!("{name}.pcapng"), format!("{name}.csv"));
        place.run(&["run", "small.toml", "--pcap", &pcap, "--csv", &csv]).ok();
    }
    assert!(place.read("a.pcapng") == place.read("b.pcapng"));
    assert!(place.read("a.csv") == place.read("b.csv"));
    assert_eq!(&place.read("a.pcapng")[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(place.read("a.csv").starts_with(b"time_s,"));
}

#[test]
fn a_trace_shows_the_view_of_the_host_asked_for() {
    let place = Place::new("a_trace_shows_the_view_of_the_host_asked_for");
    place.write("small.toml", SMALL);
    let sender = place.run(&["run", "small.toml", "--tcpdump"]).ok();
    assert_eq!(place.run(&["run", "small.toml", "--tcpdump", "sender"]).ok(), sender);
    let sink = place.run(&["run", "small.toml", "--tcpdump=sink"]).ok();
    let first = sender.lines().next().unwrap();
    assert!(first.starts_with(" 0.000 IP sender > sink: Flags [S], seq "), "{first}");
    // The SYN-ACK leaves the sink as soon as the SYN is there, and takes 10 ms to the sender:
    // stamps count from the first packet of each view.
    let second = |trace: &str| trace.lines().nth(1).unwrap()[..7].to_owned();
    assert_eq!((second(&sender).as_str(), second(&sink).as_str()), (" 0.020 ", " 0.000 "));
}

#[test]
fn a_pcap_has_one_interface_for_each_tap() {
    let place = Place::new("a_pcap_has_one_interface_for_each_tap");
    let taps = "\n[[tap]]\nhost = \"sink\"\nat = \"wire\"\n\n[[tap]]\nhost = \"sender\"\n";
    place.write("taps.toml", SMALL.to_owned() + taps);
    place.run(&["run", "taps.toml", "--pcap", "taps.pcapng"]).ok();
    place.write("small.toml", SMALL);
    place.run(&["run", "small.toml", "--pcap", "small.pcapng"]).ok();
    let names = |file: &str| {
        let bytes = place.read(file);
        let has = |name: &str| bytes.windows(name.len()).any(|w| w == name.as_bytes());
        ["sink-wire", "sender-stack", "sink-stack"].map(has)
    };
    assert_eq!(names("taps.pcapng"), [true, true, false]);
    assert_eq!(names("small.pcapng"), [false, true, false]);
}

#[test]
fn a_chart_is_drawn_beside_rows() {
    let place = Place::new("a_chart_is_drawn_beside_rows");
    place.write("small.toml", SMALL);
    place.run(&["run", "small.toml", "--svg", "a.svg", "--csv", "a.csv"]).ok();
    place.run(&["run", "small.toml", "--svg", "b.svg"]).ok();
    assert!(place.read("a.csv").starts_with(b"time_s,"));
    assert!(place.read("a.svg").starts_with(b"<svg "));
    assert_eq!(place.read("a.svg"), place.read("b.svg"));
    let both = place.run(&["run", "small.toml", "--csv", "x", "--svg", "./x"]).refused();
    assert_eq!(both, "error: --csv and --svg both write ./x\n");
}

#[test]
fn reproduce_lists_its_cases_and_refuses_others() {
    let place = Place::new("reproduce_lists_its_cases_and_refuses_others");
    let list = place.run(&["reproduce", "--list"]).ok();
    assert!(list.starts_with("slow-start-lro  "), "{list}");
    let json: serde_json::Value =
        serde_json::from_str(&place.run(&["reproduce", "--list", "--json"]).ok()).unwrap();
    assert_eq!(json[0]["id"], "slow-start-lro");
    let err = place.run(&["reproduce", "slow-start-lor"]).refused();
    assert!(err.contains("no case \"slow-start-lor\"") && err.contains("slow-start-lro"), "{err}");
}

#[test]
fn a_run_that_fails_leaves_the_old_file() {
    let place = Place::new("a_run_that_fails_leaves_the_old_file");
    place.write("small.toml", SMALL);
    place.write("old.csv", "old");
    // The second output cannot be made, so the first must not be either.
    let arguments = ["run", "small.toml", "--pcap", "old.csv", "--csv", "none/x.csv"];
    let err = place.run(&arguments).refused();
    assert!(err.starts_with("error: cannot write none/x.csv: No such file"), "{err}");
    assert_eq!(place.read("old.csv"), b"old");
    assert_eq!(place.files(), ["old.csv", "small.toml"]);
    // And a good run replaces it.
    place.run(&["run", "small.toml", "--csv", "old.csv"]).ok();
    assert!(place.read("old.csv").starts_with(b"time_s,"));
    assert_eq!(place.files(), ["old.csv", "small.toml"]);
}

#[test]
fn what_cannot_be_written_is_said_before_the_run() {
    let place = Place::new("what_cannot_be_written_is_said_before_the_run");
    place.write("small.toml", SMALL);
    place.write("old.csv", "old");
    fs::create_dir(place.0.join("dir")).unwrap();
    let mut permissions = fs::metadata(place.0.join("old.csv")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(place.0.join("old.csv"), permissions).unwrap();
    let refused = |out: &str| place.run(&["run", "small.toml", "--csv", out]).refused();
    assert!(refused("old.csv").starts_with("error: cannot write old.csv: "));
    assert!(refused("dir").starts_with("error: cannot write dir: "));
    assert!(refused("none/a.csv").starts_with("error: cannot write none/a.csv: "));
    assert_eq!(refused("small.toml"), "error: small.toml is the scenario itself\n");
    let both = place.run(&["run", "small.toml", "--csv", "x", "--pcap", "./x"]).refused();
    assert_eq!(both, "error: --pcap and --csv both write x\n");
    assert_eq!(place.read("small.toml"), SMALL.as_bytes());
    assert_eq!(place.files(), ["dir", "old.csv", "small.toml"]);
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_written_through() {
    let place = Place::new("links_and_devices_are_written_through");
    place.write("small.toml", SMALL);
    place.write("target.csv", "old");
    std::os::unix::fs::symlink("target.csv", place.0.join("link.csv")).unwrap();
    place.run(&["run", "small.toml", "--csv", "link.csv", "--pcap", "/dev/null"]).ok();
    assert!(place.read("target.csv").starts_with(b"time_s,"));
    assert!(fs::symlink_metadata(place.0.join("link.csv")).unwrap().is_symlink());
}

/// A shell's `> out.txt`: both what is written to /dev/stdout and what is printed must be there.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_may_be_named() {
    let place = Place::new("standard_output_may_be_named");
    place.write("small.toml", SMALL);
    let table = place.run(&["run", "small.toml"]).ok();
    let json = place.run(&["run", "small.toml", "--json"]).ok();
    place.run(&["run", "small.toml", "--csv", "rows.csv"]).ok();
    let rows = String::from_utf8(place.read("rows.csv")).unwrap();
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "out.txt"] {
        for (more, printed) in [(&[][..], &table), (&["--json"], &json)] {
            let arguments = [&["run", "small.toml", "--csv", name], more].concat();
            let out = fs::File::create(place.0.join("out.txt")).unwrap();
            let status = place.command(&arguments).stdout(out).status().unwrap();
            assert_eq!(status.code(), Some(0), "{name}");
            let found = String::from_utf8(place.read("out.txt")).unwrap();
            assert!(found == rows.clone() + printed, "{name} {more:?}");
            // Through a pipe as well.
            if name != "out.txt" {
                assert!(place.run(&arguments).ok() == found, "{name} {more:?}");
            }
        }
    }
    assert_eq!(place.files(), ["out.txt", "rows.csv", "small.toml"]);
    let both = ["run", "small.toml", "--csv", "/dev/stdout", "--svg", "/dev/fd/1"];
    assert!(place.run(&both).refused().contains("--csv and --svg both write /dev/fd/1"));
    // What stood in a file that is appended to stays.
    place.write("log.txt", "before\n");
    let log = fs::OpenOptions::new().append(true).open(place.0.join("log.txt")).unwrap();
    let svg = ["run", "small.toml", "--svg", "/dev/stdout"];
    place.command(&svg).stdout(log).status().unwrap();
    let log = String::from_utf8(place.read("log.txt")).unwrap();
    assert!(log.starts_with("before\n<svg ") && log.ends_with(&table), "{log}");
}

/// /dev/full has no room: each output says so, and nothing is left under its name.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let place = Place::new("a_full_disk_is_an_error");
    place.write("small.toml", SMALL);
    let outputs = ["--csv", "--pcap", "--svg", "--report", "--bblog", "--siftr", "--qlog"];
    let more = [
        cfg!(feature = "png").then_some("--png"),
        cfg!(feature = "parquet").then_some("--parquet"),
    ];
    for option in outputs.into_iter().chain(more.into_iter().flatten()) {
        let answer = place.run(&["run", "small.toml", option, "/dev/full"]);
        assert_eq!(answer.code, 2, "{option}");
        let (what, why) = ("error: cannot write /dev/full: ", "No space left on device");
        assert!(answer.err.starts_with(what), "{option}: {}", answer.err);
        assert!(answer.err.contains(why), "{option}: {}", answer.err);
    }
    let columns = ["run", "small.toml", "--columns", "cwnd", "--jsonl", "/dev/full"];
    assert!(place.run(&columns).err.contains("No space left on device"));
    // So is what is printed.
    for arguments in
        [&["run", "small.toml"][..], &["run", "small.toml", "--json"], &["scenario", "keys"]]
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.command(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            told.starts_with("error: cannot write to standard output: No space left"),
            "{told}"
        );
    }
    assert_eq!(place.files(), ["small.toml"]);
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let place = Place::new("a_reader_who_leaves_is_no_error");
    place.write("big.toml", SMALL.replace("100kB", "10MB"));
    let mut command = place.command(&["run", "big.toml", "--tcpdump"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_of_rows_who_leaves_is_no_error_either() {
    let place = Place::new("a_reader_of_rows_who_leaves_is_no_error_either");
    place.write("big.toml", SMALL.replace("100kB", "10MB"));
    let mut command = place.command(&["run", "big.toml", "--csv", "/dev/stdout"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 8];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn check_says_what_a_scenario_holds() {
    let place = Place::new("check_says_what_a_scenario_holds");
    place.write("small.toml", SMALL);
    let out = place.run(&["scenario", "check", "small.toml"]).ok();
    assert!(out.starts_with("small.toml: ok, 2 hosts, 1 path, 1 flow, 0 taps, sha256 "), "{out}");
    let json = place.run(&["scenario", "check", "small.toml", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["errors"], serde_json::json!([]));
    assert!(out.trim_end().ends_with(json["scenario_sha256"].as_str().unwrap()));
}

#[test]
fn every_help_has_examples() {
    let place = Place::new("every_help_has_examples");
    for command in [
        &[][..],
        &["run"],
        &["scenario"],
        &["scenario", "check"],
        &["scenario", "show"],
        &["scenario", "keys"],
        &["scenario", "schema"],
        &["reproduce"],
        &["read"],
        &["wire"],
        &["wire", "send"],
        &["wire", "receive"],
        &["wire", "link"],
        &["wire", "compare"],
    ] {
        let out = place.run(&[command, &["--help"]].concat()).ok();
        assert!(out.contains("Examples:\n  ackclock"), "{command:?}");
    }
}

#[test]
fn the_sample_scenarios_run() {
    let place = Place::new("the_sample_scenarios_run");
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut count = 0;
    let presets = fs::read_dir(format!("{directory}/presets")).unwrap();
    for entry in fs::read_dir(directory).unwrap().chain(presets) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        place.run(&["run", path.to_str().unwrap(), "--set", "duration=12s"]).ok();
        count += 1;
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn columns_over_time_keep_every_peak() {
    let place = Place::new("columns_over_time_keep_every_peak");
    place.write("small.toml", SMALL);
    let run = |more: &[&str]| place.run(&[&["run", "small.toml"][..], more].concat());
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
    let read = |name: &str| String::from_utf8(place.read(name)).unwrap();
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
    assert!(
        err.contains("--columns: there is no column \"cwmd\"") && err.contains("\"cwnd\""),
        "{err}"
    );
    let err = run(&["--csv", "x", "--every", "10ms"]).refused();
    assert!(err.contains("--every needs --columns"), "{err}");
    let err = run(&["--columns", "cwnd"]).refused();
    assert!(err.contains("--columns needs --csv"), "{err}");
    let err = run(&["--csv", "x", "--columns", "cwnd", "--every", "10"]).refused();
    assert!(err.contains("has no unit"), "{err}");
}

#[test]
fn a_page_is_one_file_and_the_same_each_time() {
    let place = Place::new("a_page_is_one_file_and_the_same_each_time");
    place.write("small.toml", SMALL);
    for name in ["a.html", "b.html"] {
        place.run(&["run", "small.toml", "--report", name]).ok();
    }
    assert!(place.read("a.html") == place.read("b.html"));
    assert!(place.read("a.html").starts_with(b"<!doctype html>"));
    assert_eq!(place.files(), ["a.html", "b.html", "small.toml"]);
    let err = place.run(&["run", "small.toml", "--report", "none/a.html"]).refused();
    assert!(err.contains("none/a.html"), "{err}");
}

#[cfg(feature = "png")]
#[test]
fn a_chart_as_png_is_the_same_each_time() {
    let place = Place::new("a_chart_as_png_is_the_same_each_time");
    place.write("small.toml", SMALL);
    for name in ["a.png", "b.png"] {
        place.run(&["run", "small.toml", "--png", name]).ok();
    }
    assert!(place.read("a.png") == place.read("b.png"));
    assert_eq!(&place.read("a.png")[..8], b"\x89PNG\r\n\x1a\n");
    // Twice the width of the SVG.
    let width = u32::from_be_bytes(place.read("a.png")[16..20].try_into().unwrap());
    assert_eq!(width, 1_760);
}
