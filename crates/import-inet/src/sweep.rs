//! `${…}`: iterations of a parameter (OMNeT++ manual, "Parameter studies").
//!
//! Forms: `${1,2,5}`, `${N=1,2,5}`, `${1..9 step 4}`, `${N}`, `${10,20 ! N}` (parallel iteration).

use super::text::IniEntry;
use scenario::ScenarioError;

/// Maximum values of a sweep, and variants of a file.
const MOST_VALUES: usize = 10_000;
const MOST_VARIANTS: usize = 100_000;

/// One combination of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepVariant {
    /// Number of the variant, from 0.
    pub run: usize,
    /// Sweeps and their values, in the order of the file; an unnamed sweep is named after its line.
    pub values: Vec<(String, String)>,
}

/// The sweeps of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InetSweeps {
    file: String,
    all: Vec<InetSweep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct InetSweep {
    name: String,
    values: Vec<String>,
    /// The sweep that this one is parallel to.
    with: Option<String>,
    line: usize,
    /// Offset and width in the value of its entry, in characters.
    place: (usize, usize),
    entry: IniEntry,
}

const EXPECTED: &str = "values such as ${1,2,5}, ${N=1..9 step 4} or ${N}";
/// Variables predefined by OMNeT++.
const PREDEFINED: [&str; 2] = ["repetition", "runnumber"];

impl InetSweeps {
    /// Parses the sweeps of `entries`.
    pub(super) fn of(file: &str, entries: &[&IniEntry]) -> Result<Self, Vec<ScenarioError>> {
        let mut all: Vec<InetSweep> = Vec::new();
        let mut errors = Vec::new();
        for entry in entries {
            for (place, inside) in placeholders(file, entry)? {
                match sweep(inside, place, entry) {
                    Ok(None) => {}
                    Ok(Some(sweep)) if all.iter().all(|known| known.name != sweep.name) => {
                        all.push(sweep);
                    }
                    Ok(Some(sweep)) => {
                        let message = format!("duplicate sweep {}", sweep.name);
                        errors.push(entry.error(file, place, message, "a unique name"));
                    }
                    Err(message) => errors.push(entry.error(file, place, message, EXPECTED)),
                }
            }
        }
        let sweeps = Self { file: file.to_owned(), all };
        for sweep in &sweeps.all {
            let Some(with) = &sweep.with else { continue };
            let message = match sweeps.all.iter().find(|other| other.name == *with) {
                None => format!("there is no sweep {with} for a parallel iteration"),
                Some(other) if other.values.len() > sweep.values.len() => {
                    format!("{with} has {} values", other.values.len())
                }
                Some(_) => continue,
            };
            errors.push(sweep.entry.error(file, sweep.place, message, "the same number of values"));
        }
        if errors.is_empty() { Ok(sweeps) } else { Err(errors) }
    }

    /// Returns all combinations; the first sweep changes slowest.
    pub(super) fn variants(&self) -> Result<Vec<SweepVariant>, Vec<ScenarioError>> {
        let free: Vec<&InetSweep> = self.all.iter().filter(|sweep| sweep.with.is_none()).collect();
        let mut count = 1_usize;
        for sweep in &free {
            count = count.saturating_mul(sweep.values.len());
            if count > MOST_VARIANTS {
                let message = format!("more than {MOST_VARIANTS} combinations of values");
                let expected = "fewer";
                let error = sweep.entry.error(&self.file, sweep.place, message, expected);
                return Err(vec![error]);
            }
        }
        Ok((0..count).map(|run| self.variant(run, &free)).collect())
    }

    fn variant(&self, run: usize, free: &[&InetSweep]) -> SweepVariant {
        let mut rest = run;
        let mut indices: Vec<(&str, usize)> = Vec::new();
        for sweep in free.iter().rev() {
            indices.push((&sweep.name, rest % sweep.values.len()));
            rest /= sweep.values.len();
        }
        let index = |sweep: &InetSweep| {
            let name = sweep.with.as_deref().unwrap_or(&sweep.name);
            indices.iter().find(|(known, _)| *known == name).map_or(0, |(_, index)| *index)
        };
        let value = |sweep: &InetSweep| {
            let value = sweep.values.get(index(sweep)).cloned().unwrap_or_default();
            (sweep.name.clone(), value)
        };
        SweepVariant { run, values: self.all.iter().map(value).collect() }
    }

    /// Returns the names of the independent sweeps with more than one value.
    pub(super) fn axes(&self) -> Vec<String> {
        self.free().map(|(_, sweep)| sweep.name.clone()).collect()
    }

    /// Returns the variants of axis number `axis`, with the first value of all others.
    pub(super) fn along(&self, axis: usize) -> Vec<SweepVariant> {
        let free: Vec<&InetSweep> = self.all.iter().filter(|sweep| sweep.with.is_none()).collect();
        let Some((place, sweep)) = self.free().nth(axis) else { return Vec::new() };
        let stride: usize = free[place + 1..].iter().map(|sweep| sweep.values.len()).product();
        (0..sweep.values.len()).map(|value| self.variant(value * stride, &free)).collect()
    }

    fn free(&self) -> impl Iterator<Item = (usize, &InetSweep)> {
        let free = self.all.iter().filter(|sweep| sweep.with.is_none());
        free.enumerate().filter(|(_, sweep)| sweep.values.len() > 1)
    }

    /// Returns the value of `entry` in a variant.
    pub(super) fn value(
        &self,
        entry: &IniEntry,
        variant: &SweepVariant,
    ) -> Result<String, Vec<ScenarioError>> {
        let mut value = String::new();
        let mut done = 0;
        let characters: Vec<char> = entry.value.chars().collect();
        let placeholders = placeholders(&self.file, entry)?;
        for (place, inside) in placeholders {
            value.extend(&characters[done..place.0]);
            done = place.0 + place.1;
            let name = match sweep(inside, place, entry) {
                Ok(Some(sweep)) => sweep.name,
                _ => inside.trim().to_owned(),
            };
            match variant.values.iter().find(|(known, _)| *known == name) {
                Some((_, found)) => value += found,
                None if name == "repetition" => value.push('0'),
                None if name == "runnumber" => value += &variant.run.to_string(),
                None => {
                    let message = format!("there is no sweep {name}");
                    let error = entry.error(&self.file, place, message, EXPECTED);
                    return Err(vec![error]);
                }
            }
        }
        value.extend(&characters[done..]);
        Ok(value)
    }
}

type Placeholder<'e> = ((usize, usize), &'e str);

/// Returns the contents of each `${…}`, with offset and width in characters, braces included.
fn placeholders<'e>(
    file: &str,
    entry: &'e IniEntry,
) -> Result<Vec<Placeholder<'e>>, Vec<ScenarioError>> {
    let value = entry.value.as_str();
    let characters = |byte: usize| value[..byte].chars().count();
    let mut placeholders = Vec::new();
    let mut from = 0;
    while let Some(begin) = value[from..].find("${").map(|at| from + at) {
        let Some(end) = value[begin..].find('}').map(|at| begin + at) else {
            let at = characters(begin);
            let width = value.chars().count() - at;
            let message = "this sweep is not closed".to_owned();
            return Err(vec![entry.error(file, (at, width), message, "a closing }")]);
        };
        let at = characters(begin);
        placeholders.push(((at, characters(end + 1) - at), &value[begin + 2..end]));
        from = end + 1;
    }
    Ok(placeholders)
}

/// Parses the contents of the braces; `None` if it is the name of another sweep.
fn sweep(
    inside: &str,
    place: (usize, usize),
    entry: &IniEntry,
) -> Result<Option<InetSweep>, String> {
    let (named, list) = match inside.split_once('=') {
        Some((name, list)) => (Some(name.trim()), list),
        None => (None, inside),
    };
    let is_name = |text: &str| {
        let mut characters = text.chars();
        characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if named.is_none() && is_name(inside.trim()) {
        return Ok(None);
    }
    let name = match named {
        Some(name) if is_name(name) && !PREDEFINED.contains(&name) => name.to_owned(),
        Some(name) => return Err(format!("{name:?} is not a valid name of a sweep")),
        None => format!("line {}, column {}", entry.line, entry.value_column + place.0),
    };
    let (list, with) = match list.rsplit_once('!') {
        Some((list, with)) => (list, Some(with.trim().to_owned())),
        None => (list, None),
    };
    let mut values = Vec::new();
    for value in list.split(',').map(str::trim) {
        if value.is_empty() {
            return Err("a value is missing".to_owned());
        }
        match value.split_once("..") {
            Some((from, to)) => values.extend(range(from, to)?),
            None => values.push(value.to_owned()),
        }
        if values.len() > MOST_VALUES {
            return Err(format!("more than {MOST_VALUES} values"));
        }
    }
    Ok(Some(InetSweep { name, values, with, line: entry.line, place, entry: entry.clone() }))
}

/// Expands `from..to` or `from..to step by`, in exact decimals.
fn range(from: &str, to: &str) -> Result<Vec<String>, String> {
    let (to, step) = match to.split_once("step") {
        Some((to, step)) => (to, step),
        None => (to, "1"),
    };
    let numbers = [from, to, step].map(|text| decimal(text.trim()));
    let [Some(from), Some(to), Some(step)] = numbers else {
        return Err("a range needs numbers".to_owned());
    };
    let digits = from.1.max(to.1).max(step.1);
    let scaled = |(value, own): (i64, u32)| i128::from(value) * 10_i128.pow(digits - own);
    let (from, to, step) = (scaled(from), scaled(to), scaled(step));
    if step <= 0 || to < from {
        return Err("a range must ascend with a step above 0".to_owned());
    }
    if (to - from) / step >= MOST_VALUES as i128 {
        return Err(format!("more than {MOST_VALUES} values"));
    }
    let text = |value: i128| {
        let unit = 10_i128.pow(digits);
        let sign = if value < 0 { "-" } else { "" };
        let (whole, rest) = (value.abs() / unit, value.abs() % unit);
        match digits {
            0 => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{rest:0width$}", width = digits as usize),
        }
    };
    Ok((0..=(to - from) / step).map(|n| text(from + n * step)).collect())
}

/// Parses a decimal number into its digits and the number of decimal places.
pub(super) fn decimal(text: &str) -> Option<(i64, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    let plain = digits.strip_prefix('-').unwrap_or(&digits);
    let fits = !plain.is_empty() && plain.len() <= 15 && fraction.len() <= 12;
    let plain = plain.bytes().all(|byte| byte.is_ascii_digit());
    (fits && plain).then(|| digits.parse().ok().map(|value| (value, fraction.len() as u32)))?
}
