//! `ipfw` commands: pipes of dummynet, and the rules that send packets through them.

use std::collections::BTreeMap;

use super::element::{ParsedDirection, PathElement};
use super::quantity::{Percent, count, ipfw_queue, ipfw_rate, probability, time, time_text};
use super::tokens::{Given, ImportError, ScriptToken, TokenReader, set_once};

/// Queue of a pipe without the option (ipfw(8)).
const DEFAULT_QUEUE: &str = "50p";

/// Pipes and rules, in the order of the script.
#[derive(Debug, Default)]
pub(super) struct IpfwPipes<'t> {
    pipes: Vec<Pipe<'t>>,
    /// Index of each pipe by its number.
    numbers: BTreeMap<u64, usize>,
    /// Number of the pipe of each rule.
    rules: Vec<(ScriptToken<'t>, u64)>,
}

/// The configuration of a pipe.
#[derive(Debug)]
struct Pipe<'t> {
    number: Given<'t, u64>,
    /// In bit/s.
    bandwidth: Option<Given<'t, u64>>,
    /// In nanoseconds.
    delay: Option<Given<'t, u64>>,
    /// A size of a scenario.
    queue: Option<Given<'t, String>>,
    loss: Option<Given<'t, Percent>>,
}

impl<'t> IpfwPipes<'t> {
    /// Reads a command after the word `ipfw`.
    pub(super) fn command(&mut self, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
        while reader.next_if(|word| matches!(word, "-q" | "-f")).is_some() {}
        let verb = reader.value("`pipe`, `add`")?;
        match verb.text {
            "pipe" => {
                let number = reader.value("a number")?;
                if number.text == "flush" {
                    return self.flush(number);
                }
                let value = count(number, "the number of a pipe")?;
                reader.expect("config")?;
                self.config(Given { value, token: number }, reader)
            }
            "flush" => self.flush(verb),
            "add" => self.rule(reader),
            other => Err(verb.error(format!("ipfw: `{other}` is not supported"))),
        }
    }

    fn flush(&self, verb: ScriptToken<'t>) -> Result<(), ImportError> {
        match self.pipes.first() {
            None if self.rules.is_empty() => Ok(()),
            _ => Err(verb.error("`flush` removes the pipes and rules before it from the path")),
        }
    }

    fn config(
        &mut self,
        number: Given<'t, u64>,
        reader: &mut TokenReader<'t>,
    ) -> Result<(), ImportError> {
        let mut pipe = Pipe { number, bandwidth: None, delay: None, queue: None, loss: None };
        while let Some(option) = reader.next() {
            match option.text {
                "bw" | "bandwidth" => {
                    let rate = ipfw_rate(reader.value("a rate")?)?;
                    set_once(&mut pipe.bandwidth, option, rate)?;
                }
                "delay" => {
                    // A number alone is milliseconds, unlike for tc.
                    let delay = time(reader.value("a time")?, "ms")?;
                    set_once(&mut pipe.delay, option, delay)?;
                }
                "queue" => {
                    let queue = ipfw_queue(reader.value("a size")?)?;
                    set_once(&mut pipe.queue, option, queue)?;
                }
                "plr" => {
                    let loss = probability(reader.value("a probability")?)?;
                    set_once(&mut pipe.loss, option, loss)?;
                }
                other => {
                    let message = format!("dummynet: option `{other}` is not supported");
                    return Err(option.error(message));
                }
            }
        }
        if let (Some(queue), None) = (&pipe.queue, &pipe.bandwidth) {
            return Err(queue.token.error("dummynet: `queue` without `bw` has no effect"));
        }
        if self.numbers.insert(number.value, self.pipes.len()).is_some() {
            let message = format!("pipe {} is configured twice", number.value);
            return Err(number.token.error(message));
        }
        self.pipes.push(pipe);
        Ok(())
    }

    /// Reads a rule that sends all packets of a direction through a pipe.
    fn rule(&mut self, reader: &mut TokenReader<'t>) -> Result<(), ImportError> {
        if let Some(number) = reader.next_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        {
            count(number, "the number of a rule")?;
        }
        reader.expect("pipe")?;
        let pipe = reader.value("the number of a pipe")?;
        let number = count(pipe, "the number of a pipe")?;
        if !reader.next_is("all") {
            reader.expect("ip")?;
        }
        for word in ["from", "any", "to", "any"] {
            reader.expect(word)?;
        }
        let way = reader.next_if(|word| matches!(word, "in" | "out")).is_some();
        let device = reader.next_if(|word| matches!(word, "via" | "xmit" | "recv"));
        if device.is_some() {
            reader.value("a device")?;
        }
        if !way && device.is_none_or(|word| word.text == "via") {
            let message = "the rule sends packets of both directions through one pipe, which is \
                           not supported";
            return Err(pipe.error(message).hint("one pipe for `in`, another for `out`"));
        }
        self.rules.push((pipe, number));
        Ok(())
    }

    /// Returns a direction for each pipe.
    pub(super) fn directions(self) -> Result<Vec<ParsedDirection>, ImportError> {
        let mut uses: Vec<Option<ScriptToken<'t>>> = vec![None; self.pipes.len()];
        for &(token, number) in &self.rules {
            let Some(&index) = self.numbers.get(&number) else {
                return Err(token.error(format!("pipe {number} is not configured in this text")));
            };
            if let Some(first) = uses[index].replace(token) {
                return Err(token.error(format!(
                    "pipe {number} has two rules, the first in line {}, which is not supported",
                    first.position.line
                )));
            }
        }
        let unused = self.pipes.iter().zip(&uses).find(|(_, used)| used.is_none());
        if let Some((pipe, _)) = unused.filter(|_| !self.rules.is_empty()) {
            let number = pipe.number;
            return Err(number.token.error(format!("no rule uses pipe {}", number.value)));
        }
        Ok(self.pipes.into_iter().map(Pipe::direction).collect())
    }
}

impl Pipe<'_> {
    fn direction(self) -> ParsedDirection {
        let mut elements = Vec::new();
        if let Some(loss) = self.loss {
            elements.push(PathElement::new(loss.token, format!("loss = \"{}\"", loss.value)));
        }
        if let Some(rate) = self.bandwidth {
            let queue = self.queue.as_ref();
            let buffer = queue.map_or(DEFAULT_QUEUE, |queue| queue.value.as_str());
            let bits = rate.value;
            let text = format!("link = {{ rate = \"{bits}bit/s\", buffer = \"{buffer}\" }}");
            let link = PathElement::new(rate.token, text);
            elements.push(match queue {
                Some(_) => link,
                None => link.comment("dummynet's default queue".to_owned()),
            });
        }
        if let Some(delay) = self.delay {
            elements.push(PathElement::new(
                delay.token,
                format!("delay = \"{}\"", time_text(delay.value)),
            ));
        }
        ParsedDirection {
            position: self.number.token.position,
            elements,
            namespace: String::new(),
            is_loopback: false,
        }
    }
}
