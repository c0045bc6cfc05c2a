//! Captures in formats that are recognised but not read, and the command that converts each.
//!
//! Magic numbers: those of `file(1)` and of Wireshark's `wiretap`. ERF has none; its records are
//! checked as in the ERF Types Reference Guide (Endace EDM11-01).

use core::fmt;

/// A format that another program converts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvertibleFormat {
    /// bzip2.
    Bzip2,
    /// LZ4 frames.
    Lz4,
    /// Sun's snoop (RFC 1761).
    Snoop,
    /// Endace's extensible record format.
    Erf,
    /// Microsoft Network Monitor, 1.x or 2.x.
    NetMon,
    /// Network General's Sniffer for DOS.
    Sniffer,
    /// Network Associates' Sniffer for Windows, NetXray.
    NetXray,
    /// AIX' iptrace.
    Iptrace,
}

/// First bytes of the formats that have a magic number.
const MAGICS: [(&[u8], ConvertibleFormat); 10] = [
    (b"\x04\x22\x4d\x18", ConvertibleFormat::Lz4),
    (b"\x02\x21\x4c\x18", ConvertibleFormat::Lz4),
    (b"snoop\0\0\0", ConvertibleFormat::Snoop),
    (b"RTSS", ConvertibleFormat::NetMon),
    (b"GMBU", ConvertibleFormat::NetMon),
    (b"TRSNIFF data    \x1a", ConvertibleFormat::Sniffer),
    (b"XCP\0", ConvertibleFormat::NetXray),
    (b"VL\0\0", ConvertibleFormat::NetXray),
    (b"iptrace 1.0", ConvertibleFormat::Iptrace),
    (b"iptrace 2.0", ConvertibleFormat::Iptrace),
];

impl ConvertibleFormat {
    /// Detects the format from the first bytes of a file.
    pub(super) fn of(begin: &[u8]) -> Option<Self> {
        // The level, then the magic number of the first block or of the end of an empty stream.
        let block: Option<&[u8]> = begin.get(4..10);
        if begin.starts_with(b"BZh")
            && matches!(begin.get(3), Some(b'1'..=b'9'))
            && matches!(block, Some(b"\x31\x41\x59\x26\x53\x59" | b"\x17\x72\x45\x38\x50\x90"))
        {
            return Some(Self::Bzip2);
        }
        let known = MAGICS.iter().find(|(magic, _)| begin.starts_with(magic));
        known.map(|&(_, format)| format).or_else(|| {
            let is_text = !begin.contains(&0) && core::str::from_utf8(begin).is_ok();
            (!is_text && is_erf(begin)).then_some(Self::Erf)
        })
    }

    /// The command that makes a capture of the file `name`.
    pub(super) fn conversion(self, name: &str) -> String {
        let name = match name {
            "standard input" => "FILE",
            name => name,
        };
        let quoted = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:=@%".contains(c);
            match name.chars().all(plain) && !name.starts_with('-') {
                true => name.to_owned(),
                false => format!("'{}'", name.replace('\'', r"'\''")),
            }
        };
        match self {
            Self::Bzip2 => format!("bzip2 -dc {} | ackclock diagnose -", quoted(name)),
            Self::Lz4 => format!("lz4 -dc {} | ackclock diagnose -", quoted(name)),
            _ => {
                // A file that has the end of a capture already keeps its name.
                let stem = match name.rsplit_once('.') {
                    Some((stem, end)) if end != "pcapng" && !end.contains('/') => stem,
                    _ => name,
                };
                let to = quoted(&format!("{stem}.pcapng"));
                format!("editcap -F pcapng {} {to}", quoted(name))
            }
        }
    }
}

impl fmt::Display for ConvertibleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bzip2 => "compressed with bzip2",
            Self::Lz4 => "compressed with LZ4",
            Self::Snoop => "a capture in the format of snoop",
            Self::Erf => "a capture in the format ERF",
            Self::NetMon => "a capture of Microsoft Network Monitor",
            Self::Sniffer => "a capture of the DOS Sniffer",
            Self::NetXray => "a capture of the Windows Sniffer (NetXray)",
            Self::Iptrace => "a capture of iptrace",
        })
    }
}

/// Most records that are checked.
const RECORDS: usize = 10;
/// Length of the header of a record.
const HEADER: usize = 16;
/// Most days between two records.
const APART: u64 = 86_400;

/// Whether the bytes are records of ERF: at least one, each of a known type, with a plausible
/// length, and within a day of the one before.
fn is_erf(begin: &[u8]) -> bool {
    let (mut rest, mut count, mut before) = (begin, 0, None);
    while count < RECORDS
        && let Some(header) = rest.get(..HEADER)
    {
        let stamp = header.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let seconds = stamp >> 32;
        let (kind, length) =
            (header[8] & 0x7f, usize::from(u16::from_be_bytes([header[10], header[11]])));
        let in_order = before.is_none_or(|before: u64| before.abs_diff(seconds) <= APART);
        // Types 1 to 27; 48 is a pad record.
        let known = matches!(kind, 1..=27 | 48);
        if !known || length < HEADER || seconds == 0 || !in_order {
            return false;
        }
        before = Some(seconds);
        count += 1;
        rest = rest.get(length..).unwrap_or_default();
    }
    // A single record could be chance, unless it is the file.
    count > 1 || count == 1 && rest.is_empty()
}
