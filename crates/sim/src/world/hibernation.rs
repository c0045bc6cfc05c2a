//! Creation and hibernation of endpoints.
//!
//! An endpoint is created on its first event. Idle endpoints are hibernated to save memory:
//! whenever another is created or woken and many are awake, two of them are examined, round robin.
//! So there is no cost per packet, and the results do not depend on hibernation.
//!
//! Hibernating and waking an endpoint costs as much as a dozen segments. An endpoint with
//! occasional traffic should stay awake: each hibernation quadruples the idle time required before
//! the next.

use std::collections::VecDeque;

use tcp::TcpSide;
use units::Duration;

use super::setup::transport;
use super::{CLIENT, SERVER, Simulation, end_of};
use crate::app::Application;
use crate::observer::Observer;
use crate::transport::{EndpointTotals, TransportEndpoint};

/// Endpoints examined for each one created or woken: with one alone, the number awake would grow
/// with each examination in vain.
const CHECKS_PER_WAKE: usize = 2;

/// Number of awake endpoints below which none is hibernated: they take 1.5 MB, which fits a
/// second-level cache.
const FEW: usize = 1_024;

/// Idle time before the first hibernation, with no event scheduled within the same time.
const SILENCE: Duration = Duration::from_secs(1);

/// Number of hibernations after which the idle time, 34 years, grows no more.
const MAX_HIBERNATIONS: u8 = 15;

/// Indices of the awake TCP endpoints, the one examined next first.
pub(super) type AwakeQueue = VecDeque<u32>;

impl<O: Observer> Simulation<'_, O> {
    /// Creates or wakes an endpoint before its use.
    #[cold]
    pub(crate) fn wake_endpoint(&mut self, index: usize) {
        let stack = match &self.ends[index].stack {
            TransportEndpoint::Uncreated => self.made(index),
            TransportEndpoint::Hibernated(packed) => {
                TransportEndpoint::Tcp(Box::new(packed.wake()))
            }
            TransportEndpoint::Tcp(_)
            | TransportEndpoint::Quic(_)
            | TransportEndpoint::Real(_)
            | TransportEndpoint::Udp(_)
            | TransportEndpoint::Retired(_)
            | TransportEndpoint::Outside => return,
        };
        let tcp = matches!(stack, TransportEndpoint::Tcp(_));
        self.ends[index].stack = stack;
        if self.awake_queue.len() >= FEW {
            (0..CHECKS_PER_WAKE).for_each(|_| self.hibernate_next_if_idle());
        }
        if tcp {
            self.awake_queue.push_back(index as u32);
        }
    }

    /// Hibernates the next endpoint in turn, if it is idle.
    fn hibernate_next_if_idle(&mut self) {
        let Some(index) = self.awake_queue.pop_front() else { return };
        let now = self.network.now;
        let end = &mut self.ends[index as usize];
        let silence = SILENCE.saturating_mul(1 << (2 * end.hibernations.min(MAX_HIBERNATIONS)));
        let called = [end.armed, end.app_at].into_iter().flatten().min();
        if let TransportEndpoint::Tcp(tcp) = &end.stack
            && called.is_none_or(|at| at >= now + silence)
            && tcp.is_idle(now, silence)
            && let Some(packed) = tcp.pack()
        {
            end.stack = TransportEndpoint::Hibernated(Box::new(packed));
            end.hibernations = end.hibernations.saturating_add(1);
        } else if !matches!(end.stack, TransportEndpoint::Retired(_)) {
            self.awake_queue.push_back(index);
        }
    }

    /// Hibernates all endpoints that allow it, idle or not.
    pub(super) fn hibernate_all(&mut self) {
        let ends = &mut self.ends;
        self.awake_queue.retain(|&index| {
            let stack = &mut ends[index as usize].stack;
            if matches!(stack, TransportEndpoint::Retired(_)) {
                return false;
            }
            let TransportEndpoint::Tcp(tcp) = stack else { return true };
            let Some(packed) = tcp.pack() else { return true };
            *stack = TransportEndpoint::Hibernated(Box::new(packed));
            false
        });
    }

    /// Frees the endpoints of a connection that is over on both sides, if it is one of a group: a run
    /// of a million connections needs memory for those in progress only.
    pub(super) fn retire(&mut self, flow: usize) {
        let groups = &self.scenario.groups;
        let after = groups.partition_point(|group| group.flows.end <= flow);
        if !groups.get(after).is_some_and(|group| group.flows.contains(&flow)) {
            return;
        }
        for index in [end_of(flow, CLIENT), end_of(flow, SERVER)] {
            let totals = self.counted(index);
            let end = &mut self.ends[index];
            end.stack = TransportEndpoint::Retired(Box::new(totals));
            if !end.app.has_results() {
                end.app = Application::Sink;
            }
        }
    }

    /// Creates an endpoint in its initial state.
    fn made(&self, index: usize) -> TransportEndpoint {
        let side = if index % 2 == CLIENT { TcpSide::Client } else { TcpSide::Server };
        let host = usize::from(self.ends[index].host);
        transport(self.scenario, index / 2, side, self.profiles[host].as_ref())
    }

    /// Creates endpoints with external controllers in the order of the scenario, before the first
    /// event: the controllers may share state.
    pub(super) fn create_external_controllers(&mut self) {
        for index in 0..self.ends.len() {
            let host = &self.scenario.hosts[usize::from(self.ends[index].host)];
            if host.stack.has_external_cc() {
                self.wake_endpoint(index);
            }
        }
    }

    /// Returns the counters of an endpoint.
    pub(super) fn counted(&self, index: usize) -> EndpointTotals {
        match &self.ends[index].stack {
            TransportEndpoint::Uncreated => self.made(index).counted(),
            stack => stack.counted(),
        }
    }
}
