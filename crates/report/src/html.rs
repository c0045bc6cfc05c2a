//! A page as HTML.

mod data;
mod escape;
mod verdict;

use std::io::{self, Write};

use crate::assets::{PROGRAM, STYLE};
use crate::page::{Page, PagePart};
use crate::table::{ReportTable, TableCell, Tone};
use escape::{EscapedHtml, GroupedDigits};

/// Content security policy: nothing may be fetched.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

/// The icon: the hand of a clock driven by a returning arrow.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Ccircle \
                    cx='16' cy='16' r='13' fill='none' stroke='%230072b2' stroke-width='4'/%3E%3Cpath d='M16 8v8l6 \
                    4' fill='none' stroke='%23d55e00' stroke-width='4'/%3E%3C/svg%3E";

pub(crate) fn write(out: &mut impl Write, page: &Page) -> io::Result<()> {
    let title = EscapedHtml(&page.title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"{}\">\n\
         <link rel=\"icon\" href=\"{ICON}\">\n<title>{title}</title>\n<style>\n",
        EscapedHtml(&page.maker)
    )?;
    STYLE.iter().try_for_each(|sheet| out.write_all(sheet.as_bytes()))?;
    write!(
        out,
        "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">Skip to the content</a>\n\
         <header>\n<div class=\"bar\"><span class=\"maker\">{}</span>\
         <button type=\"button\" id=\"theme\" title=\"Colours of the page\">Theme: system</button></div>\n\
         <h1>{title}</h1>\n",
        EscapedHtml(&page.maker)
    )?;
    if !page.lead.is_empty() {
        writeln!(out, "<p class=\"lead\">{}</p>", EscapedHtml(&page.lead))?;
    }
    if !page.facts.is_empty() {
        writeln!(out, "<dl class=\"facts\">")?;
        for (name, value) in &page.facts {
            writeln!(
                out,
                "<div><dt>{}</dt><dd>{}</dd></div>",
                EscapedHtml(name),
                EscapedHtml(value)
            )?;
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

/// Writes the table of contents, if there are several headings.
fn write_contents(out: &mut impl Write, parts: &[PagePart]) -> io::Result<()> {
    let headings = parts.iter().filter_map(|part| match part {
        PagePart::Heading(text) => Some(text),
        _ => None,
    });
    let headings: Vec<&String> = headings.collect();
    if headings.len() < 2 {
        return Ok(());
    }
    writeln!(out, "<nav aria-label=\"Contents\"><ul>")?;
    for (number, text) in headings.iter().enumerate() {
        writeln!(out, "<li><a href=\"#part-{}\">{}</a></li>", number + 1, EscapedHtml(text))?;
    }
    writeln!(out, "</ul></nav>")
}

fn write_part(out: &mut impl Write, part: &PagePart, heading: &mut u32) -> io::Result<()> {
    match part {
        PagePart::Heading(text) => {
            *heading += 1;
            writeln!(out, "<h2 id=\"part-{heading}\">{}</h2>", EscapedHtml(text))
        }
        PagePart::Subheading(text) => writeln!(out, "<h3>{}</h3>", EscapedHtml(text)),
        PagePart::Text(text) => writeln!(out, "<p>{}</p>", EscapedHtml(text)),
        PagePart::Verbatim(text) => {
            writeln!(
                out,
                "<pre tabindex=\"0\" role=\"group\">{}</pre>",
                EscapedHtml(text.trim_end())
            )
        }
        PagePart::Folded { title, text } => writeln!(
            out,
            "<details><summary>{}</summary><pre tabindex=\"0\" role=\"group\">{}</pre></details>",
            EscapedHtml(title),
            EscapedHtml(text.trim_end())
        ),
        PagePart::Verdict(answer) => verdict::write(out, answer),
        PagePart::Figures(figures) => {
            writeln!(out, "<dl class=\"figures\">")?;
            for (name, value) in figures {
                writeln!(
                    out,
                    "<div><dt>{}</dt><dd>{}</dd></div>",
                    EscapedHtml(name),
                    EscapedHtml(value)
                )?;
            }
            writeln!(out, "</dl>")
        }
        PagePart::Table(table) => write_table(out, table),
        PagePart::Plots(plots) => writeln!(
            out,
            "<section class=\"plots\" id=\"plots-{}\" aria-label=\"{}\"></section>",
            EscapedHtml(&plots.id),
            EscapedHtml(&plots.title)
        ),
        PagePart::Grid(grid) => {
            writeln!(
                out,
                "<section class=\"grid\" id=\"grid-{}\"></section>",
                EscapedHtml(&grid.id)
            )
        }
    }
}

fn write_table(out: &mut impl Write, table: &ReportTable) -> io::Result<()> {
    let long = match (table.is_long, table.is_searchable) {
        (true, true) => " long search",
        (true, false) => " long",
        (false, true) => " search",
        (false, false) => "",
    };
    writeln!(
        out,
        "<div class=\"table{long}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>",
        EscapedHtml(&table.caption)
    )?;
    if !table.caption.is_empty() {
        writeln!(out, "<caption>{}</caption>", EscapedHtml(&table.caption))?;
    }
    write!(out, "<thead><tr>")?;
    for column in &table.columns {
        let class = if column.is_number { " class=\"number\"" } else { "" };
        write!(out, "<th scope=\"col\"{class}>{}</th>", EscapedHtml(&column.name))?;
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
        writeln!(out, "<p class=\"note\">{}</p>", EscapedHtml(&table.note))?;
    }
    Ok(())
}

fn write_cell(
    out: &mut impl Write,
    table: &ReportTable,
    cell: &TableCell,
    is_number: bool,
) -> io::Result<()> {
    let number = if is_number { "number" } else { "" };
    let tone = match cell.tone {
        Tone::Plain => "",
        Tone::Good => " good",
        Tone::Bad => " bad",
        Tone::Quiet => " quiet",
    };
    match format!("{number}{tone}").trim() {
        "" => write!(out, "<td")?,
        class => write!(out, "<td class=\"{class}\"")?,
    }
    match cell.rank {
        Some(rank) => write!(out, " data-rank=\"{rank}\">")?,
        None => write!(out, ">")?,
    }
    let leads_to = cell.leads_to.filter(|_| !table.plots.is_empty());
    if let Some((from, to)) = leads_to {
        write!(
            out,
            "<button type=\"button\" class=\"jump\" data-plots=\"{}\" data-from=\"{from}\" \
             data-to=\"{to}\">",
            EscapedHtml(&table.plots)
        )?;
    }
    match is_number {
        true => write!(out, "{}", GroupedDigits(&cell.text))?,
        false => write!(out, "{}", EscapedHtml(&cell.text))?,
    }
    let button = if leads_to.is_some() { "</button>" } else { "" };
    write!(out, "{button}</td>")
}

#[cfg(test)]
mod tests;
