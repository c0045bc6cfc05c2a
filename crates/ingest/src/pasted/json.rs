//! JSON within a text: iperf3, and the speed tests of Ookla, speedtest-cli, ndt7 and M-Lab. A document
//! that is cut is read up to its last whole value.

use serde_json::{Map, Value, json};

use super::facts::{Figures, IperfTransfer, MSS, PastedSection, RetransmitCount, WindowSamples};

/// Most beginnings of a document that are tried.
const MOST_TRIED: usize = 256;

/// A document and its first line.
struct FoundDocument {
    line: usize,
    value: Value,
}

/// Returns the documents of a text: each begins with the first `{` of a line.
fn documents(text: &str) -> Vec<FoundDocument> {
    let (mut found, mut at, mut line, mut tried) = (Vec::new(), 0, 1, 0);
    while at < text.len() && tried < MOST_TRIED {
        let rest = &text[at..];
        let end = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
        let mut next = at + end;
        if let Some(begin) = rest[..end].find('{') {
            tried += 1;
            let from = &text[at + begin..];
            let mut stream = serde_json::Deserializer::from_str(from).into_iter::<Value>();
            match stream.next() {
                Some(Ok(value)) => {
                    tried = 0;
                    next = at + begin + stream.byte_offset();
                    found.push(FoundDocument { line, value });
                }
                Some(Err(error)) => {
                    let valid = offset(from, error.line(), error.column());
                    if let Some(value) = repaired(&from[..valid]) {
                        next = next.max(at + begin + valid);
                        found.push(FoundDocument { line, value });
                    }
                }
                None => {}
            }
        }
        line += text[at..next].matches('\n').count();
        at = next;
    }
    found
}

/// Returns the offset of a position of an error: the bytes before it are valid.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let at = (before + column.saturating_sub(1)).min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Cuts a document after its last whole value, and closes it.
fn repaired(text: &str) -> Option<Value> {
    let (mut open, mut is_string, mut is_escaped) = (Vec::new(), false, false);
    let mut cut: Option<(usize, Vec<char>)> = None;
    for (at, c) in text.char_indices() {
        if is_string {
            (is_string, is_escaped) = (is_escaped || c != '"', c == '\\' && !is_escaped);
            continue;
        }
        match c {
            '"' => is_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                open.pop()?;
                cut = Some((at + 1, open.clone()));
            }
            ',' => cut = Some((at, open.clone())),
            _ => {}
        }
    }
    let (at, closing) = cut?;
    let whole: String = text[..at].chars().chain(closing.into_iter().rev()).collect();
    serde_json::from_str(&whole).ok().filter(Value::is_object)
}

/// Whether a text is JSON only.
pub fn is_json_only(text: &str) -> bool {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    stream.by_ref().all(|document| document.is_ok())
}

/// Reads all documents; tests of iperf3 are returned with their sections.
pub(super) fn read(
    text: &str,
    figures: &mut Figures,
) -> (Vec<(IperfTransfer, PastedSection)>, Option<PastedSection>) {
    let (mut transfers, mut facts, mut first) = (Vec::new(), Vec::new(), None);
    let mut streamed: Option<(usize, Map<String, Value>)> = None;
    for FoundDocument { line, value } in documents(text) {
        // `iperf3 --json-stream` prints a document for each event.
        if let (Some(event), Some(data)) = (value["event"].as_str(), value.get("data")) {
            let (_, whole) = streamed.get_or_insert_with(|| (line, Map::new()));
            match event {
                "interval" => {
                    let intervals = whole.entry("intervals").or_insert_with(|| json!([]));
                    if let Some(intervals) = intervals.as_array_mut() {
                        intervals.push(data.clone());
                    }
                }
                _ => drop(whole.insert(event.to_owned(), data.clone())),
            }
        } else if value.get("intervals").is_some() || value["end"].get("sum_sent").is_some() {
            iperf3(line, &value, &mut transfers);
        } else {
            let before = facts.len();
            speed_test(&value, figures, &mut facts);
            if facts.len() > before {
                first.get_or_insert(line);
            }
        }
    }
    if let Some((line, whole)) = streamed {
        iperf3(line, &Value::Object(whole), &mut transfers);
    }
    (transfers, first.map(|line| PastedSection { kind: "speed test", line, facts }))
}

/// Returns a number that is not negative.
fn figure(value: &Value, path: &[&str]) -> Option<f64> {
    let value = path.iter().try_fold(value, |value, key| value.get(key))?;
    value.as_f64().filter(|value| *value >= 0.0)
}

/// Reads a test of iperf3; one in both directions has two.
fn iperf3(line: usize, test: &Value, transfers: &mut Vec<(IperfTransfer, PastedSection)>) {
    let start = &test["start"];
    let connected = &start["connected"][0];
    let peer = connected["remote_host"].as_str().or(start["connecting_to"]["host"].as_str());
    let intervals: &[Value] = test["intervals"].as_array().map_or(&[], Vec::as_slice);
    let is_udp = start["test_start"]["protocol"].as_str() == Some("UDP");
    for (sent, received, sum) in [
        ("sum_sent", "sum_received", "sum"),
        ("sum_sent_bidir_reverse", "sum_received_bidir_reverse", "sum_bidir_reverse"),
    ] {
        let is_reverse = sum != "sum";
        // Of a document that is cut the last one may lack its figures.
        let is_total =
            |sum: &&Value| figure(sum, &["bytes"]).and(figure(sum, &["seconds"])).is_some();
        let sums = intervals.iter().filter_map(|interval| interval.get(sum));
        let sums: Vec<&Value> = sums.filter(is_total).collect();
        let end = &test["end"];
        let end = |key: &str, field: &str| figure(end, &[key, field]);
        if sums.is_empty() && end(sent, "bytes").is_none() && end("sum", "bytes").is_none()
            || is_reverse && sums.is_empty() && end(sent, "bytes").is_none()
        {
            continue;
        }
        let all = |field: &str| -> Option<f64> {
            let values: Vec<f64> = sums.iter().filter_map(|sum| figure(sum, &[field])).collect();
            (!values.is_empty()).then(|| values.iter().sum())
        };
        let mut of = IperfTransfer { line, is_udp, ..IperfTransfer::default() };
        of.peer = peer.map(str::to_owned);
        of.port = figure(connected, &["remote_port"]).map(|port| port as u16);
        let whole = [received, sent, sum]
            .into_iter()
            .find(|key| end(key, "bytes").is_some_and(|bytes| bytes > 0.0));
        let total = |field: &str| whole.and_then(|key| end(key, field));
        of.bytes = total("bytes").or_else(|| all("bytes"));
        of.seconds = total("seconds").or_else(|| all("seconds"));
        let mean = of.bytes.zip(of.seconds).map(|(bytes, seconds)| bytes * 8.0 / seconds.max(1e-9));
        of.rate = total("bits_per_second").or(mean);
        of.retransmits = end(sent, "retransmits").or_else(|| all("retransmits"));
        let lost = end("sum", "lost_packets").zip(end("sum", "packets"));
        of.datagrams_lost =
            lost.filter(|(_, all)| is_udp && *all > 0.0).map(|(lost, all)| lost / all);
        of.streams =
            figure(start, &["test_start", "num_streams"]).map_or(1, |count| count as usize);
        let samples: Vec<&Value> = intervals
            .iter()
            .filter_map(|interval| interval["streams"].as_array())
            .flatten()
            .filter(|stream| stream["omitted"].as_bool() != Some(true))
            .collect();
        let values = |key: &str| -> Vec<f64> {
            samples
                .iter()
                .filter_map(|stream| figure(stream, &[key]))
                .filter(|value| *value > 0.0)
                .collect()
        };
        let mut facts = Vec::new();
        if let Some(peer) = &of.peer {
            facts.push(format!("to {peer}"));
        }
        if is_reverse || figure(start, &["test_start", "reverse"]) == Some(1.0) {
            facts.push("the other host sends".to_owned());
        }
        if let Some(rate) = of.rate {
            let time = of.seconds.unwrap_or(0.0);
            let name = if of.streams == 1 { "stream" } else { "streams" };
            facts.push(format!(
                "{:.2} Mbit/s for {time:.1} s in {} {name}",
                rate / 1e6,
                of.streams
            ));
        }
        if let Some(again) = of.retransmits.filter(|_| !is_udp) {
            facts.push(format!("{again} segments retransmitted"));
        }
        if let Some(lost) = of.datagrams_lost {
            facts.push(format!("{:.2} % of the datagrams of UDP lost", 100.0 * lost));
        }
        if !is_reverse {
            of.windows = spread(&values("snd_cwnd"), &mut facts);
            // In microseconds.
            let trips = values("rtt");
            let ended = &test["end"]["streams"][0]["sender"];
            let of_end = figure(ended, &["min_rtt"]).zip(figure(ended, &["mean_rtt"]));
            let of_intervals = (!trips.is_empty()).then(|| {
                let sum: f64 = trips.iter().sum();
                (trips.iter().copied().fold(f64::MAX, f64::min), sum / trips.len() as f64)
            });
            let times = of_intervals.or(of_end.filter(|(_, mean)| *mean > 0.0));
            if let Some((least, mean)) = times.map(|(least, mean)| (least / 1e3, mean / 1e3)) {
                of.rtt = Some((least, mean));
                facts.push(format!("round-trip time {mean:.1} ms, {least:.1} ms at least"));
            }
        }
        if sums.len() > 2 {
            let is_empty = |sum: &&&Value| figure(sum, &["bytes"]) == Some(0.0);
            of.stalls = Some(sums.iter().filter(is_empty).count());
        }
        if let Some(error) = test["error"].as_str() {
            facts.push(format!("error: {error}"));
        }
        transfers.push((of, PastedSection { kind: "iperf", line, facts }));
    }
}

fn spread(sizes: &[f64], facts: &mut Vec<String>) -> Option<WindowSamples> {
    if sizes.is_empty() {
        return None;
    }
    let least = sizes.iter().copied().fold(f64::MAX, f64::min);
    let most = sizes.iter().copied().fold(0.0, f64::max);
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    facts.push(format!("cwnd {:.0} to {:.0} kB", least / 1e3, most / 1e3));
    Some(WindowSamples { least, mean, most, count: sizes.len() })
}

/// Reads a document of a speed test.
fn speed_test(document: &Value, figures: &mut Figures, facts: &mut Vec<String>) {
    let get = |path: &[&str]| figure(document, path);
    // Ookla counts bytes per second, speedtest-cli bits.
    let rate =
        |name: &str| get(&[name, "bandwidth"]).map(|rate| rate * 8.0).or_else(|| get(&[name]));
    if let Some(rate) = rate("download") {
        figures.rate = figures.rate.or(Some(rate));
        facts.push(format!("download {:.2} Mbit/s", rate / 1e6));
    }
    if let Some(rate) = rate("upload") {
        facts.push(format!("upload {:.2} Mbit/s", rate / 1e6));
    }
    let idle = get(&["ping", "latency"]).or_else(|| get(&["ping"]));
    if let Some(ms) = idle {
        figures.rtt = figures.rtt.or(Some((ms, ms)));
        facts.push(format!("idle latency {ms:.1} ms"));
    }
    for name in ["download", "upload"] {
        if let Some(loaded) = get(&[name, "latency", "iqm"]) {
            let idle = idle.unwrap_or(loaded);
            figures.add_rtt(idle, idle, loaded);
            facts.push(format!("latency during the {name} {loaded:.1} ms"));
        }
    }
    if let Some(loss) = get(&["packetLoss"]) {
        figures.probe_loss = figures.probe_loss.or(Some(loss / 100.0));
        facts.push(format!("{loss:.1} % packet loss"));
    }
    ndt7(document, figures, facts);
}

/// Reads the summary of ndt7, or a measurement with the `tcp_info` of the server, alone or as a line
/// `{"Key":"measurement","Value":{...}}`.
fn ndt7(document: &Value, figures: &mut Figures, facts: &mut Vec<String>) {
    let document = document.get("Value").filter(|value| value.is_object()).unwrap_or(document);
    let get = |path: &[&str]| figure(document, path);
    for key in ["Download", "Upload"] {
        if let Some(rate) = get(&[key, "Throughput", "Value"]).or_else(|| get(&[key, "Value"])) {
            figures.rate = figures.rate.or(Some(rate * 1e6));
            facts.push(format!("{key} {rate:.2} Mbit/s"));
        }
    }
    // Of several measurements the last one counts all bytes.
    let app = get(&["AppInfo", "NumBytes"]).zip(get(&["AppInfo", "ElapsedTime"]));
    if let Some((bytes, micros)) = app.filter(|(_, micros)| *micros > 0.0) {
        let rate = bytes * 8e6 / micros;
        figures.rate = Some(rate);
        facts.push(format!("{:.2} Mbit/s in {:.1} s", rate / 1e6, micros / 1e6));
    }
    if let Some(percent) =
        get(&["DownloadRetrans", "Value"]).or_else(|| get(&["Download", "Retransmission", "Value"]))
    {
        let count = RetransmitCount {
            sent: Some(100.0),
            is_percentage: true,
            ..RetransmitCount::of("ndt7", percent)
        };
        figures.retransmits.push(count);
        facts.push(format!("{percent:.2} % retransmitted"));
    }
    if let Some(ms) = get(&["MinRTT", "Value"]).or_else(|| get(&["Download", "Latency", "Value"])) {
        figures.rtt = figures.rtt.or(Some((ms, ms)));
        facts.push(format!("least round-trip time {ms:.1} ms"));
    }
    let info = |key: &str| get(&["TCPInfo", key]).or_else(|| get(&["tcp_info", key]));
    // In microseconds.
    if let Some((least, mean)) = info("MinRTT").zip(info("RTT")).filter(|(least, _)| *least > 0.0) {
        figures.add_rtt(least / 1e3, mean / 1e3, mean / 1e3);
        facts.push(format!("round-trip time {:.1} ms, {:.1} ms at least", mean / 1e3, least / 1e3));
    }
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
        figures.retransmits.retain(|count| count.tool != "tcp_info");
        let sent = Some(all / MSS);
        figures.retransmits.push(RetransmitCount {
            sent,
            ..RetransmitCount::of("tcp_info", (again / MSS).round())
        });
        facts.push(format!("{:.2} % of the bytes retransmitted", 100.0 * again / all));
    }
}
