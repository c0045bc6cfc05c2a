//! Explicit congestion notification (RFC 3168 section 6.1).

use core::hint::cold_path;

use packet::{ECN_CE as CE, Flags};

use crate::profile::EcnRule;

/// ECN field of the IP header: ECN-capable transport.
pub(crate) const ECT0: u8 = 2;

/// ECN state of one side.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Ecn {
    rule: EcnRule,
    /// ECN was negotiated.
    agreed: bool,
    /// As receiver: set ECE on every ACK until a CWR arrives.
    echo: bool,
    /// As sender: set CWR on the next new data.
    reduced: bool,
}

impl Ecn {
    pub(crate) const fn new(rule: EcnRule) -> Self {
        Self { rule, agreed: false, echo: false, reduced: false }
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

    /// Handles a segment: CE is echoed until the sender confirms its reduction with CWR.
    pub(crate) fn on_segment(&mut self, flags: Flags, field: u8, payload: u32) {
        if !self.agreed {
            return;
        }
        if flags.has(Flags::CWR) {
            self.echo = false;
        }
        if field == CE && payload > 0 {
            self.echo = true;
        }
    }

    /// Does this acknowledgment echo congestion?
    pub(crate) fn echoed(&self, flags: Flags) -> bool {
        self.agreed && flags.has(Flags::ECE)
    }

    /// Records a window reduction: the next new data carries CWR.
    pub(crate) fn on_reduced(&mut self) {
        self.reduced = self.agreed;
    }

    /// Returns the flags and the ECN field of a segment to be sent. Only new data is ECN-capable
    /// (section 6.1.5) and carries CWR.
    pub(crate) fn mark(&mut self, new_data: bool) -> (Flags, u8) {
        if !self.agreed {
            return (Flags::NONE, 0);
        }
        cold_path();
        let mut flags = if self.echo { Flags::ECE } else { Flags::NONE };
        if new_data && core::mem::take(&mut self.reduced) {
            flags |= Flags::CWR;
        }
        (flags, if new_data { ECT0 } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(client: EcnRule, server: EcnRule) -> (bool, bool) {
        let (mut client, mut server) = (Ecn::new(client), Ecn::new(server));
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
        let mut receiver = Ecn { agreed: true, ..Ecn::new(EcnRule::Passive) };
        receiver.on_segment(Flags::ACK, CE, 0);
        assert_eq!(receiver.mark(false), (Flags::NONE, 0), "a pure ACK carries no mark");
        receiver.on_segment(Flags::ACK, CE, 100);
        assert_eq!(receiver.mark(false), (Flags::ECE, 0));
        receiver.on_segment(Flags::ACK, ECT0, 100);
        assert_eq!(receiver.mark(false), (Flags::ECE, 0));
        receiver.on_segment(Flags::ACK | Flags::CWR, ECT0, 100);
        assert_eq!(receiver.mark(false), (Flags::NONE, 0));
        // One segment with both: the reaction is to an earlier mark.
        receiver.on_segment(Flags::ACK | Flags::CWR, CE, 100);
        assert_eq!(receiver.mark(false), (Flags::ECE, 0));
    }

    #[test]
    fn the_next_new_data_carries_cwr_after_a_reduction() {
        let mut sender = Ecn { agreed: true, ..Ecn::new(EcnRule::Active) };
        sender.on_reduced();
        assert_eq!(sender.mark(false), (Flags::NONE, 0));
        assert_eq!(sender.mark(true), (Flags::CWR, ECT0));
        assert_eq!(sender.mark(true), (Flags::NONE, ECT0));
    }
}
