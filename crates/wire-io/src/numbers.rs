//! Unpredictable initial numbers of connections: the ISN of RFC 6528 and the offset of the
//! timestamp clock (RFC 7323 section 5.4). F is SHA-256, with a secret per run.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use packet::wire::Endpoints;
use sha2::{Digest, Sha256};

/// Generates initial numbers.
#[derive(Debug, Clone)]
pub struct IsnGenerator {
    secret: [u8; 16],
}

/// Initial numbers of one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialNumbers {
    /// Initial sequence number.
    pub isn: u32,
    /// Start value of the timestamp clock.
    pub timestamp: u32,
}

impl IsnGenerator {
    /// Creates a generator with a secret from the system.
    ///
    /// # Errors
    /// Errors of /dev/urandom.
    pub fn secret() -> io::Result<Self> {
        let mut secret = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut secret)?;
        Ok(Self { secret })
    }

    /// Returns the initial numbers of the source of `between`, `micros` after 1970.
    pub fn first(&self, between: &Endpoints, micros: u64) -> InitialNumbers {
        let mut hash = Sha256::new();
        for end in [between.src, between.dst] {
            match end.ip() {
                IpAddr::V4(v4) => hash.update(v4.octets()),
                IpAddr::V6(v6) => hash.update(v6.octets()),
            }
            hash.update(end.port().to_be_bytes());
        }
        hash.update(self.secret);
        let hash = hash.finalize();
        let word =
            |at: usize| u32::from_be_bytes([hash[at], hash[at + 1], hash[at + 2], hash[at + 3]]);
        // RFC 6528 section 3: ISN = M + F(...), M ticks every 4 microseconds.
        InitialNumbers { isn: word(0).wrapping_add((micros / 4) as u32), timestamp: word(4) }
    }

    /// Returns the microseconds since 1970.
    #[expect(clippy::disallowed_methods, reason = "the clock M of RFC 6528 runs through restarts")]
    pub fn micros() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(port: u16) -> Endpoints {
        Endpoints { src: ([10, 0, 0, 1], port).into(), dst: ([10, 0, 0, 2], 5_001).into() }
    }

    #[test]
    fn isns_follow_the_clock_and_differ_between_connections() {
        let numbers = IsnGenerator { secret: [7; 16] };
        let first = numbers.first(&between(1), 1_000);
        let later = numbers.first(&between(1), 1_400);
        assert_eq!(later.isn.wrapping_sub(first.isn), 100);
        assert_eq!(later.timestamp, first.timestamp);
        for other in [
            numbers.first(&between(2), 1_000),
            numbers.first(&between(1).reversed(), 1_000),
            IsnGenerator { secret: [8; 16] }.first(&between(1), 1_000),
        ] {
            assert!(other.isn.abs_diff(first.isn) > 1_000, "{other:?} {first:?}");
            assert_ne!(other.timestamp, first.timestamp);
        }
        assert_ne!(IsnGenerator::secret().unwrap().secret, IsnGenerator::secret().unwrap().secret);
    }
}
