//! Rows of FreeBSD's NewReno: [`cc::NewReno`].

use cc::NewReno;
use cc::hystart::{HyStartFreeBsd, HyStartMode};
use cc::newreno::NewRenoParams;

use super::controller::{self, GoldenController};
use super::rows::{GoldenError, GoldenRows, GoldenTally};

impl GoldenController for NewReno {
    fn of_version(version: &str, _hz: u32, hystart: HyStartMode) -> Option<Self> {
        let params = match version {
            "13.0" => NewRenoParams::FREEBSD_13_0,
            "14.3" => NewRenoParams::FREEBSD_14_3,
            "main202410" => NewRenoParams::FREEBSD_MAIN_2024_10,
            "main2025" => NewRenoParams::FREEBSD_MAIN_2025,
            _ => return None,
        };
        Some(Self::new(controller::allowed(params, hystart)))
    }

    fn windows(&self) -> [u32; 3] {
        [self.snd_cwnd(), self.snd_ssthresh(), self.bytes_acked()]
    }

    fn flags(&self) -> [bool; 3] {
        [self.in_fastrecovery(), self.in_congrecovery(), self.sent_a_wnd()]
    }

    fn hystart(&self) -> &HyStartFreeBsd {
        self.hystart()
    }
}

/// Replays all connections.
pub(super) fn replay(rows: &mut GoldenRows, tally: &mut GoldenTally) -> Result<(), GoldenError> {
    let [flags] = rows.columns(["hystart_flags"])?;
    controller::replay::<NewReno>(rows, tally, |cc, row, tally| {
        // 2 is ENABLED, 4 is IN_CSS.
        let hystart = cc.hystart();
        let bits = 2 * u8::from(hystart.enabled) + 4 * u8::from(hystart.in_css);
        row.compare(tally, flags, bits);
    })
}
