//! A packet line as data.

use packet::{Flags, IpVersion, SackBlocks, Timestamps};
use units::Duration;

use super::Clock;

/// One packet line. Numbers are those that stand in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLine<'a> {
    /// Line of the text where it begins, counted from 1.
    pub line: usize,
    /// What the stamp counts from.
    pub clock: Clock,
    /// The stamp. Past midnight a [`Clock::TimeOfDay`] is counted on.
    pub at: Duration,
    /// `IP` or `IP6`.
    pub ip: IpVersion,
    /// Who sent it.
    pub src: Address<'a>,
    /// Whom it was sent to.
    pub dst: Address<'a>,
    /// Control bits.
    pub flags: Flags,
    /// Sequence numbers of the payload; absent on a bare ACK.
    pub seq: Option<SeqRange>,
    /// Acknowledgment number; absent without the flag.
    pub ack: Option<u32>,
    /// How `seq`, `ack` and SACK blocks count.
    pub numbers: Numbers,
    /// Window field, not shifted.
    pub window: u16,
    /// Options; `None` where the line has none or leaves them out.
    pub options: Option<LineOptions>,
    /// Bytes of payload.
    pub length: u32,
}

/// A host with its port, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address<'a> {
    /// Address or name.
    pub host: &'a str,
    /// Number or name of the port, where there is one.
    pub port: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Splits `10.0.0.1.5001`, `2001:db8::1.443`, `host.example.http` at the last dot. Since tcpdump
    /// prints no packet of TCP without a port, only an IPv4 address of four numbers, an IPv6
    /// address without a dot and a name without a dot (an edited line) have none.
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

/// Sequence numbers `start:end` of a line; both the same where only one is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeqRange {
    /// First byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

/// How the numbers of a line count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// As in the header: on a SYN, without the ACK flag, and everywhere with `-S`.
    Absolute,
    /// From the initial sequence number: 1 is the first byte of payload.
    Relative,
    /// It cannot be told: the handshake of the connection does not stand before it.
    Unknown,
}

/// The options of a line. Those not named here are passed over.
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
    /// `sack n {..}`, counted like the numbers of the line.
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
