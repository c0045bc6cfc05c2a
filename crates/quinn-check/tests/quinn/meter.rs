//! Measurements of a sender: bytes of its packets at the receiver, windows, and send times.

use std::collections::VecDeque;

use record::{Event, EventSource, PacketEvent, PacketNumber, Recorder, SenderState};
use sim::Observer;
use units::{Duration, HostId, Instant};

/// UDP and IPv4 headers.
pub(crate) const HEADERS: u32 = 28;
/// UDP payload of a full packet.
pub(crate) const PACKET: u32 = 1_252;
/// A packet that has not arrived when this many later ones have is not counted any more.
const MAX_REORDERING: usize = 256;
/// The sender.
const CLIENT: HostId = HostId(0);
const SERVER: HostId = HostId(1);

/// Observes the client's packets and its window.
#[derive(Debug)]
pub(crate) struct SenderMeter {
    /// Start of the measurement.
    since: Instant,
    in_flight: VecDeque<(PacketNumber, u32)>,
    first: Option<Instant>,
    last: Instant,
    bytes: u64,
    /// Send times of full packets.
    left: Vec<Instant>,
    /// The window after each change.
    windows: Vec<(Instant, u64)>,
}

/// The round trips between two successive detected losses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WindowCycle {
    pub(crate) span: Duration,
    /// Packets sent in each round.
    pub(crate) sent: Vec<usize>,
    /// The window after each round, in bytes.
    pub(crate) windows: Vec<u64>,
}

impl SenderMeter {
    pub(crate) fn new(since: Instant) -> Self {
        Self {
            since,
            in_flight: VecDeque::new(),
            first: None,
            last: since,
            bytes: 0,
            left: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Records the client's window.
    pub(crate) fn window(&mut self, at: Instant, bytes: u64) {
        if self.windows.last().is_none_or(|&(_, last)| last != bytes) {
            self.windows.push((at, bytes));
        }
    }

    fn arrived(&mut self, at: Instant, size: u32) {
        if at < self.since {
            return;
        }
        // The bytes after the first packet, over the time from the first to the last.
        if self.first.is_none() {
            self.first = Some(at);
        } else {
            self.bytes += u64::from(size);
        }
        self.last = at;
    }

    /// Mbit/s of full QUIC packets at the server.
    pub(crate) fn mbps(&self) -> f64 {
        let Some(first) = self.first else { return 0.0 };
        self.bytes as f64 * 8.0 / self.last.since(first).as_secs_f64() / 1e6
    }

    /// All windows from the first reduction on, with the time since then.
    pub(crate) fn windows_since_loss(&self) -> Vec<(Duration, u64)> {
        let fall = self.windows.windows(2).position(|pair| pair[1].1 < pair[0].1);
        let rest = fall.map_or(&[][..], |index| &self.windows[index + 1..]);
        rest.iter().map(|&(at, bytes)| (at.since(rest[0].0), bytes)).collect()
    }

    /// The cycles: each starts with a reduction of the window, the first with the first one
    /// measured.
    pub(crate) fn cycles(&self, rtt: Duration) -> Vec<WindowCycle> {
        let falls: Vec<Instant> = self
            .windows
            .windows(2)
            .filter(|pair| pair[1].1 < pair[0].1 && pair[1].0 >= self.since)
            .map(|pair| pair[1].0)
            .collect();
        falls.windows(2).map(|pair| self.cycle(pair[0], pair[1], rtt)).collect()
    }

    fn cycle(&self, from: Instant, to: Instant, rtt: Duration) -> WindowCycle {
        // A round is centred on a multiple of the round trip after the reduction.
        let half = Duration::from_nanos(rtt.as_nanos() / 2);
        let span = to.since(from);
        let rounds = (span + half).as_nanos() / rtt.as_nanos();
        let round_of = |at: Instant| {
            let within = at + half >= from;
            within.then(|| (at + half).since(from).as_nanos() / rtt.as_nanos())
        };
        let mut cycle = WindowCycle { span, sent: Vec::new(), windows: Vec::new() };
        for round in 0..rounds {
            cycle.sent.push(self.left.iter().filter(|&&at| round_of(at) == Some(round)).count());
            let before = |at: Instant| at < from || round_of(at).is_some_and(|of| of <= round);
            let window = self.windows.iter().take_while(|&&(at, _)| before(at)).last();
            cycle.windows.push(window.map_or(0, |&(_, bytes)| bytes));
        }
        cycle
    }
}

impl Recorder for SenderMeter {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, _: Event, state: Option<&SenderState>) {
        if let Some(state) = state.filter(|_| who.host == CLIENT) {
            self.window(at, state.cwnd.get());
        }
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        match movement {
            PacketEvent::Sent { host: CLIENT, packet, size, .. } if size > PACKET / 2 => {
                self.left.push(at);
                self.in_flight.push_back((packet, size - HEADERS));
            }
            PacketEvent::Received { host: SERVER, packet, .. } => {
                let index = self.in_flight.iter().position(|&(number, _)| number == packet);
                if let Some(index) = index {
                    if let Some((_, size)) = self.in_flight.remove(index) {
                        self.arrived(at, size);
                    }
                    // Packets this far behind were lost.
                    self.in_flight.drain(..index.saturating_sub(MAX_REORDERING));
                }
            }
            _ => {}
        }
    }
}

impl Observer for SenderMeter {}
