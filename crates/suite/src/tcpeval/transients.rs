//! Section 5.3 of the draft: traffic without congestion control that ends, begins, or grows.

use std::sync::atomic::AtomicBool;

use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use serde::{Deserialize, Serialize};
use sim::Observer;
use units::Instant;

use super::topology::{CentralLink, TopologyText};
use crate::SuiteError;
use crate::evaluation::{Evaluation, Margin};
use crate::report::WorldText;
use crate::sender::SuiteSender;

/// Rate of the link in bit/s, and its queue of 1024 packets.
const RATE: u64 = 100_000_000;
const QUEUE: u64 = 1_024 * 1_500;
/// Round trip in nanoseconds.
const RTT: u64 = 100_000_000;
/// When the transient begins, in seconds, and how long the run lasts after it.
const CHANGE_S: u64 = 60;
const AFTER_S: u64 = 100;
/// Datagrams of 1500 bytes of IP; their interval at 75 Mbit/s, in microseconds.
const DATAGRAM: &str = "1472B";
const INTERVAL_75_US: u64 = 160;
/// Parts of the bandwidth-delay product that the window has to reach, in percent.
const PARTS: [u64; 3] = [60, 80, 90];

/// A change of the traffic that does not respond to congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transient {
    Ends,
    Begins,
    Grows,
}

pub(super) fn evaluate(evaluation: &mut Evaluation<'_>) -> Result<(), SuiteError> {
    for (name, transient) in [
        ("udp-75-to-0mbit", Transient::Ends),
        ("udp-0-to-75mbit", Transient::Begins),
        ("udp-30-steps-of-2.5mbit", Transient::Grows),
    ] {
        let world = |sender: &SuiteSender| WorldText::new(name, scenario(name, sender, transient));
        let runs = evaluation.each(world, measure)?;
        if transient == Transient::Ends {
            let margin = Margin::AtMost { factor: 1.2, free: 0.0 };
            for (part, percent) in PARTS.into_iter().enumerate() {
                let time =
                    |run: &TransientRun| run.reached_s.get(part).copied().unwrap_or(AFTER_S as f64);
                let what = format!("time until the window is {percent} % of its BDP");
                let times: Vec<f64> = runs.iter().map(time).collect();
                evaluation.compared(name, &what, "s", margin, &times);
            }
            let steps: Vec<f64> = runs.iter().map(|run| run.largest_step).collect();
            let what = "largest growth of the window in a round trip until then";
            evaluation.compared(name, what, "packets", Margin::Info, &steps);
        } else {
            let margin = Margin::AtMost { factor: 3.0, free: 0.0 };
            let lost: Vec<f64> = runs.iter().map(|run| run.cross_lost as f64).collect();
            let what = "packets of the other traffic lost in 100 s";
            evaluation.compared(name, what, "packets", margin, &lost);
        }
    }
    Ok(())
}

/// Route 0 has the flow under test, route 1 the datagrams.
fn scenario(name: &str, sender: &SuiteSender, transient: Transient) -> String {
    let link = CentralLink::symmetric(RATE, QUEUE);
    let mut text = TopologyText::new(name, CHANGE_S + AFTER_S);
    link.add(&mut text);
    let flow = link.route(&mut text, sender, RTT / 2_000);
    let other = link.route(&mut text, sender, RTT / 2_000);
    text.flow(flow, 0, "bulk = \"unlimited\"");
    let change = CHANGE_S * 1_000_000_000;
    let udp = |every_us: u64, count: &str| {
        format!("udp = {{ size = \"{DATAGRAM}\", every = \"{every_us}us\"{count} }}")
    };
    match transient {
        Transient::Ends => {
            let count = CHANGE_S * 1_000_000 / INTERVAL_75_US;
            text.flow(other, 0, &udp(INTERVAL_75_US, &format!(", count = {count}")));
        }
        Transient::Begins => text.flow(other, change, &udp(INTERVAL_75_US, "")),
        Transient::Grows => {
            for step in 0..30 {
                let start = change + step * 1_000_000_000;
                text.flow(other, start, &udp(INTERVAL_75_US * 30, ""));
            }
        }
    }
    text.finish()
}

/// What a run showed after the change.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct TransientRun {
    /// When the window reached each of the [`PARTS`], in seconds after the change.
    reached_s: Vec<f64>,
    /// The largest growth of the window from one round trip to the next until the last of them, in
    /// packets.
    largest_step: f64,
    /// Datagrams dropped at the queue.
    cross_lost: u64,
}

#[derive(Debug, Default)]
struct TransientObserver {
    run: TransientRun,
    /// The present round trip since the change, and the window at the end of the one before.
    round: u64,
    window_before: Option<u64>,
    window: u64,
    /// Whether a packet is a datagram, by its number.
    datagrams: Vec<bool>,
}

impl TransientObserver {
    fn on_window(&mut self, since: u64, window: u64, mss: u64) {
        let round = since / RTT;
        if round > self.round {
            if let Some(before) = self.window_before {
                let step = self.window.saturating_sub(before) as f64 / mss.max(1) as f64;
                self.run.largest_step = self.run.largest_step.max(step);
            }
            self.window_before = Some(self.window);
            self.round = round;
        }
        self.window = window;
        // The window counts payload, the link packets of 1500 bytes.
        let bdp = RATE / 8 * RTT / 1_000_000_000 * mss / 1_500;
        while let Some(percent) = PARTS.get(self.run.reached_s.len())
            && window * 100 >= bdp * percent
        {
            self.run.reached_s.push(since as f64 / 1e9);
        }
    }
}

/// Time since the change in nanoseconds; `None` before it.
fn since_change(at: Instant) -> Option<u64> {
    at.as_nanos().checked_sub(CHANGE_S * 1_000_000_000)
}

impl Recorder for TransientObserver {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        _: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        if who.host.0 == 0
            && self.run.reached_s.len() < PARTS.len()
            && let Some(since) = since_change(at)
        {
            self.on_window(since, sender.cwnd().get(), sender.mss().get());
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { flow, packet, .. } => {
                let number = packet.0 as usize;
                if self.datagrams.len() <= number {
                    self.datagrams.resize(number + 1, false);
                }
                self.datagrams[number] = flow.0 > 0;
            }
            PacketEvent::Dropped { packet, .. } => {
                let is_datagram = self.datagrams.get(packet.0 as usize) == Some(&true);
                self.run.cross_lost += u64::from(is_datagram && since_change(at).is_some());
            }
            _ => {}
        }
    }
}

impl Observer for TransientObserver {}

fn measure(world: &WorldText, stop: &AtomicBool) -> Result<TransientRun, SuiteError> {
    let loaded = world.load()?;
    let mut observer = TransientObserver::default();
    runner::stop::run_shared(&loaded.scenario, &mut observer, stop)
        .map_err(|error| SuiteError::Run(world.name.clone(), error.to_string()))?;
    Ok(observer.run)
}
