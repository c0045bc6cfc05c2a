//! A script run in virtual time against one endpoint.
//!
//! Script time is virtual time. Before each event the endpoint's timers up to its moment have
//! fired; a packet that is awaited is waited for as long as its time and the tolerance allow. The
//! rules of matching are packetdrill's:
//! - a time may differ by the tolerance of the script or an eighth of the time since the event
//!   before, whichever is more; times are counted from when the event before really was;
//! - consecutive data packets of one size are one until the awaited length is reached; the last of
//!   them tells FIN and PSH;
//! - numbers count from the beginning of both streams; a window is compared where it is written;
//!   options are compared one by one, unless `<...>` is written; `TS val` where the script says how
//!   long a tick is, and what is echoed nowhere;
//! - what is sent unexpectedly is noticed by the next packet that is awaited, and nothing is checked
//!   after the last event.

mod arrive;
mod assertions;
mod awaited;
mod calls;
mod compare;
mod configure;
mod numbers;
mod socket_options;
mod sockets;
mod wording;
mod world;

use tcp::profile::Profile;
use units::{Duration, Instant};

use crate::ast::{Action, Event, Script, When};
use crate::code::Environment;
use crate::diagnostic::{Diagnostic, Span};
use calls::Blocked;
use configure::Rules;
use numbers::Numbers;
use sockets::Sockets;
use world::World;

/// How to run a script.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The system that is to behave as the script says.
    pub profile: &'a Profile,
    /// Take a PSH where none is awaited, and none where one is.
    pub relaxed_psh: bool,
    /// Gives the text of a file that the script's commands name.
    pub files: &'a dyn Fn(&str) -> Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All happened as the script says.
    Passed,
    /// The first difference.
    Failed(Diagnostic),
    /// What the script asks for and the engine does not have: neither passed nor failed.
    Unsupported(Diagnostic),
}

/// What came of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub verdict: Verdict,
    /// Events that were run, the last one perhaps not to its end.
    pub events: usize,
    /// Virtual time that passed.
    pub time: Duration,
}

/// Why a run stops before its end.
#[derive(Debug)]
enum Stop {
    Failed(Diagnostic),
    Unsupported(Diagnostic),
}

type Result<T> = core::result::Result<T, Stop>;

/// Runs `script`, which was read from `text`.
pub fn run(text: &str, script: &Script, options: &Options<'_>) -> Outcome {
    let mut done = 0;
    let (verdict, time) = match Runner::new(text, script, options) {
        Ok(mut runner) => {
            let ended = runner.run(script, &mut done);
            (ended, runner.world.elapsed())
        }
        Err(stop) => (Err(stop), Duration::ZERO),
    };
    let verdict = match verdict {
        Ok(()) => Verdict::Passed,
        Err(Stop::Failed(diagnostic)) => Verdict::Failed(diagnostic),
        Err(Stop::Unsupported(diagnostic)) => Verdict::Unsupported(diagnostic),
    };
    Outcome { verdict, events: done, time }
}

/// A script on its way.
struct Runner<'a> {
    text: &'a str,
    options: Options<'a>,
    rules: Rules,
    world: World,
    sockets: Sockets,
    numbers: Numbers,
    environment: Environment,
    /// A call that has not returned.
    blocked: Option<Blocked<'a>>,
    /// When the event before really was.
    base: Instant,
}

impl<'a> Runner<'a> {
    fn new(text: &'a str, script: &Script, options: &Options<'a>) -> Result<Self> {
        let (rules, host) = configure::configure(text, script, options)?;
        let world = World::new(host, rules.ip);
        let base = world.now();
        Ok(Self {
            text,
            options: *options,
            rules,
            world,
            sockets: Sockets::default(),
            numbers: Numbers::default(),
            environment: Environment::default(),
            blocked: None,
            base,
        })
    }

    fn run(&mut self, script: &'a Script, done: &mut usize) -> Result<()> {
        for event in &script.events {
            *done += 1;
            self.event(event)?;
        }
        match self.blocked.as_ref().map(|blocked| blocked.until) {
            Some(until) => self.advance(until).and_then(|()| self.still_blocked()),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &'a Event) -> Result<()> {
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
        self.base = self.world.now();
        self.retry()
    }

    /// Lets time pass up to `to`, with all that happens by itself.
    fn advance(&mut self, to: Instant) -> Result<()> {
        while self.world.step(to) {
            self.retry()?;
        }
        Ok(())
    }

    fn at(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.text, span, message)
    }

    fn unsupported<T>(&self, span: Span, message: impl Into<String>) -> Result<T> {
        Err(Stop::Unsupported(Diagnostic::new(self.text, span, message)))
    }
}
