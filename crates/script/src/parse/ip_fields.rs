//! Fields of the IP header before the flags of a segment: `[ect0]`, `(ttl 4)`, `[tos 0x28, flowlabel 0x1]`.

use super::Result;
use crate::ast::{EcnMark, IpFields, Spanned};
use crate::cursor::ScriptCursor;
use crate::diagnostic::Diagnostic;

const MARKS: [(&str, EcnMark); 5] = [
    ("noecn", EcnMark::NotCapable),
    ("ect01", EcnMark::Either),
    ("ect0", EcnMark::Ect0),
    ("ect1", EcnMark::Ect1),
    ("ce", EcnMark::Met),
];
const EXPECTED: &str =
    "`noecn`, `ect0`, `ect1`, `ect01`, `ce`, `tos`, `class`, `ttl`, `hlim` or `flowlabel`";

/// Parses the lists, in brackets or parentheses, separated by commas. As in packetdrill, 0 is no value of `ttl` and
/// `flowlabel`.
pub(super) fn read(cursor: &mut ScriptCursor<'_>) -> Result<(Option<Spanned<EcnMark>>, IpFields)> {
    let (mut ecn, mut fields) = (None, IpFields::default());
    loop {
        let start = cursor.start()?;
        let end = if cursor.take("[")? {
            "]"
        } else if cursor.take("(")? {
            ")"
        } else {
            return Ok((ecn, fields));
        };
        let mut items = 0;
        loop {
            let item = cursor.start()?;
            let Some(name) = cursor.clone().word()? else { return Err(cursor.missing(EXPECTED)) };
            let mark = MARKS.iter().find(|(mark, _)| *mark == name.value);
            let mut given = match mark {
                Some((_, mark)) => {
                    cursor.keyword(name.value)?;
                    ecn.replace(Spanned { value: *mark, span: cursor.span(item) }).is_some()
                }
                None => value(cursor, name.value, &mut fields)?,
            };
            given |= ecn.is_some() && fields.tos.is_some();
            if given {
                let span = cursor.span(item);
                let error = Diagnostic::new(cursor.text(), span, "this field is given twice");
                let error =
                    error.expected("each field once; `tos` and `class` contain the ECN field");
                return Err(error.found(format!("`{}`", &cursor.text()[span.start..span.end])));
            }
            items += 1;
            if cursor.take(end)? {
                // A mark alone is named with its brackets.
                if let Some(mark) = ecn.as_mut().filter(|_| items == 1 && mark.is_some()) {
                    mark.span = cursor.span(start);
                }
                break;
            }
            if !cursor.take(",")? {
                return Err(cursor.missing(&format!("`,` or `{end}`")));
            }
        }
    }
}

/// Parses a name with its number; returns whether the field was given before.
fn value(cursor: &mut ScriptCursor<'_>, name: &str, fields: &mut IpFields) -> Result<bool> {
    let mut number = |what: &str, most: u64| -> Result<Spanned<u64>> {
        cursor.word()?;
        cursor.number(what, most)
    };
    let byte = |number: Spanned<u64>| Spanned { value: number.value as u8, span: number.span };
    Ok(match name {
        "ttl" | "hlim" => {
            let hops = number("a number of hops", 255)?;
            let before = fields.hops.take();
            fields.hops = Some(byte(hops)).filter(|hops| hops.value != 0);
            before.is_some()
        }
        "tos" | "class" => {
            fields.tos.replace(byte(number("a byte such as `0x28`", 255)?)).is_some()
        }
        "flowlabel" => {
            let label = number("a flow label of 20 bits", (1 << 20) - 1)?;
            let before = fields.label.take();
            let label = Spanned { value: label.value as u32, span: label.span };
            fields.label = Some(label).filter(|label| label.value != 0);
            before.is_some()
        }
        _ => return Err(cursor.missing(EXPECTED)),
    })
}
