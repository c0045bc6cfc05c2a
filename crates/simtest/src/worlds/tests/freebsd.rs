//! Worlds of FreeBSD hosts that once failed.

use crate::worlds::judge;

/// The reduction of an ECN echo by Linux's CUBIC was taken for a fast recovery: RACK sent new data
/// by the credit of PRR, beyond the window.
const ECHO_UNDER_LINUX_CUBIC: &str = r#"
[host.a]
profile = "freebsd-13.0"

[host.b]
profile = "freebsd-rack-14.3"
cc = "cubic-linux"

[host.b.knobs]
"net.inet.tcp.ecn.enable" = 1

[[path]]
from = "a"
to = "b"
forward = []
return = [
    { link = { rate = "303kbit/s", buffer = "11p", queue = "fq_codel" } },
]

[[flow]]
name = "f0"
from = "b"
to = "a"
bulk = "30408B"
"#;

/// An ECN echo without SACK, with Linux's Reno: the next acknowledgment was taken for a partial
/// one, and data in flight was retransmitted.
const ECHO_WITHOUT_SACK: &str = r#"
[host.b]
profile = "freebsd-13.2"
cc = "reno"

[host.c]
profile = "freebsd-rack-main"

[host.c.knobs]
"net.inet.tcp.ecn.enable" = 1
"net.inet.tcp.sack.enable" = false

[[path]]
from = "c"
to = "b"
forward = []
return = [
    { link = { rate = "1Mbit/s", buffer = "4p", queue = { fq_codel = { interval = "1us" } } } },
]

[[flow]]
name = "f6"
from = "c"
to = "b"
requests = { request = "1B", response = "5793B", count = 1 }
"#;

#[test]
fn freebsd_in_worlds_that_once_failed() {
    for text in [ECHO_UNDER_LINUX_CUBIC, ECHO_WITHOUT_SACK] {
        assert!(judge(text).is_ok(), "{:?}\n{text}", judge(text));
    }
}
