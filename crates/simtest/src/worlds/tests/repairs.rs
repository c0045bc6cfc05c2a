//! Worlds that once failed during loss recovery.

use crate::worlds::judge;

/// A probe retransmitted data that also arrived; the acknowledgment of the first copy cleared the
/// SACK state, and new bytes were sent as if the second were not in flight.
const TWO_COPIES: &str = r#"
[host.b]
profile = "rfc"

[host.d]
profile = "freebsd-rack-14.3"

[host.d.knobs]
"net.inet.tcp.recvspace" = "2895B"

[[path]]
from = "d"
to = "b"
forward = []
return = [
    { link = { rate = "192880kbit/s", buffer = "6000B" } },
    { reorder = { displace = 2, every = 4 } },
]

[[flow]]
name = "f0"
from = "b"
to = "d"
bulk = "23167B"
"#;

/// A FIN alone is retransmitted although the data in flight exceeds the window.
const BARE_FIN: &str = r#"
[host.a]
profile = "rfc"

[host.b]
profile = "freebsd-13.2"
mtu = "576B"

[[path]]
from = "a"
to = "b"
forward = [
    { loss = { bytes = "0B..17B" } },
]
return = []

[[flow]]
name = "f1"
from = "a"
to = "b"
paced = { chunk = "2B", every = "1us", bytes = "527B" }
"#;

/// Every third packet back is late, each time the one with the new flow-control limit: empty probes
/// never revealed its loss, and both ends probed for ever.
const LIMIT_AFTER: &str = r#"
[host.a]
profile = "quic-rfc9002"

[host.a.knobs]
"max_ack_delay" = "81963us"
"initial_max_stream_data" = "10634B"

[host.b]
profile = "quic-rfc9002"

[host.b.knobs]
"max_ack_ranges" = 1

[[path]]
from = "b"
to = "a"
forward = []
return = [
    { reorder = { by = "115002us", every = 3 } },
]

[[flow]]
name = "f0"
from = "b"
to = "a"
paced = { chunk = "2600B", every = "1302us", bytes = "101865B" }
reads = { chunk = "17139B", every = "86120us" }
"#;

/// An ECN echo, a loss after it, and a last byte that waits until all other data has arrived: the
/// recovery never ended.
const LOSS_AFTER_ECHO: &str = r#"
[host.b]
profile = "freebsd-rack-main"
delay = "17088us"

[host.b.knobs]
"net.inet.tcp.ecn.enable" = 1

[host.c]
profile = "linux-6.18"

[[path]]
from = "b"
to = "c"
forward = [
    { link = { rate = "576kbit/s", buffer = "4packets", queue = { fq_codel = {} } } },
]
return = [
    { delay = "3746us" },
]

[[flow]]
name = "f0"
from = "b"
to = "c"
bulk = "70953B"
"#;

/// BBR restores its window after a pause (bbr_cwnd_event), which was not reported to the sender.
const WINDOW_AFTER_PAUSE: &str = r#"
[host.a]
profile = "linux-6.18"
cc = "bbr"

[host.b]
profile = "freebsd-main"
delay = "210368us"
lro = { rss_hash = "random" }

[host.b.knobs]
"net.inet.tcp.delayed_ack" = false

[[path]]
from = "b"
to = "a"
forward = [
    { corrupt = { bytes = "119B..605B" } },
]
return = []

[[flow]]
name = "f1"
from = "a"
to = "b"
requests = { request = "13B", response = "55B", count = 16 }
"#;

#[test]
fn recovery_in_worlds_that_once_failed() {
    for text in [TWO_COPIES, BARE_FIN, LIMIT_AFTER, LOSS_AFTER_ECHO, WINDOW_AFTER_PAUSE] {
        assert!(judge(text).is_ok(), "{:?}\n{text}", judge(text));
    }
}
