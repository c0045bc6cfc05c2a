//! Changes of a fitted QUIC transfer that no key of its scenario has.

use units::Duration;

use super::QuicFit;
use crate::{Conversation, WordError, WritePattern};

/// The value that leaves a part of the path out.
const NONE: &str = "none";

impl QuicFit {
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
            "path.forward.reorder" => {
                Self { late: None, ..left_out(self.late.is_some(), "no reordering was seen")? }
            }
            "path.return.link" => Self {
                way_back: None,
                ..left_out(self.way_back.is_some(), "no ACKs were seen to wait")?
            },
            "flow.reads.rate" if self.reads.is_none() => {
                return Err(WordError::Absent("no slow reader was seen"));
            }
            "receiver.window" => {
                let wrong = WordError::Value("a size: 16MiB");
                let window = scenario::units_text::size(value).map_err(|_| wrong)?;
                if !self.flow_limited {
                    return Err(WordError::Absent("the peer's limits held nothing back"));
                }
                let larger = |old: Option<u64>| Some(old.unwrap_or(0).max(window.0));
                Self { windows_of_peer: self.windows_of_peer.map(larger), ..self.clone() }
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

    /// The data as one transfer, without the messages of the hosts; `None` without such messages.
    pub fn without_conversation(&self) -> Option<Self> {
        self.conversation.as_ref()?;
        let mut other = Self { conversation: None, ..self.clone() };
        other.bases.retain(|one| one.what != "messages");
        Some(other)
    }

    fn messages(&self) -> Result<&Conversation, WordError> {
        self.conversation.as_ref().ok_or(WordError::Absent("the hosts were not seen to take turns"))
    }

    /// Without losses of packets, those of a policer, and outages. Those of a full queue stay.
    fn without_losses(&self) -> Result<Self, WordError> {
        let mut other = self.clone();
        other.losses.packets.clear();
        other.losses.outages.clear();
        other.policer = None;
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
            None if self.writes == WritePattern::Bulk || by_client != self.is_client => {
                return Err(WordError::Absent("no waits of this host were seen"));
            }
            None => None,
        };
        let writes = if most == Duration::ZERO { WritePattern::Bulk } else { self.writes };
        Ok(Self { conversation, writes, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::FitParts;
    use crate::{LossEstimate, Message, PolicerFit, WayBackFit};

    /// A server that answers two requests late, over a path with all that can be left out.
    fn fit() -> QuicFit {
        let message = |by_client, bytes, after| Message { by_client, bytes, after };
        let messages = [message(true, 200, 0), message(false, 50_000, 90_000_000)].repeat(2);
        QuicFit {
            bytes: 100_000,
            time: 1_000_000_000,
            unfinished: false,
            delivered: Vec::new(),
            windows: Vec::new(),
            datagram: 1_200,
            tcp: None,
            rtt: 20_000_000,
            rate: Some(10_000_000),
            buffer: None,
            losses: LossEstimate { packets: vec![(7, 1_000)], sent: 90, ..LossEstimate::default() },
            overflows: 0,
            late: None,
            per_ack: 2,
            max_ack_delay: None,
            windows_of_peer: [None; 2],
            receiver: "quic-rfc9002",
            flow_limited: false,
            reads: None,
            flight: 50_000,
            writes: WritePattern::Bulk,
            conversation: Some(Conversation {
                messages,
                held: 0,
                window: None,
                longest_wait: None,
            }),
            is_client: false,
            policer: Some(PolicerFit { rate: 1_000_000, burst: 9_000 }),
            way_back: Some(WayBackFit { rate: 40_000, buffer: 6_000, wait: 0 }),
            rate_at_least: 800_000,
            parts: FitParts { short_queue: false, spaced_rate: false },
            bases: Vec::new(),
        }
    }

    fn text(fit: &QuicFit) -> String {
        fit.scenario("quic-rfc9002", None, crate::LossPattern::Same, 1)
    }

    #[test]
    fn changes_leave_out_their_part_of_the_scenario() {
        let recorded = text(&fit());
        for (key, value, part) in [
            ("application.server_waits", "0s", "after = \"90ms\""),
            ("path.forward.loss", "0%", "policer"),
            ("path.forward.loss", "0%", "packets = [7]"),
            ("path.return.link", "none", "40kbit/s"),
        ] {
            assert!(recorded.contains(part), "{recorded}");
            let changed = text(&fit().with_word(key, value).unwrap().unwrap());
            assert!(!changed.contains(part), "{changed}");
        }
        // The server connects to no host.
        assert!(recorded.contains("from = \"receiver\""), "{recorded}");
        let batched = fit().with_word("application.batch", "true").unwrap().unwrap();
        assert_eq!(batched.conversation.map(|found| found.messages.len()), Some(2));
        assert_eq!(fit().with_word("path.forward.link.buffer", "9kB"), Ok(None));
    }

    #[test]
    fn what_was_not_fitted_cannot_be_changed() {
        for key in ["path.forward.reorder", "flow.reads.rate", "application.window"] {
            let value = if key.ends_with("reorder") { "none" } else { "1Gbit/s" };
            let value = if key.ends_with("window") { "9kB" } else { value };
            assert!(matches!(fit().with_word(key, value), Err(WordError::Absent(_))), "{key}");
        }
        let wrong = fit().with_word("application.batch", "yes");
        assert_eq!(wrong, Err(WordError::Value("true, or same-waits")));
    }
}
