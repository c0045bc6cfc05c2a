//! `wire send` and `wire receive`: a simulated endpoint against this machine's own TCP.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use export::capture;
use export::curves::CurveRecorder;
use export::kernel_log::{BlackBox, LoggedEndpoint};
use export::qlog::Qlog;
use logs::csv::CsvRecorder;
use logs::qlog::QlogFormat;
use packet::Dir;
use runner::wire_report::clean_path;
use scenario::{Loaded, Overrides, load};
use sim::scenario::{Scenario, TapPoint};
use units::{Duration, FlowId, HostId};

use super::real::{RealTimeRun, model, prepare, print_report, report};
use crate::cli::EndArgs;
use crate::commands::load_scenario;
use crate::commands::run::{EventObserver, RunLogs, create, failed, require_distinct, subtitle};
use crate::failure::Failure;

/// Polling interval of a real sender's `TCP_INFO`.
const POLL: Duration = Duration::from_millis(10);

pub(super) fn run(mut args: EndArgs, sends: bool) -> Result<ExitCode, Failure> {
    let given = args.scenario.file.is_some();
    let (file, loaded) = scenario(&mut args, sends)?;
    let Some(first) = loaded.scenario.flows.first() else {
        return Err(Failure::new("the scenario has no flow"));
    };
    let inside = if sends { first.from } else { first.to };
    let outside: Vec<usize> =
        (0..loaded.scenario.hosts.len()).filter(|&host| host != inside).collect();

    prepare()?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(|path| create(path, &file)).transpose();
    let pcap = open(&args.pcap)?;
    let csv = open(&args.csv)?;
    let svg = open(&args.svg)?;
    let bblog = open(&args.bblog)?;
    let qlog = open(&args.qlog)?;
    require_distinct(&[
        ("--pcap", &pcap, args.pcap.as_deref()),
        ("--csv", &csv, args.csv.as_deref()),
        ("--svg", &svg, args.svg.as_deref()),
        ("--bblog", &bblog, args.bblog.as_deref()),
        ("--qlog", &qlog, args.qlog.as_deref()),
    ])?;
    // A tap does not change a run; the capture omits the tap of the logs.
    let mut scenario = loaded.scenario.clone();
    let comment = format!("{}\nscenario sha256 {}", scenario.title, loaded.sha256);
    let curves = svg.is_some().then(|| CurveRecorder::new(&scenario));
    let logged = bblog.is_some() || qlog.is_some();
    let side = logged.then(|| own_side(&mut scenario, inside, sends));
    let mut rows = EventObserver { logs: RunLogs::new(), curves, columns: None };
    if let Some((path, out)) = args.csv.as_deref().zip(csv) {
        rows.logs.add(path, Box::new(CsvRecorder::new(out)));
    }
    if let (Some(path), Some(out), Some(side)) = (args.bblog.as_deref(), bblog, side) {
        let log = BlackBox::new(&scenario, side, &comment, out);
        rows.logs.add(path, Box::new(log.map_err(|error| failed(Some(path), &error))?));
    }
    if let (Some(path), Some(out), Some(side)) = (args.qlog.as_deref(), qlog, side) {
        let log = Qlog::new(&scenario, side, &loaded.sha256, QlogFormat::Current, out);
        rows.logs.add(path, Box::new(log.map_err(|error| failed(Some(path), &error))?));
    }
    let endpoints = capture::flow_endpoints(&scenario);
    let real = RealTimeRun {
        scenario: &scenario,
        outside: &outside,
        play: wire_io::HostWorkload::Flows(&endpoints),
        poll: POLL,
        capture: pcap.map(|out| (out, comment.as_str(), loaded.scenario.taps.len())),
    };
    let mut done = real.run(&mut rows)?;
    let mut report = report(&loaded, &outside, &done);
    if given {
        report.set_model(model(&loaded.scenario)?, &[]);
    }
    if let Some(out) = done.capture.take() {
        out.commit()?;
    }
    let subtitle = format!("on the wire, {}", subtitle(&file, &scenario));
    rows.logs.finish()?;
    if let (Some(curves), Some(mut out)) = (rows.curves, svg) {
        let chart = curves.to_svg(&scenario.title, &subtitle);
        let written = out.write_all(chart.as_bytes());
        written.map_err(|error| failed(args.svg.as_deref(), &error))?;
        out.commit()?;
    }
    print_report(&report, args.json)
}

/// The scenario of the arguments, or a path without delay.
fn scenario(args: &mut EndArgs, sends: bool) -> Result<(PathBuf, Loaded), Failure> {
    if args.scenario.file.is_some() {
        return load_scenario(core::mem::take(&mut args.scenario));
    }
    let text = clean_path(&args.profile, args.cc.as_deref(), args.bytes, args.ip == 6, sends);
    let set = core::mem::take(&mut args.scenario.set);
    let overrides = Overrides { set, seed: args.scenario.seed, ..Overrides::default() };
    let loaded = load(&text, "(from the arguments)", &overrides).map_err(Failure::Scenario)?;
    Ok((PathBuf::from("no scenario"), loaded))
}

/// The simulated endpoint of the first flow.
fn own_side(scenario: &mut Scenario, inside: usize, sends: bool) -> LoggedEndpoint {
    let tap = capture::tap(scenario, inside, TapPoint::Stack);
    let out = if sends { Dir::Forward } else { Dir::Reverse };
    LoggedEndpoint { flow: FlowId(0), host: HostId(inside as u16), out, tap }
}
