//! Messages that the two hosts exchange on bidirectional streams, and the time that each host lets pass before its
//! own.
//!
//! A turn begins with the first new stream bytes after those of the other host. Before a turn of this host it thinks
//! from the last byte received on. Before one of the peer, the peer thinks from the acknowledgment of the last byte
//! sent on, so that the path does not count. Unidirectional streams are those of HTTP/3's control and do not count.

use units::Duration;

use super::clock::LogEvent;
use super::record::{QuicFrame, QuicPacketRecord};

/// Longest wait that counts as work: users take longer, and players of media fetch a second or more at a time.
pub(super) const LONGEST_WAIT: u64 = 900_000_000;

/// Waits before the messages of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicWaits {
    /// Number of turns with a wait before them that the log shows.
    pub count: u64,
    /// Their sum, in ns.
    pub total: u64,
    /// The longest, in ns.
    pub longest: u64,
    /// Waits longer than 900 ms: their number and sum.
    pub rests: (u64, u64),
    /// Begin of the first and end of the last wait, in ns.
    pub interval: (u64, u64),
    /// First and last event.
    pub events: (u64, u64),
}

impl QuicWaits {
    fn add(&mut self, wait: u64, now: LogEvent) {
        let from = now.ns().saturating_sub(wait);
        if self.count == 0 {
            (self.interval.0, self.events.0) = (from, now.index);
        }
        (self.interval.1, self.events.1) = (now.ns(), now.index);
        self.count += 1;
        self.total += wait;
        self.longest = self.longest.max(wait);
        if wait > LONGEST_WAIT {
            self.rests.0 += 1;
            self.rests.1 += wait;
        }
    }
}

/// What the hosts waited for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicExchange {
    /// Waits of this host and of the peer before their messages.
    pub waits: [QuicWaits; 2],
    /// Quiet time of this host within its messages: no limit held it, and it had not ended. Without rests.
    pub pauses: u64,
    /// Number of those pauses.
    pub pause_count: u64,
    /// Quiet time between two parts of a message that was longer than 900 ms.
    pub pause_rests: u64,
    /// Turns of this host at least half of the shortest round trip apart: requests at once are one.
    pub rounds: u64,
    /// Messages of this host, by turns and by pauses within them.
    pub messages: u64,
}

impl QuicExchange {
    /// Waits of this host before its messages.
    pub const fn local(&self) -> &QuicWaits {
        &self.waits[0]
    }

    /// Waits of the peer before its messages.
    pub const fn remote(&self) -> &QuicWaits {
        &self.waits[1]
    }
}

/// Most messages that are kept.
const MOST_MESSAGES: usize = 4_000;

/// A message of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicMessage {
    /// It is of the host of the log.
    pub is_local: bool,
    /// Its stream bytes.
    pub bytes: u64,
    /// Wait before it, in ns: since the last byte of the other host's message, or since its host began the one before.
    pub after: u64,
    /// Time in ns before it in which nothing but the application held its host, if it follows one of the same.
    pub quiet: u64,
    /// Of the peer: it came before an answer to the last data of this host could.
    pub is_amid: bool,
}

/// Whose bytes were the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LastMessage {
    #[default]
    None,
    Local,
    Remote,
}

/// Follows the messages of both hosts.
#[derive(Debug, Default)]
pub(super) struct ExchangeMeter {
    pub(super) out: QuicExchange,
    last: LastMessage,
    local_at: u64,
    remote_at: u64,
    /// Number of the packet with the last bytes sent, and when all of them were acknowledged.
    last_number: Option<u64>,
    acked_at: Option<u64>,
    /// Quiet time since the last bytes sent.
    quiet: u64,
    /// When the last round began.
    round_at: Option<u64>,
    /// The messages, if they are few enough, and when the last one began.
    messages: Vec<QuicMessage>,
    begun: u64,
    is_partial: bool,
}

/// Stream bytes of a packet on bidirectional streams.
fn message_bytes(packet: &QuicPacketRecord<'_>) -> u64 {
    let bytes = packet.frames.iter().map(|frame| match *frame {
        QuicFrame::Stream { id, length, .. } if id & 2 == 0 => length,
        _ => 0,
    });
    bytes.fold(0, u64::saturating_add)
}

/// Whether a packet has stream bytes of a bidirectional stream.
fn has_message(packet: &QuicPacketRecord<'_>) -> bool {
    let is_data = |frame: &QuicFrame| matches!(*frame, QuicFrame::Stream { id, length, .. } if id & 2 == 0 && length > 0);
    packet.frames.iter().any(is_data)
}

impl ExchangeMeter {
    /// Time in which nothing but the application held the sender.
    pub(super) const fn on_quiet(&mut self, ns: u64) {
        self.quiet += ns;
    }

    /// Packets were lost, or a timer fired for their acknowledgment: the sender had something to send.
    pub(super) const fn on_loss(&mut self) {
        self.quiet = 0;
    }

    /// The messages; `None` if there were too many.
    pub(super) fn take_messages(&mut self) -> Option<Vec<QuicMessage>> {
        (!self.is_partial).then(|| core::mem::take(&mut self.messages))
    }

    /// A message begins.
    fn begin(&mut self, now: LogEvent, message: QuicMessage) {
        self.begun = now.ns();
        self.is_partial |= self.messages.len() >= MOST_MESSAGES;
        if !self.is_partial {
            self.messages.push(message);
        }
    }

    /// A packet is sent with `new` stream bytes that were not sent before.
    pub(super) fn sent(
        &mut self,
        now: LogEvent,
        packet: &QuicPacketRecord<'_>,
        new: u64,
        min_rtt: Option<Duration>,
    ) {
        if new == 0 || !has_message(packet) {
            return;
        }
        let after = match self.last {
            LastMessage::None => Some(0),
            LastMessage::Remote => Some(now.ns().saturating_sub(self.remote_at)),
            LastMessage::Local => (self.quiet > 0).then(|| now.ns().saturating_sub(self.begun)),
        };
        match (after, self.messages.last_mut()) {
            (Some(after), _) => {
                let quiet = if self.last == LastMessage::Local { self.quiet } else { 0 };
                let message =
                    QuicMessage { is_local: true, after, quiet, ..QuicMessage::default() };
                self.begin(now, QuicMessage { bytes: new, ..message });
            }
            (None, Some(last)) => last.bytes = last.bytes.saturating_add(new),
            (None, None) => {}
        }
        match self.last {
            LastMessage::None => self.out.messages += 1,
            LastMessage::Remote => {
                self.out.messages += 1;
                let least = min_rtt.map_or(0, Duration::as_nanos) / 2;
                if self.round_at.is_none_or(|at| now.ns() >= at + least) {
                    self.out.rounds += 1;
                    self.round_at = Some(now.ns());
                }
                self.out.waits[0].add(now.ns().saturating_sub(self.remote_at), now);
            }
            LastMessage::Local if self.quiet > LONGEST_WAIT => {
                self.out.messages += 1;
                self.out.pause_rests += self.quiet;
            }
            LastMessage::Local if self.quiet > 0 => {
                self.out.messages += 1;
                self.out.pauses += self.quiet;
                self.out.pause_count += 1;
            }
            LastMessage::Local => {}
        }
        (self.last, self.local_at, self.quiet) = (LastMessage::Local, now.ns(), 0);
        (self.last_number, self.acked_at) = (packet.number, None);
    }

    /// What is sent next answers a message of unknown size that came at `received`, in ns, after all that was sent before had
    /// been acknowledged at `acked`.
    pub(super) fn answered(&mut self, now: LogEvent, received: u64, acked: u64) {
        if self.last != LastMessage::Local {
            return;
        }
        let after = received.saturating_sub(acked.max(self.local_at));
        self.begin(now, QuicMessage { bytes: 1, after, ..QuicMessage::default() });
        self.out.waits[1].add(after, now);
        (self.last, self.remote_at, self.quiet) = (LastMessage::Remote, received, 0);
    }

    /// A packet is received.
    pub(super) fn received(
        &mut self,
        now: LogEvent,
        packet: &QuicPacketRecord<'_>,
        min_rtt: Option<Duration>,
    ) {
        let is_last =
            |number: u64| packet.acked.iter().any(|&(from, to)| (from..=to).contains(&number));
        // An eighth of a round trip for the resolution of times.
        let least = min_rtt.map_or(0, Duration::as_nanos);
        let least = least - least / 8;
        let is_amid =
            self.last == LastMessage::Local && now.ns().saturating_sub(self.local_at) < least;
        if self.acked_at.is_none() && self.last_number.is_some_and(is_last) {
            // The peer had it before, by the delay that it reports.
            self.acked_at = Some(now.ns().saturating_sub(packet.ack_delay.unwrap_or(0)));
        }
        if !has_message(packet) {
            return;
        }
        let bytes = message_bytes(packet);
        match (self.last, self.messages.last_mut()) {
            (LastMessage::Remote, Some(last)) => last.bytes = last.bytes.saturating_add(bytes),
            (last, _) => {
                let since = self.acked_at.unwrap_or(now.ns()).max(self.local_at);
                let after = match last {
                    LastMessage::Local => now.ns().saturating_sub(since),
                    _ => 0,
                };
                self.begin(now, QuicMessage { bytes, after, is_amid, ..QuicMessage::default() });
            }
        }
        if self.last == LastMessage::Local {
            let since = self.acked_at.unwrap_or(now.ns()).max(self.local_at);
            self.out.waits[1].add(now.ns().saturating_sub(since), now);
        }
        (self.last, self.remote_at) = (LastMessage::Remote, now.ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn data() -> [QuicFrame; 1] {
        [QuicFrame::Stream { id: 0, offset: 0, length: 100, fin: false }]
    }

    #[test]
    fn a_host_waits_from_the_last_byte_of_the_other_on() {
        let mut meter = ExchangeMeter::default();
        let frames = data();
        let packet = |number| QuicPacketRecord {
            number: Some(number),
            frames: &frames,
            ..QuicPacketRecord::default()
        };
        let at = |ms: u64| LogEvent::new(ms * MS, ms);
        meter.sent(at(0), &packet(0), 100, None);
        // Its ACK after a round trip of 30 ms, the answer 50 ms later.
        let ack =
            QuicPacketRecord { has_ack: true, acked: &[(0, 0)], ..QuicPacketRecord::default() };
        meter.received(at(30), &ack, None);
        meter.received(at(80), &packet(7), None);
        assert_eq!(meter.out.remote().total, 50 * MS);
        meter.sent(at(480), &packet(1), 100, None);
        assert_eq!((meter.out.local().count, meter.out.local().total), (1, 400 * MS));
        // A retransmission is no message.
        meter.sent(at(500), &packet(2), 0, None);
        // Two parts of a message with a pause, and a rest.
        meter.on_quiet(60 * MS);
        meter.sent(at(560), &packet(3), 100, None);
        meter.on_quiet(3_000 * MS);
        meter.sent(at(3_560), &packet(4), 100, None);
        assert_eq!((meter.out.pauses, meter.out.pause_rests), (60 * MS, 3_000 * MS));
        assert_eq!(meter.out.messages, 4);
        let messages = meter.take_messages().unwrap();
        let waits: Vec<_> = messages.iter().map(|one| (one.is_local, one.after / MS)).collect();
        assert_eq!(waits, [(true, 0), (false, 50), (true, 400), (true, 80), (true, 3_000)]);
    }

    #[test]
    fn a_delayed_ack_is_no_part_of_the_wait_of_the_peer() {
        let mut meter = ExchangeMeter::default();
        let frames = data();
        let packet =
            QuicPacketRecord { number: Some(0), frames: &frames, ..QuicPacketRecord::default() };
        meter.sent(LogEvent::new(0, 1), &packet, 100, None);
        let acked = QuicPacketRecord {
            has_ack: true,
            acked: &[(0, 0)],
            ack_delay: Some(25 * MS),
            ..QuicPacketRecord::default()
        };
        meter.received(LogEvent::new(55 * MS, 2), &acked, None);
        meter.received(LogEvent::new(130 * MS, 3), &packet, None);
        // It arrived after half of a round trip of 30 ms, and the answer left 100 ms later.
        assert_eq!(meter.out.remote().total, 100 * MS);
    }

    #[test]
    fn an_answer_that_comes_with_the_ack_waited_for_nothing() {
        let mut meter = ExchangeMeter::default();
        let frames = data();
        let packet =
            QuicPacketRecord { number: Some(0), frames: &frames, ..QuicPacketRecord::default() };
        meter.sent(LogEvent::new(0, 1), &packet, 100, None);
        let answer = QuicPacketRecord { has_ack: true, acked: &[(0, 0)], ..packet };
        meter.received(LogEvent::new(900 * MS, 2), &answer, None);
        assert_eq!((meter.out.remote().count, meter.out.remote().total), (1, 0));
    }
}
