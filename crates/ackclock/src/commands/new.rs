//! `ackclock scenario new`: a scenario file to start from.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use samples::{PREFIX, SAMPLES, Sample};
use serde_json::json;

use super::whatif;
use crate::cli::{FromArgs, NewArgs};
use crate::failure::Failure;
use crate::output::{OutFile, print};
use crate::presets;
use crate::visible::ShownPath as _;

/// What a new scenario is without `--from`.
const DEFAULT: &str = "preset:example";

pub(super) fn run(args: NewArgs) -> Result<ExitCode, Failure> {
    if args.list {
        print(&if args.json { as_json() } else { as_text() })?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(file) = args.file else {
        return Err(Failure::new("no file given").hint("name it: ackclock scenario new my.toml"));
    };
    let is_standard = file == Path::new("-");
    // Before a capture is read and fitted.
    if !is_standard && !args.force && file.exists() {
        let message = format!("{} is there already", file.shown());
        return Err(Failure::new(message).hint("--force replaces it"));
    }
    let from = args.from.unwrap_or_else(|| DEFAULT.into());
    let (text, what) = match presets::named(&from)? {
        Some(sample) => (sample.text.to_owned(), sample.title().to_owned()),
        None => {
            let from = FromArgs { file: from, flow: args.flow, keylog: args.keylog };
            (whatif::fitted_text(&from)?, format!("fitted to {}", from.file.shown()))
        }
    };
    if is_standard {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = OutFile::create(&file)?;
    out.write_all(text.as_bytes()).map_err(|error| Failure::file("write", &file, &error))?;
    out.commit()?;
    let name = file.shown();
    print(&format!("{name}: {what}; next: ackclock run {name}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn as_text() -> String {
    let line = |sample: &Sample| format!("  {PREFIX}{:<22}  {}\n", sample.name, sample.title());
    let part = |is_path: bool| -> String {
        SAMPLES.iter().filter(|sample| sample.is_path() == is_path).map(line).collect()
    };
    format!(
        "Paths, each with a transfer over it (a path of your own takes one by `preset = \"lte\"`):\n{}\n\
         Scenarios:\n{}\n\
         ackclock run preset:NAME runs one, ackclock scenario new my.toml --from preset:NAME writes it.\n",
        part(true),
        part(false)
    )
}

fn as_json() -> String {
    let entry = |sample: &Sample| json!({ "name": sample.name, "title": sample.title(), "is_path": sample.is_path() });
    format!("{:#}\n", json!({ "presets": SAMPLES.iter().map(entry).collect::<Vec<_>>() }))
}
