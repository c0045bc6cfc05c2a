//! Growth of the modelled TCP-friendly window, by RTT and tick.

use core::fmt::Write;

use cc::cubic::CubicParams;
use cc::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Controller, FreeBsdCubic,
    RecoveryEnd, SmoothedRtt,
};
use recovery::{RttFreeBsd, RttInput, RttMeasurement};
use units::{Bytes, Duration, Instant, Offset};

const MSS: u32 = 1_448;
const HZ: [u32; 4] = [100, 250, 1_000, 10_000];
/// RTTs in microseconds.
const RTTS: [u64; 5] = [100, 1_000, 10_000, 50_000, 200_000];

/// The table as text.
pub(super) fn table() -> String {
    let mut out = String::from(
        "Segments that the TCP-friendly window gains in a round trip, mean of one second\n  \
         NewReno gains 1, RFC 9438 9/17 (0.53), whatever the clock. So do D46546 and its\n  \
         follow-up (1: they use NewReno), and CUBIC of RFC 9438 (0.53).\n",
    );
    for (name, params) in [
        ("in ticks (13.0)", CubicParams::FREEBSD_13_0),
        ("in microseconds (before D46546)", CubicParams::FREEBSD_BEFORE_D46546),
    ] {
        let _ = writeln!(out, "  {name}");
        let head: Vec<String> = HZ.map(|hz| format!("{:>9}", format!("hz {hz}"))).into();
        let _ = writeln!(out, "    {:>8} {}", "rtt", head.join(" "));
        for rtt in RTTS {
            let cells: Vec<String> =
                HZ.map(|hz| format!("{:>9.3}", gained(params, hz, rtt).unwrap_or(0.0))).into();
            let _ = writeln!(out, "    {:>5} ms {}", rtt as f64 / 1e3, cells.join(" "));
        }
    }
    out
}

/// Growth in segments per RTT, averaged over a second.
fn gained(params: CubicParams, hz: u32, rtt_us: u64) -> Option<f64> {
    let newreno = cc::newreno::NewRenoParams::FREEBSD_MAIN_2024_10;
    let mut cubic = FreeBsdCubic::new(params, newreno, hz);
    let mut rtt = RttFreeBsd::new(hz);
    let _ = cubic.on_established(&ConnectionStart {
        now: Instant::ZERO,
        ticks: 0,
        created_ticks: 0,
        una: Offset(0),
        mss: MSS,
        maxseg: MSS,
        snd_scale: 7,
        syn_retransmitted: false,
        rtt: None,
        ssthresh: Some(Bytes(0)),
    });
    let mut now = Instant::ZERO;
    let mut una = 0;
    let acked = |cubic: &mut FreeBsdCubic, rtt: &mut RttFreeBsd, now: Instant, una: u64| {
        // Timestamps count milliseconds.
        let ms =
            now.as_nanos() / 1_000_000 - now.as_nanos().saturating_sub(rtt_us * 1_000) / 1_000_000;
        let sample = RttMeasurement::Echo { ms: ms as u32 };
        let (snd_una, snd_nxt) = (Offset(una), Offset(una));
        let _ = rtt.on_sample(&RttInput { sample, shift: 0, snd_una, snd_nxt });
        let _ = cubic.on_acked(&AckEvent {
            now,
            ticks: rtt.tick(now),
            rtt: None,
            srtt: SmoothedRtt {
                ticks: rtt.srtt_ticks(),
                micros: rtt.srtt_micros() as u32,
                samples: rtt.t_rttupdated(),
            },
            snd_nxt,
            una: snd_una,
            bytes: u64::from(MSS),
            packets: 1,
            nsegs: 1,
            ends_recovery: false,
            retransmitting: false,
            snd_wnd: 1 << 30,
            window_limited: true,
            max_packets_out: 0,
        });
    };
    // Two epochs of 100 acknowledgments: the second mean excludes the first samples.
    for _ in 0..2 {
        for _ in 0..100 {
            now += Duration::from_nanos(rtt_us * 100);
            una += u64::from(MSS);
            acked(&mut cubic, &mut rtt, now, una);
        }
        cubic.set_window(Bytes(20 * u64::from(MSS)));
        let (th_ack, snd_max) = (Offset(una), Offset(una));
        let (ticks, pipe) = (rtt.tick(now), 20 * u64::from(MSS));
        let signal = CongestionSignal::Loss;
        let snd_wnd = 1 << 30;
        let loss = CongestionEvent { signal, now, ticks, th_ack, snd_max, pipe, snd_wnd, lost: 0 };
        let _ = cubic.on_congested(&loss);
        let _ = cubic.on_recovered(&RecoveryEnd { th_ack, pipe });
    }
    let from = cubic.modelled_friendly_window(0)?;
    let to = cubic.modelled_friendly_window(hz as i32)?;
    let segments = (to - from) as f64 / f64::from(MSS);
    Some(segments * rtt_us as f64 / 1e6)
}
