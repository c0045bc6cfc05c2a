//! Imports recorded transfers: the ground truth of each, the columns of the sender's state that the
//! replay and the closed loop use, captures at both hosts, tcp_probe and ss logs, and the outcomes
//! of the packets.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use csv::{Reader, StringRecord, Writer};
use flate2::read::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use lzma_rust2::{XzOptions, XzWriter};

use super::packet_outcomes::{self, TransferOutcomes};
use super::recording::COLUMNS;

/// File with the outcomes of all data packets, beside the transfers.
const FATES: &str = "fates.csv";

/// Copies the transfers below `from` into `to`, a directory for each, and prints their names.
///
/// # Errors
/// The first file that cannot be read or written, by name.
pub(in super::super) fn import(from: &Path, to: &Path) -> Result<(), String> {
    let named = |path: &Path, error: String| format!("{}: {error}", path.display());
    let transfers = super::transfers(from).map_err(|error| named(from, error.to_string()))?;
    if transfers.is_empty() {
        return Err(named(from, "no recorded transfers".to_owned()));
    }
    let mut all_fates = Vec::new();
    for transfer in &transfers {
        let place = to.join(transfer.file_name().unwrap_or_default());
        fs::create_dir_all(&place).map_err(|error| named(&place, error.to_string()))?;
        let (truth, copy) = (transfer.join("scenario.json"), place.join("scenario.json"));
        fs::read(&truth)
            .and_then(|bytes| fs::write(&copy, bytes))
            .map_err(|error| named(&truth, error.to_string()))?;
        for flow in 0.. {
            let name = format!("kstate_f{flow}.csv.gz");
            let rows = transfer.join(&name);
            if !rows.is_file() {
                break;
            }
            narrow(&rows, &place.join(&name)).map_err(|error| named(&rows, error.to_string()))?;
        }
        for end in ["sender", "receiver"] {
            let capture = transfer.join(format!("{end}.pcap.gz"));
            pack_closer(&capture, &place.join(format!("{end}.pcap.xz")))
                .map_err(|error| named(&capture, error.to_string()))?;
        }
        for name in ["tcp_probe.csv.gz", "ss.txt.gz"] {
            let series = transfer.join(name);
            repack(&series, &place.join(name))
                .map_err(|error| named(&series, error.to_string()))?;
        }
        let of_transfer =
            packet_outcomes::count(transfer).map_err(|error| named(transfer, error.to_string()))?;
        all_fates.extend(of_transfer);
        println!("{}", place.display());
    }
    let file = to.join(FATES);
    write_fates(&file, &all_fates).map_err(|error| named(&file, error.to_string()))
}

/// Recompresses a capture with xz at the highest level.
fn pack_closer(from: &Path, to: &Path) -> io::Result<()> {
    let mut packer = XzWriter::new(File::create(to)?, XzOptions::with_preset(9))?;
    io::copy(&mut MultiGzDecoder::new(File::open(from)?), &mut packer)?;
    packer.finish()?;
    Ok(())
}

/// Recompresses without date or name, so that equal content gives equal files.
fn repack(from: &Path, to: &Path) -> io::Result<()> {
    let mut out = GzBuilder::new().write(File::create(to)?, Compression::best());
    io::copy(&mut MultiGzDecoder::new(File::open(from)?), &mut out)?;
    out.finish()?;
    Ok(())
}

fn write_fates(to: &Path, fates: &[TransferOutcomes]) -> Result<(), csv::Error> {
    let mut writer = Writer::from_path(to)?;
    fates.iter().try_for_each(|row| writer.serialize(row))?;
    Ok(writer.flush()?)
}

/// Copies the used columns, compressed without date or name, so that equal rows give equal files.
fn narrow(from: &Path, to: &Path) -> Result<(), csv::Error> {
    let mut reader = Reader::from_reader(MultiGzDecoder::new(File::open(from)?));
    let names = reader.headers()?.clone();
    let bbr = names.iter().any(|name| name == "bbr_mode");
    let of_bbr = |name: &str| name.starts_with("bbr_") || name == "rate_app_limited";
    let keeps = |name: &str| COLUMNS.contains(&name) || (bbr && of_bbr(name));
    let kept: Vec<usize> = (0..names.len()).filter(|&at| keeps(&names[at])).collect();
    let out = GzBuilder::new().write(File::create(to)?, Compression::best());
    let mut writer = Writer::from_writer(out);
    let pick = |record: &StringRecord| -> StringRecord {
        kept.iter().map(|&at| record.get(at).unwrap_or("")).collect()
    };
    writer.write_record(&pick(&names))?;
    for record in reader.records() {
        writer.write_record(&pick(&record?))?;
    }
    writer.into_inner().map_err(|error| error.into_error())?.finish()?;
    Ok(())
}
