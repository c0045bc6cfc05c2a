//! Qdiscs that queue packets: as the queue of the rate above them.

use super::element::QueueModel;
use super::quantity::{count, percent, tc_rate, tc_size, time, time_text};
use super::tokens::{ImportError, ScriptToken, TokenReader};

/// Queues that are not modelled, with the nearest that is.
const NOT_MODELLED: &[(&str, &str)] = &[
    ("cake", "the nearest is htb with fq_codel below it"),
    ("dualpi2", "the nearest is pie"),
    ("fq_pie", "the nearest is pie, or fq_codel for several flows"),
    ("hfsc", "with one class, htb has the same long-run rate"),
    ("cbq", "with one class, htb has the same long-run rate"),
    ("drr", "with one class, leave it out"),
    ("qfq", "with one class, leave it out"),
    ("hhf", "the nearest is fq_codel"),
    ("choke", "the nearest is red"),
    ("sfb", "the nearest is red"),
    ("gred", "the nearest is red"),
    ("blue", "the nearest is red"),
    ("ets", "with one class, leave it out"),
    ("mqprio", "leave it out"),
    ("taprio", "an `outage` with a period is the nearest"),
    ("etf", "leave it out"),
    ("cbs", "the nearest is tbf"),
    ("skbprio", "the nearest is pfifo"),
    ("multiq", "leave it out"),
];

/// Returns the error of a qdisc that is not modelled or not known.
pub(super) fn not_modelled(kind: ScriptToken<'_>) -> ImportError {
    let name = kind.text;
    match NOT_MODELLED.iter().find(|(known, _)| *known == name) {
        Some((_, hint)) => kind.error(format!("qdisc `{name}` is not modelled")).hint(*hint),
        None => {
            let error = kind.error(format!("qdisc `{name}` is not known"));
            error.hint(
                "of a device that is not part of the path, leave the line out: \
                 tc qdisc show dev DEVICE",
            )
        }
    }
}

/// Options of a queue.
struct QueueOptions<'a, 't> {
    kind: ScriptToken<'t>,
    reader: &'a mut TokenReader<'t>,
    /// Parameters as TOML.
    keys: Vec<String>,
    notes: Vec<String>,
}

/// Reads the options of a queue; `None` if the qdisc is another.
pub(super) fn queue<'t>(
    kind: ScriptToken<'t>,
    reader: &mut TokenReader<'t>,
) -> Option<Result<QueueModel, ImportError>> {
    let options = QueueOptions { kind, reader, keys: Vec::new(), notes: Vec::new() };
    Some(match kind.text {
        "pfifo" => options.pfifo(),
        "bfifo" => options.bfifo(),
        "pfifo_fast" => options.pfifo_fast(),
        "codel" => options.codel(false),
        "fq_codel" => options.codel(true),
        "pie" => options.pie(),
        "sfq" => options.sfq(),
        "fq" => options.fq(),
        "red" => options.red(),
        _ => return None,
    })
}

/// Reads a number of packets; `tc qdisc show` prints a `p` after it.
fn packets(token: ScriptToken<'_>) -> Result<u64, ImportError> {
    let text = token.text.strip_suffix('p').unwrap_or(token.text);
    let packets = count(ScriptToken { text, ..token }, "packets")?;
    if packets == 0 {
        return Err(token.error("a limit of no packets loses all"));
    }
    Ok(packets)
}

impl<'t> QueueOptions<'_, 't> {
    fn value(&mut self) -> Result<ScriptToken<'t>, ImportError> {
        self.reader.value("a value")
    }

    fn unknown(&self, option: ScriptToken<'t>) -> ImportError {
        let (kind, option_text) = (self.kind.text, option.text);
        option.error(format!("{kind}: option `{option_text}` is not supported"))
    }

    /// Reads an option whose value does not change how one flow is queued.
    fn note(&mut self, option: ScriptToken<'t>) -> Result<(), ImportError> {
        let value = self.value()?.text;
        self.notes.push(format!("{} {value} has no effect on one flow", option.text));
        Ok(())
    }

    fn time(&mut self, key: &str) -> Result<(), ImportError> {
        let ns = time(self.value()?, "us")?;
        self.keys.push(format!("{key} = \"{}\"", time_text(ns)));
        Ok(())
    }

    fn model(self, buffer: String, name: &str) -> QueueModel {
        let queue = (!name.is_empty()).then(|| match self.keys.is_empty() {
            true => format!("\"{name}\""),
            false => format!("{{ {name} = {{ {} }} }}", self.keys.join(", ")),
        });
        QueueModel { kind: self.kind.text.to_owned(), buffer, queue, notes: self.notes }
    }

    fn pfifo(mut self) -> Result<QueueModel, ImportError> {
        let mut limit = 1_000;
        if let Some(option) = self.reader.next() {
            match option.text {
                "limit" => limit = packets(self.value()?)?,
                _ => return Err(self.unknown(option)),
            }
        } else {
            self.notes.push("pfifo's limit is the queue length of the device, 1000".to_owned());
        }
        Ok(self.model(format!("{limit}p"), ""))
    }

    fn bfifo(self) -> Result<QueueModel, ImportError> {
        let Some(option) = self.reader.next().filter(|option| option.text == "limit") else {
            return Err(self.kind.error("bfifo: `limit` is missing"));
        };
        let value = self.reader.value("a size")?;
        let limit = tc_size(value)?;
        if limit < 1_500 {
            return Err(option.error("bfifo: packets of 1500 bytes would never pass"));
        }
        Ok(self.model(format!("{limit}B"), ""))
    }

    fn pfifo_fast(mut self) -> Result<QueueModel, ImportError> {
        while let Some(option) = self.reader.next() {
            match option.text {
                "bands" => self.note(option)?,
                "priomap" => while self.reader.next_if(super::quantity::is_number).is_some() {},
                _ => return Err(self.unknown(option)),
            }
        }
        self.notes.push("pfifo_fast's limit is the queue length of the device, 1000".to_owned());
        Ok(self.model("1000p".to_owned(), ""))
    }

    fn codel(mut self, fair: bool) -> Result<QueueModel, ImportError> {
        let mut limit = if fair { 10_240 } else { 1_000 };
        while let Some(option) = self.reader.next() {
            match option.text {
                "limit" => limit = packets(self.value()?)?,
                "target" | "interval" => self.time(option.text)?,
                "ecn" => self.keys.push("ecn = true".to_owned()),
                "noecn" => self.keys.push("ecn = false".to_owned()),
                "flows" if fair => {
                    let flows = count(self.value()?, "flows")?;
                    self.keys.push(format!("flows = {flows}"));
                }
                "quantum" if fair => {
                    let quantum = tc_size(self.value()?)?;
                    self.keys.push(format!("quantum = \"{quantum}B\""));
                }
                "memory_limit" | "drop_batch" if fair => self.note(option)?,
                _ => return Err(self.unknown(option)),
            }
        }
        Ok(self.model(format!("{limit}p"), if fair { "fq_codel" } else { "codel" }))
    }

    fn pie(mut self) -> Result<QueueModel, ImportError> {
        let mut limit = 1_000;
        while let Some(option) = self.reader.next() {
            match option.text {
                "limit" => limit = packets(self.value()?)?,
                "target" => self.time("target")?,
                "tupdate" => self.time("update")?,
                // The defaults of sch_pie.c.
                "alpha" | "beta" => {
                    let value = self.value()?;
                    let default = if option.text == "alpha" { "2" } else { "20" };
                    if value.text != default {
                        let message = format!("pie: only {} {default} is modelled", option.text);
                        return Err(value.error(message));
                    }
                }
                "ecn" => self.keys.push("ecn = true".to_owned()),
                "noecn" => self.keys.push("ecn = false".to_owned()),
                "nobytemode" | "no_dq_rate_estimator" => {}
                _ => return Err(self.unknown(option)),
            }
        }
        Ok(self.model(format!("{limit}p"), "pie"))
    }

    fn sfq(mut self) -> Result<QueueModel, ImportError> {
        // SFQ_MAX_DEPTH packets, of which one flow may have all.
        let (mut limit, mut depth) = (127, 127);
        while let Some(option) = self.reader.next() {
            match option.text {
                "limit" => limit = packets(self.value()?)?,
                "depth" => depth = packets(self.value()?)?,
                "perturb" | "quantum" | "divisor" | "flows" => self.note(option)?,
                _ => return Err(self.unknown(option)),
            }
        }
        self.notes.push("sfq is modelled as the queue of one flow".to_owned());
        Ok(self.model(format!("{}p", limit.min(depth)), ""))
    }

    fn fq(mut self) -> Result<QueueModel, ImportError> {
        let (mut limit, mut flow_limit) = (10_000, 100);
        while let Some(option) = self.reader.next() {
            match option.text {
                "limit" => limit = packets(self.value()?)?,
                "flow_limit" => flow_limit = packets(self.value()?)?,
                "quantum" | "initial_quantum" | "buckets" | "orphan_mask" | "refill_delay"
                | "low_rate_threshold" | "timer_slack" | "horizon" => self.note(option)?,
                "horizon_drop" | "horizon_cap" | "pacing" => {}
                "bands" => self.note(option)?,
                "priomap" | "weights" => {
                    while self.reader.next_if(super::quantity::is_number).is_some() {}
                }
                _ => return Err(self.unknown(option)),
            }
        }
        self.notes
            .push("fq is modelled as the queue of one flow; hosts pace by themselves".to_owned());
        Ok(self.model(format!("{}p", limit.min(flow_limit)), ""))
    }

    fn red(mut self) -> Result<QueueModel, ImportError> {
        let kind = self.kind;
        let (mut limit, mut min, mut max) = (None, None, None);
        let (mut avpkt, mut burst, mut probability) = (1_000, None, None);
        while let Some(option) = self.reader.next() {
            match option.text {
                "limit" => limit = Some(tc_size(self.value()?)?),
                "min" => min = Some(tc_size(self.value()?)?),
                "max" => max = Some(tc_size(self.value()?)?),
                "avpkt" => avpkt = tc_size(self.value()?)?,
                "burst" => burst = Some(count(self.value()?, "packets")?),
                "probability" => probability = Some(self.value()?),
                "bandwidth" => {
                    let rate = tc_rate(self.value()?)?;
                    let note = "is for idle times, which are not modelled";
                    self.notes.push(format!("bandwidth {rate}bit {note}"));
                }
                "ecn" => self.keys.push("ecn = true".to_owned()),
                _ => return Err(self.unknown(option)),
            }
        }
        let limit = limit.ok_or_else(|| kind.error("red: `limit` is missing"))?;
        // q_red.c: the thresholds of a limit, the burst of thresholds.
        let max = max.unwrap_or(limit / 4);
        let min = min.unwrap_or(max / 3);
        if avpkt == 0 || min < avpkt || max <= min || limit <= max {
            let message = "red: expected avpkt <= min < max < limit, in bytes";
            return Err(kind.error(message));
        }
        let burst =
            burst.unwrap_or(min.saturating_mul(2).saturating_add(max) / avpkt.saturating_mul(3));
        let log = averaging(min, burst, avpkt)
            .ok_or_else(|| kind.error("red: `burst` is too small for `min` and `avpkt`"))?;
        let (low, high) = ((min / avpkt).max(1), max.div_ceil(avpkt));
        self.keys.push(format!("min = {low}"));
        self.keys.push(format!("max = {}", high.max(low + 1)));
        let share = match probability {
            None => "2%".to_owned(),
            // `tc` reads a fraction (`probability 0.02`), which some write as a percentage.
            Some(token) if token.text.ends_with('%') => percent(token)?.to_string(),
            Some(token) => super::quantity::probability(token)?.to_string(),
        };
        self.keys.push(format!("probability = \"{share}\""));
        let weight = 100.0 / f64::from(1_u32 << log);
        self.keys.push(format!("weight = \"{weight:.7}%\""));
        self.keys.push("gentle = false".to_owned());
        self.notes.push(format!("thresholds of {min} and {max} bytes, {avpkt} a packet"));
        self.notes.push(format!("burst {burst}"));
        Ok(self.model(format!("{limit}B"), "red"))
    }
}

/// Returns the weight of the average as a power of two (`tc_red_eval_ewma`).
fn averaging(min: u64, burst: u64, avpkt: u64) -> Option<u32> {
    let reach = burst as f64 + 1.0 - min as f64 / avpkt as f64;
    if reach < 1.0 {
        return None;
    }
    (1..23).find(|&log| {
        let weight = 1.0 / f64::from(1_u32 << log);
        reach <= (1.0 - units::maths::pow(1.0 - weight, burst as f64)) / weight
    })
}
