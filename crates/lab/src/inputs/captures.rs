//! The frames of a capture, sorted into connections.

use std::io::Read;

use diagnose::Packet;
use packet::wire::parse_cut;
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
    loop {
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
        let time = last.unwrap_or(Duration::ZERO);
        let begins = *file.begins.get_or_insert_with(|| {
            table.file_begins(number, time);
            time
        });
        match parse_cut(frame.bytes, frame.original as usize, link) {
            Err(error) => file.others.count(&error, frame.bytes),
            Ok(parsed) => {
                file.tcp += 1;
                let cut = parsed.segment.payload.saturating_sub(parsed.payload.len() as u32);
                let packet = Packet {
                    at: Instant::from_nanos(time.saturating_sub(begins).as_nanos()),
                    frame: frame.number,
                    segment: parsed.segment,
                    captured: (parsed.segment.wire_len().get() as u32).saturating_sub(cut),
                };
                let point = Point { file: number as u32, interface: frame.interface };
                table.packet(point, parsed.between, packet);
            }
        }
    }
    file.frames = reader.tally().frames;
    file.interfaces = reader.interfaces().to_vec();
    if file.frames == 0 {
        let problem = file.problems.first.first().cloned();
        return Err(Reason::Nothing { kind: file.kind, problem });
    }
    Ok(())
}
