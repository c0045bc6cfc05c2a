//! Records random worlds with kernels as hosts, for comparisons where no kernel is at hand.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use guest::compare::PacketRecord;
use guest::recording::Recording;
use lzma_rust2::{XzOptions, XzWriter};
use scenario::{Overrides, load};
use units::Instant;

use super::Comparison;
use super::drawn::{marking, with_controllers, world};
use super::linux::{Kernel, MOST_HOSTS, kernel};

/// Maximum packets of a recorded world: a file is to stay small.
const MOST_PACKETS: usize = 3_000;

/// Records the worlds from `first` on. Worlds that a kernel does not run, and those with more packets, are left out.
///
/// # Errors
/// There is no kernel, or the file cannot be written.
pub(super) fn run(comparison: Comparison<'_>, file: &Path) -> Result<(), String> {
    let Comparison { first, count, .. } = comparison;
    let kernel = kernel(comparison.kernel, comparison.profile, false)?;
    let mut text = String::new();
    let (mut recorded, mut long) = (0, 0);
    for number in first..first.saturating_add(count) {
        match record(&kernel, &comparison, number) {
            Ok(Some(transfer)) => {
                text += &transfer;
                recorded += 1;
            }
            Ok(None) => long += 1,
            Err(reason) => println!("world {number} is left out: {reason}"),
        }
    }
    let write = || -> io::Result<()> {
        let mut packer = XzWriter::new(File::create(file)?, XzOptions::with_preset(9))?;
        packer.write_all(text.as_bytes())?;
        packer.finish()?;
        Ok(())
    };
    write().map_err(|error| format!("{}: {error}", file.display()))?;
    println!("{recorded} worlds recorded, {long} of more than {MOST_PACKETS} packets left out");
    Ok(())
}

/// The text of one world; `None` if it has too many packets.
fn record(
    kernel: &Kernel,
    comparison: &Comparison<'_>,
    number: u64,
) -> Result<Option<String>, String> {
    let Comparison { seed, profile, ecn, cc, .. } = *comparison;
    let text = with_controllers(world(seed, number, profile), (seed, number), profile, cc);
    let text = if ecn { marking(&text) } else { text };
    let loaded = load(&text, "world", &Overrides::default())
        .map_err(|_| "no scenario of Linux hosts".to_owned())?;
    let mut scenario = loaded.scenario;
    if scenario.hosts.len() > MOST_HOSTS {
        return Err("too many hosts".to_owned());
    }
    let mut record = PacketRecord::new(&mut scenario, Instant::ZERO);
    kernel.run(&scenario, true, &mut record).map_err(|error| error.to_string())?;
    let flows = scenario.flows.len();
    let packets = |flow| record.packets(flow, true).len() + record.packets(flow, false).len();
    if (0..flows).map(packets).sum::<usize>() > MOST_PACKETS {
        return Ok(None);
    }
    let (name, kernel) = (format!("seed-{seed}-world-{number}"), kernel.name.clone());
    Ok(Some(Recording { name, kernel, scenario: text, record }.to_text(flows)))
}
