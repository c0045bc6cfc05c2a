//! Losses told by the time packets were sent: RACK-TLP (RFC 8985) as the RFC has it, and as Linux does
//! it (tcp_ack, tcp_fastretrans_alert). FreeBSD's RACK stack has steps of its own (`super::rack`).
//!
//! An acknowledgment goes through the same steps everywhere: what was delivered (`account`), whether
//! the recovery ends or was needless, what is lost now, how much may be sent (`episode`, `budget`). `judge`
//! tells what each system concludes from what was delivered; `timers` has the reordering timer, the
//! probe and the timeout. Linux alone: `frto` (was a timeout needless?), `reneging` (a receiver
//! drops what it reported), `reports` (duplicates and late packets, counted).

mod budget;
mod calm;
mod episode;
mod frto;
mod judge;
mod reneging;
mod reports;
mod send;
mod timers;
mod xmit_timer;

use core::hint::cold_path;

use cc::{Acked, Change, Controller, Recovered, Signal as Sign};
use machine::Cx;
use packet::Segment;
use record::{Cause, Event, Purpose, Recorder};
use recovery::apart::Apart;
use recovery::dsack::{self, Block};
use recovery::rack::{Found, Standing};
use recovery::reordering::Reordering;
use recovery::sendmap::{Piece, SendMap};
use recovery::tlp::{ProbeAck, PtoRule, Tlp, Verdict};
use recovery::undo::older;
use units::{Duration, Instant, Offset, unlikely};

use super::{Heard, Repair};
use crate::endpoint::Endpoint;
use crate::profile::TimedRule;
use crate::rates::Delivery;
use crate::sent::Delivered;
use budget::Budget;
use episode::Episode;
use frto::Frto;
use judge::{Judge, Moment};

/// Linux grants the reordering timer this much more (`TCP_TIMEOUT_MIN_US`, tcp_rack_mark_lost).
const LINUX_TIMEOUT_MIN: Duration = Duration::from_millis(2);

/// What a stack that judges by time knows of losses.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct TimedLoss {
    judge: Judge,
    tlp: Tlp,
    pto: PtoRule,
    /// What a recovery, or a timeout's repair, has beside the judge's part.
    episode: Apart<Episode>,
    /// A probe is to leave.
    probe_due: bool,
    /// When a probe for more than one packet was planned, unless an acknowledgment came since.
    planned: Option<Instant>,
    /// Whether the last timeout was needless is being found out.
    frto: Frto,
    /// How far apart packets arrive.
    reordering: Reordering,
}

/// What an acknowledgment delivered.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    bytes: u64,
    packets: u64,
    /// Bytes it covers or newly reports; what was reported before it covers counts once more
    /// (`changed` of rack_log_ack).
    changed: u64,
    /// Packets that this acknowledgment covers, and those it reports.
    acked: Delivered,
    reported: Delivered,
    /// Packets newly reported.
    newly_reported: u64,
    /// What was delivered of packets sent once: lowest start and lowest end.
    first_reported: Option<Block>,
    first_acked: Option<Block>,
}

impl TimedLoss {
    pub(crate) fn new(rule: TimedRule, hz: u32) -> Self {
        let pto = match rule {
            // RFC 8985 section 7.2: the peer may delay by 200 ms, if nothing better is known.
            TimedRule::Rfc => PtoRule::Rfc { max_ack_delay: Duration::from_millis(200) },
            TimedRule::Linux => PtoRule::Linux { hz },
        };
        Self {
            judge: Judge::new(rule),
            tlp: Tlp::new(),
            pto,
            episode: Apart::default(),
            probe_due: false,
            planned: None,
            frto: Frto::OFF,
            reordering: Reordering::new(),
        }
    }

    /// Was the probe of the flight planned at that very instant?
    #[inline]
    pub(crate) fn planned_at(&self, now: Instant) -> bool {
        self.planned == Some(now)
    }

    /// Is a probe to leave?
    #[inline]
    pub(crate) const fn probe_is_due(&self) -> bool {
        self.probe_due
    }
}

impl TimedLoss {
    /// Is what a timeout took for lost still being repaired?
    pub(crate) fn repairs_timeout(&self) -> bool {
        self.episode.timeout_until.is_some()
    }
}

/// The part of the endpoint's state that this folder is about; nothing happens without.
macro_rules! timed_of {
    ($endpoint:expr) => {
        match &mut $endpoint.snd.repair {
            $crate::loss::Repair::Timed(loss) => loss,
            _ => return Default::default(),
        }
    };
}
use timed_of;

impl Endpoint {
    /// An acceptable acknowledgment.
    pub(crate) fn timed_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        heard: &Heard,
    ) {
        let advances = heard.th_ack > self.snd.una;
        if !advances && heard.blocks().is_empty() && !self.is_whole() {
            return;
        }
        self.begin_rate_sample();
        let echo = segment.timestamps.filter(|_| self.link.timestamps).map(|stamps| stamps.ecr);
        if advances {
            self.undo_timed_timeout(cx, echo);
        }
        let (one_timer, awaited) = (self.has_one_timer(), self.awaits_reordering_or_probe());
        let account = self.account(cx.now, heard, echo);
        if account.newly_reported > 0 {
            let count = self.snd.map.sums().sacked.packets.min(u64::from(u32::MAX)) as u32;
            cx.emit(|| Event::DupAck { count });
        }
        self.take_timed_rtt(cx, segment, heard.th_ack, &account);
        if advances {
            self.snd.shift = 0;
            if heard.th_ack == self.snd.max {
                self.timers.stop(Purpose::Retransmit);
            } else if !one_timer {
                self.arm_retransmit(cx.now);
            }
        }
        self.hear_of_duplicate(cx, heard, &account);
        self.judge_timeout(cx, heard, &account);
        self.settle_recovery(cx, heard, echo);
        let reneged = self.heed_reneging(cx.now, advances);
        let found = self.detect_losses(cx.now, true);
        if !one_timer {
            self.watch_reordering(cx.now, &found);
        } else if !reneged {
            let sets = self.sets_timer(advances, &account);
            self.set_timer(cx.now, found.again_after, sets, awaited);
        }
        self.act_on_losses(cx, &found);
        if self.cc.in_recovery() && self.snd.ecn_episode.is_none() {
            self.spend(cx, &account, advances, found.packets > 0);
        }
        if advances {
            let change = self.grow(cx.now, heard.th_ack, account.packets, heard.nsegs);
            self.advance(cx, heard.th_ack, heard.wnd, heard.nsegs, change);
        } else if account.newly_reported > 0 && self.grows_on_reports() {
            let change = self.grow(cx.now, heard.th_ack, account.packets, heard.nsegs);
            self.note(cx, change, Cause::SlowStart);
        }
        if self.is_whole() {
            self.end_timed_sample(cx, &account);
        }
        self.plan_probe_timer(cx.now);
        self.call_output();
    }

    /// Tells a controller that sets window and rate itself what the acknowledgment delivered.
    #[cold]
    fn end_timed_sample<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, account: &Account) {
        let bare = account.newly_reported == 0;
        let delivery = Delivery {
            packets: account.packets,
            bare_bytes: if bare { account.changed } else { 0 },
        };
        self.end_rate_sample(cx, &delivery);
    }

    /// Takes blocks and acknowledgment into the map of what is under way.
    fn account(&mut self, now: Instant, heard: &Heard, echo: Option<u32>) -> Account {
        let moment = Moment { now, min_rtt: self.totals.min_rtt.unwrap_or(Duration::ZERO) };
        let clock = self.clock;
        // Does the acknowledgment echo what was sent before the packet left again?
        let echo_older =
            |sent_at: Instant| echo.is_some_and(|e| older(e, clock.timestamp(sent_at)));
        let mut account = Account::default();
        let duplicates = self.count_duplicates(heard);
        let (mss, una) = (self.mss(), self.snd.una);
        let map = &mut self.snd.map;
        let left = |map: &SendMap| {
            let sums = map.sums();
            (sums.all.bytes - sums.sacked.bytes, sums.all.packets - sums.sacked.packets)
        };
        let before = left(map);
        let highest = map.highest_sacked().unwrap_or(una);
        let loss = timed_of!(self);
        loss.planned = None;
        let judge = &mut loss.judge;
        // First what it covers: that was not passed by what the same acknowledgment reports.
        let rates = &mut self.snd.rates;
        map.acknowledge(heard.th_ack, |piece| {
            account.acked.add(piece);
            if let Some(rates) = rates {
                cold_path();
                rates.delivery.on_delivered(piece.end(), false);
            }
            lower(&mut account.first_acked, piece);
            // Only of one sent twice does it tell anything.
            let older = piece.transmissions() > 1 && echo_older(piece.sent_at());
            judge.on_acked(piece, older, &moment);
        });
        let reported = map.apply_sack(heard.blocks(), |piece| {
            account.reported.add(piece);
            if let Some(rates) = rates {
                cold_path();
                rates.delivery.on_delivered(piece.end(), true);
            }
            lower(&mut account.first_reported, piece);
            let older = piece.transmissions() > 1 && echo_older(piece.sent_at());
            judge.on_reported(piece, older, &moment);
        });
        account.newly_reported = reported.packets;
        account.changed = heard.th_ack.since(una).get() + reported.bytes;
        let after = left(map);
        account.bytes = before.0.saturating_sub(after.0);
        account.packets = before.1.saturating_sub(after.1) + duplicates;
        // Against what was reported before: tcp_sacktag_one and tcp_clean_rtx_queue.
        let behind = map.highest_sacked().unwrap_or(heard.th_ack.max(una));
        for first in [account.first_reported, account.first_acked] {
            if let Some((start, _)) = first
                && unlikely(start < highest)
            {
                loss.reordering.on_late(start, behind, mss);
            }
        }
        account
    }

    /// What the acknowledgment reports to have arrived twice, and what it says of a probe.
    fn hear_of_duplicate<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        heard: &Heard,
        account: &Account,
    ) {
        if heard.blocks().is_empty() && !timed_of!(self).tlp.probing() {
            // No report, and no probe that it could tell of.
            return;
        }
        let duplicate = dsack::duplicate(heard.th_ack, heard.blocks());
        let (una, max, mss) = (self.snd.una, self.snd.max, self.mss());
        let loss = timed_of!(self);
        let verdict = loss.tlp.on_ack(&ProbeAck {
            th_ack: heard.th_ack,
            duplicate,
            bare_duplicate: heard.th_ack == una && account.bytes == 0 && heard.blocks().is_empty(),
        });
        if let Some(block) = duplicate {
            cold_path();
            let packets = block.1.since(block.0).get().div_ceil(mss).max(1);
            loss.episode.undo.on_duplicate(block, packets, una);
            // The duplicate of a probe shows nothing of reordering, nor to Linux one before packets were
            // seen to be reordered (tcp_dsack_seen).
            let counts = !loss.judge.takes_back() || loss.reordering.seen() > 0;
            if verdict != Verdict::NoLoss && counts {
                loss.judge.on_duplicate(una, max);
            }
        }
        if unlikely(verdict == Verdict::RepairedLoss) && !self.cc.in_recovery() {
            // RFC 8985 section 7.4.2: the window is lowered as for any loss, at once.
            let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
            self.note(cx, change, Cause::LossProbe);
            let pipe = self.snd.map.sums().pipe();
            let change = self.cc.on_recovered(&Recovered { th_ack: heard.th_ack, pipe });
            self.note(cx, change, Cause::Recovered);
        }
    }

    fn standing(&self, now: Instant) -> Standing {
        let in_recovery = match &self.snd.repair {
            Repair::Timed(loss) => self.cc.in_recovery() || loss.episode.timeout_until.is_some(),
            _ => false,
        };
        Standing {
            now,
            in_recovery,
            min_rtt: self.totals.min_rtt.unwrap_or(Duration::ZERO),
            srtt: self.rtt.srtt().unwrap_or(Duration::ZERO),
        }
    }

    /// Looks for losses. Linux does where the acknowledgment has moved RACK's clock on
    /// (tcp_rack_mark_lost), and when its timer fires.
    pub(super) fn detect_losses(&mut self, now: Instant, on_ack: bool) -> Found {
        let sums = self.snd.map.sums();
        if sums.sacked.packets == 0 && sums.lost.packets == 0 {
            // Nothing was passed by anything.
            return Found::default();
        }
        let standing = self.standing(now);
        let map = &mut self.snd.map;
        let Repair::Timed(loss) = &mut self.snd.repair else { return Found::default() };
        if let Judge::Linux(rack) = &mut loss.judge
            && !rack.take_advanced()
            && on_ack
        {
            return Found::default();
        }
        loss.judge.detect(map, &standing)
    }

    /// Sets the timer for what may become lost, where that has one of its own.
    pub(super) fn watch_reordering(&mut self, now: Instant, found: &Found) {
        match found.again_after {
            Some(after) => {
                let at = now + after.max(Duration::from_micros(1));
                self.timers.set(Purpose::Reorder, at);
            }
            None => self.timers.stop(Purpose::Reorder),
        }
    }

    /// The controller counts the packets delivered by an acknowledgment, `snd_una` has not moved yet.
    #[inline(always)]
    pub(in crate::loss) fn grow(
        &mut self,
        now: Instant,
        th_ack: Offset,
        packets: u64,
        nsegs: u32,
    ) -> Change {
        if self.cc.ignores_ack(self.snd.window_limited, self.snd.max_packets_out as u32) {
            self.snd.rtt_sample = None;
            return Change::None;
        }
        self.cc.on_acked(&Acked {
            now,
            ticks: self.clock.tick(now),
            rtt: self.snd.rtt_sample.take(),
            srtt: self.smoothed(),
            snd_nxt: self.snd.nxt,
            una: th_ack,
            bytes: th_ack - self.snd.una,
            packets: packets.min(u64::from(u32::MAX)) as u32,
            nsegs,
            ends_recovery: false,
            resending: self.repairs_timeout(),
            snd_wnd: self.snd.wnd,
            window_limited: self.snd.window_limited,
            max_packets_out: self.snd.max_packets_out as u32,
        })
    }

    /// A round trip from what was acknowledged, else from what was reported.
    fn take_timed_rtt<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        th_ack: Offset,
        account: &Account,
    ) {
        let by_ack = account.acked.packets > 0 || th_ack > self.snd.una;
        let delivered = match timed_of!(self).judge {
            Judge::Linux(_) => account.acked.with_reports(&account.reported),
            Judge::Rfc(_) if by_ack => account.acked,
            Judge::Rfc(_) => account.reported,
        };
        if delivered.packets == 0 {
            return;
        }
        if by_ack || delivered.oldest_sent().is_some() {
            self.take_rtt(cx, segment, th_ack, &delivered);
            timed_of!(self).tlp.on_rtt_sample();
        }
    }
}

/// A packet that was sent once was delivered.
fn lower(first: &mut Option<Block>, piece: &Piece) {
    if piece.transmissions() == 1 && !piece.sacked() {
        let (start, end) = first.unwrap_or((piece.start(), piece.end()));
        *first = Some((start.min(piece.start()), end.min(piece.end())));
    }
}
