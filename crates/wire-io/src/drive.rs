//! The event loop: advances the simulation in real time and exchanges packets with real hosts.

use core::ops::ControlFlow;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use packet::{Dir, Flags, PacketTooBig, Segment};
use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use sha2::{Digest, Sha256};
use sim::Observer;
use sim::live::{ExternalDelivery, ExternalPacket, LiveSimulation};
use tun_rs::SyncDevice;
use units::Instant;

use crate::capture::TapCapture;
use crate::clock::RealClock;
use crate::directory::FlowDirectory;
use crate::frame;
use crate::streams::{ByteStream, ReceivedBytes};
use crate::timing::Lateness;

/// Maximum packets read from a device before the simulation advances.
const BATCH: usize = 64;
/// Largest read from a device: a burst of 64 KiB and its header.
const LARGEST: usize = 65_536 + 16;

/// The TUN device of a real host.
#[derive(Debug)]
pub struct TunPort {
    /// Index of the host.
    pub host: usize,
    /// Its device.
    pub device: Device,
}

/// A TUN device.
pub struct Device(pub SyncDevice);

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Device")
    }
}

/// Observer of a live simulation: forwards to the user's observer and tracks the bytes of streams.
#[derive(Debug)]
pub struct WireObserver<'a, O, W: Write> {
    /// The user's observer.
    pub user: &'a mut O,
    /// Number of the user's taps, which have the lowest indices.
    pub user_taps: usize,
    /// For each simulated host the tap at its stack.
    pub stack_taps: Vec<Option<usize>>,
    /// Two streams for each flow: towards the listener, and reverse.
    pub streams: Vec<ByteStream>,
    /// For each flow the bytes received by its simulated reader.
    pub received: Vec<ReceivedBytes>,
    /// Maps packets to flows.
    pub directory: FlowDirectory,
    /// The capture, with the indices of its taps.
    pub capture: Option<(TapCapture<W>, Vec<usize>)>,
    /// Payload buffer.
    pub scratch: Vec<u8>,
}

impl<O: Recorder, W: Write> Recorder for WireObserver<'_, O, W> {
    const ON: bool = O::ON;
    const PACKETS: bool = O::PACKETS;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.user.record(at, who, event, state);
    }

    #[inline(always)]
    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        self.user.record_sender(at, who, event, sender);
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.user.record_packet(at, movement);
    }
}

impl<O: Observer, W: Write> Observer for WireObserver<'_, O, W> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if tap < self.user_taps {
            self.user.tap(at, tap, outbound, segment);
        }
        let flow = segment.flow.0 as usize;
        let Some(stream) = self.streams.get_mut(stream_of(segment)) else { return };
        if self.stack_taps.contains(&Some(tap)) {
            if outbound {
                stream.sent(segment, &[]);
            } else if let Some(offset) = stream.offset(segment.seq) {
                self.received[flow].came(offset, segment.payload);
            }
        }
        let Some((capture, taps)) = &mut self.capture else { return };
        let Some(number) = taps.iter().position(|&known| known == tap) else { return };
        let between = self.directory.between(segment);
        self.scratch.clear();
        let offset = stream.offset(segment.seq).unwrap_or(0);
        if segment.payload == 0 || stream.read(offset, segment.payload, &mut self.scratch) {
            capture.segment((at, number, outbound), segment, &between, &self.scratch);
        }
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.user.progress(now)
    }
}

/// Returns the index of the stream of a segment.
fn stream_of(segment: &Segment) -> usize {
    2 * segment.flow.0 as usize + usize::from(segment.dir == Dir::Reverse)
}

/// Counters of the event loop.
#[derive(Debug, Clone, Default)]
pub struct WireCounts {
    /// Lateness of each packet to a real host.
    pub lateness: Lateness,
    /// Packets (or bursts) from real hosts that belong to no flow.
    pub foreign: u64,
    /// Packets from real hosts with a wrong checksum.
    pub damaged: u64,
    /// Packets that a device rejected.
    pub refused: u64,
    /// Bytes read but never received: proof of a bug in this program.
    pub unverified: u64,
}

/// The event loop.
#[derive(Debug)]
pub struct Driver<'g> {
    /// TUN devices of the real hosts.
    pub gates: &'g [TunPort],
    /// Real time of the run.
    pub clock: RealClock,
    /// Counters.
    pub counts: WireCounts,
    /// For each flow the hash of the bytes read by simulated readers.
    pub hashes: Vec<Sha256>,
}

impl Driver<'_> {
    /// Runs until `end` or until `done`, called once per iteration, returns true.
    pub fn run<O: Observer, W: Write>(
        &mut self,
        live: &mut LiveSimulation<'_, WireObserver<'_, O, W>>,
        end: Instant,
        mut done: impl FnMut(&mut LiveSimulation<'_, WireObserver<'_, O, W>>) -> bool,
    ) {
        let fds: Vec<BorrowedFd<'_>> =
            self.gates.iter().map(|gate| gate.device.0.as_fd()).collect();
        let mut buffer = vec![0; LARGEST];
        let mut leaving = Vec::new();
        let mut out = Vec::new();
        loop {
            let now = self.clock.now();
            live.advance(now.min(end));
            self.hand_over(live, &mut leaving, &mut out);
            let mut quiet = true;
            for gate in self.gates {
                for _ in 0..BATCH {
                    let Ok(len) = gate.device.0.recv(&mut buffer) else { break };
                    quiet = false;
                    self.inject_packet(live, gate.host, &buffer[..len]);
                }
                // Deliver immediate responses, such as ACKs, before reading other devices.
                self.hand_over(live, &mut leaving, &mut out);
            }
            self.verify_reads(live);
            if now >= end || done(live) {
                return;
            }
            if quiet {
                let next = live.next_at().map_or(end, |at| at.min(end));
                self.clock.wait(Some(next), &fds);
            }
        }
    }

    /// Injects a packet from a real host into the simulation.
    fn inject_packet<O: Observer, W: Write>(
        &mut self,
        live: &mut LiveSimulation<'_, WireObserver<'_, O, W>>,
        host: usize,
        bytes: &[u8],
    ) {
        let seen = match frame::read(bytes) {
            Ok(seen) => seen,
            Err(frame::FrameError::NotTcp) => return self.counts.foreign += 1,
            Err(frame::FrameError::Corrupted) => return self.counts.damaged += 1,
        };
        let mut segment = seen.segment;
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        let Some((flow, dir)) = live.observer().directory.find(host, seen.between, opens) else {
            return self.counts.foreign += 1;
        };
        segment.flow = flow;
        segment.dir = dir;
        let stream = &mut live.observer().streams[stream_of(&segment)];
        stream.sent(&segment, seen.payload);
        if !live.inject(self.clock.now(), &segment) {
            self.counts.foreign += 1;
        }
    }

    /// Writes an ICMP error for a real host to its device.
    fn hand_over_error<O: Observer, W: Write>(
        &mut self,
        live: &mut LiveSimulation<'_, WireObserver<'_, O, W>>,
        host: usize,
        message: &PacketTooBig,
        out: &mut Vec<u8>,
    ) {
        let PacketTooBig { flow, ip, .. } = *message;
        let about = Segment { flow, ip, dir: message.dir.reversed(), ..Segment::default() };
        let between = live.observer().directory.between(&about);
        let gate = self.gates.iter().find(|gate| gate.host == host);
        let sent = gate.is_some_and(|gate| {
            frame::write_too_big(message, &between, out).is_ok() && gate.device.0.send(out).is_ok()
        });
        if !sent {
            self.counts.refused += 1;
        }
    }

    /// Writes packets for real hosts to their devices.
    fn hand_over<O: Observer, W: Write>(
        &mut self,
        live: &mut LiveSimulation<'_, WireObserver<'_, O, W>>,
        leaving: &mut Vec<ExternalDelivery>,
        out: &mut Vec<u8>,
    ) {
        live.take_leaving(leaving);
        for came in leaving.drain(..) {
            let segment = match &came.packet {
                ExternalPacket::Tcp(segment) => segment,
                ExternalPacket::TooBig(message) => {
                    self.hand_over_error(live, came.host, message, out);
                    continue;
                }
            };
            let watcher = live.observer();
            let stream = &mut watcher.streams[stream_of(segment)];
            let mut payload = core::mem::take(&mut watcher.scratch);
            payload.clear();
            let whole = segment.payload == 0
                || stream
                    .offset(segment.seq)
                    .is_some_and(|at| stream.read(at, segment.payload, &mut payload));
            let between = watcher.directory.between(segment);
            let gate = self.gates.iter().find(|gate| gate.host == came.host);
            let sent = match gate {
                Some(gate) if whole => {
                    frame::write(segment, &between, &payload, out).is_ok()
                        && gate.device.0.send(out).is_ok()
                }
                _ => false,
            };
            live.observer().scratch = payload;
            if sent {
                self.counts.lateness.note(self.clock.now().since(came.at));
            } else {
                self.counts.refused += 1;
            }
        }
    }

    /// Hashes the bytes read by simulated readers, and checks that they were received.
    fn verify_reads<O: Observer, W: Write>(
        &mut self,
        live: &mut LiveSimulation<'_, WireObserver<'_, O, W>>,
    ) {
        for flow in 0..self.hashes.len() {
            let Some(to) = live.has_read(flow) else { continue };
            let watcher = live.observer();
            let from = watcher.received[flow].read;
            if to == from {
                continue;
            }
            let mut bytes = core::mem::take(&mut watcher.scratch);
            bytes.clear();
            let there = watcher.streams[2 * flow].read(from, (to - from) as u32, &mut bytes);
            if !watcher.received[flow].read_to(to) || !there {
                self.counts.unverified += to - from;
            }
            self.hashes[flow].update(&bytes);
            watcher.scratch = bytes;
        }
    }
}
