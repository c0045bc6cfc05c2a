//! Reports about a capture while it is read, interval by interval of its own clock.

use std::collections::BTreeMap;

use diagnose::rules::Neighbours;
use diagnose::{ConnectionRecorder, Diagnosis, Limiter, PathEstimate, RecentCourse, TimeBudget};
use packet::Dir;
use packet::wire::Endpoints;
use units::{Duration, Instant};

use super::open_connection::NONE;
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

/// Entries of a connection's logs that its diagnosis may walk in every interval. Others are paid for by packets: a
/// connection is diagnosed as a whole when it had as many since the last time, so that all its diagnoses together cost
/// no more than its packets.
const FREE_ENTRIES: u64 = 64;

/// Rounds that are looked at without a diagnosis of the whole: when there are more, all but the last
/// [`LEAST_ROUNDS`] are left.
const MOST_ROUNDS: usize = 128;
/// See [`MOST_ROUNDS`].
const LEAST_ROUNDS: usize = 32;

/// What is known of a connection from earlier intervals.
#[derive(Debug, Default)]
struct LiveState {
    bytes: u64,
    limiter: Option<Limiter>,
    primary: Option<&'static str>,
    codes: Vec<&'static str>,
    is_closed: bool,
    /// Packets until it was diagnosed last.
    diagnosed: u64,
    /// The path that this showed, and the direction of most data.
    path: Option<(PathEstimate, Dir)>,
    /// What limited it until the end of the last interval, if it was diagnosed there.
    whole: Option<TimeBudget>,
    /// What limited it since a moment.
    recent: Option<RecentBudget>,
}

/// What limited a connection from a moment to the end of an interval.
#[derive(Debug, Clone, Copy)]
struct RecentBudget {
    since: Instant,
    budget: TimeBudget,
    rounds_per_entry: u32,
}

/// What an interval shows of a connection.
struct SeenInterval {
    dir: Dir,
    /// Since the connection began.
    bytes: u64,
    spent: TimeBudget,
    is_over: bool,
    news: Vec<&'static str>,
}

/// A time this much later than that of the next packet is wrong, in ns: packets of several NIC queues
/// are out of order by less.
const WRONG: u64 = 1_000_000_000;

/// Reports intervals of a capture.
pub struct LiveReporter<'a> {
    every: u64,
    /// Time without packets in ns after which a connection is forgotten.
    forget: Option<u64>,
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
        let known = BTreeMap::new();
        Self { every, forget: None, from: 0, newest: None, last: None, known, report }
    }

    /// Forgets connections after this time without packets: they are not in the result.
    #[must_use]
    pub fn forgetting(self, after: Option<Duration>) -> Self {
        Self { forget: after.map(|after| after.as_nanos().max(self.every)), ..self }
    }

    /// A packet at `at`, in ns since the first one, comes next: reports the interval that the packet
    /// before it ended. A damaged time far ahead, which would silence all later intervals, is ignored.
    pub(super) fn reach(&mut self, at: u64, table: &mut ConnectionTable) {
        table.note_active();
        let Some(before) = self.newest.replace(at) else { return };
        if before > at.saturating_add(WRONG) && self.last.is_none_or(|last| last <= at) {
            return;
        }
        self.advance(before, table);
    }

    /// The packet last announced is the last of its file.
    pub(super) fn flush(&mut self, table: &mut ConnectionTable) {
        if let Some(newest) = self.newest.take() {
            self.advance(newest, table);
        }
    }

    fn advance(&mut self, at: u64, table: &mut ConnectionTable) {
        self.last = Some(at);
        let to = self.from.saturating_add(self.every);
        if at < to {
            return;
        }
        // Intervals without packets are not reported one by one.
        let connections = self.connections(table);
        (self.report)(&LiveInterval { span: (self.from, to), connections });
        self.from = at / self.every * self.every;
        let since = self.forget.map(|forget| self.from.saturating_sub(forget));
        if let Some(renumbered) = since.and_then(|since| table.forget(since)) {
            let known = core::mem::take(&mut self.known).into_iter();
            let new = known.map(|(index, state)| (renumbered[index] as usize, state));
            self.known = new.filter(|(index, _)| *index != NONE as usize).collect();
        }
    }

    /// The capture ended: reports the interval up to its last packet.
    pub(super) fn finish(&mut self, table: &mut ConnectionTable) {
        let Some(last) = self.last.take() else { return };
        let connections = self.connections(table);
        (self.report)(&LiveInterval { span: (self.from, last.max(self.from)), connections });
    }

    fn connections(&mut self, table: &mut ConnectionTable) -> Vec<LiveConnection> {
        let from = self.from;
        let mut active: Vec<LiveConnection> = table
            .take_active()
            .filter(|(_, record)| record.span().is_some_and(|(_, last)| last.as_nanos() >= from))
            .map(|(index, record)| self.known.entry(index).or_default().next(record, from))
            .collect();
        active.sort_by_key(|one| core::cmp::Reverse(one.bytes));
        active
    }
}

impl LiveState {
    fn next(&mut self, record: &ConnectionRecorder, from: u64) -> LiveConnection {
        let (packets, entries) = record.extent();
        let paid = packets.saturating_sub(self.diagnosed).saturating_add(FREE_ENTRIES);
        let path = self.path.filter(|(_, dir)| paid < entries as u64 && *dir == record.main_dir());
        let recent = path.and_then(|(path, _)| self.look(record, &path, from));
        let seen = recent.unwrap_or_else(|| self.diagnose(record, from));
        let SeenInterval { dir, bytes, spent, is_over, news } = seen;
        let work = Limiter::ALL
            .into_iter()
            .filter(|&one| one != Limiter::Idle && !spent.of(one).is_zero());
        let limiter = work.max_by_key(|&one| spent.of(one));
        let live = LiveConnection {
            number: record.stream(),
            ends: record.ends(),
            dir,
            bytes: bytes.saturating_sub(self.bytes),
            limiter,
            limited: limiter.map_or(Duration::ZERO, |one| spent.of(one)),
            before: self.limiter,
            primary: self.primary,
            news,
            is_new: record.span().is_some_and(|(first, _)| first.as_nanos() >= from),
            is_closed: is_over && !self.is_closed,
        };
        // A diagnosis counts the ACKs on their way to the sender too.
        self.bytes = self.bytes.max(bytes);
        self.limiter = limiter.or(self.limiter);
        self.is_closed = is_over;
        live
    }

    /// Looks at the last rounds only; `None` if nothing is known of the connection yet.
    fn look(
        &mut self,
        record: &ConnectionRecorder,
        path: &PathEstimate,
        from: u64,
    ) -> Option<SeenInterval> {
        let recent = self.recent?;
        let now = record.since(recent.since, path)?;
        // Where entries were joined since, the moment may be within one.
        let is_comparable = now.rounds_per_entry == recent.rounds_per_entry;
        let spent = if is_comparable {
            now.budget.less(&recent.budget)
        } else {
            record.since(Instant::from_nanos(from), path)?.budget
        };
        self.whole = None;
        self.recent = Some(RecentBudget { budget: now.budget, ..recent });
        if !is_comparable || now.rounds > MOST_ROUNDS {
            self.recent = Self::last_rounds(record, path);
        }
        let RecentCourse { dir, bytes, is_over, .. } = now;
        Some(SeenInterval { dir, bytes, spent, is_over, news: Vec::new() })
    }

    /// What limited it in the last rounds.
    fn last_rounds(record: &ConnectionRecorder, path: &PathEstimate) -> Option<RecentBudget> {
        let since = record.begin_of_last(LEAST_ROUNDS);
        let RecentCourse { budget, rounds_per_entry, .. } = record.since(since, path)?;
        Some(RecentBudget { since, budget, rounds_per_entry })
    }

    /// Diagnoses all of it.
    fn diagnose(&mut self, record: &ConnectionRecorder, from: u64) -> SeenInterval {
        let analysis = record.analysis();
        let diagnosis = Diagnosis::of(&analysis, &Neighbours::default());
        let budget = diagnosis.course.budget;
        let lately = match (self.whole, self.path) {
            (None, Some((path, _))) => self.look(record, &path, from).map(|seen| seen.spent),
            _ => None,
        };
        let spent = lately.unwrap_or_else(|| budget.less(&self.whole.unwrap_or_default()));
        let codes: Vec<_> = diagnosis.findings.iter().map(|found| found.code).collect();
        let news = codes.iter().filter(|code| !self.codes.contains(code)).copied().collect();
        let (dir, path) = (analysis.main_dir(), diagnosis.course.path);
        self.primary = diagnosis.primary;
        self.codes = codes;
        self.diagnosed = record.extent().0;
        self.path = Some((path, dir));
        self.whole = Some(budget);
        self.recent = Self::last_rounds(record, &path);
        let bytes = analysis.main().map_or(0, |flow| flow.bytes);
        SeenInterval { dir, bytes, spent, is_over: analysis.closed || analysis.reset, news }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use diagnose::{AnalysisSettings, CapturedPacket};
    use packet::{Flags, Segment};
    use units::SeqNum;

    use super::*;

    const RTT: u64 = 50_000_000;
    const MSS: u32 = 1_000;

    /// The packets of a connection at its sender, in order of time: rounds that fill a window of 20 segments take turns with
    /// single segments in longer intervals, 40 rounds each.
    fn packets(rounds: u32) -> Vec<CapturedPacket> {
        let mut all = Vec::new();
        let (mut at, mut seq) = (0, 1);
        let mut add = |at: u64, dir, seq: u32, ack: u32, payload: u32| {
            let segment = Segment {
                dir,
                flags: if payload > 0 { Flags::ACK | Flags::PSH } else { Flags::ACK },
                seq: SeqNum(seq),
                ack: SeqNum(ack),
                payload,
                window: 20 * MSS as u16,
                ..Segment::default()
            };
            let frame = all.len() as u64 + 1;
            let captured = segment.wire_len().get() as u32;
            let at = Instant::from_nanos(at);
            all.push(CapturedPacket {
                at,
                frame,
                segment,
                captured,
                id: 0,
                ttl: 0,
                options_cut: false,
            });
        };
        for round in 0..rounds {
            let is_full = round / 40 % 2 == 0;
            let count: u32 = if is_full { 20 } else { 1 };
            for n in 0..count {
                add(at + 10_000 * u64::from(n), Dir::Forward, seq, 1, MSS);
                seq += MSS;
            }
            add(at + RTT, Dir::Reverse, 1, seq, 0);
            at += if is_full { RTT + 10_000 } else { 5 * RTT };
        }
        all
    }

    /// What the last rounds show is what a diagnosis of the whole shows, interval by interval, and a long connection is
    /// diagnosed in few of them.
    #[test]
    fn the_last_rounds_show_what_the_whole_shows() {
        let ends = Endpoints {
            src: SocketAddr::from(([192, 0, 2, 1], 40_000)),
            dst: SocketAddr::from(([192, 0, 2, 2], 80)),
        };
        let mut record = ConnectionRecorder::new(ends, 0, AnalysisSettings::default());
        let (mut lately, mut whole) = (LiveState::default(), LiveState::default());
        let every = 4 * RTT;
        let (mut from, mut diagnosed, mut intervals) = (0, 0, 0);
        let mut bytes = [0; 2];
        for packet in packets(4_000) {
            let at = packet.at.as_nanos();
            if at >= from + every {
                let one = lately.next(&record, from);
                // Nothing known of the path: it is diagnosed.
                whole.path = None;
                let other = whole.next(&record, from);
                let about = |a: Duration, b: Duration| {
                    a.max(b) - a.min(b) <= Duration::from_nanos(every) / 10
                };
                assert_eq!(
                    (one.limiter, one.before),
                    (other.limiter, other.before),
                    "at {from} ns"
                );
                assert!(about(one.limited, other.limited), "at {from} ns: {one:?} {other:?}");
                bytes[0] += one.bytes;
                bytes[1] += other.bytes;
                diagnosed += u32::from(lately.whole.is_some());
                intervals += 1;
                from = at / every * every;
            }
            record.push(&packet);
        }
        assert!(diagnosed * 5 < intervals, "{diagnosed} of {intervals} intervals");
        assert!(bytes[0] <= bytes[1] && bytes[1] - bytes[0] <= 20 * u64::from(MSS), "{bytes:?}");
    }
}
