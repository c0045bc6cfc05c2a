//! The scenario of a recording: as recorded, or built from its parameters.

use std::fmt::Write as _;

use serde_json::Value;

/// # Errors
/// A parameter is missing.
pub(super) fn text(parameters: &Value) -> Result<String, String> {
    match parameters["ackclock_scenario"].as_str() {
        // The recordings of 13.0 predate the profile of that version.
        Some(text) => {
            let text = with_ack_losses(parameters, text);
            match parameters["version"].as_str() {
                Some(version) if version.starts_with("FreeBSD 13.0") => {
                    Ok(text.replace("freebsd-13.2", "freebsd-13.0"))
                }
                _ => Ok(text),
            }
        }
        None => from_parameters(parameters).map_err(|name| format!("no parameter {name}")),
    }
}

/// Converts ACK losses: the recorder counts every packet of the sink except its SYN-ACK (`D A n`),
/// including those with SACK blocks, which `only = "acks"` does not count.
fn with_ack_losses(parameters: &Value, text: &str) -> String {
    let Some(lost) = parameters["ackdrops"].as_array() else { return text.to_owned() };
    let counted: Vec<u64> = lost.iter().filter_map(Value::as_u64).map(|n| n + 1).collect();
    text.lines()
        .map(|line| {
            match line.split_once("{ loss = { packets = [").filter(|_| line.starts_with("return")) {
                Some((before, rest)) => {
                    let after = rest.split_once("only = \"acks\" }").map_or("", |(_, after)| after);
                    format!("{before}{{ loss = {{ packets = {counted:?} }} }}{after}\n")
                }
                None => format!("{line}\n"),
            }
        })
        .collect()
}

/// Builds a transfer with tcp_lro.c: arrivals are queued and passed up some time after the first.
fn from_parameters(parameters: &Value) -> Result<String, &'static str> {
    let number = |name: &'static str| parameters[name].as_u64().ok_or(name);
    let profile = match parameters["tree"].as_str().ok_or("tree")? {
        tree if tree.contains("13") => "freebsd-13.0",
        tree if tree.contains("14") => "freebsd-14.3",
        _ => "freebsd-main",
    };
    let cc = parameters["cc"].as_str().ok_or("cc")?;
    let mut text = format!("seed = 1\nduration = \"{}ns\"\n", number("dur")?);
    for (host, lro) in [("sender", "lro_c"), ("sink", "lro_s")] {
        let _ = write!(
            text,
            "[host.{host}]\nprofile = \"{profile}\"\ncc = \"{cc}\"\ntso = {}\n",
            number("tso")? == 1
        );
        let _ = writeln!(text, "knobs = {{ \"kern.hz\" = {} }}", number("hz")?);
        if parameters[lro].as_u64() == Some(1) {
            let held = number("lroflush_ns")?;
            // 13.0's tcp_lro.c counts the pure ACKs that it merges.
            let lro = match profile {
                "freebsd-13.0" => "{ counts_pure_acks = true, length_limit = \"65535B\" }",
                _ => "true",
            };
            let _ = write!(text, "lro = {lro}\ninterrupt_moderation = \"{held}ns\"\n");
        }
    }
    let way = |rate, buffer, delay| -> Result<String, &'static str> {
        Ok(format!(
            "[{{ link = {{ rate = \"{}bit/s\", buffer = \"{}B\" }} }}, {{ delay = \"{}ns\" }}]",
            number(rate)?,
            number(buffer)?,
            number(delay)?
        ))
    };
    let _ = write!(
        text,
        "[[path]]\nfrom = \"sender\"\nto = \"sink\"\nforward = {}\nreturn = {}\n",
        way("rate", "buf", "owdf")?,
        way("rrate", "rbuf", "owdr")?
    );
    let _ = write!(
        text,
        "[[flow]]\nname = \"f\"\nfrom = \"sender\"\nto = \"sink\"\nbulk = \"{}B\"\n[[tap]]\nhost = \"sender\"\nat = \"wire\"\n",
        number("bytes")?
    );
    Ok(text)
}
