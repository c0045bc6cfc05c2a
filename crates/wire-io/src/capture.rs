//! Captures in pcapng format, with the real payload bytes and valid checksums.

use std::io::{self, Write};

use packet::Segment;
use packet::wire::{Endpoints, emit_payload};
use trace::pcapng::{
    InterfaceId, PacketDirection, PacketMeta, PcapngInterface, PcapngSection, PcapngWriter,
};
use units::Instant;

/// Writes packets that pass the taps of a scenario.
#[derive(Debug)]
pub struct TapCapture<W> {
    writer: PcapngWriter<W>,
    taps: Vec<InterfaceId>,
    failed: Option<io::Error>,
    packet: Vec<u8>,
}

impl<W: Write> TapCapture<W> {
    /// Creates a capture with a tap for each of these names.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: W, section: &PcapngSection<'_>, names: &[String]) -> io::Result<Self> {
        let mut writer = PcapngWriter::new(out, section)?;
        let mut taps = Vec::new();
        for name in names {
            taps.push(
                writer.add_interface(&PcapngInterface { name, ..PcapngInterface::default() })?,
            );
        }
        Ok(Self { writer, taps, failed: None, packet: Vec::new() })
    }

    /// Writes a segment with these bytes that passed tap number `tap`.
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
                let way = if outbound { PacketDirection::Out } else { PacketDirection::In };
                self.writer.packet(PacketMeta { tap, at, way }, &self.packet)
            });
        self.failed = written.err();
    }

    /// Flushes and returns the output.
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
