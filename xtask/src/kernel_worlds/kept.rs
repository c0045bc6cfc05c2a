//! Packets that kernels sent in worlds, kept in a directory so that a changed model is compared without another run.

use std::fs;
use std::path::Path;

use guest::RunError;
use guest::compare::PacketRecord;
use guest::recording::Recording;

/// FNV-1a, whose result is fixed by specification.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Takes the packets of the world `text` from the directory if they are there; else runs it, and adds them.
///
/// # Errors
/// The directory cannot be read or written.
pub(super) fn kept_or_run(
    directory: &Path,
    kernel: &str,
    text: &str,
    record: &mut PacketRecord,
    run: impl FnOnce(&mut PacketRecord) -> Result<(), RunError>,
) -> Result<Result<(), RunError>, String> {
    let file = directory.join(format!("{kernel}-{:016x}.txt", digest(text)));
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    if let Ok(known) = fs::read_to_string(&file) {
        let known = Recording::read_all(&known)?.into_iter().next();
        if let Some(known) = known.filter(|known| known.scenario.trim_end() == text.trim_end()) {
            *record = known.record;
            return Ok(Ok(()));
        }
    }
    let ran = run(record);
    if ran.is_ok() {
        fs::create_dir_all(directory).map_err(failed)?;
        let flows = text.matches("[[flow]]").count();
        let (name, scenario) = ("world".to_owned(), text.to_owned());
        let kept = core::mem::replace(record, PacketRecord::empty());
        let kept = Recording { name, kernel: kernel.to_owned(), scenario, record: kept };
        // Whole or not at all: a run may be interrupted.
        let whole = file.with_extension("part");
        fs::write(&whole, kept.to_text(flows)).map_err(failed)?;
        fs::rename(&whole, &file).map_err(failed)?;
        *record = kept.record;
    }
    Ok(ran)
}
