//! A profile: what one system's TCP does, as data.
//!
//! Two versions that differ in one constant differ in one field. The endpoint asks the fields,
//! never the name. Values and their sources are in [`freebsd`] and [`linux`]; the names under
//! which users know the adjustable ones are in [`crate::knobs`].

mod freebsd;
mod linux;

use packet::SynLayout;
use units::{Bytes, Duration};

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
    /// Shrink the window of a connection that was idle (`tcp_slow_start_after_idle`; FreeBSD
    /// always does).
    pub after_idle: bool,
    /// Largest IP packet of the interface.
    pub mtu: u32,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer SACK (RFC 2018).
    pub sack: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
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
    /// How a burst is sized for the segmentation offload.
    pub burst: BurstRule,
}

/// Which family of kernels a profile belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// FreeBSD's default stack.
    FreeBsd,
    /// Linux.
    Linux,
}

/// Round-trip estimation and the retransmission timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtoRule {
    /// tcp_xmit_timer and TCP_REXMTVAL (FreeBSD): in ticks, variance floor and slop added.
    FreeBsd,
    /// tcp_rtt_estimator (Linux): in microseconds, floor on the variance.
    Linux,
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
    },
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
    },
}

/// Names of all profiles, in the order they are listed to users.
pub const NAMES: [&str; 4] = ["freebsd-13.2", "freebsd-14.3", "freebsd-main", "linux-6.18"];

impl Profile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "freebsd-13.2" => Some(freebsd::v13_2()),
            "freebsd-14.3" => Some(freebsd::v14_3()),
            "freebsd-main" => Some(freebsd::main()),
            "linux-6.18" => Some(linux::v6_18()),
            _ => None,
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
        }
        assert_eq!(Profile::named("windows-11"), None);
    }
}
