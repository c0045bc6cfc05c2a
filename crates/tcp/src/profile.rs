//! A profile: what one system's TCP does, as data.
//!
//! Two versions that differ in one constant differ in one field. The endpoint asks the fields,
//! never the name. Values and their sources are in `profile/freebsd.rs`, `linux.rs` and `rfc.rs`;
//! the names under which users know the adjustable ones are in [`crate::knobs`].

mod freebsd;
mod linux;
mod rfc;

use core::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};

use cc::cubic::Variant;
use cc::registry::{self, Algorithm, NoController};
use cc::{AnyController, Bbr, FreeBsdCubic, LinuxCubic, LinuxReno, NewReno, RfcCubic};
use packet::SynLayout;
use recovery::RtoBounds;
use recovery::burst_rack::BurstLimit;
use recovery::holes::HolesParams;
use recovery::probe_rack::RackPto;
use recovery::prr::freebsd::PrrRule;
use recovery::rack_freebsd::ThreshParams;
use units::{Bytes, Duration, Stream};

use crate::probes::Keepalive;

/// Every value that tells one system's TCP from another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Name in scenarios: `freebsd-13.2`, `linux-6.18`.
    pub name: &'static str,
    /// Family, for the names of knobs.
    pub family: Family,
    /// Congestion control the system uses if none is named.
    pub default_cc: &'static str,
    /// FreeBSD's NewReno in this version, its sysctls applied.
    pub newreno: cc::newreno::Params,
    /// The system's own CUBIC; `None` where it is not modelled.
    pub cubic: Variant,
    /// Shrink the window of a connection that was idle (`tcp_slow_start_after_idle`; FreeBSD
    /// always does).
    pub after_idle: bool,
    /// Threshold the host cache remembers of an earlier connection with the peer (`hc_ssthresh` of
    /// FreeBSD); zero for none.
    pub cached_ssthresh: Bytes,
    /// What counts as idle.
    pub idle: IdleRule,
    /// SYNs that may be lost before the initial window shrinks to one segment.
    pub forgiven_syns: u32,
    /// Segments are at most half the largest window the peer has offered.
    pub mss_within_half_window: bool,
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
    /// When a receiver acknowledges.
    pub acks: AckRule,
    /// Size of the send buffer.
    pub send_buffer: SendBufferRule,
    /// Size of the receive buffer and the window that follows from it.
    pub receive_buffer: ReceiveBufferRule,
    /// Ranges held out of order at most, besides one for each segment the buffer holds
    /// (`net.inet.tcp.reass.maxqueuelen`); `None` where only memory bounds them.
    pub reassembly: Option<u32>,
    /// How a burst is sized for the segmentation offload.
    pub burst: BurstRule,
    /// How losses are found and repaired where SACK is agreed.
    pub loss: LossRule,
    /// Tail loss probes, where losses are judged by time (`net.ipv4.tcp_early_retrans`).
    pub loss_probes: bool,
    /// Limited transmit (RFC 3042): the first two duplicates each release a new segment.
    pub limited_transmit: bool,
    /// The timestamp clock stands between two ticks of the kernel's clock.
    pub timestamps_by_ticks: bool,
    /// Whose timestamp is echoed.
    pub echo: EchoRule,
    /// Segments without timestamps are dropped where timestamps were agreed (RFC 7323 3.2).
    pub strict_timestamps: bool,
    /// Challenge ACKs (RFC 5961): at most so many within so long a time.
    pub challenge: (u32, Duration),
    /// Least segment size taken from a peer, options not deducted.
    pub min_mss: u32,
    /// Timeouts in a row after which a connection is given up.
    pub retries: u32,
    /// How a SYN or its answer is sent again.
    pub syn: SynRule,
    /// How a closed window is probed.
    pub probe: ProbeRule,
    /// Keepalive of a connection whose application wants it and says no more.
    pub keepalive: Keepalive,
    /// How long a closed connection remembers itself (TIME-WAIT).
    pub time_wait: Duration,
}

/// A profile that the connections of a world share; one that is changed becomes its owner's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedProfile(Arc<Profile>);

impl SharedProfile {
    /// What stands where one belongs until it is put there ([`crate::packed`]).
    pub(crate) fn placeholder() -> Self {
        static PLACEHOLDER: LazyLock<SharedProfile> = LazyLock::new(|| rfc::textbook().into());
        PLACEHOLDER.clone()
    }
}

impl From<Profile> for SharedProfile {
    fn from(profile: Profile) -> Self {
        Self(Arc::new(profile))
    }
}

impl Deref for SharedProfile {
    type Target = Profile;

    #[inline]
    fn deref(&self) -> &Profile {
        &self.0
    }
}

impl DerefMut for SharedProfile {
    fn deref_mut(&mut self) -> &mut Profile {
        Arc::make_mut(&mut self.0)
    }
}

/// Which family of kernels a profile belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// FreeBSD's default stack.
    FreeBsd,
    /// Linux.
    Linux,
    /// The textbook.
    Rfc,
}

/// Whose timestamp is echoed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoRule {
    /// That of a segment which begins at or before what was last acknowledged (RFC 7323 section 4.3).
    UpToLastAck,
    /// It must also reach as far; what is old of it is cut off before (tcp_do_segment of FreeBSD).
    CoversLastAck,
}

/// Explicit congestion notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum EcnRule {
    /// Never.
    Off,
    /// If the peer asks for it.
    Passive,
    /// Ask for it.
    Active,
}

/// How a SYN or its answer is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynRule {
    /// Timeouts of a SYN that follow one another without doubling, behind the first
    /// (`net.ipv4.tcp_syn_linear_timeouts`; 0 in other systems).
    pub linear_timeouts: u32,
    /// Timeouts in a row after which a SYN is given up (`net.ipv4.tcp_syn_retries`).
    pub retries: u32,
    /// Timeouts in a row after which an answer to one is (`net.ipv4.tcp_synack_retries`).
    pub answer_retries: u32,
}

/// What counts as idle, for a retransmission timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleRule {
    /// Nothing heard, or nothing sent, for as long (tcp_output of FreeBSD).
    HeardOrSent,
    /// Nothing sent for longer (RFC 5681 section 4.1; tcp_slow_start_after_idle_check of Linux).
    Sent,
}

/// How a closed window is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeRule {
    /// One byte beyond the window, after at least this long (tcp_setpersist of FreeBSD).
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

/// When a receiver acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckRule {
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
        /// ACKs that report packets behind a gap are put together (tcp_sack_compress).
        compression: SackCompression,
    },
    /// RFC 5681 section 4.2: at least every second segment, within this time.
    Rfc {
        /// Longest delay.
        timeout: Duration,
    },
}

/// Linux puts ACKs together that report packets behind the same gap (__tcp_ack_snd_check).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackCompression {
    /// `net.ipv4.tcp_comp_sack_delay_ns`: one waits no longer, nor than a twentieth of the round
    /// trip.
    pub delay_ns: u32,
    /// `net.ipv4.tcp_comp_sack_slack_ns`: the timer may be so much late, and is on an idle machine.
    pub slack_ns: u32,
    /// `net.ipv4.tcp_comp_sack_nr`: so many are put together at most; 0 is off.
    pub nr: u32,
}

/// Size of the send buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendBufferRule {
    /// tcp_sndbuf_autoscale of tcp_output.c.
    FreeBsd {
        /// `net.inet.tcp.sendspace`.
        space: Bytes,
        /// `net.inet.tcp.sendbuf_auto`.
        auto: bool,
        /// `net.inet.tcp.sendbuf_inc`.
        inc: Bytes,
        /// `net.inet.tcp.sendbuf_max`.
        max: Bytes,
    },
    /// tcp_sndbuf_expand of tcp_input.c; `tcp_wmem`: least, first and largest size.
    Linux {
        /// `net.ipv4.tcp_wmem`.
        wmem: [Bytes; 3],
    },
    /// As large as this from the start.
    Fixed {
        /// Payload bytes.
        space: Bytes,
    },
}

/// Size of the receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveBufferRule {
    /// tcp_autorcvbuf of tcp_input.c.
    FreeBsd {
        /// `net.inet.tcp.recvspace`.
        space: Bytes,
        /// `net.inet.tcp.recvbuf_auto`.
        auto: bool,
        /// `net.inet.tcp.recvbuf_max`.
        max: Bytes,
        /// `kern.ipc.maxsockbuf`: decides the window scale offered.
        maxsockbuf: Bytes,
    },
    /// tcp_rcv_space_adjust and tcp_grow_window of tcp_input.c.
    Linux {
        /// `net.ipv4.tcp_rmem`: least, first and largest size.
        rmem: [Bytes; 3],
        /// `net.ipv4.tcp_moderate_rcvbuf`: autotuning.
        auto: bool,
        /// `net.core.rmem_max`: takes part in choosing the window scale.
        rmem_max: Bytes,
    },
    /// As large as this from the start.
    Fixed {
        /// Payload bytes.
        space: Bytes,
    },
}

/// How long a burst handed to the segmentation offload may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstRule {
    /// tcp_output of FreeBSD: as much as the window gives, whole segments, below the limit.
    FreeBsd {
        /// `if_hw_tsomax` less the link header: IP bytes of a burst at most.
        max: Bytes,
    },
    /// tcp_tso_autosize of Linux: what the pacing rate sends in about a millisecond.
    Linux {
        /// `net.ipv4.tcp_min_tso_segs`.
        min_segments: u32,
        /// `net.ipv4.tcp_tso_rtt_log`.
        rtt_log: u32,
        /// `net.ipv4.tcp_tso_win_divisor`: a burst waits for this share of the window, where the
        /// next ACK is near (tcp_tso_should_defer); 0 for four segments.
        win_divisor: u32,
    },
    /// Whole segments up to 64 KiB, as the windows give (RFC 9293 section 3.8.6.2.1).
    Rfc,
}

/// How losses are found and repaired where SACK is agreed; without it, RFC 6582 holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossRule {
    /// By duplicates alone (RFC 6582): SACK is offered and reported, not used.
    Duplicates,
    /// By the holes in what is reported (FreeBSD's base stack).
    Holes(HolesRule),
    /// By the time packets were sent (RACK-TLP).
    Timed(TimedRule),
    /// By the time packets were sent, as FreeBSD's RACK stack does.
    Rack(RackRule),
}

/// Whose RACK-TLP it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedRule {
    /// RFC 8985, with the PRR of RFC 9937; nothing is taken back.
    Rfc,
    /// Linux: its PRR, and recoveries taken back by timestamps and D-SACK.
    Linux,
}

/// What versions of FreeBSD's RACK stack differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RackRule {
    /// When a packet that was passed is lost.
    pub thresh: ThreshParams,
    /// When to probe, and how often without new data (`rack_tlp_limit`).
    pub pto: RackPto,
    /// See `pto`.
    pub probes: u32,
    /// Segments of unused credit added to the window after a recovery (`rack_prr_addbackmax`).
    pub addback: u32,
    /// D53832: retransmissions acknowledged within this share of the smoothed round trip were
    /// needless (`rack_rtt_divisor`); 0 is off, as before it.
    pub rtt_divisor: u32,
    /// Older revert: nothing was sent since the recovery began, and what was passed has arrived.
    pub revert_unsent: bool,
    /// Older revert: after the recovery all that went again is reported as duplicate.
    pub revert_duplicates: bool,
    /// Segments that the reordering timer took for lost do not count as outstanding
    /// (`rc_considered_lost`).
    pub discounts_lost: bool,
    /// How bursts are spread.
    pub burst: BurstLimit,
    /// Percent by which the send buffer grows, where that is more than its increment
    /// (`rack_autosndbuf_inc`).
    pub send_buffer_share: u32,
}

/// What versions of FreeBSD's base stack differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct HolesRule {
    /// The scoreboard's.
    pub params: HolesParams,
    /// `net.inet.tcp.newsack` (14.0 and later): more than two segments reported begin a recovery
    /// without a third duplicate; rescue retransmissions (RFC 6675).
    pub newsack: bool,
    /// Which acknowledgments that move nothing are duplicates where SACK was agreed.
    pub duplicates: DuplicateRule,
    /// When cc_post_recovery ends a fast recovery.
    pub settle: SettleRule,
    /// PRR.
    pub prr: PrrRule,
    /// A recovery ends at `snd_nxt`, not at `snd_max`, which lies beyond it after a timeout (13.0).
    pub recovers_to_nxt: bool,
    /// What the first two duplicates enlarge (RFC 3042).
    pub limited: LimitedRule,
    /// Limited transmit calls tcp_output also where no data waits (main).
    pub limited_without_data: bool,
    /// After a timeout holes are retransmitted, not what lies between them (tcp_output of 14.0 and
    /// later: `IN_FASTRECOVERY || snd_nxt < snd_max`).
    pub holes_after_timeout: bool,
    /// What was reported below `snd_nxt` enlarges the window after a timeout (tcp_sack_adjust of 14.0
    /// and later).
    pub sacked_enlarges_window: bool,
    /// A duplicate too may prove a timeout spurious (main).
    pub undoes_on_any_ack: bool,
    /// To undo a timeout sets `t_rxtshift` to zero (14.3).
    pub undo_ends_backoff: bool,
}

/// Which acknowledgments that move nothing are duplicates where SACK was agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum DuplicateRule {
    /// Those that change the scoreboard (13.0).
    ChangesScoreboard,
    /// Those, and while the scoreboard is empty any without blocks, window updates too
    /// (tcp_is_sack_recovery of 14.0 and later).
    AnyWhileEmpty,
}

/// When cc_post_recovery ends a fast recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum SettleRule {
    /// Before the acknowledgment is counted (13.0).
    BeforeCounting,
    /// After it was counted and `snd_una` has moved, so that the pipe is what is left (14.0 and
    /// later).
    AfterAdvancing,
}

/// What the first two duplicates enlarge by a segment each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum LimitedRule {
    /// The flight (13.0).
    Flight,
    /// The flight, or the window while a timeout's flight is being resent (14.0 and later).
    WindowWhileResending,
}

/// Names of all profiles, in the order they are listed to users.
pub const NAMES: [&str; 8] = [
    "freebsd-13.0",
    "freebsd-13.2",
    "freebsd-14.3",
    "freebsd-main",
    "freebsd-rack-14.3",
    "freebsd-rack-main",
    "linux-6.18",
    "rfc",
];

impl Profile {
    /// Does FreeBSD's RACK stack run?
    pub const fn has_rack(&self) -> bool {
        matches!(self.loss, LossRule::Rack(_))
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
            "linux-6.18" => Some(linux::v6_18()),
            "rfc" => Some(rfc::textbook()),
            _ => None,
        }
    }

    /// The congestion control the system uses by itself.
    pub fn controller(&self) -> Algorithm {
        // A default is a name of the registry, as a test shows.
        self.algorithm(self.default_cc).unwrap_or(Algorithm::Cubic(self.cubic))
    }

    /// The congestion control of that name on this system.
    ///
    /// # Errors
    /// [`NoController`] says whether the name is real at all.
    pub fn algorithm(&self, name: &str) -> Result<Algorithm, NoController> {
        match registry::find(name, self.cubic) {
            Ok(Algorithm::Bbr) if self.family != Family::Linux => Err(NoController::OtherStack),
            found => found,
        }
    }

    /// A controller of that kind as this system runs it; what it draws comes from `draws`.
    pub fn build(&self, algorithm: Algorithm, draws: &Stream) -> AnyController {
        match algorithm {
            Algorithm::NewReno => NewReno::new(self.newreno).into(),
            Algorithm::Reno => LinuxReno::new().into(),
            Algorithm::Bbr => Bbr::new(self.hz, draws.clone()).into(),
            Algorithm::Cubic(Variant::FreeBsd(params)) => {
                FreeBsdCubic::new(params, self.newreno, self.hz).into()
            }
            Algorithm::Cubic(Variant::Linux) => LinuxCubic::new(self.hz).into(),
            Algorithm::Cubic(Variant::Rfc) => RfcCubic::new().into(),
            Algorithm::Outside(outside) => match self.rto {
                RtoRule::Linux => outside.on_linux(),
                _ => outside.on_freebsd(self.newreno),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_profile_exists_under_its_own_name() {
        for name in NAMES {
            assert_eq!(Profile::named(name).map(|p| p.name), Some(name));
            let profile = Profile::named(name).unwrap();
            assert_eq!(profile.algorithm(profile.default_cc), Ok(profile.controller()));
        }
        assert_eq!(Profile::named("windows-11"), None);
    }

    #[test]
    fn cubic_is_the_default_of_freebsd_from_14_on_and_each_has_its_own() {
        use cc::cubic::{Params, Variant};

        let own = |name: &str| {
            let profile = Profile::named(name).unwrap();
            (profile.default_cc, profile.cubic)
        };
        let freebsd = Variant::FreeBsd;
        assert_eq!(own("freebsd-13.2"), ("newreno", freebsd(Params::FREEBSD_13_0)));
        for name in ["freebsd-14.3", "freebsd-rack-14.3"] {
            assert_eq!(own(name), ("cubic", freebsd(Params::FREEBSD_STABLE_14)));
        }
        for name in ["freebsd-main", "freebsd-rack-main"] {
            assert_eq!(own(name), ("cubic", freebsd(Params::FREEBSD_D46546)));
        }
        assert_eq!(own("linux-6.18"), ("cubic", Variant::Linux));
        assert_eq!(own("rfc").1, Variant::Rfc);
    }
}
