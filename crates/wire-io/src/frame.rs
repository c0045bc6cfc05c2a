//! Frames of a TUN device with offloads: a virtio-net header (VIRTIO 1.2, 5.1.6) and an IP packet,
//! which can be an unsegmented burst (TSO) or an aggregate (GRO, LRO).

use std::net::IpAddr;

use packet::wire::{EmitError, Endpoints, Link, ParsedPacket, emit_payload, emit_too_big, parse};
use packet::{IpVersion, PacketTooBig, Segment};
use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr};

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum covers only the pseudo header.
const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_NONE`, `_TCPV4`, `_TCPV6`, and the bit `_ECN`.
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_ECN: u8 = 0x80;

/// Offset of the checksum in a TCP header.
const CHECKSUM: usize = 16;

/// A packet sent by a real host.
#[derive(Debug, Clone, Copy)]
pub struct TunFrame<'a> {
    /// Addresses and ports.
    pub between: Endpoints,
    /// The segment; a burst has its `gso_size`.
    pub segment: Segment,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Error of a packet that the simulator cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// Not TCP, e.g. multicasts of the kernel.
    NotTcp,
    /// The checksum or a header is invalid.
    Corrupted,
}

impl core::fmt::Display for FrameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotTcp => "not a TCP packet",
            Self::Corrupted => "an invalid checksum or header",
        })
    }
}

impl core::error::Error for FrameError {}

/// Parses a frame from a device.
///
/// # Errors
/// [`FrameError`] if it is not a valid TCP segment.
pub fn read(bytes: &[u8]) -> Result<TunFrame<'_>, FrameError> {
    let header = VirtioNetHdr::decode(bytes).map_err(|_| FrameError::Corrupted)?;
    let ip = &bytes[VIRTIO_NET_HDR_LEN..];
    let parsed = parse(ip, Link::Raw).map_err(|_| FrameError::NotTcp)?;
    if parsed.payload.len() != parsed.segment.payload as usize {
        return Err(FrameError::Corrupted);
    }
    // A packet with a partial checksum never left the machine and cannot be corrupted.
    let summed = header.flags & NEEDS_CHECKSUM == 0;
    if summed && !checksum_is_good(ip, &parsed) {
        return Err(FrameError::Corrupted);
    }
    let mut segment = parsed.segment;
    let burst = header.gso_type != GSO_NONE && u32::from(header.gso_size) < segment.payload;
    segment.gso_size = if burst { header.gso_size } else { 0 };
    Ok(TunFrame { between: parsed.endpoints, segment, payload: parsed.payload })
}

/// Writes an ICMP error about a segment between these endpoints as a frame; `out` is cleared first.
///
/// # Errors
/// [`EmitError`] if the endpoints are of another IP version.
pub fn write_too_big(
    message: &PacketTooBig,
    between: &Endpoints,
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    out.clear();
    out.resize(VIRTIO_NET_HDR_LEN, 0);
    emit_too_big(message, between, out)
}

/// Writes a segment for a device into `out`, which is cleared first.
///
/// A single packet has a full checksum; an aggregate has `CHECKSUM_PARTIAL`, which the kernel does
/// not verify, as between two hosts on one machine.
///
/// # Errors
/// [`EmitError`] if it cannot be encoded.
pub fn write(
    segment: &Segment,
    between: &Endpoints,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    out.clear();
    out.resize(VIRTIO_NET_HDR_LEN, 0);
    emit_payload(segment, between, 0, payload, out)?;
    let size = match (segment.gso_size, segment.nsegs) {
        (0, packets @ 2..) => segment.payload.div_ceil(u32::from(packets)),
        (size, _) => u32::from(size),
    };
    if size == 0 || segment.payload <= size {
        return Ok(());
    }
    let ip_len = segment.ip.header_len();
    let at = VIRTIO_NET_HDR_LEN + ip_len as usize + CHECKSUM;
    let tcp_len = out.len() - VIRTIO_NET_HDR_LEN - ip_len as usize;
    let partial = fold(pseudo_header(between, tcp_len));
    out[at..at + 2].copy_from_slice(&partial.to_be_bytes());
    let ecn = if segment.flags.has(packet::Flags::CWR) { GSO_ECN } else { 0 };
    let kind = match segment.ip {
        IpVersion::V4 => GSO_TCP4,
        IpVersion::V6 => GSO_TCP6,
    };
    let header = VirtioNetHdr {
        flags: NEEDS_CHECKSUM,
        gso_type: kind | ecn,
        hdr_len: segment.header_len() as u16,
        gso_size: size as u16,
        csum_start: ip_len as u16,
        csum_offset: CHECKSUM as u16,
    };
    // The buffer was resized above.
    let _ = header.encode(&mut out[..VIRTIO_NET_HDR_LEN]);
    Ok(())
}

fn checksum_is_good(ip: &[u8], parsed: &ParsedPacket<'_>) -> bool {
    let header = match parsed.segment.ip {
        IpVersion::V4 => 4 * usize::from(ip[0] & 15),
        IpVersion::V6 => 40,
    };
    let tcp_len = parsed.payload.len() + payload_start(ip, parsed) - header;
    let end = header + tcp_len;
    fold(pseudo_header(&parsed.endpoints, tcp_len) + sum(&ip[header..end])) == 0xffff
}

/// Returns the offset of the payload in the packet.
fn payload_start(ip: &[u8], parsed: &ParsedPacket<'_>) -> usize {
    parsed.payload.as_ptr() as usize - ip.as_ptr() as usize
}

/// Sum of the pseudo-header (RFC 9293 section 3.1).
fn pseudo_header(between: &Endpoints, tcp_len: usize) -> u64 {
    let address = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => sum(&v4.octets()),
        IpAddr::V6(v6) => sum(&v6.octets()),
    };
    address(between.src.ip()) + address(between.dst.ip()) + 6 + tcp_len as u64
}

/// Sum of RFC 1071, not folded.
fn sum(bytes: &[u8]) -> u64 {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let pairs: u64 = pairs.iter().map(|&pair| u64::from(u16::from_be_bytes(pair))).sum();
    pairs + odd.first().map_or(0, |&last| u64::from(last) << 8)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::{Flags, Timestamps};
    use std::net::SocketAddr;
    use units::SeqNum;

    fn between(ip: IpVersion) -> Endpoints {
        let pair = match ip {
            IpVersion::V4 => ["10.0.0.1:49152", "10.0.0.2:5001"],
            IpVersion::V6 => ["[fd00::1]:49152", "[fd00::2]:5001"],
        };
        let [src, dst] = pair.map(|text| text.parse::<SocketAddr>().unwrap());
        Endpoints { src, dst }
    }

    fn data(ip: IpVersion, payload: u32) -> Segment {
        Segment {
            ip,
            payload,
            seq: SeqNum(77),
            ack: SeqNum(5),
            flags: Flags::ACK | Flags::PSH,
            window: 9,
            timestamps: Some(Timestamps { val: 1, ecr: 2 }),
            ..Segment::default()
        }
    }

    #[test]
    fn written_frames_read_back_and_corruption_is_detected() {
        for ip in [IpVersion::V4, IpVersion::V6] {
            for len in [0, 1, 1_001, 1_448] {
                let segment = data(ip, len);
                let bytes: Vec<u8> = (0..len).map(|n| (n * 7) as u8).collect();
                let mut frame = Vec::new();
                write(&segment, &between(ip), &bytes, &mut frame).unwrap();
                let seen = read(&frame).unwrap();
                assert_eq!(seen.segment, segment);
                assert_eq!((seen.between, seen.payload), (between(ip), &bytes[..]));
                let tcp = VIRTIO_NET_HDR_LEN + ip.header_len() as usize;
                for at in [tcp + 4, tcp + 15, frame.len() - 1] {
                    let mut damaged = frame.clone();
                    damaged[at] ^= 0x10;
                    assert_eq!(
                        read(&damaged).unwrap_err(),
                        FrameError::Corrupted,
                        "{ip:?} {len} {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_aggregate_has_its_gso_size_and_a_partial_checksum() {
        let bytes = vec![3; 4_000];
        for merged in [
            Segment { gso_size: 1_448, ..data(IpVersion::V4, 4_000) },
            // FreeBSD's LRO keeps the number of packets but not their size.
            Segment { nsegs: 3, ..data(IpVersion::V6, 4_000) },
        ] {
            let mut frame = Vec::new();
            write(&merged, &between(merged.ip), &bytes, &mut frame).unwrap();
            let seen = read(&frame).unwrap();
            let size = if merged.nsegs == 0 { 1_448 } else { 1_334 };
            assert_eq!(seen.segment, Segment { gso_size: size, nsegs: 0, ..merged });
            assert_eq!(seen.segment.packets(), 3);
            // The sum from csum_start yields the full checksum.
            let start = VIRTIO_NET_HDR_LEN + merged.ip.header_len() as usize;
            let full = !fold(sum(&frame[start..]));
            let mut whole = frame.clone();
            whole[start + CHECKSUM..start + CHECKSUM + 2].copy_from_slice(&full.to_be_bytes());
            whole[..VIRTIO_NET_HDR_LEN].fill(0);
            assert!(read(&whole).is_ok());
        }
    }

    #[test]
    fn packets_other_than_tcp_are_rejected() {
        assert_eq!(read(&[0; 5]).unwrap_err(), FrameError::Corrupted);
        assert_eq!(read(&[0; 40]).unwrap_err(), FrameError::NotTcp);
        // A router solicitation.
        let mut icmp = vec![0; VIRTIO_NET_HDR_LEN + 48];
        icmp[VIRTIO_NET_HDR_LEN] = 0x60;
        icmp[VIRTIO_NET_HDR_LEN + 5] = 8;
        icmp[VIRTIO_NET_HDR_LEN + 6] = 58;
        assert_eq!(read(&icmp).unwrap_err(), FrameError::NotTcp);
    }
}
