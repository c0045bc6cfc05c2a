//! Rates over time, the busiest millisecond, and silences.

use super::CapturedQuicDatagram;

/// Most intervals of a history.
const INTERVALS: usize = 256;
/// First length of an interval, in ns.
const FIRST: u64 = 10_000_000;
/// Length of the interval of [`BusiestInterval`], in ns.
const BUSY: u64 = 1_000_000;
/// Shortest silence that counts, in ns.
const SILENCE: u64 = 100_000_000;
/// A shorter silence than this number of round trips is part of a transfer.
const SILENT_ROUND_TRIPS: u64 = 3;

/// Bytes of each direction over time, in intervals of equal length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateHistory {
    /// Length of an interval in ns; doubles when there would be too many.
    pub interval: u64,
    /// UDP payload in bytes, by interval since the first datagram and by direction.
    pub bytes: Vec<[u64; 2]>,
}

impl Default for RateHistory {
    fn default() -> Self {
        Self { interval: FIRST, bytes: Vec::new() }
    }
}

impl RateHistory {
    /// Adds bytes of a direction at a time in ns since the first datagram.
    pub(super) fn push(&mut self, since: u64, dir: usize, len: u32) {
        while since / self.interval >= INTERVALS as u64 {
            self.interval *= 2;
            let merged = self.bytes.chunks(2).map(|two| {
                two.iter().fold([0, 0], |sum: [u64; 2], one| [sum[0] + one[0], sum[1] + one[1]])
            });
            self.bytes = merged.collect();
        }
        let index = (since / self.interval) as usize;
        if self.bytes.len() <= index {
            self.bytes.resize(index + 1, [0, 0]);
        }
        self.bytes[index][dir] += u64::from(len);
    }

    /// The largest rate of a direction in a whole interval, in bytes per second; `None` if the connection
    /// is shorter than an interval.
    pub fn largest(&self, dir: usize) -> Option<f64> {
        // The last interval may be short, and its rate is too low then.
        let whole = self.bytes.get(..self.bytes.len().checked_sub(1)?)?;
        let most = whole.iter().map(|interval| interval[dir]).max()?;
        Some(most as f64 * 1e9 / self.interval as f64)
    }
}

/// The millisecond in which a host sent most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BusiestInterval {
    /// Its begin, in ns since the first datagram of the connection.
    pub since: u64,
    /// Datagrams in it.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct BusyMeter {
    current: BusiestInterval,
    most: BusiestInterval,
}

impl BusyMeter {
    pub(super) fn push(&mut self, since: u64, len: u32) {
        let since = since / BUSY * BUSY;
        if since != self.current.since {
            self.close();
            self.current = BusiestInterval { since, datagrams: 0, bytes: 0 };
        }
        self.current.datagrams += 1;
        self.current.bytes += u64::from(len);
    }

    fn close(&mut self) {
        if self.current.bytes > self.most.bytes {
            self.most = self.current;
        }
    }

    pub(super) fn finish(mut self) -> BusiestInterval {
        self.close();
        self.most
    }
}

/// Times in which neither host sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Silences {
    /// Shortest silence that counts, in ns: 100 ms, or three round trips if those are longer.
    pub threshold: u64,
    /// Number of silences.
    pub count: u64,
    /// Their sum in ns.
    pub ns: u64,
    /// Length of the longest in ns.
    pub longest: u64,
    /// Frames before and after the longest.
    pub frames: (u64, u64),
}

#[derive(Debug, Default)]
pub(super) struct SilenceMeter {
    silences: Silences,
    last_frame: Option<u64>,
}

impl SilenceMeter {
    /// A datagram arrives after the one at `last`, in ns; `round_trip`: that of the handshake.
    pub(super) fn push(
        &mut self,
        datagram: &CapturedQuicDatagram,
        last: u64,
        round_trip: Option<u64>,
    ) {
        let threshold = round_trip.map_or(SILENCE, |ns| SILENCE.max(ns * SILENT_ROUND_TRIPS));
        self.silences.threshold = threshold;
        let before = self.last_frame.replace(datagram.frame);
        let (Some(before), ns) = (before, datagram.at - last) else { return };
        if ns < threshold {
            return;
        }
        self.silences.count += 1;
        self.silences.ns += ns;
        if ns > self.silences.longest {
            self.silences.longest = ns;
            self.silences.frames = (before, datagram.frame);
        }
    }

    pub(super) const fn finish(self) -> Silences {
        self.silences
    }
}
