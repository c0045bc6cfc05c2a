//! A script on a real host: sequence numbers, addresses and packets between the script and the host.
//!
//! The script counts the host's sequence numbers from 0, as the model does: the host's initial sequence number is
//! read from its SYN, and added and subtracted here. Ports are those of packetdrill: 8080 for the end that listens.

mod calls;
mod constants;
mod icmp;
mod info;

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use packet::wire::{Endpoints, Link, emit, parse};
use packet::{FastOpenOption, Flags, IpVersion, Options, Segment, SynLayout};
use units::{Duration, Instant, Offset, SeqNum};

use super::header::{self, SentHeader};
use super::icmp::IcmpKind;
use super::{Result, Runner, wording};
use crate::ast::{
    Action, Body, IcmpMessage, IpFields, ScriptEvent, ScriptPacket, ScriptSegment, ScriptSpan,
    TcpOption,
};
use crate::real::{RealHost, RealPacket};

/// Port of the end that listens.
const LISTEN_PORT: u16 = 8_080;
/// First port of a peer that connects.
const FIRST_PORT: u16 = 10_001;
/// Time that the host has for what follows at once: each reading of its clock takes 256 ns.
const AT_ONCE: Duration = Duration::from_micros(20);
/// Longest pause within it: a timer that expires so soon by chance must not take the host's clock past what arrives
/// before.
const PAUSE: Duration = Duration::from_micros(2);
/// 512 ticks of 8 ms, 4 ms, 2 ms or 1 ms, after which a timer wheel is as at the start of the guest.
const WHEEL: Duration = Duration::from_millis(4_096);
/// Longest time of a command.
const COMMAND: Duration = Duration::from_secs(2);

/// The socket that the script tests, as packetdrill counts it: the one that was made last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketUnderTest {
    Fresh,
    Listening,
    Passive,
    Active,
}

/// A packet that the host has sent, in the numbers of the script: when, and the fields of its IP header.
pub(super) type RealSegment = (Instant, Segment, SentHeader);

/// The result of a system call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RealAnswer {
    value: i64,
    error: String,
    /// What the call returned by pointer.
    extra: String,
}

/// A real host with the connection of a script.
pub(super) struct RealWorld {
    host: Box<dyn RealHost>,
    local: SocketAddr,
    remote: SocketAddr,
    under_test: SocketUnderTest,
    /// The script's number of that socket.
    fd: i64,
    /// The host's initial sequence number.
    isn: u32,
    next_port: u16,
    /// Time at which the host ran last.
    ran_at: Instant,
    /// Number of calls made.
    made: u32,
    answers: BTreeMap<u32, RealAnswer>,
    /// Why the host cannot go on.
    pub(super) failure: Option<String>,
    /// Packets that were not TCP, or of no connection of the script.
    foreign: u64,
}

impl RealWorld {
    pub(super) fn new(host: Box<dyn RealHost>, local: IpAddr, remote: IpAddr) -> Self {
        Self {
            host,
            local: SocketAddr::new(local, LISTEN_PORT),
            remote: SocketAddr::new(remote, FIRST_PORT),
            under_test: SocketUnderTest::Fresh,
            fd: -1,
            isn: 0,
            next_port: FIRST_PORT,
            ran_at: Instant::ZERO,
            made: 0,
            answers: BTreeMap::new(),
            failure: None,
            foreign: 0,
        }
    }

    /// Keeps the first failure; `None` after one.
    fn check<T>(&mut self, result: core::result::Result<T, String>) -> Option<T> {
        result.map_err(|error| self.failure.get_or_insert(error).clone()).ok()
    }

    /// Fires the next timer due by `until` and adds the packets sent; returns its time, `None` if there was none.
    pub(super) fn step(&mut self, until: Instant, sent: &mut Vec<RealSegment>) -> Option<Instant> {
        let deadline = self.host.next_deadline();
        let deadline = self.check(deadline).filter(|&at| at <= until)?;
        self.turn(deadline, sent)
    }

    fn turn(&mut self, now: Instant, sent: &mut Vec<RealSegment>) -> Option<Instant> {
        let now = self.time(now);
        let mut packets = Vec::new();
        self.ran_at = now;
        // It stops whenever its clock goes on, which is its time then: nothing may reach it earlier.
        let run = self.host.run(now, now + Duration::from_nanos(1), &mut packets);
        self.check(run)?;
        for packet in packets {
            self.take(&packet, sent);
        }
        for line in self.host.take_results() {
            let mut parts = line.splitn(4, ' ');
            let mut next = || parts.next().unwrap_or_default();
            let (number, value) = (next().parse(), next().parse());
            let (error, extra) = (next().to_owned(), next().trim().to_owned());
            if let (Ok(number), Ok(value)) = (number, value) {
                self.answers.insert(number, RealAnswer { value, error, extra });
            }
        }
        Some(now)
    }

    /// Lets the host do what follows at once from what happened at `now`.
    fn settle(&mut self, now: Instant, sent: &mut Vec<RealSegment>) {
        let until = now + AT_ONCE;
        let mut last = self.time(now);
        while let Some(at) = {
            let deadline = self.host.next_deadline();
            self.check(deadline).filter(|&at| at <= until && at <= last + PAUSE)
        } {
            match self.turn(at, sent) {
                Some(at) => last = at,
                None => return,
            }
        }
    }

    /// Returns `now`, or the host's own time if that is later.
    fn time(&self, now: Instant) -> Instant {
        self.ran_at.max(now)
    }

    /// Fires the timers due before something arrives; returns the time of the arrival, `now` or the host's own time.
    fn before(&mut self, now: Instant, sent: &mut Vec<RealSegment>) -> Instant {
        loop {
            let at = self.time(now);
            let deadline = self.host.next_deadline();
            let due = self.check(deadline).is_some_and(|deadline| deadline <= at);
            if !due || self.turn(at, sent).is_none() {
                return at;
            }
        }
    }

    /// A sent packet in the numbers of the script.
    fn take(&mut self, packet: &RealPacket, sent: &mut Vec<RealSegment>) {
        let Ok(parsed) = parse(&packet.bytes, Link::Raw) else {
            self.foreign += 1;
            return;
        };
        let Endpoints { src, dst } = parsed.endpoints;
        let mut segment = parsed.segment;
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        if opens && self.under_test == SocketUnderTest::Active {
            (self.local, self.remote) = (src, dst);
        }
        if (src, dst) != (self.local, self.remote) {
            self.foreign += 1;
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.isn = segment.seq.0;
        }
        if let Options::Syn(syn) = &mut segment.options {
            let options = wording::option_list(option_bytes(&packet.bytes), 0);
            let cookie = options.iter().find_map(|option| match option {
                TcpOption::FastOpen { cookie, experimental } => {
                    FastOpenOption::new(cookie, *experimental)
                }
                _ => None,
            });
            if cookie.is_some() {
                (syn.layout, syn.fast_open) = (SynLayout::Linux, cookie);
            }
        }
        segment.seq = SeqNum(segment.seq.0.wrapping_sub(self.isn));
        if u32::from(packet.gso_size) < segment.payload {
            segment.gso_size = packet.gso_size;
        }
        sent.push((packet.at, segment, header::read(&packet.bytes)));
    }

    /// A packet of the script arrives; a burst is in segments of its `gso_size`.
    fn receive(
        &mut self,
        now: Instant,
        segment: &Segment,
        (fields, ae): (&IpFields, bool),
        sent: &mut Vec<RealSegment>,
    ) {
        let at = self.before(now, sent);
        let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        if opens && self.under_test == SocketUnderTest::Listening {
            self.under_test = SocketUnderTest::Passive;
            self.remote.set_port(self.next_port);
            self.next_port += 1;
            self.isn = 0;
        }
        let mut real = *segment;
        if segment.flags.has(Flags::ACK) {
            real.ack = SeqNum(segment.ack.0.wrapping_add(self.isn));
        }
        if let Options::Sack(blocks) = &mut real.options {
            let mut shifted = packet::SackBlocks::EMPTY;
            for block in blocks.as_slice() {
                let shift = |number: SeqNum| SeqNum(number.0.wrapping_add(self.isn));
                shifted
                    .push(packet::SackBlock { left: shift(block.left), right: shift(block.right) });
            }
            *blocks = shifted;
        }
        let between = Endpoints { src: self.remote, dst: self.local };
        let mut packets = Vec::new();
        super::world::split(&real, |segment| {
            let mut bytes = Vec::new();
            let emitted = emit(&segment, &between, 0, Offset(0), &mut bytes);
            header::patch(&mut bytes, fields, ae);
            packets.push(emitted.map(|()| bytes));
        });
        let packets: core::result::Result<Vec<_>, _> = packets.into_iter().collect();
        let packets = packets.map_err(|error| error.to_string());
        if let Some(packets) = self.check(packets) {
            let received = self.host.receive(at, &packets);
            self.check(received);
        }
    }

    /// An ICMP message about the segment `seq` arrives (RFC 792, RFC 4443).
    fn icmp(
        &mut self,
        now: Instant,
        seq: u32,
        (kind, mtu): (IcmpKind, u32),
        sent: &mut Vec<RealSegment>,
    ) {
        let at = self.before(now, sent);
        let seq = SeqNum(seq.wrapping_add(self.isn));
        let ip = match self.local {
            SocketAddr::V4(_) => IpVersion::V4,
            SocketAddr::V6(_) => IpVersion::V6,
        };
        let quoted = Segment { seq, ip, flags: Flags::ACK, ..Segment::default() };
        let back = Endpoints { src: self.local, dst: self.remote };
        let mut quote = Vec::new();
        let emitted = emit(&quoted, &back, 0, Offset(0), &mut quote);
        if self.check(emitted.map_err(|error| error.to_string())).is_none() {
            return;
        }
        let between = (self.remote.ip(), self.local.ip());
        let received = self.host.receive(at, &[icmp::message(between, kind, mtu, &quote)]);
        self.check(received);
    }

    /// Makes a system call and returns its number.
    fn call(&mut self, now: Instant, blocks: bool, text: &str, sent: &mut Vec<RealSegment>) -> u32 {
        self.made += 1;
        let at = self.before(now, sent);
        let call = format!("{} {} {text}", self.made, u32::from(blocks));
        let called = self.host.call(at, &call);
        self.check(called);
        self.made
    }
}

/// Returns whether a packet of the script is larger than the MTU of the host that it reaches.
pub(super) fn is_larger(event: &ScriptEvent, mtu: u32) -> bool {
    match &event.action {
        Action::Packet(packet) if !packet.outbound => match &packet.body {
            Body::Tcp(tcp) => tcp.len.value + 52 > mtu,
            _ => false,
        },
        _ => false,
    }
}

/// Returns the bytes of the TCP options of an IP packet.
fn option_bytes(packet: &[u8]) -> &[u8] {
    let start = match packet.first() {
        Some(first) if first >> 4 == 4 => usize::from(first & 15) * 4,
        _ => 40,
    };
    let header = packet.get(start..).unwrap_or_default();
    let len = header.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    header.get(20..len).unwrap_or_default()
}

impl Runner<'_> {
    /// An ICMP error about a segment arrives at the real host.
    pub(super) fn icmp_real(&mut self, message: &IcmpMessage, kind: IcmpKind) {
        self.world.icmp_real(message.seq, (kind, message.mtu.unwrap_or(0)));
    }

    /// A packet of the script arrives at the real host.
    pub(super) fn arrive_real(&mut self, packet: &ScriptPacket, tcp: &ScriptSegment) -> Result<()> {
        let flags = tcp.flags.value;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::RST);
        if opens && !self.real_synchronised {
            self.numbers.peer_isn = tcp.seq.value;
            self.real_synchronised = true;
        }
        let segment = self.segment_of(packet, tcp)?;
        self.world.arrive_real(&segment, (&packet.ip, tcp.ae));
        Ok(())
    }

    /// Sets a sysctl of the real host; one that it refuses is noted, as a shell goes on after it.
    pub(super) fn set_real(&mut self, name: &str, value: &str, span: ScriptSpan) -> Result<()> {
        let Some(number) = self.world.call_real(false, &format!("sysctl {name} {value}")) else {
            return Ok(());
        };
        // Some wait for a grace period of RCU.
        let latest = self.world.now() + COMMAND;
        let answer = loop {
            let real = self.world.real.as_mut();
            if let Some(answer) = real.and_then(|real| real.answers.remove(&number)) {
                break Some(answer);
            }
            if !self.world.step(latest) {
                break None;
            }
        };
        match answer {
            Some(answer) => {
                if answer.value != 0 {
                    let note = format!("the kernel refuses {name}={value} ({})", answer.error);
                    self.notes.push(note);
                }
                Ok(())
            }
            None => {
                self.check_real(span)?;
                self.unsupported(span, format!("the kernel does not answer to {name}={value}"))
            }
        }
    }

    /// Makes a call that does not block, and returns its result.
    fn ask_real(&mut self, text: &str) -> Option<RealAnswer> {
        let number = self.world.call_real(false, text)?;
        self.world.real.as_mut()?.answers.remove(&number)
    }

    /// Stops a script whose host has failed.
    pub(super) fn check_real(&self, span: ScriptSpan) -> Result<()> {
        match self.world.real.as_ref().and_then(|real| real.failure.as_ref()) {
            Some(failure) => self.unsupported(span, format!("the kernel has failed: {failure}")),
            None => Ok(()),
        }
    }
}

impl super::world::ScriptWorld {
    /// Starts the script's time after its first command, at a time that is as good as 0 for the kernel's timer wheel.
    pub(super) fn begin_script(&mut self) {
        let periods = self.now().as_nanos().div_ceil(WHEEL.as_nanos());
        let start = Instant::from_nanos(periods * WHEEL.as_nanos());
        while self.step(start) {}
        self.start_at(start);
        self.sent.clear();
    }

    fn arrive_real(&mut self, segment: &Segment, rest: (&IpFields, bool)) {
        self.log(self.now(), false, *segment);
        let now = self.now();
        let mut sent = Vec::new();
        if let Some(real) = &mut self.real {
            real.receive(now, segment, rest, &mut sent);
            real.settle(now, &mut sent);
        }
        self.take_real(sent);
    }

    fn icmp_real(&mut self, seq: u32, message: (IcmpKind, u32)) {
        let now = self.now();
        let mut sent = Vec::new();
        if let Some(real) = &mut self.real {
            real.icmp(now, seq, message, &mut sent);
            real.settle(now, &mut sent);
        }
        self.take_real(sent);
    }

    fn call_real(&mut self, blocks: bool, text: &str) -> Option<u32> {
        let now = self.now();
        let mut sent = Vec::new();
        let real = self.real.as_mut()?;
        let number = real.call(now, blocks, text, &mut sent);
        real.settle(now, &mut sent);
        self.take_real(sent);
        Some(number)
    }
}
