//! Figures in the OpenMetrics text format 1.0, for Prometheus and what reads its format.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A family of gauges: one figure with any number of label sets.
#[derive(Debug, Clone, PartialEq)]
pub struct GaugeFamily {
    /// Name, which ends with the unit if there is one.
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    /// Labels as text, and value.
    samples: Vec<(String, f64)>,
    /// The labels of the samples.
    present: BTreeSet<String>,
}

impl GaugeFamily {
    /// An empty family; `name` must end with `_` and `unit`, unless the unit is empty.
    pub const fn new(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, help, samples: Vec::new(), present: BTreeSet::new() }
    }

    /// Adds a sample. A value that is not finite means that there is none; of equal label sets,
    /// which the format forbids, the first stays.
    pub fn add(&mut self, labels: &[(&'static str, String)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escape(value))).collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        if value.is_finite() && self.present.insert(labels.clone()) {
            self.samples.push((labels, value));
        }
    }

    fn write(&self, out: &mut String) {
        let Self { name, unit, help, .. } = self;
        let _ = writeln!(out, "# TYPE {name} gauge");
        if !unit.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
        let _ = writeln!(out, "# HELP {name} {}", escape(help));
        for (labels, value) in &self.samples {
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    }
}

/// The families as text; those without samples are left out.
pub fn exposition(families: &[GaugeFamily]) -> String {
    let mut out = String::new();
    let filled = families.iter().filter(|family| !family.samples.is_empty());
    filled.for_each(|family| family.write(&mut out));
    out + "# EOF\n"
}

/// Escapes the value of a label or a help text; other control characters become U+FFFD.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_text() {
        let mut goodput = GaugeFamily::new("a_goodput_bytes", "bytes", "Payload");
        goodput.add(&[("flow", "a \"b\"\\\n".to_owned())], 0.5);
        goodput.add(&[("flow", "infinite".to_owned())], f64::INFINITY);
        goodput.add(&[], 1e21);
        goodput.add(&[], 2.0);
        let empty = GaugeFamily::new("a_loss", "", "None");
        assert_eq!(
            exposition(&[goodput, empty]),
            "# TYPE a_goodput_bytes gauge\n# UNIT a_goodput_bytes bytes\n\
             # HELP a_goodput_bytes Payload\na_goodput_bytes{flow=\"a \\\"b\\\"\\\\\\n\"} 0.5\n\
             a_goodput_bytes 1000000000000000000000\n# EOF\n"
        );
    }
}
