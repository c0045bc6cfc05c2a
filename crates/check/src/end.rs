//! One end of a connection: what its stack and its application say, held against each other and
//! against the packets that left and came.
//!
//! Places count from 0 at the first payload byte; the FIN is one byte behind the last.

use std::collections::{BTreeMap, VecDeque};

use record::{Cause, Event, PacketNumber, Purpose, SenderState, SentKind, Waiting, Who};
use units::{Bytes, Instant, Offset, SeqNum};

use crate::arrivals::Arrivals;
use crate::recovery::Recovery;
use crate::summary::EndSummary;
use crate::traffic::Freight;
use crate::violation::{Breach, Log, Subject};
use crate::world::{Brake, Flow, Transport};

#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) who: Who,
    /// It sends the first SYN.
    opens: bool,
    ip_header: Bytes,
    pub(crate) transport: Transport,
    pub(crate) brake: Brake,
    mtu: Bytes,
    isn: Option<SeqNum>,
    pub(crate) connected: bool,
    /// What the stack has sent and the card has not yet, in order: all of one instant.
    bursts: VecDeque<Burst>,
    pub(crate) sender: Sender,
    receiver: Receiver,
}

/// What its stack has sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sender {
    pub(crate) written: u64,
    /// End of the payload ever sent, and whether the FIN followed.
    pub(crate) max: u64,
    pub(crate) fin: bool,
    pub(crate) una: u64,
    /// Congestion window as last told.
    pub(crate) cwnd: Option<u32>,
    /// All before these places was under way when the retransmission timer fired, and when a
    /// duplicate acknowledgment came or what had gone again was found lost.
    pub(crate) timed_out: u64,
    pub(crate) in_doubt: u64,
    /// The same for the moment when segments became smaller, and for bytes sent as probes.
    pub(crate) too_large: u64,
    pub(crate) probed: u64,
    /// The same for the moment when the peer was seen to have closed its window.
    pub(crate) closed: u64,
    /// Probes that a timer lets go.
    pub(crate) probes_due: u32,
    /// Packets of QUIC that may leave whatever the window: two probes for a timeout (RFC 9002
    /// section 6.2.4), one on entering recovery (section 7.3.2).
    pub(crate) beyond_window: u32,
    pub(crate) sent_again: u64,
    /// The fast recovery that runs, and whether a loss probe may leave.
    pub(crate) recovery: Option<Recovery>,
    pub(crate) loss_probe_due: bool,
    /// The reordering timer fired, and nothing has been heard or sent since.
    pub(crate) reordered: bool,
    /// Ranges sent again since the last word of the peer or of a timer.
    pub(crate) for_one_reason: BTreeMap<u64, u64>,
}

/// What has reached it.
#[derive(Debug, Clone, Default)]
struct Receiver {
    arrivals: Arrivals,
    /// Place of the peer's FIN, once it may have come.
    fin: Option<u64>,
    read: u64,
    /// What the peer had, as far as any packet that came can tell; `None` before the first.
    told: Option<u64>,
    packets: u64,
    bytes: u64,
    merged_packets: u64,
    merged_bytes: u64,
}

/// Packets that a probe timeout of QUIC may send (RFC 9002 section 6.2.4).
const PROBES: u32 = 2;

/// What the stack says it sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) kind: SentKind,
}

/// What left the stack and has not left the card.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Burst {
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// Sequence number less the initial one: the SYN is at 0, the first byte at 1. `None` if it
    /// may have any.
    pub(crate) place: Option<Offset>,
    pub(crate) sent_at: Instant,
    pub(crate) bare: bool,
    /// It may carry the FIN.
    pub(crate) fin: bool,
}

/// A packet that leaves the card.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Departure {
    pub(crate) packet: PacketNumber,
    pub(crate) seq: SeqNum,
    pub(crate) len: u32,
    pub(crate) size: u32,
    pub(crate) capable: bool,
}

impl End {
    pub(crate) fn new(who: Who, opens: bool, flow: &Flow, mtu: Bytes) -> Self {
        Self {
            who,
            opens,
            ip_header: flow.ip_header,
            transport: flow.transport,
            brake: flow.brakes[usize::from(!opens)],
            mtu,
            isn: None,
            connected: false,
            bursts: VecDeque::new(),
            sender: Sender::default(),
            receiver: Receiver::default(),
        }
    }

    pub(crate) fn summary(&self) -> EndSummary {
        let Self { sender, receiver, .. } = self;
        EndSummary {
            written: Bytes(sender.written),
            sent: Bytes(sender.max),
            sent_again: Bytes(sender.sent_again),
            acknowledged: Bytes(sender.una.min(sender.max)),
            received: Bytes(receiver.arrivals.upto()),
            read: Bytes(receiver.read),
        }
    }

    pub(crate) fn note(&self, log: &mut Log, what: Breach) {
        log.note(Subject::End(self.who), what);
    }

    pub(crate) fn finish(&self, log: &mut Log) {
        for burst in &self.bursts {
            let (at, bytes) = (Offset(burst.at), Bytes(burst.len));
            self.note(log, Breach::Kept { at, bytes });
        }
    }

    /// What was sent at an earlier instant must have departed. Within an instant a stack may send several times
    /// before the card takes the first: FreeBSD does while it processes an ACK.
    fn check_departed(&mut self, log: &mut Log) {
        while let Some(burst) = self.bursts.front().filter(|burst| burst.sent_at != log.now) {
            let (at, bytes) = (Offset(burst.at), Bytes(burst.len));
            self.note(log, Breach::Kept { at, bytes });
            self.bursts.pop_front();
        }
    }

    /// Something happened here; `peer` has arrived at the other end.
    pub(crate) fn on_event(
        &mut self,
        log: &mut Log,
        event: Event,
        state: Option<&SenderState>,
        peer: &Arrivals,
    ) {
        if state.is_some_and(|state| !state.in_recovery) {
            self.sender.recovery = None;
        }
        if matches!(
            event,
            Event::Acked { .. }
                | Event::DupAck { .. }
                | Event::PacketsAcked { .. }
                | Event::PacketLost { .. }
                | Event::Lost { .. }
                | Event::Timer(_)
                | Event::Window {
                    // A partial ACK of FreeBSD is answered before `snd_una` advances (tcp_newreno_partial_ack).
                    cause: Cause::PathMtu | Cause::LostRetransmission | Cause::Recovering,
                    ..
                }
        ) {
            self.sender.for_one_reason.clear();
        }
        if !matches!(event, Event::Sent { .. } | Event::Waiting(_) | Event::Wrote { .. }) {
            self.forget_pipe();
        }
        if matches!(event, Event::Sent { .. } | Event::Acked { .. } | Event::DupAck { .. }) {
            self.sender.reordered = false;
        }
        match event {
            Event::Connected => self.on_connected(log),
            Event::Sent { at, len, kind } => {
                self.check_departed(log);
                let sent = Sent { at: at.0, len: u64::from(len), kind };
                let burst = self.on_sent(log, &sent, state, peer);
                self.bursts.push_back(burst);
            }
            Event::Acked { una, bytes, .. } => self.on_acked(log, una.0, u64::from(bytes), state),
            // A probe may go beyond the window, and what it repeats may be under way.
            Event::DupAck { .. } | Event::Lost { .. } | Event::Timer(Purpose::LossProbe) => {
                self.sender.in_doubt = self.sender.end();
                self.sender.loss_probe_due |= event == Event::Timer(Purpose::LossProbe);
                if self.transport != Transport::Tcp {
                    // QUIC's probes may be empty (RFC 9002 section 6.2.4).
                    let probe = event == Event::Timer(Purpose::LossProbe);
                    let (probes, beyond) = if probe { (PROBES, PROBES) } else { (0, 1) };
                    self.sender.probes_due = self.sender.probes_due.max(probes);
                    // A timeout may come in the moment in which a recovery begins.
                    let allowed = self.sender.beyond_window + beyond;
                    self.sender.beyond_window = allowed.min(PROBES + 1);
                }
            }
            Event::Timer(Purpose::Reorder) => self.on_reorder_timer(),
            Event::Timer(Purpose::Retransmit) => self.sender.timed_out = self.sender.end(),
            Event::Timer(Purpose::Persist | Purpose::Keepalive) => self.sender.probes_due = 1,
            Event::Window { cwnd, cause, .. } => self.on_window(log, cwnd, cause, state),
            Event::Wrote { bytes } => {
                self.sender.written = self.sender.written.saturating_add(u64::from(bytes));
            }
            Event::Read { bytes, upto } => self.on_read(log, u64::from(bytes), upto.0),
            Event::Merged { packets, bytes } => self.on_merged(log, packets, bytes),
            Event::Waiting(Waiting::PeerWindow) => self.on_waiting(log, state),
            Event::Closed
            | Event::Aborted
            | Event::Timer(Purpose::DelayedAck | Purpose::TimeWait | Purpose::Pacing)
            | Event::Waiting(_)
            | Event::SendBuffer { .. }
            | Event::ReceiveBuffer { .. }
            | Event::Dropped { .. }
            | Event::RttSample { .. }
            | Event::Covered { .. }
            | Event::PacketsAcked { .. }
            | Event::PacketLost { .. } => {}
        }
    }

    /// What has reached it.
    pub(crate) const fn arrivals(&self) -> &Arrivals {
        &self.receiver.arrivals
    }

    /// Has a packet of the peer come?
    pub(crate) const fn has_heard(&self) -> bool {
        self.receiver.told.is_some()
    }

    fn on_connected(&mut self, log: &mut Log) {
        let at_once = self.opens && self.transport == Transport::Quic { handshake: false };
        if self.connected || !(self.has_heard() || at_once) {
            self.note(log, Breach::NotConnected);
        }
        self.connected = true;
    }

    /// RFC 9293 section 3.4: an acceptable acknowledgment covers what was sent, and no more than
    /// has reached the peer.
    fn on_acked(&mut self, log: &mut Log, una: u64, bytes: u64, state: Option<&SenderState>) {
        let before = self.sender.una;
        if una <= before || una - before != bytes {
            let (before, una, bytes) = (Offset(before), Offset(una), Bytes(bytes));
            self.note(log, Breach::BadAdvance { before, una, bytes });
        }
        let end = self.sender.end();
        if una > end {
            self.note(log, Breach::AckOfUnsent { una: Offset(una), snd_max: Offset(end) });
        }
        let told = self.receiver.told.unwrap_or(0);
        if una > told {
            self.note(log, Breach::AckTooSoon { una: Offset(una), told: Offset(told) });
        }
        self.sender.una = before.max(una);
        match state {
            Some(state) => self.check_state(log, state),
            None => self.note(log, Breach::NoState),
        }
    }

    fn on_window(&mut self, log: &mut Log, cwnd: u32, cause: Cause, state: Option<&SenderState>) {
        self.sender.cwnd = Some(cwnd);
        self.on_recovery(cause);
        match cause {
            Cause::PathMtu => self.sender.too_large = self.sender.end(),
            Cause::LostRetransmission => self.sender.in_doubt = self.sender.end(),
            _ => {}
        }
        match state {
            Some(state) => self.check_state(log, state),
            None => self.note(log, Breach::NoState),
        }
    }

    fn on_waiting(&mut self, log: &mut Log, state: Option<&SenderState>) {
        let Some(state) = state else { return };
        self.check_state(log, state);
        if state.snd_wnd == Bytes::ZERO {
            self.sender.closed = self.sender.end();
        }
    }

    fn on_read(&mut self, log: &mut Log, bytes: u64, upto: u64) {
        let (before, arrived) = (self.receiver.read, self.receiver.arrivals.upto());
        if bytes == 0 || before.checked_add(bytes) != Some(upto) {
            let (upto, before, bytes) = (Offset(upto), Offset(before), Bytes(bytes));
            self.note(log, Breach::BadRead { upto, before, bytes });
        }
        if upto > arrived {
            let (upto, arrived) = (Offset(upto), Offset(arrived));
            self.note(log, Breach::ReadTooSoon { upto, arrived });
        }
        self.receiver.read = upto;
    }

    fn on_merged(&mut self, log: &mut Log, packets: u16, bytes: u32) {
        let receiver = &mut self.receiver;
        receiver.merged_packets += u64::from(packets);
        receiver.merged_bytes += u64::from(bytes);
        if receiver.merged_packets > receiver.packets || receiver.merged_bytes > receiver.bytes {
            self.note(log, Breach::MergedFromNothing);
        }
    }

    /// A packet reaches the card whole.
    pub(crate) fn arrive(&mut self, freight: &Freight) {
        if self.brake == Brake::Credit {
            // tcp_rack_output compares the times of retransmitted segments too, at each call of rack_output.
            self.sender.for_one_reason.clear();
        }
        let receiver = &mut self.receiver;
        receiver.packets += 1;
        receiver.bytes += freight.len;
        let stop = freight.at.saturating_add(freight.len);
        if freight.len > 0 {
            receiver.arrivals.insert(freight.at, stop);
        }
        if freight.fin {
            receiver.fin = Some(stop);
        }
        receiver.told = receiver.told.max(Some(freight.had));
    }

    /// A packet leaves the card: it carries the next bytes of what the stack has just sent.
    pub(crate) fn depart(&mut self, log: &mut Log, packet: &Departure) -> Option<Freight> {
        let about = Subject::Packet(packet.packet);
        let len = u64::from(packet.len);
        // What was sent before it and did not depart never will.
        let fits = |burst: &Burst| {
            let at = burst.place.zip(self.isn).is_none_or(|(at, isn)| packet.seq == at.to_seq(isn));
            at && burst.sent_at == log.now && len <= burst.len && (len > 0 || burst.len == 0)
        };
        let kept = self.bursts.iter().position(fits).unwrap_or(0);
        for burst in self.bursts.drain(..kept) {
            let (at, bytes) = (Offset(burst.at), Bytes(burst.len));
            log.note(Subject::End(self.who), Breach::Kept { at, bytes });
        }
        let next = self.bursts.front().copied().filter(|burst| {
            burst.sent_at == log.now && len <= burst.len && (len > 0 || burst.len == 0)
        });
        let Some(burst) = next else {
            log.note(about, Breach::NeverSent);
            return None;
        };
        if let Some(place) = burst.place
            && packet.seq != place.to_seq(*self.isn.get_or_insert(packet.seq))
        {
            log.note(about, Breach::NeverSent);
        }
        self.check_size(log, packet);
        let rest = Burst {
            at: burst.at.saturating_add(len),
            len: burst.len - len,
            place: burst.place.map(|place| Offset(place.0.saturating_add(len))),
            ..burst
        };
        self.bursts.pop_front();
        if rest.len > 0 {
            self.bursts.push_front(rest);
        }
        let receiver = &self.receiver;
        let had = receiver.arrivals.upto();
        Some(Freight {
            at: burst.at,
            len,
            bare: burst.bare,
            fin: burst.fin && rest.len == 0,
            had: had + u64::from(receiver.fin == Some(had)),
        })
    }

    /// RFC 9293 section 3.1: a TCP header has 20 to 60 bytes in words of four. That of UDP has 8, a
    /// QUIC packet at least a byte of flags and one of its number.
    fn check_size(&self, log: &mut Log, packet: &Departure) {
        let (size, payload) = (u64::from(packet.size), u64::from(packet.len));
        let header = size.checked_sub(payload + self.ip_header.get());
        let fits = header.is_some_and(|n| match self.transport {
            Transport::Tcp => (20..=60).contains(&n) && n.is_multiple_of(4),
            Transport::Quic { .. } => n >= 10,
        });
        if !fits || size > self.mtu.get() {
            let (size, payload) = (Bytes(size), Bytes(payload));
            log.note(Subject::Packet(packet.packet), Breach::BadSize { size, payload });
        }
    }

    /// May it speak at all: a SYN, an answer to something, or anything once connected.
    pub(crate) fn may_speak(&self, kind: SentKind) -> bool {
        let opening = matches!(kind, SentKind::Control) && self.opens;
        let answer = matches!(kind, SentKind::Control | SentKind::Reset) && self.has_heard();
        // QUIC acknowledges packets of its handshake, and repeats them.
        let quic =
            self.transport != Transport::Tcp && matches!(kind, SentKind::Ack) && self.has_heard();
        self.connected || opening || answer || quic
    }
}

impl Sender {
    /// Behind all that was ever sent, the FIN included.
    pub(crate) const fn end(&self) -> u64 {
        self.max.saturating_add(self.fin as u64)
    }
}
