//! Reports of FreeBSD's RACK stack to HyStart++ ([`cc::hystart`]): round trips with the bytes in
//! flight when the segment was sent (rack_update_rtt, `r_fas`), and the ends of rounds (the end of
//! rack_do_segment_nounlock). The state exists only if `net.inet.tcp.rack.features.hystartplusplus`
//! is set.
//!
//! The rule for rounds is that of rack.c of early 2023 (`roundends` is `snd_max` after the output
//! that an ACK causes). Later sources begin the next round with the next transmission instead; no
//! recording of either exists.

use cc::{RttSample, WindowController};
use machine::Cx;
use record::{Cause, Recorder};
use units::{Duration, Offset};

use super::FreeBsdRack;
use crate::connection::Connection;

impl FreeBsdRack<'_> {
    /// Reports the round trips of an ACK's segments (`rttsample`).
    pub(super) fn report_rtt_samples<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        una: Offset,
    ) {
        let Some(reports) = self.state.hystart.as_deref_mut() else { return };
        reports.ack_pending = true;
        let mut samples = core::mem::take(&mut reports.samples);
        for (rtt_us, flight) in samples.drain(..) {
            let rtt = Duration::from_micros(rtt_us);
            let change = self.snd.cc.on_rtt_sample(&RttSample { rtt, transmissions: 1, flight });
            self.snd.note(conn, cx, change, Cause::SlowStartExit);
        }
        if let Some(reports) = self.state.hystart.as_deref_mut() {
            reports.samples = samples;
            reports.forget_before(una);
        }
    }

    /// Ends the round once the output that an ACK causes is complete (`newround`).
    pub(crate) fn end_hystart_round<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let (una, max) = (self.snd.una, self.snd.max);
        let Some(reports) = self.state.hystart.as_deref_mut() else { return };
        if let Some(round) = reports.begins_round(una, max) {
            let change = self.snd.cc.on_round(round);
            self.snd.note(conn, cx, change, Cause::SlowStartExit);
        }
    }
}
