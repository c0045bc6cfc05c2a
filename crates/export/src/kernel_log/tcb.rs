//! The control block of an endpoint, reconstructed from its events and packets.

use packet::wire::Endpoints;
use packet::{Dir, Flags, Segment};
use record::{Cause, Event, EventSource, SenderState};
use sim::scenario::{Scenario, TcpStack};
use tcp::profile::ReceiveBufferRule;
use trace::bblog::{TcpLogBuffer, flags, t_flags};
use units::ratio::scaled;
use units::{Bytes, Duration, Instant, Offset};

use super::LoggedEndpoint;
use crate::capture;

/// States of tcp_fsm.h.
pub(super) mod state {
    pub(in super::super) const CLOSED: u32 = 0;
    pub(in super::super) const LISTEN: u32 = 1;
    pub(in super::super) const SYN_SENT: u32 = 2;
    pub(in super::super) const SYN_RECEIVED: u32 = 3;
    pub(in super::super) const ESTABLISHED: u32 = 4;
    pub(in super::super) const CLOSE_WAIT: u32 = 5;
    pub(in super::super) const FIN_WAIT_1: u32 = 6;
    pub(in super::super) const CLOSING: u32 = 7;
    pub(in super::super) const LAST_ACK: u32 = 8;
    pub(in super::super) const FIN_WAIT_2: u32 = 9;
    pub(in super::super) const TIME_WAIT: u32 = 10;
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// A window or threshold not yet set: TCP_MAXWIN << TCP_MAX_WINSHIFT (tcp_newtcpcb).
const UNSET: u32 = 65_535 << 14;
/// Units per tick in `t_srtt` (TCP_RTT_SCALE).
const RTT_SCALE: u64 = 32;

/// The logged fields of the kernel's control block.
#[derive(Debug, Clone)]
pub(super) struct LoggedTcb {
    side: LoggedEndpoint,
    hz: u64,
    phase: Duration,
    pub(super) state: u32,
    /// The sender's state after the last event; changes by an outgoing packet are in `after` until
    /// the packet is seen.
    pub(super) sender: SenderState,
    after: Option<SenderState>,
    iss: u32,
    irs: u32,
    syn_acked: bool,
    flags: u32,
    dup_acks: u32,
    /// Sequence and acknowledgment number of the last window update (snd_wl1, snd_wl2).
    window_update: [u32; 2],
    recover: u32,
    pub(super) snd_scale: u8,
    pub(super) rcv_scale: u8,
    /// Window scales of our SYN and the peer's; in effect if both are present.
    offered: [Option<u8>; 2],
    /// Options of our SYN and of the peer's as t_flags.
    requested: [u32; 2],
    pub(super) maxseg: u32,
    rcv_nxt: u32,
    rcv_adv: u32,
    pub(super) rcv_wnd: u32,
    /// Sequence number after our FIN, and after the peer's.
    fins: [Option<u32>; 2],
    pub(super) rcv_buffer: u32,
    read: u64,
    began: u32,
    first_bytes: [u32; 2],
}

impl LoggedTcb {
    pub(super) fn new(scenario: &Scenario, side: LoggedEndpoint, tcp: &TcpStack) -> Self {
        let nodelay = scenario.flows[side.flow.0 as usize].nodelay;
        let rcv_buffer = match tcp.profile.receive_buffer {
            ReceiveBufferRule::FreeBsd { space, .. } | ReceiveBufferRule::Fixed { space } => space,
            ReceiveBufferRule::Linux { rmem, .. } => rmem[1],
        };
        let zero = Bytes(0);
        Self {
            side,
            hz: tcp.profile.hz.into(),
            phase: tcp.clock_phase,
            state: if side.out == Dir::Forward { state::CLOSED } else { state::LISTEN },
            sender: SenderState {
                snd_una: Offset(0),
                snd_nxt: Offset(0),
                snd_max: Offset(0),
                // Until the handshake is done (tcp_newtcpcb).
                cwnd: Bytes(UNSET.into()),
                ssthresh: None,
                snd_wnd: zero,
                mss: zero,
                buffered: zero,
                send_buffer: zero,
                srtt: None,
                rto: Duration::ZERO,
                in_recovery: false,
                in_flight: zero,
                partial_acked: zero,
                bbr: None,
                pipe: zero,
                pacing: None,
            },
            after: None,
            iss: 0,
            irs: 0,
            syn_acked: false,
            flags: if scenario.hosts[usize::from(side.host.0)].offload.tso {
                t_flags::TSO
            } else {
                0
            } | if nodelay { t_flags::NODELAY } else { 0 },
            dup_acks: 0,
            window_update: [0; 2],
            recover: 0,
            snd_scale: 0,
            rcv_scale: 0,
            offered: [None; 2],
            requested: [0; 2],
            maxseg: 536,
            rcv_nxt: 0,
            rcv_adv: 0,
            rcv_wnd: 0,
            fins: [None; 2],
            rcv_buffer: small(rcv_buffer),
            read: 0,
            began: 0,
            first_bytes: [0; 2],
        }
    }

    /// Does the event belong to this endpoint?
    pub(super) fn concerns(&self, who: EventSource) -> bool {
        (who.host, who.flow) == (self.side.host, self.side.flow)
    }

    /// Whether a segment at tap `tap` is outgoing; `None` if it does not belong to this endpoint.
    pub(super) fn direction(&self, tap: usize, segment: &Segment) -> Option<bool> {
        let ours = tap == self.side.tap && segment.flow == self.side.flow;
        ours.then_some(segment.dir == self.side.out)
    }

    /// Its addresses and ports, local first.
    pub(super) fn between(&self, scenario: &Scenario) -> Endpoints {
        let flow = self.side.flow;
        let ip = scenario.flows[flow.0 as usize].ip;
        let segment = Segment { flow, ip, dir: self.side.out, ..Segment::default() };
        capture::endpoints(scenario, &segment)
    }

    /// Ticks of the kernel clock.
    pub(super) fn ticks(&self, at: Instant) -> u32 {
        let nanos = at.as_nanos().saturating_add(self.phase.as_nanos());
        scaled(nanos, self.hz, NANOS_PER_SECOND) as u32
    }

    /// Processes an event; changes by a packet are deferred until the packet is seen.
    pub(super) fn on_event(&mut self, event: Event, after: Option<&SenderState>) {
        if let (Event::Sent { .. }, Some(after)) = (event, after) {
            // Sending changes only these two fields of the state.
            let (snd_nxt, snd_max) = (self.sender.snd_nxt, self.sender.snd_max);
            self.sender = SenderState { snd_nxt, snd_max, ..*after };
            self.after = Some(*after);
            return;
        }
        if let Some(after) = after {
            self.sender = *after;
        }
        match event {
            Event::Connected => self.state = state::ESTABLISHED,
            // Reported when the peer's FIN has arrived, before it is acknowledged.
            Event::Closed => {
                self.state = match self.state {
                    state::FIN_WAIT_1 | state::FIN_WAIT_2 | state::CLOSING => state::TIME_WAIT,
                    state::TIME_WAIT => state::TIME_WAIT,
                    _ => state::CLOSED,
                };
            }
            Event::Aborted => self.state = state::CLOSED,
            Event::Acked { .. } => self.dup_acks = 0,
            Event::DupAck { count } => self.dup_acks = count,
            Event::AppWrote { bytes } => {
                self.sender.buffered = Bytes(self.sender.buffered.get() + u64::from(bytes));
            }
            Event::AppRead { total: upto, .. } => self.read = upto.0,
            Event::SendBuffer { size } => self.sender.send_buffer = Bytes(size.into()),
            Event::ReceiveBuffer { size } => self.rcv_buffer = size,
            Event::Window { cause: Cause::FastRetransmit, .. } => {
                self.recover = self.number(self.sender.snd_max);
            }
            _ => {}
        }
    }

    /// Updates the state from an outgoing segment, before it is logged.
    pub(super) fn before_out(&mut self, at: Instant, segment: &Segment) {
        if let Some(syn) = segment.syn_options() {
            if self.requested[0] == 0 {
                self.began = self.ticks(at);
            }
            self.iss = segment.seq.0;
            self.on_syn(0, syn, segment);
            self.state = match self.state {
                state::CLOSED => state::SYN_SENT,
                state::LISTEN => state::SYN_RECEIVED,
                other => other,
            };
        }
        if segment.flags.has(Flags::ACK) {
            self.rcv_nxt = segment.ack.0;
            if self.fins[1] == Some(segment.ack.0) {
                self.fins[1] = None;
                self.state = match self.state {
                    state::ESTABLISHED => state::CLOSE_WAIT,
                    state::FIN_WAIT_1 => state::CLOSING,
                    state::FIN_WAIT_2 => state::TIME_WAIT,
                    other => other,
                };
            }
            let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.rcv_scale };
            self.rcv_wnd = u32::from(segment.window) << scale;
            self.rcv_adv = self.rcv_nxt.wrapping_add(self.rcv_wnd);
        }
        if segment.flags.has(Flags::FIN) && !segment.flags.has(Flags::RST) {
            self.fins[0] = Some(segment.seq.0.wrapping_add(segment.seq_len()));
            self.flags |= t_flags::SENTFIN;
            self.state = match self.state {
                state::ESTABLISHED => state::FIN_WAIT_1,
                state::CLOSE_WAIT => state::LAST_ACK,
                other => other,
            };
        }
        if segment.payload > 0 && self.first_bytes[1] == 0 {
            self.first_bytes[1] = self.ticks(at);
        }
    }

    /// Applies the changes by the logged outgoing segment.
    pub(super) fn after_out(&mut self) {
        if let Some(after) = self.after.take() {
            self.sender = after;
        }
    }

    /// Updates the state from an incoming segment where no event reports the change.
    pub(super) fn after_in(&mut self, at: Instant, segment: &Segment) {
        if let Some(syn) = segment.syn_options() {
            self.irs = segment.seq.0;
            self.rcv_nxt = segment.seq.0.wrapping_add(1);
            self.on_syn(1, syn, segment);
            self.window_update = [segment.seq.0, segment.ack.0];
            self.sender.snd_wnd = Bytes(segment.window.into());
        } else {
            self.take_window(segment);
            if segment.seq.0 == self.rcv_nxt {
                // Only bytes: a FIN counts once it is acknowledged.
                self.rcv_nxt = self.rcv_nxt.wrapping_add(segment.payload);
            }
        }
        if segment.flags.has(Flags::FIN) {
            self.fins[1] = Some(segment.seq.0.wrapping_add(segment.seq_len()));
        }
        if segment.flags.has(Flags::ACK) {
            self.syn_acked |= self.state >= state::SYN_SENT;
            if self.fins[0] == Some(segment.ack.0) {
                self.fins[0] = None;
                self.state = match self.state {
                    state::FIN_WAIT_1 => state::FIN_WAIT_2,
                    state::CLOSING => state::TIME_WAIT,
                    state::LAST_ACK => state::CLOSED,
                    other => other,
                };
            }
        }
        if segment.payload > 0 && self.first_bytes[0] == 0 {
            self.first_bytes[0] = self.ticks(at);
        }
    }

    /// Takes the window of a segment that is newer than the last window update, or has a larger
    /// window (RFC 9293 section 3.10.7.4; tcp_do_segment, step 6).
    fn take_window(&mut self, segment: &Segment) {
        let after = |a: u32, b: u32| a.wrapping_sub(b) as i32 > 0;
        let window = Bytes(u64::from(segment.window) << self.snd_scale);
        let [seq, ack] = self.window_update;
        let newer =
            after(segment.seq.0, seq) || (segment.seq.0 == seq && after(segment.ack.0, ack));
        let same = [segment.seq.0, segment.ack.0] == self.window_update;
        if newer || (same && window > self.sender.snd_wnd) {
            self.window_update = [segment.seq.0, segment.ack.0];
            self.sender.snd_wnd = window;
        }
    }

    fn on_syn(&mut self, whose: usize, syn: &packet::SynOptions, segment: &Segment) {
        let asks = [
            (syn.window_scale.is_some(), [t_flags::REQ_SCALE, t_flags::RCVD_SCALE]),
            (segment.timestamps.is_some(), [t_flags::REQ_TSTMP, t_flags::RCVD_TSTMP]),
            (syn.sack_permitted, [t_flags::SACK_PERMIT; 2]),
        ];
        let set = asks.iter().filter(|(requested, _)| *requested).map(|(_, flags)| flags[whose]);
        self.requested[whose] = set.fold(0, |all, flag| all | flag);
        self.offered[whose] = syn.window_scale;
        if let [Some(ours), Some(theirs)] = self.offered {
            (self.snd_scale, self.rcv_scale) = (theirs.min(14), ours.min(14));
        }
        let mss = u32::from(syn.mss);
        if mss > 0 {
            self.maxseg = if whose == 0 { mss } else { mss.min(self.maxseg) };
        }
    }

    /// The current TF_... flags.
    pub(super) fn t_flags(&self) -> u32 {
        // SACK is on only if both ends request it; the other flags say which end did.
        let [ours, theirs] = self.requested;
        let sack = ours & theirs & t_flags::SACK_PERMIT;
        let recovery = if self.sender.in_recovery { t_flags::FASTRECOVERY } else { 0 };
        self.flags | ((ours | theirs) & !t_flags::SACK_PERMIT) | sack | recovery
    }

    /// Bytes that the application has not read.
    pub(super) fn unread(&self) -> u32 {
        if self.requested[1] == 0 && self.irs == 0 {
            return 0;
        }
        let received = self.rcv_nxt.wrapping_sub(self.irs.wrapping_add(1));
        // The FIN, which is not a byte, is never unread.
        let unread = received.wrapping_sub(self.read as u32);
        if unread > self.rcv_buffer { 0 } else { unread }
    }

    /// `t_srtt`: ticks * 32.
    fn srtt(&self) -> u32 {
        let unit = self.hz * RTT_SCALE;
        let nanos = self.sender.srtt.unwrap_or_default().as_nanos();
        ((u128::from(nanos) * u128::from(unit) + 500_000_000) / u128::from(NANOS_PER_SECOND)) as u32
    }

    /// Sequence number of a payload byte.
    pub(super) fn number(&self, place: Offset) -> u32 {
        self.iss.wrapping_add(1).wrapping_add(place.0 as u32)
    }

    /// A record of the current state.
    pub(super) fn info(&self, at: Instant) -> TcpLogBuffer {
        let micros = at.as_nanos() / 1_000;
        let sender = &self.sender;
        let begun = self.state >= state::SYN_SENT;
        let (snd_una, snd_nxt, snd_max) = match self.syn_acked {
            true => {
                let number = |place| self.number(place);
                (number(sender.snd_una), number(sender.snd_nxt), number(sender.snd_max))
            }
            // Only the SYN is in flight.
            false => (self.iss, self.iss, self.iss.wrapping_add(begun.into())),
        };
        let (buffered, unread) = (small(sender.buffered), self.unread());
        TcpLogBuffer {
            tv_sec: (micros / 1_000_000) as i64,
            tv_usec: (micros % 1_000_000) as i64,
            ticks: self.ticks(at),
            event_flags: flags::RXBUF | flags::TXBUF,
            rxbuf_acc: unread,
            rxbuf_ccc: unread,
            txbuf_acc: buffered,
            txbuf_ccc: buffered,
            state: self.state,
            starttime: self.began,
            iss: self.iss,
            t_flags: self.t_flags(),
            snd_una,
            snd_max,
            snd_cwnd: small(sender.cwnd),
            snd_nxt,
            snd_recover: self.recover,
            snd_wnd: small(sender.snd_wnd),
            snd_ssthresh: self.ssthresh(),
            srtt: self.srtt(),
            rcv_adv: self.rcv_adv,
            rcv_nxt: self.rcv_nxt,
            rcv_wnd: self.rcv_wnd,
            dupacks: self.dup_acks,
            fbyte_in: self.first_bytes[0],
            fbyte_out: self.first_bytes[1],
            scales: self.snd_scale & 0xf | self.rcv_scale << 4,
            ..TcpLogBuffer::default()
        }
    }

    /// The slow-start threshold.
    pub(super) fn ssthresh(&self) -> u32 {
        self.sender.ssthresh.map_or(UNSET, small)
    }
}

/// Saturates to a 32-bit field.
pub(super) fn small(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}
