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

impl SenderState {
    /// Bytes sent and not yet acknowledged.
    pub fn flight_size(&self) -> Bytes {
        self.snd_max.since(self.snd_una)
    }
}
