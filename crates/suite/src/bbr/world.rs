//! One sender over one bottleneck, as the text of a scenario file.

use core::fmt::Write as _;

use units::Duration;

use super::paths::{BbrPath, MTU};
use crate::sender::SuiteSender;

/// The world of a case.
#[derive(Debug, Clone)]
pub(super) struct BbrWorld {
    /// Rates of the bottleneck in bit/s, each from a time on; the first from 0 on.
    pub(super) rates: Vec<(Duration, u64)>,
    /// Bytes of its queue.
    pub(super) buffer: u64,
    /// Further elements of the way to the receiver.
    pub(super) forward: Vec<String>,
    /// Further elements of the way back.
    pub(super) back: Vec<String>,
    /// One-way delays, each from a time on; `None`: half of the path's round trip.
    pub(super) delays: Option<Vec<(Duration, Duration)>>,
    /// What the sender writes.
    pub(super) app: String,
    /// Length of the run.
    pub(super) duration: Duration,
}

impl BbrWorld {
    /// A sender without end, and a queue of four bandwidth-delay products and 40 packets.
    pub(super) fn bulk(path: &BbrPath, duration: Duration) -> Self {
        Self {
            rates: vec![(Duration::ZERO, path.rate)],
            buffer: 4 * path.bdp() + 40 * MTU,
            forward: Vec::new(),
            back: Vec::new(),
            delays: None,
            app: "bulk = \"unlimited\"".to_owned(),
            duration,
        }
    }

    /// The world whose bottleneck has this share of its first rate from then on, in thousandths.
    pub(super) fn rate_from(mut self, at: Duration, thousandths: u64) -> Self {
        let first = self.rates.first().map_or(0, |first| first.1);
        self.rates.push((at, (first / 1_000 * thousandths).max(1)));
        self
    }

    pub(super) fn app(self, app: String) -> Self {
        Self { app, ..self }
    }

    pub(super) fn buffer(self, bytes: u64) -> Self {
        Self { buffer: bytes.max(4 * MTU), ..self }
    }

    pub(super) fn forward(mut self, element: String) -> Self {
        self.forward.push(element);
        self
    }

    pub(super) fn back(mut self, element: String) -> Self {
        self.back.push(element);
        self
    }

    /// The scenario file.
    pub(super) fn text(
        &self,
        title: &str,
        path: &BbrPath,
        sender: &SuiteSender,
        seed: u64,
    ) -> String {
        let rates = over_time(&self.rates, |rate| format!("{rate}bit/s"));
        let half = Duration::from_nanos(path.rtt.as_nanos() / 2);
        let constant = vec![(Duration::ZERO, half)];
        let delays = self.delays.as_ref().unwrap_or(&constant);
        let delay = over_time(delays, |delay| format!("{}ns", delay.as_nanos()));
        let mut forward =
            vec![format!("{{ link = {{ rate = {rates}, buffer = \"{}B\" }} }}", self.buffer)];
        forward.extend(self.forward.iter().cloned());
        forward.push(format!("{{ delay = {delay} }}"));
        let mut back = self.back.clone();
        back.push(format!("{{ delay = {delay} }}"));
        let mut text = String::new();
        let _ = write!(
            text,
            "title = {title:?}\nseed = {seed}\nduration = \"{}ns\"\n\n{}\n[[path]]\nfrom = \
             \"sender\"\nto = \"sink\"\nforward = [{}]\nreturn = [{}]\n\n[[flow]]\nname = \
             \"bbr\"\nfrom = \"sender\"\nto = \"sink\"\n{}{}\n",
            self.duration.as_nanos(),
            sender.hosts("sender", "sink", Some(MTU as u32)),
            forward.join(", "),
            back.join(", "),
            if sender.is_quic() { "" } else { "nodelay = true\n" },
            self.app,
        );
        text
    }
}

/// A value over time, as scenarios have it.
fn over_time<T>(values: &[(Duration, T)], text: impl Fn(&T) -> String) -> String {
    if let [(_, only)] = values {
        return format!("\"{}\"", text(only));
    }
    let all: Vec<String> = values
        .iter()
        .map(|(at, value)| format!("[\"{}ns\", \"{}\"]", at.as_nanos(), text(value)))
        .collect();
    format!("{{ at = [{}] }}", all.join(", "))
}
