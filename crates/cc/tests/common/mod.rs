//! A sender reduced to what a controller sees: time, a flight, a round-trip time.

use ackclock_cc as cc;

use cc::cubic::VARIANTS;
use cc::cubic::Variant;
use cc::{
    AckSample, Acked, AnyController, Change, Congested, Controller, Established, FreeBsdCubic,
    LinuxCubic, LinuxReno, NewReno, Recovered, RfcCubic, Signal, Smoothed, newreno,
};
use units::{Duration, Instant, Offset};

pub(crate) const MSS: u32 = 1_448;
const HZ: u64 = 1_000;

/// Every controller there is, by name.
pub(crate) fn all() -> Vec<(&'static str, AnyController)> {
    let newreno = newreno::Params::FREEBSD_MAIN_2024_10;
    let mut all = vec![
        ("newreno", NewReno::new(newreno).into()),
        ("newreno 13.0", NewReno::new(newreno::Params::FREEBSD_13_0).into()),
        ("reno", LinuxReno::new().into()),
    ];
    all.extend(VARIANTS.map(|(name, variant)| match variant {
        Variant::FreeBsd(params) => (name, FreeBsdCubic::new(params, newreno, HZ as u32).into()),
        Variant::Linux => (name, LinuxCubic::new(HZ as u32).into()),
        Variant::Rfc => (name, RfcCubic::new().into()),
    }));
    all
}

/// A connection.
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
        let _ = sender.cc.on_established(&Established {
            now: Instant::ZERO,
            ticks,
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

    /// Sends what the window gives.
    pub(crate) fn fill(&mut self) {
        self.max = self.max.max(self.una + self.window());
    }

    /// The peer acknowledges `bytes` of what is under way; `limited` says that the window was the
    /// limit.
    pub(crate) fn acked(&mut self, bytes: u64, limited: bool) -> Change {
        let bytes = bytes.min(self.max - self.una);
        self.una += bytes;
        self.shift = 0;
        self.samples += 1;
        let micros = self.rtt.as_micros() as u32;
        let srtt = Smoothed { ticks: micros / 1_000, micros, samples: self.samples };
        let ticks = self.ticks();
        let _ = self.cc.on_ack_sample(&AckSample {
            now: self.now,
            ticks,
            rtt: self.rtt,
            una: Offset(self.una),
            snd_nxt: Offset(self.max),
            pacing_rate: 0,
        });
        self.cc.on_acked(&Acked {
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
            resending: false,
            snd_wnd: if limited { self.snd_wnd } else { self.window() - 1 },
            window_limited: limited,
            max_packets_out: 0,
        })
    }

    pub(crate) fn congested(&mut self, signal: Signal) -> Change {
        let event = Congested {
            now: self.now,
            ticks: self.ticks(),
            signal,
            th_ack: Offset(self.una),
            snd_max: Offset(self.max),
            pipe: self.max - self.una,
            snd_wnd: self.snd_wnd,
        };
        self.cc.on_congested(&event)
    }

    pub(crate) fn timeout(&mut self) -> Change {
        self.shift += 1;
        self.congested(Signal::Timeout { shift: self.shift })
    }

    /// All that was under way at the loss is acknowledged; the threshold's worth is under way.
    pub(crate) fn recovered(&mut self) -> Change {
        self.una = self.una.max(self.cc.recovery_point().0).min(self.max);
        let pipe = self.cc.control().ssthresh.map_or(0, |bytes| bytes.get());
        self.cc.on_recovered(&Recovered { th_ack: Offset(self.una), pipe })
    }
}
