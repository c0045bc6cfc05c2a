//! ICMP errors: their numbers, and what they do to a connection (tcp_v4_err, tcp_v6_err and tcp_req_err of Linux 6.12,
//! tcp_ctlinput and tcp6_ctlinput of FreeBSD 14).

use packet::IpVersion;
use tcp::TcpState;
use tcp::profile::Family;

use super::{Result, Runner};
use crate::ast::IcmpMessage;

/// What Linux and FreeBSD make of a message (`icmp_err_convert`, icmp_errmap, and those of ICMPv6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Nothing.
    Ignored,
    /// A packet was too large.
    TooBig,
    /// An error.
    Error(&'static str),
}

use Meaning::{Error, Ignored, TooBig};

/// A type and code of ICMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IcmpKind {
    pub(super) number: u8,
    pub(super) code: u8,
    linux: Meaning,
    freebsd: Meaning,
}

/// A row: names of type and code, numbers, and what the systems make of it.
type Row = (&'static str, &'static str, (u8, u8), Meaning, Meaning);

const REFUSED: Meaning = Error("ECONNREFUSED");
const NO_HOST: Meaning = Error("EHOSTUNREACH");
const NO_NET: Meaning = Error("ENETUNREACH");
const NO_OPTION: Meaning = Error("ENOPROTOOPT");
const PROTOCOL: Meaning = Error("EPROTO");

/// ICMP (RFC 792, RFC 1812). A code of "" is one that is left out.
const V4: [Row; 24] = [
    ("unreachable", "", (3, 0), NO_NET, NO_HOST),
    ("unreachable", "net_unreachable", (3, 0), NO_NET, NO_HOST),
    ("unreachable", "host_unreachable", (3, 1), NO_HOST, NO_HOST),
    ("unreachable", "protocol_unreachable", (3, 2), NO_OPTION, REFUSED),
    ("unreachable", "port_unreachable", (3, 3), REFUSED, REFUSED),
    ("unreachable", "frag_needed", (3, 4), TooBig, TooBig),
    ("unreachable", "source_route_failed", (3, 5), Error("EOPNOTSUPP"), NO_HOST),
    ("unreachable", "net_unknown", (3, 6), NO_NET, NO_HOST),
    ("unreachable", "host_unknown", (3, 7), Error("EHOSTDOWN"), NO_HOST),
    ("unreachable", "source_host_isolated", (3, 8), Error("ENONET"), NO_HOST),
    ("unreachable", "net_prohibited", (3, 9), NO_NET, REFUSED),
    ("unreachable", "host_prohibited", (3, 10), NO_HOST, REFUSED),
    ("unreachable", "net_unreachable_for_tos", (3, 11), NO_NET, NO_HOST),
    ("unreachable", "host_unreachable_for_tos", (3, 12), NO_HOST, NO_HOST),
    ("unreachable", "packet_filtered", (3, 13), NO_HOST, REFUSED),
    ("unreachable", "precedence_violation", (3, 14), NO_HOST, NO_HOST),
    ("unreachable", "precedence_cutoff", (3, 15), NO_HOST, NO_HOST),
    ("source_quench", "", (4, 0), Ignored, Ignored),
    ("redirect", "", (5, 0), Ignored, Ignored),
    ("time_exceeded", "ttl_exceeded_in_transit", (11, 0), NO_HOST, NO_HOST),
    ("time_exceeded", "frag_reass_exceeded", (11, 1), NO_HOST, Ignored),
    ("parameter_problem", "code_0", (12, 0), PROTOCOL, NO_OPTION),
    ("parameter_problem", "code_1", (12, 1), PROTOCOL, NO_OPTION),
    ("parameter_problem", "code_2", (12, 2), PROTOCOL, Ignored),
];

/// ICMPv6 (RFC 4443).
const V6: [Row; 12] = [
    ("unreachable", "", (1, 0), NO_NET, NO_HOST),
    ("unreachable", "no_route", (1, 0), NO_NET, NO_HOST),
    ("unreachable", "admin_prohibited", (1, 1), Error("EACCES"), REFUSED),
    ("unreachable", "not_neighbour", (1, 2), NO_HOST, NO_OPTION),
    ("unreachable", "address_unreachable", (1, 3), NO_HOST, NO_HOST),
    ("unreachable", "port_unreachable", (1, 4), REFUSED, REFUSED),
    ("packet_too_big", "", (2, 0), TooBig, TooBig),
    ("time_exceeded", "exceeded_hop_limit", (3, 0), NO_HOST, NO_HOST),
    ("time_exceeded", "exceeded_frag_time", (3, 1), NO_HOST, Ignored),
    ("parameter_problem", "header_field", (4, 0), PROTOCOL, NO_OPTION),
    ("parameter_problem", "unknown_next_header", (4, 1), PROTOCOL, REFUSED),
    ("parameter_problem", "unknown_option", (4, 2), PROTOCOL, NO_OPTION),
];

impl Runner<'_> {
    /// The type and code of a message.
    pub(super) fn icmp_kind(&self, message: &IcmpMessage) -> Result<IcmpKind> {
        let rows: &[Row] = match self.rules.ip {
            IpVersion::V4 => &V4,
            IpVersion::V6 => &V6,
        };
        let kind = message.kind.value.as_str();
        let code = message.code.as_ref().map_or("", |code| code.value.as_str());
        let found = rows.iter().find(|row| (row.0, row.1) == (kind, code));
        let Some(&(_, _, (number, code), linux, freebsd)) = found else {
            let span = message.code.as_ref().map_or(message.kind.span, |code| code.span);
            let version = match self.rules.ip {
                IpVersion::V4 => "ICMP",
                IpVersion::V6 => "ICMPv6",
            };
            let name = format!("{kind} {code}");
            let what = format!("`{}` of {version} is not supported", name.trim_end());
            return self.unsupported(span, what);
        };
        Ok(IcmpKind { number, code, linux, freebsd })
    }

    /// An ICMP error arrives.
    pub(super) fn icmp(&mut self, message: &IcmpMessage) -> Result<()> {
        let kind = self.icmp_kind(message)?;
        if self.world.real.is_some() {
            self.icmp_real(message, kind);
            return Ok(());
        }
        let family = self.world.host.profile.family;
        let (Some(connection), true) = (&self.world.connection, family != Family::Rfc) else {
            return match family {
                Family::Rfc => self.unsupported(message.kind.span, "`icmp` is not supported"),
                Family::Linux | Family::FreeBsd => Ok(()),
            };
        };
        // Out of window: ignored.
        let seq = units::SeqNum(message.seq);
        if !connection.quotes_in_flight(seq) {
            return Ok(());
        }
        match if family == Family::Linux { kind.linux } else { kind.freebsd } {
            Ignored => {}
            TooBig => {
                let mtu = message.mtu.unwrap_or(0);
                let _: Option<()> = self.world.with(|cx, end| end.on_path_mtu(cx, mtu));
            }
            Error(error) if family == Family::Linux => self.icmp_error_linux(kind, seq, error),
            Error(error) => self.icmp_error_freebsd(kind, error),
        }
        Ok(())
    }

    fn icmp_error_linux(&mut self, kind: IcmpKind, seq: units::SeqNum, error: &'static str) {
        let v4 = self.rules.ip == IpVersion::V4;
        let child = self.world.is_fast_open_child();
        match self.world.state() {
            // A Fast Open that was accepted counts as established.
            TcpState::SynReceived if child && self.sockets.connected() => {}
            // The request is dropped only if it cannot succeed (tcp_v4_err; `fatal` of icmpv6_err_convert).
            TcpState::SynReceived if !child && !self.numbers.active_open => {
                let fatal = match (v4, kind.number, kind.code) {
                    (true, 3, 0 | 1) | (true, 11 | 12, _) => true,
                    (true, _, _) => false,
                    (false, 1, code) => matches!(code, 1 | 4),
                    (false, number, _) => number == 4,
                };
                if fatal {
                    let _: Option<()> = self.world.with(|_, end| end.drop_request());
                }
                return;
            }
            TcpState::SynSent | TcpState::SynReceived => {
                let _: Option<()> = self.world.with(|cx, end| end.fail(cx));
                self.world.error = Some(error);
                return;
            }
            _ => {}
        }
        // A soft error: it is reported if the connection times out. The route may be back (tcp_ld_RTO_revert).
        let reverts = match v4 {
            true => matches!((kind.number, kind.code), (3, 0 | 1)),
            false => (kind.number, kind.code) == (1, 0),
        };
        if reverts && !child {
            let _: Option<()> = self.world.with(|cx, end| end.revert_backoff(cx, seq));
        }
    }

    fn icmp_error_freebsd(&mut self, kind: IcmpKind, error: &'static str) {
        let exceeded = match self.rules.ip {
            IpVersion::V4 => kind.number == 11,
            IpVersion::V6 => kind.number == 3,
        };
        // tcp_drop_syn_sent; else tcp_notify: a soft error.
        let may_end = Error(error) == REFUSED || exceeded;
        if may_end && self.world.host.icmp_may_rst && self.world.state() == TcpState::SynSent {
            let _: Option<()> = self.world.with(|cx, end| end.fail(cx));
            self.world.error = Some(error);
        }
    }
}
