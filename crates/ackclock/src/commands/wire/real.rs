//! Shared parts of the `wire` commands: building the run from a scenario, Ctrl-C, reporting.

use std::net::IpAddr;
use std::process::ExitCode;

use export::capture;
use packet::IpVersion;
use record::NullRecorder;
use runner::wire_report::{BytesReport, ModelReport, TimingReport, WireReport, hex};
use scenario::Loaded;
use sim::Observer;
use sim::scenario::{HostSpec, Scenario, TcpStack};
use trace::pcapng::PcapngSection;
use units::Duration;
use wire_io::{HostWorkload, Job, WireOutcome, namespace};

use crate::failure::Failure;
use crate::interrupt;
use crate::output::{OutFile, print};

/// Prepares the process before anything else, even output files. A user other than root enters a
/// user namespace, which is possible only while the process has one thread. From then on the first
/// signal ends the run, whose measurements are printed, and the second one ends the program.
pub(in crate::commands) fn prepare() -> Result<(), Failure> {
    namespace::become_root().map_err(|error| Failure::new(error.to_string()))?;
    interrupt::orderly();
    Ok(())
}

/// A real-time run with some real hosts.
pub(in crate::commands) struct RealTimeRun<'a> {
    pub(in crate::commands) scenario: &'a Scenario,
    /// Indices of the real hosts.
    pub(in crate::commands) outside: &'a [usize],
    /// Their applications.
    pub(in crate::commands) play: HostWorkload<'a>,
    /// Polling interval of a real sender's `TCP_INFO`.
    pub(in crate::commands) poll: Duration,
    /// The capture file, its comment, and the number of requested taps; without any, it captures at
    /// every host's stack.
    pub(in crate::commands) capture: Option<(OutFile, &'a str, usize)>,
}

impl RealTimeRun<'_> {
    /// Executes the run.
    pub(in crate::commands) fn run(
        self,
        observer: &mut impl Observer,
    ) -> Result<WireOutcome<OutFile>, Failure> {
        let scenario = self.scenario;
        let pair = |&host: &usize| -> (IpAddr, IpAddr) {
            (capture::address(host, IpVersion::V4), capture::address(host, IpVersion::V6))
        };
        let addresses: Vec<_> = self.outside.iter().map(pair).collect();
        let senders: Vec<&HostSpec> = self
            .outside
            .iter()
            .filter(|host| scenario.flows.iter().any(|flow| flow.from == **host))
            .map(|host| &scenario.hosts[*host])
            .collect();
        let congestion = match self.play {
            HostWorkload::Flows(_) => congestion(&senders)?,
            HostWorkload::Programs { .. } => None,
        };
        let section = |comment| PcapngSection {
            application: concat!("ackclock ", env!("CARGO_PKG_VERSION")),
            comment,
            epoch: capture::EPOCH,
            ..PcapngSection::default()
        };
        let job = Job {
            scenario,
            outside: self.outside,
            play: self.play,
            addresses: &addresses,
            congestion,
            poll: self.poll,
            capture: self.capture.map(|(out, comment, taps)| (out, section(comment), taps)),
            stop: interrupt::orderly(),
        };
        wire_io::run(job, observer).map_err(|error| Failure::new(error.to_string()))
    }
}

/// The kernel's name of the real senders' congestion control.
fn congestion(senders: &[&HostSpec]) -> Result<Option<String>, Failure> {
    let Some(first) = senders.first() else { return Ok(None) };
    let Some(tcp) = first.stack.tcp() else { return Ok(None) };
    let differs = |host: &&&HostSpec| host.stack.tcp().is_none_or(|other| other.cc != tcp.cc);
    if let Some(other) = senders.iter().find(differs) {
        let message = format!(
            "{} and {} are real and send with different congestion control",
            first.name, other.name
        );
        return Err(Failure::new(message));
    }
    kernel_name(&first.name, tcp).map(|name| Some(name.to_owned()))
}

/// The kernel's name of the congestion control of the host called `host`.
pub(super) fn kernel_name(host: &str, tcp: &TcpStack) -> Result<&'static str, Failure> {
    // A host's kernel seldom has version 3 of BBR, and a file of the user's has to be loaded.
    let lacks = matches!(tcp.cc, cc::Algorithm::Bbr3 | cc::Algorithm::Outside(_));
    match tcp.cc.linux_name().filter(|_| !lacks) {
        Some(name) => Ok(name),
        None => {
            let name = tcp.cc.name();
            let message = format!("{host} is real, and Linux lacks the `{name}` of its profile");
            let hint = format!("--set host.{host}.cc=reno, or cubic with a Linux profile");
            Err(Failure::new(message).hint(hint))
        }
    }
}

/// The report of a run.
pub(super) fn report(
    loaded: &Loaded,
    outside: &[usize],
    done: &WireOutcome<OutFile>,
) -> WireReport {
    let timing = TimingReport {
        packets: done.timing.packets,
        p50_ns: done.timing.p50.as_nanos(),
        p99_ns: done.timing.p99.as_nanos(),
        worst_ns: done.timing.worst.as_nanos(),
        too_late: done.timing.too_late,
        overflowed: done.overflowed,
        foreign: done.counts.foreign,
        damaged: done.counts.damaged,
        refused: done.counts.refused,
        unproven: done.counts.unverified,
    };
    let mut report = WireReport::new(loaded, &done.outcome, timing);
    report.real_hosts =
        outside.iter().map(|&host| loaded.scenario.hosts[host].name.clone()).collect();
    report.system = system();
    report.bytes = done
        .flows
        .iter()
        .map(|flow| BytesReport {
            read_sha256: hex(&flow.read_sha256),
            written_sha256: hex(&flow.written_sha256),
            equal: flow.equal(),
            errors: flow.errors.clone(),
        })
        .collect();
    report
}

/// Simulates the same scenario in virtual time.
pub(super) fn model(scenario: &Scenario) -> Result<ModelReport, Failure> {
    let outcome = sim::run_shared(scenario, &mut NullRecorder)
        .map_err(|error| Failure::new(format!("the scenario cannot be run: {error}")))?;
    let flows = outcome.flows.iter().map(runner::run_report::FlowReport::new).collect();
    Ok(ModelReport { added_rtt_s: 0.0, flows })
}

/// Name and release of this system.
fn system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// Prints a report; the exit status is 0 if the bytes arrived as written.
pub(super) fn print_report(report: &WireReport, json: bool) -> Result<ExitCode, Failure> {
    print(&if json { report.to_json() } else { report.to_text() })?;
    if interrupt::is_raised() {
        return Ok(interrupt::status());
    }
    Ok(if report.is_intact() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
