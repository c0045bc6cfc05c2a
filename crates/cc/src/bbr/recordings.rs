//! Replays two transfers of a real kernel (golden/linux), ACK by ACK, through the model.
//!
//! Input: the kernel's measurements (bandwidth, minimum RTT, rounds, and ACK aggregation, for which
//! the recording's times are not exact enough), deliveries and losses, and the stack's congestion
//! state; the pacing delay follows from the packets sent. The model runs freely from the first ACK
//! to the last; after each ACK its conclusions are compared: phase, gains, full pipe, window,
//! pacing rate, saved state.

use core::fmt::Debug;

use super::*;
use crate::contract::DeliveryRate;

/// Rows addressed by column name.
struct Rows {
    names: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

impl Rows {
    fn read(transfer: &str) -> Self {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/linux");
        let file = std::fs::File::open(format!("{root}/{transfer}/kstate_f0.csv.gz")).unwrap();
        let mut reader = csv::Reader::from_reader(flate2::read::MultiGzDecoder::new(file));
        let names = reader.headers().unwrap().iter().map(str::to_owned).collect();
        Self { names, rows: reader.records().map(Result::unwrap).collect() }
    }

    fn text(&self, row: usize, name: &str) -> &str {
        let column = self.names.iter().position(|known| known == name).unwrap();
        &self.rows[row][column]
    }

    fn number(&self, row: usize, name: &str) -> u64 {
        let text = self.text(row, name);
        text.parse().unwrap_or_else(|_| panic!("{name} of row {row}: {text:?}"))
    }

    fn small(&self, row: usize, name: &str) -> u32 {
        self.number(row, name) as u32
    }

    fn mode(&self, row: usize) -> BbrMode {
        match self.text(row, "bbr_mode") {
            "STARTUP" => BbrMode::Startup,
            "DRAIN" => BbrMode::Drain,
            "PROBE_BW" => BbrMode::ProbeBw,
            "PROBE_RTT" => BbrMode::ProbeRtt,
            other => panic!("{other}"),
        }
    }
}

/// Fields that differ: the count and the first difference of each.
#[derive(Default)]
struct Differences(Vec<(&'static str, u64, String)>);

impl Differences {
    fn compare<T: PartialEq + Debug + Copy>(
        &mut self,
        row: usize,
        name: &'static str,
        theirs: T,
        ours: T,
    ) {
        if theirs == ours {
            return;
        }
        match self.0.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, count, _)) => *count += 1,
            None => {
                let first = format!("line {}: theirs {theirs:?}, ours {ours:?}", row + 2);
                self.0.push((name, 1, first));
            }
        }
    }
}

/// Replays a transfer: returns the number of ACKs compared, and the differences.
fn replay(transfer: &str) -> (u64, Differences) {
    let rows = Rows::read(transfer);
    let mut found = Differences::default();
    let at = |row: usize| {
        let micros: f64 = rows.text(row, "t_us").parse().unwrap();
        Instant::ZERO + Duration::from_nanos(((micros + 1e6) * 1e3) as u64)
    };
    let mut bbr = Bbr::new(250, RandomStream::named(1, transfer, "bbr"));
    let first = (0..rows.rows.len()).find(|&row| rows.text(row, "ev") == "A").unwrap();
    let _ = bbr.on_established(&ConnectionStart {
        now: at(1),
        ticks: 0,
        created_ticks: 0,
        una: Offset(0),
        mss: 1_448,
        maxseg: 1_460,
        snd_scale: 0,
        syn_retransmitted: false,
        rtt: None,
        ssthresh: None,
    });
    bbr.min_rtt = Some(rows.small(first, "bbr_min_rtt_us"));
    bbr.init_pacing_rate(rows.small(first, "srtt_us"));
    found.compare(first, "first rate", rows.number(first, "pacing_Bps"), bbr.pacing_rate);
    let mut acks = 0;
    // Time until which pacing holds the next packet (`tcp_wstamp_ns`).
    let mut departure = at(1);
    for row in 1..rows.rows.len() {
        // A retransmission has a row of each kind.
        if rows.text(row, "ev") == "X" {
            let now = at(row).max(departure);
            let credit = now.since(departure).as_nanos();
            let bytes = rows.number(row, "end") - rows.number(row, "seq");
            let span = bytes * 1_000_000_000 / rows.number(row, "pacing_Bps").max(1);
            departure = now + Duration::from_nanos(span - credit.min(span / 2));
        }
        if row < first || rows.text(row, "ev") != "A" {
            continue;
        }
        // A change of state is recorded in the middle of an ACK.
        let Some(after) = (row + 1..rows.rows.len()).find(|&next| rows.text(next, "ev") != "C")
        else {
            break;
        };
        acks += 1;
        let delivered = rows.number(after, "delivered");
        let acked = (delivered - rows.number(row, "delivered")) as u32;
        let lost = rows.number(after, "lost_total");
        let losses = (lost - rows.number(row, "lost_total")) as u32;
        let congested = |signal| CongestionEvent {
            now: at(row),
            ticks: 0,
            signal,
            th_ack: Offset(0),
            snd_max: Offset(0),
            pipe: 0,
            snd_wnd: 0,
            lost: 0,
        };
        for change in row + 1..after {
            match rows.text(change, "new_state") {
                "3" => {
                    let _ = bbr.on_congested(&congested(CongestionSignal::Loss));
                }
                "0" => {
                    let _ = bbr.on_recovered(&RecoveryEnd { th_ack: Offset(0), pipe: 0 });
                }
                "1" => {}
                other => panic!("state {other} in {transfer}"),
            }
        }
        let new_round = rows.small(after, "bbr_rtt_cnt") != rows.small(row, "bbr_rtt_cnt");
        let min_rtt = rows.small(after, "bbr_min_rtt_us");
        let sample = RateSample {
            ticks: 0,
            rate: (acked > 0).then_some(DeliveryRate {
                delivered: 0,
                interval_us: 1,
                prior_delivered: if new_round { u64::MAX } else { 0 },
                app_limited: rows.text(after, "rate_app_limited") == "1",
            }),
            acked,
            losses,
            delivered,
            lost,
            delivered_at: at(row),
            delivered_clock: at(row).as_nanos(),
            rtt_us: (Some(min_rtt) != bbr.min_rtt).then_some(min_rtt),
            ack_delayed: false,
            srtt_us: rows.small(after, "srtt_us"),
            prior_in_flight: rows.small(row, "inflight"),
            in_flight: rows.small(after, "inflight"),
            until_next_departure: departure.max(at(row)).since(at(row)),
            signals: crate::PathSignals::NONE,
        };
        // The measured bandwidth, which an empty sample does not change.
        bbr.bw = MaxFilter::new(rows.small(after, "bbr_rtt_cnt"));
        bbr.bw.update(rows.small(after, "bbr_rtt_cnt"), rows.number(after, "bbr_bw_pkts_us24"));
        let was = bbr.mode;
        bbr.update_model(&sample);
        let extra = ["bbr_extra_acked0", "bbr_extra_acked1"].map(|name| rows.small(after, name));
        bbr.aggregation.set_extra(extra);
        let phase = rows.small(after, "bbr_cycle_idx") as usize;
        if bbr.mode == BbrMode::ProbeBw && phase != bbr.cycle_idx {
            if was == BbrMode::ProbeBw {
                found.compare(row, "cycle_idx", phase, bbr.cycle_idx);
            }
            // The first phase is random; the time of others is not known to the microsecond.
            (bbr.cycle_idx, bbr.cycle_stamp) = (phase, at(row));
            bbr.update_gains();
        }
        bbr.apply(&sample);
        found.compare(row, "mode", rows.mode(after), bbr.mode);
        found.compare(row, "cwnd", rows.small(after, "cwnd"), bbr.snd_cwnd);
        found.compare(row, "pacing rate", rows.number(after, "pacing_Bps"), bbr.pacing_rate);
        found.compare(row, "pacing gain", rows.small(after, "bbr_pacing_gain"), bbr.pacing_gain);
        found.compare(row, "cwnd gain", rows.small(after, "bbr_cwnd_gain"), bbr.cwnd_gain);
        let flag = |name| rows.small(after, name) == 1;
        found.compare(row, "full", flag("bbr_full_bw_reached"), bbr.full_bw_reached);
        found.compare(row, "full_bw_cnt", rows.small(after, "bbr_full_bw_cnt"), bbr.full_bw_cnt);
        found.compare(row, "full_bw", rows.number(after, "bbr_full_bw"), bbr.full_bw);
        found.compare(row, "rtt_cnt", rows.small(after, "bbr_rtt_cnt"), bbr.rtt_cnt);
        let conserves = flag("bbr_pkt_conservation");
        found.compare(row, "conservation", conserves, bbr.packet_conservation);
        found.compare(row, "prior_cwnd", rows.small(after, "bbr_prior_cwnd"), bbr.prior_cwnd);
        let policed = bbr.long_term.bw().is_some();
        found.compare(row, "lt_use_bw", flag("bbr_lt_use_bw"), policed);
    }
    (acks, found)
}

/// Phase ends are known to some tens of microseconds: those that came an ACK early or late are
/// corrected, and counted.
fn is_followed(transfer: &str, phases_off: u64) {
    let (acks, mut found) = replay(transfer);
    let phases = found.0.iter().position(|(name, ..)| *name == "cycle_idx");
    let off = phases.map_or(0, |at| found.0.remove(at).1);
    assert!(found.0.is_empty() && acks > 1_000, "{acks} ACKs: {:#?}", found.0);
    assert!(off <= phases_off, "{off} phases");
}

#[test]
fn startup_matches_a_real_kernel_ack_by_ack() {
    is_followed("a3_slowstart_bbr", 0);
}

#[test]
fn random_loss_matches_a_real_kernel_ack_by_ack() {
    is_followed("c5_loss2r_rtt45_bbr", 4);
}
