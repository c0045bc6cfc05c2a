//! One direction of a path as an emulator sees it.

use net::link::QueueLimit;
use net::selection::SelectionRule;
use sim::scenario::{ElementSpec, LinkCapacity, NetemParams, PacketClass, QdiscConfig};

use super::Unsupported;

/// The elements of a direction; at most one link, loss, duplication and corruption.
#[derive(Debug, Default)]
pub(super) struct Direction<'a> {
    /// Rate in bit/s, and the buffer.
    pub(super) link: Option<(u64, QueueLimit)>,
    /// netem's own element.
    pub(super) netem: Option<&'a NetemParams>,
    /// Sum of the delays, in ns.
    pub(super) delay: u64,
    /// Longest random delay, uniform from 0, in ns.
    pub(super) jitter: u64,
    /// Lost packets.
    pub(super) loss: Option<&'a SelectionRule>,
    /// Share of packets that are duplicated.
    pub(super) duplicate: Option<f64>,
    /// Share of packets that are corrupted.
    pub(super) corrupt: Option<f64>,
}

impl<'a> Direction<'a> {
    pub(super) fn of(elements: &'a [ElementSpec], emulator: &str) -> Result<Self, Unsupported> {
        let mut of = Self::default();
        let no = |what: &str| Err(Unsupported(format!("{emulator} has no {what}")));
        for element in elements {
            let is_second = match element {
                ElementSpec::Link { rate, limit } => {
                    of.link.replace((rate.bits_per_second(), *limit)).is_some()
                }
                ElementSpec::LinkWithQdisc {
                    capacity: LinkCapacity::Rate(rate),
                    limit,
                    limits: None,
                    queue: QdiscConfig::DropTail,
                } => of.link.replace((rate.bits_per_second(), *limit)).is_some(),
                ElementSpec::Delay(delay) => {
                    of.delay += delay.as_nanos();
                    false
                }
                ElementSpec::Jitter { most } => {
                    let is_second = of.jitter > 0;
                    of.jitter = most.as_nanos();
                    is_second
                }
                ElementSpec::Loss { rule, only } => {
                    all(*only, "loss", emulator)?;
                    of.loss.replace(rule).is_some()
                }
                ElementSpec::Duplicate { rule: SelectionRule::Share(share), only } => {
                    all(*only, "duplication", emulator)?;
                    of.duplicate.replace(share.as_f64()).is_some()
                }
                ElementSpec::Corrupt { rule: SelectionRule::Share(share), only } => {
                    all(*only, "corruption", emulator)?;
                    of.corrupt.replace(share.as_f64()).is_some()
                }
                ElementSpec::LinkWithQdisc { .. } => {
                    return no("queue discipline or changing link of this kind");
                }
                ElementSpec::ChangingDelay(_) => return no("delay that changes during the run"),
                ElementSpec::WifiJitter(_) => return no("random delay of a Wi-Fi channel"),
                ElementSpec::Slot(_) => return no("slots in this export"),
                ElementSpec::Netem(params) => of.netem.replace(params).is_some(),
                ElementSpec::Duplicate { .. } => return no("duplication of chosen packets"),
                ElementSpec::Corrupt { .. } => return no("corruption of chosen packets"),
                ElementSpec::Reverse(_)
                | ElementSpec::Displace { .. }
                | ElementSpec::Late { .. } => {
                    return no("reordering of this kind");
                }
                ElementSpec::Thin { .. } => return no("ACK filter"),
                ElementSpec::Outage { .. } => return no("outages"),
                ElementSpec::Policer { .. } => return no("policer"),
                ElementSpec::Mtu { .. } => return no("link with a smaller MTU"),
                ElementSpec::Strip(_) => return no("box that removes options"),
                ElementSpec::Forget { .. } => return no("box that forgets connections"),
                ElementSpec::Reset(_) => return no("box that resets connections"),
                ElementSpec::Shaper { .. } => return no("shaper with a token bucket"),
                ElementSpec::Shared(_) => return no("elements that several paths share"),
            };
            if is_second {
                return Err(Unsupported(format!("{emulator} has one element of each kind")));
            }
        }
        Ok(of)
    }
}

fn all(only: PacketClass, what: &str, emulator: &str) -> Result<(), Unsupported> {
    match only {
        PacketClass::All => Ok(()),
        _ => Err(Unsupported(format!("{emulator} has no {what} of one class of packets"))),
    }
}
