//! The options of a segment: `<mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8>`.

use packet::SackBlock;
use units::SeqNum;

use super::{Result, similar};
use crate::ast::{OptionList, Spanned, TcpOption};
use crate::cursor::ScriptCursor;
use crate::diagnostic::{Diagnostic, ScriptSpan};

const KNOWN: [&str; 10] =
    ["nop", "eol", "mss", "wscale", "sackOK", "sack", "TS", "FO", "FOEXP", "ECN"];
/// Options that are parsed but not run.
const OTHERS: [&str; 5] = ["md5", "gre", "exp", "MPTCP", "generic"];

/// Parses a list of options; returns an empty list if there is none.
pub(super) fn list(cursor: &mut ScriptCursor<'_>) -> Result<Spanned<OptionList>> {
    // The end of the previous token, if there is no list.
    let end = cursor.span(0).end;
    let start = cursor.start()?;
    if !cursor.next_is("<")? {
        let place = ScriptSpan { start: end, end };
        return Ok(Spanned { value: OptionList::ExactList(Vec::new()), span: place });
    }
    cursor.expect("<")?;
    if cursor.take("...")? {
        cursor.expect(">")?;
        return Ok(Spanned { value: OptionList::Any, span: cursor.span(start) });
    }
    let mut options = Vec::new();
    if !cursor.take(">")? {
        loop {
            options.push(option(cursor)?);
            if cursor.take(">")? {
                break;
            }
            if !cursor.take(",")? {
                return Err(cursor.missing("`,` or `>`"));
            }
        }
    }
    Ok(Spanned { value: OptionList::ExactList(options), span: cursor.span(start) })
}

fn option(cursor: &mut ScriptCursor<'_>) -> Result<Spanned<TcpOption>> {
    let start = cursor.start()?;
    let Some(name) = cursor.word()? else {
        return Err(cursor.missing("a TCP option such as `nop` or `mss 1460`"));
    };
    let most = u64::from(u32::MAX);
    let value = match name.value {
        "nop" => TcpOption::Nop,
        "eol" => TcpOption::Eol,
        "sackOK" => TcpOption::SackOk,
        "mss" => TcpOption::Mss(cursor.number("a segment size", u64::from(u16::MAX))?.value as u16),
        "wscale" => TcpOption::WindowScale(cursor.number("a shift", 255)?.value as u8),
        "sack" => TcpOption::Sack(blocks(cursor)?),
        "TS" => {
            if !cursor.keyword("val")? {
                return Err(cursor.missing("`val`"));
            }
            let val = cursor.number("a timestamp", most)?.value as u32;
            if !cursor.keyword("ecr")? {
                return Err(cursor.missing("`ecr`"));
            }
            TcpOption::Timestamps { val, ecr: cursor.number("a timestamp", most)?.value as u32 }
        }
        "ECN" | "AccECN" => accurate_ecn(cursor)?,
        "FO" | "FOEXP" => fast_open(cursor, name.value == "FOEXP")?,
        other if OTHERS.contains(&other) => {
            let rest = cursor.rest();
            let length = rest.find([',', '>', '\n']).unwrap_or(rest.len());
            cursor.advance(rest[..length].trim_end().len());
            TcpOption::Other(other.to_owned())
        }
        other => {
            return Err(Diagnostic::new(cursor.text(), name.span, "there is no such TCP option")
                .expected("`nop`, `eol`, `mss`, `wscale`, `sackOK`, `sack` or `TS`")
                .found(format!("`{other}`"))
                .hint(similar(other, &KNOWN)));
        }
    };
    Ok(Spanned { value, span: cursor.span(start) })
}

/// Parses the hexadecimal digits of a cookie, if there are any.
fn fast_open(cursor: &mut ScriptCursor<'_>, experimental: bool) -> Result<TcpOption> {
    let mut cookie = Vec::new();
    let digits = match cursor.word()? {
        Some(word) => Some(word),
        None => cursor.run(|c| c.is_ascii_alphanumeric() || c == '_')?,
    };
    if let Some(digits) = digits {
        let bytes = digits.value.as_bytes().chunks(2).map(|pair| {
            let pair = core::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        let Some(bytes) = bytes.filter(|bytes| bytes.len() <= 38) else {
            let error = Diagnostic::new(cursor.text(), digits.span, "this is not a cookie");
            let error = error.expected("hexadecimal digits, two for each byte");
            return Err(error
                .found(format!("`{}`", digits.value))
                .hint(Some("a name is defined with `-D NAME=VALUE`".to_owned())));
        };
        cookie = bytes;
    }
    Ok(TcpOption::FastOpen { cookie, experimental })
}

/// Parses the counters of accurate ECN: `e1b 1 ceb 0 e0b 1`, or from `e0b` on, which is another option.
fn accurate_ecn(cursor: &mut ScriptCursor<'_>) -> Result<TcpOption> {
    let e0b_first = cursor.clone().keyword("e0b")?;
    let order = if e0b_first { ["e0b", "ceb", "e1b"] } else { ["e1b", "ceb", "e0b"] };
    let mut counters = Vec::new();
    for name in order {
        if !cursor.keyword(name)? {
            break;
        }
        counters.push(cursor.number("a counter of 24 bits", 0xff_ffff)?.value as u32);
    }
    Ok(TcpOption::AccurateEcn { e0b_first, counters })
}

fn blocks(cursor: &mut ScriptCursor<'_>) -> Result<Vec<SackBlock>> {
    let most = u64::from(u32::MAX);
    let mut blocks = Vec::new();
    loop {
        let start = cursor.start()?;
        let left = SeqNum(cursor.number("a block such as `1001:2001`", most)?.value as u32);
        cursor.expect(":")?;
        let right = SeqNum(cursor.number("the end of the block", most)?.value as u32);
        blocks.push(SackBlock { left, right });
        if blocks.len() > 4 {
            let error = Diagnostic::new(cursor.text(), cursor.span(start), "too many blocks");
            return Err(error.expected("at most four"));
        }
        cursor.skip()?;
        if !cursor.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(blocks);
        }
    }
}
