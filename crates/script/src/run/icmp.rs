//! ICMP errors of Linux (tcp_v4_err and tcp_req_err of 6.18).

use tcp::TcpState;
use tcp::profile::Family;

use super::{Result, Runner};
use crate::ast::IcmpUnreachable;

/// Errors of the codes of "destination unreachable" (`icmp_err_convert`).
pub(super) const ERRORS: [(&str, &str); 12] = [
    ("net_unreachable", "ENETUNREACH"),
    ("host_unreachable", "EHOSTUNREACH"),
    ("protocol_unreachable", "ENOPROTOOPT"),
    ("port_unreachable", "ECONNREFUSED"),
    ("source_route_failed", "EOPNOTSUPP"),
    ("net_unknown", "ENETUNREACH"),
    ("host_unknown", "EHOSTDOWN"),
    ("source_host_isolated", "ENONET"),
    ("net_prohibited", "ENETUNREACH"),
    ("host_prohibited", "EHOSTUNREACH"),
    ("net_unreachable_for_tos", "ENETUNREACH"),
    ("host_unreachable_for_tos", "EHOSTUNREACH"),
];

impl Runner<'_> {
    /// An ICMP message that the peer is unreachable arrives.
    pub(super) fn icmp(&mut self, message: &IcmpUnreachable) -> Result<()> {
        if self.world.real.is_some() {
            return self.icmp_real(message);
        }
        let code = &message.code;
        if self.world.host.profile.family != Family::Linux {
            return self.unsupported(code.span, "`icmp` is not supported");
        }
        let Some((_, error)) = ERRORS.iter().find(|(name, _)| *name == code.value) else {
            let what = format!("the ICMP code `{}` is not supported", code.value);
            return self.unsupported(code.span, what);
        };
        let Some(connection) = &self.world.connection else { return Ok(()) };
        // Out of window: ignored.
        if !connection.quotes_in_flight(units::SeqNum(message.seq)) {
            return Ok(());
        }
        let child = self.world.is_fast_open_child();
        match self.world.state() {
            // A Fast Open that was accepted counts as established.
            TcpState::SynReceived if child && self.sockets.connected() => {}
            // The request is dropped only if it cannot succeed (tcp_v4_err).
            TcpState::SynReceived if !child && !self.numbers.active_open => {
                if matches!(*error, "ENETUNREACH" | "EHOSTUNREACH") {
                    let _: Option<()> = self.world.with(|_, end| end.drop_request());
                }
            }
            TcpState::SynSent | TcpState::SynReceived => {
                let _: Option<()> = self.world.with(|cx, end| end.fail(cx));
                self.world.error = Some(error);
            }
            // A soft error: it is reported if the connection times out.
            _ => {}
        }
        Ok(())
    }
}
