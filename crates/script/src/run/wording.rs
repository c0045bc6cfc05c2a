//! Formats sent packets in the syntax of scripts.

use core::fmt::Write as _;

use packet::wire::OptionBytes;
use packet::{Flags, SackBlock, Segment};
use units::{Duration, SeqNum};

use crate::ast::TcpOption;

/// Formats flags.
pub(super) fn flags(flags: Flags) -> String {
    let letters = [
        (Flags::FIN, 'F'),
        (Flags::SYN, 'S'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    let text: String =
        letters.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, letter)| letter).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Formats a segment with sequence numbers relative to the start of the streams.
pub(super) fn segment(segment: &Segment, peer_isn: u32) -> String {
    let mut text = flags(segment.flags);
    let seq = segment.seq.0;
    let end = seq.wrapping_add(segment.payload);
    let _ = write!(text, " {seq}:{end}({})", segment.payload);
    if segment.flags.has(Flags::ACK) {
        let start = if segment.flags.has(Flags::SYN) { 0 } else { peer_isn };
        let _ = write!(text, " ack {}", segment.ack.0.wrapping_sub(start));
    }
    let _ = write!(text, " win {}", segment.window);
    let listed = options(segment, peer_isn);
    if !listed.is_empty() {
        let listed: Vec<_> = listed.iter().map(option).collect();
        let _ = write!(text, " <{}>", listed.join(","));
    }
    text
}

/// Returns the options of a segment in wire order.
pub(super) fn options(segment: &Segment, peer_isn: u32) -> Vec<TcpOption> {
    // The engine never sends options that exceed the header.
    let Ok(bytes) = OptionBytes::of(segment) else { return Vec::new() };
    option_list(bytes.as_slice(), peer_isn)
}

/// Returns the options of these bytes.
pub(super) fn option_list(bytes: &[u8], peer_isn: u32) -> Vec<TcpOption> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while let Some((&kind, behind)) = rest.split_first() {
        let length = match kind {
            0 | 1 => 1,
            _ => usize::from(*behind.first().unwrap_or(&0)).clamp(2, rest.len().max(2)),
        };
        let body = rest.get(2..length).unwrap_or_default();
        let word = |at: usize| {
            body.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
        };
        found.push(match kind {
            0 => TcpOption::Eol,
            1 => TcpOption::Nop,
            2 => TcpOption::Mss((word_16(body)).unwrap_or(0)),
            3 => TcpOption::WindowScale(*body.first().unwrap_or(&0)),
            4 => TcpOption::SackOk,
            5 => TcpOption::Sack(
                (0..body.len() / 8)
                    .map(|n| SackBlock {
                        left: SeqNum(word(8 * n).wrapping_sub(peer_isn)),
                        right: SeqNum(word(8 * n + 4).wrapping_sub(peer_isn)),
                    })
                    .collect(),
            ),
            8 => TcpOption::Timestamps { val: word(0), ecr: word(4) },
            34 => TcpOption::FastOpen { cookie: body.to_vec(), experimental: false },
            172 | 174 => TcpOption::AccurateEcn {
                e0b_first: kind == 172,
                counters: body
                    .as_chunks::<3>()
                    .0
                    .iter()
                    .map(|[a, b, c]| u32::from_be_bytes([0, *a, *b, *c]))
                    .collect(),
            },
            254 if body.starts_with(&[0xf9, 0x89]) => {
                TcpOption::FastOpen { cookie: body[2..].to_vec(), experimental: true }
            }
            other => TcpOption::Other(other.to_string()),
        });
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

fn word_16(body: &[u8]) -> Option<u16> {
    body.get(..2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}

/// Formats an option.
pub(super) fn option(option: &TcpOption) -> String {
    match option {
        TcpOption::Nop => "nop".to_owned(),
        TcpOption::Eol => "eol".to_owned(),
        TcpOption::Mss(mss) => format!("mss {mss}"),
        TcpOption::WindowScale(shift) => format!("wscale {shift}"),
        TcpOption::SackOk => "sackOK".to_owned(),
        TcpOption::Sack(blocks) => {
            let blocks: Vec<_> =
                blocks.iter().map(|block| format!("{}:{}", block.left.0, block.right.0)).collect();
            format!("sack {}", blocks.join(" "))
        }
        TcpOption::Timestamps { val, ecr } => format!("TS val {val} ecr {ecr}"),
        TcpOption::FastOpen { cookie, experimental } => {
            let mut text = if *experimental { "FOEXP" } else { "FO" }.to_owned();
            text.push_str(if cookie.is_empty() { "" } else { " " });
            for byte in cookie {
                let _ = write!(text, "{byte:02x}");
            }
            text
        }
        TcpOption::AccurateEcn { e0b_first, counters } => {
            let order = if *e0b_first { ["e0b", "ceb", "e1b"] } else { ["e1b", "ceb", "e0b"] };
            let mut text = "ECN".to_owned();
            for (name, counter) in order.iter().zip(counters) {
                let _ = write!(text, " {name} {counter}");
            }
            text
        }
        TcpOption::Other(name) => name.clone(),
    }
}

/// Formats seconds.
pub(super) fn seconds(span: Duration) -> String {
    let nanos = span.as_nanos();
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    let kept = text.trim_end_matches('0').len().max(text.find('.').map_or(0, |at| at + 4));
    text[..kept.min(text.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use packet::{Options, SackBlocks, SynLayout, SynOptions, Timestamps};

    use super::*;

    #[test]
    fn a_segment_is_formatted_in_the_syntax_of_scripts() {
        let syn = Segment {
            flags: Flags::SYN | Flags::ECE | Flags::ACK,
            ack: SeqNum(8),
            window: 65_535,
            timestamps: Some(Timestamps { val: 100, ecr: 7 }),
            options: Options::Syn(SynOptions {
                mss: 1_460,
                window_scale: Some(8),
                sack_permitted: true,
                layout: SynLayout::Linux,
                ..SynOptions::default()
            }),
            ..Segment::default()
        };
        let expected = "SE. 0:0(0) ack 8 win 65535 <mss 1460,sackOK,TS val 100 ecr 7,nop,wscale 8>";
        assert_eq!(segment(&syn, 7), expected);
        let mut blocks = SackBlocks::EMPTY;
        blocks.push(SackBlock { left: SeqNum(1_008), right: SeqNum(2_008) });
        let ack = Segment { flags: Flags::ACK, options: blocks.into(), ..Segment::default() };
        assert_eq!(segment(&ack, 7), ". 0:0(0) ack 4294967289 win 0 <nop,nop,sack 1001:2001>");
        assert_eq!(segment(&Segment::default(), 0), "- 0:0(0) win 0");
    }

    #[test]
    fn seconds_have_milliseconds_at_least() {
        assert_eq!(seconds(Duration::from_millis(250)), "0.250");
        assert_eq!(seconds(Duration::from_micros(1_000_500)), "1.0005");
        assert_eq!(seconds(Duration::ZERO), "0.000");
    }
}
