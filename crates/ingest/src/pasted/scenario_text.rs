//! A scenario of the figures of a pasted text, with its guesses named.

use core::fmt::Write;

use super::facts::Figures;
use super::verdict::loss_share;

/// Round-trip time of a path of which it is unknown, in milliseconds.
const GUESSED_RTT: f64 = 20.0;

/// Longest round-trip time that is taken for one, in milliseconds.
const LONGEST_RTT: f64 = 60_000.0;

/// Returns a scenario; `None` without a rate.
pub fn scenario(figures: &Figures) -> Option<String> {
    let rate = figures.rate.filter(|rate| (1e3..1e12).contains(rate))?;
    let rtt = figures.rtt.map(|(least, _)| least).filter(|rtt| (1e-3..LONGEST_RTT).contains(rtt));
    let half = (rtt.unwrap_or(GUESSED_RTT) / 2.0 * 1e6) as u64;
    let loss =
        loss_share(figures).or(figures.datagrams_lost).filter(|share| *share > 0.0 && *share < 0.5);
    let mut out = String::from("title = \"from a pasted text\"\nseed = 1\nduration = \"60s\"\n\n");
    out += "# Guess: a Linux sender with CUBIC; the text does not name the stack.\n";
    out += "[host.sender]\nprofile = \"linux-6.18\"\ncc = \"cubic\"\n\n[host.receiver]\nprofile = \"linux-6.18\"\n";
    if let Some(buffer) = figures.receive_buffer.filter(|buffer| (4_096.0..1e9).contains(buffer)) {
        let _ = writeln!(
            out,
            "\n[host.receiver.knobs]\n\"net.ipv4.tcp_rmem\" = [\"4KiB\", \"{0}B\", \"{1}B\"]",
            buffer.min(131_072.0) as u64,
            buffer as u64
        );
    }
    out += "\n[[path]]\nfrom = \"sender\"\nto = \"receiver\"\nforward = [\n";
    if let Some(share) = loss {
        let what = if figures.is_udp {
            "the path loses the datagrams"
        } else {
            "each retransmission is a loss"
        };
        let _ = writeln!(
            out,
            "    {{ loss = \"{:.4}%\" }}, # guess: {what}, and losses are random",
            100.0 * share
        );
    }
    let _ = writeln!(
        out,
        "    {{ link = {{ rate = \"{}bit/s\", buffer = \"1bdp\" }} }}, # guess: the path has the rate of the transfer, and a buffer of a round trip",
        (rate * 1.05) as u64
    );
    let source = if rtt.is_some() {
        "half the least round-trip time"
    } else {
        "guess: the text has no round-trip time"
    };
    let _ = writeln!(out, "    {{ delay = \"{half}ns\" }}, # {source}\n]");
    let _ = writeln!(out, "return = [{{ delay = \"{half}ns\" }}]\n");
    let streams = figures.streams.unwrap_or(1).clamp(1, 128);
    out += "[[flow]]\nname = \"transfer\"\nfrom = \"sender\"\nto = \"receiver\"\n";
    if figures.is_udp {
        // iperf's datagrams in a path of 1,500 bytes.
        let _ = writeln!(out, "udp = {{ size = \"1448B\", rate = \"{}bit/s\" }}", rate as u64);
        return Some(out);
    }
    let bytes =
        figures.bytes.or(figures.seconds.map(|seconds| seconds * rate / 8.0)).unwrap_or(10e6);
    let bytes = (bytes / streams as f64).clamp(1e5, 1e9) as u64;
    let _ = writeln!(out, "bulk = \"{bytes}B\"");
    if streams > 1 {
        let _ =
            writeln!(out, "count = {streams} # guess: each stream has the same share of the bytes");
    }
    Some(out)
}
