//! What was seen on the wire, as pcapng: the very bytes that travelled, with whole checksums.

use std::io::{self, Write};

use packet::Segment;
use packet::wire::{Endpoints, emit_payload};
use trace::pcapng::{Section, Seen, Tap, TapId, Way, Writer};
use units::Instant;

/// Writes what passes the taps of a scenario.
#[derive(Debug)]
pub struct Capture<W> {
    writer: Writer<W>,
    taps: Vec<TapId>,
    failed: Option<io::Error>,
    packet: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// A capture with a tap of each of these names.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, section: &Section<'_>, names: &[String]) -> io::Result<Self> {
        let mut writer = Writer::new(out, section)?;
        let mut taps = Vec::new();
        for name in names {
            taps.push(writer.add_tap(&Tap { name, ..Tap::default() })?);
        }
        Ok(Self { writer, taps, failed: None, packet: Vec::new() })
    }

    /// A segment with these bytes passed tap number `tap`.
    pub fn segment(
        &mut self,
        (at, tap, outbound): (Instant, usize, bool),
        segment: &Segment,
        between: &Endpoints,
        payload: &[u8],
    ) {
        let Some(&tap) = self.taps.get(tap) else { return };
        if self.failed.is_some() {
            return;
        }
        self.packet.clear();
        let written = emit_payload(segment, between, 0, payload, &mut self.packet)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
            .and_then(|()| {
                let way = if outbound { Way::Out } else { Way::In };
                self.writer.packet(Seen { tap, at, way }, &self.packet)
            });
        self.failed = written.err();
    }

    /// Flushes and gives the output back.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }
}
