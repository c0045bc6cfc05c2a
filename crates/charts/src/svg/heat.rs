//! Heat maps.

use std::io::{self, Write};

use super::layout::{MARGIN, PALE_INK, SMALL, TEXT, TITLE};
use super::text::{EscapedXml, width};
use super::write::{FONTS, INK};

/// A heat map: a table of values, coloured between the minimum and the maximum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeatMap<'a> {
    /// Title, one line.
    pub title: &'a str,
    /// Source in one line; omitted if empty.
    pub subtitle: &'a str,
    /// Titles of the row axis and the column axis.
    pub sides: [&'a str; 2],
    /// Row values.
    pub rows: Vec<String>,
    /// Column values.
    pub columns: Vec<String>,
    /// Cells, row by row; `None` if empty.
    pub cells: Vec<Option<HeatCell>>,
    /// The minimum and the maximum, formatted.
    pub ends: [String; 2],
}

/// A cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeatCell {
    /// Its value, formatted.
    pub text: String,
    /// Its uncertainty, formatted; omitted if empty.
    pub half: String,
    /// Its position between the minimum, 0, and the maximum, 1000.
    pub part: u16,
}

/// The viridis colour map by Stéfan van der Walt and Nathaniel Smith: perceptually uniform, also in
/// print and for colour-blind readers.
const COLOURS: [[i32; 3]; 10] = [
    [68, 1, 84],
    [72, 40, 120],
    [62, 74, 137],
    [49, 104, 142],
    [38, 130, 142],
    [31, 158, 137],
    [53, 183, 121],
    [110, 206, 88],
    [181, 222, 43],
    [253, 231, 37],
];
const HIGH: i64 = 44;
const GAP: i64 = 2;
/// Minimum width of a cell.
const WIDE: i64 = 84;

fn colour(part: u16) -> [i32; 3] {
    let position = i32::from(part.min(1_000)) * 9;
    let below = (position / 1_000).min(8) as usize;
    let rest = position - below as i32 * 1_000;
    let mix = |index: usize| {
        let (from, to) = (COLOURS[below][index], COLOURS[below + 1][index]);
        from + ((to - from) * rest + 500).div_euclid(1_000)
    };
    [mix(0), mix(1), mix(2)]
}

impl HeatMap<'_> {
    /// Writes the heat map.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let widest = |texts: &[String], size| texts.iter().map(|text| width(text, size)).max();
        let side = widest(&self.rows, TEXT).unwrap_or(0).max(width(self.sides[0], SMALL)) + 12;
        let texts = self.cells.iter().flatten().map(|cell| width(&cell.text, TEXT)).max();
        let columns = widest(&self.columns, TEXT).unwrap_or(0);
        let cell = WIDE.max(columns + 12).max(texts.unwrap_or(0) + 16);
        let left = MARGIN + side;
        let full = left + cell * self.columns.len() as i64;
        let names = [
            width(self.title, TITLE),
            width(self.subtitle, TEXT),
            width(self.sides[1], SMALL) + side,
        ];
        let wide = names.iter().map(|name| name + MARGIN).fold(full, i64::max).max(420) + MARGIN;
        let top = MARGIN + 22 + if self.subtitle.is_empty() { 0 } else { 18 } + 44;
        let bottom = top + HIGH * self.rows.len() as i64;
        let high = bottom + 52;
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" \
             viewBox=\"0 0 {wide} {high}\" role=\"img\" font-family=\"{FONTS}\" \
             font-size=\"{TEXT}\" fill=\"{INK}\">\n<title>{}</title>\n\
             <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"7\" fill=\"#ffffff\" \
             stroke=\"#d0d7de\"/>",
            EscapedXml(self.title),
            wide - 1,
            high - 1
        )?;
        let base = MARGIN + TITLE - 3;
        writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{base}\" font-size=\"{TITLE}\" font-weight=\"600\">{}</text>",
            EscapedXml(self.title)
        )?;
        if !self.subtitle.is_empty() {
            let base = base + 19;
            writeln!(
                out,
                "<text x=\"{MARGIN}\" y=\"{base}\" fill=\"{PALE_INK}\">{}</text>",
                EscapedXml(self.subtitle)
            )?;
        }
        self.write_sides(out, left, top, cell)?;
        for (number, found) in self.cells.iter().enumerate() {
            let (row, column) =
                (number / self.columns.len().max(1), number % self.columns.len().max(1));
            let (x, y) = (left + cell * column as i64, top + HIGH * row as i64);
            write_cell(out, found.as_ref(), x, y, cell)?;
        }
        self.write_scale(out, left, bottom + 16)?;
        writeln!(out, "</svg>")
    }

    fn write_sides(&self, out: &mut impl Write, left: i64, top: i64, cell: i64) -> io::Result<()> {
        writeln!(
            out,
            "<g fill=\"{PALE_INK}\" font-size=\"{SMALL}\"><text x=\"{}\" y=\"{}\" \
             text-anchor=\"end\">{}</text><text x=\"{left}\" y=\"{}\">{}</text></g>",
            left - 8,
            top - 8,
            EscapedXml(self.sides[0]),
            top - 28,
            EscapedXml(self.sides[1])
        )?;
        for (row, text) in self.rows.iter().enumerate() {
            let y = top + HIGH * row as i64 + HIGH / 2 + 4;
            let x = left - 8;
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{}</text>",
                EscapedXml(text)
            )?;
        }
        for (column, text) in self.columns.iter().enumerate() {
            let x = left + cell * column as i64 + cell / 2;
            let y = top - 8;
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
                EscapedXml(text)
            )?;
        }
        Ok(())
    }

    /// Writes the colour scale.
    fn write_scale(&self, out: &mut impl Write, left: i64, top: i64) -> io::Result<()> {
        let base = top + 11;
        let text = |out: &mut dyn Write, x: i64, anchor: &str, text: &str| {
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{base}\" text-anchor=\"{anchor}\" font-size=\"{SMALL}\" \
                 fill=\"{PALE_INK}\">{}</text>",
                EscapedXml(text)
            )
        };
        let begin = left.max(MARGIN + width(&self.ends[0], SMALL) + 8);
        text(out, begin - 8, "end", &self.ends[0])?;
        const STEPS: i64 = 40;
        for step in 0..STEPS {
            let [r, g, b] = colour((step * 1_000 / (STEPS - 1)) as u16);
            let x = begin + step * 4;
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"{top}\" width=\"4\" height=\"12\" fill=\"#{r:02x}{g:02x}{b:02x}\"/>"
            )?;
        }
        text(out, begin + STEPS * 4 + 8, "start", &self.ends[1])
    }
}

fn write_cell(
    out: &mut impl Write,
    cell: Option<&HeatCell>,
    x: i64,
    y: i64,
    wide: i64,
) -> io::Result<()> {
    let (w, h) = (wide - GAP, HIGH - GAP);
    let Some(cell) = cell else {
        return writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"3\" fill=\"#eaeef2\"/>"
        );
    };
    let [r, g, b] = colour(cell.part);
    // Readable text colour, by the luma weights of Rec. 601.
    let ink = if 299 * r + 587 * g + 114 * b > 118_000 { "#10151a" } else { "#ffffff" };
    let (middle, base) = (x + w / 2, y + h / 2 + if cell.half.is_empty() { 4 } else { -2 });
    writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"3\" \
         fill=\"#{r:02x}{g:02x}{b:02x}\"/>\n<text x=\"{middle}\" y=\"{base}\" \
         text-anchor=\"middle\" fill=\"{ink}\">{}</text>",
        EscapedXml(&cell.text)
    )?;
    if cell.half.is_empty() {
        return Ok(());
    }
    let base = base + 14;
    writeln!(
        out,
        "<text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\" fill=\"{ink}\" \
         font-size=\"{SMALL}\">{}</text>",
        EscapedXml(&cell.half)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_from_dark_to_light() {
        assert_eq!(colour(0), [68, 1, 84]);
        assert_eq!(colour(1_000), [253, 231, 37]);
        // A ninth of the range is the second of the ten colours.
        assert_eq!(colour(111), [72, 40, 120]);
        let light = |part| colour(part).iter().sum::<i32>();
        assert!((0..1_000).step_by(50).map(light).is_sorted());
    }

    #[test]
    fn a_map_has_a_cell_for_each_value() {
        let cell =
            |text: &str, part| Some(HeatCell { text: text.into(), half: "± 1".into(), part });
        let map = HeatMap {
            title: "Goodput & more",
            subtitle: "mean of 5 runs",
            sides: ["path.loss", "path.delay"],
            rows: vec!["0.1%".into(), "1%".into()],
            columns: vec!["1ms".into(), "10ms".into()],
            cells: vec![cell("95.8", 1_000), cell("75.3", 700), cell("59.6", 500), None],
            ends: ["59.6 Mbit/s".into(), "95.8 Mbit/s".into()],
        };
        let mut svg = Vec::new();
        map.write(&mut svg).unwrap();
        insta::assert_snapshot!(String::from_utf8(svg).unwrap());
    }
}
