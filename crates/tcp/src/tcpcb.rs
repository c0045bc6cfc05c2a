//! The sender's state under the field names that recordings of FreeBSD's `struct tcpcb` use.

use cc::Controller;
use recovery::RttEstimator;

use crate::endpoint::TcpEndpoint;

/// `snd_ssthresh` while unset (`TCP_MAXWIN << TCP_MAX_WINSHIFT`).
const SSTHRESH_UNSET: u64 = 65_535 << 14;

impl TcpEndpoint {
    /// Reports every field that is modelled, in the kernel's units: sequence numbers relative to
    /// the SYN, `rto` in ticks, `srtt` and `var` in the kernel's fixed point.
    pub fn inspect_tcpcb(&self, report: &mut dyn FnMut(&'static str, i64)) {
        let snd = &self.snd;
        let mut see = |name, value: u64| report(name, value as i64);
        let control = self.snd.cc.control();
        see("cwnd", control.window.get());
        see("ssth", control.ssthresh.map_or(SSTHRESH_UNSET, |bytes| bytes.get()));
        see("una", snd.una.0);
        see("nxt", snd.nxt.0);
        see("max", snd.max.0);
        see("wnd", snd.peer.wnd);
        see("rec", self.snd.cc.recovery_point().0);
        see("dup", u64::from(snd.rexmt.dup_acks));
        see("shift", u64::from(snd.rexmt.shift));
        see("fast", u64::from(self.snd.cc.in_recovery()));
        if let Some(bytes) = self.snd.cc.t_bytes_acked() {
            see("bacc", u64::from(bytes));
        }
        if let RttEstimator::FreeBsd(rtt) = &self.snd.rtt.estimator {
            see("rto", rtt.t_rxtcur() as u64);
            see("srtt", rtt.t_srtt() as u64);
            see("var", rtt.t_rttvar() as u64);
        }
        see("sbcc", snd.buffer.used());
        see("hiwat", snd.buffer.capacity());
        snd.stack.inspect(&mut see);
    }
}
