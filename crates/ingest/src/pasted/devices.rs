//! Counters of network devices: `ip -s link`, `ifconfig`, `netstat -i`, `ethtool -S` and `tc -s qdisc`.

use super::facts::{Figures, PastedSection};
use super::numbers::number;

/// Reads `ip -s link` and `ifconfig`.
pub(super) fn links(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    let mut device = String::new();
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbered =
            words.first().is_some_and(|word| word.trim_end_matches(':').parse::<u32>().is_ok());
        if numbered && line.contains("mtu ") {
            device = words.get(1).map_or("", |name| name.trim_end_matches(':')).to_owned();
        } else if line.contains("Link encap:") {
            device = words.first().map_or("", |name| name).to_owned();
        } else if line.contains("flags=") && line.contains("mtu ") {
            device = words.first().map_or("", |name| name.trim_end_matches(':')).to_owned();
        }
        // The line after it has the values of these names.
        let is_head = |head: &str| words.first() == Some(&head) && line.contains("errors");
        if is_head("RX:") || is_head("TX:") {
            let Some(values) = lines.get(index + 1) else { continue };
            first.get_or_insert(index + 1);
            let values: Vec<&str> = values.split_whitespace().collect();
            let direction = words[0].trim_end_matches(':');
            for (name, value) in words[1..].iter().zip(values) {
                let counted = number(value).filter(|count| *count > 0.0);
                let is_fault = matches!(
                    *name,
                    "errors" | "dropped" | "overrun" | "missed" | "carrier" | "collsns"
                );
                if let Some(count) = counted.filter(|_| is_fault) {
                    facts.push(format!("{device}: {count} {direction} {name}"));
                    figures.device_faults.push(format!("{count} {direction} {name} of {device}"));
                }
            }
        }
        // `RX packets:812 errors:0 dropped:12 overruns:0 frame:0` of old versions.
        if matches!(words.first(), Some(&"RX" | &"TX")) && line.contains(" errors:") {
            first.get_or_insert(index + 1);
            for word in &words[1..] {
                let Some((name, count)) = word.split_once(':') else { continue };
                let count = number(count).filter(|count| *count > 0.0 && name != "packets");
                if let Some(count) = count {
                    facts.push(format!("{device}: {count} {} {name}", words[0]));
                    figures.device_faults.push(format!("{count} {} {name} of {device}", words[0]));
                }
            }
        }
        // `RX errors 0  dropped 12  overruns 0  frame 0`.
        if matches!(words.first(), Some(&"RX" | &"TX")) && words.get(1) == Some(&"errors") {
            first.get_or_insert(index + 1);
            for pair in words[1..].chunks(2) {
                let count =
                    pair.get(1).and_then(|value| number(value)).filter(|count| *count > 0.0);
                if let Some(count) = count {
                    facts.push(format!("{device}: {count} {} {}", words[0], pair[0]));
                    figures
                        .device_faults
                        .push(format!("{count} {} {} of {device}", words[0], pair[0]));
                }
            }
        }
    }
    let line = first?;
    if facts.is_empty() {
        facts.push("no device counted errors or drops".to_owned());
    }
    Some(PastedSection { kind: "ip -s link", line, facts })
}

/// Reads `ethtool -S`: counters of faults above zero, all or those that `grep` left.
pub(super) fn ethtool(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    const FAULT: &[&str] =
        &["drop", "err", "miss", "discard", "fifo", "no_buf", "nobuf", "crc", "timeout", "overrun"];
    let lines: Vec<&str> = text.lines().collect();
    let heading = lines.iter().position(|line| line.trim() == "NIC statistics:");
    let command = lines.iter().position(|line| line.contains("ethtool -S"));
    let is_counter = |line: &str| {
        let (name, value) = line.trim().split_once(':')?;
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-[]".contains(&byte));
        let value = value.trim().parse::<u64>().ok().filter(|_| is_name)?;
        Some((name.to_owned(), value as f64))
    };
    // Without the heading only names of a direction are counters of a card.
    let is_of_card = |name: &str| {
        command.is_some() || ["rx_", "tx_", "port."].iter().any(|part| name.starts_with(part))
    };
    let start = heading.or_else(|| {
        lines.iter().position(|line| is_counter(line).is_some_and(|(name, _)| is_of_card(&name)))
    })?;
    let mut facts = Vec::new();
    for line in &lines[start + usize::from(heading.is_some())..] {
        let Some((name, value)) = is_counter(line) else { break };
        if value > 0.0 && FAULT.iter().any(|part| name.contains(part)) {
            facts.push(format!("{name}: {value}"));
            figures.device_faults.push(format!("{value} {name}"));
        }
    }
    if facts.is_empty() {
        facts.push("no counter of errors or drops is above zero".to_owned());
    }
    facts.truncate(12);
    Some(PastedSection { kind: "ethtool -S", line: start + 1, facts })
}

/// Reads the table of `netstat -i`, of Linux and BSD.
pub(super) fn interfaces(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    const FAULT: &[&str] = &[
        "RX-ERR", "RX-DRP", "RX-OVR", "TX-ERR", "TX-DRP", "TX-OVR", "Ierrs", "Idrop", "Oerrs",
        "Coll", "Drop",
    ];
    let is_head = |line: &&str| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("Iface" | "Name"))
            && words.next().is_some_and(|word| word.eq_ignore_ascii_case("mtu"))
    };
    let start = text.lines().position(|line| is_head(&line))?;
    let names: Vec<&str> = text.lines().nth(start)?.split_whitespace().collect();
    let mut facts = Vec::new();
    for line in text.lines().skip(start + 1) {
        let values: Vec<&str> = line.split_whitespace().collect();
        // BSD leaves cells empty, so the columns are counted from the end.
        let Some(missing) = names.len().checked_sub(values.len()) else { break };
        if values.len() < 4 {
            break;
        }
        for (index, name) in names.iter().enumerate().filter(|(_, name)| FAULT.contains(name)) {
            let value = index.checked_sub(missing).and_then(|at| number(values.get(at)?));
            if let Some(count) = value.filter(|count| *count > 0.0) {
                facts.push(format!("{}: {count} {name}", values[0]));
                figures.device_faults.push(format!("{count} {name} of {}", values[0]));
            }
        }
    }
    if facts.is_empty() {
        facts.push("no device counted errors or drops".to_owned());
    }
    Some(PastedSection { kind: "netstat -i", line: start + 1, facts })
}

/// Reads `tc -s qdisc show`: what the queues of the host dropped.
pub(super) fn qdiscs(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    let mut qdisc = None;
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["qdisc", kind, handle, rest @ ..] = &words[..]
            && handle.ends_with(':')
        {
            let device = match rest {
                ["dev", device, ..] => format!(" of {device}"),
                _ => String::new(),
            };
            qdisc = Some((index + 1, format!("{kind}{device}")));
        } else if let ["Sent", _, "bytes", sent, _, "(dropped", dropped, ..] = words[..]
            && let Some((line, name)) = qdisc.take()
            && let Some((sent, dropped)) = number(sent).zip(number(dropped))
        {
            first.get_or_insert(line);
            if dropped > 0.0 {
                let percent = 100.0 * dropped / (sent + dropped);
                let fact = format!("{dropped} by {name} ({percent:.2} %)");
                facts.push(format!("dropped: {fact}"));
                figures.queue_drops.push(fact);
            }
        }
    }
    let line = first?;
    if facts.is_empty() {
        facts.push("no qdisc dropped a packet".to_owned());
    }
    Some(PastedSection { kind: "tc -s qdisc", line, facts })
}
