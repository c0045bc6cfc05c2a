//! Tests of files of gzip 1.12, xz 5.4 and zstd 1.5: intact, concatenated and damaged.

use std::io::Write;

use super::*;

const TEXT: &[u8] = b"twice the same twice the same";
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x2b, 0x29, 0xcf, 0x4c, 0x4e, 0x55,
    0x28, 0xc9, 0x48, 0x55, 0x28, 0x4e, 0xcc, 0x05, 0x32, 0x50, 0xb8, 0x00, 0x18, 0x43, 0x31, 0xc7,
    0x1d, 0x00, 0x00, 0x00,
];
const XZ: &[u8] = &[
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01,
    0x1c, 0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0xe0, 0x00, 0x1c, 0x00, 0x15, 0x5d, 0x00, 0x3a,
    0x1d, 0xc9, 0x55, 0xa9, 0x47, 0x5e, 0xc3, 0x71, 0x9e, 0xc8, 0xa8, 0x98, 0x13, 0xcf, 0x07, 0x5f,
    0x76, 0x8c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x18, 0x43, 0x31, 0xc7, 0x00, 0x01, 0x2d, 0x1d,
    0x1d, 0x83, 0xaa, 0x63, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, 0x59, 0x5a,
];
const ZSTD: &[u8] = &[
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0xad, 0x00, 0x00, 0x78, 0x74, 0x77, 0x69, 0x63, 0x65, 0x20,
    0x74, 0x68, 0x65, 0x20, 0x73, 0x61, 0x6d, 0x65, 0x20, 0x01, 0x00, 0x22, 0xcf, 0x3a, 0xbb, 0xe3,
    0x0d, 0x80,
];

fn unpack(bytes: &[u8]) -> (Vec<u8>, Option<io::Error>) {
    let mut unpacked = Vec::new();
    let error = Unpacked::new(bytes).unwrap().read_to_end(&mut unpacked).err();
    (unpacked, error)
}

#[test]
fn each_format_is_detected_by_its_first_bytes() {
    let formats = [(GZIP, Packing::Gzip), (XZ, Packing::Xz), (ZSTD, Packing::Zstd)];
    for (packed, packing) in formats {
        assert_eq!(Unpacked::new(packed).unwrap().packing(), Some(packing));
        let (text, error) = unpack(packed);
        assert!(error.is_none(), "{packing}: {error:?}");
        assert_eq!(text, TEXT, "{packing}");
    }
}

#[test]
fn uncompressed_input_is_unchanged() {
    for plain in [&b""[..], b"\x1f", b"\xfd7zXZ", b"text"] {
        let (text, error) = unpack(plain);
        assert_eq!((text, error.is_none()), (plain.to_vec(), true));
    }
}

#[test]
fn concatenated_streams_are_one_file() {
    // A frame of 3 bytes that zstd skips.
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    for placeholders in [[GZIP, GZIP].concat(), [XZ, XZ].concat(), [ZSTD, &skipped, ZSTD].concat()]
    {
        let (text, error) = unpack(&placeholders);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(text, [TEXT, TEXT].concat());
    }
}

#[test]
fn a_damaged_file_gives_its_readable_part_and_then_an_error() {
    for packed in [GZIP, XZ, ZSTD] {
        let placeholders = [packed, &packed[..packed.len() - 5]].concat();
        let (text, error) = unpack(&placeholders);
        let error = error.expect("the second piece is cut off");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        assert!(text.starts_with(TEXT));
        if packed[0] == XZ[0] {
            assert_eq!(error.to_string(), "xz: the file ends within the compressed data");
        }
        // A wrong checksum.
        let mut wrong = packed.to_vec();
        let at = wrong.len() - if packed[0] == XZ[0] { 30 } else { 5 };
        wrong[at] ^= 1;
        assert!(unpack(&wrong).1.is_some());
    }
}

#[test]
fn large_input_is_streamed() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for n in 0..200_000_u32 {
        packer.write_all(&n.to_le_bytes()).unwrap();
    }
    let packed = packer.finish().unwrap();
    let (bytes, error) = unpack(&packed);
    assert!(error.is_none());
    assert_eq!(bytes.len(), 800_000);
    assert_eq!(bytes[4 * 199_999..], 199_999_u32.to_le_bytes());
}
