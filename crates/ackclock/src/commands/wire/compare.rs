//! `wire compare`: a real sender over the emulated path, compared with the simulated one.

use std::io::Write as _;
use std::process::ExitCode;

use export::capture;
use pages::overlay::overlay;
use pages::wire_page;
use runner::run_report::FlowReport;
use runner::timelines::{SenderTimeline, TimelineRecorder, with_longer_rtt};
use runner::wire_report::ModelReport;
use sim::scenario::{App, Scenario};
use units::Duration;
use wire_io::FlowBytes;

use super::real::{RealTimeRun, prepare, print_report, report};
use crate::cli::CompareArgs;
use crate::commands::load_scenario;
use crate::commands::run::{create, failed, require_distinct, subtitle};
use crate::failure::Failure;
use crate::output::OutFile;

/// Polling interval of the real sender's `TCP_INFO`.
const POLL: Duration = Duration::from_millis(1);

pub(super) fn run(args: CompareArgs) -> Result<ExitCode, Failure> {
    let (file, loaded) = load_scenario(args.scenario)?;
    let scenario = &with_writes(&loaded.scenario);
    prepare()?;
    let svg = args.svg.as_deref().map(|path| create(path, &file)).transpose()?;
    let pcap = args.pcap.as_deref().map(|path| create(path, &file)).transpose()?;
    let page = args.report.as_deref().map(|path| create(path, &file)).transpose()?;
    require_distinct(&[
        ("--svg", &svg, args.svg.as_deref()),
        ("--pcap", &pcap, args.pcap.as_deref()),
        ("--report", &page, args.report.as_deref()),
    ])?;
    let outside: Vec<usize> = (0..scenario.hosts.len()).collect();
    let comment = format!("{}\nscenario sha256 {}", scenario.title, loaded.sha256);
    let endpoints = capture::flow_endpoints(scenario);
    let real = RealTimeRun {
        scenario,
        outside: &outside,
        play: wire_io::HostWorkload::Flows(&endpoints),
        poll: POLL,
        capture: pcap.map(|out| (out, comment.as_str(), scenario.taps.len())),
    };
    let mut done = real.run(&mut record::NullRecorder)?;
    let wire: Vec<SenderTimeline> = done.flows.iter().map(timeline).collect();
    let (_, first) = model(scenario)?;
    let longer = |(wire, model): (&SenderTimeline, &SenderTimeline)| wire.added_rtt(model);
    let added = wire.iter().zip(&first).map(longer).max().unwrap_or_default();
    let (outcome, timelines) = model(&with_longer_rtt(scenario, added))?;
    let mut report = report(&loaded, &outside, &done);
    if let Some(out) = done.capture.take() {
        out.commit()?;
    }
    let pairs: Vec<_> = scenario
        .flows
        .iter()
        .zip(wire.iter().zip(&timelines))
        .map(|(flow, (wire, model))| (flow.name.as_str(), wire, model))
        .collect();
    let model = ModelReport {
        added_rtt_s: added.as_secs_f64(),
        flows: outcome.flows.iter().map(FlowReport::new).collect(),
    };
    report.set_model(model, &pairs);
    if let Some(mut out) = page {
        let page = wire_page::page(&report, &pairs);
        page.write(&mut out).map_err(|error| failed(args.report.as_deref(), &error))?;
        out.commit()?;
    }
    if let Some(mut out) = svg {
        let chart = overlay(&scenario.title, &subtitle(&file, scenario), &pairs);
        write(&mut out, &chart).map_err(|error| failed(args.svg.as_deref(), &error))?;
        out.commit()?;
    }
    print_report(&report, args.json)
}

fn write(out: &mut OutFile, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())
}

/// The polled states of a real sender.
fn timeline(flow: &FlowBytes) -> SenderTimeline {
    let mut timeline = SenderTimeline::default();
    for sample in &flow.samples {
        timeline.retransmitted |= sample.info.retransmitted > 0;
        timeline.sample(sample.at, i64::from(sample.info.cwnd) * 1_000, Some(sample.info.srtt));
        timeline.min_rtt = sample.info.min_rtt;
    }
    timeline
}

/// The scenario with the writes of the real applications.
pub(in crate::commands) fn with_writes(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        if let App::Bulk { write, .. } = &mut flow.app {
            write.get_or_insert(wire_io::kernel::WRITE);
        }
    }
    scenario
}

fn model(scenario: &Scenario) -> Result<(sim::RunOutcome, Vec<SenderTimeline>), Failure> {
    let mut timelines = TimelineRecorder::new(scenario, POLL);
    let outcome = sim::run_shared(scenario, &mut timelines)
        .map_err(|error| Failure::new(format!("the scenario cannot be run: {error}")))?;
    Ok((outcome, timelines.into_timelines()))
}
