//! Options of netem (iproute2, tc/q_netem.c) as elements of a path.
//!
//! netem delays each packet, then sends it at the rate (Linux, net/sched/sch_netem.c,
//! `netem_enqueue`). With a rate no packet overtakes another; without one, a delay that varies
//! reorders packets, which no element of a scenario does in the same way.

use sim::MAX_PACKETS_IN_FLIGHT;

use super::element::PathElement;
use super::quantity::{Percent, count, is_number, percent, tc_rate, time};
use super::tokens::{Given, ImportError, ScriptToken, TokenReader, set_once};
use crate::emulator::packets_in;

/// Limit of netem without the option, in packets.
const DEFAULT_LIMIT: u64 = 1_000;

/// The options of a netem.
#[derive(Debug, Default)]
pub(super) struct NetemOptions<'t> {
    /// Maximum number of packets, those in the delay included.
    limit: Option<Given<'t, u64>>,
    delay: Option<Given<'t, NetemDelay<'t>>>,
    /// The rule of lost packets, as TOML.
    loss: Option<Given<'t, String>>,
    duplicate: Option<Given<'t, Percent>>,
    corrupt: Option<Given<'t, Percent>>,
    /// In bit/s.
    rate: Option<Given<'t, u64>>,
    distribution: Option<Given<'t, ()>>,
    seed: Option<Given<'t, u64>>,
}

/// A delay, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct NetemDelay<'t> {
    mean: u64,
    /// Half the width of the uniform distribution; `None` for zero.
    jitter: Option<Given<'t, u64>>,
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
                    let mean = time(reader.value("a time")?, "us")?;
                    let jitter = reader.next_if(is_number).map(|token| {
                        let given = |value| Given { value, token };
                        time(token, "us").map(given)
                    });
                    let jitter = jitter.transpose()?.filter(|jitter| jitter.value > 0);
                    no_correlation(option, reader)?;
                    set_once(&mut of.delay, option, NetemDelay { mean, jitter })?;
                }
                "distribution" => {
                    let name = reader.value("a name")?;
                    if name.text != "uniform" {
                        let name_text = name.text;
                        return Err(name.error(format!(
                            "distribution `{name_text}` is not supported, only uniform"
                        )));
                    }
                    set_once(&mut of.distribution, option, ())?;
                }
                "loss" => {
                    let rule = loss(option, reader)?;
                    set_once(&mut of.loss, option, rule)?;
                }
                "duplicate" | "corrupt" => {
                    let share = percent(reader.value("a percentage")?)?;
                    no_correlation(option, reader)?;
                    let is_duplicate = option.text == "duplicate";
                    let slot = if is_duplicate { &mut of.duplicate } else { &mut of.corrupt };
                    set_once(slot, option, share)?;
                }
                "rate" => {
                    let rate = tc_rate(reader.value("a rate")?)?;
                    set_once(&mut of.rate, option, rate)?;
                }
                // The start of netem's random numbers, which a scenario has in `seed`.
                "seed" => {
                    let seed = count(reader.value("a number")?, "a number")?;
                    set_once(&mut of.seed, option, seed)?;
                }
                other => {
                    return Err(option.error(format!("netem: option `{other}` is not supported")));
                }
            }
        }
        of.check()?;
        Ok(of)
    }

    /// Reports options that no element represents.
    fn check(&self) -> Result<(), ImportError> {
        let delay = self.delay.as_ref().map(|delay| delay.value);
        let jitter = delay.and_then(|delay| delay.jitter);
        if let (Some(distribution), None) = (&self.distribution, jitter) {
            let message = "netem: `distribution` without a delay that varies";
            return Err(distribution.token.error(message));
        }
        if let (Some(jitter), Some(delay)) = (jitter, delay) {
            let text = jitter.token.text;
            if self.rate.is_none() {
                let message = format!(
                    "netem: `delay` that varies by {text} reorders packets, which a scenario does \
                     not model"
                );
                let hint = "with a `rate`, netem keeps the order; without a variation, too";
                return Err(jitter.token.error(message).hint(hint));
            }
            if jitter.value > delay.mean {
                let message = format!("netem: variation {text} is more than the delay");
                return Err(jitter.token.error(message));
            }
        }
        if let (Some(limit), None) = (&self.limit, &self.rate)
            && limit.value < MAX_PACKETS_IN_FLIGHT as u64
        {
            let n = limit.value;
            let message = format!(
                "netem: `limit {n}` without a rate limits the packets in the delay, which a \
                 scenario does not model"
            );
            let hint = format!(
                "leave `limit` out if the transfer has at most {n} packets in the delay at a time"
            );
            return Err(limit.token.error(message).hint(hint));
        }
        Ok(())
    }

    /// Returns the rate as a word: netem with a rate and a qdisc below it has one limit for both.
    pub(super) fn rate_token(&self) -> Option<ScriptToken<'t>> {
        self.rate.as_ref().map(|rate| rate.token)
    }

    /// Returns the elements in the order in which a packet passes them.
    pub(super) fn elements(&self) -> Result<Vec<PathElement>, ImportError> {
        let mut elements = Vec::new();
        if let Some(loss) = &self.loss {
            elements.push(PathElement::new(loss.token, format!("loss = {}", loss.value)));
        }
        for (key, share) in [("duplicate", &self.duplicate), ("corrupt", &self.corrupt)] {
            if let Some(share) = share {
                let text = format!("{key} = \"{}\"", share.value);
                elements.push(PathElement::new(share.token, text));
            }
        }
        let link = self.link()?;
        let Some(delay) = &self.delay else {
            elements.extend(link);
            if let (Some(limit), None) = (&self.limit, &self.rate) {
                let nothing = PathElement::new(limit.token, "delay = \"0ns\"".to_owned());
                elements.push(nothing.comment(unreachable(limit.value)));
            }
            return Ok(elements);
        };
        let NetemDelay { mean, jitter } = delay.value;
        let Some(jitter) = jitter else {
            elements.extend(link);
            let fixed = PathElement::new(delay.token, format!("delay = \"{mean}ns\""));
            elements.push(match (&self.rate, &self.limit) {
                (Some(_), _) => fixed,
                (None, Some(limit)) => fixed.comment(unreachable(limit.value)),
                (None, None) => fixed.comment(format!(
                    "netem's limit of {DEFAULT_LIMIT} packets in the delay is not modelled"
                )),
            });
            return Ok(elements);
        };
        // The mean of a uniform delay is netem's first figure, the shortest is ours. The random
        // part comes before the link: the rate spaces the packets once more.
        let least = mean.saturating_sub(jitter.value);
        if least > 0 {
            elements.push(PathElement::new(delay.token, format!("delay = \"{least}ns\"")));
        }
        let width = jitter.value.saturating_mul(2);
        elements.push(PathElement::new(jitter.token, format!("jitter = \"{width}ns\"")));
        elements.extend(link);
        Ok(elements)
    }

    /// Returns the link of the rate; its buffer is the limit less the packets in the delay.
    fn link(&self) -> Result<Option<PathElement>, ImportError> {
        let Some(rate) = &self.rate else { return Ok(None) };
        let mean = self.delay.as_ref().map_or(0, |delay| delay.value.mean);
        let in_delay = packets_in(rate.value, mean);
        let limit = self.limit.as_ref().map_or(DEFAULT_LIMIT, |limit| limit.value);
        let token = self.limit.as_ref().map_or(rate.token, |limit| limit.token);
        let Some(buffer) = limit.checked_sub(in_delay).filter(|&buffer| buffer > 0) else {
            let message = format!(
                "netem: the delay alone has {in_delay} packets of 1500 bytes at this rate, the \
                 limit is {limit}: a scenario does not limit the packets in a delay"
            );
            return Err(token
                .error(message)
                .hint(format!("limit {}", in_delay.saturating_add(100))));
        };
        let rate_bits = rate.value;
        let text = format!("link = {{ rate = \"{rate_bits}bit/s\", buffer = \"{buffer}p\" }}");
        Ok(Some(
            PathElement::new(rate.token, text).comment(format!(
                "limit {limit} less {in_delay} packets of 1500 bytes in the delay"
            )),
        ))
    }
}

fn unreachable(limit: u64) -> String {
    format!("limit {limit}: a run has fewer packets in flight")
}

/// Reads what follows `loss`; returns a rule of a scenario.
fn loss<'t>(option: ScriptToken<'t>, reader: &mut TokenReader<'t>) -> Result<String, ImportError> {
    if reader.next_is("gemodel") {
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
        return Ok(format!(
            "{{ gilbert_elliott = {{ p = \"{p}\", r = \"{r}\", h = \"{h}\", k = \"{k}\" }} }}"
        ));
    }
    reader.next_is("random");
    let share = percent(reader.value("a percentage")?)?;
    no_correlation(option, reader)?;
    Ok(format!("\"{share}\""))
}

/// Reads a correlation, which must be zero.
fn no_correlation<'t>(
    option: ScriptToken<'t>,
    reader: &mut TokenReader<'t>,
) -> Result<(), ImportError> {
    let Some(token) = reader.next_if(is_number) else { return Ok(()) };
    if percent(token)?.is_zero() {
        return Ok(());
    }
    let (option, value) = (option.text, token.text);
    Err(token.error(format!("{option}: correlation {value} is not supported")))
}
