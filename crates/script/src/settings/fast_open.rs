//! TCP Fast Open of a Linux host: its sysctls, the cookies of its listeners and its cache of the
//! servers' cookies (net/ipv4/tcp_fastopen.c and tcp_metrics.c of 6.18).

use core::hash::Hasher as _;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::{FastOpenOption, IpVersion};
use siphasher::sip::SipHasher24;
use tcp::fast_open::FastOpenReply;

use super::SysctlError;

/// Fast Open of a host.
#[derive(Debug, Clone)]
pub struct FastOpenHost {
    /// `net.ipv4.tcp_fastopen`
    pub flags: u32,
    /// `net.ipv4.tcp_fastopen_key`, in the byte order of the cipher.
    pub key: [u8; 16],
    /// Addresses of the connection.
    pub addresses: HostAddresses,
    /// What the host knows about the server.
    pub cache: FastOpenCache,
}

/// Addresses of a connection, as `--local_ip` and `--remote_ip` set them.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostAddresses {
    /// This host.
    pub local: Option<IpAddr>,
    /// The peer.
    pub remote: Option<IpAddr>,
}

/// The cached metrics of one server (`tcp_fastopen_metrics`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FastOpenCache {
    /// Its cookie.
    pub cookie: Option<FastOpenOption>,
    /// Its segment size; 0 if it is unknown.
    pub mss: u16,
    /// `try_exp`: 1 if the next request has the experimental format.
    pub tries_experimental: u8,
}

/// `TFO_CLIENT_ENABLE`
const CLIENT: u32 = 1;
/// `TFO_SERVER_ENABLE`
const SERVER: u32 = 2;
/// `TFO_CLIENT_NO_COOKIE`
const CLIENT_NO_COOKIE: u32 = 4;
/// `TFO_SERVER_COOKIE_NOT_REQD`
const SERVER_NO_COOKIE: u32 = 0x200;
/// `TFO_SERVER_WO_SOCKOPT1`
const WITHOUT_OPTION: u32 = 0x400;

impl Default for FastOpenHost {
    fn default() -> Self {
        Self {
            flags: CLIENT,
            key: [0; 16],
            addresses: HostAddresses::default(),
            cache: FastOpenCache::default(),
        }
    }
}

impl FastOpenHost {
    /// Sets one of its sysctls; `None` for another.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Option<Result<(), SysctlError>> {
        let bad = |expected: &str| SysctlError::Bad { expected: expected.to_owned() };
        Some(match name {
            "net.ipv4.tcp_fastopen" => {
                let parsed = match value.strip_prefix("0x") {
                    Some(digits) => u32::from_str_radix(digits, 16),
                    None => value.parse(),
                };
                parsed.map(|flags| self.flags = flags).map_err(|_| bad("a number"))
            }
            "net.ipv4.tcp_fastopen_key" => match sysctl_key(value) {
                Some(key) => {
                    self.key = key;
                    Ok(())
                }
                None => Err(bad("four hexadecimal numbers, such as `0-0-0-0`")),
            },
            // Of old kernels; the suites set it to forget the cookies.
            "net.ipv4.tcp_fastopen_cookies" => {
                self.cache = FastOpenCache::default();
                Ok(())
            }
            _ => return None,
        })
    }

    /// Is it enabled for clients?
    pub const fn allows_client(&self) -> bool {
        self.flags & CLIENT != 0
    }

    /// Is it enabled for servers?
    pub const fn allows_server(&self) -> bool {
        self.flags & SERVER != 0
    }

    /// Is it enabled for listeners without `TCP_FASTOPEN` (inet_listen)?
    pub const fn needs_no_option(&self) -> bool {
        self.flags & WITHOUT_OPTION != 0 && self.allows_server()
    }

    /// Do listeners accept data without a cookie?
    pub const fn accepts_without_cookie(&self) -> bool {
        self.flags & SERVER_NO_COOKIE != 0
    }

    /// The cookie of the peer, with the `key` of a socket or that of the host
    /// (__tcp_fastopen_cookie_gen_cipher): SipHash of both addresses.
    pub fn cookie(&self, key: Option<[u8; 16]>, ip: IpVersion) -> Option<FastOpenOption> {
        let (local, remote) = self.addresses.of(ip);
        let mut hasher = SipHasher24::new_with_key(&key.unwrap_or(self.key));
        for address in [remote, local] {
            match address {
                IpAddr::V4(address) => hasher.write(&address.octets()),
                IpAddr::V6(address) => hasher.write(&address.octets()),
            }
        }
        FastOpenOption::new(&hasher.finish().to_le_bytes(), false)
    }

    /// The option of a client's SYN: the cookie, or the request for one; `None` for data without a
    /// cookie (tcp_fastopen_cookie_check).
    pub fn client_option(&self) -> Option<FastOpenOption> {
        if self.flags & CLIENT_NO_COOKIE != 0 {
            return None;
        }
        let request = FastOpenOption::new(&[], self.cache.tries_experimental == 1);
        self.cache.cookie.or(request)
    }

    /// Caches what a SYN-ACK said (tcp_fastopen_cache_set); `option`: that of our SYN.
    pub fn learn(&mut self, option: Option<FastOpenOption>, reply: &FastOpenReply) {
        self.cache.mss = reply.mss;
        let Some(asked) = option else { return };
        if reply.cookie.is_some() {
            self.cache.cookie = reply.cookie;
        } else if asked.is_request() && !reply.retransmitted && self.cache.cookie.is_none() {
            let next = if asked.experimental { 2 } else { 1 };
            self.cache.tries_experimental = self.cache.tries_experimental.max(next);
        }
    }
}

impl HostAddresses {
    /// The addresses of one version of IP: a script may set those of the other.
    pub(crate) fn of_version(&self, ip: IpVersion) -> (IpAddr, IpAddr) {
        let fits = |address: &IpAddr| address.is_ipv6() == (ip == IpVersion::V6);
        Self { local: self.local.filter(fits), remote: self.remote.filter(fits) }.of(ip)
    }

    /// The addresses of this host and of the peer; those of the public suite's own runner if the
    /// script sets none.
    fn of(&self, ip: IpVersion) -> (IpAddr, IpAddr) {
        let (local, remote): (IpAddr, IpAddr) = match ip {
            IpVersion::V4 => {
                (Ipv4Addr::new(192, 168, 0, 1).into(), Ipv4Addr::new(192, 0, 2, 1).into())
            }
            IpVersion::V6 => (
                Ipv6Addr::new(0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1).into(),
                Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1).into(),
            ),
        };
        (self.local.unwrap_or(local), self.remote.unwrap_or(remote))
    }
}

/// Parses a key as the sysctl has it: four numbers, each in little-endian order
/// (proc_tcp_fastopen_key). A second key is for old cookies only.
fn sysctl_key(text: &str) -> Option<[u8; 16]> {
    let first = text.split(',').next()?;
    let mut key = [0; 16];
    let mut words = first.split('-');
    for place in key.chunks_exact_mut(4) {
        let word = u32::from_str_radix(words.next()?, 16).ok()?;
        place.copy_from_slice(&word.to_le_bytes());
    }
    words.next().is_none().then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_those_of_the_kernel() {
        // From the scripts fastopen/server/simple1.pkt to simple3.pkt and sockopt-fastopen-key.pkt
        // of google/packetdrill, and its run_all.py.
        let cookie = |key: &str, remote: [u8; 4], local: [u8; 4]| {
            let mut host = FastOpenHost::default();
            assert_eq!(host.set("net.ipv4.tcp_fastopen_key", key), Some(Ok(())));
            host.addresses.local = Some(IpAddr::from(local));
            host.addresses.remote = Some(IpAddr::from(remote));
            let cookie = host.cookie(None, IpVersion::V4).unwrap();
            u64::from_be_bytes(cookie.cookie().try_into().unwrap())
        };
        let key = "a0bf63f7-ed803d81-cd641d30-cebc4a90";
        assert_eq!(cookie(key, [10, 248, 0, 2], [192, 168, 0, 2]), 0x00ab_aaab_e8e9_54c2);
        assert_eq!(cookie(key, [10, 248, 0, 3], [192, 168, 0, 2]), 0x1313_a2da_994a_0951);
        assert_eq!(cookie(key, [10, 248, 0, 3], [192, 168, 0, 3]), 0x76d2_c1c5_30f5_1f79);
        let zero = "00000000-00000000-00000000-00000000";
        assert_eq!(cookie(zero, [10, 248, 0, 2], [192, 168, 0, 2]), 0x93b7_aa4f_550f_8a1a);
        let mut host = FastOpenHost::default();
        host.set("net.ipv4.tcp_fastopen_key", "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4")
            .unwrap()
            .unwrap();
        for (ip, expected) in
            [(IpVersion::V4, 0x3021_b9d8_8901_7eeb), (IpVersion::V6, 0xc1d1_e974_2a47_a9bc_u64)]
        {
            let cookie = host.cookie(None, ip).unwrap();
            assert_eq!(u64::from_be_bytes(cookie.cookie().try_into().unwrap()), expected);
        }
        assert!(sysctl_key("1-2-3").is_none() && sysctl_key("1-2-3-4-5").is_none());
    }
}
