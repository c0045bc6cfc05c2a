//! Worlds of FreeBSD hosts, and some of QUIC hosts, that once failed.

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

/// Duplicates without blocks made RACK retransmit a segment again every millisecond: they count for
/// one transmission.
const OLD_DUPLICATES: &str = r#"
[host.b]
profile = "freebsd-rack-main"

[host.c]
profile = "freebsd-rack-main"
cc = "newreno"
delay = "1ms"

[host.c.knobs]
"net.inet.tcp.rack.tlp.reorder_fade" = "4ms"
"net.inet.tcp.rack.timers.rtt_divisor" = 0

[[path]]
from = "b"
to = "c"
forward = [
    { link = { rate = "9Mbit/s", buffer = "3p" } },
]
return = [
    { reorder = { by = "5.649ms", every = 2 } },
]

[[flow]]
name = "f0"
from = "c"
to = "b"
bulk = "199825B"
"#;

/// In a recovery, three duplicates without blocks made RACK retransmit a segment, and none of them
/// was reported.
const UNREPORTED_DUPLICATES: &str = r#"
seed = 3175942261

[host.a]
profile = "freebsd-rack-14.3"
mtu = "615B"

[host.a.knobs]
"net.inet.tcp.initcwnd_segments" = 50
"net.inet.tcp.recvspace" = "2301B"
"net.inet.tcp.rack.misc.rack_dsack_ctl" = 0

[host.b]
profile = "freebsd-rack-14.3"
cc = "cubic-freebsd-rfc9438"
delay = "196ms"
clock_phase = "1us"
lro = true

[host.b.knobs]
"net.inet.tcp.rack.tlp.tlpminto" = "196ms"

[host.c]
profile = "freebsd-main"

[shared.s]
loss = { bytes = "0B..2B", times = 1 }

[[path]]
from = "b"
to = "a"
forward = [
    { delay = "0ns" },
    { loss = "7.75%" },
]
return = [
    { loss = { bytes = "0B..2B", times = 1 } },
]

[[path]]
from = "c"
to = "b"
forward = []
return = []

[[flow]]
name = "f0"
from = "b"
to = "c"
bulk = "0B"

[[flow]]
name = "f1"
from = "b"
to = "a"
bulk = "96395B"
keepalive = { idle = "124ms" }

[[flow]]
name = "f2"
from = "a"
to = "b"
bulk = "725340B"
"#;

/// A fast retransmit during the retransmissions of a timeout: those that followed were reported as
/// fast retransmissions.
const TIMEOUT_CONTINUES: &str = r#"
[host.a]
profile = "freebsd-rack-14.3"

[host.b]
profile = "freebsd-main"

[host.b.knobs]
"net.inet.tcp.sendspace" = "5841B"
"net.inet.tcp.sendbuf_max" = "2KiB"

[[path]]
from = "b"
to = "a"
forward = [
    { loss = { bytes = "0B..8469B" } },
]
return = [
    { delay = "2ms" },
]

[[flow]]
name = "f2"
from = "b"
to = "a"
paced = { chunk = "869B", every = "1ms", bytes = "8749B" }
keepalive = { idle = "1ms" }
"#;

/// Keepalive probes advertised the window as it opened, with a number that the peer ignores, and
/// replaced the ACK that was due: the window update was never sent.
const WINDOW_IN_PROBES: &str = r#"
[host.b]
profile = "freebsd-rack-14.3"

[host.b.knobs]
"net.inet.tcp.recvspace" = "2975B"
"net.inet.tcp.delacktime" = "51ms"
"net.inet.tcp.keepidle" = "51ms"

[host.d]
profile = "freebsd-13.2"
clock_phase = "416us"

[[path]]
from = "b"
to = "d"
forward = []
return = []

[[flow]]
name = "f6"
from = "d"
to = "b"
bulk = "94186B"
reads = { chunk = "239B", every = "98.731ms" }
keepalive = true
"#;

/// tcp_sack_partialack of 14.3 sets the window to zero: tcp_output probes as if the peer's window
/// were closed.
const WINDOW_OF_ZERO: &str = r#"
[host.a]
profile = "freebsd-14.3"
delay = "15ms"

[host.a.knobs]
"net.inet.tcp.rfc3042" = false

[host.b]
profile = "rfc"

[[path]]
from = "a"
to = "b"
forward = [
    { link = { trace = "preset:lte-up", buffer = "1p" } },
    { corrupt = { bytes = "0B..17826B", times = 3 } },
]
return = []

[[flow]]
name = "f5"
from = "a"
to = "b"
on_off = { on = "2B", off = { least = "0ns", most = "1ms" }, bytes = "4345B" }
keepalive = { idle = "195ms" }
"#;

/// Three duplicates and the timer of a probe: rack_output retransmits the segment for the first,
/// and the next call for the second.
const PROBE_AFTER_LOSS: &str = r#"
[host.b]
profile = "freebsd-rack-14.3"
mtu = "576B"

[host.c]
profile = "freebsd-13.2"

[[path]]
from = "b"
to = "c"
forward = [
    { corrupt = { bytes = "0B..3457B" } },
]
return = [
    { link = { rate = "1Mbit/s", buffer = "5p" } },
]

[[flow]]
name = "f1"
from = "b"
to = "c"
requests = { request = "1B", response = "7861B", count = 2 }
nodelay = true
"#;

/// HyStart++ reduces the window between the segments of a flight that rack_fast_output is sending.
const SLOW_START_EXIT_IN_A_FLIGHT: &str = r#"
[host.a]
profile = "freebsd-rack-14.3"
mtu = "576B"

[host.a.knobs]
"net.inet.tcp.abc_l_var" = 1
"net.inet.tcp.rack.pacing.pace_max_seg" = 1
"net.inet.tcp.rack.features.hystartplusplus" = 2

[host.b]
profile = "rfc"
lro = true

[[path]]
from = "b"
to = "a"
forward = [
    { link = { rate = "1kbit/s", buffer = "1p" } },
]
return = []

[[flow]]
name = "f7"
from = "a"
to = "b"
paced = { chunk = "1B", every = "1us", bytes = "31441B" }
"#;

/// Without timestamps the retransmission of a request is not measured, and FreeBSD counts the
/// timeouts of thirteen requests as one (`t_rxtshift`).
const THIRTEEN_REQUESTS: &str = r#"
[host.b]
profile = "freebsd-main"

[host.b.knobs]
"net.inet.tcp.delayed_ack" = false
"net.inet.tcp.rfc1323" = 0

[host.c]
profile = "linux-6.18"

[[path]]
from = "c"
to = "b"
forward = []
return = [
    { link = { rate = "1Mbit/s", buffer = "1p" } },
]

[[flow]]
name = "f1"
from = "b"
to = "c"
requests = { request = "1B", response = "1461B", count = 14 }
"#;

/// The same for thirteen flights that a short queue cuts.
const THIRTEEN_FLIGHTS: &str = r#"
[host.a]
profile = "freebsd-main"
cc = "cubic-ticks-2022"

[host.a.knobs]
"net.inet.tcp.rfc1323" = 0

[host.b]
profile = "freebsd-rack-14.3"
mtu = "576B"

[[path]]
name = "one"
from = "b"
to = "a"
forward = []
return = [
    { duplicate = "1%" },
    { link = { rate = "1Gbit/s", buffer = "2p" } },
]

[[flow]]
name = "f0"
from = "a"
to = "b"
bulk = "408256B"
"#;

/// Every second packet is lost: each end's probes arrive, and no acknowledgment of them does.
const EVERY_SECOND: &str = r#"
[host.q]
profile = "quic-inet-2025-03"

[host.q.knobs]
time_threshold_eighths = 757
kInitialRtt = "14050us"

[host.r]
profile = "quic-inet-2025-02"

[host.r.knobs]
handshake = true

[shared.s]
loss = { every = 2 }

[[path]]
from = "q"
to = "r"
forward = [
    { shared = "s" },
]
return = [
    { shared = "s" },
]

[[flow]]
name = "f3"
from = "r"
to = "q"
paced = { chunk = "1B", every = "1us", bytes = "0B" }
"#;

/// Every second packet is damaged: of the two probes of a timeout always the same one.
const EVERY_SECOND_DAMAGED: &str = r#"
[host.q]
profile = "quic-rfc9002"

[host.r]
profile = "quic-rfc9002"

[shared.s]
corrupt = { pass = 1 }

[[path]]
from = "q"
to = "r"
forward = [
    { shared = "s" },
]
return = [
    { shared = "s" },
]

[[flow]]
name = "f4"
from = "r"
to = "q"
requests = { request = "1B", response = "1B", count = 1 }
"#;

#[test]
fn freebsd_in_worlds_that_once_failed() {
    for text in [
        ECHO_UNDER_LINUX_CUBIC,
        ECHO_WITHOUT_SACK,
        OLD_DUPLICATES,
        UNREPORTED_DUPLICATES,
        TIMEOUT_CONTINUES,
        WINDOW_IN_PROBES,
        WINDOW_OF_ZERO,
        PROBE_AFTER_LOSS,
        SLOW_START_EXIT_IN_A_FLIGHT,
        THIRTEEN_REQUESTS,
        THIRTEEN_FLIGHTS,
    ] {
        assert!(judge(text).is_ok(), "{:?}\n{text}", judge(text));
    }
}

#[test]
fn quic_may_probe_for_ever_if_every_second_packet_is_lost() {
    for text in [EVERY_SECOND, EVERY_SECOND_DAMAGED] {
        assert!(judge(text).is_ok(), "{:?}\n{text}", judge(text));
    }
}
