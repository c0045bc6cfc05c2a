//! `curl`, `wget` and the text of speed tests.

use super::facts::{Figures, PastedSection, RetransmitCount};
use super::numbers::{binary, bps, leading, number};

/// Times of `curl -w`, and the names that scripts print for them.
const TIMES: &[(&[&str], &str)] = &[
    (&["namelookup", "dnslookup", "dns"], "name lookup"),
    (&["connect"], "connect"),
    (&["appconnect", "tls", "ssl"], "TLS"),
    (&["starttransfer", "ttfb"], "wait for the server"),
    (&["total"], "transfer"),
];

/// Reads the variables of `curl -w`: `time_connect: 0.152`, several in a line, or names without
/// `time_`.
pub(super) fn curl(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut times) = (None, Vec::new());
    for (index, line) in text.lines().enumerate() {
        for (name, value) in pairs(line) {
            let name = name.trim_matches(['"', ',', '%', '{', '}']).to_lowercase();
            if name == "speed_download" && value > 0.0 {
                figures.rate = figures.rate.or(Some(value * 8.0));
            }
            let bare = name.strip_prefix("time_").unwrap_or(&name);
            let phase = TIMES.iter().find(|(names, _)| names.contains(&bare));
            if let Some(&(_, phase)) = phase {
                times.push((index + 1, name.starts_with("time_"), phase, value * 1e3));
            }
        }
    }
    // Names such as `total` alone are words of many tools.
    let is_named = |time: &(usize, bool, &str, f64)| time.1;
    if times.len() < 2 && !times.iter().any(is_named) {
        return None;
    }
    if !times.iter().any(is_named) && !times.iter().any(|time| time.2 == "connect") {
        return None;
    }
    let mut facts = Vec::new();
    let mut before = 0.0;
    for (line, _, phase, at) in times {
        first.get_or_insert(line);
        if at > 0.0 {
            let lasts = f64::max(at - before, 0.0);
            facts.push(format!("{phase}: {lasts:.1} ms"));
            figures.phases.push((phase, lasts));
            before = at;
        }
    }
    // A connect is a round trip.
    let connect = figures.phases.iter().find(|(phase, _)| *phase == "connect");
    if let Some(&(_, ms)) = connect {
        figures.rtt = figures.rtt.or(Some((ms, ms)));
    }
    Some(PastedSection { kind: "curl -w", line: first?, facts })
}

/// Splits `connect: 0.152 appconnect=0.310s` into names and seconds.
fn pairs(line: &str) -> Vec<(&str, f64)> {
    let mut found = Vec::new();
    let words: Vec<&str> = line.split_whitespace().collect();
    for (index, word) in words.iter().enumerate() {
        let Some((name, value)) = word.split_once([':', '=']) else {
            // `time_connect : 0.1`
            if let (Some(&(":" | "=")), Some(value)) = (words.get(index + 1), words.get(index + 2))
            {
                found.extend(seconds(value).map(|value| (*word, value)));
            }
            continue;
        };
        let value = if value.is_empty() {
            words.get(index + 1).copied().unwrap_or_default()
        } else {
            value
        };
        if !name.is_empty() {
            found.extend(seconds(value).map(|value| (name, value)));
        }
    }
    found
}

fn seconds(text: &str) -> Option<f64> {
    let text = text.trim_matches(['"', ',']);
    number(text.trim_end_matches('s'))
}

/// Reads the progress meter of curl: the average speed of the last line.
pub(super) fn curl_progress(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let start =
        text.lines().position(|line| line.contains("% Total") && line.contains("% Xferd"))?;
    let rows = text.lines().skip(start + 1).take_while(|line| !line.contains("% Total"));
    let mut last = None;
    for line in rows {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [percent, _, _, _, _, _, down, up, _, spent, _, _] = words[..]
            && number(percent).is_some()
        {
            last = binary(down)
                .zip(binary(up))
                .map(|(down, up)| (down.max(up) * 8.0, clock(spent), up > down));
        }
    }
    let (rate, spent, is_upload) = last?;
    figures.rate = figures.rate.or(Some(rate).filter(|rate| *rate > 0.0));
    figures.seconds = figures.seconds.or(spent);
    let direction = if is_upload { "upload" } else { "download" };
    let time = spent.map_or_else(String::new, |spent| format!(" in {spent} s"));
    let facts = vec![format!("{direction} {:.2} Mbit/s{time}", rate / 1e6)];
    Some(PastedSection { kind: "curl", line: start + 1, facts })
}

/// Parses `0:04:08`.
fn clock(text: &str) -> Option<f64> {
    text.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + number(part)?))
}

/// Reads `(1.21 MB/s) - ‘file’ saved [702545920/702545920]` of wget.
pub(super) fn wget(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let found = text.lines().enumerate().find_map(|(index, line)| {
        let (_, rest) = line.split_once('(')?;
        let (speed, rest) = rest.split_once(')')?;
        let (_, size) = rest.rsplit_once('[')?;
        let size = number(size.trim_end().strip_suffix(']')?.split('/').next()?)?;
        let (value, unit) = leading(speed)?;
        let (scale, each) = match unit.trim() {
            "B/s" => (1.0, 8.0),
            "KB/s" => (1_024.0, 8.0),
            "MB/s" => (1_048_576.0, 8.0),
            "GB/s" => (1_073_741_824.0, 8.0),
            // `--report-speed=bits`
            "Kb/s" => (1e3, 1.0),
            "Mb/s" => (1e6, 1.0),
            "Gb/s" => (1e9, 1.0),
            _ => return None,
        };
        Some((index + 1, value * scale * each, size))
    });
    let (line, rate, size) = found?;
    figures.rate = figures.rate.or(Some(rate));
    figures.bytes = figures.bytes.or(Some(size));
    let facts = vec![format!("download of {:.2} MB at {:.2} Mbit/s", size / 1e6, rate / 1e6)];
    Some(PastedSection { kind: "wget", line, facts })
}

/// Reads the text of the speed tests of Ookla and of speedtest-cli.
pub(super) fn speed_test(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    let (mut direction, mut idle_ms) = ("", None);
    let (mut early, mut again) = (None, None);
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let words: Vec<&str> = trimmed.split_whitespace().collect();
        let rate = match words[..] {
            [_, value, unit, ..] => bps(&format!("{value}{unit}")).or_else(|| {
                bps(&format!("{value}{}", unit.strip_suffix("bit/s")?.to_owned() + "bps"))
            }),
            _ => None,
        };
        let ms = |at: usize| {
            words
                .get(at)
                .and_then(|value| number(value))
                .filter(|_| words.get(at + 1) == Some(&"ms"))
        };
        if let Some(rate) = rate
            && let Some(name @ ("download" | "upload")) =
                words[0].strip_suffix(':').map(str::to_lowercase).as_deref()
        {
            first.get_or_insert(index + 1);
            direction = if name == "download" { "download" } else { "upload" };
            // The download is judged, as by the JSON of the same tool.
            figures.rate = figures.rate.or(Some(rate));
            facts.push(format!("{direction} {:.2} Mbit/s", rate / 1e6));
        } else if let Some(idle) = ms(2).filter(|_| trimmed.starts_with("Idle Latency:")) {
            first.get_or_insert(index + 1);
            idle_ms = Some(idle);
            figures.rtt = figures.rtt.or(Some((idle, idle)));
            facts.push(format!("idle latency {idle:.1} ms"));
        } else if let Some(idle) = trimmed
            .starts_with("Hosted by")
            .then(|| words.len().checked_sub(2).and_then(ms))
            .flatten()
        {
            first.get_or_insert(index + 1);
            idle_ms = Some(idle);
            figures.rtt = figures.rtt.or(Some((idle, idle)));
            facts.push(format!("idle latency {idle:.1} ms"));
        } else if let Some(idle) =
            ms(1).filter(|_| matches!(words[0].to_lowercase().as_str(), "ping:" | "latency:"))
        {
            // speedtest-cli --simple prints it before the rates, ndt7-client beside them.
            idle_ms = Some(idle);
            early.get_or_insert((index + 1, idle));
        } else if let Some(percent) = words.get(1).and_then(|value| number(value))
            && words[0] == "Retransmission:"
        {
            let count = RetransmitCount::of("ndt7", percent);
            again = Some(RetransmitCount { sent: Some(100.0), is_percentage: true, ..count });
        } else if let Some(loaded) =
            ms(0).filter(|_| trimmed.contains("(jitter:") && !direction.is_empty())
        {
            let idle = idle_ms.unwrap_or(loaded);
            figures.add_rtt(idle, idle, loaded);
            facts.push(format!("latency during the {direction} {loaded:.1} ms"));
        } else if let Some(loss) = words.get(2).and_then(|value| number(value))
            && trimmed.starts_with("Packet Loss:")
        {
            figures.probe_loss = figures.probe_loss.or(Some(loss / 100.0));
            facts.push(format!("{loss:.1} % packet loss"));
        }
    }
    let mut line = first?;
    if let Some((at, idle)) = early {
        line = line.min(at);
        figures.rtt = figures.rtt.or(Some((idle, idle)));
        facts.push(format!("idle latency {idle:.1} ms"));
    }
    if let Some(count) = again {
        facts.push(format!("{:.2} % retransmitted", count.retransmitted));
        figures.retransmits.push(count);
    }
    Some(PastedSection { kind: "speed test", line, facts })
}
