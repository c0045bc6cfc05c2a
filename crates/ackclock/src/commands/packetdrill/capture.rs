//! `packetdrill --pcap`: the packets of a script as a capture.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use export::capture::EPOCH;
use packet::wire::Endpoints;
use packet::{Dir, Segment};
use runner::packet_scripts::ScriptResult;
use trace::pcapng::{PacketDirection, PacketMeta, PcapngInterface, PcapngSection, PcapngWriter};
use units::{Instant, Offset};

use crate::failure::Failure;
use crate::output::OutFile;

/// Ports of the host and of the peer; a script has none.
const PORTS: (u16, u16) = (8_080, 49_152);

/// Writes the packets of runs of one script, each with the name of its interface; nothing if there are none.
pub(super) fn write(path: &Path, runs: &[(&str, &ScriptResult)]) -> Result<(), Failure> {
    if runs.iter().all(|(_, run)| run.segments.is_empty()) {
        return Ok(());
    }
    let mut out = OutFile::create(path)?;
    write_to(&mut out, runs).map_err(|error| Failure::file("write", path, &error))?;
    out.commit()
}

fn write_to(out: &mut OutFile, runs: &[(&str, &ScriptResult)]) -> io::Result<()> {
    let comment = runs.first().map_or("", |(_, run)| run.file.as_str());
    let section = PcapngSection {
        application: concat!("ackclock ", env!("CARGO_PKG_VERSION")),
        comment,
        epoch: EPOCH,
        ..PcapngSection::default()
    };
    let mut writer = PcapngWriter::new(out, &section)?;
    let mut all = Vec::new();
    for (name, run) in runs {
        let tap = writer.add_interface(&PcapngInterface { name, ..PcapngInterface::default() })?;
        all.extend(run.segments.iter().map(|seen| (tap, run.addresses, seen)));
    }
    all.sort_by_key(|(_, _, seen)| seen.at);
    for (number, (tap, (local, remote), seen)) in all.into_iter().enumerate() {
        let between = Endpoints {
            src: SocketAddr::new(local, PORTS.0),
            dst: SocketAddr::new(remote, PORTS.1),
        };
        let (between, dir, way) = match seen.outbound {
            true => (between, Dir::Forward, PacketDirection::Out),
            false => (between.reversed(), Dir::Reverse, PacketDirection::In),
        };
        let meta = PacketMeta { tap, at: Instant::ZERO + seen.at, way };
        let segment = Segment { dir, ..seen.segment };
        writer.segment(meta, &segment, &between, number as u16, Offset(0))?;
    }
    writer.finish().map(drop)
}
