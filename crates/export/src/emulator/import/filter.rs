//! `tc filter`: which class packets have, policers, and redirections to other devices.

use super::element::PathElement;
use super::quantity::{tc_rate, tc_size};
use super::tc::ClassHandle;
use super::tokens::{Given, ImportError, ScriptToken, TokenReader, set_once};

/// Words that end the conditions of a filter.
const TARGETS: &[&str] = &["flowid", "classid", "action", "police"];

/// A filter.
#[derive(Debug)]
pub(super) struct TcFilter<'t> {
    pub(super) kind: ScriptToken<'t>,
    /// Whether it sees the packets that the device receives.
    pub(super) is_ingress: bool,
    /// Whether it selects all packets.
    pub(super) selects_all: bool,
    pub(super) class: Option<ClassHandle>,
    /// Device that gets the packets.
    pub(super) redirect: Option<ScriptToken<'t>>,
    pub(super) police: Option<TcPolicer<'t>>,
}

/// A policer.
#[derive(Debug)]
pub(super) struct TcPolicer<'t> {
    pub(super) rate: Given<'t, u64>,
    burst: u64,
    /// Whether the filter selects some packets only.
    is_partial: bool,
}

impl<'t> TcFilter<'t> {
    /// Reads a filter after its kind.
    pub(super) fn parse(
        kind: ScriptToken<'t>,
        is_ingress: bool,
        reader: &mut TokenReader<'t>,
    ) -> Result<Self, ImportError> {
        if !matches!(kind.text, "u32" | "matchall" | "flower" | "fw" | "basic" | "route") {
            let message = format!("tc filter: `{}` is not supported", kind.text);
            return Err(kind.error(message));
        }
        // Conditions: which of the packets are those of the transfer is not known.
        let mut conditions = Vec::new();
        while let Some(word) = reader.next_if(|word| !TARGETS.contains(&word)) {
            conditions.push(word.text);
        }
        let everything = selects_all(&conditions);
        let (class, redirect, police) = (None, None, None);
        let selects_all = everything;
        let mut filter = Self { kind, is_ingress, selects_all, class, redirect, police };
        while let Some(word) = reader.next() {
            match word.text {
                "flowid" | "classid" => {
                    let class = reader.value("a class such as 1:10")?;
                    filter.class = Some(ClassHandle::read(class)?);
                }
                "police" => filter.police = Some(TcPolicer::parse(word, !everything, reader)?),
                "action" => filter.action(!everything, reader)?,
                other => return Err(word.error(format!("tc filter: unexpected word `{other}`"))),
            }
        }
        Ok(filter)
    }

    fn action(
        &mut self,
        is_partial: bool,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let action = reader.value("an action")?;
        match action.text {
            "mirred" => {
                for word in ["egress", "redirect", "dev"] {
                    reader.expect(word)?;
                }
                self.redirect = Some(reader.value("a device")?);
                Ok(())
            }
            "police" => {
                self.police = Some(TcPolicer::parse(action, is_partial, reader)?);
                Ok(())
            }
            "ok" | "pass" | "connmark" => Ok(()),
            other => Err(action.error(format!("tc filter: action `{other}` is not supported"))),
        }
    }
}

/// Returns whether each `match` of u32 is of all packets: `u32 0 0`, or an address of any host.
fn selects_all(conditions: &[&str]) -> bool {
    let mut groups = conditions.split(|word| *word == "match");
    let before = groups.next().unwrap_or_default();
    let of_all = |group: &[&str]| {
        matches!(
            group,
            ["u32", "0" | "0x0", "0" | "0x0", ..]
                | ["ip", "src" | "dst", "0.0.0.0/0"]
                | ["ip6", "src" | "dst", "::/0"]
        )
    };
    before.is_empty() && groups.all(of_all)
}

impl<'t> TcPolicer<'t> {
    fn parse(
        police: ScriptToken<'t>,
        is_partial: bool,
        reader: &mut TokenReader<'t>,
    ) -> Result<Self, ImportError> {
        let (mut rate, mut burst) = (None, None);
        while let Some(option) =
            reader.next_if(|word| !matches!(word, "flowid" | "classid" | "action"))
        {
            match option.text {
                "rate" => set_once(&mut rate, option, tc_rate(reader.value("a rate")?)?)?,
                "burst" | "buffer" | "maxburst" => {
                    set_once(&mut burst, option, tc_size(reader.value("a size")?)?)?;
                }
                "drop" | "drop/ok" | "drop/pass" => {}
                "conform-exceed" => {
                    let action = reader.value("an action")?;
                    if !matches!(action.text, "drop" | "drop/pass" | "drop/ok") {
                        let message = format!("police: `{}` is not supported", action.text);
                        return Err(action.error(message));
                    }
                }
                other => {
                    let message = format!("police: option `{other}` is not supported");
                    return Err(option.error(message));
                }
            }
        }
        let rate = rate.ok_or_else(|| police.error("police: `rate` is missing"))?;
        let burst: Given<'t, u64> =
            burst.ok_or_else(|| police.error("police: `burst` is missing"))?;
        if burst.value < 1_500 {
            let message = "police: packets of 1500 bytes would never pass this bucket";
            return Err(burst.token.error(message));
        }
        Ok(Self { rate, burst: burst.value, is_partial })
    }

    pub(super) fn element(&self) -> PathElement {
        let (rate, burst) = (self.rate.value, self.burst);
        let text = format!("policer = {{ rate = \"{rate}bit/s\", burst = \"{burst}B\" }}");
        let note = self.is_partial.then(|| "for the packets that the filter selects".to_owned());
        PathElement::new(self.rate.token, text).notes(note)
    }
}
