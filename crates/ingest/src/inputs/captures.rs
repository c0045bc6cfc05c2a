//! Sorts the frames of a capture into connections.

use std::io::Read;

use diagnose::CapturedPacket;
use packet::Segment;
use packet::wire::{
    Endpoints, Link, ParsedPacket, WireError, WireProblem, fragment, icmp_error, parse_cut,
    udp_datagram,
};
use trace::capture::{CaptureItem, CaptureReader, CapturedFrame, OpenError};
use units::{Duration, Instant};

use super::captured_quic::{CapturedQuicConnection, CapturedQuicTable, DatagramPosition, KeyLog};
use super::connection_key::CaptureSource;
use super::fragments::Reassembly;
use super::live::LiveReporter;
use super::table::{ConnectionTable, MAX_POINTS};
use super::{File, Reason};

pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
    table: &mut ConnectionTable,
    mut live: Option<&mut LiveReporter<'_>>,
    datagrams: &mut usize,
    keys: &KeyLog,
) -> Result<Vec<CapturedQuicConnection>, Reason> {
    let mut parts = CaptureParts::new(number, table);
    parts.quic.keep_datagrams(*datagrams);
    parts.add_keys(keys);
    parts.read(input, file, table, live.as_deref_mut())?;
    let connections = parts.finish(file, table, live);
    *datagrams -= connections.iter().map(|one| one.datagrams.len()).sum::<usize>();
    Ok(connections)
}

/// Reads the parts of a capture one after another: a packet may be fragmented over two of them.
#[derive(Debug)]
pub(super) struct CaptureParts {
    /// Number of the file.
    number: usize,
    /// Second copies of packets in the files before.
    copies: u64,
    /// Time of the last frame that has one.
    last: Option<Duration>,
    reassembly: Reassembly,
    held: TimestampFilter,
    quic: CapturedQuicTable,
}

impl CaptureParts {
    pub(super) fn new(number: usize, table: &ConnectionTable) -> Self {
        let held = TimestampFilter { number, before: None, packet: None };
        Self {
            number,
            copies: table.copies,
            last: None,
            reassembly: Reassembly::new(),
            held,
            quic: CapturedQuicTable::new(table.keeps_all_packets()),
        }
    }

    /// Adds secrets, with which packets of QUIC are decrypted.
    pub(super) fn add_keys(&mut self, keys: &KeyLog) {
        self.quic.add_keys(keys.clone());
    }

    /// Reads the next part, or the only one.
    pub(super) fn read(
        &mut self,
        input: impl Read,
        file: &mut File,
        table: &mut ConnectionTable,
        mut live: Option<&mut LiveReporter<'_>>,
    ) -> Result<(), Reason> {
        let mut reader = CaptureReader::new(input).map_err(|error| match error {
            OpenError::Read(error) => Reason::Read(error),
            error => Reason::Nothing { kind: file.kind, problem: Some(error.to_string()) },
        })?;
        if reader.may_have_secrets() {
            self.quic.expect_secrets();
        }
        // Parts of one capture are numbered through.
        let earlier = file.frames;
        loop {
            if reader.interfaces().len() > 1 {
                // Capture points of one file may have captured the same connections.
                table.record_packets();
            }
            let frame = match reader.next().map_err(Reason::Read)? {
                None => break,
                Some(CaptureItem::Problem(problem)) => {
                    file.problems.push(&problem);
                    continue;
                }
                Some(CaptureItem::Secrets(secrets)) => {
                    match KeyLog::parse_part(secrets) {
                        Ok(keys) => self.quic.add_keys(keys),
                        Err(error) => {
                            file.problems.push(&format_args!("decryption secrets: {error}"));
                        }
                    }
                    continue;
                }
                Some(CaptureItem::Frame(frame)) => frame,
            };
            self.last = frame.at.or(self.last);
            let time = self.last.unwrap_or(Duration::ZERO);
            if let Some(live) = &mut live {
                let begins = file.begins.unwrap_or(time);
                live.reach(time.saturating_sub(begins).as_nanos(), table);
            }
            let point = CaptureSource { file: self.number as u32, interface: frame.interface };
            let seen = SeenFrame { time, point, frame: earlier + frame.number };
            self.frame(&frame, seen, file, table);
        }
        file.frames += reader.tally().frames;
        file.interfaces = reader.interfaces().to_vec();
        if file.frames == 0 {
            let problem = file.problems.first.first().cloned();
            return Err(Reason::Nothing { kind: file.kind, problem });
        }
        Ok(())
    }

    fn frame(
        &mut self,
        frame: &CapturedFrame<'_>,
        seen: SeenFrame,
        file: &mut File,
        table: &mut ConnectionTable,
    ) {
        let Some(link) = frame.link() else {
            *file.others.links.entry(frame.linktype).or_default() += 1;
            return self.held.confirm(seen.time, file, table);
        };
        file.others.untimed += u64::from(frame.at.is_none());
        let original = frame.original as usize;
        match parse_cut(frame.bytes, original, link) {
            Ok(parsed) => self.held.next(Some(seen.packet(&parsed, None)), file, table),
            Err(error) if error.problem == WireProblem::Fragment => {
                self.held.confirm(seen.time, file, table);
                let Some(part) = fragment(frame.bytes, original, link) else {
                    file.others.fragments += 1;
                    return;
                };
                let seen_at = (seen.time, seen.frame);
                let Some(whole) = self.reassembly.add(frame.interface, seen_at, &part) else {
                    return;
                };
                match parse_cut(&whole.bytes, whole.len, Link::Raw) {
                    Ok(parsed) => {
                        let packet = seen.packet(&parsed, Some(whole.cut));
                        self.held.next(Some(packet), file, table);
                    }
                    Err(error) => {
                        self.other(&error, (&whole.bytes, whole.len), Link::Raw, seen, file);
                    }
                }
            }
            Err(error) => {
                self.other(&error, (frame.bytes, original), link, seen, file);
                self.held.confirm(seen.time, file, table);
                if let Some(icmp) = icmp_error(frame.bytes, original, link) {
                    // The packet that it is about comes first.
                    self.held.next(None, file, table);
                    let at = seen.time.saturating_sub(file.begins.unwrap_or(seen.time));
                    table.icmp(seen.point, (at.as_nanos(), seen.frame), &icmp);
                }
            }
        }
    }

    /// A packet without TCP, truncated from `bytes.1` bytes: QUIC, or one that is counted.
    fn other(
        &mut self,
        error: &WireError,
        (bytes, original): (&[u8], usize),
        link: Link,
        seen: SeenFrame,
        file: &mut File,
    ) {
        if error.problem == WireProblem::NotTcp(UDP)
            && let Some(udp) = udp_datagram(bytes, original, link)
        {
            let position =
                DatagramPosition { time: seen.time, point: seen.point, frame: seen.frame };
            if self.quic.add(position, &udp) {
                return;
            }
        }
        file.others.count(error, bytes);
    }

    /// Ends the capture after its last part; returns its connections of QUIC.
    pub(super) fn finish(
        mut self,
        file: &mut File,
        table: &mut ConnectionTable,
        live: Option<&mut LiveReporter<'_>>,
    ) -> Vec<CapturedQuicConnection> {
        if let Some(live) = live {
            live.flush(table);
        }
        self.held.next(None, file, table);
        // The header of a packet that stays incomplete shows a connection of which nothing else does.
        for (interface, since, frame, beginning) in self.reassembly.finish() {
            let point = CaptureSource { file: self.number as u32, interface };
            let seen = SeenFrame { time: self.last.unwrap_or(since), point, frame };
            if let Ok(parsed) = parse_cut(&beginning.bytes, beginning.len, Link::Raw)
                && !table.has(point, parsed.endpoints)
            {
                self.held.next(Some(seen.packet(&parsed, Some(beginning.cut))), file, table);
                self.held.next(None, file, table);
            }
        }
        let apart = core::mem::take(&mut table.apart);
        if apart > 0 {
            file.problems.push(&format_args!(
                "connections at more than {MAX_POINTS} interfaces are not joined beyond these: {apart} stay apart"
            ));
        }
        file.duplicates += table.copies - self.copies;
        file.forgotten = table.forgotten;
        file.others.fragments += self.reassembly.counts.unused;
        file.others.fragmented = self.reassembly.counts;
        file.quic = self.quic.counts;
        if let Some(others) = file.others.protocols.get_mut(&UDP) {
            *others = others.saturating_sub(file.quic.recovered);
        }
        file.others.protocols.retain(|_, count| *count > 0);
        let quic = self.quic.finish(self.number);
        let first = quic.iter().map(|one| one.analysis.interval.0).min();
        file.begins = file.begins.or(first.map(Duration::from_nanos));
        quic
    }
}

const UDP: u8 = 17;

/// A timestamp this much later than the next packet's is wrong; packets of several NIC queues are
/// out of order by less.
const WRONG: Duration = Duration::from_secs(1);

/// A last timestamp this much later than all others is wrong: there is no next packet to compare it
/// with.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Where and when a frame was captured.
#[derive(Debug, Clone, Copy)]
struct SeenFrame {
    time: Duration,
    point: CaptureSource,
    frame: u64,
}

impl SeenFrame {
    /// The packet in it; `cut`: bytes of a reassembled packet that the capture truncated.
    fn packet(self, parsed: &ParsedPacket<'_>, cut: Option<u32>) -> TimedPacket {
        let kept = parsed.payload.len() as u32;
        let cut = cut.unwrap_or_else(|| parsed.segment.payload.saturating_sub(kept));
        TimedPacket {
            time: self.time,
            point: self.point,
            between: parsed.endpoints,
            frame: self.frame,
            segment: parsed.segment,
            captured: (parsed.segment.wire_len().get() as u32).saturating_sub(cut),
            id: parsed.id,
            options_cut: parsed.options_cut,
            ttl: parsed.ttl,
        }
    }
}

/// A packet with the timestamp of the file.
#[derive(Debug, Clone, Copy)]
struct TimedPacket {
    time: Duration,
    point: CaptureSource,
    between: Endpoints,
    frame: u64,
    segment: Segment,
    captured: u32,
    id: u16,
    options_cut: bool,
    ttl: u8,
}

/// Delays each packet by one, until the next frame shows whether its timestamp can be right: a frame without
/// TCP confirms it, or leaves the question to the next packet.
///
/// Since time must not run backwards, one damaged timestamp far in the future would move all later
/// packets there. A clock that was set forward stays ahead and is accepted.
#[derive(Debug)]
struct TimestampFilter {
    /// Number of the file.
    number: usize,
    /// The time assigned to the previous packet.
    before: Option<Duration>,
    packet: Option<TimedPacket>,
}

impl TimestampFilter {
    /// Passes the delayed packet on, with its time checked against the next packet.
    fn next(&mut self, next: Option<TimedPacket>, file: &mut File, table: &mut ConnectionTable) {
        file.tcp += u64::from(next.is_some());
        file.options_cut += u64::from(next.is_some_and(|next| next.options_cut));
        let Some(taken) = core::mem::replace(&mut self.packet, next) else { return };
        let mut time = taken.time;
        if let Some(next) = next.map(|next| next.time)
            && time.saturating_sub(next) > WRONG
            && self.before.is_none_or(|before| before <= next)
        {
            // Earlier data, a later ACK: neither makes an RTT too short.
            let (taken_as, whose) = match self.before {
                Some(before) if taken.segment.payload > 0 => (before, "packet before"),
                _ => (next, "next"),
            };
            let reported = format_args!(
                "frame {}: its time is {:.1} s after that of the next packet; taken as that of the {whose}",
                taken.frame,
                time.saturating_sub(next).as_secs_f64(),
            )
            .to_string();
            file.problems.push(&reported);
            time = taken_as;
        }
        if let Some(before) = self.before.filter(|_| next.is_none())
            && time.saturating_sub(before) > YEAR
        {
            let reported = format_args!(
                "frame {}: its time is {:.1} s after that of the packet before, and it is the last; taken as \
                 that of the packet before",
                taken.frame,
                time.saturating_sub(before).as_secs_f64(),
            )
            .to_string();
            file.problems.push(&reported);
            time = before;
        }
        self.release(TimedPacket { time, ..taken }, file, table);
    }

    /// Passes the delayed packet on if a frame without TCP at `time` confirms its time.
    fn confirm(&mut self, time: Duration, file: &mut File, table: &mut ConnectionTable) {
        let is_confirmed = |held: &mut TimedPacket| held.time.saturating_sub(time) <= WRONG;
        if let Some(held) = self.packet.take_if(is_confirmed) {
            self.release(held, file, table);
        }
    }

    /// Passes a packet on, with the right time.
    fn release(&mut self, taken: TimedPacket, file: &mut File, table: &mut ConnectionTable) {
        let time = taken.time;
        self.before = Some(time);
        let begins = *file.begins.get_or_insert_with(|| {
            table.file_begins(self.number, time);
            time
        });
        let packet = CapturedPacket {
            at: Instant::from_nanos(time.saturating_sub(begins).as_nanos()),
            frame: taken.frame,
            segment: taken.segment,
            captured: taken.captured,
            id: taken.id,
            ttl: taken.ttl,
            options_cut: taken.options_cut,
        };
        table.packet(taken.point, taken.between, packet, taken.ttl);
    }
}
