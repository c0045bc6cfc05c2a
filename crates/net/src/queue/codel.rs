//! CoDel, controlled delay (RFC 8289): drops packets by their sojourn time.
//!
//! Follows the pseudocode of section 5 in whole nanoseconds; the control law takes the exact square
//! root, rounded down to the nanosecond, where Linux uses a 16-bit reciprocal. ECN marking follows
//! Linux (codel_impl.h): an ECN-capable packet is marked and sent in place of a drop.

use machine::PacketAction;
use units::{Bytes, Duration, Instant};

use super::{Fifo, QueueArrival, QueueDiscipline, QueueOutcomes, QueueSite, QueuedPacket};

/// Parameters of CoDel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDelParams {
    /// Acceptable standing queue delay (RFC 8289 section 4.3).
    pub target: Duration,
    /// Time that the delay must exceed `target` before the first drop, on the order of the largest
    /// round-trip time (RFC 8289 section 4.2).
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for CoDelParams {
    /// Sections 4.2 and 4.3; ECN marking is off, as in Linux.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

/// A CoDel queue.
#[derive(Debug, Clone)]
pub(crate) struct CoDel {
    pub(super) queue: Fifo,
    params: CoDelParams,
    control: CoDelState,
    largest: Bytes,
}

impl QueueDiscipline for CoDel {
    type Params = CoDelParams;

    fn create(params: CoDelParams, _site: &QueueSite<'_>) -> Self {
        Self::new(params)
    }

    fn take(&mut self, arrival: &QueueArrival<'_>, _fates: &mut QueueOutcomes) -> bool {
        let room = arrival.fits(&self.queue);
        if room {
            self.enqueue(arrival.packet);
        }
        room
    }

    fn give(&mut self, now: Instant, fates: &mut QueueOutcomes) -> Option<QueuedPacket> {
        self.dequeue(now, fates)
    }
}

impl CoDel {
    pub(super) const fn new(params: CoDelParams) -> Self {
        Self {
            queue: Fifo::new(),
            params,
            control: CoDelState::new(),
            largest: Bytes(LEAST_PACKET),
        }
    }

    pub(super) fn enqueue(&mut self, packet: QueuedPacket) {
        self.largest = self.largest.max(packet.size);
        self.queue.push(packet);
    }

    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        fates: &mut QueueOutcomes,
    ) -> Option<QueuedPacket> {
        let (params, queue) = (&self.params, &mut self.queue);
        self.control.dequeue(now, params, self.largest, queue, fates)
    }
}

/// Initial `maxpacket` of section 5.2, before larger packets were seen; the pseudocode uses the
/// interface MTU, which a link does not have.
pub(super) const LEAST_PACKET: u64 = 512;

/// State of the control loop; names as in section 5.2.
#[derive(Debug, Clone)]
pub(super) struct CoDelState {
    /// When the delay will have exceeded the target for an interval; `None` while it does not.
    first_above: Option<Instant>,
    /// Time of the next drop.
    drop_next: Instant,
    /// Drops since the dropping state was entered.
    pub(super) count: u64,
    /// `count` when the dropping state was entered.
    last_count: u64,
    dropping: bool,
}

/// Returns `t` plus the interval over the square root of `count` (section 5.3).
fn control_law(t: Instant, interval: Duration, count: u64) -> Instant {
    let interval = u128::from(interval.as_nanos());
    // The floor of the root of the floor equals the floor of the root.
    let step = (interval * interval / u128::from(count.max(1))).isqrt();
    t + Duration::from_nanos(u64::try_from(step).unwrap_or(u64::MAX))
}

impl CoDelState {
    pub(super) const fn new() -> Self {
        Self {
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// Returns the next packet, and whether it may be dropped (`dodequeue`, section 5.4).
    fn do_dequeue(
        &mut self,
        now: Instant,
        params: &CoDelParams,
        largest: Bytes,
        queue: &mut Fifo,
    ) -> Option<(QueuedPacket, bool)> {
        let Some(packet) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        let waited = now.since(packet.enqueued_at);
        if waited < params.target || queue.bytes() <= largest {
            // The delay is below the target, or too few bytes remain to keep the line busy.
            self.first_above = None;
            return Some((packet, false));
        }
        let at = *self.first_above.get_or_insert(now + params.interval);
        Some((packet, now >= at))
    }

    /// Returns the packet to send at `now` (`dequeue`, section 5.5).
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        params: &CoDelParams,
        largest: Bytes,
        queue: &mut Fifo,
        fates: &mut QueueOutcomes,
    ) -> Option<QueuedPacket> {
        let (mut packet, mut late) = self.leave_dropping_if_empty(now, params, largest, queue)?;
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if params.ecn && packet.ecn.is_capable() {
                    fates.push_back(PacketAction::Marked(packet.packet));
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                    break;
                }
                fates.push_back(PacketAction::Dropped(packet.packet));
                (packet, late) = self.leave_dropping_if_empty(now, params, largest, queue)?;
                self.dropping = late;
                if late {
                    self.drop_next = control_law(self.drop_next, params.interval, self.count);
                }
            }
        } else if late {
            let next = if params.ecn && packet.ecn.is_capable() {
                fates.push_back(PacketAction::Marked(packet.packet));
                Some(packet)
            } else {
                fates.push_back(PacketAction::Dropped(packet.packet));
                self.do_dequeue(now, params, largest, queue).map(|(packet, _)| packet)
            };
            self.dropping = true;
            // Shortly after the last dropping state, resume from the drop rate that controlled the
            // queue.
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
        params: &CoDelParams,
        largest: Bytes,
        queue: &mut Fifo,
    ) -> Option<(QueuedPacket, bool)> {
        let next = self.do_dequeue(now, params, largest, queue);
        self.dropping &= next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use machine::PacketId;

    use units::Ecn;

    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// A queue that always holds packets with a sojourn time of 50 ms, one of which is dequeued
    /// every millisecond from 1 s on. Returns drops and marks, in milliseconds after the first
    /// dequeue.
    fn persistent(params: CoDelParams, capable: bool, moments: u64) -> (Vec<u64>, Vec<u64>) {
        let (mut codel, mut fates) = (CoDel::new(params), QueueOutcomes::new());
        let (mut lost, mut marked) = (Vec::new(), Vec::new());
        for k in 0..moments {
            let now = at(1_000 * MS + k * MS);
            let since = at(now.as_nanos() - 50 * MS);
            while codel.queue.len() < 10 {
                let packet = PacketId(0);
                codel.enqueue(QueuedPacket {
                    packet,
                    size: Bytes(1_500),
                    enqueued_at: since,
                    ecn: if capable { Ecn::Ect0 } else { Ecn::NotEct },
                });
            }
            assert!(codel.dequeue(now, &mut fates).is_some());
            for fate in fates.drain(..) {
                match fate {
                    PacketAction::Dropped(_) => lost.push(k),
                    PacketAction::Marked(_) => marked.push(k),
                }
            }
        }
        (lost, marked)
    }

    /// Section 3.3 and 5.3: the first drop is one interval after the delay exceeded the target, the
    /// n-th is interval / sqrt(n) after its predecessor. A line that dequeues a packet per
    /// millisecond drops at the next whole one.
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
    fn rfc_8289_section_5_3_the_nth_drop_follows_after_interval_over_root_n() {
        let (lost, marked) = persistent(CoDelParams::default(), true, 1_000);
        // 100, 200, 271, 329, 379, 424, 464, 502, ...
        assert_eq!(lost[..4], [100, 200, 271, 329]);
        assert_eq!(lost, schedule(100.0, lost.len()));
        assert!(marked.is_empty() && lost.len() > 25);
        let slow = CoDelParams { interval: Duration::from_millis(250), ..CoDelParams::default() };
        let (lost, _) = persistent(slow, false, 2_000);
        assert_eq!(lost, schedule(250.0, lost.len()));
    }

    #[test]
    fn ecn_capable_packets_are_marked_at_the_times_of_the_drops() {
        let params = CoDelParams { ecn: true, ..CoDelParams::default() };
        let (lost, marked) = persistent(params, true, 1_000);
        assert!(lost.is_empty());
        assert_eq!(marked, schedule(100.0, marked.len()));
        // Packets that are not ECN-capable are dropped as before.
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

    /// Dequeues once per ms from a queue of packets with a sojourn time of `waited` ms; returns the
    /// drops.
    fn hold(codel: &mut CoDel, from: u64, moments: u64, waited: u64) -> Vec<u64> {
        let mut fates = QueueOutcomes::new();
        let mut lost = Vec::new();
        for k in from..from + moments {
            let now = at(k * MS);
            // Packets that arrived earlier have waited just as long.
            while codel.queue.pop().is_some() {}
            for _ in 0..10 {
                let (packet, since) = (PacketId(0), at(now.as_nanos() - waited * MS));
                codel.enqueue(QueuedPacket {
                    packet,
                    size: Bytes(1_500),
                    enqueued_at: since,
                    ecn: Ecn::NotEct,
                });
            }
            codel.dequeue(now, &mut fates);
            lost.extend(fates.drain(..).map(|_| k));
        }
        lost
    }

    #[test]
    fn one_packet_below_the_target_ends_dropping_and_a_short_pause_keeps_the_count() {
        let mut codel = CoDel::new(CoDelParams::default());
        // Section 3: delays above the target for less than an interval are a good queue.
        assert!(hold(&mut codel, 1_000, 100, 50).is_empty());
        assert!(hold(&mut codel, 1_100, 1, 4).is_empty());
        assert!(hold(&mut codel, 1_101, 100, 50).is_empty());
        // 1201, 1301, 1372, 1430, 1480: five drops, then the delay falls.
        assert_eq!(hold(&mut codel, 1_201, 300, 50), [1_201, 1_301, 1_372, 1_430, 1_480]);
        assert!(hold(&mut codel, 1_501, 10, 1).is_empty());
        // Within 16 intervals the count resumes from its last value (section 5.5): the steps are
        // 100 / sqrt(4), 100 / sqrt(5), ... at once.
        let lost = hold(&mut codel, 1_511, 250, 50);
        assert_eq!(lost[..4], [1_611, 1_661, 1_706, 1_747]);
        // After 16 intervals it restarts.
        assert!(hold(&mut codel, 1_761, 2_000, 1).is_empty());
        assert_eq!(hold(&mut codel, 3_761, 250, 50), [3_861, 3_961]);
    }

    #[test]
    fn a_queue_of_one_packet_is_never_too_long() {
        let mut codel = CoDel::new(CoDelParams::default());
        let mut fates = QueueOutcomes::new();
        for k in 0..1_000 {
            let now = at((1_000 + k) * MS);
            let since = at(k * MS);
            for packet in [PacketId(0), PacketId(1)] {
                codel.enqueue(QueuedPacket {
                    packet,
                    size: Bytes(1_500),
                    enqueued_at: since,
                    ecn: Ecn::NotEct,
                });
            }
            // The rest of the queue is no larger than the largest packet.
            codel.dequeue(now, &mut fates);
            codel.queue.pop();
        }
        assert!(fates.is_empty());
    }
}
