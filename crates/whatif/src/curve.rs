//! Progress of a transfer, recorded and simulated, and how far they differ.

use fit::FittedTransfer;
use packet::{Flags, Segment};
use record::{Event, EventSource, Recorder, Sender, SenderState};
use sim::Observer;
use units::{Instant, Offset, SeqNum};

use super::{SimulatedTransfer, course};

/// Stream offsets at which two delivery curves are compared.
const CURVE_POINTS: u64 = 50;
/// Largest mean difference of two congestion windows of one sender.
const MAX_WINDOW_MISFIT: f64 = 0.10;

/// Stream offset of point `number` of the delivery curve.
fn place(bytes: u64, number: u64) -> u64 {
    (u128::from(bytes) * u128::from(number) / u128::from(CURVE_POINTS)) as u64
}

/// Mean difference of the times at which the same bytes were delivered, as a fraction of the whole
/// time.
pub(crate) fn misfit(
    recorded: &[(u64, u64)],
    simulated: &[(u64, u64)],
    bytes: u64,
    time: u64,
) -> f64 {
    let when = |curve: &[(u64, u64)], place: u64| {
        let at = curve.partition_point(|point| point.1 < place);
        curve.get(at).or(curve.last()).map_or(0, |point| point.0)
    };
    let places = (1..=CURVE_POINTS).map(|number| place(bytes, number));
    let off: u64 = places.map(|place| when(recorded, place).abs_diff(when(simulated, place))).sum();
    off as f64 / CURVE_POINTS as f64 / time.max(1) as f64
}

/// Whether two senders have the same congestion window, of points of bytes delivered and window: the mean
/// difference at the offsets of the curve is at most a tenth of the recorded window.
pub(crate) fn windows_match(recorded: &[(u64, u64)], simulated: &[(u64, u64)], bytes: u64) -> bool {
    let at = |curve: &[(u64, u64)], place: u64| {
        let at = curve.partition_point(|point| point.0 < place);
        curve.get(at).or(curve.last()).map(|point| point.1)
    };
    let (mut off, mut points) = (0.0, 0.0);
    for place in (1..=CURVE_POINTS).map(|number| place(bytes, number)) {
        let Some((one, other)) = at(recorded, place).zip(at(simulated, place)) else {
            return false;
        };
        off += one.abs_diff(other) as f64 / one.max(1) as f64;
        points += 1.0;
    }
    points > 0.0 && off / points <= MAX_WINDOW_MISFIT
}

/// The progress of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransferProgress {
    /// Bytes delivered by time in ns.
    pub delivered: Vec<(u64, u64)>,
    /// Congestion window in bytes by bytes delivered; empty if unknown.
    pub windows: Vec<(u64, u64)>,
}

/// Delivery curve at the sender: bytes acknowledged by time, at fifty offsets and at the
/// last ACK, and the congestion window there.
#[derive(Debug, Default)]
pub struct DeliveryCurve {
    /// Length of the stream in bytes.
    bytes: u64,
    /// Sequence number of the first byte: seen at the sender's stack, where the sender is a kernel.
    first: Option<SeqNum>,
    /// Number of points reached.
    reached: u64,
    curve: Vec<(u64, u64)>,
    windows: Vec<(u64, u64)>,
    /// Times count from the first packet with data, sent then.
    from_data: bool,
    origin: u64,
    last: Option<(u64, u64)>,
    /// Bytes of the peer with which the transfer ends, the first of them on the wire, and when the sender had the last.
    answer: Option<u64>,
    first_of_peer: Option<SeqNum>,
    answered: Option<u64>,
}

impl DeliveryCurve {
    pub(crate) fn new(fitted: &dyn FittedTransfer) -> Self {
        let from_data = fitted.starts_with_data();
        let (bytes, answer) = (fitted.bytes(), fitted.answer());
        Self { bytes, from_data, answer, ..Self::default() }
    }

    /// The sender has `upto` bytes of its peer.
    fn on_received(&mut self, at: Instant, upto: u64) {
        if self.answer.is_some_and(|all| upto >= all) && self.answered.is_none() {
            self.answered = Some(at.as_nanos().saturating_sub(self.origin));
        }
    }

    /// `una` is acknowledged; the congestion window, if known.
    fn on_acked(&mut self, at: Instant, una: u64, window: Option<u64>) {
        let point = (at.as_nanos().saturating_sub(self.origin), una);
        if self.last.is_some_and(|last| una <= last.1) {
            return;
        }
        self.last = Some(point);
        let before = self.reached;
        while self.reached < CURVE_POINTS && una >= place(self.bytes, self.reached + 1) {
            self.reached += 1;
        }
        if self.reached > before {
            self.curve.push(point);
            self.windows.extend(window.map(|window| (una, window)));
        }
    }

    /// The transfer, its times those at the capture point.
    pub(crate) fn result(self, fitted: &dyn FittedTransfer) -> SimulatedTransfer {
        let mut curve = self.curve;
        curve.extend(self.last);
        let ahead = fitted.ahead();
        curve.iter_mut().for_each(|point| point.0 = point.0.saturating_sub(ahead));
        let (delivered, bytes) = curve.last().copied().unwrap_or((1, 0));
        let time = delivered.max(self.answered.unwrap_or(0).saturating_sub(ahead));
        (course(bytes, time), TransferProgress { delivered: curve, windows: self.windows })
    }
}

impl Recorder for DeliveryCurve {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        // The sender is the first host of the scenario.
        match (who.host.0, event) {
            (0, Event::Acked { una, .. }) => {
                let window = state.map(|state| state.cwnd.get());
                // The end of the stream has a number too.
                self.on_acked(at, una.0.min(self.bytes.max(1)), window);
            }
            (0, Event::AppRead { total, .. }) => self.on_received(at, total.0),
            (0, Event::Sent { len: 1.., .. }) if self.from_data && self.origin == 0 => {
                self.origin = at.as_nanos();
            }
            _ => {}
        }
    }

    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        let event = event();
        if let (0, Event::Acked { una, .. }) = (who.host.0, event) {
            return self.on_acked(at, una.0.min(self.bytes.max(1)), Some(sender.cwnd().get()));
        }
        self.record(at, who, event, None);
    }
}

impl Observer for DeliveryCurve {
    /// Only runs with kernels have a tap, at the sender's stack.
    fn tap(&mut self, at: Instant, _: usize, outbound: bool, segment: &Segment) {
        if outbound {
            if segment.flags.has(Flags::SYN) {
                self.first = Some(SeqNum(segment.seq.0.wrapping_add(1)));
            } else if segment.payload > 0 && self.from_data && self.origin == 0 {
                self.origin = at.as_nanos();
            }
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.first_of_peer = Some(SeqNum(segment.seq.0.wrapping_add(1)));
        } else if let (1.., Some(first)) = (segment.payload, self.first_of_peer) {
            let newest = Offset(self.answer.unwrap_or(0));
            let start = segment.seq.near(first, newest);
            let end = start.map(|start| start.0 + u64::from(segment.payload));
            end.into_iter().for_each(|end| self.on_received(at, end));
        }
        if let Some(first) = self.first
            && segment.flags.has(Flags::ACK)
        {
            let newest = Offset(self.last.map_or(0, |last| last.1));
            if let Some(una) = segment.ack.near(first, newest) {
                // The FIN has a number too.
                self.on_acked(at, una.0.min(self.bytes), None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_misfit_is_the_difference_of_times() {
        let recorded = [(0, 0), (1_000, 100)];
        assert!(misfit(&recorded, &recorded, 100, 1_000) < 1e-9);
        let later = [(0, 0), (1_100, 100)];
        assert!((misfit(&recorded, &later, 100, 1_000) - 0.1).abs() < 1e-9);
    }
}
