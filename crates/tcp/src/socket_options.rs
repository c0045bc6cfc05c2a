//! What an application may change while a connection runs (setsockopt).

use machine::Cx;
use record::Recorder;
use units::Bytes;

use crate::endpoint::Endpoint;
use crate::probes::Keepalive;

impl Endpoint {
    /// `TCP_NODELAY`: Nagle's algorithm off or on. What it held back goes at once.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.cfg.nodelay = nodelay;
        if nodelay {
            self.call_output();
        }
    }

    /// `SO_SNDBUF`: a size in the system's own measure, which no longer grows by itself.
    pub fn set_send_buffer(&mut self, size: Bytes) {
        self.snd.buffer.fix(size.get());
    }

    /// `SO_KEEPALIVE` and the options beside it: probes of a silent peer, the silence counted from
    /// now.
    pub fn set_keepalive<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, wanted: Option<Keepalive>) {
        self.cfg.keepalive = wanted.map(Box::new);
        if wanted.is_some() {
            self.rearm_keepalive(cx);
        } else {
            self.timers.stop(record::Purpose::Keepalive);
        }
    }
}
