//! The recorder's view of a QUIC sender.

use machine::bbr_draft_state;
use record::Sender;
use units::{Bytes, Duration, Offset, Rate};

use crate::endpoint::QuicEndpoint;
use crate::packet::Space;

impl Sender for QuicEndpoint {
    #[inline]
    fn snd_una(&self) -> Offset {
        Offset(self.send.una() + u64::from(self.send.is_done()))
    }

    #[inline]
    fn snd_nxt(&self) -> Offset {
        self.snd_max()
    }

    #[inline]
    fn snd_max(&self) -> Offset {
        Offset(self.send.next() + u64::from(self.send.fin_sent()))
    }

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.cc.control().window
    }

    #[inline]
    fn ssthresh(&self) -> Option<Bytes> {
        self.cc.control().ssthresh
    }

    #[inline]
    fn snd_wnd(&self) -> Bytes {
        Bytes(self.flow.limit().saturating_sub(self.send.una()))
    }

    #[inline]
    fn mss(&self) -> Bytes {
        Bytes(u64::from(self.datagram))
    }

    #[inline]
    fn buffered(&self) -> Bytes {
        Bytes(self.send.buffered())
    }

    #[inline]
    fn send_buffer(&self) -> Bytes {
        Bytes(self.send.capacity())
    }

    #[inline]
    fn srtt(&self) -> Option<Duration> {
        self.rtt.first_sample().map(|_| self.rtt.smoothed())
    }

    #[inline]
    fn rto(&self) -> Duration {
        self.pto_period(Space::Application)
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.cc.in_recovery()
    }

    #[inline]
    fn in_flight(&self) -> Bytes {
        Bytes(self.bytes_in_flight)
    }

    #[inline]
    fn bbr(&self) -> Option<record::BbrState> {
        self.cc.bbr_draft().map(bbr_draft_state)
    }

    fn visit_controller(&self, visit: &mut dyn FnMut(&'static str, Option<u64>)) {
        if let Some(cc) = self.cc.bbr_draft() {
            cc.visit_state(visit);
        }
    }

    fn partial_acked(&self) -> Bytes {
        self.cc.partial()
    }

    #[inline]
    fn pipe(&self) -> Bytes {
        Bytes(self.bytes_in_flight)
    }

    #[inline]
    fn pacing(&self) -> Option<Rate> {
        self.pacing_rate()
    }
}
