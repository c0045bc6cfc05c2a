//! What a simulated sender sends: when, how much is in flight, and what waits at the bottleneck.

use record::{Event, EventSource, Recorder, SenderState, SentKind};
use runner::stop::{self, StopFlag};
use scenario::{Overrides, load};
use sim::Observer;
use units::{Instant, Offset};

use super::WhatIfError;

/// At most one of this number of packets passes a full queue in a simulation that is not exact.
const PASSED: usize = 10;

/// The data packets of a simulated sender.
#[derive(Debug, Default)]
pub(crate) struct SendTrace {
    mss: u64,
    /// Time in ns of each data packet, in sending order, with its payload.
    packets: Vec<(u64, u64)>,
    /// Packets that were retransmitted.
    pub(crate) retransmitted: u64,
    /// Most bytes sent and not acknowledged.
    pub(crate) flight: u64,
    una: Offset,
    next: Offset,
}

impl SendTrace {
    /// Packets that wait at a bottleneck of `rate` bit/s when the first of `lost`, numbers of packets of `packet`
    /// bytes, reaches it. `None` if none wait, or if many others pass with clearly more before them.
    pub(crate) fn waiting_at_first_loss(
        &self,
        lost: &[u64],
        rate: u64,
        packet: u64,
    ) -> Option<u64> {
        let (mut at_loss, mut passed) = (None, Vec::new());
        self.queued(lost, rate, packet, |waiting, is_lost| match is_lost {
            true => at_loss = at_loss.or(Some(waiting)),
            false => passed.push(waiting),
        });
        let waiting = at_loss.filter(|&waiting| waiting > 0)?;
        let clearly_more = waiting + waiting / 4 + 1;
        let passed_above = passed.iter().filter(|&&before| before > clearly_more).count();
        (passed_above * PASSED <= passed.len()).then_some(waiting)
    }

    /// Most packets that wait at a bottleneck of `rate` bit/s before one that passes it: those numbered in `lost` do not
    /// reach it.
    pub(crate) fn most_waiting(&self, lost: &[u64], rate: u64, packet: u64) -> u64 {
        let mut most = 0;
        self.queued(lost, rate, packet, |waiting, is_lost| {
            if !is_lost {
                most = most.max(waiting);
            }
        });
        most
    }

    /// Reports of each packet of `packet` bytes how many wait before it at a bottleneck of `rate` bit/s, and whether it is
    /// one of those in `lost`, which do not wait.
    fn queued(&self, lost: &[u64], rate: u64, packet: u64, mut report: impl FnMut(u64, bool)) {
        let headers = packet.saturating_sub(self.mss);
        let (mut backlog, mut then) = (0.0_f64, 0);
        for (number, &(at, payload)) in (1_u64..).zip(&self.packets) {
            backlog = (backlog - (at - then) as f64 * rate as f64 / 8e9).max(0.0);
            then = at;
            // The packet in transmission does not wait.
            let waiting = ((backlog / packet.max(1) as f64).ceil() as u64).saturating_sub(1);
            let is_lost = lost.binary_search(&number).is_ok();
            report(waiting, is_lost);
            if !is_lost {
                backlog += (payload + headers) as f64;
            }
        }
    }
}

impl Recorder for SendTrace {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, _: Option<&SenderState>) {
        match (who.host.0, event) {
            (0, Event::Sent { at: first, len: len @ 1.., kind }) => {
                let mut left = u64::from(len);
                while left > 0 {
                    let payload = left.min(self.mss);
                    self.packets.push((at.as_nanos(), payload));
                    self.retransmitted += u64::from(matches!(kind, SentKind::Retransmission(_)));
                    left -= payload;
                }
                self.next = self.next.max(Offset(first.0 + u64::from(len)));
                self.flight = self.flight.max(self.next.0.saturating_sub(self.una.0));
            }
            (0, Event::Acked { una, .. }) => self.una = self.una.max(una),
            _ => {}
        }
    }
}

impl Observer for SendTrace {}

/// Simulates a fitted scenario, whose sender is its first host.
pub(crate) fn send_trace(
    text: &str,
    mss: u64,
    stop: StopFlag<'_>,
) -> Result<SendTrace, WhatIfError> {
    let loaded = load(text, "the fitted scenario", &Overrides::default());
    let scenario = loaded.map_err(WhatIfError::Scenario)?.scenario;
    let una = Offset(1);
    let mut trace = SendTrace { mss: mss.max(1), una, next: una, ..SendTrace::default() };
    stop::run_shared(&scenario, &mut trace, stop).map_err(WhatIfError::Run)?;
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts of packets of 1,000 B, over 8 Mbit/s: a millisecond each.
    fn trace(bursts: &[(u64, u64)]) -> SendTrace {
        let burst = |&(at, count): &(u64, u64)| (0..count).map(move |_| (at * 1_000_000, 1_000));
        SendTrace {
            mss: 1_000,
            packets: bursts.iter().flat_map(burst).collect(),
            ..SendTrace::default()
        }
    }

    #[test]
    fn packets_are_lost_where_the_queue_is_full() {
        // A queue of four packets besides the one in transmission: the sixth of a burst is lost.
        let full = trace(&[(0, 5), (20, 6), (40, 6)]);
        assert_eq!(full.waiting_at_first_loss(&[11, 17], 8_000_000, 1_000), Some(4));
        // The same losses where longer bursts pass.
        let random = trace(&[(0, 12), (20, 6), (40, 12), (60, 12)]);
        assert_eq!(random.waiting_at_first_loss(&[14, 17], 8_000_000, 1_000), None);
    }

    #[test]
    fn a_queue_holds_what_waits_before_the_packets_that_pass() {
        let sent = trace(&[(0, 5), (20, 12), (40, 6)]);
        assert_eq!(sent.most_waiting(&[], 8_000_000, 1_000), 10);
        // Those that are lost before it do not wait.
        let lost: Vec<u64> = (10..=17).collect();
        assert_eq!(sent.most_waiting(&lost, 8_000_000, 1_000), 4);
    }
}
