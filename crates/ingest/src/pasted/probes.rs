//! `ping`, `mtr`, `curl -w`, `ss -ti`, the columns of tshark, and JSON of speed tests.

use serde_json::Value;

use super::facts::{Figures, PastedSection};
use super::numbers::{bps, number};

/// Reads the summary of ping.
pub(super) fn ping(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut facts) = (None, Vec::new());
    for (index, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("PING ") {
            first.get_or_insert(index + 1);
            let host = rest.split_whitespace().next().map(str::to_owned);
            figures.peer = figures.peer.take().or(host);
        }
        if line.contains("packets transmitted") {
            first.get_or_insert(index + 1);
            let loss = line.split(',').find(|part| part.contains("packet loss"));
            let loss = loss.and_then(|part| number(part.split('%').next()?));
            if let Some(loss) = loss {
                figures.probe_loss = Some(loss / 100.0);
                facts.push(format!("{loss} % of the probes lost"));
            }
        }
        let is_summary =
            line.starts_with("rtt min/avg/max") || line.starts_with("round-trip min/avg/max");
        if let Some((_, values)) = line.split_once(" = ").filter(|_| is_summary) {
            let values: Vec<f64> = values.split(['/', ' ']).filter_map(number).collect();
            if let [min, avg, max, ..] = values[..] {
                first.get_or_insert(index + 1);
                figures.rtt = Some((min, avg));
                figures.rtt_max = Some(max);
                facts.push(format!("round-trip time {min} ms at least, {avg} mean, {max} at most"));
            }
        }
    }
    Some(PastedSection { kind: "ping", line: first?, facts })
}

/// Reads the table of `mtr --report`.
pub(super) fn mtr(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let mut hops: Vec<(String, f64, f64)> = Vec::new();
    let start = text
        .lines()
        .position(|line| line.contains("Loss%") && line.contains("Snt") && line.contains("Avg"))?;
    for line in text.lines().skip(start + 1) {
        let Some((_, rest)) = line.split_once("|--").or_else(|| line.split_once(". ")) else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| word.ends_with('%')) else { continue };
        let values: Vec<f64> = words[at..].iter().filter_map(|word| number(word)).collect();
        if let [loss, _, _, avg, ..] = values[..] {
            hops.push((words[0].to_owned(), loss, avg));
        }
    }
    let (name, loss, avg) = hops.last()?.clone();
    let mut facts = vec![format!("{} hops to {name}: {loss} % lost, {avg} ms mean", hops.len())];
    figures.probe_loss = figures.probe_loss.or(Some(loss / 100.0));
    figures.rtt = figures.rtt.or(Some((avg, avg)));
    figures.peer = figures.peer.take().or(Some(name));
    if loss > 0.0 {
        // Loss that does not last to the end is a router that answers few probes.
        let begins = hops.iter().rposition(|hop| hop.1 == 0.0).map_or(0, |at| at + 1);
        facts.push(format!("the loss begins at hop {}, {}", begins + 1, hops[begins].0));
    }
    Some(PastedSection { kind: "mtr", line: start + 1, facts })
}

/// Reads the variables of `curl -w`, one a line.
pub(super) fn curl(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    const TIMES: &[(&str, &str)] = &[
        ("time_namelookup", "name lookup"),
        ("time_connect", "connect"),
        ("time_appconnect", "TLS"),
        ("time_starttransfer", "wait for the server"),
        ("time_total", "transfer"),
    ];
    let (mut first, mut times) = (None, Vec::new());
    for (index, line) in text.lines().enumerate() {
        let Some((name, value)) = line.split_once([':', '=']) else { continue };
        let Some(value) = number(value.trim().trim_end_matches('s')) else { continue };
        let name = name.trim().trim_matches('"').trim_start_matches("%{").trim_end_matches('}');
        let Some(&(_, phase)) = TIMES.iter().find(|(one, _)| *one == name) else {
            if name == "speed_download" && value > 0.0 {
                figures.rate = figures.rate.or(Some(value * 8.0));
            }
            continue;
        };
        first.get_or_insert(index + 1);
        times.push((phase, value * 1e3));
    }
    let line = first?;
    let mut before = 0.0;
    let mut facts = Vec::new();
    for (phase, at) in times {
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
    Some(PastedSection { kind: "curl -w", line, facts })
}

/// Reads the last socket of `ss -ti` that has sent data.
pub(super) fn ss(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let is_info = |line: &&&str| line.contains(" cwnd:") && line.contains("rtt:");
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| is_info(&line))?;
    // The socket with most data.
    let value = |line: &str, name: &str| -> Option<f64> {
        let word =
            line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))?;
        number(word.split(['/', '(']).next()?.trim_end_matches("ms"))
    };
    let sent = |line: &str| value(line, "bytes_sent").or_else(|| value(line, "bytes_acked"));
    let info = lines
        .iter()
        .filter(is_info)
        .max_by(|a, b| sent(a).unwrap_or(0.0).total_cmp(&sent(b).unwrap_or(0.0)))?;
    let mut facts = Vec::new();
    let mss = value(info, "mss").unwrap_or(1_448.0);
    if let Some(rtt) = value(info, "rtt") {
        let least = value(info, "minrtt").unwrap_or(rtt);
        figures.rtt = figures.rtt.or(Some((least, rtt)));
        facts.push(format!("round-trip time {rtt} ms, {least} ms at least"));
    }
    if let Some(cwnd) = value(info, "cwnd") {
        let bytes = cwnd * mss;
        figures.cwnd = figures.cwnd.or(Some((bytes, bytes, bytes)));
        facts.push(format!("cwnd {cwnd} segments, {:.0} kB", bytes / 1e3));
    }
    let all = value(info, "data_segs_out").or_else(|| value(info, "segs_out"));
    let again =
        info.split_whitespace().find_map(|word| word.strip_prefix("retrans:")?.split_once('/'));
    if let Some(again) = again.and_then(|(_, total)| number(total)) {
        figures.retransmits = figures.retransmits.or(Some(again));
        figures.segments = figures.segments.or(all);
        facts.push(format!("{again} segments retransmitted"));
    } else if all.is_some() {
        figures.retransmits = figures.retransmits.or(Some(0.0));
        figures.segments = figures.segments.or(all);
    }
    let busy = value(info, "busy");
    let share = |name: &str| {
        value(info, name).zip(busy).map(|(ms, busy)| if busy > 0.0 { ms / busy } else { 0.0 })
    };
    if let Some(busy) = busy.filter(|busy| *busy > 0.0) {
        let (window, buffer) =
            (share("rwnd_limited").unwrap_or(0.0), share("sndbuf_limited").unwrap_or(0.0));
        figures.limited = Some((window, buffer));
        facts.push(format!(
            "of {busy} ms busy: receive window {:.0} %, send buffer {:.0} %",
            100.0 * window,
            100.0 * buffer
        ));
    }
    figures.app_limited |= info.split_whitespace().any(|word| word == "app_limited");
    let words: Vec<&str> = info.split_whitespace().collect();
    let rate = words
        .iter()
        .find_map(|word| bps(word.strip_prefix("delivery_rate")?.trim_start_matches(':')));
    let rate = rate.or_else(|| {
        let at = words.iter().position(|word| *word == "delivery_rate")?;
        bps(words.get(at + 1)?)
    });
    if let Some(rate) = rate {
        figures.rate = figures.rate.or(Some(rate));
        facts.push(format!("delivery rate {:.2} Mbit/s", rate / 1e6));
    }
    Some(PastedSection { kind: "ss", line: first + 1, facts })
}

/// Reads columns of tshark and Wireshark: `5 0.24 10.0.0.1 → 10.0.0.2 TCP 1514 [TCP Retransmission] ...`.
pub(super) fn tshark(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let (mut first, mut packets, mut again, mut duplicates) = (None, 0, 0, 0);
    let (mut zero, mut full, mut disordered, mut payload) = (0, 0, 0, 0.0);
    let (mut begin, mut end, mut opened) = (None, 0.0, None);
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "TCP" || word.starts_with("TLS"))
        else {
            continue;
        };
        let arrow = words[..at].iter().any(|word| matches!(*word, "→" | "->"));
        let frame = words[0].parse::<u64>().is_ok()
            && words.get(at + 1).is_some_and(|n| n.parse::<u32>().is_ok());
        let stamp = words.get(1).and_then(|word| number(word));
        let Some(stamp) = stamp.filter(|_| frame && (arrow || at >= 4)) else { continue };
        first.get_or_insert(index + 1);
        packets += 1;
        begin.get_or_insert(stamp);
        end = stamp;
        again += usize::from(line.contains("Retransmission]"));
        duplicates += usize::from(line.contains("[TCP Dup ACK"));
        zero +=
            usize::from(line.contains("[TCP ZeroWindow]") || line.contains("[TCP Zero Window]"));
        full += usize::from(line.contains("[TCP Window Full]"));
        disordered += usize::from(line.contains("[TCP Out-Of-Order]"));
        let len = words.iter().find_map(|word| number(word.strip_prefix("Len=")?));
        payload += len.unwrap_or(0.0);
        if line.contains("[SYN]") && !line.contains("Retransmission") {
            opened = Some(stamp);
        } else if line.contains("[SYN, ACK]")
            && let Some(syn) = opened.take()
        {
            let ms = (stamp - syn) * 1e3;
            figures.rtt = figures.rtt.or(Some((ms, ms)));
        }
    }
    let line = first?;
    let seconds = end - begin.unwrap_or(0.0);
    if seconds > 0.0 && payload > 0.0 {
        figures.rate = figures.rate.or(Some(payload * 8.0 / seconds));
        figures.seconds = figures.seconds.or(Some(seconds));
    }
    figures.zero_windows += zero + full;
    figures.retransmits = figures.retransmits.or(Some(again as f64));
    figures.segments = figures.segments.or(Some(f64::from(packets)));
    let mut facts = vec![format!("{packets} packets of TCP, {payload} bytes in {seconds:.3} s")];
    for (count, what) in [
        (again, "retransmissions"),
        (duplicates, "duplicate ACKs"),
        (disordered, "out of order"),
        (zero, "with a window of zero"),
        (full, "that fill the receive window"),
    ] {
        if count > 0 {
            facts.push(format!("{count} {what}"));
        }
    }
    Some(PastedSection { kind: "tshark", line, facts })
}

/// Reads JSON of speed tests: Ookla's, speedtest-cli's, ndt7's and M-Lab's `tcp_info`.
pub(super) fn speed_test(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let at = text.find('{')?;
    let line = text[..at].lines().count().max(1);
    let documents = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
    let mut facts = Vec::new();
    for document in documents.map_while(Result::ok) {
        let get = |path: &[&str]| {
            path.iter().try_fold(&document, |value, key| value.get(key)).and_then(Value::as_f64)
        };
        // Ookla counts bytes per second, speedtest-cli bits.
        if let Some(rate) =
            get(&["download", "bandwidth"]).map(|rate| rate * 8.0).or_else(|| get(&["download"]))
        {
            figures.rate = figures.rate.or(Some(rate));
            facts.push(format!("download {:.2} Mbit/s", rate / 1e6));
        }
        if let Some(rate) =
            get(&["upload", "bandwidth"]).map(|rate| rate * 8.0).or_else(|| get(&["upload"]))
        {
            facts.push(format!("upload {:.2} Mbit/s", rate / 1e6));
        }
        let idle = get(&["ping", "latency"]).or_else(|| get(&["ping"]));
        if let Some(ms) = idle {
            figures.rtt = figures.rtt.or(Some((ms, ms)));
            facts.push(format!("idle latency {ms:.1} ms"));
        }
        if let Some(loaded) = get(&["download", "latency", "iqm"]) {
            figures.rtt_max = figures.rtt_max.or(Some(loaded));
            facts.push(format!("latency during the download {loaded:.1} ms"));
        }
        if let Some(loss) = get(&["packetLoss"]) {
            figures.probe_loss = figures.probe_loss.or(Some(loss / 100.0));
            facts.push(format!("{loss:.1} % packet loss"));
        }
        // ndt7: the summary, or a measurement with the server's tcp_info.
        for key in ["Download", "Upload"] {
            if let Some(rate) = get(&[key, "Throughput", "Value"]).or_else(|| get(&[key, "Value"]))
            {
                figures.rate = figures.rate.or(Some(rate * 1e6));
                facts.push(format!("{key} {rate:.2} Mbit/s"));
            }
        }
        if let Some(percent) = get(&["DownloadRetrans", "Value"])
            .or_else(|| get(&["Download", "Retransmission", "Value"]))
        {
            figures.probe_loss = figures.probe_loss.or(Some(percent / 100.0));
            facts.push(format!("{percent:.2} % retransmitted"));
        }
        if let Some(ms) =
            get(&["MinRTT", "Value"]).or_else(|| get(&["Download", "Latency", "Value"]))
        {
            figures.rtt = figures.rtt.or(Some((ms, ms)));
            facts.push(format!("least round-trip time {ms:.1} ms"));
        }
        let info = |key: &str| get(&["TCPInfo", key]).or_else(|| get(&["tcp_info", key]));
        if let Some(busy) = info("BusyTime").filter(|busy| *busy > 0.0) {
            let share = |key| info(key).unwrap_or(0.0) / busy;
            let (window, buffer) = (share("RWndLimited"), share("SndBufLimited"));
            figures.limited = Some((window, buffer));
            facts.push(format!(
                "of the busy time: receive window {:.0} %, send buffer {:.0} %",
                100.0 * window,
                100.0 * buffer
            ));
        }
        if let Some((all, again)) =
            info("BytesSent").zip(info("BytesRetrans")).filter(|(all, _)| *all > 0.0)
        {
            figures.segments = figures.segments.or(Some(all / 1_448.0));
            figures.retransmits = figures.retransmits.or(Some(again / 1_448.0));
            facts.push(format!("{:.2} % of the bytes retransmitted", 100.0 * again / all));
        }
    }
    (!facts.is_empty()).then_some(PastedSection { kind: "speed test", line, facts })
}
