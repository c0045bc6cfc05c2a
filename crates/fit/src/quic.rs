//! Fits the data of a QUIC connection, from the log of the host that sends them.

pub(crate) mod dialects;
mod limits;
mod losses;
mod messages;
mod spacing;
mod text;
mod words;

use diagnose::quic::transfer::{QuicRoundTrip, QuicTransfer};
use diagnose::quic::{QuicAnalysis, QuicLimiter};

use crate::fitted::{Basis, FitError};
use crate::reordering::{ReorderingFit, late};
use crate::{Conversation, LossEstimate, PolicerFit, WayBackFit, WritePattern};
use limits::LimitRaises;
use losses::QueueLosses;
use spacing::SpacedRate;

/// Headers of IPv4 and UDP, which a log of QUIC does not count; one of TCP counts all headers.
const IP_UDP: u64 = 28;
/// IP bytes of an ACK.
const ACK: u64 = 60;
/// Fewest packets with data that were acknowledged; fewer show neither a rate nor a sender.
const LEAST_PACKETS: usize = 20;
/// Minimum fraction of the time for which a limiter counts.
const HELD: f64 = 0.2;
/// Pauses count as a pattern of the application from this part of the time on; with fewer than four
/// writes, from three times this part.
const HABIT: u64 = 10;
/// Below this part of a window in a round trip the receiver reads slowly; one that raises its limit after half a
/// window returns half of it in a round trip. Only if the raises do not show it.
const UNREAD: f64 = 0.4;
/// Fewest probe timeouts without an answer at the end of a log that ends in silence.
const LEAST_UNANSWERED: u64 = 2;
/// Most streams of which the windows are counted.
const MOST_STREAMS: u64 = 100;
/// The application's pause must exceed this.
const LEAST_PAUSE: u64 = 2_000_000;

/// A QUIC connection, fitted as a path with two endpoints. Times are in ns, of the data from the first
/// packet that has any.
#[derive(Debug, Clone, PartialEq)]
pub struct QuicFit {
    /// Bytes delivered: acknowledged without a gap.
    pub bytes: u64,
    /// Time until the last of them was acknowledged, or of the log if it ends in silence.
    pub time: u64,
    /// The log ends in a silence in which probes were not answered: what was left to send is unknown.
    pub unfinished: bool,
    /// Bytes delivered over time.
    pub delivered: Vec<(u64, u64)>,
    /// Congestion window in bytes over the bytes delivered, where the log has it.
    pub windows: Vec<(u64, u64)>,
    /// UDP payload of a full datagram in bytes; of TCP its IP packet.
    pub datagram: u64,
    /// TCP profile that the log names, if it is of a TCP sender.
    pub tcp: Option<String>,
    /// Shortest round trip.
    pub rtt: u64,
    /// Rate of the bottleneck in bit/s of IP packets; `None` if it was never seen busy.
    pub rate: Option<u64>,
    /// Capacity of its queue in IP bytes; `None` if it was never seen full.
    pub buffer: Option<u64>,
    /// Losses other than queue overflows.
    pub losses: LossEstimate,
    /// Losses by queue overflow.
    pub overflows: u64,
    /// Reordering, if any, with the most packets that overtook one.
    pub late: Option<(ReorderingFit, u64)>,
    /// Packets per ACK.
    pub per_ack: u64,
    /// The peer's `max_ack_delay`, if the log has it.
    pub max_ack_delay: Option<u64>,
    /// Flow control windows of the connection and of its stream in bytes; `None` if unknown.
    pub windows_of_peer: [Option<u64>; 2],
    /// Profile of the receiver: the stack's if its windows are assumed.
    pub receiver: &'static str,
    /// Whether they limited the sender.
    pub flow_limited: bool,
    /// Read rate of the receiver in bit/s, if it limited the sender.
    pub reads: Option<u64>,
    /// Maximum bytes in flight.
    pub flight: u64,
    /// Write pattern of the application.
    pub writes: WritePattern,
    /// Messages of both hosts, if they take turns.
    pub conversation: Option<Conversation>,
    /// The host of the log is the client.
    pub is_client: bool,
    /// A token bucket that drops packets.
    pub policer: Option<PolicerFit>,
    /// The link for which ACKs waited.
    pub way_back: Option<WayBackFit>,
    /// Largest rate of the deliveries in bit/s of IP packets: what the path carries at least.
    pub rate_at_least: u64,
    /// Parts of the explanation that need not be so.
    pub parts: FitParts,
    /// Basis of the estimates.
    pub bases: Vec<Basis>,
}

/// Parts of the explanation of a log that may be others, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FitParts {
    /// A short queue dropped all packets that were lost; else they are lost by their numbers.
    pub short_queue: bool,
    /// The rate is that of the spacing of ACKs; else that of a round trip with a queue, though that is lower.
    pub spaced_rate: bool,
}

impl FitParts {
    /// All of them.
    const ALL: Self = Self { short_queue: true, spaced_rate: true };
}

impl QuicFit {
    /// Fits the data that the host of the log sent. Its packets must have been kept
    /// ([`diagnose::quic::QuicAnalyzer::keep_transfer`]).
    ///
    /// # Errors
    /// What the log lacks.
    pub fn of(analysis: &QuicAnalysis) -> Result<Self, FitError> {
        Self::of_stack(analysis, None)
    }

    /// Does the same as [`of`](Self::of); `default` has a stack's name and its flow control windows of the connection
    /// and of a stream in bytes, which count if the log has no flow control.
    ///
    /// # Errors
    /// What the log lacks.
    pub fn of_stack(
        analysis: &QuicAnalysis,
        default: Option<(&'static str, [u64; 2])>,
    ) -> Result<Self, FitError> {
        Self::of_sender(analysis, default, None, FitParts::ALL)
    }

    /// Other explanations of the same log, each without a part of this one that need not be so. `default` as for
    /// [`of_stack`](Self::of_stack).
    pub fn others(
        &self,
        analysis: &QuicAnalysis,
        default: Option<(&'static str, [u64; 2])>,
    ) -> Vec<Self> {
        let FitParts { short_queue, spaced_rate } = self.parts;
        let without = [
            (short_queue, FitParts { short_queue: false, ..FitParts::ALL }),
            (spaced_rate, FitParts { spaced_rate: false, ..FitParts::ALL }),
        ];
        let without = without.into_iter().filter(|(is_part, _)| *is_part && self.tcp.is_none());
        let others =
            without.filter_map(|(_, parts)| Self::of_sender(analysis, default, None, parts).ok());
        others.chain(self.without_conversation()).collect()
    }

    /// Does the same as [`of`](Self::of) for the log of a TCP sender in the terms of QUIC, whose
    /// profile is `name`.
    ///
    /// # Errors
    /// What the log lacks.
    pub fn of_tcp(analysis: &QuicAnalysis, name: &str) -> Result<Self, FitError> {
        Self::of_sender(analysis, None, Some(name), FitParts::ALL)
    }

    fn of_sender(
        analysis: &QuicAnalysis,
        default: Option<(&'static str, [u64; 2])>,
        tcp: Option<&str>,
        parts: FitParts,
    ) -> Result<Self, FitError> {
        let headers = if tcp.is_some() { 0 } else { IP_UDP };
        let transfer = analysis.transfer.as_deref().ok_or(FitError::NoPackets)?;
        if !analysis.is_sender() {
            return Err(FitError::Receiver);
        }
        let first = transfer.packets.first().ok_or(FitError::NoData)?.at;
        let last = *transfer.delivered.last().ok_or(FitError::NoRoundTrip)?;
        let least = transfer.round_trips.iter().map(|sample| sample.rtt).min();
        let rtt = least.filter(|&rtt| rtt > 0).ok_or(FitError::NoRoundTrip)?;
        let unfinished = transfer.bytes > last.bytes && analysis.unanswered >= LEAST_UNANSWERED;
        let end = if unfinished { analysis.last.max(last.at) } else { last.at };
        let acked = transfer.packets.iter().filter(|packet| packet.acked_at.is_some());
        let most = acked.clone().map(|packet| u64::from(packet.bytes)).max().unwrap_or(0);
        if most == 0 {
            return Err(FitError::NoLengths);
        }
        let datagram = if tcp.is_some() { tcp_packet(analysis, transfer).min(most) } else { most };
        if acked.count() < LEAST_PACKETS {
            return Err(FitError::TooFewPackets(LEAST_PACKETS));
        }
        let active = analysis.budget.active().max(1) as f64;
        let mut bases = Vec::new();
        let mut reported = |what, why: String| bases.push(Basis { what, why });
        let samples = transfer.round_trips.len();
        reported("delay", format!("shortest round trip of {samples} samples: {} us", rtt / 1_000));

        let wire = (datagram + headers) as f64 / datagram as f64;
        let busy = analysis.bottleneck.map(|bytes| (bytes * 8.0 * wire) as u64);
        let together = SpacedRate::of(transfer, headers);
        // A queue that does not last a round trip shows less than the rate.
        let is_busy = analysis.time(QuicLimiter::Path) as f64 / active >= HELD;
        let is_measured = analysis.spacing.is_some() || analysis.return_path.is_some();
        let is_needed = !is_busy || busy.is_none();
        let is_rate = |found: &SpacedRate| is_needed || parts.spaced_rate && found.is_common;
        let together = together.filter(|found| !is_measured && is_rate(found));
        let rate = busy.max(together.map(|found| found.rate));
        let spaced_rate = !is_needed && rate > busy;
        let why = match rate {
            Some(rate) if busy == Some(rate) => {
                format!("{rate} bit/s: largest delivery rate of a round trip with a queue")
            }
            Some(rate) => {
                format!("{rate} bit/s: spacing of the ACKs of packets that were sent together")
            }
            None => "no queue and no packets sent together: assumed to be fast".to_owned(),
        };
        reported("rate", why);

        let mut found = QueueLosses::of(transfer, rtt);
        let policer = analysis.policer.map(|policer| PolicerFit {
            rate: (policer.rate * 8.0 * wire) as u64,
            burst: (policer.burst * wire) as u64,
        });
        if let Some(PolicerFit { rate, burst }) = policer {
            found.overflows = 0;
            found.others.packets.clear();
            reported(
                "policer",
                format!("a bucket of {rate} bit/s and {burst} B drops what was lost"),
            );
        }
        let way_back = way_back(analysis);
        if let Some(WayBackFit { rate, .. }) = way_back {
            reported("way back", format!("{rate} bit/s by the spacing of ACKs"));
        }
        // Of a short queue the round trips show little, but it drops bursts.
        let is_short = parts.short_queue && tcp.is_none() && policer.is_none();
        let short = rate.filter(|_| is_short);
        let short = short.and_then(|rate| found.short_queue(datagram + headers, rate));
        if short.is_some() {
            found.overflows += found.others.packets.len() as u64;
            found.others.packets.clear();
        }
        let overflows = found.overflows;
        let buffer = rate
            .filter(|_| overflows > 0)
            .map(|rate| (rate as f64 / 8.0 * found.queue as f64 / 1e9) as u64 + datagram + headers);
        let buffer = short.or(buffer);
        if let Some(short) = short {
            let why =
                format!("{overflows} losses: what a queue of {short} B drops of these packets");
            reported("buffer", why);
        } else if overflows > 0 {
            let delay = found.queue / 1_000;
            reported(
                "buffer",
                format!(
                    "{overflows} losses at a queueing delay of {delay} us: the bytes queued then"
                ),
            );
        }
        let losses = found.others;
        if !losses.packets.is_empty() {
            let (lost, sent) = (losses.packets.len(), losses.sent);
            reported("loss", format!("{lost} of {sent} packets with data, without a full queue"));
        }
        for (from, until) in &losses.outages {
            let (from, until) =
                (from.saturating_sub(first) / 1_000, until.saturating_sub(first) / 1_000);
            reported("outage", format!("no packet arrived from {from} to {until} us"));
        }
        if unfinished {
            let (from, until) = (last.at.saturating_sub(first), end.saturating_sub(first));
            reported(
                "outage",
                format!(
                    "nothing was acknowledged from {} us to the end of the log, {} us: what was left to send \
                     is unknown",
                    from / 1_000,
                    until / 1_000
                ),
            );
        }
        let late = reordering(transfer);
        if let Some((_, extent)) = late {
            let packets = transfer.packets.iter().filter(|packet| packet.overtaken > 0).count();
            reported(
                "reorder",
                format!("{packets} packets were reordered, by up to {extent} positions"),
            );
        }
        let per_ack = packets_per_ack(&transfer.round_trips);
        match tcp {
            None => reported("acks", format!("one per {per_ack} packets (median)")),
            Some(name) => {
                reported(
                    "ends",
                    format!("the log names {name}; the receiver is assumed to be one"),
                );
            }
        }

        let held_by = |limiter| analysis.time(limiter) as f64 / active >= HELD;
        let by_connection = held_by(QuicLimiter::ConnectionFlow);
        let by_stream = held_by(QuicLimiter::StreamFlow);
        let assumed = default.filter(|_| transfer.windows == [None; 2]);
        let of_peer = assumed.map_or(transfer.windows, |(_, windows)| windows.map(Some));
        // Of several streams, those that limit are as many times larger together.
        let streams = if by_stream { transfer.blocked_streams } else { transfer.streams };
        let of_streams = |window: u64| window.saturating_mul(streams.clamp(1, MOST_STREAMS));
        let of_peer = [of_peer[0], of_peer[1].map(of_streams)];
        let time = end.saturating_sub(first);
        let goodput = last.bytes as f64 * 8e9 / last.at.saturating_sub(first).max(1) as f64;
        let limits = [by_connection, by_stream].into_iter().zip(of_peer);
        let limit = limits.filter(|(held, _)| *held).filter_map(|(_, window)| window).min();
        let raises = transfer.limits.each_ref().map(|limits| LimitRaises::of(limits));
        let raises = match by_connection {
            true => raises[0].or(raises[1]),
            false => raises[1].or(raises[0]),
        };
        // A window that is not returned within a round trip waits for its reader.
        let by_window = limit.map(|window| window as f64 * 8e9 / rtt as f64);
        let reads = match (by_window, raises) {
            (Some(_), Some(LimitRaises { reads_at_once: false, rate, .. })) => {
                Some((rate * 8.0) as u64)
            }
            (Some(bound), None) if goodput < UNREAD * bound => Some(goodput as u64),
            _ => None,
        };
        if let Some(window) = limit {
            let whose = if by_connection { "connection" } else { "stream" };
            reported(
                "window",
                format!("flow control of the {whose}, {window} B, limited the sender"),
            );
        }
        let receiver = match (assumed, raises) {
            (Some((stack, _)), _) => stack,
            (None, Some(raises)) => {
                let payload = transfer.packets.iter().map(|packet| packet.fresh).max();
                let (receiver, divisor) = raises.receiver(payload.unwrap_or(0).into());
                if limit.is_some() {
                    reported(
                        "limits",
                        format!(
                            "raised once 1/{divisor} of the window was read, as {receiver} does"
                        ),
                    );
                }
                receiver
            }
            (None, None) => "quic-rfc9002",
        };
        if let Some(rate) = reads {
            reported(
                "reader",
                format!(
                    "the receiver reads {rate} bit/s: its window was not returned within a round trip"
                ),
            );
        }
        if let Some((stack, [of_connection, of_stream])) = assumed {
            let least = of_connection.min(of_stream);
            reported(
                "window",
                format!("the log has no flow control: the least default of {stack}, {least} B"),
            );
        }
        // Pauses within a full window of the peer are none of the application.
        let allowed = assumed.map_or(u64::MAX, |(_, windows)| windows[0].min(windows[1]));
        let writes = match limit {
            Some(_) => WritePattern::Bulk,
            None => writes(transfer, (rtt / 4).max(LEAST_PAUSE), allowed),
        };
        if let WritePattern::Paced(bytes, every) = writes {
            reported(
                "application",
                format!("it writes {bytes} B every {} us, on average", every / 1_000),
            );
        }
        let conversation = match (reads, tcp) {
            (None, None) => messages::conversation(transfer, analysis.client, rtt),
            _ => None,
        };
        if let Some(conversation) = &conversation {
            reported("messages", messages::described(conversation));
        }
        let peak = analysis.rates.largest(0).unwrap_or(0.0);
        let rate_at_least = (peak * 8.0 * wire).max(goodput) as u64;
        let since = |at: u64| at.saturating_sub(first);
        let delivered = transfer.delivered.iter().map(|one| (since(one.at), one.bytes)).collect();
        let windows = transfer.delivered.iter().filter_map(|one| Some((one.bytes, one.window?)));
        let losses = losses.since(first);
        Ok(Self {
            bytes: last.bytes,
            time,
            unfinished,
            delivered,
            windows: windows.collect(),
            datagram,
            tcp: tcp.map(str::to_owned),
            rtt,
            rate,
            buffer,
            losses,
            overflows,
            late,
            per_ack,
            max_ack_delay: analysis.max_ack_delay,
            windows_of_peer: of_peer,
            receiver,
            flow_limited: limit.is_some(),
            reads,
            flight: analysis.max_in_flight.unwrap_or(0),
            writes,
            conversation,
            is_client: analysis.client.unwrap_or(true),
            policer,
            way_back,
            rate_at_least,
            parts: FitParts { short_queue: short.is_some(), spaced_rate },
            bases,
        })
    }
}

/// The link for which ACKs waited, with a queue for the longest wait.
fn way_back(analysis: &QuicAnalysis) -> Option<WayBackFit> {
    let rate = analysis.return_path.filter(|&rate| rate > 0.0)?;
    let [min, _, max] = analysis.round_trips?;
    let wait = max.saturating_sub(min);
    let buffer = (rate * wait as f64 / 1e9) as u64 + ACK;
    Some(WayBackFit { rate: (rate * 8.0) as u64, buffer, wait })
}

/// Bytes of a full-sized TCP packet. A packet of the log may be a burst of several segments, each
/// with its headers.
fn tcp_packet(analysis: &QuicAnalysis, transfer: &QuicTransfer) -> u64 {
    let segment = analysis.datagram.max(1);
    let with_data = transfer.packets.iter().filter(|packet| packet.fresh > 0);
    let headers = with_data.map(|packet| {
        u64::from(packet.bytes.saturating_sub(packet.fresh))
            / u64::from(packet.fresh).div_ceil(segment)
    });
    segment + headers.min().unwrap_or(0)
}

/// Reordering, with its extent in packets.
fn reordering(transfer: &QuicTransfer) -> Option<(ReorderingFit, u64)> {
    let packets = &transfer.packets;
    let (mut overtaken, mut extent, mut delay) = (0, 0, 0);
    for (index, packet) in packets.iter().enumerate() {
        if packet.overtaken == 0 {
            continue;
        }
        overtaken += 1;
        extent = extent.max(packet.overtaken);
        // The next one in order was acknowledged when this one was not.
        let next = packets[index + 1..].iter().take(64).find(|next| next.overtaken == 0);
        let after = next.and_then(|next| packet.acked_at.zip(next.acked_at));
        delay = delay.max(after.map_or(0, |(own, next)| own.saturating_sub(next)));
    }
    // A late packet is overtaken only if another one follows within that time.
    let followed = packets.windows(2).filter(|pair| pair[1].at.saturating_sub(pair[0].at) < delay);
    let followed = (followed.count() as u64).max(overtaken);
    Some((late(overtaken, delay, extent, followed)?, extent))
}

/// Bytes between what was sent and what was acknowledged without a gap, by time.
fn outstanding(transfer: &QuicTransfer) -> Vec<(u64, u64)> {
    let (mut sent, mut acked) = (0, 0);
    let mut delivered = transfer.delivered.iter().peekable();
    let mut all = Vec::new();
    for packet in &transfer.packets {
        while let Some(progress) = delivered.next_if(|progress| progress.at <= packet.at) {
            acked = progress.bytes;
            all.push((progress.at, u64::saturating_sub(sent, acked)));
        }
        sent += u64::from(packet.fresh);
        all.push((packet.at, u64::saturating_sub(sent, acked)));
    }
    all
}

/// Median of the packets that an ACK newly acknowledges, at least 1.
fn packets_per_ack(samples: &[QuicRoundTrip]) -> u64 {
    let mut newly: Vec<u32> = samples.iter().map(|sample| sample.newly).collect();
    newly.sort_unstable();
    newly.get(newly.len() / 2).map_or(1, |&packets| u64::from(packets.max(1)))
}

/// A flow control window is exhausted from this part of it on, in tenths: limits are raised in steps.
const EXHAUSTED: u64 = 8;

/// The writes of the application, separated by its pauses of at least `least` ns in which less than `window` bytes are
/// outstanding.
fn writes(transfer: &QuicTransfer, least: u64, window: u64) -> WritePattern {
    let outstanding = outstanding(transfer);
    let of_window = |at: u64| {
        let before = outstanding.partition_point(|(time, _)| *time <= at);
        let bytes = before.checked_sub(1).map_or(0, |last| outstanding[last].1);
        bytes.saturating_mul(10) >= window.saturating_mul(EXHAUSTED)
    };
    let pauses = transfer.pauses.iter().copied();
    let mut pauses = pauses.filter(|(from, _)| window == u64::MAX || !of_window(*from)).peekable();
    // Begin and bytes of each write.
    let mut writes: Vec<(u64, u64)> = Vec::new();
    let (mut paused, mut previous) = (0, None::<u64>);
    for packet in transfer.packets.iter().filter(|packet| packet.fresh > 0) {
        let mut waited = 0;
        while let Some((from, to)) = pauses.next_if(|(from, _)| *from < packet.at) {
            waited += to.min(packet.at) - from.max(previous.unwrap_or(from)).min(to.min(packet.at));
        }
        match writes.last_mut() {
            Some(last) if waited < least => last.1 += u64::from(packet.fresh),
            Some(_) => {
                paused += waited;
                writes.push((packet.at, u64::from(packet.fresh)));
            }
            None => writes.push((packet.at, u64::from(packet.fresh))),
        }
        previous = Some(packet.at);
    }
    let (Some(first), Some(last)) = (writes.first(), writes.last()) else {
        return WritePattern::Bulk;
    };
    let span = last.0 - first.0;
    let habit = if writes.len() < 4 { 3 } else { 1 };
    if writes.len() < 2 || paused * HABIT < span * habit {
        return WritePattern::Bulk;
    }
    let gaps = writes.len() as u64 - 1;
    let bytes: u64 =
        writes[..gaps as usize].iter().map(|write| write.1).fold(0, u64::saturating_add);
    let chunk = (bytes / gaps).max(1);
    // A pattern of some small writes before the data is none of the data.
    let is_pattern = writes[gaps as usize].1 <= bytes;
    if !is_pattern {
        return WritePattern::Bulk;
    }
    WritePattern::Paced(chunk, span / gaps)
}
