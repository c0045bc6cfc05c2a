//! What limits a transfer, as far as pasted figures carry, and the command that shows more.

use super::facts::{Figures, MSS, RetransmitCount};
use super::numbers::rounded;

/// Line rates in bit/s, whose payload is about 95 %.
const LINES: &[f64] = &[10e6, 100e6, 1e9, 2.5e9, 5e9, 10e9, 25e9, 40e9, 100e9];
/// Largest window without window scaling.
const UNSCALED: f64 = 65_535.0;

/// A possible limit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PastedCause {
    /// Confidence; the highest is the verdict.
    pub(super) weight: u32,
    pub(super) text: String,
    pub(super) next: Vec<String>,
}

/// Returns the limits that the figures show, the most certain first.
pub(super) fn causes(figures: &Figures) -> Vec<PastedCause> {
    let mut causes: Vec<PastedCause> = [
        kernel_account(figures),
        receiver(figures),
        unscaled(figures),
        devices(figures),
        queues(figures),
        line(figures),
        buffers(figures),
        constant_window(figures),
        datagrams(figures),
        probes(figures),
        queue(figures),
        phases(figures),
        application(figures),
    ]
    .into_iter()
    .flatten()
    .collect();
    causes.extend(losses(figures));
    causes.extend(figures.faults.iter().map(|text| PastedCause {
        weight: 55,
        text: text.clone(),
        next: vec![
            "nstat -az; sleep 10; nstat -z   (during the transfer: what is counted now)".to_owned(),
        ],
    }));
    causes.sort_by_key(|cause| core::cmp::Reverse(cause.weight));
    causes
}

/// The command that captures the transfer.
pub(super) fn capture(figures: &Figures) -> Vec<String> {
    let filter = match (&figures.peer, figures.port) {
        (Some(peer), Some(port)) => format!("host {peer} and tcp port {port}"),
        (Some(peer), None) => format!("host {peer} and tcp"),
        (None, Some(port)) => format!("tcp port {port}"),
        (None, None) => "tcp".to_owned(),
    };
    vec![
        format!(
            "sudo tcpdump -i any -s 128 -w transfer.pcap '{filter}'   (at the sender, from its start)"
        ),
        "ackclock diagnose transfer.pcap".to_owned(),
    ]
}

/// The command that shows the sender's state.
pub(super) fn sockets(figures: &Figures) -> Vec<String> {
    let peer = figures.peer.as_ref().map_or(String::new(), |peer| format!(" dst {peer}"));
    vec![
        format!(
            "while sleep 0.1; do date +%s.%N; ss -tinO{peer}; done > ss.txt   (at the sender, during the transfer)"
        ),
        "ackclock diagnose ss.txt".to_owned(),
    ]
}

/// The other host, or a word for it.
fn host(figures: &Figures) -> &str {
    figures.peer.as_deref().unwrap_or("HOST")
}

fn cause(weight: u32, text: String, next: Vec<String>) -> Option<PastedCause> {
    Some(PastedCause { weight, text, next })
}

/// The kernel's own account of the time.
fn kernel_account(figures: &Figures) -> Option<PastedCause> {
    let (window, buffer) = figures.limited?;
    if window.max(buffer) < 0.2 {
        return None;
    }
    let (what, share, setting) = if window >= buffer {
        ("the receive window", window, "net.ipv4.tcp_rmem (at the receiver)")
    } else {
        ("the send buffer", buffer, "net.ipv4.tcp_wmem (at the sender)")
    };
    let next = vec![format!("sysctl {}", setting)];
    cause(100, format!("{what} limits the sender in {:.0} % of its busy time", 100.0 * share), next)
}

fn receiver(figures: &Figures) -> Option<PastedCause> {
    if figures.zero_windows == 0 {
        return None;
    }
    let text = format!(
        "the receiver closes its window in {} packets: its application reads too slowly, or its buffer is too small",
        figures.zero_windows
    );
    cause(
        95,
        text,
        vec![
            "ss -tmn   (at the receiver: Recv-Q above 0 means that the application does not read)"
                .to_owned(),
        ],
    )
}

fn unscaled(figures: &Figures) -> Option<PastedCause> {
    if !figures.unscaled {
        return None;
    }
    let most = figures.rtt.map_or(String::new(), |(_, rtt)| {
        format!(": at most {:.2} Mbit/s at {} ms", UNSCALED * 8.0 / rtt / 1e3, rounded(rtt))
    });
    cause(
        98,
        format!("window scaling is off, so the window is at most 64 KiB{most}"),
        vec!["sysctl -w net.ipv4.tcp_window_scaling=1".to_owned()],
    )
}

/// Fraction of segments retransmitted, by the tool that describes the transfer best.
pub(super) fn loss_share(figures: &Figures) -> Option<f64> {
    figures.retransmit_count()?.share()
}

/// What each tool counted as retransmitted, of what the same tool counted as sent.
fn losses(figures: &Figures) -> Vec<PastedCause> {
    if figures.is_udp {
        return Vec::new();
    }
    let best = figures.retransmit_count();
    let mut counts: Vec<&RetransmitCount> = best.into_iter().collect();
    // The transfer alone says more than all of the host since it booted.
    counts.extend(
        figures.retransmits.iter().filter(|count| {
            best.is_some_and(|best| count.tool != best.tool) && count.is_since_boot
        }),
    );
    counts.iter().enumerate().filter_map(|(rank, count)| loss(figures, count, rank == 0)).collect()
}

fn loss(figures: &Figures, count: &RetransmitCount, is_best: bool) -> Option<PastedCause> {
    let again = count.retransmitted;
    let Some(share) = count.share() else {
        // Counted without what was sent: a few may be one packet in a million.
        let of =
            if count.is_since_boot { ", by all connections since the host booted" } else { "" };
        let text = format!(
            "{again} segments are retransmitted{of}; the text does not have how many were sent"
        );
        return if again > 0.0 { cause(41, text, capture(figures)) } else { None };
    };
    if share < 0.0005 {
        return None;
    }
    if !is_best {
        let text = format!(
            "all connections of the host, since it booted: {again} retransmissions, {:.2} % of the segments",
            100.0 * share
        );
        return cause(if share >= 0.002 { 43 } else { 35 }, text, capture(figures));
    }
    let mut text = match count.is_percentage {
        true => format!("packets are lost or reordered: {again:.2} % are retransmitted"),
        false => format!(
            "packets are lost or reordered: {again} retransmissions, {:.2} % of the segments",
            100.0 * share
        ),
    };
    // Mathis et al. 1997: what one NewReno stream could have with such a loss.
    if let Some((_, rtt)) = figures.rtt.filter(|(_, rtt)| *rtt > 0.0) {
        let most = MSS * 8.0 / (rtt / 1e3) * (1.5 / share).sqrt();
        text += &format!(
            ": a stream of NewReno has about {:.2} Mbit/s with it at {} ms",
            most / 1e6,
            rounded(rtt)
        );
    }
    let weight = if share >= 0.002 { 80 } else { 50 };
    cause(weight, text, capture(figures))
}

/// A queue of the host that printed its counters.
fn queues(figures: &Figures) -> Option<PastedCause> {
    let first = figures.queue_drops.first()?;
    let text = format!("a queue of the host that printed it drops packets: {first}");
    let next = "tc -s qdisc show; sleep 10; tc -s qdisc show   (during the transfer: whether dropped rises)";
    cause(61, text, vec![next.to_owned()])
}

fn devices(figures: &Figures) -> Option<PastedCause> {
    let first = figures.device_faults.first()?;
    let more = figures.device_faults.len() - 1;
    let more = if more > 0 { format!(" and {more} more counters") } else { String::new() };
    let next =
        "ip -s link; sleep 10; ip -s link   (during the transfer: whether the counters rise)";
    cause(
        60,
        format!("a network card drops or damages packets: {first}{more}"),
        vec![next.to_owned()],
    )
}

/// A rate at the payload of a line.
fn line(figures: &Figures) -> Option<PastedCause> {
    let rate = figures.rate?;
    let line = LINES.iter().find(|line| (0.90..=0.985).contains(&(rate / **line)))?;
    // A lossy transfer does not fill a line by chance.
    if loss_share(figures).is_some_and(|share| share > 0.02) {
        return None;
    }
    let text = format!(
        "the transfer fills a line of {} Mbit/s: {:.1} % of it are payload",
        line / 1e6,
        100.0 * rate / line
    );
    cause(
        85,
        text,
        vec!["ethtool DEVICE | grep Speed   (at each host and switch on the way)".to_owned()],
    )
}

/// A rate that is a buffer per round trip.
fn buffers(figures: &Figures) -> Option<PastedCause> {
    let (rate, (_, rtt)) = (figures.rate?, figures.rtt?);
    let in_flight = rate / figures.streams.unwrap_or(1).max(1) as f64 * rtt / 8e3;
    let buffers = [
        (figures.receive_buffer.map(|size| size / 2.0), "a receive", "tcp_rmem"),
        (figures.send_buffer.map(|size| size / 2.0), "a send", "tcp_wmem"),
        (Some(UNSCALED), "an unscaled receive", "tcp_window_scaling"),
    ];
    let near = |size: f64| (0.75..=1.15).contains(&(in_flight / size));
    let (size, name, setting) = buffers.into_iter().find_map(|(size, name, setting)| {
        Some((size.filter(|size| near(*size))?, name, setting))
    })?;
    let text = format!(
        "the rate is {name} window of about {:.0} kB per round trip of {} ms",
        size / 1e3,
        rounded(rtt)
    );
    let lossless = figures.retransmit_count().is_some_and(|count| count.retransmitted == 0.0);
    cause(
        if lossless { 88 } else { 45 },
        text,
        vec![format!("sysctl net.ipv4.{setting}   (at both hosts)")],
    )
}

/// No retransmission, and a window that does not change: something else limits.
fn constant_window(figures: &Figures) -> Option<PastedCause> {
    let window = figures.cwnd?;
    let is_lossless = figures.retransmit_count().is_some_and(|count| count.retransmitted == 0.0);
    if !is_lossless || window.most <= 0.0 {
        return None;
    }
    let rate = figures.rate? / figures.streams.unwrap_or(1).max(1) as f64;
    let mean = window.mean;
    let trip = mean * 8e3 / rate.max(1.0);
    let text = match figures.rtt {
        Some((_, rtt)) if rtt * 1.3 < trip => format!(
            "no packet is lost and cwnd ({:.0} kB) is more than what is in flight ({:.0} kB): the receive window, the send buffer or the application limits",
            mean / 1e3,
            rate * rtt / 8e6
        ),
        // One sample does not show whether it changes.
        _ if window.count < 2 || window.least < window.most => return None,
        Some((_, rtt)) => format!(
            "no packet is lost and cwnd stays at {:.0} kB, which the sender uses at {} ms: a window, a buffer or the application limits",
            mean / 1e3,
            rounded(rtt)
        ),
        None => format!(
            "no packet is lost and cwnd stays at {:.0} kB: a window, a buffer or the application limits, unless the round-trip time is {trip:.1} ms",
            mean / 1e3
        ),
    };
    cause(65, text, sockets(figures))
}

fn datagrams(figures: &Figures) -> Option<PastedCause> {
    let share = figures.datagrams_lost.filter(|share| *share > 0.0)?;
    let text = format!(
        "{:.2} % of the datagrams are lost at this rate: the path or the receiver has less capacity",
        100.0 * share
    );
    cause(
        75,
        text,
        vec![format!(
            "iperf3 -c {} -u -b RATE   (with half the rate: whether the loss remains)",
            host(figures)
        )],
    )
}

fn probes(figures: &Figures) -> Option<PastedCause> {
    let share = figures.probe_loss.filter(|share| *share > 0.0)?;
    let text = format!("the path loses packets: {:.1} % of the probes", 100.0 * share);
    cause(
        if share >= 0.01 { 58 } else { 42 },
        text,
        vec![format!("mtr -rwc 100 {}   (the hop from which on packets are lost)", host(figures))],
    )
}

/// A probe that is slow alone raises the mean of this number by less than its own part.
const ONE_OF_MANY: f64 = 10.0;

/// A round-trip time far above its least. A full queue also loses probes, so it is before their loss.
fn queue(figures: &Figures) -> Option<PastedCause> {
    let (least, worst) = figures.rtt_range?;
    if worst < 2.0 * least + 20.0 {
        return None;
    }
    let text = format!("a queue on the path delays packets: {worst:.1} ms, {least:.1} ms at least");
    // One slow probe hardly raises the mean of many; a mean that was measured apart says nothing.
    let is_single = figures
        .rtt
        .is_some_and(|(_, mean)| mean > least && (mean - least) * ONE_OF_MANY < worst - least);
    cause(
        if is_single { 57 } else { 59 },
        text,
        vec![format!(
            "ping -i 0.2 {}   (before and during the transfer: bufferbloat raises it)",
            host(figures)
        )],
    )
}

/// The longest part of a request.
fn phases(figures: &Figures) -> Option<PastedCause> {
    let total: f64 = figures.phases.iter().map(|(_, ms)| ms).sum();
    let (phase, ms) = figures.phases.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = format!("of {total:.0} ms the request spends {ms:.0} ms in: {phase}");
    cause(if *phase == "transfer" { 30 } else { 70 }, text, capture(figures))
}

fn application(figures: &Figures) -> Option<PastedCause> {
    if let Some(count) = figures.stalls.filter(|count| *count > 0) {
        return cause(
            57,
            format!("{count} intervals have no data: the transfer stalls"),
            capture(figures),
        );
    }
    if !figures.app_limited {
        return None;
    }
    cause(
        40,
        "the application gave the sender too little data (app_limited)".to_owned(),
        sockets(figures),
    )
}

/// What the texts do not have.
pub(super) fn missing(figures: &Figures) -> Vec<(&'static str, String)> {
    let peer = host(figures);
    let mut missing = Vec::new();
    if figures.rate.is_none() {
        missing.push(("the rate of the transfer", format!("iperf3 -c {peer} -t 10")));
    }
    if figures.rtt.is_none() {
        missing.push(("the round-trip time", format!("ping -c 20 {peer}")));
    }
    if figures.retransmits.is_empty() && !figures.is_udp {
        missing.push(("whether packets are lost", "nstat -z TcpRetransSegs TcpOutSegs".to_owned()));
    }
    if figures.limited.is_none() && !figures.is_udp {
        let command = format!("ss -tin dst {peer}   (at the sender, during the transfer)");
        missing.push(("what limits the sender by its kernel's account", command));
    }
    missing
}
