//! Runs a scenario with real kernels as some of its hosts.

use std::path::PathBuf;

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use packet::wire::Endpoints;
use sim::live::LiveSimulation;
use sim::scenario::{ReceiveOffloadSpec, Scenario};
use sim::{ErasedObserver, Latency, LatencyKind, Observer, RunOutcome, SetupError};
use units::{Bytes, Duration, Instant};

use crate::drive::{Attached, DriveCounters, Failed, drive};
use crate::flows::{FlowCounters, Flows};
use crate::guest::{Guest, GuestError, Outlet, Packet};
use crate::plan::{self, Samples, Unsupported};
use crate::results::{EndResults, GuestTcpInfo, HostResults};
use crate::socket::SocketGuest;
use crate::uml::{BOOT, NicCounters, PATIENCE, Protocol, UmlConfig, UmlGuest};

/// A host that is a real kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestHost {
    /// Index of the host.
    pub host: usize,
    /// The kernel, an executable.
    pub kernel: PathBuf,
    /// Process 1, an executable.
    pub init: PathBuf,
    /// Memory in MiB.
    pub memory: u32,
    /// Sysctls in addition to those of the host's profile.
    pub sysctls: Vec<(String, String)>,
    /// The guest reports facts that depend on the kernel's build.
    pub facts: bool,
    /// How often its senders' state is recorded, where the observer records states.
    pub tcp_info: Duration,
}

/// A host that is a program of the protocol of [`crate::socket`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestProgram {
    /// Index of the host.
    pub host: usize,
    /// The program.
    pub program: PathBuf,
}

/// Parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The hosts that are real kernels.
    pub guests: &'a [GuestHost],
    /// The hosts that are other programs.
    pub programs: &'a [GuestProgram],
    /// Addresses and ports of each flow, seen from its connecting side.
    pub endpoints: &'a [Endpoints],
    /// Protocol of the guests' clocks.
    pub protocol: Protocol,
    /// Kernels report the state of their senders to the observer, if it records any. Packets are the same.
    pub states: bool,
    /// Keep this thread and the guests on one processor: they never run at once, and moving between
    /// two costs more than it gives.
    pub pin: bool,
}

/// Results of a run.
#[derive(Debug)]
pub struct GuestRun {
    /// Outcome as of a simulated run; for an endpoint that is a kernel, the values that it reports.
    pub outcome: RunOutcome,
    /// Results of each guest.
    pub hosts: Vec<HostResults>,
    /// Counters of each guest's network card.
    pub nics: Vec<NicCounters>,
    /// What became of packets that are no segments of a flow.
    pub flows: FlowCounters,
    /// Turns of guests.
    pub turns: DriveCounters,
}

/// A guest of either kind.
#[derive(Debug)]
enum AnyGuest {
    Kernel(Box<UmlGuest>),
    Program(Box<SocketGuest>),
}

impl AnyGuest {
    fn nic_counters(&self) -> Option<NicCounters> {
        match self {
            Self::Kernel(kernel) => Some(kernel.nic_counters()),
            Self::Program(_) => None,
        }
    }

    fn any(&mut self) -> &mut dyn Guest {
        match self {
            Self::Kernel(kernel) => kernel.as_mut(),
            Self::Program(program) => program.as_mut(),
        }
    }
}

impl Guest for AnyGuest {
    fn next_deadline(&mut self) -> Result<Instant, GuestError> {
        self.any().next_deadline()
    }

    fn receive(&mut self, now: Instant, packets: &[Packet<'_>]) -> Result<(), GuestError> {
        self.any().receive(now, packets)
    }

    fn run(
        &mut self,
        now: Instant,
        limit: Instant,
        outlet: &mut dyn Outlet,
    ) -> Result<(), GuestError> {
        self.any().run(now, limit, outlet)
    }

    fn is_finished(&self) -> bool {
        match self {
            Self::Kernel(kernel) => kernel.is_finished(),
            Self::Program(program) => program.is_finished(),
        }
    }

    fn results(&self) -> &HostResults {
        match self {
            Self::Kernel(kernel) => kernel.results(),
            Self::Program(program) => program.results(),
        }
    }

    fn take_samples(&mut self, each: &mut dyn FnMut(Instant, GuestTcpInfo)) {
        self.any().take_samples(each);
    }
}

/// Error of a run.
#[derive(Debug)]
pub enum RunError {
    /// The scenario has an invalid reference.
    Setup(SetupError),
    /// The scenario has a feature that a kernel does not support.
    Unsupported(Unsupported),
    /// A guest failed.
    Guest {
        /// Name of the host.
        host: String,
        /// Time of the failure in the world; `None` during boot.
        at: Option<Instant>,
        /// What.
        error: GuestError,
    },
    /// A guest sent data that its applications did not write.
    Altered {
        /// Segments.
        segments: u64,
    },
}

impl core::fmt::Display for RunError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Unsupported(error) => error.fmt(f),
            Self::Guest { host, at: None, error } => write!(f, "host `{host}` at boot: {error}"),
            Self::Guest { host, at: Some(at), error } => {
                write!(f, "host `{host}` at {:.6} s: {error}", at.as_secs_f64())
            }
            Self::Altered { segments } => {
                write!(f, "the payload of {segments} segments is not what was written")
            }
        }
    }
}

impl core::error::Error for RunError {}

/// Pins this thread to one processor while the value exists.
struct Pinned(Option<CpuSet>);

impl Pinned {
    /// Pins the thread to its current processor. If that is refused, runs are only slower.
    fn here() -> Self {
        let this = Pid::from_raw(0);
        let pin = || -> nix::Result<CpuSet> {
            let before = sched_getaffinity(this)?;
            let mut one = CpuSet::new();
            one.set(sched_getcpu()?)?;
            sched_setaffinity(this, &one)?;
            Ok(before)
        };
        Self(pin().ok())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // The previous affinity was allowed.
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}

/// Runs a job; `observer` receives the events of a simulated run, except those inside guests.
///
/// # Errors
/// [`RunError`].
pub fn run<O: Observer>(job: &Job<'_>, observer: &mut O) -> Result<GuestRun, RunError> {
    let scenario = &for_guests(job);
    let _pinned = job.pin.then(Pinned::here);
    let kernels = job.guests.iter().map(|guest| guest.host);
    let outside: Vec<usize> = kernels.chain(job.programs.iter().map(|one| one.host)).collect();
    let mut shared = ErasedObserver::<true, true>::new(observer);
    let mut live = LiveSimulation::new(scenario, &outside, &mut shared).map_err(RunError::Setup)?;
    let mut guests = Vec::new();
    for guest in job.guests {
        guests.push(Attached {
            host: guest.host,
            guest: AnyGuest::Kernel(Box::new(boot(job, guest, O::ON)?)),
        });
    }
    for one in job.programs {
        guests.push(Attached {
            host: one.host,
            guest: AnyGuest::Program(Box::new(start(job, one)?)),
        });
    }
    let mut flows = Flows::new(job.endpoints);
    let end = Instant::ZERO + scenario.duration;
    let turns = drive(&mut live, &mut guests, &mut flows, end);
    let turns = turns.map_err(|Failed { host, at, error }| RunError::Guest {
        host: scenario.hosts[host].name.clone(),
        at: Some(at),
        error,
    })?;
    if flows.counters.altered > 0 {
        return Err(RunError::Altered { segments: flows.counters.altered });
    }
    let mut outcome = live.outcome();
    for Attached { guest, .. } in &guests {
        let kind = match guest {
            AnyGuest::Kernel(_) => "kernel",
            AnyGuest::Program(_) => "program",
        };
        for end in &guest.results().ends {
            report(job.scenario, kind, end, guest.results(), &mut outcome);
        }
    }
    Ok(GuestRun {
        outcome,
        hosts: guests.iter().map(|one| one.guest.results().clone()).collect(),
        nics: guests.iter().filter_map(|one| one.guest.nic_counters()).collect(),
        flows: flows.counters,
        turns,
    })
}

/// Returns the scenario without the functions that the kernels have themselves: each kernel
/// receives the packets of an interrupt at once, unmerged, and its own GRO merges them.
fn for_guests(job: &Job<'_>) -> Scenario {
    let mut scenario = job.scenario.clone();
    for guest in job.guests {
        let offload = &mut scenario.hosts[guest.host].offload;
        // LRO is the card's.
        if matches!(offload.receive, ReceiveOffloadSpec::Lro(_)) {
            continue;
        }
        offload.receive = ReceiveOffloadSpec::Off;
        offload.flush = Duration::ZERO;
        offload.budget = None;
    }
    scenario
}

fn start(job: &Job<'_>, one: &GuestProgram) -> Result<SocketGuest, RunError> {
    let hello =
        plan::program(job.scenario, one.host, job.endpoints).map_err(RunError::Unsupported)?;
    let started = SocketGuest::start(&one.program, &hello, PATIENCE);
    let host = job.scenario.hosts[one.host].name.clone();
    started.map_err(|error| RunError::Guest { host, at: None, error })
}

fn boot(job: &Job<'_>, guest: &GuestHost, records: bool) -> Result<UmlGuest, RunError> {
    let scenario = job.scenario;
    let host = &scenario.hosts[guest.host];
    let phase = host.stack.tcp().map_or(Duration::ZERO, |tcp| tcp.clock_phase);
    let begins = Duration::from_nanos(BOOT.as_nanos() + phase.as_nanos());
    let samples = Samples { every: guest.tcp_info, wanted: records && job.states };
    let plan = plan::plan(
        scenario,
        guest.host,
        job.endpoints,
        begins,
        &guest.sysctls,
        guest.facts,
        samples,
    )
    .map_err(RunError::Unsupported)?;
    let config = UmlConfig {
        kernel: &guest.kernel,
        init: &guest.init,
        plan: &plan,
        memory: guest.memory,
        seed: &format!("{}.{}", scenario.seed, guest.host),
        clock_phase: phase,
        tso: host.offload.tso,
        lro: matches!(host.offload.receive, ReceiveOffloadSpec::Lro(_)),
        mtu: host.stack.mtu().min(u32::from(u16::MAX)) as u16,
        protocol: job.protocol,
        patience: PATIENCE,
    };
    let failed = |error| RunError::Guest { host: host.name.clone(), at: None, error };
    let booted = UmlGuest::boot(&config).map_err(failed)?;
    match booted.results().refused.first() {
        None => Ok(booted),
        Some(refused) => {
            let message = format!("the kernel refuses {refused}");
            Err(failed(GuestError::Init { message }))
        }
    }
}

/// Merges the results of an endpoint into the outcome of its flow.
fn report(
    scenario: &Scenario,
    kind: &'static str,
    end: &EndResults,
    results: &HostResults,
    outcome: &mut RunOutcome,
) {
    let flow = &scenario.flows[end.flow];
    let measured = &mut outcome.flows[end.flow];
    let requests = flow.app.is_answered();
    // The counted bytes flow to the listener, except for responses.
    if end.listens != requests {
        measured.bytes = Bytes(end.received);
        measured.finished = end.finished;
        let read = end.at.saturating_sub(results.begins);
        let read = if end.finished { read } else { scenario.duration };
        measured.duration = read.saturating_sub(flow.start);
        if requests && end.value("requests") > 0 {
            let span = |name| Duration::from_nanos(end.value(name));
            measured.latency = Some(Latency {
                kind: LatencyKind::Requests,
                requests: end.value("requests"),
                min: span("min"),
                median: span("median"),
                p95: None,
                p99: None,
                max: span("max"),
            });
        }
        return;
    }
    measured.profile = kind;
    match end.cc.as_str() {
        // A program need not report it.
        "" => measured.cc = "unknown".into(),
        // The connection never opened.
        "-" => {}
        // A sysctl may have set another than the scenario's.
        name => measured.cc = name.to_owned().into(),
    }
    measured.retransmitted_segments = end.value("retransmitted");
    measured.mss = Bytes(end.value("mss"));
    measured.max_cwnd = Bytes(end.value("cwnd") * end.value("mss"));
    let rtt = end.value("min_rtt");
    measured.min_rtt = (rtt != u64::from(u32::MAX)).then(|| Duration::from_micros(rtt));
    outcome.segments += end.value("data_segs");
    // Counters of the host: exact if it has one flow.
    let measured = &mut outcome.flows[end.flow];
    measured.fast_recoveries =
        results.counter("TCPSackRecovery") + results.counter("TCPRenoRecovery");
    measured.rtos = results.counter("TCPTimeouts");
}
