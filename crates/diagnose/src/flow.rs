//! The analysis of the data of one direction.

use packet::Dir;
use units::{Duration, Instant};

use crate::capture_point::CapturePoint;
use crate::connection::Syn;
use crate::coverage::Coverage;
use crate::dispersion::BurstRates;
use crate::episodes::RecoveryEpisode;
use crate::half_connection::HalfConnection;
use crate::reordering::ReorderingStats;
use crate::rounds::{Round, RoundLog};
use crate::sender_events::SenderEvent;
use crate::stalls::AckStalls;
use crate::transmissions::Transmissions;

/// The data of one direction and their ACKs.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowAnalysis {
    /// The direction.
    pub dir: Dir,
    /// The capture point relative to these data.
    pub point: CapturePoint,
    /// Segment size: payload of a full packet, in bytes.
    pub mss: u64,
    /// Full segments were sent, and none was ever acknowledged.
    pub only_smaller_passed: bool,
    /// Bytes of the stream that were captured or acknowledged.
    pub bytes: u64,
    /// Bytes acknowledged but not captured.
    pub unseen: u64,
    /// Distinct bytes captured.
    pub captured: u64,
    /// Delayed ACKs that the sender waited for.
    pub stalls: AckStalls,
    /// First and last moment of the connection.
    pub span: (Instant, Instant),
    /// Time and frame of the first data.
    pub first_data: (Instant, u64),
    /// The receiver sent a packet after the first data.
    pub answered: bool,
    /// The capture has packets of the receiver, of which a SYN is one.
    pub receiver_captured: bool,
    /// Time of the last delivery.
    pub last_delivery: Instant,
    /// Last frame with these data or their ACKs.
    pub last_frame: u64,
    /// Counts of the transmissions.
    pub counts: Transmissions,
    /// Reordering.
    pub reordering: ReorderingStats,
    /// Segments acknowledged per ACK.
    pub coverage: Coverage,
    /// Shortest, smoothed and longest round-trip time.
    pub rtt: Option<(Duration, Duration, Duration)>,
    /// Round-trip samples.
    pub rtt_samples: u64,
    /// Advertised window: smallest, largest, last, in bytes; `None` if its scale is unknown.
    pub window: Option<(u64, u64, u64)>,
    /// What its receiver held unread when it last said so, with that time, in bytes; 0 if the scale is unknown.
    pub unread: (Instant, u64),
    /// Number of times it fell to zero.
    pub zero_windows: u64,
    /// Waits for the application, and the longest with the frame that ended it.
    pub pauses: u64,
    /// See `pauses`.
    pub longest_pause: (Duration, u64),
    /// ACKs with ECE.
    pub ecn_echoes: u64,
    /// Data packets with CE at the capture point.
    pub marked: u64,
    /// Recovery episodes.
    pub episodes: Vec<RecoveryEpisode>,
    /// Episodes beyond the recorded ones.
    pub more_episodes: u64,
    /// Rounds.
    pub rounds: Vec<Round>,
    /// Rounds per entry of `rounds` (more than one in long connections).
    pub rounds_per_entry: u32,
    /// Delivery rates over some segments.
    pub dispersion: Option<BurstRates>,
    /// Events at the sender, at most
    /// [`AnalysisSettings::turns`](crate::AnalysisSettings::turns).
    pub turns: Vec<SenderEvent>,
    /// Duplicate ACKs show that SACK is not in use, and no SYNs that it is.
    pub duplicates_without_sack: bool,
    /// Timestamps were negotiated.
    pub stamps: bool,
}

/// The parts of a flow that grow with its length.
struct FlowCourse {
    episodes: Vec<RecoveryEpisode>,
    rounds: RoundLog,
    turns: Vec<SenderEvent>,
    dispersion: Option<BurstRates>,
}

impl FlowAnalysis {
    /// Whether it is longer than a few initial windows (RFC 6928: ten segments each), so that its
    /// windows matter.
    pub(crate) fn is_sizeable(&self) -> bool {
        self.bytes >= 30 * self.mss.max(536)
    }

    /// A flow without data.
    pub(crate) fn empty(start: Instant, end: Instant) -> Self {
        Self {
            dir: Dir::Forward,
            point: CapturePoint::Unknown,
            mss: 0,
            only_smaller_passed: false,
            bytes: 0,
            unseen: 0,
            captured: 0,
            stalls: AckStalls::default(),
            span: (start, end),
            first_data: (start, 0),
            answered: false,
            receiver_captured: false,
            last_delivery: start,
            last_frame: 0,
            counts: Transmissions::default(),
            reordering: ReorderingStats::default(),
            coverage: Coverage::default(),
            rtt: None,
            rtt_samples: 0,
            window: None,
            unread: (start, 0),
            zero_windows: 0,
            pauses: 0,
            longest_pause: (Duration::ZERO, 0),
            ecn_echoes: 0,
            marked: 0,
            episodes: Vec::new(),
            more_episodes: 0,
            rounds: Vec::new(),
            rounds_per_entry: 1,
            dispersion: None,
            turns: Vec::new(),
            duplicates_without_sack: false,
            stamps: false,
        }
    }

    pub(crate) fn new(
        mut half: HalfConnection,
        syn: &[Option<Syn>; 2],
        start: Instant,
        end: Instant,
    ) -> Self {
        let dispersion = half.deliveries.dispersion.rates();
        let course = FlowCourse {
            episodes: core::mem::take(&mut half.recovery.episodes),
            rounds: core::mem::replace(&mut half.rounds.log, RoundLog::new(end)),
            turns: core::mem::take(&mut half.events.events),
            dispersion,
        };
        Self::with(&half, course, syn, (start, end))
    }

    /// The flow so far, with those of its rounds and episodes that ended after `since`, and without dispersion and
    /// events. What the ACKs on their way to the sender bring is not in it.
    pub(crate) fn since(
        since: Instant,
        half: &HalfConnection,
        syn: &[Option<Syn>; 2],
        span: (Instant, Instant),
    ) -> Self {
        let rounds = half.rounds_since(since, span.1);
        let course = FlowCourse {
            episodes: half.recovery.episodes_since(since, span.1),
            rounds,
            turns: Vec::new(),
            dispersion: None,
        };
        Self::with(half, course, syn, span)
    }

    fn with(
        half: &HalfConnection,
        course: FlowCourse,
        syn: &[Option<Syn>; 2],
        (start, end): (Instant, Instant),
    ) -> Self {
        let agreed = |has: fn(&Syn) -> bool| syn.iter().all(|syn| syn.as_ref().is_some_and(has));
        let answered = half.last.is_answered();
        let only_smaller_passed = half.only_smaller_passed();
        let (idle, bytes, counters) = (&half.idle, &half.bytes, &half.counters);
        let first_data = half.progress.first_data().map(|first| (first.at, first.frame));
        Self {
            dir: half.begin.dir,
            point: half.begin.point,
            mss: half.segment.mss,
            only_smaller_passed,
            bytes: bytes.all(),
            unseen: bytes.unseen,
            captured: bytes.captured,
            stalls: idle.stalls,
            span: (start, end),
            first_data: first_data.unwrap_or((start, 0)),
            answered,
            receiver_captured: answered || syn[half.begin.dir.reversed() as usize].is_some(),
            last_delivery: half.deliveries.last_at,
            last_frame: half.last.frame,
            counts: counters.sent,
            reordering: counters.reordering,
            coverage: counters.coverage,
            rtt: half.rtt.min.map(|min| (min, half.rtt.usual(), half.rtt.max.unwrap_or(min))),
            rtt_samples: half.rtt.samples,
            window: half.window.sizes(),
            unread: half.window.unread(),
            zero_windows: half.window.closures,
            pauses: idle.pauses.count,
            longest_pause: idle.pauses.longest,
            ecn_echoes: half.ecn.echoes,
            marked: half.ecn.marked,
            more_episodes: half.recovery.more_episodes,
            rounds_per_entry: course.rounds.each,
            dispersion: course.dispersion,
            turns: course.turns,
            duplicates_without_sack: half.is_repaired_without_sack()
                && !agreed(|syn| syn.options.sack_permitted),
            stamps: agreed(|syn| syn.stamps),
            episodes: course.episodes,
            rounds: course.rounds.finish(),
        }
    }
}
