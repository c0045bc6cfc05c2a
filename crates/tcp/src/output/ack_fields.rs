//! What the receiving side writes into each segment: the ACK, the window, the timestamp echo and the SACK blocks; and
//! whether it needs a segment of its own.

use packet::{Flags, Options, Segment, Timestamps};
use record::Purpose;
use units::{Instant, Offset, unlikely};

use crate::connection::Connection;
use crate::profile::UpdateWaits;
use crate::receive_side::ReceiveSide;
use crate::timers::Timers;

/// What the sending side writes into a header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderFields {
    pub(crate) at: Offset,
    pub(crate) len: u64,
    pub(crate) flags: Flags,
    /// The ECN field of the IP header.
    pub(crate) ecn: u8,
}

impl ReceiveSide {
    /// Writes the header of a segment and records the ACK and the window that it advertises.
    #[inline(always)]
    pub(crate) fn write_header(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        fields: &SenderFields,
        slot: &mut Segment,
    ) {
        let window = self.next_window();
        let field = self.window.field(window);
        self.write_fields(conn, now, fields, field, slot);
        self.adv = self.adv.max(self.nxt + self.window.counted(window, field));
        self.acked = self.nxt;
        self.window.on_sent(window, || conn.clock.timestamp(now));
        self.ack_now = false;
        self.delays_ack = false;
        self.last_window_zero = field == 0;
        timers.stop(Purpose::DelayedAck);
        if unlikely(self.policy.is_quick()) {
            let tight = self.window.is_tight(self.reassembly.bytes());
            self.policy.on_window_selected(tight);
        }
        self.policy.on_ack_sent();
        if fields.len > 0 {
            self.policy.on_data_sent(|| conn.clock.tick(now));
        }
        self.compressed.waiting = 0;
    }

    /// [`ReceiveSide::write_header`], once for all callers that are cold.
    pub(crate) fn write_header_cold(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        fields: &SenderFields,
        slot: &mut Segment,
    ) {
        self.write_header(conn, timers, now, fields, slot);
    }

    /// Writes the header after another segment sent at the same instant: the ACK and the window are
    /// the same unless the window has to be recomputed.
    #[inline(always)]
    pub(crate) fn write_next_header(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        fields: &SenderFields,
        slot: &mut Segment,
    ) {
        let Some(field) = self.last_field() else {
            return self.write_header_cold(conn, timers, now, fields, slot);
        };
        self.write_fields(conn, now, fields, field, slot);
        self.policy.on_ack_sent();
    }

    /// Writes the header of a segment that leaves the state of the receiver alone, as tcp_respond
    /// does: an ACK that is due remains due, and the window does not count as advertised.
    #[cold]
    pub(crate) fn write_response(
        &mut self,
        conn: &Connection,
        now: Instant,
        fields: &SenderFields,
        slot: &mut Segment,
    ) {
        let window = self.next_window();
        let field = self.window.field(window);
        self.write_fields(conn, now, fields, field, slot);
    }

    #[inline(always)]
    fn write_fields(
        &self,
        conn: &Connection,
        now: Instant,
        fields: &SenderFields,
        window: u16,
        slot: &mut Segment,
    ) {
        *slot = Segment {
            flow: conn.cfg.flow,
            dir: conn.dir(),
            ip: conn.cfg.ip,
            ecn: fields.ecn,
            flags: fields.flags | self.ecn.echo(),
            seq: fields.at.to_seq(conn.cfg.isn),
            ack: self.nxt.to_seq(self.irs),
            payload: fields.len as u32,
            window,
            gso_size: 0,
            nsegs: 0,
            timestamps: conn
                .negotiated
                .timestamps
                .then(|| Timestamps { val: conn.clock.timestamp(now), ecr: self.ts_recent }),
            options: Options::None,
        };
    }

    /// Is an ACK or a window update due, where there is no data to send?
    #[inline(always)]
    pub(crate) fn ack_due(&mut self, conn: &Connection, timers: &Timers) -> bool {
        self.ack_now || self.window_update_due(conn, timers)
    }

    /// Window that the next segment advertises.
    #[inline(always)]
    pub(crate) fn next_window(&mut self) -> u64 {
        let promised = self.adv.since(self.nxt).get();
        self.window.window(promised, self.reassembly.bytes())
    }

    /// Is a window update worth sending (RFC 9293 section 3.8.6.2.2; tcp_output of FreeBSD,
    /// tcp_cleanup_rbuf of Linux)? Called only if nothing else is sent.
    #[inline(always)]
    pub(crate) fn window_update_due(&mut self, conn: &Connection, timers: &Timers) -> bool {
        let delays = match conn.cfg.profile.rules.receiving.update_waits {
            UpdateWaits::ForTimerOfAck => core::mem::take(&mut self.delays_ack),
            UpdateWaits::ForRead => true,
            UpdateWaits::WhileAckWaits => timers.runs(Purpose::DelayedAck),
        };
        let closed = self.fin.is_some_and(|fin| self.nxt > fin);
        if closed || delays {
            return false;
        }
        let promised = self.adv.since(self.nxt).get();
        let size = self.window.size();
        // Cheaper than computing the window, and usually sufficient.
        let most = self.window.most_growth(promised);
        if most < 2 * conn.maxseg() && 2 * most < size {
            return false;
        }
        let window = self.window.window(promised, self.reassembly.bytes());
        let grown = window.saturating_sub(promised);
        let is_significant = grown >= 2 * conn.maxseg()
            && (grown >= size / 4 || window <= size / 8 || size <= 8 * conn.maxseg());
        self.window.field(window) > self.window.field(promised)
            && (is_significant || 2 * grown >= size)
    }

    /// Linux: has a read at least doubled the window that can be advertised (__tcp_cleanup_rbuf)?
    pub(crate) fn read_doubles_window(&mut self) -> bool {
        if self.fin.is_some_and(|fin| self.nxt > fin) {
            return false;
        }
        let promised = self.adv.since(self.nxt).get();
        if 2 * promised > self.window.clamp() {
            return false;
        }
        let waiting = self.reassembly.bytes();
        let tight = self.window.is_tight(waiting);
        self.policy.on_window_selected(tight);
        let window = self.window.selected(waiting);
        window > 0 && window >= 2 * promised
    }

    /// Are there SACK blocks to send?
    #[inline(always)]
    pub(crate) fn has_blocks(&self, conn: &Connection) -> bool {
        if let Some(report) = &self.report {
            return conn.negotiated.sack && !report.is_empty();
        }
        conn.negotiated.sack && (self.duplicate.0.is_some() || !self.reassembly.is_empty())
    }

    /// Writes SACK blocks into a segment with `len` bytes of payload.
    pub(crate) fn write_blocks(&mut self, conn: &Connection, len: u64, slot: &mut Segment) {
        let most_blocks = if conn.negotiated.timestamps { 3 } else { 4 };
        // Blocks fit only beside little data.
        let fits = len == 0 || len + 4 + 8 * most_blocks as u64 <= conn.mss();
        if let Some(report) = &mut self.report {
            if fits {
                slot.options = report.blocks(self.irs, most_blocks).into();
            }
            report.on_sent(self.nxt);
            return;
        }
        if fits {
            let duplicate = self.duplicate.0;
            if duplicate.is_some() {
                self.duplicate.0 = None;
            }
            let blocks = self.reassembly.sack_blocks(self.irs, most_blocks, duplicate);
            slot.options = blocks.into();
        }
    }

    /// The window field of the next header, unless it must be recomputed.
    #[inline(always)]
    pub(crate) fn last_field(&self) -> Option<u16> {
        let promised = self.adv.since(self.nxt).get();
        let window = self.window.last_window(promised, self.reassembly.bytes());
        window.map(|window| self.window.field(window))
    }
}
