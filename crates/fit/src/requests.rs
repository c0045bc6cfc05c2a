//! Lost data of the direction that has less of them: of requests, for which the other direction waits.

use diagnose::capture_point::CapturePoint;
use diagnose::{Analysis, FlowAnalysis};

use crate::LossEstimate;
use crate::fitted::timeouts;

/// Numbers of the lost packets with data of the direction that has less of them: of requests, for example.
pub(crate) fn lost_of_other_direction(
    analysis: &Analysis,
    flow: &FlowAnalysis,
    rtt: u64,
) -> Vec<u64> {
    let dir = flow.dir.reversed();
    let Some(other) = analysis.flows[dir as usize].as_deref().filter(|other| other.mss > 0) else {
        return Vec::new();
    };
    let packets = &analysis.packets;
    let late = (rtt / 4).max(other.reordering.late.as_nanos());
    let losses = match other.point {
        CapturePoint::Receiver => {
            LossEstimate::at_receiver(packets, dir, other.mss, late, &timeouts(other))
        }
        _ => LossEstimate::at_sender(packets, dir, other.mss, rtt),
    };
    losses.packets.into_iter().map(|(number, _)| number).collect()
}
