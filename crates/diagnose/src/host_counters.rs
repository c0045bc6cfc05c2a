//! What limits the connections of a host by its counters: those of `nstat` on Linux (`TcpExt...`).
//!
//! Counters are of all connections of the host, so nothing here is of a single one. Retransmissions that
//! D-SACKs report as not needed were not of lost packets: only the others count as loss.

use std::collections::BTreeMap;

/// The counters by name, as nstat prints them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostCounters {
    /// The counters.
    pub values: BTreeMap<String, u64>,
}

/// What the counters of a host show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLimit {
    /// Its name in JSON.
    pub kind: &'static str,
    /// Code of the finding that a capture of such a connection has; `None` without one.
    pub code: Option<&'static str>,
    /// What is the case, with its numbers.
    pub title: String,
    /// What helps.
    pub help: &'static str,
    /// The counters that show it.
    pub evidence: Vec<(&'static str, u64)>,
}

/// One segment in this many must be retransmitted for losses to matter, as of a socket.
const LOSS_RATIO: u64 = 2_000;
/// Fewer segments show no ratio.
const LEAST_SEGMENTS: u64 = 1_000;

impl HostCounters {
    /// The value of a counter; 0 if it is absent: nstat leaves zeros out.
    pub fn of(&self, name: &str) -> u64 {
        self.values.get(name).copied().unwrap_or(0)
    }

    fn sum(&self, names: &[&str]) -> u64 {
        names.iter().fold(0, |sum, name| sum.saturating_add(self.of(name)))
    }

    /// Those of `names` that are not zero.
    fn evidence(&self, names: &[&'static str]) -> Vec<(&'static str, u64)> {
        names.iter().map(|&name| (name, self.of(name))).filter(|one| one.1 > 0).collect()
    }

    /// Segments retransmitted, SYNs and SYN-ACKs left out.
    pub fn retransmitted(&self) -> u64 {
        self.of(RETRANSMITTED).saturating_sub(self.of(SYNS))
    }

    /// Retransmissions among them that were not needed, by the D-SACKs of the peers.
    pub fn spurious(&self) -> u64 {
        self.of(DSACKS).min(self.retransmitted())
    }

    /// What limits connections of the host; what drops requests first, then losses and waits.
    pub fn limits(&self) -> Vec<HostLimit> {
        let of_rules = RULES.iter().filter_map(|rule| {
            let number = self.sum(rule.any_of);
            (number > 0).then(|| HostLimit {
                kind: rule.kind,
                code: rule.code,
                title: format!("{} {}", times(number), rule.title),
                help: rule.help,
                evidence: self.evidence(rule.any_of),
            })
        });
        let mut limits: Vec<_> = of_rules.collect();
        limits.extend(self.retransmissions());
        limits
    }

    /// Losses, or reordering that was taken for losses.
    fn retransmissions(&self) -> Vec<HostLimit> {
        let (sent, all, spurious) = (self.of(SENT), self.retransmitted(), self.spurious());
        let needed = all - spurious;
        let mut limits = Vec::new();
        let is_much = |segments: u64| segments > 0 && segments.saturating_mul(LOSS_RATIO) >= sent;
        if sent < LEAST_SEGMENTS {
            return limits;
        }
        if is_much(needed) {
            limits.push(HostLimit {
                kind: "loss",
                code: Some("CC201"),
                title: format!(
                    "{needed} of {sent} segments ({}) were retransmitted and needed",
                    percent(needed, sent)
                ),
                help: "a capture of a slow connection shows where they are lost: ackclock diagnose",
                evidence: self.evidence(&[
                    SENT,
                    RETRANSMITTED,
                    DSACKS,
                    TIMEOUTS,
                    LOST_AGAIN,
                    PROBES,
                ]),
            });
        }
        if !is_much(spurious) {
            return limits;
        }
        let reordered = self.sum(&REORDERED);
        let (kind, code, why, help) = match (reordered, self.of(SPURIOUS_TIMEOUTS)) {
            (0, 0) => (
                "spurious",
                "CC303",
                "what they carried had arrived",
                "a delay of ACKs or of packets: a capture at the sender shows which",
            ),
            (0, _) => (
                "spurious-timeouts",
                "CC303",
                "timeouts expired before late ACKs came",
                "a path whose delay jumps; on Linux 6.15 and later net.ipv4.tcp_rto_min_us",
            ),
            _ => (
                "reordering",
                "CC301",
                "packets overtake others, and the senders take the late ones for lost",
                "one path per connection (ECMP by flow, bonding with layer3+4), RSS that keeps a flow on a queue; RACK stays on",
            ),
        };
        limits.push(HostLimit {
            kind,
            code: Some(code),
            title: format!("{spurious} of {all} retransmissions were not needed: {why}"),
            help,
            evidence: self.evidence(&[
                RETRANSMITTED,
                DSACKS,
                "TcpExtTCPDSACKOfoRecv",
                REORDERED[0],
                REORDERED[1],
                SPURIOUS_TIMEOUTS,
                "TcpExtTCPDSACKUndo",
            ]),
        });
        limits
    }
}

const SENT: &str = "TcpOutSegs";
const RETRANSMITTED: &str = "TcpRetransSegs";
const SYNS: &str = "TcpExtTCPSynRetrans";
const DSACKS: &str = "TcpExtTCPDSACKRecv";
const TIMEOUTS: &str = "TcpExtTCPTimeouts";
const LOST_AGAIN: &str = "TcpExtTCPLostRetransmit";
const PROBES: &str = "TcpExtTCPLossProbes";
const SPURIOUS_TIMEOUTS: &str = "TcpExtTCPSpuriousRTOs";
const REORDERED: [&str; 2] = ["TcpExtTCPSACKReorder", "TcpExtTCPTSReorder"];

/// A limit that is there once one of these counters has moved.
struct CounterRule {
    kind: &'static str,
    code: Option<&'static str>,
    any_of: &'static [&'static str],
    title: &'static str,
    help: &'static str,
}

/// What counters mean: SNMP counters of Documentation/networking/snmp_counter.rst, and their places in Linux 6.18.
const RULES: &[CounterRule] = &[
    CounterRule {
        kind: "listen-overflow",
        code: Some("CC204"),
        any_of: &["TcpExtListenOverflows"],
        title: "a connection was refused or delayed by a full accept queue of this host",
        help: "an application that accepts faster, a larger backlog of listen(), net.core.somaxconn",
    },
    CounterRule {
        kind: "syn-queue",
        code: Some("CC204"),
        any_of: &["TcpExtTCPReqQFullDrop", "TcpExtTCPReqQFullDoCookies"],
        title: "the queue of half-open connections was full",
        help: "net.ipv4.tcp_max_syn_backlog, net.ipv4.tcp_syncookies=1",
    },
    CounterRule {
        kind: "syn-lost",
        code: Some("CC204"),
        any_of: &["TcpExtTCPSynRetrans"],
        title: "a SYN or SYN-ACK was retransmitted: each waits for at least a second",
        help: "the peers' listen queues, firewalls on the path; with ECN net.ipv4.tcp_ecn=0 as a trial",
    },
    CounterRule {
        kind: "gave-up",
        code: Some("CC003"),
        any_of: &["TcpExtTCPAbortOnTimeout"],
        title: "a connection was given up after unanswered retransmissions",
        help: "a firewall or NAT that forgets idle connections (keepalive), an MTU black hole (net.ipv4.tcp_mtu_probing=1)",
    },
    CounterRule {
        kind: "memory",
        code: None,
        any_of: &["TcpExtTCPAbortOnMemory", "TcpExtTCPMemoryPressures"],
        title: "the memory of TCP was short",
        help: "net.ipv4.tcp_mem; many idle connections with full buffers",
    },
    CounterRule {
        kind: "receive-buffer",
        code: Some("CC401"),
        any_of: &[
            "TcpExtPruneCalled",
            "TcpExtRcvPruned",
            "TcpExtOfoPruned",
            "TcpExtTCPRcvQDrop",
            "TcpExtTCPOFODrop",
            "TcpExtTCPZeroWindowDrop",
        ],
        title: "packets did not fit into a receive buffer of this host",
        help: "the third figure of net.ipv4.tcp_rmem; no SO_RCVBUF; a faster reader",
    },
    CounterRule {
        kind: "slow-reader",
        code: Some("CC403"),
        any_of: &["TcpExtTCPToZeroWindowAdv"],
        title: "a receive window of this host closed: its application did not read",
        help: "an application that reads faster; ss -ti shows which by Recv-Q",
    },
    CounterRule {
        kind: "backlog-drop",
        code: None,
        any_of: &["TcpExtTCPBacklogDrop"],
        title: "a packet was dropped while the application held its socket",
        help: "larger net.ipv4.tcp_rmem and tcp_wmem, fewer and larger reads, RPS or RSS over more processors",
    },
    CounterRule {
        kind: "checksum",
        code: None,
        any_of: &["TcpInCsumErrors"],
        title: "a segment arrived with a wrong checksum",
        help: "cables, offloads and virtual switches on the way: ethtool -S, ethtool -K",
    },
];

/// `once`, `31 times`.
fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.2} %", part as f64 * 100.0 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(counters: &[(&str, u64)]) -> Vec<&'static str> {
        let values = counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        HostCounters { values }.limits().into_iter().map(|limit| limit.kind).collect()
    }

    #[test]
    fn retransmissions_that_were_not_needed_are_no_loss() {
        let all = |more: &[(&'static str, u64)]| {
            kinds(&[&[(SENT, 100_000), (RETRANSMITTED, 400)], more].concat())
        };
        assert_eq!(all(&[]), ["loss"]);
        assert_eq!(all(&[(DSACKS, 400)]), ["spurious"]);
        assert_eq!(all(&[(DSACKS, 400), (SPURIOUS_TIMEOUTS, 9)]), ["spurious-timeouts"]);
        assert_eq!(all(&[(DSACKS, 390), (REORDERED[0], 30)]), ["reordering"]);
        assert_eq!(all(&[(DSACKS, 200), (REORDERED[1], 30)]), ["loss", "reordering"]);
        // Peers may report more than was retransmitted.
        assert_eq!(all(&[(DSACKS, u64::MAX)]), ["spurious"]);
        // SYNs are no data.
        assert_eq!(all(&[(SYNS, 400)]), ["syn-lost"]);
    }

    #[test]
    fn few_segments_show_no_ratio() {
        assert_eq!(kinds(&[(SENT, 900), (RETRANSMITTED, 3)]), [""; 0]);
        assert_eq!(kinds(&[(SENT, 1_000_000), (RETRANSMITTED, 3)]), [""; 0]);
    }

    #[test]
    fn what_drops_requests_comes_first() {
        let counters = [(SENT, 10_000), (RETRANSMITTED, 100), ("TcpExtListenOverflows", 4)];
        assert_eq!(kinds(&counters), ["listen-overflow", "loss"]);
        let limit = &HostCounters { values: [("TcpExtListenOverflows".to_owned(), 1)].into() };
        assert!(limit.limits()[0].title.starts_with("once a connection"));
    }
}
