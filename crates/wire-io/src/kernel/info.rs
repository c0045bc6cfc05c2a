//! State of a real sender: `TCP_INFO` (struct tcp_info of include/uapi/linux/tcp.h).

use std::net::TcpStream;

use nix::sys::socket::getsockopt;
use units::{Duration, Instant};

/// Bytes of the structure up to `tcpi_min_rtt`, available since Linux 4.6.
const LEN: usize = 152;

mod option {
    use nix::{getsockopt_impl, libc, sockopt_impl};

    sockopt_impl!(TcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, [u8; super::LEN]);
}

/// State of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelTcpInfo {
    /// `tcpi_ca_state`: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.
    pub ca_state: u8,
    /// `tcpi_snd_cwnd`, in packets.
    pub cwnd: u32,
    /// `tcpi_snd_ssthresh`, in packets; `None` while it is infinite.
    pub ssthresh: Option<u32>,
    /// `tcpi_snd_mss`.
    pub mss: u32,
    /// `tcpi_rtt`, the smoothed round-trip time.
    pub srtt: Duration,
    /// `tcpi_min_rtt`; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// `tcpi_unacked`, in packets.
    pub unacked: u32,
    /// `tcpi_total_retrans`, in packets.
    pub retransmitted: u32,
}

/// A state with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfoSample {
    /// Time of the sample.
    pub at: Instant,
    /// The state.
    pub info: KernelTcpInfo,
}

impl KernelTcpInfo {
    /// Reads the state of a socket; `None` if getsockopt fails.
    pub fn of(stream: &TcpStream) -> Option<Self> {
        getsockopt(stream, option::TcpInfo).ok().map(|bytes| Self::from_bytes(&bytes))
    }

    fn from_bytes(bytes: &[u8; LEN]) -> Self {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let span = |at: usize| Duration::from_micros(word(at).into());
        // TCP_INFINITE_SSTHRESH, and the value of an unset min_rtt.
        const NO_SSTHRESH: u32 = 0x7fff_ffff;
        const NO_MIN_RTT: u32 = u32::MAX;
        Self {
            ca_state: bytes[1],
            mss: word(16),
            unacked: word(24),
            srtt: span(68),
            ssthresh: Some(word(76)).filter(|&packets| packets < NO_SSTHRESH),
            cwnd: word(80),
            retransmitted: word(100),
            min_rtt: Some(span(148)).filter(|_| word(148) != NO_MIN_RTT && word(148) != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_socket_is_read() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = KernelTcpInfo::of(&stream).unwrap();
        // Initial window of ten packets (RFC 6928), and no threshold yet.
        assert_eq!((info.cwnd, info.ssthresh, info.ca_state), (10, None, 0));
        assert_eq!((info.unacked, info.retransmitted), (0, 0));
        assert!(info.mss >= 536);
        assert!(info.srtt > Duration::ZERO && info.srtt < Duration::from_secs(1));
        assert!(info.min_rtt.is_some_and(|rtt| rtt <= info.srtt));
    }
}
