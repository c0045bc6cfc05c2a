//! CoDel, controlled delay (RFC 8289): what counts is the time that packets have waited.
//!
//! The pseudocode of section 5 in whole nanoseconds; the control law takes the exact square root,
//! rounded down to the nanosecond, where Linux takes a reciprocal of 16 bits. Marking follows
//! Linux (codel_impl.h): a packet that can be marked is marked where another would be lost, and
//! goes.

use machine::Fate;
use units::{Bytes, Duration, Instant};

use super::{Fates, Fifo, Waiting};

/// Parameters of CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The time that packets may wait for ever.
    pub target: Duration,
    /// It may be exceeded for so long: the order of the longest round trip.
    pub interval: Duration,
    /// Mark packets that can be marked.
    pub ecn: bool,
}

impl Default for Params {
    /// Sections 4.2 and 4.3; Linux marks only where it is told to.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

/// A CoDel queue.
#[derive(Debug, Clone)]
pub(crate) struct Codel {
    pub(super) queue: Fifo,
    params: Params,
    control: Control,
    largest: Bytes,
}

impl Codel {
    pub(super) const fn new(params: Params) -> Self {
        Self { queue: Fifo::new(), params, control: Control::new(), largest: Bytes(LEAST_PACKET) }
    }

    pub(super) fn enqueue(&mut self, packet: Waiting) {
        self.largest = self.largest.max(packet.size);
        self.queue.push(packet);
    }

    pub(super) fn dequeue(&mut self, now: Instant, fates: &mut Fates) -> Option<Waiting> {
        let (params, queue) = (&self.params, &mut self.queue);
        self.control.dequeue(now, params, self.largest, queue, fates)
    }
}

/// `maxpacket` of section 5.2 before larger packets were seen; the pseudocode would have the MTU
/// of the interface, of which a link knows nothing.
pub(super) const LEAST_PACKET: u64 = 512;

/// The state of the control loop; the names are those of section 5.2.
#[derive(Debug, Clone)]
pub(super) struct Control {
    /// When the delay will have been above the target for an interval; `None` while it is not.
    first_above: Option<Instant>,
    /// When to drop next.
    drop_next: Instant,
    /// Drops since the dropping state was entered.
    pub(super) count: u64,
    /// `count` at that moment.
    last_count: u64,
    dropping: bool,
}

/// `t` and an interval over the square root of `count` behind it (section 5.3).
fn control_law(t: Instant, interval: Duration, count: u64) -> Instant {
    let interval = u128::from(interval.as_nanos());
    // The root of a quotient rounded down is the quotient of the root, rounded down.
    let step = (interval * interval / u128::from(count.max(1))).isqrt();
    t + Duration::from_nanos(u64::try_from(step).unwrap_or(u64::MAX))
}

impl Control {
    pub(super) const fn new() -> Self {
        Self {
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// The next packet, and whether it has waited too long (`dodequeue`, section 5.4).
    fn take(
        &mut self,
        now: Instant,
        params: &Params,
        largest: Bytes,
        queue: &mut Fifo,
    ) -> Option<(Waiting, bool)> {
        let Some(packet) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        let waited = now.since(packet.since);
        if waited < params.target || queue.bytes() <= largest {
            // Below the target, or too little is left to keep the line busy.
            self.first_above = None;
            return Some((packet, false));
        }
        let at = *self.first_above.get_or_insert(now + params.interval);
        Some((packet, now >= at))
    }

    /// The packet that goes at `now` (`dequeue`, section 5.5).
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        params: &Params,
        largest: Bytes,
        queue: &mut Fifo,
        fates: &mut Fates,
    ) -> Option<Waiting> {
        let (mut packet, mut late) = self.leave_dropping_if_empty(now, params, largest, queue)?;
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if params.ecn && packet.capable {
                    fates.push_back(Fate::Marked(packet.packet));
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                    break;
                }
                fates.push_back(Fate::Lost(packet.packet));
                (packet, late) = self.leave_dropping_if_empty(now, params, largest, queue)?;
                self.dropping = late;
                if late {
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                }
            }
        } else if late {
            let next = if params.ecn && packet.capable {
                fates.push_back(Fate::Marked(packet.packet));
                Some(packet)
            } else {
                fates.push_back(Fate::Lost(packet.packet));
                self.take(now, params, largest, queue).map(|(packet, _)| packet)
            };
            self.dropping = true;
            // Not long since the last time: what controlled the queue then is where to begin.
            let since = self.count - self.last_count;
            let recent = now < self.drop_next + params.interval.saturating_mul(16);
            self.count = if since > 1 && recent { since } else { 1 };
            self.drop_next = control_law(now, params.interval, self.count);
            self.last_count = self.count;
            return next;
        }
        Some(packet)
    }

    fn leave_dropping_if_empty(
        &mut self,
        now: Instant,
        params: &Params,
        largest: Bytes,
        queue: &mut Fifo,
    ) -> Option<(Waiting, bool)> {
        let next = self.take(now, params, largest, queue);
        self.dropping &= next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use machine::PacketId;

    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// A queue that always holds packets that have waited for 50 ms, one of which goes every
    /// millisecond from 1 s on: what is lost or marked, in milliseconds after the first moment.
    fn persistent(params: Params, capable: bool, moments: u64) -> (Vec<u64>, Vec<u64>) {
        let (mut codel, mut fates) = (Codel::new(params), Fates::new());
        let (mut lost, mut marked) = (Vec::new(), Vec::new());
        for k in 0..moments {
            let now = at(1_000 * MS + k * MS);
            let since = at(now.as_nanos() - 50 * MS);
            while codel.queue.len() < 10 {
                let packet = PacketId(0);
                codel.enqueue(Waiting { packet, size: Bytes(1_500), since, capable });
            }
            assert!(codel.dequeue(now, &mut fates).is_some());
            for fate in fates.drain(..) {
                match fate {
                    Fate::Lost(_) => lost.push(k),
                    Fate::Marked(_) => marked.push(k),
                }
            }
        }
        (lost, marked)
    }

    /// Section 3.3 and 5.3: the first drop comes an interval after the delay rose above the target,
    /// the n-th so long after the one before as the interval over the root of n. A line that takes a packet a
    /// millisecond sees it at the next whole one.
    fn schedule(interval: f64, n: usize) -> Vec<u64> {
        let mut at = interval;
        let mut moments = vec![interval as u64];
        for count in 1..n {
            at += interval / (count as f64).sqrt();
            moments.push(at.ceil() as u64);
        }
        moments
    }

    #[test]
    fn rfc_8289_section_5_3_the_nth_drop_comes_interval_over_root_n_later() {
        let (lost, marked) = persistent(Params::default(), true, 1_000);
        // 100, 200, 271, 329, 379, 424, 464, 502, ...
        assert_eq!(lost[..4], [100, 200, 271, 329]);
        assert_eq!(lost, schedule(100.0, lost.len()));
        assert!(marked.is_empty() && lost.len() > 25);
        let slow = Params { interval: Duration::from_millis(250), ..Params::default() };
        let (lost, _) = persistent(slow, false, 2_000);
        assert_eq!(lost, schedule(250.0, lost.len()));
    }

    #[test]
    fn where_packets_can_be_marked_they_are_marked_at_the_same_moments() {
        let params = Params { ecn: true, ..Params::default() };
        let (lost, marked) = persistent(params, true, 1_000);
        assert!(lost.is_empty());
        assert_eq!(marked, schedule(100.0, marked.len()));
        // Nothing changes for those that cannot.
        let (lost, marked) = persistent(params, false, 1_000);
        assert!(marked.is_empty());
        assert_eq!(lost, schedule(100.0, lost.len()));
    }

    #[test]
    fn the_root_is_exact_to_the_nanosecond() {
        let step = |count| control_law(Instant::ZERO, Duration::from_millis(100), count).as_nanos();
        assert_eq!((step(1), step(4), step(100)), (100 * MS, 50 * MS, 10 * MS));
        // 10^8 / sqrt(2) = 70,710,678.118..., 10^8 / sqrt(3) = 57,735,026.918...
        assert_eq!((step(2), step(3)), (70_710_678, 57_735_026));
    }

    /// A dequeue every `ms` of a queue with packets that have waited `waited` ms.
    fn hold(codel: &mut Codel, from: u64, moments: u64, waited: u64) -> Vec<u64> {
        let mut fates = Fates::new();
        let mut lost = Vec::new();
        for k in from..from + moments {
            let now = at(k * MS);
            // Those that came earlier have waited just as long.
            while codel.queue.pop().is_some() {}
            for _ in 0..10 {
                let (packet, since) = (PacketId(0), at(now.as_nanos() - waited * MS));
                codel.enqueue(Waiting { packet, size: Bytes(1_500), since, capable: false });
            }
            codel.dequeue(now, &mut fates);
            lost.extend(fates.drain(..).map(|_| k));
        }
        lost
    }

    #[test]
    fn one_packet_below_the_target_ends_it_and_a_short_pause_is_remembered() {
        let mut codel = Codel::new(Params::default());
        // Section 3: delays above the target for less than an interval are a good queue.
        assert!(hold(&mut codel, 1_000, 100, 50).is_empty());
        assert!(hold(&mut codel, 1_100, 1, 4).is_empty());
        assert!(hold(&mut codel, 1_101, 100, 50).is_empty());
        // 1201, 1301, 1372, 1430, 1480: five drops, then the delay falls.
        assert_eq!(hold(&mut codel, 1_201, 300, 50), [1_201, 1_301, 1_372, 1_430, 1_480]);
        assert!(hold(&mut codel, 1_501, 10, 1).is_empty());
        // Within 16 intervals the count goes on from where it was (section 5.5): the steps are
        // 100 / sqrt(4), 100 / sqrt(5), ... at once.
        let lost = hold(&mut codel, 1_511, 250, 50);
        assert_eq!(lost[..4], [1_611, 1_661, 1_706, 1_747]);
        // After 16 intervals it begins anew.
        assert!(hold(&mut codel, 1_761, 2_000, 1).is_empty());
        assert_eq!(hold(&mut codel, 3_761, 250, 50), [3_861, 3_961]);
    }

    #[test]
    fn a_queue_of_one_packet_is_never_too_long() {
        let mut codel = Codel::new(Params::default());
        let mut fates = Fates::new();
        for k in 0..1_000 {
            let now = at((1_000 + k) * MS);
            let since = at(k * MS);
            for packet in [PacketId(0), PacketId(1)] {
                codel.enqueue(Waiting { packet, size: Bytes(1_500), since, capable: false });
            }
            // What is left behind is not more than the largest packet.
            codel.dequeue(now, &mut fates);
            codel.queue.pop();
        }
        assert!(fates.is_empty());
    }
}
