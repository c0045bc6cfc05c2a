//! The comparison, on systems that run User-Mode Linux.

use std::io::Write as _;
use std::process::ExitCode;

use export::capture;
use guest::card;
use guest::compare::{ComparedPacket, Difference, FlowComparison, PacketRecord, compare};
use guest::plan::BEFORE_END;
use record::SenderState;
use scenario::{KernelHost, Stacks};
use serde_json::{Value as Json, json};
use sim::scenario::Scenario;
use tcp::profile::Family;
use units::{Bytes, Duration, Instant};
use wire_io::FlowBytes;

use super::formats::ComparedScenario;
use super::page::{self, GradePage};
use crate::cli::GradesArgs;
use crate::commands::guests::Kernels;
use crate::commands::load_with_kernels;
use crate::commands::run::{create, failed, require_distinct};
use crate::commands::wire::{RealTimeRun, prepare, with_writes};
use crate::failure::Failure;
use crate::output::print;

/// Memory of kernels that the scenario does not name: enough for the windows of fast paths (`tcp_mem`).
const MEMORY: Bytes = Bytes(512 << 20);
/// Interval at which a kernel on the wire is asked for its `TCP_INFO`.
const POLL: Duration = Duration::from_millis(1);

/// State of a sender's stack just before a packet: name and value.
pub(super) type State = Vec<(&'static str, String)>;

/// The hosts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grade {
    /// Models.
    Model,
    /// Kernels in virtual time, where the scenario can have them.
    Kernel,
    /// This machine's kernel in real time.
    Wire,
}

impl Grade {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Kernel => "kernel",
            Self::Wire => "wire",
        }
    }
}

/// One run of the scenario.
pub(super) struct GradeRun {
    pub(super) grade: Grade,
    pub(super) record: PacketRecord,
    /// What was read from the sockets of the wire.
    sockets: Vec<FlowBytes>,
}

/// Two runs compared.
pub(super) struct Comparison {
    /// Their numbers.
    pub(super) runs: [usize; 2],
    pub(super) flows: Vec<FlowComparison>,
    /// Of each flow: both states just before the first difference.
    pub(super) states: Vec<[Option<State>; 2]>,
}

pub(super) fn run(args: GradesArgs) -> Result<ExitCode, Failure> {
    let grades = grades(&args);
    let (file, mut loaded) = load_with_kernels(args.scenario.clone(), Stacks::Modelled)?;
    if !loaded.stacks.is_empty() {
        return super::stacks::run(args, loaded);
    }
    let named = args.kernel.flatten();
    let by_kernel = grades.contains(&Grade::Kernel);
    if by_kernel && (named.is_some() || loaded.kernels.is_empty()) {
        let name = kernel_name(named, linux_profile(&loaded.scenario))?;
        loaded.kernels = linux_hosts(&loaded.scenario, &name)?;
    }
    if grades.contains(&Grade::Wire) {
        prepare()?;
        // The applications of the wire write in pieces: so do all.
        loaded.scenario = with_writes(&loaded.scenario);
    }
    let kernels = match by_kernel {
        true => Kernels::of(&loaded, &file, args.allow_exec)?,
        false => Kernels::default(),
    };
    let page = args.report.as_deref().map(|path| create(path, &file)).transpose()?;
    let mut formats = Vec::new();
    for path in [&args.junit, &args.sarif, &args.markdown] {
        formats.push(path.as_deref().map(|path| create(path, &file)).transpose()?);
    }
    require_distinct(&[
        ("--report", &page, args.report.as_deref()),
        ("--junit", &formats[0], args.junit.as_deref()),
        ("--sarif", &formats[1], args.sarif.as_deref()),
        ("--markdown", &formats[2], args.markdown.as_deref()),
    ])?;
    let mut cards = Vec::new();
    if by_kernel {
        for kernel in &loaded.kernels {
            let host = &mut loaded.scenario.hosts[kernel.host];
            if card::apply(host) {
                cards.push(host.name.clone());
            }
        }
    }
    let mut scenario = loaded.scenario.clone();
    let mut modelled = scenario.clone();
    let mut runs: Vec<Option<GradeRun>> = grades.iter().map(|_| None).collect();
    // Kernels first: they say when their applications are awake.
    let mut order: Vec<usize> = (0..grades.len()).collect();
    order.sort_by_key(|&number| grades[number] != Grade::Kernel);
    for number in order {
        let grade = grades[number];
        let scenario = if grade == Grade::Model { &mut modelled } else { &mut scenario };
        let run = run_grade(grade, scenario, &kernels, args.report.is_some())?;
        if grade == Grade::Kernel {
            card::start_as(&run.record, &mut modelled);
        }
        runs[number] = Some(run);
    }
    let runs: Vec<GradeRun> = runs.into_iter().flatten().collect();
    let mut comparisons = Vec::new();
    for other in 1..runs.len() {
        let [one, second] = [&runs[0], &runs[other]];
        let flows = compare(&scenario, &one.record, &second.record, args.tolerance);
        let mut states = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            states.push(match &flow.first {
                Some(first) => {
                    let state = |run: &GradeRun, packet: &Option<ComparedPacket>| {
                        let at = Option::as_ref(packet)
                            .map_or(first.at_ns(), |packet: &ComparedPacket| packet.at_ns);
                        let scenario = match run.grade {
                            Grade::Model => &modelled,
                            Grade::Kernel | Grade::Wire => &loaded.scenario,
                        };
                        state_before(scenario, &loaded.kernels, &kernels, run, number, at)
                    };
                    let [a, b] = &first.packets;
                    [state(one, a)?, state(second, b)?]
                }
                None => [None, None],
            });
        }
        comparisons.push(Comparison { runs: [0, other], flows, states });
    }
    let differs = |flow: &FlowComparison| flow.first.is_some() || flow.first_late.is_some();
    let flows = || comparisons.iter().flat_map(|one| &one.flows);
    let status = if flows().any(differs) { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    let names: Vec<String> = loaded
        .kernels
        .iter()
        .map(|kernel| {
            let host = &loaded.scenario.hosts[kernel.host].name;
            format!("{host} is {}", kernel.kernel)
        })
        .collect();
    if let Some(mut out) = page {
        let page = GradePage {
            loaded: &loaded,
            file: &file,
            kernels: &names,
            runs: &runs,
            comparisons: &comparisons,
            tolerance: args.tolerance,
        };
        let written = page::page(&page).write(&mut out);
        written.map_err(|error| failed(args.report.as_deref(), &error))?;
        out.commit()?;
    }
    let compared = ComparedScenario {
        file: &file,
        runs: &runs,
        comparisons: &comparisons,
        tolerance: args.tolerance,
    };
    let forms = [ComparedScenario::junit, ComparedScenario::sarif, ComparedScenario::markdown];
    let paths = [&args.junit, &args.sarif, &args.markdown];
    for ((out, form), path) in formats.into_iter().zip(forms).zip(paths) {
        let Some(mut out) = out else { continue };
        let written = out.write_all(form(&compared).as_bytes());
        written.map_err(|error| failed(path.as_deref(), &error))?;
        out.commit()?;
    }
    if args.json {
        let comparisons: Vec<Json> = comparisons.iter().map(|one| as_json(one, &runs)).collect();
        print(&format!(
            "{:#}\n",
            json!({
                "scenario_sha256": loaded.sha256,
                "kernels": names,
                "cards_of_guests": cards,
                "tolerance_ns": args.tolerance.as_nanos(),
                "comparisons": comparisons,
            })
        ))?;
        return Ok(status);
    }
    let mut text = format!("{}: {}", scenario.title, runs[0].grade.name());
    for run in &runs[1..] {
        text += &match run.grade {
            Grade::Kernel => format!(", kernel ({})", names.join(", ")),
            other => format!(", {}", other.name()),
        };
    }
    text.push('\n');
    if !cards.is_empty() {
        text += &format!(
            "the model of {} has the card of a guest: driver.truesize = {}, driver.holds_packets = true\n",
            cards.join(", "),
            card::TRUESIZE
        );
    }
    for one in &comparisons {
        let grades = one.runs.map(|run| runs[run].grade.name());
        for (flow, states) in one.flows.iter().zip(&one.states) {
            text += &flow_text(flow, states, grades, args.tolerance);
        }
    }
    print(&text)?;
    Ok(status)
}

/// The grades asked for; models and kernels without any.
fn grades(args: &GradesArgs) -> Vec<Grade> {
    let asked = [
        (args.model, Grade::Model),
        (args.kernel.is_some(), Grade::Kernel),
        (args.wire, Grade::Wire),
    ];
    let mut grades: Vec<Grade> = asked.into_iter().filter(|one| one.0).map(|one| one.1).collect();
    // One alone is compared with the models; the models alone, or nothing, with kernels.
    match grades[..] {
        [] | [Grade::Model] => grades = vec![Grade::Model, Grade::Kernel],
        [other] => grades = vec![Grade::Model, other],
        _ => {}
    }
    grades
}

/// Runs one grade; `scenario` gets the taps that its record needs.
fn run_grade(
    grade: Grade,
    scenario: &mut Scenario,
    kernels: &Kernels,
    windows: bool,
) -> Result<GradeRun, Failure> {
    let mut record = PacketRecord::new(scenario, Instant::ZERO);
    let mut sockets = Vec::new();
    match grade {
        Grade::Model => {
            let outcome = Kernels::default().run_shared(scenario, &mut record)?;
            record.end(outcome.ended);
        }
        Grade::Kernel if windows => drop(kernels.run_shared(scenario, &mut record)?),
        Grade::Kernel => drop(kernels.run_without_states(scenario, &mut record)?),
        Grade::Wire => sockets = on_the_wire(scenario, &mut record)?,
    }
    Ok(GradeRun { grade, record, sockets })
}

/// Runs the scenario in real time, with this machine's kernel as all its hosts.
fn on_the_wire(scenario: &Scenario, record: &mut PacketRecord) -> Result<Vec<FlowBytes>, Failure> {
    let outside: Vec<usize> = (0..scenario.hosts.len()).collect();
    let endpoints: Vec<_> = capture::flow_endpoints(scenario);
    let real = RealTimeRun {
        scenario,
        outside: &outside,
        play: wire_io::HostWorkload::Flows(&endpoints),
        poll: POLL,
        capture: None,
    };
    let done = real.run(record)?;
    for (number, flow) in done.flows.iter().enumerate() {
        for sample in &flow.samples {
            let mss = u64::from(sample.info.mss);
            let ssthresh = sample.info.ssthresh.map(|segments| u64::from(segments) * mss);
            record.add_window(number, sample.at, u64::from(sample.info.cwnd) * mss, ssthresh);
        }
    }
    Ok(done.flows)
}

/// The profile that all Linux hosts have.
fn linux_profile(scenario: &Scenario) -> Option<&'static str> {
    let profiles = scenario.hosts.iter().filter_map(|host| host.stack.tcp());
    let mut linux = profiles.filter(|tcp| tcp.profile.family == Family::Linux);
    let first = linux.next()?.profile.name;
    linux.all(|tcp| tcp.profile.name == first).then_some(first)
}

/// The kernel of that name, else that of the `profile`, else 6.12, else the first of the cache.
pub(in crate::commands) fn kernel_name(
    name: Option<String>,
    profile: Option<&str>,
) -> Result<String, Failure> {
    if let Some(name) = name {
        return Ok(name);
    }
    let cache = crate::commands::kernel::linux::cache()?;
    let kernels = cache.kernels();
    let kernels = kernels.map_err(|error| Failure::file("read", cache.path(), &error))?;
    let none = || {
        let failure = Failure::new("there is no kernel to compare with");
        failure.hint("`ackclock kernel build` makes one")
    };
    let named = |name: &str| kernels.iter().find(|kernel| kernel.info.name == name);
    let usual = || named("linux-6.12").or(kernels.first());
    let kernel = profile.and_then(named).or_else(usual).ok_or_else(none)?;
    Ok(kernel.info.name.clone())
}

/// All hosts with a profile of Linux, each with the kernel of that name.
pub(in crate::commands) fn linux_hosts(
    scenario: &Scenario,
    name: &str,
) -> Result<Vec<KernelHost>, Failure> {
    let hosts = scenario.hosts.iter().enumerate();
    let linux = hosts.filter(|(_, host)| {
        host.stack.tcp().is_some_and(|tcp| tcp.profile.family == Family::Linux)
    });
    let kernels: Vec<KernelHost> = linux
        .map(|(host, _)| KernelHost {
            host,
            kernel: name.to_owned(),
            memory: MEMORY,
            sysctls: Vec::new(),
            tcp_info: scenario::TCP_INFO_INTERVAL,
        })
        .collect();
    if kernels.is_empty() {
        return Err(Failure::new("no host of the scenario has a profile of Linux"));
    }
    Ok(kernels)
}

/// What the end that opened the flow knew just before a packet at `at`. A model and a kernel run once more for
/// that, the kernel to that time only: asking it moves no packet then.
fn state_before(
    scenario: &Scenario,
    hosts: &[KernelHost],
    kernels: &Kernels,
    run: &GradeRun,
    flow: usize,
    at_ns: u64,
) -> Result<Option<State>, Failure> {
    let mut scenario = scenario.clone();
    match run.grade {
        Grade::Model => {
            let mut record = PacketRecord::new(&mut scenario, Instant::from_nanos(at_ns));
            Kernels::default().run_shared(&scenario, &mut record)?;
            Ok(record.state(flow).map(model_state))
        }
        Grade::Kernel => {
            // It reports so long before the end: just before the packet.
            let end = Duration::from_nanos((at_ns + BEFORE_END.as_nanos()).saturating_sub(1));
            scenario.duration = end.min(scenario.duration);
            let reports = kernels.reports(&scenario)?;
            let host = hosts.iter().position(|one| one.host == scenario.flows[flow].from);
            let end = host.and_then(|host| reports.get(host)?.end(flow, false).cloned());
            Ok(end.map(|end| kernel_state(&end)))
        }
        Grade::Wire => {
            let samples = run.sockets.get(flow).map_or(&[][..], |flow| &flow.samples);
            let before = samples.iter().rfind(|sample| sample.at.as_nanos() < at_ns);
            Ok(before.map(|sample| wire_state(&sample.info)))
        }
    }
}

fn model_state(state: &SenderState) -> State {
    let mss = state.mss.get().max(1);
    let segments = |bytes: Bytes| format!("{:.2}", bytes.get() as f64 / mss as f64);
    let micros = |span: Duration| format!("{} us", span.as_micros());
    vec![
        ("cwnd", segments(state.cwnd)),
        ("ssthresh", state.ssthresh.map_or("-".into(), segments)),
        ("in flight", segments(state.in_flight)),
        ("srtt", state.srtt.map_or("-".into(), micros)),
        ("rto", micros(state.rto)),
        ("recovery", if state.in_recovery { "yes" } else { "no" }.into()),
    ]
}

fn kernel_state(end: &guest::results::EndResults) -> State {
    // TCP_INFINITE_SSTHRESH, tcp_ca_state.
    let ssthresh = match end.value("ssthresh") {
        0x7fff_ffff => "-".to_owned(),
        segments => segments.to_string(),
    };
    let states = ["no", "disorder", "cwr", "yes", "loss"];
    let recovery = states.get(end.value("ca_state") as usize).copied().unwrap_or("-");
    vec![
        ("cwnd", end.value("cwnd").to_string()),
        ("ssthresh", ssthresh),
        ("in flight", end.value("unacked").to_string()),
        ("srtt", format!("{} us", end.value("srtt"))),
        ("rto", format!("{} us", end.value("rto"))),
        ("recovery", recovery.to_owned()),
    ]
}

fn wire_state(info: &wire_io::kernel::KernelTcpInfo) -> State {
    let ssthresh = info.ssthresh.map_or("-".to_owned(), |segments| segments.to_string());
    vec![
        ("cwnd", info.cwnd.to_string()),
        ("ssthresh", ssthresh),
        ("srtt", format!("{} us", info.srtt.as_micros())),
    ]
}

fn as_json(one: &Comparison, runs: &[GradeRun]) -> Json {
    let state = |state: &Option<State>| {
        let fields = state.iter().flatten().map(|(name, value)| ((*name).to_owned(), json!(value)));
        Json::Object(fields.collect())
    };
    let flow = |(flow, states): (&FlowComparison, &[Option<State>; 2])| {
        let mut value = json!(flow);
        value["states"] = json!([state(&states[0]), state(&states[1])]);
        value
    };
    let flows: Vec<Json> = one.flows.iter().zip(&one.states).map(flow).collect();
    json!({ "grades": one.runs.map(|run| runs[run].grade.name()), "flows": flows })
}

pub(super) fn flow_text(
    flow: &FlowComparison,
    states: &[Option<State>; 2],
    grades: [&str; 2],
    tolerance: Duration,
) -> String {
    let [one, other] = grades;
    let mut text = format!(
        "\nflow {}: {} packets of {one}, {} of {other}\n",
        flow.flow, flow.packets[0], flow.packets[1]
    );
    match &flow.first {
        None => text += "  all packets are the same\n",
        Some(first) => {
            text += &format!("  {} packets are the same, then\n", flow.same_packets);
            text += &pair_text(first, grades);
            text += &state_text(states, grades);
        }
    }
    let largest = Duration::from_nanos(flow.largest_time_ns);
    text += &format!("  times of the same packets differ by {largest} at most\n");
    if let Some(late) = &flow.first_late {
        text += &format!("  first by more than {tolerance}:\n{}", pair_text(late, grades));
    }
    if let Some(window) = &flow.first_window {
        text += &format!("  first other window:\n{}", pair_text(window, grades));
    }
    if flow.other_push > 0 {
        text += &format!("  {} of them have another PSH\n", flow.other_push);
    }
    text
}

/// A packet of the first grade above that of the second.
fn pair_text(difference: &Difference, grades: [&str; 2]) -> String {
    let way = if difference.forward { "forward" } else { "return" };
    let mut text = format!("    packet {} on the {way} path\n", difference.index + 1);
    for (grade, packet) in grades.iter().zip(&difference.packets) {
        let packet = packet.as_ref().map_or_else(
            || "none".to_owned(),
            |packet| {
                let sack: Vec<String> =
                    packet.sack.iter().map(|(left, right)| format!("{left}:{right}")).collect();
                let sack = if sack.is_empty() {
                    String::new()
                } else {
                    format!(" sack {}", sack.join(" "))
                };
                format!(
                    "{:.9} Flags [{}], seq {}, ack {}, win {}, length {}{sack}",
                    Duration::from_nanos(packet.at_ns).as_secs_f64(),
                    packet.flags,
                    packet.seq,
                    packet.ack,
                    packet.window,
                    packet.len
                )
            },
        );
        text += &format!("      {grade:<7} {packet}\n");
    }
    text
}

/// Both states side by side.
fn state_text(states: &[Option<State>; 2], grades: [&str; 2]) -> String {
    let empty = State::new();
    let states = [&states[0], &states[1]].map(|state| state.as_ref().unwrap_or(&empty));
    let names = if states[0].is_empty() { states[1] } else { states[0] };
    if names.is_empty() {
        return String::new();
    }
    let value = |state: &State, name: &str| {
        let found = state.iter().find(|field| field.0 == name);
        found.map_or_else(|| "-".to_owned(), |field| field.1.clone())
    };
    let mut text = format!("    just before it{:>14} {:>14}\n", grades[0], grades[1]);
    for (name, _) in names {
        let [one, other] = states.map(|state| value(state, name));
        text += &format!("      {name:<12}{one:>14} {other:>14}\n");
    }
    text
}
