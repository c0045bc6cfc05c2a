//! `ackclock whatif`: simulates a captured transfer with other senders; `ackclock scenario from`.

use std::path::Path;
use std::process::ExitCode;

use diagnose::AnalysisSettings;
use ingest::inputs::{
    self, CapturedConnection, CapturedQuicConnection, InputKind, QuicConnection, ReadMode, Reading,
};
use runner::stop::NEVER;
use runner::workers::Workers;
use scenario::Overrides;
use whatif::{
    KernelRunner, WhatIf, WhatIfError, WhatIfRequest, quic_scenario_of, scenario_of, selected,
};

use super::diagnose::{key_logs, source};
#[cfg(target_os = "linux")]
use super::guests::Kernels;
use crate::cli::{FromArgs, WhatIfArgs};
use crate::failure::Failure;
use crate::file_kind::other_command;
use crate::output::{OutFile, print};
use crate::threads::threads;
use crate::visible::ShownPath as _;

/// A connection with its packets.
enum Recording {
    /// Of a capture, with its other connections.
    Tcp(Box<CapturedConnection>, Vec<CapturedConnection>),
    /// Of a qlog, or of a capture whose packets were decrypted.
    Quic(Box<QuicConnection>),
}

pub(super) fn run(args: WhatIfArgs) -> Result<ExitCode, Failure> {
    let recording = recording(&args.file, args.flow, args.keylog.as_deref())?;
    let mut page = args.report.as_deref().map(OutFile::create).transpose()?;
    let workers = Workers::new(threads(args.jobs), &NEVER);
    let question = WhatIfRequest { compare: args.compare, set: args.set, sender: args.sender };
    let answer = match &recording {
        Recording::Tcp(stream, others) => {
            let kernels = args.kernel.map(kernel_runner).transpose()?;
            let others: Vec<_> = others.iter().collect();
            WhatIf::on(stream, &others, &question, &workers, kernels.as_deref())
        }
        Recording::Quic(_) if args.kernel.is_some() => {
            return Err(Failure::new(
                "real kernels check transfers of TCP; QUIC is not in a kernel",
            ));
        }
        Recording::Quic(connection) => WhatIf::of_quic_on(connection, &question, &workers),
    };
    let answer = answer.map_err(|fault| match fault {
        WhatIfError::Fit(unfit) => Failure::new(format!("{}: {unfit}", args.file.shown())),
        WhatIfError::Scenario(mistakes) => Failure::Scenario(mistakes),
        WhatIfError::Run(error) => Failure::new(format!("{}: {error}", args.file.shown())),
        WhatIfError::Kernel(error) => Failure::new(error),
        value @ WhatIfError::Value { .. } => Failure::new(value.to_string()),
    })?;
    if let (Some(out), Some(path)) = (&mut page, &args.report) {
        let written = answer.page(&args.file.shown()).write(out);
        written.map_err(|error| Failure::file("write", path, &error))?;
    }
    if let Some(out) = page {
        out.commit()?;
    }
    print(&if args.json { answer.to_json() } else { answer.to_text() })?;
    Ok(ExitCode::SUCCESS)
}

/// Runs scenarios with a kernel as their Linux hosts.
#[cfg(target_os = "linux")]
fn kernel_runner(name: Option<String>) -> Result<Box<KernelRunner<'static>>, Failure> {
    let name = super::compare::kernel_name(name, None)?;
    // That it exists is known before the first run.
    super::kernel::linux::find(&super::kernel::linux::cache()?, &name)?;
    Ok(Box::new(move |scenario, seen| {
        let text = |failure: Failure| failure.message();
        let hosts = super::compare::linux_hosts(scenario, &name).map_err(text)?;
        let kernels = Kernels::with(scenario, &hosts, Path::new(""), false).map_err(text)?;
        kernels.run_shared(scenario, seen).map(drop).map_err(text)
    }))
}

#[cfg(not(target_os = "linux"))]
fn kernel_runner(_: Option<String>) -> Result<Box<KernelRunner<'static>>, Failure> {
    Err(Failure::new("hosts that are real kernels need Linux"))
}

/// `ackclock scenario from`.
pub(super) fn from(args: &FromArgs) -> Result<ExitCode, Failure> {
    print(&fitted_text(args)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the scenario that is fitted to a transfer in a capture, log or pasted text.
pub(super) fn fitted_text(args: &FromArgs) -> Result<String, Failure> {
    // Sockets and tests of iperf3 have figures, but no packets to fit.
    if let Some(pasted) = super::pasted::read(&args.file).filter(|pasted| !pasted.has_packets) {
        return ingest::pasted::scenario(&pasted.report.figures).ok_or_else(|| {
            let message =
                format!("{}: the pasted text has no rate of a transfer", args.file.shown());
            Failure::new(message).hint("`ackclock diagnose` names the command that measures it")
        });
    }
    let text = match recording(&args.file, args.flow, args.keylog.as_deref())? {
        Recording::Tcp(stream, _) => scenario_of(&stream),
        Recording::Quic(connection) => quic_scenario_of(&connection),
    };
    let text = text.map_err(|unfit| Failure::new(format!("{}: {unfit}", args.file.shown())))?;
    let checked = scenario::load(&text, "fitted scenario", &Overrides::default());
    checked.map_err(|errors| {
        let why = errors.first().map(ToString::to_string).unwrap_or_default();
        Failure::new(format!("{}: no scenario can have what was fitted: {why}", args.file.shown()))
    })?;
    Ok(text)
}

/// Reads the selected connection with all its packets.
fn recording(file: &Path, flow: Option<u32>, keylog: Option<&Path>) -> Result<Recording, Failure> {
    let settings = AnalysisSettings { packets: usize::MAX, turns: whatif::MAX_EVENTS };
    let keys = key_logs::read(keylog, &[file.to_path_buf()])?;
    let mode = ReadMode { keeps_quic: true, keys, ..ReadMode::default() };
    let reading = inputs::read_with(vec![source(file)?], settings, mode).map_err(|error| {
        let failure = Failure::new(format!("cannot read {error}"));
        match other_command(file, "diagnose") {
            Some(other) => failure.hint(other),
            None => failure,
        }
    })?;
    let kind = reading.files.first().map(|file| file.kind);
    let has_quic_only = reading.streams.is_empty() && !reading.captured_quic.is_empty();
    let Reading { streams, quic, captured_quic, .. } = reading;
    let found = match kind {
        Some(InputKind::NetLog) => {
            return Err(Failure::new(format!("{} is a NetLog, which is not fitted", file.shown()))
                .hint("the qlog of the host that sends the data is needed"));
        }
        Some(InputKind::Qlog) => {
            let bytes = |one: &QuicConnection| one.analysis.bytes();
            let found = match flow {
                Some(number) => quic.into_iter().find(|one| one.number == number),
                None => quic.into_iter().max_by_key(bytes),
            };
            found.map(|one| Recording::Quic(Box::new(one)))
        }
        _ => match decrypted(quic, &streams, flow) {
            Some(one) => {
                let captured = captured_quic.iter().find(|other| other.number == one.number);
                if captured.is_some_and(is_between) {
                    return Err(Failure::new(format!(
                        "{} was captured between the hosts: packets of QUIC are fitted at the host that sends them",
                        file.shown()
                    )));
                }
                Some(Recording::Quic(Box::new(one)))
            }
            None => {
                let found = selected(streams, flow);
                found.map(|(one, others)| Recording::Tcp(Box::new(one), others))
            }
        },
    };
    found.ok_or_else(|| match flow {
        _ if has_quic_only => {
            Failure::new(format!("{} has QUIC, whose packets are encrypted", file.shown()))
                .hint("the qlog of the host that sends the data is needed, or a key log (--keylog)")
        }
        Some(number) => Failure::new(format!("there is no connection {number}"))
            .hint("connections are numbered from 0, as tcp.stream in Wireshark"),
        None => Failure::new(format!("{} contains no connection", file.shown())),
    })
}

/// The connection of QUIC of a capture whose packets were decrypted, if it is the selected one, or has more data than
/// those of TCP.
fn decrypted(
    quic: Vec<QuicConnection>,
    streams: &[CapturedConnection],
    flow: Option<u32>,
) -> Option<QuicConnection> {
    if let Some(number) = flow {
        // Connections of TCP have numbers of their own.
        return quic.into_iter().find(|one| streams.is_empty() && one.number == number);
    }
    let bytes = |one: &CapturedConnection| one.analysis().main().map_or(0, |flow| flow.bytes);
    let most = streams.iter().map(bytes).max().unwrap_or(0);
    let largest = quic.into_iter().max_by_key(|one| one.analysis.bytes());
    largest.filter(|one| one.analysis.bytes() > most)
}

/// A host at whose side a capture was taken is nearer than the other by this factor.
const NEARER: u64 = 8;

/// Whether a connection was captured far from both hosts.
fn is_between(captured: &CapturedQuicConnection) -> bool {
    captured.analysis.handshake.round_trip.is_some_and(|trip| {
        let sides = [trip.client_side, trip.server_side];
        let [near, far] = [sides[0].min(sides[1]), sides[0].max(sides[1])];
        near.saturating_mul(NEARER) > far
    })
}
