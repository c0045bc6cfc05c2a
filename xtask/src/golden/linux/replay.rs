//! What the kernel was told, told to our reno, cubic and PRR.
//!
//! The controller runs freely from the SYN to the last ACK: it is never set to what was recorded.
//! Inputs are what arrived and what the stack concluded (deliveries, losses, changes of the
//! congestion state, what was sent, round trips, the tick); compared is what the controller makes
//! of it, after every ACK.

use cc::{
    AckSample, Acked, Congested, Controller, Established, Idle, LinuxCubic, LinuxReno, Recovered,
    Signal, Smoothed,
};
use recovery::prr::linux::{PrrAck, PrrLinux};
use units::{Bytes, Duration, Instant, Offset};

use super::recording::{Algorithm, Kind, Recording, Sample, ca};

/// Jiffies per second of the recording kernel, and microseconds of a jiffy.
const HZ: u32 = 250;
pub(super) const JIFFY_US: f64 = 4_000.0;
/// Payload of a full segment.
const MSS: i64 = 1_448;
/// Mismatches that are kept for display.
const SHOWN: usize = 5;
/// Before the SYN; times of the recording begin a little below zero.
const START_US: f64 = 1_000_000.0;

/// The epoch moves along when data leaves after a pause, by jiffies that no row tells: they follow
/// from the time of the row, and near a tick they may be one off.
pub(super) const UNCERTAIN: [&str; 1] = ["epoch_start"];

/// What came of a replay.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// ACKs compared.
    pub(super) acks: u64,
    /// Those of them in a recovery, where PRR holds the window.
    pub(super) recovery_acks: u64,
    /// Fields that differ, by name.
    pub(super) mismatches: Vec<(&'static str, u64)>,
    /// The first of them, for people.
    pub(super) first: Vec<String>,
}

impl Tally {
    /// Fields that differ.
    pub(super) fn total(&self) -> u64 {
        self.mismatches.iter().map(|(_, count)| count).sum()
    }

    /// Fields that differ, but for those in [`UNCERTAIN`].
    pub(super) fn unexplained(&self) -> u64 {
        let certain = self.mismatches.iter().filter(|(name, _)| !UNCERTAIN.contains(name));
        certain.map(|(_, count)| count).sum()
    }

    fn compare(&mut self, line: usize, name: &'static str, expected: u64, got: u64) {
        if expected == got {
            return;
        }
        match self.mismatches.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.mismatches.push((name, 1)),
        }
        if self.first.len() < SHOWN {
            self.first.push(format!("line {line}: {name}: expected {expected}, got {got}"));
        }
    }
}

/// What the replay asks of a controller beyond the contract.
trait Replayed: Controller {
    fn windows(&self) -> [u32; 3];
    /// Compares what the algorithm keeps for itself.
    fn compare(&self, tally: &mut Tally, line: usize, after: &Sample);
}

impl Replayed for LinuxReno {
    fn windows(&self) -> [u32; 3] {
        [self.snd_cwnd(), self.snd_cwnd_cnt(), self.snd_ssthresh()]
    }

    fn compare(&self, _: &mut Tally, _: usize, _: &Sample) {}
}

impl Replayed for LinuxCubic {
    fn windows(&self) -> [u32; 3] {
        [self.snd_cwnd(), self.snd_cwnd_cnt(), self.snd_ssthresh()]
    }

    fn compare(&self, tally: &mut Tally, line: usize, after: &Sample) {
        let state = self.operations().state();
        let hystart = self.operations().hystart();
        let mut small = |name, expected: Option<u32>, got: u32| {
            tally.compare(line, name, expected.unwrap_or(0).into(), got.into());
        };
        small("cnt", after.cnt, state.cnt);
        small("last_max_cwnd", after.last_max, state.last_max_cwnd);
        small("last_cwnd", after.last_cwnd, state.last_cwnd);
        small("origin", after.origin, state.bic_origin_point);
        small("K", after.k, state.bic_k);
        small("ack_cnt", after.ack_cnt, state.ack_cnt);
        small("tcp_cwnd", after.tcp_cwnd, state.tcp_cwnd);
        small("delay_min", after.delay_min, state.delay_min);
        small("hy_found", after.found, u32::from(hystart.found()));
        small("hy_sample_cnt", after.sample_cnt, u32::from(hystart.sample_cnt()));
        small("hy_curr_rtt", after.curr_rtt, hystart.curr_rtt());
        let mut time = |name, expected: Option<u64>, got| {
            tally.compare(line, name, expected.unwrap_or(0), got);
        };
        time("last_time", after.last_time, state.last_time);
        time("epoch_start", after.epoch_start, state.epoch_start.unwrap_or(0));
    }
}

/// Replays a recording; `None` for BBR, whose own state `crates/cc/src/bbr/recordings.rs` follows.
pub(super) fn replay(recording: &Recording) -> Option<Tally> {
    match recording.algorithm {
        Algorithm::Reno => Some(Run::new(LinuxReno::new(), recording).run()),
        Algorithm::Cubic => Some(Run::new(LinuxCubic::new(HZ), recording).run()),
        Algorithm::Bbr => None,
    }
}

struct Run<'a, C> {
    cc: C,
    prr: PrrLinux,
    samples: &'a [Sample],
    /// Microseconds of the recording at which the jiffies would have been 0.
    phase: f64,
    last_sent: u64,
    /// Rows up to here have been considered as bursts that leave.
    left: usize,
    /// Packets sent again, as places.
    resent: Vec<(i64, i64)>,
    tally: Tally,
}

impl<'a, C: Replayed> Run<'a, C> {
    fn new(cc: C, recording: &'a Recording) -> Self {
        let samples = &recording.samples;
        let phase = phase(samples);
        Self {
            cc,
            prr: PrrLinux::begin(0),
            samples,
            phase,
            last_sent: 0,
            left: 0,
            resent: Vec::new(),
            tally: Tally::default(),
        }
    }

    fn ticks(&self, at: &Sample) -> u64 {
        ((at.t_us - self.phase) / JIFFY_US).floor() as u64
    }

    fn run(mut self) -> Tally {
        let mut at = 0;
        while at < self.samples.len() {
            at = match self.samples[at].ev {
                Kind::Ack => self.ack(at),
                Kind::Sent => self.sent(at),
                Kind::Again => {
                    let row = &self.samples[at];
                    self.resent.extend(row.seq.zip(row.end));
                    at + 1
                }
                Kind::State => {
                    let row = &self.samples[at];
                    self.state_changes(at, row, row);
                    self.first_of_timer(row);
                    at + 1
                }
            };
        }
        self.tally
    }

    /// A burst left, new or again (what goes again has a row of each kind).
    fn sent(&mut self, at: usize) -> usize {
        let row = &self.samples[at];
        let ticks = self.ticks(row);
        if row.end == row.seq || row.una < 0 {
            if row.una == 0 {
                self.establish(row, ticks);
            }
            return at + 1;
        }
        self.leaves(at);
        if self.cc.in_recovery() {
            self.prr.on_sent(row.packets(MSS).into());
        }
        at + 1
    }

    /// The burst of row `at`, if it is one of data, is about to leave: what the stack does before.
    fn leaves(&mut self, at: usize) {
        let row = &self.samples[at];
        if self.left > at || row.ev != Kind::Sent || row.una < 0 || row.end == row.seq {
            return;
        }
        self.left = at + 1;
        let ticks = self.ticks(row);
        if row.packets_out == 0 {
            let rto = Duration::from_millis(row.rto_ms.into());
            let idle = Duration::from_millis(ticks.saturating_sub(self.last_sent) * 4);
            if idle > rto {
                let _ = self.cc.on_idle(&Idle { ticks, idle, rto });
            }
        }
        if row.inflight == 0 {
            self.cc.on_tx_start(ticks, self.last_sent);
        }
        self.last_sent = ticks;
    }

    /// The ACK of the handshake leaves.
    fn establish(&mut self, row: &Sample, ticks: u64) {
        let _ = self.cc.on_established(&Established {
            now: instant(row),
            ticks,
            una: Offset(1),
            mss: 1,
            maxseg: 1,
            snd_scale: 10,
            syn_retransmitted: false,
            rtt: None,
            ssthresh: None,
        });
        self.last_sent = ticks;
    }

    /// An ACK with the changes of state it causes; the row behind them has the state after it.
    fn ack(&mut self, at: usize) -> usize {
        let before = &self.samples[at];
        let mut next = at + 1;
        let caused = |row: &Sample| row.ev == Kind::State && row.t_us - before.t_us < 1_000.0;
        while self.samples.get(next).is_some_and(caused) {
            next += 1;
        }
        let Some(after) = self.samples.get(next) else { return next };
        self.hear(before, after, at + 1..next);
        // The next row may show more than this ACK did.
        let by_timer = after.ev == Kind::State;
        if by_timer {
            self.state_changes(next, after, after);
        }
        self.leaves(next);
        self.tally.acks += 1;
        // Row 0 stands in line 2.
        let line = at + 2;
        let [cwnd, cwnd_cnt, ssthresh] = self.cc.windows();
        self.tally.compare(line, "cwnd", after.cwnd.into(), cwnd.into());
        self.tally.compare(line, "cwnd_cnt", after.cwnd_cnt.into(), cwnd_cnt.into());
        self.tally.compare(line, "ssthresh", after.ssthresh.into(), ssthresh.into());
        if self.cc.in_recovery() {
            self.tally.recovery_acks += 1;
            let PrrLinux { prr_delivered, .. } = self.prr;
            self.tally.compare(line, "prr_delivered", after.prr_delivered.into(), prr_delivered);
        }
        self.cc.compare(&mut self.tally, line, after);
        if by_timer {
            self.first_of_timer(after);
            return next + 1;
        }
        next
    }

    /// The reordering timer began a recovery: it counts one packet as delivered
    /// (tcp_rack_reo_timeout).
    fn first_of_timer(&mut self, row: &Sample) {
        if row.new_state == Some(ca::RECOVERY) {
            self.spend(1, row, false, false);
        }
    }

    /// PRR, for `packets` delivered.
    fn spend(&mut self, packets: u32, after: &Sample, una_advanced: bool, newly_lost: bool) {
        let window = self.prr.on_ack(&PrrAck {
            acked: packets.into(),
            in_flight: after.inflight.into(),
            una_advanced,
            newly_lost,
            ssthresh: self.cc.windows()[2].into(),
        });
        if let Some(window) = window {
            self.cc.set_window(Bytes(window));
        }
    }

    /// The round trip that the ACK told the controller: by timestamps, in milliseconds, if it
    /// covers what was sent again (then it can be told from the smoothed one), else that of RACK.
    fn round_trip(&self, before: &Sample, after: &Sample) -> u32 {
        let covers = |&(seq, end): &(i64, i64)| seq < after.una && end > before.una;
        if after.una > before.una && self.resent.iter().any(covers) {
            let moved = f64::from(after.srtt_us) - f64::from(before.srtt_us);
            let millis = (f64::from(before.srtt_us) + 8.0 * moved) / 1_000.0;
            millis.round() as u32 * 1_000
        } else {
            after.rack_rtt_us
        }
    }

    fn hear(&mut self, before: &Sample, after: &Sample, states: std::ops::Range<usize>) {
        let packets = after.delivered - before.delivered;
        let advanced = after.una > before.una;
        let ticks = self.ticks_of_ack(before, after);
        let rtt = self.round_trip(before, after);
        if packets > 0 && rtt > 0 {
            let _ = self.cc.on_ack_sample(&AckSample {
                now: instant(before),
                ticks,
                rtt: Duration::from_micros(rtt.into()),
                una: offset(after.una),
                snd_nxt: offset(before.nxt),
                pacing_rate: before.pacing_rate,
            });
        }
        for at in states {
            self.state_changes(at, before, after);
        }
        let sacked = after.sacked_out > before.sacked_out;
        if before.packets_out == 0 {
            // Nothing could be acknowledged.
        } else if self.cc.in_recovery() {
            self.spend(packets, after, advanced, after.lost_total > before.lost_total);
        } else if advanced || (after.reordering > 3 && sacked) {
            let _ = self.cc.on_acked(&Acked {
                now: instant(before),
                ticks,
                rtt: None,
                srtt: Smoothed::default(),
                snd_nxt: offset(before.nxt),
                una: offset(after.una),
                bytes: (after.una - before.una) as u64,
                packets,
                nsegs: 1,
                ends_recovery: false,
                resending: false,
                snd_wnd: 0,
                window_limited: before.cwnd_limited == Some(1),
                max_packets_out: before.max_packets_out,
            });
        }
    }

    /// The tick in which an ACK was handled: the recorded one where cubic noted it.
    fn ticks_of_ack(&self, before: &Sample, after: &Sample) -> u64 {
        match noted(before, after) {
            Noted::Tick(tick) => tick,
            Noted::Held(last) => self.ticks(before).min(last + u64::from(HZ / 32)),
            Noted::Nothing => self.ticks(before),
        }
    }

    /// The stack changed its congestion state.
    fn state_changes(&mut self, at: usize, before: &Sample, after: &Sample) {
        let row = &self.samples[at];
        let pipe = row.inflight.into();
        let congested = |signal| Congested {
            now: instant(row),
            ticks: 0,
            signal,
            th_ack: offset(row.una),
            snd_max: offset(row.nxt),
            pipe,
            snd_wnd: 0,
        };
        match (row.ca_state, row.new_state.unwrap_or(0)) {
            (_, ca::LOSS) => {
                let shift = row.retransmits.unwrap_or(0) + 1;
                let _ = self.cc.on_congested(&congested(Signal::Timeout { shift }));
                self.cc.set_window(Bytes(u64::from(row.inflight) + 1));
            }
            (from, ca::RECOVERY | ca::CWR) if from < ca::CWR => {
                let _ = self.cc.on_congested(&congested(Signal::Loss));
                self.prr = PrrLinux::begin(self.cc.windows()[0].into());
            }
            (ca::CWR | ca::RECOVERY, _) => {
                if after.ssthresh > before.ssthresh {
                    let _ = self.cc.on_congested(&congested(Signal::SpuriousRecovery));
                } else {
                    let _ = self.cc.on_recovered(&Recovered { th_ack: offset(row.una), pipe });
                }
            }
            (ca::LOSS, _) if after.ssthresh > before.ssthresh => {
                let _ = self.cc.on_congested(&congested(Signal::SpuriousTimeout));
            }
            _ => {}
        }
    }
}

/// Sequence numbers count from the first byte; the SYN stands before it.
fn offset(place: i64) -> Offset {
    Offset((place + 1).max(0) as u64)
}

fn instant(row: &Sample) -> Instant {
    Instant::from_nanos(((row.t_us + START_US) * 1_000.0).round() as u64)
}

/// When the jiffies would have been 0, in microseconds of the recording: the middle of what the
/// ticks that cubic noted leave possible.
pub(super) fn phase(samples: &[Sample]) -> f64 {
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    for pair in samples.windows(2) {
        let [before, after] = pair else { continue };
        if before.ev != Kind::Ack {
            continue;
        }
        let began = |tick: u64| before.t_us - tick as f64 * JIFFY_US;
        match noted(before, after) {
            Noted::Tick(tick) => {
                (least, most) = (least.max(began(tick + 1)), most.min(began(tick)));
            }
            Noted::Held(last) => least = least.max(began(last + u64::from(HZ / 32) + 1)),
            Noted::Nothing => {}
        }
    }
    if least.is_finite() { (least + most) / 2.0 } else { -START_US }
}

/// What an ACK tells of its tick.
enum Noted {
    /// It was this one.
    Tick(u64),
    /// No more than HZ/32 had passed since this one.
    Held(u64),
    Nothing,
}

/// bictcp_update counts every ACK, and notes the tick unless the window stood still for less than
/// HZ/32 or the tick is that of the last time.
fn noted(before: &Sample, after: &Sample) -> Noted {
    let ran = before.ack_cnt != after.ack_cnt;
    match after.last_time {
        Some(time) if time > 0 && before.last_time != Some(time) => Noted::Tick(time),
        Some(time) if time > 0 && ran && before.cwnd < before.ssthresh => {
            // Slow start may have ended with this one: the window is not known.
            Noted::Nothing
        }
        Some(time) if time > 0 && ran && before.last_cwnd != Some(before.cwnd) => Noted::Tick(time),
        Some(time) if time > 0 && ran => Noted::Held(time),
        _ => Noted::Nothing,
    }
}
