//! `ackclock schema`: JSON schemas of what commands print with `--json`.

use std::process::ExitCode;

use crate::cli::SchemaArgs;
use crate::failure::Failure;
use crate::output::print;

/// Commands with their schemas.
const SCHEMAS: [(&str, &str); 24] = [
    ("compare", include_str!("../schemas/compare.json")),
    ("diagnose", include_str!("../schemas/diagnose.json")),
    ("diagnose-every", include_str!("../schemas/diagnose-every.json")),
    ("diagnose-pasted", include_str!("../schemas/diagnose-pasted.json")),
    ("hunt", include_str!("../schemas/hunt.json")),
    ("interop", include_str!("../schemas/interop.json")),
    ("kernel-check", include_str!("../schemas/kernel-check.json")),
    ("kernel-list", include_str!("../schemas/kernel-list.json")),
    ("packetdrill", include_str!("../schemas/packetdrill.json")),
    ("read", include_str!("../schemas/read.json")),
    ("reproduce", include_str!("../schemas/reproduce.json")),
    ("run", include_str!("../schemas/run.json")),
    ("scenario-check", include_str!("../schemas/scenario-check.json")),
    ("scenario-new", include_str!("../schemas/scenario-new.json")),
    ("scenario-profiles", include_str!("../schemas/scenario-profiles.json")),
    ("suite", include_str!("../schemas/suite.json")),
    ("suite-bbr", include_str!("../schemas/suite-bbr.json")),
    ("sweep", include_str!("../schemas/sweep.json")),
    ("table", include_str!("../schemas/table.json")),
    ("theory", include_str!("../schemas/theory.json")),
    ("theory-bbr", include_str!("../schemas/theory-bbr.json")),
    ("watch", include_str!("../schemas/watch.json")),
    ("whatif", include_str!("../schemas/whatif.json")),
    ("wire", include_str!("../schemas/wire.json")),
];

pub(super) fn run(args: &SchemaArgs) -> Result<ExitCode, Failure> {
    let names = SCHEMAS.map(|(name, _)| name);
    if args.command.is_empty() {
        print(&(names.join("\n") + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = schema_of(&args.command.join("-")).ok_or_else(|| {
        let failure = Failure::new(format!("no schema for `{}`", args.command.join(" ")));
        failure.hint(format!("there are schemas for {}", names.join(", ")))
    })?;
    print(found)?;
    Ok(ExitCode::SUCCESS)
}

/// The schema of a command, whose words are joined by hyphens: its own, or that of the commands it
/// is one of (`wire-send`: `wire`). `diagnose-every` is `diagnose --every`, `diagnose-pasted` of pasted text.
fn schema_of(command: &str) -> Option<&'static str> {
    let is_of = |name| {
        command.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let of = SCHEMAS.iter().filter(|(name, _)| is_of(name));
    of.max_by_key(|(name, _)| name.len()).map(|(_, schema)| *schema)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory};
    use serde_json::Value;

    use super::*;
    use crate::cli::Cli;

    /// Adds the commands below this one that have `--json`, their words joined by hyphens.
    fn with_json(command: &Command, name: &str, found: &mut BTreeSet<String>) {
        for sub in command.get_subcommands() {
            let name =
                format!("{name}{}{}", if name.is_empty() { "" } else { "-" }, sub.get_name());
            if sub.get_arguments().any(|argument| argument.get_long() == Some("json")) {
                found.insert(name.clone());
            }
            with_json(sub, &name, found);
        }
    }

    #[test]
    fn every_command_with_json_has_a_schema() {
        let mut commands = BTreeSet::new();
        with_json(&Cli::command(), "", &mut commands);
        assert!(commands.len() > 15, "{commands:?}");
        for command in &commands {
            assert!(schema_of(command).is_some(), "{command} --json has no schema");
        }
        // `diagnose --every` prints other documents, and so does `diagnose` of pasted text.
        commands.extend(["diagnose-every".into(), "diagnose-pasted".into()]);
        // No schema is of a command that does not exist.
        for (name, schema) in SCHEMAS {
            let mut names = commands.iter().filter_map(|command| schema_of(command));
            assert!(names.any(|found| found == schema), "no command prints `{name}`");
        }
        assert_eq!(schema_of("wires"), None);
        assert_eq!(schema_of("kernel"), None);
    }

    #[test]
    fn schemas_are_json_with_the_title_of_their_command() {
        for (name, text) in SCHEMAS {
            let schema: Value = serde_json::from_str(text).unwrap();
            let title = match name {
                "diagnose-every" => "ackclock diagnose --every --json".to_owned(),
                "diagnose-pasted" => "ackclock diagnose --json, of pasted text".to_owned(),
                _ => format!("ackclock {} --json", name.replace('-', " ")),
            };
            assert_eq!(schema["title"], title, "{name}");
        }
    }

    /// Appends the path of each field below this schema that has no description.
    fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
        let Some(members) = schema.as_object() else { return };
        for (name, member) in members {
            match name.as_str() {
                "properties" | "$defs" => {
                    for (field, of) in member.as_object().into_iter().flatten() {
                        let path = format!("{path}.{field}");
                        let is_field = name == "properties" && of.get("$ref").is_none();
                        if is_field && of["description"].as_str().is_none_or(str::is_empty) {
                            found.push(path.clone());
                        }
                        undescribed(of, &path, found);
                    }
                }
                "items" | "additionalProperties" => undescribed(member, path, found),
                "oneOf" | "anyOf" | "allOf" => {
                    for of in member.as_array().into_iter().flatten() {
                        undescribed(of, path, found);
                    }
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_field_has_a_description() {
        for (name, text) in SCHEMAS {
            let mut found = Vec::new();
            undescribed(&serde_json::from_str(text).unwrap(), name, &mut found);
            assert!(found.is_empty(), "{found:?}");
        }
    }
}
