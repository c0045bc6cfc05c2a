//! Other explanations of a recording: the same fit with one estimate exchanged. Which one is right is shown by
//! simulations.

use tcp::knobs;
use tcp::profile::TcpProfile;

use crate::{Basis, OpeningFit, PathFit, PeerSystem, WayBackFit, WritePattern};

/// Largest scale of windows (RFC 7323 section 2.3).
const MOST_SCALE: u32 = 14;
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

    /// The same losses as those of data, at as many transmissions, in place of packets of the same numbers; `None` if the
    /// data are not known.
    pub fn with_lost_data(&self) -> Option<Self> {
        let is_other = !self.loses_data && self.losses.has_data();
        is_other.then(|| Self { loses_data: true, ..self.clone() })
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

    /// The receive windows that may have limited the sender where their scale was not captured: those with which the
    /// field and what was in flight agree.
    pub fn unscaled_windows(&self) -> Vec<u64> {
        let Some(field) = self.window_field else { return Vec::new() };
        let near = 2 * self.mss;
        let scaled = (0..=MOST_SCALE).map(|scale| u64::from(field) << scale);
        scaled
            .filter(|&window| {
                // A sender sends the whole segments for which there is room.
                window + near >= self.flight && window < self.flight + self.mss
            })
            .collect()
    }

    /// A receiver that advertises at most this window.
    #[must_use]
    pub fn with_window(&self, window: u64) -> Self {
        // At a scale of 0 the field has its largest value only where windows are not scaled.
        let no_scaling = window == u64::from(u16::MAX);
        let opening = OpeningFit { no_scaling, ..self.opening };
        let mut other = Self { window: Some(window), opening, ..self.clone() };
        let why = format!(
            "{window} B at most: a power of two times the field of windows is what was in flight, and limits the recorded sender, if it is simulated"
        );
        other.replace("window", Basis { what: "window", why });
        other
    }

    /// A receiver whose buffer has the default size, and grows; `None` if its window is smaller than that, or none limited
    /// the sender.
    pub fn with_default_buffer(&self) -> Option<Self> {
        let is_chosen = self.window.is_none() || self.chosen_window().is_some();
        if is_chosen || self.opening.no_scaling || self.reads.is_some() {
            return None;
        }
        let mut other = Self { window: None, receive_buffer: None, ..self.clone() };
        other.bases.retain(|one| one.what != "window");
        Some(other)
    }

    /// An application that writes by a clock, as the ends of its writes show; `None` without them.
    pub fn with_clocked_writes(&self) -> Option<Self> {
        let writes = self.ends_of_writes?;
        let mut other = Self { writes, conversation: None, ..self.clone() };
        if let WritePattern::Paced(bytes, every) = writes {
            let why = format!("it writes {bytes} B every {} us, by short segments", every / 1_000);
            other.replace("application", Basis { what: "application", why });
        }
        other.bases.retain(|one| one.what != "messages");
        Some(other)
    }

    /// A receiver that reads at this rate, in bit/s.
    #[must_use]
    pub fn with_reads(&self, rate: u64) -> Self {
        Self { reads: Some(rate), ..self.clone() }
    }

    /// A link of this rate in bit/s on the way of the ACKs, in whose queue they wait for up to `wait` ns.
    #[must_use]
    pub fn with_way_back(&self, rate: u64, wait: u64) -> Self {
        let queue = units::ratio::scaled(rate, wait, 8_000_000_000);
        let back = WayBackFit { rate, buffer: queue + self.headers, wait };
        let mut other = Self { way_back: Some(back), ..self.clone() };
        let why = format!(
            "{rate} bit/s, a queue of {} B: what ACKs waited, and the time of the recorded sender, if it is simulated",
            back.buffer
        );
        other.replace("way back", Basis { what: "way back", why });
        other
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
