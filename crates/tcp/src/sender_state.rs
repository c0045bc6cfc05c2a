//! The sender's state as recorders see it.

use cc::bbr3::{BbrMode, ProbePhase};
use cc::{Bbr3, Controller};
use machine::bbr_draft_state;
use record::{BbrPhase, BbrState};
use units::{Bytes, Duration, Offset, Rate};

use crate::connection::Connection;
use crate::sender::Sender;

/// A sender as a recorder reads it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedSender<'a> {
    snd: &'a Sender,
    conn: &'a Connection,
}

impl Sender {
    /// The sender as a recorder reads it.
    #[inline(always)]
    pub(crate) const fn with<'a>(&'a self, conn: &'a Connection) -> RecordedSender<'a> {
        RecordedSender { snd: self, conn }
    }
}

impl record::Sender for RecordedSender<'_> {
    #[inline(always)]
    fn snd_una(&self) -> Offset {
        self.conn.payload_offset(self.snd.una)
    }

    #[inline(always)]
    fn snd_nxt(&self) -> Offset {
        self.conn.payload_offset(self.snd.nxt)
    }

    #[inline(always)]
    fn snd_max(&self) -> Offset {
        self.conn.payload_offset(self.snd.max)
    }

    #[inline(always)]
    fn cwnd(&self) -> Bytes {
        self.snd.cc.control().window
    }

    #[inline(always)]
    fn ssthresh(&self) -> Option<Bytes> {
        self.snd.cc.control().ssthresh
    }

    #[inline(always)]
    fn snd_wnd(&self) -> Bytes {
        Bytes(self.snd.peer.wnd)
    }

    #[inline(always)]
    fn mss(&self) -> Bytes {
        Bytes(u64::from(self.conn.negotiated.mss))
    }

    #[inline(always)]
    fn buffered(&self) -> Bytes {
        Bytes(self.snd.buffer.used())
    }

    #[inline(always)]
    fn send_buffer(&self) -> Bytes {
        Bytes(self.snd.buffer.capacity())
    }

    #[inline(always)]
    fn srtt(&self) -> Option<Duration> {
        self.snd.rtt.estimator.srtt()
    }

    #[inline(always)]
    fn rto(&self) -> Duration {
        self.snd.rtt.estimator.rto()
    }

    #[inline(always)]
    fn in_recovery(&self) -> bool {
        self.snd.cc.in_recovery()
    }

    #[inline(always)]
    fn in_flight(&self) -> Bytes {
        Bytes(self.snd.max - self.snd.una)
    }

    #[inline(always)]
    fn partial_acked(&self) -> Bytes {
        Bytes::ZERO
    }

    #[inline(always)]
    fn pipe(&self) -> Bytes {
        Bytes(self.snd.pipe())
    }

    #[inline(always)]
    fn pacing(&self) -> Option<Rate> {
        Rate::from_bits_per_second(self.snd.pacing_rate().saturating_mul(8))
    }

    fn bbr(&self) -> Option<BbrState> {
        let draft = || self.snd.cc.bbr_draft().map(bbr_draft_state);
        self.snd.cc.bbr3().map(bbr_state).or_else(draft)
    }

    fn visit_controller(&self, visit: &mut dyn FnMut(&'static str, Option<u64>)) {
        if let Some(cc) = self.snd.cc.bbr_draft() {
            cc.visit_state(visit);
        }
    }
}

/// `bbr_get_info`.
#[cold]
fn bbr_state(cc: &Bbr3) -> BbrState {
    let (draw, draws) = cc.draw();
    let (bw_hi, bw_lo) = cc.bandwidths();
    let [inflight_hi, inflight_lo] = cc.inflight_bounds();
    let [pacing_gain, cwnd_gain] = cc.gains();
    let phase = match cc.mode() {
        (BbrMode::Startup, _) => BbrPhase::Startup,
        (BbrMode::Drain, _) => BbrPhase::Drain,
        (BbrMode::ProbeRtt, _) => BbrPhase::ProbeRtt,
        (BbrMode::ProbeBw, ProbePhase::Up) => BbrPhase::Up,
        (BbrMode::ProbeBw, ProbePhase::Down) => BbrPhase::Down,
        (BbrMode::ProbeBw, ProbePhase::Cruise) => BbrPhase::Cruise,
        (BbrMode::ProbeBw, ProbePhase::Refill) => BbrPhase::Refill,
    };
    BbrState {
        phase,
        bw_hi: cc.bytes_per_second_of(bw_hi),
        bw_lo: bw_lo.map(|bw| cc.bytes_per_second_of(bw)),
        inflight_hi,
        inflight_lo,
        pacing_gain,
        cwnd_gain,
        min_rtt_us: cc.min_rtt_us(),
        draws,
        rounds: draw.rounds,
        wait_us: draw.wait_us,
    }
}
