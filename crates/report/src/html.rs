//! A page as HTML.

mod data;
mod escape;

use std::io::{self, Write};

use crate::assets::{PROGRAM, STYLE};
use crate::page::{Page, Part};
use crate::table::{Cell, Table, Tone};
use escape::Escaped;

/// Nothing may be fetched, from nowhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

/// The hand of a clock that is moved by an arrow coming back.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Ccircle \
                    cx='16' cy='16' r='13' fill='none' stroke='%230072b2' stroke-width='4'/%3E%3Cpath d='M16 8v8l6 \
                    4' fill='none' stroke='%23d55e00' stroke-width='4'/%3E%3C/svg%3E";

pub(crate) fn write(out: &mut impl Write, page: &Page) -> io::Result<()> {
    let title = Escaped(&page.title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"{}\">\n\
         <link rel=\"icon\" href=\"{ICON}\">\n<title>{title}</title>\n<style>\n",
        Escaped(&page.maker)
    )?;
    STYLE.iter().try_for_each(|sheet| out.write_all(sheet.as_bytes()))?;
    write!(
        out,
        "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">Skip to the content</a>\n\
         <header>\n<div class=\"bar\"><span class=\"maker\">{}</span>\
         <button type=\"button\" id=\"theme\" title=\"Colours of the page\">Theme: system</button></div>\n\
         <h1>{title}</h1>\n",
        Escaped(&page.maker)
    )?;
    if !page.lead.is_empty() {
        writeln!(out, "<p class=\"lead\">{}</p>", Escaped(&page.lead))?;
    }
    if !page.facts.is_empty() {
        writeln!(out, "<dl class=\"facts\">")?;
        for (name, value) in &page.facts {
            writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Escaped(name), Escaped(value))?;
        }
        writeln!(out, "</dl>")?;
    }
    write_contents(out, &page.parts)?;
    writeln!(out, "</header>\n<main id=\"content\">")?;
    writeln!(
        out,
        "<noscript><p class=\"warn\">Plots need JavaScript; tables do not.</p></noscript>"
    )?;
    let mut heading = 0;
    for part in &page.parts {
        write_part(out, part, &mut heading)?;
    }
    writeln!(out, "</main>")?;
    data::write(out, &page.parts)?;
    writeln!(out, "<script>\n(() => {{\n\"use strict\";")?;
    PROGRAM.iter().try_for_each(|part| out.write_all(part.as_bytes()))?;
    writeln!(out, "}})();\n</script>\n</body>\n</html>")
}

/// Links to the headings, if there are several.
fn write_contents(out: &mut impl Write, parts: &[Part]) -> io::Result<()> {
    let headings = parts.iter().filter_map(|part| match part {
        Part::Heading(text) => Some(text),
        _ => None,
    });
    let headings: Vec<&String> = headings.collect();
    if headings.len() < 2 {
        return Ok(());
    }
    writeln!(out, "<nav aria-label=\"Contents\"><ul>")?;
    for (number, text) in headings.iter().enumerate() {
        writeln!(out, "<li><a href=\"#part-{}\">{}</a></li>", number + 1, Escaped(text))?;
    }
    writeln!(out, "</ul></nav>")
}

fn write_part(out: &mut impl Write, part: &Part, heading: &mut u32) -> io::Result<()> {
    match part {
        Part::Heading(text) => {
            *heading += 1;
            writeln!(out, "<h2 id=\"part-{heading}\">{}</h2>", Escaped(text))
        }
        Part::Subheading(text) => writeln!(out, "<h3>{}</h3>", Escaped(text)),
        Part::Text(text) => writeln!(out, "<p>{}</p>", Escaped(text)),
        Part::Verbatim(text) => {
            writeln!(out, "<pre tabindex=\"0\" role=\"group\">{}</pre>", Escaped(text.trim_end()))
        }
        Part::Folded { title, text } => writeln!(
            out,
            "<details><summary>{}</summary><pre tabindex=\"0\" role=\"group\">{}</pre></details>",
            Escaped(title),
            Escaped(text.trim_end())
        ),
        Part::Figures(figures) => {
            writeln!(out, "<dl class=\"figures\">")?;
            for (name, value) in figures {
                writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Escaped(name), Escaped(value))?;
            }
            writeln!(out, "</dl>")
        }
        Part::Table(table) => write_table(out, table),
        Part::Plots(plots) => writeln!(
            out,
            "<section class=\"plots\" id=\"plots-{}\" aria-label=\"{}\"></section>",
            Escaped(&plots.id),
            Escaped(&plots.title)
        ),
        Part::Grid(grid) => {
            writeln!(out, "<section class=\"grid\" id=\"grid-{}\"></section>", Escaped(&grid.id))
        }
    }
}

fn write_table(out: &mut impl Write, table: &Table) -> io::Result<()> {
    let long = if table.is_long { " long" } else { "" };
    writeln!(
        out,
        "<div class=\"table{long}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>",
        Escaped(&table.caption)
    )?;
    if !table.caption.is_empty() {
        writeln!(out, "<caption>{}</caption>", Escaped(&table.caption))?;
    }
    write!(out, "<thead><tr>")?;
    for column in &table.columns {
        let class = if column.is_number { " class=\"number\"" } else { "" };
        write!(out, "<th scope=\"col\"{class}>{}</th>", Escaped(&column.name))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for row in &table.rows {
        write!(out, "<tr>")?;
        for (index, cell) in row.iter().enumerate() {
            let is_number = table.columns.get(index).is_some_and(|column| column.is_number);
            write_cell(out, table, cell, is_number)?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")?;
    if !table.note.is_empty() {
        writeln!(out, "<p class=\"note\">{}</p>", Escaped(&table.note))?;
    }
    Ok(())
}

fn write_cell(out: &mut impl Write, table: &Table, cell: &Cell, is_number: bool) -> io::Result<()> {
    let number = if is_number { "number" } else { "" };
    let tone = match cell.tone {
        Tone::Plain => "",
        Tone::Good => " good",
        Tone::Bad => " bad",
        Tone::Quiet => " quiet",
    };
    match format!("{number}{tone}").trim() {
        "" => write!(out, "<td>")?,
        class => write!(out, "<td class=\"{class}\">")?,
    }
    match cell.leads_to {
        Some((from, to)) if !table.plots.is_empty() => write!(
            out,
            "<button type=\"button\" class=\"jump\" data-plots=\"{}\" data-from=\"{from}\" \
             data-to=\"{to}\">{}</button>",
            Escaped(&table.plots),
            Escaped(&cell.text)
        )?,
        _ => write!(out, "{}", Escaped(&cell.text))?,
    }
    write!(out, "</td>")
}

#[cfg(test)]
mod tests;
