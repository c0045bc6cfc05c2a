//! The options of a line: `[mss 1460,nop,wscale 10,sackOK,TS val 1 ecr 0]`.
//!
//! The words are those of print-tcp.c (`tcp_option_values`).

use std::io::{self, Write};

use packet::{SackBlock, SackBlocks, Timestamps};
use units::SeqNum;

use super::TextError;
use super::cursor::TokenCursor;
use super::line::LineOptions;

const EOL: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Writes `, options [...]` for the option bytes of a header; nothing without options.
///
/// `base` is the origin of the numbers of SACK blocks. `brief` omits timestamps and padding NOPs.
pub(super) fn write(to: &mut Vec<u8>, raw: &[u8], base: SeqNum, brief: bool) -> io::Result<()> {
    let mut open = false;
    let mut rest = raw;
    while let [kind, tail @ ..] = rest {
        let len = match (*kind, tail) {
            (EOL | NOP, _) | (_, []) => 1,
            (_, [len, ..]) => usize::from(*len).clamp(2, rest.len()),
        };
        let value = rest.get(2..len).unwrap_or_default();
        rest = &rest[len..];
        if brief && matches!(*kind, NOP | EOL | TIMESTAMPS) {
            continue;
        }
        to.extend_from_slice(if open { b"," } else { b", options [" });
        open = true;
        match (*kind, value) {
            (EOL, _) => {
                to.extend_from_slice(b"eol");
                break;
            }
            (NOP, _) => to.extend_from_slice(b"nop"),
            (MSS, &[high, low]) => write!(to, "mss {}", u16::from_be_bytes([high, low]))?,
            (WINDOW_SCALE, &[shift]) => write!(to, "wscale {shift}")?,
            (SACK_PERMITTED, _) => to.extend_from_slice(b"sackOK"),
            (SACK, blocks) => write_sack(to, blocks, base)?,
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let (val, ecr) = ([a, b, c, d], [e, f, g, h]);
                let (val, ecr) = (u32::from_be_bytes(val), u32::from_be_bytes(ecr));
                write!(to, "TS val {val} ecr {ecr}")?;
            }
            (kind, _) => write!(to, "unknown-{kind}")?,
        }
    }
    if open {
        to.push(b']');
    }
    Ok(())
}

fn write_sack(to: &mut Vec<u8>, blocks: &[u8], base: SeqNum) -> io::Result<()> {
    write!(to, "sack {} ", blocks.len() / 8)?;
    for &[a, b, c, d, e, f, g, h] in blocks.as_chunks::<8>().0 {
        let left = u32::from_be_bytes([a, b, c, d]).wrapping_sub(base.0);
        let right = u32::from_be_bytes([e, f, g, h]).wrapping_sub(base.0);
        write!(to, "{{{left}:{right}}}")?;
    }
    Ok(())
}

/// Reads `[...]`.
pub(super) fn read(from: &mut TokenCursor<'_>) -> Result<LineOptions, TextError> {
    let mut options = LineOptions::default();
    from.need("[")?;
    while !from.take("]") {
        match from.peek_word() {
            "mss" => {
                from.need("mss")?;
                options.mss = Some(from.number("the segment size")?);
            }
            "wscale" => {
                from.need("wscale")?;
                options.window_scale = Some(from.number("the window shift")?);
            }
            "sackOK" => {
                from.need("sackOK")?;
                options.sack_permitted = true;
            }
            "TS" => {
                from.need("TS")?;
                from.need_word("val")?;
                let val = from.number("the timestamp")?;
                from.need_word("ecr")?;
                let ecr = from.number("the echoed timestamp")?;
                options.timestamps = Some(Timestamps { val, ecr });
            }
            "sack" => {
                from.need("sack")?;
                options.sack = read_sack(from)?;
            }
            // `mptcp 12 capable v1`
            "mptcp" => {
                options.extras.multipath = true;
                skip_one(from)?;
            }
            // `tfo  cookiereq`, `tfo  cookie 0123456789abcdef`
            "tfo" | "exp-tfo" => {
                let start = from.rest();
                skip_one(from)?;
                let option = &start[..start.len() - from.rest().len()];
                let (_, cookie) = option.split_once("cookie ").unwrap_or_default();
                options.extras.fast_open = u8::try_from(cookie.trim().len() / 2).ok();
            }
            _ => skip_one(from)?,
        }
        if !from.take(",") && !from.rest().starts_with(']') {
            return Err(from.expected("`,` or `]`"));
        }
    }
    Ok(options)
}

/// Parses `1 {1449:2897}`.
pub(super) fn read_sack(from: &mut TokenCursor<'_>) -> Result<SackBlocks, TextError> {
    let mut blocks = SackBlocks::EMPTY;
    from.skip_blanks();
    let at = from.at();
    let count: u8 = from.number("the number of SACK blocks")?;
    if count > 4 {
        return Err(from.wrong(at, "at most 4 SACK blocks", &count.to_string()));
    }
    for _ in 0..count {
        from.need("{")?;
        let left = SeqNum(from.number("the left edge of a SACK block")?);
        from.need(":")?;
        let right = SeqNum(from.number("the right edge of a SACK block")?);
        from.need("}")?;
        blocks.push(SackBlock { left, right });
    }
    Ok(blocks)
}

/// Skips an option that is not used here: `nop`, `eol`, `tfo cookie ..`, `unknown-254 ..`.
fn skip_one(from: &mut TokenCursor<'_>) -> Result<(), TextError> {
    let mut any = false;
    loop {
        from.skip_blanks();
        match from.rest().chars().next() {
            Some(',' | ']') if any => return Ok(()),
            None | Some('\n' | ',' | ']' | '[') => return Err(from.expected("an option")),
            Some(c) => from.go_to(from.at() + c.len_utf8()),
        }
        any = true;
    }
}
