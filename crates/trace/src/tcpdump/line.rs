//! A parsed packet line.

use packet::{Flags, IpVersion, SackBlocks, SynExtras, Timestamps};
use units::Duration;

use super::TimestampKind;

/// One packet line, with the numbers of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpdumpLine<'a> {
    /// Line of the text, from 1.
    pub line: usize,
    /// Format of the timestamp.
    pub clock: TimestampKind,
    /// The timestamp; a [`TimestampKind::TimeOfDay`] continues past midnight.
    pub at: Duration,
    /// `IP` or `IP6`.
    pub ip: IpVersion,
    /// Source.
    pub src: Address<'a>,
    /// Destination.
    pub dst: Address<'a>,
    /// Control bits.
    pub flags: Flags,
    /// Sequence numbers of the payload; absent in a pure ACK.
    pub seq: Option<SeqRange>,
    /// Acknowledgment number; absent without the flag.
    pub ack: Option<u32>,
    /// Whether `seq`, `ack` and SACK blocks are relative.
    pub numbers: SeqNumbering,
    /// Window field, not scaled.
    pub window: u16,
    /// Options; `None` if the line has none.
    pub options: Option<LineOptions>,
    /// Bytes of payload.
    pub length: u32,
}

/// Host and port as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address<'a> {
    /// Address or name.
    pub host: &'a str,
    /// Number or name of the port, if present.
    pub port: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Splits `10.0.0.1.5001`, `2001:db8::1.443`, `host.example.http` at the last dot. tcpdump
    /// prints every TCP packet with ports, so only an IPv4 address of four numbers, an IPv6 address
    /// without a dot and a name without a dot (an edited line) have none.
    pub(super) fn split(text: &'a str) -> Self {
        let all =
            |part: &str, test: fn(&u8) -> bool| !part.is_empty() && part.bytes().all(|b| test(&b));
        let octets = text.split('.').filter(|part| all(part, u8::is_ascii_digit)).count();
        let bare_v4 = octets == 4 && text.split('.').count() == 4;
        match text.rsplit_once('.') {
            Some((host, port)) if !bare_v4 && !host.is_empty() && !port.is_empty() => {
                Self { host, port: Some(port) }
            }
            _ => Self { host: text, port: None },
        }
    }
}

/// Sequence numbers `start:end` of a line; equal if only one is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeqRange {
    /// First byte.
    pub start: u32,
    /// End, after the last byte.
    pub end: u32,
}

/// Origin of the sequence numbers of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeqNumbering {
    /// Absolute, as in the header: on a SYN, without the ACK flag, and always with `-S`.
    Absolute,
    /// Relative to the initial sequence number: 1 is the first byte of payload.
    Relative,
    /// Unknown: the text lacks the handshake of the connection.
    Unknown,
}

/// The options of a line; others are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineOptions {
    /// `mss`.
    pub mss: Option<u16>,
    /// `wscale`.
    pub window_scale: Option<u8>,
    /// `sackOK`.
    pub sack_permitted: bool,
    /// `TS val .. ecr ..`.
    pub timestamps: Option<Timestamps>,
    /// `mptcp`, `tfo`.
    pub extras: SynExtras,
    /// `sack n {..}`, with numbers like those of the line.
    pub sack: SackBlocks,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_split_where_the_port_begins() {
        for (text, host, port) in [
            ("10.0.0.1.5001", "10.0.0.1", Some("5001")),
            ("10.0.0.1.https", "10.0.0.1", Some("https")),
            ("10.0.0.1", "10.0.0.1", None),
            ("2001:db8::1.443", "2001:db8::1", Some("443")),
            ("2001:db8::1", "2001:db8::1", None),
            ("::ffff:1.2.3.4.80", "::ffff:1.2.3.4", Some("80")),
            ("www.example.org.http", "www.example.org", Some("http")),
            ("sender", "sender", None),
            ("sender.5001", "sender", Some("5001")),
            ("odd.", "odd.", None),
        ] {
            assert_eq!(Address::split(text), Address { host, port }, "{text}");
        }
    }
}
