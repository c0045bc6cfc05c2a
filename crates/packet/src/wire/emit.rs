//! A segment as the bytes of one packet.

use core::fmt;
use std::net::{IpAddr, SocketAddr};

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header, TcpHeader};
use units::Offset;

use super::Endpoints;
use super::options::{MAX_LEN, OptionBytes};
use crate::{Flags, IpVersion, Segment};

/// Time to live of every packet: the default of FreeBSD (`net.inet.ip.ttl`) and of Linux.
pub(super) const HOPS: u8 = 64;

/// Length of the payload pattern. A prime, so that no packet size is a multiple of it.
const PERIOD: u64 = 251;

/// The byte at stream offset `place`: `place` modulo 251.
pub const fn payload_byte(place: Offset) -> u8 {
    (place.0 % PERIOD) as u8
}

/// Appends `segment` to `out` as one IP packet; on an error `out` is unchanged.
///
/// `id` is the identification of the IPv4 header (unused in IPv6), `offset` the stream offset of
/// the first payload byte. A burst becomes one super-packet with its PSH and FIN.
///
/// # Errors
///
/// [`EmitError`] if the addresses are not of the segment's IP version, or if its options or its
/// length do not fit into the headers.
pub fn emit(
    segment: &Segment,
    between: &Endpoints,
    id: u16,
    offset: Offset,
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let first = offset.0 % PERIOD;
    let pattern = (0..PERIOD as u8).cycle().skip(first as usize).take(segment.payload as usize);
    emit_with(segment, between, id, |out| out.extend(pattern), out)
}

/// Like [`emit`], with the bytes of a real payload.
///
/// # Errors
///
/// Those of [`emit`], and [`EmitError::Payload`] if `payload` has another length than the segment.
pub fn emit_payload(
    segment: &Segment,
    between: &Endpoints,
    id: u16,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    if payload.len() != segment.payload as usize {
        return Err(EmitError::Payload { expected: segment.payload, given: payload.len() });
    }
    emit_with(segment, between, id, |out| out.extend_from_slice(payload), out)
}

fn emit_with(
    segment: &Segment,
    between: &Endpoints,
    id: u16,
    fill: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let options = OptionBytes::of(segment)?;
    let mut tcp = tcp_header(segment, between, options.as_slice())?;
    let tcp_len = tcp.header_len() as u64 + u64::from(segment.payload);
    // IPv4 counts its own header in its length field, IPv6 does not.
    let counted = match segment.ip {
        IpVersion::V4 => tcp_len + Ipv4Header::MIN_LEN as u64,
        IpVersion::V6 => tcp_len,
    };
    let length = u16::try_from(counted).map_err(|_| EmitError::TooLong { bytes: counted })?;
    let ecn = IpEcn::try_new(segment.ecn & 3).unwrap_or_default();

    let start = out.len();
    match (segment.ip, between.src.ip(), between.dst.ip()) {
        (IpVersion::V4, IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut ip = Ipv4Header {
                ecn,
                total_len: length,
                identification: id,
                dont_fragment: true,
                time_to_live: HOPS,
                protocol: IpNumber::TCP,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv4Header::default()
            };
            ip.header_checksum = ip.calc_header_checksum();
            out.extend_from_slice(&ip.to_bytes());
            let payload = append_payload(out, tcp.header_len(), fill);
            tcp.checksum = tcp
                .calc_checksum_ipv4(&ip, &out[payload..])
                .map_err(|_| EmitError::TooLong { bytes: counted })?;
        }
        (IpVersion::V6, IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut ip = Ipv6Header {
                payload_length: length,
                next_header: IpNumber::TCP,
                hop_limit: HOPS,
                source: src.octets(),
                destination: dst.octets(),
                ..Ipv6Header::default()
            };
            ip.set_ecn(ecn);
            out.extend_from_slice(&ip.to_bytes());
            let payload = append_payload(out, tcp.header_len(), fill);
            tcp.checksum = tcp
                .calc_checksum_ipv6(&ip, &out[payload..])
                .map_err(|_| EmitError::TooLong { bytes: counted })?;
        }
        _ => return Err(EmitError::Family { segment: segment.ip, between: *between }),
    }
    let header = start + segment.ip.header_len() as usize;
    out[header..header + tcp.header_len()].copy_from_slice(&tcp.to_bytes());
    Ok(())
}

fn tcp_header(
    segment: &Segment,
    between: &Endpoints,
    options: &[u8],
) -> Result<TcpHeader, EmitError> {
    let flags = segment.flags;
    let mut tcp = TcpHeader {
        source_port: between.src.port(),
        destination_port: between.dst.port(),
        sequence_number: segment.seq.0,
        acknowledgment_number: segment.ack.0,
        fin: flags.has(Flags::FIN),
        syn: flags.has(Flags::SYN),
        rst: flags.has(Flags::RST),
        psh: flags.has(Flags::PSH),
        ack: flags.has(Flags::ACK),
        urg: flags.has(Flags::URG),
        ece: flags.has(Flags::ECE),
        cwr: flags.has(Flags::CWR),
        window_size: segment.window,
        ..TcpHeader::default()
    };
    tcp.set_options_raw(options).map_err(|_| EmitError::Options { bytes: options.len() })?;
    Ok(tcp)
}

/// Appends `gap` zeros and the payload; returns the index of the payload.
fn append_payload(out: &mut Vec<u8>, gap: usize, fill: impl FnOnce(&mut Vec<u8>)) -> usize {
    let payload = out.len() + gap;
    out.resize(payload, 0);
    fill(out);
    payload
}

/// Why a segment cannot be encoded as a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitError {
    /// The addresses are not both of the segment's IP version.
    Family {
        /// IP version of the segment.
        segment: IpVersion,
        /// Addresses given.
        between: Endpoints,
    },
    /// The options do not fit into the 40 bytes of a TCP header.
    Options {
        /// Bytes required.
        bytes: usize,
    },
    /// The length does not fit into the 16 bits of the IP header.
    TooLong {
        /// Length required.
        bytes: u64,
    },
    /// The payload has another length than the segment.
    Payload {
        /// Payload bytes of the segment.
        expected: u32,
        /// Bytes given.
        given: usize,
    },
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Family { segment, between: Endpoints { src, dst } } => {
                let version = match segment {
                    IpVersion::V4 => "IPv4",
                    IpVersion::V6 => "IPv6",
                };
                let (src, dst) = (SocketAddr::ip(src), SocketAddr::ip(dst));
                write!(
                    f,
                    "cannot encode an {version} segment with addresses {src} and {dst}: \
                     use addresses of one IP version"
                )
            }
            Self::Options { bytes } => {
                write!(f, "TCP options need {bytes} bytes; the header has space for {MAX_LEN}")
            }
            Self::TooLong { bytes } => {
                write!(f, "packet length {bytes} exceeds the IP maximum of {}", u16::MAX)
            }
            Self::Payload { expected: reported, given } => {
                write!(f, "payload has {given} bytes; the segment has {reported}")
            }
        }
    }
}

impl core::error::Error for EmitError {}
