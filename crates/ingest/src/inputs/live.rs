//! Reports about a capture while it is read, interval by interval of its own clock.

use std::collections::BTreeMap;

use diagnose::rules::Neighbours;
use diagnose::{Analysis, Diagnosis, Limiter, TimeBudget};
use packet::Dir;
use packet::wire::Endpoints;
use units::Duration;

use super::table::ConnectionTable;

/// An interval of a capture.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveInterval {
    /// Begin and end, in ns since the first packet of the capture.
    pub span: (u64, u64),
    /// The connections with packets in it, those with most data first.
    pub connections: Vec<LiveConnection>,
}

/// A connection in an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveConnection {
    /// Its number in the file.
    pub number: u32,
    /// The client and the server.
    pub ends: Endpoints,
    /// Direction of most data.
    pub dir: Dir,
    /// Payload delivered or captured in the interval.
    pub bytes: u64,
    /// What limited it in most of the interval; `None` if nothing was sent.
    pub limiter: Option<Limiter>,
    /// The time that `limiter` limited it, in ns.
    pub limited: Duration,
    /// What limited it in the interval before; `None` if it had none.
    pub before: Option<Limiter>,
    /// Code of the finding that limited it since it began, and those that are new, costliest first.
    pub primary: Option<&'static str>,
    /// See `primary`.
    pub news: Vec<&'static str>,
    /// It began in this interval.
    pub is_new: bool,
    /// It was closed or reset in this interval.
    pub is_closed: bool,
}

/// What is known of a connection from earlier intervals.
#[derive(Debug, Default)]
struct LiveState {
    bytes: u64,
    budget: TimeBudget,
    limiter: Option<Limiter>,
    codes: Vec<&'static str>,
    is_closed: bool,
}

/// A time this much later than that of the next packet is wrong, in ns: packets of several NIC queues
/// are out of order by less.
const WRONG: u64 = 1_000_000_000;

/// Reports intervals of a capture.
pub struct LiveReporter<'a> {
    every: u64,
    from: u64,
    /// Time of the newest packet, which the next one confirms.
    newest: Option<u64>,
    /// Time of the last packet before it, if that was confirmed.
    last: Option<u64>,
    known: BTreeMap<usize, LiveState>,
    report: &'a mut dyn FnMut(&LiveInterval),
}

impl core::fmt::Debug for LiveReporter<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LiveReporter").field("every", &self.every).finish_non_exhaustive()
    }
}

impl<'a> LiveReporter<'a> {
    /// Reports each interval of this length, at least a millisecond, to `report`.
    pub fn new(every: Duration, report: &'a mut dyn FnMut(&LiveInterval)) -> Self {
        let every = every.as_nanos().max(1_000_000);
        Self { every, from: 0, newest: None, last: None, known: BTreeMap::new(), report }
    }

    /// A packet at `at`, in ns since the first one, comes next: reports the interval that the packet
    /// before it ended. A damaged time far ahead, which would silence all later intervals, is ignored.
    pub(super) fn reach(&mut self, at: u64, table: &ConnectionTable) {
        let Some(before) = self.newest.replace(at) else { return };
        if before > at.saturating_add(WRONG) && self.last.is_none_or(|last| last <= at) {
            return;
        }
        self.advance(before, table);
    }

    /// The packet last announced is the last of its file.
    pub(super) fn flush(&mut self, table: &ConnectionTable) {
        if let Some(newest) = self.newest.take() {
            self.advance(newest, table);
        }
    }

    fn advance(&mut self, at: u64, table: &ConnectionTable) {
        self.last = Some(at);
        let to = self.from.saturating_add(self.every);
        if at < to {
            return;
        }
        // Intervals without packets are not reported one by one.
        let connections = self.connections(table);
        (self.report)(&LiveInterval { span: (self.from, to), connections });
        self.from = at / self.every * self.every;
    }

    /// The capture ended: reports the interval up to its last packet.
    pub(super) fn finish(&mut self, table: &ConnectionTable) {
        let Some(last) = self.last.take() else { return };
        let connections = self.connections(table);
        (self.report)(&LiveInterval { span: (self.from, last.max(self.from)), connections });
    }

    fn connections(&mut self, table: &ConnectionTable) -> Vec<LiveConnection> {
        let mut active = Vec::new();
        table.each_active(self.from, &mut |index, analysis| {
            let state = self.known.entry(index).or_default();
            active.push(state.next(analysis, self.from));
        });
        active.sort_by_key(|one: &LiveConnection| core::cmp::Reverse(one.bytes));
        active
    }
}

impl LiveState {
    fn next(&mut self, analysis: &Analysis, from: u64) -> LiveConnection {
        let diagnosis = Diagnosis::of(analysis, &Neighbours::default());
        let bytes = analysis.main().map_or(0, |flow| flow.bytes);
        let budget = diagnosis.course.budget;
        let spent = |limiter: Limiter| budget.of(limiter).saturating_sub(self.budget.of(limiter));
        let work =
            Limiter::ALL.into_iter().filter(|&one| one != Limiter::Idle && !spent(one).is_zero());
        let limiter = work.max_by_key(|&one| spent(one));
        let codes: Vec<_> = diagnosis.findings.iter().map(|found| found.code).collect();
        let is_over = analysis.closed || analysis.reset;
        let live = LiveConnection {
            number: analysis.stream,
            ends: analysis.ends,
            dir: analysis.main_dir(),
            bytes: bytes.saturating_sub(self.bytes),
            limiter,
            limited: limiter.map_or(Duration::ZERO, spent),
            before: self.limiter,
            primary: diagnosis.primary,
            news: codes.iter().filter(|code| !self.codes.contains(code)).copied().collect(),
            is_new: analysis.first.as_nanos() >= from,
            is_closed: is_over && !self.is_closed,
        };
        *self =
            Self { bytes, budget, limiter: limiter.or(self.limiter), codes, is_closed: is_over };
        live
    }
}
