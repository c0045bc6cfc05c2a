//! `ackclock run`: a scenario in virtual time, with the outputs that the arguments ask for.

mod outputs;
mod watchers;

use std::io::{self, BufWriter};
use std::path::Path;
use std::process::ExitCode;

use export::capture::{self, TraceLines};
use export::curves::Curves;
use export::kernel_log::Side;
use pages::run_page::RunStory;
use runner::run_report::{RunReport, table};
use runner::series::SenderSeries;
use runner::sharing::{self, Sharing};
use scenario::{Loaded, nearest};
use sim::scenario::{Host, Scenario, TapPlace};
use sim::{Observer, Outcome, Watch};

use super::load_scenario;
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::output::{OutFile, print, standard_output, written};
use crate::progress::Progress;
use outputs::{Asked, Begun, Results, Run, Source};
use watchers::Taps;

pub(super) use watchers::{Logs, Rows};

pub(super) fn run(mut args: RunArgs) -> Result<ExitCode, Failure> {
    super::needs_features(args.parquet.is_some(), args.png.is_some())?;
    if args.scenario.file.is_none()
        && let Some(Some(host)) = &args.tcpdump
    {
        let message =
            format!("no scenario file given: {host:?} is taken for the host of --tcpdump");
        return Err(Failure::new(message).hint("put the file first: run FILE.toml --tcpdump"));
    }
    let (file, loaded) = load_scenario(core::mem::take(&mut args.scenario))?;
    // A tap changes nothing in a run, and the checksum is that of the text.
    let mut scenario = loaded.scenario.clone();
    let trace_tap = match &args.tcpdump {
        Some(host) => Some(trace_tap(&mut scenario, host.as_deref())?),
        None => None,
    };
    let asked = outputs::create_all(&args, &file)?;
    let wants = |source| asked.iter().any(|one| one.output.source(&args) == source);
    let plan = args.thinning.plan("--columns", args.columns.as_deref())?;
    if plan.is_some() && !wants(Source::Columns) {
        return Err(Failure::new("--columns needs --csv, --jsonl or --parquet"));
    }
    let sender = match asked.iter().any(|one| one.output.logs_sender()) {
        true => Some(logged(&mut scenario, args.log_flow.as_deref())?),
        false if args.log_flow.is_some() => {
            return Err(Failure::new("--log-flow needs --bblog, --siftr or --qlog"));
        }
        false => None,
    };
    for one in &asked {
        one.output.prepare(&loaded, &mut scenario, sender)?;
    }
    let mut story = wants(Source::Page).then(|| RunStory::of(&mut scenario));
    let scenario = &scenario;
    let curves = wants(Source::Curves).then(|| Curves::new(scenario));
    let files_wanted = !asked.is_empty();

    let comment = format!("{}\nscenario sha256 {}", scenario.title, loaded.sha256);
    let run = Run { args: &args, loaded: &loaded, scenario, comment: &comment, sender };
    let (mut captures, mut logs, mut later) = (Logs::new(), Logs::new(), Vec::new());
    for one in asked {
        let source = one.output.source(&args);
        let Asked { output, path, file } = one.begin(&run)?;
        match file {
            Begun::Log(capture) if source == Source::Taps => captures.add(path, capture),
            Begun::Log(log) => logs.add(path, log),
            Begun::Later(file) => later.push(Asked { output, path, file }),
        }
    }
    let columns = plan.map(|plan| SenderSeries::new(scenario, &plan));
    let mut rows = Rows { logs, curves, columns };
    let mut taps = Taps {
        lines: trace_tap
            .map(|tap| TraceLines::new(scenario, tap, BufWriter::new(standard_output()))),
        captures,
        progress: Progress::new(scenario.duration),
        files_wanted,
    };
    // A page shows the queues of a single flow too.
    let is_shared = Sharing::concerns(scenario);
    let mut sharing = (is_shared || story.is_some()).then(|| Sharing::new(scenario));
    let outcome = if rows.is_empty() {
        watch(scenario, story.as_mut(), &mut taps, sharing.as_mut())?
    } else {
        let mut all = Watch(&mut rows, &mut taps);
        watch(scenario, story.as_mut(), &mut all, sharing.as_mut())?
    };

    rows.logs.finish()?;
    let subtitle = subtitle(&file, scenario);
    let mut results = Results {
        loaded: &loaded,
        outcome: &outcome,
        name: name_of(&file),
        chart: rows.curves.map(|curves| curves.to_svg(&scenario.title, &subtitle)),
        columns: rows.columns.map(SenderSeries::into_collector),
        story,
        sharing: sharing.as_ref(),
    };
    later.into_iter().try_for_each(|one| one.write(&mut results))?;
    let Taps { lines, captures, progress, .. } = taps;
    drop(progress);
    captures.finish()?;
    match lines {
        Some(lines) => written(lines.finish().map(drop))?,
        None => {
            let sharing = sharing.filter(|_| is_shared);
            print(&result(args.json, &loaded, &outcome, sharing.as_ref()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The result of a run as JSON or as a table.
fn result(json: bool, loaded: &Loaded, outcome: &Outcome, sharing: Option<&Sharing>) -> String {
    if json {
        let report = RunReport::new(loaded, outcome);
        return match sharing {
            Some(sharing) => report.with(sharing, loaded, outcome).to_json(),
            None => report.to_json(),
        };
    }
    let mut text = table(loaded, outcome);
    if let Some(sharing) = sharing {
        text += &format!("\n{}", sharing::text(&sharing.report(&loaded.scenario, outcome)));
    }
    text
}

/// Runs the scenario under all observers.
fn watch<O: Observer>(
    scenario: &Scenario,
    story: Option<&mut RunStory>,
    others: &mut O,
    sharing: Option<&mut Sharing>,
) -> Result<Outcome, Failure> {
    // A page needs every packet, for which others need not pay.
    match story {
        Some(story) => simulate(scenario, &mut Watch(story, others), sharing),
        None => simulate(scenario, others, sharing),
    }
}

fn simulate<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
    sharing: Option<&mut Sharing>,
) -> Result<Outcome, Failure> {
    let outcome = match sharing {
        Some(sharing) => sim::run(scenario, &mut Watch(sharing, observer)),
        None => sim::run(scenario, observer),
    };
    outcome.map_err(|error| Failure::new(format!("the scenario cannot be run: {error}")))
}

/// The sender of the first flow: the default host of an output.
fn first_sender(scenario: &Scenario) -> usize {
    scenario.flows.first().map_or(0, |flow| flow.from)
}

/// Refuses a host that has QUIC; `why` says that the output is of TCP.
fn has_tcp(host: &Host, why: &str) -> Result<(), Failure> {
    if host.stack.tcp().is_some() {
        return Ok(());
    }
    let failure = Failure::new(format!("{why}, and {:?} has QUIC", host.name));
    Err(failure.hint("--qlog writes what a QUIC sender sends, receives and knows"))
}

/// Number of the tap on the stack of `host`.
fn trace_tap(scenario: &mut Scenario, host: Option<&str>) -> Result<usize, Failure> {
    let names = || scenario.hosts.iter().map(|host| host.name.as_str());
    let index = match host {
        None => first_sender(scenario),
        Some(host) => names().position(|name| name == host).ok_or_else(|| {
            let failure = Failure::new(format!("--tcpdump: there is no host {host:?}"));
            let all = names().collect::<Vec<_>>().join(", ");
            failure.hint(match nearest(host, names()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("hosts are {all}"),
            })
        })?,
    };
    has_tcp(&scenario.hosts[index], "--tcpdump prints packets of TCP")?;
    Ok(capture::tap(scenario, index, TapPlace::Stack))
}

/// The end of the connection that --bblog, --siftr and --qlog log.
fn logged(scenario: &mut Scenario, flow: Option<&str>) -> Result<Side, Failure> {
    let names = || scenario.flows.iter().map(|flow| flow.name.as_str());
    let index = match flow {
        None => 0,
        Some(flow) => names().position(|name| name == flow).ok_or_else(|| {
            let failure = Failure::new(format!("--log-flow: there is no flow {flow:?}"));
            let all = names().collect::<Vec<_>>().join(", ");
            failure.hint(match nearest(flow, names()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("flows are {all}"),
            })
        })?,
    };
    Side::sender(scenario, index).ok_or_else(|| Failure::new("the scenario has no flow to log"))
}

/// Refuses one file for two outputs.
pub(super) fn apart(outputs: &[(&str, &Option<OutFile>, Option<&Path>)]) -> Result<(), Failure> {
    for (index, (option, _, path)) in outputs.iter().enumerate() {
        let Some(path) = path else { continue };
        let same = |(_, file, _): &&(&str, &Option<OutFile>, Option<&Path>)| {
            file.as_ref().is_some_and(|file| file.is(path))
        };
        if let Some((other, ..)) = outputs[..index].iter().find(same) {
            let path = path.display();
            return Err(Failure::new(format!("{other} and {option} both write {path}")));
        }
    }
    Ok(())
}

/// Where a chart comes from.
pub(super) fn subtitle(file: &Path, scenario: &Scenario) -> String {
    let name = name_of(file);
    format!("{name}, seed {}, ackclock {}", scenario.seed, env!("CARGO_PKG_VERSION"))
}

/// Name of a file without its directory.
fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// An output file, which must not be the scenario itself.
pub(super) fn create(path: &Path, scenario: &Path) -> Result<OutFile, Failure> {
    let out = OutFile::create(path)?;
    if out.is(scenario) {
        return Err(Failure::new(format!("{} is the scenario itself", path.display())));
    }
    Ok(out)
}

pub(super) fn failed(path: Option<&Path>, error: &io::Error) -> Failure {
    Failure::file("write", path.unwrap_or(Path::new("")), error)
}
