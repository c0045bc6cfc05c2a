//! htb (Linux, sch_htb.c; iproute2, tc/q_htb.c): the rate that one class has, with what it borrows.

use super::quantity::{count, is_number, tc_rate, tc_size};
use super::rate_limit::{LineFrame, RateLimit};
use super::tc::ClassHandle;
use super::tokens::{Given, ImportError, ScriptToken, TokenReader, set_once};

/// Bucket of a class without `burst`: the MTU that tc assumes; the part of a clock tick is below a
/// byte.
const DEFAULT_BURST: u64 = 1_600;
/// Options of an htb qdisc.
#[derive(Debug, Default)]
pub(super) struct HtbOptions {
    /// Minor number of the class of packets that no filter selects.
    pub(super) default: Option<u16>,
}

/// A class of htb.
#[derive(Debug)]
pub(super) struct HtbClass<'t> {
    rate: Given<'t, u64>,
    ceil: u64,
    burst: u64,
    cburst: u64,
    frame: LineFrame,
    notes: Vec<String>,
}

impl HtbOptions {
    pub(super) fn parse(reader: &mut TokenReader<'_>) -> Result<Self, ImportError> {
        let mut of = Self::default();
        while let Some(option) = reader.next() {
            match option.text {
                "default" => {
                    let token = reader.value("the minor number of a class")?;
                    let text = token.text.strip_prefix("0x").unwrap_or(token.text);
                    let minor = u16::from_str_radix(text, 16).map_err(|_| {
                        token.error(format!("`{}`: expected the number of a class", token.text))
                    })?;
                    of.default = Some(minor);
                }
                // How classes share, and what was counted.
                "r2q" | "direct_packets_stat" | "direct_qlen" | "ver" | "version" => {
                    reader.value("a number")?;
                }
                other => {
                    return Err(option.error(format!("htb: option `{other}` is not supported")));
                }
            }
        }
        Ok(of)
    }
}

impl<'t> HtbClass<'t> {
    pub(super) fn parse(
        kind: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<Self, ImportError> {
        let (mut rate, mut ceil) = (None, None);
        let (mut burst, mut cburst) = (None, None);
        let mut notes = Vec::new();
        let mut frame = LineFrame::default();
        while let Some(option) = reader.next() {
            match option.text {
                "rate" => set_once(&mut rate, option, tc_rate(reader.value("a rate")?)?)?,
                "ceil" => set_once(&mut ceil, option, tc_rate(reader.value("a rate")?)?)?,
                "burst" | "buffer" | "maxburst" => {
                    set_once(&mut burst, option, bucket(reader.value("a size")?)?)?;
                }
                "cburst" | "cbuffer" | "cmaxburst" => {
                    set_once(&mut cburst, option, bucket(reader.value("a size")?)?)?;
                }
                "prio" | "quantum" | "mtu" => {
                    let value = reader.value("a number")?.text;
                    notes.push(format!("{} {value} has no effect with one class", option.text));
                }
                _ if frame.option(option, reader)? => {}
                other => {
                    return Err(option.error(format!("htb: option `{other}` is not supported")));
                }
            }
        }
        let rate: Given<'t, u64> = rate.ok_or_else(|| kind.error("htb: `rate` is missing"))?;
        let value = |given: Option<Given<'t, u64>>, default| given.map_or(default, |one| one.value);
        let ceil = value(ceil, rate.value);
        let (burst, cburst) = (value(burst, DEFAULT_BURST), value(cburst, DEFAULT_BURST));
        Ok(Self { rate, ceil, burst, cburst, frame, notes })
    }

    /// Returns the rate and the bucket of this class with its ancestors, from the root down to it.
    pub(super) fn limit(ancestors: &[&Self]) -> Option<RateLimit<'t>> {
        // A class has its own rate, and what its parent lends up to `ceil`.
        let (mut rate, mut burst) = (0, 0);
        for (level, class) in ancestors.iter().enumerate() {
            let own = class.rate.value;
            let borrowed = if level == 0 { 0 } else { rate.min(class.ceil) };
            let of_lender = if rate <= class.ceil { burst } else { u64::MAX };
            let of_ceil = if borrowed.max(own) == class.ceil { class.cburst } else { u64::MAX };
            (rate, burst) = if borrowed > own {
                (borrowed, of_lender.min(of_ceil))
            } else {
                (own, class.burst.min(of_ceil))
            };
        }
        let leaf = ancestors.last()?;
        let mut notes: Vec<String> =
            ancestors.iter().flat_map(|class| class.notes.iter().cloned()).collect();
        for (level, class) in ancestors.iter().enumerate() {
            let HtbClass { rate: own, ceil, burst, cburst, .. } = class;
            let own = own.value;
            let what = if level + 1 == ancestors.len() { "class" } else { "parent" };
            notes.push(format!("{what}: {own} to {ceil} bit/s, bursts {burst} and {cburst}"));
        }
        Some(RateLimit {
            rate: Given { value: rate, token: leaf.rate.token },
            // A class sends while its bucket is not below zero: the last packet may exceed it.
            burst: burst.saturating_add(leaf.frame.full_packet()),
            // A class has a pfifo of the device's queue length.
            buffer: "1000p".to_owned(),
            frame: leaf.frame,
            notes,
            unused_limit: None,
        })
    }
}

/// Reads a bucket; tc may print the size of a cell after it.
fn bucket(token: ScriptToken<'_>) -> Result<u64, ImportError> {
    let (text, cell) = token.text.split_once('/').unwrap_or((token.text, "1"));
    if !is_number(cell) {
        return Err(token.error(format!("`{}`: expected a size such as 15k", token.text)));
    }
    tc_size(ScriptToken { text, ..token })
}

/// Options of prio: where packets go that no filter selects.
#[derive(Debug)]
pub(super) struct PrioOptions {
    bands: u16,
    /// Band of best-effort packets.
    first: u16,
}

impl PrioOptions {
    pub(super) fn parse(reader: &mut TokenReader<'_>) -> Result<Self, ImportError> {
        // The priorities of sch_prio.c: best effort is 1.
        let mut of = Self { bands: 3, first: 1 };
        while let Some(option) = reader.next() {
            match option.text {
                "bands" => {
                    let token = reader.value("a number")?;
                    let bands = count(token, "a number")?;
                    let range = 2..=16;
                    if !range.contains(&bands) {
                        return Err(token.error("prio: expected 2 to 16 bands"));
                    }
                    of.bands = bands as u16;
                }
                "priomap" => {
                    let token = reader.value("bands")?;
                    of.first = count(token, "a band")?.min(15) as u16;
                    while reader.next_if(is_number).is_some() {}
                }
                other => {
                    return Err(option.error(format!("prio: option `{other}` is not supported")));
                }
            }
        }
        Ok(of)
    }

    /// Returns the class of packets that no filter selects.
    pub(super) fn default(&self, major: u16) -> ClassHandle {
        ClassHandle { major, minor: self.first.min(self.bands - 1) + 1 }
    }

    /// Returns whether it has this class.
    pub(super) const fn has(&self, minor: u16) -> bool {
        minor >= 1 && minor <= self.bands
    }
}
