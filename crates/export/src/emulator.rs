//! Paths as commands of network emulators: Linux's `tc qdisc … netem` and FreeBSD's dummynet.
//!
//! [`netem`], [`qdiscs()`] and [`dummynet`] write one direction of a path; [`import()`] reads such
//! commands and writes a scenario with their path.

mod direction;
mod import;
mod qdiscs;

use core::fmt::Write;

use net::link::QueueLimit;
use net::selection::SelectionRule;
use sim::MAX_PACKETS_IN_FLIGHT;
use sim::scenario::ElementSpec;

use direction::Direction;
pub use import::{ImportError, TokenPosition, import};
pub use qdiscs::qdiscs;

/// Bytes that tc counts per packet besides those of IP.
pub(crate) const ETHERNET_HEADER: u64 = 14;
/// Size of the packets in which netem's limit is counted, in IP bytes.
const PACKET: u64 = 1_500;

/// A path that the emulator cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl core::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Unsupported {}

/// Returns the command that gives packets sent on `device` the elements of one direction.
///
/// The limit of netem counts packets in the delay too: it is the buffer and what fits into the delay.
///
/// # Errors
/// An element that netem has not.
pub fn netem(elements: &[ElementSpec], device: &str) -> Result<String, Unsupported> {
    let of = Direction::of(elements, "netem")?;
    let mut out = format!("tc qdisc replace dev {device} root netem");
    if of.netem.is_some() && (of.link.is_some() || of.delay > 0 || of.jitter > 0) {
        let message = "one netem has one delay and one rate: --to tc writes several";
        return Err(Unsupported(message.to_owned()));
    }
    let delay = of.delay + of.jitter / 2;
    let (rate, buffer) = match of.link {
        None => (None, None),
        Some((rate, QueueLimit::Packets(packets))) => (Some(rate), Some(u64::from(packets))),
        Some((rate, QueueLimit::Bytes(bytes))) => (Some(rate), Some(bytes.get().div_ceil(PACKET))),
    };
    let in_delay = rate.map_or(0, |rate| packets_in(rate, delay));
    // Without a link no packet is lost in a queue: netem's default of 1000 would lose some.
    let unlimited = MAX_PACKETS_IN_FLIGHT as u64;
    let limit =
        buffer.map_or(unlimited, |buffer| buffer.saturating_add(in_delay)).min(1_000_000_000);
    let limit = of.netem.map_or(limit, |netem| u64::from(netem.limit));
    let _ = write!(out, " limit {limit}");
    if delay > 0 {
        let _ = write!(out, " delay {}us", delay as f64 / 1e3);
    }
    if of.jitter > 0 {
        let _ = write!(out, " {}us", (of.jitter / 2) as f64 / 1e3);
    }
    if let Some(rule) = of.loss {
        match rule {
            SelectionRule::Share(share) => {
                let _ = write!(out, " loss {}%", share.as_f64() * 100.0);
            }
            SelectionRule::GilbertElliott(ge) => {
                let percent = |share: units::Ratio| share.as_f64() * 100.0;
                let _ = write!(
                    out,
                    " loss gemodel {}% {}% {}% {}%",
                    percent(ge.p),
                    percent(ge.r),
                    100.0 - percent(ge.h),
                    100.0 - percent(ge.k),
                );
            }
            _ => return Err(Unsupported("netem has no loss of chosen packets".to_owned())),
        }
    }
    for (word, share) in [("duplicate", of.duplicate), ("corrupt", of.corrupt)] {
        if let Some(share) = share {
            let _ = write!(out, " {word} {}%", share * 100.0);
        }
    }
    // The rate is of IP packets.
    if let Some(rate) = rate {
        let _ = write!(out, " rate {rate}bit -{ETHERNET_HEADER}");
    }
    if let Some(options) = of.netem.map(qdiscs::netem).filter(|options| !options.is_empty()) {
        let _ = write!(out, " {options}");
    }
    Ok(out)
}

/// Packets of full size that a rate in bit/s sends within a delay in ns.
fn packets_in(rate: u64, delay: u64) -> u64 {
    let bits = u128::from(rate) * u128::from(delay) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX).div_ceil(PACKET)
}

/// Returns the commands that send packets leaving through `device` through a pipe of this number.
///
/// # Errors
/// An element that dummynet has not.
pub fn dummynet(elements: &[ElementSpec], device: &str, pipe: u32) -> Result<String, Unsupported> {
    let of = Direction::of(elements, "dummynet")?;
    let mut out = format!("ipfw pipe {pipe} config");
    if let Some((rate, limit)) = of.link {
        let _ = write!(out, " bw {rate}bit/s");
        let _ = match limit {
            QueueLimit::Packets(packets) => write!(out, " queue {packets}"),
            QueueLimit::Bytes(bytes) => write!(out, " queue {}Bytes", bytes.get()),
        };
    }
    if of.netem.is_some() {
        return Err(Unsupported("dummynet has no delay of netem".to_owned()));
    }
    if of.jitter > 0 || of.duplicate.is_some() || of.corrupt.is_some() {
        return Err(Unsupported("dummynet has no jitter, duplicates or corruption".to_owned()));
    }
    if of.delay > 0 {
        if of.delay % 1_000_000 != 0 {
            return Err(Unsupported(format!(
                "dummynet has delays of whole milliseconds, not {} us",
                of.delay as f64 / 1e3
            )));
        }
        let _ = write!(out, " delay {}ms", of.delay / 1_000_000);
    }
    match of.loss {
        None => {}
        Some(SelectionRule::Share(share)) => {
            let _ = write!(out, " plr {}", share.as_f64());
        }
        Some(_) => return Err(Unsupported("dummynet has only random loss".to_owned())),
    }
    let _ =
        write!(out, "\nipfw add {} pipe {pipe} ip from any to any out xmit {device}", 100 * pipe);
    Ok(out)
}
