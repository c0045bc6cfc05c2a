//! The frames of a capture, sorted into connections.

use std::io::Read;

use diagnose::Packet;
use packet::Segment;
use packet::wire::{Endpoints, parse_cut};
use trace::capture::{Item, OpenError, Reader};
use units::{Duration, Instant};

use super::table::{Point, Table};
use super::{File, Reason};

pub(super) fn read(
    input: impl Read,
    number: usize,
    file: &mut File,
    table: &mut Table,
) -> Result<(), Reason> {
    let mut reader = Reader::new(input).map_err(|error| match error {
        OpenError::Read(error) => Reason::Read(error),
        error => Reason::Nothing { kind: file.kind, problem: Some(error.to_string()) },
    })?;
    let mut last = None;
    let mut held = Held { number, before: None, packet: None };
    loop {
        if reader.interfaces().len() > 1 {
            // Capture points of one file may have seen the same connections.
            table.lay_side_by_side();
        }
        let frame = match reader.next().map_err(Reason::Read)? {
            None => break,
            Some(Item::Problem(problem)) => {
                file.problems.tell(&problem);
                continue;
            }
            Some(Item::Frame(frame)) => frame,
        };
        let Some(link) = frame.link() else {
            *file.others.links.entry(frame.linktype).or_default() += 1;
            continue;
        };
        file.others.untimed += u64::from(frame.at.is_none());
        last = frame.at.or(last);
        match parse_cut(frame.bytes, frame.original as usize, link) {
            Err(error) => file.others.count(&error, frame.bytes),
            Ok(parsed) => {
                file.tcp += 1;
                let cut = parsed.segment.payload.saturating_sub(parsed.payload.len() as u32);
                let taken = Taken {
                    time: last.unwrap_or(Duration::ZERO),
                    point: Point { file: number as u32, interface: frame.interface },
                    between: parsed.between,
                    frame: frame.number,
                    segment: parsed.segment,
                    captured: (parsed.segment.wire_len().get() as u32).saturating_sub(cut),
                };
                held.next(Some(taken), file, table);
            }
        }
    }
    held.next(None, file, table);
    file.frames = reader.tally().frames;
    file.interfaces = reader.interfaces().to_vec();
    if file.frames == 0 {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(())
}

/// A time so much later than that of the next packet is wrong: queues of one card, which a capture
/// may have out of order, are not that far apart.
const WRONG: Duration = Duration::from_secs(1);

/// Nor does a capture end so long after all that it has seen: there is no next packet to judge its last by.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A packet as it was read.
#[derive(Debug, Clone, Copy)]
struct Taken {
    time: Duration,
    point: Point,
    between: Endpoints,
    frame: u64,
    segment: Segment,
    captured: u32,
}

/// The packet read last, held back until the next one shows whether its time can be right.
///
/// Without it one damaged stamp far in the future would move all packets behind it there, since
/// time does not run backwards. A clock that was set forward stays ahead, and is believed.
#[derive(Debug)]
struct Held {
    /// Number of the file.
    number: usize,
    /// The time taken of the packet before.
    before: Option<Duration>,
    packet: Option<Taken>,
}

impl Held {
    /// Lets go what was held, in view of what comes next.
    fn next(&mut self, next: Option<Taken>, file: &mut File, table: &mut Table) {
        let Some(taken) = core::mem::replace(&mut self.packet, next) else { return };
        let mut time = taken.time;
        if let Some(next) = next.map(|next| next.time)
            && time.saturating_sub(next) > WRONG
            && self.before.is_none_or(|before| before <= next)
        {
            // Data that left earlier, an ACK that came later: neither makes a round trip too short.
            let (taken_as, whose) = match self.before {
                Some(before) if taken.segment.payload > 0 => (before, "packet before"),
                _ => (next, "next"),
            };
            let told = format_args!(
                "frame {}: its time is {:.1} s after that of the next packet; taken as that of the {whose}",
                taken.frame,
                time.saturating_sub(next).as_secs_f64(),
            )
            .to_string();
            file.problems.tell(&told);
            time = taken_as;
        }
        if let Some(before) = self.before.filter(|_| next.is_none())
            && time.saturating_sub(before) > YEAR
        {
            let told = format_args!(
                "frame {}: its time is {:.1} s after that of the packet before, and it is the last; taken as \
                 that of the packet before",
                taken.frame,
                time.saturating_sub(before).as_secs_f64(),
            )
            .to_string();
            file.problems.tell(&told);
            time = before;
        }
        self.before = Some(time);
        let begins = *file.begins.get_or_insert_with(|| {
            table.file_begins(self.number, time);
            time
        });
        let packet = Packet {
            at: Instant::from_nanos(time.saturating_sub(begins).as_nanos()),
            frame: taken.frame,
            segment: taken.segment,
            captured: taken.captured,
        };
        table.packet(taken.point, taken.between, packet);
    }
}
