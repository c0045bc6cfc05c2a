//! A scenario with QUIC stacks as hosts: models of them beside the stacks themselves.

use std::process::ExitCode;

use guest::stack::compare::{EndRecord, SentData, SentDifference, SentRecord};
use scenario::Loaded;
use sim::RunOutcome;
use units::{Duration, Instant};

use crate::cli::GradesArgs;
use crate::commands::{load_with_kernels, stack};
use crate::failure::Failure;
use crate::output::print;

/// A run with models or with stacks.
struct StackRun {
    loaded: Loaded,
    record: SentRecord,
    outcome: RunOutcome,
}

/// Compares both runs of a scenario some of whose hosts are stacks.
pub(super) fn run(args: GradesArgs, modelled: Loaded) -> Result<ExitCode, Failure> {
    let other = [args.wire, args.kernel.is_some(), args.json];
    let files = [&args.report, &args.junit, &args.sarif, &args.markdown];
    if other.contains(&true) || files.iter().any(|file| file.is_some()) {
        let failure = Failure::new("a comparison with QUIC stacks has no other grades and outputs");
        return Err(failure.hint("--tolerance is its option"));
    }
    if !modelled.kernels.is_empty() || !modelled.programs.is_empty() {
        return Err(Failure::new("a comparison has kernels or QUIC stacks, not both"));
    }
    let (_, real) = load_with_kernels(args.scenario, stack::programs(None))?;
    let runs = [run_one(modelled)?, run_one(real)?];
    let mut text = format!("{}: model, stack\n", runs[0].loaded.scenario.title);
    let mut differs = false;
    for flow in 0..runs[0].record.ends.len() {
        text += &heading(&runs, flow);
        for side in 0..2 {
            let ends = [0, 1].map(|run: usize| &runs[run].record.ends[flow][side]);
            if ends.iter().any(|end| !end.data.is_empty()) {
                let host = &runs[0].loaded.scenario.flows[flow];
                let host = if side == 0 { host.from } else { host.to };
                let name = &runs[0].loaded.scenario.hosts[host].name;
                let found = SentDifference::of(ends[0], ends[1], args.tolerance);
                differs |= found != SentDifference::default();
                text += &direction(name, ends, found, args.tolerance);
            }
        }
    }
    print(&text)?;
    Ok(if differs { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_one(loaded: Loaded) -> Result<StackRun, Failure> {
    let mut record = SentRecord::new(&loaded.scenario);
    let outcome = sim::run(&loaded.scenario, &mut record)
        .map_err(|error| Failure::new(format!("the scenario cannot be run: {error}")))?;
    Ok(StackRun { loaded, record, outcome })
}

fn heading(runs: &[StackRun; 2], flow: usize) -> String {
    let name = &runs[0].loaded.scenario.flows[flow].name;
    let outcomes = [0, 1].map(|run: usize| &runs[run].outcome.flows[flow]);
    let [model, stack] = outcomes.map(|outcome| outcome.duration.as_secs_f64());
    format!(
        "\nflow {name}: {} {model:.6} s, {} {stack:.6} s ({:+.2} %)\n",
        outcomes[0].profile,
        outcomes[1].profile,
        100.0 * (model - stack) / stack
    )
}

fn direction(
    host: &str,
    ends: [&EndRecord; 2],
    found: SentDifference,
    tolerance: Duration,
) -> String {
    let both = |value: fn(&EndRecord) -> u64| ends.map(value);
    let rows = [
        ("packets", both(|end| end.packets)),
        ("with stream data", both(|end| end.data.len() as u64)),
        ("lost on the path", both(|end| end.dropped)),
    ];
    let mut text = format!("  from {host:<22} {:>12} {:>12}\n", "model", "stack");
    for (name, [model, stack]) in rows {
        text += &format!("    {name:<23} {model:>12} {stack:>12}\n");
    }
    if let Some(number) = found.size {
        text += &format!("    first other size: data packet {}\n", number + 1);
        text += &packets(ends, number);
    }
    if let Some(number) = found.time {
        text +=
            &format!("    first time more than {tolerance} apart: data packet {}\n", number + 1);
        text += &packets(ends, number);
    }
    if found == SentDifference::default() {
        text += "    all packets with stream data are the same\n";
    }
    text
}

/// The packets of both runs with this number, and the states before them.
fn packets(ends: [&EndRecord; 2], number: usize) -> String {
    let mut text = String::new();
    for (name, end) in ["model", "stack"].into_iter().zip(ends) {
        let Some(SentData { at, stream, .. }) = end.data.get(number) else {
            text += &format!("      {name}  none\n");
            continue;
        };
        let at = *at;
        text +=
            &format!("      {name}  {:.9} s, {stream} B", at.since(Instant::ZERO).as_secs_f64());
        if let Some(state) = end.before(at) {
            let srtt = state.srtt.map_or_else(|| "-".to_owned(), |srtt| srtt.to_string());
            text += &format!(
                "; before it: cwnd {} B, in flight {} B, srtt {srtt}",
                state.cwnd.get(),
                state.in_flight.get()
            );
        }
        text.push('\n');
    }
    text
}
