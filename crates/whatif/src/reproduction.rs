//! The fit of a capture that reproduces it best: other explanations are tried where the first one does not.

use diagnose::Analysis;
use fit::{Conversation, FlowBeside, LossPattern, PathFit, PeerSystem, WayBackFit, WritePattern};
use ingest::inputs::CapturedConnection;
use runner::workers::Workers;

use super::alternatives::NamedSender;
use super::send_trace::{SendTrace, send_trace};
use super::{BestSender, KernelRunner, PossibleSender, WhatIf, WhatIfError};

/// A fit with the senders simulated on it.
pub(crate) struct Reproduction {
    pub(crate) fitted: PathFit,
    pub(crate) answer: WhatIf,
    pub(crate) best: BestSender<'static>,
}

/// Largest misfit of another explanation.
const MAX_OTHER_MISFIT: f64 = 0.05;
/// By how much an explanation without turns must be better.
const CLEARLY_BETTER: f64 = 2.0;
/// How much larger the simulated flight is than the recorded one if something else limited that.
const MORE_IN_FLIGHT: (u64, u64) = (115, 100);
/// Packets by which a queue may be shorter or longer than the first loss shows, and most lengths that are
/// simulated with all senders.
const DOUBT: u64 = 2;
const MOST_QUEUES: usize = 2;
/// Trials to find the size of a buffer.
const TRIALS: usize = 8;
/// Targets of an AQM that are tried, and the interval of CoDel (RFC 8289 section 4.3), in ns.
const TARGETS: (u64, u64) = (10_000, 50_000_000);
const USUAL_INTERVAL: u64 = 100_000_000;
/// Windows that the largest buffer holds.
const LARGEST_BUFFER: u64 = 4;
/// Rate in bit/s of a path that limits nothing.
const FASTEST: u64 = 10_000_000_000;
/// How much slower or faster than its first estimate a way back, and a reader, may be.
const WAY_BACK_RATES: u64 = 8;
const READ_RATES: u64 = 4;
/// Most connections of a capture that are looked at for those beside a transfer.
const MOST_OTHERS: usize = 64;
/// Losses that limit no transfer: one of this number of packets.
const RARE: u64 = 1_000;

/// Senders that match the recorded windows; empty if no known sender does, or if the sender events
/// were not kept.
pub(crate) fn reported(stream: &CapturedConnection) -> Vec<(&'static str, Option<&'static str>)> {
    let guesses = fit::guesses(&stream.analysis());
    let Some(best) = guesses.first().filter(|best| best.fits()) else { return Vec::new() };
    let reported = guesses.iter().filter(|guess| guess.equals(best));
    reported.map(|guess| (guess.profile, Some(guess.cc))).collect()
}

/// Senders of a system.
pub(crate) fn senders(system: PeerSystem) -> &'static [(&'static str, Option<&'static str>)] {
    const ALL: &[(&str, Option<&str>)] = &[
        ("linux-6.18", Some("cubic")),
        ("linux-6.18", Some("reno")),
        ("linux-6.18", Some("bbr")),
        ("freebsd-14.3", Some("cubic")),
        ("freebsd-13.2", Some("newreno")),
        ("freebsd-rack-main", Some("cubic")),
    ];
    match system {
        PeerSystem::Linux => &ALL[..3],
        PeerSystem::FreeBsd => &ALL[3..],
        PeerSystem::Unknown => ALL,
    }
}

/// Fits a capture and simulates the senders that its SYN allows. `others` are further connections of the capture, some of
/// which may share the path.
///
/// # Errors
/// [`WhatIfError`].
pub(crate) fn reproduce(
    stream: &CapturedConnection,
    others: &[&CapturedConnection],
    workers: &Workers<'_>,
    kernels: Option<&KernelRunner<'_>>,
) -> Result<Reproduction, WhatIfError> {
    let fitted = PathFit::of(&stream.analysis()).map_err(WhatIfError::Fit)?;
    let trials = Trials { reported: reported(stream), workers };
    let simple = fitted.without_conversation();
    let mut best = trials.of(fitted, None)?;
    if let Some(simple) = simple.filter(|_| best.best.error > MAX_OTHER_MISFIT) {
        let other = trials.of(simple, None)?;
        // That the hosts took turns was seen: another explanation must be far better.
        if other.best.error * CLEARLY_BETTER < best.best.error {
            best = other;
        }
    }
    if let Some(other) = trials.with_lost_data(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_marks(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_window(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_way_back(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_clocked_writes(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_send_buffer(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_receive_buffer(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_default_buffer(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_reads(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_other_losses(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_lost_data(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_beside(&best, stream, others)? {
        best = other;
    }
    best.fitted.queue_at_least = trials.queue_at_least(&best)?;
    best.fitted.rate_at_least = trials.rate_at_least(&best)?;
    match kernels {
        Some(_) => trials.of(best.fitted, kernels),
        None => Ok(best),
    }
}

impl Reproduction {
    /// Whether the simulated sender is clearly faster than the recorded one: something kept that back.
    fn is_faster(&self) -> bool {
        self.best.time_s < self.answer.recorded.time_s * (1.0 - MAX_OTHER_MISFIT)
    }
}

/// Simulations of fits of one capture.
struct Trials<'a> {
    /// Senders that match the recorded windows.
    reported: Vec<(&'static str, Option<&'static str>)>,
    workers: &'a Workers<'a>,
}

impl Trials<'_> {
    fn of(
        &self,
        fitted: PathFit,
        kernels: Option<&KernelRunner<'_>>,
    ) -> Result<Reproduction, WhatIfError> {
        let all = senders(fitted.sender).iter();
        self.of_senders(fitted, all, kernels)
    }

    fn of_senders<'s>(
        &self,
        fitted: PathFit,
        senders: impl Iterator<Item = &'s NamedSender<'static>>,
        kernels: Option<&KernelRunner<'_>>,
    ) -> Result<Reproduction, WhatIfError> {
        let senders = senders.map(|&(profile, cc)| PossibleSender {
            profile,
            cc,
            shown_by_windows: Some(self.reported.contains(&(profile, cc))),
        });
        let senders: Vec<_> = senders.collect();
        let (answer, best) = WhatIf::candidates(&fitted, &senders, self.workers, kernels)?;
        Ok(Reproduction { fitted, answer, best })
    }

    fn trace(&self, of: &Reproduction) -> Result<SendTrace, WhatIfError> {
        self.trace_of(&of.fitted, &of.best)
    }

    fn trace_of(&self, fitted: &PathFit, best: &BestSender<'_>) -> Result<SendTrace, WhatIfError> {
        let text = fitted.scenario(best.profile, best.cc, LossPattern::Same, 1);
        send_trace(&text, fitted.mss, self.workers.stop())
    }

    /// A sender whose buffer holds no more than was in flight, where the simulated one sends more or faster.
    fn with_send_buffer(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let PathFit { flight, losses, overflowed, window, writes, conversation, .. } = &now.fitted;
        let lost = (losses.packets.len() + overflowed.len()) as u64;
        let is_own = conversation.as_ref().is_some_and(|found| found.window.is_some());
        let is_limited = !now.fitted.is_marked && window.is_none();
        if !is_limited || is_own || *writes != WritePattern::Bulk {
            return Ok(None);
        }
        // Something keeps it back, or it sends more than was in flight.
        let sends_more = || -> Result<bool, WhatIfError> {
            let is_rare = lost * RARE <= losses.sent;
            let most = self.trace(now)?.flight * MORE_IN_FLIGHT.1;
            Ok(is_rare && most >= flight * MORE_IN_FLIGHT.0)
        };
        if !now.fitted.is_flight_level || !now.is_faster() && !sends_more()? {
            return Ok(None);
        }
        // Of a small buffer, less than a half or nearly all is in flight.
        let sizes = (*flight / 2, *flight * LARGEST_BUFFER);
        let nearest = self.sized(now, sizes, |size| now.fitted.with_send_buffer(size))?;
        let Some(nearest) = nearest else { return Ok(None) };
        if nearest.best.error > MAX_OTHER_MISFIT.max(now.best.misfit) {
            return Ok(None);
        }
        self.of(nearest.fitted, None).map(Some)
    }

    /// Of the fits with a buffer of a size in this range, the one that takes the recorded time best, simulated with the
    /// most usual sender of its system.
    fn sized(
        &self,
        now: &Reproduction,
        (mut low, mut high): (u64, u64),
        with: impl Fn(u64) -> PathFit,
    ) -> Result<Option<Reproduction>, WhatIfError> {
        let mut nearest: Option<Reproduction> = None;
        for _ in 0..TRIALS {
            // The sizes that are possible differ by much.
            let size = (low as f64 * high as f64).sqrt() as u64;
            let usual = senders(now.fitted.sender).iter().take(1);
            let trial = self.of_senders(with(size), usual, None)?;
            // A larger buffer takes less time.
            match trial.best.time_s < trial.answer.recorded.time_s {
                true => high = size,
                false => low = size,
            }
            if nearest.as_ref().is_none_or(|best| trial.best.error < best.best.error) {
                nearest = Some(trial);
            }
        }
        Ok(nearest)
    }

    /// The same data lost in place of packets of the same numbers, where that is nearer.
    fn with_lost_data(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        if now.best.error <= MAX_OTHER_MISFIT / 2.0 {
            return Ok(None);
        }
        let Some(other) = now.fitted.with_lost_data() else { return Ok(None) };
        let other = self.of(other, None)?;
        Ok((other.best.error < now.best.error).then_some(other))
    }

    /// A receive window whose scale was not captured, where the simulated sender is faster without it.
    fn with_window(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        if now.fitted.window.is_some() || !now.is_faster() {
            return Ok(None);
        }
        let windows: Vec<u64> = now.fitted.unscaled_windows().into_iter().collect();
        let trials = self.workers.map(&windows, |&window| {
            let trial = self.of(now.fitted.with_window(window), None)?;
            // What of the buffer is window depends on the sizes of packets.
            Ok(self.with_receive_buffer(&trial)?.unwrap_or(trial))
        })?;
        Ok(nearest(trials).filter(|one| one.best.error <= MAX_OTHER_MISFIT))
    }

    /// A link on the way of the ACKs with the rate that takes the recorded time, where they were seen to wait.
    fn with_way_back(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let Some(WayBackFit { rate, wait, .. }) = now.fitted.way_back else { return Ok(None) };
        if now.best.error <= MAX_OTHER_MISFIT / 2.0 {
            return Ok(None);
        }
        let rates = (rate / WAY_BACK_RATES, rate * WAY_BACK_RATES);
        let nearest = self.sized(now, rates, |rate| now.fitted.with_way_back(rate, wait))?;
        let nearest = nearest.filter(|one| one.best.error < now.best.error);
        nearest.map(|one| self.of(one.fitted, None)).transpose()
    }

    /// A slow reader with the rate that takes the recorded time: what its buffer holds was not read by then.
    fn with_reads(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let Some(rate) = now.fitted.reads else { return Ok(None) };
        if now.best.error <= MAX_OTHER_MISFIT / 2.0 {
            return Ok(None);
        }
        let rates = (rate / READ_RATES, rate * READ_RATES);
        let nearest = self.sized(now, rates, |rate| now.fitted.with_reads(rate))?;
        let nearest = nearest.filter(|one| one.best.error < now.best.error);
        nearest.map(|one| self.of(one.fitted, None)).transpose()
    }

    /// A receive buffer of the default size, if that takes the recorded time: it grows, and limits no other transfer.
    fn with_default_buffer(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let Some(other) = now.fitted.with_default_buffer() else { return Ok(None) };
        let other = self.of(other, None)?;
        let limit = now.best.error.max(MAX_OTHER_MISFIT / 2.0);
        Ok((other.best.error <= limit).then_some(other))
    }

    /// An application that writes by a clock, where the simulated sender is faster without. Writes that a host makes without
    /// a turn of its peer are no messages that wait for one another.
    fn with_clocked_writes(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let is_one_sided = now.fitted.conversation.as_ref().is_some_and(Conversation::is_one_sided);
        if now.fitted.writes != WritePattern::Bulk || !(is_one_sided || now.is_faster()) {
            return Ok(None);
        }
        let Some(other) = now.fitted.with_clocked_writes() else { return Ok(None) };
        let other = self.of(other, None)?;
        let least = if is_one_sided { MAX_OTHER_MISFIT / 2.0 } else { 0.0 };
        let limit = MAX_OTHER_MISFIT.min(now.best.error.max(least));
        Ok((other.best.error <= limit).then_some(other))
    }

    /// The slowest rate in bit/s of a bottleneck that was never seen busy at which the recorded sender takes as long.
    fn rate_at_least(&self, now: &Reproduction) -> Result<Option<u64>, WhatIfError> {
        let PathFit { rate, is_rate_seen, rate_at_least, bytes, time, .. } = now.fitted;
        if rate.is_some() || is_rate_seen || now.best.error > MAX_OTHER_MISFIT {
            return Ok(rate_at_least);
        }
        let goodput = units::ratio::scaled(bytes, 8_000_000_000, time.max(1));
        let (mut low, mut high) = (rate_at_least.unwrap_or(0).max(goodput).max(1), FASTEST);
        for _ in 0..TRIALS {
            let rate = (low as f64 * high as f64).sqrt() as u64;
            let fitted = PathFit { rate: Some(rate), ..now.fitted.clone() };
            let sender = [(now.best.profile, now.best.cc)];
            let trial = self.of_senders(fitted, sender.iter(), None)?;
            match (trial.best.time_s / now.best.time_s - 1.0).abs() <= MAX_OTHER_MISFIT / 2.0 {
                true => high = rate,
                false => low = rate,
            }
        }
        Ok(Some(low))
    }

    /// Bytes that wait at the bottleneck without a loss of its queue, if the recorded sender is simulated well.
    fn queue_at_least(&self, now: &Reproduction) -> Result<Option<u64>, WhatIfError> {
        let PathFit { rate, buffer, losses, mss, headers, .. } = &now.fitted;
        let (Some(rate), None) = (rate, buffer) else { return Ok(None) };
        if now.best.error > MAX_OTHER_MISFIT {
            return Ok(None);
        }
        let lost: Vec<u64> = losses.packets.iter().map(|one| one.0).collect();
        let packet = mss + headers;
        Ok(Some(self.trace(now)?.most_waiting(&lost, *rate, packet) * packet))
    }

    /// An AQM that marks packets, where some were marked: with the target that takes the recorded time.
    fn with_marks(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        if !now.fitted.is_marked {
            return Ok(None);
        }
        let intervals = [now.fitted.rtt, USUAL_INTERVAL];
        let trials = self.workers.map(&intervals, |&interval| {
            let mut nearest: Option<Reproduction> = None;
            let (mut low, mut high) = TARGETS;
            for _ in 0..TRIALS {
                let target = (low as f64 * high as f64).sqrt() as u64;
                let fitted = now.fitted.with_marks(target, interval);
                let usual = senders(fitted.sender).iter().take(1);
                let trial = self.of_senders(fitted, usual, None)?;
                // A higher target takes less time.
                match trial.best.time_s < trial.answer.recorded.time_s {
                    true => high = target,
                    false => low = target,
                }
                if nearest.as_ref().is_none_or(|best| trial.best.error < best.best.error) {
                    nearest = Some(trial);
                }
            }
            Ok(nearest)
        })?;
        let nearest = nearest(trials.into_iter().flatten());
        nearest.map(|one| self.of(one.fitted, None)).transpose()
    }

    /// The transfer beside the recorded others that share its path, if they leave it as it was recorded.
    fn with_beside(
        &self,
        now: &Reproduction,
        stream: &CapturedConnection,
        others: &[&CapturedConnection],
    ) -> Result<Option<Reproduction>, WhatIfError> {
        if others.is_empty() {
            return Ok(None);
        }
        let own = stream.analysis();
        let (from, to) = (own.ends.src.ip(), own.ends.dst.ip());
        let pair = others.iter().filter(|other| {
            let ends = other.ends();
            (ends.src.ip(), ends.dst.ip()) == (from, to)
                || (ends.dst.ip(), ends.src.ip()) == (from, to)
        });
        let analyses: Vec<_> = pair.take(MOST_OTHERS).map(|other| other.analysis()).collect();
        let analyses: Vec<&Analysis> = analyses.iter().map(|one| &**one).collect();
        // Both are of the same hosts.
        let of_host = (now.best.profile, now.best.cc);
        let beside = FlowBeside::of(&own, &now.fitted, &analyses, |_, _| of_host);
        if beside.is_empty() {
            return Ok(None);
        }
        let Some(rate) = now.fitted.rate_of_all(&beside) else { return Ok(None) };
        let rates = [Some(rate), now.fitted.rate_at_most.filter(|&all| all != rate)];
        let rates = rates.into_iter().flatten();
        let paths: Vec<_> = rates.flat_map(|rate| [(rate, false), (rate, true)]).collect();
        let trials = self.workers.map(&paths, |&(rate, is_full)| {
            self.of(now.fitted.with_beside(beside.clone(), rate, is_full), None)
        })?;
        let limit = MAX_OTHER_MISFIT.max(now.best.error);
        Ok(nearest(trials).filter(|one| one.best.error <= limit))
    }

    /// A receiver with another buffer, where the one that its window shows makes the simulated sender faster or slower:
    /// what of a small buffer becomes the window depends on the sizes of packets.
    fn with_receive_buffer(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let (Some(window), None) = (now.fitted.window, now.fitted.reads) else { return Ok(None) };
        if now.best.error <= MAX_OTHER_MISFIT / 2.0 {
            return Ok(None);
        }
        let sizes = (now.fitted.mss, window * LARGEST_BUFFER);
        let nearest = self.sized(now, sizes, |size| now.fitted.with_receive_buffer(size))?;
        let nearest = nearest.filter(|one| one.best.error < now.best.error);
        nearest.map(|one| self.of(one.fitted, None)).transpose()
    }

    /// Losses of a full queue that were taken for others, or others that were taken for those of a full queue.
    fn with_other_losses(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let Some(elsewhere) = now.fitted.with_losses_elsewhere() else {
            return self.with_full_queue(now);
        };
        let simulated = self.trace(now)?.retransmitted;
        let is_same = is_as_many(simulated, now.fitted.overflowed.len() as u64);
        if is_same && now.best.misfit <= MAX_OTHER_MISFIT {
            return Ok(None);
        }
        let elsewhere = self.of(elsewhere, None)?;
        if let Some(queue) = self.with_full_queue(&elsewhere)? {
            return Ok(Some(queue));
        }
        Ok((elsewhere.best.misfit < now.best.misfit).then_some(elsewhere))
    }

    /// A queue that the simulated sender fills where packets were lost, and only there.
    fn with_full_queue(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let fitted = &now.fitted;
        let (Some(rate), false) = (fitted.rate, fitted.losses.packets.is_empty()) else {
            return Ok(None);
        };
        let trace = self.trace(now)?;
        let packet = fitted.mss + fitted.headers;
        let lost: Vec<u64> = fitted.losses.packets.iter().map(|one| one.0).collect();
        let Some(waiting) = trace.waiting_at_first_loss(&lost, rate, packet) else {
            return Ok(None);
        };
        // The estimates of times and of the rate leave some packets of doubt.
        let mut queues = Vec::new();
        for waiting in waiting.saturating_sub(DOUBT).max(1)..=waiting + DOUBT {
            let buffer = waiting * packet + packet / 2;
            if !fitted.may_be_full(buffer) {
                continue;
            }
            queues.push(fitted.with_full_queue(buffer));
        }
        let found = |queue: &PathFit| Ok(self.trace_of(queue, &now.best)?.retransmitted);
        let found = self.workers.map(&queues, found)?;
        let queues = found.into_iter().zip(queues);
        let mut queues: Vec<_> = queues
            .map(|(found, queue)| (found.abs_diff(trace.retransmitted), found, queue))
            .collect();
        queues.sort_by_key(|one| one.0);
        let alike = queues.into_iter().filter(|one| is_as_many(one.1, trace.retransmitted));
        let alike: Vec<PathFit> = alike.take(MOST_QUEUES).map(|(.., queue)| queue).collect();
        let mut best: Option<Reproduction> = None;
        for other in self.workers.map(&alike, |queue| self.of(queue.clone(), None))? {
            if best.as_ref().is_none_or(|best| other.best.misfit < best.best.misfit) {
                best = Some(other);
            }
        }
        let limit = MAX_OTHER_MISFIT.max(now.best.misfit);
        Ok(best.filter(|other| other.best.misfit <= limit))
    }
}

/// The first of those with the least error.
fn nearest(trials: impl IntoIterator<Item = Reproduction>) -> Option<Reproduction> {
    trials.into_iter().reduce(|best, one| if one.best.error < best.best.error { one } else { best })
}

/// Whether two numbers of losses differ by a quarter at most, or by one.
fn is_as_many(found: u64, recorded: u64) -> bool {
    found.abs_diff(recorded) <= (recorded / 4).max(1)
}
