//! State that a TCP stack adds to a record: union tcp_log_stackspecific.

use super::{BblogEvent, TcpLogBuffer, flags, layout};

layout! {
    /// struct tcp_log_bbr, which RACK and BBR fill. Rates are in bytes per second, times in
    /// microseconds unless the event says otherwise.
    pub struct TcpLogBbr of 104 bytes {
        /// Current delivery rate.
        cur_del_rate: u64 = 0,
        /// Delivery rate.
        del_rate: u64 = 8,
        /// Minimum round-trip time.
        rtt_prop: u64 = 16,
        /// Bandwidth in use.
        bw_inuse: u64 = 24,
        /// Bytes in flight.
        inflight: u32 = 32,
        /// Delivered bytes at the last application limit.
        applimited: u32 = 36,
        /// Bytes delivered.
        delivered: u32 = 40,
        /// Time of the event.
        time_stamp: u32 = 44,
        /// Round of the bandwidth filter.
        epoch: u32 = 48,
        /// Round of the long-term filter.
        lt_epoch: u32 = 52,
        /// Segments in flight.
        pkts_out: u32 = 56,
        /// Depends on the event.
        flex1: u32 = 60,
        /// Depends on the event.
        flex2: u32 = 64,
        /// Depends on the event.
        flex3: u32 = 68,
        /// Depends on the event.
        flex4: u32 = 72,
        /// Depends on the event.
        flex5: u32 = 76,
        /// Depends on the event.
        flex6: u32 = 80,
        /// Bytes lost.
        lost: u32 = 84,
        /// Gain of the pacing rate.
        pacing_gain: u16 = 88,
        /// Gain of the window.
        cwnd_gain: u16 = 90,
        /// Depends on the event.
        flex7: u16 = 92,
        /// State of the controller.
        bbr_state: u8 = 94,
        /// State within the state.
        bbr_substate: u8 = 95,
        /// Whether it is on the pacing wheel.
        inhpts: u8 = 96,
        /// Unused.
        spare: u8 = 97,
        /// Whether the long-term bandwidth is used.
        use_lt_bw: u8 = 98,
        /// Depends on the event.
        flex8: u8 = 99,
        /// Round of packets.
        pkt_epoch: u32 = 100,
    }
}

/// State that the stack has added to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackData {
    /// Nothing: the default stack at most events.
    Nothing,
    /// The state of RACK or BBR.
    Bbr(TcpLogBbr),
    /// Data of another layout: sendfile, requests, events of the application.
    Unknown([u8; TcpLogBbr::LEN]),
}

impl StackData {
    pub(super) fn of(info: &TcpLogBuffer) -> Self {
        // tcp_log_sendfile, tcp_log_http and the user's data share the union with tcp_log_bbr.
        let other = [BblogEvent::USER_EVENT, BblogEvent::SENDFILE, BblogEvent::REQ_T]
            .contains(&info.event());
        match info.stack_bytes {
            bytes if info.has(flags::STACKINFO) && !other => Self::Bbr(TcpLogBbr::decode(&bytes)),
            bytes if bytes == [0; TcpLogBbr::LEN] => Self::Nothing,
            bytes => Self::Unknown(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_union_is_decoded_where_it_is_the_stacks() {
        let bbr =
            TcpLogBbr { inflight: 14_480, bbr_state: 3, pkt_epoch: 9, ..TcpLogBbr::default() };
        let mut info = TcpLogBuffer { stack_bytes: bbr.encode(), ..TcpLogBuffer::default() };
        assert_eq!(info.stack(), StackData::Unknown(bbr.encode()));
        info.event_flags = flags::STACKINFO;
        assert_eq!(info.stack(), StackData::Bbr(bbr));
        info.event_id = BblogEvent::SENDFILE.0;
        assert_eq!(info.stack(), StackData::Unknown(bbr.encode()));
        assert_eq!(TcpLogBuffer::default().stack(), StackData::Nothing);
        // 4 * 8 bytes before inflight; the last four are pkt_epoch.
        assert_eq!(bbr.encode()[32..36], 14_480_u32.to_le_bytes());
        assert_eq!(bbr.encode()[100..], 9_u32.to_le_bytes());
    }
}
