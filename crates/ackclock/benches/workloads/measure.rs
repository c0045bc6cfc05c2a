//! How a measurement is made: time of the processor, the best of several.

use std::time::Instant;

use record::Off;
use scenario::{Loaded, Overrides, load};

/// What a measurement has found.
pub(crate) struct Measured {
    pub(crate) segments: u64,
    pub(crate) seconds: f64,
    /// Reading the scenario.
    pub(crate) load_seconds: f64,
}

impl Measured {
    /// Nanoseconds for a data segment with its ACKs.
    pub(crate) fn ns(&self) -> f64 {
        self.seconds * 1e9 / self.segments as f64
    }
}

/// Seconds that the processor has given to this thread, where the system tells (Linux), else those
/// on the wall: what other programs take does not count.
fn seconds(since: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.as_deref().and_then(|told| told.split_whitespace().next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed().as_secs_f64(), |nanos: u64| nanos as f64 / 1e9)
}

/// The scenario of that text.
pub(crate) fn loaded(text: &str) -> Loaded {
    match load(text, "workload", &Overrides::default()) {
        Ok(loaded) => loaded,
        Err(errors) => panic!("{}", errors[0]),
    }
}

/// Seconds of the processor that `work` takes, the best of so many tries, and what it gives.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn best<T>(tries: u32, mut work: impl FnMut() -> T) -> (f64, T) {
    let clock = Instant::now();
    let mut once = || {
        let began = seconds(clock);
        let made = work();
        (seconds(clock) - began, made)
    };
    let first = once();
    (1..tries).fold(first, |best, _| {
        let next = once();
        if next.0 < best.0 { next } else { best }
    })
}

/// The best of several measurements of so many runs each.
pub(crate) fn measure(text: &str, runs: u32, tries: u32) -> Measured {
    let (load_seconds, loaded) = best(1, || loaded(text));
    let run = || sim::run(&loaded.scenario, &mut Off).expect("a good scenario").segments;
    let (seconds, segments) = best(tries, || (0..runs).map(|_| run()).sum());
    Measured { segments, seconds, load_seconds }
}

/// Largest memory the process has held, in bytes, where the system tells.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1_024)
}
