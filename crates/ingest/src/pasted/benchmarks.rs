//! What other tests of throughput and tools that copy files print: netperf, nuttcp, flent, networkQuality,
//! scp, rsync, dd, and the progress of wget.

use super::facts::{Figures, PastedSection, RetransmitCount};
use super::numbers::{leading, number};

/// Payload of a segment, in bytes.
const MSS: f64 = super::facts::MSS;

/// Reads the table of a stream test of netperf: the last of five numbers below its head is the rate.
pub(super) fn netperf(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |line: &&str| {
        ["STREAM TEST", "MAERTS TEST", "SENDFILE TEST"].iter().any(|name| line.contains(name))
    };
    let start = lines.iter().position(is_test)?;
    let words: Vec<&str> = lines[start].split_whitespace().collect();
    let host = words.windows(2).find(|pair| pair[0] == "to").map(|pair| pair[1]);
    let unit = lines[start..].iter().find_map(|line| {
        line.split_whitespace().find_map(|word| match word {
            "10^6bits/sec" => Some(1e6),
            "10^9bits/sec" => Some(1e9),
            "KBytes/sec" => Some(8.0 * 1_024.0),
            "MBytes/sec" => Some(8.0 * 1_048_576.0),
            _ => None,
        })
    })?;
    let row: Vec<f64> = lines[start + 1..].iter().find_map(|line| {
        let values: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
        values.filter(|values| values.len() >= 5)
    })?;
    let (seconds, rate) = (row[3], row[4] * unit);
    figures.rate = figures.rate.or(Some(rate));
    figures.seconds = figures.seconds.or(Some(seconds));
    figures.peer = figures.peer.take().or(host.map(str::to_owned));
    let mut facts = vec![format!("{:.2} Mbit/s for {seconds:.1} s", rate / 1e6)];
    // The sizes of the sockets before the test: the kernel enlarges those that are not set.
    facts.push(format!("socket buffers at the start: receive {} B, send {} B", row[0], row[1]));
    Some(PastedSection { kind: "netperf", line: start + 1, facts })
}

/// Reads `106.5625 MB /  10.02 sec =   89.2311 Mbps 2 %TX 5 %RX 98 retrans 31.22 msRTT` of nuttcp: the
/// line of the longest time.
pub(super) fn nuttcp(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let mut first = None;
    let mut longest: Option<(f64, f64, f64, Vec<&str>)> = None;
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [bytes, "MB", "/", seconds, "sec", "=", rate, unit, ref rest @ ..] = words[..] else {
            continue;
        };
        let scale = match unit {
            "Kbps" => 1e3,
            "Mbps" => 1e6,
            "Gbps" => 1e9,
            _ => continue,
        };
        let values = number(bytes).zip(number(seconds)).zip(number(rate));
        let Some(((bytes, seconds), rate)) = values else { continue };
        first.get_or_insert(index + 1);
        if longest.as_ref().is_none_or(|(known, ..)| *known <= seconds) {
            longest = Some((seconds, bytes * 1_048_576.0, rate * scale, rest.to_vec()));
        }
    }
    let (seconds, bytes, rate, rest) = longest?;
    figures.rate = figures.rate.or(Some(rate));
    figures.bytes = figures.bytes.or(Some(bytes));
    figures.seconds = figures.seconds.or(Some(seconds));
    let mut facts = vec![format!("{:.2} Mbit/s for {seconds:.1} s", rate / 1e6)];
    let before = |name: &str| {
        let at = rest.iter().position(|word| *word == name)?;
        number(rest.get(at.checked_sub(1)?)?)
    };
    if let Some(again) = before("retrans") {
        let sent = Some(bytes / MSS);
        figures.retransmits.push(RetransmitCount { sent, ..RetransmitCount::of("nuttcp", again) });
        facts.push(format!("{again} segments retransmitted"));
    }
    if let Some(ms) = before("msRTT") {
        figures.rtt = figures.rtt.or(Some((ms, ms)));
        facts.push(format!("round-trip time {ms} ms"));
    }
    Some(PastedSection { kind: "nuttcp", line: first?, facts })
}

/// Reads the summary of flent: ` Ping (ms) ICMP : 145.34 150.00 ms 350` and rates in Mbits/s.
pub(super) fn flent(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let start = text.lines().position(|line| {
        line.contains("Summary of ") && line.contains(" test run") && line.contains("at ")
    })?;
    let mut facts = Vec::new();
    for line in text.lines().skip(start + 1) {
        let Some((name, values)) = line.split_once(" : ") else { continue };
        let (name, words) = (name.trim(), values.split_whitespace().collect::<Vec<_>>());
        let Some(mean) = words.first().and_then(|word| number(word)) else { continue };
        let is = |unit: &str| words.contains(&unit);
        if name.starts_with("Ping") && is("ms") {
            figures.rtt = figures.rtt.or(Some((mean, mean)));
            facts.push(format!("{name}: {mean} ms mean, during the load"));
        } else if is("Mbits/s") {
            let is_sum = name.ends_with("sum") || name.ends_with("totals");
            if is_sum {
                figures.rate = figures.rate.or(Some(mean * 1e6));
            }
            facts.push(format!("{name}: {mean:.2} Mbit/s"));
        }
    }
    (!facts.is_empty()).then_some(PastedSection { kind: "flent", line: start + 1, facts })
}

/// Reads the summary of networkQuality of macOS.
pub(super) fn network_quality(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts, mut idle, mut loaded) = (None, Vec::new(), None, None);
    for (index, line) in text.lines().enumerate() {
        let Some((name, value)) = line.trim().split_once(':') else { continue };
        let words: Vec<&str> = value.split_whitespace().collect();
        let before = |unit: &str| {
            let at = words.iter().position(|word| word.trim_matches(['(', ')']) == unit)?;
            number(words.get(at.checked_sub(1)?)?.trim_start_matches('('))
        };
        let lower = name.to_lowercase();
        let direction = match lower.as_str() {
            "uplink capacity" | "upload capacity" => "upload",
            "downlink capacity" | "download capacity" => "download",
            _ => "",
        };
        if let Some(rate) = before("Mbps").filter(|_| !direction.is_empty()) {
            first.get_or_insert(index + 1);
            if direction == "download" || figures.rate.is_none() {
                figures.rate = Some(rate * 1e6);
            }
            facts.push(format!("{direction} {rate:.2} Mbit/s"));
        } else if let Some(ms) = before("milliseconds").filter(|_| lower == "idle latency") {
            idle = Some(ms);
            facts.push(format!("idle latency {ms:.1} ms"));
        } else if let Some(rpm) =
            before("RPM").filter(|rpm| *rpm > 0.0 && lower.ends_with("responsiveness"))
        {
            // Round trips a minute under load.
            let ms = 60e3 / rpm;
            loaded = Some(loaded.map_or(ms, |known: f64| known.max(ms)));
            facts.push(format!("{rpm} round trips a minute under load, {ms:.0} ms each"));
        }
    }
    if let Some((idle, loaded)) = idle.zip(loaded) {
        figures.add_rtt(idle, idle, loaded);
    }
    Some(PastedSection { kind: "networkQuality", line: first?, facts })
}

/// Reads the rates that scp, rsync, dd, pv and the progress bar of wget print: the last one.
pub(super) fn copies(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let mut found: Option<(usize, &str, f64)> = None;
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((tool, rate)) = copied(line, &words) else { continue };
        let begin = found.map_or(index + 1, |(begin, ..)| begin);
        found = Some((begin, tool, rate));
    }
    let (line, tool, rate) = found?;
    figures.rate = figures.rate.or(Some(rate));
    let facts = vec![format!("{tool}: {:.2} Mbit/s", rate / 1e6)];
    Some(PastedSection { kind: "copy", line, facts })
}

/// Returns the tool and the rate of a line of progress, in bit/s.
fn copied(line: &str, words: &[&str]) -> Option<(&'static str, f64)> {
    // `104857600 bytes (105 MB, 100 MiB) copied, 45.1 s, 2.3 MB/s`
    if line.contains(" copied, ") {
        let [.., value, unit] = words else { return None };
        return Some(("dd", number(value)? * unit_of(unit, 1e3)?));
    }
    // `sent 268,500,000 bytes  received 35 bytes  1,073,741.82 bytes/sec`
    if let ["sent", _, "bytes", "received", _, "bytes", rate, "bytes/sec"] = words {
        return Some(("rsync", number(rate)? * 8.0));
    }
    // `big.img 23% 240MB 1.1MB/s 12:05 ETA`, `268,435,456  25%    1.10MB/s    0:12:05`,
    // `file.iso 12%[=>  ] 128.00M   340KB/s    eta 45m`
    let percent = words.iter().position(|word| {
        let digits = word.split('%').next().unwrap_or_default();
        word.contains('%') && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    })?;
    let rate = words[percent..].iter().find_map(|word| {
        let (value, unit) = leading(word)?;
        Some(value * unit_of(unit, 1_024.0)?)
    })?;
    let tool = match () {
        () if line.contains("%[") => "wget",
        () if percent == 1 && number(words[0]).is_some() => "rsync",
        () => "scp",
    };
    Some((tool, rate))
}

/// Returns the bit/s of a unit such as `MB/s`.
fn unit_of(unit: &str, thousand: f64) -> Option<f64> {
    let scale = match unit {
        "B/s" => 1.0,
        "kB/s" | "KB/s" => thousand,
        "KiB/s" => 1_024.0,
        "MB/s" => thousand * thousand,
        "MiB/s" => 1_048_576.0,
        "GB/s" => thousand * thousand * thousand,
        "GiB/s" => 1_073_741_824.0,
        _ => return None,
    };
    Some(scale * 8.0)
}
