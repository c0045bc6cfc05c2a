//! `wire compare`: a real sender over the scenario's path, and the model's beside it.

use std::io::Write as _;
use std::process::ExitCode;

use pages::overlay::overlay;
use pages::wire_page;
use runner::courses::{Course, Courses, with_longer_rtt};
use runner::run_report::FlowReport;
use runner::wire_report::ModelReport;
use sim::scenario::{App, Scenario};
use units::Duration;
use wire_io::FlowBytes;

use super::real::{Real, flows, prepare, report, tell};
use crate::cli::CompareArgs;
use crate::commands::load_scenario;
use crate::commands::run::{apart, create, failed, subtitle};
use crate::failure::Failure;
use crate::output::OutFile;

/// How often the real sender is asked for its state.
const POLL: Duration = Duration::from_millis(1);

pub(super) fn run(args: CompareArgs) -> Result<ExitCode, Failure> {
    let (file, loaded) = load_scenario(args.scenario)?;
    let scenario = &with_writes(&loaded.scenario);
    prepare()?;
    let svg = args.svg.as_deref().map(|path| create(path, &file)).transpose()?;
    let pcap = args.pcap.as_deref().map(|path| create(path, &file)).transpose()?;
    let page = args.report.as_deref().map(|path| create(path, &file)).transpose()?;
    apart(&[
        ("--svg", &svg, args.svg.as_deref()),
        ("--pcap", &pcap, args.pcap.as_deref()),
        ("--report", &page, args.report.as_deref()),
    ])?;
    let outside: Vec<usize> = (0..scenario.hosts.len()).collect();
    let comment = format!("{}\nscenario sha256 {}", scenario.title, loaded.sha256);
    let endpoints = flows(scenario);
    let real = Real {
        scenario,
        outside: &outside,
        play: wire_io::Play::Flows(&endpoints),
        poll: POLL,
        capture: pcap.map(|out| (out, comment.as_str(), scenario.taps.len())),
    };
    let mut done = real.run(&mut record::Off)?;
    let wire: Vec<Course> = done.flows.iter().map(course).collect();
    let (_, first) = model(scenario)?;
    let longer = |(wire, model): (&Course, &Course)| wire.added_rtt(model);
    let added = wire.iter().zip(&first).map(longer).max().unwrap_or_default();
    let (outcome, courses) = model(&with_longer_rtt(scenario, added))?;
    let mut report = report(&loaded, &outside, &done);
    if let Some(out) = done.capture.take() {
        out.commit()?;
    }
    let pairs: Vec<_> = scenario
        .flows
        .iter()
        .zip(wire.iter().zip(&courses))
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
    tell(&report, args.json)
}

fn write(out: &mut OutFile, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())
}

/// What a real sender told of itself.
fn course(flow: &FlowBytes) -> Course {
    let mut course = Course::default();
    for sample in &flow.samples {
        course.again |= sample.info.retransmitted > 0;
        course.note(sample.at, i64::from(sample.info.cwnd) * 1_000, Some(sample.info.srtt));
        course.min_rtt = sample.info.min_rtt;
    }
    course
}

/// The model's applications write what the real ones do.
fn with_writes(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    for flow in &mut scenario.flows {
        if let App::Bulk { write, .. } = &mut flow.app {
            write.get_or_insert(wire_io::kernel::WRITE);
        }
    }
    scenario
}

fn model(scenario: &Scenario) -> Result<(sim::Outcome, Vec<Course>), Failure> {
    let mut courses = Courses::new(scenario, POLL);
    let outcome = sim::run(scenario, &mut courses)
        .map_err(|error| Failure::new(format!("the scenario cannot be run: {error}")))?;
    Ok((outcome, courses.into_courses()))
}
