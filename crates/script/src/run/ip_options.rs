//! Socket options for the IP header: `IP_TTL`, `IP_TOS`, `IP_MINTTL` and those of IPv6.

use tcp::profile::Family;

use super::calls::{CallResult, words};
use super::header::{ECN, HOPS};
use super::socket_options::single;
use super::sockets::SocketOptions;
use crate::ast::Expr;
use CallResult::{Error, Value};

/// Names of differentiated services.
const SERVICES: [(&str, u8); 25] = [
    ("IPTOS_LOWDELAY", 0x10),
    ("IPTOS_THROUGHPUT", 0x08),
    ("IPTOS_RELIABILITY", 0x04),
    ("IPTOS_DSCP_CS0", 0x00),
    ("IPTOS_DSCP_CS1", 0x20),
    ("IPTOS_DSCP_AF11", 0x28),
    ("IPTOS_DSCP_AF12", 0x30),
    ("IPTOS_DSCP_AF13", 0x38),
    ("IPTOS_DSCP_CS2", 0x40),
    ("IPTOS_DSCP_AF21", 0x48),
    ("IPTOS_DSCP_AF22", 0x50),
    ("IPTOS_DSCP_AF23", 0x58),
    ("IPTOS_DSCP_CS3", 0x60),
    ("IPTOS_DSCP_AF31", 0x68),
    ("IPTOS_DSCP_AF32", 0x70),
    ("IPTOS_DSCP_AF33", 0x78),
    ("IPTOS_DSCP_CS4", 0x80),
    ("IPTOS_DSCP_AF41", 0x88),
    ("IPTOS_DSCP_AF42", 0x90),
    ("IPTOS_DSCP_AF43", 0x98),
    ("IPTOS_DSCP_CS5", 0xa0),
    ("IPTOS_DSCP_VA", 0xb0),
    ("IPTOS_DSCP_EF", 0xb8),
    ("IPTOS_DSCP_CS6", 0xc0),
    ("IPTOS_DSCP_CS7", 0xe0),
];

impl SocketOptions {
    /// Is it one of these options?
    pub(super) fn is_ip(name: &str) -> bool {
        Self::default().get_ip(name).is_some()
    }

    /// Sets one of these options; `None` if `name` is none of them, or the value is not modelled.
    ///
    /// Sources: do_ip_setsockopt, ipv6_setsockopt (verified on Linux 6.18.44: the ECN field of a TCP socket is not
    /// set); ip_ctloutput, ip6_pcbopt of FreeBSD.
    pub(super) fn set_ip(
        &mut self,
        family: Family,
        name: &str,
        value: &Expr,
    ) -> Option<CallResult> {
        let number = single(value).or_else(|| service(value).map(i64::from));
        let hops = |least: i64, number: i64| match number {
            -1 if family == Family::Linux || least == 0 => Some(None),
            _ => u8::try_from(number).ok().filter(|_| number >= least).map(Some),
        };
        let number = match name {
            "IP_TTL" | "IPV6_UNICAST_HOPS" | "IP_TOS" | "IPV6_TCLASS" => number?,
            "IP_MINTTL" | "IPV6_MINHOPCOUNT" if family == Family::Linux => number?,
            _ => return None,
        };
        let set = match name {
            "IP_MINTTL" => u8::try_from(number).ok().map(|least| self.least_ttl = least),
            "IPV6_MINHOPCOUNT" => {
                u8::try_from(number).ok().map(|least| self.least_hop_count = least)
            }
            "IP_TTL" => hops(1, number).map(|ttl| self.ttl = ttl),
            "IPV6_UNICAST_HOPS" => hops(0, number).map(|limit| self.hop_limit = limit),
            _ => {
                let byte = if name == "IP_TOS" { number as u8 } else { number.max(0) as u8 };
                let valid = name == "IP_TOS" || (-1..=255).contains(&number);
                if family != Family::Linux && byte & ECN != 0 {
                    return None;
                }
                let services = byte & !ECN;
                let field = if name == "IP_TOS" { &mut self.tos } else { &mut self.class };
                valid.then(|| *field = services)
            }
        };
        Some(if set.is_some() { Value(0) } else { Error("EINVAL") })
    }

    /// Returns the value of one of these options.
    pub(super) fn get_ip(&self, name: &str) -> Option<u8> {
        Some(match name {
            "IP_TTL" => self.ttl.unwrap_or(HOPS),
            "IPV6_UNICAST_HOPS" => self.hop_limit.unwrap_or(HOPS),
            "IP_MINTTL" => self.least_ttl,
            "IPV6_MINHOPCOUNT" => self.least_hop_count,
            "IP_TOS" => self.tos,
            "IPV6_TCLASS" => self.class,
            _ => return None,
        })
    }
}

/// Returns the value of a name such as `[IPTOS_DSCP_CS7]`.
fn service(value: &Expr) -> Option<u8> {
    let name = match &value.kind {
        crate::ast::ExprKind::List(values) if values.len() == 1 => return service(&values[0]),
        _ => words(value).first().copied()?,
    };
    SERVICES.iter().find(|(service, _)| *service == name).map(|(_, value)| *value)
}
