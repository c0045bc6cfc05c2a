//! `wire link`: the scenario's path in real time between real hosts, for any program.

use std::process::ExitCode;

use sim::scenario::{App, Scenario};
use units::Duration;
use wire_io::{HostWorkload, namespace};

use super::real::{RealTimeRun, kernel_name, prepare, print_report, report};
use crate::cli::LinkArgs;
use crate::commands::load_scenario;
use crate::commands::run::create;
use crate::failure::Failure;

/// Concurrent connections per host.
const CONNECTIONS: usize = 64;

pub(super) fn run(args: LinkArgs) -> Result<ExitCode, Failure> {
    let (file, loaded) = load_scenario(args.scenario)?;
    let lines = host_commands(&args.run, &loaded.scenario)?;
    let congestion = congestion(&loaded.scenario)?;
    prepare()?;
    let pcap = args.pcap.as_deref().map(|path| create(path, &file)).transpose()?;
    let scenario = with_connection_slots(&loaded.scenario)?;
    let outside: Vec<usize> = (0..scenario.hosts.len()).collect();
    let comment = format!("{}\nscenario sha256 {}", scenario.title, loaded.sha256);
    let real = RealTimeRun {
        scenario: &scenario,
        outside: &outside,
        play: HostWorkload::Programs {
            lines: &lines,
            congestion: &congestion,
            ready: if lines.is_empty() { print_instructions } else { |_| {} },
        },
        poll: Duration::from_secs(1),
        capture: pcap.map(|out| (out, comment.as_str(), scenario.taps.len())),
    };
    let mut done = real.run(&mut record::NullRecorder)?;
    let mut report = report(&loaded, &outside, &done);
    report.flows.clear();
    report.bytes.clear();
    report.connections = Some(done.connections);
    report.failed = core::mem::take(&mut done.failed);
    if let Some(out) = done.capture.take() {
        out.commit()?;
    }
    print_report(&report, args.json)
}

/// Prints how to enter the hosts.
#[expect(clippy::print_stderr, reason = "printed during the run, not a result")]
fn print_instructions(hosts: &[(usize, String)]) {
    for (host, path) in hosts {
        let address = export::capture::address(*host, packet::IpVersion::V4);
        eprintln!("host {host}, {address}: nsenter --net={path} bash");
    }
    eprintln!("press Ctrl-C to end it");
}

/// The congestion control of each host; a host with a profile of another system keeps this
/// system's.
fn congestion(scenario: &Scenario) -> Result<Vec<(usize, &'static str)>, Failure> {
    let hosts = scenario.hosts.iter().enumerate();
    let linux = hosts.filter_map(|(index, host)| {
        let tcp = host.stack.tcp().filter(|tcp| namespace::is_linux(&tcp.profile))?;
        Some(kernel_name(&host.name, tcp).map(|name| (index, name)))
    });
    linux.collect()
}

/// Parses the `HOST=COMMAND` arguments.
fn host_commands(given: &[String], scenario: &Scenario) -> Result<Vec<(usize, String)>, Failure> {
    let names = || scenario.hosts.iter().map(|host| host.name.as_str());
    let mut lines = Vec::new();
    for text in given {
        let found = text
            .split_once('=')
            .and_then(|(name, line)| Some((names().position(|host| host == name)?, line)));
        let Some((host, line)) = found else {
            let all = names().collect::<Vec<_>>().join(", ");
            let message = format!("--run {text:?}: expected HOST=COMMAND");
            return Err(Failure::new(message).hint(format!("hosts are {all}")));
        };
        lines.push((host, line.to_owned()));
    }
    Ok(lines)
}

/// The scenario with connection slots between all neighbouring hosts instead of its flows.
fn with_connection_slots(scenario: &Scenario) -> Result<Scenario, Failure> {
    let mut scenario = scenario.clone();
    let Some(mut flow) = scenario.flows.pop() else {
        return Err(Failure::new(
            "the scenario has no flow to take the options of connections from",
        ));
    };
    flow.app = App::Bulk { bytes: None, write: None };
    scenario.flows.clear();
    for (path, ends) in scenario.paths.iter().enumerate() {
        for (from, to) in [(ends.from, ends.to), (ends.to, ends.from)] {
            for _ in 0..CONNECTIONS {
                let name = format!("place {}", scenario.flows.len());
                scenario.flows.push(sim::scenario::FlowSpec {
                    name,
                    path,
                    from,
                    to,
                    ..flow.clone()
                });
            }
        }
    }
    Ok(scenario)
}
