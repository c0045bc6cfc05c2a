//! Random mutations of samples, fed to every parser: the properties of the fuzz targets without a
//! fuzzer, for a stated number of inputs.
//!
//!     ACKCLOCK_MUTATIONS=10000000 cargo test --release -p ackclock-simtest --test mutated -- --nocapture
//!
//! Each input is a sample or an earlier input with one to eight mutations, so that mutations
//! accumulate.

use std::path::{Path, PathBuf};

use ackclock_simtest::properties;
use units::RandomStream;

/// Inputs per parser by default.
const USUAL: u64 = 20_000;
/// Size of the pool of inputs to mutate.
const POOL: usize = 64;
/// Maximum length of an input.
const LONGEST: usize = 1_600;

fn wanted() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the number of inputs does not affect results")]
    let asked = std::env::var("ACKCLOCK_MUTATIONS");
    asked.ok().map_or(USUAL, |count| count.parse().expect("a number"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The prefixes of the files at these paths; of a folder all files in it.
fn samples(places: &[&str]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for place in places {
        let place = root().join(place);
        if place.is_dir() {
            let mut inside: Vec<_> =
                std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
            inside.sort();
            files.extend(inside.into_iter().filter(|path| path.is_file()));
        } else {
            files.push(place);
        }
    }
    let read = |path: &PathBuf| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes.truncate(LONGEST);
        bytes
    };
    files.iter().map(read).collect()
}

/// A position within, or at the end of, `len` bytes, and a length that fits after it.
fn range(draws: &mut RandomStream, len: usize) -> std::ops::Range<usize> {
    let from = draws.below(len as u64 + 1) as usize;
    let most = (len - from).min(1 << draws.below(8));
    from..from + draws.below(most as u64 + 1) as usize
}

/// Bytes at which parsers branch.
const EDGES: [u8; 16] =
    [0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b',', b':', b'-', b'.', b'0', b'9', b'=', b'"', b'{'];
/// Numbers at arithmetic limits.
const NUMBERS: [u64; 8] = [0, 1, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 63, u64::MAX];

fn change(draws: &mut RandomStream, input: &mut Vec<u8>, samples: &[Vec<u8>]) {
    let len = input.len();
    let place = draws.below(len.max(1) as u64) as usize;
    match draws.below(10) {
        0 if len > 0 => input[place] ^= 1 << draws.below(8),
        1 if len > 0 => input[place] = draws.below(256) as u8,
        2 if len > 0 => input[place] = EDGES[draws.below(16) as usize],
        3 => drop(input.drain(range(draws, len))),
        4 => {
            let copy = input[range(draws, len)].to_vec();
            input.splice(place..place, copy);
        }
        5 => input.insert(place, EDGES[draws.below(16) as usize]),
        6 => input.truncate(place),
        7 => {
            // A number of some width in either byte order.
            let width = 1 << draws.below(4);
            let number = NUMBERS[draws.below(8) as usize].wrapping_sub(draws.below(3));
            let mut bytes = number.to_le_bytes()[..width].to_vec();
            if draws.below(2) == 0 {
                bytes.reverse();
            }
            for (old, new) in input[place.min(len)..].iter_mut().zip(bytes) {
                *old = new;
            }
        }
        8 => {
            let other = &samples[draws.below(samples.len() as u64) as usize];
            let part = other[range(draws, other.len())].to_vec();
            let to = range(draws, len);
            input.splice(to, part);
        }
        _ => {
            let (one, other) = (range(draws, len), place);
            let moved: Vec<u8> = input.drain(one).collect();
            let to = other.min(input.len());
            input.splice(to..to, moved);
        }
    }
    input.truncate(LONGEST);
}

/// Feeds a number of inputs to `check`, which panics if a property does not hold.
#[expect(clippy::print_stdout, reason = "the count is to be stated")]
fn throw(name: &str, places: &[&str], mut check: impl FnMut(&[u8])) {
    let samples = samples(places);
    assert!(!samples.is_empty(), "{name}");
    let mut draws = RandomStream::named(1, name, "mutations");
    let mut pool = samples.clone();
    let mut thrown = 0;
    for sample in &samples {
        check(sample);
    }
    while thrown < wanted() {
        for _ in 0..1_000.min(wanted() - thrown) {
            let from = draws.below(pool.len() as u64) as usize;
            let mut input = pool[from].clone();
            for _ in 0..=draws.below(8) {
                change(&mut draws, &mut input, &samples);
            }
            check(&input);
            thrown += 1;
            // Occasionally later inputs start from here, or from a new sample.
            match draws.below(64) {
                0 if pool.len() < POOL => pool.push(input),
                0 => pool[from] = input,
                1 => pool[from] = samples[draws.below(samples.len() as u64) as usize].clone(),
                _ => {}
            }
        }
    }
    println!("{name}: {thrown} inputs");
}

#[test]
fn captures() {
    throw("capture", &["fuzz/seeds/capture"], properties::capture::check);
}

#[test]
fn quic_in_captures() {
    throw("captured_quic", &["fuzz/seeds/captured_quic"], properties::captured_quic::check);
}

#[test]
fn captures_with_key_logs() {
    throw("keyed_capture", &["fuzz/seeds/keyed_capture"], properties::keyed_capture::check);
}

#[test]
fn packed_files() {
    throw("unpack", &["fuzz/seeds/unpack"], properties::unpack::check);
}

#[test]
fn tcp_probe_logs() {
    throw("tcp_probe", &["fuzz/seeds/tcp_probe"], properties::tcp_probe::check);
}

#[test]
fn polls_of_ss() {
    throw("ss", &["fuzz/seeds/ss"], properties::ss::check);
}

#[test]
fn black_box_logs() {
    let places = ["docs/samples/upload.bblog.pcapng", "docs/samples/damaged.bblog.pcapng"];
    throw("bblog", &places, properties::bblog::check);
}

#[test]
fn siftr_logs() {
    throw("siftr", &["docs/samples/upload.siftr.log"], properties::siftr::check);
}

#[test]
fn qlogs() {
    throw("qlog", &["docs/samples/upload.sqlog", "docs/samples/damaged.qlog"], |input| {
        properties::qlog::check(input);
        properties::inputs::check((input, &[]));
    });
}

#[test]
fn netlogs() {
    throw("netlog", &["fuzz/seeds/netlog"], |input| properties::inputs::check((input, &[])));
}

#[test]
fn ini_files() {
    throw("ini", &["crates/import-inet/tests/data"], |input| {
        properties::ini::check(&String::from_utf8_lossy(input));
    });
}

#[test]
fn tc_scripts() {
    throw("tc_script", &["fuzz/seeds/tc_script"], |input| {
        properties::tc_script::check(&String::from_utf8_lossy(input));
    });
}

#[test]
fn pasted_texts() {
    throw("pasted", &["fuzz/seeds/pasted"], |input| {
        properties::pasted::check(&String::from_utf8_lossy(input));
    });
}

#[test]
fn tcpdump_text() {
    throw("tcpdump_text", &["golden/published/slow-start-lro.txt"], |input| {
        properties::tcpdump_text::check(&String::from_utf8_lossy(input));
    });
}

#[test]
fn scenarios() {
    let places = ["scenarios", "scenarios/presets"];
    throw("scenario", &places, |input| {
        properties::scenario::check(&String::from_utf8_lossy(input));
    });
}

#[test]
fn packet_scripts() {
    throw("packet_script", &["golden/packetdrill", "docs/samples/packet-scripts"], |input| {
        properties::packet_script::check(&String::from_utf8_lossy(input));
    });
}

#[test]
fn packets() {
    throw("packet_bytes", &["fuzz/seeds/capture"], |input| {
        // A packet follows the headers of the file and of the packet.
        let (link, bytes) = input.split_first().unwrap_or((&0, &[]));
        properties::packet_bytes::check((*link, bytes.get(39..).unwrap_or(bytes)));
    });
}

#[test]
fn files_of_any_kind_together() {
    let places = [
        "fuzz/seeds/capture",
        "fuzz/seeds/ss",
        "fuzz/seeds/tcp_probe",
        "docs/samples/upload.siftr.log",
        "golden/published/slow-start-lro.txt",
    ];
    let mut before = Vec::new();
    throw("inputs", &places, |input| {
        properties::inputs::check((input, &before));
        before = input.to_vec();
    });
}
