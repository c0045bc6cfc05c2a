//! One direction of a connection: its data, and the ACKs that come back for them.
//!
//! Everything is told from the data sender's view. At a capture point away from the sender, ACKs
//! take effect when they reach it: when data echo their timestamp, or else after the round trip
//! between the capture point and the sender ([`RoundTrip::behind_lately`]).
//!
//! Kept: what is under way ([`Outstanding`]), ACKs that have not reached the sender, at most 8192
//! retransmissions, 16384 episodes, 4096 rounds.

mod acks;
mod again;
mod data;

use std::collections::VecDeque;

use packet::{Dir, SackBlocks};

use crate::coverage::Coverage;
use crate::dispersion::Dispersion;
use crate::episodes::Episode;
use crate::outstanding::Outstanding;
use crate::place::CapturePoint;
use crate::ranges::Ranges;
use crate::reordering::Reordering;
use crate::round_trip::RoundTrip;
use crate::rounds::{Rounds, Spent};
use crate::transmissions::{Open, Transmissions};
use crate::turns::{Turn, Turns, What};

/// The place that stands for the first byte: far enough from zero that earlier ones have places
/// too, when a capture begins in the middle.
pub(crate) const ORIGIN: u64 = 1 << 32;

/// An ACK on its way to the sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    pub(crate) at: u64,
    pub(crate) frame: u64,
    pub(crate) number: u32,
    /// Window it offers, in bytes, and whether its scale is known.
    pub(crate) window: u64,
    pub(crate) scaled: bool,
    pub(crate) stamp: Option<u32>,
    pub(crate) echo: Option<u32>,
    pub(crate) sack: SackBlocks,
    /// It carries no data.
    pub(crate) pure: bool,
    /// It echoes a mark (ECN).
    pub(crate) echo_of_mark: bool,
}

/// What is known when the first data of a direction are seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin {
    pub(crate) dir: Dir,
    pub(crate) point: CapturePoint,
    /// Round trips from the capture point to the receiver and to the sender.
    pub(crate) ahead: Option<u64>,
    pub(crate) behind: Option<u64>,
    /// Segment size, where the opening told it.
    pub(crate) mss: Option<u32>,
    /// Initial sequence number, where it was seen.
    pub(crate) isn: Option<u32>,
    /// First packet of the connection.
    pub(crate) first: u64,
    /// When the sender could have sent.
    pub(crate) open: Option<u64>,
    /// Turns to be kept.
    pub(crate) turns: usize,
}

/// What an ACK told, for the sender's turn.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    acked: u64,
    delivered: u64,
    late: u64,
    rtt: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Half {
    pub(crate) begin: Begin,
    pub(crate) mss: u64,
    first_seq: u32,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    /// Right edge of the window offered, and the largest window there was.
    edge: u64,
    pub(crate) window: u64,
    pub(crate) window_max: u64,
    pub(crate) window_min: u64,
    out: Outstanding,
    sacked: Ranges,
    /// Highest byte known to be delivered.
    fack: u64,
    line: VecDeque<Ack>,
    pub(crate) rtt: RoundTrip,
    pub(crate) delivered: u64,
    pub(crate) dispersion: Dispersion,
    pub(crate) coverage: Coverage,
    pub(crate) reordering: Reordering,
    pub(crate) counts: Transmissions,
    open: Open,
    pub(crate) episodes: Vec<Episode>,
    /// Episodes beyond those kept.
    pub(crate) more_episodes: u64,
    in_episode: bool,
    recover: u64,
    /// A timer has expired and nothing has come back since.
    in_timeout: bool,
    /// When it last did.
    last_timer: u64,
    pub(crate) rounds: Rounds,
    pub(crate) turns: Turns,
    /// The round ends when this place is acknowledged.
    mark: u64,
    round_over: bool,
    /// Up to when the time is accounted for.
    since: u64,
    last_sent: u64,
    last_ack: u64,
    pub(crate) answered: bool,
    last_ack_pure: bool,
    last_push: bool,
    last_short: bool,
    blocked: bool,
    /// When the last byte under way was acknowledged.
    emptied: Option<u64>,
    begun: bool,
    pub(crate) first_data: Option<(u64, u64)>,
    pub(crate) last_delivery: u64,
    pub(crate) last_frame: u64,
    pub(crate) zero_windows: u64,
    window_closed: bool,
    pub(crate) unseen: u64,
    pub(crate) pauses: u64,
    pub(crate) longest_pause: (u64, u64),
    pub(crate) ecn_echoes: u64,
    pub(crate) marked: u64,
    /// The sender has heard of a mark that it has not answered.
    echoed: bool,
    /// What was under way when it first heard of the last mark it heeds ends here.
    mark_recover: u64,
    largest: u32,
    start: u64,
    fin: Option<u64>,
    last_stamp: u32,
    /// A rest that may have been a timer, and when it ended.
    suspect: Option<(u64, u64)>,
    /// When data came that the path had held back.
    held_at: Option<u64>,
}

impl Half {
    pub(crate) fn new(begin: Begin, first_seq: u32) -> Self {
        let mut rtt = RoundTrip::default();
        rtt.opening(begin.ahead, begin.behind);
        Self {
            begin,
            mss: u64::from(begin.mss.unwrap_or(1_448)),
            first_seq: begin.isn.map_or(first_seq, |isn| isn.wrapping_add(1)),
            una: ORIGIN,
            nxt: ORIGIN,
            edge: u64::MAX,
            window: 0,
            window_max: 0,
            window_min: u64::MAX,
            out: Outstanding::default(),
            sacked: Ranges::default(),
            fack: ORIGIN,
            line: VecDeque::new(),
            rtt,
            delivered: 0,
            dispersion: Dispersion::default(),
            coverage: Coverage::default(),
            reordering: Reordering::default(),
            counts: Transmissions::default(),
            open: Open::default(),
            episodes: Vec::new(),
            more_episodes: 0,
            in_episode: false,
            recover: 0,
            in_timeout: false,
            last_timer: 0,
            rounds: Rounds::new(begin.first),
            turns: Turns::new(begin.turns),
            mark: ORIGIN,
            round_over: false,
            since: begin.first,
            last_sent: begin.first,
            last_ack: begin.first,
            answered: false,
            last_ack_pure: true,
            last_push: true,
            last_short: false,
            blocked: false,
            emptied: None,
            begun: false,
            first_data: None,
            last_delivery: 0,
            last_frame: 0,
            zero_windows: 0,
            window_closed: false,
            unseen: 0,
            pauses: 0,
            longest_pause: (0, 0),
            ecn_echoes: 0,
            marked: 0,
            echoed: false,
            mark_recover: ORIGIN,
            largest: 0,
            start: ORIGIN,
            fin: None,
            last_stamp: 0,
            suspect: None,
            held_at: None,
        }
    }

    /// The place of a sequence number, the one nearest to `near`.
    fn place(&self, seq: u32, near: u64) -> u64 {
        let of_near = self.first_seq.wrapping_add((near.wrapping_sub(ORIGIN)) as u32);
        near.saturating_add_signed(i64::from(seq.wrapping_sub(of_near) as i32))
    }

    /// Bytes under way, as far as is known at the sender.
    fn flight(&self) -> u64 {
        (self.nxt - self.una).saturating_sub(self.sacked.bytes())
    }

    /// A host that answers an ACK does so within this: an eighth of the round trip, within the
    /// time a kernel and its card take (0.2 to 2 ms).
    fn reaction(&self) -> u64 {
        (self.rtt.min.unwrap_or(0) / 8).clamp(200_000, 2_000_000)
    }

    pub(crate) fn smoothed(&self) -> u64 {
        self.rtt.smoothed.or(self.rtt.min).unwrap_or(0)
    }

    /// A wait longer than this is longer than a retransmission timeout: the smoothed round trip
    /// and the 200 ms that Linux (`TCP_RTO_MIN`) and FreeBSD (`tcp_rexmit_slop`) add at least.
    fn timeout(&self) -> u64 {
        self.smoothed() + 200_000_000
    }

    fn spend(&mut self, what: Spent, until: u64) {
        self.rounds.spend(what, until.saturating_sub(self.since));
        self.since = self.since.max(until);
    }

    /// Notes a turn of the sender, with everything before `una` acknowledged.
    fn turn(&mut self, at: u64, what: What, una: u64, news: Heard) {
        self.turns.push(Turn {
            at,
            what,
            una: una.saturating_sub(self.start) + 1,
            nxt: self.nxt.saturating_sub(self.start) + 1,
            acked: news.acked,
            delivered: news.delivered,
            late: news.late,
            rtt: news.rtt,
            window: self.window,
            flight: self.flight(),
        });
    }

    fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss).max(1)
    }

    /// The capture ends at `at`.
    pub(crate) fn finish(&mut self, at: u64) {
        while let Some(ack) = self.line.pop_front() {
            let when = (ack.at + self.rtt.behind_lately()).min(at).max(self.since);
            self.ack_arrives(when, &ack);
        }
        if let Some(emptied) = self.emptied {
            self.spend(Spent::Window, emptied);
            self.spend(Spent::Idle, at);
        } else {
            let what = if self.in_timeout {
                Spent::Timeout
            } else if self.in_episode {
                Spent::Recovery
            } else if self.begun {
                Spent::Window
            } else {
                Spent::Idle
            };
            self.spend(what, at);
        }
        if let Some(episode) = self.episodes.last_mut()
            && !episode.over
        {
            episode.end = at;
        }
    }
}
