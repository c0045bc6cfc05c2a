//! Progress bars for long runs. They read the wall clock; the run does not.

use std::io::{IsTerminal, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant as WallClock;

use indicatif::{ProgressBar, ProgressStyle};
use scenario::units_text::MAX_DURATION;
use units::{Duration, Instant};

/// Progress of virtual time, shown on standard error if it is a terminal, after one second.
#[derive(Debug)]
pub(crate) struct Progress {
    /// `None` without a terminal.
    waiting_since: Option<WallClock>,
    duration: Duration,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar for a run of at most this virtual time.
    #[expect(clippy::disallowed_methods, reason = "how long a person waits is wall-clock time")]
    pub(crate) fn new(duration: Duration) -> Self {
        let watched = std::io::stderr().is_terminal();
        Self { waiting_since: watched.then(WallClock::now), duration, bar: None }
    }

    /// Updates the bar to virtual time `now`.
    pub(crate) fn at(&mut self, now: Instant) {
        let Some(since) = self.waiting_since else { return };
        if self.bar.is_none() && since.elapsed().as_secs() >= 1 {
            self.bar = Some(bar(self.duration));
        }
        if let Some(bar) = &self.bar {
            let reached = now.since(Instant::ZERO);
            bar.set_position(reached.as_millis());
            bar.set_message(format!("{:.1} s", reached.as_secs_f64()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(duration: Duration) -> ProgressBar {
    if duration == MAX_DURATION {
        // The run ends when all flows are done, at an unknown time.
        let style = ProgressStyle::with_template("{spinner} {msg} of virtual time");
        return ProgressBar::new_spinner()
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    }
    let template = format!("{{bar:40}} {{msg}} of {duration} of virtual time");
    let style = ProgressStyle::with_template(&template);
    ProgressBar::new(duration.as_millis())
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Progress of a sweep, shown as a line on standard error if it is a terminal: runs done, rate,
/// time left and segments per second.
#[derive(Debug)]
pub(crate) struct SweepProgress {
    bar: Option<ProgressBar>,
    segments: AtomicU64,
    since: WallClock,
}

impl SweepProgress {
    /// A bar for `runs`, of which `done` are complete.
    #[expect(clippy::disallowed_methods, reason = "how fast it goes is wall-clock time")]
    pub(crate) fn new(runs: u64, done: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = "{bar:30} {pos}/{len} runs, {per_sec}, {eta} left, {msg}";
            let style = ProgressStyle::with_template(template);
            let bar = ProgressBar::new(runs)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(done);
            bar.reset_eta();
            bar
        });
        Self { bar, segments: AtomicU64::new(0), since: WallClock::now() }
    }

    /// Counts a completed run that simulated `segments`.
    pub(crate) fn done(&self, segments: u64) {
        if let Some(bar) = &self.bar {
            let segments = self.segments.fetch_add(segments, Ordering::Relaxed) + segments;
            let seconds = self.since.elapsed().as_secs_f64().max(1e-3);
            bar.inc(1);
            bar.set_message(format!("{:.1} M segments/s", segments as f64 / seconds / 1e6));
        }
    }
}

impl Drop for SweepProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a count, shown on standard error if it is a terminal.
#[derive(Debug)]
pub(crate) struct CountProgress {
    bar: Option<ProgressBar>,
}

impl CountProgress {
    /// A bar for `total` items of this name.
    pub(crate) fn new(total: u64, what: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {what}"));
            ProgressBar::new(total)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self { bar }
    }

    /// Sets the bar to this number of items of as many as are known to come.
    pub(crate) fn of(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
        }
        self.at(done);
    }

    /// Sets the bar to this number of items.
    pub(crate) fn at(&self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }
}

impl Drop for CountProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Progress of reading a file, shown on standard error if it is a terminal, after one second.
#[derive(Debug)]
pub(crate) struct ProgressReader<R> {
    input: R,
    /// Size of the file, if known.
    size: Option<u64>,
    done: u64,
    /// `None` without a terminal.
    waiting_since: Option<WallClock>,
    bar: Option<ProgressBar>,
}

impl<R: Read> ProgressReader<R> {
    /// Wraps a file of `size` bytes.
    #[expect(clippy::disallowed_methods, reason = "how long a person waits is wall-clock time")]
    pub(crate) fn new(input: R, size: Option<u64>) -> Self {
        let watched = std::io::stderr().is_terminal();
        Self { input, size, done: 0, waiting_since: watched.then(WallClock::now), bar: None }
    }
}

impl<R: Read> Read for ProgressReader<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.input.read(to)?;
        self.done += bytes as u64;
        let Some(since) = self.waiting_since else { return Ok(bytes) };
        if self.bar.is_none() && since.elapsed().as_secs() >= 1 {
            let template = match self.size {
                Some(_) => "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
                None => "{spinner} {bytes}, {bytes_per_sec}",
            };
            let style = ProgressStyle::with_template(template);
            let bar = self.size.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
            self.bar = Some(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
            if bytes == 0 {
                bar.finish_and_clear();
            }
        }
        Ok(bytes)
    }
}

/// A spinner on standard error while a case runs, if it is a terminal.
#[derive(Debug)]
pub(crate) struct Spinner(Option<ProgressBar>);

impl Spinner {
    /// A spinner with the name of the case.
    pub(crate) fn new(what: &'static str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner().with_message(what);
        bar.enable_steady_tick(core::time::Duration::from_millis(200));
        Self(Some(bar))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
