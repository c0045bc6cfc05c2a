//! Windows that count bytes: rack_output of FreeBSD, and the RFCs (RFC 9293 section 3.8.6.2.1).

use machine::Cx;
use record::{Event, Recorder, SendLimit, SentKind};

use crate::connection::Connection;
use crate::profile::BurstRule;
use crate::receive_side::ReceiveSide;
use crate::segment_plan::SegmentPlan;
use crate::sender::Sender;

/// What limits a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteLimits {
    /// Maximum IP bytes of a burst.
    pub(crate) burst: u64,
    /// The window of the sender.
    pub(crate) window: u64,
    /// Room for new data by the bytes in flight, where that applies in place of the window.
    pub(crate) room: Option<u64>,
}

impl Sender {
    /// Plans a pass: the length that the windows allow, whole segments unless the send buffer is
    /// emptied, and the sender's side of silly-window avoidance.
    pub(crate) fn plan_bytes<R: Recorder>(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        limits: ByteLimits,
    ) -> Result<SegmentPlan, SendLimit> {
        let mss = conn.mss();
        let off = self.nxt - self.una;
        let avail = self.buffer.used();
        let ByteLimits { burst: burst_max, window: cwnd, room } = limits;
        let sendwin = self.peer.wnd.min(cwnd);
        let mut len = match room {
            None => avail.min(sendwin).saturating_sub(off),
            Some(room) => avail.min(self.peer.wnd).saturating_sub(off).min(room),
        };
        let unsent = avail.saturating_sub(off);

        if let Some(size) = self.buffer.autoscale(self.peer.wnd, sendwin, unsent) {
            cx.emit(|| Event::SendBuffer { size: size as u32 });
        }

        // The FIN follows the last byte, and is sent once.
        let fin_next = conn.fin_wanted() && off + len >= avail;
        let fin_unsent = self.max <= self.data_end() || self.nxt == self.una;
        let retransmitting = self.nxt < self.max;
        if len == 0 {
            if fin_next && fin_unsent && off <= avail {
                let kind = if retransmitting {
                    SentKind::Retransmission(self.rexmt.cause)
                } else {
                    SentKind::Control
                };
                return Ok(SegmentPlan {
                    at: self.nxt,
                    len: 0,
                    fin: true,
                    push: false,
                    kind,
                    more: false,
                });
            }
            return Err(self.waiting_reason(unsent, cwnd));
        }
        let goes = len >= mss
            || ((self.call.idle || conn.cfg.nodelay) && len + off >= avail)
            || (self.peer.max_wnd > 0 && len >= self.peer.max_wnd / 2)
            || retransmitting;
        if !goes {
            let limited = if len + off < avail {
                self.waiting_reason(unsent, cwnd)
            } else {
                SendLimit::SmallSegment
            };
            return Err(limited);
        }
        let mut more = false;
        let mut fin = fin_next;
        // t_maxseg counts the option bytes, which are the difference to mss.
        if len > mss {
            fin = false;
            let headers = u64::from(conn.cfg.ip.header_len()) + 20 + (conn.maxseg() - mss);
            if conn.cfg.tso && rcv.reassembly.is_empty() {
                let most = burst_max.saturating_sub(headers).max(mss);
                if len > most {
                    len = most;
                    more = true;
                }
                // The last segment may be short only if it empties the send buffer.
                if off + len < avail && !len.is_multiple_of(mss) {
                    len -= len % mss;
                    more = true;
                }
            } else {
                len = mss;
                more = true;
            }
        }
        let kind =
            if retransmitting { SentKind::Retransmission(self.rexmt.cause) } else { SentKind::New };
        Ok(SegmentPlan { at: self.nxt, len, fin, push: off + len == avail, kind, more })
    }

    /// At the end of a call, records whether the window was the limit; FreeBSD's own controllers do
    /// not use it.
    pub(crate) fn validate_bytes(&mut self, conn: &Connection, why: Option<SendLimit>) {
        if conn.queues_packets() {
            return;
        }
        let limited = match why {
            None => self.nxt.since(self.una).get() + conn.mss() > self.cwnd(),
            Some(why) => why == SendLimit::CongestionWindow,
        };
        self.validate_window(limited);
    }

    /// The limit that holds back the next byte.
    pub(crate) fn waiting_reason(&self, unsent: u64, cwnd: u64) -> SendLimit {
        if unsent == 0 {
            if self.buffer.fin { SendLimit::Done } else { SendLimit::Application }
        } else if cwnd <= self.peer.wnd {
            SendLimit::CongestionWindow
        } else {
            SendLimit::PeerWindow
        }
    }
}

impl Connection {
    /// Maximum IP bytes of a burst.
    pub(crate) fn largest_burst(&self) -> u64 {
        match self.cfg.profile.burst {
            BurstRule::FreeBsd { max } => max.get(),
            BurstRule::Linux(_) | BurstRule::Rfc => 65_535,
        }
    }
}
