//! What the model of a guest must know of the guest's machine: the memory of its packets, its card, and when its
//! application is awake.
//!
//! Source: receive_small of virtio_net.c: a buffer of 1,596 bytes and skb_shared_info in whole cache lines, and the
//! sk_buff; the card completes a transmission when all that happens at the instant is done.

use sim::Scenario;
use sim::scenario::{HostSpec, ReceiveOffloadSpec};
use tcp::profile::{BurstRule, ReceiveBufferRule};
use units::{Bytes, Duration};

use crate::compare::PacketRecord;

/// Memory of a packet that the guest's card received.
pub const TRUESIZE: Bytes = Bytes(2_176);
/// How late the application of a guest may be.
const LATEST_START: Duration = Duration::from_micros(1);

/// Gives the model of a guest its card: what `driver.truesize` and `driver.holds_packets` say. Returns whether that
/// changed anything. A `truesize` of the scenario stays, and one with LRO in the card has none of its own.
pub fn apply(host: &mut HostSpec) -> bool {
    let merges = matches!(host.offload.receive, ReceiveOffloadSpec::Lro(_));
    let sim::scenario::StackSpec::Tcp(stack) = &mut host.stack else { return false };
    let mut changed = false;
    if let ReceiveBufferRule::Linux { truesize, .. } = &mut stack.profile.receive_buffer
        && *truesize == Bytes::ZERO
        && !merges
    {
        *truesize = TRUESIZE;
        changed = true;
    }
    if let BurstRule::Linux(bursts) = &mut stack.profile.burst
        && !bursts.device_holds
    {
        bursts.device_holds = true;
        changed = true;
    }
    changed
}

/// Lets each flow of the models begin when it did with `real` guests, whose applications are woken some hundred
/// nanoseconds late: else every clock that counts milliseconds is read at another place of its step.
pub fn start_as(real: &PacketRecord, scenario: &mut Scenario) {
    for (number, flow) in scenario.flows.iter_mut().enumerate() {
        let planned = flow.start.as_nanos();
        let first = real.packets(number, true).first().map(|first| first.at_ns);
        let late = first.and_then(|first| first.checked_sub(planned));
        if let Some(late) = late.filter(|&late| late < LATEST_START.as_nanos()) {
            flow.start += Duration::from_nanos(late);
        }
    }
}

#[cfg(test)]
mod tests {
    use sim::scenario::{Offload, StackSpec, TcpStack};
    use tcp::profile::TcpProfile;

    use super::*;

    fn host(profile: &str) -> HostSpec {
        let profile = TcpProfile::named(profile).unwrap();
        let cc = profile.controller();
        HostSpec {
            name: "a".into(),
            stack: StackSpec::Tcp(TcpStack::new(profile, cc)),
            offload: Offload::default(),
            delay: Duration::ZERO,
        }
    }

    #[test]
    fn a_model_gets_the_card_of_its_guest_once_and_keeps_a_truesize_of_its_own() {
        let mut linux = host("linux-6.12");
        assert!(apply(&mut linux));
        assert!(!apply(&mut linux));
        let StackSpec::Tcp(stack) = &mut linux.stack else { unreachable!() };
        let ReceiveBufferRule::Linux { truesize, .. } = &mut stack.profile.receive_buffer else {
            unreachable!()
        };
        assert_eq!(*truesize, TRUESIZE);
        *truesize = Bytes(4_096);
        assert!(!apply(&mut linux));
        assert!(!apply(&mut host("freebsd-14.3")), "no guest has this system");
    }
}
