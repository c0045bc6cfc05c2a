//! Limits of memory and time: a command ends with a message, and nothing is half-written.

use crate::test_directory::{SMALL, TestDirectory};

/// [`SMALL`] that needs a packet slot for each of a million datagrams in flight.
fn many() -> String {
    let datagrams = "udp = { size = \"100B\", rate = \"100Gbit/s\" }";
    let many = SMALL.replace("rate = \"10Mbit/s\"", "rate = \"100Gbit/s\"");
    many.lines()
        .map(|line| if line.starts_with("bulk") { datagrams } else { line })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_ends_at_its_limit_of_memory() {
    let dir = TestDirectory::new("a_command_ends_at_its_limit_of_memory");
    dir.write("many.toml", many());
    dir.write("old.csv", "old");
    let run = ["run", "many.toml", "--set", "path.0.forward.1.delay=10s", "--csv", "old.csv"];
    let answer = dir.run(&[&run[..], &["--memory-limit", "70MB"]].concat());
    assert_eq!(answer.code, 2, "{}", answer.err);
    let message = "bytes more exceed the limit of 70 MB (--memory-limit)";
    assert!(
        answer.err.starts_with("error: out of memory") && answer.err.contains(message),
        "{}",
        answer.err
    );
    assert_eq!(dir.files(), ["many.toml", "old.csv"]);
    assert_eq!(dir.read("old.csv"), b"old");
    // Without the limit another one is reached.
    assert!(dir.run(&run).err.contains("packets are in flight"));
    let least = dir.run(&["run", "many.toml", "--memory-limit", "1kB"]).refused();
    assert!(least.contains("the least is 64 MB"), "{least}");
}

#[test]
fn a_command_ends_at_its_limit_of_time() {
    let dir = TestDirectory::new("a_command_ends_at_its_limit_of_time");
    dir.write("long.toml", SMALL.replace("100kB", "100GB").replace("\"10s\"", "\"100000s\""));
    dir.write("old.csv", "old");
    let run = ["run", "long.toml", "--time-limit", "300ms", "--csv", "old.csv", "--svg", "new.svg"];
    let answer = dir.run(&run);
    assert_eq!(answer.code, 2, "{}", answer.err);
    assert!(answer.err.contains("error: stopped after 300ms (--time-limit)"), "{}", answer.err);
    assert_eq!(dir.files(), ["long.toml", "old.csv"]);
    assert_eq!(dir.read("old.csv"), b"old");
    assert_eq!(dir.run(&["demo", "--time-limit", "1h"]).code, 0);
}

/// A packed line of 64 MB is not unpacked as a whole.
#[test]
fn a_line_without_end_is_left_out() {
    let dir = TestDirectory::new("a_line_without_end_is_left_out");
    let line = "12:00:00.000000 IP a.1 > b.80: Flags [S], seq 1, win 65535, length 0\n";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, line.as_bytes()).unwrap();
    for _ in 0..64 {
        std::io::Write::write_all(&mut packed, &[b'a'; 1_000_000]).unwrap();
    }
    dir.write("long.txt.gz", packed.finish().unwrap());
    let arguments = ["diagnose", "long.txt.gz", "--no-cures", "--memory-limit", "64MB"];
    let answer = dir.run(&arguments);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let byte = line.len();
    let problem =
        format!("byte {byte}: a line of more than 1 MiB; the rest of the file is ignored");
    assert!(answer.out.contains(&problem), "{}", answer.out);
    assert!(answer.out.contains("1 packet"), "{}", answer.out);
}
