//! The kinds of findings: what a finding is more exactly than its code says.
//!
//! Codes are stable and few; some cover several causes, which have other cures. Where the help of a code is not that of
//! a kind, the kind has its own.

use super::help::{Help, Remedy, RemedyHost, SACK_ON_FREEBSD, SACK_ON_LINUX};

/// A path that carries less from a time on.
pub(super) const RATE_DROP: &str = "rate-drop";

/// A kind of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingKind {
    /// Its name, as in the JSON output.
    pub name: &'static str,
    /// The codes of its findings.
    pub codes: &'static [&'static str],
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// What to do in place of the help of its codes; empty where that is the help of the kind, too.
    pub help: Help,
}

/// All kinds, in the order of their names.
pub const KINDS: &[FindingKind] = &[
    FindingKind {
        name: "app-window",
        codes: &["CC501"],
        meaning: "the application sends as much as a window of its own allows, then waits for its peer",
        help: &[Remedy::general(
            "application: a larger window of its own (HTTP/2: SETTINGS_INITIAL_WINDOW_SIZE; SSH and SFTP: more requests \
             outstanding, larger channel windows; SMB: more credits), or several streams at once",
        )],
    },
    FindingKind {
        name: "backlog",
        codes: &["CC002", "CC204"],
        meaning: "the server drops SYNs of several clients: its queue of new connections is full",
        help: &[
            Remedy::freebsd(
                RemedyHost::Server,
                "server: kern.ipc.soacceptqueue and the backlog of listen() higher; netstat -Lan shows its queue",
            ),
            Remedy::linux(
                RemedyHost::Server,
                "server: net.core.somaxconn and the backlog of listen() higher; nstat -az TcpExtListenOverflows counts \
                 the SYNs that were dropped",
            ),
            Remedy::general("server: accept connections at once, before any work for one of them"),
        ],
    },
    FindingKind {
        name: "bufferbloat",
        codes: &["CC835"],
        meaning: "a queue much longer than the path needs stands at the bottleneck",
        help: &[],
    },
    FindingKind {
        name: "burst",
        codes: &["CC201", "CC202", "CC205"],
        meaning: "packets are lost several in a row",
        help: &[],
    },
    FindingKind {
        name: "foreign-reset",
        codes: &["CC001"],
        meaning: "a reset that does not acknowledge the SYN: it is not the server's, and the client ignores it",
        help: &[Remedy::general(
            "find what sends it: its time to live beside that of the server's packets, captures before and behind each \
             firewall",
        )],
    },
    FindingKind {
        name: "forgotten",
        codes: &["CC204"],
        meaning: "after a rest nothing is answered: a firewall or NAT forgot the connection",
        help: &[
            Remedy::freebsd(
                RemedyHost::Sender,
                "net.inet.tcp.always_keepalive=1 and net.inet.tcp.keepidle below the timeout of the firewall",
            ),
            Remedy::linux(
                RemedyHost::Sender,
                "SO_KEEPALIVE in the application and net.ipv4.tcp_keepalive_time below the timeout of the firewall",
            ),
            Remedy::general(
                "a longer timeout of idle connections at the firewall or NAT, or heartbeats of the application",
            ),
        ],
    },
    FindingKind {
        name: "in-request",
        codes: &["CC501", "CC505", "CC506", "CC831"],
        meaning: "a host pauses within its messages",
        help: &[],
    },
    FindingKind {
        name: "mtu",
        codes: &["CC204", "CC852"],
        meaning: "no packet above a size is ever acknowledged: a link with a smaller MTU, and no ICMP error",
        help: &[
            Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.pmtud_blackhole_detection=1"),
            Remedy::linux(RemedyHost::Sender, "net.ipv4.tcp_mtu_probing=1"),
            Remedy::general(
                "let ICMP errors \"fragmentation needed\" (type 3 code 4, ICMPv6 type 2) pass, or lower the MSS of SYNs at \
                 the router before the link",
            ),
        ],
    },
    FindingKind {
        name: "no-sack",
        codes: &["CC201", "CC202", "CC203", "CC204", "CC205"],
        meaning: "SACK was not negotiated: one lost packet is repaired a round trip",
        help: &[
            SACK_ON_FREEBSD,
            SACK_ON_LINUX,
            Remedy::general(
                "find what removes SACK: captures of the SYNs at both hosts show whether a box on the path does",
            ),
        ],
    },
    FindingKind {
        name: "no-scaling",
        codes: &["CC401"],
        meaning: "window scaling was not negotiated: the window is at most 65,535 bytes",
        help: &[],
    },
    FindingKind {
        name: "policer",
        codes: &["CC201", "CC811"],
        meaning: "a token bucket drops what exceeds its rate, without a queue",
        help: &[
            Remedy::freebsd(
                RemedyHost::Sender,
                "a dummynet pipe below the rate of the policer: ipfw pipe 1 config bw RATE",
            ),
            Remedy::linux(
                RemedyHost::Sender,
                "a shaper below the rate of the policer: tc qdisc replace dev DEV root fq maxrate RATE, or SO_MAX_PACING_RATE",
            ),
            Remedy::general(
                "ask who polices the link for its rate and a larger burst, or for a shaper with a queue",
            ),
        ],
    },
    FindingKind {
        name: RATE_DROP,
        codes: &["CC602", "CC837"],
        meaning: "the path carries less from a time on than before",
        help: &[],
    },
    FindingKind {
        name: "return-path",
        codes: &["CC402", "CC601", "CC602", "CC841"],
        meaning: "the way of the ACKs is full: they wait there, and the data for them",
        help: &[],
    },
    FindingKind {
        name: "round-trips",
        codes: &["CC501", "CC831"],
        meaning: "messages go one after the other, and each waits for a round trip",
        help: &[],
    },
    FindingKind {
        name: "slow-reader",
        codes: &["CC821", "CC822"],
        meaning: "the receiving application reads slowly, and its limits with it",
        help: &[],
    },
    FindingKind {
        name: "small-window",
        codes: &["CC821", "CC822"],
        meaning: "the receiver grants less than a round trip carries",
        help: &[],
    },
    FindingKind {
        name: "syn-ecn",
        codes: &["CC002", "CC204"],
        meaning: "SYNs that ask for ECN are not answered, those without are",
        help: &[
            Remedy::freebsd(RemedyHost::Client, "client: net.inet.tcp.ecn.enable=2 (default)"),
            Remedy::linux(RemedyHost::Client, "client: net.ipv4.tcp_ecn=2 (default)"),
            Remedy::general(
                "find what drops SYNs with the flags ECE and CWR: firewall, load balancer or old router",
            ),
        ],
    },
    FindingKind {
        name: "syn-lost",
        codes: &["CC002", "CC204"],
        meaning: "a SYN or its answer was lost, so that the opening waited for a timer",
        help: &[
            Remedy::freebsd(
                RemedyHost::Client,
                "client: net.inet.tcp.rexmit_initial (1,000 ms) lower on known paths",
            ),
            Remedy::general(
                "reuse connections; capture at the server too: if the SYN arrives there, the server, its firewall or the \
                 way back drops it; if not, the way there does",
            ),
        ],
    },
    FindingKind {
        name: "think-client",
        codes: &["CC506", "CC831"],
        meaning: "the client waits before its requests",
        help: &[],
    },
    FindingKind {
        name: "think-server",
        codes: &["CC505", "CC831"],
        meaning: "the server waits before its responses",
        help: &[],
    },
    FindingKind {
        name: "two-answers",
        codes: &["CC204"],
        meaning: "SYNs were answered with different sequence numbers, by several hosts behind one address",
        help: &[Remedy::general(
            "a load balancer that sends all SYNs of a connection to one server; no proxy of SYNs beside it",
        )],
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
