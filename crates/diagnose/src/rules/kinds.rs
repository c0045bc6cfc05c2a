//! The kinds of findings: what a finding is more exactly than its code says.
//!
//! Codes are stable and few; some cover several causes, which have other cures.

/// A kind of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingKind {
    /// Its name, as in the JSON output.
    pub name: &'static str,
    /// The codes of its findings.
    pub codes: &'static [&'static str],
    /// What it means, in a sentence.
    pub meaning: &'static str,
}

/// All kinds, in the order of their names.
pub const KINDS: &[FindingKind] = &[
    FindingKind {
        name: "app-window",
        codes: &["CC501"],
        meaning: "the application sends as much as a window of its own allows, then waits for its peer",
    },
    FindingKind {
        name: "backlog",
        codes: &["CC002", "CC204"],
        meaning: "the server drops SYNs of several clients: its queue of new connections is full",
    },
    FindingKind {
        name: "bufferbloat",
        codes: &["CC835"],
        meaning: "a queue much longer than the path needs stands at the bottleneck",
    },
    FindingKind {
        name: "burst",
        codes: &["CC201", "CC202", "CC205"],
        meaning: "packets are lost several in a row",
    },
    FindingKind {
        name: "forgotten",
        codes: &["CC204"],
        meaning: "after a rest nothing is answered: a firewall or NAT forgot the connection",
    },
    FindingKind {
        name: "in-request",
        codes: &["CC501", "CC505", "CC506", "CC831"],
        meaning: "a host pauses within its messages",
    },
    FindingKind {
        name: "mtu",
        codes: &["CC204", "CC852"],
        meaning: "no packet above a size is ever acknowledged: a link with a smaller MTU, and no ICMP error",
    },
    FindingKind {
        name: "no-sack",
        codes: &["CC201", "CC202", "CC203", "CC204", "CC205"],
        meaning: "SACK was not negotiated: one lost packet is repaired a round trip",
    },
    FindingKind {
        name: "no-scaling",
        codes: &["CC401"],
        meaning: "window scaling was not negotiated: the window is at most 65,535 bytes",
    },
    FindingKind {
        name: "policer",
        codes: &["CC201", "CC811"],
        meaning: "a token bucket drops what exceeds its rate, without a queue",
    },
    FindingKind {
        name: "rate-drop",
        codes: &["CC602", "CC837"],
        meaning: "the path carries less from a time on than before",
    },
    FindingKind {
        name: "return-path",
        codes: &["CC402", "CC601", "CC602", "CC841"],
        meaning: "the way of the ACKs is full: they wait there, and the data for them",
    },
    FindingKind {
        name: "round-trips",
        codes: &["CC501", "CC831"],
        meaning: "messages go one after the other, and each waits for a round trip",
    },
    FindingKind {
        name: "slow-reader",
        codes: &["CC821", "CC822"],
        meaning: "the receiving application reads slowly, and its limits with it",
    },
    FindingKind {
        name: "small-window",
        codes: &["CC821", "CC822"],
        meaning: "the receiver grants less than a round trip carries",
    },
    FindingKind {
        name: "syn-ecn",
        codes: &["CC002", "CC204"],
        meaning: "SYNs that ask for ECN are not answered, those without are",
    },
    FindingKind {
        name: "syn-lost",
        codes: &["CC002", "CC204"],
        meaning: "a SYN or its answer was lost, so that the opening waited for a timer",
    },
    FindingKind {
        name: "think-client",
        codes: &["CC506", "CC831"],
        meaning: "the client waits before its requests",
    },
    FindingKind {
        name: "think-server",
        codes: &["CC505", "CC831"],
        meaning: "the server waits before its responses",
    },
];

/// The kinds of findings with this code.
pub fn kinds_of(code: &str) -> impl Iterator<Item = &'static FindingKind> {
    KINDS.iter().filter(move |kind| kind.codes.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_sorted_and_their_codes_are_rules() {
        assert!(KINDS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for kind in KINDS {
            let is_rule = |code: &&str| {
                super::super::rule(code).is_some() || crate::quic::rules::quic_rule(code).is_some()
            };
            assert!(kind.codes.iter().all(is_rule), "{kind:?}");
        }
    }
}
