//! Sweeps: what they leave behind, that nothing stops them for good, and what they refuse.

use std::process::Stdio;
use std::time::Duration;

use crate::place::{Place, SMALL};

const AXES: [&str; 5] =
    ["sweep", "small.toml", "-m", "path.forward.delay=1ms,5ms,10ms", "--repeat=40"];

/// The files of a finished sweep.
const FILES: [&str; 5] = ["runs.csv", "runs.jsonl", "runs.sums", "scenario.toml", "sweep.json"];

fn place(test: &str) -> Place {
    let place = Place::new(test);
    let lossy = SMALL.replace(
        "{ delay = \"10ms\" }]\nreturn",
        "{ loss = \"2%\" }, { delay = \"10ms\" }]\nreturn",
    );
    assert_ne!(lossy, SMALL);
    place.write("small.toml", lossy);
    place
}

fn sweep(place: &Place, more: &[&str]) -> crate::place::Answer {
    place.run(&[&AXES[..], more].concat())
}

#[test]
fn a_run_alone_gives_what_it_gave_in_the_sweep() {
    let place = place("a_run_alone_gives_what_it_gave_in_the_sweep");
    let told = sweep(&place, &[]).ok();
    assert!(told.starts_with("120 runs in small.sweep\n"), "{told}");
    let rows = String::from_utf8(place.read("small.sweep/runs.jsonl")).unwrap();
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 120);
    for run in [0, 57, 119] {
        assert_eq!(rows[run]["run"], run);
        let text = sweep(&place, &["--show", &run.to_string()]).ok();
        place.write("one.toml", text);
        let one = place.run(&["run", "one.toml", "--json"]).ok();
        let one: serde_json::Value = serde_json::from_str(&one).unwrap();
        assert_eq!(one["flows"], rows[run]["flows"], "{run}");
        assert_eq!(one["seed"], rows[run]["seed"]);
    }
    let csv = String::from_utf8(place.read("small.sweep/runs.csv")).unwrap();
    let head = csv.lines().next().unwrap();
    assert!(head.starts_with("run,seed,path.forward.delay,flow,"), "{head}");
    assert_eq!(csv.lines().count(), 121);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let place = place("any_number_of_threads_gives_the_same_bytes");
    for jobs in ["1", "2", "7"] {
        sweep(&place, &["--jobs", jobs, "--out", jobs]).ok();
    }
    for file in FILES {
        let one = place.read(&format!("1/{file}"));
        assert!(one == place.read(&format!("2/{file}")), "{file}");
        assert!(one == place.read(&format!("7/{file}")), "{file}");
    }
}

/// Every file below a directory, hidden ones as well, with its bytes.
fn everything(dir: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
        } else {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.push((name, std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a crash comes at a moment of wall-clock time")]
fn a_sweep_that_is_killed_goes_on() {
    let place = place("a_sweep_that_is_killed_goes_on");
    let many = [&AXES[..4], &["--repeat=400"]].concat();
    let kept = [&AXES[..4], &["--repeat=60", "--series", "cwnd,flight"]].concat();
    let mut cut_off = 0;
    for (name, sweep) in [("plain", &many), ("kept", &kept)] {
        let whole = format!("{name}-whole");
        place.run(&[&sweep[..], &["--out", &whole]].concat()).ok();
        let whole = everything(&place.0.join(whole));
        for round in 0..10_u64 {
            let dir = format!("{name}-{round}");
            let resume = [&sweep[..], &["--out", &dir, "--resume"]].concat();
            for kill in 0..4 {
                let mut child = place.command(&resume).stdout(Stdio::null()).spawn().unwrap();
                // Moments that differ, without a claim on where they fall.
                std::thread::sleep(Duration::from_millis(1 + (round * 37 + kill * 53) % 120));
                child.kill().unwrap();
                cut_off += u32::from(!child.wait().unwrap().success());
            }
            place.run(&resume).ok();
            // Nothing is different, and nothing is left over.
            let again = everything(&place.0.join(&dir));
            assert!(whole == again, "{dir}");
        }
    }
    assert!(cut_off > 0, "no sweep was ever cut off");
}

/// One run cannot write what is kept of it, since nobody reads the pipe of that name. All others
/// are written none the less, so that killing the program costs the run that was under way alone.
#[cfg(unix)]
#[test]
#[expect(clippy::disallowed_methods, reason = "a crash comes at a moment of wall-clock time")]
fn a_crash_costs_the_runs_under_way_alone() {
    let place = place("a_crash_costs_the_runs_under_way_alone");
    let sweep = [&AXES[..], &["--series", "cwnd", "--jobs", "2", "--out", "cut"]].concat();
    place.run(&sweep).ok();
    let whole = everything(&place.0.join("cut"));
    let resume = [&sweep[..], &["--resume"]].concat();
    for file in ["runs.jsonl", "runs.csv", "series/7.csv"] {
        std::fs::remove_file(place.0.join("cut").join(file)).unwrap();
    }
    let pipe = place.0.join("cut/series/7.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = place.command(&resume).stdout(Stdio::null()).spawn().unwrap();
    let journal = place.0.join("cut/runs.part.jsonl");
    let rows = || std::fs::read_to_string(&journal).unwrap_or_default().lines().count();
    for _ in 0..600 {
        std::thread::sleep(Duration::from_millis(50));
        if rows() == 119 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(rows(), 119);
    std::fs::remove_file(&pipe).unwrap();
    place.run(&resume).ok();
    assert!(everything(&place.0.join("cut")) == whole);
}

#[test]
fn a_sweep_killed_before_it_said_what_it_is_goes_on() {
    let place = place("a_sweep_killed_before_it_said_what_it_is_goes_on");
    std::fs::create_dir(place.0.join("cut")).unwrap();
    place.write("cut/scenario.toml", "");
    place.write("cut/.sweep.json.77.part", "{");
    sweep(&place, &["--out", "cut", "--resume", "--series", "cwnd"]).ok();
    // Pieces of files go, also those of series; what is not a sweep's stays.
    place.write("cut/.runs.csv.4711.part", "");
    place.write("cut/.mine.4711.part", "");
    place.write("cut/series/.7.csv.4711.part", "");
    let rows = place.read("cut/runs.jsonl");
    std::fs::remove_file(place.0.join("cut/runs.jsonl")).unwrap();
    place.write("cut/runs.part.jsonl", rows);
    sweep(&place, &["--out", "cut", "--resume", "--series", "cwnd"]).ok();
    let names: Vec<String> =
        everything(&place.0.join("cut")).into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().filter(|name| name.starts_with('.')).eq([".mine.4711.part"]), "{names:?}");
    std::fs::remove_file(place.0.join("cut/.mine.4711.part")).unwrap();
    place.write("cut/mine.txt", "");
    std::fs::remove_file(place.0.join("cut/sweep.json")).unwrap();
    let refused = sweep(&place, &["--out", "cut", "--resume"]);
    assert!(refused.err.contains("is not empty and holds no sweep"), "{}", refused.err);
}

#[test]
fn a_damaged_journal_costs_its_rows_only() {
    let place = place("a_damaged_journal_costs_its_rows_only");
    sweep(&place, &["--out", "whole"]).ok();
    sweep(&place, &["--out", "torn"]).ok();
    let rows = String::from_utf8(place.read("torn/runs.jsonl")).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    // Two whole rows in another order, rubbish, a row twice, and one that was cut off.
    let journal = [lines[5], lines[2], "rubbish", lines[5], &lines[7][..40]].join("\n");
    std::fs::remove_file(place.0.join("torn/runs.jsonl")).unwrap();
    place.write("torn/runs.part.jsonl", journal);
    let part = place.run(&["table", "torn"]);
    assert!(part.err.starts_with("3 of 120 runs are done"), "{}", part.err);
    sweep(&place, &["--out", "torn", "--resume"]).ok();
    for file in FILES {
        assert!(
            place.read(&format!("whole/{file}")) == place.read(&format!("torn/{file}")),
            "{file}"
        );
    }
}

/// A finished sweep is what was written, or its damage is reported with its place.
#[test]
fn damaged_rows_are_found_and_done_again() {
    let place = place("damaged_rows_are_found_and_done_again");
    sweep(&place, &["--out", "whole"]).ok();
    let resume = |place: &Place| sweep(place, &["--out", "whole", "--resume"]);
    let rows = String::from_utf8(place.read("whole/runs.jsonl")).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    let at: usize = lines[..57].iter().map(|line| line.len() + 1).sum();
    // Every figure of a row, one digit changed at a time.
    let digits = lines[57].bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit());
    let mut changed: Vec<String> = digits
        .map(|(place, byte)| {
            let mut line = lines[57].as_bytes().to_vec();
            line[place] = if byte == b'9' { b'1' } else { byte + 1 };
            let mut all: Vec<&str> = lines.clone();
            let line = String::from_utf8(line).unwrap();
            all[57] = &line;
            all.join("\n") + "\n"
        })
        .collect();
    assert!(changed.len() > 38, "{}", changed.len());
    changed.truncate(60);
    for text in &changed {
        place.write("whole/runs.jsonl", text);
        let error = resume(&place).refused();
        let place_of = "whole/runs.jsonl:58: ";
        assert!(error.contains(place_of) && error.contains(&format!("at byte {at} ")), "{error}");
        assert!(place.run(&["table", "whole"]).refused().contains(place_of));
    }
    let cut = |bytes: usize| {
        place.write("whole/runs.jsonl", &rows[..bytes]);
        resume(&place).refused()
    };
    assert!(cut(0).contains("whole/runs.jsonl:1: ends after 0 of 120 rows, at byte 0 "));
    assert!(cut(at).contains("whole/runs.jsonl:58: ends after 57 of 120 rows"));
    assert!(cut(at + 9).contains("whole/runs.jsonl:58: is not the row of run 57"));
    place.write("whole/runs.jsonl", rows.clone() + lines[0] + "\n");
    assert!(resume(&place).refused().contains("whole/runs.jsonl:121: goes on after its 120 rows"));
    // Two rows in each other's place, and one twice.
    let mut all = lines.clone();
    all.swap(3, 4);
    place.write("whole/runs.jsonl", all.join("\n") + "\n");
    assert!(resume(&place).refused().contains("whole/runs.jsonl:4: is not the row of run 3"));
    // What the hint says.
    place.write("whole/runs.jsonl", &changed[0]);
    let (old, new) = (place.0.join("whole/runs.jsonl"), place.0.join("whole/runs.part.jsonl"));
    std::fs::rename(old, new).unwrap();
    assert!(place.run(&["table", "whole"]).err.starts_with("119 of 120 runs are done"));
    resume(&place).ok();
    assert!(place.read("whole/runs.jsonl") == rows.as_bytes());
}

/// A directory without checksums, as versions before them left it.
#[test]
fn a_sweep_without_checksums_is_read_and_goes_on() {
    let place = place("a_sweep_without_checksums_is_read_and_goes_on");
    sweep(&place, &["--out", "old"]).ok();
    let (rows, sums) = (place.read("old/runs.jsonl"), place.read("old/runs.sums"));
    std::fs::remove_file(place.0.join("old/runs.sums")).unwrap();
    let answer = sweep(&place, &["--out", "old", "--resume"]);
    assert_eq!(answer.code, 0);
    assert!(
        answer.err.starts_with("old has no runs.sums: its rows are all there"),
        "{}",
        answer.err
    );
    place.write("old/runs.jsonl", &rows[..rows.len() / 2]);
    let cut = sweep(&place, &["--out", "old", "--resume"]).refused();
    assert!(cut.contains("is not the row of run") || cut.contains("ends after"), "{cut}");
    // One that was interrupted.
    std::fs::remove_file(place.0.join("old/runs.jsonl")).unwrap();
    place.write("old/runs.part.jsonl", &rows[..rows.len() / 2]);
    sweep(&place, &["--out", "old", "--resume"]).ok();
    assert!(place.read("old/runs.jsonl") == rows && place.read("old/runs.sums") == sums);
}

#[test]
fn another_sweep_is_not_mixed_in() {
    let place = place("another_sweep_is_not_mixed_in");
    sweep(&place, &[]).ok();
    let before = place.read("small.sweep/runs.jsonl");
    let error = sweep(&place, &[]).refused();
    assert!(error.contains("small.sweep holds this sweep already"), "{error}");
    assert!(error.contains("--resume"), "{error}");
    let error = sweep(&place, &["--seed=9", "--resume"]).refused();
    assert!(
        error.contains("holds another sweep") && error.contains("differs in: scenario"),
        "{error}"
    );
    let error = sweep(&place, &["-m", "bulk.bulk=1kB", "--resume"]).refused();
    assert!(error.contains("differs in: axes"), "{error}");
    let error = sweep(&place, &["--out", "."]).refused();
    assert!(error.contains("is not empty and holds no sweep"), "{error}");
    assert!(place.read("small.sweep/runs.jsonl") == before);
    // All is there: nothing is left to do.
    assert!(sweep(&place, &["--resume"]).ok().starts_with("120 runs"));
}

#[test]
fn what_cannot_be_a_sweep_is_refused() {
    let place = place("what_cannot_be_a_sweep_is_refused");
    let error = place.run(&["sweep", "small.toml", "-m", "path.dealy=1ms,2ms"]).refused();
    assert!(error.contains("-m:1:6"), "{error}");
    let error = place.run(&["sweep", "small.toml", "-m", "sender.c=newreno"]).refused();
    assert!(error.contains("a host has no key `c`"), "{error}");
    let error = place
        .run(&["sweep", "small.toml", "-m", "duration=1s..2s step 1us", "--repeat", "9"])
        .refused();
    assert!(error.contains("a range takes at most 1000000 values"), "{error}");
    let many = ["sweep", "small.toml", "-m", "duration=1s..2s step 1ms", "--repeat", "1000"];
    let error = place.run(&many).refused();
    assert!(error.contains("this sweep has 1001000 runs") && error.contains("--yes"), "{error}");
    let error = place.run(&["sweep", "small.toml", "--only", "x > 1"]).refused();
    assert!(error.contains("is an axis"), "{error}");
    let error = sweep(&place, &["--show", "120"]).refused();
    assert!(error.contains("there is no run 120: the last is 119"), "{error}");
    assert_eq!(place.files(), ["small.toml"]);
}

/// A file system of 64 kB, where the one who runs the tests may make one.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_does_no_harm() {
    let place = place("a_full_disk_is_told_and_does_no_harm");
    let disk = place.0.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=64k", "none"];
    let mounted = std::process::Command::new("mount").args(mount).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return; // Only root can, and not everywhere.
    }
    let answer = place.run(&[&AXES[..4], &["--repeat=400", "--out", "disk/s"]].concat());
    let journal = std::fs::metadata(disk.join("s/runs.part.jsonl")).map(|about| about.len());
    let finished = disk.join("s/runs.jsonl").exists();
    std::process::Command::new("umount").arg(&disk).status().unwrap();
    assert!(answer.refused().contains("No space left on device"));
    assert!(journal.unwrap() > 0 && !finished);
}

#[test]
fn a_table_answers_what_is_asked() {
    let place = place("a_table_answers_what_is_asked");
    sweep(&place, &["-m", "bulk.bulk=50kB,100kB"]).ok();
    let table = |more: &[&str]| place.run(&[&["table", "small.sweep"], more].concat());
    let all = table(&[]).ok();
    assert!(all.starts_with("path.forward.delay  bulk.bulk=50kB"), "{all}");
    assert_eq!(all.lines().count(), 4, "{all}");
    let by_seed = table(&["--rows", "seed", "--value", "rtos", "--flow", "bulk"]).ok();
    assert_eq!(by_seed.lines().count(), 41, "{by_seed}");
    let json = table(&["--rows", "bulk.bulk", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["count"], 120);
    assert_eq!(json[1]["row"][0], "100kB");
    let error = table(&["--value", "goodputt"]).refused();
    assert!(error.contains("did you mean"), "{error}");
    assert!(table(&["--rows", "dealy"]).refused().contains("axes are"));
    assert!(table(&["--flow", "x"]).refused().contains("no run has a flow"));
    assert!(place.run(&["table", "nowhere"]).refused().contains("holds no sweep"));
}

#[test]
fn series_of_each_run_are_kept_and_resumed() {
    let place = place("series_of_each_run_are_kept_and_resumed");
    let few = [&AXES[..4], &["--repeat=2", "--series", "cwnd,flight", "--every", "5ms"]].concat();
    let sweep = |more: &[&str]| place.run(&[&few[..], more].concat());
    sweep(&["--jobs", "1", "--out", "one"]).ok();
    sweep(&["--jobs", "4", "--out", "four"]).ok();
    for run in 0..6 {
        let name = |dir: &str| format!("{dir}/series/{run}.csv");
        let one = place.read(&name("one"));
        assert!(one.starts_with(b"time_s,flow,cwnd_bytes,flight_bytes\n"));
        assert!(one == place.read(&name("four")), "{run}");
    }
    // A run whose row was lost in a crash gets its series again.
    let (first, last) = ("one/series/0.csv", "one/series/5.csv");
    let whole = [place.read(first), place.read(last)];
    std::fs::rename(place.0.join("one/runs.jsonl"), place.0.join("rows")).unwrap();
    std::fs::remove_file(place.0.join(last)).unwrap();
    let rows = String::from_utf8(place.read("rows")).unwrap();
    let kept: Vec<&str> = rows.lines().take(5).collect();
    place.write("one/runs.part.jsonl", kept.join("\n") + "\n");
    sweep(&["--out", "one", "--resume"]).ok();
    assert!([place.read(first), place.read(last)] == whole);
    assert!(place.read("one/runs.jsonl") == rows.as_bytes());
    let others =
        [&AXES[..4], &["--repeat=2", "--out", "one", "--resume", "--series", "cwnd"]].concat();
    let err = place.run(&others).refused();
    assert!(err.contains("holds this sweep with other series"), "{err}");
}

#[test]
fn a_file_says_which_series_are_kept() {
    let place = place("a_file_says_which_series_are_kept");
    let small = String::from_utf8(place.read("small.toml")).unwrap();
    let table = "[sweep]\nrepeat = 2\nseries = { columns = [\"cwnd\", \"flight\"], every = \"5ms\" }\n\
                 [sweep.axes]\n\"path.forward.delay\" = [\"1ms\", \"5ms\"]\n";
    place.write("kept.toml", small + "\n" + table);
    place.run(&["sweep", "kept.toml", "--out", "file"]).ok();
    // The same as arguments, of a file that says nothing.
    let arguments = ["--series", "cwnd,flight", "--every", "5ms"];
    let axis = ["-m", "path.forward.delay=1ms,5ms", "--repeat", "2"];
    let sweep = [&["sweep", "small.toml", "--out", "arguments"][..], &axis, &arguments].concat();
    place.run(&sweep).ok();
    for run in 0..4 {
        let name = |dir: &str| format!("{dir}/series/{run}.csv");
        assert!(place.read(&name("file")) == place.read(&name("arguments")), "{run}");
    }
    // Arguments come first: other columns, or the same ones thinned otherwise.
    place.run(&["sweep", "kept.toml", "--out", "other", "--series", "srtt"]).ok();
    assert!(place.read("other/series/0.csv").starts_with(b"time_s,flow,srtt_us\n"));
    place.run(&["sweep", "kept.toml", "--out", "finer", "--every", "1ms"]).ok();
    let (fine, coarse) = (place.read("finer/series/0.csv"), place.read("file/series/0.csv"));
    assert!(
        fine.len() > coarse.len() && fine.starts_with(b"time_s,flow,cwnd_bytes,flight_bytes\n")
    );
    let other = ["sweep", "kept.toml", "--out", "file", "--resume", "--every", "1ms"];
    assert!(place.run(&other).refused().contains("holds this sweep with other series"));
    // A run by itself takes no notice.
    place.run(&["run", "kept.toml"]).ok();
}

/// A grid without points, and one that explodes: how many there are is said.
#[test]
fn grids_of_nothing_and_of_too_much_are_refused() {
    let place = place("grids_of_nothing_and_of_too_much_are_refused");
    let small = String::from_utf8(place.read("small.toml")).unwrap();
    place.write("empty.toml", small + "\n[sweep.axes]\n\"path.forward.delay\" = []\n");
    let error = place.run(&["sweep", "empty.toml"]).refused();
    assert!(error.contains("this axis has no values") && error.contains("empty.toml:"), "{error}");
    let error = place.run(&["sweep", "small.toml", "-m", "path.forward.delay="]).refused();
    assert!(error.contains("-m:1:"), "{error}");
    let error = sweep(&place, &["--only", "path.forward.delay > 1s"]).refused();
    assert!(error.contains("none of the 3 points meets the condition"), "{error}");
    // A thousand values on each of three axes, a thousand times.
    let axes = [
        "-m",
        "path.forward.delay=1ms..1s step 1ms",
        "-m",
        "path.return.delay=1ms..1s step 1ms",
        "-m",
        "bulk.bulk=1kB..1MB step 1kB",
        "--repeat",
        "1000",
    ];
    let many = [&["sweep", "small.toml"][..], &axes].concat();
    let error = place.run(&many).refused();
    assert!(error.contains("this sweep has 1000000000000 runs"), "{error}");
    assert!(error.contains("--yes"), "{error}");
    // A dry run shows its count, and its first runs, at once.
    let told = place.run(&[&many[..], &["--dry-run"]].concat()).ok();
    assert!(told.starts_with("1000000000000 runs: 1000000000 of 1000000000 points"), "{told}");
    assert_eq!(place.files(), ["empty.toml", "small.toml"]);
}

#[test]
fn a_table_is_drawn_as_a_heat_map() {
    let place = place("a_table_is_drawn_as_a_heat_map");
    place.run(&[&AXES[..4], &["--repeat=2"]].concat()).ok();
    place
        .run(&[
            "table",
            "small.sweep",
            "--rows",
            "path.forward.delay",
            "--cols",
            "seed",
            "--svg",
            "a.svg",
        ])
        .ok();
    let svg = String::from_utf8(place.read("a.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("mean of each cell"), "{svg}");
    // The last of a cell's halves stands alone: one run for each seed.
    assert!(!svg.contains('±'), "{svg}");
}

#[test]
fn a_table_of_one_axis_is_drawn_as_a_line() {
    let place = place("a_table_of_one_axis_is_drawn_as_a_line");
    place.run(&[&AXES[..4], &["-m", "bulk.bulk=50kB,100kB", "--repeat=3"]].concat()).ok();
    let draw = |more: &[&str]| {
        place.run(&[&["table", "small.sweep", "--svg", "a.svg"], more].concat()).ok();
        String::from_utf8(place.read("a.svg")).unwrap()
    };
    let line = draw(&["--rows", "path.forward.delay"]);
    // Runs of two volumes differ in more than their seeds.
    assert!(line.contains(">path.forward.delay (ms)<") && !line.contains("95 %"), "{line}");
    let two = ["--rows", "path.forward.delay", "--cols", "bulk.bulk"];
    assert!(draw(&two).contains("mean of each cell"));
    let lines = draw(&[&two[..], &["--lines"]].concat());
    assert!(lines.contains(">50kB<") && lines.contains(">100kB<"), "{lines}");
    assert!(lines.contains("95 % confidence interval"), "{lines}");
    assert_eq!(lines, draw(&[&two[..], &["--lines"]].concat()));
    let table = ["table", "small.sweep", "--lines"];
    assert!(place.run(&table).refused().contains("--lines needs a picture"));
    let both =
        ["table", "small.sweep", "--rows", "bulk.bulk,path.forward.delay", "--lines", "--svg", "x"];
    assert!(place.run(&both).refused().contains("no line through"));
}
