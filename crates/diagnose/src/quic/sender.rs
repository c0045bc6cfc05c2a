//! The sender of the log: packets in flight, round trips, congestion events, what limits it.
//!
//! Between two events one limiter holds. In order: the handshake; a full congestion window (with a
//! queue at the bottleneck the path is the limit, otherwise recovery, slow start or the window);
//! the peer's flow control; the pacer until the next packet may leave (the window, if the pacer only
//! spreads the window over the round trip); else the application, until all of its streams are ended: then
//! the recovery of what was lost, or nothing. The
//! silence before a probe timeout counts as waiting for it, whatever the limiter was.
//!
//! A queue is standing while round trips exceed the minimum by an eighth, at least by the timer
//! granularity of 1 ms (RFC 9002 section 6.1.2), at most by 16 ms (RFC 9406 section 4.2 has the
//! eighth and the 16 ms), and what is delivered in that time is at least a datagram: a bottleneck
//! that holds less is not busy, and the delay is of the peer or of other traffic.

mod limits;
mod metrics;
mod timeouts;

use super::analysis::{QuicAnalysis, QuicEpisode, QuicPlateau};
use super::budget::{QuicLimiter, QuicSpan};
use super::bursts::BurstMeter;
use super::packets::{LostPacket, PacketSpace, SentPacket};
use super::record::{QuicFrame, QuicLossTrigger, QuicPacketKind, QuicPacketRecord};
use super::rhythm::RhythmMeter;
use super::streams::StreamsFlow;

/// Most congestion events listed; further ones count with the last.
const MAX_EPISODES: usize = 1 << 14;
/// Size of a packet if the log lacks it (RFC 9000 section 14.1).
const MIN_DATAGRAM: u64 = 1_200;
const GRANULARITY: u64 = 1_000_000;
const MAX_QUEUE_THRESHOLD: u64 = 16_000_000;
/// Initial RTT (RFC 9002 section 6.2.2) and `max_ack_delay` (RFC 9000 section 18.2).
const INITIAL_RTT: u64 = 333_000_000;
const MAX_ACK_DELAY: u64 = 25_000_000;
/// Later packets acknowledged that make one lost (RFC 9002 section 6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// Pacing at 1.25 windows per round trip (RFC 9002 section 7.7), if the log has no rate.
const PACING_GAIN: f64 = 1.25;

/// Below this ratio of the pacing rate to the window's rate the window never fills.
pub(super) const ENOUGH_PACING: f64 = 0.95;

/// State of the sender.
#[derive(Debug, Default)]
pub(super) struct QuicSender {
    spaces: [PacketSpace; 3],
    pub(super) streams: StreamsFlow,
    /// Bytes in flight: own count, corrected by the log's.
    flight: u64,
    lengths: bool,
    logged_flight: bool,
    window: Option<u64>,
    /// Window before the last change, and the time of the change.
    window_before: Option<(u64, u64)>,
    min_rtt: Option<u64>,
    smoothed: Option<u64>,
    variance: Option<u64>,
    queue: bool,
    /// Whether acknowledgments gave round trips.
    own_samples: bool,
    /// Transmission time that ends the recovery period once a later packet is acknowledged.
    recovery: Option<u64>,
    /// Congestion event whose window is not regained.
    episode: Option<usize>,
    target: u64,
    slow_start: Option<bool>,
    ssthresh: Option<u64>,
    pacing_rate: Option<u64>,
    /// When the pacer lets the next packet leave.
    not_before: u64,
    pto_count: u64,
    timers: bool,
    last_timeout: Option<u64>,
    /// Limiters since the last progress, and those of the silence before it with its end.
    pending: Vec<(QuicLimiter, Option<usize>, u64, u64)>,
    silence: Vec<(QuicLimiter, Option<usize>, u64, u64)>,
    silence_end: u64,
    delivered: u64,
    delivered_at: u64,
    first_sent: u64,
    rate: f64,
    rtt_integral: u128,
    rtt_time: u64,
    plateau: QuicPlateau,
    ce: u64,
    bursts: BurstMeter,
    pub(super) rhythm: RhythmMeter,
    newly: Vec<SentPacket>,
    spurious: Vec<LostPacket>,
}

impl QuicSender {
    /// Attributes the time since the last event.
    pub(super) fn advance(&mut self, out: &mut QuicAnalysis, from: u64, to: u64, event: u64) {
        if to <= from {
            return;
        }
        if let Some(smoothed) = self.smoothed {
            self.rtt_integral += u128::from(smoothed) * u128::from(to - from);
            self.rtt_time += to - from;
        }
        self.use_of_window(out, to - from);
        let limiter = self.limiter(out);
        if limiter == QuicLimiter::AntiAmplification {
            out.handshake.wait(from, to, event);
        }
        let is_quiet = self.knows_flight() && self.flight == 0 && to - from > self.timeout(out);
        let limiter = match limiter {
            QuicLimiter::Application | QuicLimiter::Unknown if is_quiet => QuicLimiter::Idle,
            // Nothing is left to send; what was lost is still missing.
            QuicLimiter::Application if self.streams.are_finished() => match self.recovery {
                Some(_) if self.flight > 0 => QuicLimiter::Recovery,
                _ => QuicLimiter::Idle,
            },
            limiter => limiter,
        };
        if limiter != QuicLimiter::Application {
            return self.add(out, limiter, (from, to), event);
        }
        let paced = self.not_before.clamp(from, to);
        let pacer = self.pacer(out);
        self.add(out, pacer, (from, paced), event);
        self.add(out, QuicLimiter::Application, (paced, to), event);
    }

    fn add(
        &mut self,
        out: &mut QuicAnalysis,
        limiter: QuicLimiter,
        (from, to): (u64, u64),
        event: u64,
    ) {
        if to <= from {
            return;
        }
        out.budget.spans[limiter as usize].add(from, to, event);
        if let Some(transfer) = &mut out.transfer
            && matches!(limiter, QuicLimiter::Application | QuicLimiter::Idle)
        {
            transfer.pause(from, to);
        }
        let of_window =
            matches!(limiter, QuicLimiter::SlowStart | QuicLimiter::Window | QuicLimiter::Recovery);
        if of_window {
            self.span(out).add(from, to, event);
            self.extend_plateau(out, limiter, from, to, event);
        }
        let episode = self.episode.filter(|_| of_window);
        self.pending.push((limiter, episode, from, to));
        if self.pending.len() > 64 {
            self.pending.remove(0);
        }
    }

    /// Span of the cause of window-limited time.
    fn span<'a>(&self, out: &'a mut QuicAnalysis) -> &'a mut QuicSpan {
        match self.episode {
            Some(index) => &mut out.episodes[index].span,
            None if out.episodes.is_empty() => &mut out.slow_start,
            None => &mut out.plain_window,
        }
    }

    fn extend_plateau(
        &mut self,
        out: &mut QuicAnalysis,
        limiter: QuicLimiter,
        from: u64,
        to: u64,
        event: u64,
    ) {
        let window = self.window.unwrap_or(0);
        let plateau = &mut self.plateau;
        if limiter == QuicLimiter::Recovery || plateau.window != window {
            *plateau = QuicPlateau { window, interval: (from, to), events: (event, event), ns: 0 };
        }
        plateau.ns += to - from;
        (plateau.interval.1, plateau.events.1) = (to, event);
        if plateau.ns > out.plateau.ns {
            out.plateau = *plateau;
        }
    }

    fn use_of_window(&self, out: &mut QuicAnalysis, ns: u64) {
        let Some(window) = self.window.filter(|&window| window > 0) else { return };
        if out.handshake.complete.is_none() || self.flight == 0 {
            return;
        }
        out.pacing.used += ns as f64 * (self.flight as f64 / window as f64).min(1.0);
        out.pacing.used_ns += ns;
        if let Some(ratio) = self.pacing_ratio() {
            out.pacing.ratio += ns as f64 * ratio;
            out.pacing.ns += ns;
        }
    }

    /// Whether the log shows the bytes in flight, logged or as lengths of packets.
    const fn knows_flight(&self) -> bool {
        self.lengths || self.logged_flight
    }

    fn progress(&mut self, at: u64) {
        if !self.pending.is_empty() {
            core::mem::swap(&mut self.silence, &mut self.pending);
            self.pending.clear();
            self.silence_end = at;
        }
    }

    pub(super) fn sent(
        &mut self,
        out: &mut QuicAnalysis,
        at: u64,
        event: u64,
        packet: &QuicPacketRecord<'_>,
    ) {
        out.sent += 1;
        let bytes = packet.bytes.unwrap_or(0);
        out.sent_bytes = out.sent_bytes.saturating_add(bytes);
        out.sizes.largest_sent = out.sizes.largest_sent.max(bytes);
        self.lengths |= bytes > 0;
        let mut carries_data = false;
        for frame in packet.frames {
            match *frame {
                QuicFrame::Stream { id, offset, length, fin } => {
                    carries_data |= length > 0;
                    let new = self.streams.send(id, offset, length, fin);
                    out.stream_bytes = out.stream_bytes.saturating_add(new);
                }
                QuicFrame::DataBlocked => self.streams.report_blocked(),
                QuicFrame::StreamDataBlocked { id } => self.streams.report_stream_blocked(id),
                QuicFrame::StreamsBlocked => self.streams.count_blocked = true,
                _ => {}
            }
        }
        if carries_data {
            let rate = self.window.zip(self.smoothed);
            self.bursts.push((at, event), (bytes, out.datagram), rate, &mut out.bursts);
            self.rhythm.push(at, event);
            out.data = Some((out.data.map_or(at, |data| data.0), at));
        }
        let (Some(space), Some(number)) = (packet.kind.space(), packet.number) else { return };
        let eliciting = packet.is_ack_eliciting();
        let counts = eliciting || packet.frames.contains(&QuicFrame::Padding);
        if eliciting {
            if !self.timers && self.flight > 0 {
                self.guess_timeout(out, at, event);
            }
            self.progress(at);
        }
        if counts {
            if self.flight == 0 {
                (self.first_sent, self.delivered_at) = (at, at);
            }
            self.flight = self.flight.saturating_add(bytes);
            out.max_in_flight = out.max_in_flight.max(self.knows_flight().then_some(self.flight));
            self.pace(at, bytes);
        }
        let packet = SentPacket {
            at,
            bytes,
            eliciting,
            counts,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            carries_data,
        };
        let forgotten = self.spaces[space].send(number, packet);
        self.flight = self.flight.saturating_sub(forgotten);
    }

    fn pace(&mut self, at: u64, bytes: u64) {
        let rate = match (self.pacing_rate, self.window, self.smoothed) {
            (Some(rate), ..) => rate as f64 / 8.0,
            (None, Some(window), Some(smoothed)) if smoothed > 0 => {
                PACING_GAIN * window as f64 * 1e9 / smoothed as f64
            }
            _ => return,
        };
        if rate > 0.0 {
            let gap = (bytes as f64 * 1e9 / rate).min(1e12) as u64;
            self.not_before = self.not_before.max(at).saturating_add(gap);
        }
    }

    pub(super) fn acks(
        &mut self,
        out: &mut QuicAnalysis,
        at: u64,
        event: u64,
        packet: &QuicPacketRecord<'_>,
    ) {
        out.acks += 1;
        let Some(space) = packet.kind.space() else { return };
        let before = self.spaces[space].largest_acked;
        let mut newly = core::mem::take(&mut self.newly);
        let mut spurious = core::mem::take(&mut self.spurious);
        newly.clear();
        spurious.clear();
        let largest = packet.acked.iter().map(|(_, to)| *to).max();
        for &range in packet.acked {
            self.spaces[space].acknowledge(range, &mut newly, &mut spurious);
        }
        for lost in &spurious {
            arrived(out, at, event, lost, before);
        }
        // The newest of them was sent last.
        let newest = newly.iter().copied().max_by_key(|packet| (packet.at, packet.delivered));
        if let Some(newest) = newest {
            self.acknowledged(out, at, &newly, newest);
            if largest > before && newest.eliciting {
                let delay = packet.ack_delay.unwrap_or(0);
                let raw = at.saturating_sub(newest.at);
                self.round_trip(out, raw, delay, self.delivered - newest.delivered);
                if packet.ack_delay.is_some() && packet.kind == QuicPacketKind::OneRtt {
                    let eliciting = newly.iter().filter(|packet| packet.eliciting).count();
                    self.ack_delay(out, delay, eliciting as u64, event);
                }
            }
        }
        if let Some(ce) = packet.ce
            && ce > self.ce
        {
            self.ce = ce;
            out.ce = out.ce.max(ce);
        }
        (self.newly, self.spurious) = (newly, spurious);
    }

    fn ack_delay(&self, out: &mut QuicAnalysis, delay: u64, packets: u64, event: u64) {
        let limit = out.max_ack_delay.unwrap_or(MAX_ACK_DELAY);
        let delays = &mut out.ack_delays;
        delays.count += 1;
        delays.packets += packets;
        delays.sum = delays.sum.saturating_add(delay);
        delays.above += u64::from(delay > limit + GRANULARITY);
        if delay > delays.max {
            (delays.max, delays.event) = (delay, event);
        }
    }

    fn acknowledged(
        &mut self,
        out: &mut QuicAnalysis,
        at: u64,
        newly: &[SentPacket],
        newest: SentPacket,
    ) {
        let mut bytes = 0;
        for packet in newly {
            if packet.counts {
                self.flight = self.flight.saturating_sub(packet.bytes);
                bytes += packet.bytes;
            }
            out.sizes.largest_acked = out.sizes.largest_acked.max(packet.bytes);
        }
        // The bytes belong to what limited the sender until now.
        let limiter = self.pending.last().map(|(limiter, ..)| *limiter);
        if let Some(limiter) = limiter {
            out.budget.spans[limiter as usize].bytes += bytes;
            if matches!(
                limiter,
                QuicLimiter::SlowStart | QuicLimiter::Window | QuicLimiter::Recovery
            ) {
                self.span(out).bytes += bytes;
            }
        }
        out.unanswered = 0;
        out.rates.push(at - out.first, 0, bytes);
        self.progress(at);
        self.delivered += bytes;
        self.delivered_at = at;
        self.first_sent = newest.at;
        let elapsed = (newest.at - newest.first_sent.min(newest.at))
            .max(at.saturating_sub(newest.delivered_at));
        if self.queue && self.min_rtt.is_some_and(|min| elapsed >= min && elapsed > 0) {
            let rate = (self.delivered - newest.delivered) as f64 * 1e9 / elapsed as f64;
            self.rate = self.rate.max(rate);
        }
        if self.recovery.is_some_and(|since| newest.at > since) {
            self.recovery = None;
        }
    }

    /// Takes a round trip, and the number of bytes delivered in it.
    fn round_trip(&mut self, out: &mut QuicAnalysis, raw: u64, delay: u64, delivered: u64) {
        let min = self.min_rtt.map_or(raw, |min| min.min(raw));
        self.min_rtt = Some(min);
        let adjusted = if raw >= min.saturating_add(delay) { raw - delay } else { raw };
        let trips = out.round_trips.get_or_insert([raw, raw, raw]);
        (trips[0], trips[2]) = (trips[0].min(raw), trips[2].max(raw));
        // RFC 9002 section 5.3.
        let (smoothed, variance) = match (self.smoothed, self.variance) {
            (Some(smoothed), Some(variance)) => {
                let off = smoothed.abs_diff(adjusted);
                (
                    (7 * u128::from(smoothed) + u128::from(adjusted)) / 8,
                    variance - variance / 4 + off / 4,
                )
            }
            _ => (u128::from(adjusted), adjusted / 2),
        };
        self.smoothed = Some(smoothed as u64);
        self.variance = Some(variance);
        trips[1] = smoothed as u64;
        self.own_samples = true;
        let waiting = u128::from(delivered) * u128::from(adjusted.saturating_sub(min));
        let holds = waiting >= u128::from(out.datagram) * u128::from(raw);
        self.queue = holds && is_queue(min, adjusted);
    }

    pub(super) fn lost(
        &mut self,
        out: &mut QuicAnalysis,
        at: u64,
        event: u64,
        (kind, number): (QuicPacketKind, Option<u64>),
        trigger: QuicLossTrigger,
    ) {
        *out.lost.entry(trigger).or_default() += 1;
        let Some((space, number)) = kind.space().zip(number) else { return };
        let packet = self.spaces[space].take_lost(number);
        if let Some(packet) = packet {
            if packet.counts {
                self.flight = self.flight.saturating_sub(packet.bytes);
            }
            if packet.carries_data {
                self.lost_size(out, at, event, packet.bytes);
            }
        }
        // The loss of a probe of the path MTU is no sign of congestion (RFC 9000 section 14.4).
        if packet.is_some_and(|packet| packet.is_mtu_probe(out.sizes.largest_acked)) {
            return;
        }
        let sent_at = packet.map(|packet| packet.at);
        let in_recovery =
            self.recovery.is_some_and(|since| sent_at.is_none_or(|sent| sent <= since));
        if !in_recovery || out.episodes.is_empty() {
            self.begin_episode(out, at, event, trigger == QuicLossTrigger::Timeout);
        }
        let index = out.episodes.len() - 1;
        let episode = &mut out.episodes[index];
        episode.lost += 1;
        episode.events.1 = event;
        let lost = LostPacket { number, lost_at: at, sent_at, episode: index };
        self.spaces[space].remember_lost(number, lost);
    }

    fn lost_size(&self, out: &mut QuicAnalysis, at: u64, event: u64, bytes: u64) {
        let sizes = &mut out.sizes;
        sizes.lost_data += 1;
        if bytes > sizes.largest_acked && sizes.largest_acked > 0 {
            if sizes.lost_larger == 0 {
                (sizes.events.0, sizes.interval.0) = (event, at);
            }
            sizes.lost_larger += 1;
            (sizes.events.1, sizes.interval.1) = (event, at);
        }
    }

    fn begin_episode(&mut self, out: &mut QuicAnalysis, at: u64, event: u64, by_timeout: bool) {
        self.recovery = Some(at);
        // Some logs report the reduced window before the loss.
        let window = match self.window_before {
            Some((before, changed)) if changed == at => self.window.max(Some(before)),
            _ => self.window,
        };
        let target = if self.episode.is_some() { self.target } else { 0 };
        self.target = target.max(window.unwrap_or(0));
        if out.episodes.len() < MAX_EPISODES {
            out.episodes.push(QuicEpisode {
                at,
                events: (event, event),
                window_before: window,
                window_after: self.window,
                by_timeout,
                ..QuicEpisode::default()
            });
        }
        self.episode = Some(out.episodes.len() - 1);
        self.slow_start = self.slow_start.map(|_| false);
    }

    /// Discards the packets of a space whose keys are dropped.
    pub(super) fn discard(&mut self, space: usize) {
        let bytes = self.spaces[space].discard();
        self.flight = self.flight.saturating_sub(bytes);
    }

    /// The first path challenge after the handshake.
    pub(super) fn challenge(&self, out: &mut QuicAnalysis) {
        out.challenge_windows = self.window.map(|window| (window, window));
    }

    pub(super) fn finish(&mut self, out: &mut QuicAnalysis) {
        self.bursts.close(&mut out.bursts);
        out.rhythm = self.rhythm.finish();
        if out.lost.is_empty() {
            out.passed_over = self.spaces[2].passed_over(PACKET_THRESHOLD);
        }
        if !out.handshake.is_stopped() {
            out.handshake.amplification = QuicSpan::default();
            out.budget.move_to(QuicLimiter::AntiAmplification, QuicLimiter::Handshake);
        }
        let busy = out.budget.of(QuicLimiter::Path).ns;
        out.bottleneck =
            (self.rate > 0.0 && self.min_rtt.is_some_and(|min| busy >= min)).then_some(self.rate);
        if self.rtt_time > 0 {
            out.mean_rtt = Some((self.rtt_integral / u128::from(self.rtt_time)) as u64);
        }
        out.flow.connection = self.streams.last_connection;
        out.flow.stream = self.streams.last_blocked;
        out.flow.streams = self.streams.opened;
        if out.datagram == 0 {
            out.datagram = MIN_DATAGRAM;
        }
    }

    pub(super) const fn knows_window(&self) -> bool {
        self.window.is_some()
    }

    pub(super) const fn has_flight(&self) -> bool {
        self.knows_flight()
    }
}

/// Counts a packet that had been declared lost and is acknowledged; `before` is the largest number
/// acknowledged before.
fn arrived(out: &mut QuicAnalysis, at: u64, event: u64, lost: &LostPacket, before: Option<u64>) {
    if out.spurious == 0 {
        out.reordering.interval.0 = lost.lost_at;
        out.reordering.events.0 = event;
    }
    out.spurious += 1;
    let reordering = &mut out.reordering;
    (reordering.interval.1, reordering.events.1) = (at, event);
    let overtaken = before.unwrap_or(0).saturating_sub(lost.number);
    reordering.packets = reordering.packets.max(overtaken);
    reordering.late = reordering.late.max(at.saturating_sub(lost.lost_at));
    if let Some(sent_at) = lost.sent_at {
        reordering.delay = reordering.delay.max(at.saturating_sub(sent_at));
    }
    if let Some(episode) = out.episodes.get_mut(lost.episode) {
        episode.spurious += 1;
    }
}

/// Whether a round trip shows a queue.
fn is_queue(min: u64, sample: u64) -> bool {
    sample >= min.saturating_add((min / 8).clamp(GRANULARITY, MAX_QUEUE_THRESHOLD))
}
