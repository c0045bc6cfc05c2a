//! Reads commands of `tc … netem` and `ipfw pipe … config`, and what `tc qdisc show` prints.

use core::fmt::Write;

/// A direction of a path as commands describe it; text for a scenario.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedDirection {
    /// Rate in bit/s.
    rate: Option<u64>,
    /// Buffer, as a size of a scenario: `100p` or `64000B`.
    buffer: Option<String>,
    /// Limit of netem in packets, which counts those in the delay too.
    limit: Option<u64>,
    /// Delay in ns.
    delay: u64,
    /// Half the width of the uniform random delay, in ns.
    jitter: u64,
    /// Elements whose text is ready: loss, duplication, corruption.
    others: Vec<String>,
}

/// A word that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl core::fmt::Display for ParseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl core::error::Error for ParseError {}

/// Reads one direction for each `netem` or `pipe … config` of the text; other lines are skipped.
///
/// # Errors
/// The first option that a scenario cannot have, or that is no option.
pub fn parse(text: &str) -> Result<Vec<ParsedDirection>, ParseError> {
    let mut directions = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_some_and(|word| word.starts_with('#')) {
            continue;
        }
        let rest_after =
            |word| words.iter().position(|one| *one == word).map(|at| &words[at + 1..]);
        let parsed = if let Some(rest) = rest_after("netem") {
            netem(rest)
        } else if words.contains(&"pipe")
            && let Some(rest) = rest_after("config")
        {
            dummynet(rest)
        } else {
            continue;
        };
        let located = parsed.map_err(|message| ParseError { line: number + 1, message })?;
        directions.push(located);
    }
    Ok(directions)
}

fn netem(words: &[&str]) -> Result<ParsedDirection, String> {
    let mut of = ParsedDirection::default();
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        let missing = || format!("`{word}` has no value");
        match word {
            // What `tc qdisc show` prints between the name of the discipline and its options.
            "root" => {}
            "refcnt" | "seed" | "dev" => drop(words.next()),
            handle if handle.ends_with(':') => {}
            "limit" => {
                let packets = words.next().ok_or_else(missing)?;
                let packets: u64 =
                    packets.parse().map_err(|_| format!("limit `{packets}`: expected packets"))?;
                of.limit = Some(packets);
            }
            "delay" => {
                of.delay = time(words.next().ok_or_else(missing)?)?;
                if let Some(jitter) = words.next_if(|next| is_number(next)) {
                    of.jitter = time(jitter)?;
                }
                correlation(word, &mut words)?;
            }
            "distribution" => {
                let name = words.next().ok_or_else(missing)?;
                if name != "uniform" {
                    return Err(format!("distribution `{name}` is not supported, only uniform"));
                }
            }
            "loss" => {
                let mut share = words.next().ok_or_else(missing)?;
                if share == "gemodel" {
                    let p = percent(words.next().ok_or("gemodel: expected p")?)?;
                    let mut next_or = |default| {
                        words.next_if(|next| is_number(next)).map_or(Ok(default), percent)
                    };
                    let (r, lost_bad, lost_good) =
                        (next_or(100.0 - p)?, next_or(100.0)?, next_or(0.0)?);
                    of.others.push(format!(
                        "{{ loss = {{ gilbert_elliott = {{ p = \"{p}%\", r = \"{r}%\", h = \"{}%\", \
                         k = \"{}%\" }} }} }}",
                        100.0 - lost_bad,
                        100.0 - lost_good
                    ));
                    continue;
                }
                if share == "random" {
                    share = words.next().ok_or("loss random: expected a percentage")?;
                }
                of.others.push(format!("{{ loss = \"{}%\" }}", percent(share)?));
                correlation(word, &mut words)?;
            }
            "duplicate" | "corrupt" => {
                of.others.push(format!(
                    "{{ {word} = \"{}%\" }}",
                    percent(words.next().ok_or_else(missing)?)?
                ));
                correlation(word, &mut words)?;
            }
            "rate" => of.rate = Some(rate(words.next().ok_or_else(missing)?)?),
            other => return Err(format!("netem: option `{other}` is not supported")),
        }
    }
    Ok(of)
}

fn correlation<'a>(
    of: &str,
    words: &mut core::iter::Peekable<impl Iterator<Item = &'a str>>,
) -> Result<(), String> {
    match words.next_if(|next| is_number(next)) {
        Some(more) if percent(more)? > 0.0 => {
            Err(format!("{of}: correlation {more} is not supported"))
        }
        _ => Ok(()),
    }
}

fn dummynet(words: &[&str]) -> Result<ParsedDirection, String> {
    let mut of = ParsedDirection::default();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{word}` has no value"))?;
        match word {
            "bw" => of.rate = Some(rate(value)?),
            "delay" => {
                // A number alone is milliseconds, unlike for tc.
                let bare = value.chars().all(|c| c.is_ascii_digit() || c == '.');
                of.delay = if bare { time(&format!("{value}ms"))? } else { time(value)? };
            }
            "queue" => {
                let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let count: u64 =
                    digits.parse().map_err(|_| format!("queue `{value}`: expected a size"))?;
                let (scale, unit) = match value[digits.len()..].to_ascii_lowercase().as_str() {
                    "" => (1, 'p'),
                    "b" | "bytes" => (1, 'B'),
                    "kb" | "kbytes" => (1_024, 'B'),
                    "mb" | "mbytes" => (1_024 * 1_024, 'B'),
                    unit => return Err(format!("queue: unit `{unit}` is not known")),
                };
                let count: Option<u64> = count.checked_mul(scale);
                let count = count.ok_or_else(|| format!("queue `{value}` is out of range"))?;
                of.buffer = Some(format!("{count}{unit}"));
            }
            "plr" => {
                let share = value.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                let share: f64 = share.ok_or_else(|| format!("plr `{value}`: expected 0 to 1"))?;
                of.others.push(format!("{{ loss = \"{}%\" }}", share * 100.0));
            }
            other => return Err(format!("dummynet: option `{other}` is not supported")),
        }
    }
    Ok(of)
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

fn split(word: &str) -> Result<(f64, String), String> {
    let at = word.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(word.len());
    let number: f64 = word[..at].parse().map_err(|_| format!("`{word}` is no number"))?;
    if !number.is_finite() || number < 0.0 {
        return Err(format!("`{word}` is out of range"));
    }
    Ok((number, word[at..].to_ascii_lowercase()))
}

fn percent(word: &str) -> Result<f64, String> {
    let (number, unit) = split(word)?;
    match unit.as_str() {
        "%" if number <= 100.0 => Ok(number),
        "%" => Err(format!("`{word}` is more than 100 %")),
        _ => Err(format!("`{word}`: expected a percentage such as 1%")),
    }
}

/// Nanoseconds; a number alone is microseconds, as for tc.
fn time(word: &str) -> Result<u64, String> {
    let (number, unit) = split(word)?;
    let scale = match unit.as_str() {
        "ns" | "nsec" | "nsecs" => 1.0,
        "" | "us" | "usec" | "usecs" => 1e3,
        "ms" | "msec" | "msecs" => 1e6,
        "s" | "sec" | "secs" => 1e9,
        _ => return Err(format!("`{word}`: expected a time such as 10ms")),
    };
    Ok((number * scale).round() as u64)
}

/// Bits per second; `bps` is bytes per second for tc.
fn rate(word: &str) -> Result<u64, String> {
    let (number, unit) = split(word)?;
    let unit = unit.trim_end_matches("/s");
    let scale = match unit {
        "" | "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        "bps" | "byte" => 8.0,
        "kbps" | "kbyte" => 8e3,
        "mbps" | "mbyte" => 8e6,
        _ => return Err(format!("`{word}`: expected a rate such as 10mbit")),
    };
    Ok((number * scale).round() as u64)
}

impl ParsedDirection {
    /// Returns the elements as an array of TOML.
    pub fn toml(&self) -> String {
        let mut elements = self.others.clone();
        if let Some(rate) = self.rate {
            let mut link = format!("{{ link = {{ rate = \"{rate}bit/s\"");
            let of_limit = self.limit.map(|limit| {
                let queued = limit.saturating_sub(super::packets_in(rate, self.delay));
                format!("{}p", queued.max(1))
            });
            if let Some(buffer) = self.buffer.as_ref().or(of_limit.as_ref()) {
                let _ = write!(link, ", buffer = \"{buffer}\"");
            }
            elements.push(link + " } }");
        }
        // The mean of a uniform delay is netem's first figure, the shortest is ours.
        let least = self.delay.saturating_sub(self.jitter);
        if least > 0 {
            elements.push(format!("{{ delay = \"{least}ns\" }}"));
        }
        if self.jitter > 0 {
            elements.push(format!("{{ jitter = \"{}ns\" }}", self.jitter.saturating_mul(2)));
        }
        let lines: String = elements.iter().map(|one| format!("    {one},\n")).collect();
        format!("[\n{lines}]")
    }
}
