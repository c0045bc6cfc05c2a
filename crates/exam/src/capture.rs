//! Runs a scenario and writes what a user's capture of it would hold.

use std::borrow::Cow;
use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU64, Ordering};

use export::capture::PcapngRecorder;
use export::kernel_log::LoggedEndpoint;
use export::qlog::Qlog;
use logs::qlog::{QlogData, QlogFormat, QlogItem, QlogReader};
use packet::Segment;
use record::{ElementId, Event, EventSource, PacketEvent, PacketNumber, Recorder, SenderState};
#[cfg(target_os = "linux")]
use scenario::Stacks;
use scenario::{Overrides, load};
use sim::scenario::{ElementSpec, Scenario};
use sim::{Observer, RunOutcome};
use trace::capture::{CaptureItem, CaptureReader};
use units::{Duration, Instant};

#[cfg(target_os = "linux")]
use crate::draft::{CLIENT, SERVER};

/// Where and how the transfer was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureSettings {
    /// The points.
    pub point: CapturePoint,
    /// The capture began after the handshake.
    pub without_syn: bool,
    /// Bytes kept of each packet; `None`: all.
    pub snaplen: Option<usize>,
}

/// A capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturePoint {
    /// At the sender of the data.
    Sender,
    /// At its receiver.
    Receiver,
    /// Between them: behind the bottleneck and a part of the delay of each way.
    Middle,
    /// At both.
    Both,
}

impl CapturePoint {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Middle => "middle",
            Self::Both => "both ends",
        }
    }
}

/// What runs the hosts of a scenario.
#[derive(Debug, Clone, Default)]
pub enum Engine {
    /// Models alone.
    #[default]
    Models,
    /// A real QUIC stack runs both hosts of the transfer, and writes the log that is judged.
    #[cfg(target_os = "linux")]
    Stack {
        /// Its name, which is that of its profile.
        name: String,
        /// A directory for its logs.
        logs: PathBuf,
    },
    /// A kernel runs the hosts of its profile; all others are models.
    #[cfg(target_os = "linux")]
    Kernel {
        /// The kernel, an executable.
        kernel: PathBuf,
        /// Its process 1.
        init: PathBuf,
        /// The profile of its hosts.
        profile: String,
    },
}

/// Captures of one run.
#[derive(Debug, Clone)]
pub(crate) enum RunCapture {
    /// At the client, the server and between them, as pcapng with all packets.
    Packets(Vec<u8>),
    /// The log of the sender.
    Qlog(Vec<u8>),
}

/// Times of one run of the transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TransferTime {
    pub(crate) duration: Duration,
    /// All data arrived.
    pub(crate) finished: bool,
}

/// Parses a scenario.
pub(crate) fn parse(text: &str) -> Result<Scenario, String> {
    parse_with(text, &Overrides::default())
}

/// The program of a QUIC stack.
#[cfg(target_os = "linux")]
fn find_stack(
    name: &str,
    logs: Option<&std::path::Path>,
) -> Result<&'static dyn quic::real::RealStack, String> {
    use guest::stack::build;

    let recipe = build::find(name).ok_or_else(|| format!("there is no stack {name}"))?;
    let missing = || format!("run `ackclock stack build {}`: it is not built", recipe.wanted);
    let cache = guest::kernel::Cache::of_user().ok_or_else(missing)?;
    let found = build::built(&cache, recipe.name).map_err(|error| error.to_string())?;
    let program = found.as_ref().and_then(build::BuiltStack::stack).ok_or_else(missing)?;
    Ok(match logs {
        Some(logs) => program.with_logs(logs),
        None => program,
    }
    .leak())
}

/// The scenario with a real stack as both hosts of the transfer. It has its own defaults.
#[cfg(target_os = "linux")]
fn with_stack(text: &str, name: &str) -> String {
    let Ok(mut root) = text.parse::<toml::Table>() else { return text.to_owned() };
    let profile = guest::stack::build::find(name).map_or(name, |recipe| recipe.profile);
    let hosts = root.get_mut("host").and_then(toml::Value::as_table_mut);
    for (host, keys) in hosts.into_iter().flatten() {
        if let Some(keys) =
            keys.as_table_mut().filter(|_| [CLIENT, SERVER].contains(&host.as_str()))
        {
            keys.remove("knobs");
            keys.remove("cc");
            keys.insert("profile".into(), profile.into());
            keys.insert("stack".into(), name.into());
        }
    }
    root.to_string()
}

fn parse_with(text: &str, overrides: &Overrides) -> Result<Scenario, String> {
    let loaded = load(text, "draw.toml", overrides);
    loaded
        .map(|loaded| loaded.scenario)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

impl Engine {
    /// The kernel, by the name of its profile; `None` without one.
    pub fn kernel(&self) -> Option<&str> {
        match self {
            Self::Models => None,
            #[cfg(target_os = "linux")]
            Self::Stack { .. } => None,
            #[cfg(target_os = "linux")]
            Self::Kernel { profile, .. } => Some(profile),
        }
    }

    /// The name of the QUIC stack; `None` without one.
    pub fn stack(&self) -> Option<&str> {
        match self {
            Self::Models => None,
            #[cfg(target_os = "linux")]
            Self::Kernel { .. } => None,
            #[cfg(target_os = "linux")]
            Self::Stack { name, .. } => Some(name),
        }
    }

    /// The scenario as it is run: with a kernel, all hosts of Linux are that one's.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Self::Models => Cow::Borrowed(text),
            #[cfg(target_os = "linux")]
            Self::Stack { name, .. } => Cow::Owned(with_stack(text, name)),
            #[cfg(target_os = "linux")]
            Self::Kernel { profile, .. } => {
                let mut text = text.to_owned();
                for model in tcp::profile::NAMES.iter().filter(|name| name.starts_with("linux-")) {
                    text = text.replace(&format!("\"{model}\""), &format!("\"{profile}\""));
                }
                Cow::Owned(text)
            }
        }
    }

    /// Runs a scenario; its first flow is the transfer.
    pub(crate) fn time(&self, text: &str) -> Result<TransferTime, String> {
        self.run(&self.parse(&self.text(text), None)?, &mut record::NullRecorder)
    }

    /// Runs a scenario and captures it at both hosts, and between them if wanted.
    pub(crate) fn captured(
        &self,
        text: &str,
        middle: bool,
    ) -> Result<(TransferTime, RunCapture), String> {
        let scenario = self.parse(&self.text(text), None)?;
        let io = |error: std::io::Error| error.to_string();
        let inner = PcapngRecorder::new(&scenario, &[0, 1, MIDDLE], "", Vec::new()).map_err(io)?;
        if !middle {
            let mut recorder = inner;
            let time = self.run(&scenario, &mut recorder)?;
            return Ok((time, RunCapture::Packets(recorder.finish().map_err(io)?)));
        }
        let mut recorder = MiddleRecorder::new(&scenario, inner);
        let time = self.run(&scenario, &mut recorder)?;
        Ok((time, RunCapture::Packets(recorder.inner.finish().map_err(io)?)))
    }

    /// Runs a scenario of QUIC and writes the log of its sender.
    pub(crate) fn logged(
        &self,
        text: &str,
        is_download: bool,
    ) -> Result<(TransferTime, RunCapture), String> {
        #[cfg(target_os = "linux")]
        if let Self::Stack { logs, .. } = self {
            return self.logged_by_stack((text, is_download), logs);
        }
        let mut scenario = self.parse(&self.text(text), None)?;
        let side = LoggedEndpoint::sender(&mut scenario, 0).ok_or("no flow")?;
        let io = |error: std::io::Error| error.to_string();
        let mut log =
            Qlog::new(&scenario, side, "", QlogFormat::Current, Vec::new()).map_err(io)?;
        let time = self.run(&scenario, &mut log)?;
        Ok((time, RunCapture::Qlog(log.finish().map_err(io)?)))
    }

    /// Parses a scenario; a real stack writes its logs into this directory.
    fn parse(&self, text: &str, logs: Option<&std::path::Path>) -> Result<Scenario, String> {
        #[cfg(target_os = "linux")]
        if let Self::Stack { name, .. } = self {
            let stack = find_stack(name, logs)?;
            let find = move |_: &str| Ok(stack);
            let overrides = Overrides { stacks: Stacks::programs(find), ..Overrides::default() };
            return parse_with(text, &overrides);
        }
        let _ = logs;
        parse(text)
    }

    /// Runs a scenario of QUIC with a real stack; returns the log that the sender of the data wrote itself.
    #[cfg(target_os = "linux")]
    fn logged_by_stack(
        &self,
        (text, is_download): (&str, bool),
        logs: &std::path::Path,
    ) -> Result<(TransferTime, RunCapture), String> {
        // Draws run at the same time.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = logs.join(format!("{}-{number}", std::process::id()));
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let text = self.text(text);
        let scenario = self.parse(&text, Some(&folder))?;
        let time = self.run(&scenario, &mut record::NullRecorder)?;
        drop(scenario);
        let name = if is_download { "0-server.sqlog" } else { "0-client.sqlog" };
        let log = std::fs::read(folder.join(name)).map_err(failed)?;
        std::fs::remove_dir_all(&folder).map_err(failed)?;
        Ok((time, RunCapture::Qlog(log)))
    }

    fn run<O: Observer>(
        &self,
        scenario: &Scenario,
        observer: &mut O,
    ) -> Result<TransferTime, String> {
        let outcome = self.outcome(scenario, observer)?;
        let flow = outcome.flows.first().ok_or("no flow")?;
        Ok(TransferTime { duration: flow.duration, finished: flow.finished })
    }

    fn outcome<O: Observer>(
        &self,
        scenario: &Scenario,
        observer: &mut O,
    ) -> Result<RunOutcome, String> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Stack { .. } => sim::run(scenario, observer).map_err(|error| error.to_string()),
            Self::Models => sim::run_shared(scenario, observer).map_err(|error| error.to_string()),
            #[cfg(target_os = "linux")]
            Self::Kernel { kernel, init, profile } => {
                let is_guest = |host: &usize| {
                    let stack = scenario.hosts[*host].stack.tcp();
                    stack.is_some_and(|tcp| tcp.profile.name == profile)
                };
                let guest = |host| guest::GuestHost {
                    host,
                    kernel: kernel.clone(),
                    init: init.clone(),
                    memory: 256,
                    sysctls: Vec::new(),
                    facts: false,
                    tcp_info: Duration::from_millis(10),
                };
                let guests: Vec<_> =
                    (0..scenario.hosts.len()).filter(is_guest).map(guest).collect();
                if guests.is_empty() {
                    return Self::Models.outcome(scenario, observer);
                }
                let job = guest::Job {
                    scenario,
                    guests: &guests,
                    programs: &[],
                    endpoints: &export::capture::flow_endpoints(scenario),
                    protocol: guest::uml::Protocol::default(),
                    states: false,
                    pin: true,
                };
                let run = guest::run(&job, observer).map_err(|error| error.to_string())?;
                Ok(run.outcome)
            }
        }
    }
}

/// Tap that stands for the point between the hosts: its own packets are not captured.
const MIDDLE: usize = 2;

/// Captures packets between the hosts as well: when each leaves a delay of its way.
struct MiddleRecorder<'s> {
    inner: PcapngRecorder<'s, Vec<u8>>,
    /// The first delay of each direction of the first path.
    hops: [Option<ElementId>; 2],
    /// The packet that a host put on its wire last.
    sent: Option<Segment>,
    /// Packets on their way to such a delay.
    packets: BTreeMap<PacketNumber, Segment>,
}

impl<'s> MiddleRecorder<'s> {
    fn new(scenario: &'s Scenario, inner: PcapngRecorder<'s, Vec<u8>>) -> Self {
        let path = &scenario.paths[0];
        let own = |route: &[ElementSpec]| {
            route.iter().filter(|one| !matches!(one, ElementSpec::Shared(_))).count()
        };
        let delay = |route: &[ElementSpec], first: usize| {
            let at = route.iter().position(|one| matches!(one, ElementSpec::Delay(_)))?;
            Some(ElementId((first + own(&route[..at])) as u32))
        };
        let hops = [delay(&path.forward, 0), delay(&path.reverse, own(&path.forward))];
        Self { inner, hops, sent: None, packets: BTreeMap::new() }
    }
}

impl Recorder for MiddleRecorder<'_> {
    const ON: bool = false;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { packet, .. } => {
                self.packets.extend(self.sent.take().map(|segment| (packet, segment)));
            }
            PacketEvent::Dropped { packet, .. } | PacketEvent::Received { packet, .. } => {
                self.packets.remove(&packet);
            }
            PacketEvent::Forwarded { hop_index, packet }
                if self.hops.contains(&Some(hop_index)) =>
            {
                if let Some(segment) = self.packets.remove(&packet) {
                    self.inner.tap(at, MIDDLE, true, &segment);
                }
            }
            _ => {}
        }
    }
}

impl Observer for MiddleRecorder<'_> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if tap < MIDDLE {
            self.inner.tap(at, tap, outbound, segment);
        } else if outbound {
            self.sent = Some(*segment);
        }
    }
}

/// The flag of the segments of a handshake.
const SYN: u8 = 2;
/// LINKTYPE_RAW: a frame is an IP packet.
const LINKTYPE_RAW: u32 = 101;

/// Bytes of a log in which frames are looked for.
const BEGIN: usize = 1 << 16;

impl RunCapture {
    /// Stream bytes that the peer grants at first by the log, to a connection and to a stream of either side; `None` if the
    /// log does not have them.
    pub(crate) fn granted(&self) -> Option<u64> {
        let Self::Qlog(log) = self else { return None };
        QlogReader::lean(&log[..]).filter_map(Result::ok).find_map(|item| {
            let QlogItem::Event(event) = item else { return None };
            let QlogData::ParametersSet(set) = &event.data else { return None };
            let is_peer = set.owner.as_deref() == Some("remote");
            let limits = [
                set.initial_max_data,
                set.initial_max_stream_data_bidi_local,
                set.initial_max_stream_data_bidi_remote,
            ];
            limits.into_iter().flatten().min().filter(|_| is_peer)
        })
    }

    /// Does the log list the frames of packets? quinn's does not.
    pub(crate) fn has_frames(&self) -> bool {
        match self {
            Self::Packets(_) => true,
            Self::Qlog(log) => {
                String::from_utf8_lossy(&log[..log.len().min(BEGIN)]).contains("\"frames\"")
            }
        }
    }

    /// The capture at one point as a pcap file (draft-ietf-opsawg-pcap), in ns.
    ///
    /// `host`: 0 for the client, 1 for the server, 2 for the point between them.
    pub(crate) fn pcap(&self, host: u32, settings: &CaptureSettings) -> Result<Vec<u8>, String> {
        let Self::Packets(pcapng) = self else { return Err("QUIC has a log".to_owned()) };
        let snaplen = settings.snaplen.unwrap_or(262_144);
        let mut out = Vec::with_capacity(pcapng.len() / 2);
        for word in [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, snaplen as u32, LINKTYPE_RAW] {
            out.extend(word.to_le_bytes());
        }
        let mut reader = CaptureReader::new(&pcapng[..]).map_err(|error| error.to_string())?;
        while let Some(item) = reader.next().map_err(|error| error.to_string())? {
            let CaptureItem::Frame(frame) = item else { continue };
            let is_dropped =
                settings.without_syn && flags(frame.bytes).is_some_and(|f| f & SYN != 0);
            if frame.interface != host || is_dropped {
                continue;
            }
            let at = frame.at.unwrap_or_default().as_nanos();
            let kept = &frame.bytes[..frame.bytes.len().min(snaplen)];
            let seconds = (at / 1_000_000_000) as u32;
            for word in [seconds, (at % 1_000_000_000) as u32, kept.len() as u32, frame.original] {
                out.extend(word.to_le_bytes());
            }
            out.extend(kept);
        }
        Ok(out)
    }
}

/// The TCP flags of an IPv4 packet.
fn flags(packet: &[u8]) -> Option<u8> {
    let header = usize::from(packet.first()? & 15) * 4;
    packet.get(header + 13).copied()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_both_hosts_with_the_profile_of_its_model() {
        let text = "[host.client]\nprofile = \"quic-rfc9002\"\ncc = \"newreno\"\n[host.server]\nprofile = \"quinn-0.11\"\n\
                    knobs = { pacing = false }\n[host.other]\nprofile = \"linux-6.18\"\n";
        let real: toml::Table = with_stack(text, "ngtcp2-0.12").parse().unwrap();
        for host in ["client", "server"] {
            let keys = real["host"][host].as_table().unwrap();
            assert_eq!(keys["stack"].as_str(), Some("ngtcp2-0.12"), "{host}");
            // ngtcp2 has no model of its own.
            assert_eq!(keys["profile"].as_str(), Some("quic-rfc9002"), "{host}");
            assert_eq!(keys.len(), 2, "{host}");
        }
        assert_eq!(real["host"]["other"]["profile"].as_str(), Some("linux-6.18"));
    }
}
