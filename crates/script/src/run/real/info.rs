//! `struct tcp_info` of Linux (include/uapi/linux/tcp.h), by the names of its fields.

/// Bytes of the structure in Linux 6.12.
pub(super) const LEN: usize = 248;

/// Fields with their offset and size.
const FIELDS: [(&str, usize, usize); 53] = [
    ("tcpi_state", 0, 1),
    ("tcpi_ca_state", 1, 1),
    ("tcpi_retransmits", 2, 1),
    ("tcpi_probes", 3, 1),
    ("tcpi_backoff", 4, 1),
    ("tcpi_options", 5, 1),
    ("tcpi_rto", 8, 4),
    ("tcpi_ato", 12, 4),
    ("tcpi_snd_mss", 16, 4),
    ("tcpi_rcv_mss", 20, 4),
    ("tcpi_unacked", 24, 4),
    ("tcpi_sacked", 28, 4),
    ("tcpi_lost", 32, 4),
    ("tcpi_retrans", 36, 4),
    ("tcpi_fackets", 40, 4),
    ("tcpi_last_data_sent", 44, 4),
    ("tcpi_last_ack_sent", 48, 4),
    ("tcpi_last_data_recv", 52, 4),
    ("tcpi_last_ack_recv", 56, 4),
    ("tcpi_pmtu", 60, 4),
    ("tcpi_rcv_ssthresh", 64, 4),
    ("tcpi_rtt", 68, 4),
    ("tcpi_rttvar", 72, 4),
    ("tcpi_snd_ssthresh", 76, 4),
    ("tcpi_snd_cwnd", 80, 4),
    ("tcpi_advmss", 84, 4),
    ("tcpi_reordering", 88, 4),
    ("tcpi_rcv_rtt", 92, 4),
    ("tcpi_rcv_space", 96, 4),
    ("tcpi_total_retrans", 100, 4),
    ("tcpi_pacing_rate", 104, 8),
    ("tcpi_max_pacing_rate", 112, 8),
    ("tcpi_bytes_acked", 120, 8),
    ("tcpi_bytes_received", 128, 8),
    ("tcpi_segs_out", 136, 4),
    ("tcpi_segs_in", 140, 4),
    ("tcpi_notsent_bytes", 144, 4),
    ("tcpi_min_rtt", 148, 4),
    ("tcpi_data_segs_in", 152, 4),
    ("tcpi_data_segs_out", 156, 4),
    ("tcpi_delivery_rate", 160, 8),
    ("tcpi_busy_time", 168, 8),
    ("tcpi_rwnd_limited", 176, 8),
    ("tcpi_sndbuf_limited", 184, 8),
    ("tcpi_delivered", 192, 4),
    ("tcpi_delivered_ce", 196, 4),
    ("tcpi_bytes_sent", 200, 8),
    ("tcpi_bytes_retrans", 208, 8),
    ("tcpi_dsack_dups", 216, 4),
    ("tcpi_reord_seen", 220, 4),
    ("tcpi_rcv_ooopack", 224, 4),
    ("tcpi_snd_wnd", 228, 4),
    ("tcpi_rcv_wnd", 232, 4),
];

/// Returns a field of the structure in hexadecimal.
pub(super) fn field(hex: &str, name: &str) -> Option<i64> {
    let byte = |at: usize| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok();
    let shifts = byte(6).map(i64::from);
    match name {
        "tcpi_snd_wscale" => return Some(shifts? & 15),
        "tcpi_rcv_wscale" => return Some(shifts? >> 4),
        "tcpi_delivery_rate_app_limited" => return Some(i64::from(byte(7)? & 1)),
        "tcpi_fastopen_client_fail" => return Some(i64::from(byte(7)? >> 1 & 3)),
        _ => {}
    }
    let &(_, offset, size) = FIELDS.iter().find(|(field, ..)| *field == name)?;
    let mut value = 0;
    for at in (offset..offset + size).rev() {
        value = value << 8 | i64::from(byte(at)?);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_at_their_offsets() {
        let mut bytes = [0_u8; LEN];
        (bytes[0], bytes[6]) = (1, 0xa7);
        bytes[80..84].copy_from_slice(&10_u32.to_le_bytes());
        bytes[232..236].copy_from_slice(&65_535_u32.to_le_bytes());
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(field(&hex, "tcpi_state"), Some(1));
        assert_eq!(field(&hex, "tcpi_snd_wscale"), Some(7));
        assert_eq!(field(&hex, "tcpi_rcv_wscale"), Some(10));
        assert_eq!(field(&hex, "tcpi_snd_cwnd"), Some(10));
        assert_eq!(field(&hex, "tcpi_rcv_wnd"), Some(65_535));
        assert_eq!(field("00", "tcpi_snd_cwnd"), None);
    }
}
