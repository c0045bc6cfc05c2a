//! The round trip of the SYN (rack_do_syn_sent, rack_do_syn_recv), and the steps of a measurement.

use machine::Cx;
use packet::Segment;
use record::Recorder;
use recovery::rack_freebsd::micros;
use recovery::{RttEstimator, RttInput, RttMeasurement};
use units::{Duration, Instant, Offset, unlikely};

use super::FreeBsdRack;
use crate::config::TcpSide;
use crate::connection::Connection;
use crate::sender::Sender;

/// The round trip of a SYN, in microseconds: by its transmission time and by its timestamp echo.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SynRtt {
    timed: Option<u64>,
    echoed: Option<u64>,
}

/// Takes the round trip of a SYN: by its timestamp echo, in whole milliseconds, and by its
/// transmission time, if it was sent once and this side opened the connection; both are
/// committed (rack_do_syn_sent, rack_do_syn_recv). Returns them in microseconds.
pub(crate) fn take_syn_rtt<R: Recorder>(
    snd: &mut Sender,
    conn: &Connection,
    cx: &mut Cx<'_, R>,
    segment: &Segment,
) -> Option<SynRtt> {
    let RttEstimator::Rack(rtt) = &mut snd.rtt.estimator else { return None };
    rtt.end_backoff();
    let stamp = segment.timestamps.filter(|s| conn.negotiated.timestamps && s.ecr != 0);
    let echoed = stamp.map(|stamps| {
        let ms = conn.clock.timestamp(cx.now).wrapping_sub(stamps.ecr);
        (u64::from(ms) * 1_000).max(1)
    });
    let sent = snd.rtt.timing.take().filter(|_| conn.cfg.side == TcpSide::Client);
    let timed = sent.map(|(_, sent)| (micros(cx.now) - micros(sent)).max(1));
    let both = timed.map(|timed| echoed.map_or(timed, |echoed| echoed.min(timed)));
    for rtt in [echoed, both].into_iter().flatten() {
        commit_sample(snd, conn, cx, Offset(1), Some(rtt));
    }
    Some(SynRtt { timed, echoed })
}

/// tcp_rack_xmit_timer_commit.
pub(super) fn commit_sample<R: Recorder>(
    snd: &mut Sender,
    conn: &Connection,
    cx: &mut Cx<'_, R>,
    ack: Offset,
    rtt: Option<u64>,
) {
    let Some(rtt) = rtt else { return };
    let rtt = Duration::from_micros(rtt);
    let sample = RttMeasurement::Timed { sent: Instant::ZERO, acked: Instant::ZERO + rtt };
    let (shift, snd_nxt) = (snd.rexmt.shift, snd.nxt);
    let rtt = snd.rtt.estimator.on_sample(&RttInput { sample, shift, snd_una: ack, snd_nxt });
    if unlikely(snd.rtt.timing.is_some_and(|(at, _)| ack > at)) {
        snd.rtt.timing = None;
    }
    snd.note_rtt(conn, cx, ack, rtt, rtt);
}

impl FreeBsdRack<'_> {
    /// The connection is established: `syn` was the round trip of the SYN.
    pub(crate) fn established(&mut self, syn: SynRtt) {
        self.state.on_syn(syn.timed, syn.echoed);
    }
}
