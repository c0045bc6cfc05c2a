//! The datagrams that a stack sends and receives, as a capture at its host: pcap of IP packets with times in nanoseconds.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use packet::IpVersion;
use quic::QuicSide;
use units::Instant;

/// Magic number of pcap with times in nanoseconds, and LINKTYPE_RAW.
const MAGIC: u32 = 0xa1b2_3c4d;
const LINKTYPE_RAW: u32 = 101;
const LARGEST: u32 = 262_144;
const UDP: u8 = 17;
const UDP_HEADER: u16 = 8;
/// Last bytes of the addresses of the client and the server in 192.0.2.0/24 and 2001:db8::/64, which documents use.
const HOSTS: [u8; 2] = [1, 2];
/// Port of the server, and of the client of flow 0.
const SERVER_PORT: u16 = 4_433;
const CLIENT_PORT: u16 = 49_152;

/// A capture file. An error of writing ends it: the run does not depend on it.
#[derive(Debug)]
pub(super) struct StackCapture {
    file: Option<BufWriter<File>>,
    side: QuicSide,
    ip: IpVersion,
    client_port: u16,
}

impl StackCapture {
    /// Creates the capture of an end of this flow.
    ///
    /// # Errors
    /// Errors of the file.
    pub(super) fn create(
        path: &Path,
        flow: u32,
        side: QuicSide,
        ip: IpVersion,
    ) -> io::Result<Self> {
        let mut file = BufWriter::new(File::create(path)?);
        // Version 2.4, no time zone.
        let head = [MAGIC, 0x0004_0002, 0, 0, LARGEST, LINKTYPE_RAW];
        file.write_all(&head.map(u32::to_le_bytes).concat())?;
        let client_port = CLIENT_PORT.saturating_add(u16::try_from(flow).unwrap_or(u16::MAX));
        Ok(Self { file: Some(file), side, ip, client_port })
    }

    /// Writes a datagram that the end sends or receives, with its ECN bits.
    pub(super) fn write(&mut self, at: Instant, is_sent: bool, payload: &[u8], ecn: u8) {
        let from_client = is_sent == (self.side == QuicSide::Client);
        let packet = ip_packet(self.ip, (from_client, self.client_port), payload, ecn);
        let Some(file) = &mut self.file else { return };
        let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
        let len = packet.len() as u32;
        let head = [seconds as u32, nanos as u32, len, len].map(u32::to_le_bytes).concat();
        if file.write_all(&head).and_then(|()| file.write_all(&packet)).is_err() {
            self.file = None;
        }
    }
}

/// An IP packet with a UDP datagram.
fn ip_packet(
    ip: IpVersion,
    (from_client, client_port): (bool, u16),
    payload: &[u8],
    ecn: u8,
) -> Vec<u8> {
    let swap = |ends: [u16; 2]| if from_client { ends } else { [ends[1], ends[0]] };
    let ports = swap([client_port, SERVER_PORT]);
    let hosts = swap(HOSTS.map(u16::from));
    let udp_len = UDP_HEADER.saturating_add(u16::try_from(payload.len()).unwrap_or(u16::MAX));
    let mut packet = Vec::with_capacity(48 + payload.len());
    let addresses: Vec<u8> = match ip {
        IpVersion::V4 => hosts.iter().flat_map(|&host| [192, 0, 2, host as u8]).collect(),
        IpVersion::V6 => hosts
            .iter()
            .flat_map(|&host| {
                let mut address = [0; 16];
                address[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
                address[15] = host as u8;
                address
            })
            .collect(),
    };
    match ip {
        IpVersion::V4 => {
            packet.extend([0x45, ecn]);
            packet.extend((20 + udp_len).to_be_bytes());
            // No fragments.
            packet.extend([0, 0, 0x40, 0, 64, UDP, 0, 0]);
            packet.extend(&addresses);
            let sum = checksum(&[&packet]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        IpVersion::V6 => {
            packet.extend((0x6000_0000 | u32::from(ecn) << 20).to_be_bytes());
            packet.extend(udp_len.to_be_bytes());
            packet.extend([UDP, 64]);
            packet.extend(&addresses);
        }
    }
    let mut udp = ports.map(u16::to_be_bytes).concat();
    udp.extend(udp_len.to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    let pseudo = [&addresses[..], &[0, UDP], &udp_len.to_be_bytes()].concat();
    // 0 is none.
    let sum = match checksum(&[&pseudo, &udp]) {
        0 => u16::MAX,
        sum => sum,
    };
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    packet.extend(udp);
    packet
}

/// The checksum of the internet (RFC 1071) of parts, of which all but the last have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 = words
        .map(|word| match *word {
            [high, low] => u64::from(u16::from_be_bytes([high, low])),
            [high] => u64::from(high) << 8,
            _ => 0,
        })
        .sum();
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reader of captures finds the payload, the ports and the marks of what was written.
    #[test]
    fn packets_are_udp_with_good_checksums() {
        for (ip, header) in [(IpVersion::V4, 20), (IpVersion::V6, 40)] {
            for from_client in [true, false] {
                let packet = ip_packet(ip, (from_client, 49_155), b"payload", 3);
                assert_eq!(packet.len(), header + 15);
                let (pseudo, udp) = match ip {
                    IpVersion::V4 => (&packet[12..20], &packet[20..]),
                    IpVersion::V6 => (&packet[8..40], &packet[40..]),
                };
                let rest = [0, UDP, 0, 15];
                assert_eq!(checksum(&[pseudo, &rest, udp]), 0);
                let client = 49_155_u16.to_be_bytes();
                assert_eq!(&udp[if from_client { 0..2 } else { 2..4 }], &client);
                assert_eq!(&udp[8..], b"payload");
                if ip == IpVersion::V4 {
                    assert_eq!((checksum(&[&packet[..20]]), packet[1] & 3), (0, 3));
                }
            }
        }
    }
}
