//! A sender reduced to the inputs of a controller: time, flight, RTT.

use ackclock_cc as cc;

use cc::cubic::CubicVariant;
use cc::cubic::VARIANTS;
use cc::{
    AckEvent, AckSample, AnyController, CongestionEvent, CongestionSignal, ConnectionStart,
    Controller, FreeBsdCubic, LinuxCubic, LinuxReno, NewReno, RecoveryEnd, RfcCubic, SmoothedRtt,
    WindowChange, WindowController, newreno,
};
use units::{Duration, Instant, Offset};

pub(crate) const MSS: u32 = 1_448;
const HZ: u64 = 1_000;

/// All controllers, by name.
pub(crate) fn all() -> Vec<(&'static str, AnyController)> {
    let newreno = newreno::NewRenoParams::FREEBSD_MAIN_2024_10;
    let mut all = vec![
        ("newreno", NewReno::new(newreno).into()),
        ("newreno 13.0", NewReno::new(newreno::NewRenoParams::FREEBSD_13_0).into()),
        ("reno", LinuxReno::new().into()),
    ];
    all.extend(VARIANTS.map(|(name, variant)| match variant {
        CubicVariant::FreeBsd(params) => {
            (name, FreeBsdCubic::new(params, newreno, HZ as u32).into())
        }
        CubicVariant::Linux => (name, LinuxCubic::new(HZ as u32).into()),
        CubicVariant::Rfc => (name, RfcCubic::new().into()),
    }));
    all
}

/// One connection.
pub(crate) struct Sender {
    pub(crate) cc: AnyController,
    pub(crate) now: Instant,
    pub(crate) una: u64,
    pub(crate) max: u64,
    pub(crate) rtt: Duration,
    pub(crate) samples: u32,
    pub(crate) shift: u32,
    pub(crate) snd_wnd: u64,
}

impl Sender {
    pub(crate) fn open(cc: AnyController, rtt: Duration) -> Self {
        let mut sender = Self {
            cc,
            now: Instant::ZERO,
            una: 1,
            max: 1,
            rtt,
            samples: 0,
            shift: 0,
            snd_wnd: 1 << 30,
        };
        let ticks = sender.ticks();
        let _ = sender.cc.on_established(&ConnectionStart {
            now: Instant::ZERO,
            ticks,
            created_ticks: ticks,
            una: Offset(1),
            mss: MSS,
            maxseg: MSS + 12,
            snd_scale: 14,
            syn_retransmitted: false,
            rtt: None,
            ssthresh: None,
        });
        sender
    }

    pub(crate) fn window(&self) -> u64 {
        self.cc.control().window.get()
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.now.as_nanos() * HZ / 1_000_000_000
    }

    /// Sends as much as the window allows.
    pub(crate) fn fill(&mut self) {
        self.max = self.max.max(self.una + self.window());
    }

    /// The peer acknowledges `bytes` of those in flight; `limited`: the window was the limit.
    pub(crate) fn acked(&mut self, bytes: u64, limited: bool) -> WindowChange {
        let bytes = bytes.min(self.max - self.una);
        self.una += bytes;
        self.shift = 0;
        self.samples += 1;
        let micros = self.rtt.as_micros() as u32;
        let srtt = SmoothedRtt { ticks: micros / 1_000, micros, samples: self.samples };
        let ticks = self.ticks();
        let _ = self.cc.on_ack_sample(&AckSample {
            now: self.now,
            ticks,
            rtt: self.rtt,
            una: Offset(self.una),
            snd_nxt: Offset(self.max),
            pacing_rate: 0,
        });
        // The stack does not call a controller that ignores the acknowledgment.
        let unchanged = self.cc.ignores_ack(limited, 0).then(|| self.cc.clone());
        let change = self.cc.on_acked(&AckEvent {
            now: self.now,
            ticks,
            rtt: Some(self.rtt),
            srtt,
            snd_nxt: Offset(self.max),
            una: Offset(self.una),
            bytes,
            packets: bytes.div_ceil(u64::from(MSS)) as u32,
            nsegs: 1,
            ends_recovery: false,
            retransmitting: false,
            snd_wnd: if limited { self.snd_wnd } else { self.window() - 1 },
            window_limited: limited,
            max_packets_out: 0,
        });
        if let Some(before) = unchanged {
            assert_eq!((change, &self.cc), (WindowChange::None, &before));
        }
        change
    }

    pub(crate) fn congested(&mut self, signal: CongestionSignal) -> WindowChange {
        let event = CongestionEvent {
            now: self.now,
            ticks: self.ticks(),
            signal,
            th_ack: Offset(self.una),
            snd_max: Offset(self.max),
            pipe: self.max - self.una,
            snd_wnd: self.snd_wnd,
            lost: 0,
        };
        self.cc.on_congested(&event)
    }

    pub(crate) fn timeout(&mut self) -> WindowChange {
        self.shift += 1;
        self.congested(CongestionSignal::Timeout { shift: self.shift })
    }

    /// All data in flight at the loss is acknowledged; the flight is the threshold.
    pub(crate) fn recovered(&mut self) -> WindowChange {
        self.una = self.una.max(self.cc.recovery_point().0).min(self.max);
        let pipe = self.cc.control().ssthresh.map_or(0, |bytes| bytes.get());
        self.cc.on_recovered(&RecoveryEnd { th_ack: Offset(self.una), pipe })
    }
}
