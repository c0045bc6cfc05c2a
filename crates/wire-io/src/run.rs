//! A scenario with real hosts, from its beginning to its end.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use packet::wire::Endpoints;
use sha2::{Digest, Sha256};
use sim::live::Live;
use sim::scenario::{App, Close, Scenario, Stack, Tap, TapPlace};
use sim::{Observer, Outcome, SetupError};
use trace::pcapng::Section;
use units::{Bytes, Duration, Instant};

use crate::capture::Capture;
use crate::clock::{self, Clock};
use crate::command::{self, Init};
use crate::directory::Directory;
use crate::drive::{Counts, Device, Driver, Gate, Watcher};
use crate::kernel::{self, Doors, End, Ended, Part, Sample};
use crate::numbers::Numbers;
use crate::payload::Payload;
use crate::space::{self, SpaceError};
use crate::streams::{Received, Stream};
use crate::timing::Timing;

/// Addresses of no connection.
const NOWHERE: Endpoints = Endpoints {
    src: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
    dst: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
};

/// After all real applications have ended, what is still under way has so long.
const GRACE: Duration = Duration::from_secs(1);

/// What to run.
#[derive(Debug)]
pub struct Job<'a, W> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Indices of the hosts that are real.
    pub outside: &'a [usize],
    /// What real hosts do.
    pub play: Play<'a>,
    /// For each real host its IPv4 and IPv6 address.
    pub addresses: &'a [(IpAddr, IpAddr)],
    /// Congestion control of real senders; the system's own without.
    pub congestion: Option<String>,
    /// How often a real sender is asked for its state.
    pub poll: Duration,
    /// Where a capture goes, what its header says, and how many of the scenario's taps it shows, from
    /// the first on; if none, it shows the stack of every host.
    pub capture: Option<(W, Section<'a>, usize)>,
    /// Set from elsewhere to end the run.
    pub stop: &'a AtomicBool,
}

/// What real hosts do.
#[derive(Debug, Clone, Copy)]
pub enum Play<'a> {
    /// The scenario's flows. Addresses and ports of each, its connecting side as the source.
    Flows(&'a [Endpoints]),
    /// Whatever connections their programs open. The scenario's flows are places for them, each for
    /// one that its host `from` opens.
    Programs {
        /// Lines for a shell, each with the index of its host; without any the run lasts to its end.
        lines: &'a [(usize, String)],
        /// Congestion control that a host's connections have by default, each with the index of its
        /// host; the others have the system's own.
        congestion: &'a [(usize, &'static str)],
        /// Called when all hosts are there, with the path of each one's namespace (see nsenter(1)).
        ready: fn(&[(usize, String)]),
    },
}

/// What a run came to.
#[derive(Debug)]
pub struct Done<W> {
    /// As of a run in virtual time; of real ends it says what they told.
    pub outcome: Outcome,
    /// The bytes of each flow.
    pub flows: Vec<FlowBytes>,
    /// How late the machine was.
    pub timing: Timing,
    /// What else was counted.
    pub counts: Counts,
    /// Packets for which a device's queue had no room: the machine was too slow for them.
    pub overflowed: u64,
    /// Connections of programs.
    pub connections: u64,
    /// Programs that did not end well, and how they ended.
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
    /// SHA-256 of as many bytes of what was written.
    pub written_sha256: [u8; 32],
    /// What a real sender told of itself.
    pub samples: Vec<Sample>,
    /// What went wrong at real ends.
    pub errors: Vec<String>,
}

impl FlowBytes {
    /// Are the bytes that were read those that were written?
    pub fn equal(&self) -> bool {
        self.read_sha256 == self.written_sha256
    }
}

/// Why a run could not begin.
#[derive(Debug)]
pub enum WireRunError {
    /// A real host cannot be had.
    Space(SpaceError),
    /// The scenario refers to what is not there.
    Setup(SetupError),
    /// What a real end of this flow would have to do is not built.
    Flow {
        /// Index of the flow.
        flow: usize,
        /// What it is.
        what: &'static str,
    },
    /// A real application could not get ready, or the capture could not begin.
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

/// What a real host's applications came to, and what its kernel counted.
#[derive(Default)]
struct HostEnded {
    ends: Vec<(usize, Ended)>,
    failed: Vec<String>,
    /// What programs have left behind serves other hosts' programs until all have ended.
    programs: Option<Init>,
    overflowed: u64,
    recoveries: u64,
    timeouts: u64,
}

/// A real host at work.
struct Host {
    thread: JoinHandle<HostEnded>,
    go: mpsc::Sender<Clock>,
    /// Where its namespace is.
    namespace: String,
}

/// What a real host has to do.
struct Work {
    ends: Vec<(usize, End)>,
    lines: Vec<String>,
    /// Congestion control of connections that name none.
    congestion: Option<&'static str>,
    /// It is there until it is stopped.
    stays: bool,
}

/// Runs a job; `observer` sees what it would see of a run in virtual time, but for what goes on
/// inside real hosts.
///
/// # Errors
/// [`WireRunError`].
pub fn run<O: Observer, W: Write>(
    job: Job<'_, W>,
    observer: &mut O,
) -> Result<Done<W>, WireRunError> {
    let parts = parts(&job)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (mut gates, mut hosts) = (Vec::new(), Vec::new());
    let (lines, congestion) = match job.play {
        Play::Flows(_) => (&[][..], &[][..]),
        Play::Programs { lines, congestion, .. } => (lines, congestion),
    };
    for (&host, &addresses) in job.outside.iter().zip(job.addresses) {
        let ends = parts.iter().filter(|part| part.1 == host).map(|part| (part.0, part.2.clone()));
        let own = lines.iter().filter(|line| line.0 == host).map(|line| line.1.clone());
        let work = Work {
            ends: ends.collect(),
            lines: own.collect(),
            congestion: congestion.iter().find(|one| one.0 == host).map(|one| one.1),
            stays: matches!(job.play, Play::Programs { .. }) && lines.is_empty(),
        };
        let stack = &job.scenario.hosts[host].stack;
        let (device, at_work) = start_host(addresses, stack, work, Arc::clone(&stop))?;
        gates.push(Gate { host, device });
        hosts.push(at_work);
    }
    let mut scenario = job.scenario.clone();
    let user_taps = scenario.taps.len();
    let mut stack_taps = vec![None; scenario.hosts.len()];
    for (host, place) in stack_taps.iter_mut().enumerate() {
        // A tap more changes nothing in a world; the user's are not looked through by number twice.
        scenario.taps.push(Tap { host, place: TapPlace::Stack });
        *place = (!job.outside.contains(&host)).then_some(scenario.taps.len() - 1);
    }
    let capture = match job.capture {
        Some((out, section, asked)) => {
            let taps: Vec<usize> = match asked {
                0 => (user_taps..scenario.taps.len()).collect(),
                taps => (0..taps).collect(),
            };
            let name = |&tap: &usize| {
                let tap = scenario.taps[tap];
                let place = if tap.place == TapPlace::Stack { "stack" } else { "wire" };
                format!("{}-{place}", scenario.hosts[tap.host].name)
            };
            let names: Vec<String> = taps.iter().map(name).collect();
            Some((Capture::new(out, &section, &names)?, taps))
        }
        None => None,
    };
    let real = |host: usize| job.outside.contains(&host);
    let streams = scenario.flows.iter().enumerate().flat_map(|(flow, ends)| {
        let stream = |host, back| match real(host) {
            true => Stream::real(),
            false => Stream::known(Payload::new(flow, back)),
        };
        [stream(ends.from, false), stream(ends.to, true)]
    });
    let flows = scenario.flows.len();
    let mut watcher = Watcher {
        user: observer,
        user_taps,
        stack_taps,
        streams: streams.collect(),
        received: (0..flows).map(|_| Received::default()).collect(),
        directory: match job.play {
            Play::Flows(endpoints) => Directory::of(endpoints),
            Play::Programs { .. } => {
                let hosts: Vec<usize> = scenario.flows.iter().map(|flow| flow.from).collect();
                Directory::places(&hosts, NOWHERE)
            }
        },
        capture,
        scratch: Vec::new(),
    };
    let end = Instant::ZERO + scenario.duration;
    let mut live = Live::new(&scenario, job.outside, &mut watcher).map_err(WireRunError::Setup)?;
    if let Play::Flows(endpoints) = job.play {
        let (numbers, micros) = (Numbers::secret()?, Numbers::micros());
        live.number(|flow, back| {
            let between = if back { endpoints[flow].back() } else { endpoints[flow] };
            let first = numbers.first(&between, micros);
            [first.isn, first.timestamp]
        });
    }
    clock::be_punctual();
    let clock = Clock::start();
    let mut driver = Driver {
        gates: &gates,
        clock,
        counts: Counts::default(),
        hashes: vec![Sha256::new(); flows],
    };
    if let Play::Programs { ready, .. } = job.play {
        let at = |(host, at_work): (&usize, &Host)| (*host, at_work.namespace.clone());
        ready(&job.outside.iter().zip(&hosts).map(at).collect::<Vec<_>>());
    }
    for host in &hosts {
        // A host that has given up already has said why.
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
    let mut ended: Vec<HostEnded> =
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
            tell(&scenario, *flow, end, host, &mut outcome, &mut bytes[*flow]);
        }
    }
    for (flow, bytes) in bytes.iter_mut().enumerate() {
        if !real(scenario.flows[flow].from) || bytes.written_sha256 == [0; 32] {
            bytes.written_sha256 = sha256_of(Payload::new(flow, false), bytes.read);
        }
    }
    Ok(Done {
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

/// What real ends have to do: flow, host, end.
fn parts<W>(job: &Job<'_, W>) -> Result<Vec<(usize, usize, End)>, WireRunError> {
    let mut parts = Vec::new();
    let Play::Flows(endpoints) = job.play else { return Ok(parts) };
    for (flow, ends) in job.scenario.flows.iter().enumerate() {
        let refused = |what| Err(WireRunError::Flow { flow, what });
        let endpoints = endpoints[flow];
        if [ends.from, ends.to].iter().any(|&host| job.scenario.hosts[host].stack.quic().is_some())
        {
            return refused("QUIC");
        }
        if job.outside.contains(&ends.to) {
            if matches!(ends.app, App::Requests { .. }) {
                return refused("`requests`");
            }
            if ends.reads.is_some() {
                return refused("a slow reader (`reads`)");
            }
            let end = End { own: endpoints.dst, peer: endpoints.src, part: Part::Reads };
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
            let part = Part::Writes {
                start: ends.start,
                bytes: bytes.map(Bytes::get),
                write: write as usize,
                payload: Payload::new(flow, false),
                congestion: job.congestion.clone(),
                poll: job.poll,
            };
            parts.push((flow, ends.from, End { own: endpoints.src, peer: endpoints.dst, part }));
        }
    }
    Ok(parts)
}

/// Makes a real host: its device is here when its applications are ready.
fn start_host(
    (v4, v6): (IpAddr, IpAddr),
    stack: &Stack,
    work: Work,
    stop: Arc<AtomicBool>,
) -> Result<(Device, Host), WireRunError> {
    let (tell, told) = mpsc::channel();
    let (go, gone) = mpsc::channel::<Clock>();
    let mut settings = stack.tcp().map_or_else(Vec::new, |tcp| space::settings(&tcp.profile));
    let mtu = stack.mtu();
    let congestion = work.congestion.map(str::to_owned);
    settings.extend(congestion.map(|name| ("net.ipv4.tcp_congestion_control", name)));
    let thread = thread::spawn(move || {
        let Work { ends, lines, stays, .. } = work;
        let ready = || -> Result<_, WireRunError> {
            space::leave().map_err(WireRunError::Space)?;
            let (IpAddr::V4(v4), IpAddr::V6(v6)) = (v4, v6) else {
                return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
            };
            for (name, value) in settings {
                space::set_sysctl(name, &value)?;
            }
            let device = space::device(v4, v6, mtu).map_err(WireRunError::Space)?;
            let mut doors = Doors::default();
            let ready: io::Result<Vec<_>> =
                ends.into_iter().map(|(flow, end)| Ok((flow, end.ready(&mut doors)?))).collect();
            Ok((device, ready?, space::path()))
        };
        let ready = match ready() {
            Ok((device, ready, path)) => {
                let _ = tell.send(Ok((Device(device), path)));
                ready
            }
            Err(error) => {
                let _ = tell.send(Err(error));
                return HostEnded::default();
            }
        };
        let Ok(clock) = gone.recv() else { return HostEnded::default() };
        let at_work: Vec<_> = ready
            .into_iter()
            .map(|(flow, ready)| (flow, ready.start(clock, Arc::clone(&stop))))
            .collect();
        let (failed, programs) = command::run(&lines, &stop);
        let mut ended = HostEnded { failed, programs, ..HostEnded::default() };
        for (flow, end) in at_work {
            if let Ok(end) = end.join() {
                ended.ends.push((flow, end));
            }
        }
        while stays && !stop.load(Ordering::Relaxed) {
            clock.wait(None, &[]);
        }
        ended.overflowed = space::overflowed();
        ended.recoveries =
            space::tcp_counter("TCPSackRecovery") + space::tcp_counter("TCPRenoRecovery");
        ended.timeouts = space::tcp_counter("TCPTimeouts");
        ended
    });
    match told.recv() {
        Ok(Ok((device, namespace))) => Ok((device, Host { thread, go, namespace })),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("the thread of a real host has died").into()),
    }
}

/// Works what a real end told into what was measured.
fn tell(
    scenario: &Scenario,
    flow: usize,
    end: &Ended,
    host: &HostEnded,
    outcome: &mut Outcome,
    bytes: &mut FlowBytes,
) {
    let measured = &mut outcome.flows[flow];
    bytes.errors.extend(end.error.clone());
    if end.samples.is_empty() && bytes.read == 0 {
        // The reader.
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
    // Counters of the host: exact where it has one flow.
    measured.fast_recoveries = host.recoveries;
    measured.rtos = host.timeouts;
}

fn sha256_of(payload: Payload, bytes: u64) -> [u8; 32] {
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
