//! The sender's state as one record, and the trait through which it is read.

use units::{Bytes, Duration, Offset, Rate};

/// Defines the fields of a sender's state once, for the record and for the trait.
macro_rules! sender {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+) => {
        /// The state of a sender at one instant. Offsets count from 0 at the first payload byte.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct SenderState {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        /// A sender whose state can be read whole or field by field, so that a recorder pays only
        /// for the fields it reads.
        pub trait Sender {
            $($(#[doc = $doc])+ fn $field(&self) -> $type;)+

            /// All fields.
            #[inline]
            fn snapshot(&self) -> SenderState {
                SenderState { $($field: self.$field(),)+ }
            }

            /// Passes the named state of the congestion controller to `visit`, where it has one (BBR of the IETF
            /// draft). `None`: infinite or unset.
            #[inline]
            fn visit_controller(&self, visit: &mut dyn FnMut(&'static str, Option<u64>)) {
                let _ = visit;
            }
        }

        impl<S: Sender + ?Sized> Sender for &S {
            $(#[inline(always)]
            fn $field(&self) -> $type {
                (**self).$field()
            })+

            #[inline(always)]
            fn snapshot(&self) -> SenderState {
                (**self).snapshot()
            }

            fn visit_controller(&self, visit: &mut dyn FnMut(&'static str, Option<u64>)) {
                (**self).visit_controller(visit);
            }
        }

        impl Sender for SenderState {
            $(#[inline(always)]
            fn $field(&self) -> $type {
                self.$field
            })+
        }
    };
}

sender! {
    /// Oldest byte not yet acknowledged.
    snd_una: Offset,
    /// Next byte to send.
    snd_nxt: Offset,
    /// End of all data ever sent.
    snd_max: Offset,
    /// Congestion window.
    cwnd: Bytes,
    /// Slow-start threshold; `None` while unset.
    ssthresh: Option<Bytes>,
    /// Receive window advertised by the peer.
    snd_wnd: Bytes,
    /// Payload of a full segment, options deducted.
    mss: Bytes,
    /// Bytes in the send buffer, sent or not.
    buffered: Bytes,
    /// Size of the send buffer.
    send_buffer: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    srtt: Option<Duration>,
    /// Current retransmission timeout.
    rto: Duration,
    /// True during fast recovery.
    in_recovery: bool,
    /// Bytes in flight: in QUIC those of packets in flight with their headers, which the window
    /// limits; in TCP all bytes sent and not acknowledged.
    in_flight: Bytes,
    /// Bytes acknowledged that count towards the next window increase, where the controller counts
    /// them (`partialBytesAcked` of INET's QUIC); else 0.
    partial_acked: Bytes,
    /// Bytes the stack considers in the network: sent, neither acknowledged, SACKed nor marked lost
    /// (`pipe` of RFC 6675); in QUIC the packets in flight.
    pipe: Bytes,
    /// The stack's pacing rate, or the rate it would pace at (`sk_pacing_rate` of Linux); `None` if
    /// it has none, or none yet.
    pacing: Option<Rate>,
    /// The model of BBR version 3; `None` with other controllers.
    bbr: Option<BbrState>,
}

/// Phase of BBR, as kernels report it (`enum tcp_bbr_phase`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BbrPhase {
    /// Startup.
    Startup,
    /// Drain.
    Drain,
    /// ProbeRTT.
    ProbeRtt,
    /// ProbeBW: probing for more.
    Up,
    /// ProbeBW: draining what the probe built.
    Down,
    /// ProbeBW: at the bandwidth.
    Cruise,
    /// ProbeBW: filling the pipe before a probe.
    Refill,
}

impl BbrPhase {
    /// Its mode in lower case (`enum bbr_mode`).
    pub const fn mode(self) -> &'static str {
        match self {
            Self::Up | Self::Down | Self::Cruise | Self::Refill => "probe_bw",
            Self::Startup | Self::Drain | Self::ProbeRtt => self.name(),
        }
    }

    /// Its name in lower case, as `ss` and qlog write phases.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeRtt => "probe_rtt",
            Self::Up => "probe_bw_up",
            Self::Down => "probe_bw_down",
            Self::Cruise => "probe_bw_cruise",
            Self::Refill => "probe_bw_refill",
        }
    }
}

/// The model of BBR version 3 (`struct tcp_bbr_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BbrState {
    /// Mode, and phase of ProbeBW.
    pub phase: BbrPhase,
    /// Maximum bandwidth of two cycles, in bytes per second.
    pub bw_hi: u64,
    /// Short-term bound of the bandwidth; `None` while unset.
    pub bw_lo: Option<u64>,
    /// Long-term bound of the flight in packets; `None` while unset.
    pub inflight_hi: Option<u32>,
    /// Short-term bound of the flight in packets; `None` while unset.
    pub inflight_lo: Option<u32>,
    /// Gain of the rate, in 256ths.
    pub pacing_gain: u32,
    /// Gain of the window, in 256ths.
    pub cwnd_gain: u32,
    /// Minimum RTT in microseconds; `None` before the first sample.
    pub min_rtt_us: Option<u32>,
    /// Number of cycles begun; what was drawn for the current one: rounds that count as passed, and the wait until
    /// the next probe in microseconds.
    pub draws: u32,
    /// See `draws`.
    pub rounds: u32,
    /// See `draws`.
    pub wait_us: u32,
}

impl BbrState {
    /// The model of BBR of the IETF draft: long-term and short-term bounds of rate and flight, and gains in
    /// thousandths. Its draws are not shown.
    pub fn of_draft(
        phase: BbrPhase,
        [bw_hi, bw_lo]: [Option<u64>; 2],
        [inflight_hi, inflight_lo]: [Option<u32>; 2],
        gains: [u64; 2],
        min_rtt: Option<Duration>,
    ) -> Self {
        let [pacing_gain, cwnd_gain] = gains.map(|gain| (gain * 256).div_ceil(1_000) as u32);
        Self {
            phase,
            bw_hi: bw_hi.unwrap_or(0),
            bw_lo,
            inflight_hi,
            inflight_lo,
            pacing_gain,
            cwnd_gain,
            min_rtt_us: min_rtt.map(|rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX)),
            draws: 0,
            rounds: 0,
            wait_us: 0,
        }
    }
}

impl SenderState {
    /// Bytes sent and not yet acknowledged.
    pub fn flight_size(&self) -> Bytes {
        self.snd_max.since(self.snd_una)
    }
}
