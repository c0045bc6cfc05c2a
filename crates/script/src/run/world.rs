//! The endpoint in its time: what it has sent, and what ended it.

use std::collections::VecDeque;

use machine::{Cx, Endpoint as _, Signal};
use packet::{Flags, IpVersion, Segment};
use record::{Off, Purpose, Who};
use tcp::{Config, Endpoint, State};
use units::{Duration, Instant};

use crate::settings::Host;

/// Segments one event may make the endpoint send: more would be an endless loop.
const MOST_AT_ONCE: usize = 1 << 16;

/// A packet that the endpoint has sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) segment: Segment,
}

/// One host with at most one connection at a time.
pub(super) struct World {
    pub(super) host: Host,
    pub(super) ip: IpVersion,
    start: Instant,
    now: Instant,
    /// The connection, or the listener that waits for one.
    pub(super) connection: Option<Endpoint>,
    /// Packets that nobody has asked for yet, as they leave the card.
    pub(super) sent: VecDeque<Sent>,
    /// What ended the connection, as an application is told; taken once.
    pub(super) error: Option<&'static str>,
    /// The connection was given up or refused.
    pub(super) aborted: bool,
}

impl World {
    pub(super) fn new(host: Host, ip: IpVersion) -> Self {
        let start = Instant::ZERO;
        Self {
            host,
            ip,
            start,
            now: start,
            connection: None,
            sent: VecDeque::new(),
            error: None,
            aborted: false,
        }
    }

    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// The moment so long after the script began.
    pub(super) fn at(&self, after: Duration) -> Instant {
        self.start + after
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.now.since(self.start)
    }

    /// So long after the beginning `at` is.
    pub(super) fn script_time(&self, at: Instant) -> Duration {
        at.since(self.start)
    }

    /// Lets time pass; nothing may be due before.
    pub(super) fn reach(&mut self, at: Instant) {
        self.now = self.now.max(at);
    }

    /// A connection or a listener begins; what there was before is over.
    pub(super) fn begin(&mut self, config: Config) {
        self.connection = Some(Endpoint::new(config));
        self.error = None;
        self.aborted = false;
    }

    pub(super) fn state(&self) -> State {
        self.connection.as_ref().map_or(State::Closed, Endpoint::state)
    }

    /// Does something with the connection, and lets it send.
    pub(super) fn with<T>(
        &mut self,
        what: impl FnOnce(&mut Cx<'_, Off>, &mut Endpoint) -> T,
    ) -> Option<T> {
        let mut cx = Cx { now: self.now, who: Who::default(), rec: &mut Off };
        let result = what(&mut cx, self.connection.as_mut()?);
        self.drain("ETIMEDOUT");
        Some(result)
    }

    /// A packet arrives.
    pub(super) fn arrive(&mut self, segment: &Segment) {
        let reason = match self.state() {
            State::SynSent => "ECONNREFUSED",
            State::CloseWait => "EPIPE",
            _ => "ECONNRESET",
        };
        let mut cx = Cx { now: self.now, who: Who::default(), rec: &mut Off };
        if let Some(connection) = &mut self.connection {
            connection.handle_segment(&mut cx, segment);
            self.drain(reason);
        }
    }

    /// The next thing that happens by itself, if it does so by `until`.
    pub(super) fn step(&mut self, until: Instant) -> bool {
        let due = self.connection.as_ref().and_then(machine::Endpoint::poll_timeout);
        let Some((at, _)) = due.filter(|&(at, _)| at <= until) else { return false };
        self.now = self.now.max(at);
        let _: Option<()> = self.with(|cx, end| end.handle_timeout(cx));
        true
    }

    /// What the endpoint waits for next.
    pub(super) fn next_deadline(&self) -> Option<(Instant, Purpose)> {
        self.connection.as_ref()?.poll_timeout()
    }

    /// Takes what the endpoint sends, packet by packet, and what it says.
    fn drain(&mut self, reason: &'static str) {
        let mut cx = Cx { now: self.now, who: Who::default(), rec: &mut Off };
        let Some(connection) = &mut self.connection else { return };
        let mut slot = Segment::default();
        for _ in 0..MOST_AT_ONCE {
            if connection.poll_transmit(&mut cx, &mut slot).is_err() {
                break;
            }
            split(&slot, |segment| self.sent.push_back(Sent { at: self.now, segment }));
        }
        while let Some(signal) = connection.poll_signal() {
            if signal == Signal::Aborted {
                self.aborted = true;
                self.error = Some(reason);
            }
        }
    }
}

/// The packets a card makes of a burst: FIN and PSH on the last, CWR on the first.
fn split(burst: &Segment, mut give: impl FnMut(Segment)) {
    let size = u32::from(burst.gso_size);
    if size == 0 || burst.payload <= size {
        give(*burst);
        return;
    }
    let mut at = 0;
    while at < burst.payload {
        let payload = size.min(burst.payload - at);
        let mut flags = burst.flags;
        if at > 0 {
            flags = flags.without(Flags::CWR);
        }
        if at + payload < burst.payload {
            flags = flags.without(Flags::FIN | Flags::PSH);
        }
        let seq = units::SeqNum(burst.seq.0.wrapping_add(at));
        give(Segment { seq, payload, flags, gso_size: 0, ..*burst });
        at += payload;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_packet_by_packet() {
        let flags = Flags::ACK | Flags::PSH | Flags::CWR;
        let burst = Segment { payload: 2_500, gso_size: 1_000, flags, ..Segment::default() };
        let mut packets = Vec::new();
        split(&burst, |p| packets.push((p.seq.0, p.payload, p.flags.to_string())));
        let expected = [(0, 1_000, ".W"), (1_000, 1_000, "."), (2_000, 500, "P.")];
        assert_eq!(packets, expected.map(|(seq, len, flags)| (seq, len, flags.to_owned())));
    }
}
