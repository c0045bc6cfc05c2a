//! The worlds of the suites: senders that share one link, as text of scenario files.

use core::fmt::Write as _;

use cc::ExternalAlgorithm;
use units::{Duration, RandomStream};

use crate::SuiteRequest;
use crate::noise::HostNoise;
use crate::sender::SuiteSender;

/// Draws of a world whose elements draw losses, delays or reordering, at least.
const DRAWS_OF_ELEMENTS: u32 = 10;

/// A flow of a world.
#[derive(Debug, Clone)]
pub(crate) struct WorldFlow {
    /// Its name in results.
    pub(crate) name: String,
    /// Its stack and congestion control.
    pub(crate) sender: SuiteSender,
    /// What it writes: `bulk = "unlimited"`.
    pub(crate) app: String,
    /// When it starts.
    pub(crate) start: Duration,
    /// Round trip of its path without queues.
    pub(crate) rtt: Duration,
    /// It sends from the receivers' side, against the others.
    pub(crate) is_reverse: bool,
}

impl WorldFlow {
    /// A flow without end.
    pub(crate) fn bulk(name: &str, sender: &SuiteSender, rtt: Duration) -> Self {
        Self {
            name: name.to_owned(),
            sender: sender.clone(),
            app: "bulk = \"unlimited\"".to_owned(),
            start: Duration::ZERO,
            rtt,
            is_reverse: false,
        }
    }

    /// The flow in the other direction.
    pub(crate) fn reverse(self) -> Self {
        Self { is_reverse: true, ..self }
    }

    /// The flow with this application.
    pub(crate) fn app(self, app: impl Into<String>) -> Self {
        Self { app: app.into(), ..self }
    }

    /// The flow, started then.
    pub(crate) fn start(self, start: Duration) -> Self {
        Self { start, ..self }
    }
}

/// Several flows through one link.
#[derive(Debug, Clone)]
pub(crate) struct SuiteWorld {
    /// Name of the scenario.
    pub(crate) name: String,
    /// Rate of the link in bit/s.
    pub(crate) rate: u64,
    /// Later rates, each with its time.
    pub(crate) later_rates: Vec<(Duration, u64)>,
    /// Bytes of its queue.
    pub(crate) buffer: u64,
    /// Its queue discipline, a value of the key `queue`.
    pub(crate) queue: String,
    /// Further elements of the way to the receivers, between link and delay.
    pub(crate) elements: Vec<String>,
    /// MTU of all hosts; `None`: that of the profile.
    pub(crate) mtu: Option<u32>,
    /// Length of the run.
    pub(crate) duration: Duration,
    /// The flows.
    pub(crate) flows: Vec<WorldFlow>,
    /// Seed of the run.
    pub(crate) seed: u64,
    /// The flow whose packets are timed from host to host.
    pub(crate) timed: Option<usize>,
    /// All flows but the first start up to this time later, by the draw.
    start_phase: Duration,
    /// The run lasts up to this time longer, by the draw.
    longer: Duration,
    /// An element draws what it does.
    has_drawn_elements: bool,
    /// The longest processing time of a packet in the sending host.
    processing: Duration,
}

impl SuiteWorld {
    /// A link of `mbits` Mbit/s with a drop-tail queue of `bdp` bandwidth-delay products of `rtt`,
    /// but at least ten packets.
    pub(crate) fn new(name: impl Into<String>, mbits: f64, rtt: Duration, bdp: f64) -> Self {
        let rate = (mbits * 1e6) as u64;
        let product = rate as f64 / 8.0 * rtt.as_secs_f64();
        Self {
            name: name.into(),
            rate,
            later_rates: Vec::new(),
            buffer: ((product * bdp) as u64).max(15_000),
            queue: "drop-tail".to_owned(),
            elements: Vec::new(),
            mtu: None,
            duration: Duration::from_secs(30),
            flows: Vec::new(),
            seed: 1,
            timed: None,
            start_phase: Duration::ZERO,
            longer: Duration::ZERO,
            has_drawn_elements: false,
            processing: Duration::ZERO,
        }
    }

    /// The world whose flows, but for the first, start up to this time later.
    pub(crate) fn starts_within(self, start_phase: Duration) -> Self {
        Self { start_phase, ..self }
    }

    /// The world whose run lasts up to this time longer.
    pub(crate) fn lasts_up_to(self, longer: Duration) -> Self {
        Self { longer, ..self }
    }

    /// The number of runs of this world at first: one if nothing in it is drawn.
    pub(crate) fn draws(&self, request: &SuiteRequest) -> u32 {
        let is_drawn = !self.longer.is_zero() || !self.bound(request.noise).is_zero();
        let has_phases = !self.start_phase.is_zero() && self.flows.len() > 1;
        match self.has_drawn_elements {
            true => request.phases.max(DRAWS_OF_ELEMENTS),
            false if is_drawn || has_phases => request.phases,
            false => 1,
        }
    }

    /// The longest processing time of a packet.
    fn bound(&self, noise: HostNoise) -> Duration {
        let rtt = self.flows.iter().map(|flow| flow.rtt).min().unwrap_or(Duration::ZERO);
        noise.bound(self.rate, rtt)
    }

    /// The world of this draw: its seed, its start times, its length, and the noise of its hosts.
    pub(crate) fn drawn(mut self, draw: u32, request: &SuiteRequest) -> Self {
        self.seed = (u64::from(request.seed) << 32) + u64::from(draw) + 1;
        self.processing = self.bound(request.noise);
        let mut below = {
            let mut draws = RandomStream::named(self.seed, "suite", "start phases");
            move |most: Duration| match most.as_nanos() {
                0 => Duration::ZERO,
                most => Duration::from_nanos(draws.below(most)),
            }
        };
        for flow in self.flows.iter_mut().skip(1) {
            flow.start += below(self.start_phase);
        }
        for flow in &mut self.flows {
            flow.start += below(self.processing);
        }
        self.duration += below(self.longer);
        self
    }

    /// The controllers of its flows that are not built in.
    pub(crate) fn controllers(&self) -> Vec<ExternalAlgorithm> {
        let mut found: Vec<ExternalAlgorithm> = Vec::new();
        for controller in self.flows.iter().filter_map(|flow| flow.sender.controller) {
            if !found.contains(&controller) {
                found.push(controller);
            }
        }
        found
    }

    pub(crate) fn queue(self, queue: &str) -> Self {
        Self { queue: queue.to_owned(), ..self }
    }

    /// The world whose link has another rate from this time on.
    pub(crate) fn rate_from(mut self, at: Duration, mbits: u64) -> Self {
        self.later_rates.push((at, mbits * 1_000_000));
        self
    }

    /// The value of the key `rate`.
    fn rate_text(&self) -> String {
        if self.later_rates.is_empty() {
            return format!("\"{}bit/s\"", self.rate);
        }
        let first = (Duration::ZERO, self.rate);
        let changes = core::iter::once(&first).chain(&self.later_rates);
        let texts: Vec<String> = changes
            .map(|(at, rate)| format!("[\"{}ns\", \"{rate}bit/s\"]", at.as_nanos()))
            .collect();
        format!("{{ at = [{}] }}", texts.join(", "))
    }

    /// The world with a further element.
    pub(crate) fn element(mut self, element: impl Into<String>) -> Self {
        self.elements.push(element.into());
        self
    }

    /// The world with a further element that draws what it does.
    pub(crate) fn drawn_element(self, element: impl Into<String>) -> Self {
        Self { has_drawn_elements: true, ..self }.element(element)
    }

    pub(crate) fn lasts(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    pub(crate) fn flow(mut self, flow: WorldFlow) -> Self {
        self.flows.push(flow);
        self
    }

    /// The scenario file. Each flow has hosts and a path of its own; all share the link, and those in
    /// the other direction share one like it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "title = {:?}\nseed = {}\nduration = \"{}ns\"\n",
            self.name,
            self.seed,
            self.duration.as_nanos(),
        );
        let is_two_way = self.flows.iter().any(|flow| flow.is_reverse);
        for name in ["line", "back"].into_iter().take(1 + usize::from(is_two_way)) {
            let _ = writeln!(
                text,
                "[shared.{name}]\nlink = {{ rate = {}, buffer = \"{}B\", queue = {} }}\n",
                self.rate_text(),
                self.buffer,
                quoted_unless_table(&self.queue),
            );
        }
        for (number, flow) in self.flows.iter().enumerate() {
            let (from, to) = (format!("sender{number}"), format!("sink{number}"));
            text += &flow.sender.hosts(&from, &to, self.mtu);
            let way = flow.rtt.as_nanos() / 2;
            let [there, back] = if flow.is_reverse { ["back", "line"] } else { ["line", "back"] };
            let mut elements = Vec::new();
            if !self.processing.is_zero() {
                elements.push(format!("{{ jitter = \"{}ns\" }}", self.processing.as_nanos()));
            }
            elements.push(format!("{{ shared = \"{there}\" }}"));
            elements.extend(self.elements.iter().cloned());
            elements.push(format!("{{ delay = \"{way}ns\" }}"));
            let back = match is_two_way {
                true => format!("{{ shared = \"{back}\" }}, "),
                false => String::new(),
            };
            let _ = write!(
                text,
                "\n[[path]]\nfrom = \"{from}\"\nto = \"{to}\"\nforward = [{}]\nreturn = [{back}{{ \
                 delay = \"{way}ns\" }}]\n\n[[flow]]\nname = {:?}\nfrom = \"{from}\"\nto = \
                 \"{to}\"\nstart = \"{}ns\"\n{}\n\n",
                elements.join(", "),
                flow.name,
                flow.start.as_nanos(),
                flow.app,
            );
        }
        text
    }
}

/// A queue discipline as a value of a scenario: a name in quotes, or a table.
fn quoted_unless_table(queue: &str) -> String {
    if queue.starts_with('{') { queue.to_owned() } else { format!("{queue:?}") }
}
