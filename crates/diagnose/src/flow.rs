//! The data of one direction, when all packets have been seen.

use packet::Dir;

use crate::connection::Syn;
use crate::coverage::Coverage;
use crate::episodes::Episode;
use crate::half::Half;
use crate::place::CapturePoint;
use crate::reordering::Reordering;
use crate::rounds::Round;
use crate::transmissions::Transmissions;
use crate::turns::Turn;

/// One direction's data and what came back for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// The direction.
    pub dir: Dir,
    /// Where the capture was taken, as these data see it.
    pub point: CapturePoint,
    /// Segment size: payload of a full packet, in bytes.
    pub mss: u64,
    /// Bytes of the stream that were seen or acknowledged.
    pub bytes: u64,
    /// Of them: acknowledged, but never seen.
    pub unseen: u64,
    /// First and last moment of the connection, in ns.
    pub span: (u64, u64),
    /// First data: when, and its frame.
    pub first_data: (u64, u64),
    /// Something came back from the receiver after the first data.
    pub answered: bool,
    /// When the last bytes were known to be delivered, in ns.
    pub last_delivery: u64,
    /// Last frame of the connection that concerns these data.
    pub last_frame: u64,
    /// What the transmissions were.
    pub counts: Transmissions,
    /// Reordering.
    pub reordering: Reordering,
    /// How much each ACK acknowledged.
    pub coverage: Coverage,
    /// Shortest, smoothed and longest round-trip time, in ns.
    pub rtt: Option<(u64, u64, u64)>,
    /// Round-trip samples.
    pub rtt_samples: u64,
    /// Window the receiver offered: least, most, last, in bytes; `None` where its scale is not
    /// known.
    pub window: Option<(u64, u64, u64)>,
    /// Times it fell to zero.
    pub zero_windows: u64,
    /// Waits for the application, and the longest of them in ns with the frame that ended it.
    pub pauses: u64,
    /// See `pauses`.
    pub longest_pause: (u64, u64),
    /// ACKs with ECN echo.
    pub ecn_echoes: u64,
    /// Data packets that a queue had marked before they passed this capture point (CE).
    pub marked: u64,
    /// Recoveries and timeouts.
    pub episodes: Vec<Episode>,
    /// Those beyond the ones kept.
    pub more_episodes: u64,
    /// Round trip by round trip.
    pub rounds: Vec<Round>,
    /// Round trips that an entry of `rounds` stands for (more than one in long connections).
    pub rounds_each: u32,
    /// Delivery rates over some segments: the most usual, and those that half and nine tenths of
    /// the bytes stay below; bytes per second.
    pub dispersion: Option<[f64; 3]>,
    /// What its sender heard, the first [`Settings::turns`](crate::Settings::turns) of it.
    pub turns: Vec<Turn>,
    /// SACK was agreed on.
    pub sack: bool,
    /// Timestamps were agreed on.
    pub stamps: bool,
}

impl Flow {
    /// No data at all.
    pub(crate) fn empty(start: u64, end: u64) -> Self {
        Self {
            dir: Dir::Forward,
            point: CapturePoint::Unknown,
            mss: 0,
            bytes: 0,
            unseen: 0,
            span: (start, end),
            first_data: (start, 0),
            answered: false,
            last_delivery: start,
            last_frame: 0,
            counts: Transmissions::default(),
            reordering: Reordering::default(),
            coverage: Coverage::default(),
            rtt: None,
            rtt_samples: 0,
            window: None,
            zero_windows: 0,
            pauses: 0,
            longest_pause: (0, 0),
            ecn_echoes: 0,
            marked: 0,
            episodes: Vec::new(),
            more_episodes: 0,
            rounds: Vec::new(),
            rounds_each: 1,
            dispersion: None,
            turns: Vec::new(),
            sack: false,
            stamps: false,
        }
    }

    pub(crate) fn new(half: Half, syn: &[Option<Syn>; 2], start: u64, end: u64) -> Self {
        let agreed = |has: fn(&Syn) -> bool| syn.iter().all(|syn| syn.as_ref().is_some_and(has));
        let dispersion = half.dispersion.mode().and_then(|mode| {
            Some([mode, half.dispersion.quantile(0.5)?, half.dispersion.quantile(0.9)?])
        });
        Self {
            dir: half.begin.dir,
            point: half.begin.point,
            mss: half.mss,
            bytes: half.bytes(),
            unseen: half.unseen,
            span: (start, end),
            first_data: half.first_data.unwrap_or((start, 0)),
            answered: half.answered,
            last_delivery: half.last_delivery,
            last_frame: half.last_frame,
            counts: half.counts,
            reordering: half.reordering,
            coverage: half.coverage,
            rtt: half.rtt.min.map(|min| (min, half.smoothed(), half.rtt.max.unwrap_or(min))),
            rtt_samples: half.rtt.samples,
            window: (half.window_max > 0).then_some((
                half.window_min,
                half.window_max,
                half.window,
            )),
            zero_windows: half.zero_windows,
            pauses: half.pauses,
            longest_pause: half.longest_pause,
            ecn_echoes: half.ecn_echoes,
            marked: half.marked,
            more_episodes: half.more_episodes,
            rounds_each: half.rounds.each,
            dispersion,
            turns: half.turns.kept,
            sack: agreed(|syn| syn.options.sack_permitted),
            stamps: agreed(|syn| syn.stamps),
            episodes: half.episodes,
            rounds: half.rounds.finish(),
        }
    }
}
