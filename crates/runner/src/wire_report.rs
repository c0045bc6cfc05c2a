//! The result of a run with real hosts, with the same run in virtual time.
//!
//! It is independent of the code that drives the real hosts.

use serde::Serialize;
use sim::RunOutcome;
use units::{Bytes, Duration};

use crate::run_report::{FlowReport, aligned, flow_row, headings, spaced};
use crate::timelines::TimelinePair;
use crate::wire_differences::FlowDifferences;
use scenario::Loaded;

/// Version of the JSON format; a new field does not change it, a changed or missing one does.
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
    /// SHA-256 of the scenario's text with all overrides applied.
    pub scenario_sha256: String,
    /// Names of the real hosts.
    pub real_hosts: Vec<String>,
    /// The system of the real hosts.
    pub system: String,
    /// Wall-clock duration of the run, in seconds.
    pub took_s: f64,
    /// One for each flow, in the order of the scenario.
    pub flows: Vec<FlowReport>,
    /// The bytes of each flow.
    pub bytes: Vec<BytesReport>,
    /// Timing accuracy of the machine.
    pub timing: TimingReport,
    /// The same flows in virtual time, if requested.
    pub model: Option<ModelReport>,
    /// The figures of each flow on the wire compared with those in virtual time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<FlowDifferences>,
    /// Connections of programs on real hosts, if any ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Programs that failed, with their exit status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

/// The bytes of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BytesReport {
    /// SHA-256 of the bytes read.
    pub read_sha256: String,
    /// SHA-256 of the same number of bytes written.
    pub written_sha256: String,
    /// Are they equal?
    pub equal: bool,
    /// Errors of real hosts.
    pub errors: Vec<String>,
}

/// Lateness of packets, from their due time to their delivery to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TimingReport {
    /// Packets written to real hosts, merged ones counted once.
    pub packets: u64,
    /// Median lateness, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// Maximum, in nanoseconds.
    pub worst_ns: u64,
    /// Packets more than a millisecond late.
    pub too_late: u64,
    /// Packets dropped because a device's queue was full: the machine was too slow.
    pub overflowed: u64,
    /// Packets of real hosts that belong to no flow, such as the system's own multicasts.
    pub foreign: u64,
    /// Packets of real hosts with a wrong checksum.
    pub damaged: u64,
    /// Packets that a real host's device rejected.
    pub refused: u64,
    /// Bytes that were read although no segment had delivered them: a bug of this program.
    pub unproven: u64,
}

/// The simulation of the same run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelReport {
    /// Time added to the path's round trip for the delay of real hosts: a declared input.
    pub added_rtt_s: f64,
    /// One for each flow.
    pub flows: Vec<FlowReport>,
}

impl WireReport {
    /// The report of a run of `loaded`; the caller sets bytes and model.
    pub fn new(loaded: &Loaded, outcome: &RunOutcome, timing: TimingReport) -> Self {
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

    /// Sets the same transfers in virtual time, with the timelines of both senders where known.
    pub fn set_model(&mut self, model: ModelReport, timelines: &[TimelinePair<'_>]) {
        let flows = self.flows.iter().zip(&model.flows).enumerate();
        let compare = |(index, (wire, model)): (usize, (&FlowReport, &FlowReport))| {
            let timelines = timelines.get(index).map(|&(_, wire, model)| (wire, model));
            FlowDifferences::new(wire, model, timelines)
        };
        self.differences = flows.map(compare).collect();
        self.model = Some(model);
    }

    /// Are the bytes read those that were written, all delivered by segments?
    pub fn is_intact(&self) -> bool {
        let bytes = self.bytes.iter().all(|flow| flow.equal && flow.errors.is_empty());
        bytes && self.timing.unproven == 0 && self.failed.is_empty()
    }

    /// As JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// As text.
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
                text += &format!("{}: a real host failed: {error}\n", flow.name);
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
            "{} packets to real hosts: median lateness {}, 99 % {}, maximum {}; {} more than 1 ms\n",
            self.packets,
            span(self.p50_ns),
            span(self.p99_ns),
            span(self.worst_ns),
            self.too_late,
        );
        let others = [
            (self.overflowed, "dropped because the machine was too slow"),
            (self.damaged, "of real hosts had a wrong checksum"),
            (self.refused, "were refused by a real host's device"),
        ];
        for (packets, what) in others.into_iter().filter(|(packets, _)| *packets > 0) {
            text += &format!("{packets} packets {what}\n");
        }
        if self.unproven > 0 {
            let bytes = Bytes(self.unproven);
            text += &format!("{bytes} were read that no segment had delivered: please report it\n");
        }
        text
    }
}

/// Formats a hash in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A default scenario: `bytes` over a path without delay, between `ackclock`, which has the
/// profile, and `kernel`, which is this machine.
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
        let outcome = sim::run(&loaded.scenario, &mut record::NullRecorder).unwrap();
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
    fn the_text_names_real_hosts_and_their_lateness() {
        let text = report().to_text();
        assert!(text.contains("s on the wire; kernel: Linux 6.18\n"), "{text}");
        assert!(text.contains("transfer: SHA-256 ab01 as written\n"), "{text}");
        let late = "700 packets to real hosts: median lateness 3 us, 99 % 21.5 us, \
                    maximum 1.2 ms; 1 more than 1 ms\n";
        assert!(text.ends_with(late), "{text}");
    }

    #[test]
    fn errors_are_reported() {
        let mut report = report();
        assert!(report.is_intact());
        report.bytes[0].equal = false;
        report.bytes[0].errors.push("connection refused".into());
        report.timing.overflowed = 3;
        report.timing.unproven = 1;
        assert!(!report.is_intact());
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
                "transfer: wire compared with virtual time: goodput +4.0 %, max cwnd +0.0 %, retransmissions 7 and 0\n\
                 transfer: differs by more than 5 %: retransmissions\n"
            ),
            "{text}"
        );
        assert!(text.contains("with a round trip longer by 200 us\n"), "{text}");
        assert!(text.contains("NOT what was written"), "{text}");
        assert!(text.contains("a real host failed: connection refused\n"), "{text}");
        assert!(text.contains("3 packets dropped because the machine was too slow\n"), "{text}");
        assert!(text.contains("1 B were read that no segment had delivered"), "{text}");
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
