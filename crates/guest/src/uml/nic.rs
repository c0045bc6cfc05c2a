//! The network card of a guest: the back end of a vhost-user device (virtio-net) over one Unix
//! socket.
//!
//! Sources: the specifications of vhost-user (QEMU's documentation) and of VIRTIO 1.2, 5.1. The
//! network card uses in-band notifications (`VHOST_USER_PROTOCOL_F_INBAND_NOTIFICATIONS`): kicks
//! and calls are messages, so that a run does not depend on when a host process reads an event
//! descriptor.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use super::memory::{Buffer, Chain, GuestMemory, Ring};
use crate::guest::{GuestError, Packet};

/// Requests of the front end (`VhostUserRequestType`).
mod request {
    pub(super) const GET_FEATURES: u32 = 1;
    pub(super) const SET_FEATURES: u32 = 2;
    pub(super) const SET_OWNER: u32 = 3;
    pub(super) const RESET_OWNER: u32 = 4;
    pub(super) const SET_MEM_TABLE: u32 = 5;
    pub(super) const SET_VRING_NUM: u32 = 8;
    pub(super) const SET_VRING_ADDR: u32 = 9;
    pub(super) const SET_VRING_BASE: u32 = 10;
    pub(super) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(super) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(super) const SET_VRING_ENABLE: u32 = 18;
    pub(super) const SET_BACKEND_REQ_FD: u32 = 21;
    pub(super) const GET_CONFIG: u32 = 24;
    pub(super) const SET_CONFIG: u32 = 25;
    pub(super) const VRING_KICK: u32 = 35;
}

/// `VHOST_USER_BACKEND_VRING_CALL`.
const CALL: u32 = 4;
/// Flags of a message: version 1, a reply, a reply is requested.
const VERSION: u32 = 1;
const REPLY: u32 = 4;
const NEED_REPLY: u32 = 8;
/// Bytes of a message's head: request, flags, length of its body.
const HEAD: usize = 12;
/// A message has no larger body.
const LARGEST_BODY: u32 = 4_096;

/// Feature bits: virtio-net's, the ring's, vhost-user's.
const FEATURE_CHECKSUM: u64 = 1 << 0;
const FEATURE_GUEST_CHECKSUM: u64 = 1 << 1;
const FEATURE_MTU: u64 = 1 << 3;
const FEATURE_MAC: u64 = 1 << 5;
const FEATURE_TSO4: u64 = 1 << 11;
const FEATURE_TSO6: u64 = 1 << 12;
const FEATURE_TSO_ECN: u64 = 1 << 13;
/// Merged packets of the card: GUEST_TSO4, GUEST_TSO6, GUEST_ECN.
const FEATURES_LRO: u64 = 1 << 7 | 1 << 8 | 1 << 9;
const FEATURE_MERGED_BUFFERS: u64 = 1 << 15;
const FEATURE_INDIRECT: u64 = 1 << 28;
const FEATURE_PROTOCOL: u64 = 1 << 30;
const FEATURE_VERSION_1: u64 = 1 << 32;

/// Protocol features: REPLY_ACK, BACKEND_REQ, CONFIG, INBAND_NOTIFICATIONS.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

/// Indices of the two rings.
const RECEIVE: usize = 0;
const TRANSMIT: usize = 1;

/// `struct virtio_net_hdr_v1`: bytes, flags, kinds of bursts.
const HEADER: usize = 12;
const CHECKSUM_IS_VALID: u8 = 2;
const NO_BURST: u8 = 0;
const BURST_TCP4: u8 = 1;
const BURST_TCP6: u8 = 4;
/// An Ethernet header.
const ETHERNET: usize = 14;
/// Address of every network card: a path has one destination, so there is no neighbour discovery.
const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
/// Maximum packets that wait for buffers of the guest; more are dropped.
const MOST_WAITING: usize = 4_096;

/// Counters of the network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NicCounters {
    /// Packets sent by the guest; a burst counts once.
    pub sent: u64,
    /// Packets delivered to the guest.
    pub received: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Packets dropped because the guest offered no buffers.
    pub dropped: u64,
    /// Frames of the guest that are neither IPv4 nor IPv6.
    pub foreign: u64,
}

/// Effect of a message of the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// No effect on the world.
    Nothing,
    /// The transmit ring has packets; the message is not answered yet.
    Transmits(Pending),
    /// The receive ring may have buffers.
    Buffers,
}

/// A message that is not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    request: u32,
    wants_reply: bool,
}

/// The network card of one guest.
#[derive(Debug)]
pub(super) struct Nic {
    stream: UnixStream,
    /// What has been read of its socket and not yet served, and the descriptors that came with it.
    inbox: Vec<u8>,
    files: Vec<OwnedFd>,
    calls: Option<UnixStream>,
    memory: GuestMemory,
    rings: [Ring; 2],
    tso: bool,
    /// The card merges packets (LRO).
    lro: bool,
    mtu: u16,
    features: u64,
    /// Packets that have reached the network card but not the guest's memory, each with its header.
    waiting: VecDeque<Vec<u8>>,
    /// Chains of the transmit ring to be returned.
    sent: Vec<u16>,
    chain: Chain,
    pub(super) counters: NicCounters,
}

impl Nic {
    pub(super) fn new(stream: UnixStream, tso: bool, lro: bool, mtu: u16) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
            files: Vec::new(),
            calls: None,
            memory: GuestMemory::default(),
            rings: Default::default(),
            tso,
            lro,
            mtu,
            features: 0,
            waiting: VecDeque::new(),
            sent: Vec::new(),
            chain: Chain::default(),
            counters: NicCounters::default(),
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Returns the socket that receives the answers to calls.
    pub(super) fn calls_fd(&self) -> Option<BorrowedFd<'_>> {
        self.calls.as_ref().map(AsFd::as_fd)
    }

    /// Returns whether chains of the transmit ring wait to be returned.
    pub(super) fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Returns whether packets wait for buffers.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    const fn offers(&self) -> u64 {
        let mut offers = FEATURE_VERSION_1 | FEATURE_PROTOCOL | FEATURE_INDIRECT;
        offers |= FEATURE_MAC | FEATURE_MTU;
        offers |= FEATURE_CHECKSUM | FEATURE_GUEST_CHECKSUM;
        if self.tso {
            offers |= FEATURE_TSO4 | FEATURE_TSO6 | FEATURE_TSO_ECN;
        }
        if self.lro {
            // Without, every packet takes a buffer of the same size.
            offers |= FEATURES_LRO | FEATURE_MERGED_BUFFERS;
        }
        offers
    }

    /// Reads one message, and answers it unless it is a kick of the transmit ring.
    pub(super) fn serve(&mut self) -> Result<Served, GuestError> {
        let (head, body) = self.next_message()?;
        let (request, flags) = (u32_at(&head, 0), u32_at(&head, 4));
        let wants_reply = flags & NEED_REPLY != 0;
        let pending = Pending { request, wants_reply };
        let mut reply = None;
        let ring = u32_at(&body, 0) as usize;
        match request {
            request::GET_FEATURES => reply = Some(self.offers().to_ne_bytes().to_vec()),
            request::SET_FEATURES => self.features = u64_at(&body, 0),
            request::SET_OWNER
            | request::RESET_OWNER
            | request::SET_CONFIG
            | request::SET_PROTOCOL_FEATURES => {}
            request::SET_MEM_TABLE => self.set_memory(&body)?,
            request::SET_VRING_NUM => self.ring(ring)?.size = u32_at(&body, 4) as u16,
            request::SET_VRING_ADDR => {
                let [descriptors, used, available] = [8, 16, 24].map(|at| u64_at(&body, at));
                let ring = self.ring(ring)?;
                (ring.descriptors, ring.used, ring.available) = (descriptors, used, available);
            }
            request::SET_VRING_BASE => self.ring(ring)?.set_base(u32_at(&body, 4) as u16),
            request::GET_PROTOCOL_FEATURES => {
                reply = Some(PROTOCOL_FEATURES.to_ne_bytes().to_vec());
            }
            request::SET_VRING_ENABLE => self.ring(ring)?.enabled = u32_at(&body, 4) != 0,
            request::SET_BACKEND_REQ_FD => self.calls = self.files.pop().map(UnixStream::from),
            request::GET_CONFIG => reply = Some(self.config(&body)),
            request::VRING_KICK if ring == TRANSMIT => return Ok(Served::Transmits(pending)),
            request::VRING_KICK => {
                self.answer(pending, None)?;
                return Ok(Served::Buffers);
            }
            other => {
                return Err(GuestError::protocol(format!("vhost-user request {other} is unknown")));
            }
        }
        self.answer(pending, reply)?;
        Ok(Served::Nothing)
    }

    /// Whether a whole message has been read and not yet served: its socket need not be readable then.
    pub(super) fn has_message(&self) -> bool {
        self.inbox.len() >= HEAD && self.inbox.len() - HEAD >= u32_at(&self.inbox, 8) as usize
    }

    /// The next message of the guest: head and body.
    fn next_message(&mut self) -> Result<([u8; HEAD], Vec<u8>), GuestError> {
        while !self.has_message() {
            if self.inbox.len() >= HEAD && u32_at(&self.inbox, 8) > LARGEST_BODY {
                let size = u32_at(&self.inbox, 8);
                return Err(GuestError::protocol(format!("a vhost-user message of {size} bytes")));
            }
            receive(&self.stream, &mut self.inbox, &mut self.files)
                .map_err(GuestError::system("its vhost-user socket"))?;
        }
        let rest = self.inbox.split_off(HEAD + u32_at(&self.inbox, 8) as usize);
        let body = self.inbox.split_off(HEAD);
        let mut head = [0; HEAD];
        head.copy_from_slice(&self.inbox);
        self.inbox = rest;
        Ok((head, body))
    }

    fn ring(&mut self, number: usize) -> Result<&mut Ring, GuestError> {
        let unknown = || GuestError::protocol(format!("the card has no ring {number}"));
        self.rings.get_mut(number).ok_or_else(unknown)
    }

    fn set_memory(&mut self, body: &[u8]) -> Result<(), GuestError> {
        self.memory = GuestMemory::default();
        let files = core::mem::take(&mut self.files);
        for (region, file) in files.into_iter().enumerate().take(u32_at(body, 0) as usize) {
            let at = 8 + 32 * region;
            let [start, len, offset] = [0, 8, 24].map(|field| u64_at(body, at + field));
            self.memory.add(start, len, File::from(file), offset)?;
        }
        Ok(())
    }

    /// Returns the configuration space from the requested offset on (VIRTIO 1.2, 5.1.4).
    fn config(&self, body: &[u8]) -> Vec<u8> {
        let mut space = Vec::from(MAC);
        space.extend_from_slice(&[1, 0, 1, 0]);
        space.extend_from_slice(&self.mtu.to_le_bytes());
        let (offset, len) = (u32_at(body, 0) as usize, u32_at(body, 4) as usize);
        space.resize((offset + len).min(LARGEST_BODY as usize).max(space.len()), 0);
        let mut reply = body.get(..12).unwrap_or_default().to_vec();
        reply.extend_from_slice(space.get(offset..offset + len).unwrap_or_default());
        reply
    }

    /// Answers a message.
    pub(super) fn answer(
        &self,
        message: Pending,
        reply: Option<Vec<u8>>,
    ) -> Result<(), GuestError> {
        let reply = reply.or_else(|| message.wants_reply.then(|| vec![0; 8]));
        let Some(body) = reply else { return Ok(()) };
        let mut bytes = Vec::with_capacity(12 + body.len());
        for word in [message.request, VERSION | REPLY, body.len() as u32] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(&body);
        (&self.stream).write_all(&bytes).map_err(GuestError::system("its vhost-user socket"))
    }

    /// Takes all packets from the transmit ring and passes each to `send`.
    pub(super) fn transmit(&mut self, mut send: impl FnMut(&Packet<'_>)) -> Result<(), GuestError> {
        let mut frame = Vec::new();
        let mut chain = core::mem::take(&mut self.chain);
        while self.rings[TRANSMIT].take(&self.memory, &mut chain)? {
            let len: usize = chain.buffers.iter().map(|buffer| buffer.len as usize).sum();
            if len > 1 << 17 {
                return Err(GuestError::protocol(format!("a frame of {len} bytes")));
            }
            frame.resize(len, 0);
            let mut at = 0;
            for &Buffer { address, len } in &chain.buffers {
                self.memory.read(address, &mut frame[at..at + len as usize])?;
                at += len as usize;
            }
            self.sent.push(chain.head);
            self.counters.sent += 1;
            match ip_packet(&frame) {
                Some(packet) => send(&packet),
                None => self.counters.foreign += 1,
            }
        }
        self.chain = chain;
        Ok(())
    }

    /// Returns the chains of sent packets to the guest. True if the guest wants an interrupt.
    pub(super) fn complete_transmits(&mut self) -> Result<bool, GuestError> {
        let ring = &mut self.rings[TRANSMIT];
        ring.give_back(&self.memory, self.sent.drain(..).map(|head| (head, 0)))?;
        ring.wants_interrupt(&self.memory)
    }

    /// Processes a packet that reaches the network card.
    pub(super) fn arrive(&mut self, packet: &Packet<'_>) {
        if self.waiting.len() >= MOST_WAITING {
            self.counters.dropped += 1;
            return;
        }
        let kind: [u8; 2] = match packet.bytes.first() {
            Some(first) if first >> 4 == 6 => [0x86, 0xdd],
            _ => [8, 0],
        };
        let mut frame = Vec::with_capacity(HEADER + ETHERNET + packet.bytes.len());
        frame.push(CHECKSUM_IS_VALID);
        frame.resize(HEADER, 0);
        if packet.gso_size > 0 {
            frame[1] = if kind == [8, 0] { BURST_TCP4 } else { BURST_TCP6 };
            frame[4..6].copy_from_slice(&packet.gso_size.to_le_bytes());
        }
        frame.extend_from_slice(&MAC);
        frame.extend_from_slice(&MAC);
        frame.extend_from_slice(&kind);
        frame.extend_from_slice(packet.bytes);
        self.waiting.push_back(frame);
    }

    /// Moves packets into the available buffers of the guest. True if the guest wants an interrupt.
    pub(super) fn fill(&mut self) -> Result<bool, GuestError> {
        let mut filled = Vec::new();
        let ring = &mut self.rings[RECEIVE];
        while let Some(frame) = self.waiting.front_mut() {
            let (mut chains, mut room) = (Vec::new(), 0);
            while room < frame.len() {
                let mut chain = Chain::default();
                if !ring.take(&self.memory, &mut chain)? {
                    break;
                }
                room += chain.buffers.iter().map(|buffer| buffer.len as usize).sum::<usize>();
                chains.push(chain);
                if self.features & FEATURE_MERGED_BUFFERS == 0 {
                    break;
                }
            }
            if room < frame.len() {
                ring.put_back(chains.len() as u16);
                break;
            }
            frame[10..12].copy_from_slice(&(chains.len() as u16).to_le_bytes());
            let mut rest = &frame[..];
            for chain in &chains {
                let before = rest.len();
                for &Buffer { address, len } in &chain.buffers {
                    let (part, later) = rest.split_at(rest.len().min(len as usize));
                    self.memory.write(address, part)?;
                    rest = later;
                }
                filled.push((chain.head, (before - rest.len()) as u32));
            }
            self.counters.received += 1;
            self.waiting.pop_front();
        }
        if filled.is_empty() {
            return Ok(false);
        }
        ring.give_back(&self.memory, filled)?;
        ring.wants_interrupt(&self.memory)
    }

    /// Calls the guest for one ring; the answer arrives on [`Nic::calls_fd`].
    pub(super) fn call(&mut self, transmit: bool) -> Result<(), GuestError> {
        let Some(calls) = &self.calls else {
            return Err(GuestError::protocol("it has no socket for calls"));
        };
        self.counters.interrupts += 1;
        let ring = if transmit { TRANSMIT } else { RECEIVE };
        let mut bytes = [0; 20];
        for (at, word) in [CALL, VERSION | NEED_REPLY, 8, ring as u32, 0].into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        let mut calls: &UnixStream = calls;
        calls.write_all(&bytes).map_err(GuestError::system("its socket for calls"))
    }

    /// Reads the answer to a call.
    pub(super) fn finish_call(&self) -> Result<(), GuestError> {
        let Some(mut calls) = self.calls.as_ref() else { return Ok(()) };
        let mut bytes = [0; 20];
        calls.read_exact(&mut bytes).map_err(GuestError::system("its socket for calls"))?;
        match u64_at(&bytes, 12) {
            0 => Ok(()),
            status => Err(GuestError::protocol(format!("it refuses an interrupt: {status}"))),
        }
    }
}

/// Returns the IP packet of a frame with its virtio-net header; `None` for another protocol.
fn ip_packet(frame: &[u8]) -> Option<Packet<'_>> {
    let (header, frame) = frame.split_at_checked(HEADER)?;
    let (ethernet, bytes) = frame.split_at_checked(ETHERNET)?;
    if !matches!(ethernet[12..], [8, 0] | [0x86, 0xdd]) {
        return None;
    }
    let burst = header[1] & 0x7f != NO_BURST;
    let gso_size = if burst { u16::from_le_bytes([header[4], header[5]]) } else { 0 };
    Some(Packet { bytes, gso_size })
}

/// Appends what is there to be read, and the descriptors that come with it.
fn receive(
    stream: &UnixStream,
    into: &mut Vec<u8>,
    files: &mut Vec<OwnedFd>,
) -> Result<(), io::Error> {
    let mut bytes = [0; 512];
    let mut space = cmsg_space!([std::os::fd::RawFd; 8]);
    let mut data = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut data, Some(&mut space), flags)?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(descriptors) = control {
            files.extend(descriptors.into_iter().map(owned));
        }
    }
    let len = message.bytes;
    if len == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    into.extend_from_slice(&bytes[..len]);
    Ok(())
}

/// Takes ownership of a descriptor received from a socket.
#[expect(unsafe_code, reason = "nix gives received descriptors as numbers")]
fn owned(descriptor: std::os::fd::RawFd) -> OwnedFd {
    // SAFETY: the kernel has made this descriptor for the message; nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(request: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [request, VERSION | NEED_REPLY, body.len() as u32] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(body);
        bytes
    }

    fn exchange(nic: &mut Nic, guest: &mut UnixStream, request: u32, body: &[u8]) -> Vec<u8> {
        guest.write_all(&message(request, body)).unwrap();
        assert_eq!(nic.serve().unwrap(), Served::Nothing);
        let mut head = [0; 12];
        guest.read_exact(&mut head).unwrap();
        assert_eq!((u32_at(&head, 0), u32_at(&head, 4)), (request, VERSION | REPLY));
        let mut body = vec![0; u32_at(&head, 8) as usize];
        guest.read_exact(&mut body).unwrap();
        body
    }

    fn nic(tso: bool) -> (Nic, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Nic::new(ours, tso, false, 1_500), theirs)
    }

    #[test]
    fn a_card_without_tso_offers_none() {
        for tso in [false, true] {
            let (mut nic, mut guest) = nic(tso);
            let offered = u64_at(&exchange(&mut nic, &mut guest, request::GET_FEATURES, &[]), 0);
            assert_eq!(offered & FEATURE_TSO4 != 0, tso);
            assert_eq!(offered & FEATURE_VERSION_1, FEATURE_VERSION_1);
            // A ring must not depend on the time at which an index was written (EVENT_IDX).
            assert_eq!(offered & 1 << 29, 0);
        }
    }

    #[test]
    fn the_configuration_has_address_and_mtu() {
        let (mut nic, mut guest) = nic(true);
        let mut asked = [0; 24];
        asked[4] = 12;
        let body = exchange(&mut nic, &mut guest, request::GET_CONFIG, &asked);
        assert_eq!(body[12..18], MAC);
        assert_eq!(body[22..24], 1_500_u16.to_le_bytes());
    }

    #[test]
    fn an_unknown_request_and_a_third_ring_are_errors() {
        let (mut first, mut guest) = nic(true);
        guest.write_all(&message(99, &[])).unwrap();
        assert!(first.serve().is_err());
        let (mut second, mut guest) = nic(true);
        guest.write_all(&message(request::SET_VRING_NUM, &[2, 0, 0, 0, 0, 1, 0, 0])).unwrap();
        assert!(second.serve().is_err());
    }

    #[test]
    fn a_frame_is_an_ip_packet_or_foreign() {
        let mut frame = vec![0; HEADER + ETHERNET + 3];
        frame[HEADER + 12..HEADER + 14].copy_from_slice(&[8, 0]);
        frame[1] = 0x81;
        frame[4..6].copy_from_slice(&1_448_u16.to_le_bytes());
        let packet = ip_packet(&frame).unwrap();
        assert_eq!(packet, Packet { bytes: &[0; 3], gso_size: 1_448 });
        frame[1] = NO_BURST;
        assert_eq!(ip_packet(&frame).unwrap().gso_size, 0);
        // ARP.
        frame[HEADER + 13] = 6;
        assert_eq!(ip_packet(&frame), None);
        assert_eq!(ip_packet(&frame[..20]), None);
    }
}
