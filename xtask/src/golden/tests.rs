//! The replay on the project's copy of the golden files, and on modified rows.

use std::fs::File;
use std::io::{Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::rows::{GoldenError, GoldenRows, GoldenTally};
use super::*;

/// Returns the text of a file of the project's copy.
fn text_of(kind: &str) -> String {
    let file = File::open(own_copy("freebsd").join(format!("{kind}{ENDING}"))).unwrap();
    let mut text = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

fn replay_text(kind: &str, text: impl Into<Vec<u8>>) -> Result<GoldenTally, GoldenError> {
    let mut rows = GoldenRows::read(Box::new(Cursor::new(text.into())))?;
    replay_rows(&mut rows, replay_of(kind).unwrap())
}

/// Returns the first lines of a file, with the field of `column` in the last one replaced.
fn spoiled(kind: &str, lines: usize, column: &str, field: &str) -> String {
    let text = text_of(kind);
    let mut lines: Vec<String> = text.lines().take(lines).map(str::to_owned).collect();
    let at = lines[0].split(',').position(|name| name == column).unwrap();
    let last = lines.last_mut().unwrap();
    let mut fields: Vec<&str> = last.split(',').collect();
    assert_ne!(fields[at], field);
    fields[at] = field;
    *last = fields.join(",");
    lines.join("\n")
}

/// Returns the message of the only mismatch.
fn only_mismatch(kind: &str, text: String) -> String {
    let tally = replay_text(kind, text).unwrap();
    assert_eq!(tally.mismatches(), 1);
    tally.first()[0].to_string()
}

fn complaint(kind: &str, text: impl Into<Vec<u8>>) -> String {
    replay_text(kind, text).unwrap_err().to_string()
}

#[test]
fn every_row_of_the_projects_copy_agrees() {
    // The numbers of rows are those of the files (`zcat | wc -l`, less the header).
    for (kind, rows) in [
        ("newreno", 15_323),
        ("cubic", 19_154),
        ("cubic_funcs", 3_450),
        ("srtt_rto", 2_160),
        ("lro", 960),
        ("recovery", 4_231),
    ] {
        let tally = replay_text(kind, text_of(kind)).unwrap();
        assert_eq!((tally.rows(), tally.mismatches()), (rows, 0), "{kind}: {:?}", tally.first());
    }
    assert_eq!(replay_all(&own_copy("freebsd")), 0);
}

#[test]
fn a_changed_state_is_detected() {
    // Line 2 of the kernel's rows: the window after INIT is 14480.
    assert_eq!(
        only_mismatch("newreno", spoiled("newreno", 3, "cwnd", "17377")),
        "3: cwnd: expected 17377, got 17376"
    );
    for column in ["snd_una", "snd_recover", "in_congrec", "t_bytes_acked", "rxtcur_ticks"] {
        only_mismatch("newreno", spoiled("newreno", 10, column, "7"));
    }
    for column in ["K_fp8", "W_max", "t_epoch", "cubic_flags", "mean_rtt", "sum_rtt", "cwnd"] {
        only_mismatch("cubic", spoiled("cubic", 10, column, "7"));
    }
    only_mismatch("cubic_funcs", spoiled("cubic_funcs", 2, "result", "99"));
    only_mismatch("srtt_rto", spoiled("srtt_rto", 10, "t_rttvar_fp", "7"));
    only_mismatch("lro", spoiled("lro", 4, "b", "4|3|2|1|5|0"));
    for column in ["r", "s"] {
        only_mismatch("recovery", spoiled("recovery", 2, column, "7"));
    }
}

#[test]
fn a_different_merge_is_detected_by_both_replays_of_lro() {
    let text = text_of("lro");
    let row = text.lines().find(|line| line.starts_with("condense")).unwrap();
    let header = text.lines().next().unwrap();
    let changed = row.replace("0:1:65160:1:45:1000", "0:1:63712:1:44:1000");
    assert_ne!(row, changed);
    let tally = replay_text("lro", format!("{header}\n{changed}")).unwrap();
    assert_eq!(tally.mismatches(), 2);
}

#[test]
fn malformed_rows_are_reported_by_line() {
    let spoil = |column, field| complaint("newreno", spoiled("newreno", 5, column, field));
    assert_eq!(spoil("event", "NAK"), "5: column event: \"NAK\" is not known");
    assert_eq!(spoil("acked_bytes", "many"), "5: column acked_bytes: \"many\" is no such number");
    assert_eq!(spoil("nsegs", "1,2"), "5: 36 fields instead of 35");
    let rows = text_of("newreno");
    let headless: Vec<_> = rows.lines().enumerate().filter(|(at, _)| *at != 1).collect();
    let headless = headless.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    assert_eq!(complaint("newreno", headless), "2: column event: a connection begins with INIT");
    assert_eq!(complaint("newreno", rows.replacen("cwnd", "window", 1)), "1: no column \"cwnd\"");
    assert_eq!(complaint("lro", spoiled("lro", 3, "a", "0:0|0")), "3: column a: \"0\"");
}

#[test]
fn the_kind_of_a_file_is_part_of_its_name() {
    assert!(replay_of("fresh_newreno_2.csv.gz").is_some());
    assert!(replay_of("a-lro.csv.gz").is_some());
    assert!(replay_of("cubic_funcs.csv.gz").is_some());
    assert!(replay_of("vegas.csv.gz").is_none());
}

#[test]
fn a_directory_without_golden_files_fails() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert_eq!(run(here), ExitCode::from(2));
    assert_eq!(run(&here.join("nowhere")), ExitCode::from(2));
}

#[test]
fn reno_cubic_and_prr_match_the_kernel_for_every_recorded_ack() {
    // Recorded on Linux 6.18: all transfers except BBR's.
    let transfers = linux::transfers(&own_copy("linux")).unwrap();
    assert_eq!(transfers.len(), 28);
    let verdict = linux::run(&transfers);
    assert_eq!((verdict.replayed, verdict.differ, verdict.garbled), (27, false, false));
}

/// Recorded transfers with fixed losses in which the number of our recoveries or timeouts differs,
/// and the first differing event.
const OTHER_EVENTS: [(&str, &str); 3] = [
    ("c1", "7 equal ACKs, then the sender, in a system call, coalesces two (tcp_add_backlog)"),
    (
        "c4",
        "11 equal, then the reading receiver acknowledges 12 packets at once (tcp_backlog_ack_defer)",
    ),
    (
        "c6",
        "6 equal, then the reading receiver acknowledges one segment more than ours, 28 µs earlier",
    ),
];

/// Recorded transfers whose goodput is more than a tenth off, and why.
const FAR: [(&str, &str); 1] = [(
    "c2",
    "104 recoveries in 2 s, each decided by microseconds: with a one-way delay longer by 50 ns to 10 us our goodput is \
     -6.0 to +1.0 % off (median of 11: -0.7 %), as it is -10.1 %",
)];

#[test]
fn recorded_transfers_reach_the_recorded_goodput_in_closed_loop() {
    let transfers = linux::transfers(&own_copy("linux")).unwrap();
    let comparisons = linux::run_closed_loop(&transfers);
    assert_eq!(comparisons.len(), 28);
    let repeating = comparisons.iter().filter(|comparison| comparison.repeats());
    let off: Vec<i64> = repeating.map(|one| one.goodput_permille().abs()).collect();
    assert_eq!(off.len(), 23);
    assert!(off.iter().filter(|&&off| off <= 50).count() >= 20, "{off:?}");
    let far = comparisons.iter().filter(|one| one.repeats() && one.goodput_permille().abs() > 100);
    let far: Vec<&str> = far.map(|one| one.short()).collect();
    let known: Vec<&str> = FAR.iter().map(|(name, _)| *name).collect();
    assert_eq!(far, known, "{FAR:?}");
    let other = comparisons.iter().filter(|one| one.same_events() == Some(false));
    let other: Vec<&str> = other.map(|one| one.short()).collect();
    let known: Vec<&str> = OTHER_EVENTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(other, known, "{OTHER_EVENTS:?}");
}
