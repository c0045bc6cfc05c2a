//! Worlds that once failed because of probes or of queues that change.

use crate::worlds::judge;

/// RACK probes a window below a segment, which an empty probe does not open, for ever.
const SMALL_WINDOW: &str = r#"
[host.b]
profile = "linux-6.18"
gro = true

[host.b.knobs]
"net.ipv4.tcp_rmem" = ["0B", "2898B", "2968B"]
"driver.truesize" = "3754B"

[host.c]
profile = "freebsd-rack-14.3"
lro = { flush = "212us" }

[shared.t]
delay = "23us"

[[path]]
from = "b"
to = "c"
forward = [
    { delay = "1us" },
    { delay = "2us" },
]
return = [
    { delay = "2.058ms" },
    { delay = "23us" },
    { delay = "7us" },
]

[[flow]]
name = "f0"
from = "b"
to = "c"
requests = { request = "3324B", response = "34724B", count = 5 }
"#;

/// Without window scaling, Linux's window of zero stays if `rcv_ssthresh` is below a segment: 528 bytes here,
/// after the first segment of 537 in a packet of 2,152.
const SHUT_WINDOW: &str = r#"
[host.b]
profile = "freebsd-main"

[host.d]
profile = "linux-6.18"
mtu = "589B"

[host.d.knobs]
"net.ipv4.tcp_rmem" = ["0B", "2148B", "3826B"]
"driver.truesize" = "2152B"
"net.ipv4.tcp_window_scaling" = false

[[path]]
from = "d"
to = "b"
forward = []
return = [
    { reorder = { displace = 1, every = 4 } },
]

[[flow]]
name = "f2"
from = "b"
to = "d"
bulk = "1784025B"
"#;

/// rack_start_hpts_timer sets the keepalive timer only if no other runs: it must not postpone the
/// probe of the lost tail.
const OWN_KEEPALIVE: &str = r#"
[host.a]
profile = "linux-6.12"

[host.b]
profile = "freebsd-rack-main"

[host.b.knobs]
"net.inet.tcp.keepidle" = "1ms"
"net.inet.tcp.keepintvl" = "72ms"
"net.inet.tcp.rack.tlp.tlpminto" = "73ms"

[[path]]
from = "b"
to = "a"
forward = [
    { link = { rate = "1Mbit/s", buffer = "1p" } },
]
return = []

[[flow]]
name = "f0"
from = "b"
to = "a"
bulk = "37467B"
keepalive = true
"#;

/// A queue of one packet becomes one of one byte: the packet in it remains.
const SHRINKING_QUEUE: &str = r#"
[host.a]
profile = "freebsd-13.0"

[host.b]
profile = "freebsd-main"

[[path]]
from = "a"
to = "b"
forward = []
return = [
    { link = { rate = { at = [["0ns", "1Mbit/s"]] }, buffer = { at = [["0ns", "1p"], ["1ms", "1B"]] }, queue = "fq_codel" } },
]

[[flow]]
name = "f0"
from = "b"
to = "a"
bulk = "1B"
"#;

/// A queue of two bytes becomes one of a packet.
const GROWING_QUEUE: &str = r#"
[host.a]
profile = "freebsd-13.0"

[host.b]
profile = "linux-6.12"

[[path]]
from = "b"
to = "a"
forward = []
return = [
    { link = { rate = { at = [["0ns", "1Mbit/s"]] }, buffer = { at = [["0ns", "2B"], ["1ms", "1p"]] }, queue = "fq_codel" } },
]

[[flow]]
name = "f0"
from = "a"
to = "b"
on_off = { on = "1B", off = { least = "0ns", most = "1us" }, bytes = "2897B" }
"#;

/// Until the server has validated its address, a client's probe timeouts are counted although the
/// server answers each (RFC 9002 section 6.2.1); the connection must not end for that.
const CLIENT_TIMEOUTS: &str = r#"
[host.q]
profile = "quic-rfc9002"

[host.q.knobs]
kInitialRtt = "0us"

[host.r]
profile = "quic-inet-2025-02"

[host.r.knobs]
kPacketThreshold = 19
time_threshold_eighths = 50

[[path]]
from = "q"
to = "r"
forward = []
return = [
    { outage = { from = "0ns", until = "1ms" } },
]

[[flow]]
name = "f3"
from = "q"
to = "r"
bulk = "0B"
"#;

/// Without SACK the base stack's recovery runs, and its probes with it.
const WITHOUT_SACK: &str = r#"
[host.a]
profile = "linux-6.18"

[host.a.knobs]
"net.ipv4.tcp_rmem" = ["0B", "2048B", "2KiB"]
"net.ipv4.tcp_sack" = false

[host.b]
profile = "freebsd-rack-14.3"

[[path]]
from = "b"
to = "a"
forward = []
return = []

[[flow]]
name = "f1"
from = "b"
to = "a"
paced = { chunk = "516B", every = "1us", bytes = "1025B" }
"#;

#[test]
fn probes_and_changing_queues_in_worlds_that_once_failed() {
    for text in [
        SMALL_WINDOW,
        SHUT_WINDOW,
        OWN_KEEPALIVE,
        SHRINKING_QUEUE,
        GROWING_QUEUE,
        CLIENT_TIMEOUTS,
        WITHOUT_SACK,
    ] {
        assert!(judge(text).is_ok(), "{:?}\n{text}", judge(text));
    }
}

/// The end of the stream alone is what the first probe of a timeout sends; the second repeats it.
const END_BY_PROBE: &str = r#"
seed = 1785635078

[host.a]
profile = "msquic-2.6"
delay = "62ms"

[host.b]
profile = "quic-go-0.65"
cc = "cubic-usec"
mtu = "3868B"
delay = "3ms"

[host.b.knobs]
numReceivedAckElicitingsBeforeAck = 4
max_ack_delay = "0us"

[host.c]
profile = "quic-rfc9002"

[shared.t]
loss = "7%"

[[path]]
from = "a"
to = "b"
forward = [
    { shared = "t" },
]
return = [
    { shaper = { rate = "875kbit/s", burst = "9145B", buffer = "2616B" } },
    { shared = "t" },
    { link = { rate = "4Mbit/s", buffer = "8p" } },
    { loss = "6%" },
]

[[path]]
from = "b"
to = "c"
forward = [
    { shared = "t" },
]
return = [
    { link = { rate = "6Mbit/s", buffer = "2p" } },
]

[[flow]]
name = "f0"
from = "b"
to = "c"
on_off = { on = "227B", off = { least = "2.184ms", most = "2.331ms" }, bytes = "1590B" }

[[flow]]
name = "f1"
from = "b"
to = "a"
bulk = "22525B"

[[flow]]
name = "f2"
from = "a"
to = "b"
start = "1us"
bulk = "2882B"

[[flow]]
name = "f3"
from = "a"
to = "b"
bulk = "161B"
reads = { chunk = "54B", every = "53ms" }
"#;

/// Datagrams that path MTU discovery has enlarged exceed a window that a loss has reduced to two of the first ones.
const WINDOW_BELOW_DATAGRAM: &str = r#"
[host.b]
profile = "quic-go-0.65"
cc = "reno"
mtu = "5830B"

[host.b.knobs]
send_beyond_window = false

[host.c]
profile = "quic-go-0.65"

[host.d]
profile = "quiche-0.29"

[[path]]
from = "c"
to = "b"
forward = []
return = []

[[path]]
from = "d"
to = "b"
forward = []
return = [
    { link = { rate = "1Mbit/s", buffer = "2p" } },
]

[[flow]]
name = "f3"
from = "c"
to = "b"
bulk = "0B"
close = "reset"

[[flow]]
name = "f4"
from = "b"
to = "d"
on_off = { on = "1B", off = { least = "0ns", most = "1us" }, bytes = "4139B" }

[[flow]]
name = "f6"
from = "d"
to = "b"
requests = { request = "1B", response = "18926B", count = 2 }
"#;

#[test]
fn probes_of_quic_go_in_worlds_that_once_failed() {
    for text in [END_BY_PROBE, WINDOW_BELOW_DATAGRAM] {
        assert!(judge(text).is_ok(), "{:?}\n{text}", judge(text));
    }
}
