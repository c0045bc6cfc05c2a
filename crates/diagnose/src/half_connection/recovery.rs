//! The recoveries of one direction.

use units::{Duration, Instant, Offset};

use crate::episodes::{KEPT, RecoveryEpisode, RecoveryTrigger};
use crate::rounds::TimeUse;
use crate::transmissions::OpenRetransmissions;

/// What the sender does about lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LossState {
    /// No loss is known.
    #[default]
    Open,
    /// A timer has expired, no ACK has arrived since, and nothing was retransmitted: the probe was
    /// new data.
    Probe,
    /// A recovery is in progress.
    Recovery,
    /// A timer has expired in a recovery, and no ACK has arrived since.
    Timeout,
}

/// Recovery episodes, and the one in progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecoveryLog {
    pub(crate) episodes: Vec<RecoveryEpisode>,
    /// Episodes beyond [`KEPT`].
    pub(crate) more_episodes: u64,
    state: LossState,
    /// Offset whose acknowledgment ends the last recovery.
    recover: Offset,
    /// Last expiry of the retransmission timer.
    last_rto: Option<Instant>,
    open: OpenRetransmissions,
    /// Where the last retransmission of the recovery ended.
    last_end: Option<Offset>,
}

/// A retransmission of a recovery.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retransmission {
    pub(super) range: (Offset, Offset),
    pub(super) at: Instant,
    pub(super) frame: u64,
    pub(super) packets: u64,
    pub(super) trigger: RecoveryTrigger,
    /// Expiries of the timer in the silence before it.
    pub(super) expiries: u32,
    /// An earlier copy had arrived.
    pub(super) is_spurious: bool,
    /// Its data had been acknowledged.
    pub(super) is_acked: bool,
}

impl RecoveryLog {
    /// Whether a recovery is in progress.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, LossState::Recovery | LossState::Timeout)
    }

    /// Whether a timer has expired and no ACK has arrived since.
    pub(super) const fn is_in_timeout(&self) -> bool {
        matches!(self.state, LossState::Probe | LossState::Timeout)
    }

    /// What the sender waits for; `None` without a loss.
    pub(super) const fn time_use(&self) -> Option<TimeUse> {
        match self.state {
            LossState::Open => None,
            LossState::Probe | LossState::Timeout => Some(TimeUse::Timeout),
            LossState::Recovery => Some(TimeUse::Recovery),
        }
    }

    /// A timer expires.
    pub(super) const fn expire(&mut self) {
        self.state = if self.is_open() { LossState::Timeout } else { LossState::Probe };
    }

    /// An ACK arrives after the expiry of a timer.
    pub(super) const fn on_timeout_answered(&mut self) {
        self.state = if self.is_open() { LossState::Recovery } else { LossState::Open };
    }

    /// An ACK of new data arrives.
    pub(super) fn on_progress(&mut self) {
        if let Some(episode) = self.episodes.last_mut() {
            episode.unanswered_timeouts = 0;
        }
    }

    const fn set_open(&mut self, is_open: bool) {
        self.state = match (is_open, self.is_in_timeout()) {
            (true, true) => LossState::Timeout,
            (true, false) => LossState::Recovery,
            (false, true) => LossState::Probe,
            (false, false) => LossState::Open,
        };
    }

    /// Records the expiry of the retransmission timer.
    pub(super) const fn on_rto(&mut self, at: Instant) {
        self.last_rto = Some(at);
    }

    /// When the sender began to wait for the timer of data that it sent at `sent_at`.
    pub(super) fn waits_since(&self, sent_at: Instant) -> Instant {
        self.last_rto.map_or(sent_at, |rto| rto.max(sent_at))
    }

    /// Index of the latest episode.
    pub(super) fn latest(&self) -> u32 {
        self.episodes.len().saturating_sub(1) as u32
    }

    /// Continues the last episode if the sender still repeats what had been acknowledged, up to `end`:
    /// it has received no ACK since, and its timer expires again and again.
    pub(super) fn resume(&mut self, end: Offset, una: Offset, nxt: Offset) -> bool {
        let is_same_data = nxt == self.recover && end <= una;
        let last = self.episodes.last_mut().filter(|_| is_same_data && self.more_episodes == 0);
        let Some(last) = last.filter(|last| last.over && last.acked_before > 0) else {
            return false;
        };
        last.over = false;
        self.set_open(true);
        true
    }

    /// Continues an expiry of which only the silence was seen, until data before `end` are acknowledged; false if the last
    /// episode is another.
    pub(super) fn resume_inferred(&mut self, end: Offset) -> bool {
        let last = self.episodes.last_mut().filter(|_| self.more_episodes == 0);
        let is_inferred = |last: &&mut RecoveryEpisode| {
            last.trigger == RecoveryTrigger::Inferred && last.over && !last.tail
        };
        let Some(last) = last.filter(is_inferred) else { return false };
        last.over = false;
        self.begin(end);
        true
    }

    /// The end of a flight whose loss was inferred was all of it: its sender had more to send, in a window of one segment.
    pub(super) fn tail_is_flight(&mut self) {
        if let Some(last) = self.episodes.last_mut().filter(|last| last.tail) {
            (last.tail, last.timeouts) = (false, 1);
        }
    }

    /// How often the timer has doubled: the expiries since the last ACK, 16 at most.
    pub(super) fn doublings(&self) -> u32 {
        let last = self.episodes.last().filter(|last| self.is_in_timeout() && !last.over);
        last.map_or(0, |last| last.timeouts.min(16))
    }

    /// Begins a recovery that ends when `recover` is acknowledged.
    pub(super) const fn begin(&mut self, recover: Offset) {
        self.set_open(true);
        (self.recover, self.last_end) = (recover, None);
    }

    /// Adds an episode; false if there are too many.
    pub(super) fn push(&mut self, episode: RecoveryEpisode) -> bool {
        let has_room = self.episodes.len() < KEPT;
        if has_room {
            self.episodes.push(episode);
        } else {
            self.more_episodes += 1;
        }
        has_room
    }

    /// Adds a retransmission to the last episode.
    pub(super) fn on_retransmission(&mut self, sent: &Retransmission) {
        let index = self.episodes.len();
        let is_open = self.is_open();
        if let Some(episode) = self.episodes.last_mut()
            && is_open
            && !episode.over
        {
            episode.retransmitted += sent.packets;
            episode.spurious += if sent.is_spurious { sent.packets } else { 0 };
            episode.acked_before += if sent.is_acked { sent.packets } else { 0 };
            let follows = self.last_end == Some(sent.range.0);
            let new = sent.packets.saturating_sub(u64::from(!follows));
            episode.in_a_row += if sent.is_spurious { 0 } else { new };
            self.last_end = Some(sent.range.1);
            episode.frames.1 = sent.frame;
            if sent.trigger == RecoveryTrigger::Timer {
                episode.timeouts += sent.expiries;
                episode.unanswered_timeouts += sent.expiries;
                if episode.trigger != RecoveryTrigger::Inferred {
                    episode.trigger = RecoveryTrigger::Timer;
                }
            }
        }
        self.open.push(sent.range, sent.at, sent.packets, index as u32, sent.is_spurious);
    }

    /// Counts new data sent during a recovery.
    pub(super) fn on_new_data(&mut self, bytes: u64) {
        if self.is_open()
            && let Some(episode) = self.episodes.last_mut()
        {
            episode.sent_above += bytes;
        }
    }

    /// Whether an ACK of all data before `una` ends the recovery.
    pub(super) fn is_ended_by(&self, una: Offset) -> bool {
        self.is_open() && una >= self.recover
    }

    /// Ends the recovery at `at`; `settled`: duplicates of retransmissions until then would have been
    /// reported.
    pub(super) fn end(&mut self, at: Instant, settled: Instant) {
        self.set_open(false);
        if self.more_episodes == 0
            && let Some(episode) = self.episodes.last_mut()
        {
            episode.end = at;
            episode.over = true;
        }
        self.open.settle(settled);
    }

    /// Ends the analysis at `at`.
    pub(super) fn finish(&mut self, at: Instant) {
        if let Some(episode) = self.episodes.last_mut()
            && !episode.over
        {
            episode.end = at;
        }
    }

    /// The episodes that ended after `since`, and the one before them: as [`finish`](Self::finish) leaves them at `at`.
    pub(crate) fn episodes_since(&self, since: Instant, at: Instant) -> Vec<RecoveryEpisode> {
        let first = self.episodes.partition_point(|episode| episode.end <= since);
        let mut recent = self.episodes[first.saturating_sub(1)..].to_vec();
        if let Some(last) = recent.last_mut().filter(|last| !last.over) {
            last.end = at;
        }
        recent
    }

    /// Processes a D-SACK: the packets that it shows to be spurious; `None` if no retransmission
    /// explains it.
    pub(super) fn on_dsack(&mut self, left: Offset, right: Offset, mss: u64) -> Option<u64> {
        let (packets, episode) = self.open.duplicate(left, right, mss)?;
        self.add_spurious(packets, episode);
        Some(packets)
    }

    /// Marks the last retransmission of `[start, end)` as spurious; returns its packets, 0 if it was
    /// marked.
    pub(super) fn mark_spurious(&mut self, start: Offset, end: Offset) -> u64 {
        let Some((packets, episode)) = self.open.mark_spurious(start, end) else { return 0 };
        self.add_spurious(packets, episode);
        packets
    }

    fn add_spurious(&mut self, packets: u64, episode: u32) {
        if let Some(episode) =
            (episode as usize).checked_sub(1).and_then(|n| self.episodes.get_mut(n))
        {
            episode.spurious = (episode.spurious + packets).min(episode.retransmitted);
        }
    }
}

/// Time after which a duplicate of a retransmission is no longer expected: four round trips, and the
/// timers of both hosts.
pub(super) fn duplicate_time(smoothed: Duration) -> Duration {
    smoothed * 4 + Duration::from_secs(2)
}
