//! The busiest millisecond, and silences.

use super::CapturedQuicDatagram;

/// Length of the interval of [`BusiestInterval`], in ns.
const BUSY: u64 = 1_000_000;
/// Shortest silence that counts, in ns.
const SILENCE: u64 = 100_000_000;
/// A shorter silence than this number of round trips is part of a transfer.
const SILENT_ROUND_TRIPS: u64 = 3;

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
