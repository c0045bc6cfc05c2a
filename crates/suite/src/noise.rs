//! The noise of hosts: the time that the sending host takes for a packet.
//!
//! Without noise, the phases of several flows over a drop-tail queue decide which of them loses packets:
//! [`scenario::host_noise`] has the source and the rule of the bound.

use core::fmt;

use units::Duration;

/// Processing time of a packet: uniform from zero to a bound. Packets keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostNoise {
    /// The bound is the service time of a packet of 1500 bytes at the bottleneck, within 50 and 500 us,
    /// but at most a tenth of the round trip.
    #[default]
    Hosts,
    /// The same bound in every world.
    Fixed(Duration),
    /// None.
    Off,
}

impl HostNoise {
    /// The bound at this rate of the bottleneck in bit/s and with this round trip.
    pub(crate) fn bound(self, rate: u64, rtt: Duration) -> Duration {
        match self {
            Self::Off => Duration::ZERO,
            Self::Fixed(bound) => bound,
            Self::Hosts => scenario::host_noise(rate, rtt),
        }
    }
}

impl core::str::FromStr for HostNoise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hosts" => Ok(Self::Hosts),
            "off" => Ok(Self::Off),
            _ => {
                match scenario::units_text::duration(text) {
                    Ok(bound) if bound.is_zero() => Ok(Self::Off),
                    Ok(bound) if bound <= Duration::from_secs(1) => Ok(Self::Fixed(bound)),
                    _ => Err("expected `hosts`, `off` or a time of at most 1s, such as `300us`"
                        .to_owned()),
                }
            }
        }
    }
}

impl fmt::Display for HostNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts => f.write_str("hosts"),
            Self::Fixed(bound) => write!(f, "{}us", bound.as_nanos() as f64 / 1e3),
            Self::Off => f.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_service_time_of_a_packet_within_limits() {
        let us = |rate, rtt_us| {
            HostNoise::Hosts.bound(rate, Duration::from_micros(rtt_us)).as_nanos() as f64 / 1e3
        };
        // 1500 bytes take 240 us at 50 Mbit/s.
        assert!((us(50_000_000, 40_000) - 240.0).abs() < 1e-9);
        assert!((us(100_000, 400_000) - 500.0).abs() < 1e-9);
        assert!((us(1_000_000_000, 10_000) - 50.0).abs() < 1e-9);
        assert!((us(10_000_000_000, 100) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_bound_is_read_and_written() {
        for text in ["hosts", "off", "300us"] {
            assert_eq!(text.parse::<HostNoise>().unwrap().to_string(), text);
        }
        assert!("2s".parse::<HostNoise>().unwrap_err().contains("at most 1s"));
        assert!("much".parse::<HostNoise>().is_err());
    }
}
