//! What the log of the peer shows of the packets that this host sent.

use super::analysis::QuicAnalysis;
use super::record::QuicLossTrigger;

/// Packets of a sender in the log of its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicPeerView {
    /// Packets that the sender declared lost.
    pub declared_lost: u64,
    /// Those of them that arrived, before or after.
    pub arrived: u64,
    /// Longest time in ns by which one arrived after it was declared lost; 0 if all arrived before, or unknown.
    pub late: u64,
}

impl QuicAnalysis {
    /// Adds what the log of the peer shows. If most of the packets declared lost arrived, the congestion events were
    /// spurious, whether or not the own log shows the late ACKs.
    pub fn add_peer_view(&mut self, view: QuicPeerView) {
        let known = self.spurious.max(self.reported_spurious);
        if view.arrived <= known || view.arrived * 2 <= view.declared_lost {
            return;
        }
        self.spurious = view.arrived;
        for episode in &mut self.episodes {
            episode.spurious = episode.lost;
        }
        let (first, last) = (self.episodes.first(), self.episodes.last());
        if let (Some(first), Some(last), 0) = (first, last, self.reordering.interval.1) {
            self.reordering.interval = (first.at, last.at);
            self.reordering.events = (first.events.0, last.events.1);
        }
        self.reordering.late = self.reordering.late.max(view.late);
        // The log may have no events of losses, but their peer's arrivals.
        if self.lost.is_empty() {
            self.lost.insert(QuicLossTrigger::Unknown, view.declared_lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::QuicDiagnosis;
    use crate::quic::analysis::QuicEpisode;
    use crate::quic::budget::{QuicLimiter, QuicSpan};

    const MS: u64 = 1_000_000;

    /// Ten losses in five events that hold the window for a second, of a log without late ACKs.
    fn sender() -> QuicAnalysis {
        let mut analysis = QuicAnalysis {
            last: 2_000 * MS,
            stream_bytes: 1_000_000,
            sent: 1_000,
            received: 500,
            round_trips: Some([20 * MS; 3]),
            windows: Some([12_000, 60_000, 30_000]),
            ..QuicAnalysis::default()
        };
        analysis.lost.insert(QuicLossTrigger::Packets, 10);
        for n in 0..5 {
            let mut span = QuicSpan::default();
            span.add(n * 400 * MS, (n * 400 + 200) * MS, 10 * n + 2);
            let event = QuicEpisode { at: n * 400 * MS, lost: 2, span, ..QuicEpisode::default() };
            analysis.episodes.push(event);
        }
        analysis.budget.spans[QuicLimiter::Window as usize].add(0, 2_000 * MS, 60);
        analysis
    }

    #[test]
    fn losses_that_the_peer_received_are_reordering() {
        let mut analysis = sender();
        assert_eq!(QuicDiagnosis::of(&analysis).primary, Some("CC811"));
        analysis.add_peer_view(QuicPeerView { declared_lost: 10, arrived: 3, late: 0 });
        assert_eq!(QuicDiagnosis::of(&analysis).primary, Some("CC811"));
        analysis.add_peer_view(QuicPeerView { declared_lost: 10, arrived: 9, late: 5 * MS });
        let diagnosis = QuicDiagnosis::of(&analysis);
        assert_eq!(diagnosis.primary, Some("CC812"));
        assert!(diagnosis.findings[0].cost.as_nanos() >= 900 * MS, "{:?}", diagnosis.findings[0]);
    }
}
