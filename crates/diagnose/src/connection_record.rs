//! Connections of a capture in little memory: their packets while they are few, their analysis from
//! then on.
//!
//! Most connections of a large capture have few packets: scans, lookups, one request. Their packets
//! take less memory than the state of the analysis, which is computed when it is asked for.

use std::borrow::Cow;

use packet::wire::Endpoints;
use packet::{Dir, Flags, Segment};
use units::{Duration, Instant};

use crate::connection_events::IcmpNotice;
use crate::packet_log::{PacketLog, PacketLogReader};
use crate::socket::SocketSample;
use crate::{
    Analysis, AnalysisSettings, CapturedPacket, ConnectionAnalyzer, PathEstimate, StateSample,
    TimeBudget, Timeline,
};

/// Most bytes of stored packets, about thirty of them. The state of the analysis of a connection
/// with data takes several times as much.
const MAX_LOG: usize = 640;

/// The analyzer of a connection, after these packets.
fn analyzer(packets: PacketLogReader<'_>) -> ConnectionAnalyzer {
    let [stream, packets_kept, turns, previous] = packets.numbers();
    let settings = AnalysisSettings { packets: packets_kept as usize, turns: turns as usize };
    let mut analyzer = ConnectionAnalyzer::new(packets.ends(), stream, settings);
    if let Some(millis) = previous.checked_sub(1) {
        analyzer.set_previous(Duration::from_millis(u64::from(millis)));
    }
    packets.for_each(|packet| analyzer.push(&packet));
    analyzer
}

/// What limited a connection lately.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecentCourse {
    /// Direction of most data.
    pub dir: Dir,
    /// Its bytes since the connection began.
    pub bytes: u64,
    /// What limited it in the rounds that were asked for.
    pub budget: TimeBudget,
    /// The number of these rounds, and how many of the sender's are one of them.
    pub rounds: usize,
    /// See `rounds`.
    pub rounds_per_entry: u32,
    /// The connection was closed or reset.
    pub is_over: bool,
}

/// A connection that is being read, as by a [`ConnectionAnalyzer`].
#[derive(Debug)]
pub struct ConnectionRecorder(Recorder);

#[derive(Debug)]
enum Recorder {
    Few(PacketLog),
    Many(Box<ConnectionAnalyzer>),
}

impl ConnectionRecorder {
    /// A connection from `ends.src` to `ends.dst`: see [`ConnectionAnalyzer::new`].
    pub fn new(ends: Endpoints, stream: u32, settings: AnalysisSettings) -> Self {
        let limit = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
        let numbers = [stream, limit(settings.packets), limit(settings.turns), 0];
        Self(Recorder::Few(PacketLog::new(ends, numbers)))
    }

    /// Adds the next packet, in the order of the capture.
    pub fn push(&mut self, packet: &CapturedPacket) {
        match &mut self.0 {
            Recorder::Few(log) if log.len() < MAX_LOG => log.push(packet),
            Recorder::Few(_) => self.analyzer().push(packet),
            Recorder::Many(analyzer) => analyzer.push(packet),
        }
    }

    /// Adds a sample of a kernel's log: see [`ConnectionAnalyzer::push_state`].
    pub fn push_state(&mut self, sample: &StateSample) {
        self.analyzer().push_state(sample);
    }

    /// Adds the account of a host's kernel: see [`ConnectionAnalyzer::push_socket`].
    pub fn push_socket(&mut self, of: Dir, samples: [SocketSample; 2]) {
        self.analyzer().push_socket(of, samples);
    }

    /// Adds an ICMP error about a packet of the connection.
    pub fn push_icmp(&mut self, notice: IcmpNotice) {
        self.analyzer().push_icmp(notice);
    }

    /// Sets the time since the end of an earlier connection between the same ports.
    pub fn set_previous(&mut self, gap: Duration) {
        match &mut self.0 {
            Recorder::Few(log) => {
                let [stream, packets, turns, _] = log.reader().numbers();
                let millis = u32::try_from(gap.as_millis()).unwrap_or(u32::MAX - 1);
                *log = log.with_numbers([stream, packets, turns, millis.saturating_add(1)]);
            }
            Recorder::Many(analyzer) => analyzer.set_previous(gap),
        }
    }

    /// Whether it has packets other than SYNs and resets.
    pub fn has_been_open(&self) -> bool {
        match &self.0 {
            Recorder::Few(log) => log.reader().any(|packet| {
                let flags = packet.segment.flags;
                !flags.has(Flags::SYN) && !flags.has(Flags::RST)
            }),
            Recorder::Many(analyzer) => analyzer.has_been_open(),
        }
    }

    /// Host that opened the connection, or was seen first, and the other.
    pub fn ends(&self) -> Endpoints {
        match &self.0 {
            Recorder::Few(log) => log.reader().ends(),
            Recorder::Many(analyzer) => analyzer.ends(),
        }
    }

    /// Times of the first and the last packet; `None` without one.
    pub fn span(&self) -> Option<(Instant, Instant)> {
        match &self.0 {
            Recorder::Few(log) => {
                let mut times = log.reader().map(|packet| packet.at);
                let first = times.next()?;
                Some(times.fold((first, first), |(from, to), at| (from.min(at), to.max(at))))
            }
            Recorder::Many(analyzer) => analyzer.span(),
        }
    }

    /// The last SYN of each host, by [`packet::Dir`]: MSS option, and whether it has timestamps.
    pub fn syns(&self) -> [Option<(u16, bool)>; 2] {
        match &self.0 {
            Recorder::Few(log) => analyzer(log.reader()).syns(),
            Recorder::Many(analyzer) => analyzer.syns(),
        }
    }

    /// Sets the stream index: see [`Analysis::stream`].
    pub fn set_stream(&mut self, stream: u32) {
        match &mut self.0 {
            Recorder::Few(log) => {
                let [_, packets, turns, previous] = log.reader().numbers();
                *log = log.with_numbers([stream, packets, turns, previous]);
            }
            Recorder::Many(analyzer) => analyzer.set_stream(stream),
        }
    }

    /// Whether the next packet makes it too many to be kept.
    pub fn is_full(&self) -> bool {
        matches!(&self.0, Recorder::Few(log) if log.len() >= MAX_LOG)
    }

    /// Adds the packets of `other`, another capture point's part of the same connection, in order of
    /// time; `is_reversed`: its client is the server of this one. False if either has too many
    /// packets, or if both captured the same packet and are two views of the connection.
    pub fn absorb(&mut self, other: &Self, is_reversed: bool) -> bool {
        let (Recorder::Few(log), Recorder::Few(theirs)) = (&self.0, &other.0) else { return false };
        let turned = |packet: CapturedPacket| {
            let dir = packet.segment.dir;
            let dir = if is_reversed { dir.reversed() } else { dir };
            CapturedPacket { segment: Segment { dir, ..packet.segment }, ..packet }
        };
        let mut all: Vec<_> = log.reader().collect();
        let own = all.len();
        all.extend(theirs.reader().map(turned));
        let (one, other) = all.split_at(own);
        if one.iter().any(|packet| other.iter().any(|copy| is_same(packet, copy))) {
            return false;
        }
        all.sort_by_key(|packet| packet.frame);
        let [stream, packets, turns, _] = log.reader().numbers();
        let settings = AnalysisSettings { packets: packets as usize, turns: turns as usize };
        *self = Self::new(log.reader().ends(), stream, settings);
        all.iter().for_each(|packet| self.push(packet));
        true
    }

    /// The analyzer, which holds the packets from now on.
    fn analyzer(&mut self) -> &mut ConnectionAnalyzer {
        if let Recorder::Few(log) = &self.0 {
            self.0 = Recorder::Many(Box::new(analyzer(log.reader())));
        }
        match &mut self.0 {
            Recorder::Many(analyzer) => analyzer,
            Recorder::Few(_) => unreachable!("it was replaced"),
        }
    }

    /// What limited it since `since`, on a path that its whole analysis has shown; `None` while its packets are few, as
    /// their analysis costs no more, or while it has no data.
    pub fn since(&self, since: Instant, path: &PathEstimate) -> Option<RecentCourse> {
        let Recorder::Many(analyzer) = &self.0 else { return None };
        let flow = analyzer.main_since(since)?;
        Some(RecentCourse {
            dir: flow.dir,
            bytes: flow.bytes,
            budget: Timeline::on(*path, &flow).budget,
            rounds: flow.rounds.len(),
            rounds_per_entry: flow.rounds_per_entry,
            is_over: analyzer.is_over(),
        })
    }

    /// Begin of the round `back` before the last one.
    pub fn begin_of_last(&self, back: usize) -> Instant {
        match &self.0 {
            Recorder::Few(_) => Instant::ZERO,
            Recorder::Many(analyzer) => analyzer.begin_of_last(back),
        }
    }

    /// The direction with more data; forward while its packets are few.
    pub fn main_dir(&self) -> Dir {
        match &self.0 {
            Recorder::Few(_) => Dir::Forward,
            Recorder::Many(analyzer) => analyzer.main_dir(),
        }
    }

    /// Stream index: see [`Analysis::stream`].
    pub fn stream(&self) -> u32 {
        match &self.0 {
            Recorder::Few(log) => {
                let [stream, ..] = log.reader().numbers();
                stream
            }
            Recorder::Many(analyzer) => analyzer.stream(),
        }
    }

    /// Packets so far, and the entries that an analysis of it walks; 0 and 0 while its packets are few.
    pub fn extent(&self) -> (u64, usize) {
        match &self.0 {
            Recorder::Few(_) => (0, 0),
            Recorder::Many(analyzer) => (analyzer.frames(), analyzer.entries()),
        }
    }

    /// Its analysis so far.
    pub fn analysis(&self) -> Analysis {
        match &self.0 {
            Recorder::Few(log) => analyzer(log.reader()).finish(),
            Recorder::Many(analyzer) => analyzer.so_far(),
        }
    }

    /// Ends the connection; `end` is the time of the capture's last packet.
    pub fn finish(self, end: Instant) -> RecordedConnection {
        let silent = end.since(self.span().map_or(end, |(_, last)| last));
        let content = match self.0 {
            Recorder::Few(log) => {
                let silent_after_ms = u32::try_from(silent.as_millis()).unwrap_or(u32::MAX);
                Recorded::Few { log: log.into_bytes(), of_filtered_capture: false, silent_after_ms }
            }
            Recorder::Many(analyzer) => {
                let analysis = Analysis { silent_after: silent, ..analyzer.finish() };
                Recorded::Many(Box::new(analysis))
            }
        };
        RecordedConnection(content)
    }
}

/// Whether both are the same packet with data, a SYN or a FIN. Bare ACKs may be equal.
fn is_same(one: &CapturedPacket, other: &CapturedPacket) -> bool {
    let (one, other) = (&one.segment, &other.segment);
    one.seq_len() > 0
        && (one.dir, one.seq, one.payload) == (other.dir, other.seq, other.payload)
        && (one.flags, one.timestamps) == (other.flags, other.timestamps)
}

/// A connection that has been read.
#[derive(Debug, Clone)]
pub struct RecordedConnection(Recorded);

#[derive(Debug, Clone)]
enum Recorded {
    Few { log: Box<[u8]>, of_filtered_capture: bool, silent_after_ms: u32 },
    Many(Box<Analysis>),
}

impl RecordedConnection {
    /// Stream index in the file: see [`Analysis::stream`].
    pub fn stream(&self) -> u32 {
        match &self.0 {
            Recorded::Few { log, .. } => {
                let [stream, ..] = PacketLogReader::new(log).numbers();
                stream
            }
            Recorded::Many(analysis) => analysis.stream,
        }
    }

    /// The client and the server: see [`Analysis::ends`].
    pub fn ends(&self) -> Endpoints {
        match &self.0 {
            Recorded::Few { log, .. } => PacketLogReader::new(log).ends(),
            Recorded::Many(analysis) => analysis.ends,
        }
    }

    /// Sets [`Analysis::of_filtered_capture`].
    pub fn set_of_filtered_capture(&mut self) {
        match &mut self.0 {
            Recorded::Few { of_filtered_capture, .. } => *of_filtered_capture = true,
            Recorded::Many(analysis) => analysis.of_filtered_capture = true,
        }
    }

    /// The analysis, computed from the packets if they are few.
    pub fn analysis(&self) -> Cow<'_, Analysis> {
        match &self.0 {
            Recorded::Many(analysis) => Cow::Borrowed(analysis),
            Recorded::Few { log, of_filtered_capture, silent_after_ms } => {
                let mut analysis = analyzer(PacketLogReader::new(log)).finish();
                analysis.of_filtered_capture = *of_filtered_capture;
                analysis.silent_after = Duration::from_millis(u64::from(*silent_after_ms));
                Cow::Owned(analysis)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use packet::{Dir, Flags};
    use units::SeqNum;

    use super::*;

    /// A request and an answer again and again: `count` packets.
    fn packets(count: u32) -> impl Iterator<Item = CapturedPacket> {
        (0..count).map(|n| {
            let dir = if n % 3 == 0 { Dir::Forward } else { Dir::Reverse };
            let segment = Segment {
                dir,
                flags: Flags::ACK,
                seq: SeqNum(n * 900),
                ack: SeqNum(n * 800),
                payload: 700 + n,
                window: 500,
                ..Segment::default()
            };
            CapturedPacket {
                at: Instant::from_nanos(u64::from(n) * 30_000_000),
                frame: u64::from(n) + 1,
                segment,
                captured: segment.wire_len().get() as u32,
                id: 0,
                ttl: 0,
                options_cut: false,
            }
        })
    }

    fn ends() -> Endpoints {
        Endpoints {
            src: SocketAddr::from(([192, 0, 2, 1], 40_000)),
            dst: SocketAddr::from(([192, 0, 2, 2], 80)),
        }
    }

    /// Few or many packets: the result is that of the analyzer.
    #[test]
    fn a_record_has_the_analysis_of_its_packets() {
        for count in [0, 1, 5, 30, 60, 500] {
            let settings = AnalysisSettings { packets: 40, turns: 50 };
            let mut record = ConnectionRecorder::new(ends(), 3, settings);
            let mut analyzer = ConnectionAnalyzer::new(ends(), 3, settings);
            packets(count).for_each(|packet| {
                record.push(&packet);
                analyzer.push(&packet);
            });
            assert_eq!((record.ends(), record.span()), (ends(), analyzer.span()));
            let end = analyzer.span().map_or(Instant::ZERO, |(_, last)| last);
            let (record, analysis) = (record.finish(end), analyzer.finish());
            assert_eq!(record.stream(), 3);
            assert_eq!(format!("{:?}", record.analysis()), format!("{analysis:?}"), "{count}");
        }
    }

    /// The goal for a connection with data is a kilobyte: most bytes of its packets, and those of
    /// the table of connections.
    #[test]
    fn few_packets_take_less_than_a_kilobyte() {
        let mut record = ConnectionRecorder::new(ends(), 0, AnalysisSettings::default());
        packets(1_000).for_each(|packet| {
            record.push(&packet);
            if let Recorder::Few(log) = &record.0 {
                assert!(log.len() < MAX_LOG + 128);
            }
        });
        assert!(matches!(record.0, Recorder::Many(_)));
        assert!(size_of::<ConnectionRecorder>() <= 64);
    }
}
