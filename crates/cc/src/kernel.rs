//! Controllers in C with the operations of Linux's `struct tcp_congestion_ops`: the interface.
//!
//! [`KernelSock`] is `struct ackclock_cc` of ackclock-cc.h: one connection as such a controller sees it. A
//! [`KernelLibrary`] carries out its operations; [`KernelController`] calls them where and in the order in which Linux's
//! stack calls them, and keeps the rest of the stack's part of congestion control.
//!
//! Sources: tcp.h (struct tcp_congestion_ops, struct ack_sample, struct rate_sample), tcp_cong.c, tcp_input.c (tcp_ack,
//! tcp_fastretrans_alert, tcp_enter_loss, tcp_enter_recovery, tcp_enter_cwr, tcp_end_cwnd_reduction,
//! tcp_undo_cwnd_reduction) and tcp_output.c (tcp_cwnd_restart, tcp_event_data_sent) of Linux 6.12.

mod controller;
mod events;
#[cfg(test)]
mod tests;

use core::fmt::Debug;

use crate::external::ControllerError;

pub use controller::KernelController;
pub use events::{AckApplied, StackView};

/// Version of the interface (`ACKCLOCK_CC_ABI`).
pub const ABI: u32 = 1;
/// Words of a connection's private state (`icsk_ca_priv`).
pub const PRIVATE_WORDS: usize = 32;
/// Words that a connection may allocate beside it.
pub const ARENA_WORDS: usize = 64;
/// Random numbers that an operation may draw.
pub const DRAWS: usize = 8;
/// What the last word of a connection must be.
pub const GUARD: u64 = 0x5ac1_0c1c_0c1c_5ac1;

/// `TCP_INFINITE_SSTHRESH`: the threshold while unset.
pub(crate) const SSTHRESH_UNSET: u32 = 0x7fff_ffff;

/// An operation (`enum ackclock_cc_op`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum KernelOp {
    /// The connection is established.
    Init = 0,
    /// It ends.
    Release = 1,
    /// Returns the threshold after a congestion signal.
    Ssthresh = 2,
    /// The window may grow: acknowledged up to `arg[0]`, `arg[1]` packets delivered.
    CongAvoid = 3,
    /// The congestion state becomes `arg[0]`.
    SetState = 4,
    /// Event `arg[0]`, a [`CwndEvent`].
    CwndEvent = 5,
    /// An acknowledgment arrived, with flags `arg[0]`.
    InAckEvent = 6,
    /// Packets were acknowledged: `ack_sample`.
    PktsAcked = 7,
    /// An acknowledgment was processed: `rate_sample`.
    CongControl = 8,
    /// Returns the window after a spurious reduction.
    UndoCwnd = 9,
    /// Returns the minimum packets of a burst.
    MinTsoSegs = 10,
    /// Returns the size of the send buffer in windows.
    SndbufExpand = 11,
}

impl KernelOp {
    /// Its name in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Release => "release",
            Self::Ssthresh => "ssthresh",
            Self::CongAvoid => "cong_avoid",
            Self::SetState => "set_state",
            Self::CwndEvent => "cwnd_event",
            Self::InAckEvent => "in_ack_event",
            Self::PktsAcked => "pkts_acked",
            Self::CongControl => "cong_control",
            Self::UndoCwnd => "undo_cwnd",
            Self::MinTsoSegs => "min_tso_segs",
            Self::SndbufExpand => "sndbuf_expand",
        }
    }
}

/// A congestion state (`enum tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum CaState {
    /// Nothing is missing.
    Open = 0,
    /// Something is SACKed or suspected lost.
    Disorder = 1,
    /// The window is being reduced without a loss.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// A timeout is being repaired.
    Loss = 4,
}

/// An event of the window (`enum tcp_ca_event`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum CwndEvent {
    /// Data is sent with nothing in flight.
    TxStart = 0,
    /// The window restarts after idle.
    CwndRestart = 1,
    /// A reduction is complete.
    CompleteCwr = 2,
    /// A timeout has reduced the threshold.
    Loss = 3,
}

/// Flags of [`KernelOp::InAckEvent`].
pub(crate) const ACK_SLOWPATH: u32 = 1;
pub(crate) const ACK_WIN_UPDATE: u32 = 2;
pub(crate) const ACK_ECE: u32 = 4;
/// A request of [`KernelSock::requests`]: the controller has reduced the window by itself (tcp_enter_cwr).
pub(crate) const ENTER_CWR: u32 = 1;
/// `ecn_flags`: ECN was negotiated.
pub(crate) const ECN_OK: u32 = 1;
/// `sk_pacing_status`: the stack paces.
pub(crate) const PACING_NEEDED: u32 = 1;

/// The operations of a library, and what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelTraits {
    /// A bit per operation: `1 << KernelOp`.
    pub ops: u32,
    /// It uses `ack_sample.in_flight`, which needs the rates of the stack.
    pub needs_rates: bool,
    /// Ticks a second that it was compiled for; 0: any.
    pub hz: u32,
}

impl KernelTraits {
    /// True if the library has the operation.
    #[inline]
    pub const fn has(&self, op: KernelOp) -> bool {
        self.ops & (1 << op as u32) != 0
    }
}

/// A library of ackclock-cc.h.
pub trait KernelLibrary: Debug + Send + Sync {
    /// The name in scenarios and results.
    fn name(&self) -> &'static str;

    /// The controller's name in its kernel.
    fn own_name(&self) -> &'static str;

    /// Its operations.
    fn traits(&self) -> KernelTraits;

    /// Carries out an operation on a connection, and returns its result.
    ///
    /// # Errors
    /// It crashed, did not return, or wrote where it may not.
    fn call(&self, op: KernelOp, sock: &mut KernelSock) -> Result<u32, ControllerError>;
}

/// What an acknowledgment acknowledged (`struct ack_sample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
#[expect(missing_docs, reason = "ackclock-cc.h documents the fields")]
pub struct KernelAckSample {
    pub pkts_acked: u32,
    pub rtt_us: i32,
    pub in_flight: u32,
    pub reserved: u32,
}

/// The delivery rate of an acknowledgment (`struct rate_sample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
#[expect(missing_docs, reason = "ackclock-cc.h documents the fields")]
pub struct KernelRateSample {
    pub interval_us: i64,
    pub rtt_us: i64,
    pub prior_delivered: u32,
    pub delivered: i32,
    pub losses: i32,
    pub acked_sacked: u32,
    pub prior_in_flight: u32,
    pub is_app_limited: u8,
    pub is_ack_delayed: u8,
    pub reserved: [u8; 2],
}

/// One connection (`struct ackclock_cc`). Names and units are the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "ackclock-cc.h documents the fields")]
pub struct KernelSock {
    pub abi: u32,
    pub size: u32,
    pub now_ns: u64,
    pub jiffies: u64,
    pub random: [u64; DRAWS],
    pub random_used: u32,
    pub hz: u32,
    pub sk_pacing_rate: u64,
    pub sk_max_pacing_rate: u64,
    pub sk_pacing_status: u32,
    pub sk_gso_max_size: u32,
    pub sk_pacing_shift: u32,
    pub sk_state: u32,
    pub icsk_ca_ops: u64,
    pub icsk_ca_state: u32,
    pub icsk_retransmits: u32,
    pub reserved_icsk: [u32; 2],
    pub icsk_ca_priv: [u64; PRIVATE_WORDS],
    pub snd_cwnd: u32,
    pub snd_cwnd_cnt: u32,
    pub snd_cwnd_clamp: u32,
    pub snd_cwnd_stamp: u32,
    pub snd_ssthresh: u32,
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    pub high_seq: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub snd_wnd: u32,
    pub rcv_nxt: u32,
    pub mss_cache: u32,
    pub max_packets_out: u32,
    pub is_cwnd_limited: u32,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub app_limited: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
    pub srtt_us: u32,
    pub min_rtt_us: u32,
    pub lsndtime: u32,
    pub ecn_flags: u32,
    pub reserved_tp: u32,
    pub tcp_mstamp: u64,
    pub delivered_mstamp: u64,
    pub tcp_wstamp_ns: u64,
    pub tcp_clock_cache: u64,
    pub rcv_tsval: u32,
    pub rcv_tsecr: u32,
    pub saw_tstamp: u32,
    pub reserved_rx: u32,
    pub arg: [u32; 2],
    pub ack_sample: KernelAckSample,
    pub rate_sample: KernelRateSample,
    pub requests: u32,
    pub min_tso_segs: u32,
    pub sndbuf_expand: u32,
    pub arena_used: u32,
    pub arena: [u64; ARENA_WORDS],
    pub guard: u64,
}

impl KernelSock {
    /// Bytes of a connection.
    pub const SIZE: usize = size_of::<Self>();

    /// A connection of which nothing is known.
    pub const fn empty() -> Self {
        Self {
            abi: ABI,
            size: Self::SIZE as u32,
            now_ns: 0,
            jiffies: 0,
            random: [0; DRAWS],
            random_used: 0,
            hz: 0,
            sk_pacing_rate: u64::MAX,
            sk_max_pacing_rate: u64::MAX,
            sk_pacing_status: 0,
            sk_gso_max_size: 65_536,
            sk_pacing_shift: 10,
            sk_state: 1,
            icsk_ca_ops: 0,
            icsk_ca_state: 0,
            icsk_retransmits: 0,
            reserved_icsk: [0; 2],
            icsk_ca_priv: [0; PRIVATE_WORDS],
            snd_cwnd: 10,
            snd_cwnd_cnt: 0,
            snd_cwnd_clamp: u32::MAX,
            snd_cwnd_stamp: 0,
            snd_ssthresh: SSTHRESH_UNSET,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            high_seq: 0,
            snd_una: 0,
            snd_nxt: 0,
            snd_wnd: 0,
            rcv_nxt: 0,
            mss_cache: 1,
            max_packets_out: 0,
            is_cwnd_limited: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            app_limited: 0,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            srtt_us: 0,
            min_rtt_us: u32::MAX,
            lsndtime: 0,
            ecn_flags: 0,
            reserved_tp: 0,
            tcp_mstamp: 0,
            delivered_mstamp: 0,
            tcp_wstamp_ns: 0,
            tcp_clock_cache: 0,
            rcv_tsval: 0,
            rcv_tsecr: 0,
            saw_tstamp: 0,
            reserved_rx: 0,
            arg: [0; 2],
            ack_sample: KernelAckSample { pkts_acked: 0, rtt_us: 0, in_flight: 0, reserved: 0 },
            rate_sample: KernelRateSample {
                interval_us: 0,
                rtt_us: 0,
                prior_delivered: 0,
                delivered: 0,
                losses: 0,
                acked_sacked: 0,
                prior_in_flight: 0,
                is_app_limited: 0,
                is_ack_delayed: 0,
                reserved: [0; 2],
            },
            requests: 0,
            min_tso_segs: 0,
            sndbuf_expand: 0,
            arena_used: 0,
            arena: [0; ARENA_WORDS],
            guard: GUARD,
        }
    }

    /// `tcp_packets_in_flight`.
    pub(crate) const fn packets_in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }
}
