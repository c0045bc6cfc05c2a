//! Parser of packets: direction, fields of the IP header, then flags, numbers and options of a TCP segment.

use packet::Flags;

use super::{Result, ip_fields, tcp_options};
use crate::ast::{Body, IcmpMessage, ScriptPacket, ScriptSegment, Spanned};
use crate::cursor::ScriptCursor;
use crate::diagnostic::Diagnostic;

/// Bodies that are not TCP segments.
const OTHERS: [&str; 9] = ["udp", "udplite", "sctp", "icmp", "gre", "ipv4", "ipv6", "mpls", "ip"];

pub(super) fn packet(cursor: &mut ScriptCursor<'_>) -> Result<ScriptPacket> {
    let outbound = cursor.take(">")?;
    if !outbound {
        cursor.expect("<")?;
    }
    let (ecn, ip) = ip_fields::read(cursor)?;
    let start = cursor.start()?;
    let mut ahead = cursor.clone();
    if let Some(word) = ahead.word()?
        && OTHERS.contains(&word.value)
    {
        *cursor = ahead;
        if word.value == "icmp"
            && let Some(message) = icmp(&mut cursor.clone())?
        {
            other(cursor);
            return Ok(ScriptPacket { outbound, ecn, ip, body: Body::Icmp(message) });
        }
        other(cursor);
        let span = cursor.span(start);
        let body = Body::Other(Spanned { value: word.value.to_owned(), span });
        return Ok(ScriptPacket { outbound, ecn, ip, body });
    }
    let segment = tcp(cursor)?;
    // nplab's syntax of encapsulation: `<mss 1460>/udp(1 > 9811)`.
    if cursor.take("/")? {
        other(cursor);
        let value = "encapsulation in UDP".to_owned();
        let body = Body::Other(Spanned { value, span: cursor.span(start) });
        return Ok(ScriptPacket { outbound, ecn, ip, body });
    }
    Ok(ScriptPacket { outbound, ecn, ip, body: Body::Tcp(Box::new(segment)) })
}

/// Parses `unreachable frag_needed mtu 800 [0:10(10)]` after `icmp`; `None` if TCP in UDP is quoted.
fn icmp(cursor: &mut ScriptCursor<'_>) -> Result<Option<IcmpMessage>> {
    let Some(kind) = cursor.word()? else {
        return Err(cursor.missing("a type of ICMP message"));
    };
    let kind = Spanned { value: kind.value.to_owned(), span: kind.span };
    let mut ahead = cursor.clone();
    let code = ahead.word()?.filter(|code| code.value != "mtu");
    if code.is_some() {
        *cursor = ahead;
    }
    let code = code.map(|code| Spanned { value: code.value.to_owned(), span: code.span });
    let mtu = match cursor.keyword("mtu")? {
        true => Some(cursor.number("an MTU in bytes", u64::from(u16::MAX))?.value as u32),
        false => None,
    };
    let mut seq = 0;
    if cursor.take("[")? {
        seq = numbers(cursor)?.0.value;
        // nplab's `/udp(9811 > 1)` is encapsulation.
        if !cursor.take("]")? {
            return Ok(None);
        }
    }
    Ok(Some(IcmpMessage { kind, code, mtu, seq }))
}

/// Skips to the end of the line: such packets are not parsed.
fn other(cursor: &mut ScriptCursor<'_>) {
    let rest = cursor.rest();
    let line = rest.split(['\n', '`']).next().unwrap_or_default();
    let line = line.split("//").next().unwrap_or_default().trim_end();
    cursor.advance(line.len());
}

fn tcp(cursor: &mut ScriptCursor<'_>) -> Result<ScriptSegment> {
    let (flags, ae) = flags(cursor)?;
    let any_seq = cursor.next_is("...")?;
    let (seq, len) = if any_seq { any_number(cursor)? } else { numbers(cursor)? };
    let start = cursor.start()?;
    let absolute = cursor.take("!")?.then(|| cursor.span(start));
    let ack = if cursor.keyword("ack")? {
        let ack = cursor.number("an acknowledgment number", u64::from(u32::MAX))?;
        Some(Spanned { value: ack.value as u32, span: ack.span })
    } else {
        None
    };
    let short =
        |word: &str, what: &str, cursor: &mut ScriptCursor<'_>| -> Result<Option<Spanned<u16>>> {
            if !cursor.keyword(word)? {
                return Ok(None);
            }
            let number = cursor.number(what, u64::from(u16::MAX))?;
            Ok(Some(Spanned { value: number.value as u16, span: number.span }))
        };
    let window = short("win", "a window field", cursor)?;
    let urgent = short("urg", "an urgent pointer", cursor)?;
    let options = tcp_options::list(cursor)?;
    Ok(ScriptSegment { flags, ae, seq, any_seq, absolute, len, ack, window, urgent, options })
}

/// Parses the letters of tcpdump, and `A` for AE; `-` is no flag, a digit is the ACE field of accurate ECN: AE, CWR
/// and ECE.
fn flags(cursor: &mut ScriptCursor<'_>) -> Result<(Spanned<Flags>, bool)> {
    const EXPECTED: &str = "TCP flags such as `S`, `.`, `P.`, `F.` or `R`";
    let Some(word) = cursor.clone().run(|c| !c.is_whitespace())? else {
        return Err(cursor.missing(EXPECTED));
    };
    let mut flags = Flags::NONE;
    let mut ae = false;
    // As in packetdrill `.` follows the letters, and the digit follows it.
    let (letters, dot) = match word.value.split_once('.') {
        Some((letters, digit)) => (letters, Some(digit)),
        None => (word.value, None),
    };
    let mut valid = true;
    for letter in letters.chars() {
        flags |= match letter {
            'F' => Flags::FIN,
            'S' => Flags::SYN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'W' | 'C' => Flags::CWR,
            'A' => {
                ae = true;
                Flags::NONE
            }
            '-' if word.value.len() == 1 => Flags::NONE,
            _ => {
                valid = false;
                Flags::NONE
            }
        };
    }
    if let Some(digit) = dot {
        flags |= Flags::ACK;
        if !digit.is_empty() {
            let field = digit.parse::<u8>().ok().filter(|field| digit.len() == 1 && *field < 8);
            valid &= field.is_some();
            let field = field.unwrap_or(0);
            ae |= field & 4 != 0;
            let bit = |bit, flag| if field & bit != 0 { flag } else { Flags::NONE };
            flags |= bit(2, Flags::CWR) | bit(1, Flags::ECE);
        }
    }
    if !valid {
        let error = Diagnostic::new(cursor.text(), word.span, "invalid TCP flags");
        return Err(error.expected(EXPECTED).found(format!("`{}`", word.value)));
    }
    cursor.skip()?;
    cursor.advance(word.value.len());
    Ok((Spanned { value: flags, span: word.span }, ae))
}

/// Parses `...(1000)`.
fn any_number(cursor: &mut ScriptCursor<'_>) -> Result<(Spanned<u32>, Spanned<u32>)> {
    let start = cursor.start()?;
    cursor.expect("...")?;
    cursor.expect("(")?;
    let len = cursor.number("the number of bytes", 1 << 20)?;
    cursor.expect(")")?;
    let seq = Spanned { value: 0, span: cursor.span(start) };
    Ok((seq, Spanned { value: len.value as u32, span: len.span }))
}

/// Parses `1:1001(1000)`.
fn numbers(cursor: &mut ScriptCursor<'_>) -> Result<(Spanned<u32>, Spanned<u32>)> {
    let most = u64::from(u32::MAX);
    let start = cursor.start()?;
    let seq = cursor.number("a sequence number such as `1:1001(1000)`", most)?;
    cursor.expect(":")?;
    let end = cursor.number("the sequence number after the last byte", most)?;
    cursor.expect("(")?;
    let len = cursor.number("the number of bytes", 1 << 20)?;
    cursor.expect(")")?;
    let span = cursor.span(start);
    let (first, length) = (seq.value as u32, len.value as u32);
    if first.wrapping_add(length) != end.value as u32 {
        return Err(Diagnostic::new(cursor.text(), span, "these numbers do not agree")
            .expected(format!("`{first}:{}({length})`", first.wrapping_add(length)))
            .found(format!("`{}`", &cursor.text()[span.start..span.end])));
    }
    Ok((Spanned { value: first, span }, Spanned { value: length, span: len.span }))
}
