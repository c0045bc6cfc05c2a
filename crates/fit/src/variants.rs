//! Other explanations of a recording: the same fit with one estimate exchanged. Which one is right is shown by
//! simulations.

use tcp::knobs;
use tcp::profile::TcpProfile;

use crate::{Basis, PathFit, PeerSystem};

/// Noise of round trips in ns.
const NOISE: f64 = 2e6;

impl PathFit {
    /// Whether a queue of `buffer` bytes delays packets as much as those before losses were: a full queue is as long as
    /// it takes to drain.
    pub fn may_be_full(&self, buffer: u64) -> bool {
        // Over a path whose rate is not known, any queue drains soon enough.
        if !self.is_rate_seen {
            return false;
        }
        let drained = self.rate.map_or(0.0, |rate| buffer as f64 * 8e9 / rate as f64);
        drained <= 2.0 * self.queueing as f64 + NOISE
    }

    /// The losses as those of a full queue of `buffer` bytes.
    #[must_use]
    pub fn with_full_queue(&self, buffer: u64) -> Self {
        let mut other = self.clone();
        other.overflowed = core::mem::take(&mut other.losses.packets);
        other.overflows = other.overflowed.len() as u64;
        other.buffer = Some(buffer);
        let why = format!(
            "{} losses, as a queue of {buffer} B has them if the recorded sender is simulated",
            other.overflows
        );
        other.replace("loss", Basis { what: "buffer", why });
        other
    }

    /// The losses of a full queue as losses elsewhere; `None` without any.
    pub fn with_losses_elsewhere(&self) -> Option<Self> {
        if self.overflowed.is_empty() {
            return None;
        }
        let mut other = self.clone();
        other.losses.packets = core::mem::take(&mut other.overflowed);
        (other.overflows, other.buffer, other.policer) = (0, None, None);
        other.bases.retain(|one| one.what != "policer");
        let (lost, sent) = (other.losses.packets.len(), other.losses.sent);
        let why = format!(
            "{lost} of {sent} data packets: no queue has these losses if the recorded sender is simulated"
        );
        other.replace("buffer", Basis { what: "loss", why });
        Some(other)
    }

    /// The data as one transfer, without the messages of the hosts; `None` without such messages.
    pub fn without_conversation(&self) -> Option<Self> {
        self.conversation.as_ref()?;
        let mut other = Self { conversation: None, ..self.clone() };
        other.bases.retain(|one| one.what != "messages");
        Some(other)
    }

    /// A sender whose send buffer has this size, in the unit of its knob. Then a throughput that stays the same is
    /// that of the buffer, and shows no bottleneck.
    #[must_use]
    pub fn with_send_buffer(&self, size: u64) -> Self {
        let mut other = Self {
            send_buffer: Some(size),
            is_rate_seen: self.is_rate_seen && self.is_rate_spaced,
            ..self.clone()
        };
        let why = format!("{size} B: with more the recorded sender, simulated, is faster");
        other.bases.push(Basis { what: "sender's buffer", why });
        other
    }

    /// A receiver whose buffer has this size, in the unit of its knob.
    #[must_use]
    pub fn with_receive_buffer(&self, size: u64) -> Self {
        Self { receive_buffer: Some(size), ..self.clone() }
    }

    /// A bottleneck whose AQM marks packets that waited for `target` ns through an `interval`.
    #[must_use]
    pub fn with_marks(&self, target: u64, interval: u64) -> Self {
        let mut other = Self { marks: Some((target, interval)), ..self.clone() };
        let why = format!(
            "CoDel with a target of {} us and an interval of {} us marks as many, if the recorded sender is simulated",
            target / 1_000,
            interval / 1_000
        );
        other.replace("marks", Basis { what: "marks", why });
        other
    }

    /// The fit for changes of knobs: a host of an unknown system has the one that the knobs are of.
    #[must_use]
    pub fn for_knobs(&self, changes: &[String]) -> Self {
        let mut other = self.clone();
        for (host, system) in
            [("sender.knobs.", &mut other.sender), ("receiver.knobs.", &mut other.receiver)]
        {
            if *system == PeerSystem::Unknown {
                let names =
                    changes.iter().filter_map(|one| one.strip_prefix(host)?.split('=').next());
                *system = names.filter_map(system_of).next().unwrap_or(*system);
            }
        }
        other
    }

    fn replace(&mut self, what: &str, basis: Basis) {
        self.bases.retain(|one| one.what != what);
        self.bases.push(basis);
    }
}

/// The system that has a knob of this name.
fn system_of(knob: &str) -> Option<PeerSystem> {
    let name = knob.trim_matches('"');
    let has = |profile| {
        TcpProfile::named(profile).is_some_and(|profile| knobs::find(&profile, name).is_some())
    };
    match (has("linux-6.18"), has("freebsd-14.3")) {
        (true, false) => Some(PeerSystem::Linux),
        (false, true) => Some(PeerSystem::FreeBsd),
        _ => None,
    }
}
