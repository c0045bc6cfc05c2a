//! Compares a sent packet with the expected one and reports the first difference.

use packet::{Flags, IpVersion, Segment};
use units::Duration;

use super::header::SentHeader;
use super::wording;
use super::{Result, Runner, ScriptStop};
use crate::ast::{
    EcnMark, OptionList, ScriptPacket, ScriptSegment, ScriptSpan, Spanned, TcpOption,
};

/// A difference, with the position of the expected value.
struct PacketDifference {
    span: ScriptSpan,
    what: &'static str,
    expected: String,
    found: String,
}

impl Runner<'_> {
    /// Compares in the order of the script's syntax.
    pub(super) fn compare(
        &mut self,
        packet: &ScriptPacket,
        tcp: &ScriptSegment,
        (sent, header): (&Segment, SentHeader),
        at: Duration,
    ) -> Result<()> {
        match self.difference(packet, tcp, sent, header) {
            None => Ok(()),
            Some(difference) => {
                let whole = wording::segment(sent, self.numbers.peer_isn);
                let time = wording::seconds(at);
                let error = self
                    .at(
                        difference.span,
                        format!("another packet was sent: {} differs", difference.what),
                    )
                    .expected(format!("`{}`", difference.expected))
                    .found(format!("`{}`", difference.found))
                    .hint(format!("sent at {time} s: `> {whole}`"));
                Err(ScriptStop::Failed(error))
            }
        }
    }

    fn difference(
        &mut self,
        packet: &ScriptPacket,
        tcp: &ScriptSegment,
        sent: &Segment,
        header: SentHeader,
    ) -> Option<PacketDifference> {
        let differs = |span, what, expected: &dyn ToString, found: &dyn ToString| {
            Some(PacketDifference {
                span,
                what,
                expected: expected.to_string(),
                found: found.to_string(),
            })
        };
        if let Some(mark) = packet.ecn
            && !fits(mark.value, sent.ecn)
        {
            return differs(
                mark.span,
                "the ECN field",
                &mark_text(mark.value),
                &field_text(sent.ecn),
            );
        }
        let tos = header.tos | sent.ecn;
        if let Some(awaited) = packet.ip.tos.filter(|awaited| awaited.value != tos) {
            let hex = |byte: u8| format!("{byte:#04x}");
            return differs(
                awaited.span,
                "the byte of differentiated services and ECN",
                &hex(awaited.value),
                &hex(tos),
            );
        }
        if let Some(awaited) = packet.ip.hops.filter(|awaited| awaited.value != header.hops) {
            let what = match sent.ip {
                IpVersion::V4 => "the time to live",
                IpVersion::V6 => "the hop limit",
            };
            return differs(awaited.span, what, &awaited.value, &header.hops);
        }
        let relaxed = if self.options.relaxed_psh { Flags::PSH } else { Flags::NONE };
        let (awaited, flags) = (tcp.flags.value.without(relaxed), sent.flags.without(relaxed));
        if awaited != flags {
            let text = wording::flags;
            return differs(
                tcp.flags.span,
                flag_name(awaited, flags),
                &text(awaited),
                &text(flags),
            );
        }
        if tcp.ae != header.ae {
            let text = |ae| format!("{}{}", wording::flags(flags), if ae { "A" } else { "" });
            return differs(tcp.flags.span, "the AE flag", &text(tcp.ae), &text(header.ae));
        }
        // The host chooses its initial sequence number.
        let any = flags.has(Flags::SYN) || tcp.any_seq;
        if !any && tcp.seq.value != sent.seq.0 || tcp.len.value != sent.payload {
            let range = |seq: u32, len: u32| format!("{seq}:{}({len})", seq.wrapping_add(len));
            let what =
                if tcp.len.value == sent.payload { "the sequence number" } else { "the length" };
            let expected = range(tcp.seq.value, tcp.len.value);
            return differs(tcp.seq.span, what, &expected, &range(sent.seq.0, sent.payload));
        }
        // That of a SYN-ACK is absolute.
        let start = if flags.has(Flags::SYN) { 0 } else { self.numbers.peer_isn };
        let ack = sent.ack.0.wrapping_sub(start);
        if let Some(awaited) = tcp.ack.filter(|awaited| awaited.value != ack) {
            return differs(awaited.span, "the acknowledgment number", &awaited.value, &ack);
        }
        if let Some(awaited) = tcp.window.filter(|awaited| awaited.value != sent.window) {
            return differs(awaited.span, "the window", &awaited.value, &sent.window);
        }
        if let Some(awaited) = tcp.urgent {
            return differs(awaited.span, "the urgent pointer", &awaited.value, &0);
        }
        self.differing_option(&tcp.options, sent)
    }

    fn differing_option(
        &mut self,
        awaited: &Spanned<OptionList>,
        sent: &Segment,
    ) -> Option<PacketDifference> {
        let OptionList::ExactList(list) = &awaited.value else { return None };
        let found = wording::options(sent, self.numbers.peer_isn);
        let list_text = |options: &mut dyn Iterator<Item = &TcpOption>| {
            let texts: Vec<_> = options.map(wording::option).collect();
            format!("<{}>", texts.join(","))
        };
        let differs = |span| PacketDifference {
            span,
            what: "the list of options",
            expected: list_text(&mut list.iter().map(|option| &option.value)),
            found: list_text(&mut found.iter()),
        };
        if list.len() != found.len() {
            return Some(differs(awaited.span));
        }
        for (awaited, found) in list.iter().zip(&found) {
            match (&awaited.value, found) {
                // packetdrill compares the host's clock, not the echoed clock of the peer.
                (TcpOption::Timestamps { val, .. }, TcpOption::Timestamps { val: ours, .. }) => {
                    if let Some(difference) = self.differing_clock(awaited.span, *val, *ours) {
                        return Some(difference);
                    }
                    self.numbers.clock.learn(*val, *ours);
                }
                (awaited, found) if awaited == found => {}
                _ => return Some(differs(awaited.span)),
            }
        }
        None
    }

    /// Compares the timestamp clock with the script's.
    fn differing_clock(&self, span: ScriptSpan, val: u32, ours: u32) -> Option<PacketDifference> {
        let tick = self.rules.tick?;
        let off = self.numbers.clock.off(val, ours);
        (tick.saturating_mul(u64::from(off)) > self.rules.tolerance).then(|| PacketDifference {
            span,
            what: "the timestamp",
            expected: val.to_string(),
            found: format!("one that is {off} ticks off"),
        })
    }
}

fn flag_name(awaited: Flags, found: Flags) -> &'static str {
    let changed = Flags(awaited.0 ^ found.0);
    let one = |flag: Flags| changed == flag;
    if one(Flags::PSH) {
        "the PSH flag"
    } else if one(Flags::FIN) {
        "the FIN flag"
    } else if one(Flags::ECE) {
        "the ECE flag"
    } else if one(Flags::CWR) {
        "the CWR flag"
    } else {
        "the set of flags"
    }
}

const fn fits(mark: EcnMark, field: u8) -> bool {
    match mark {
        EcnMark::NotCapable => field == 0,
        EcnMark::Ect1 => field == 1,
        EcnMark::Ect0 => field == 2,
        EcnMark::Either => field == 1 || field == 2,
        EcnMark::Met => field == 3,
    }
}

const fn mark_text(mark: EcnMark) -> &'static str {
    match mark {
        EcnMark::NotCapable => "[noecn]",
        EcnMark::Ect1 => "[ect1]",
        EcnMark::Ect0 => "[ect0]",
        EcnMark::Either => "[ect01]",
        EcnMark::Met => "[ce]",
    }
}

const fn field_text(field: u8) -> &'static str {
    match field {
        0 => "[noecn]",
        1 => "[ect1]",
        2 => "[ect0]",
        _ => "[ce]",
    }
}
