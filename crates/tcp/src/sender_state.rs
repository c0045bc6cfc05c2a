//! The sender's state as recorders see it.

use cc::Controller;
use record::Sender;
use units::{Bytes, Duration, Offset, Rate};

use crate::connection::Connection;
use crate::state::SendSide;

/// A sender as a recorder reads it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedSender<'a> {
    snd: &'a SendSide,
    conn: &'a Connection,
}

impl SendSide {
    /// The sender as a recorder reads it.
    #[inline(always)]
    pub(crate) const fn with<'a>(&'a self, conn: &'a Connection) -> RecordedSender<'a> {
        RecordedSender { snd: self, conn }
    }
}

impl Sender for RecordedSender<'_> {
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
}
