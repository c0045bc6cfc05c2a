//! Changes of a fitted transfer that no key of its scenario has.

use packet::Dir;
use units::Duration;

use crate::{Conversation, PathFit, WritePattern};

/// Why a change is not possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordError {
    /// The value is not one of these.
    Value(&'static str),
    /// The fit has nothing that could be changed so.
    Absent(&'static str),
}

/// A receive window that is smaller is not that of a default buffer: 131,072 bytes on Linux, half of which is window
/// (`tcp_rmem`, `tcp_adv_win_scale`), 65,536 bytes on FreeBSD (`net.inet.tcp.recvspace`).
const LEAST_DEFAULT_WINDOW: u64 = 60_000;

/// The value that leaves a part of the path out.
const NONE: &str = "none";

impl PathFit {
    /// The fit with the change `key=value` if that is one of a part that scenarios have no key for: `None` if it is a
    /// key of scenarios.
    ///
    /// # Errors
    /// A value that the change does not have, or a part that was not fitted.
    pub fn with_word(&self, key: &str, value: &str) -> Result<Option<Self>, WordError> {
        let left_out = |part: bool, absent: &'static str| match (value == NONE, part) {
            (false, _) => Err(WordError::Value("none")),
            (true, false) => Err(WordError::Absent(absent)),
            (true, true) => Ok(self.clone()),
        };
        let changed = match key {
            "path.forward.loss" if matches!(value, NONE | "0%") => self.without_losses()?,
            "path.forward.loss" => self.with_loss_rate(value)?,
            "path.forward.outage" if value != NONE => {
                let wrong = WordError::Value("a duration: 200ms, or none");
                let most = scenario::units_text::duration(value).map_err(|_| wrong)?.as_nanos();
                if self.losses.outages.is_empty() {
                    return Err(WordError::Absent("no outage was seen"));
                }
                let mut other = self.clone();
                for (from, until) in &mut other.losses.outages {
                    *until = (*until).min(from.saturating_add(most.max(1)));
                }
                other
            }
            "path.forward.outage" => {
                let mut other = self.clone();
                other.losses.outages.clear();
                other.held = None;
                other.clear_losses_beside(false, true);
                if other == *self {
                    return Err(WordError::Absent("no outage was seen"));
                }
                other
            }
            "path.return.loss" if matches!(value, NONE | "0%") => {
                if self.requests_lost.is_empty() {
                    return Err(WordError::Absent("no data of the other direction were lost"));
                }
                Self { requests_lost: Vec::new(), ..self.clone() }
            }
            "path.forward.losses" if value == NONE => {
                let mut other = Self { policer: None, ..self.clone() };
                other.losses.packets.clear();
                other.clear_losses_beside(true, false);
                if other == *self {
                    return Err(WordError::Absent(
                        "the fitted path has no losses but those of a full queue",
                    ));
                }
                other
            }
            "path.forward.marks" if value != NONE => {
                let wrong = WordError::Value("the target of a queue that marks: 5ms, or none");
                let target = scenario::units_text::duration(value).map_err(|_| wrong)?;
                let Some((_, interval)) = self.marks else {
                    return Err(WordError::Absent("no marks were fitted"));
                };
                Self { marks: Some((target.as_nanos(), interval)), ..self.clone() }
            }
            "path.forward.policer.rate" | "path.forward.policer.burst"
                if self.policer.is_none() =>
            {
                return Err(WordError::Absent(
                    "the fitted path has no policer: it loses the same packets",
                ));
            }
            "path.forward.marks" => {
                Self { marks: None, ..left_out(self.marks.is_some(), "no marks were fitted")? }
            }
            "path.opening.loss" if matches!(value, NONE | "0%") => {
                if self.opening.lost == 0 {
                    return Err(WordError::Absent("no SYN was lost"));
                }
                let mut other = self.clone();
                other.opening.lost = 0;
                other
            }
            "path.forward.reorder" if value == NONE => {
                Self { late: None, ..left_out(self.late.is_some(), "no reordering was seen")? }
            }
            "path.strip" => {
                let opening = self.opening;
                let is_stripped = opening.no_scaling || opening.no_sack;
                let mut other = left_out(is_stripped, "the SYNs agree on window scaling and SACK")?;
                (other.opening.no_scaling, other.opening.no_sack) = (false, false);
                // A window that the field limited is that of the buffer then, and one of the default size holds it: the
                // size that was fitted is that of the field.
                if opening.no_scaling {
                    (other.window, other.receive_buffer) = (None, None);
                }
                other
            }
            "path.return.link.rate" => {
                let wrong = WordError::Value("a rate: 10Mbit/s");
                let rate = scenario::units_text::rate(value).map_err(|_| wrong)?;
                let Some(link) = self.way_back else {
                    return Err(WordError::Absent("no ACKs were seen to wait"));
                };
                self.with_way_back(rate.bits_per_second(), link.wait)
            }
            "path.return.link" if value == NONE => Self {
                way_back: None,
                // What waits on the way of the ACKs fills every window.
                window: self.chosen_window(),
                receive_buffer: self.receive_buffer.filter(|_| self.chosen_window().is_some()),
                // What the spacing of ACKs shows is that of their way.
                is_rate_seen: self.is_rate_seen && self.is_rate_of_receiver,
                ..left_out(self.way_back.is_some(), "no ACKs were seen to wait")?
            },
            "path.return.thin" => Self {
                per_ack: None,
                ..left_out(self.per_ack.is_some(), "no merged ACKs were seen")?
            },
            "flow.reads.rate" if self.reads.is_none() => {
                return Err(WordError::Absent("no slow reader was seen"));
            }
            "flow.reads.rate" => {
                let wrong = WordError::Value("a rate: 100Gbit/s");
                let rate = scenario::units_text::rate(value).map_err(|_| wrong)?;
                let (bits, window) = (rate.bits_per_second(), self.chosen_window());
                let receive_buffer = self.receive_buffer.filter(|_| window.is_some());
                Self { reads: Some(bits), window, receive_buffer, ..self.clone() }
            }
            "application.client_waits" => self.with_waits(true, value)?,
            "application.server_waits" => self.with_waits(false, value)?,
            "application.batch" => match value {
                "true" => Self { conversation: Some(self.messages()?.batched()), ..self.clone() },
                "same-waits" => {
                    let conversation = Some(self.messages()?.batched_with_waits());
                    Self { conversation, ..self.clone() }
                }
                _ => return Err(WordError::Value("true, or same-waits")),
            },
            "application.window" => {
                let wrong = WordError::Value("a size: 128KiB");
                let window = scenario::units_text::size(value).map_err(|_| wrong)?;
                let conversation = self.messages()?;
                if conversation.window.is_none() {
                    return Err(WordError::Absent("no window of the application was seen"));
                }
                let conversation = Conversation { window: Some(window.0), ..conversation.clone() };
                Self { conversation: Some(conversation), ..self.clone() }
            }
            _ => return Ok(None),
        };
        Ok(Some(changed))
    }

    /// The receive window if its size was chosen: a buffer of the default size grows with what the application reads.
    pub fn chosen_window(&self) -> Option<u64> {
        self.window.filter(|&window| window < LEAST_DEFAULT_WINDOW)
    }

    /// The losses of packets thinned out, or repeated, evenly to a rate.
    fn with_loss_rate(&self, rate: &str) -> Result<Self, WordError> {
        let wrong = WordError::Value("a part of the packets: 0.5%, or none");
        let part = scenario::units_text::share(rate).map_err(|_| wrong)?;
        let losses = &self.losses;
        if losses.packets.is_empty() {
            return Err(WordError::Absent(
                "the fitted path has no losses but those of a full queue",
            ));
        }
        let (all, wanted) = (losses.packets.len() as u64, part.of(losses.sent));
        let mut other = self.clone();
        other.losses.packets = match wanted <= all {
            true => (0..wanted).map(|n| losses.packets[(n * all / wanted) as usize]).collect(),
            false => (0..wanted).map(|n| (n * losses.sent / wanted + 1, 0)).collect(),
        };
        other.loses_data = false;
        Ok(other)
    }

    fn messages(&self) -> Result<&Conversation, WordError> {
        self.conversation.as_ref().ok_or(WordError::Absent("the hosts were not seen to take turns"))
    }

    /// Whether packets are lost but by a full queue.
    pub fn has_losses(&self) -> bool {
        let losses = &self.losses;
        let is_lossy = !losses.packets.is_empty() || !losses.outages.is_empty();
        is_lossy || self.policer.is_some() || self.held.is_some()
    }

    /// Whether packets are lost apart from outages and full queues.
    pub fn has_losses_of_packets(&self) -> bool {
        !self.losses.packets.is_empty() || self.policer.is_some()
    }

    /// Without losses of packets: of SYNs and of a policer, too, and outages. Those of a full queue stay.
    fn without_losses(&self) -> Result<Self, WordError> {
        let mut other = self.clone();
        other.losses.packets.clear();
        other.losses.outages.clear();
        (other.policer, other.held, other.opening.lost) = (None, None, 0);
        other.clear_losses_beside(true, true);
        match other == *self {
            true => {
                Err(WordError::Absent("the fitted path has no losses but those of a full queue"))
            }
            false => Ok(other),
        }
    }

    /// With waits of one host of at most this time.
    fn with_waits(&self, by_client: bool, most: &str) -> Result<Self, WordError> {
        let wrong = WordError::Value("a duration: 0s");
        let most = scenario::units_text::duration(most).map_err(|_| wrong)?;
        let conversation = match &self.conversation {
            Some(found) => Some(found.with_waits(by_client, most.as_nanos())),
            // Without messages, only the waits of the host that sends the data were fitted.
            None if self.writes == WritePattern::Bulk
                || by_client != (self.dir == Dir::Forward) =>
            {
                return Err(WordError::Absent("no waits of this host were seen"));
            }
            None => None,
        };
        let writes = if most == Duration::ZERO { WritePattern::Bulk } else { self.writes };
        Ok(Self { conversation, writes, ..self.clone() })
    }
}
