//! Limits of a transfer that its fit shows, also without a finding.

use diagnose::rules::{FoundLimit, rate as bits, size as bytes, time};
use fit::{PathFit, PeerSystem, WayBackFit, WritePattern};
use packet::Dir;
use units::Duration;

use super::tried::{MOST_BUFFER, NO_CLIENT_WAITS, NO_SERVER_WAITS, WIDE, receive_knob};

/// Shortest rest in ns: a pause of an application that is shorter than every retransmission timeout is a part of its rate.
const REST: u64 = 200_000_000;

/// Limits that a fit has, each with the change that removes it.
pub(crate) fn hypotheses(fitted: &PathFit) -> Vec<(FoundLimit, String)> {
    let mut limits = Vec::new();
    let mut add = |(code, kind), title: String, cause, set: String| {
        limits.push((FoundLimit { code, kind, title, cause }, set));
    };
    if let Some(size) = fitted.send_buffer {
        let knob = match fitted.sender {
            PeerSystem::FreeBsd => format!("net.inet.tcp.sendspace={MOST_BUFFER}"),
            _ => format!("net.ipv4.tcp_wmem=\"4096 16384 {MOST_BUFFER}\""),
        };
        add(
            ("CC503", ""),
            format!("the send buffer of {} limits what is in flight", bytes(size)),
            "the sender's buffer holds less than the path: its socket option, or the system's limit",
            knob,
        );
    }
    if let Some(window) = fitted.conversation.as_ref().and_then(|found| found.window) {
        add(
            ("CC501", "app-window"),
            format!("a window of the application of {} limits what is in flight", bytes(window)),
            "the application sends no more than this beyond what its peer has asked for",
            WIDE.to_owned(),
        );
    }
    if fitted.conversation.as_ref().is_some_and(|found| found.held > 0) {
        add(
            ("CC504", ""),
            "Nagle's algorithm waits for delayed ACKs".to_owned(),
            "a message in several writes: the second waits for the ACK of the first, which is delayed",
            "flow.nodelay=true".to_owned(),
        );
    }
    let clocked = match fitted.writes {
        WritePattern::Paced(written, every) if fitted.conversation.is_none() && every < REST => {
            Some(format!("{} each {:.1} ms", bytes(written), every as f64 / 1e6))
        }
        _ => None,
    };
    if let Some(pattern) = clocked {
        let waits = match fitted.dir {
            Dir::Forward => NO_CLIENT_WAITS,
            Dir::Reverse => NO_SERVER_WAITS,
        };
        add(
            ("CC501", ""),
            format!("the application writes {pattern}, and no more"),
            "the sending application writes less than the path carries",
            waits.to_owned(),
        );
    }
    if let Some(window) = fitted.chosen_window() {
        add(
            ("CC401", ""),
            format!(
                "a receive window of {}, of unknown scale, limits what is in flight",
                bytes(window)
            ),
            "the receiver's buffer holds less than the path: its socket option, or the system's limit",
            receive_knob(fitted, MOST_BUFFER),
        );
    }
    // A client waits for its user.
    let thinking = fitted.conversation.as_ref().map_or(0, |found| {
        let own = found.messages.iter().filter(|one| !one.by_client);
        own.map(|one| one.after).fold(0, u64::saturating_add)
    });
    if thinking > 0 {
        add(
            ("CC505", "think-server"),
            format!(
                "the server thinks {} before its answers",
                time(Duration::from_nanos(thinking))
            ),
            "the server has nothing to send until its application answers",
            NO_SERVER_WAITS.to_owned(),
        );
    }
    if let Some(WayBackFit { rate, .. }) = fitted.way_back {
        add(
            ("CC601", "return-path"),
            format!("the way back carries ACKs at {}: they wait there", bits(rate as f64 / 8.0)),
            "the way of the ACKs is full: by its own rate, or by other traffic in that direction",
            "path.return.link=none".to_owned(),
        );
    }
    if fitted.has_losses_of_packets() {
        add(
            ("CC201", ""),
            format!("{} packets are lost without a full queue", fitted.losses.packets.len()),
            "packets are lost where no queue overflows: errors on a link, radio, a policer",
            "path.forward.losses=none".to_owned(),
        );
    }
    if fitted.opening.no_scaling && fitted.window.is_some() {
        add(
            ("CC401", "no-scaling"),
            "the receive window is at most 65,535 B without window scaling".to_owned(),
            "the SYNs do not agree on window scaling",
            "path.strip=none".to_owned(),
        );
    }
    if fitted.opening.lost > 0 {
        let number = fitted.opening.lost;
        add(
            ("CC204", "syn-lost"),
            format!("{number} SYNs or their answers were lost"),
            "a packet of the opening is lost, and the client waits for its timer",
            "path.opening.loss=0%".to_owned(),
        );
    }
    limits
}
