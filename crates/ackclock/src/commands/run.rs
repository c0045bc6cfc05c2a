//! `ackclock run`: a scenario in virtual time, watched as the arguments ask.

mod watchers;

use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;

use export::capture::{self, Capture, TraceLines};
#[cfg(feature = "parquet")]
use export::columns::{EventColumns, write_series};
use export::curves::Curves;
use export::kernel_log::{BlackBox, Side, Siftr};
use export::qlog::Qlog;
use pages::run_page::RunStory;
use runner::run_report::{RunReport, table};
use runner::series::SenderSeries;
use runner::sharing::{self, Sharing};
use scenario::nearest;
use sim::scenario::{Host, Scenario, TapPlace};
use sim::{Observer, Outcome, Watch};
use trace::csv::CsvRecorder;
use trace::qlog::Form as QlogKind;
use trace::series::Form;
use trace::siftr::Generation;

use super::load_scenario;
use crate::cli::{QlogForm, RunArgs, SiftrVersion};
use crate::failure::Failure;
use crate::output::{OutFile, print, standard_output, written};
use crate::progress::Progress;
use watchers::Taps;

pub(super) use watchers::Rows;

/// What columns may be written to.
const TABLES: &str = "--csv, --jsonl or --parquet";

pub(super) fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    super::needs_features(args.parquet.is_some(), args.png.is_some())?;
    if args.scenario.file.is_none()
        && let Some(Some(host)) = &args.tcpdump
    {
        let message =
            format!("no scenario file given: {host:?} is taken for the host of --tcpdump");
        return Err(Failure::new(message).hint("put the file first: run FILE.toml --tcpdump"));
    }
    let (file, loaded) = load_scenario(args.scenario)?;
    // A tap changes nothing in a run, nor in the text that stands for it.
    let mut scenario = loaded.scenario.clone();
    let trace_tap = match &args.tcpdump {
        Some(host) => Some(trace_tap(&mut scenario, host.as_deref())?),
        None => None,
    };
    let pcap = args.pcap.as_deref().map(|path| create(path, &file)).transpose()?;
    let csv = args.csv.as_deref().map(|path| create(path, &file)).transpose()?;
    let svg = args.svg.as_deref().map(|path| create(path, &file)).transpose()?;
    let jsonl = args.jsonl.as_deref().map(|path| create(path, &file)).transpose()?;
    let png_path = args.png.as_deref();
    let png = png_path.map(|path| create(path, &file)).transpose()?;
    let parquet_path = args.parquet.as_deref();
    let parquet = parquet_path.map(|path| create(path, &file)).transpose()?;
    let report = args.report.as_deref().map(|path| create(path, &file)).transpose()?;
    let bblog = args.bblog.as_deref().map(|path| create(path, &file)).transpose()?;
    let siftr = args.siftr.as_deref().map(|path| create(path, &file)).transpose()?;
    let qlog = args.qlog.as_deref().map(|path| create(path, &file)).transpose()?;
    apart(&[
        ("--pcap", &pcap, args.pcap.as_deref()),
        ("--csv", &csv, args.csv.as_deref()),
        ("--svg", &svg, args.svg.as_deref()),
        ("--jsonl", &jsonl, args.jsonl.as_deref()),
        ("--parquet", &parquet, parquet_path),
        ("--png", &png, png_path),
        ("--report", &report, args.report.as_deref()),
        ("--bblog", &bblog, args.bblog.as_deref()),
        ("--siftr", &siftr, args.siftr.as_deref()),
        ("--qlog", &qlog, args.qlog.as_deref()),
    ])?;
    let plan = args.thinning.plan("--columns", args.columns.as_deref())?;
    if plan.is_some() && csv.is_none() && jsonl.is_none() && parquet.is_none() {
        return Err(Failure::new(format!("--columns needs {TABLES}")));
    }
    // With columns, the rows are those of the columns and not of all events.
    let (csv, columns_csv) = if plan.is_some() { (None, csv) } else { (csv, None) };
    #[cfg_attr(not(feature = "parquet"), expect(unused_variables, reason = "refused above"))]
    let (parquet, columns_parquet) = if plan.is_some() { (None, parquet) } else { (parquet, None) };
    let wanted = bblog.is_some() || siftr.is_some() || qlog.is_some();
    let logged = match (wanted, &args.log_flow) {
        (true, name) => {
            let side = logged(&mut scenario, name.as_deref())?;
            let kernels = [("--bblog", bblog.is_some()), ("--siftr", siftr.is_some())];
            if let Some((option, _)) = kernels.into_iter().find(|(_, asked)| *asked) {
                let host = &scenario.hosts[usize::from(side.host.0)];
                has_tcp(host, &format!("{option} is a log of FreeBSD's TCP"))?;
            }
            Some(side)
        }
        (false, Some(_)) => {
            return Err(Failure::new("--log-flow needs --bblog, --siftr or --qlog"));
        }
        (false, None) => None,
    };
    let capture_taps: Vec<usize> = match loaded.scenario.taps.len() {
        0 if pcap.is_some() => {
            let sender = sender(&scenario);
            has_tcp(&scenario.hosts[sender], "--pcap writes packets of TCP")?;
            vec![capture::tap(&mut scenario, sender, TapPlace::Stack)]
        }
        taps => (0..taps).collect(),
    };

    let mut story = report.is_some().then(|| RunStory::of(&mut scenario));
    let scenario = &scenario;
    let comment = format!("{}\nscenario sha256 {}", scenario.title, loaded.sha256);
    let capture = pcap.map(|out| Capture::new(scenario, &capture_taps, &comment, out));
    let rows_wanted = csv.is_some() || parquet.is_some() || logged.is_some();
    let charted = svg.is_some() || png.is_some();
    let files_wanted =
        capture.is_some() || rows_wanted || charted || plan.is_some() || story.is_some();
    let mut taps = Taps {
        lines: trace_tap
            .map(|tap| TraceLines::new(scenario, tap, BufWriter::new(standard_output()))),
        capture: capture.transpose().map_err(|error| failed(args.pcap.as_deref(), &error))?,
        progress: Progress::new(scenario.duration),
        files_wanted,
    };
    // A page shows the queues of a single flow too.
    let is_told = Sharing::concerns(scenario);
    let mut seen = (is_told || story.is_some()).then(|| Sharing::new(scenario));
    let outcome = if rows_wanted || charted || plan.is_some() {
        let mut rows = Rows {
            csv: csv.map(CsvRecorder::new),
            curves: charted.then(|| Curves::new(scenario)),
            series: plan.map(|plan| SenderSeries::new(scenario, &plan)),
            bblog: None,
            siftr: None,
            qlog: None,
            #[cfg(feature = "parquet")]
            parquet: None,
        };
        #[cfg(feature = "parquet")]
        if let Some(out) = parquet {
            let table = EventColumns::new(scenario, &loaded.sha256, out);
            rows.parquet = Some(table.map_err(|error| failed(parquet_path, &error))?);
        }
        if let (Some(side), Some(out)) = (logged, bblog) {
            let log = BlackBox::new(scenario, side, &comment, out);
            rows.bblog = Some(log.map_err(|error| failed(args.bblog.as_deref(), &error))?);
        }
        if let (Some(side), Some(out)) = (logged, siftr) {
            let log = Siftr::new(scenario, side, generation(args.siftr_version), out);
            rows.siftr = Some(log.map_err(|error| failed(args.siftr.as_deref(), &error))?);
        }
        if let (Some(side), Some(out)) = (logged, qlog) {
            let log = Qlog::new(scenario, side, &loaded.sha256, form(args.qlog_form), out);
            rows.qlog = Some(log.map_err(|error| failed(args.qlog.as_deref(), &error))?);
        }
        let watched = Watch(rows, taps);
        let (outcome, told, Watch(rows, watched)) = watch(scenario, story, watched, seen.as_mut())?;
        taps = watched;
        story = told;
        if let Some(csv) = rows.csv {
            csv.finish().map_err(|error| failed(args.csv.as_deref(), &error))?.commit()?;
        }
        if let Some(log) = rows.bblog {
            log.finish().map_err(|error| failed(args.bblog.as_deref(), &error))?.commit()?;
        }
        if let Some(log) = rows.siftr {
            log.finish().map_err(|error| failed(args.siftr.as_deref(), &error))?.commit()?;
        }
        if let Some(log) = rows.qlog {
            log.finish().map_err(|error| failed(args.qlog.as_deref(), &error))?.commit()?;
        }
        #[cfg(feature = "parquet")]
        if let Some(table) = rows.parquet {
            table.finish().map_err(|error| failed(parquet_path, &error))?.commit()?;
        }
        if let Some(curves) = rows.curves {
            let chart = curves.to_svg(&scenario.title, &subtitle(&file, scenario));
            if let Some(mut out) = svg {
                let written = out.write_all(chart.as_bytes());
                written.map_err(|error| failed(args.svg.as_deref(), &error))?;
                out.commit()?;
            }
            if let Some(mut out) = png {
                let written = out.write_all(&crate::png::of_svg(&chart)?);
                written.map_err(|error| failed(png_path, &error))?;
                out.commit()?;
            }
        }
        if let Some(series) = rows.series {
            let mut collector = series.into_collector();
            let outputs = [
                (columns_csv, Form::Csv, args.csv.as_deref()),
                (jsonl, Form::JsonLines, args.jsonl.as_deref()),
            ];
            for (out, form, path) in outputs {
                let Some(mut out) = out else { continue };
                collector.write(form, &mut out).map_err(|error| failed(path, &error))?;
                out.commit()?;
            }
            #[cfg(feature = "parquet")]
            if let Some(out) = columns_parquet {
                let written = write_series(&mut collector, scenario, &loaded.sha256, out);
                written.map_err(|error| failed(parquet_path, &error))?.commit()?;
            }
        }
        outcome
    } else {
        let (outcome, told, watched) = watch(scenario, story, taps, seen.as_mut())?;
        taps = watched;
        story = told;
        outcome
    };
    if let (Some(story), Some(mut out)) = (story, report) {
        let page = story.page(&loaded, &outcome, &name_of(&file), seen.as_ref());
        page.write(&mut out).map_err(|error| failed(args.report.as_deref(), &error))?;
        out.commit()?;
    }
    let seen = seen.filter(|_| is_told);
    drop(taps.progress);
    if let Some(capture) = taps.capture {
        capture.finish().map_err(|error| failed(args.pcap.as_deref(), &error))?.commit()?;
    }
    match taps.lines {
        Some(lines) => written(lines.finish().map(drop))?,
        None if args.json => {
            let report = RunReport::new(&loaded, &outcome);
            let report = match &seen {
                Some(seen) => report.with(seen, &loaded, &outcome),
                None => report,
            };
            print(&report.to_json())?;
        }
        None => {
            print(&table(&loaded, &outcome))?;
            if let Some(seen) = &seen {
                print(&format!("\n{}", sharing::text(&seen.report(scenario, &outcome))))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the scenario under all who watch; what they saw is given back.
fn watch<O: Observer>(
    scenario: &Scenario,
    story: Option<RunStory>,
    mut others: O,
    seen: Option<&mut Sharing>,
) -> Result<(Outcome, Option<RunStory>, O), Failure> {
    // A page wants to be told of every packet, which others need not pay for.
    let Some(story) = story else {
        return Ok((simulate(scenario, &mut others, seen)?, None, others));
    };
    let mut all = Watch(story, others);
    let outcome = simulate(scenario, &mut all, seen)?;
    Ok((outcome, Some(all.0), all.1))
}

fn simulate<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
    seen: Option<&mut Sharing>,
) -> Result<Outcome, Failure> {
    let outcome = match seen {
        Some(seen) => sim::run(scenario, &mut Watch(seen, observer)),
        None => sim::run(scenario, observer),
    };
    outcome.map_err(|error| Failure::new(format!("the scenario cannot be run: {error}")))
}

/// The host whose view of a run is meant where none is named.
fn sender(scenario: &Scenario) -> usize {
    scenario.flows.first().map_or(0, |flow| flow.from)
}

/// Refuses a host that has QUIC: `why` no such output is written of it.
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
        None => sender(scenario),
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

const fn generation(version: SiftrVersion) -> Generation {
    match version {
        SiftrVersion::V1_2 => Generation::V1_2,
        SiftrVersion::V1_3 => Generation::V1_3,
        SiftrVersion::V2 => Generation::V2,
    }
}

const fn form(form: QlogForm) -> QlogKind {
    match form {
        QlogForm::Current => QlogKind::Current,
        QlogForm::Qvis => QlogKind::Qvis,
    }
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
