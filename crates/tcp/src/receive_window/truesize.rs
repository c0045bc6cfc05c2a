//! The memory of a packet in a kernel (`skb->truesize`).
//!
//! Source: tun_alloc_skb of tun.c, SKB_TRUESIZE of skbuff.h (Linux 6.18); measured in `reference/linux.md` 9.

/// Headers of a packet with timestamps.
const HEADERS: u64 = 52;
/// Memory of a packet besides its data: the sk_buff, skb_shared_info, headroom (`NET_SKB_PAD`), the
/// smallest head (`SKB_SMALL_HEAD_CACHE_SIZE`), and a page.
pub(super) const SK_BUFF: u64 = 256;
const SHARED_INFO: u64 = 320;
const HEADROOM: u64 = 64;
const SMALL_HEAD: u64 = 576;
const PAGE: u64 = 4_096;
/// Of a kernel without tunnels and WLAN (`MAX_TCP_HEADER`).
const MAX_TCP_HEADER: u64 = 192;

/// Memory of a packet with this payload on a TUN device (`skb->truesize`), and the part of it that
/// does not count when the window opens, since the head could be shared (truesize_adjust).
pub(super) const fn truesize(payload: u64) -> (u64, u64) {
    let packet = payload + HEADERS;
    if HEADROOM + packet >= PAGE {
        let head = SMALL_HEAD + SK_BUFF;
        return (head + payload.next_multiple_of(PAGE), head);
    }
    let head = HEADROOM + packet + SHARED_INFO;
    let slab = if head <= SMALL_HEAD { SMALL_HEAD } else { head.next_power_of_two() };
    (slab + SK_BUFF, 0)
}

/// The least memory of a packet with this payload, as tcp_rcv_space_adjust counts it.
pub(super) const fn least_memory(payload: u64) -> u64 {
    payload + MAX_TCP_HEADER + SHARED_INFO + SK_BUFF
}
