//! How large the send buffer and the receive buffer are.

use units::Bytes;

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
    /// tcp_sndbuf_expand of tcp_input.c; `tcp_wmem`: minimum, initial and maximum size.
    Linux {
        /// `net.ipv4.tcp_wmem`.
        wmem: [Bytes; 3],
        /// `net.ipv4.tcp_notsent_lowat`: unsent bytes from which a writer waits.
        notsent_lowat: u32,
        /// Memory of a queued packet besides its payload: `SKB_TRUESIZE` of a head with room for
        /// `MAX_TCP_HEADER`. It depends on the build, too: these are kernels without tunnels and WLAN.
        overhead: u16,
    },
    /// Fixed size.
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
        /// `net.ipv4.tcp_rmem`: minimum, initial and maximum size.
        rmem: [Bytes; 3],
        /// `net.ipv4.tcp_moderate_rcvbuf`: autotuning.
        auto: bool,
        /// `net.core.rmem_max`: affects the choice of the window scale.
        rmem_max: Bytes,
        /// How autotuning enlarges the buffer.
        growth: BufferGrowth,
        /// Memory that a received packet takes of the buffer (`skb->truesize`), whatever its
        /// length: most drivers have receive buffers of one size. Zero: that of a TUN device, which
        /// allocates as much as a packet needs.
        truesize: Bytes,
    },
    /// Fixed size.
    Fixed {
        /// Payload bytes.
        space: Bytes,
    },
}

/// How Linux enlarges the receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum BufferGrowth {
    /// tcp_rcv_space_adjust of 6.1: half of the buffer is for payload whatever packets take
    /// (`net.ipv4.tcp_adv_win_scale` of 1), and what was read counts although data is unread.
    AdvWinScale,
    /// tcp_rcv_space_adjust of 6.12: for 16 segments more than the data of two round trips; the
    /// receiver's round trip also grows while data is unread.
    SpaceAdjust,
    /// tcp_rcvbuf_grow of 6.18: also for data after a gap.
    RcvbufGrow,
}
