//! The worlds of the suites: senders that share one link, as text of scenario files.

use core::fmt::Write as _;

use units::Duration;

use crate::sender::SuiteSender;

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
        }
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
        }
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

    pub(crate) fn element(mut self, element: impl Into<String>) -> Self {
        self.elements.push(element.into());
        self
    }

    pub(crate) fn lasts(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    pub(crate) fn flow(mut self, flow: WorldFlow) -> Self {
        self.flows.push(flow);
        self
    }

    /// The scenario file. Each flow has hosts and a path of its own; all share the link.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let _ = write!(
            text,
            "title = {:?}\nseed = {}\nduration = \"{}ns\"\n\n[shared.line]\nlink = {{ rate = \
             {}, buffer = \"{}B\", queue = {:?} }}\n\n",
            self.name,
            self.seed,
            self.duration.as_nanos(),
            self.rate_text(),
            self.buffer,
            self.queue,
        );
        for (number, flow) in self.flows.iter().enumerate() {
            let (from, to) = (format!("sender{number}"), format!("sink{number}"));
            text += &flow.sender.hosts(&from, &to, self.mtu);
            let way = flow.rtt.as_nanos() / 2;
            let mut elements = vec!["{ shared = \"line\" }".to_owned()];
            elements.extend(self.elements.iter().cloned());
            elements.push(format!("{{ delay = \"{way}ns\" }}"));
            let _ = write!(
                text,
                "\n[[path]]\nfrom = \"{from}\"\nto = \"{to}\"\nforward = [{}]\nreturn = [{{ delay = \
                 \"{way}ns\" }}]\n\n[[flow]]\nname = {:?}\nfrom = \"{from}\"\nto = \
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
