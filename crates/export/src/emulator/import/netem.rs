//! Options of netem (iproute2, tc/q_netem.c) as elements of a path.
//!
//! A packet is first duplicated, dropped or corrupted, then delayed and sent at the rate, then held
//! for a slot (Linux, net/sched/sch_netem.c).

use super::element::PathElement;
use super::quantity::{Percent, count, is_number, percent, tc_rate, tc_size, time, time_text};
use super::tokens::{Given, ImportError, ScriptToken, TokenReader, set_once};
use crate::emulator::{ETHERNET_HEADER, packets_in};

/// Limit of netem without the option, in packets.
const DEFAULT_LIMIT: u64 = 1_000;

/// The options of a netem.
#[derive(Debug, Default)]
pub(super) struct NetemOptions<'t> {
    /// Maximum number of packets, those in the delay included.
    limit: Option<Given<'t, u64>>,
    delay: Option<Given<'t, NetemDelay>>,
    distribution: Option<Given<'t, &'t str>>,
    reorder: Option<Given<'t, CorrelatedShare>>,
    gap: Option<Given<'t, u64>>,
    /// The rule of lost packets, as TOML.
    loss: Option<Given<'t, String>>,
    duplicate: Option<Given<'t, CorrelatedShare>>,
    corrupt: Option<Given<'t, CorrelatedShare>>,
    rate: Option<Given<'t, NetemRate>>,
    /// As TOML.
    slot: Option<Given<'t, String>>,
    seed: Option<Given<'t, u64>>,
}

/// A delay, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct NetemDelay {
    mean: u64,
    jitter: u64,
    correlation: Percent,
}

/// A fraction of the packets, and the correlation of the draws.
#[derive(Debug, Clone, Copy)]
struct CorrelatedShare {
    share: Percent,
    correlation: Percent,
}

/// A rate in bit/s, and bytes.
#[derive(Debug, Clone, Copy)]
struct NetemRate {
    rate: u64,
    /// Added to the IP bytes: the Ethernet header, which tc counts, and what the script adds.
    overhead: u64,
    cell: u64,
    cell_overhead: u64,
}

impl<'t> NetemOptions<'t> {
    pub(super) fn parse(reader: &mut TokenReader<'t>) -> Result<Self, ImportError> {
        let mut of = Self::default();
        while let Some(option) = reader.next() {
            match option.text {
                "limit" => {
                    let packets = count(reader.value("packets")?, "packets")?;
                    set_once(&mut of.limit, option, packets)?;
                }
                "delay" | "latency" => {
                    let delay = NetemDelay::parse(reader)?;
                    set_once(&mut of.delay, option, delay)?;
                }
                "distribution" => {
                    let name = distribution(reader)?;
                    set_once(&mut of.distribution, option, name)?;
                }
                "reorder" => {
                    let share = CorrelatedShare::parse(reader)?;
                    set_once(&mut of.reorder, option, share)?;
                    if let Some(gap) = reader.next_if(|word| word == "gap") {
                        set_once(&mut of.gap, gap, count(reader.value("packets")?, "packets")?)?;
                    }
                }
                "gap" => {
                    set_once(&mut of.gap, option, count(reader.value("packets")?, "packets")?)?;
                }
                "loss" | "drop" => {
                    let rule = loss(option, reader)?;
                    set_once(&mut of.loss, option, rule)?;
                }
                "duplicate" => {
                    set_once(&mut of.duplicate, option, CorrelatedShare::parse(reader)?)?;
                }
                "corrupt" => {
                    set_once(&mut of.corrupt, option, CorrelatedShare::parse(reader)?)?;
                }
                "rate" => set_once(&mut of.rate, option, NetemRate::parse(reader)?)?,
                "slot" => set_once(&mut of.slot, option, slot(reader)?)?,
                // The start of netem's random numbers, which a scenario has in `seed`.
                "seed" => {
                    let seed = count(reader.value("a number")?, "a number")?;
                    set_once(&mut of.seed, option, seed)?;
                }
                "ecn" => {
                    let error = option.error("netem: `ecn` marks packets instead of dropping them");
                    return Err(error.hint("no element of a scenario marks random packets"));
                }
                other => {
                    return Err(option.error(format!("netem: option `{other}` is not supported")));
                }
            }
        }
        of.check()?;
        Ok(of)
    }

    /// Returns the start of its random numbers.
    pub(super) fn seed(&self) -> Option<Given<'t, u64>> {
        self.seed
    }

    /// Reports options without effect.
    fn check(&self) -> Result<(), ImportError> {
        let delay = self.delay.as_ref().map(|delay| delay.value);
        let jitter = delay.is_some_and(|delay| delay.jitter > 0);
        if let Some(distribution) = self.distribution.as_ref().filter(|_| !jitter) {
            let message = "netem: `distribution` without a delay that varies";
            return Err(distribution.token.error(message));
        }
        // The kernel takes a gap without a fraction as all candidates.
        let reorder = self.reorder.as_ref().map(|reorder| reorder.token);
        let token = reorder.or(self.gap.as_ref().map(|gap| gap.token));
        if let Some(token) = token.filter(|_| delay.is_none_or(|delay| delay.mean == 0)) {
            return Err(token.error("netem: reordering is not possible without a delay"));
        }
        if let Some(gap) = self.gap.as_ref().filter(|gap| gap.value == 0) {
            return Err(gap.token.error("netem: `gap 0` reorders no packet"));
        }
        if let Some(limit) = self.limit.as_ref().filter(|limit| limit.value == 0) {
            return Err(limit.token.error("netem: `limit 0` loses all packets"));
        }
        Ok(())
    }

    /// Returns the limit in packets, and the word that gives it.
    fn limit(&self) -> (u64, Option<ScriptToken<'t>>) {
        self.limit.as_ref().map_or((DEFAULT_LIMIT, None), |limit| (limit.value, Some(limit.token)))
    }

    /// Returns the limit in packets.
    pub(super) fn packets(&self) -> u64 {
        self.limit().0
    }

    /// Returns the buffer in packets of a rate in bit/s that the qdisc above has: the limit less
    /// the packets in the delay.
    pub(super) fn buffer_below(
        &self,
        rate: u64,
        kind: ScriptToken<'t>,
    ) -> Result<(u64, String), ImportError> {
        let mean = self.delay.as_ref().map_or(0, |delay| delay.value.mean);
        let in_delay = packets_in(rate, mean);
        let (limit, token) = self.limit();
        match limit.checked_sub(in_delay).filter(|&buffer| buffer > 0) {
            Some(buffer) => {
                let comment = format!(
                    "netem's limit of {limit} less {in_delay} packets of 1500 bytes in the delay"
                );
                Ok((buffer, comment))
            }
            None => {
                let message = format!(
                    "netem: the delay alone has {in_delay} packets of 1500 bytes at this rate, \
                     the limit is {limit}: packets are lost in the delay"
                );
                let token = token.unwrap_or(kind);
                Err(token.error(message).hint(format!("limit {}", in_delay.saturating_add(100))))
            }
        }
    }

    /// Returns the elements in the order in which a packet passes them.
    pub(super) fn elements(&self, kind: ScriptToken<'t>) -> Vec<PathElement> {
        let mut elements = Vec::new();
        if let Some(share) = &self.duplicate {
            elements.push(share.value.element(share.token, "duplicate"));
        }
        if let Some(loss) = &self.loss {
            elements.push(PathElement::new(loss.token, format!("loss = {}", loss.value)));
        }
        if let Some(share) = &self.corrupt {
            elements.push(share.value.element(share.token, "corrupt"));
        }
        elements.extend(self.time_queue(kind));
        if let Some(slot) = &self.slot {
            elements.push(PathElement::new(slot.token, format!("slot = {{ {} }}", slot.value)));
        }
        elements
    }

    /// Returns the delay, the rate and the limit; `None` if there is none of them.
    fn time_queue(&self, kind: ScriptToken<'t>) -> Option<PathElement> {
        let mut keys = Vec::new();
        if let Some(NetemDelay { mean, jitter, correlation }) =
            self.delay.as_ref().map(|delay| delay.value)
        {
            keys.push(format!("delay = \"{}\"", time_text(mean)));
            if jitter > 0 {
                keys.push(format!("jitter = \"{}\"", time_text(jitter)));
                if !correlation.is_zero() {
                    keys.push(format!("correlation = \"{correlation}\""));
                }
                if let Some(distribution) = &self.distribution {
                    keys.push(format!("distribution = \"{}\"", distribution.value));
                }
            }
        }
        let all = CorrelatedShare { share: Percent::ALL, correlation: Percent::ZERO };
        let reorder = self.reorder.as_ref().map(|reorder| reorder.value);
        let reorder = reorder.or_else(|| self.gap.as_ref().map(|_| all));
        if let Some(CorrelatedShare { share, correlation }) = reorder {
            keys.push(format!("reorder = \"{share}\""));
            if !correlation.is_zero() {
                keys.push(format!("reorder_correlation = \"{correlation}\""));
            }
            if let Some(gap) = &self.gap {
                keys.push(format!("gap = {}", gap.value));
            }
        }
        let mut header = None;
        if let Some(NetemRate { rate, overhead, cell, cell_overhead }) =
            self.rate.as_ref().map(|rate| rate.value)
        {
            keys.push(format!("rate = \"{rate}bit/s\""));
            if overhead > 0 {
                keys.push(format!("overhead = {overhead}"));
                header = Some("tc counts the Ethernet header, 14 bytes".to_owned());
            }
            if cell > 0 {
                keys.push(format!("cell = {cell}"));
                if cell_overhead > 0 {
                    keys.push(format!("cell_overhead = {cell_overhead}"));
                }
            }
        }
        if keys.is_empty() && self.limit.is_none() {
            return None;
        }
        keys.push(format!("limit = {}", self.limit().0));
        let delay = self.delay.as_ref().map(|delay| delay.token);
        let token = delay.or(self.rate.as_ref().map(|rate| rate.token)).unwrap_or(kind);
        let text = format!("netem = {{ {} }}", keys.join(", "));
        Some(PathElement::new(token, text).notes(header))
    }
}

impl NetemDelay {
    /// Reads `TIME [JITTER [CORRELATION]]`.
    fn parse(reader: &mut TokenReader<'_>) -> Result<Self, ImportError> {
        let mean = time(reader.value("a time")?, "us")?;
        let Some(token) = reader.next_if(is_number) else {
            return Ok(Self { mean, jitter: 0, correlation: Percent::ZERO });
        };
        let jitter = time(token, "us")?;
        let correlation = correlation(reader)?;
        if jitter == 0 && !correlation.is_zero() {
            return Err(token.error("netem: a correlation of a delay that does not vary"));
        }
        Ok(Self { mean, jitter, correlation })
    }
}

impl CorrelatedShare {
    /// Reads `PERCENT [CORRELATION]`.
    fn parse(reader: &mut TokenReader<'_>) -> Result<Self, ImportError> {
        let share = percent(reader.value("a percentage")?)?;
        Ok(Self { share, correlation: correlation(reader)? })
    }

    fn element(self, token: ScriptToken<'_>, key: &str) -> PathElement {
        PathElement::new(token, format!("{key} = {}", self.rule()))
    }

    /// Returns a rule of a scenario.
    fn rule(self) -> String {
        let Self { share, correlation } = self;
        if correlation.is_zero() {
            return format!("\"{share}\"");
        }
        format!("{{ share = \"{share}\", correlation = \"{correlation}\" }}")
    }
}

impl NetemRate {
    /// Reads `RATE [OVERHEAD [CELL [CELL_OVERHEAD]]]`.
    fn parse(reader: &mut TokenReader<'_>) -> Result<Self, ImportError> {
        let rate = tc_rate(reader.value("a rate")?)?;
        // `tc qdisc show` prints the names of the values.
        let mut values = [0_i64; 3];
        for (name, value) in ["packetoverhead", "cellsize", "celloverhead"].iter().zip(&mut values)
        {
            let named = reader.next_is(name);
            let is_signed = |word: &str| is_number(word.strip_prefix('-').unwrap_or(word));
            let token = match named {
                true => Some(reader.value("bytes")?),
                false => reader.next_if(is_signed),
            };
            let Some(token) = token else { break };
            let least = if *name == "packetoverhead" { -(ETHERNET_HEADER as i64) } else { 0 };
            *value = token
                .text
                .parse()
                .ok()
                .filter(|bytes| (least..=4_096).contains(bytes))
                .ok_or_else(|| {
                    token.error(format!("`{}`: expected {least} to 4096 bytes", token.text))
                })?;
        }
        let [overhead, cell, cell_overhead] = values;
        let overhead = (overhead + ETHERNET_HEADER as i64) as u64;
        Ok(Self { rate, overhead, cell: cell as u64, cell_overhead: cell_overhead as u64 })
    }
}

/// Reads the name of a distribution.
fn distribution<'t>(reader: &mut TokenReader<'t>) -> Result<&'t str, ImportError> {
    let name = reader.value("a name")?;
    if !matches!(name.text, "uniform" | "normal" | "pareto" | "paretonormal") {
        let message = format!("distribution `{}` is not supported", name.text);
        let hint = "expected uniform, normal, pareto or paretonormal";
        return Err(name.error(message).hint(hint));
    }
    Ok(name.text)
}

/// Reads what follows `slot`.
fn slot(reader: &mut TokenReader<'_>) -> Result<String, ImportError> {
    let min = reader.value("a time")?;
    let mut keys = Vec::new();
    if min.text == "distribution" {
        let name = distribution(reader)?;
        keys.push(format!("delay = \"{}\"", time_text(time(reader.value("a time")?, "us")?)));
        let jitter = time(reader.value("a time")?, "us")?;
        if jitter > 0 {
            keys.push(format!("jitter = \"{}\", distribution = \"{name}\"", time_text(jitter)));
        }
    } else {
        keys.push(format!("min = \"{}\"", time_text(time(min, "us")?)));
        if let Some(max) = reader.next_if(is_number) {
            keys.push(format!("max = \"{}\"", time_text(time(max, "us")?)));
        }
    }
    while let Some(option) = reader.next_if(|word| matches!(word, "packets" | "bytes")) {
        let value = reader.value("a number")?;
        match option.text {
            "packets" => keys.push(format!("packets = {}", count(value, "packets")?)),
            _ => keys.push(format!("bytes = \"{}B\"", tc_size(value)?)),
        }
    }
    Ok(keys.join(", "))
}

/// Reads what follows `loss`; returns a rule of a scenario.
fn loss<'t>(option: ScriptToken<'t>, reader: &mut TokenReader<'t>) -> Result<String, ImportError> {
    if reader.next_is("gemodel") {
        return gemodel(option, reader);
    }
    if reader.next_is("state") {
        return four_state(option, reader);
    }
    reader.next_is("random");
    Ok(CorrelatedShare::parse(reader)?.rule())
}

fn gemodel<'t>(
    option: ScriptToken<'t>,
    reader: &mut TokenReader<'t>,
) -> Result<String, ImportError> {
    // `tc qdisc show` prints the names of the values.
    let mut next = |name: &str, default: Percent| -> Result<Percent, ImportError> {
        if reader.next_is(name) {
            return percent(reader.value("a percentage")?);
        }
        reader.next_if(is_number).map_or(Ok(default), percent)
    };
    let Some(p) = Some(next("p", Percent::ZERO)?).filter(|p| !p.is_zero()) else {
        return Err(option.error("loss gemodel: expected p, a percentage above zero"));
    };
    let r = next("r", p.complement())?;
    let lost_bad = next("1-h", Percent::ALL)?;
    let lost_good = next("1-k", Percent::ZERO)?;
    let (h, k) = (lost_bad.complement(), lost_good.complement());
    Ok(format!("{{ gilbert_elliott = {{ p = \"{p}\", r = \"{r}\", h = \"{h}\", k = \"{k}\" }} }}"))
}

fn four_state<'t>(
    option: ScriptToken<'t>,
    reader: &mut TokenReader<'t>,
) -> Result<String, ImportError> {
    let mut keys = Vec::new();
    for name in ["p13", "p31", "p32", "p23", "p14"] {
        let token = if reader.next_is(name) {
            reader.value("a percentage")?
        } else if let Some(token) = reader.next_if(is_number) {
            token
        } else {
            break;
        };
        keys.push(format!("{name} = \"{}\"", percent(token)?));
    }
    if keys.is_empty() {
        return Err(option.error("loss state: expected p13, a percentage"));
    }
    Ok(format!("{{ four_state = {{ {} }} }}", keys.join(", ")))
}

/// Reads a correlation, zero if there is none.
fn correlation(reader: &mut TokenReader<'_>) -> Result<Percent, ImportError> {
    reader.next_if(is_number).map_or(Ok(Percent::ZERO), percent)
}
