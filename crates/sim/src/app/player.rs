//! A video player: fetches chunks, each in the bit rate that its rule selects, and plays them from a
//! buffer.
//!
//! It fetches one chunk at a time, and none while the buffer has no room for it. Playback begins when
//! the buffer holds the startup time, and after a stall with the next chunk.

use std::collections::VecDeque;
use std::sync::Arc;

use units::{Duration, Instant};

use crate::outcome::VideoOutcome;
use crate::scenario::{BitrateRule, VideoSpec};

/// Number of chunks whose throughput predicts the next one's.
const SAMPLES: usize = 5;

/// A video player.
#[derive(Debug, Clone)]
pub(crate) struct Player {
    spec: Arc<VideoSpec>,
    /// When the user pressed play: the first SYN.
    opened: Instant,
    /// Chunks not yet requested; `None` for unlimited.
    left: Option<u64>,
    /// The chunk being fetched.
    fetching: Option<Fetch>,
    /// Bytes of the request not yet accepted by the stack.
    pending: u64,
    /// When the next chunk is due.
    next: Instant,
    /// Number of the bit rate of the last chunk.
    rung: Option<usize>,
    /// Nanoseconds per gigabit of the last chunks.
    costs: VecDeque<u128>,
    playback: Playback,
    /// The present stall is counted.
    has_counted: bool,
    counts: VideoOutcome,
}

#[derive(Debug, Clone, Copy)]
struct Fetch {
    asked: Instant,
    rung: usize,
    size: u64,
    got: u64,
}

/// The playing side.
#[derive(Debug, Clone, Copy)]
struct Playback {
    /// Buffered playing time at `at`.
    level: Duration,
    at: Instant,
    plays: bool,
    /// Since when it has been stalled.
    stalled: Option<Instant>,
}

impl Playback {
    /// Plays until `now`; it stalls when the buffer is empty, unless that is the `end` of the video.
    fn advance(&mut self, now: Instant, end: bool) {
        if self.plays {
            let elapsed = now.since(self.at);
            if elapsed > self.level && !end {
                self.plays = false;
                self.stalled = Some(self.at + self.level);
            }
            self.level = self.level.saturating_sub(elapsed);
        }
        self.at = now;
    }
}

impl Player {
    /// A player whose connection is opened at `opened`.
    pub(crate) fn new(spec: &Arc<VideoSpec>, opened: Instant) -> Self {
        Self {
            spec: spec.clone(),
            opened,
            left: spec.chunks,
            fetching: None,
            pending: 0,
            next: Instant::ZERO,
            rung: None,
            costs: VecDeque::new(),
            playback: Playback { level: Duration::ZERO, at: opened, plays: false, stalled: None },
            has_counted: false,
            counts: VideoOutcome { players: 1, ..VideoOutcome::default() },
        }
    }

    /// Makes the first chunk due, when the connection is established.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.next = now;
    }

    /// Makes the request that is due; returns the size of the response.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<u64> {
        if self.fetching.is_some() || self.next > now || self.left == Some(0) {
            return None;
        }
        self.left = self.left.map(|left| left - 1);
        self.playback.advance(now, false);
        self.count_stall();
        let rung = self.choose();
        let rate = u128::from(self.spec.ladder.get(rung)?.bits_per_second());
        let bits = rate * u128::from(self.spec.chunk.as_nanos()) / 1_000_000_000;
        let size = (bits / 8).clamp(1, u128::from(u64::MAX)) as u64;
        self.fetching = Some(Fetch { asked: now, rung, size, got: 0 });
        self.pending = self.spec.request.get().max(1);
        Some(size)
    }

    /// Called when `bytes` were read.
    pub(crate) fn read(&mut self, now: Instant, bytes: u64) {
        let Some(fetch) = &mut self.fetching else { return };
        fetch.got += bytes;
        if fetch.got >= fetch.size {
            let fetch = *fetch;
            self.fetching = None;
            self.receive(now, fetch);
        }
    }

    fn receive(&mut self, now: Instant, fetch: Fetch) {
        let spec = &self.spec;
        let nanos = u128::from(now.since(fetch.asked).as_nanos().max(1));
        self.costs.push_back(nanos * 1_000_000_000 / u128::from(fetch.size * 8));
        if self.costs.len() > SAMPLES {
            self.costs.pop_front();
        }
        self.counts.chunks += 1;
        self.counts.bitrate_sum += u128::from(spec.ladder[fetch.rung].bits_per_second());
        self.counts.switches += u64::from(self.rung.is_some_and(|rung| rung != fetch.rung));
        self.rung = Some(fetch.rung);
        self.playback.advance(now, false);
        self.count_stall();
        self.playback.level += self.spec.chunk;
        let level = self.playback.level;
        if let Some(since) = self.playback.stalled.take() {
            self.counts.stalled += now.since(since);
            self.playback.plays = true;
        } else if !self.playback.plays && (level >= self.spec.startup || self.left == Some(0)) {
            self.counts.startup.push(now.since(self.opened));
            self.playback.plays = true;
        }
        let full = (level + self.spec.chunk).saturating_sub(self.spec.buffer);
        self.next = if self.playback.plays { now + full } else { now };
    }

    fn count_stall(&mut self) {
        // A stall is new until playback continues.
        let stalls = self.playback.stalled.is_some();
        self.counts.stalls += u64::from(stalls && !self.has_counted);
        self.has_counted = stalls;
    }

    /// The number of the bit rate of the next chunk.
    fn choose(&self) -> usize {
        let rate = |rung: usize| self.spec.ladder[rung].bits_per_second();
        let below = |bound: u128| {
            let known = self
                .spec
                .ladder
                .iter()
                .rposition(|rate| u128::from(rate.bits_per_second()) < bound);
            known.unwrap_or(0)
        };
        let top = self.spec.ladder.len() - 1;
        match self.spec.rule {
            BitrateRule::Throughput => {
                let costs: u128 = self.costs.iter().sum();
                let mean = 1_000_000_000_000_000_000_u128 * self.costs.len() as u128;
                below(mean.checked_div(costs).unwrap_or(0))
            }
            BitrateRule::Buffer { reservoir, cushion } => {
                let level = self.playback.level;
                let last = self.rung.unwrap_or(0);
                if level <= reservoir {
                    return 0;
                }
                if level >= reservoir + cushion {
                    return top;
                }
                let above = u128::from((level.saturating_sub(reservoir)).as_nanos());
                let width = u128::from(cushion.as_nanos().max(1));
                let function =
                    u128::from(rate(0)) + u128::from(rate(top) - rate(0)) * above / width;
                let (higher, lower) = ((last + 1).min(top), last.saturating_sub(1));
                if function >= u128::from(rate(higher)) {
                    below(function)
                } else if function <= u128::from(rate(lower)) {
                    let above = |rung: &usize| u128::from(rate(*rung)) > function;
                    (0..=top).find(above).unwrap_or(top)
                } else {
                    last
                }
            }
        }
    }

    /// Bytes to offer to the stack now.
    pub(crate) const fn offer(&self) -> u64 {
        self.pending
    }

    /// Called when the stack has accepted `bytes` of the offer.
    pub(crate) fn taken(&mut self, bytes: u64) {
        self.pending -= bytes;
    }

    /// Returns whether the last chunk has been read.
    pub(crate) fn done(&self) -> bool {
        self.left == Some(0) && self.fetching.is_none()
    }

    /// Returns when the next chunk is due, if none is being fetched.
    pub(crate) fn next_act(&self) -> Option<Instant> {
        (self.fetching.is_none() && self.left != Some(0)).then_some(self.next)
    }

    /// What the user has seen until `now`.
    pub(crate) fn outcome(&self, now: Instant) -> VideoOutcome {
        let mut played = self.clone();
        if !played.done() {
            played.playback.advance(now, false);
            played.count_stall();
        }
        if let Some(since) = played.playback.stalled {
            played.counts.stalled += now.since(since);
        }
        played.counts
    }
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Rate};

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn player(rule: BitrateRule, chunks: u64) -> Player {
        let rates =
            [1_000_000, 2_000_000, 4_000_000].map(|bits| Rate::from_bits_per_second(bits).unwrap());
        let second = Duration::from_secs(1);
        let spec = VideoSpec {
            ladder: rates.to_vec(),
            chunk: second,
            chunks: Some(chunks),
            buffer: second.saturating_mul(4),
            startup: second.saturating_mul(2),
            rule,
            request: Bytes(100),
        };
        let mut player = Player::new(&Arc::new(spec), at(500));
        player.begin(at(600));
        player
    }

    /// Fetches a chunk within `ms` from when it was due; returns its size.
    fn fetch(player: &mut Player, from: u64, ms: u64) -> u64 {
        assert_eq!(player.next_act(), Some(at(from)));
        let size = player.ask(at(from)).unwrap();
        player.taken(100);
        player.read(at(from + ms), size);
        size
    }

    #[test]
    fn playback_begins_with_the_startup_time_and_stalls_with_an_empty_buffer() {
        let mut player = player(BitrateRule::Throughput, 4);
        // 1 Mbit in 400 ms: 2.5 Mbit/s.
        assert_eq!(fetch(&mut player, 600, 400), 125_000);
        assert_eq!(player.outcome(at(1_000)).startup, []);
        // 2 Mbit in 500 ms; it plays from 1.5 s on, 2 s of buffer.
        assert_eq!(fetch(&mut player, 1_000, 500), 250_000);
        assert_eq!(player.outcome(at(1_500)).startup, [Duration::from_secs(1)]);
        // The buffer is empty at 3.5 s; the chunk takes until 4.5 s.
        assert_eq!(fetch(&mut player, 1_500, 3_000), 250_000);
        let seen = player.outcome(at(4_500));
        assert_eq!((seen.stalls, seen.stalled), (1, Duration::from_secs(1)));
        // 5 of the new buffer's 1,000 ms are missing at the end of the run.
        player.ask(at(4_500));
        let seen = player.outcome(at(5_505));
        assert_eq!((seen.stalls, seen.stalled), (2, Duration::from_millis(1_005)));
        assert_eq!((seen.chunks, seen.switches, seen.bitrate_sum), (3, 1, 5_000_000));
    }

    #[test]
    fn the_harmonic_mean_of_five_chunks_bounds_the_rate() {
        let mut player = player(BitrateRule::Throughput, 9);
        let sizes = [(600, 100), (700, 100), (800, 100), (900, 100)];
        let got = sizes.map(|(from, ms)| fetch(&mut player, from, ms));
        // 10, 40, 40 and 40 Mbit/s; the buffer of 4 s is then full, and plays since 0.8 s.
        assert_eq!(got, [125_000, 500_000, 500_000, 500_000]);
        // 3.8 s are buffered at 1.0 s: room for the next at 1.8 s. 4 Mbit in 8 s are 0.5 Mbit/s:
        // 5 / (1/10 + 3/40 + 1/0.5) = 2.30 Mbit/s.
        assert_eq!(fetch(&mut player, 1_800, 8_000), 500_000);
        assert_eq!(player.ask(at(9_800)), Some(250_000));
    }

    #[test]
    fn the_buffer_selects_the_rate_and_leaves_a_rate_only_at_its_neighbours() {
        let ms = Duration::from_millis;
        let rule = BitrateRule::Buffer { reservoir: ms(1_000), cushion: ms(2_000) };
        let mut player = player(rule, 9);
        let rungs = |player: &mut Player, levels: &[u64]| -> Vec<usize> {
            let each = levels.iter().map(|level| {
                player.playback.level = ms(*level);
                let rung = player.choose();
                player.rung = Some(rung);
                rung
            });
            each.collect()
        };
        // The function is 1 Mbit/s at 1 s, 2 at 1.67 s, 2.5 at 2 s, 4 at 3 s.
        assert_eq!(rungs(&mut player, &[900, 1_600, 2_000]), [0, 0, 1]);
        assert_eq!(rungs(&mut player, &[2_900, 3_000, 2_900]), [1, 2, 2]);
        // Down from 4 only when it reaches 2 Mbit/s: the lowest above 1.9 is 2.
        assert_eq!(rungs(&mut player, &[1_700, 1_600, 1_001, 1_000]), [2, 1, 1, 0]);
    }
}
