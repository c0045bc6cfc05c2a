//! The tree of a scenario file as text that people read: tables for hosts, paths and flows, a line
//! for each element of a road.

use core::fmt::Write as _;

use toml::{Table, Value};

/// What a host has a table of its own for.
const KNOBS: &str = "knobs";

/// The text of a scenario.
pub(super) fn print(root: &Table) -> String {
    let mut out = String::new();
    for (key, value) in root {
        if !is_section(value) {
            line(&mut out, key, value);
        }
    }
    for (key, value) in root {
        match value {
            Value::Table(tables) => {
                for (name, table) in tables {
                    section(&mut out, &format!("{key}.{name}"), table);
                }
            }
            Value::Array(tables) => {
                tables.iter().for_each(|table| section(&mut out, &format!("[{key}]"), table));
            }
            _ => {}
        }
    }
    out.trim_start().to_owned()
}

const fn is_section(value: &Value) -> bool {
    matches!(value, Value::Table(_) | Value::Array(_))
}

fn section(out: &mut String, header: &str, body: &Value) {
    let _ = writeln!(out, "\n[{header}]");
    let body = || body.as_table().into_iter().flatten();
    for (key, value) in body().filter(|(key, _)| *key != KNOBS) {
        match value {
            Value::Array(elements) if elements.iter().any(Value::is_table) => {
                let _ = writeln!(out, "{key} = [");
                for element in elements {
                    let _ = writeln!(out, "    {element},");
                }
                out.push_str("]\n");
            }
            _ => line(out, key, value),
        }
    }
    for (_, knobs) in body().filter(|(key, _)| *key == KNOBS) {
        let _ = writeln!(out, "\n[{header}.{KNOBS}]");
        for (name, value) in knobs.as_table().into_iter().flatten() {
            line(out, &format!("{name:?}"), value);
        }
    }
}

fn line(out: &mut String, key: &str, value: &Value) {
    let _ = writeln!(out, "{key} = {value}");
}
