//! A world as the text of a scenario file, with no line that it does not need.

use core::fmt::Write as _;

use suite::SuiteSender;

use crate::space::{
    BUFFER, FLOWS, GAP, NUMBERS, PARTS, PAUSE, PartPosition, RATE, RATIO, RTT, SpaceLimits,
    TRANSFER,
};
use crate::world::HuntWorld;

/// Length of a run in seconds.
pub(crate) const DURATION: u64 = 20;

/// A number without trailing zeros.
fn number(value: f64) -> String {
    format!("{value}")
}

/// A time, in the unit of its number.
fn time(ms: f64) -> String {
    if ms >= 1.0 { format!("{}ms", number(ms)) } else { format!("{}us", number(ms * 1e3)) }
}

/// Replaces `RATE/N` by the N-th part of the rate.
fn with_rate(text: &str, mbits: f64) -> String {
    let mut out = text.to_owned();
    for divisor in ["200", "50", "5", "2", "1"] {
        let parts: f64 = divisor.parse().unwrap_or(1.0);
        let kbits = mbits * 1e3 / parts;
        out = out.replace(&format!("RATE/{divisor}\""), &format!("{}kbit/s\"", number(kbits)));
    }
    out
}

impl HuntWorld {
    fn texts(&self, position: PartPosition) -> impl Iterator<Item = &'static str> {
        let of = move |&index: &usize| PARTS[index].position == position;
        (0..PARTS.len()).filter(of).filter_map(|index| self.part(index))
    }

    fn has(&self, position: PartPosition) -> bool {
        self.texts(position).next().is_some()
    }

    /// Whether the first flow has a path of its own.
    fn is_split(&self) -> bool {
        self.number(RATIO) > 1.0 || self.has(PartPosition::FirstFlowOnly)
    }

    /// Number of flows.
    pub(crate) fn flows(&self) -> usize {
        self.number(FLOWS) as usize
    }

    /// Bytes of the buffer, at least ten packets.
    fn buffer(&self) -> u64 {
        let product = self.number(RATE) * 1e6 / 8.0 * self.number(RTT) / 1e3;
        ((product * self.number(BUFFER)) as u64).max(15_000)
    }

    fn link(&self) -> String {
        let mbits = self.number(RATE);
        let rate = self
            .texts(PartPosition::Rate)
            .next()
            .map_or_else(|| format!("\"{}Mbit/s\"", number(mbits)), |text| with_rate(text, mbits));
        let queue = self
            .texts(PartPosition::Queue)
            .next()
            .map_or_else(String::new, |queue| format!(", queue = {queue}"));
        format!("link = {{ rate = {rate}, buffer = \"{}B\"{queue} }}", self.buffer())
    }

    /// A host; with `sender`, the one that sends.
    fn host(&self, text: &mut String, name: &str, profile: &str, sender: Option<&SuiteSender>) {
        let sends = sender.is_some();
        let (keys, offload) = if sends {
            (PartPosition::Sender, PartPosition::SenderOffload)
        } else {
            (PartPosition::Receiver, PartPosition::ReceiverOffload)
        };
        let _ = writeln!(text, "[host.{name}]\nprofile = {profile:?}");
        if let Some(sender) = sender {
            let _ = writeln!(text, "cc = {:?}", sender.cc);
        }
        for key in self.texts(keys) {
            let _ = writeln!(text, "{key}");
        }
        if let Some(level) = self.texts(offload).next() {
            let name = if profile.starts_with("freebsd") { "lro" } else { "gro" };
            let _ = writeln!(text, "{name} = {level}");
        }
        let knobs = sender.map_or_else(|| suite::buffer_knobs(profile), SuiteSender::knobs);
        text.push_str(&knobs);
        text.push('\n');
    }

    fn route(&self, position: PartPosition, head: Vec<String>, delay: &str, parts: bool) -> String {
        let mut elements = head;
        if parts {
            let texts = self.texts(position);
            elements.extend(texts.map(|text| with_rate(text, self.number(RATE))));
        }
        elements.push(format!("{{ delay = \"{delay}\" }}"));
        elements.join(", ")
    }

    fn path(&self, text: &mut String, name: Option<&str>, head: Vec<String>, ms: f64, parts: bool) {
        let delay = time(ms / 2.0);
        text.push_str("[[path]]\n");
        if let Some(name) = name {
            let _ = writeln!(text, "name = {name:?}");
        }
        let _ = writeln!(
            text,
            "from = \"sender\"\nto = \"receiver\"\nforward = [{}]\nreturn = [{}]\n",
            self.route(PartPosition::Forward, head, &delay, parts),
            self.route(PartPosition::Return, Vec::new(), &delay, parts)
        );
    }

    /// The scenario file.
    pub(crate) fn text(&self, sender: &SuiteSender) -> String {
        let mut text = format!("duration = \"{DURATION}s\"\n\n");
        self.host(&mut text, "sender", &sender.profile, Some(sender));
        let other = self.texts(PartPosition::ReceiverProfile).next();
        self.host(&mut text, "receiver", other.unwrap_or(&sender.profile), None);
        let mut bottleneck: Vec<String> = self
            .texts(PartPosition::Bottleneck)
            .map(|part| with_rate(part, self.number(RATE)))
            .collect();
        bottleneck.push(format!("{{ {} }}", self.link()));
        let rtt = self.number(RTT);
        if self.is_split() {
            for (index, element) in bottleneck.iter().enumerate() {
                let keys = element.strip_prefix("{ ").and_then(|rest| rest.strip_suffix(" }"));
                let _ = writeln!(text, "[shared.s{index}]\n{}\n", keys.unwrap_or_default());
            }
            let head: Vec<String> =
                (0..bottleneck.len()).map(|index| format!("{{ shared = \"s{index}\" }}")).collect();
            let first_only = self.has(PartPosition::FirstFlowOnly);
            self.path(&mut text, Some("first"), head.clone(), rtt * self.number(RATIO), true);
            self.path(&mut text, Some("other"), head, rtt, !first_only);
        } else {
            self.path(&mut text, None, bottleneck, rtt, true);
        }
        for flow in 0..self.flows() {
            let name = if flow == 0 { "first".to_owned() } else { format!("other{flow}") };
            let _ =
                writeln!(text, "[[flow]]\nname = {name:?}\nfrom = \"sender\"\nto = \"receiver\"");
            if self.is_split() {
                let path = if flow == 0 { "first" } else { "other" };
                let _ = writeln!(text, "path = {path:?}");
            }
            let start = self.start(flow);
            if start > 0.0 {
                let _ = writeln!(text, "start = \"{}\"", time((start * 1e3).round()));
            }
            let _ = writeln!(text, "{}\n", self.application());
        }
        text
    }

    /// When a flow starts, in seconds.
    pub(crate) fn start(&self, flow: usize) -> f64 {
        self.number(GAP) * flow as f64
    }

    fn application(&self) -> String {
        let (mb, pause) = (self.number(TRANSFER), self.number(PAUSE));
        if mb == 0.0 {
            "bulk = \"unlimited\"".to_owned()
        } else if pause == 0.0 {
            format!("bulk = \"{}MB\"", number(mb))
        } else {
            format!("on_off = {{ on = \"{}MB\", off = \"{}ms\" }}", number(mb), number(pause))
        }
    }

    /// The numbers in words, those that are not plain.
    pub(crate) fn numbers_in_words(&self, limits: &SpaceLimits) -> String {
        let of = |index: usize| {
            let number = &NUMBERS[index];
            let unit =
                if number.unit.is_empty() { String::new() } else { format!(" {}", number.unit) };
            format!("{} {}{unit}", number.name, self.number(index))
        };
        let first = [RATE, RTT, BUFFER];
        let rest = (0..NUMBERS.len())
            .filter(|index| !first.contains(index) && self.numbers[*index] != limits.plain[*index]);
        let words: Vec<String> = first.into_iter().chain(rest).map(of).collect();
        words.join(", ")
    }
}
