//! `ackclock import-ini`: an ini file of OMNeT++ as a scenario.

use std::io::Write;
use std::process::ExitCode;

use import_inet::{self, ImportedScenario, Ini, SweepVariant};
use scenario::decode;

use crate::cli::ImportIniArgs;
use crate::failure::{Failure, print_error};
use crate::file_kind::expect_kind;
use crate::output::{OutFile, print};
use crate::visible::ShownPath as _;

pub(super) fn run(args: &ImportIniArgs) -> Result<ExitCode, Failure> {
    let name = args.file.shown();
    expect_kind(&args.file, "import-ini", "an ini file")?;
    let bytes = crate::input::read(&args.file)?;
    let text = decode(&bytes, &name).map_err(Failure::Scenario)?;
    let ini = import_inet::read(text, &name).map_err(Failure::Scenario)?;
    if args.list {
        print(&list(&ini)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let configs = ini.configs();
    let config = match (&args.config, configs.as_slice()) {
        (Some(config), _) => config.as_str(),
        (None, [only]) => only,
        (None, several) => {
            let message = format!("{name} has {} configurations", several.len());
            let all = several.join(", ");
            return Err(Failure::new(message).hint(format!("choose with --config: {all}")));
        }
    };
    let imported = ini.import(config, args.run, &args.profile).map_err(Failure::Scenario)?;
    match &args.output {
        Some(path) => {
            let mut out = OutFile::create(path)?;
            if out.is(&args.file) {
                let path = path.shown();
                return Err(Failure::new(format!("{path} is the ini file itself")));
            }
            let written = out.write_all(imported.toml.as_bytes());
            written.map_err(|error| Failure::file("write", path, &error))?;
            out.commit()?;
        }
        None => print(&imported.toml)?,
    }
    print_error(&left_out(&name, &imported));
    Ok(ExitCode::SUCCESS)
}

/// Reports each line of the ini file that is not in the scenario.
fn left_out(name: &str, imported: &ImportedScenario) -> String {
    let line = |one: &import_inet::UnmappedLine| {
        format!("{name}:{}:{}: not mapped: {}: {}\n", one.line, one.column, one.key, one.why)
    };
    imported.unmapped.iter().map(line).collect()
}

/// Lists all configurations with their runs.
fn list(ini: &Ini) -> Result<String, Failure> {
    let mut text = String::new();
    for config in ini.configs() {
        let variants = ini.variants(config).map_err(Failure::Scenario)?;
        text += &format!("[{config}]\n");
        text.extend(variants.iter().map(row));
    }
    Ok(text)
}

fn row(variant: &SweepVariant) -> String {
    let values: Vec<String> =
        variant.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("  run {}  {}", variant.run, values.join(", ")).trim_end().to_owned() + "\n"
}
