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

mod coarse;
mod counts;
mod flight;
mod limits;
mod metrics;
mod outcome;
mod return_path;
mod round_trips;
mod spacing;
mod timeouts;
mod vanished;
mod waits;
mod window;

use units::{Duration, Instant};

use super::analysis::{QuicAnalysis, QuicEpisode, QuicPlateau};
use super::budget::{QuicLimiter, QuicSpan};
use super::bursts::BurstMeter;
use super::clock::LogEvent;
use super::exchange::ExchangeMeter;
use super::packets::{LostPacket, PacketSpace, SentPacket};
use super::policer::PacketOutcomes;
use super::record::{QuicFrame, QuicLossTrigger, QuicPacketKind, QuicPacketRecord};
use super::rhythm::RhythmMeter;
use super::streams::StreamsFlow;

use counts::{ack_delay, arrived, lost_size};
use flight::{BusyMeter, DeliveryMeter, FlightMeter};
use limits::PacerHold;
use return_path::ReturnMeter;
use round_trips::{GRANULARITY, PacerMeter, RoundTrips};
use spacing::{SpacedAck, SpacingMeter};
use vanished::VanishedMeter;
use waits::{LimitedInterval, TimeoutMeter};
use window::{RecoveryState, SenderWindow};

/// Most congestion events listed; further ones count with the last.
const MAX_EPISODES: usize = 1 << 14;
/// Size of a packet if the log lacks it (RFC 9000 section 14.1).
const MIN_DATAGRAM: u64 = 1_200;
/// `max_ack_delay` (RFC 9000 section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// Later packets acknowledged that make one lost (RFC 9002 section 6.1.1).
const PACKET_THRESHOLD: u64 = 3;

/// Bytes of a packet with an ACK of one range: short header, connection ID of 8, packet number of 2, frame, tag of 16.
const PLAIN_ACK: u64 = 34;

/// Below this ratio of the pacing rate to the window's rate the window never fills.
pub(super) const ENOUGH_PACING: f64 = 0.95;

/// State of the sender.
#[derive(Debug, Default)]
pub(super) struct QuicSender {
    spaces: [PacketSpace; 3],
    pub(super) streams: StreamsFlow,
    flight: FlightMeter,
    window: SenderWindow,
    round_trips: RoundTrips,
    recovery: RecoveryState,
    pacer: PacerMeter,
    timeouts: TimeoutMeter,
    delivery: DeliveryMeter,
    busy: BusyMeter,
    plateau: QuicPlateau,
    ce: u64,
    pub(super) exchange: ExchangeMeter,
    vanished: VanishedMeter,
    outcomes: PacketOutcomes,
    returning: ReturnMeter,
    spacing: SpacingMeter,
    /// Bytes of 1-RTT packets sent that count as in flight.
    total: u64,
    /// When several probe timeouts in a row were answered.
    outage_end: Option<Instant>,
    /// The first probe timeout of a silence, if the window was full then.
    full_at_timeout: Option<Instant>,
    /// The last time in which the bottleneck was idle although the window was full, its end and ns.
    stall: Option<(Instant, u64)>,
    /// Something else than the path was the limit since data were last acknowledged.
    is_interrupted: bool,
    /// Time for which the pacer seemed to hold the next packet since the last one.
    held: PacerHold,
    /// No packet sent since nothing was in flight is acknowledged, and the most bytes in flight since then.
    is_first_trip: bool,
    peak: u64,
    /// When packets were last acknowledged, in ns.
    acked: Option<u64>,
    /// Time that counted for the application since the last packet with data.
    application: u64,
    /// Bytes in flight that are counted already, as the bottleneck carried them.
    carried: u64,
    bursts: BurstMeter,
    pub(super) rhythm: RhythmMeter,
    newly: Vec<SentPacket>,
    spurious: Vec<LostPacket>,
}

impl QuicSender {
    /// Attributes the time from `from` to `now`, the next event.
    pub(super) fn advance(&mut self, out: &mut QuicAnalysis, from: Instant, now: LogEvent) {
        let time = now.at.since(from);
        if time.is_zero() {
            return;
        }
        self.round_trips.advance(time);
        self.use_of_window(out, time);
        if self.is_full(out) {
            self.window.used = Some(now.at);
        }
        let limiter = self.limiter(out);
        if limiter == QuicLimiter::AntiAmplification {
            out.handshake.wait(from.as_nanos(), now.ns(), now.index);
        }
        let is_quiet = self.flight.known() == Some(0) && time > self.timeout(out);
        let limiter = match limiter {
            QuicLimiter::Application | QuicLimiter::Unknown if is_quiet => QuicLimiter::Idle,
            // Nothing is left to send; what was lost is still missing.
            QuicLimiter::Application if self.streams.are_finished() => {
                match self.recovery.is_open() && !self.flight.is_empty() {
                    true => QuicLimiter::Recovery,
                    false => QuicLimiter::Idle,
                }
            }
            limiter => limiter,
        };
        if limiter != QuicLimiter::Application {
            return self.add(out, limiter, from, now);
        }
        let paced = self.pacer.not_before.clamp(from, now.at);
        let pacer = self.pacer(out, from);
        let paced = match pacer {
            // The rate of the bottleneck shows how long it is busy.
            QuicLimiter::Path if self.spacing.rate().is_some() => from,
            _ => paced,
        };
        self.hold(pacer, from, paced);
        self.count(out, pacer, from, LogEvent { at: paced, ..now });
        // What is in flight keeps the bottleneck busy while a queue is standing; more data would only wait there.
        let busy = match self.flight.is_empty() {
            true => paced,
            false => self.delivery.busy_until(self.spacing.rate()).clamp(paced, now.at),
        };
        self.carry(out, busy.since(paced));
        self.add(out, QuicLimiter::Path, paced, LogEvent { at: busy, ..now });
        let is_unknown = self.may_be_limited(out) && !self.flight.is_empty();
        let rest = if is_unknown { QuicLimiter::Unknown } else { QuicLimiter::Application };
        self.add(out, rest, busy, now);
    }

    fn add(&mut self, out: &mut QuicAnalysis, limiter: QuicLimiter, from: Instant, to: LogEvent) {
        if matches!(limiter, QuicLimiter::Application | QuicLimiter::Idle) {
            self.exchange.on_quiet(to.at.since(from).as_nanos());
        }
        self.count(out, limiter, from, to);
    }

    /// Attributes time that need not be quiet.
    fn count(&mut self, out: &mut QuicAnalysis, limiter: QuicLimiter, from: Instant, to: LogEvent) {
        if to.at <= from {
            return;
        }
        let (begin, end) = (from.as_nanos(), to.ns());
        self.is_interrupted |= limiter != QuicLimiter::Path;
        out.budget.spans[limiter as usize].add(begin, end, to.index);
        if limiter == QuicLimiter::Application {
            self.application += end - begin;
            self.delivery.on_application_limit(self.flight.bytes());
        }
        if limiter != QuicLimiter::Idle {
            let is_busy = limiter == QuicLimiter::Path
                || limiter == QuicLimiter::Recovery && self.round_trips.is_queued;
            out.busy.push(begin - out.first, usize::from(!is_busy), end - begin);
        }
        if let Some(transfer) = &mut out.transfer
            && matches!(limiter, QuicLimiter::Application | QuicLimiter::Idle)
        {
            transfer.pause(begin, end);
        }
        let of_window =
            matches!(limiter, QuicLimiter::SlowStart | QuicLimiter::Window | QuicLimiter::Recovery);
        if of_window {
            self.span(out).add(begin, end, to.index);
            self.extend_plateau(limiter, from, to);
        }
        let episode = self.recovery.episode.filter(|_| of_window);
        self.timeouts.push(LimitedInterval { limiter, episode, from, to: to.at });
    }

    /// Span of the cause of window-limited time.
    fn span<'a>(&self, out: &'a mut QuicAnalysis) -> &'a mut QuicSpan {
        match self.recovery.episode {
            Some(index) => &mut out.episodes[index].span,
            None if out.episodes.is_empty() => &mut out.slow_start,
            None => &mut out.plain_window,
        }
    }

    fn extend_plateau(&mut self, limiter: QuicLimiter, from: Instant, to: LogEvent) {
        let window = self.window.size.unwrap_or(0);
        let plateau = &mut self.plateau;
        if limiter == QuicLimiter::Recovery || plateau.window != window {
            let interval = (from.as_nanos(), to.ns());
            *plateau = QuicPlateau { window, interval, events: (to.index, to.index), ns: 0 };
        }
        plateau.ns += to.at.since(from).as_nanos();
        (plateau.interval.1, plateau.events.1) = (to.ns(), to.index);
    }

    /// An acknowledgment shows that the path was there, so that a constant window could have grown.
    fn keep_plateau(&self, out: &mut QuicAnalysis) {
        if self.plateau.ns > out.plateau.ns {
            out.plateau = self.plateau;
        }
    }

    fn use_of_window(&self, out: &mut QuicAnalysis, time: Duration) {
        let Some(window) = self.window.size.filter(|&window| window > 0) else { return };
        if out.handshake.complete.is_none() || self.flight.is_empty() {
            return;
        }
        let ns = time.as_nanos();
        out.pacing.used += ns as f64 * (self.flight.bytes() as f64 / window as f64).min(1.0);
        out.pacing.used_ns += ns;
        if let Some(ratio) = self.pacing_ratio() {
            out.pacing.ratio += ns as f64 * ratio;
            out.pacing.ns += ns;
        }
    }

    pub(super) fn sent(
        &mut self,
        out: &mut QuicAnalysis,
        now: LogEvent,
        packet: &QuicPacketRecord<'_>,
    ) {
        out.sent += 1;
        let bytes = packet.bytes.unwrap_or(0);
        out.sent_bytes = out.sent_bytes.saturating_add(bytes);
        out.sizes.largest_sent = out.sizes.largest_sent.max(bytes);
        if bytes > 0 {
            self.flight.on_length();
        }
        let before = out.stream_bytes;
        let carries_data = self.sent_frames(out, packet.frames);
        let new = out.stream_bytes - before;
        if out.frames_inferred && carries_data {
            self.infer_answer(out, now);
        }
        // What the pacer did not hold is a pause before this message.
        self.release(out, now.at, carries_data);
        self.exchange.sent(now, packet, new, self.round_trips.min);
        if carries_data {
            self.application = 0;
            out.data_packets += 1;
            let rtt = self.round_trips.smoothed.map(Duration::as_nanos);
            let (rate, at) = (self.window.size.zip(rtt), now.ns());
            self.bursts.push((at, now.index), (bytes, out.datagram), rate, &mut out.bursts);
            self.rhythm.push(at, now.index, (bytes, out.sizes.largest_sent));
            out.data = Some((out.data.map_or(at, |data| data.0), at));
        }
        let (Some(space), Some(number)) = (packet.kind.space(), packet.number) else { return };
        let eliciting = packet.is_ack_eliciting();
        let counts = eliciting || packet.frames.contains(&QuicFrame::Padding);
        if eliciting {
            self.infer_timeout(out, now);
            self.timeouts.on_progress(now.at);
        }
        if counts {
            if self.flight.is_empty() {
                self.delivery.restart(now.at);
                (self.is_first_trip, self.peak) = (true, 0);
                self.window.used = Some(now.at);
            }
            self.flight.add(bytes);
            self.peak = self.peak.max(self.flight.bytes());
            self.delivery.on_sent(now.at, bytes, self.spacing.rate());
            out.max_in_flight = out.max_in_flight.max(self.flight.known());
            self.pacer.on_sent(now.at, bytes, self.window.size, self.round_trips.smoothed);
        }
        if space == 2 && counts {
            self.total = self.total.saturating_add(bytes);
        }
        let packet = SentPacket {
            at: now.at,
            bytes,
            total: self.total,
            eliciting,
            counts,
            delivered: self.delivery.bytes,
            delivered_at: self.delivery.at,
            first_sent: self.delivery.first_sent,
            carries_data,
        };
        let forgotten = self.spaces[space].send(number, packet);
        self.flight.remove(forgotten);
    }

    /// Of what is received a log without frames has the times only: data that leave with a packet that comes when all was
    /// acknowledged follow a message in it.
    fn infer_answer(&mut self, out: &QuicAnalysis, now: LogEvent) {
        // A full window waits for its ACK, which comes with or before the first packet that it lets leave.
        let was_full = self.window.size.is_some_and(|size| self.peak + out.datagram > size);
        let received = out.last_received.filter(|&at| at + GRANULARITY.as_nanos() >= now.ns());
        if let Some((at, acked)) = received.zip(self.acked)
            && self.flight.is_empty()
            && (!was_full || at > acked + GRANULARITY.as_nanos())
        {
            self.exchange.answered(now, at, acked);
        }
    }

    /// Takes the frames of a packet that is sent; true if they carry data.
    fn sent_frames(&mut self, out: &mut QuicAnalysis, frames: &[QuicFrame]) -> bool {
        let mut carries_data = false;
        for frame in frames {
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
        carries_data
    }

    pub(super) fn acks(
        &mut self,
        out: &mut QuicAnalysis,
        now: LogEvent,
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
            arrived(out, now, lost, before);
        }
        // The newest of them was sent last.
        let newest = newly.iter().copied().max_by_key(|packet| (packet.at, packet.delivered));
        let delay = Duration::from_nanos(packet.ack_delay.unwrap_or(0));
        let arrival = Instant::from_nanos(now.ns().saturating_sub(delay.as_nanos()));
        for packet in newly.iter().filter(|packet| packet.carries_data) {
            let is_newest = newest.is_some_and(|newest| newest.at == packet.at);
            self.outcomes.arrived(packet.at, packet.bytes, is_newest.then_some(arrival));
        }
        let acked: u64 =
            newly.iter().filter(|packet| packet.counts).map(|packet| packet.bytes).sum();
        let (mut round_trip, mut min_rtt) = (Duration::ZERO, Duration::ZERO);
        if let Some(newest) = newest {
            round_trip = self.round_trip_of(out, now.at.since(newest.at));
            min_rtt = self.round_trips.min.map_or(round_trip, |min| min.min(round_trip));
            let (at, total) = (now.at, newest.total);
            if space == 2 {
                let delay = packet.ack_delay.map(Duration::from_nanos);
                let packets = newly.iter().filter(|packet| packet.counts).count() as u64;
                self.spacing.ack(SpacedAck {
                    at,
                    delay,
                    packets,
                    acked,
                    total,
                    round_trip,
                    min_rtt,
                });
            }
        }
        let waited = round_trip.saturating_sub(min_rtt);
        let queue = (self.round_trips.is_queued, waited);
        // Logs without frames lack the lengths of what is received: ACKs of one range are alike.
        let length = packet.bytes.or(out.frames_inferred.then_some(PLAIN_ACK));
        self.returning.is_length_inferred = packet.bytes.is_none() && out.frames_inferred;
        self.returning.ack(now.at, length, acked, queue);
        let is_marked = packet.ce.is_some_and(|ce| ce > self.ce);
        if let Some(newest) = newest {
            if space == 2 {
                self.answered(now.at, &newly);
            }
            let late = delay.min(waited);
            let arrival = Instant::from_nanos(now.ns().saturating_sub(late.as_nanos()));
            let idle = self.busy.arrived(arrival, waited - late);
            self.on_stall(out, now.at, idle, acked);
            self.acknowledged(out, now.at, &newly, newest, is_marked);
            self.keep_plateau(out);
            if largest > before && newest.eliciting {
                let delivered = self.delivery.bytes - newest.delivered;
                self.round_trip(out, round_trip, delay, delivered);
                if packet.ack_delay.is_some() && packet.kind == QuicPacketKind::OneRtt {
                    let eliciting = newly.iter().filter(|packet| packet.eliciting).count();
                    ack_delay(out, delay, eliciting as u64, now.index);
                }
            }
        }
        if let Some(ce) = packet.ce.filter(|_| is_marked) {
            self.ce = ce;
            out.ce = out.ce.max(ce);
            // A mark is a congestion event, once a round trip (RFC 9002 section 7.1).
            if !self.recovery.covers(newest.map(|newest| newest.at)) {
                self.begin_episode(out, now, false);
                if let Some(episode) = out.episodes.last_mut() {
                    episode.by_ce = true;
                }
            }
        }
        (self.newly, self.spurious) = (newly, spurious);
    }

    fn acknowledged(
        &mut self,
        out: &mut QuicAnalysis,
        at: Instant,
        newly: &[SentPacket],
        newest: SentPacket,
        is_marked: bool,
    ) {
        let mut bytes = 0;
        self.is_first_trip = false;
        for packet in newly {
            if packet.counts {
                self.flight.remove(packet.bytes);
                bytes += packet.bytes;
            }
            out.sizes.largest_acked = out.sizes.largest_acked.max(packet.bytes);
            self.vanished.acknowledged(packet);
        }
        self.acked = Some(at.as_nanos());
        // The bytes belong to what limited the sender until now.
        let counted = self.carried.min(bytes);
        self.carried = (self.carried - counted).min(self.flight.bytes());
        if let Some(limiter) = self.timeouts.limiter() {
            out.budget.spans[limiter as usize].bytes += bytes - counted;
            if matches!(
                limiter,
                QuicLimiter::SlowStart | QuicLimiter::Window | QuicLimiter::Recovery
            ) {
                self.span(out).bytes += bytes - counted;
            }
        }
        self.end_silence(at, core::mem::take(&mut out.unanswered));
        out.rates.push(at.as_nanos() - out.first, 0, bytes);
        self.timeouts.on_progress(at);
        // So does a mark: the queue was above the threshold.
        let is_busy =
            self.round_trips.is_queued && self.busy.is_busy_since(newest.delivered_at) || is_marked;
        self.delivery.add(at, bytes, &newest, (self.round_trips.min, is_busy));
        self.recovery.on_acked(newest.at);
    }

    /// A round trip as measured: which packets an ACK is of may be inferred wrongly after losses, but not below what the log
    /// itself has as the least.
    fn round_trip_of(&self, out: &QuicAnalysis, raw: Duration) -> Duration {
        let least = self.round_trips.min.filter(|_| out.frames_inferred);
        least.map_or(raw, |least| raw.max(least))
    }

    /// Takes a round trip, and the number of bytes delivered in it.
    fn round_trip(
        &mut self,
        out: &mut QuicAnalysis,
        raw: Duration,
        delay: Duration,
        delivered: u64,
    ) {
        let smoothed = self.round_trips.sample(raw, delay, (delivered, out.datagram)).as_nanos();
        if self.round_trips.is_queued {
            self.recovery.on_queue();
        }
        let raw = raw.as_nanos();
        let trips = out.round_trips.get_or_insert([raw, raw, raw]);
        *trips = [trips[0].min(raw), smoothed, trips[2].max(raw)];
    }

    pub(super) fn lost(
        &mut self,
        out: &mut QuicAnalysis,
        now: LogEvent,
        (kind, number): (QuicPacketKind, Option<u64>),
        trigger: QuicLossTrigger,
    ) {
        *out.lost.entry(trigger).or_default() += 1;
        self.exchange.on_loss();
        let Some((space, number)) = kind.space().zip(number) else { return };
        let packet = self.spaces[space].take_lost(number);
        if let Some(packet) = packet {
            if packet.counts {
                self.flight.remove(packet.bytes);
            }
            if packet.carries_data {
                lost_size(out, now, packet.bytes);
                self.vanished.lost(now, &packet);
                self.outcomes.lost(packet.at, packet.bytes);
            }
        }
        // The loss of a probe of the path MTU is no sign of congestion (RFC 9000 section 14.4).
        if packet.is_some_and(|packet| packet.is_mtu_probe(out.sizes.largest_acked)) {
            return;
        }
        let sent_at = packet.map(|packet| packet.at);
        if !self.recovery.covers(sent_at) || out.episodes.is_empty() {
            self.begin_episode(out, now, trigger == QuicLossTrigger::Timeout);
        }
        let index = out.episodes.len() - 1;
        let stall = self.take_stall(now.at);
        let episode = &mut out.episodes[index];
        episode.stall += stall;
        episode.lost += 1;
        episode.events.1 = now.index;
        let lost = LostPacket { number, lost_at: now.at, sent_at, episode: index };
        self.spaces[space].remember_lost(number, lost);
    }

    fn begin_episode(&mut self, out: &mut QuicAnalysis, now: LogEvent, by_timeout: bool) {
        let window = self.window.before_loss(now.at);
        // A loss without a queue ends slow start too early: the window is regained once it fills the path.
        let is_early = out.episodes.is_empty() && !self.round_trips.is_queued;
        self.recovery.begin(now.at, window, self.window.size, is_early);
        if out.episodes.len() < MAX_EPISODES {
            out.episodes.push(QuicEpisode {
                at: now.ns(),
                events: (now.index, now.index),
                window_before: window,
                window_after: self.window.size,
                by_timeout,
                is_queued: self.round_trips.is_queued,
                after_outage: self.is_after_outage(now.at),
                ..QuicEpisode::default()
            });
        }
        self.recovery.episode = Some(out.episodes.len() - 1);
        self.window.on_loss();
    }

    /// Discards the packets of a space whose keys are dropped.
    pub(super) fn discard(&mut self, space: usize) {
        let bytes = self.spaces[space].discard();
        self.flight.remove(bytes);
    }

    /// The first path challenge after the handshake.
    pub(super) fn challenge(&self, out: &mut QuicAnalysis) {
        out.challenge_windows = self.window.size.map(|window| (window, window));
    }

    /// A packet is received.
    pub(super) fn received(
        &mut self,
        out: &mut QuicAnalysis,
        now: LogEvent,
        packet: &QuicPacketRecord<'_>,
    ) {
        self.rhythm.received(now.ns());
        let rests = self.exchange.out.remote().rests.0;
        self.exchange.received(now, packet, self.round_trips.min);
        // Until a user rested, the last data were on their way: nothing waited for the application.
        if out.client != Some(true) && self.exchange.out.remote().rests.0 > rests {
            let quiet = core::mem::take(&mut self.application);
            out.budget.move_part(QuicLimiter::Application, QuicLimiter::Idle, quiet);
        }
        if !packet.has_ack {
            self.returning.other(packet.bytes);
        }
    }

    pub(super) const fn knows_window(&self) -> bool {
        self.window.size.is_some()
    }

    pub(super) fn has_flight(&self) -> bool {
        self.flight.is_known()
    }
}
