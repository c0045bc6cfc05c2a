//! The comparison, on systems that run User-Mode Linux.

use std::process::ExitCode;

use guest::compare::{ComparedPacket, Difference, FlowComparison, PacketRecord, compare};
use guest::plan::BEFORE_END;
use record::SenderState;
use scenario::{KernelHost, Loaded};
use serde_json::{Value as Json, json};
use tcp::profile::Family;
use units::{Bytes, Duration, Instant};

use crate::cli::GradesArgs;
use crate::commands::guests::Kernels;
use crate::commands::load_with_kernels;
use crate::failure::Failure;
use crate::output::print;

/// Memory of kernels that the scenario does not name.
const MEMORY: Bytes = Bytes(64 << 20);

/// State of a sender's stack just before a packet: name and value.
type State = Vec<(&'static str, String)>;

pub(super) fn run(args: GradesArgs) -> Result<ExitCode, Failure> {
    let (file, mut loaded) = load_with_kernels(args.scenario)?;
    let named = args.kernel.flatten();
    if named.is_some() || loaded.kernels.is_empty() {
        loaded.kernels = linux_hosts(&loaded, named)?;
    }
    let kernels = Kernels::of(&loaded, &file, args.allow_exec)?;
    let names: Vec<String> = loaded
        .kernels
        .iter()
        .map(|kernel| {
            let host = &loaded.scenario.hosts[kernel.host].name;
            format!("{host} is {}", kernel.kernel)
        })
        .collect();
    let mut scenario = loaded.scenario.clone();
    let mut model = PacketRecord::new(&mut scenario, Instant::ZERO);
    let mut kernel = PacketRecord::new(&mut scenario, Instant::ZERO);
    Kernels::default().run(&scenario, &mut model)?;
    kernels.run(&scenario, &mut kernel)?;
    let flows = compare(&scenario, &model, &kernel, args.tolerance);
    let mut states = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        states.push(match &flow.first {
            Some(first) => states_before(&loaded, &kernels, number, first)?,
            None => [None, None],
        });
    }
    let differs = |flow: &FlowComparison| flow.first.is_some() || flow.first_late.is_some();
    let status = if flows.iter().any(differs) { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if args.json {
        let flows: Vec<Json> = flows.iter().zip(&states).map(|(f, s)| as_json(f, s)).collect();
        print(&format!(
            "{:#}\n",
            json!({
                "scenario_sha256": loaded.sha256,
                "kernels": names,
                "tolerance_ns": args.tolerance.as_nanos(),
                "flows": flows,
            })
        ))?;
        return Ok(status);
    }
    let mut text = format!("{}: models, and {}\n", scenario.title, names.join(", "));
    for (flow, states) in flows.iter().zip(&states) {
        text += &flow_text(flow, states, args.tolerance);
    }
    print(&text)?;
    Ok(status)
}

/// Returns all hosts with a Linux profile, each with the kernel of that name.
fn linux_hosts(loaded: &Loaded, name: Option<String>) -> Result<Vec<KernelHost>, Failure> {
    let name = match name {
        Some(name) => name,
        None => {
            let cache = crate::commands::kernel::linux::cache()?;
            let kernels = cache.kernels();
            let kernels = kernels.map_err(|error| Failure::file("read", cache.path(), &error))?;
            let none = || {
                let failure = Failure::new("there is no kernel to compare with");
                failure.hint("`ackclock kernel build` makes one")
            };
            kernels.into_iter().next().ok_or_else(none)?.info.name
        }
    };
    let hosts = loaded.scenario.hosts.iter().enumerate();
    let linux = hosts.filter(|(_, host)| {
        host.stack.tcp().is_some_and(|tcp| tcp.profile.family == Family::Linux)
    });
    let kernels: Vec<KernelHost> = linux
        .map(|(host, _)| KernelHost {
            host,
            kernel: name.clone(),
            memory: MEMORY,
            sysctls: Vec::new(),
        })
        .collect();
    if kernels.is_empty() {
        return Err(Failure::new("no host of the scenario has a profile of Linux"));
    }
    Ok(kernels)
}

/// Returns the states of the endpoint that opened the flow just before the first difference, as a
/// model and as a kernel: both run once more, the kernel only to that time.
fn states_before(
    loaded: &Loaded,
    kernels: &Kernels,
    flow: usize,
    first: &Difference,
) -> Result<[Option<State>; 2], Failure> {
    let time = |packet: &Option<ComparedPacket>| packet.as_ref().map(|packet| packet.at_ns);
    let other = first.at_ns();
    let at = Instant::from_nanos(time(&first.model).unwrap_or(other));
    let mut scenario = loaded.scenario.clone();
    let mut record = PacketRecord::new(&mut scenario, at);
    Kernels::default().run(&scenario, &mut record)?;
    let model = record.state(flow).map(model_state);
    // The guest reports this long before the end, which is just before the packet.
    let at = time(&first.kernel).unwrap_or(other) + BEFORE_END.as_nanos();
    scenario.duration = Duration::from_nanos(at.saturating_sub(1)).min(scenario.duration);
    let reports = kernels.reports(&scenario)?;
    let host = loaded.kernels.iter().position(|one| one.host == scenario.flows[flow].from);
    let end = host.and_then(|host| reports.get(host)?.end(flow, false).cloned());
    Ok([model, end.map(|end| kernel_state(&end))])
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

fn as_json(flow: &FlowComparison, [model, kernel]: &[Option<State>; 2]) -> Json {
    let state = |state: &Option<State>| {
        let fields = state.iter().flatten().map(|(name, value)| ((*name).to_owned(), json!(value)));
        Json::Object(fields.collect())
    };
    let mut value = json!(flow);
    value["model_state"] = state(model);
    value["kernel_state"] = state(kernel);
    value
}

fn flow_text(flow: &FlowComparison, states: &[Option<State>; 2], tolerance: Duration) -> String {
    let mut text = format!(
        "\nflow {}: {} packets of the model, {} of the kernel\n",
        flow.flow, flow.model_packets, flow.kernel_packets
    );
    match &flow.first {
        None => text += "  all packets are the same\n",
        Some(first) => {
            text += &format!("  {} packets are the same, then\n", flow.same_packets);
            text += &pair_text(first);
            text += &state_text(states);
        }
    }
    let largest = Duration::from_nanos(flow.largest_time_ns);
    text += &format!("  times of the same packets differ by {largest} at most\n");
    if let Some(late) = &flow.first_late {
        text += &format!("  first by more than {tolerance}:\n{}", pair_text(late));
    }
    if let Some(window) = &flow.first_window {
        text += &format!("  first other window:\n{}", pair_text(window));
    }
    if flow.other_push > 0 {
        text += &format!("  {} of them have another PSH\n", flow.other_push);
    }
    text
}

/// Formats a packet of the model above that of the kernel.
fn pair_text(difference: &Difference) -> String {
    let way = if difference.forward { "forward" } else { "return" };
    let mut text = format!("    packet {} on the {way} path\n", difference.index + 1);
    for (grade, packet) in [("model", &difference.model), ("kernel", &difference.kernel)] {
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

/// Formats both states side by side.
fn state_text([model, kernel]: &[Option<State>; 2]) -> String {
    let empty = State::new();
    let [model, kernel] = [model, kernel].map(|state| state.as_ref().unwrap_or(&empty));
    let names = if model.is_empty() { kernel } else { model };
    if names.is_empty() {
        return String::new();
    }
    let value = |state: &State, name: &str| {
        let found = state.iter().find(|field| field.0 == name);
        found.map_or_else(|| "-".to_owned(), |field| field.1.clone())
    };
    let mut text = format!("    just before it{:>14} {:>14}\n", "model", "kernel");
    for (name, _) in names {
        text +=
            &format!("      {name:<12}{:>14} {:>14}\n", value(model, name), value(kernel, name));
    }
    text
}
