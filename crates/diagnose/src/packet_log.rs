//! The packets of a connection in a compact form, without loss.
//!
//! A packet is stored as the difference to what the packets before it predict: times and frames to
//! the previous packet, sequence numbers and timestamps to the previous ones of the same host, the
//! acknowledgment number and the echoed timestamp to those of the other host. The numbers are
//! written with seven bits a byte (LEB128), signed ones with the sign in the lowest bit. A packet
//! takes about 20 bytes, a sixth of a [`CapturedPacket`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use packet::wire::Endpoints;
use packet::{
    Dir, FastOpenOption, Flags, IpVersion, Options, SackBlock, SackBlocks, Segment, SynExtras,
    SynLayout, SynOptions, Timestamps,
};
use units::{FlowId, Instant, SeqNum};

use crate::CapturedPacket;

#[cfg(test)]
mod tests;

/// Bits of the second byte of a packet.
mod first {
    pub(super) const REVERSE: u8 = 1;
    /// ECN field, two bits.
    pub(super) const ECN: u8 = 1;
    pub(super) const OPTIONS_CUT: u8 = 1 << 3;
    pub(super) const TIMESTAMPS: u8 = 1 << 4;
    pub(super) const SYN_OPTIONS: u8 = 1 << 5;
    pub(super) const SACK: u8 = 1 << 6;
    /// The capture truncated the packet: the captured length is written.
    pub(super) const CUT: u8 = 1 << 7;
}

/// Bits of the third byte of a packet.
mod second {
    pub(super) const V6: u8 = 1;
    /// Offloads merged the packet: `gso_size` and `nsegs` are written.
    pub(super) const MERGED: u8 = 1 << 1;
    /// The time to live is not that of the host's packet before.
    pub(super) const TTL: u8 = 1 << 2;
    pub(super) const FLOW: u8 = 1 << 3;
    pub(super) const ID: u8 = 1 << 4;
    pub(super) const PAYLOAD: u8 = 1 << 5;
    pub(super) const ACK: u8 = 1 << 6;
    pub(super) const WINDOW: u8 = 1 << 7;
}

/// Bits of the first byte of the options of a SYN.
mod syn {
    pub(super) const SCALE: u8 = 1;
    pub(super) const SACK_PERMITTED: u8 = 1 << 1;
    pub(super) const LINUX: u8 = 1 << 2;
    pub(super) const FAST_OPEN: u8 = 1 << 3;
    pub(super) const EXPERIMENTAL: u8 = 1 << 4;
    /// Neither FreeBSD's layout nor Linux's.
    pub(super) const OTHER: u8 = 1 << 5;
    /// Requests that are only read: a byte with the bits of `extras` is written.
    pub(super) const EXTRAS: u8 = 1 << 6;
}

/// Bits of the byte of requests that are only read; with `FAST_OPEN` the length of the cookie follows.
mod extras {
    pub(super) const MULTIPATH: u8 = 1;
    pub(super) const ACCURATE_ECN: u8 = 1 << 1;
    pub(super) const FAST_OPEN: u8 = 1 << 2;
}

/// What the packets so far predict about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Prediction {
    at: u64,
    frame: u64,
    /// Next sequence number of each host.
    seq: [u32; 2],
    /// Last timestamp of each host.
    stamp: [u32; 2],
    /// Last time to live of each host.
    ttl: [u8; 2],
}

impl Prediction {
    fn follow(&mut self, packet: &CapturedPacket) {
        let segment = &packet.segment;
        (self.at, self.frame) = (packet.at.as_nanos(), packet.frame);
        let dir = segment.dir as usize;
        self.ttl[dir] = packet.ttl;
        self.seq[dir] = segment.seq.0.wrapping_add(segment.seq_len());
        if let Some(stamps) = segment.timestamps {
            self.stamp[dir] = stamps.val;
        }
    }
}

/// Longest encoding of a packet: all fields at their longest, and four SACK blocks.
const LONGEST: usize = 128;
/// Bytes by which a log grows. Doubling would leave a third of the memory unused.
const STEP: usize = 32;

/// The bytes of one packet.
struct PacketBytes {
    bytes: [u8; LONGEST],
    len: usize,
}

impl PacketBytes {
    fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    /// The difference of two 32-bit numbers that wrap.
    fn step(&mut self, to: u32, from: u32) {
        self.signed(i64::from(to.wrapping_sub(from).cast_signed()));
    }

    fn two(&mut self, number: u16) {
        let [high, low] = number.to_be_bytes();
        self.byte(high);
        self.byte(low);
    }
}

/// Packets that are appended one by one.
#[derive(Debug, Clone)]
pub(crate) struct PacketLog {
    bytes: Vec<u8>,
    next: Prediction,
}

impl PacketLog {
    /// A log of the connection between `ends`; `numbers` are kept with it.
    pub(crate) fn new(ends: Endpoints, numbers: [u32; 4]) -> Self {
        let mut header = PacketBytes { bytes: [0; LONGEST], len: 0 };
        numbers.into_iter().for_each(|number| header.number(u64::from(number)));
        // A log may have an IPv6 address at one end and an IPv4 address at the other.
        header.byte(u8::from(ends.src.is_ipv6()) | u8::from(ends.dst.is_ipv6()) << 1);
        for end in [ends.src, ends.dst] {
            match end.ip() {
                IpAddr::V4(v4) => v4.octets().into_iter().for_each(|byte| header.byte(byte)),
                IpAddr::V6(v6) => v6.octets().into_iter().for_each(|byte| header.byte(byte)),
            }
            header.two(end.port());
        }
        let mut log = Self { bytes: Vec::new(), next: Prediction::default() };
        log.append(&header);
        log
    }

    /// The same packets with other numbers.
    pub(crate) fn with_numbers(&self, numbers: [u32; 4]) -> Self {
        let reader = self.reader();
        let mut log = Self::new(reader.ends(), numbers);
        log.bytes.extend_from_slice(reader.rest);
        log.next = self.next;
        log
    }

    /// Bytes of the log.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a packet.
    pub(crate) fn push(&mut self, packet: &CapturedPacket) {
        self.append(&encode(packet, &self.next));
        self.next.follow(packet);
    }

    fn append(&mut self, packed: &PacketBytes) {
        if self.bytes.capacity() - self.bytes.len() < packed.len {
            self.bytes.reserve_exact(packed.len.next_multiple_of(STEP));
        }
        self.bytes.extend_from_slice(&packed.bytes[..packed.len]);
    }

    /// The packets so far.
    pub(crate) fn reader(&self) -> PacketLogReader<'_> {
        PacketLogReader::new(&self.bytes)
    }

    /// The bytes, which [`PacketLogReader::new`] reads.
    pub(crate) fn into_bytes(self) -> Box<[u8]> {
        self.bytes.into_boxed_slice()
    }
}

fn encode(packet: &CapturedPacket, next: &Prediction) -> PacketBytes {
    let mut out = PacketBytes { bytes: [0; LONGEST], len: 0 };
    let segment = &packet.segment;
    let dir = segment.dir as usize;
    let bit = |is: bool, bit: u8| if is { bit } else { 0 };
    let is_cut = u64::from(packet.captured) != segment.wire_len().get();
    let sack = segment.sack_blocks();
    let is_merged = segment.gso_size != 0 || segment.nsegs != 0;
    out.byte(segment.flags.0);
    out.byte(
        bit(segment.dir == Dir::Reverse, first::REVERSE)
            | (segment.ecn & 3) << first::ECN
            | bit(packet.options_cut, first::OPTIONS_CUT)
            | bit(segment.timestamps.is_some(), first::TIMESTAMPS)
            | bit(segment.syn_options().is_some(), first::SYN_OPTIONS)
            | bit(!sack.is_empty(), first::SACK)
            | bit(is_cut, first::CUT),
    );
    out.byte(
        bit(segment.ip == IpVersion::V6, second::V6)
            | bit(is_merged, second::MERGED)
            | bit(packet.ttl != next.ttl[dir], second::TTL)
            | bit(segment.flow != FlowId::default(), second::FLOW)
            | bit(packet.id != 0, second::ID)
            | bit(segment.payload != 0, second::PAYLOAD)
            | bit(segment.ack.0 != 0, second::ACK)
            | bit(segment.window != 0, second::WINDOW),
    );
    out.signed(packet.at.as_nanos().wrapping_sub(next.at).cast_signed());
    out.signed(packet.frame.wrapping_sub(next.frame).cast_signed());
    out.step(segment.seq.0, next.seq[dir]);
    if segment.ack.0 != 0 {
        out.step(segment.ack.0, next.seq[1 - dir]);
    }
    if segment.window != 0 {
        out.two(segment.window);
    }
    if segment.payload != 0 {
        out.number(u64::from(segment.payload));
    }
    if packet.id != 0 {
        out.two(packet.id);
    }
    if is_merged {
        out.two(segment.gso_size);
        out.two(segment.nsegs);
    }
    if packet.ttl != next.ttl[dir] {
        out.byte(packet.ttl);
    }
    if segment.flow != FlowId::default() {
        out.number(u64::from(segment.flow.0));
    }
    if is_cut {
        out.number(u64::from(packet.captured));
    }
    if let Some(stamps) = segment.timestamps {
        out.step(stamps.val, next.stamp[dir]);
        out.step(stamps.ecr, next.stamp[1 - dir]);
    }
    if let Some(options) = segment.syn_options() {
        encode_syn(options, &mut out);
    }
    if !sack.is_empty() {
        out.byte(sack.len() as u8);
        for block in sack {
            out.step(block.left.0, segment.ack.0);
            out.step(block.right.0, block.left.0);
        }
    }
    out
}

fn encode_syn(options: &SynOptions, out: &mut PacketBytes) {
    let bit = |is: bool, bit: u8| if is { bit } else { 0 };
    let experimental = options.fast_open.is_some_and(|option| option.experimental);
    out.byte(
        bit(options.window_scale.is_some(), syn::SCALE)
            | bit(options.sack_permitted, syn::SACK_PERMITTED)
            | bit(options.layout == SynLayout::Linux, syn::LINUX)
            | bit(options.layout == SynLayout::Other, syn::OTHER)
            | bit(options.fast_open.is_some(), syn::FAST_OPEN)
            | bit(experimental, syn::EXPERIMENTAL)
            | bit(options.extras != SynExtras::NONE, syn::EXTRAS),
    );
    out.two(options.mss);
    if let Some(scale) = options.window_scale {
        out.byte(scale);
    }
    if let Some(option) = &options.fast_open {
        out.byte(option.cookie().len() as u8);
        option.cookie().iter().for_each(|&byte| out.byte(byte));
    }
    if options.extras != SynExtras::NONE {
        let SynExtras { multipath, accurate_ecn, fast_open } = options.extras;
        out.byte(
            bit(multipath, extras::MULTIPATH)
                | bit(accurate_ecn, extras::ACCURATE_ECN)
                | bit(fast_open.is_some(), extras::FAST_OPEN),
        );
        if let Some(cookie) = fast_open {
            out.byte(cookie);
        }
    }
}

/// Reads the packets of a log in order.
#[derive(Debug, Clone)]
pub(crate) struct PacketLogReader<'a> {
    rest: &'a [u8],
    numbers: [u32; 4],
    ends: Endpoints,
    next: Prediction,
}

impl<'a> PacketLogReader<'a> {
    /// Reads `bytes`, which a [`PacketLog`] wrote.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let ends = Endpoints { src: nowhere, dst: nowhere };
        let mut log = Self { rest: bytes, numbers: [0; 4], ends, next: Prediction::default() };
        log.numbers = core::array::from_fn(|_| log.number() as u32);
        let v6 = log.byte();
        let mut end = |bit: u8| {
            let ip: IpAddr = match v6 & bit != 0 {
                true => Ipv6Addr::from(log.array::<16>()).into(),
                false => Ipv4Addr::from(log.array::<4>()).into(),
            };
            SocketAddr::new(ip, log.two())
        };
        log.ends = Endpoints { src: end(1), dst: end(2) };
        log
    }

    /// The numbers that the log was created with.
    pub(crate) const fn numbers(&self) -> [u32; 4] {
        self.numbers
    }

    /// The hosts of the connection.
    pub(crate) const fn ends(&self) -> Endpoints {
        self.ends
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let Some((bytes, rest)) = self.rest.split_first_chunk::<N>() else { return [0; N] };
        self.rest = rest;
        *bytes
    }

    fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    fn two(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift >= u64::BITS {
                return number;
            }
        }
    }

    fn signed(&mut self) -> i64 {
        let number = self.number();
        (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
    }

    fn step(&mut self, from: u32) -> u32 {
        from.wrapping_add(self.signed() as u32)
    }

    fn syn_options(&mut self) -> SynOptions {
        let bits = self.byte();
        let has = |bit: u8| bits & bit != 0;
        let mss = self.two();
        let window_scale = has(syn::SCALE).then(|| self.byte());
        let fast_open = has(syn::FAST_OPEN).then(|| {
            let len = usize::from(self.byte()).min(self.rest.len());
            let (cookie, rest) = self.rest.split_at(len);
            self.rest = rest;
            FastOpenOption::new(cookie, has(syn::EXPERIMENTAL)).unwrap_or_default()
        });
        let layout = match (has(syn::LINUX), has(syn::OTHER)) {
            (true, _) => SynLayout::Linux,
            (false, true) => SynLayout::Other,
            (false, false) => SynLayout::FreeBsd,
        };
        let sack_permitted = has(syn::SACK_PERMITTED);
        let extras = if has(syn::EXTRAS) { self.syn_extras() } else { SynExtras::NONE };
        SynOptions { mss, window_scale, sack_permitted, layout, fast_open, extras }
    }

    fn syn_extras(&mut self) -> SynExtras {
        let bits = self.byte();
        SynExtras {
            multipath: bits & extras::MULTIPATH != 0,
            accurate_ecn: bits & extras::ACCURATE_ECN != 0,
            fast_open: (bits & extras::FAST_OPEN != 0).then(|| self.byte()),
        }
    }

    fn sack(&mut self, ack: u32) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        for _ in 0..self.byte() {
            let left = self.step(ack);
            let right = self.step(left);
            blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
        }
        blocks
    }
}

impl Iterator for PacketLogReader<'_> {
    type Item = CapturedPacket;

    fn next(&mut self) -> Option<CapturedPacket> {
        if self.rest.is_empty() {
            return None;
        }
        let [flags, one, two] = self.array();
        let is = |bit: u8| one & bit != 0;
        let has = |bit: u8| two & bit != 0;
        let dir = if is(first::REVERSE) { Dir::Reverse } else { Dir::Forward };
        let (own, peer) = (dir as usize, dir.reversed() as usize);
        let at = self.next.at.wrapping_add(self.signed().cast_unsigned());
        let frame = self.next.frame.wrapping_add(self.signed().cast_unsigned());
        // The fields are in the order in which they were written.
        let seq = self.step(self.next.seq[own]);
        let ack = if has(second::ACK) { self.step(self.next.seq[peer]) } else { 0 };
        let window = if has(second::WINDOW) { self.two() } else { 0 };
        let payload = if has(second::PAYLOAD) { self.number() as u32 } else { 0 };
        let id = if has(second::ID) { self.two() } else { 0 };
        let merged = has(second::MERGED);
        let [gso_size, nsegs] = if merged { [self.two(), self.two()] } else { [0; 2] };
        let ttl = if has(second::TTL) { self.byte() } else { self.next.ttl[own] };
        let flow = if has(second::FLOW) { FlowId(self.number() as u32) } else { FlowId::default() };
        let captured = is(first::CUT).then(|| self.number() as u32);
        let timestamps = is(first::TIMESTAMPS).then(|| Timestamps {
            val: self.step(self.next.stamp[own]),
            ecr: self.step(self.next.stamp[peer]),
        });
        let options = if is(first::SYN_OPTIONS) {
            Options::Syn(self.syn_options())
        } else if is(first::SACK) {
            Options::Sack(self.sack(ack))
        } else {
            Options::None
        };
        let segment = Segment {
            flow,
            seq: SeqNum(seq),
            payload,
            dir,
            ip: if has(second::V6) { IpVersion::V6 } else { IpVersion::V4 },
            ecn: one >> first::ECN & 3,
            flags: Flags(flags),
            ack: SeqNum(ack),
            window,
            gso_size,
            nsegs,
            timestamps,
            options,
        };
        let packet = CapturedPacket {
            at: Instant::from_nanos(at),
            frame,
            segment,
            captured: captured.unwrap_or_else(|| segment.wire_len().get() as u32),
            id,
            ttl,
            options_cut: is(first::OPTIONS_CUT),
        };
        self.next.follow(&packet);
        Some(packet)
    }
}
