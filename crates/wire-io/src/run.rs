//! Runs a scenario with real hosts.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use packet::wire::Endpoints;
use sha2::{Digest, Sha256};
use sim::live::LiveSimulation;
use sim::scenario::{App, Close, Scenario, StackSpec, TapPoint, TapSpec};
use sim::{ErasedObserver, Observer, RunOutcome, SetupError};
use trace::pcapng::PcapngSection;
use units::{Bytes, Duration, Instant};

use crate::capture::TapCapture;
use crate::clock::{self, RealClock};
use crate::command::{self, Init};
use crate::directory::FlowDirectory;
use crate::drive::{Device, Driver, TunPort, WireCounts, WireObserver};
use crate::kernel::{self, ListenerSet, SocketEndpoint, SocketResult, SocketTask, TcpInfoSample};
use crate::namespace::{self, NamespaceError};
use crate::numbers::IsnGenerator;
use crate::payload::PayloadGenerator;
use crate::streams::{ByteStream, ReceivedBytes};
use crate::timing::Timing;

/// Addresses of an unassigned flow.
const NOWHERE: Endpoints = Endpoints {
    src: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    dst: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
};

/// Time for packets in flight after all real applications have ended.
const GRACE: Duration = Duration::from_secs(1);

/// Parameters of a run.
#[derive(Debug)]
pub struct Job<'a, W> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Indices of the real hosts.
    pub outside: &'a [usize],
    /// Workload of the real hosts.
    pub play: HostWorkload<'a>,
    /// IPv4 and IPv6 address of each real host.
    pub addresses: &'a [(IpAddr, IpAddr)],
    /// Congestion control of real senders; the system's default if `None`.
    pub congestion: Option<String>,
    /// Sampling interval of a real sender's state.
    pub poll: Duration,
    /// Output of a capture, its section header, and the number of the scenario's taps it includes,
    /// from the first; 0 captures at the stack of every host.
    pub capture: Option<(W, PcapngSection<'a>, usize)>,
    /// Stops the run when set.
    pub stop: &'a AtomicBool,
}

/// Workload of real hosts.
#[derive(Debug, Clone, Copy)]
pub enum HostWorkload<'a> {
    /// The scenario's flows, with addresses and ports of each; the source is the connecting side.
    Flows(&'a [Endpoints]),
    /// Connections that programs open. Each flow of the scenario is for one connection opened by
    /// its host `from`.
    Programs {
        /// Shell commands, each with the index of its host; without any, the run lasts to its end.
        lines: &'a [(usize, String)],
        /// Default congestion control of hosts, by index; other hosts have the system's default.
        congestion: &'a [(usize, &'static str)],
        /// Called when all hosts are ready, with the path of each namespace (see nsenter(1)).
        ready: fn(&[(usize, String)]),
    },
}

/// Result of a run.
#[derive(Debug)]
pub struct WireOutcome<W> {
    /// Outcome as of a simulated run; for real endpoints, as they reported.
    pub outcome: RunOutcome,
    /// The bytes of each flow.
    pub flows: Vec<FlowBytes>,
    /// Lateness of the machine.
    pub timing: Timing,
    /// Other counters.
    pub counts: WireCounts,
    /// Packets dropped by a full device queue: the machine was too slow.
    pub overflowed: u64,
    /// Connections opened by programs.
    pub connections: u64,
    /// Failed programs with their exit status.
    pub failed: Vec<String>,
    /// The capture's output.
    pub capture: Option<W>,
}

/// The bytes of a flow.
#[derive(Debug, Clone, Default)]
pub struct FlowBytes {
    /// Bytes read.
    pub read: u64,
    /// SHA-256 of the bytes that were read.
    pub read_sha256: [u8; 32],
    /// SHA-256 of the same number of written bytes.
    pub written_sha256: [u8; 32],
    /// State samples of a real sender.
    pub samples: Vec<TcpInfoSample>,
    /// Errors of real endpoints.
    pub errors: Vec<String>,
}

impl FlowBytes {
    /// Returns whether the bytes read equal the bytes written.
    pub fn equal(&self) -> bool {
        self.read_sha256 == self.written_sha256
    }
}

/// Error that prevents a run.
#[derive(Debug)]
pub enum WireRunError {
    /// A real host cannot be created.
    Space(NamespaceError),
    /// The scenario has an invalid reference.
    Setup(SetupError),
    /// A real endpoint does not support this flow.
    Flow {
        /// Index of the flow.
        flow: usize,
        /// The unsupported feature.
        what: &'static str,
    },
    /// A socket or the capture could not be opened.
    Io(io::Error),
}

impl std::fmt::Display for WireRunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Space(error) => error.fmt(f),
            Self::Setup(error) => write!(f, "the scenario cannot be run: {error}"),
            Self::Flow { flow, what } => {
                write!(f, "flow number {flow}: a real host cannot play {what}")
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WireRunError {}

impl From<io::Error> for WireRunError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Results of a real host's applications, and its kernel's counters.
#[derive(Default)]
struct HostResult {
    ends: Vec<(usize, SocketResult)>,
    failed: Vec<String>,
    /// Background processes, which live until all programs of all hosts have ended.
    programs: Option<Init>,
    overflowed: u64,
    recoveries: u64,
    timeouts: u64,
}

/// A running real host.
struct RealHost {
    thread: JoinHandle<HostResult>,
    go: mpsc::Sender<RealClock>,
    /// Path of its namespace.
    namespace: String,
}

/// Tasks of a real host.
struct HostTask {
    ends: Vec<(usize, SocketEndpoint)>,
    lines: Vec<String>,
    /// Default congestion control.
    congestion: Option<&'static str>,
    /// The host runs until it is stopped.
    stays: bool,
}

/// Runs a job; `observer` receives the events of a simulated run, except those inside real hosts.
///
/// # Errors
/// [`WireRunError`].
pub fn run<O: Observer, W: Write>(
    job: Job<'_, W>,
    observer: &mut O,
) -> Result<WireOutcome<W>, WireRunError> {
    let parts = parts(&job)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (mut gates, mut hosts) = (Vec::new(), Vec::new());
    let (lines, congestion) = match job.play {
        HostWorkload::Flows(_) => (&[][..], &[][..]),
        HostWorkload::Programs { lines, congestion, .. } => (lines, congestion),
    };
    for (&host, &addresses) in job.outside.iter().zip(job.addresses) {
        let ends = parts.iter().filter(|part| part.1 == host).map(|part| (part.0, part.2.clone()));
        let own = lines.iter().filter(|line| line.0 == host).map(|line| line.1.clone());
        let work = HostTask {
            ends: ends.collect(),
            lines: own.collect(),
            congestion: congestion.iter().find(|one| one.0 == host).map(|one| one.1),
            stays: matches!(job.play, HostWorkload::Programs { .. }) && lines.is_empty(),
        };
        let stack = &job.scenario.hosts[host].stack;
        let (device, at_work) = start_host(addresses, stack, work, Arc::clone(&stop))?;
        gates.push(TunPort { host, device });
        hosts.push(at_work);
    }
    let mut scenario = job.scenario.clone();
    let user_taps = scenario.taps.len();
    let mut stack_taps = vec![None; scenario.hosts.len()];
    for (host, stack_tap) in stack_taps.iter_mut().enumerate() {
        // Additional taps do not affect the simulation; the user's taps keep their indices.
        scenario.taps.push(TapSpec { host, place: TapPoint::Stack });
        *stack_tap = (!job.outside.contains(&host)).then_some(scenario.taps.len() - 1);
    }
    let capture = match job.capture {
        Some((out, section, asked)) => {
            let taps: Vec<usize> = match asked {
                0 => (user_taps..scenario.taps.len()).collect(),
                taps => (0..taps).collect(),
            };
            let name = |&tap: &usize| {
                let tap = scenario.taps[tap];
                let point = if tap.place == TapPoint::Stack { "stack" } else { "wire" };
                format!("{}-{point}", scenario.hosts[tap.host].name)
            };
            let names: Vec<String> = taps.iter().map(name).collect();
            Some((TapCapture::new(out, &section, &names)?, taps))
        }
        None => None,
    };
    let real = |host: usize| job.outside.contains(&host);
    let streams = scenario.flows.iter().enumerate().flat_map(|(flow, ends)| {
        let stream = |host, back| match real(host) {
            true => ByteStream::real(),
            false => ByteStream::known(PayloadGenerator::new(flow, back)),
        };
        [stream(ends.from, false), stream(ends.to, true)]
    });
    let flows = scenario.flows.len();
    let mut watcher = WireObserver {
        user: &mut ErasedObserver::<true, true>::new(observer),
        user_taps,
        stack_taps,
        streams: streams.collect(),
        received: (0..flows).map(|_| ReceivedBytes::default()).collect(),
        directory: match job.play {
            HostWorkload::Flows(endpoints) => FlowDirectory::of(endpoints),
            HostWorkload::Programs { .. } => {
                let hosts: Vec<usize> = scenario.flows.iter().map(|flow| flow.from).collect();
                FlowDirectory::places(&hosts, NOWHERE)
            }
        },
        capture,
        scratch: Vec::new(),
    };
    let end = Instant::ZERO + scenario.duration;
    let mut live =
        LiveSimulation::new(&scenario, job.outside, &mut watcher).map_err(WireRunError::Setup)?;
    if let HostWorkload::Flows(endpoints) = job.play {
        let (numbers, micros) = (IsnGenerator::secret()?, IsnGenerator::micros());
        live.number(|flow, back| {
            let between = if back { endpoints[flow].reversed() } else { endpoints[flow] };
            let first = numbers.first(&between, micros);
            [first.isn, first.timestamp]
        });
    }
    clock::set_realtime_priority();
    let clock = RealClock::start();
    let mut driver = Driver {
        gates: &gates,
        clock,
        counts: WireCounts::default(),
        hashes: vec![Sha256::new(); flows],
    };
    if let HostWorkload::Programs { ready, .. } = job.play {
        let at = |(host, at_work): (&usize, &RealHost)| (*host, at_work.namespace.clone());
        ready(&job.outside.iter().zip(&hosts).map(at).collect::<Vec<_>>());
    }
    for host in &hosts {
        // A host that has already failed has reported its error.
        let _ = host.go.send(clock);
    }
    let mut last = None;
    driver.run(&mut live, end, |live| {
        if job.stop.load(Ordering::Relaxed) {
            return true;
        }
        let idle = hosts.iter().all(|host| host.thread.is_finished());
        let since = *last.get_or_insert(clock.now());
        if !idle {
            last = None;
        }
        idle && (live.over() || clock.now().since(since) >= GRACE)
    });
    let mut outcome = live.outcome();
    let Driver { counts, hashes, .. } = driver;
    stop.store(true, Ordering::Relaxed);
    let mut ended: Vec<HostResult> =
        hosts.into_iter().filter_map(|host| host.thread.join().ok()).collect();
    ended.iter_mut().for_each(|host| drop(host.programs.take()));
    let mut bytes: Vec<FlowBytes> = hashes
        .into_iter()
        .zip(&watcher.received)
        .map(|(hash, received)| FlowBytes {
            read: received.read,
            read_sha256: hash.finalize().into(),
            ..FlowBytes::default()
        })
        .collect();
    for host in &ended {
        for (flow, end) in &host.ends {
            report(&scenario, *flow, end, host, &mut outcome, &mut bytes[*flow]);
        }
    }
    for (flow, bytes) in bytes.iter_mut().enumerate() {
        if !real(scenario.flows[flow].from) || bytes.written_sha256 == [0; 32] {
            bytes.written_sha256 = sha256_of(PayloadGenerator::new(flow, false), bytes.read);
        }
    }
    Ok(WireOutcome {
        outcome,
        flows: bytes,
        timing: counts.lateness.timing(),
        overflowed: ended.iter().map(|host| host.overflowed).sum(),
        counts,
        connections: watcher.directory.connections,
        failed: ended.into_iter().flat_map(|host| host.failed).collect(),
        capture: watcher.capture.map(|(capture, _)| capture.finish()).transpose()?,
    })
}

/// Returns the real endpoints: flow, host, endpoint.
fn parts<W>(job: &Job<'_, W>) -> Result<Vec<(usize, usize, SocketEndpoint)>, WireRunError> {
    let mut parts = Vec::new();
    let HostWorkload::Flows(endpoints) = job.play else { return Ok(parts) };
    for (flow, ends) in job.scenario.flows.iter().enumerate() {
        let refused = |what| Err(WireRunError::Flow { flow, what });
        let endpoints = endpoints[flow];
        if [ends.from, ends.to].iter().any(|&host| job.scenario.hosts[host].stack.is_quic()) {
            return refused("QUIC");
        }
        if job.outside.contains(&ends.to) {
            if matches!(ends.app, App::Requests { .. }) {
                return refused("`requests`");
            }
            if ends.reads.is_some() {
                return refused("a slow reader (`reads`)");
            }
            let end =
                SocketEndpoint { own: endpoints.dst, peer: endpoints.src, part: SocketTask::Reads };
            parts.push((flow, ends.to, end));
        }
        if job.outside.contains(&ends.from) {
            let App::Bulk { bytes, write } = ends.app else {
                return refused("an application other than `bulk`");
            };
            let write = write.unwrap_or(kernel::WRITE).get();
            if write > kernel::LARGEST_WRITE {
                return refused("a `write` above 64 MiB");
            }
            if ends.close == Close::Reset {
                return refused("`close = \"reset\"`");
            }
            let part = SocketTask::Writes {
                start: ends.start,
                bytes: bytes.map(Bytes::get),
                write: write as usize,
                payload: PayloadGenerator::new(flow, false),
                congestion: job.congestion.clone(),
                poll: job.poll,
            };
            parts.push((
                flow,
                ends.from,
                SocketEndpoint { own: endpoints.src, peer: endpoints.dst, part },
            ));
        }
    }
    Ok(parts)
}

/// Starts a real host; returns its device when its applications are ready.
fn start_host(
    (v4, v6): (IpAddr, IpAddr),
    stack: &StackSpec,
    work: HostTask,
    stop: Arc<AtomicBool>,
) -> Result<(Device, RealHost), WireRunError> {
    let (report, reported) = mpsc::channel();
    let (go, gone) = mpsc::channel::<RealClock>();
    let mut settings = stack.tcp().map_or_else(Vec::new, |tcp| namespace::settings(&tcp.profile));
    let mtu = stack.mtu();
    let congestion = work.congestion.map(str::to_owned);
    settings.extend(congestion.map(|name| ("net.ipv4.tcp_congestion_control", name)));
    let thread = thread::spawn(move || {
        let HostTask { ends, lines, stays, .. } = work;
        let ready = || -> Result<_, WireRunError> {
            namespace::unshare_network().map_err(WireRunError::Space)?;
            let (IpAddr::V4(v4), IpAddr::V6(v6)) = (v4, v6) else {
                return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
            };
            for (name, value) in settings {
                namespace::set_sysctl(name, &value)?;
            }
            let device = namespace::device(v4, v6, mtu).map_err(WireRunError::Space)?;
            let mut doors = ListenerSet::default();
            let ready: io::Result<Vec<_>> =
                ends.into_iter().map(|(flow, end)| Ok((flow, end.ready(&mut doors)?))).collect();
            Ok((device, ready?, namespace::path()))
        };
        let ready = match ready() {
            Ok((device, ready, path)) => {
                let _ = report.send(Ok((Device(device), path)));
                ready
            }
            Err(error) => {
                let _ = report.send(Err(error));
                return HostResult::default();
            }
        };
        let Ok(clock) = gone.recv() else { return HostResult::default() };
        let at_work: Vec<_> = ready
            .into_iter()
            .map(|(flow, ready)| (flow, ready.start(clock, Arc::clone(&stop))))
            .collect();
        let (failed, programs) = command::run(&lines, &stop);
        let mut ended = HostResult { failed, programs, ..HostResult::default() };
        for (flow, end) in at_work {
            if let Ok(end) = end.join() {
                ended.ends.push((flow, end));
            }
        }
        while stays && !stop.load(Ordering::Relaxed) {
            clock.wait(None, &[]);
        }
        ended.overflowed = namespace::overflowed();
        ended.recoveries =
            namespace::tcp_counter("TCPSackRecovery") + namespace::tcp_counter("TCPRenoRecovery");
        ended.timeouts = namespace::tcp_counter("TCPTimeouts");
        ended
    });
    match reported.recv() {
        Ok(Ok((device, namespace))) => Ok((device, RealHost { thread, go, namespace })),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("the thread of a real host has panicked").into()),
    }
}

/// Merges the result of a real endpoint into the outcome.
fn report(
    scenario: &Scenario,
    flow: usize,
    end: &SocketResult,
    host: &HostResult,
    outcome: &mut RunOutcome,
    bytes: &mut FlowBytes,
) {
    let measured = &mut outcome.flows[flow];
    bytes.errors.extend(end.error.clone());
    if end.samples.is_empty() && bytes.read == 0 {
        // The endpoint is the reader.
        bytes.read = end.bytes;
        bytes.read_sha256 = end.sha256;
        measured.bytes = Bytes(end.bytes);
        measured.finished = end.finished;
        let started = Instant::ZERO + scenario.flows[flow].start;
        measured.duration = end.last_at.since(started);
        return;
    }
    measured.profile = "kernel";
    if end.finished {
        bytes.written_sha256 = end.sha256;
    }
    bytes.samples.clone_from(&end.samples);
    let Some(last) = end.samples.last() else { return };
    let mss = u64::from(last.info.mss);
    let most = end.samples.iter().map(|sample| sample.info.cwnd).max().unwrap_or(0);
    measured.mss = Bytes(mss);
    measured.max_cwnd = Bytes(u64::from(most) * mss);
    measured.min_rtt = last.info.min_rtt;
    measured.retransmitted_segments = last.info.retransmitted.into();
    // Counters of the host: exact if it has one flow.
    measured.fast_recoveries = host.recoveries;
    measured.rtos = host.timeouts;
}

fn sha256_of(payload: PayloadGenerator, bytes: u64) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    let mut at = 0;
    while at < bytes {
        let len = (bytes - at).min(chunk.len() as u64) as usize;
        payload.fill(at, &mut chunk[..len]);
        hash.update(&chunk[..len]);
        at += len as u64;
    }
    hash.finalize().into()
}
