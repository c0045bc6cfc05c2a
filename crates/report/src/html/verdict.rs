//! The card of a verdict.

use core::fmt;
use std::io::{self, Write};

use super::escape::EscapedHtml;
use crate::verdict::{Verdict, VerdictChange, VerdictPart};

/// Share of the bar, in thousandths, from which a part has room for its letter.
const LETTER: u128 = 30;
/// Changes beyond the first are a list.
const LARGE: usize = 1;

/// Thousandths as per cent.
struct Percent(u128);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

pub(super) fn write(out: &mut impl Write, verdict: &Verdict) -> io::Result<()> {
    writeln!(out, "<section class=\"verdict\" aria-label=\"Verdict\">")?;
    if !verdict.sentence.is_empty() {
        writeln!(out, "<p class=\"says\">{}</p>", EscapedHtml(&verdict.sentence))?;
    }
    for (number, change) in verdict.changes.iter().enumerate() {
        write_change(out, change, number < LARGE)?;
    }
    write_bar(out, verdict)?;
    if !verdict.facts.is_empty() {
        writeln!(out, "<dl class=\"facts\">")?;
        for (name, value) in &verdict.facts {
            let (name, value) = (EscapedHtml(name), EscapedHtml(value));
            writeln!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>")?;
        }
        writeln!(out, "</dl>")?;
    }
    writeln!(out, "</section>")
}

fn write_bar(out: &mut impl Write, verdict: &Verdict) -> io::Result<()> {
    let parts: Vec<&VerdictPart> = verdict.parts.iter().filter(|part| part.weight > 0).collect();
    let whole: u128 = parts.iter().map(|part| u128::from(part.weight)).sum();
    if whole == 0 {
        return Ok(());
    }
    let said = parts.iter().map(|part| format!("{} {}", part.name, part.text));
    let said = said.collect::<Vec<_>>().join("; ");
    writeln!(out, "<p class=\"whole\">{}</p>", EscapedHtml(&verdict.whole))?;
    // Attributes of shapes: a page within another may not have styles of its own elements.
    write!(out, "<svg class=\"timebar\" role=\"img\" aria-label=\"{}\">", EscapedHtml(&said))?;
    let mut begin = 0;
    for part in &parts {
        let permille = u128::from(part.weight) * 1_000 / whole;
        let class = part.colour.class();
        write!(
            out,
            "<rect class=\"{class}\" x=\"{}%\" width=\"{}%\" height=\"100%\"><title>{} {}</title></rect>",
            Percent(begin),
            Percent(permille.max(2)),
            EscapedHtml(&part.name),
            EscapedHtml(&part.text)
        )?;
        if permille >= LETTER {
            let middle = Percent(begin + permille / 2);
            let letter = part.letter.to_string();
            write!(
                out,
                "<text class=\"{class}\" x=\"{middle}%\" y=\"67%\">{}</text>",
                EscapedHtml(&letter)
            )?;
        }
        begin += permille;
    }
    writeln!(out, "</svg>\n<ul class=\"timekey\">")?;
    for part in &parts {
        writeln!(
            out,
            "<li><i class=\"{}\" aria-hidden=\"true\">{}</i>{} <b>{}</b></li>",
            part.colour.class(),
            EscapedHtml(&part.letter.to_string()),
            EscapedHtml(&part.name),
            EscapedHtml(&part.text)
        )?;
    }
    writeln!(out, "</ul>")
}

fn write_change(out: &mut impl Write, change: &VerdictChange, is_large: bool) -> io::Result<()> {
    let class = if is_large { "change large" } else { "change" };
    let (before, after) = (EscapedHtml(&change.before), EscapedHtml(&change.after));
    writeln!(out, "<div class=\"{class}\">")?;
    match change.permille {
        Some((low, high)) => {
            let class = if high < 1_000 { "good" } else { "bad" };
            writeln!(
                out,
                "<p class=\"gain\">{before} <span aria-label=\"becomes\">→</span> <strong \
                 class=\"{class}\">{after}</strong></p>"
            )?;
            // Bars of the times, the longer one over the whole width.
            let widest = u64::from(high.max(1_000));
            let width = |permille: u32| Percent(u128::from(permille) * 1_000 / u128::from(widest));
            writeln!(
                out,
                "<svg class=\"times\" aria-hidden=\"true\"><rect class=\"was\" width=\"{}%\" height=\"40%\"/><rect \
                 class=\"is {class}\" y=\"58%\" width=\"{}%\" height=\"40%\"/><rect class=\"may {class}\" \
                 y=\"58%\" width=\"{}%\" height=\"40%\"/></svg>",
                width(1_000),
                width(low),
                width(high)
            )?;
        }
        None => writeln!(out, "<p class=\"gain quiet\">{after}</p>")?,
    }
    writeln!(out, "<p class=\"what\">with {}</p>", EscapedHtml(&change.what))?;
    if !change.note.is_empty() {
        writeln!(out, "<p class=\"note\">{}</p>", EscapedHtml(&change.note))?;
    }
    writeln!(out, "</div>")
}
