//! The estimates with their basis.

use core::fmt;

use diagnose::capture_point::{CaptureDistances, CapturePoint};
use diagnose::episodes::{RecoveryEpisode, RecoveryTrigger};
use diagnose::{Analysis, FlowAnalysis, Limiter, Timeline};
use packet::{Dir, IpVersion};

use units::Duration;

use crate::bottleneck::{BurstRate, DeliveryClock};
use crate::conversation::SenderLimits;
use crate::delivery::{delivered, held, last_data};
use crate::losses::lost_of_full_queue;
use crate::opening::window_field;
use crate::peaks::is_level;
use crate::policer::queue_with;
use crate::reordering::{ReorderingFit, late};
use crate::requests::lost_of_other_direction;
use crate::sending::SendingRate;
use crate::{
    Conversation, FlowBeside, LossEstimate, OpeningFit, PeerSystem, PolicerFit, WayBackFit,
    WritePattern,
};

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
    /// Time of the first data, in ns from the first packet.
    pub first_data: u64,
    /// Time to the delivery of the last byte, in ns.
    pub time: u64,
    /// Bytes delivered over time in ns: for comparison with a run.
    pub delivered: Vec<(u64, u64)>,
    /// Round-trip time without queues, in ns.
    pub rtt: u64,
    /// Bytes of the packet that took it: those of the handshake are small.
    pub rtt_packet: u64,
    /// Rate of the bottleneck in bit/s of IP packets; `None` if it was never seen busy.
    pub rate: Option<u64>,
    /// The bottleneck was seen busy; else its rate is at least the one above.
    pub is_rate_seen: bool,
    /// The highest rate that it may have, where cross traffic or an idle path leaves it open; `None`: any.
    pub rate_at_most: Option<u64>,
    /// The lowest rate that it has, in bit/s, where packets that no queue delayed show that.
    pub rate_at_least: Option<u64>,
    /// It was seen by a clock that no wait of ACKs changes: that of the receiver.
    pub is_rate_of_receiver: bool,
    /// Packets sent together were spaced by it.
    pub is_rate_spaced: bool,
    /// Capacity of its queue in IP bytes; `None` if it was never seen full.
    pub buffer: Option<u64>,
    /// Bytes of a queue that drops just the packets that were lost, of all that were sent; `None` if none does.
    pub dropping_queue: Option<u64>,
    /// Bytes that its queue holds at least, where the recorded sender, simulated, has that number wait there without a loss.
    pub queue_at_least: Option<u64>,
    /// The field of the receive window, mostly at its largest value, where the scale of windows is not known.
    pub window_field: Option<u16>,
    /// How much longer than the shortest the round trips at losses were, in ns: their median.
    pub queueing: u64,
    /// Losses other than queue overflows.
    pub losses: LossEstimate,
    /// Numbers of the lost data packets of the other direction, where hosts take turns.
    pub requests_lost: Vec<u64>,
    /// The same data are lost, not the packets of the same numbers.
    pub loses_data: bool,
    /// The policer of the scenario, and the one that drops just the packets that were lost of all that were sent.
    pub policer: Option<PolicerFit>,
    /// See above.
    pub shown_policer: Option<PolicerFit>,
    /// Target and interval in ns of an AQM that marks packets.
    pub marks: Option<(u64, u64)>,
    /// Packets were marked.
    pub is_marked: bool,
    /// The link for which ACKs waited.
    pub way_back: Option<WayBackFit>,
    /// SYNs lost, and options that were not negotiated.
    pub opening: OpeningFit,
    /// Losses by queue overflow.
    pub overflows: u64,
    /// The numbers of those packets, or of those that the policer dropped, with their times.
    pub overflowed: Vec<(u64, u64)>,
    /// Stall without loss, in ns from the handshake: start and end.
    pub held: Option<(u64, u64)>,
    /// Reordering, if any.
    pub late: Option<ReorderingFit>,
    /// Segments per ACK, if more than delayed ACKs explain.
    pub per_ack: Option<u64>,
    /// Receive window in bytes, if it limited the sender.
    pub window: Option<u64>,
    /// Size of the receiver's buffer, in the unit of its knob, where that is known better than by the window.
    pub receive_buffer: Option<u64>,
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
    /// The pattern that the ends of writes show, where the hosts do not take turns by it.
    pub ends_of_writes: Option<WritePattern>,
    /// The messages of both applications, if they took turns.
    pub conversation: Option<Conversation>,
    /// Recorded connections that share the bottleneck.
    pub beside: Vec<FlowBeside>,
    /// System of the sender.
    pub sender: PeerSystem,
    /// System of the receiver.
    pub receiver: PeerSystem,
    /// Basis of the estimates.
    pub bases: Vec<Basis>,
}

/// Most messages of a single transfer: an opening, a request and its response.
const MOST_OF_TRANSFER: usize = 6;
/// Bytes of a packet without payload.
const SMALL: u64 = 60;
/// Minimum fraction of the time for which a limiter counts.
const HELD: f64 = 0.2;
/// Range of the MTU of a scenario: the size that every host accepts (RFC 791 section 3.1), and the
/// largest packet.
pub(crate) const MTU: (u64, u64) = (576, 65_535);
/// Maximum ratio of the connection's data to the captured data.
const MISSING: u64 = 10;

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
        let course = Timeline::of(flow);
        let path = course.path;
        let opening = OpeningFit::of(analysis, base.as_nanos());
        // Which of several SYNs was answered is not known (Karn and Partridge, SIGCOMM 1987): that is no round trip.
        let is_ambiguous = opening.lost > 0;
        let base = path.data_rtt.filter(|_| is_ambiguous).unwrap_or(base);
        let rtt = base.as_nanos();
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

        let window = flow.window.filter(|_| held_by(Limiter::Rwnd)).map(|(_, most, _)| most);
        // A closing window is due to a slow reader; otherwise it is the buffer size.
        let closes = flow.window.is_some_and(|(least, most, _)| least * 2 < most);
        let is_read_slowly = window.is_some() && closes;
        let conversation = match is_read_slowly {
            true => None,
            false => conversation(analysis, flow, rtt, window.is_some()),
        };
        let bits = |payload: f64| (wire(payload) * 8.0) as u64;
        // Where hosts take turns, the rate between two messages is no share of the bottleneck.
        let is_dialogue =
            conversation.as_ref().is_some_and(|found| found.messages.len() > MOST_OF_TRANSFER);
        let shared = course.shared().filter(|_| !is_dialogue);
        let own = shared.map(|(share, _)| share);
        let way_back = WayBackFit::of(packets, flow, headers);
        let clock = match way_back {
            Some(_) => DeliveryClock::Receiver,
            None => DeliveryClock::Capture,
        };
        // A full window spaces ACKs, too: then what the data show of the way before the point is nearer.
        let point = match (flow.point, window) {
            (CapturePoint::Middle, Some(_)) => CapturePoint::Receiver,
            (point, _) => point,
        };
        let bursts = BurstRate::of(packets, flow.dir, flow.mss, (point, clock), rtt);
        // Bursts faster than the rate of the whole show that something else than the bottleneck spaced the rest.
        let whole = || bursts.map(|bursts| bursts.or_usual(path.rate)).or(path.rate);
        let seen = own.or_else(whole);
        // Packets that no queue delays show it by their sizes, unless their ACKs are delayed.
        let sending = match seen {
            Some(_) => None,
            None if way_back.is_some() && flow.point != CapturePoint::Receiver => None,
            None => SendingRate::of(packets, flow.dir, flow.point, headers, rtt),
        };
        let sized = sending.and_then(|sending| sending.rate);
        let at_least = sending.map(|sending| sending.at_least);
        let fastest = || path.burst_rate.map(bits).map(|rate| rate.max(at_least.unwrap_or(0)));
        let rate = sized.or_else(|| seen.map(bits)).or_else(fastest);
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
            (None, Some(rate)) if sized.is_some() => {
                format!("{rate} bit/s: how much longer the round trips of larger messages are")
            }
            (None, Some(rate)) => {
                format!("{rate} bit/s: highest rate seen; the bottleneck was never seen busy")
            }
            (_, None) => "too few packets for an estimate: assumed to be fast".to_owned(),
        };
        reported("rate", why);
        let timeouts = timeouts(flow);
        let before = |late| LossEstimate::at_receiver(packets, flow.dir, flow.mss, late, &timeouts);
        let after = || LossEstimate::at_sender(packets, flow.dir, flow.mss, rtt);
        let since = |losses: LossEstimate| losses.since(analysis.first.as_nanos());
        // What was lost before a point between the hosts comes there late, as if it were overtaken.
        let mut repeated = 0;
        let mut losses = match flow.point {
            CapturePoint::Receiver => since(before((rtt / 4).max(flow.reordering.late.as_nanos()))),
            CapturePoint::Middle => {
                let (before, after) = (since(before(rtt / 2)), since(after()));
                let number = |of: &LossEstimate| of.packets.len() + of.outages.len();
                if number(&before) > number(&after) {
                    repeated = before.packets.len() as u64;
                    before
                } else {
                    after
                }
            }
            _ => since(after()),
        };
        let requests_lost = match conversation {
            Some(_) => lost_of_other_direction(analysis, flow, rtt),
            None => Vec::new(),
        };
        if !requests_lost.is_empty() {
            let why = format!("{} data packets of the other direction", requests_lost.len());
            reported("loss on the way back", why);
        }
        let full = lost_of_full_queue(flow, base, path.queue);
        let at_losses =
            median(flow.episodes.iter().map(|episode| episode.rtt.saturating_sub(base)));
        let policer = PolicerFit::of(
            &losses.times,
            &losses.packets,
            packet,
            at_losses,
            rate.filter(|_| path.rate.is_some()),
        );
        if let Some(PolicerFit { rate, burst }) = policer {
            let lost = losses.packets.len();
            let why = format!(
                "{rate} bit/s, {burst} B: such a token bucket drops these {lost} packets, without a queue"
            );
            reported("policer", why);
        }
        let policed = match policer {
            Some(_) => core::mem::take(&mut losses.packets),
            None => Vec::new(),
        };
        let all = losses.packets.len() as u64;
        // Of a short queue the round trips show little, but it drops bursts.
        let is_before = flow.point == CapturePoint::Sender;
        let is_short = is_before && path.rate.is_some() && policer.is_none() && full * 2 < all;
        let short = rate.filter(|_| is_short);
        let short = short
            .and_then(|rate| queue_with(&losses.times, &losses.packets, packet, (rate, at_losses)));
        let is_full = path.rate.is_some() && full * 2 >= all.max(1) || short.is_some();
        let overflows = if is_full { all } else { 0 };
        let overflowed = if overflows > 0 { core::mem::take(&mut losses.packets) } else { policed };
        let buffer = rate.filter(|_| overflows > 0).map(|rate| {
            (rate as f64 / 8.0 * path.queue.as_nanos() as f64 / 1e9) as u64 + flow.mss + headers
        });
        let buffer = short.or(buffer);
        if let Some(short) = short {
            let why =
                format!("{overflows} losses: what a queue of {short} B drops of these packets");
            reported("buffer", why);
        } else if overflows > 0 {
            let delay = path.queue.as_micros();
            let why = format!(
                "{overflows} losses at a queueing delay of {delay} us: the bytes queued then"
            );
            reported("buffer", why);
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
        // Out-of-order packets are acknowledged together, without merging; and a full queue drops ACKs.
        let is_complete = way_back.is_none() || flow.point == CapturePoint::Receiver;
        let per_ack = (path.per_ack > 2.5 && late.is_none() && is_complete)
            .then(|| (flow.coverage.most / flow.mss.max(1)).max(3));
        if let Some(most) = per_ack {
            reported(
                "acks",
                format!("one per {:.1} segments on average, {most} at most", path.per_ack),
            );
        }
        let opened = analysis.opened;
        let CaptureDistances { to_client, to_server } = analysis.distances;
        let of_handshake = to_client.zip(to_server).map(|(client, server)| client + server);
        let is_of_handshake =
            opened && !is_ambiguous && of_handshake.is_some_and(|rtt| rtt <= base + base / 100);
        let begin = if opened { flow.span.0 } else { flow.first_data.0 };
        let answer = conversation.as_ref().and_then(|one| one.answer(flow.dir == Dir::Forward));
        let answered = answer.and_then(|_| last_data(packets, flow.dir.reversed()));
        let end = answered.map_or(flow.last_delivery, |at| at.max(flow.last_delivery));
        let time = end.since(begin).as_nanos();
        let goodput = flow.bytes as f64 * 8e9 / time.max(1) as f64;
        let reads = is_read_slowly.then_some(goodput as u64);
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
        if let Some(Conversation { messages, window, held, .. }) = &conversation {
            let [window, held] = [
                window.map(|window| format!(", within a window of the application of {window} B")),
                (*held > 0).then(|| format!("; Nagle's algorithm held {held} segments")),
            ]
            .map(Option::unwrap_or_default);
            reported("messages", format!("{} by both hosts{window}{held}", messages.len()));
        }
        if let Some(WayBackFit { rate, buffer, .. }) = way_back {
            reported(
                "way back",
                format!("{rate} bit/s, a queue of {buffer} B: spacing and waits of ACKs"),
            );
        }
        if opening.lost > 0 {
            reported("opening", format!("{} SYNs or SYN-ACKs were lost", opening.lost));
        }
        if opening.no_scaling || opening.no_sack {
            let absent = [(opening.no_scaling, "window scaling"), (opening.no_sack, "SACK")];
            let absent = absent.into_iter().filter(|one| one.0).map(|one| one.1);
            let absent = absent.collect::<Vec<_>>().join(" nor ");
            reported("options", format!("the SYNs do not agree on {absent}"));
        }
        let flight = flow.rounds.iter().map(|round| round.flight).max().unwrap_or(0);
        let is_flight_level = is_level(flow);
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
            first_data: flow.first_data.0.since(analysis.first).as_nanos(),
            time,
            delivered: delivered(analysis, flow.dir, begin.as_nanos()),
            rtt,
            rtt_packet: if is_of_handshake { SMALL } else { packet.clamp(MTU.0, MTU.1) },
            rate,
            is_rate_seen: sized.is_some() || seen.is_some() && own.is_none(),
            rate_at_most: shared.map(|(_, all)| bits(all)),
            rate_at_least: at_least,
            is_rate_of_receiver: flow.point == CapturePoint::Receiver
                || way_back.is_some() && bursts.is_some_and(|found| Some(found.rate) == seen),
            is_rate_spaced: bursts.is_some() || sized.is_some(),
            buffer,
            dropping_queue: short,
            queue_at_least: None,
            window_field: window_field(analysis, flow),
            queueing: at_losses.as_nanos(),
            losses,
            requests_lost,
            loses_data: false,
            policer,
            shown_policer: policer,
            marks: None,
            is_marked: flow.ecn_echoes > 0 || flow.marked > 0,
            way_back,
            opening,
            overflows,
            overflowed,
            held,
            late,
            per_ack,
            window,
            receive_buffer: None,
            bursts: flow.point == CapturePoint::Sender && flow.counts.bursts > 0,
            flight,
            is_flight_level,
            send_buffer: None,
            reads,
            writes,
            ends_of_writes: WritePattern::by_ends(packets, flow.dir, flow.mss, rtt),
            conversation,
            beside: Vec::new(),
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

/// Times of the packets that a timer of the sender released after silences, as a capture behind the losses shows them.
pub(crate) fn timeouts(flow: &FlowAnalysis) -> Vec<u64> {
    let is_timeout =
        |one: &&RecoveryEpisode| one.trigger == RecoveryTrigger::Inferred && one.timeouts > 0;
    flow.episodes.iter().filter(is_timeout).map(|one| one.begin.as_nanos()).collect()
}

/// The messages of a connection if the hosts took turns.
fn conversation(
    analysis: &Analysis,
    flow: &FlowAnalysis,
    rtt: u64,
    is_window_limited: bool,
) -> Option<Conversation> {
    let CaptureDistances { to_client, to_server } = analysis.distances;
    let distances = match (to_client, to_server) {
        (None, None) => return None,
        // A retransmitted SYN is farther from its answer than the server.
        (Some(client), Some(server)) => {
            let client = client.as_nanos();
            [client, server.as_nanos().min(rtt.saturating_sub(client))]
        }
        (Some(client), None) => [client.as_nanos(), rtt.saturating_sub(client.as_nanos())],
        (None, Some(server)) => [rtt.saturating_sub(server.as_nanos()), server.as_nanos()],
    };
    let packets = &analysis.packets;
    let limits = SenderLimits { is_window_limited, timeouts: &timeouts(flow) };
    let found = Conversation::of(packets, flow.dir, flow.mss, distances, limits)?;
    let is_complete = found.bytes(flow.dir == Dir::Forward) == flow.bytes;
    (is_complete && found.has_turns()).then_some(found)
}

fn median(values: impl Iterator<Item = Duration>) -> Duration {
    let mut values: Vec<Duration> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}
