//! What a run with real hosts came to, beside the same run in virtual time.
//!
//! It takes plain numbers: who drove the real hosts is not its business.

use serde::Serialize;
use sim::Outcome;
use units::{Bytes, Duration};

use crate::courses::Pair;
use crate::run_report::{FlowReport, aligned, flow_row, headings, spaced};
use crate::wire_differences::Differences;
use scenario::Loaded;

/// Version of the JSON form; a new field does not change it, a changed or missing one does.
pub const FORMAT: u32 = 1;

/// A run with real hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WireReport {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Ackclock.
    pub ackclock: &'static str,
    /// Title of the scenario.
    pub title: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// SHA-256 of the scenario's text with all overrides worked in.
    pub scenario_sha256: String,
    /// Names of the hosts that were real.
    pub real_hosts: Vec<String>,
    /// The system that they run.
    pub system: String,
    /// Real time that the run took, in seconds.
    pub took_s: f64,
    /// One for each flow, in the order of the scenario.
    pub flows: Vec<FlowReport>,
    /// The bytes of each flow.
    pub bytes: Vec<BytesReport>,
    /// How late the machine was.
    pub timing: TimingReport,
    /// The same flows in virtual time; `None` if it was not asked for.
    pub model: Option<ModelReport>,
    /// The figures of each flow on the wire against those in virtual time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Differences>,
    /// Connections of programs on real hosts, where such ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Programs that did not end well, and how they ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// The bytes of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BytesReport {
    /// SHA-256 of the bytes that were read.
    pub read_sha256: String,
    /// SHA-256 of as many bytes of what was written.
    pub written_sha256: String,
    /// Are they the same?
    pub equal: bool,
    /// What went wrong at real ends.
    pub errors: Vec<String>,
}

/// How late the machine was, from the moment a packet was due to the moment the kernel had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TimingReport {
    /// Packets written to real hosts, merged ones counted once.
    pub packets: u64,
    /// Half of them were no later, in nanoseconds.
    pub p50_ns: u64,
    /// 99 of 100 were no later, in nanoseconds.
    pub p99_ns: u64,
    /// The latest, in nanoseconds.
    pub worst_ns: u64,
    /// Packets that came more than a millisecond late.
    pub too_late: u64,
    /// Packets for which a device's queue had no room: the machine was too slow for them.
    pub overflowed: u64,
    /// Packets of real hosts that belong to no flow, such as the system's own multicasts.
    pub foreign: u64,
    /// Packets of real hosts whose checksum was wrong.
    pub damaged: u64,
    /// Packets that a real host's device did not take.
    pub refused: u64,
    /// Bytes that were read though no segment had brought them: a mistake of this program.
    pub unproven: u64,
}

/// The same in virtual time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelReport {
    /// What was added to the path's round trip, since real hosts take time: a declared input.
    pub added_rtt_s: f64,
    /// One for each flow.
    pub flows: Vec<FlowReport>,
}

impl WireReport {
    /// The report of a run of `loaded`; bytes, timing and model are for the caller to set.
    pub fn new(loaded: &Loaded, outcome: &Outcome, timing: TimingReport) -> Self {
        Self {
            format: FORMAT,
            ackclock: env!("CARGO_PKG_VERSION"),
            title: loaded.scenario.title.clone(),
            seed: loaded.scenario.seed,
            scenario_sha256: loaded.sha256.clone(),
            real_hosts: Vec::new(),
            system: String::new(),
            took_s: outcome.ended.as_secs_f64(),
            flows: outcome.flows.iter().map(FlowReport::new).collect(),
            bytes: Vec::new(),
            timing,
            model: None,
            differences: Vec::new(),
            connections: None,
            failed: Vec::new(),
        }
    }

    /// Takes the same transfers in virtual time, with the courses of both senders where they are known.
    pub fn set_model(&mut self, model: ModelReport, courses: &[Pair<'_>]) {
        let flows = self.flows.iter().zip(&model.flows).enumerate();
        let compare = |(index, (wire, model)): (usize, (&FlowReport, &FlowReport))| {
            let courses = courses.get(index).map(|&(_, wire, model)| (wire, model));
            Differences::new(wire, model, courses)
        };
        self.differences = flows.map(compare).collect();
        self.model = Some(model);
    }

    /// Did all bytes arrive that were read, and are they those that were written?
    pub fn whole(&self) -> bool {
        let bytes = self.bytes.iter().all(|flow| flow.equal && flow.errors.is_empty());
        bytes && self.timing.unproven == 0 && self.failed.is_empty()
    }

    /// As JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// For people.
    pub fn to_text(&self) -> String {
        let title = match self.title.as_str() {
            "" => String::new(),
            title => format!("{title}\n"),
        };
        let real = self.real_hosts.join(" and ");
        let took = self.took_s;
        let mut rows = vec![headings()];
        for (index, flow) in self.flows.iter().enumerate() {
            rows.push(flow_row(&flow.name, flow));
            if let Some(model) = self.model.as_ref().and_then(|model| model.flows.get(index)) {
                rows.push(flow_row("  in virtual time", model));
            }
        }
        let mut text = format!(
            "{title}seed {}, {took:.3} s on the wire; {real}: {}\n\n",
            self.seed, self.system
        );
        if !self.flows.is_empty() {
            text += &(aligned(&rows) + "\n");
        }
        if let Some(model) = self.model.as_ref().filter(|model| model.added_rtt_s > 0.0) {
            let added = Duration::from_nanos((model.added_rtt_s * 1e9) as u64);
            text += &format!("in virtual time with a round trip longer by {}\n", spaced(added));
        }
        for differences in &self.differences {
            text += &differences.text();
        }
        for (flow, bytes) in self.flows.iter().zip(&self.bytes) {
            let same = if bytes.equal { "as written" } else { "NOT what was written" };
            text += &format!("{}: SHA-256 {} {same}\n", flow.name, bytes.read_sha256);
            for error in &bytes.errors {
                text += &format!("{}: a real end failed: {error}\n", flow.name);
            }
        }
        if let Some(connections) = self.connections {
            text += &format!("{connections} connections\n");
        }
        for failed in &self.failed {
            text += &format!("failed: {failed}\n");
        }
        text + &self.timing.to_text()
    }
}

impl TimingReport {
    fn to_text(self) -> String {
        let span = |ns| spaced(Duration::from_nanos(ns));
        let mut text = format!(
            "{} packets to real hosts: half at most {} late, 99 % {}, the latest {}; {} more than 1 ms\n",
            self.packets,
            span(self.p50_ns),
            span(self.p99_ns),
            span(self.worst_ns),
            self.too_late,
        );
        let others = [
            (self.overflowed, "the machine was too slow for"),
            (self.damaged, "of real hosts had a wrong checksum"),
            (self.refused, "were refused by a real host's device"),
        ];
        for (packets, what) in others.into_iter().filter(|(packets, _)| *packets > 0) {
            text += &format!("{packets} packets {what}\n");
        }
        if self.unproven > 0 {
            let bytes = Bytes(self.unproven);
            text += &format!("{bytes} were read that no segment had brought: please report it\n");
        }
        text
    }
}

/// Bytes of a hash in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A scenario without a file: `bytes` over a path that takes no time, between `ackclock`, which has
/// the profile, and `kernel`, which is this machine.
pub fn clean_path(
    profile: &str,
    cc: Option<&str>,
    bytes: Bytes,
    ipv6: bool,
    sends: bool,
) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let (from, to) = if sends { ("ackclock", "kernel") } else { ("kernel", "ackclock") };
    let cc_of = |host: &str| match cc {
        Some(cc) if host == from => format!(", cc = {}", quoted(cc)),
        _ => String::new(),
    };
    format!(
        "title = \"a path that takes no time\"\n\
         duration = \"1h\"\n\
         host.ackclock = {{ profile = {}{}, tso = true }}\n\
         host.kernel = {{ profile = \"linux-6.18\"{}, gro = true }}\n\
         path = [ {{ from = \"ackclock\", to = \"kernel\", forward = [], return = [] }} ]\n\
         flow = [ {{ name = \"transfer\", from = \"{from}\", to = \"{to}\", bulk = {}, ip = {} }} ]\n",
        quoted(profile),
        cc_of("ackclock"),
        cc_of("kernel"),
        quoted(&format!("{}B", bytes.get())),
        if ipv6 { 6 } else { 4 },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{Overrides, load};

    fn report() -> WireReport {
        let text = clean_path("freebsd-14.3", Some("cubic"), Bytes(1_000_000), false, true);
        let loaded = load(&text, "clean", &Overrides::default()).unwrap();
        let outcome = sim::run(&loaded.scenario, &mut record::Off).unwrap();
        let timing = TimingReport {
            packets: 700,
            p50_ns: 3_000,
            p99_ns: 21_500,
            worst_ns: 1_200_000,
            too_late: 1,
            overflowed: 0,
            foreign: 4,
            damaged: 0,
            refused: 0,
            unproven: 0,
        };
        let mut report = WireReport::new(&loaded, &outcome, timing);
        report.real_hosts = vec!["kernel".into()];
        report.system = "Linux 6.18".into();
        let hash = hex(&[0xab, 0x01]);
        report.bytes.push(BytesReport {
            read_sha256: hash.clone(),
            written_sha256: hash,
            equal: true,
            errors: vec![],
        });
        report
    }

    #[test]
    fn the_text_says_what_was_real_and_how_late_it_was() {
        let text = report().to_text();
        assert!(text.contains("s on the wire; kernel: Linux 6.18\n"), "{text}");
        assert!(text.contains("transfer: SHA-256 ab01 as written\n"), "{text}");
        let late = "700 packets to real hosts: half at most 3 us late, 99 % 21.5 us, \
                    the latest 1.2 ms; 1 more than 1 ms\n";
        assert!(text.ends_with(late), "{text}");
    }

    #[test]
    fn what_is_wrong_is_told() {
        let mut report = report();
        assert!(report.whole());
        report.bytes[0].equal = false;
        report.bytes[0].errors.push("connection refused".into());
        report.timing.overflowed = 3;
        report.timing.unproven = 1;
        assert!(!report.whole());
        report.failed.push("iperf3: exit status: 1".into());
        report.flows[0].goodput_bps = 1e6;
        let mut model = report.flows[0].clone();
        model.goodput_bps = report.flows[0].goodput_bps / 1.04;
        report.flows[0].retransmitted_segments = 7;
        report.set_model(ModelReport { added_rtt_s: 0.000_2, flows: vec![model] }, &[]);
        let text = report.to_text();
        assert!(text.contains("failed: iperf3: exit status: 1\n"), "{text}");
        assert!(
            text.contains(
                "transfer: wire against virtual time: goodput +4.0 %, max cwnd +0.0 %, retransmissions 7 and 0\n\
                 transfer: differs by more than 5 %: retransmissions\n"
            ),
            "{text}"
        );
        assert!(text.contains("with a round trip longer by 200 us\n"), "{text}");
        assert!(text.contains("NOT what was written"), "{text}");
        assert!(text.contains("a real end failed: connection refused\n"), "{text}");
        assert!(text.contains("3 packets the machine was too slow for\n"), "{text}");
        assert!(text.contains("1 B were read that no segment had brought"), "{text}");
    }

    #[test]
    fn the_path_without_a_file_is_a_scenario_for_each_profile_and_both_directions() {
        for profile in tcp::profile::NAMES {
            for (ipv6, sends) in [(false, true), (true, false)] {
                let text = clean_path(profile, None, Bytes(5_000_000), ipv6, sends);
                let loaded = load(&text, "clean", &Overrides::default()).unwrap();
                let flow = &loaded.scenario.flows[0];
                assert_eq!(loaded.scenario.hosts[flow.from].name == "ackclock", sends);
            }
        }
        let odd = clean_path("a\"b", None, Bytes(1_000_000), false, true);
        assert!(load(&odd, "clean", &Overrides::default()).is_err());
    }
}
