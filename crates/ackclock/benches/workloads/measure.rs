//! Measurement of CPU time, the best of several runs.

use cpu_time::ThreadTime;
use record::NullRecorder;
use scenario::{Loaded, Overrides, load};

/// The result of a measurement.
pub(crate) struct BenchMeasurement {
    pub(crate) segments: u64,
    pub(crate) seconds: f64,
    /// Seconds to load the scenario.
    pub(crate) load_seconds: f64,
}

impl BenchMeasurement {
    /// Nanoseconds per data segment with its ACKs.
    pub(crate) fn ns(&self) -> f64 {
        self.seconds * 1e9 / self.segments as f64
    }
}

/// Loads a scenario.
pub(crate) fn loaded(text: &str) -> Loaded {
    match load(text, "workload", &Overrides::default()) {
        Ok(loaded) => loaded,
        Err(errors) => panic!("{}", errors[0]),
    }
}

/// CPU seconds of `work`, the best of `tries`, and its result.
pub(crate) fn best<T>(tries: u32, mut work: impl FnMut() -> T) -> (f64, T) {
    let mut once = || {
        // Of this thread: other processes do not count.
        let began = ThreadTime::now();
        let made = work();
        (began.elapsed().as_secs_f64(), made)
    };
    let first = once();
    (1..tries).fold(first, |best, _| {
        let next = once();
        if next.0 < best.0 { next } else { best }
    })
}

/// The best of `tries` measurements of `runs` runs each.
pub(crate) fn measure(text: &str, runs: u32, tries: u32) -> BenchMeasurement {
    let (load_seconds, loaded) = best(1, || loaded(text));
    let run = || sim::run(&loaded.scenario, &mut NullRecorder).expect("a good scenario").segments;
    let (seconds, segments) = best(tries, || (0..runs).map(|_| run()).sum());
    BenchMeasurement { segments, seconds, load_seconds }
}

/// Peak memory of the process in bytes, where the system reports it.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1_024)
}
