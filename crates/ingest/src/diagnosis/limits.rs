//! What limits a transfer by each finding, as the rest of a sentence: "limited by ...".

/// Code, kind and phrase; an empty kind is that of all others.
const LIMITS: &[(&str, &str, &str)] = &[
    ("CC101", "", "a slow start with stretch ACKs"),
    ("CC102", "", "slow start"),
    ("CC103", "", "a slow start that overran the queue"),
    ("CC104", "", "a slow start that ended early"),
    ("CC105", "", "linear growth from a low threshold"),
    ("CC201", "burst", "bursts of losses"),
    ("CC201", "no-sack", "losses without SACK"),
    ("CC201", "policer", "a policer"),
    ("CC201", "", "random losses"),
    ("CC202", "burst", "bursts of losses of a full queue"),
    ("CC202", "no-sack", "losses of a full queue without SACK"),
    ("CC202", "", "losses of a full queue"),
    ("CC203", "no-sack", "losses at the end of the data without SACK"),
    ("CC203", "", "losses at the end of the data"),
    ("CC204", "backlog", "a full queue of new connections at the server"),
    ("CC204", "forgotten", "a firewall or NAT that forgot the connection"),
    ("CC204", "mtu", "a link with a smaller MTU"),
    ("CC204", "no-sack", "timeouts without SACK"),
    ("CC204", "syn-ecn", "dropped SYNs that ask for ECN"),
    ("CC204", "syn-lost", "a lost SYN"),
    ("CC204", "two-answers", "an opening that two hosts answered"),
    ("CC204", "", "retransmission timeouts"),
    ("CC205", "burst", "a few bursts of losses"),
    ("CC205", "no-sack", "a few losses without SACK"),
    ("CC205", "", "a few losses without a full queue"),
    ("CC206", "", "ECN marks"),
    ("CC301", "", "reordering"),
    ("CC302", "", "spurious fast recoveries"),
    ("CC303", "", "spurious timeouts"),
    ("CC401", "no-scaling", "the receiver's window, which has no scaling"),
    ("CC401", "", "the receiver's window"),
    ("CC402", "return-path", "the full path of the ACKs"),
    ("CC402", "", "aggregated ACKs"),
    ("CC403", "", "a receiver that reads slowly"),
    ("CC501", "app-window", "a window of the application"),
    ("CC501", "in-request", "pauses within messages"),
    ("CC501", "round-trips", "one round trip after the other"),
    ("CC501", "", "the application"),
    ("CC502", "", "slow start after each rest"),
    ("CC503", "", "the send buffer"),
    ("CC504", "", "delayed ACKs"),
    ("CC505", "in-request", "pauses of the server within its messages"),
    ("CC505", "think-server", "waits for the server"),
    ("CC505", "", "waits for the server"),
    ("CC506", "in-request", "pauses of the client within its messages"),
    ("CC506", "think-client", "waits for the client"),
    ("CC506", "", "waits for the client"),
    ("CC602", "rate-drop", "a path that carries less than before"),
    ("CC602", "return-path", "competing traffic on the path of the ACKs"),
    ("CC602", "", "competing traffic"),
    ("CC701", "", "a coarse clock"),
    ("CC801", "", "a slow handshake"),
    ("CC802", "", "the anti-amplification limit"),
    ("CC811", "policer", "a policer"),
    ("CC811", "", "losses"),
    ("CC812", "", "spurious losses"),
    ("CC813", "", "probe timeouts"),
    ("CC814", "", "persistent congestion"),
    ("CC815", "", "CE marks"),
    (
        "CC821",
        "slow-reader",
        "a receiver that reads slowly, and its flow control of the connection",
    ),
    ("CC821", "small-window", "a small flow control window of the connection"),
    ("CC821", "", "the receiver's flow control of the connection"),
    ("CC822", "slow-reader", "a receiver that reads slowly, and its flow control of a stream"),
    ("CC822", "small-window", "a small flow control window of a stream"),
    ("CC822", "", "the receiver's flow control of a stream"),
    ("CC823", "", "the number of streams"),
    ("CC831", "in-request", "pauses within messages"),
    ("CC831", "round-trips", "one round trip after the other"),
    ("CC831", "think-client", "waits for the client"),
    ("CC831", "think-server", "waits for the server"),
    ("CC831", "", "the application"),
    ("CC832", "", "pacing"),
    ("CC833", "", "a congestion window that does not grow"),
    ("CC834", "", "slow start"),
    ("CC836", "", "a sender that sends in bursts"),
    ("CC837", "rate-drop", "a rate that dropped"),
    ("CC837", "", "a rate that dropped"),
    ("CC838", "", "a timer of the sender"),
    ("CC841", "return-path", "the full path of the ACKs"),
    ("CC841", "", "delayed ACKs"),
    ("CC851", "", "failed ECN validation"),
    ("CC852", "mtu", "a link with a smaller MTU"),
    ("CC852", "", "losses of large datagrams"),
    ("CC853", "", "a change of the path"),
];

/// What limits by a finding; `None` if its title is the answer, as of failures.
pub(super) fn limit_of(code: &str, kind: &str) -> Option<&'static str> {
    exactly(code, kind).or_else(|| exactly(code, ""))
}

/// The name of a rule with what limits by a kind of its findings.
pub(super) fn named(code: &str, name: &str, kind: &str) -> String {
    match exactly(code, kind).filter(|_| !kind.is_empty()) {
        Some(limit) => format!("{name}: {limit}"),
        None => name.to_owned(),
    }
}

fn exactly(code: &str, kind: &str) -> Option<&'static str> {
    LIMITS.iter().find(|(of, named, _)| (*of, *named) == (code, kind)).map(|(.., limit)| *limit)
}

#[cfg(test)]
mod tests {
    use diagnose::rules::kinds_of;

    use super::super::explain::all;
    use super::*;

    #[test]
    fn every_code_that_slows_a_transfer_has_a_limit() {
        // Failures, what a capture lacks, a queue and a saturated path have their titles.
        let has_title = |code: &str| {
            code.starts_with("CC0")
                || code.starts_with("CC9")
                || ["CC601", "CC603", "CC803", "CC804", "CC835"].contains(&code)
        };
        for rule in all() {
            assert_eq!(limit_of(rule.code, "").is_none(), has_title(rule.code), "{}", rule.code);
        }
        // What a kind says more exactly than its code, the headline says, too.
        for kind in diagnose::rules::KINDS {
            for code in kind.codes.iter().filter(|code| !has_title(code)) {
                assert!(exactly(code, kind.name).is_some(), "{code} {}", kind.name);
            }
        }
        for (code, kind, _) in LIMITS.iter().filter(|(_, kind, _)| !kind.is_empty()) {
            assert!(kinds_of(code).any(|known| known.name == *kind), "{code} {kind}");
        }
    }
}
