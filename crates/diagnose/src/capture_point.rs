//! The capture point between the two hosts, and its distance from each.
//!
//! The handshake shows it: from SYN to SYN-ACK is the round trip to the server, from SYN-ACK to ACK
//! the round trip to the client. Without the handshake, the shortest time from data to their ACK
//! and from an ACK's timestamp to its echo on data show the same (Paxson, "Automated Packet Trace
//! Analysis of TCP Implementations", SIGCOMM 1997, section 4, on the effects of the vantage point).

use packet::Dir;

use units::{Duration, SeqNum};

use crate::CapturedPacket;

/// The capture point relative to the data of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapturePoint {
    /// At the sender (within a fifth of the RTT).
    Sender,
    /// At the receiver.
    Receiver,
    /// Between the hosts.
    Middle,
    /// Unknown; treated as the sender.
    #[default]
    Unknown,
}

impl CapturePoint {
    /// Its name: `sender`, `receiver`, `middle`, `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Middle => "middle",
            Self::Unknown => "unknown",
        }
    }
}

/// Round-trip times from the capture point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureDistances {
    /// To the host that sent the SYN (or was seen first).
    pub to_client: Option<Duration>,
    /// To the other host.
    pub to_server: Option<Duration>,
}

impl CaptureDistances {
    /// The round trip between the hosts; 0 as far as it is unknown.
    pub(crate) fn round_trip(self) -> Duration {
        self.to_client.unwrap_or_default() + self.to_server.unwrap_or_default()
    }

    /// Round-trip time from the capture point to the receiver of this direction.
    pub(crate) fn rtt_to_receiver(&self, data: Dir) -> Option<Duration> {
        if data == Dir::Forward { self.to_server } else { self.to_client }
    }

    /// Round-trip time from the capture point to the sender of this direction.
    pub(crate) fn rtt_to_sender(&self, data: Dir) -> Option<Duration> {
        self.rtt_to_receiver(data.reversed())
    }

    pub(crate) fn point(&self, data: Dir) -> CapturePoint {
        let (Some(to_receiver), Some(to_sender)) =
            (self.rtt_to_receiver(data), self.rtt_to_sender(data))
        else {
            return CapturePoint::Unknown;
        };
        // A host answers within microseconds; a host a fifth of the RTT away is not this one.
        let whole = to_receiver + to_sender;
        if to_sender <= whole / 5 {
            CapturePoint::Sender
        } else if to_receiver <= whole / 5 {
            CapturePoint::Receiver
        } else {
            CapturePoint::Middle
        }
    }

    /// Estimates the distances from the packets of a connection whose handshake was not captured.
    pub(crate) fn estimate(packets: &[CapturedPacket]) -> Self {
        let mut distances = Self::default();
        for dir in [Dir::Forward, Dir::Reverse] {
            // The time from data of `dir` to their ACK, and from timestamps of `dir` to their echo:
            // both are the round trip to the receiver of `dir`.
            let found = [to_ack(packets, dir), to_echo(packets, dir)].into_iter().flatten().min();
            if dir == Dir::Forward {
                distances.to_server = found;
            } else {
                distances.to_client = found;
            }
        }
        distances
    }
}

/// The shortest time from a data packet to the ACK of its last byte.
fn to_ack(packets: &[CapturedPacket], dir: Dir) -> Option<Duration> {
    let mut best = None;
    for (n, data) in packets.iter().enumerate() {
        let sent = &data.segment;
        if sent.dir != dir || sent.payload == 0 {
            continue;
        }
        let end = sent.seq.0.wrapping_add(sent.payload);
        let acks_data = |ack: SeqNum| ack.0.wrapping_sub(end) as i32 >= 0;
        let ack = packets[n + 1..]
            .iter()
            .find(|p| p.segment.dir != dir && p.segment.acknowledgment().is_some_and(acks_data));
        if let Some(ack) = ack {
            let took = ack.at.since(data.at);
            best = Some(best.map_or(took, |best: Duration| best.min(took)));
        }
    }
    best
}

/// The shortest time from the first packet with a timestamp to the first that echoes it.
fn to_echo(packets: &[CapturedPacket], dir: Dir) -> Option<Duration> {
    let mut best = None;
    let mut last_val = None;
    for (n, one) in packets.iter().enumerate() {
        let Some(stamp) = one.segment.timestamps else { continue };
        if one.segment.dir != dir || last_val == Some(stamp.val) {
            continue;
        }
        last_val = Some(stamp.val);
        let echo = packets[n + 1..].iter().find(|p| {
            p.segment.dir != dir && p.segment.timestamps.is_some_and(|t| t.ecr == stamp.val)
        });
        if let Some(echo) = echo {
            let took = echo.at.since(one.at);
            best = Some(best.map_or(took, |best: Duration| best.min(took)));
        }
    }
    best
}
