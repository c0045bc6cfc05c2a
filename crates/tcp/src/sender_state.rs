//! The sender's state as recorders see it.

use cc::Controller;
use record::Sender;
use units::{Bytes, Duration, Offset, Rate};

use crate::endpoint::TcpEndpoint;

impl Sender for TcpEndpoint {
    #[inline(always)]
    fn snd_una(&self) -> Offset {
        self.payload_offset(self.snd.una)
    }

    #[inline(always)]
    fn snd_nxt(&self) -> Offset {
        self.payload_offset(self.snd.nxt)
    }

    #[inline(always)]
    fn snd_max(&self) -> Offset {
        self.payload_offset(self.snd.max)
    }

    #[inline(always)]
    fn cwnd(&self) -> Bytes {
        self.cc.control().window
    }

    #[inline(always)]
    fn ssthresh(&self) -> Option<Bytes> {
        self.cc.control().ssthresh
    }

    #[inline(always)]
    fn snd_wnd(&self) -> Bytes {
        Bytes(self.snd.peer.wnd)
    }

    #[inline(always)]
    fn mss(&self) -> Bytes {
        Bytes(u64::from(self.negotiated.mss))
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
        self.rtt.srtt()
    }

    #[inline(always)]
    fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    #[inline(always)]
    fn in_recovery(&self) -> bool {
        self.cc.in_recovery()
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
        Bytes(self.pipe())
    }

    #[inline(always)]
    fn pacing(&self) -> Option<Rate> {
        Rate::from_bits_per_second(self.pacing_rate().saturating_mul(8))
    }
}
