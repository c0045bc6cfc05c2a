//! The fit of a capture that reproduces it best: other explanations are tried where the first one does not.

use fit::{LossPattern, PathFit, PeerSystem, WritePattern};
use ingest::inputs::CapturedConnection;
use runner::stop::StopFlag;

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
/// How much larger the simulated flight is than the recorded one if something else limited that.
const MORE_IN_FLIGHT: (u64, u64) = (115, 100);
/// Packets by which a queue may be shorter or longer than the first loss shows, and most lengths that are
/// simulated with all senders.
const DOUBT: u64 = 2;
const MOST_QUEUES: usize = 2;
/// Trials to find the size of a buffer, as a fraction: one part of this number.
const NEAR: u64 = 100;
const TRIALS: usize = 8;
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

/// Fits a capture and simulates the senders that its SYN allows.
///
/// # Errors
/// [`WhatIfError`].
pub(crate) fn reproduce(
    stream: &CapturedConnection,
    stop: StopFlag<'_>,
    kernels: Option<&KernelRunner<'_>>,
) -> Result<Reproduction, WhatIfError> {
    let fitted = PathFit::of(&stream.analysis()).map_err(WhatIfError::Fit)?;
    let trials = Trials { reported: reported(stream), stop };
    let mut best = trials.of(fitted, None)?;
    if let Some(other) = trials.with_send_buffer(&best)? {
        best = other;
    }
    if let Some(other) = trials.with_other_losses(&best)? {
        best = other;
    }
    match kernels {
        Some(_) => trials.of(best.fitted, kernels),
        None => Ok(best),
    }
}

/// Simulations of fits of one capture.
struct Trials<'a> {
    /// Senders that match the recorded windows.
    reported: Vec<(&'static str, Option<&'static str>)>,
    stop: StopFlag<'a>,
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
        let (answer, best) = WhatIf::candidates(&fitted, senders.collect(), self.stop, kernels)?;
        Ok(Reproduction { fitted, answer, best })
    }

    fn trace(&self, of: &Reproduction) -> Result<SendTrace, WhatIfError> {
        self.trace_of(&of.fitted, &of.best)
    }

    fn trace_of(&self, fitted: &PathFit, best: &BestSender<'_>) -> Result<SendTrace, WhatIfError> {
        let text = fitted.scenario(best.profile, best.cc, LossPattern::Same, 1);
        send_trace(&text, fitted.mss, self.stop)
    }

    /// A sender whose buffer holds no more than was in flight, where the simulated one sends more or faster.
    fn with_send_buffer(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let PathFit { flight, losses, overflows, window, writes, .. } = &now.fitted;
        let lost = losses.packets.len() as u64 + overflows;
        let is_limited =
            now.fitted.is_flight_level && lost * RARE <= losses.sent && window.is_none();
        if !is_limited || *writes != WritePattern::Bulk {
            return Ok(None);
        }
        let is_faster = now.best.time_s < now.answer.recorded.time_s * (1.0 - MAX_OTHER_MISFIT);
        let sends_more = self.trace(now)?.flight * MORE_IN_FLIGHT.1 >= flight * MORE_IN_FLIGHT.0;
        if !is_faster && !sends_more {
            return Ok(None);
        }
        let of_usual = |size| {
            let fitted = now.fitted.with_send_buffer(size);
            let usual = senders(fitted.sender).iter().take(1);
            self.of_senders(fitted, usual, None)
        };
        let mut size = *flight;
        let mut nearest = of_usual(size)?;
        for _ in 0..TRIALS {
            // A larger buffer takes less time.
            let ratio = nearest.best.time_s / nearest.answer.recorded.time_s;
            let next = (size as f64 * ratio) as u64;
            if next.abs_diff(size) * NEAR <= size {
                break;
            }
            let trial = of_usual(next)?;
            if trial.best.error >= nearest.best.error {
                break;
            }
            (size, nearest) = (next, trial);
        }
        if nearest.best.error > MAX_OTHER_MISFIT.max(now.best.misfit) {
            return Ok(None);
        }
        self.of(nearest.fitted, None).map(Some)
    }

    /// Losses of a full queue that were taken for others, or others that were taken for those of a full queue.
    fn with_other_losses(&self, now: &Reproduction) -> Result<Option<Reproduction>, WhatIfError> {
        let Some(elsewhere) = now.fitted.with_losses_elsewhere() else {
            return self.with_full_queue(now);
        };
        let simulated = self.trace(now)?.retransmitted;
        let is_same = is_as_many(simulated, now.fitted.overflows);
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
            let queue = fitted.with_full_queue(waiting * packet + packet / 2);
            let found = self.trace_of(&queue, &now.best)?.retransmitted;
            queues.push((found.abs_diff(trace.retransmitted), found, queue));
        }
        queues.sort_by_key(|one| one.0);
        let alike = queues.into_iter().filter(|one| is_as_many(one.1, trace.retransmitted));
        let mut best: Option<Reproduction> = None;
        for (.., queue) in alike.take(MOST_QUEUES) {
            let other = self.of(queue, None)?;
            if best.as_ref().is_none_or(|best| other.best.misfit < best.best.misfit) {
                best = Some(other);
            }
        }
        let limit = MAX_OTHER_MISFIT.max(now.best.misfit);
        Ok(best.filter(|other| other.best.misfit <= limit))
    }
}

/// Whether two numbers of losses differ by a quarter at most, or by one.
fn is_as_many(found: u64, recorded: u64) -> bool {
    found.abs_diff(recorded) <= (recorded / 4).max(1)
}
