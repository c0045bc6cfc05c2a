//! The state of a connection at an event: struct tcp_log_buffer up to its TCP header.

use super::stack::StackData;
use super::{BblogEvent, layout};

layout! {
    /// One record. Windows and buffers are in bytes; sequence numbers are absolute.
    pub struct TcpLogBuffer of 268 bytes {
        /// Uptime at the event, whole seconds.
        tv_sec: i64 = 0,
        /// Uptime at the event, microseconds.
        tv_usec: i64 = 8,
        /// Ticks of the kernel clock (`kern.hz` a second).
        ticks: u32 = 16,
        /// Number of the record in its connection, from 0.
        serial: u32 = 20,
        /// Number of the TCP stack; the section has its name.
        stack_id: u8 = 24,
        /// The event: an [`BblogEvent`].
        event_id: u8 = 25,
        /// Contents of the record: [`flags`].
        event_flags: u16 = 26,
        /// Result of the call, for events that have one.
        errno: i32 = 28,
        /// Receive buffer: bytes that can be read.
        rxbuf_acc: u32 = 32,
        /// Receive buffer: bytes claimed.
        rxbuf_ccc: u32 = 36,
        /// Receive buffer: unused.
        rxbuf_spare: u32 = 40,
        /// Send buffer: bytes that can be sent.
        txbuf_acc: u32 = 44,
        /// Send buffer: bytes claimed.
        txbuf_ccc: u32 = 48,
        /// Send buffer: unused.
        txbuf_spare: u32 = 52,
        /// State of the connection (TCPS_...).
        state: u32 = 56,
        /// Ticks at which the connection began.
        starttime: u32 = 60,
        /// Initial sequence number sent.
        iss: u32 = 64,
        /// Flags of the connection: [`t_flags`].
        t_flags: u32 = 68,
        /// Oldest byte not acknowledged.
        snd_una: u32 = 72,
        /// Highest byte ever sent, plus one.
        snd_max: u32 = 76,
        /// Congestion window.
        snd_cwnd: u32 = 80,
        /// Next byte to send.
        snd_nxt: u32 = 84,
        /// Recovery point.
        snd_recover: u32 = 88,
        /// Window advertised by the peer.
        snd_wnd: u32 = 92,
        /// Slow-start threshold.
        snd_ssthresh: u32 = 96,
        /// Smoothed round-trip time: ticks * 32 in the default stack, microseconds in RACK and
        /// BBR.
        srtt: u32 = 100,
        /// Its variance, in the unit of the stack.
        rttvar: u32 = 104,
        /// Urgent pointer received.
        rcv_up: u32 = 108,
        /// Right edge of the advertised window.
        rcv_adv: u32 = 112,
        /// More flags of the connection.
        t_flags2: u32 = 116,
        /// Next byte expected.
        rcv_nxt: u32 = 120,
        /// Advertised window.
        rcv_wnd: u32 = 124,
        /// Duplicate acknowledgments in a row.
        dupacks: u32 = 128,
        /// Segments in the reassembly queue.
        segqlen: i32 = 132,
        /// Holes in the scoreboard.
        snd_numholes: i32 = 136,
        /// Depends on the event.
        flex1: u32 = 140,
        /// Depends on the event.
        flex2: u32 = 144,
        /// Ticks of the first byte received.
        fbyte_in: u32 = 148,
        /// Ticks of the first byte sent.
        fbyte_out: u32 = 152,
        /// Window scale shifts: sending in the low four bits, receiving in the high ones.
        scales: u8 = 156,
        /// Unused.
        pad: [u8; 3] = 157,
        /// State added by the stack: [`TcpLogBuffer::stack`] decodes it.
        stack_bytes: [u8; 104] = 160,
        /// Payload bytes of the packet.
        len: u32 = 264,
    }
}

/// Bits of [`TcpLogBuffer::event_flags`] (TLB_FLAG_...).
pub mod flags {
    /// The record has the receive buffer.
    pub const RXBUF: u16 = 1;
    /// The record has the send buffer.
    pub const TXBUF: u16 = 2;
    /// The record has a packet.
    pub const HDR: u16 = 4;
    /// The record has the source location of the log call.
    pub const VERBOSE: u16 = 8;
    /// The stack has added its own state.
    pub const STACKINFO: u16 = 0x10;
}

/// Bits of [`TcpLogBuffer::t_flags`] (TF_... of tcp_var.h).
pub mod t_flags {
    /// A FIN was sent.
    pub const SENTFIN: u32 = 0x10;
    /// Nagle's algorithm is off.
    pub const NODELAY: u32 = 0x4;
    /// An ACK is delayed.
    pub const DELACK: u32 = 0x2;
    /// Window scaling was requested.
    pub const REQ_SCALE: u32 = 0x20;
    /// The peer has requested window scaling.
    pub const RCVD_SCALE: u32 = 0x40;
    /// Timestamps were requested.
    pub const REQ_TSTMP: u32 = 0x80;
    /// The peer has requested timestamps.
    pub const RCVD_TSTMP: u32 = 0x100;
    /// SACK was negotiated.
    pub const SACK_PERMIT: u32 = 0x200;
    /// In fast recovery.
    pub const FASTRECOVERY: u32 = 0x10_0000;
    /// TSO is in use.
    pub const TSO: u32 = 0x100_0000;
    /// Lost retransmission detection is on.
    pub const LRD: u32 = 0x1000_0000;
    /// In recovery from a congestion signal.
    pub const CONGRECOVERY: u32 = 0x2000_0000;
}

/// Names of the states, by their number (tcp_fsm.h).
const STATES: [&str; 11] = [
    "CLOSED",
    "LISTEN",
    "SYN_SENT",
    "SYN_RECEIVED",
    "ESTABLISHED",
    "CLOSE_WAIT",
    "FIN_WAIT_1",
    "CLOSING",
    "LAST_ACK",
    "FIN_WAIT_2",
    "TIME_WAIT",
];

impl TcpLogBuffer {
    /// The event.
    pub const fn event(&self) -> BblogEvent {
        BblogEvent(self.event_id)
    }

    /// Whether this one of [`flags`] is set.
    pub const fn has(&self, flag: u16) -> bool {
        self.event_flags & flag != 0
    }

    /// Name of the state; `None` for an invalid number.
    pub fn state_name(&self) -> Option<&'static str> {
        STATES.get(self.state as usize).copied()
    }

    /// Shift of the windows that the peer advertises.
    pub const fn snd_scale(&self) -> u8 {
        self.scales & 0xf
    }

    /// Shift of the windows advertised to the peer.
    pub const fn rcv_scale(&self) -> u8 {
        self.scales >> 4
    }

    /// Uptime in microseconds; `None` if it overflows.
    pub const fn uptime_micros(&self) -> Option<i64> {
        match self.tv_sec.checked_mul(1_000_000) {
            Some(micros) => micros.checked_add(self.tv_usec),
            None => None,
        }
    }

    /// Decodes the state added by the stack.
    pub fn stack(&self) -> StackData {
        StackData::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_at_the_offsets_of_the_header_file() {
        // Every byte its own offset modulo 256.
        let mut bytes = [0; TcpLogBuffer::LEN];
        bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        let info = TcpLogBuffer::decode(&bytes);
        assert_eq!(info.encode(), bytes);
        assert_eq!(info.ticks, 0x1312_1110);
        assert_eq!((info.stack_id, info.event_id, info.event_flags), (24, 25, 0x1b1a));
        assert_eq!(info.iss, 0x4342_4140);
        assert_eq!(info.snd_cwnd, 0x5352_5150);
        assert_eq!(info.rcv_nxt, 0x7b7a_7978);
        assert_eq!((info.snd_scale(), info.rcv_scale()), (0xc, 0x9));
        // 264 = 256 + 8.
        assert_eq!(info.len, 0x0b0a_0908);
    }

    #[test]
    fn numbers_come_with_their_names() {
        let info = TcpLogBuffer { snd_cwnd: 7, ..TcpLogBuffer::default() };
        let mut seen = Vec::new();
        info.each(|name, number| seen.push((name, number)));
        assert!(seen.contains(&("snd_cwnd", 7)));
        // 8 of the event, 6 of the buffers, 4 + 7 + 10 of the connection, 4 of flex and first
        // bytes, scales and length.
        assert_eq!(seen.len(), 8 + 6 + 4 + 7 + 10 + 4 + 2);
        assert_eq!(seen.first().map(|(name, _)| *name), Some("tv_sec"));
    }
}
