//! Formats that are recognised, and the command that converts each.

use super::super::{InputFile, read};
use super::{KEEP, refused};

/// A record of ERF with an Ethernet frame of 60 bytes (Endace EDM11-01): time, type, flags, length
/// of the record, drops, length of the frame.
fn erf_record(seconds: u32) -> Vec<u8> {
    let mut record = (u64::from(seconds) << 32).to_le_bytes().to_vec();
    record.extend([2, 4]);
    record.extend(78_u16.to_be_bytes());
    record.extend([0, 0, 0, 60]);
    record.resize(78, 0);
    record
}

#[test]
fn formats_of_other_programs_are_named_with_their_conversion() {
    let erf = [erf_record(1_700_000_000), erf_record(1_700_000_001)].concat();
    let editcap = "editcap -F pcapng a a.pcapng";
    // First bytes as bzip2 1.0.8, lz4 1.9.4 and editcap 4.0 write them.
    let files: [(&[u8], &str, &str); 7] = [
        (b"BZh91AY&SY\xd3", "compressed with bzip2", "bzip2 -dc a | ackclock diagnose -"),
        (b"\x04\x22\x4d\x18dp", "compressed with LZ4", "lz4 -dc a | ackclock diagnose -"),
        (b"snoop\0\0\0\0\0\0\x02\0\0\0\x04", "a capture in the format of snoop", editcap),
        (&erf, "a capture in the format ERF", editcap),
        (b"RTSS\x01\x01\x01\0", "a capture of Microsoft Network Monitor", editcap),
        (b"GMBU\0\x02\x01\0", "a capture of Microsoft Network Monitor", editcap),
        (b"TRSNIFF data    \x1a", "a capture of the DOS Sniffer", editcap),
    ];
    for (bytes, what, command) in files {
        let expected = format!("a: the file is {what}, which is not read; convert it: {command}");
        assert_eq!(refused(bytes), expected);
    }
}

#[test]
fn a_conversion_names_the_file_as_a_shell_reads_it() {
    let convert = |name: &str| {
        let source = InputFile { name: name.into(), bytes: Box::new(&b"GMBU"[..]) };
        let text = read(vec![source], KEEP).unwrap_err().to_string();
        text.rsplit_once("convert it: ").unwrap().1.to_owned()
    };
    assert_eq!(convert("x/a.b/slow.cap"), "editcap -F pcapng x/a.b/slow.cap x/a.b/slow.pcapng");
    assert_eq!(convert("x/a.b/slow"), "editcap -F pcapng x/a.b/slow x/a.b/slow.pcapng");
    assert_eq!(convert("a b.cap"), "editcap -F pcapng 'a b.cap' 'a b.pcapng'");
    assert_eq!(convert("a.pcapng"), "editcap -F pcapng a.pcapng a.pcapng.pcapng");
    assert_eq!(convert("standard input"), "editcap -F pcapng FILE FILE.pcapng");
}

/// Neither words nor numbers are taken for records of ERF.
#[test]
fn other_bytes_are_no_records() {
    let expected = "expected a capture or a log of TCP or QUIC, found a file that begins with";
    let one = erf_record(1_700_000_000);
    let far = [one.clone(), erf_record(1_800_000_000)].concat();
    let zeros = vec![0; 4_096];
    let files: [&[u8]; 4] =
        [b"BZh is a word of its own", b"some text that is longer than a header", &far, &zeros];
    for bytes in files {
        assert!(refused(bytes).contains(expected), "{}", refused(bytes));
    }
    assert!(refused(&one).contains("ERF"));
}
