//! The estimates, each with what it rests on.

use core::fmt;

use diagnose::episodes::{Episode, Trigger};
use diagnose::place::CapturePoint;
use diagnose::{Analysis, Course, Limiter};
use packet::{Dir, IpVersion};

use crate::{Losses, System, Writes};

/// An estimate in words, for the user to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// What was estimated: `rate`.
    pub what: &'static str,
    /// The estimate with what it rests on.
    pub why: String,
}

/// Why nothing can be fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitError {
    /// The connection carried no data.
    NoData,
    /// No acknowledgment of data was seen, so that there is no round trip.
    NoRoundTrip,
    /// The packets were not kept ([`diagnose::Settings::packets`]).
    NoPackets,
    /// Most of the data that the sequence numbers span are not in the capture.
    Gaps,
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoData => "the connection carried no data",
            Self::NoRoundTrip => {
                "no round trip can be measured in it: ACKs of its data are missing"
            }
            Self::NoPackets => "its packets were not kept",
            Self::Gaps => "less than a tenth of the data that its sequence numbers span is in it",
        })
    }
}

impl core::error::Error for FitError {}

/// A connection, as a path with two ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// Direction of the data.
    pub dir: Dir,
    /// Where the capture was taken.
    pub point: CapturePoint,
    /// Payload of a full segment in bytes.
    pub mss: u64,
    /// Bytes of headers before it.
    pub headers: u64,
    /// Bytes of the stream.
    pub bytes: u64,
    /// From the opening (or the first packet) to the delivery of the last byte, in ns.
    pub time: u64,
    /// Bytes delivered by time, in ns from the opening: for comparison with a run.
    pub delivered: Vec<(u64, u64)>,
    /// Round-trip time without queues, in ns.
    pub rtt: u64,
    /// Rate of the bottleneck in bit/s of IP; `None` where it was never seen busy.
    pub rate: Option<u64>,
    /// Room of its queue in bytes of IP; `None` where it was never seen full.
    pub buffer: Option<u64>,
    /// Losses that no queue explains.
    pub losses: Losses,
    /// Losses that a full queue explains.
    pub overflows: u64,
    /// Time in which all was held back, in ns from the opening: begin and end.
    pub held: Option<(u64, u64)>,
    /// Share of packets that came late, and by how many ns; or the size of reversed groups.
    pub late: Option<Late>,
    /// Segments that an ACK covers, where it covers more than TCP's own rule.
    pub per_ack: Option<u64>,
    /// Window of the receiver in bytes, where it held the sender.
    pub window: Option<u64>,
    /// Bursts leave the sender's stack whole, and its card splits them.
    pub bursts: bool,
    /// Most bytes under way: the buffers at both ends held them.
    pub flight: u64,
    /// Rate at which the receiver reads in bit/s, where that held the sender.
    pub reads: Option<u64>,
    /// What the application did.
    pub writes: Writes,
    /// System of the sender.
    pub sender: System,
    /// System of the receiver.
    pub receiver: System,
    /// What all that rests on.
    pub bases: Vec<Basis>,
}

/// Reordering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Late {
    /// Groups of so many packets are turned around.
    Reversed(u64),
    /// A share of the packets comes so many ns late.
    Share(f64, u64),
}

/// A limiter counts as one that held the sender from this share of the time on.
const HELD: f64 = 0.2;
/// IP packets that a host of a scenario may send at most: the smallest that every host takes (RFC 791
/// section 3.1), and the largest there is.
const MTU: (u64, u64) = (576, 65_535);
/// A capture that lacks more than this multiple of what it holds does not show how the data went.
const MISSING: u64 = 10;
/// Runs of packets that are longer than this are not groups that some queue turns around.
const LONGEST_GROUP: u64 = 16;

impl Fitted {
    /// Fits the data of `analysis` that go in its main direction.
    ///
    /// # Errors
    /// What is missing.
    pub fn of(analysis: &Analysis) -> Result<Self, FitError> {
        let flow = analysis.main().ok_or(FitError::NoData)?;
        if flow.bytes == 0 {
            return Err(FitError::NoData);
        }
        if analysis.packets.is_empty() {
            return Err(FitError::NoPackets);
        }
        let data = analysis.packets.iter().filter(|packet| packet.segment.dir == flow.dir);
        let captured: u64 = data.map(|packet| u64::from(packet.segment.payload)).sum();
        // Without any, the capture is one of ACKs alone.
        if captured > 0 && captured.saturating_mul(MISSING) < flow.bytes {
            return Err(FitError::Gaps);
        }
        let (rtt, ..) = flow.rtt.ok_or(FitError::NoRoundTrip)?;
        let course = Course::of(flow);
        let path = course.path;
        let packets = &analysis.packets;
        let mut bases = Vec::new();
        let mut told = |what, why: String| bases.push(Basis { what, why });
        let held_by = |limiter| {
            course.budget.of(limiter) as f64 / course.budget.whole().max(1) as f64 >= HELD
        };
        let ip = packets.first().map_or(IpVersion::V4, |packet| packet.segment.ip);
        let headers = u64::from(ip.header_len()) + 20 + if flow.stamps { 12 } else { 0 };
        let packet = flow.mss + headers;
        if !(MTU.0..=MTU.1).contains(&packet) {
            told(
                "mtu",
                format!("packets of {packet} B are not modelled: {} B", packet.clamp(MTU.0, MTU.1)),
            );
        }
        let wire = |payload: f64| payload * (flow.mss + headers) as f64 / flow.mss.max(1) as f64;
        told(
            "delay",
            format!("shortest round trip of {} samples: {} us", flow.rtt_samples, rtt / 1_000),
        );

        let bits = |payload: f64| (wire(payload) * 8.0) as u64;
        let shared = course.shared();
        let own = shared.map(|(share, _)| share);
        let rate = own.or(path.rate).or(path.burst_rate).map(bits);
        let why = match (path.rate, rate) {
            (Some(_), Some(rate)) if let Some((_, all)) = shared => {
                format!(
                    "{rate} bit/s: what these data had of {} bit/s while a queue stood; others had the rest, \
                     and are taken to have it again",
                    bits(all)
                )
            }
            (Some(_), Some(rate)) => {
                format!("{rate} bit/s: spacing of bursts, or what passed while a queue stood")
            }
            (None, Some(rate)) => {
                format!("{rate} bit/s: the bottleneck was never seen busy, nothing came faster")
            }
            (_, None) => "too few packets to tell: taken to be fast".to_owned(),
        };
        told("rate", why);
        let at_receiver = flow.point == CapturePoint::Receiver;
        let mut losses = if at_receiver {
            Losses::at_receiver(packets, flow.dir, flow.mss, (rtt / 4).max(flow.reordering.late_ns))
        } else {
            Losses::at_sender(packets, flow.dir, flow.mss, rtt)
        };
        let overflow = |episode: &Episode| {
            episode.rtt.saturating_sub(rtt) * 5 >= path.queue * 3
                && path.queue * 8 >= rtt
                && episode.trigger != Trigger::Probe
        };
        let full = flow
            .episodes
            .iter()
            .filter(|episode| overflow(episode))
            .map(|e| e.retransmitted - e.spurious.min(e.retransmitted))
            .sum::<u64>();
        let all = losses.packets.len() as u64;
        let overflows = if path.rate.is_some() && full * 2 >= all.max(1) { all } else { 0 };
        if overflows > 0 {
            losses.packets.clear();
        }
        let buffer = rate
            .filter(|_| overflows > 0)
            .map(|rate| (rate as f64 / 8.0 * path.queue as f64 / 1e9) as u64 + flow.mss + headers);
        if overflows > 0 {
            told(
                "buffer",
                format!(
                    "{overflows} losses at a queue of {} us: what was in it",
                    path.queue / 1_000
                ),
            );
        }
        if !losses.packets.is_empty() {
            told(
                "loss",
                format!(
                    "{} of {} data packets, without a full queue",
                    losses.packets.len(),
                    losses.sent
                ),
            );
        }
        let held = held(analysis, flow.dir, rtt).filter(|_| flow.counts.spurious > 0);
        if let Some((from, until)) = held {
            told(
                "held",
                format!(
                    "nothing passed from {} to {} us, and nothing was lost",
                    from / 1_000,
                    until / 1_000
                ),
            );
        }
        let late =
            late(flow.reordering.packets, flow.reordering.late_ns, path.extent, flow.counts.new);
        if late.is_some() {
            told(
                "reorder",
                format!(
                    "{} packets came late, by up to {} places",
                    flow.reordering.packets, path.extent
                ),
            );
        }
        // Packets that wait for earlier ones are acknowledged together, without any merging.
        let per_ack = (path.per_ack > 2.5 && late.is_none())
            .then(|| (flow.coverage.most / flow.mss.max(1)).max(3));
        if let Some(most) = per_ack {
            told(
                "acks",
                format!("one for {:.1} segments on average, {most} at most", path.per_ack),
            );
        }
        let window = flow.window.filter(|_| held_by(Limiter::Rwnd)).map(|(_, most, _)| most);
        let goodput =
            flow.bytes as f64 * 8e9 / flow.last_delivery.saturating_sub(flow.span.0).max(1) as f64;
        // A window that closes is one that is not read; else it is all the room there is.
        let closes = flow.window.is_some_and(|(least, most, _)| least * 2 < most);
        let reads = (window.is_some() && closes).then_some(goodput as u64);
        if let Some(window) = window {
            told(
                "window",
                format!("the receiver offered {window} B at most, and that held the sender"),
            );
        }
        // A sender that waits for room at the receiver pauses too.
        let writes = match window {
            Some(_) => Writes::Bulk,
            None => Writes::of(packets, flow.dir, flow.mss, (rtt / 4).max(2_000_000)),
        };
        if let Writes::Paced(bytes, every) = writes {
            told("application", format!("it wrote {bytes} B every {} us", every / 1_000));
        }
        let (sender, receiver) =
            (System::of(analysis, flow.dir), System::of(analysis, flow.dir.back()));
        told("ends", format!("by their SYNs, {} sends to {}", sender.name(), receiver.name()));
        Ok(Self {
            dir: flow.dir,
            point: flow.point,
            mss: flow.mss,
            headers,
            bytes: flow.bytes,
            time: flow.last_delivery.saturating_sub(flow.span.0),
            delivered: delivered(analysis, flow.dir, flow.span.0),
            rtt,
            rate,
            buffer,
            losses,
            overflows,
            held,
            late,
            per_ack,
            window,
            bursts: flow.point == CapturePoint::Sender && flow.counts.bursts > 0,
            flight: flow.rounds.iter().map(|round| round.flight).max().unwrap_or(0),
            reads,
            writes,
            sender,
            receiver,
            bases,
        })
    }

    /// The largest IP packet of both ends.
    pub(crate) fn mtu(&self) -> u64 {
        (self.mss + self.headers).clamp(MTU.0, MTU.1)
    }
}

/// Reordering as an element of a path.
fn late(packets: u64, late_ns: u64, extent: u64, new: u64) -> Option<Late> {
    if packets == 0 || new == 0 {
        return None;
    }
    let share = packets as f64 / new as f64;
    // In a group of n turned around, n - 1 packets are overtaken, by up to n - 1 places.
    if share > 0.4 && extent < LONGEST_GROUP {
        return Some(Late::Reversed((extent + 1).max(2)));
    }
    Some(Late::Share(share, late_ns.max(1_000)))
}

/// The longest time without anything from the receiver while data were under way, if it lasted two
/// round trips and all came through in the end.
fn held(analysis: &Analysis, dir: Dir, rtt: u64) -> Option<(u64, u64)> {
    let mut longest: Option<(u64, u64)> = None;
    let mut last_back: Option<u64> = None;
    let mut first_sent_since: Option<u64> = None;
    for packet in &analysis.packets {
        let at = packet.at.as_nanos();
        if packet.segment.dir == dir {
            first_sent_since = first_sent_since.or(Some(at));
            continue;
        }
        if let (Some(_), Some(sent)) = (last_back, first_sent_since)
            && at.saturating_sub(sent) > 3 * rtt
            && longest.is_none_or(|(from, until)| at - sent > until - from)
        {
            longest = Some((sent, at));
        }
        (last_back, first_sent_since) = (Some(at), None);
    }
    let start = analysis.first.as_nanos();
    longest.map(|(sent, back)| (sent - start, back - start - rtt))
}

/// Bytes acknowledged by time.
fn delivered(analysis: &Analysis, dir: Dir, start: u64) -> Vec<(u64, u64)> {
    let mut stream = crate::losses::Unwrapped::default();
    let mut base = None;
    let mut curve: Vec<(u64, u64)> = Vec::new();
    for packet in analysis.packets.iter().filter(|packet| packet.segment.dir != dir) {
        let ack = stream.place(packet.segment.ack.0);
        let base = *base.get_or_insert(ack);
        let (at, bytes) = (packet.at.as_nanos().saturating_sub(start), ack - base.min(ack));
        if curve.last().is_none_or(|last| last.1 < bytes) {
            curve.push((at, bytes));
        }
    }
    curve
}
