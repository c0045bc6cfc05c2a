//! `ackclock schema`: JSON schemas of what commands print with `--json`.

use std::process::ExitCode;

use crate::cli::SchemaArgs;
use crate::failure::Failure;
use crate::output::print;

/// Commands with their schemas.
const SCHEMAS: [(&str, &str); 10] = [
    ("diagnose", include_str!("../schemas/diagnose.json")),
    ("kernel-list", include_str!("../schemas/kernel-list.json")),
    ("packetdrill", include_str!("../schemas/packetdrill.json")),
    ("read", include_str!("../schemas/read.json")),
    ("run", include_str!("../schemas/run.json")),
    ("scenario-check", include_str!("../schemas/scenario-check.json")),
    ("sweep", include_str!("../schemas/sweep.json")),
    ("table", include_str!("../schemas/table.json")),
    ("theory", include_str!("../schemas/theory.json")),
    ("whatif", include_str!("../schemas/whatif.json")),
];

pub(super) fn run(args: &SchemaArgs) -> Result<ExitCode, Failure> {
    let names = SCHEMAS.map(|(name, _)| name);
    let text = match &args.command {
        None => names.join("\n") + "\n",
        Some(command) => {
            let found = SCHEMAS.iter().find(|(name, _)| name == command);
            let unknown = || {
                let failure = Failure::new(format!("no schema for `{command}`"));
                failure.hint(format!("there are schemas for {}", names.join(", ")))
            };
            found.ok_or_else(unknown)?.1.to_owned()
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn schemas_are_json_with_the_title_of_their_command() {
        for (name, text) in SCHEMAS {
            let schema: Value = serde_json::from_str(text).unwrap();
            let title = format!("ackclock {} --json", name.replace('-', " "));
            assert_eq!(schema["title"], title, "{name}");
        }
    }
}
