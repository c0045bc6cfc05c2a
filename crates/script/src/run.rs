//! Runs a script in simulated time against one endpoint.
//!
//! Script time is simulated time. Before each event, the endpoint's timers up to its time fire. The
//! runner waits for an expected packet as long as its time and the tolerance allow. Packets match
//! by packetdrill's rules:
//! - A time may differ by the larger of the script's tolerance and an eighth of the time since the
//!   previous event; relative times count from the actual time of the previous event.
//! - Consecutive data packets of one size are coalesced up to the expected length; FIN and PSH are
//!   are those of the last.
//! - Sequence numbers are relative to the start of both streams. A window is compared if the script
//!   has one. Options are compared one by one, unless the script has `<...>`; `TS val` is compared
//!   if the script sets the tick length, `ecr` never.
//! - An unexpected packet is detected by the next expected packet; nothing is checked after the
//!   last event.

mod arrive;
mod assertions;
mod awaited;
mod calls;
mod compare;
mod configure;
mod counters;
mod epoll;
mod fast_open;
mod header;
mod icmp;
mod ip_options;
mod numbers;
mod real;
mod socket_options;
mod sockets;
mod transfer;
mod wording;
mod world;

use std::net::{IpAddr, Ipv4Addr};

use packet::{IpVersion, Segment};
use tcp::profile::TcpProfile;
use units::{Duration, Instant};

use crate::ast::{Action, Script, ScriptEvent, When};
use crate::code::Environment;
use crate::diagnostic::{Diagnostic, ScriptSpan};
use crate::real::{Boot, BootOptions};
use calls::BlockedCall;
use configure::Rules;
use numbers::StreamNumbers;
use sockets::Sockets;
use world::ScriptWorld;

/// How to run a script.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// The system under test.
    pub profile: &'a TcpProfile,
    /// Ignore the PSH flag of outbound packets.
    pub relaxed_psh: bool,
    /// Return all packets of the run.
    pub packets: bool,
    /// Values of options that replace the script's.
    pub overrides: ScriptOverrides,
    /// Returns the text of a file that the script's commands name.
    pub files: &'a dyn Fn(&str) -> Option<String>,
    /// Starts a real host that runs the script in place of the model.
    pub real: Option<Boot<'a>>,
}

/// Values of the command line, which replace those of the script's options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScriptOverrides {
    /// `--ip_version`
    pub ip: Option<IpVersion>,
    /// `--tolerance_usecs`
    pub tolerance: Option<Duration>,
    /// `--mtu`
    pub mtu: Option<u32>,
    /// Ticks of the kernel's clock per second, in place of the profile's.
    pub hz: Option<u32>,
    /// `--non_fatal`
    pub non_fatal: Option<NonFatal>,
    /// Linux: the card holds packets until it has sent them, as that of a guest does and a TUN
    /// device does not.
    pub holds_packets: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptVerdict {
    /// The run matched the script.
    Passed,
    /// The first difference.
    Failed(Diagnostic),
    /// The script uses an unsupported feature: neither passed nor failed.
    Unsupported(Diagnostic),
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptOutcome {
    /// The verdict.
    pub verdict: ScriptVerdict,
    /// Events run; the last may be incomplete.
    pub events: usize,
    /// Simulated time elapsed.
    pub time: Duration,
    /// Commands that were not run.
    pub notes: Vec<String>,
    /// All packets, sent and received, if they were asked for.
    pub packets: Vec<String>,
    /// The same as segments.
    pub segments: Vec<ScriptPacketSeen>,
    /// Addresses of this host and of the peer.
    pub addresses: (IpAddr, IpAddr),
}

/// A packet of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptPacketSeen {
    /// When, from the beginning of the script.
    pub at: Duration,
    /// This host has sent it.
    pub outbound: bool,
    /// The segment.
    pub segment: Segment,
}

/// Kinds of events whose failures do not end a run (`--non_fatal`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NonFatal {
    /// Packets.
    pub packets: bool,
    /// System calls.
    pub calls: bool,
}

impl NonFatal {
    /// Parses `packet`, `syscall` or both with a comma.
    pub fn parse(text: &str) -> Option<Self> {
        let mut kinds = Self::default();
        for kind in text.split(',') {
            match kind {
                "packet" | "packets" => kinds.packets = true,
                "syscall" | "syscalls" => kinds.calls = true,
                _ => return None,
            }
        }
        Some(kinds)
    }
}

/// Reason for which a run stops early.
#[derive(Debug)]
enum ScriptStop {
    Failed(Diagnostic),
    Unsupported(Diagnostic),
}

type Result<T> = core::result::Result<T, ScriptStop>;

/// Runs `script`, which was parsed from `text`.
pub fn run(text: &str, script: &Script, options: &RunOptions<'_>) -> ScriptOutcome {
    let mut done = 0;
    let mut outcome = ScriptOutcome {
        verdict: ScriptVerdict::Passed,
        events: 0,
        time: Duration::ZERO,
        notes: Vec::new(),
        packets: Vec::new(),
        segments: Vec::new(),
        addresses: (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()),
    };
    let ended = Runner::new(text, script, options).and_then(|mut runner| {
        let ended = runner.run(script, &mut done);
        outcome.time = runner.world.elapsed();
        outcome.packets = runner.world.packet_lines();
        outcome.segments = runner.world.packets_seen();
        outcome.addresses = runner.world.host.fast_open.addresses.of_version(runner.rules.ip);
        outcome.notes = runner.notes;
        ended
    });
    outcome.events = done;
    outcome.verdict = match ended {
        Ok(()) => ScriptVerdict::Passed,
        Err(ScriptStop::Failed(diagnostic)) => ScriptVerdict::Failed(diagnostic),
        Err(ScriptStop::Unsupported(diagnostic)) => ScriptVerdict::Unsupported(diagnostic),
    };
    outcome
}

/// State of a run.
struct Runner<'a> {
    text: &'a str,
    options: RunOptions<'a>,
    rules: Rules,
    world: ScriptWorld,
    sockets: Sockets,
    numbers: StreamNumbers,
    environment: Environment,
    /// The system call that is blocked, if any.
    blocked: Option<BlockedCall<'a>>,
    /// It is being tried again.
    retrying: bool,
    /// Actual time of the previous event.
    base: Instant,
    /// Commands that were not run.
    notes: Vec<String>,
    /// Number of the call that the real host makes for the blocked call.
    real_call: Option<u32>,
    /// The peer's initial sequence number is known to the real host.
    real_synchronised: bool,
}

impl<'a> Runner<'a> {
    fn new(text: &'a str, script: &Script, options: &RunOptions<'a>) -> Result<Self> {
        let mut notes = Vec::new();
        let (rules, host) = configure::configure(text, script, options, &mut notes)?;
        let mut world = ScriptWorld::new(host, rules.ip);
        if options.packets {
            world.keep_packets();
        }
        let base = world.now();
        let mut runner = Self {
            text,
            options: *options,
            rules,
            world,
            sockets: Sockets::default(),
            numbers: StreamNumbers::default(),
            environment: Environment::default(),
            blocked: None,
            retrying: false,
            base,
            notes,
            real_call: None,
            real_synchronised: false,
        };
        if let Some(boot) = options.real {
            runner.boot(boot, script)?;
        }
        Ok(runner)
    }

    /// Starts the real host and runs the command before the first event on it.
    fn boot(&mut self, boot: Boot<'_>, script: &Script) -> Result<()> {
        let start = ScriptSpan { start: 0, end: 0 };
        let host = &self.world.host;
        let addresses = host.fast_open.addresses;
        let [four, six] = [IpVersion::V4, IpVersion::V6].map(|ip| addresses.of_version(ip));
        let options = BootOptions {
            profile: self.options.profile.clone(),
            mtu: host.profile.mtu,
            tso: host.tso,
            large: script.events.iter().any(|event| real::is_larger(event, host.profile.mtu)),
            local: [four.0, six.0],
            remote: [four.1, six.1],
        };
        let (local, remote) = addresses.of_version(self.rules.ip);
        match boot(&options) {
            Ok(real) => self.world.real = Some(real::RealWorld::new(real, local, remote)),
            Err(error) => return self.unsupported(start, format!("the kernel: {error}")),
        }
        let Some(command) = &script.init else { return Ok(()) };
        self.command(&command.value, command.span)?;
        self.world.begin_script();
        self.base = self.world.now();
        Ok(())
    }

    fn run(&mut self, script: &'a Script, done: &mut usize) -> Result<()> {
        self.check_start(script)?;
        for event in &script.events {
            *done += 1;
            match self.event(event) {
                Err(ScriptStop::Failed(found)) if self.forgives(event) => {
                    self.notes.push(format!(
                        "line {}: {}, which is not fatal",
                        found.line, found.message
                    ));
                    self.base = self.world.now();
                }
                ended => ended?,
            }
        }
        if let Some(until) = self.blocked.as_ref().map(|blocked| blocked.until) {
            self.advance(until).and_then(|()| self.still_blocked())?;
        }
        match &script.cleanup {
            Some(command) => self.command(&command.value, command.span),
            None => Ok(()),
        }
    }

    /// Checks that the first event is at time 0, as packetdrill requires it.
    fn check_start(&self, script: &Script) -> Result<()> {
        let Some(first) = script.events.first() else { return Ok(()) };
        let at = match first.when.value {
            When::Any => Duration::ZERO,
            When::Absolute(at) | When::Relative(at) => at,
            When::Between { from, .. } | When::Blocking { from, .. } => from,
        };
        if at.is_zero() {
            return Ok(());
        }
        let error = self.at(first.when.span, "the first event is not at time 0").expected("`0`");
        Err(ScriptStop::Failed(error.found(format!("{} s", wording::seconds(at)))))
    }

    /// Does the run go on if this event fails?
    const fn forgives(&self, event: &ScriptEvent) -> bool {
        match &event.action {
            Action::Packet(_) => self.rules.non_fatal.packets,
            Action::Call(_) => self.rules.non_fatal.calls,
            Action::Command(_) | Action::Code(_) => false,
        }
    }

    fn event(&mut self, event: &'a ScriptEvent) -> Result<()> {
        self.take_header();
        if let Action::Packet(packet) = &event.action
            && packet.outbound
        {
            return self.await_packet(event, packet);
        }
        let from = match event.when.value {
            When::Absolute(at) => self.world.at(at),
            When::Relative(after) => self.base + after,
            When::Blocking { relative, from, .. } | When::Between { relative, from, .. } => {
                if relative {
                    self.base + from
                } else {
                    self.world.at(from)
                }
            }
            When::Any => self.world.now(),
        };
        self.advance(from)?;
        self.world.reach(from);
        match &event.action {
            Action::Packet(packet) => self.arrive(packet)?,
            Action::Call(call) => self.call(event, call)?,
            Action::Command(command) => self.command(&command.value, command.span)?,
            Action::Code(statements) => self.check(statements)?,
        }
        self.check_real(event.span)?;
        self.base = self.world.now();
        self.retry()
    }

    /// Advances time to `to` and handles timers due before.
    fn advance(&mut self, to: Instant) -> Result<()> {
        while self.world.step(to) {
            self.retry()?;
        }
        Ok(())
    }

    fn at(&self, span: ScriptSpan, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.text, span, message)
    }

    fn unsupported<T>(&self, span: ScriptSpan, message: impl Into<String>) -> Result<T> {
        Err(ScriptStop::Unsupported(Diagnostic::new(self.text, span, message)))
    }
}
