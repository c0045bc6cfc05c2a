//! The packets of a run on their way: the data of the animated ACK clock.
//!
//! Each packet has the instants at which it left its host, entered and left the queue of the slowest
//! line of its direction, and arrived or was dropped.

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use record::{
    Event, EventSource, PacketEvent, PacketNumber, Purpose, Recorder, SenderState, TcpBits,
};
use runner::series::sender;
use serde::Serialize;
use serde_json::{Value, json};
use sim::{Observer, RunError, Scenario};
use units::{HostId, Instant, SeqNum};

use crate::queues::{self, PathQueue};
use crate::requests::Failure;
use crate::runs::loaded;

/// What happened to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// It is still on its way when the record ends.
    Travels,
    /// It reached the other host.
    Arrived,
    /// The queue dropped it.
    DroppedByQueue,
    /// Another element dropped it.
    Lost,
}

/// A packet. Instants are in ns.
#[derive(Debug, Clone, Serialize)]
struct PacketJourney {
    flow: u32,
    /// It leaves the host that sends the data.
    forward: bool,
    /// Payload bytes.
    len: u32,
    /// Its first byte has been sent before.
    again: bool,
    sent: u64,
    queued: Option<u64>,
    dequeued: Option<u64>,
    end: Option<u64>,
    outcome: Outcome,
    marked: bool,
}

/// The state of a sender from an instant on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct WindowSample {
    at: u64,
    flow: u32,
    cwnd: u64,
    flight: u64,
    ssthresh: Option<u64>,
    mss: u64,
}

/// Something worth a line below the picture.
#[derive(Debug, Clone, Serialize)]
struct Remark {
    at: u64,
    text: String,
}

/// Runs a scenario and records at most `limit` packets that are in flight at `from` or later.
pub(crate) fn of(text: &str, from: u64, limit: usize) -> Result<Value, Failure> {
    let loaded = loaded(text)?;
    let scenario = &loaded.scenario;
    let mut recorder = PacketRecorder::new(scenario, from, limit.max(1));
    let ended = match sim::run_shared(scenario, &mut recorder) {
        Ok(outcome) => Some(outcome.ended.as_nanos()),
        Err(RunError::Stopped) => None,
        Err(error) => return Err(error.into()),
    };
    let flow = scenario.flows.first().ok_or("the scenario has no flow")?;
    let data = sender(flow);
    let other = if data == flow.from { flow.to } else { flow.from };
    let host = |index: usize| {
        scenario.hosts.get(index).map(|host| {
            json!({
                "name": host.name,
                "profile": host.stack.profile_name(),
                "cc": host.stack.cc_name(),
            })
        })
    };
    let queue = |queue: Option<PathQueue>| {
        queue.map(|queue| {
            json!({
                "rate_bps": queue.rate_bps,
                "limit_bytes": queue.limit.0,
                "limit_packets": queue.limit.1,
            })
        })
    };
    let [forward, back] = recorder.queues;
    Ok(json!({
        "from_ns": from,
        // Without an end the record covers the run to its end.
        "until_ns": recorder.full.or(ended),
        "is_last": recorder.full.is_none(),
        "sender": host(data),
        "receiver": host(other),
        "flows": scenario.flows.iter().map(|flow| &flow.name).collect::<Vec<_>>(),
        "queues": [queue(forward), queue(back)],
        "packets": recorder.packets,
        "windows": recorder.windows,
        "remarks": recorder.remarks,
    }))
}

struct PacketRecorder {
    from: u64,
    limit: usize,
    /// Packets that were in flight when the record began; `None` before.
    begun: Option<usize>,
    /// When the limit was reached.
    full: Option<u64>,
    /// Data senders of the flows.
    senders: Vec<HostId>,
    names: Vec<String>,
    /// Queues from the first flow's sender, and to it.
    queues: [Option<PathQueue>; 2],
    /// Indices of the packets in flight.
    travelling: BTreeMap<PacketNumber, usize>,
    packets: Vec<PacketJourney>,
    highest: BTreeMap<(HostId, u32), SeqNum>,
    windows: Vec<WindowSample>,
    remarks: Vec<Remark>,
}

impl PacketRecorder {
    fn new(scenario: &Scenario, from: u64, limit: usize) -> Self {
        let first = scenario.flows.first();
        let path = first.map_or(0, |flow| flow.path);
        let mut queues = queues::slowest(scenario, path);
        let starts = scenario.paths.get(path).map(|path| path.from);
        if first.is_some_and(|flow| Some(sender(flow)) != starts) {
            queues.reverse();
        }
        Self {
            from,
            limit,
            begun: None,
            full: None,
            senders: scenario.flows.iter().map(|flow| HostId(sender(flow) as u16)).collect(),
            names: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
            queues,
            travelling: BTreeMap::new(),
            packets: Vec::new(),
            highest: BTreeMap::new(),
            windows: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Whether this instant is recorded.
    fn covers(&self, at: u64) -> bool {
        at >= self.from && self.full.is_none()
    }

    fn remark(&mut self, at: Instant, text: impl FnOnce(&Self) -> String) {
        if self.covers(at.as_nanos()) && self.remarks.len() < self.limit {
            let text = text(self);
            self.remarks.push(Remark { at: at.as_nanos(), text });
        }
    }

    fn end(&mut self, at: u64, packet: PacketNumber, outcome: Outcome) {
        let Some(index) = self.travelling.remove(&packet) else { return };
        // A packet that ended before the record begins is of no use.
        let packet = &mut self.packets[index];
        packet.end = Some(at);
        packet.outcome = outcome;
    }

    /// Forgets the packets that ended before the record begins.
    fn trim(&mut self) {
        let kept: Vec<_> =
            self.travelling.iter().map(|(number, index)| (*number, *index)).collect();
        let old = core::mem::take(&mut self.packets);
        self.travelling = BTreeMap::new();
        for (number, index) in kept {
            self.travelling.insert(number, self.packets.len());
            self.packets.push(old[index].clone());
        }
    }
}

impl Recorder for PacketRecorder {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        let flow = who.flow.0;
        let is_sender = self.senders.get(flow as usize) == Some(&who.host);
        if let (true, Some(state)) = (is_sender, state) {
            let sample = WindowSample {
                at: at.as_nanos(),
                flow,
                cwnd: state.cwnd.get(),
                flight: state.flight_size().get(),
                ssthresh: state.ssthresh.map(units::Bytes::get),
                mss: state.mss.get(),
            };
            // The state in which the record begins is kept too.
            if at.as_nanos() < self.from {
                self.windows.retain(|old| old.flow != flow);
            }
            if self.full.is_none() && self.windows.len() < self.limit * 4 {
                self.windows.push(sample);
            }
        }
        let host = usize::from(who.host.0);
        let name = |this: &Self| this.names.get(host).cloned().unwrap_or_default();
        match event {
            Event::Window { cwnd, cause, .. } if is_sender => {
                self.remark(at, |this| {
                    let cause = cause.name().replace('_', " ");
                    format!("{}: cwnd {cwnd} B ({cause})", name(this))
                });
            }
            Event::Timer(purpose) if purpose != Purpose::Pacing => {
                self.remark(at, |this| {
                    let purpose = purpose.name().replace('_', " ");
                    format!("{}: the {purpose} timer fires", name(this))
                });
            }
            Event::Lost { packets } => {
                let plural = if packets == 1 { "" } else { "s" };
                self.remark(at, |this| {
                    format!("{}: {packets} packet{plural} marked lost", name(this))
                });
            }
            Event::Aggregated { packets, .. } if packets > 1 => {
                self.remark(at, |this| {
                    format!("{}: the receive offload merges {packets} packets", name(this))
                });
            }
            _ => {}
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        let now = at.as_nanos();
        match movement {
            PacketEvent::Sent { host, flow, packet, seq, len, .. } => {
                let highest = self.highest.entry((host, flow.0)).or_insert(seq);
                let ahead = seq.0.wrapping_sub(highest.0) as i32;
                let again = len > 0 && ahead < 0;
                if ahead >= 0 {
                    *highest = SeqNum(seq.0.wrapping_add(len));
                }
                if self.full.is_some() {
                    return;
                }
                if now >= self.from {
                    let begun = match self.begun {
                        Some(begun) => begun,
                        None => {
                            self.trim();
                            *self.begun.insert(self.packets.len())
                        }
                    };
                    if self.packets.len() - begun >= self.limit {
                        self.full = Some(now);
                        return;
                    }
                } else if self.packets.len() > 4_096.max(2 * self.travelling.len()) {
                    self.trim();
                }
                let forward = self.senders.get(flow.0 as usize) == Some(&host);
                self.travelling.insert(packet, self.packets.len());
                self.packets.push(PacketJourney {
                    flow: flow.0,
                    forward,
                    len,
                    again,
                    sent: now,
                    queued: None,
                    dequeued: None,
                    end: None,
                    outcome: Outcome::Travels,
                    marked: false,
                });
            }
            PacketEvent::Accepted { hop_index, packet } => {
                if let Some(index) = self.travelling.get(&packet) {
                    let journey = &mut self.packets[*index];
                    let queue = self.queues[usize::from(!journey.forward)];
                    if queue.is_some_and(|queue| queue.element == hop_index.0) {
                        journey.queued = Some(now);
                    }
                }
            }
            PacketEvent::Forwarded { hop_index, packet } => {
                if let Some(index) = self.travelling.get(&packet) {
                    let journey = &mut self.packets[*index];
                    let queue = self.queues[usize::from(!journey.forward)];
                    if queue.is_some_and(|queue| queue.element == hop_index.0) {
                        journey.dequeued = Some(now);
                    }
                }
            }
            PacketEvent::Dropped { hop_index, packet } => {
                let at_queue =
                    self.queues.iter().flatten().any(|queue| queue.element == hop_index.0);
                let outcome = if at_queue { Outcome::DroppedByQueue } else { Outcome::Lost };
                self.end(now, packet, outcome);
                self.remark(at, |_| {
                    if at_queue { "the full queue drops a packet" } else { "a packet is lost" }
                        .to_owned()
                });
            }
            PacketEvent::Marked { packet, .. } => {
                if let Some(index) = self.travelling.get(&packet) {
                    self.packets[*index].marked = true;
                }
            }
            PacketEvent::Received { packet, .. } => self.end(now, packet, Outcome::Arrived),
            PacketEvent::Injected { tcp, .. } => {
                // An ICMP error has no TCP header.
                let text = match tcp == TcpBits::default() {
                    true => "a box on the path reports that a packet is too large",
                    false => "a box on the path resets the connection",
                };
                self.remark(at, |_| text.to_owned());
            }
            PacketEvent::Duplicated { .. }
            | PacketEvent::Corrupted { .. }
            | PacketEvent::Rewritten { .. } => {}
        }
    }
}

impl Observer for PacketRecorder {
    fn progress(&mut self, _: Instant) -> ControlFlow<()> {
        match self.full {
            Some(_) if self.travelling.is_empty() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
