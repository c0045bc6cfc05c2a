//! Sweeps: their files, resuming after any interruption, and rejected arguments.

use std::process::Stdio;
use std::time::Duration;

use crate::test_directory::{SMALL, TestDirectory};

const AXES: [&str; 5] =
    ["sweep", "small.toml", "-m", "path.forward.delay=1ms,5ms,10ms", "--repeat=40"];

/// The files of a finished sweep.
const FILES: [&str; 5] = ["runs.csv", "runs.jsonl", "runs.sums", "scenario.toml", "sweep.json"];

fn work(test: &str) -> TestDirectory {
    let work = TestDirectory::new(test);
    let lossy = SMALL.replace(
        "{ delay = \"10ms\" }]\nreturn",
        "{ loss = \"2%\" }, { delay = \"10ms\" }]\nreturn",
    );
    assert_ne!(lossy, SMALL);
    work.write("small.toml", lossy);
    work
}

fn sweep(work: &TestDirectory, more: &[&str]) -> crate::test_directory::CommandOutput {
    work.run(&[&AXES[..], more].concat())
}

#[test]
fn a_single_run_gives_the_same_result_as_in_the_sweep() {
    let work = work("a_run_alone_gives_what_it_gave_in_the_sweep");
    let printed = sweep(&work, &[]).ok();
    assert!(printed.starts_with("120 runs in small.sweep\n"), "{printed}");
    let rows = String::from_utf8(work.read("small.sweep/runs.jsonl")).unwrap();
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 120);
    for run in [0, 57, 119] {
        assert_eq!(rows[run]["run"], run);
        let text = sweep(&work, &["--show", &run.to_string()]).ok();
        work.write("one.toml", text);
        let one = work.run(&["run", "one.toml", "--json"]).ok();
        let mut one: serde_json::Value = serde_json::from_str(&one).unwrap();
        // One-way delays are measured in single runs only.
        for flow in one["flows"].as_array_mut().unwrap() {
            flow.as_object_mut().unwrap().remove("one_way").unwrap();
        }
        assert_eq!(one["flows"], rows[run]["flows"], "{run}");
        assert_eq!(one["seed"], rows[run]["seed"]);
    }
    let csv = String::from_utf8(work.read("small.sweep/runs.csv")).unwrap();
    let head = csv.lines().next().unwrap();
    assert!(head.starts_with("run,seed,path.forward.delay,flow,"), "{head}");
    assert_eq!(csv.lines().count(), 121);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let work = work("any_number_of_threads_gives_the_same_bytes");
    for jobs in ["1", "2", "7"] {
        sweep(&work, &["--jobs", jobs, "--out", jobs]).ok();
    }
    for file in FILES {
        let one = work.read(&format!("1/{file}"));
        assert!(one == work.read(&format!("2/{file}")), "{file}");
        assert!(one == work.read(&format!("7/{file}")), "{file}");
    }
}

/// Every file below a directory, hidden ones as well, with its bytes.
fn all_files(dir: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_files(&path));
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
fn a_killed_sweep_can_be_resumed() {
    let work = work("a_sweep_that_is_killed_goes_on");
    let many = [&AXES[..4], &["--repeat=400"]].concat();
    let kept = [&AXES[..4], &["--repeat=60", "--series", "cwnd,flight"]].concat();
    let mut cut_off = 0;
    for (name, sweep) in [("plain", &many), ("kept", &kept)] {
        let whole = format!("{name}-whole");
        work.run(&[&sweep[..], &["--out", &whole]].concat()).ok();
        let whole = all_files(&work.0.join(whole));
        for round in 0..10_u64 {
            let dir = format!("{name}-{round}");
            let resume = [&sweep[..], &["--out", &dir, "--resume"]].concat();
            for kill in 0..4 {
                let mut child = work.command(&resume).stdout(Stdio::null()).spawn().unwrap();
                // Varying delays, not tied to a specific point of the sweep.
                std::thread::sleep(Duration::from_millis(1 + (round * 37 + kill * 53) % 120));
                child.kill().unwrap();
                cut_off += u32::from(!child.wait().unwrap().success());
            }
            work.run(&resume).ok();
            // All files are identical, and none is left over.
            let repeated = all_files(&work.0.join(&dir));
            assert!(whole == repeated, "{dir}");
        }
    }
    assert!(cut_off > 0, "no sweep was ever cut off");
}

/// One run cannot write its series, since the pipe of that name has no reader. All others are
/// written nonetheless, so that killing the program loses only the run in progress.
#[cfg(unix)]
#[test]
#[expect(clippy::disallowed_methods, reason = "a crash comes at a moment of wall-clock time")]
fn a_crash_loses_only_the_runs_in_progress() {
    let work = work("a_crash_costs_the_runs_in_progress_alone");
    let sweep = [&AXES[..], &["--series", "cwnd", "--jobs", "2", "--out", "cut"]].concat();
    work.run(&sweep).ok();
    let whole = all_files(&work.0.join("cut"));
    let resume = [&sweep[..], &["--resume"]].concat();
    for file in ["runs.jsonl", "runs.csv", "series/7.csv"] {
        std::fs::remove_file(work.0.join("cut").join(file)).unwrap();
    }
    let pipe = work.0.join("cut/series/7.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = work.command(&resume).stdout(Stdio::null()).spawn().unwrap();
    let journal = work.0.join("cut/runs.part.jsonl");
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
    work.run(&resume).ok();
    assert!(all_files(&work.0.join("cut")) == whole);
}

#[test]
fn a_sweep_killed_before_its_description_was_written_can_be_resumed() {
    let work = work("a_sweep_killed_before_it_said_what_it_is_goes_on");
    std::fs::create_dir(work.0.join("cut")).unwrap();
    work.write("cut/scenario.toml", "");
    work.write("cut/.sweep.json.77.part", "{");
    sweep(&work, &["--out", "cut", "--resume", "--series", "cwnd"]).ok();
    // Partial files are removed, also those of series; files that are not a sweep's stay.
    work.write("cut/.runs.csv.4711.part", "");
    work.write("cut/.mine.4711.part", "");
    work.write("cut/series/.7.csv.4711.part", "");
    let rows = work.read("cut/runs.jsonl");
    std::fs::remove_file(work.0.join("cut/runs.jsonl")).unwrap();
    work.write("cut/runs.part.jsonl", rows);
    sweep(&work, &["--out", "cut", "--resume", "--series", "cwnd"]).ok();
    let names: Vec<String> =
        all_files(&work.0.join("cut")).into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().filter(|name| name.starts_with('.')).eq([".mine.4711.part"]), "{names:?}");
    std::fs::remove_file(work.0.join("cut/.mine.4711.part")).unwrap();
    work.write("cut/mine.txt", "");
    std::fs::remove_file(work.0.join("cut/sweep.json")).unwrap();
    let refused = sweep(&work, &["--out", "cut", "--resume"]);
    assert!(refused.err.contains("is not empty and holds no sweep"), "{}", refused.err);
}

#[test]
fn a_damaged_journal_loses_only_its_damaged_rows() {
    let work = work("a_damaged_journal_costs_its_rows_only");
    sweep(&work, &["--out", "whole"]).ok();
    sweep(&work, &["--out", "torn"]).ok();
    let rows = String::from_utf8(work.read("torn/runs.jsonl")).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    // Two complete rows in another order, garbage, a duplicate row, and a truncated one.
    let journal = [lines[5], lines[2], "rubbish", lines[5], &lines[7][..40]].join("\n");
    std::fs::remove_file(work.0.join("torn/runs.jsonl")).unwrap();
    work.write("torn/runs.part.jsonl", journal);
    let part = work.run(&["table", "torn"]);
    assert!(part.err.starts_with("3 of 120 runs are done"), "{}", part.err);
    sweep(&work, &["--out", "torn", "--resume"]).ok();
    for file in FILES {
        assert!(
            work.read(&format!("whole/{file}")) == work.read(&format!("torn/{file}")),
            "{file}"
        );
    }
}

/// A finished sweep is unchanged, or its damage is reported with its position.
#[test]
fn damaged_rows_are_detected_and_repeated() {
    let work = work("damaged_rows_are_found_and_done_again");
    sweep(&work, &["--out", "whole"]).ok();
    let resume = |work: &TestDirectory| sweep(work, &["--out", "whole", "--resume"]);
    let rows = String::from_utf8(work.read("whole/runs.jsonl")).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    let at: usize = lines[..57].iter().map(|line| line.len() + 1).sum();
    // Every figure of a row, one digit changed at a time.
    let digits = lines[57].bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit());
    let mut changed: Vec<String> = digits
        .map(|(work, byte)| {
            let mut line = lines[57].as_bytes().to_vec();
            line[work] = if byte == b'9' { b'1' } else { byte + 1 };
            let mut all: Vec<&str> = lines.clone();
            let line = String::from_utf8(line).unwrap();
            all[57] = &line;
            all.join("\n") + "\n"
        })
        .collect();
    assert!(changed.len() > 38, "{}", changed.len());
    changed.truncate(60);
    for text in &changed {
        work.write("whole/runs.jsonl", text);
        let error = resume(&work).refused();
        let place_of = "whole/runs.jsonl:58: ";
        assert!(error.contains(place_of) && error.contains(&format!("at byte {at} ")), "{error}");
        assert!(work.run(&["table", "whole"]).refused().contains(place_of));
    }
    let cut = |bytes: usize| {
        work.write("whole/runs.jsonl", &rows[..bytes]);
        resume(&work).refused()
    };
    assert!(cut(0).contains("whole/runs.jsonl:1: ends after 0 of 120 rows, at byte 0 "));
    assert!(cut(at).contains("whole/runs.jsonl:58: ends after 57 of 120 rows"));
    assert!(cut(at + 9).contains("whole/runs.jsonl:58: is not the row of run 57"));
    work.write("whole/runs.jsonl", rows.clone() + lines[0] + "\n");
    assert!(resume(&work).refused().contains("whole/runs.jsonl:121: continues after its 120 rows"));
    // Two rows swapped, and one duplicated.
    let mut all = lines.clone();
    all.swap(3, 4);
    work.write("whole/runs.jsonl", all.join("\n") + "\n");
    assert!(resume(&work).refused().contains("whole/runs.jsonl:4: is not the row of run 3"));
    // Following the hint.
    work.write("whole/runs.jsonl", &changed[0]);
    let (old, new) = (work.0.join("whole/runs.jsonl"), work.0.join("whole/runs.part.jsonl"));
    std::fs::rename(old, new).unwrap();
    assert!(work.run(&["table", "whole"]).err.starts_with("119 of 120 runs are done"));
    resume(&work).ok();
    assert!(work.read("whole/runs.jsonl") == rows.as_bytes());
}

/// A directory without checksums, as earlier versions left it.
#[test]
fn a_sweep_without_checksums_is_read_and_can_be_resumed() {
    let work = work("a_sweep_without_checksums_is_read_and_goes_on");
    sweep(&work, &["--out", "old"]).ok();
    let (rows, sums) = (work.read("old/runs.jsonl"), work.read("old/runs.sums"));
    std::fs::remove_file(work.0.join("old/runs.sums")).unwrap();
    let answer = sweep(&work, &["--out", "old", "--resume"]);
    assert_eq!(answer.code, 0);
    assert!(
        answer
            .err
            .starts_with("old has no runs.sums: its rows are complete but cannot be verified"),
        "{}",
        answer.err
    );
    work.write("old/runs.jsonl", &rows[..rows.len() / 2]);
    let cut = sweep(&work, &["--out", "old", "--resume"]).refused();
    assert!(cut.contains("is not the row of run") || cut.contains("ends after"), "{cut}");
    // An interrupted sweep.
    std::fs::remove_file(work.0.join("old/runs.jsonl")).unwrap();
    work.write("old/runs.part.jsonl", &rows[..rows.len() / 2]);
    sweep(&work, &["--out", "old", "--resume"]).ok();
    assert!(work.read("old/runs.jsonl") == rows && work.read("old/runs.sums") == sums);
}

#[test]
fn another_sweep_is_not_mixed_in() {
    let work = work("another_sweep_is_not_mixed_in");
    sweep(&work, &[]).ok();
    let before = work.read("small.sweep/runs.jsonl");
    let error = sweep(&work, &[]).refused();
    assert!(error.contains("small.sweep holds this sweep already"), "{error}");
    assert!(error.contains("--resume"), "{error}");
    let error = sweep(&work, &["--seed=9", "--resume"]).refused();
    assert!(
        error.contains("holds another sweep") && error.contains("differs in: scenario"),
        "{error}"
    );
    let error = sweep(&work, &["-m", "bulk.bulk=1kB", "--resume"]).refused();
    assert!(error.contains("differs in: axes"), "{error}");
    let error = sweep(&work, &["--out", "."]).refused();
    assert!(error.contains("is not empty and holds no sweep"), "{error}");
    // The rows of another model, which may have the same version.
    let about = work.read("small.sweep/sweep.json");
    let mut other: serde_json::Value = serde_json::from_slice(&about).unwrap();
    assert_eq!(other["model"].as_str().unwrap().len(), 16);
    other["model"] = "0123456789abcdef".into();
    work.write("small.sweep/sweep.json", other.to_string());
    let error = sweep(&work, &["--resume"]).refused();
    assert!(error.contains("was started with model 0123456789abcdef, this is model "), "{error}");
    other.as_object_mut().unwrap().remove("model");
    work.write("small.sweep/sweep.json", other.to_string());
    let error = sweep(&work, &["--resume"]).refused();
    assert!(error.contains("was started with an unknown model"), "{error}");
    work.write("small.sweep/sweep.json", about);
    assert!(work.read("small.sweep/runs.jsonl") == before);
    // All runs are complete: nothing is left to do.
    assert!(sweep(&work, &["--resume"]).ok().starts_with("120 runs"));
}

#[test]
fn invalid_sweeps_are_refused() {
    let work = work("what_cannot_be_a_sweep_is_refused");
    let error = work.run(&["sweep", "small.toml", "-m", "path.dealy=1ms,2ms"]).refused();
    assert!(error.contains("-m:1:6"), "{error}");
    let error = work.run(&["sweep", "small.toml", "-m", "sender.c=newreno"]).refused();
    assert!(error.contains("a host has no key `c`"), "{error}");
    let error = work
        .run(&["sweep", "small.toml", "-m", "duration=1s..2s step 1us", "--repeat", "9"])
        .refused();
    assert!(error.contains("a range has at most 1000000 values"), "{error}");
    let many = ["sweep", "small.toml", "-m", "duration=1s..2s step 1ms", "--repeat", "1000"];
    let error = work.run(&many).refused();
    assert!(error.contains("this sweep has 1001000 runs") && error.contains("--yes"), "{error}");
    let error = work.run(&["sweep", "small.toml", "--only", "x > 1"]).refused();
    assert!(error.contains("is an axis"), "{error}");
    let error = sweep(&work, &["--show", "120"]).refused();
    assert!(error.contains("there is no run 120: the last is 119"), "{error}");
    assert_eq!(work.files(), ["small.toml"]);
}

/// A file system of 64 kB, if the user of the tests may mount one.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_does_no_harm() {
    let work = work("a_full_disk_is_reported_and_does_no_harm");
    let disk = work.0.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=64k", "none"];
    let mounted = std::process::Command::new("mount").args(mount).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return; // Only root can, and not everywhere.
    }
    let answer = work.run(&[&AXES[..4], &["--repeat=400", "--out", "disk/s"]].concat());
    let journal = std::fs::metadata(disk.join("s/runs.part.jsonl")).map(|about| about.len());
    let finished = disk.join("s/runs.jsonl").exists();
    std::process::Command::new("umount").arg(&disk).status().unwrap();
    assert!(answer.refused().contains("No space left on device"));
    assert!(journal.unwrap() > 0 && !finished);
}

#[test]
fn a_table_has_the_requested_axes_and_figures() {
    let work = work("a_table_answers_what_is_asked");
    sweep(&work, &["-m", "bulk.bulk=50kB,100kB"]).ok();
    let table = |more: &[&str]| work.run(&[&["table", "small.sweep"], more].concat());
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
    assert!(work.run(&["table", "nowhere"]).refused().contains("holds no sweep"));
}

#[test]
fn series_of_each_run_are_kept_and_resumed() {
    let work = work("series_of_each_run_are_kept_and_resumed");
    let few = [&AXES[..4], &["--repeat=2", "--series", "cwnd,flight", "--every", "5ms"]].concat();
    let sweep = |more: &[&str]| work.run(&[&few[..], more].concat());
    sweep(&["--jobs", "1", "--out", "one"]).ok();
    sweep(&["--jobs", "4", "--out", "four"]).ok();
    for run in 0..6 {
        let name = |dir: &str| format!("{dir}/series/{run}.csv");
        let one = work.read(&name("one"));
        assert!(one.starts_with(b"time_s,flow,cwnd_bytes,flight_bytes\n"));
        assert!(one == work.read(&name("four")), "{run}");
    }
    // The series of a run whose row was lost in a crash is rewritten.
    let (first, last) = ("one/series/0.csv", "one/series/5.csv");
    let whole = [work.read(first), work.read(last)];
    std::fs::rename(work.0.join("one/runs.jsonl"), work.0.join("rows")).unwrap();
    std::fs::remove_file(work.0.join(last)).unwrap();
    let rows = String::from_utf8(work.read("rows")).unwrap();
    let kept: Vec<&str> = rows.lines().take(5).collect();
    work.write("one/runs.part.jsonl", kept.join("\n") + "\n");
    sweep(&["--out", "one", "--resume"]).ok();
    assert!([work.read(first), work.read(last)] == whole);
    assert!(work.read("one/runs.jsonl") == rows.as_bytes());
    let others =
        [&AXES[..4], &["--repeat=2", "--out", "one", "--resume", "--series", "cwnd"]].concat();
    let err = work.run(&others).refused();
    assert!(err.contains("holds this sweep with other series"), "{err}");
}

/// What a sweep writes beside its rows is verified as they are.
#[test]
fn changed_files_beside_the_rows_are_detected() {
    let work = work("changed_files_beside_the_rows_are_detected");
    let sweep = [&AXES[..4], &["--repeat=2", "--series", "cwnd", "--out", "of"]].concat();
    let resume = || work.run(&[&sweep[..], &["--resume"]].concat());
    work.run(&sweep).ok();
    let changed = |file: &str, at: usize| {
        let whole = work.read(file);
        let mut text = whole.clone();
        text[at] = if text[at] == b'1' { b'2' } else { b'1' };
        work.write(file, text);
        (whole, resume().refused())
    };
    let (table, error) = changed("of/runs.csv", work.read("of/runs.csv").len() - 3);
    assert!(error.contains("of/runs.csv:7: is not what runs.jsonl has"), "{error}");
    work.write("of/runs.csv", [&table[..], b"1,2\n"].concat());
    assert!(resume().refused().contains("of/runs.csv:8: is not what"));
    std::fs::remove_file(work.0.join("of/runs.csv")).unwrap();
    resume().ok();
    assert!(work.read("of/runs.csv") == table);
    let (scenario, error) = changed("of/scenario.toml", 3);
    assert!(error.contains("of/scenario.toml is not the scenario of this sweep"), "{error}");
    std::fs::remove_file(work.0.join("of/scenario.toml")).unwrap();
    resume().ok();
    assert!(work.read("of/scenario.toml") == scenario);
    let (series, error) = changed("of/series/3.csv", 40);
    assert!(error.contains("of/series/3.csv: the series of run 3 does not match"), "{error}");
    // Following the hint.
    let rows = work.read("of/runs.jsonl");
    std::fs::rename(work.0.join("of/runs.jsonl"), work.0.join("of/runs.part.jsonl")).unwrap();
    resume().ok();
    assert!(work.read("of/series/3.csv") == series && work.read("of/runs.jsonl") == rows);
}

#[test]
fn a_scenario_file_selects_the_series() {
    let work = work("a_file_says_which_series_are_kept");
    let small = String::from_utf8(work.read("small.toml")).unwrap();
    let table = "[sweep]\nrepeat = 2\nseries = { columns = [\"cwnd\", \"flight\"], every = \"5ms\" }\n\
                 [sweep.axes]\n\"path.forward.delay\" = [\"1ms\", \"5ms\"]\n";
    work.write("kept.toml", small + "\n" + table);
    work.run(&["sweep", "kept.toml", "--out", "file"]).ok();
    // The same by arguments, with a file that selects none.
    let arguments = ["--series", "cwnd,flight", "--every", "5ms"];
    let axis = ["-m", "path.forward.delay=1ms,5ms", "--repeat", "2"];
    let sweep = [&["sweep", "small.toml", "--out", "arguments"][..], &axis, &arguments].concat();
    work.run(&sweep).ok();
    for run in 0..4 {
        let name = |dir: &str| format!("{dir}/series/{run}.csv");
        assert!(work.read(&name("file")) == work.read(&name("arguments")), "{run}");
    }
    // Arguments take precedence: other columns, or the same ones with other thinning.
    work.run(&["sweep", "kept.toml", "--out", "other", "--series", "srtt"]).ok();
    assert!(work.read("other/series/0.csv").starts_with(b"time_s,flow,srtt_us\n"));
    work.run(&["sweep", "kept.toml", "--out", "finer", "--every", "1ms"]).ok();
    let (fine, coarse) = (work.read("finer/series/0.csv"), work.read("file/series/0.csv"));
    assert!(
        fine.len() > coarse.len() && fine.starts_with(b"time_s,flow,cwnd_bytes,flight_bytes\n")
    );
    let other = ["sweep", "kept.toml", "--out", "file", "--resume", "--every", "1ms"];
    assert!(work.run(&other).refused().contains("holds this sweep with other series"));
    // A single run ignores the table.
    work.run(&["run", "kept.toml"]).ok();
}

/// A grid without points, and one that is too large: the error has their number.
#[test]
fn empty_and_oversized_grids_are_refused() {
    let work = work("grids_of_nothing_and_of_too_much_are_refused");
    let small = String::from_utf8(work.read("small.toml")).unwrap();
    work.write("empty.toml", small + "\n[sweep.axes]\n\"path.forward.delay\" = []\n");
    let error = work.run(&["sweep", "empty.toml"]).refused();
    assert!(error.contains("this axis has no values") && error.contains("empty.toml:"), "{error}");
    let error = work.run(&["sweep", "small.toml", "-m", "path.forward.delay="]).refused();
    assert!(error.contains("-m:1:"), "{error}");
    let error = sweep(&work, &["--only", "path.forward.delay > 1s"]).refused();
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
    let error = work.run(&many).refused();
    assert!(error.contains("this sweep has 1000000000000 runs"), "{error}");
    assert!(error.contains("--yes"), "{error}");
    // A dry run shows its count, and its first runs, at once.
    let printed = work.run(&[&many[..], &["--dry-run"]].concat()).ok();
    assert!(
        printed.starts_with("1000000000000 runs: 1000000000 of 1000000000 points"),
        "{printed}"
    );
    assert_eq!(work.files(), ["empty.toml", "small.toml"]);
}

#[test]
fn a_table_is_drawn_as_a_heat_map() {
    let work = work("a_table_is_drawn_as_a_heat_map");
    work.run(&[&AXES[..4], &["--repeat=2"]].concat()).ok();
    work.run(&[
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
    let svg = String::from_utf8(work.read("a.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("mean of each cell"), "{svg}");
    // A cell has one run per seed, and so no interval.
    assert!(!svg.contains('±'), "{svg}");
}

#[test]
fn a_table_of_one_axis_is_drawn_as_a_line() {
    let work = work("a_table_of_one_axis_is_drawn_as_a_line");
    work.run(&[&AXES[..4], &["-m", "bulk.bulk=50kB,100kB", "--repeat=3"]].concat()).ok();
    let draw = |more: &[&str]| {
        work.run(&[&["table", "small.sweep", "--svg", "a.svg"], more].concat()).ok();
        String::from_utf8(work.read("a.svg")).unwrap()
    };
    let line = draw(&["--rows", "path.forward.delay"]);
    // Runs of two volumes differ in more than the seed.
    assert!(line.contains(">path.forward.delay (ms)<") && !line.contains("95 %"), "{line}");
    let two = ["--rows", "path.forward.delay", "--cols", "bulk.bulk"];
    assert!(draw(&two).contains("mean of each cell"));
    let lines = draw(&[&two[..], &["--lines"]].concat());
    assert!(lines.contains(">50kB<") && lines.contains(">100kB<"), "{lines}");
    assert!(lines.contains("95 % confidence interval"), "{lines}");
    assert_eq!(lines, draw(&[&two[..], &["--lines"]].concat()));
    let table = ["table", "small.sweep", "--lines"];
    assert!(work.run(&table).refused().contains("--lines needs a chart"));
    let both =
        ["table", "small.sweep", "--rows", "bulk.bulk,path.forward.delay", "--lines", "--svg", "x"];
    assert!(work.run(&both).refused().contains("row axis is not numeric"));
}
