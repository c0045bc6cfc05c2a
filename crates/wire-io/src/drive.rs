//! The loop: what a world does is done on time, and what real hosts do comes into the world.

use core::ops::ControlFlow;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use packet::{Dir, Flags, Segment};
use record::{Event, Movement, Recorder, Sender, SenderState, Who};
use sha2::{Digest, Sha256};
use sim::Observer;
use sim::live::{Leaving, Live};
use tun_rs::SyncDevice;
use units::Instant;

use crate::capture::Capture;
use crate::clock::Clock;
use crate::directory::Directory;
use crate::frame;
use crate::streams::{Received, Stream};
use crate::timing::Lateness;

/// Packets taken from a device before the world gets its turn.
const BATCH: usize = 64;
/// A device gives no more: a burst of 64 KiB and the header before it.
const LARGEST: usize = 65_536 + 16;

/// The door to a real host.
#[derive(Debug)]
pub struct Gate {
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

/// What watches a live world: whoever wants to, and those that keep and check its bytes.
#[derive(Debug)]
pub struct Watcher<'a, O, W: Write> {
    /// Whoever wants to.
    pub user: &'a mut O,
    /// Taps that the user knows: those numbered below.
    pub user_taps: usize,
    /// For each host the tap at its stack, if the host is inside.
    pub stack_taps: Vec<Option<usize>>,
    /// Two for each flow: towards the listener, and back.
    pub streams: Vec<Stream>,
    /// For each flow what has come to its reader inside.
    pub received: Vec<Received>,
    /// Whose packets are whose.
    pub directory: Directory,
    /// The capture, with the numbers of its taps.
    pub capture: Option<(Capture<W>, Vec<usize>)>,
    /// Payload at hand.
    pub scratch: Vec<u8>,
}

impl<O: Recorder, W: Write> Recorder for Watcher<'_, O, W> {
    const ON: bool = O::ON;
    const PACKETS: bool = O::PACKETS;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.user.record(at, who, event, state);
    }

    #[inline(always)]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        self.user.record_sender(at, who, event, sender);
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        self.user.moved(at, movement);
    }
}

impl<O: Observer, W: Write> Observer for Watcher<'_, O, W> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        if tap < self.user_taps {
            self.user.tap(at, tap, outbound, segment);
        }
        let flow = segment.flow.0 as usize;
        let Some(stream) = self.streams.get_mut(stream_of(segment)) else { return };
        if self.stack_taps.contains(&Some(tap)) {
            if outbound {
                stream.sent(segment, &[]);
            } else if let Some(place) = stream.place(segment.seq) {
                self.received[flow].came(place, segment.payload);
            }
        }
        let Some((capture, taps)) = &mut self.capture else { return };
        let Some(number) = taps.iter().position(|&known| known == tap) else { return };
        let between = self.directory.between(segment);
        self.scratch.clear();
        let place = stream.place(segment.seq).unwrap_or(0);
        if segment.payload == 0 || stream.read(place, segment.payload, &mut self.scratch) {
            capture.segment((at, number, outbound), segment, &between, &self.scratch);
        }
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.user.progress(now)
    }
}

/// Number of the stream to which a segment belongs.
fn stream_of(segment: &Segment) -> usize {
    2 * segment.flow.0 as usize + usize::from(segment.dir == Dir::Reverse)
}

/// What the loop counted.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// How late each packet was that went to a real host.
    pub lateness: Lateness,
    /// Packets from real hosts, bursts counted once, that belong to no flow.
    pub foreign: u64,
    /// Packets from real hosts whose checksum was wrong.
    pub damaged: u64,
    /// Packets that a device did not take.
    pub refused: u64,
    /// Bytes that were read without having come: the proof of a mistake in this program.
    pub unproven: u64,
}

/// The loop and what it needs.
#[derive(Debug)]
pub struct Driver<'g> {
    /// Doors to the real hosts.
    pub gates: &'g [Gate],
    /// Time.
    pub clock: Clock,
    /// What was counted.
    pub counts: Counts,
    /// The bytes that readers inside have read, for each flow.
    pub hashes: Vec<Sha256>,
}

impl Driver<'_> {
    /// Runs until `end`, or until `done` says so (asked about every round).
    pub fn run<O: Observer, W: Write>(
        &mut self,
        live: &mut Live<'_, Watcher<'_, O, W>>,
        end: Instant,
        mut done: impl FnMut(&mut Live<'_, Watcher<'_, O, W>>) -> bool,
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
                    self.take_in(live, gate.host, &buffer[..len]);
                }
                // What comes of it at once, such as ACKs, does not wait for the other devices.
                self.hand_over(live, &mut leaving, &mut out);
            }
            self.read_on(live);
            if now >= end || done(live) {
                return;
            }
            if quiet {
                let next = live.next_at().map_or(end, |at| at.min(end));
                self.clock.wait(Some(next), &fds);
            }
        }
    }

    /// A packet from a real host goes into the world.
    fn take_in<O: Observer, W: Write>(
        &mut self,
        live: &mut Live<'_, Watcher<'_, O, W>>,
        host: usize,
        bytes: &[u8],
    ) {
        let seen = match frame::read(bytes) {
            Ok(seen) => seen,
            Err(frame::FrameError::Foreign) => return self.counts.foreign += 1,
            Err(frame::FrameError::Damaged) => return self.counts.damaged += 1,
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

    /// What has come to real hosts is written to their devices.
    fn hand_over<O: Observer, W: Write>(
        &mut self,
        live: &mut Live<'_, Watcher<'_, O, W>>,
        leaving: &mut Vec<Leaving>,
        out: &mut Vec<u8>,
    ) {
        live.take_leaving(leaving);
        for came in leaving.drain(..) {
            let segment = &came.segment;
            let watcher = live.observer();
            let stream = &mut watcher.streams[stream_of(segment)];
            let mut payload = core::mem::take(&mut watcher.scratch);
            payload.clear();
            let whole = segment.payload == 0
                || stream
                    .place(segment.seq)
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

    /// What readers inside have read is summed up, and proven to have come.
    fn read_on<O: Observer, W: Write>(&mut self, live: &mut Live<'_, Watcher<'_, O, W>>) {
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
                self.counts.unproven += to - from;
            }
            self.hashes[flow].update(&bytes);
            watcher.scratch = bytes;
        }
    }
}
