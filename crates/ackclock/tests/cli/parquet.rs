//! Parquet tables, read by pyarrow where it is installed. (The crate `export` tests their contents
//! with the reader of the Arrow project.)

use std::process::Command;

use crate::test_directory::{SMALL, TestDirectory};

/// Prints rows, columns, the unit of a column and the sum of another.
const SCRIPT: &str = "
import sys, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
unit = table.schema.field(sys.argv[2]).metadata[b'unit'].decode()
total = sum(v for v in table[sys.argv[3]].to_pylist() if v is not None)
print(table.num_rows, unit, int(total))
";

/// Reads a table with pyarrow; `None` without pyarrow.
fn read(dir: &TestDirectory, file: &str, of: &str, sum: &str) -> Option<Vec<String>> {
    let has = Command::new("python3").args(["-c", "import pyarrow.parquet"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let path = dir.0.join(file);
    let read = Command::new("python3").args(["-c", SCRIPT]).arg(path).args([of, sum]).output();
    let read = read.unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let text = String::from_utf8(read.stdout).unwrap();
    Some(text.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn runs_and_sweeps_write_tables_that_pyarrow_reads() {
    let dir = TestDirectory::new("runs_and_sweeps_write_tables_that_others_read");
    dir.write("small.toml", SMALL);
    dir.run(&["run", "small.toml", "--parquet", "events.parquet"]).ok();
    let sweep = ["sweep", "small.toml", "-m", "path.forward.delay=1ms,5ms", "--repeat=3"];
    dir.run(&[&sweep[..], &["--parquet"]].concat()).ok();
    // No temporary file is left.
    assert_eq!(dir.files(), ["events.parquet", "small.sweep", "small.toml"]);
    assert_eq!(dir.read("events.parquet")[..4], *b"PAR1");
    assert_eq!(dir.read("small.sweep/runs.parquet")[..4], *b"PAR1");
    // The same bytes again, also for a sweep that was complete before.
    let first = dir.read("small.sweep/runs.parquet");
    dir.run(&[&sweep[..], &["--parquet", "--resume"]].concat()).ok();
    assert_eq!(dir.read("small.sweep/runs.parquet"), first);
    if let Some(found) = read(&dir, "events.parquet", "srtt_s", "read_bytes") {
        assert_eq!(found[1..], ["s", "100000"]);
    }
    if let Some(found) = read(&dir, "small.sweep/runs.parquet", "goodput_bps", "bytes") {
        assert_eq!(found, ["6", "bit/s", "600000"]);
    }
    // A finished sweep, and columns over time.
    dir.run(&["table", "small.sweep", "--parquet", "again.parquet"]).ok();
    assert_eq!(dir.read("again.parquet"), first);
    let thinned = ["--columns", "cwnd,srtt", "--every", "10ms"];
    dir.run(&[&["run", "small.toml", "--parquet", "cwnd.parquet"][..], &thinned].concat()).ok();
    if let Some(found) = read(&dir, "cwnd.parquet", "srtt_us", "cwnd_bytes") {
        assert_eq!(found[1], "us");
    }
    let wrong = dir.run(&["run", "small.toml", "--csv", "x", "--parquet", "x"]).refused();
    assert!(wrong.contains("--csv and --parquet both write x"), "{wrong}");
}
