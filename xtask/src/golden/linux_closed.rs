//! Transfers of Linux kernels in virtual time, run with our stack at all hosts and compared as the goals of closed loop
//! have it: identical (data packets, number of acknowledgments, times within 1 % and a tick) and near (duration,
//! retransmissions, largest window within 1 %).

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use guest::compare::{PacketRecord, WindowSample, compare};
use guest::likeness::Likeness;
use guest::recording::Recording;
use lzma_rust2::XzReader;
use scenario::{Overrides, load};
use units::{Duration, Instant};

use super::closed::{ClosedVerdict, Exceptions};
use crate::processors;

/// Tolerated difference of packet times where it is the first difference that is printed.
const TOLERANCE: Duration = Duration::from_millis(1);

/// Transfers of one kind.
#[derive(Debug, Default)]
struct Tally {
    all: u32,
    same: u32,
    identical: u32,
    near: u32,
}

/// Compares the recordings of a directory or file: a line for each transfer that is not identical, and a summary for each
/// file.
pub(super) fn run(place: &Path, verdict: &mut ClosedVerdict) {
    let folder = if place.is_dir() { place } else { place.parent().unwrap_or(place) };
    let exceptions = match Exceptions::read(folder) {
        Ok(exceptions) => exceptions,
        Err(error) => return garbled(folder, &error, verdict),
    };
    for (file, text) in files(place) {
        match Recording::read_all(&text) {
            Ok(recordings) => compare_file(&file, &recordings, &exceptions, verdict),
            Err(error) => garbled(&file, &error, verdict),
        }
    }
}

fn garbled(place: &Path, error: &str, verdict: &mut ClosedVerdict) {
    eprintln!("{}: {error}", place.display());
    verdict.garbled = true;
}

/// The files of such recordings at `place`, a directory or one file, and their text.
fn files(place: &Path) -> Vec<(PathBuf, String)> {
    let mut files = vec![place.to_path_buf()];
    if let Ok(entries) = fs::read_dir(place) {
        files = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|end| end == "xz"));
        files.sort();
    }
    let unpack = |path: PathBuf| {
        let mut text = String::new();
        XzReader::new(File::open(&path).ok()?, false).read_to_string(&mut text).ok()?;
        text.starts_with("# transfer ").then_some((path, text))
    };
    files.into_iter().filter_map(unpack).collect()
}

fn compare_file(
    file: &Path,
    recordings: &[Recording],
    exceptions: &Exceptions,
    verdict: &mut ClosedVerdict,
) {
    let folder = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut tallies = [Tally::default(), Tally::default()];
    let (mut rows, mut rows_off) = (0, 0);
    let compared = processors::map(recordings, Compared::of);
    for (recording, compared) in recordings.iter().zip(compared) {
        let compared = match compared {
            Ok(compared) => compared,
            Err(error) => {
                garbled(file, &format!("{}: {error}", recording.name), verdict);
                continue;
            }
        };
        verdict.replayed += 1;
        let tally = &mut tallies[usize::from(compared.flows > 1)];
        tally.all += 1;
        tally.same += u32::from(compared.kind.is_none());
        tally.identical += u32::from(compared.identical);
        tally.near += u32::from(compared.near);
        rows += compared.rows;
        rows_off += compared.rows_off;
        let differs = (!compared.identical).then_some(compared.kind.as_deref().unwrap_or("times"));
        match exceptions.judge(&folder, &recording.name, differs) {
            Ok(None) => {}
            Ok(Some(known)) => println!("  {folder}/{} {known}", recording.name),
            Err(wrong) => {
                verdict.differ = true;
                println!("  {folder}/{} {wrong}", recording.name);
            }
        }
    }
    for (what, Tally { all, same, identical, near }) in
        ["one flow", "several flows"].iter().zip(tallies)
    {
        println!(
            "{folder} {what}: transfers {all} without a difference {same} identical {identical} near {near}"
        );
    }
    println!("{folder} tcp_info rows {rows} with another window or threshold {rows_off}");
}

/// What the comparison of a transfer gave.
struct Compared {
    flows: usize,
    /// The kind of the first difference.
    kind: Option<String>,
    identical: bool,
    near: bool,
    /// Rows of `tcp_info` before the first difference, and those that differ from the model.
    rows: usize,
    rows_off: usize,
}

impl Compared {
    fn of(recording: &Recording) -> Result<Self, String> {
        let loaded = load(&recording.scenario, &recording.name, &Overrides::default())
            .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())?;
        let mut scenario = loaded.scenario;
        let mut model = PacketRecord::new(&mut scenario, Instant::ZERO);
        let outcome = sim::run(&scenario, &mut model).map_err(|error| error.to_string())?;
        model.end(outcome.ended);
        let compared = compare(&scenario, &model, &recording.record, TOLERANCE);
        let first = compared.iter().filter(|flow| flow.first.is_some());
        let first = first.min_by_key(|flow| flow.first.as_ref().map(|first| first.at_ns()));
        let flows = scenario.flows.len();
        let alike: Vec<_> =
            (0..flows).map(|flow| Likeness::of(flow, &model, &recording.record)).collect();
        let (mut rows, mut rows_off) = (0, 0);
        for (flow, comparison) in compared.iter().enumerate() {
            let until = comparison.first.as_ref().map_or(u64::MAX, |first| first.at_ns());
            let known = recording.record.windows(flow).iter();
            for row in known.take_while(|row| row.at.as_nanos() < until) {
                rows += 1;
                rows_off += usize::from(!was(model.windows(flow), row));
            }
        }
        Ok(Self {
            flows,
            kind: first.and_then(|flow| flow.kind()),
            identical: alike.iter().all(Likeness::is_identical),
            near: alike.iter().all(Likeness::is_near),
            rows,
            rows_off,
        })
    }
}

/// Did the model have the window and the threshold of a row, before or after what happened at that time? A kernel has
/// them from the handshake on, the model from its first event after that.
fn was(windows: &[WindowSample], row: &WindowSample) -> bool {
    let after = windows.partition_point(|sample| sample.at <= row.at);
    let before = windows.partition_point(|sample| sample.at + TOLERANCE < row.at);
    let same = |sample: &WindowSample| (sample.cwnd, sample.ssthresh) == (row.cwnd, row.ssthresh);
    after == 0 || windows[before.saturating_sub(1)..after].iter().any(same)
}
