//! Who is there and awake.
//!
//! An end is made when something first happens to it. Of those that are there the ones at rest are
//! packed when room is wanted: whenever another is made or wakes and many are awake, two are looked at, in
//! turn. So nothing is done for a packet, and what happens does not depend on who sleeps.
//!
//! To be packed and woken takes an end as long as a dozen segments. One that speaks now and then is to stay
//! awake: with every nap it has to be silent four times as long before it takes the next.

use std::collections::VecDeque;

use tcp::Side;
use units::Duration;

use super::setup::transport;
use super::{CLIENT, World};
use crate::observer::Observer;
use crate::transport::{Counted, Transport};

/// So many are looked at for each that is made or wakes: with one alone, their number would grow for
/// each that is looked at in vain.
const LOOKS: usize = 2;

/// With so few awake nobody is packed: they take 1.5 MB, which a second cache holds.
const FEW: usize = 1_024;

/// So long an end has been silent before its first nap, and nothing will call it.
const SILENCE: Duration = Duration::from_secs(1);

/// Beyond so many naps the silence grows no more: it is 34 years.
const MOST_NAPS: u8 = 15;

/// Numbers of the ends of TCP that are awake, the one that is looked at next first.
pub(super) type Awake = VecDeque<u32>;

impl<O: Observer> World<'_, O> {
    /// Makes or wakes an end that is to be asked something.
    #[cold]
    #[inline(never)]
    pub(crate) fn rouse(&mut self, index: usize) {
        let stack = match &self.ends[index].stack {
            Transport::NotYet => self.made(index),
            Transport::Asleep(packed) => Transport::Tcp(Box::new(packed.wake())),
            Transport::Tcp(_) | Transport::Quic(_) | Transport::Outside => return,
        };
        let tcp = matches!(stack, Transport::Tcp(_));
        self.ends[index].stack = stack;
        if self.awake.len() >= FEW {
            (0..LOOKS).for_each(|_| self.look_at_next());
        }
        if tcp {
            self.awake.push_back(index as u32);
        }
    }

    /// Packs the end whose turn it is, if it is at rest.
    fn look_at_next(&mut self) {
        let Some(index) = self.awake.pop_front() else { return };
        let now = self.network.now;
        let end = &mut self.ends[index as usize];
        let silence = SILENCE.saturating_mul(1 << (2 * end.naps.min(MOST_NAPS)));
        let called = [end.armed, end.app_at].into_iter().flatten().min();
        if let Transport::Tcp(tcp) = &end.stack
            && called.is_none_or(|at| at >= now + silence)
            && tcp.is_at_rest(now, silence)
            && let Some(packed) = tcp.pack()
        {
            end.stack = Transport::Asleep(Box::new(packed));
            end.naps = end.naps.saturating_add(1);
        } else {
            self.awake.push_back(index);
        }
    }

    /// Packs all that can be, at rest or not.
    pub(super) fn pack_all(&mut self) {
        let ends = &mut self.ends;
        self.awake.retain(|&index| {
            let stack = &mut ends[index as usize].stack;
            let Transport::Tcp(tcp) = stack else { return true };
            let Some(packed) = tcp.pack() else { return true };
            *stack = Transport::Asleep(Box::new(packed));
            false
        });
    }

    /// An end as it is before anything happens to it.
    fn made(&self, index: usize) -> Transport {
        let side = if index % 2 == CLIENT { Side::Client } else { Side::Server };
        let host = usize::from(self.ends[index].host);
        transport(self.scenario, index / 2, side, self.profiles[host].as_ref())
    }

    /// Controllers from outside are made in the order of the scenario, before anything happens: they may
    /// know of each other.
    pub(super) fn make_those_with_guests(&mut self) {
        for index in 0..self.ends.len() {
            let host = &self.scenario.hosts[usize::from(self.ends[index].host)];
            if host.stack.has_external_cc() {
                self.rouse(index);
            }
        }
    }

    /// What an end has counted.
    pub(super) fn counted(&self, index: usize) -> Counted {
        match &self.ends[index].stack {
            Transport::NotYet => self.made(index).counted(),
            stack => stack.counted(),
        }
    }
}
