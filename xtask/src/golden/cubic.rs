//! Rows of FreeBSD's CUBIC: [`cc::FreeBsdCubic`].

use cc::FreeBsdCubic;
use cc::cubic::CubicParams;
use cc::hystart::{HyStartFreeBsd, HyStartMode};
use cc::{Controller, newreno};

use super::controller::{self, GoldenController};
use super::rows::{GoldenError, GoldenRows, GoldenTally};

impl GoldenController for FreeBsdCubic {
    fn of_version(version: &str, hz: u32, hystart: HyStartMode) -> Option<Self> {
        let (params, newreno) = match version {
            "13.0" => (CubicParams::FREEBSD_13_0, newreno::NewRenoParams::FREEBSD_13_0),
            "main202207_ticks" => {
                (CubicParams::FREEBSD_MAIN_2022_07, newreno::NewRenoParams::FREEBSD_14_3)
            }
            "preD46546" => {
                (CubicParams::FREEBSD_BEFORE_D46546, newreno::NewRenoParams::FREEBSD_MAIN_2024_10)
            }
            "D46546" => (CubicParams::FREEBSD_D46546, newreno::NewRenoParams::FREEBSD_MAIN_2024_10),
            "rfc9438" => (CubicParams::FREEBSD_RFC9438, newreno::NewRenoParams::FREEBSD_MAIN_2025),
            _ => return None,
        };
        Some(Self::new(params, controller::allowed(newreno, hystart), hz))
    }

    fn windows(&self) -> [u32; 3] {
        [self.snd_cwnd(), self.snd_ssthresh(), self.bytes_acked()]
    }

    fn flags(&self) -> [bool; 3] {
        [self.in_recovery(), self.in_congrecovery(), self.sent_a_wnd()]
    }

    fn hystart(&self) -> &HyStartFreeBsd {
        self.hystart()
    }
}

/// Replays all connections.
pub(super) fn replay(rows: &mut GoldenRows, tally: &mut GoldenTally) -> Result<(), GoldenError> {
    let columns = rows.columns([
        "K_fp8",
        "W_max",
        "t_epoch",
        "cubic_flags",
        "min_rtt",
        "mean_rtt",
        "sum_rtt",
        "epoch_acks",
        "cwnd_epoch",
    ])?;
    controller::replay::<FreeBsdCubic>(rows, tally, |cc, row, tally| {
        let epoch = cc.epoch();
        let flags = [
            epoch.cong_event,
            epoch.in_slow_start,
            epoch.in_applimit,
            epoch.rto_event,
            cc.hystart().enabled,
            cc.hystart().in_css,
            epoch.in_tf,
        ];
        let bits = flags.into_iter().rev().fold(0, |bits, flag| 2 * bits + i64::from(flag));
        let values = [
            epoch.k,
            epoch.w_max as i64,
            i64::from(epoch.t_epoch),
            bits,
            i64::from(epoch.min_rtt),
            i64::from(epoch.mean_rtt),
            epoch.sum_rtt,
            i64::from(epoch.epoch_acks),
            i64::from(epoch.cwnd_epoch),
        ];
        for (column, value) in columns.into_iter().zip(values) {
            row.compare(tally, column, value);
        }
    })
}
