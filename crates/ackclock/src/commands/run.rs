//! `ackclock run`: runs a scenario in virtual time with the requested outputs.

mod outputs;
mod watchers;

use std::io::{self, BufWriter};
use std::path::Path;
use std::process::ExitCode;

use export::capture::{self, TraceLines};
use export::curves::CurveRecorder;
use export::kernel_log::LoggedEndpoint;
use pages::run_page::RunPageRecorder;
use runner::run_report::{RunReport, table};
use runner::series::SenderSeries;
use runner::sharing::{self, Sharing};
use scenario::{Loaded, Stacks, nearest};
use sim::scenario::{HostSpec, Scenario, TapPoint};
use sim::{Observer, ObserverPair, RunOutcome};
use units::Instant;

use super::guests::Kernels;
use super::{load_with_kernels, stack};
use crate::cli::RunArgs;
use crate::failure::{Failure, print_error};
use crate::output::{OutFile, print, standard_output, written};
use crate::progress::Progress;
use crate::visible::ShownPath as _;
use outputs::{OpenOutput, OutputSource, RequestedOutput, Results, RunContext};
use watchers::Taps;

pub(super) use watchers::{EventObserver, RunLogs};

pub(super) fn run(mut args: RunArgs) -> Result<ExitCode, Failure> {
    super::needs_features(args.parquet.is_some(), args.png.is_some())?;
    if args.scenario.file.is_none()
        && let Some(Some(host)) = &args.tcpdump
    {
        let message = format!("no scenario file given: `{host}` is read as the host of --tcpdump");
        return Err(Failure::new(message).hint("put the file first: run FILE.toml --tcpdump"));
    }
    let (file, loaded) = load_with_kernels(core::mem::take(&mut args.scenario), stacks(&args)?)?;
    let kernels = Kernels::of(&loaded, &file, args.allow_exec)?;
    // A tap does not change a run, and the checksum covers the text only.
    let mut scenario = loaded.scenario.clone();
    let trace_tap = match &args.tcpdump {
        Some(host) => Some(trace_tap(&mut scenario, host.as_deref())?),
        None => None,
    };
    let asked = outputs::create_all(&args, &file)?;
    let wants = |source| asked.iter().any(|one| one.output.source(&args) == source);
    let plan = args.thinning.plan("--columns", args.columns.as_deref())?;
    if plan.is_some() && !wants(OutputSource::Columns) {
        return Err(Failure::new("--columns needs --csv, --jsonl or --parquet"));
    }
    if !wants(OutputSource::Curves) && (args.from.is_some() || args.until.is_some()) {
        return Err(Failure::new("--from and --until need --svg or --png"));
    }
    if args.from.zip(args.until).is_some_and(|(from, until)| from >= until) {
        return Err(Failure::new("--from: expected an instant before --until"));
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
    let mut story = match wants(OutputSource::Page) {
        // A page of many flows plots the slowest, which a first run finds.
        true if RunPageRecorder::selects(&scenario) && kernels.is_empty() => {
            let mut taps = Taps {
                lines: None,
                captures: RunLogs::new(),
                progress: Progress::new(scenario.duration),
                files_wanted: true,
            };
            let first = kernels.run_shared(&scenario, &mut taps)?;
            Some(RunPageRecorder::of_slowest(&mut scenario, &first))
        }
        true => Some(RunPageRecorder::of(&mut scenario)),
        false => None,
    };
    let scenario = &scenario;
    let curves = wants(OutputSource::Curves).then(|| {
        let until = args.until.map_or(Instant::MAX, |until| Instant::ZERO + until);
        CurveRecorder::new(scenario).between(Instant::ZERO + args.from.unwrap_or_default(), until)
    });
    let files_wanted = !asked.is_empty();

    let comment = format!("{}\nscenario sha256 {}", scenario.title, loaded.sha256);
    let run = RunContext { args: &args, loaded: &loaded, scenario, comment: &comment, sender };
    let (mut captures, mut logs, mut later) = (RunLogs::new(), RunLogs::new(), Vec::new());
    for one in asked {
        let source = one.output.source(&args);
        let RequestedOutput { output, path, file } = one.begin(&run)?;
        match file {
            OpenOutput::Log(capture) if source == OutputSource::Taps => captures.add(path, capture),
            OpenOutput::Log(log) => logs.add(path, log),
            OpenOutput::Later(file) => later.push(RequestedOutput { output, path, file }),
        }
    }
    let columns = plan.map(|plan| SenderSeries::new(scenario, &plan));
    let mut rows = EventObserver { logs, curves, columns };
    let mut taps = Taps {
        lines: trace_tap
            .map(|tap| TraceLines::new(scenario, tap, BufWriter::new(standard_output()))),
        captures,
        progress: Progress::new(scenario.duration),
        files_wanted,
    };
    // Pages, --json and --queues also show the queues of a single flow.
    let is_shared = Sharing::concerns(scenario) || args.json;
    let is_detailed = args.json || story.is_some() || args.queues.is_some();
    let mut sharing = match is_detailed {
        true => Some(Sharing::detailed(scenario)),
        false => is_shared.then(|| Sharing::new(scenario)),
    };
    sharing = sharing.map(|sharing| sharing.without_reads_of(&kernels.hosts()));
    let outcome = match (&mut story, &mut sharing) {
        (None, None) if rows.is_empty() => kernels.run_shared(scenario, &mut taps)?,
        // Only this has an engine of its own: writing takes longer than the calls of the shared one.
        (None, Some(sharing)) if rows.is_empty() => {
            kernels.run_sharing(scenario, sharing, &mut taps)?
        }
        (story, sharing) => {
            let mut all = ObserverPair(&mut rows, &mut taps);
            watch(&kernels, scenario, story.as_mut(), &mut all, sharing.as_mut())?
        }
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
            if !args.json && kernels.hosts().is_empty() {
                let effects = sharing::phase_effects(&loaded.scenario, outcome.segments);
                effects.iter().for_each(|effects| print_error(&format!("note: {effects}\n")));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The real QUIC stacks that hosts can be.
fn stacks(args: &RunArgs) -> Result<Stacks, Failure> {
    let Some(logs) = &args.stack_logs else { return Ok(stack::programs(None)) };
    let failed = |error: io::Error| Failure::file("create", logs, &error);
    std::fs::create_dir_all(logs).map_err(failed)?;
    Ok(stack::programs(Some(logs.canonicalize().map_err(failed)?)))
}

/// Formats the result of a run as JSON or as a table.
fn result(json: bool, loaded: &Loaded, outcome: &RunOutcome, sharing: Option<&Sharing>) -> String {
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

/// Runs the scenario with all observers.
fn watch<O: Observer>(
    kernels: &Kernels,
    scenario: &Scenario,
    story: Option<&mut RunPageRecorder>,
    others: &mut O,
    sharing: Option<&mut Sharing>,
) -> Result<RunOutcome, Failure> {
    // Only a page records every packet.
    match story {
        Some(story) => simulate(kernels, scenario, &mut ObserverPair(story, others), sharing),
        None => simulate(kernels, scenario, others, sharing),
    }
}

fn simulate<O: Observer>(
    kernels: &Kernels,
    scenario: &Scenario,
    observer: &mut O,
    sharing: Option<&mut Sharing>,
) -> Result<RunOutcome, Failure> {
    match sharing {
        Some(sharing) => kernels.run_shared(scenario, &mut ObserverPair(sharing, observer)),
        None => kernels.run_shared(scenario, observer),
    }
}

/// The sender of the first flow, the default host of an output.
fn first_sender(scenario: &Scenario) -> usize {
    scenario.flows.first().map_or(0, |flow| flow.from)
}

/// Returns an error for a QUIC host; `why` says that the output is for TCP.
fn has_tcp(host: &HostSpec, why: &str) -> Result<(), Failure> {
    if host.stack.tcp().is_some() {
        return Ok(());
    }
    let failure = Failure::new(format!("{why}, and `{}` runs QUIC", host.name));
    Err(failure.hint("--qlog logs a QUIC sender"))
}

/// Index of the tap on the stack of `host`.
fn trace_tap(scenario: &mut Scenario, host: Option<&str>) -> Result<usize, Failure> {
    let names = || scenario.hosts.iter().map(|host| host.name.as_str());
    let index = match host {
        None => first_sender(scenario),
        Some(host) => names().position(|name| name == host).ok_or_else(|| {
            let failure = Failure::new(format!("--tcpdump: unknown host `{host}`"));
            let all = names().collect::<Vec<_>>().join(", ");
            failure.hint(match nearest(host, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("hosts are {all}"),
            })
        })?,
    };
    has_tcp(&scenario.hosts[index], "--tcpdump prints TCP packets")?;
    Ok(capture::tap(scenario, index, TapPoint::Stack))
}

/// The endpoint that --bblog, --siftr and --qlog log.
fn logged(scenario: &mut Scenario, flow: Option<&str>) -> Result<LoggedEndpoint, Failure> {
    let names = || scenario.flows.iter().map(|flow| flow.name.as_str());
    let index = match flow {
        None => 0,
        Some(flow) => names().position(|name| name == flow).ok_or_else(|| {
            let failure = Failure::new(format!("--log-flow: unknown flow `{flow}`"));
            let all = names().collect::<Vec<_>>().join(", ");
            failure.hint(match nearest(flow, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("flows are {all}"),
            })
        })?,
    };
    LoggedEndpoint::sender(scenario, index)
        .ok_or_else(|| Failure::new("the scenario has no flow to log"))
}

/// Returns an error if two outputs write to one file.
pub(super) fn require_distinct(
    outputs: &[(&str, &Option<OutFile>, Option<&Path>)],
) -> Result<(), Failure> {
    for (index, (option, _, path)) in outputs.iter().enumerate() {
        let Some(path) = path else { continue };
        let same = |(_, file, _): &&(&str, &Option<OutFile>, Option<&Path>)| {
            file.as_ref().is_some_and(|file| file.is(path))
        };
        if let Some((other, ..)) = outputs[..index].iter().find(same) {
            let path = path.shown();
            return Err(Failure::new(format!("{other} and {option} both write {path}")));
        }
    }
    Ok(())
}

/// The subtitle of a chart: version, file and checksum.
pub(super) fn subtitle(file: &Path, scenario: &Scenario) -> String {
    let name = name_of(file);
    format!("{name}, seed {}, ackclock {}", scenario.seed, env!("CARGO_PKG_VERSION"))
}

/// Name of a file without its directory.
fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

/// Creates an output file, which must not be the scenario itself.
pub(super) fn create(path: &Path, scenario: &Path) -> Result<OutFile, Failure> {
    let out = OutFile::create(path)?;
    if out.is(scenario) {
        return Err(Failure::new(format!("{} is the scenario itself", path.shown())));
    }
    Ok(out)
}

pub(super) fn failed(path: Option<&Path>, error: &io::Error) -> Failure {
    Failure::file("write", path.unwrap_or(Path::new("")), error)
}
