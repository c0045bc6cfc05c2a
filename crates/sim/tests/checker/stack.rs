//! One end of a connection: the segments that its stack sends and receives, and its events.
//!
//! Positions are offsets in a stream: the SYN is at 0, the first byte of payload at 1.

use std::collections::VecDeque;

use ackclock_sim as sim;
use packet::{Flags, Segment, SynOptions};
use record::{Cause, Event, Purpose, SendLimit, SentKind};
use sim::scenario::HostSpec;
use tcp::profile::{BurstRule, ReceiveBufferRule};

use super::Ranges;
use crate::common::tcp_of;

/// The packets that a burst must become: the remainder of it, and the maximum payload.
#[derive(Default)]
struct ExpectedBurst {
    seq: u32,
    left: u32,
    sent_segment: u32,
    flags: Flags,
}

pub(crate) struct EndpointChecker {
    mtu: u64,
    /// The last segment needs no room in the congestion window if it carries the FIN.
    free_fin: bool,
    /// Largest window that its receive buffer may ever advertise.
    most_window: u64,
    pub(crate) isn: Option<u32>,
    offered: SynOptions,
    pub(crate) timestamps: bool,
    burst: ExpectedBurst,
    /// Payloads that have arrived on the wire and not yet at the stack.
    arrived: VecDeque<(u32, u32)>,
    /// Highest offset sent, the SYN and the FIN counted.
    max: u64,
    /// Offset acknowledged by the peer, and the right edge of the peer's window.
    una: u64,
    may_send: u64,
    /// Offset it has acknowledged itself, and the right edge of its own window.
    acked: u64,
    edge: u64,
    ts_val: Option<u32>,
    received: Ranges,
    peer_fin: Option<u64>,
    // State reported by its events.
    cwnd: u64,
    /// Transmissions recorded and not yet seen at the tap, in order.
    last_sent: VecDeque<(u64, u32, SentKind)>,
    /// Highest offset sent when a loss was last reported: recovery rules may apply below it.
    in_doubt: u64,
    dups_in_a_row: u64,
    /// Three duplicates in a row have begun a fast recovery.
    pub(crate) three_duplicates: bool,
    pub(crate) timeouts: u64,
    pub(crate) loss_probes: u64,
    pub(crate) retransmitted: u64,
    pub(crate) wrote: u64,
    pub(crate) read: u64,
    pub(crate) waiting: Option<SendLimit>,
}

impl EndpointChecker {
    pub(crate) fn new(host: &HostSpec) -> Self {
        let profile = &tcp_of(host).profile;
        let most_buffer = match profile.receive_buffer {
            ReceiveBufferRule::FreeBsd { space, max, .. } => space.max(max).get(),
            ReceiveBufferRule::Linux { rmem, .. } => rmem[1].max(rmem[2]).get(),
            ReceiveBufferRule::Fixed { space } => space.get(),
        };
        // Roundings: to a segment at the start, to the unit of the field always.
        let rounding = u64::from(profile.mtu) + (1 << 14);
        Self {
            mtu: u64::from(profile.mtu),
            free_fin: matches!(profile.burst, BurstRule::Linux(rule) if rule.free_fin),
            most_window: most_buffer + rounding,
            isn: None,
            offered: SynOptions::default(),
            timestamps: false,
            burst: ExpectedBurst::default(),
            arrived: VecDeque::new(),
            max: 0,
            una: 0,
            may_send: 0,
            acked: 0,
            edge: 0,
            ts_val: None,
            received: Ranges::default(),
            peer_fin: None,
            cwnd: 0,
            last_sent: VecDeque::new(),
            in_doubt: 0,
            dups_in_a_row: 0,
            three_duplicates: false,
            timeouts: 0,
            loss_probes: 0,
            retransmitted: 0,
            wrote: 0,
            read: 0,
            waiting: None,
        }
    }

    pub(crate) fn on_event(&mut self, event: Event) {
        match event {
            Event::Window { cwnd, .. } => self.cwnd = u64::from(cwnd),
            Event::Sent { at, len, kind } => self.last_sent.push_back((at.0, len, kind)),
            Event::DupAck { count } => {
                self.in_doubt = self.max;
                self.dups_in_a_row = u64::from(count);
                self.three_duplicates |= count >= 3;
            }
            Event::Acked { .. } => self.dups_in_a_row = 0,
            Event::Timer(Purpose::Retransmit) => {
                self.timeouts += 1;
                self.in_doubt = self.max;
            }
            Event::Lost { .. } => self.in_doubt = self.max,
            Event::Timer(Purpose::LossProbe) => {
                self.loss_probes += 1;
                self.in_doubt = self.max;
            }
            Event::SendLimited(why) => self.waiting = Some(why),
            Event::AppWrote { bytes } => self.wrote += u64::from(bytes),
            Event::AppRead { bytes, total: upto } => {
                assert_eq!(self.read + u64::from(bytes), upto.0, "bytes skipped or read twice");
                self.read = upto.0;
                let arrived = self.received.upto(1) - 1;
                assert!(self.read <= arrived, "read up to {}, had {arrived}", self.read);
            }
            _ => {}
        }
    }

    /// A burst leaves the stack.
    pub(crate) fn stack_out(&mut self, s: &Segment) {
        assert_eq!(self.burst.left, 0, "the card withheld a part of a burst");
        let sent_segment = if s.gso_size == 0 { s.payload } else { u32::from(s.gso_size) };
        self.burst = ExpectedBurst { seq: s.seq.0, left: s.payload, sent_segment, flags: s.flags };
    }

    /// A packet leaves the card.
    pub(crate) fn wire_out(&mut self, s: &Segment) {
        let burst = &mut self.burst;
        assert_eq!(
            (s.seq.0, s.payload),
            (burst.seq, burst.left.min(burst.sent_segment)),
            "a bad split"
        );
        burst.seq = burst.seq.wrapping_add(s.payload);
        burst.left -= s.payload;
        let only_on_last = Flags::PSH | Flags::FIN;
        let expected =
            if burst.left == 0 { burst.flags } else { burst.flags.without(only_on_last) };
        assert_eq!(s.flags, expected);
        let size = s.wire_len().get();
        assert!(size <= self.mtu, "a packet of {size} bytes");
    }

    pub(crate) fn wire_in(&mut self, s: &Segment) {
        if s.payload > 0 {
            self.arrived.push_back((s.seq.0, s.payload));
        }
    }

    /// A segment, possibly merged, reaches the stack: bytes in the order of arrival.
    pub(crate) fn stack_in(&mut self, s: &Segment) {
        let (mut at, mut left) = (s.seq.0, s.payload);
        while left > 0 {
            let (seq, len) = self.arrived.pop_front().expect("merged out of thin air");
            assert_eq!(seq, at, "merged out of order");
            at = at.wrapping_add(len);
            left = left.checked_sub(len).expect("a packet was cut");
        }
    }
}

/// Returns the offset nearest to `anchor` that has this sequence number.
fn unwrap(number: u32, isn: u32, anchor: u64) -> u64 {
    let ahead = number.wrapping_sub(isn).wrapping_sub(anchor as u32) as i32;
    anchor.checked_add_signed(i64::from(ahead)).expect("a sequence number before the stream")
}

/// Checks that involve both ends of a connection.
pub(crate) struct ConnectionChecker;

impl ConnectionChecker {
    fn scale(ends: &[EndpointChecker; 2], of: usize) -> u32 {
        let [a, b] = [ends[of].offered.window_scale, ends[1 - of].offered.window_scale];
        u32::from(b.and(a).unwrap_or(0))
    }

    fn mss(ends: &[EndpointChecker; 2]) -> u64 {
        let least = ends[0].offered.mss.min(ends[1].offered.mss);
        let stamped = ends[0].timestamps && ends[1].timestamps;
        u64::from(least) - if stamped { 12 } else { 0 }
    }

    pub(crate) fn stack_out(
        ends: &mut [EndpointChecker; 2],
        me: usize,
        peer_isn: Option<u32>,
        s: &Segment,
    ) {
        let syn = s.flags.has(Flags::SYN);
        if s.flags.has(Flags::RST) {
            let last_sent = ends[me].last_sent.pop_front().expect("sent without an event");
            assert_eq!(last_sent.2, SentKind::Reset);
            return;
        }
        if let Some(options) = s.syn_options() {
            ends[me].isn = Some(s.seq.0);
            ends[me].offered = *options;
            ends[me].timestamps = s.timestamps.is_some();
        }
        let isn = ends[me].isn.expect("a connection starts with a SYN");
        let scale = if syn { 0 } else { Self::scale(ends, me) };
        let mss = if syn { 0 } else { Self::mss(ends) };
        let end = &mut ends[me];
        if let Some(stamps) = s.timestamps {
            let last = end.ts_val.replace(stamps.val).unwrap_or(stamps.val);
            assert!(stamps.val.wrapping_sub(last) as i32 >= 0, "the timestamp ran back");
        }
        if s.flags.has(Flags::ACK) {
            let ack = unwrap(s.ack.0, peer_isn.unwrap(), end.acked);
            assert!(ack >= end.acked, "the ACK number went back from {} to {ack}", end.acked);
            end.acked = ack;
            let have = end.received.upto(1);
            let have = have + u64::from(end.peer_fin == Some(have));
            assert!(ack <= have, "acknowledged {ack}, had {have}");
            let window = u64::from(s.window) << scale;
            assert!(window <= end.most_window, "a window of {window} bytes");
            let edge = ack + window;
            assert!(edge >= end.edge, "the window's right edge went back from {}", end.edge);
            end.edge = edge;
        }
        let start = unwrap(s.seq.0, isn, end.max);
        let stop = start + u64::from(s.seq_len());
        let (at, mut len, kind) = end.last_sent.pop_front().expect("sent without an event");
        if 0 < s.payload && s.payload < len {
            // Linux has split a burst for a card without TSO.
            let rest = (at + u64::from(s.payload), len - s.payload, kind);
            end.last_sent.push_front(rest);
            len = s.payload;
        }
        assert_eq!(
            (at, len),
            (start.saturating_sub(1), s.payload),
            "the event differs from the segment"
        );
        if start == stop {
            // A pure ACK carries the next sequence number, a window probe an old one.
            assert_eq!(kind == SentKind::Ack, start == end.max, "an empty {kind:?} at {start}");
            return;
        }
        if !syn {
            Self::check_sent(end, s, mss, (start, stop), kind);
        }
        end.max = end.max.max(stop);
    }

    /// Checks that the bytes or FIN sent are due, and for a valid reason.
    fn check_sent(
        end: &mut EndpointChecker,
        s: &Segment,
        mss: u64,
        (start, stop): (u64, u64),
        kind: SentKind,
    ) {
        let last_byte = start + u64::from(s.payload);
        assert!(u64::from(s.payload) <= mss || u64::from(s.gso_size) == mss, "not by MSS");
        assert!(last_byte - 1 <= end.wrote, "sent {last_byte}, wrote {}", end.wrote);
        assert!(start <= end.max, "a gap in what is sent");
        if kind == SentKind::Probe {
            assert_eq!((s.payload, start), (1, end.una), "a strange probe");
            return;
        }
        if start < end.max {
            end.retransmitted += 1;
            match kind {
                SentKind::Retransmission(Cause::Timeout) => assert!(end.timeouts > 0),
                SentKind::Retransmission(
                    Cause::FastRetransmit | Cause::PartialAck | Cause::LossProbe,
                ) => {
                    assert!(start < end.in_doubt);
                }
                // The byte of a probe, which the receiver need not have accepted.
                SentKind::Retransmission(Cause::WindowProbe) => end.retransmitted -= 1,
                // FreeBSD repeats an unacknowledged FIN in the ACKs it sends meanwhile.
                SentKind::Ack if s.payload == 0 => end.retransmitted -= 1,
                _ => panic!("retransmitted as {kind:?}: {start}..{stop} of {}", end.max),
            }
        } else {
            let expected = if s.payload > 0 { SentKind::New } else { SentKind::Control };
            assert_eq!(kind, expected);
        }
        if last_byte > end.max {
            let flight = last_byte - end.una;
            // Limited transmit (RFC 3042).
            let window = end.cwnd + end.dups_in_a_row.min(2) * mss;
            let recovering = end.una < end.in_doubt;
            let free = end.free_fin && s.flags.has(Flags::FIN) && u64::from(s.payload) <= mss;
            assert!(
                recovering || free || flight <= window,
                "a flight of {flight}, cwnd {}",
                end.cwnd
            );
            let edge = end.may_send;
            assert!(last_byte <= edge, "sent up to {last_byte}, the peer's window ends at {edge}");
        }
    }

    pub(crate) fn stack_in(ends: &mut [EndpointChecker; 2], from: usize, s: &Segment) {
        let me = 1 - from;
        let syn = s.flags.has(Flags::SYN);
        let scale = if syn { 0 } else { Self::scale(ends, from) };
        let peer_isn = ends[from].isn.unwrap();
        let end = &mut ends[me];
        let start = unwrap(s.seq.0, peer_isn, end.received.upto(1)) + u64::from(syn);
        let stop = start + u64::from(s.payload);
        end.received.insert(start, stop);
        if s.flags.has(Flags::FIN) {
            end.peer_fin = Some(stop);
        }
        if s.flags.has(Flags::ACK) {
            let ack = unwrap(s.ack.0, end.isn.unwrap(), end.una);
            end.una = end.una.max(ack);
            end.may_send = end.may_send.max(ack + (u64::from(s.window) << scale));
        }
    }
}
