//! The tools: their arguments, and the command line of each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

/// The tools.
pub(super) const NAMES: [&str; 7] =
    ["diagnose", "flow", "explain", "whatif", "run", "theory", "compare"];

/// Connections of `diagnose` without a limit, and at most.
const CONNECTIONS: [u32; 2] = [5, 50];

/// A call of a tool as a command line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolRequest {
    pub(super) arguments: Vec<OsString>,
    /// Text on standard input.
    pub(super) input: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Diagnose {
    file: String,
    limit: Option<u32>,
    #[serde(default = "yes")]
    cures: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flow {
    file: String,
    flow: u32,
    #[serde(default = "yes")]
    cures: bool,
}

/// Cures are tried by default.
const fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explain {
    code: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhatIf {
    file: String,
    flow: Option<u32>,
    #[serde(default)]
    compare: Vec<String>,
    #[serde(default)]
    set: Vec<String>,
    sender: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    file: Option<String>,
    scenario: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    seed: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Theory {
    formula: String,
    rtt: String,
    loss: String,
    mss: Option<String>,
    rate: Option<String>,
    window: Option<String>,
    run: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compare {
    file: String,
    kernel: Option<String>,
    #[serde(default)]
    set: Vec<String>,
}

impl ToolRequest {
    /// The command line of a tool; `None` if there is no such tool, an error for its client if the
    /// arguments do not fit.
    pub(super) fn of(
        name: &str,
        arguments: Json,
        folders: &[PathBuf],
        file_limit: u64,
    ) -> Option<Result<Self, String>> {
        let file = |name: &str| allowed(name, folders, file_limit);
        Some(match name {
            "diagnose" => parse(arguments).and_then(|of: Diagnose| {
                let limit = of.limit.unwrap_or(CONNECTIONS[0]).clamp(1, CONNECTIONS[1]);
                let words = words("diagnose").positional(file(&of.file)?);
                Ok(words.option("limit", &limit).cures(of.cures).json())
            }),
            "flow" => parse(arguments).and_then(|of: Flow| {
                let words = words("diagnose").positional(file(&of.file)?);
                Ok(words.option("flow", &of.flow).cures(of.cures).json())
            }),
            "explain" => parse(arguments).and_then(|of: Explain| match of.code {
                Some(code) if code.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                    Ok(words("explain").positional(code))
                }
                Some(code) => Err(format!("`{code}` is no code of a finding, such as CC201")),
                None => Ok(words("explain")),
            }),
            "whatif" => parse(arguments).and_then(|of: WhatIf| {
                let mut words = words("whatif").positional(file(&of.file)?);
                words = words.maybe("flow", of.flow).maybe("sender", of.sender);
                words = words.each("compare", &of.compare).each("set", &of.set);
                Ok(words.json())
            }),
            "run" => parse(arguments).and_then(|of: Scenario| {
                let words = match (of.file, of.scenario) {
                    (Some(name), None) => words("run").positional(file(&name)?),
                    (None, Some(text)) => {
                        Self { input: Some(text), ..words("run").positional("-") }
                    }
                    _ => return Err("give either `file` or `scenario`, the text of one".to_owned()),
                };
                Ok(words.each("set", &of.set).maybe("seed", of.seed).json())
            }),
            "theory" => parse(arguments).and_then(|of: Theory| {
                if !["mathis", "aimd", "pftk", "cubic"].contains(&of.formula.as_str()) {
                    return Err(format!(
                        "unknown formula `{}`; formulas are mathis, aimd, pftk and cubic",
                        of.formula
                    ));
                }
                let words = words("theory").positional(of.formula);
                let words = words.option("rtt", &of.rtt).option("loss", &of.loss);
                let words = words.maybe("mss", of.mss).maybe("rate", of.rate);
                Ok(words.maybe("window", of.window).maybe("run", of.run).json())
            }),
            "compare" => parse(arguments).and_then(|of: Compare| {
                let words = words("compare").positional(file(&of.file)?);
                let words = words.each("set", &of.set).positional("--model");
                let words = match of.kernel {
                    Some(name) => words.option("kernel", &name),
                    None => words.positional("--kernel"),
                };
                Ok(words.json())
            }),
            _ => return None,
        })
    }

    fn positional(mut self, word: impl Into<OsString>) -> Self {
        self.arguments.push(word.into());
        self
    }

    /// In one word, so that no value is taken for an option.
    fn option(self, name: &str, value: &impl ToString) -> Self {
        let word = format!("--{name}={}", value.to_string());
        self.positional(word)
    }

    fn maybe(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.option(name, &value),
            None => self,
        }
    }

    fn each(self, name: &str, values: &[String]) -> Self {
        values.iter().fold(self, |words, value| words.option(name, value))
    }

    fn cures(self, are_tried: bool) -> Self {
        if are_tried { self } else { self.positional("--no-cures") }
    }

    fn json(self) -> Self {
        self.positional("--json")
    }
}

fn words(command: &str) -> ToolRequest {
    ToolRequest { arguments: vec![command.into()], input: None }
}

fn parse<T: DeserializeOwned>(arguments: Json) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| error.to_string())
}

/// The canonical path of a file that may be read; relative names are those of the first folder.
fn allowed(name: &str, folders: &[PathBuf], file_limit: u64) -> Result<PathBuf, String> {
    let first = folders.first().map_or(Path::new(""), PathBuf::as_path);
    let list = || {
        let names: Vec<String> =
            folders.iter().map(|folder| folder.display().to_string()).collect();
        names.join(", ")
    };
    // What is outside of the folders and what does not exist get the same answer.
    let refused =
        || format!("cannot read {name}: no such file in the allowed folders ({})", list());
    let path = first.join(name).canonicalize().map_err(|_| refused())?;
    if !folders.iter().any(|folder| path.starts_with(folder)) {
        return Err(refused());
    }
    let metadata = path.metadata().map_err(|_| refused())?;
    if metadata.is_dir() {
        return Err(format!("{name} is a folder; name a file in it"));
    }
    if metadata.len() > file_limit {
        return Err(format!(
            "{name} has {} bytes, more than {file_limit} (--file-limit)",
            metadata.len()
        ));
    }
    Ok(path)
}

/// The descriptions of all tools.
pub(super) fn list() -> Vec<Json> {
    let file = json!({ "type": "string", "description": "path, absolute or relative to the first allowed folder" });
    let text = |what: &str| json!({ "type": "string", "description": what });
    let number = |what: &str| json!({ "type": "integer", "minimum": 0, "description": what });
    let texts =
        |what: &str| json!({ "type": "array", "items": { "type": "string" }, "description": what });
    let set =
        texts("changes of the scenario, KEY=VALUE, such as path.delay=20ms or sender.cc=cubic");
    let cures = json!({
        "type": "boolean",
        "description": "whether cures are tried in simulations of the transfers, which takes seconds [true]",
    });
    let flow = number("number of the connection: Wireshark's tcp.stream");
    vec![
        tool(
            "diagnose",
            "Find out from a capture (pcap, pcapng, tcpdump text) or a qlog why transfers are slow: for each \
             connection, worst first, the primary cause, findings with evidence, cost in seconds and cure, and in `cures` the \
             time of the transfer with each cure, simulated",
            &json!({ "file": file, "limit": number("connections at most [5]"), "cures": cures }),
            &["file"],
        ),
        tool(
            "flow",
            "Diagnose one connection of a capture in full, with the cures tried",
            &json!({ "file": file, "flow": flow, "cures": cures }),
            &["file", "flow"],
        ),
        tool(
            "explain",
            "The background of a finding's code and its cure on each system; without a code the list of all",
            &json!({ "code": text("code of a finding, such as CC201") }),
            &[],
        ),
        tool(
            "whatif",
            "Replay a captured transfer in simulation: with its own sender, with others, with other settings",
            &json!({
                "file": file,
                "flow": flow,
                "compare": texts("senders to try, PROFILE or PROFILE/CC, such as linux-6.18/bbr or freebsd-main"),
                "set": set,
                "sender": text("sender that `set` is tried with [the best fit]"),
            }),
            &["file"],
        ),
        tool(
            "run",
            "Run a scenario of TCP or QUIC transfers in virtual time: goodput, losses, recoveries of each flow",
            &json!({
                "file": file,
                "scenario": text("text of a scenario (TOML), in place of a file"),
                "set": set,
                "seed": number("seed of all random streams"),
            }),
            &[],
        ),
        tool(
            "theory",
            "Throughput of a formula at a loss rate, with its assumptions and which of them are violated",
            &json!({
                "formula": { "type": "string", "enum": ["mathis", "aimd", "pftk", "cubic"] },
                "rtt": text("round-trip time, such as 20ms"),
                "loss": text("loss rate, such as 0.1%"),
                "mss": text("payload of a segment in bytes [1448]"),
                "rate": text("link rate, such as 1Gbit/s"),
                "window": text("receive window, such as 1MiB"),
                "run": text("profile of a sender to simulate beside it, such as linux-6.18"),
            }),
            &["formula", "rtt", "loss"],
        ),
        tool(
            "compare",
            "Compare a scenario with modelled hosts and with a real Linux kernel, packet by packet (Linux only; \
             needs a kernel made by `ackclock kernel build`)",
            &json!({ "file": file, "kernel": text("name of the kernel [the first]"), "set": set }),
            &["file"],
        ),
    ]
}

fn tool(name: &str, description: &str, properties: &Json, required: &[&str]) -> Json {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_all_tools() {
        let names: Vec<Json> = list().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, NAMES);
    }

    /// Values are never taken for options.
    #[test]
    fn values_are_part_of_their_option() {
        let request = |name, arguments| ToolRequest::of(name, arguments, &[], 0).unwrap();
        let theory = json!({ "formula": "mathis", "rtt": "--help", "loss": "-" });
        assert_eq!(
            request("theory", theory).unwrap().arguments,
            ["theory", "mathis", "--rtt=--help", "--loss=-", "--json"]
        );
        assert!(request("theory", json!({ "formula": "-h", "rtt": "1s", "loss": "1%" })).is_err());
        assert!(request("explain", json!({ "code": "--help" })).is_err());
        let unknown = request("explain", json!({ "cod": "CC201" })).unwrap_err();
        assert!(unknown.contains("unknown field `cod`, expected `code`"), "{unknown}");
        assert!(ToolRequest::of("shell", json!({}), &[], 0).is_none());
    }
}
