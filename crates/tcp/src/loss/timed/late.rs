//! Acknowledgments that another one has overtaken.

use machine::Cx;
use packet::Segment;
use record::Recorder;

use super::timed_of;
use crate::endpoint::Endpoint;
use crate::loss::{Heard, Repair};

impl Endpoint {
    /// It acknowledges less than was. To FreeBSD's RACK it tells of reordering, while there is room to
    /// receive, and its blocks count (rack_process_ack); others drop it.
    pub(crate) fn late_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        heard: &Heard,
    ) {
        let heeds = matches!(&self.snd.repair, Repair::Timed(loss) if loss.judge.is_freebsd());
        if !heeds {
            return;
        }
        if !heard.blocks().is_empty() {
            self.timed_ack(cx, segment, heard);
        }
        let promised = self.rcv.adv.since(self.rcv.nxt).get();
        if self.rcv.window.window(promised, self.rcv.reassembly.bytes()) > self.mss() {
            timed_of!(self).judge.see_reordering(cx.now);
        }
    }
}
