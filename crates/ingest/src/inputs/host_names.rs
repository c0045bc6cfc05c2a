//! Assigns addresses and ports to the names in tcpdump's lines.
//!
//! Different names have different addresses, and none has an address that is in the text as such. A
//! name takes the next free address; a literal address that a name has taken before gets another.

use core::hash::Hash;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use packet::IpVersion;
use trace::tcpdump::Address;

/// Ports that tcpdump prints by name without `-n`, of services with bulk transfers (/etc/services).
const SERVICES: [(&str, u16); 12] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("smtp", 25),
    ("http", 80),
    ("pop3", 110),
    ("nfs", 2_049),
    ("https", 443),
    ("rsync", 873),
    ("iscsi-target", 3_260),
    ("postgresql", 5_432),
    ("http-alt", 8_080),
];
/// First number for ports with other names.
const FIRST_NAMED_PORT: u16 = 60_000;
/// First addresses of names: in the reserved block 240.0.0.0/4 (RFC 1112 section 4), and a
/// documentation address (RFC 3849).
const FIRST_V4: u32 = 0xf000_0001;
const FIRST_V6: u128 = (0x2001_0db8_ffff_ffff << 64) | 1;

/// A map that iterates in the order of insertion.
type OrderedMap<K, V> = IndexMap<K, V, FixedState>;

/// An injective mapping of names to values among values that are given literally.
#[derive(Debug)]
struct NameMapping<T> {
    names: OrderedMap<Box<str>, T>,
    /// Values in use, and whether by a name.
    taken: OrderedMap<T, bool>,
    /// Literals whose own value a name has taken.
    moved: OrderedMap<T, T>,
}

impl<T> Default for NameMapping<T> {
    fn default() -> Self {
        Self {
            names: OrderedMap::default(),
            taken: OrderedMap::default(),
            moved: OrderedMap::default(),
        }
    }
}

impl<T: Copy + Eq + Hash> NameMapping<T> {
    /// The value of `text`, which is `literal` or a name; the first free one of `candidates` if it is
    /// new and has none of its own. `None` if there is no free candidate.
    fn value(
        &mut self,
        text: &str,
        literal: Option<T>,
        mut candidates: impl Iterator<Item = T>,
    ) -> Option<T> {
        let known = match literal {
            Some(value) if !*self.taken.entry(value).or_insert(false) => return Some(value),
            Some(value) => self.moved.get(&value),
            None => self.names.get(text),
        };
        if let Some(known) = known {
            return Some(*known);
        }
        let free = candidates.find(|value| !self.taken.contains_key(value))?;
        self.taken.insert(free, true);
        match literal {
            Some(value) => self.moved.insert(value, free),
            None => self.names.insert(text.into(), free),
        };
        Some(free)
    }
}

/// The ports of a host.
#[derive(Debug, Default)]
struct HostPorts {
    ports: NameMapping<u16>,
    /// Where the search for a free one goes on.
    next: u32,
}

/// The addresses of the names of all texts.
#[derive(Debug, Default)]
pub(super) struct HostNames {
    v4: NameMapping<Ipv4Addr>,
    v6: NameMapping<Ipv6Addr>,
    /// Addresses tried so far.
    tried: (u32, u128),
    ports: OrderedMap<IpAddr, HostPorts>,
    /// Numbers of the names of ports.
    services: OrderedMap<Box<str>, u16>,
    /// The texts of the addresses.
    texts: OrderedMap<SocketAddr, Box<str>>,
}

impl HostNames {
    /// The address of a host and port of a packet of this version; true if the host has a name.
    /// `None` if all ports of the host are in use.
    pub(super) fn end(
        &mut self,
        address: Address<'_>,
        version: IpVersion,
    ) -> Option<(SocketAddr, bool)> {
        let literal = address.host.parse::<IpAddr>().ok();
        let host = self.host(address.host, literal, version)?;
        let port = match address.port {
            Some(port) => self.port(host, port)?,
            None => 0,
        };
        let end = SocketAddr::new(host, port);
        if !self.texts.contains_key(&end) {
            let Address { host, port } = address;
            let text = port.map_or_else(|| host.to_owned(), |port| format!("{host}.{port}"));
            self.texts.insert(end, text.into());
        }
        Some((end, literal.is_none()))
    }

    /// The text of an address.
    pub(super) fn text(&self, end: SocketAddr) -> Option<String> {
        self.texts.get(&end).map(|text| (**text).to_owned())
    }

    fn host(&mut self, text: &str, literal: Option<IpAddr>, version: IpVersion) -> Option<IpAddr> {
        let (v4, v6) = match literal {
            Some(IpAddr::V4(address)) => (Some(address), None),
            Some(IpAddr::V6(address)) => (None, Some(address)),
            None => (None, None),
        };
        if v4.is_some() || (v6.is_none() && version == IpVersion::V4) {
            let tried = &mut self.tried.0;
            let candidates = core::iter::from_fn(|| {
                let bits = FIRST_V4.wrapping_add(*tried);
                *tried = tried.checked_add(1)?;
                Some(Ipv4Addr::from_bits(bits))
            });
            return self.v4.value(text, v4, candidates).map(IpAddr::V4);
        }
        let tried = &mut self.tried.1;
        let candidates = core::iter::from_fn(|| {
            let bits = FIRST_V6.wrapping_add(*tried);
            *tried = tried.checked_add(1)?;
            Some(Ipv6Addr::from_bits(bits))
        });
        self.v6.value(text, v6, candidates).map(IpAddr::V6)
    }

    fn port(&mut self, host: IpAddr, text: &str) -> Option<u16> {
        let service = || SERVICES.iter().find(|(name, _)| *name == text).map(|(_, port)| *port);
        let literal = text.parse().ok().or_else(service);
        let HostPorts { ports, next } = self.ports.entry(host).or_default();
        // A name has the same number on all hosts, if it is free there.
        let usual = literal.is_none().then(|| {
            let count = self.services.len();
            match self.services.get(text) {
                Some(number) => *number,
                None => {
                    let number = u16::try_from(usize::from(FIRST_NAMED_PORT) + count);
                    let number = number.unwrap_or(FIRST_NAMED_PORT);
                    self.services.insert(text.into(), number);
                    number
                }
            }
        });
        let others = core::iter::from_fn(|| {
            let port = FIRST_NAMED_PORT.wrapping_add(u16::try_from(*next).ok()?);
            *next += 1;
            Some(port)
        });
        ports.value(text, literal, usual.into_iter().chain(others))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(names: &mut HostNames, host: &str, port: &str, version: IpVersion) -> SocketAddr {
        names.end(Address { host, port: Some(port) }, version).unwrap().0
    }

    #[test]
    fn different_hosts_have_different_addresses() {
        for version in [IpVersion::V4, IpVersion::V6] {
            let mut names = HostNames::default();
            let mut all = Vec::new();
            for number in 0..70_000 {
                all.push(end(&mut names, &format!("host-{number}"), "443", version));
            }
            assert_eq!(all[69_999], end(&mut names, "host-69999", "https", version));
            assert_eq!(names.text(all[300]).unwrap(), "host-300.443");
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 70_000);
        }
    }

    /// Literal addresses before and after the names that would take them, in two spellings.
    #[test]
    fn names_and_literal_addresses_do_not_collide() {
        let mut names = HostNames::default();
        let before = [end(&mut names, "240.0.0.1", "1", IpVersion::V4)];
        let named = [0, 1].map(|n| end(&mut names, &format!("host-{n}"), "1", IpVersion::V4));
        let after =
            ["240.0.0.2", "240.0.0.3"].map(|host| end(&mut names, host, "1", IpVersion::V4));
        assert_eq!(before[0].ip().to_string(), "240.0.0.1");
        let v6 = end(&mut names, "host-0", "1", IpVersion::V6);
        let own = v6.ip().to_string();
        let literal = end(&mut names, &own, "1", IpVersion::V6);
        let long = own.replace("::", ":0:0:0:");
        assert_ne!(long, own);
        assert_eq!(end(&mut names, &long, "1", IpVersion::V6), literal);
        let mut all = [before.as_slice(), &named, &after, &[v6, literal]].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 7);
    }

    #[test]
    fn names_and_numbers_of_ports_do_not_collide() {
        let mut names = HostNames::default();
        let mut all = Vec::new();
        for number in 0..6_000 {
            all.push(end(&mut names, "host", &format!("service-{number}"), IpVersion::V4));
            all.push(end(&mut names, "host", &(59_000 + number).to_string(), IpVersion::V4));
        }
        assert_eq!(end(&mut names, "other", "service-0", IpVersion::V4).port(), 60_000);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12_000);
    }

    #[test]
    fn a_host_has_no_more_ports_than_numbers() {
        let mut names = HostNames::default();
        let mut next = |n: u32| {
            let port = format!("service-{n}");
            names.end(Address { host: "host", port: Some(&port) }, IpVersion::V4)
        };
        assert!((0..65_536).all(|n| next(n).is_some()));
        assert_eq!(next(65_536), None);
        assert!(next(0).is_some());
    }
}
