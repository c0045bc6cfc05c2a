//! Logs beside captures: which connection a log is about, how far its clock is ahead, and what it adds.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use diagnose::StateSample;
use diagnose::socket::SocketSample;
use packet::wire::Endpoints;
use packet::{Dir, Flags};
use units::{Duration, Instant};

use super::ConnectionTable;
use crate::inputs::connection_key::{CaptureSource, ConnectionKey};
use crate::inputs::logs::{Anchor, ConnectionLog};
use crate::inputs::open_connection::NONE;

impl ConnectionTable {
    /// Connections between these addresses in files other than that of `point`.
    pub(in crate::inputs) fn in_other_files(
        &self,
        point: CaptureSource,
        between: Endpoints,
    ) -> Vec<usize> {
        let others = self.points.iter().filter(|other| other.file != point.file);
        others
            .flat_map(|&other| {
                let last = self.last.get(&ConnectionKey::of(other, between).0).copied();
                core::iter::successors(last, |&index| {
                    Some(self.live[index as usize].before).filter(|&before| before != NONE)
                })
            })
            .map(|index| index as usize)
            .collect()
    }

    /// The addresses of the connection with this port, if the captures have only one.
    pub(in crate::inputs) fn by_port(&self, port: u16) -> Option<Endpoints> {
        let mut found: Vec<Endpoints> = self
            .live
            .iter()
            .filter(|live| !live.is_merged)
            .map(|live| live.record.ends())
            .filter_map(|ends| match (ends.src.port() == port, ends.dst.port() == port) {
                (true, false) => Some(ends),
                (false, true) => Some(ends.reversed()),
                _ => None,
            })
            .collect();
        found.dedup();
        (found.len() == 1).then(|| found[0])
    }

    /// Whether the connection existed between these times (nanoseconds since the first packet).
    pub(in crate::inputs) fn overlaps(&self, index: usize, from: u64, to: u64) -> bool {
        /// Logs have records before the first packet of a connection and after its last.
        const SLACK: Duration = Duration::from_secs(1);
        let Some((first, last)) = self.live[index].record.span() else { return false };
        let (from, to) = (Instant::from_nanos(from), Instant::from_nanos(to));
        from <= last + SLACK && to + SLACK >= first
    }

    /// Nanoseconds by which the clock of a log is ahead of that of a connection's capture: the
    /// median over matching events, and their number.
    pub(in crate::inputs) fn ahead(
        &self,
        index: usize,
        between: Endpoints,
        log: &ConnectionLog,
    ) -> Option<(i64, usize)> {
        let live = &self.live[index];
        let dir = if live.record.ends().src == between.src { Dir::Forward } else { Dir::Reverse };
        let seen =
            |dir: Dir| live.extra.as_ref().map_or(&[][..], |extra| &extra.seen[dir as usize]);
        let base = if log.relative { live.isn[dir as usize]?.wrapping_add(1) } else { 0 };
        // Time of the first occurrence of each event.
        let mut first = BTreeMap::new();
        for seen in seen(dir) {
            if seen.len > 0 {
                first.entry(Anchor::Sent(seen.seq)).or_insert(seen.at);
            }
        }
        for seen in seen(dir.reversed()).iter().filter(|seen| Flags(seen.flags).has(Flags::ACK)) {
            first.entry(Anchor::Acked(seen.ack)).or_insert(seen.at);
        }
        let begins = self.begins(index);
        let mut offsets = Vec::new();
        for &(anchor, at) in &log.anchors {
            let anchor = match anchor {
                Anchor::Sent(seq) => Anchor::Sent(seq.wrapping_add(base)),
                Anchor::Acked(ack) => Anchor::Acked(ack.wrapping_add(base)),
            };
            // The first occurrence in the log matches the first in the capture.
            if let Some(seen) = first.remove(&anchor) {
                offsets.push(at.wrapping_sub(begins.wrapping_add(seen)).cast_signed());
            }
        }
        offsets.sort_unstable();
        let median = *offsets.get(offsets.len() / 2)?;
        Some((median, offsets.len()))
    }

    /// Adds a sample of a log about host `of`, at nanoseconds since the first packet.
    pub(in crate::inputs) fn state(
        &mut self,
        index: usize,
        of: SocketAddr,
        at: u64,
        sample: StateSample,
    ) {
        let live = &mut self.live[index];
        let is_client = live.record.ends().src == of;
        let of = if is_client { Dir::Forward } else { Dir::Reverse };
        let at = Instant::from_nanos(at);
        live.record.push_state(&StateSample { at, of, ..sample });
    }

    /// Adds the first and the last account of the kernel of host `of`.
    pub(in crate::inputs) fn socket(
        &mut self,
        index: usize,
        of: SocketAddr,
        samples: [SocketSample; 2],
    ) {
        let live = &mut self.live[index];
        let of = if live.record.ends().src == of { Dir::Forward } else { Dir::Reverse };
        live.record.push_socket(of, samples);
    }
}
