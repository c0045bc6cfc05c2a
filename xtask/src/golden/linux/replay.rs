//! Replays the recorded inputs of the kernel through our reno, cubic and PRR.
//!
//! The controller runs freely from the SYN to the last ACK: it is never set to recorded values.
//! Inputs are the arrivals and the stack's conclusions (deliveries, losses, changes of the
//! congestion state, transmissions, round trips, the tick); the controller's state is compared
//! after every ACK.

use cc::{
    AckEvent, AckSample, CongestionEvent, CongestionSignal, ConnectionStart, IdleEvent, LinuxCubic,
    LinuxReno, RecoveryEnd, SmoothedRtt, WindowController,
};
use recovery::prr::linux::{PrrLinux, PrrLinuxInput};
use units::{Bytes, Duration, Instant, Offset};

use super::recording::{KstateEvent, KstateRecording, KstateRow, RecordedAlgorithm, ca};

/// Jiffies per second of the recording kernel, and microseconds of a jiffy.
const HZ: u32 = 250;
pub(super) const JIFFY_US: f64 = 4_000.0;
/// Payload of a full segment.
const MSS: i64 = 1_448;
/// Maximum mismatches to display.
const SHOWN: usize = 5;
/// Offset of the simulated time; times of the recording start slightly below zero.
const START_US: f64 = 1_000_000.0;

/// Columns that may be off by one jiffy: the epoch shifts when data is sent after a pause, by
/// jiffies that are not recorded and must be derived from the time of the row.
pub(super) const UNCERTAIN: [&str; 1] = ["epoch_start"];

/// Result of a replay.
#[derive(Debug, Default)]
pub(super) struct ReplayTally {
    /// ACKs compared.
    pub(super) acks: u64,
    /// ACKs in a recovery, where PRR sets the window.
    pub(super) recovery_acks: u64,
    /// Number of differing fields, by name.
    pub(super) mismatches: Vec<(&'static str, u64)>,
    /// Descriptions of the first ones.
    pub(super) first: Vec<String>,
}

impl ReplayTally {
    /// Returns the number of differing fields.
    pub(super) fn total(&self) -> u64 {
        self.mismatches.iter().map(|(_, count)| count).sum()
    }

    /// Returns the number of differing fields, except those in [`UNCERTAIN`].
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

/// State of a controller that the replay compares.
trait Replayed: WindowController {
    fn windows(&self) -> [u32; 3];
    /// Compares the private state of the algorithm.
    fn compare(&self, tally: &mut ReplayTally, line: usize, after: &KstateRow);
}

impl Replayed for LinuxReno {
    fn windows(&self) -> [u32; 3] {
        [self.snd_cwnd(), self.snd_cwnd_cnt(), self.snd_ssthresh()]
    }

    fn compare(&self, _: &mut ReplayTally, _: usize, _: &KstateRow) {}
}

impl Replayed for LinuxCubic {
    fn windows(&self) -> [u32; 3] {
        [self.snd_cwnd(), self.snd_cwnd_cnt(), self.snd_ssthresh()]
    }

    fn compare(&self, tally: &mut ReplayTally, line: usize, after: &KstateRow) {
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

/// Replays a recording; `None` for BBR, which `crates/cc/src/bbr/recordings.rs` replays.
pub(super) fn replay(recording: &KstateRecording) -> Option<ReplayTally> {
    match recording.algorithm {
        RecordedAlgorithm::Reno => Some(LinuxReplay::new(LinuxReno::new(), recording).run()),
        RecordedAlgorithm::Cubic => Some(LinuxReplay::new(LinuxCubic::new(HZ), recording).run()),
        RecordedAlgorithm::Bbr => None,
    }
}

struct LinuxReplay<'a, C> {
    cc: C,
    prr: PrrLinux,
    samples: &'a [KstateRow],
    /// Time of jiffy 0, in microseconds of the recording.
    phase: f64,
    last_sent: u64,
    /// Index of the first row not yet processed as a transmission.
    left: usize,
    /// Ranges of retransmitted packets.
    retransmission: Vec<(i64, i64)>,
    tally: ReplayTally,
}

impl<'a, C: Replayed> LinuxReplay<'a, C> {
    fn new(cc: C, recording: &'a KstateRecording) -> Self {
        let samples = &recording.samples;
        let phase = phase(samples);
        Self {
            cc,
            prr: PrrLinux::begin(0),
            samples,
            phase,
            last_sent: 0,
            left: 0,
            retransmission: Vec::new(),
            tally: ReplayTally::default(),
        }
    }

    fn ticks(&self, at: &KstateRow) -> u64 {
        ((at.t_us - self.phase) / JIFFY_US).floor() as u64
    }

    fn run(mut self) -> ReplayTally {
        let mut at = 0;
        while at < self.samples.len() {
            at = match self.samples[at].ev {
                KstateEvent::Ack => self.ack(at),
                KstateEvent::Sent => self.sent(at),
                KstateEvent::Repeated => {
                    let row = &self.samples[at];
                    self.retransmission.extend(row.seq.zip(row.end));
                    at + 1
                }
                KstateEvent::State => {
                    let row = &self.samples[at];
                    self.state_changes(at, row, row);
                    self.on_reo_timeout(row);
                    at + 1
                }
            };
        }
        self.tally
    }

    /// Processes a transmission; a retransmission has a row of each kind.
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

    /// Does what the stack does before it sends the data burst of row `at`, if it is one.
    fn leaves(&mut self, at: usize) {
        let row = &self.samples[at];
        if self.left > at || row.ev != KstateEvent::Sent || row.una < 0 || row.end == row.seq {
            return;
        }
        self.left = at + 1;
        let ticks = self.ticks(row);
        if row.packets_out == 0 {
            let rto = Duration::from_millis(row.rto_ms.into());
            let idle = Duration::from_millis(ticks.saturating_sub(self.last_sent) * 4);
            if idle > rto {
                let _ = self.cc.on_idle(&IdleEvent { ticks, idle, rto });
            }
        }
        if row.inflight == 0 {
            self.cc.on_tx_start(ticks, self.last_sent);
        }
        self.last_sent = ticks;
    }

    /// Processes the ACK of the handshake.
    fn establish(&mut self, row: &KstateRow, ticks: u64) {
        let _ = self.cc.on_established(&ConnectionStart {
            now: instant(row),
            ticks,
            created_ticks: ticks,
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

    /// Processes an ACK and its state changes; the row after them has the resulting state.
    fn ack(&mut self, at: usize) -> usize {
        let before = &self.samples[at];
        let mut next = at + 1;
        let caused =
            |row: &KstateRow| row.ev == KstateEvent::State && row.t_us - before.t_us < 1_000.0;
        while self.samples.get(next).is_some_and(caused) {
            next += 1;
        }
        let Some(after) = self.samples.get(next) else { return next };
        self.hear(before, after, at + 1..next);
        // The next row may also include effects of a timer.
        let by_timer = after.ev == KstateEvent::State;
        if by_timer {
            self.state_changes(next, after, after);
        }
        self.leaves(next);
        self.tally.acks += 1;
        // Row 0 is on line 2.
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
            self.on_reo_timeout(after);
            return next + 1;
        }
        next
    }

    /// Processes a recovery started by the reordering timer, which counts one packet as delivered
    /// (tcp_rack_reo_timeout).
    fn on_reo_timeout(&mut self, row: &KstateRow) {
        if row.new_state == Some(ca::RECOVERY) {
            self.spend(1, row, false, false);
        }
    }

    /// Applies PRR for `packets` delivered.
    fn spend(&mut self, packets: u32, after: &KstateRow, una_advanced: bool, newly_lost: bool) {
        let window = self.prr.on_ack(&PrrLinuxInput {
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

    /// Returns the round trip passed to the controller: by timestamps, in milliseconds, if the ACK
    /// covers a retransmission (derived from the change of srtt), otherwise that of RACK.
    fn round_trip(&self, before: &KstateRow, after: &KstateRow) -> u32 {
        let covers = |&(seq, end): &(i64, i64)| seq < after.una && end > before.una;
        if after.una > before.una && self.retransmission.iter().any(covers) {
            let moved = f64::from(after.srtt_us) - f64::from(before.srtt_us);
            let millis = (f64::from(before.srtt_us) + 8.0 * moved) / 1_000.0;
            millis.round() as u32 * 1_000
        } else {
            after.rack_rtt_us
        }
    }

    fn hear(&mut self, before: &KstateRow, after: &KstateRow, states: std::ops::Range<usize>) {
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
            let _ = self.cc.on_acked(&AckEvent {
                now: instant(before),
                ticks,
                rtt: None,
                srtt: SmoothedRtt::default(),
                snd_nxt: offset(before.nxt),
                una: offset(after.una),
                bytes: (after.una - before.una) as u64,
                packets,
                nsegs: 1,
                ends_recovery: false,
                retransmitting: false,
                snd_wnd: 0,
                window_limited: before.cwnd_limited == Some(1),
                max_packets_out: before.max_packets_out,
            });
        }
    }

    /// Returns the tick in which an ACK was processed: the recorded one if cubic stored it.
    fn ticks_of_ack(&self, before: &KstateRow, after: &KstateRow) -> u64 {
        match recorded_tick(before, after) {
            RecordedTick::Tick(tick) => tick,
            RecordedTick::Held(last) => self.ticks(before).min(last + u64::from(HZ / 32)),
            RecordedTick::Nothing => self.ticks(before),
        }
    }

    /// Processes a change of the congestion state.
    fn state_changes(&mut self, at: usize, before: &KstateRow, after: &KstateRow) {
        let row = &self.samples[at];
        let pipe = row.inflight.into();
        let congested = |signal| CongestionEvent {
            now: instant(row),
            ticks: 0,
            signal,
            th_ack: offset(row.una),
            snd_max: offset(row.nxt),
            pipe,
            snd_wnd: 0,
            lost: 0,
        };
        match (row.ca_state, row.new_state.unwrap_or(0)) {
            (_, ca::LOSS) => {
                let shift = row.retransmits.unwrap_or(0) + 1;
                let _ = self.cc.on_congested(&congested(CongestionSignal::Timeout { shift }));
                self.cc.set_window(Bytes(u64::from(row.inflight) + 1));
            }
            (from, ca::RECOVERY | ca::CWR) if from < ca::CWR => {
                let _ = self.cc.on_congested(&congested(CongestionSignal::Loss));
                self.prr = PrrLinux::begin(self.cc.windows()[0].into());
            }
            (ca::CWR | ca::RECOVERY, _) => {
                if after.ssthresh > before.ssthresh {
                    let _ = self.cc.on_congested(&congested(CongestionSignal::SpuriousRecovery));
                } else {
                    let _ = self.cc.on_recovered(&RecoveryEnd { th_ack: offset(row.una), pipe });
                }
            }
            (ca::LOSS, _) if after.ssthresh > before.ssthresh => {
                let _ = self.cc.on_congested(&congested(CongestionSignal::SpuriousTimeout));
            }
            _ => {}
        }
    }
}

/// Converts a sequence number, which counts from the first byte after the SYN.
fn offset(place: i64) -> Offset {
    Offset((place + 1).max(0) as u64)
}

fn instant(row: &KstateRow) -> Instant {
    Instant::from_nanos(((row.t_us + START_US) * 1_000.0).round() as u64)
}

/// Returns the time of jiffy 0, in microseconds of the recording: the middle of the interval
/// allowed by the ticks that cubic stored.
pub(super) fn phase(samples: &[KstateRow]) -> f64 {
    let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
    for pair in samples.windows(2) {
        let [before, after] = pair else { continue };
        if before.ev != KstateEvent::Ack {
            continue;
        }
        let began = |tick: u64| before.t_us - tick as f64 * JIFFY_US;
        match recorded_tick(before, after) {
            RecordedTick::Tick(tick) => {
                (least, most) = (least.max(began(tick + 1)), most.min(began(tick)));
            }
            RecordedTick::Held(last) => least = least.max(began(last + u64::from(HZ / 32) + 1)),
            RecordedTick::Nothing => {}
        }
    }
    if least.is_finite() { (least + most) / 2.0 } else { -START_US }
}

/// Tick of an ACK, as far as recorded.
enum RecordedTick {
    /// Exactly this tick.
    Tick(u64),
    /// At most HZ/32 after this tick.
    Held(u64),
    Nothing,
}

/// bictcp_update counts every ACK, and stores the tick unless the window was unchanged for less
/// than HZ/32 or the tick is the last one.
fn recorded_tick(before: &KstateRow, after: &KstateRow) -> RecordedTick {
    let ran = before.ack_cnt != after.ack_cnt;
    match after.last_time {
        Some(time) if time > 0 && before.last_time != Some(time) => RecordedTick::Tick(time),
        Some(time) if time > 0 && ran && before.cwnd < before.ssthresh => {
            // Slow start may have ended with this ACK: the window is unknown.
            RecordedTick::Nothing
        }
        Some(time) if time > 0 && ran && before.last_cwnd != Some(before.cwnd) => {
            RecordedTick::Tick(time)
        }
        Some(time) if time > 0 && ran => RecordedTick::Held(time),
        _ => RecordedTick::Nothing,
    }
}
