//! Packet lines of tcpdump before version 4: `10.0.0.1.22 > 10.0.0.2.601: P 1:1449(1448) ack 1 win 1040
//! <nop,nop,timestamp 1 2> (DF)`, without `IP` before version 3.8.
//!
//! Source of the format: print-tcp.c of tcpdump 3.9.

use packet::{Flags, Timestamps};

use super::clock;
use super::cursor::TokenCursor;
use super::line::{LineOptions, SeqRange, TcpdumpLine};
use super::options::read_sack;
use super::{TextError, cursor};

/// Letters of the flags; `.` is none of them.
const FLAGS: &str = "SFRPWEU.";

/// Whether a line is a packet of TCP as tcpdump printed them before version 4, after its timestamp.
pub fn is_old_packet(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ', '\t']);
    let line = &line[cursor::number_len(line)..];
    clock::find(line).is_some_and(|stamp| source(&line[stamp.len..]).is_some())
}

/// Returns the offset of the sender's address in what follows the timestamp of such a packet.
pub(super) fn source(rest: &str) -> Option<usize> {
    let line = rest.split('\n').next().unwrap_or_default();
    let arrow = line.match_indices(" > ").find_map(|(at, _)| {
        let (dst, after) = line[at + 3..].split_once(' ')?;
        let is_packet = dst.ends_with(':')
            && is_flags(after.split(' ').next()?)
            && (after.contains(" win ") || after.contains(" ack "));
        is_packet.then_some(at)
    })?;
    Some(line[..arrow].rfind([' ', '\t']).map_or(0, |blank| blank + 1))
}

/// Whether a word has only letters of flags.
pub(super) fn is_flags(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| FLAGS.contains(c))
}

/// Parses what follows the addresses.
pub(super) fn read<'a>(
    from: &mut TokenCursor<'a>,
    mut line: TcpdumpLine<'a>,
) -> Result<TcpdumpLine<'a>, TextError> {
    for letter in from.until_blank("the flags")?.chars() {
        line.flags |= match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'W' => Flags::CWR,
            'E' => Flags::ECE,
            'U' => Flags::URG,
            _ => Flags::NONE,
        };
    }
    from.skip_blanks();
    if from.rest().starts_with(|c: char| c.is_ascii_digit()) {
        let start: u32 = from.number("the sequence number")?;
        from.need(":")?;
        from.skip_blanks();
        let end_at = from.at();
        let end: u32 = from.number("the end of the sequence numbers")?;
        from.need("(")?;
        line.length = from.number("the length of the payload")?;
        from.need(")")?;
        let due = start.wrapping_add(line.length);
        if end != due {
            let expected = format!("{due} ({start} and the length of {})", line.length);
            return Err(from.wrong(end_at, &expected, &end.to_string()));
        }
        line.seq = Some(SeqRange { start, end });
    }
    if from.take_word("ack") {
        line.ack = Some(from.number("the acknowledgment number")?);
        line.flags |= Flags::ACK;
    }
    if from.take_word("win") {
        line.window = from.number("the window")?;
    }
    if from.take("<") {
        line.options = Some(options(from)?);
    }
    Ok(line)
}

/// Parses options up to `>`.
fn options(from: &mut TokenCursor<'_>) -> Result<LineOptions, TextError> {
    let mut options = LineOptions::default();
    loop {
        if from.take(">") {
            return Ok(options);
        }
        if from.take_word("mss") {
            options.mss = Some(from.number("the MSS")?);
        } else if from.take_word("wscale") {
            options.window_scale = Some(from.number("the window scale")?);
        } else if from.take_word("sackOK") {
            options.sack_permitted = true;
        } else if from.take_word("timestamp") {
            let val = from.number("the timestamp")?;
            let ecr = from.number("the echoed timestamp")?;
            options.timestamps = Some(Timestamps { val, ecr });
        } else if from.take_word("sack") {
            // Some versions print the word twice.
            from.take_word("sack");
            options.sack = read_sack(from)?;
        } else {
            let skipped = from.rest().find([',', '>']).filter(|at| *at > 0);
            let Some(end) = skipped else { return Err(from.expected("an option or `>`")) };
            from.go_to(from.at() + end);
        }
        from.take(",");
    }
}

#[cfg(test)]
mod tests {
    use packet::Flags;

    use super::super::read;

    const PACKETS: &str = "\
13:01:02.000000 10.9.0.5.22 > 10.9.0.8.60123: S 77:77(0) win 65535 <mss 1460,nop,wscale 3,sackOK,timestamp 1 0> (DF)
13:01:02.000100 IP 10.9.0.8.60123 > 10.9.0.5.22: S 99:99(0) ack 78 win 1000 <mss 1460>
13:01:02.000200 00:0d:b9:01:02:03 00:25:90:0a:0b:0c 0800 1514: 10.9.0.5.22 > 10.9.0.8.60123: P 1:1449(1448) ack 1 win 1040 <nop,nop,timestamp 1 2>
13:01:02.000300 10.9.0.8.60123 > 10.9.0.5.22: . ack 1 win 1000 <nop,nop,sack 1 {1449:2897}> [tos 0x10]
13:01:02.000400 10.9.0.8.53 > 10.9.0.5.22: udp 12
13:01:02.000500 10.9.0.5.22 > 10.9.0.8.60123: F 1449:1449(0) ack 1 win 1040
";

    #[test]
    fn lines_of_old_versions_are_read() {
        let lines = read(PACKETS).unwrap();
        let seqs: Vec<_> =
            lines.iter().map(|line| line.seq.map(|seq| (seq.start, seq.end))).collect();
        assert_eq!(
            seqs,
            [Some((77, 77)), Some((99, 99)), Some((1, 1_449)), None, Some((1_449, 1_449))]
        );
        assert_eq!(
            (lines[2].src.host, lines[2].length, lines[2].ack),
            ("10.9.0.5", 1_448, Some(1))
        );
        assert_eq!(lines[0].options.unwrap().window_scale, Some(3));
        assert_eq!(lines[0].flags, Flags::SYN);
        assert_eq!(lines[1].flags, Flags::SYN | Flags::ACK);
        assert_eq!(lines[3].options.unwrap().sack.as_slice().len(), 1);
        assert_eq!(lines[4].line, 6);
        for line in PACKETS.lines() {
            assert_eq!(super::is_old_packet(line), !line.contains("udp"), "{line}");
        }
        let error = read(&PACKETS.replace("(1448)", "(1447)")).unwrap_err();
        assert_eq!(error.found, "`1449`");
        for prose in ["13:01:02.0 a > b: c", "a.1 > b.2: P 1:2(1) ack 1 win 1", "1.5 x > y: . z"] {
            assert!(!super::is_old_packet(prose), "{prose}");
        }
    }
}
