//! Deadlines by purpose.

use record::Purpose;
use units::{Duration, Instant, unlikely};

use crate::clock::{GuestTimer, KernelClock, RoundedSpan};

/// In order of precedence at equal instants.
const ALL: [Purpose; 8] = [
    Purpose::DelayedAck,
    Purpose::Reorder,
    Purpose::LossProbe,
    Purpose::Retransmit,
    Purpose::Persist,
    Purpose::Keepalive,
    Purpose::TimeWait,
    Purpose::Pacing,
];

/// Number of timers that may be set in ticks, with every segment.
const TICKED: usize = slot(Purpose::Retransmit) + 1;
const OTHERS: usize = ALL.len() - TICKED;

#[cold]
fn none() -> Box<[Instant; OTHERS]> {
    Box::new([Instant::MAX; OTHERS])
}

/// One deadline for each purpose; [`Instant::MAX`] where there is none.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Timers {
    at: [Instant; TICKED],
    /// The other timers, allocated when one of them is first set.
    others: Option<Box<[Instant; OTHERS]>>,
    /// The earliest of those.
    rare: Instant,
    /// The earliest deadline set since the last [`Timers::next_before`].
    fresh: Instant,
    /// The device by which all of them expire, where it is modelled.
    device: Option<Box<GuestTimer>>,
    #[serde(skip)]
    rounding: RoundingCache,
}

/// The last rounding to ticks: when the tick began, and the rounded span of each timer.
#[derive(Clone, Default)]
struct RoundingCache {
    tick: u64,
    spans: [RoundedSpan; TICKED],
}

impl core::fmt::Debug for RoundingCache {
    /// No state: the same deadlines follow from any contents.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("RoundingCache")
    }
}

const fn slot(purpose: Purpose) -> usize {
    match purpose {
        Purpose::DelayedAck => 0,
        Purpose::Reorder => 1,
        Purpose::LossProbe => 2,
        Purpose::Retransmit => 3,
        Purpose::Persist => 4,
        Purpose::Keepalive => 5,
        Purpose::TimeWait => 6,
        Purpose::Pacing => 7,
    }
}

const fn nanos(at: Instant) -> u64 {
    match at {
        Instant::MAX => u64::MAX,
        at => at.as_nanos(),
    }
}

#[inline]
fn earliest(at: &[Instant]) -> Instant {
    at.iter().fold(Instant::MAX, |first, &at| first.min(at))
}

impl Default for Timers {
    fn default() -> Self {
        let none = Instant::MAX;
        Self {
            at: [none; TICKED],
            others: None,
            rare: none,
            fresh: none,
            device: None,
            rounding: RoundingCache::default(),
        }
    }
}

impl Timers {
    #[inline]
    pub(crate) fn set(&mut self, purpose: Purpose, at: Instant) {
        self.fresh = self.fresh.min(at);
        match self.at.get_mut(slot(purpose)) {
            Some(place) => *place = at,
            None => self.set_other(slot(purpose) - TICKED, at),
        }
    }

    #[inline]
    fn set_other(&mut self, place: usize, at: Instant) {
        // Stopping a timer that never ran has no effect.
        if self.others.is_some() || at != Instant::MAX {
            let others = self.others.get_or_insert_with(none);
            others[place] = at;
            self.rare = earliest(&others[..]);
        }
    }

    #[inline]
    fn get(&self, purpose: Purpose) -> Instant {
        let place = slot(purpose);
        match self.at.get(place) {
            Some(&at) => at,
            None => self.others.as_ref().map_or(Instant::MAX, |others| others[place - TICKED]),
        }
    }

    /// Sets a timer up to the retransmission timer to run for `span` from now on, in ticks of
    /// `clock` ([`KernelClock::deadline`]).
    #[inline(always)]
    pub(crate) fn set_ticks(
        &mut self,
        purpose: Purpose,
        clock: &KernelClock,
        now: Instant,
        span: Duration,
    ) {
        let slot = slot(purpose);
        let RoundingCache { tick, spans } = &mut self.rounding;
        let at = clock.deadline_cached(now, span, tick, &mut spans[slot]);
        self.at[slot] = at;
        self.fresh = self.fresh.min(at);
    }

    #[inline]
    pub(crate) fn stop(&mut self, purpose: Purpose) {
        self.set(purpose, Instant::MAX);
    }

    pub(crate) fn stop_all(&mut self) {
        *self = Self { device: self.device.take(), ..Self::default() };
    }

    #[inline]
    pub(crate) fn runs(&self, purpose: Purpose) -> bool {
        self.get(purpose) != Instant::MAX
    }

    /// The deadline of that purpose.
    pub(crate) fn at(&self, purpose: Purpose) -> Option<Instant> {
        Some(self.get(purpose)).filter(|&at| at != Instant::MAX)
    }

    /// The next deadline; [`Instant::MAX`] if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        if unlikely(self.device.is_some()) { self.next_by_device() } else { self.first() }
    }

    /// The earliest deadline.
    #[inline]
    fn first(&self) -> Instant {
        earliest(&self.at).min(self.rare)
    }

    /// The next deadline if it is before `known`, the earliest deadline at the last call.
    #[inline(always)]
    pub(crate) fn next_before(&mut self, known: Option<Instant>) -> Option<Instant> {
        let known = known.unwrap_or(Instant::MAX);
        if unlikely(self.device.is_some()) {
            return Some(self.next_by_device()).filter(|&at| at < known);
        }
        if self.fresh >= known && known != Instant::MAX {
            return None;
        }
        self.fresh = Instant::MAX;
        Some(self.next_at()).filter(|&at| at < known)
    }

    /// The next deadline.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Instant, Purpose)> {
        let first = self.first();
        let due = ALL.into_iter().find(|&purpose| self.get(purpose) == first);
        due.filter(|_| first != Instant::MAX).map(|purpose| (self.next_at(), purpose))
    }

    /// Stops and returns a timer that has expired.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Purpose> {
        if unlikely(self.device.is_some()) {
            return self.take_due_by_device(now);
        }
        if self.next_at() > now {
            return None;
        }
        let (_, purpose) = self.next().filter(|&(at, _)| at <= now)?;
        self.stop(purpose);
        Some(purpose)
    }
}

/// Timers that expire by a modelled device. Their deadlines are those of the kernel; the device fires after them.
impl Timers {
    /// All timers expire by this device.
    pub(crate) fn expire_by(&mut self, device: GuestTimer) {
        self.device = Some(Box::new(device));
    }

    /// The earliest deadline of the timers of the wheel.
    fn on_wheel(&self) -> u64 {
        let high = self.device.as_ref().is_some_and(|device| device.compresses());
        let first = if high { slot(Purpose::Reorder) } else { 0 };
        let other = [Purpose::Persist, Purpose::Keepalive, Purpose::TimeWait];
        let others = other.into_iter().map(|purpose| self.get(purpose));
        nanos(others.fold(earliest(&self.at[first..]), Instant::min))
    }

    #[cold]
    fn next_by_device(&self) -> Instant {
        let Some(device) = &self.device else { return Instant::MAX };
        // One set for the instant of the event is set by the clock, which shows less.
        let pacing = nanos(self.get(Purpose::Pacing)).max(device.now());
        let direct = if device.paces() { u64::MAX } else { pacing };
        match direct.min(device.output_at()).min(device.next_for_connection(self.on_wheel())) {
            u64::MAX => Instant::MAX,
            at => Instant::from_nanos(at),
        }
    }

    #[cold]
    fn take_due_by_device(&mut self, now: Instant) -> Option<Purpose> {
        let device = self.device.as_mut()?;
        if device.wheel_is_due() {
            let high = device.compresses();
            let shown = Instant::from_nanos(device.shown_now());
            let due = |&purpose: &Purpose| {
                purpose != Purpose::Pacing
                    && !(high && purpose == Purpose::DelayedAck)
                    && self.get(purpose) <= shown
            };
            if let Some(purpose) = ALL.into_iter().find(due) {
                self.stop(purpose);
                return Some(purpose);
            }
        }
        let pacing = self.get(Purpose::Pacing);
        let device = self.device.as_mut()?;
        device.wheel_is_done();
        if device.output_at() <= now.as_nanos() {
            device.reach_output(u64::MAX);
            return Some(Purpose::Pacing);
        }
        let direct = !device.paces() && pacing <= now;
        if device.take_pacing() || direct {
            let of_pacing = pacing != Instant::MAX;
            let purpose = if of_pacing { Purpose::Pacing } else { Purpose::DelayedAck };
            self.stop(purpose);
            return Some(purpose);
        }
        None
    }

    /// When the recorder's process next runs.
    pub(crate) fn recorded_at(&self) -> Option<Instant> {
        let device = self.device.as_ref()?;
        device.recorded_at(self.on_wheel()).map(Instant::from_nanos)
    }

    /// A process of the application gets to its output at `at`, by when it has read the clock.
    pub(crate) fn reach_output(&mut self, at: Instant) {
        if let Some(device) = &mut self.device {
            device.reach_output(at.as_nanos());
        }
    }

    /// Starts the high-resolution timer of compressed ACKs.
    pub(crate) fn start_compression(&mut self, at: Instant) {
        if let Some(device) = &mut self.device {
            device.compress(at.as_nanos());
        }
        self.set(Purpose::DelayedAck, at);
    }

    /// An event begins: the device may have fired, or a packet has arrived.
    #[cold]
    pub(crate) fn begin_event(&mut self, now: Instant, arrives: bool) {
        let compressed = nanos(self.get(Purpose::DelayedAck));
        let wheel = self.on_wheel();
        let Some(device) = &mut self.device else { return };
        if device.compresses() {
            device.compress(compressed);
        }
        device.begin(now.as_nanos(), wheel);
        if arrives {
            device.arrive();
        } else {
            device.fire(wheel);
        }
    }

    /// A packet is sent at `now`.
    #[cold]
    pub(crate) fn note_sent(&mut self, now: Instant) {
        if let Some(device) = &mut self.device {
            device.send(now.as_nanos());
        }
    }

    /// A process of the application runs.
    #[cold]
    pub(crate) fn wake_process(&mut self) {
        if let Some(device) = &mut self.device {
            device.wake_process();
        }
    }

    /// Starts the high-resolution timer of pacing; with a device, unless it runs (tcp_pacing_check).
    pub(crate) fn start_pacing(&mut self, at: Instant) {
        let at = match &mut self.device {
            None => at,
            Some(device) => Instant::from_nanos(device.start_pacing(at.as_nanos())),
        };
        self.set(Purpose::Pacing, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tail that the device holds back sets the pacing timer for the time that the coarse clock shows: the timer is due
    /// now, not in the past of the world.
    #[test]
    fn a_timer_set_by_a_coarse_clock_is_not_due_before_its_event() {
        let at = Instant::from_nanos;
        let mut timers = Timers::default();
        timers.expire_by(GuestTimer::new(256, 4_000_000, 0));
        timers.begin_event(at(6_459_470), true);
        timers.set(Purpose::Pacing, at(6_459_392));
        assert_eq!(timers.next_at(), at(6_459_470));
    }

    #[test]
    fn next_before_misses_no_deadline() {
        let mut stream = units::RandomStream::named(1, "timers", "test");
        let mut timers = Timers::default();
        // The deadline known to the caller, as a world has an entry in its event queue.
        let mut known: Option<Instant> = None;
        let mut now = Instant::ZERO;
        for _ in 0..20_000 {
            let purpose = ALL[stream.below(8) as usize];
            match stream.below(4) {
                0 => timers.stop(purpose),
                1 | 2 => timers.set(purpose, now + Duration::from_nanos(stream.below(1_000))),
                _ => {
                    now += Duration::from_nanos(stream.below(300));
                    while timers.take_due(now).is_some() {}
                    known = known.filter(|&at| at > now);
                }
            }
            let first = Some(timers.next_at()).filter(|&at| at < known.unwrap_or(Instant::MAX));
            assert_eq!(timers.next_before(known), first);
            known = first.or(known);
        }
    }

    #[test]
    fn the_earliest_comes_first_and_once() {
        let at = Instant::from_nanos;
        let mut timers = Timers::default();
        timers.set(Purpose::Retransmit, at(20));
        timers.set(Purpose::DelayedAck, at(10));
        timers.set(Purpose::TimeWait, at(20));
        assert_eq!(timers.next(), Some((at(10), Purpose::DelayedAck)));
        assert_eq!(timers.take_due(at(9)), None);
        assert_eq!(timers.take_due(at(20)), Some(Purpose::DelayedAck));
        assert_eq!(timers.take_due(at(20)), Some(Purpose::Retransmit));
        assert_eq!(timers.take_due(at(20)), Some(Purpose::TimeWait));
        assert_eq!(timers.take_due(at(20)), None);
    }
}
