//! The connection of a section: struct tcp_log_header (DUMPINFO) and the names of the stacks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use units::Duration;

use super::part;

/// Address families of FreeBSD.
const AF_INET: u8 = 2;
const AF_INET6: u8 = 28;
/// TCP_LOG_DEV_TYPE_BBR: the record is one of a connection's log.
const TYPE_BBR: u8 = 1;

/// The section header of a part of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BblogSection {
    /// Version of the records; [`VERSION`](super::VERSION) is written.
    pub version: Option<u32>,
    /// The connection; `None` if the section does not name it.
    pub connection: Option<TcpLogHeader>,
    /// Time at which the part was written, since 1970.
    pub dumped: Option<Duration>,
    /// Numbers and names of TCP stacks.
    pub stacks: Vec<(u8, String)>,
    /// Program that wrote it (`shb_userappl`); empty if absent.
    pub application: String,
    /// Comment (`opt_comment`); empty if absent.
    pub comment: String,
}

impl BblogSection {
    /// Name of the stack with number `id`.
    pub fn stack_name(&self, id: u8) -> Option<&str> {
        self.stacks.iter().find(|(number, _)| *number == id).map(|(_, name)| name.as_str())
    }

    /// Whether `srtt` is in microseconds in this stack's records, as in RACK and BBR; `None` if the
    /// stack's name is unknown.
    pub fn srtt_in_micros(&self, id: u8) -> Option<bool> {
        let name = self.stack_name(id)?;
        Some(name.starts_with("rack") || name.starts_with("bbr"))
    }
}

/// The connection that a log is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpLogHeader {
    /// Address and port of the logging host.
    pub local: SocketAddr,
    /// Address and port of its peer.
    pub remote: SocketAddr,
    /// Microseconds to add to the uptime for the time since 1970.
    pub boot_micros: i64,
    /// Name the application gave the connection, up to 63 bytes.
    pub id: String,
    /// Reason of the dump, up to 31 bytes.
    pub reason: String,
    /// Tag of the application, up to 31 bytes.
    pub tag: String,
    /// Bytes of header and records before the conversion to pcapng by tcplog_dumper.
    pub length: u64,
}

impl TcpLogHeader {
    pub(super) const LEN: usize = 208;

    /// Reads DUMPINFO; `None` for an address family that is neither IPv4 nor IPv6.
    pub(super) fn decode(bytes: &[u8; Self::LEN]) -> Option<Self> {
        let address = |at: usize| -> Option<IpAddr> {
            match bytes[200] {
                // struct in_dependaddr: IPv4 in the last four bytes.
                AF_INET => Some(Ipv4Addr::from(part::<4>(bytes, at + 12)).into()),
                AF_INET6 => Some(Ipv6Addr::from(part::<16>(bytes, at)).into()),
                _ => None,
            }
        };
        let port = |at| u16::from_be_bytes(part(bytes, at));
        let number = |at| i64::from_le_bytes(part(bytes, at));
        let boot_micros = number(56).checked_mul(1_000_000)?.checked_add(number(64))?;
        Some(Self {
            local: SocketAddr::new(address(36)?, port(18)),
            remote: SocketAddr::new(address(20)?, port(16)),
            boot_micros,
            id: text(&bytes[72..136]),
            reason: text(&bytes[136..168]),
            tag: text(&bytes[168..200]),
            length: number(8) as u64,
        })
    }

    pub(super) fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[0] = super::VERSION as u8;
        bytes[1] = TYPE_BBR;
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.remote.port().to_be_bytes());
        bytes[18..20].copy_from_slice(&self.local.port().to_be_bytes());
        for (at, address) in [(20, self.remote.ip()), (36, self.local.ip())] {
            match address {
                IpAddr::V4(v4) => bytes[at + 12..at + 16].copy_from_slice(&v4.octets()),
                IpAddr::V6(v6) => bytes[at..at + 16].copy_from_slice(&v6.octets()),
            }
        }
        let (seconds, micros) =
            (self.boot_micros.div_euclid(1_000_000), self.boot_micros.rem_euclid(1_000_000));
        bytes[56..64].copy_from_slice(&seconds.to_le_bytes());
        bytes[64..72].copy_from_slice(&micros.to_le_bytes());
        // The last byte of each string stays zero.
        for (at, room, text) in [(72, 63, &self.id), (136, 31, &self.reason), (168, 31, &self.tag)]
        {
            let end = text.floor_char_boundary(room);
            bytes[at..at + end].copy_from_slice(&text.as_bytes()[..end]);
        }
        bytes[200] = if self.local.is_ipv4() { AF_INET } else { AF_INET6 };
        bytes
    }

    /// Whether both name the same connection.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        (self.local, self.remote, &self.id) == (other.local, other.remote, &other.id)
    }
}

/// Decodes a string that ends at its first zero byte.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(local: &str, remote: &str) -> TcpLogHeader {
        TcpLogHeader {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            boot_micros: 1_682_985_600_000_001,
            id: "upload".to_owned(),
            reason: "run".to_owned(),
            tag: String::new(),
            length: 208,
        }
    }

    #[test]
    fn a_connection_reads_back() {
        for (local, remote) in
            [("10.0.0.1:49152", "10.0.0.2:5001"), ("[fd00::1]:49152", "[fd00::2]:5001")]
        {
            let whole = connection(local, remote);
            assert_eq!(TcpLogHeader::decode(&whole.encode()), Some(whole));
        }
    }

    #[test]
    fn ports_are_big_endian_and_ipv4_is_in_the_last_bytes() {
        let bytes = connection("10.0.0.1:258", "10.0.0.2:5001").encode();
        assert_eq!((bytes[0], bytes[1], bytes[200]), (9, 1, 2));
        assert_eq!(bytes[18..20], [1, 2]);
        assert_eq!(bytes[36..52], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        let mut long = connection("10.0.0.1:1", "10.0.0.2:2");
        long.tag = "ü".repeat(16);
        // 16 of two bytes are 32: the last one does not fit before the zero.
        assert_eq!(TcpLogHeader::decode(&long.encode()).unwrap().tag, "ü".repeat(15));
    }

    #[test]
    fn an_unknown_family_is_no_connection() {
        let mut bytes = connection("10.0.0.1:1", "10.0.0.2:2").encode();
        bytes[200] = 1;
        assert_eq!(TcpLogHeader::decode(&bytes), None);
    }
}
