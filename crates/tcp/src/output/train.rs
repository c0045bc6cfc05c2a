//! Full packets of new data that follow the last one at the very same instant.

use machine::Cx;
use packet::{Flags, Segment};
use record::{Purpose, Recorder};
use units::{Instant, Offset};

use crate::endpoint::Endpoint;
use crate::loss::Repair;

/// Full packets of new data that may follow the last one, and whether the congestion window is full
/// behind them: in the lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Train(u64);

impl Train {
    /// No packet, and what comes next has to be asked.
    pub(crate) const NONE: Self = Self(0);

    /// So many packets.
    pub(super) const fn new(packets: u64, fills_window: bool) -> Self {
        Self(packets << 1 | fills_window as u64)
    }

    #[inline(always)]
    pub(super) const fn packets(self) -> u64 {
        self.0 >> 1
    }

    #[inline(always)]
    pub(super) const fn fills_window(self) -> bool {
        self.0 & 1 != 0
    }

    #[inline(always)]
    pub(super) const fn take_one(&mut self) {
        self.0 -= 2;
    }
}

impl Endpoint {
    /// Full packets that may follow the last one, for which nothing needs to be asked again.
    #[inline(always)]
    pub const fn train(&self) -> u64 {
        self.snd.train.packets()
    }

    /// Begins a row of packets that differ from `model`, the last one that left, at this very instant,
    /// in their place alone; returns how many they are, all of the train or none. They are to leave at
    /// once, one call of [`Endpoint::next_of_train`] for each.
    #[inline]
    pub fn begin_train(&mut self, now: Instant, model: &Segment) -> u64 {
        let alike = model.flags == Flags::ACK
            && u64::from(model.payload) == self.mss()
            && !self.ecn.agreed()
            && self.snd.timed.is_some()
            && self.is_watched(now)
            && self.last_field() == Some(model.window);
        if !alike {
            return 0;
        }
        let packets = self.snd.train.packets();
        self.snd.train = Train::new(0, self.snd.train.fills_window());
        self.totals.data_packets += packets;
        self.snd.last_sent = now;
        self.rcv.policy.on_acks_sent(packets);
        packets
    }

    /// Notes that the next packet of the row leaves, and gives a copy of the model its place.
    #[inline(always)]
    pub fn next_of_train<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &mut Segment) {
        let at = self.snd.max;
        segment.seq = at.to_seq(self.cfg.isn);
        self.move_full(cx.now, at);
        self.tell_full(cx, at);
    }

    /// The window that the next header bears, unless it has to be worked out.
    #[inline(always)]
    fn last_field(&self) -> Option<u16> {
        let promised = self.rcv.adv.since(self.rcv.nxt).get();
        let window = self.rcv.window.last_window(promised, self.rcv.reassembly.bytes());
        window.map(|window| self.rcv.window.field(window))
    }

    /// Do the timers that watch over the flight run as of now?
    #[inline(always)]
    fn is_watched(&self, now: Instant) -> bool {
        let planned = match &self.snd.repair {
            Repair::Timed(loss) => loss.planned_at(now),
            Repair::Holes(_) | Repair::Duplicates | Repair::Rack(_) => true,
        };
        planned && self.timers.runs(Purpose::Retransmit)
    }

    /// Makes a full packet as `build_new` does, behind another at this very instant, in no recovery:
    /// what watches over the flight runs already.
    #[inline(never)]
    pub(super) fn build_next<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        let at = self.snd.max;
        self.write_next_header(cx.now, at, self.mss(), slot);
        self.note_full(cx.now);
        if self.snd.timed.is_none() {
            self.snd.timed = Some((at, cx.now));
        }
        if !self.is_watched(cx.now) {
            self.watch_flight(cx.now);
        }
        self.tell_full(cx, at);
    }

    /// Writes a header behind another segment that left at this very instant: what the peer is told with it,
    /// it was told with that, unless the window may be another.
    #[inline(always)]
    fn write_next_header(&mut self, now: Instant, at: Offset, len: u64, slot: &mut Segment) {
        let Some(field) = self.last_field() else {
            return self.write_header_apart(now, at, len, Flags::ACK, slot);
        };
        self.write_fields(now, at, len, Flags::ACK, field, slot);
        self.rcv.policy.on_ack_sent();
    }
}
