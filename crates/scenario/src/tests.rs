//! Tests from text to scenario.

mod agreement;
mod elements;
mod errors;
mod fetches;
mod kernels;
mod middleboxes;
mod mutations;
mod overrides;
mod queues;
mod traffic;
mod values;

use super::{KernelHost, Loaded, Overrides, ScenarioError, load};

/// A file that uses every key but `paced`.
const FULL: &str = r#"# A comment.
title = "1 MB over 100 ms"
seed = 7
duration = "60s"

[host.sender]
profile = "freebsd-13.2"
cc = "newreno"
mtu = "9000B"
delay = "200us"
clock_phase = "700us"
isn = 205083268
timestamp = 495212525
tso = true
lro = { ack_limit = 4, length_limit = "65535B", counts_pure_acks = true, entries = 9, rss_hash = { decreasing = 4 }, flush = "5us" }
rx_budget = 16
interrupt_moderation = "30us"

[host.sender.knobs]
"net.inet.tcp.abc_l_var" = 44 # comment
"net.inet.tcp.sendspace" = "64KiB"
"net.inet.tcp.delayed_ack" = 0

[host.sink]
profile = "linux-6.18"
cc = "reno"
gro = { max_size = "64KiB", max_packets = 45, ends_at_push = false, same_timestamps = false }
knobs = { "net.ipv4.tcp_rmem" = ["4KiB", "128KiB", "6MiB"] }

[[path]]
from = "sender"
to = "sink"
forward = [ { link = { rate = "1Gbit/s", buffer = "0.5bdp" } }, { delay = "30ms" } ]
return = [ { delay = "70ms" } ]

[[flow]]
name = "bulk"
from = "sender"
to = "sink"
start = "1.5s"
bulk = "1MB"
ip = 6
nodelay = true

[[flow]]
name = "chat"
from = "sink"
to = "sender"
paced = { chunk = "20kB", every = "40ms", bytes = "unlimited" }

[[tap]]
host = "sender"

[[tap]]
host = "sink"
at = "wire"
"#;

/// A short valid file that tests change.
const SMALL: &str = r#"host.a = { profile = "freebsd-13.2" }
host.b = { profile = "linux-6.18", cc = "reno" }
path = [ { from = "a", to = "b", forward = [ { delay = "5ms" } ], return = [] } ]
flow = [ { name = "f", from = "a", to = "b", bulk = "1MB" } ]
"#;

fn loaded(text: &str, set: &[&str]) -> Result<Loaded, Vec<ScenarioError>> {
    let set = set.iter().map(|argument| (*argument).to_owned()).collect();
    load(text, "test.toml", &Overrides { set, ..Overrides::default() })
}

/// Returns the errors of a text, one line each.
fn mistakes(text: &str, set: &[&str]) -> Vec<String> {
    match loaded(text, set) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}
