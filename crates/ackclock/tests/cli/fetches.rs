//! Videos and web pages from the command line, and the queues of a sweep.

use serde_json::Value;

use crate::test_directory::TestDirectory;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/");

#[test]
fn a_video_has_its_figures_in_every_form() {
    let dir = TestDirectory::new("a_video_has_its_figures");
    let file = format!("{ROOT}video.toml");
    let short = ["--set", "duration=20s"];
    let text = dir.run(&[&["run", &file][..], &short].concat()).ok();
    assert!(text.contains("flow  players  chunks  bit rate"), "{text}");
    let args = [&["run", &file, "--json", "--report", "run.html"][..], &short].concat();
    let json: Value = serde_json::from_str(&dir.run(&args).ok()).unwrap();
    let video = &json["flows"][0]["video"];
    assert_eq!(video["players"], 1, "{video}");
    assert!((0.0..1.0).contains(&video["startup_s"].as_f64().unwrap()), "{video}");
    assert!(video["bitrate_bps"].as_u64().unwrap() > 1_000_000, "{video}");
    assert!(String::from_utf8(dir.read("run.html")).unwrap().contains("Videos"));
    let axis = ["-m", "film.video.rule=throughput,buffer", "--repeat", "1"];
    dir.run(&[&["sweep", &file, "--out", "rules"][..], &axis, &short].concat()).ok();
    let table = dir.run(&["table", "rules", "--flow", "film", "--value", "video_bitrate"]).ok();
    assert!(table.contains("Mbit/s"), "{table}");
}

/// Six connections of two clients have one row, with the percentiles of both clients' pages.
#[test]
fn pages_have_common_percentiles() {
    let dir = TestDirectory::new("pages_have_common_percentiles");
    let file = format!("{ROOT}web.toml");
    let set = ["--set", "flow.page.count=3", "--set", "flow.count=2"];
    let json = dir.run(&[&["run", &file, "--json"][..], &set].concat()).ok();
    let json: Value = serde_json::from_str(&json).unwrap();
    let flow = &json["flows"][0];
    assert_eq!(
        (&flow["latency"]["of"], &flow["latency"]["requests"]),
        (&"pages".into(), &6.into())
    );
    assert_eq!((&flow["group"]["flows"], &flow["finished"]), (&12.into(), &true.into()));
    let text = dir.run(&[&["run", &file][..], &set].concat()).ok();
    assert!(text.contains("page load p50") && !text.contains("slowdown"), "{text}");
    let wrong = ["run", &file, "--set", "flow.page.connections=41"];
    let wrong = dir.run(&wrong).refused();
    assert!(wrong.contains("a page with 40 objects does not use these connections"), "{wrong}");
}

#[test]
fn a_sweep_keeps_the_queues_of_its_runs() {
    let dir = TestDirectory::new("a_sweep_keeps_queues");
    let file = format!("{ROOT}example.toml");
    let axis = ["-m", "path.forward.1.delay=10ms,20ms", "--repeat", "1"];
    let sweep = [&["sweep", &file, "--series", "cwnd", "--queues", "--out", "kept"][..], &axis];
    dir.run(&sweep.concat()).ok();
    let csv = String::from_utf8(dir.read("kept/series/1.queues.csv")).unwrap();
    assert!(csv.starts_with("time_s,link,delay_mean_s,delay_max_s,most_packets,"), "{csv}");
    // The same as of one run.
    let one = ["run", &file, "--set", "path.forward.1.delay=20ms", "--queues", "one.csv"];
    dir.run(&one).ok();
    assert_eq!(csv.as_bytes(), dir.read("one.csv"));
    dir.write("kept/series/.1.queues.csv.4711.part", "");
    dir.run(&[&sweep.concat()[..], &["--resume"]].concat()).ok();
    let other = ["sweep", &file, "--series", "cwnd", "--out", "kept", "--resume"];
    let other = dir.run(&[&other[..], &axis].concat()).refused();
    assert!(other.contains("holds this sweep with other series"), "{other}");
    let alone = dir.run(&["sweep", &file, "--queues", "--out", "other"]).refused();
    assert!(alone.contains("--queues needs --series"), "{alone}");
}
