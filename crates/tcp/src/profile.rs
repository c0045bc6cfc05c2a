//! Profiles: the behaviour of a system's TCP as data.
//!
//! Two versions that differ in one constant differ in one field. The endpoint reads the fields,
//! never the name. Values and their sources are in `profile/freebsd.rs`, `linux.rs` and `rfc.rs`;
//! the names under which users know the adjustable ones are in [`crate::knobs`].

mod buffers;
mod controllers;
mod freebsd;
mod linux;
mod rfc;
mod rules;

use core::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

use cc::bbr3::ProbeDraw;
use cc::cubic::CubicVariant;
use packet::SynLayout;
use recovery::RtoBounds;
use recovery::burst_rack::BurstLimit;
use recovery::external::ExternalDetection;
use recovery::holes::HolesParams;
use recovery::probe_rack::RackPto;
use recovery::prr::freebsd::PrrRule;
use recovery::rack_freebsd::ThreshParams;
use units::{Bytes, Duration};

pub use buffers::{BufferGrowth, ReceiveBufferRule, SendBufferRule};
pub use rules::{
    AfterRead, ClosingRules, CrossedSyns, FinBeyondGap, IdleCheck, OldSegments, OpeningRules,
    PushRule, QuotedRange, ReceivingRules, RetransmissionRoom, SendQueue, SendingRules, StackRules,
    TimeWaitRule, UpdateWaits, WindowUpdate,
};

/// The parameters in which the systems' TCPs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpProfile {
    /// Name in scenarios: `freebsd-13.2`, `linux-6.18`.
    pub name: &'static str,
    /// Family, for the names of knobs.
    pub family: Family,
    /// Rules that no sysctl changes.
    pub rules: StackRules,
    /// Congestion control the system uses if none is named.
    pub default_cc: &'static str,
    /// FreeBSD's NewReno in this version, its sysctls applied.
    pub newreno: cc::newreno::NewRenoParams,
    /// The system's own CUBIC; `None` where it is not modelled.
    pub cubic: CubicVariant,
    /// Shrink the window of a connection that was idle (`tcp_slow_start_after_idle`; FreeBSD
    /// always does).
    pub after_idle: bool,
    /// Slow-start threshold cached from an earlier connection with the peer (`hc_ssthresh` of
    /// FreeBSD); zero for none.
    pub cached_ssthresh: Bytes,
    /// When a connection counts as idle.
    pub idle: IdleRule,
    /// SYN losses that do not yet shrink the initial window to one segment.
    pub forgiven_syns: u32,
    /// Segments are at most half the largest window that the peer has advertised.
    pub mss_within_half_window: bool,
    /// Linux: a SYN advertises a segment size that fits the path as far as it is known, not only the
    /// interface.
    pub advertises_path_mtu: bool,
    /// Delivery rates are measured even if the controller does not use them, as `tcp_info` of Linux has
    /// them; it costs time and memory.
    pub measures_rates: bool,
    /// Largest IP packet of the interface.
    pub mtu: u32,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: EcnRule,
    /// Order of the options of a SYN.
    pub syn_layout: SynLayout,
    /// Ticks of the kernel clock per second (`kern.hz`, `CONFIG_HZ`).
    pub hz: u32,
    /// Round-trip estimation and retransmission timer.
    pub rto: RtoRule,
    /// Delayed acknowledgments.
    pub acks: DelayedAckRule,
    /// Size of the send buffer.
    pub send_buffer: SendBufferRule,
    /// Size of the receive buffer, from which the window follows.
    pub receive_buffer: ReceiveBufferRule,
    /// Maximum of out-of-order ranges, besides one for each segment that the buffer holds
    /// (`net.inet.tcp.reass.maxqueuelen`); `None` where only memory bounds them.
    pub reassembly: Option<u32>,
    /// Size of a burst for the segmentation offload.
    pub burst: BurstRule,
    /// Loss detection where SACK is negotiated.
    pub loss: LossDetectionRule,
    /// Tail loss probes, with RACK-TLP (`net.ipv4.tcp_early_retrans`).
    pub loss_probes: bool,
    /// Limited transmit (RFC 3042): the first two duplicates each release a new segment.
    pub limited_transmit: bool,
    /// The timestamp clock advances only with the ticks of the kernel's clock.
    pub timestamps_by_ticks: bool,
    /// Which segment's timestamp is echoed.
    pub echo: EchoRule,
    /// Drop segments without timestamps where timestamps were negotiated (RFC 7323 3.2).
    pub strict_timestamps: bool,
    /// Exceptions from RFC 5961 that FreeBSD's administrator may allow.
    pub lax: LaxRules,
    /// Limit of challenge ACKs (RFC 5961): maximum count and the interval it applies to.
    pub challenge: (u32, Duration),
    /// Minimum MSS accepted from a peer, options not deducted.
    pub min_mss: u32,
    /// Consecutive timeouts after which the connection is dropped.
    pub retries: u32,
    /// Phase in which ProbeBW of BBR begins; 1: drawn (see `beginning_with` of the controller).
    pub bbr_phase: u32,
    /// Phases in which it begins the first times, as a recording of a kernel shows them.
    pub bbr_phases: &'static [u8],
    /// Resolution of the clock source in nanoseconds: 256 of a kernel in User-Mode Linux, else 1.
    pub clock_step: u32,
    /// How often a process of the recorder runs on a machine with a coarse clock source; zero: never.
    pub recorder: Duration,
    /// Draws of the first cycles of BBR version 3, as a recording of a kernel shows them; none: drawn.
    pub bbr3_draws: &'static [ProbeDraw],
    /// Packets of the initial window of Linux (`initcwnd` of a route).
    pub initial_packets: u32,
    /// Retransmission of SYN and SYN-ACK.
    pub syn: SynRule,
    /// Probes of a zero window.
    pub probe: ProbeRule,
    /// Keepalive defaults of a connection whose application only enables it.
    pub keepalive: Keepalive,
    /// Duration of TIME-WAIT.
    pub time_wait: Duration,
}

/// A profile shared by the connections of a world, copied on write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedProfile(Arc<TcpProfile>);

impl SharedProfile {
    /// Placeholder until the actual profile is restored ([`crate::packed`]).
    pub(crate) fn placeholder() -> Self {
        static PLACEHOLDER: LazyLock<SharedProfile> = LazyLock::new(|| rfc::textbook().into());
        PLACEHOLDER.clone()
    }
}

impl From<TcpProfile> for SharedProfile {
    fn from(profile: TcpProfile) -> Self {
        Self(Arc::new(profile))
    }
}

impl Deref for SharedProfile {
    type Target = TcpProfile;

    #[inline]
    fn deref(&self) -> &TcpProfile {
        &self.0
    }
}

impl DerefMut for SharedProfile {
    fn deref_mut(&mut self) -> &mut TcpProfile {
        Arc::make_mut(&mut self.0)
    }
}

/// Family of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// FreeBSD's default stack.
    FreeBsd,
    /// Linux.
    Linux,
    /// The RFCs.
    Rfc,
}

/// Which segment's timestamp is echoed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoRule {
    /// A segment that begins at or before the last ACK sent (RFC 7323 section 4.3).
    UpToLastAck,
    /// A segment that also ends at or after it; old data is trimmed first (tcp_do_segment of
    /// FreeBSD).
    CoversLastAck,
}

/// Explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum EcnRule {
    /// Never.
    Off,
    /// Accepted if the peer requests it.
    Passive,
    /// Requested.
    Active,
}

/// Keepalive of one connection (`SO_KEEPALIVE` and its options).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Keepalive {
    /// Idle time before the first probe.
    pub idle: Duration,
    /// Interval between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is dropped.
    pub count: u32,
}

/// Retransmission of SYN and SYN-ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynRule {
    /// Timeouts of a SYN after the first that do not double (`net.ipv4.tcp_syn_linear_timeouts`; 0
    /// in other systems).
    pub linear_timeouts: u32,
    /// Consecutive timeouts after which a SYN is abandoned (`net.ipv4.tcp_syn_retries`).
    pub retries: u32,
    /// Consecutive timeouts after which a SYN-ACK is abandoned (`net.ipv4.tcp_synack_retries`).
    pub answer_retries: u32,
}

/// What counts as idle, measured against the retransmission timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleRule {
    /// Nothing received or nothing sent for at least a timeout (tcp_output of FreeBSD).
    ReceivedOrSent,
    /// Nothing sent for more than a timeout (RFC 5681 section 4.1).
    Sent,
    /// The same in whole ticks (tcp_slow_start_after_idle_check of Linux).
    SentTicks,
}

/// Probes of a zero window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeRule {
    /// One byte beyond the window, at persist intervals (tcp_setpersist of FreeBSD). Its RACK stack
    /// has its own probes (rack_timeout_persist).
    Byte {
        /// `net.inet.tcp.persmin`.
        min: Duration,
        /// `net.inet.tcp.persmax`.
        max: Duration,
    },
    /// An empty segment with an old sequence number, after a retransmission timeout
    /// (tcp_send_probe0 of Linux).
    Empty {
        /// TCP_RTO_MAX.
        max: Duration,
    },
}

/// Round-trip estimation and the retransmission timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtoRule {
    /// tcp_xmit_timer and TCP_REXMTVAL (FreeBSD): in ticks, variance floor and slop added.
    FreeBsd,
    /// tcp_xmit_timer of the RACK stack (FreeBSD): in microseconds, slop added.
    Rack(RtoBounds),
    /// tcp_rtt_estimator (Linux): in microseconds, floor on the variance.
    Linux,
    /// RFC 6298.
    Rfc,
}

/// Delayed acknowledgments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayedAckRule {
    /// DELAY_ACK of tcp_input.c: every second segment, or at once if longer than one.
    FreeBsd {
        /// `net.inet.tcp.delayed_ack`.
        delayed: bool,
        /// `net.inet.tcp.delacktime`.
        timeout: Duration,
    },
    /// __tcp_ack_snd_check of tcp_input.c: quick ACKs at the start and while the window grows.
    Linux {
        /// TCP_MAX_QUICKACKS.
        quick_acks: u32,
        /// `ip route ... quickack 1` (RTAX_QUICKACK): never delay an ACK.
        always_quick: bool,
        /// TCP_DELACK_MIN.
        min: Duration,
        /// TCP_DELACK_MAX.
        max: Duration,
        /// The delay is less than the least retransmission timeout, and its estimate at most
        /// TCP_DELACK_MAX (tcp_delack_max, tcp_event_data_recv).
        below_rto_min: bool,
        /// Compression of ACKs that report out-of-order packets (tcp_sack_compress_send_ack).
        compression: SackCompression,
    },
    /// RFC 5681 section 4.2: an ACK at least for every second segment, within this time.
    Rfc {
        /// Longest delay.
        timeout: Duration,
    },
}

/// SACK compression of Linux: ACKs for packets after the same gap are merged (__tcp_ack_snd_check).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackCompression {
    /// `net.ipv4.tcp_comp_sack_delay_ns`: maximum delay, besides a twentieth of the round trip.
    pub delay_ns: u32,
    /// `net.ipv4.tcp_comp_sack_slack_ns`: slack of the timer, used up fully on an idle machine.
    pub slack_ns: u32,
    /// `net.ipv4.tcp_comp_sack_nr`: maximum of ACKs merged into one; 0 is off.
    pub nr: u32,
}

/// Size of a burst handed to the segmentation offload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstRule {
    /// tcp_output of FreeBSD: whole segments that the window allows, below the limit.
    FreeBsd {
        /// `if_hw_tsomax` less the link header: maximum IP bytes of a burst.
        max: Bytes,
    },
    /// tcp_tso_autosize of Linux: the bytes that the pacing rate sends in about a millisecond.
    Linux(LinuxBursts),
    /// Whole segments up to 64 KiB, as the windows allow (RFC 9293 section 3.8.6.2.1).
    Rfc,
}

/// Bursts of Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinuxBursts {
    /// `net.ipv4.tcp_min_tso_segs`.
    pub min_segments: u32,
    /// `net.ipv4.tcp_tso_rtt_log`.
    pub rtt_log: u32,
    /// `net.ipv4.tcp_tso_win_divisor`: a smaller burst than this fraction of the window is
    /// deferred if the next ACK is near (tcp_tso_should_defer); 0 for four segments.
    pub win_divisor: u32,
    /// The device holds packets until all that happens at the instant is done (transmit
    /// completion): TCP small queues and autocorking see them. A TUN device releases a
    /// packet at once (skb_orphan).
    pub device_holds: bool,
    /// The card has no TSO: the stack splits bursts, and the device holds their packets (tcp_gso_segment).
    pub splits: bool,
    /// A packet of the write queue takes what a burst lacks from the next one (tcp_grow_skb).
    pub grows: bool,
    /// The last segment needs no room in the congestion window if it carries the FIN
    /// (tcp_cwnd_test).
    pub free_fin: bool,
}

/// Loss detection and recovery where SACK is negotiated; without it, RFC 6582 applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossDetectionRule {
    /// Duplicate ACKs alone (RFC 6582): SACK is offered and blocks are sent, but not used.
    NewReno,
    /// The SACK scoreboard of FreeBSD's base stack.
    Sack(SackRule),
    /// RACK-TLP, by transmission times.
    RackTlp(RackTlpRule),
    /// FreeBSD's RACK stack.
    FreeBsdRack(RackRule),
}

/// Variants of RACK-TLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RackTlpRule {
    /// RFC 8985, with the PRR of RFC 9937; no undo.
    Rfc,
    /// Linux: its PRR, and undo of spurious recoveries by timestamps and D-SACK.
    Linux,
    /// As the RFC, with a user's own detector in place of RACK.
    External(ExternalDetection),
}

/// Parameters in which versions of FreeBSD's RACK stack differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RackRule {
    /// Reordering threshold: when a packet sent before a delivered one is lost.
    pub thresh: ThreshParams,
    /// Probe timeout.
    pub pto: RackPto,
    /// Maximum of tail loss probes without new data (`rack_tlp_limit`).
    pub probes: u32,
    /// Segments of unused credit added to the window after a recovery (`rack_prr_addbackmax`).
    pub addback: u32,
    /// D53832: retransmissions acknowledged within this fraction of the smoothed round trip were
    /// spurious (`rack_rtt_divisor`); 0 is off, as in earlier versions.
    pub rtt_divisor: u32,
    /// Older undo: no new data was sent since the recovery began, and the packets taken for lost
    /// were acknowledged.
    pub revert_unsent: bool,
    /// Older undo: D-SACKs cover all retransmissions of the recovery.
    pub revert_duplicates: bool,
    /// Segments that the reordering timer marked lost do not count as outstanding
    /// (`rc_considered_lost`).
    pub discounts_lost: bool,
    /// Limits and pauses of bursts.
    pub burst: BurstLimit,
    /// Percentage by which the send buffer grows, if that is more than its increment
    /// (`rack_autosndbuf_inc`).
    pub send_buffer_share: u32,
}

/// Parameters in which versions of FreeBSD's base stack differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct SackRule {
    /// Parameters of the scoreboard.
    pub params: HolesParams,
    /// `net.inet.tcp.newsack` (14.0 and later): more than two segments SACKed begin a recovery
    /// without a third duplicate; rescue retransmissions (RFC 6675).
    pub newsack: bool,
    /// Which acknowledgments that do not advance `snd_una` are duplicates where SACK was
    /// negotiated.
    pub duplicates: DuplicateRule,
    /// When cc_post_recovery ends a fast recovery.
    pub settle: SettleRule,
    /// PRR.
    pub prr: PrrRule,
    /// The recovery point is `snd_nxt`, not `snd_max`, which is larger after a timeout (13.0).
    pub recovers_to_nxt: bool,
    /// Base of limited transmit (RFC 3042).
    pub limited: LimitedTransmitRule,
    /// Limited transmit calls tcp_output even if no data is waiting (main).
    pub limited_without_data: bool,
    /// After a timeout only holes are retransmitted, not the SACKed data between them (tcp_output
    /// of 14.0 and later: `IN_FASTRECOVERY || snd_nxt < snd_max`).
    pub holes_after_timeout: bool,
    /// SACKed data below `snd_nxt` enlarges the window after a timeout (tcp_sack_adjust of 14.0 and
    /// later).
    pub sacked_enlarges_window: bool,
    /// Duplicate ACKs may prove a timeout spurious, too (main).
    pub undoes_on_any_ack: bool,
    /// Undoing a timeout sets `t_rxtshift` to zero (14.3).
    pub undo_ends_backoff: bool,
    /// A closed window ends the backoff of the persist timer at each call of tcp_output (13.x);
    /// later versions do nothing while that timer runs.
    pub output_ends_persist_backoff: bool,
}

/// Which acknowledgments that do not advance `snd_una` are duplicates where SACK was negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum DuplicateRule {
    /// Those that change the scoreboard (13.0).
    ChangesScoreboard,
    /// Those, and while the scoreboard is empty any without blocks, even window updates
    /// (tcp_is_sack_recovery of 14.0 and later).
    AnyWhileEmpty,
}

/// When cc_post_recovery ends a fast recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum SettleRule {
    /// Before the acknowledgment is counted (13.0).
    BeforeCounting,
    /// After it was counted and `snd_una` has advanced, so that the pipe is what remains
    /// outstanding (14.0 and later).
    AfterAdvancing,
}

/// What limited transmit enlarges by a segment for each of the first two duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum LimitedTransmitRule {
    /// The flight (13.0).
    Flight,
    /// The flight, or the window while a flight is retransmitted after a timeout (14.0 and later).
    WindowWhileRetransmitting,
}

/// Names of all profiles, in the order they are listed to users.
pub const NAMES: [&str; 10] = [
    "freebsd-13.0",
    "freebsd-13.2",
    "freebsd-14.3",
    "freebsd-main",
    "freebsd-rack-14.3",
    "freebsd-rack-main",
    "linux-6.1",
    "linux-6.12",
    "linux-6.18",
    "rfc",
];

impl TcpProfile {
    /// Does the stack build bursts for any network card? Linux splits them itself for one without TSO
    /// (sk_setup_caps adds `NETIF_F_GSO_SOFTWARE` for every socket of TCP, since 4.17).
    pub const fn has_software_gso(&self) -> bool {
        matches!(self.burst, BurstRule::Linux(_))
    }

    /// Is this a profile of FreeBSD's RACK stack?
    pub const fn has_rack(&self) -> bool {
        matches!(self.loss, LossDetectionRule::FreeBsdRack(_))
    }

    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "freebsd-13.0" => Some(freebsd::v13_0()),
            "freebsd-13.2" => Some(freebsd::v13_2()),
            "freebsd-14.3" => Some(freebsd::v14_3()),
            "freebsd-main" => Some(freebsd::main()),
            "freebsd-rack-14.3" => Some(freebsd::rack_14_3()),
            "freebsd-rack-main" => Some(freebsd::rack_main()),
            "linux-6.1" => Some(linux::v6_1()),
            "linux-6.12" => Some(linux::v6_12()),
            "linux-6.18" => Some(linux::v6_18()),
            "rfc" => Some(rfc::textbook()),
            _ => None,
        }
    }
}

/// Rules of FreeBSD for resets and SYNs that are off by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct LaxRules {
    /// `net.inet.tcp.insecure_rst`: a RST anywhere in the window resets.
    pub insecure_rst: bool,
    /// `net.inet.tcp.insecure_syn`: a SYN in the window resets.
    pub insecure_syn: bool,
    /// `net.inet.tcp.drop_synfin`: segments with SYN and FIN are dropped.
    pub drop_synfin: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_profile_exists_under_its_own_name() {
        for name in NAMES {
            assert_eq!(TcpProfile::named(name).map(|p| p.name), Some(name));
            let profile = TcpProfile::named(name).unwrap();
            assert_eq!(profile.algorithm(profile.default_cc), Ok(profile.controller()));
        }
        assert_eq!(TcpProfile::named("windows-11"), None);
    }
}
