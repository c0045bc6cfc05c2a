//! The estimates with their basis.

use core::fmt;

use diagnose::capture_point::CapturePoint;
use diagnose::episodes::{RecoveryEpisode, RecoveryTrigger};
use diagnose::{Analysis, Limiter, Timeline};
use packet::{Dir, Flags, IpVersion};

use units::Duration;

use crate::bottleneck::BurstRate;
use crate::losses::SequenceUnwrapper;
use crate::{LossEstimate, PeerSystem, WritePattern};

/// Description of an estimate, for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// The estimated quantity: `rate`.
    pub what: &'static str,
    /// The estimate and its basis.
    pub why: String,
}

/// Error that prevents a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitError {
    /// The connection has no data.
    NoData,
    /// No acknowledgment of data is in the capture, so that there is no round-trip sample.
    NoRoundTrip,
    /// The packets were not recorded ([`diagnose::AnalysisSettings::packets`]).
    NoPackets,
    /// Most of the data that the sequence numbers span is not in the capture.
    Gaps,
    /// The QUIC log is that of the host that receives the data.
    Receiver,
    /// The QUIC log has no lengths of packets.
    NoLengths,
    /// Fewer than this many packets with data were acknowledged.
    TooFewPackets(usize),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooFewPackets(least) => {
                return write!(
                    f,
                    "too little to judge: fewer than {least} packets with data were acknowledged"
                );
            }
            Self::Receiver => {
                "the log is of the host that receives the data: the log of the sender is needed"
            }
            Self::NoLengths => "the log has no lengths of packets (raw.length)",
            Self::NoData => "the connection has no data",
            Self::NoRoundTrip => {
                "no round trip can be measured in it: ACKs of its data are missing"
            }
            Self::NoPackets => "its packets were not recorded",
            Self::Gaps => "less than a tenth of the data that its sequence numbers span is in it",
        })
    }
}

impl core::error::Error for FitError {}

/// A connection, fitted as a path with two endpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct PathFit {
    /// Direction of the data.
    pub dir: Dir,
    /// Capture point.
    pub point: CapturePoint,
    /// Payload of a full-sized segment in bytes.
    pub mss: u64,
    /// Bytes of headers before it.
    pub headers: u64,
    /// Bytes of the stream.
    pub bytes: u64,
    /// The handshake was captured: times count from its first packet, else from the first data.
    pub opened: bool,
    /// Round trip from the capture point to the sender, in ns; 0 if unknown.
    pub to_sender: u64,
    /// Time to the delivery of the last byte, in ns.
    pub time: u64,
    /// Bytes delivered over time in ns: for comparison with a run.
    pub delivered: Vec<(u64, u64)>,
    /// Round-trip time without queues, in ns.
    pub rtt: u64,
    /// Rate of the bottleneck in bit/s of IP packets; `None` if it was never seen busy.
    pub rate: Option<u64>,
    /// The bottleneck was seen busy; else its rate is at least the one above.
    pub is_rate_seen: bool,
    /// The highest rate that it may have, where cross traffic or an idle path leaves it open; `None`: any.
    pub rate_at_most: Option<u64>,
    /// Packets sent together were spaced by it.
    pub is_rate_spaced: bool,
    /// Capacity of its queue in IP bytes; `None` if it was never seen full.
    pub buffer: Option<u64>,
    /// Losses other than queue overflows.
    pub losses: LossEstimate,
    /// Losses by queue overflow, and the numbers of those packets with their times.
    pub overflows: u64,
    /// See `overflows`.
    pub overflowed: Vec<(u64, u64)>,
    /// Stall without loss, in ns from the handshake: start and end.
    pub held: Option<(u64, u64)>,
    /// Reordering, if any.
    pub late: Option<ReorderingFit>,
    /// Segments per ACK, if more than delayed ACKs explain.
    pub per_ack: Option<u64>,
    /// Receive window in bytes, if it limited the sender.
    pub window: Option<u64>,
    /// The sender uses TSO.
    pub bursts: bool,
    /// Maximum bytes in flight, which the buffers of both endpoints held.
    pub flight: u64,
    /// At least half of the round trips have about the same flight.
    pub is_flight_level: bool,
    /// Size of the sender's buffer, in the unit of its knob, if it limited the sender.
    pub send_buffer: Option<u64>,
    /// Read rate of the receiver in bit/s, if it limited the sender.
    pub reads: Option<u64>,
    /// Write pattern of the application.
    pub writes: WritePattern,
    /// System of the sender.
    pub sender: PeerSystem,
    /// System of the receiver.
    pub receiver: PeerSystem,
    /// Basis of the estimates.
    pub bases: Vec<Basis>,
}

/// Reordering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReorderingFit {
    /// Groups of this many packets are reversed.
    Reversed(u64),
    /// A fraction of the packets is delayed by this many ns.
    Share(f64, u64),
}

/// Minimum fraction of the time for which a limiter counts.
const HELD: f64 = 0.2;
/// Range of the MTU of a scenario: the size that every host accepts (RFC 791 section 3.1), and the
/// largest packet.
pub(crate) const MTU: (u64, u64) = (576, 65_535);
/// Maximum ratio of the connection's data to the captured data.
const MISSING: u64 = 10;
/// Maximum size of groups that a queue reverses.
const LONGEST_GROUP: u64 = 16;

impl PathFit {
    /// Fits the data of `analysis` in its main direction.
    ///
    /// # Errors
    /// The missing data.
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
        // Without data, the capture has only ACKs.
        if captured > 0 && captured.saturating_mul(MISSING) < flow.bytes {
            return Err(FitError::Gaps);
        }
        let (base, ..) = flow.rtt.ok_or(FitError::NoRoundTrip)?;
        let rtt = base.as_nanos();
        let course = Timeline::of(flow);
        let path = course.path;
        let packets = &analysis.packets;
        let mut bases = Vec::new();
        let mut reported = |what, why: String| bases.push(Basis { what, why });
        let held_by = |limiter| {
            let [part, whole] = [course.budget.of(limiter), course.budget.whole()];
            part.as_nanos() as f64 / whole.as_nanos().max(1) as f64 >= HELD
        };
        let ip = packets.first().map_or(IpVersion::V4, |packet| packet.segment.ip);
        let headers = u64::from(ip.header_len()) + 20 + if flow.stamps { 12 } else { 0 };
        let packet = flow.mss + headers;
        if !(MTU.0..=MTU.1).contains(&packet) {
            reported(
                "mtu",
                format!("packets of {packet} B are not modelled: {} B", packet.clamp(MTU.0, MTU.1)),
            );
        }
        let wire = |payload: f64| payload * (flow.mss + headers) as f64 / flow.mss.max(1) as f64;
        reported(
            "delay",
            format!("shortest round trip of {} samples: {} us", flow.rtt_samples, rtt / 1_000),
        );

        let bits = |payload: f64| (wire(payload) * 8.0) as u64;
        let shared = course.shared();
        let own = shared.map(|(share, _)| share);
        let bursts = BurstRate::of(packets, flow.dir, flow.mss, flow.point);
        // Bursts faster than the rate of the whole show that something else than the bottleneck spaced the rest.
        let whole = || bursts.map(|bursts| bursts.or_usual(path.rate)).or(path.rate);
        let seen = own.or_else(whole);
        let rate = seen.or(path.burst_rate).map(bits);
        let why = match (seen, rate) {
            (Some(_), Some(rate)) if let Some((_, all)) = shared => {
                format!(
                    "{rate} bit/s: this connection's part of {} bit/s while packets were queued; the rest is \
                     cross traffic, assumed to recur",
                    bits(all)
                )
            }
            (Some(_), Some(rate)) => {
                format!("{rate} bit/s: spacing of bursts, or throughput while packets were queued")
            }
            (None, Some(rate)) => {
                format!("{rate} bit/s: highest rate seen; the bottleneck was never seen busy")
            }
            (_, None) => "too few packets for an estimate: assumed to be fast".to_owned(),
        };
        reported("rate", why);
        let before = |late| LossEstimate::at_receiver(packets, flow.dir, flow.mss, late);
        let after = || LossEstimate::at_sender(packets, flow.dir, flow.mss, rtt);
        // What was lost before a point between the hosts comes there late, as if it were overtaken.
        let mut repeated = 0;
        let mut losses = match flow.point {
            CapturePoint::Receiver => before((rtt / 4).max(flow.reordering.late.as_nanos())),
            CapturePoint::Middle => {
                let (before, after) = (before(rtt / 2), after());
                if before.packets.len() > after.packets.len() {
                    repeated = before.packets.len() as u64;
                    before
                } else {
                    after
                }
            }
            _ => after(),
        };
        let overflow = |episode: &RecoveryEpisode| {
            episode.rtt.saturating_sub(base) * 5 >= path.queue * 3
                && path.queue * 8 >= base
                && episode.trigger != RecoveryTrigger::Probe
        };
        let full = flow
            .episodes
            .iter()
            .filter(|episode| overflow(episode))
            .map(|e| e.retransmitted - e.spurious.min(e.retransmitted))
            .sum::<u64>();
        let all = losses.packets.len() as u64;
        let overflows = if path.rate.is_some() && full * 2 >= all.max(1) { all } else { 0 };
        let overflowed =
            if overflows > 0 { core::mem::take(&mut losses.packets) } else { Vec::new() };
        let buffer = rate.filter(|_| overflows > 0).map(|rate| {
            (rate as f64 / 8.0 * path.queue.as_nanos() as f64 / 1e9) as u64 + flow.mss + headers
        });
        if overflows > 0 {
            reported(
                "buffer",
                format!(
                    "{overflows} losses at a queueing delay of {} us: the bytes queued then",
                    path.queue.as_micros()
                ),
            );
        }
        if !losses.packets.is_empty() {
            reported(
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
            reported(
                "held",
                format!(
                    "no packet was delivered from {} to {} us, and none was lost",
                    from / 1_000,
                    until / 1_000
                ),
            );
        }
        let late = late(
            flow.reordering.packets.saturating_sub(repeated),
            flow.reordering.late.as_nanos(),
            path.extent,
            flow.counts.new,
        );
        if late.is_some() {
            reported(
                "reorder",
                format!(
                    "{} packets were reordered, by up to {} positions",
                    flow.reordering.packets, path.extent
                ),
            );
        }
        // Out-of-order packets are acknowledged together, without merging.
        let per_ack = (path.per_ack > 2.5 && late.is_none())
            .then(|| (flow.coverage.most / flow.mss.max(1)).max(3));
        if let Some(most) = per_ack {
            reported(
                "acks",
                format!("one per {:.1} segments on average, {most} at most", path.per_ack),
            );
        }
        let window = flow.window.filter(|_| held_by(Limiter::Rwnd)).map(|(_, most, _)| most);
        let opened = analysis.opened;
        let begin = if opened { flow.span.0 } else { flow.first_data.0 };
        let time = flow.last_delivery.since(begin).as_nanos();
        let goodput = flow.bytes as f64 * 8e9 / time.max(1) as f64;
        // A closing window is due to a slow reader; otherwise it is the buffer size.
        let closes = flow.window.is_some_and(|(least, most, _)| least * 2 < most);
        let reads = (window.is_some() && closes).then_some(goodput as u64);
        if let Some(window) = window {
            reported(
                "window",
                format!("the receiver advertised at most {window} B, which limited the sender"),
            );
        }
        let to_sender = match flow.dir {
            Dir::Forward => analysis.distances.to_client,
            Dir::Reverse => analysis.distances.to_server,
        };
        let to_sender = to_sender.map_or(0, Duration::as_nanos).min(rtt);
        // A sender limited by a window also pauses.
        let waits = [Limiter::Application, Limiter::Idle].map(|one| course.budget.of(one));
        let is_limited = WritePattern::is_habit(
            (waits[0] + waits[1]).as_nanos(),
            course.budget.whole().as_nanos(),
        );
        let writes = if window.is_none() && is_limited {
            WritePattern::of(packets, flow.dir, flow.mss, (rtt / 4).max(2_000_000), to_sender)
        } else {
            WritePattern::Bulk
        };
        if let WritePattern::Paced(bytes, every) = writes {
            reported("application", format!("it writes {bytes} B every {} us", every / 1_000));
        }
        let flight = flow.rounds.iter().map(|round| round.flight).max().unwrap_or(0);
        let mut flights: Vec<u64> = flow.rounds.iter().map(|round| round.flight).collect();
        flights.sort_unstable();
        let median = flights.get(flights.len() / 2).copied().unwrap_or(0);
        let level = flights.iter().filter(|flight| flight.abs_diff(median) * 8 <= median).count();
        let (sender, receiver) =
            (PeerSystem::of(analysis, flow.dir), PeerSystem::of(analysis, flow.dir.reversed()));
        reported("ends", format!("by their SYNs, {} sends to {}", sender.name(), receiver.name()));
        Ok(Self {
            dir: flow.dir,
            point: flow.point,
            mss: flow.mss,
            headers,
            bytes: flow.bytes,
            opened,
            to_sender,
            time,
            delivered: delivered(analysis, flow.dir, begin.as_nanos()),
            rtt,
            rate,
            is_rate_seen: seen.is_some() && own.is_none(),
            rate_at_most: shared.map(|(_, all)| bits(all)),
            is_rate_spaced: bursts.is_some(),
            buffer,
            losses,
            overflows,
            overflowed,
            held,
            late,
            per_ack,
            window,
            bursts: flow.point == CapturePoint::Sender && flow.counts.bursts > 0,
            flight,
            is_flight_level: level * 2 >= flow.rounds.len(),
            send_buffer: None,
            reads,
            writes,
            sender,
            receiver,
            bases,
        })
    }

    /// Whether the scenario's receiver is Linux: any that is not known to be FreeBSD.
    pub fn receives_as_linux(&self) -> bool {
        self.receiver != PeerSystem::FreeBsd
    }

    /// Returns the MTU of both endpoints.
    pub(crate) fn mtu(&self) -> u64 {
        (self.mss + self.headers).clamp(MTU.0, MTU.1)
    }
}

/// Returns reordering as an element of a path.
pub(crate) fn late(packets: u64, late_ns: u64, extent: u64, new: u64) -> Option<ReorderingFit> {
    if packets == 0 || new == 0 {
        return None;
    }
    let share = packets as f64 / new as f64;
    // In a reversed group of n, n - 1 packets are overtaken, by up to n - 1 others.
    if share > 0.4 && extent < LONGEST_GROUP {
        return Some(ReorderingFit::Reversed((extent + 1).max(2)));
    }
    Some(ReorderingFit::Share(share, late_ns.max(1_000)))
}

/// Returns the longest time without packets from the receiver while data was in flight, if it
/// lasted more than three round trips.
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

/// Returns the bytes of the stream acknowledged over time. The stream begins after the SYN, or with
/// the first byte that was captured.
fn delivered(analysis: &Analysis, dir: Dir, start: u64) -> Vec<(u64, u64)> {
    let mut stream = SequenceUnwrapper::default();
    let mut places = Vec::new();
    let (mut after_syn, mut first_data) = (None, None::<u64>);
    for packet in &analysis.packets {
        let segment = &packet.segment;
        if segment.dir != dir {
            let Some(ack) = segment.acknowledgment() else { continue };
            places.push((packet.at.as_nanos().saturating_sub(start), stream.place(ack.0)));
        } else if segment.flags.has(Flags::SYN) {
            after_syn = Some(stream.place(segment.seq.0.wrapping_add(1)));
        } else if segment.payload > 0 {
            let place = stream.place(segment.seq.0);
            first_data = Some(first_data.map_or(place, |first| first.min(place)));
        }
    }
    let Some(base) = after_syn.or(first_data) else { return Vec::new() };
    let mut curve: Vec<(u64, u64)> = Vec::new();
    for (at, place) in places {
        let bytes = place.saturating_sub(base);
        if curve.last().is_none_or(|last| last.1 < bytes) {
            curve.push((at, bytes));
        }
    }
    curve
}
