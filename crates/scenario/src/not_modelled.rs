//! Advice on names of real systems, controllers and queues that are not modelled: what is modelled
//! instead, and that it differs. A misspelt name has none.

use super::nearest::{did_you_mean, family_of, nearest_version};

/// Names and the advice on them.
type Advice = (&'static [&'static str], &'static str);

const CONTROLLERS: [Advice; 6] = [
    (&["bbr1", "bbrv1", "bbr-v1"], "BBR version 1 is `bbr`"),
    (&["bbr-lsquic"], "BBR of lsquic 4.9.3 is version 1, `bbr`"),
    (&["bbrv3", "bbr-v3"], "BBR version 3 of Linux is `bbr3`"),
    (
        &["bbr2", "bbrv2", "bbr-v2"],
        "`bbr3` is version 3, which replaced it; `bbr` is version 1, which does not limit its flight by losses or CE marks",
    ),
    (
        &["prague", "tcp-prague", "tcp_prague", "dctcp", "scream"],
        "no modelled controller responds to the fraction of packets that are marked, as L4S and DCTCP do",
    ),
    (
        &["hystart", "hystart++"],
        "HyStart is a part of Linux's `cubic`, and HyStart++ of QUIC stacks that have it",
    ),
];

const QUEUES: [Advice; 7] = [
    (
        &["cake"],
        "`fq_codel` separates flows too, but has no shaper, no fairness between hosts and none of CAKE's tins",
    ),
    (
        &["dualpi2", "dualq", "l4s"],
        "`pie` has one queue; the low-latency queue of L4S and its coupling are missing",
    ),
    (
        &["fq_pie", "fq-pie"],
        "`pie` has one queue for all flows; `fq_codel` separates flows, with CoDel in place of PIE",
    ),
    (&["fq", "sfq", "drr", "hhf"], "`fq_codel` separates flows, and has CoDel besides"),
    (
        &["cobalt", "blue", "sfb", "choke", "gred", "ared", "pi2"],
        "modelled AQMs are `codel`, `fq_codel`, `pie` and `red`",
    ),
    (
        &["fifo", "pfifo", "bfifo", "pfifo_fast", "droptail", "drop_tail", "taildrop", "tail-drop"],
        "a queue that drops what exceeds its `buffer` is `drop-tail`",
    ),
    (
        &["htb", "hfsc", "tbf", "netem", "mq", "mqprio", "etf", "taprio", "ingress", "noqueue"],
        "a rate is `link` or `shaper`, a policer `policer`, a delay or loss an element of its own; a queue is one discipline",
    ),
];

const SYSTEMS: [Advice; 3] = [
    (
        &[
            "windows",
            "macos",
            "darwin",
            "ios",
            "openbsd",
            "netbsd",
            "dragonfly",
            "solaris",
            "illumos",
            "lwip",
            "smoltcp",
            "gvisor",
            "rfc9293",
        ],
        "modelled TCPs are FreeBSD's and Linux's; `rfc` follows the RFCs alone",
    ),
    (
        &["android", "ubuntu", "debian", "rhel", "fedora", "centos", "alpine", "chromeos"],
        "name the version of its kernel: `uname -r`; `linux-6.18` is the latest",
    ),
    (
        &[
            "mvfst", "ngtcp2", "lsquic", "aioquic", "quicly", "xquic", "tquic", "kwik", "haproxy",
            "nginx", "chromium", "gquic", "h2o",
        ],
        "`quic-rfc9002` follows RFC 9002 alone",
    ),
];

/// Returns the advice on a name, in lower case.
fn advice(table: &[Advice], name: &str) -> Option<&'static str> {
    table.iter().find(|(names, _)| names.contains(&name)).map(|(_, advice)| *advice)
}

/// Advice on a congestion control that is not modelled; `None` for one that is unknown.
pub fn congestion_control(name: &str) -> Option<&'static str> {
    advice(&CONTROLLERS, &name.to_lowercase())
}

/// Whether a real congestion control that is not modelled has this name.
pub fn is_congestion_control(name: &str) -> bool {
    congestion_control(name).is_some()
        || cc::registry::NOT_MODELLED.contains(&name.to_lowercase().as_str())
}

/// Advice on a queue discipline that is not modelled.
pub(super) fn queue(name: &str) -> Option<&'static str> {
    advice(&QUEUES, &name.to_lowercase())
}

/// Advice on a profile that is not modelled: the nearest version of its family, or what is modelled
/// of such systems, or a similar name of `profiles`.
pub fn profile(name: &str, profiles: &[&str]) -> Option<String> {
    let small = name.to_lowercase();
    let family = small.find(|c: char| c.is_ascii_digit() || c == '-' || c == ' ');
    let family = &small[..family.unwrap_or(small.len())];
    if let Some(advice) = advice(&SYSTEMS, &small).or_else(|| advice(&SYSTEMS, family)) {
        return Some(advice.to_owned());
    }
    match nearest_version(name, profiles) {
        // Less was written than the name has: `linux`, `freebsd-13`.
        Some(near) if !near.starts_with(&small) && family_of(near) == family_of(&small) => {
            Some(format!("this version is not modelled; the nearest is `{near}`"))
        }
        _ => did_you_mean(name, profiles.iter().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILES: [&str; 4] = ["linux-6.1", "linux-6.18", "freebsd-14.3", "quic-rfc9002"];

    #[test]
    fn a_version_that_is_not_modelled_is_no_misspelling() {
        let hint = |name| profile(name, &PROFILES).unwrap_or_default();
        let nearest = |near: &str| format!("this version is not modelled; the nearest is `{near}`");
        assert_eq!(hint("linux-6.19"), nearest("linux-6.18"));
        assert_eq!(hint("linux-7.2"), nearest("linux-6.18"));
        assert_eq!(hint("freebsd-15"), nearest("freebsd-14.3"));
        assert_eq!(hint("linux"), "did you mean `linux-6.18`?");
        assert_eq!(hint("freebsd-14"), "did you mean `freebsd-14.3`?");
        assert_eq!(hint("linxu-6.18"), "did you mean `linux-6.18`?");
        assert!(hint("Windows-11").contains("FreeBSD's and Linux's"));
        assert!(hint("mvfst").contains("`quic-rfc9002`"));
        assert_eq!(profile("plan9", &PROFILES), None);
    }

    #[test]
    fn no_modelled_name_is_called_missing() {
        let all = CONTROLLERS.iter().chain(&QUEUES).chain(&SYSTEMS);
        for name in all.flat_map(|(names, _)| *names) {
            assert!(!cc::registry::NAMES.contains(name), "{name}");
            assert!(!crate::host::ALL_NAMES.contains(name), "{name}");
        }
        assert_eq!(congestion_control("bbr"), None);
        assert_eq!(congestion_control("brb"), None);
        assert!(congestion_control("BBRv3").unwrap().contains("`bbr3`"));
        assert!(queue("cake").is_some() && queue("codel").is_none());
    }
}
