//! `ss -ti`.

use super::facts::{Figures, MSS, PastedSection, RetransmitCount, WindowSamples};
use super::numbers::{bps, number};

/// Values of a socket.
struct SocketInfo<'t> {
    words: Vec<&'t str>,
}

impl SocketInfo<'_> {
    /// Returns the number of `name:12/3` or `name:12ms(4%)`.
    fn value(&self, name: &str) -> Option<f64> {
        let value =
            self.words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))?;
        number(value.split(['/', '(']).next()?.trim_end_matches("ms"))
    }

    fn sent(&self) -> f64 {
        let bytes = ["bytes_sent", "bytes_acked", "data_segs_out", "segs_out"];
        let known = bytes.iter().find_map(|name| self.value(name));
        // Old versions count none of these.
        known.or_else(|| self.value("unacked")).unwrap_or(0.0)
    }
}

/// Reads the socket of `ss -ti` that has sent most.
pub(super) fn ss(text: &str, figures: &mut Figures) -> Option<PastedSection> {
    let infos = text.lines().enumerate().filter(|(_, line)| {
        (line.contains(" cwnd:") || line.trim_start().starts_with("cwnd:")) && line.contains("rtt:")
    });
    let infos: Vec<(usize, SocketInfo<'_>)> = infos
        .map(|(index, line)| (index, SocketInfo { words: line.split_whitespace().collect() }))
        .collect();
    let first = infos.first()?.0;
    let (_, info) = infos.iter().max_by(|a, b| a.1.sent().total_cmp(&b.1.sent()))?;
    let mut facts = Vec::new();
    let mss = info.value("mss").unwrap_or(MSS);
    if let Some(rtt) = info.value("rtt") {
        let least = info.value("minrtt").unwrap_or(rtt);
        figures.add_rtt(least, rtt, rtt);
        facts.push(format!("round-trip time {rtt} ms, {least} ms at least"));
    }
    if let Some(cwnd) = info.value("cwnd") {
        let bytes = cwnd * mss;
        let one = WindowSamples { least: bytes, mean: bytes, most: bytes, count: 1 };
        figures.cwnd = figures.cwnd.or(Some(one));
        facts.push(format!("cwnd {cwnd} segments, {:.0} kB", bytes / 1e3));
    }
    let sent = info.value("data_segs_out").or_else(|| info.value("segs_out"));
    let total = info
        .words
        .iter()
        .find_map(|word| number(word.strip_prefix("retrans:")?.split_once('/')?.1));
    if let Some(retransmitted) = total.or(sent.map(|_| 0.0)) {
        figures
            .retransmits
            .push(RetransmitCount { sent, ..RetransmitCount::of("ss", retransmitted) });
        if total.is_some() {
            facts.push(format!("{retransmitted} segments retransmitted"));
        }
    }
    if let Some(busy) = info.value("busy").filter(|busy| *busy > 0.0) {
        let share = |name| info.value(name).unwrap_or(0.0) / busy;
        let (window, buffer) = (share("rwnd_limited"), share("sndbuf_limited"));
        figures.limited = Some((window, buffer));
        facts.push(format!(
            "of {busy} ms busy: receive window {:.0} %, send buffer {:.0} %",
            100.0 * window,
            100.0 * buffer
        ));
    }
    figures.app_limited |= info.words.contains(&"app_limited");
    let named = |name: &str| {
        let joined = info
            .words
            .iter()
            .find_map(|word| bps(word.strip_prefix(name)?.trim_start_matches(':')));
        let at = info.words.iter().position(|word| *word == name);
        joined.or_else(|| bps(info.words.get(at? + 1)?))
    };
    if let Some(rate) = named("delivery_rate") {
        figures.rate = figures.rate.or(Some(rate));
        facts.push(format!("delivery rate {:.2} Mbit/s", rate / 1e6));
    } else if let Some(rate) = named("send") {
        // The window per round trip, which old versions print alone.
        figures.rate = figures.rate.or(Some(rate));
        facts.push(format!("cwnd per round trip {:.2} Mbit/s", rate / 1e6));
    }
    Some(PastedSection { kind: "ss", line: first + 1, facts })
}
