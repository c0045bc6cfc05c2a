//! Where between the two ends the capture was taken, and how far each end is from there.
//!
//! The opening tells it: from SYN to SYN-ACK is the way to the end that answers and back, from
//! SYN-ACK to the ACK the way to the end that opened. Where the opening is missing, the shortest
//! time from data to their ACK, and from an ACK's timestamp to its echo on data, tell the same
//! (Paxson, "Automated Packet Trace Analysis of TCP Implementations", SIGCOMM 1997, section 4,
//! for what a vantage point does to an analysis).

use packet::Dir;

use crate::Packet;

/// The capture point, as seen by data that travel in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapturePoint {
    /// At the end that sends the data (within a fifth of the round trip).
    Sender,
    /// At the end that receives them.
    Receiver,
    /// Somewhere between.
    Middle,
    /// It cannot be told; taken for the sender's.
    #[default]
    Unknown,
}

impl CapturePoint {
    /// In words: `sender`, `receiver`, `middle`, `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Middle => "middle",
            Self::Unknown => "unknown",
        }
    }
}

/// Distances from the capture point, in nanoseconds there and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// To the end that sent the SYN (or was seen first).
    pub(crate) to_opener: Option<u64>,
    /// To the other end.
    pub(crate) to_answerer: Option<u64>,
}

impl Place {
    /// From the capture point to the end that takes data of this direction.
    pub(crate) fn ahead(&self, data: Dir) -> Option<u64> {
        if data == Dir::Forward { self.to_answerer } else { self.to_opener }
    }

    /// From the capture point to the end that sends data of this direction.
    pub(crate) fn behind(&self, data: Dir) -> Option<u64> {
        self.ahead(data.back())
    }

    pub(crate) fn point(&self, data: Dir) -> CapturePoint {
        let (Some(ahead), Some(behind)) = (self.ahead(data), self.behind(data)) else {
            return CapturePoint::Unknown;
        };
        // A host answers within microseconds, an end a fifth of the round trip away is no longer
        // this host.
        let whole = ahead + behind;
        if behind <= whole / 5 {
            CapturePoint::Sender
        } else if ahead <= whole / 5 {
            CapturePoint::Receiver
        } else {
            CapturePoint::Middle
        }
    }

    /// Of the packets of a connection whose opening was not captured.
    pub(crate) fn guess(packets: &[Packet]) -> Self {
        let mut place = Self::default();
        for dir in [Dir::Forward, Dir::Reverse] {
            // Data of `dir` to their ACK, and timestamps of `dir` to their echo: both go to the
            // end that `dir` leads to.
            let found = [to_ack(packets, dir), to_echo(packets, dir)].into_iter().flatten().min();
            if dir == Dir::Forward {
                place.to_answerer = found;
            } else {
                place.to_opener = found;
            }
        }
        place
    }
}

/// The shortest time from a data packet to the ACK of its last byte.
fn to_ack(packets: &[Packet], dir: Dir) -> Option<u64> {
    let mut best = None;
    for (n, data) in packets.iter().enumerate() {
        let sent = &data.segment;
        if sent.dir != dir || sent.payload == 0 {
            continue;
        }
        let end = sent.seq.0.wrapping_add(sent.payload);
        let ack = packets[n + 1..]
            .iter()
            .find(|p| p.segment.dir != dir && p.segment.ack.0.wrapping_sub(end) as i32 >= 0);
        if let Some(ack) = ack {
            let took = ack.at.since(data.at).as_nanos();
            best = Some(best.map_or(took, |b: u64| b.min(took)));
        }
    }
    best
}

/// The shortest time from the first packet with a timestamp to the first that echoes it.
fn to_echo(packets: &[Packet], dir: Dir) -> Option<u64> {
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
            let took = echo.at.since(one.at).as_nanos();
            best = Some(best.map_or(took, |b: u64| b.min(took)));
        }
    }
    best
}
