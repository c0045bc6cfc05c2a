//! Explicit congestion notification (RFC 3168 section 6.1).

use core::hint::cold_path;

use packet::{ECN_CE as CE, Flags};

use crate::profile::EcnRule;

/// ECN field of the IP header: ECN-capable transport.
pub(crate) const ECT0: u8 = 2;

/// ECN state of a sender.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct EcnSender {
    rule: EcnRule,
    /// ECN was negotiated.
    agreed: bool,
    /// Set CWR on the next new data.
    reduced: bool,
}

/// ECN state of a receiver.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct EcnReceiver {
    /// Set ECE on every ACK until a CWR arrives.
    echo: bool,
    /// Linux: a packet was ECN-capable (`TCP_ECN_SEEN`).
    seen: bool,
    /// Linux: how the last segment affects its acknowledgment.
    #[serde(skip)]
    arrival: EcnArrival,
}

/// How the marks of a data segment affect its acknowledgment on Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EcnArrival {
    /// It has the first mark, or it is a retransmission, which is not ECN-capable: the next two are
    /// acknowledged at once (__tcp_ecn_check_ce).
    pub(crate) quickens: bool,
    /// It has CWR: the sender's window may be very small (tcp_ecn_accept_cwr).
    pub(crate) reduced: bool,
}

impl EcnSender {
    pub(crate) const fn new(rule: EcnRule) -> Self {
        Self { rule, agreed: false, reduced: false }
    }

    /// Was ECN negotiated?
    #[inline]
    pub(crate) const fn agreed(&self) -> bool {
        self.agreed
    }

    /// Flags of our SYN (section 6.1.1).
    pub(crate) fn syn_flags(&self) -> Flags {
        if self.rule == EcnRule::Active { Flags::ECE | Flags::CWR } else { Flags::NONE }
    }

    /// Flags of our SYN-ACK.
    pub(crate) const fn syn_ack_flags(&self) -> Flags {
        if self.agreed { Flags::ECE } else { Flags::NONE }
    }

    /// Handles the peer's SYN.
    pub(crate) fn on_syn(&mut self, flags: Flags) {
        self.agreed = self.rule != EcnRule::Off && flags.has(Flags::ECE | Flags::CWR);
    }

    /// Handles the peer's SYN-ACK: ECE without CWR accepts.
    pub(crate) fn on_syn_ack(&mut self, flags: Flags) {
        self.agreed =
            self.rule == EcnRule::Active && flags.has(Flags::ECE) && !flags.has(Flags::CWR);
    }

    /// Does this acknowledgment echo congestion?
    pub(crate) fn echoed(&self, flags: Flags) -> bool {
        self.agreed && flags.has(Flags::ECE)
    }

    /// Records a window reduction: the next new data carries CWR.
    pub(crate) fn on_reduced(&mut self) {
        self.reduced = self.agreed;
    }

    /// Linux: a SYN timed out. If it is answered with ECN after all, the first data carries CWR.
    pub(crate) fn on_syn_timeout(&mut self) {
        self.reduced = self.rule == EcnRule::Active;
    }

    /// The reduction is undone: no CWR.
    pub(crate) const fn withdraw(&mut self) {
        self.reduced = false;
    }

    /// Returns the flags and the ECN field of a segment to be sent. Only new data is ECN-capable
    /// (section 6.1.5) and carries CWR.
    pub(crate) fn mark(&mut self, new_data: bool) -> (Flags, u8) {
        if !self.agreed {
            return (Flags::NONE, 0);
        }
        cold_path();
        let confirms = new_data && core::mem::take(&mut self.reduced);
        let flags = if confirms { Flags::CWR } else { Flags::NONE };
        (flags, if new_data { ECT0 } else { 0 })
    }
}

impl EcnReceiver {
    /// Handles a segment of a connection that uses ECN: CE is echoed until the sender confirms its
    /// reduction with CWR.
    pub(crate) fn on_segment(&mut self, flags: Flags, field: u8, payload: u32) {
        if flags.has(Flags::CWR) {
            self.echo = false;
        }
        if payload == 0 {
            self.arrival = EcnArrival::default();
            return;
        }
        let quickens = match field {
            0 => self.seen,
            CE => !self.echo,
            _ => false,
        };
        self.arrival = EcnArrival { quickens, reduced: flags.has(Flags::CWR) };
        self.seen |= field != 0;
        self.echo |= field == CE;
    }

    /// How the last segment affects its acknowledgment on Linux.
    #[inline]
    pub(crate) const fn arrival(&self) -> EcnArrival {
        self.arrival
    }

    /// The flag of an acknowledgment that echoes congestion.
    #[inline]
    pub(crate) const fn echo(&self) -> Flags {
        if self.echo { Flags::ECE } else { Flags::NONE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(client: EcnRule, server: EcnRule) -> (bool, bool) {
        let (mut client, mut server) = (EcnSender::new(client), EcnSender::new(server));
        server.on_syn(client.syn_flags());
        client.on_syn_ack(server.syn_ack_flags());
        (client.agreed, server.agreed)
    }

    #[test]
    fn both_sides_must_enable_it_and_the_client_must_request_it() {
        use EcnRule::{Active, Off, Passive};
        assert_eq!(agreed(Active, Passive), (true, true));
        assert_eq!(agreed(Active, Active), (true, true));
        assert_eq!(agreed(Passive, Active), (false, false));
        assert_eq!(agreed(Active, Off), (false, false));
    }

    #[test]
    fn congestion_is_echoed_until_the_sender_has_reacted() {
        let mut receiver = EcnReceiver::default();
        receiver.on_segment(Flags::ACK, CE, 0);
        assert_eq!(receiver.echo(), Flags::NONE, "a pure ACK carries no mark");
        receiver.on_segment(Flags::ACK, CE, 100);
        assert_eq!(receiver.echo(), Flags::ECE);
        receiver.on_segment(Flags::ACK, ECT0, 100);
        assert_eq!(receiver.echo(), Flags::ECE);
        receiver.on_segment(Flags::ACK | Flags::CWR, ECT0, 100);
        assert_eq!(receiver.echo(), Flags::NONE);
        // One segment with both: the reaction is to an earlier mark.
        receiver.on_segment(Flags::ACK | Flags::CWR, CE, 100);
        assert_eq!(receiver.echo(), Flags::ECE);
    }

    #[test]
    fn the_first_mark_and_retransmissions_are_acknowledged_at_once() {
        // __tcp_ecn_check_ce, tcp_ecn_accept_cwr
        let mut receiver = EcnReceiver::default();
        let mut quickens = |flags: Flags, field| {
            receiver.on_segment(flags, field, 100);
            (receiver.arrival().quickens, receiver.arrival().reduced)
        };
        assert_eq!(quickens(Flags::ACK, 0), (false, false));
        assert_eq!(quickens(Flags::ACK, ECT0), (false, false));
        assert_eq!(quickens(Flags::ACK, 0), (true, false));
        assert_eq!(quickens(Flags::ACK, CE), (true, false));
        assert_eq!(quickens(Flags::ACK, CE), (false, false));
        assert_eq!(quickens(Flags::ACK | Flags::CWR, CE), (true, true));
    }

    #[test]
    fn the_next_new_data_carries_cwr_after_a_reduction() {
        let mut sender = EcnSender { agreed: true, ..EcnSender::new(EcnRule::Active) };
        sender.on_reduced();
        assert_eq!(sender.mark(false), (Flags::NONE, 0));
        assert_eq!(sender.mark(true), (Flags::CWR, ECT0));
        assert_eq!(sender.mark(true), (Flags::NONE, ECT0));
    }
}
