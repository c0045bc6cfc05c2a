//! `suite rrul`, `rtt_fair` and `tcp_nup`: tests of flent, with flent's data file.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use flate2::Compression;
use flate2::write::GzEncoder;
use suite::{FlentRequest, FlentTest};

use super::{sender, with_knobs};
use crate::cli::FlentArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{OutFile, print};

pub(super) fn run(test: FlentTest, args: &FlentArgs) -> Result<ExitCode, Failure> {
    let request = FlentRequest {
        test,
        sender: with_knobs(sender(&args.cc)?, &args.knob)?,
        up: args.up.clone(),
        down: args.down.clone(),
        rtt_ms: args.rtt,
        buffer: args.buffer.clone(),
        queue: args.queue.clone(),
        length_s: args.length,
        streams: args.streams,
        seed: args.seed,
    };
    if args.scenario {
        print(&request.scenario())?;
        return Ok(ExitCode::SUCCESS);
    }
    let out = args.out.as_deref().map(OutFile::create).transpose()?;
    let result = request.run(interrupt::orderly());
    if interrupt::is_raised() {
        return Ok(interrupt::status());
    }
    let result = result.map_err(|error| Failure::new(error.to_string()))?;
    if let (Some(out), Some(path)) = (out, &args.out) {
        write(out, path, &result.to_json())?;
    }
    print(&result.to_text())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the data file, packed if its name ends so.
fn write(mut out: OutFile, path: &Path, text: &str) -> Result<(), Failure> {
    let failure = |error: std::io::Error| Failure::file("write", path, &error);
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz")) {
        let mut packer = GzEncoder::new(out, Compression::default());
        packer.write_all(text.as_bytes()).map_err(failure)?;
        out = packer.finish().map_err(failure)?;
    } else {
        out.write_all(text.as_bytes()).map_err(failure)?;
    }
    out.commit()
}
