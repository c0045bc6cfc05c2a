//! Mutated inputs through the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use units::RandomStream;

use super::{MUTANTS, SoakTally};

/// Largest input.
const MOST: usize = 1_000_000;
/// Limits of a command, with room for a build for development.
const LIMITS: [&str; 4] = ["--memory-limit", "512MB", "--time-limit", "20s"];

/// Inputs of a kind: name, name of the file, command, and the folders or files of what is mutated.
const KINDS: [(&str, &str, &[&str], &[&str]); 10] = [
    (
        "captures",
        "in.pcap",
        &["diagnose", "--no-cures"],
        &["fuzz/seeds/capture", "golden/captures"],
    ),
    (
        "intervals",
        "in.pcap",
        &["diagnose", "--every", "1s"],
        &["fuzz/seeds/capture", "golden/captures"],
    ),
    ("what-if", "in.pcap", &["whatif"], &["fuzz/seeds/capture", "golden/captures"]),
    ("fits", "in.pcap", &["scenario", "from"], &["fuzz/seeds/capture", "golden/captures"]),
    (
        "texts",
        "in.txt",
        &["diagnose"],
        &["fuzz/seeds/pasted", "fuzz/seeds/ss", "fuzz/seeds/tcp_probe"],
    ),
    ("NetLogs", "in.json", &["diagnose"], &["fuzz/seeds/netlog"]),
    ("QUIC logs", "in.qlog.xz", &["diagnose"], &["golden/quic"]),
    ("scenarios", "in.toml", &["scenario", "check"], &["scenarios"]),
    ("scripts", "in.pkt", &["packetdrill"], &["golden/packetdrill"]),
    ("shell scripts", "in.sh", &["scenario", "import"], &["fuzz/seeds/tc_script"]),
];

/// What is mutated, by kind.
pub(super) struct Mutants {
    program: PathBuf,
    out: PathBuf,
    seeds: Vec<Vec<Vec<u8>>>,
}

impl Mutants {
    pub(super) fn of(program: &Path, out: &Path) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut seeds = Vec::new();
        for (name, _, _, folders) in KINDS {
            let mut files = Vec::new();
            for folder in folders {
                collect(&root.join(folder), &mut files)?;
            }
            if files.is_empty() {
                return Err(format!("{name}: no file in {}", folders.join(", ")));
            }
            seeds.push(files);
        }
        Ok(Self { program: program.to_owned(), out: out.to_owned(), seeds })
    }

    pub(super) fn round(&self, round: u64, draws: &mut RandomStream, tally: &mut SoakTally) {
        for ((kind, file, command, _), seeds) in KINDS.iter().zip(&self.seeds) {
            for number in 0..MUTANTS {
                let input = mutant(seeds, draws);
                let failure = self.run(file, command, &input).map(|reason| {
                    let kept = self.out.join(format!("{round}-{number}-{file}"));
                    let _ = fs::write(&kept, &input);
                    format!("{reason}: ackclock {} {}", command.join(" "), kept.display())
                });
                tally.add(kind, 1, failure);
            }
        }
    }

    /// Runs a command; the reason why it failed.
    fn run(&self, file: &str, command: &[&str], input: &[u8]) -> Option<String> {
        let folder = self.out.join("input");
        let written =
            fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(file), input));
        if let Err(error) = written {
            return Some(error.to_string());
        }
        let mut run = Command::new(&self.program);
        run.args(command).arg(file).args(LIMITS).current_dir(&folder).stdin(Stdio::null());
        let done = match run.stdout(Stdio::null()).output() {
            Ok(done) => done,
            Err(error) => return Some(error.to_string()),
        };
        let errors = String::from_utf8_lossy(&done.stderr);
        let is_any = |texts: &[&str]| texts.iter().any(|text| errors.contains(text));
        if !matches!(done.status.code(), Some(0..=2))
            || is_any(&["panicked at", "error: out of memory", "(--time-limit)"])
        {
            let line = errors.lines().next().unwrap_or_default().to_owned();
            return Some(format!("{}, {line}", done.status));
        }
        None
    }
}

/// The contents of all files of a folder and below, in the order of their names.
fn collect(place: &Path, files: &mut Vec<Vec<u8>>) -> Result<(), String> {
    let error = |error: std::io::Error| format!("{}: {error}", place.display());
    if !place.is_dir() {
        let bytes = fs::read(place).map_err(error)?;
        if bytes.len() <= MOST {
            files.push(bytes);
        }
        return Ok(());
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(place).map_err(error)? {
        entries.push(entry.map_err(error)?.path());
    }
    entries.sort();
    entries.iter().try_for_each(|entry| collect(entry, files))
}

/// A file with one to eight changes.
fn mutant(seeds: &[Vec<u8>], draws: &mut RandomStream) -> Vec<u8> {
    let seed = |draws: &mut RandomStream| &seeds[draws.below(seeds.len() as u64) as usize];
    let mut bytes = seed(draws).clone();
    for _ in 0..=draws.below(8) {
        let len = bytes.len() as u64;
        let at = draws.below(len + 1) as usize;
        let span = at..bytes.len().min(at + 1 + draws.below(64) as usize);
        match draws.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << draws.below(8),
            1 if at < bytes.len() => bytes[at] = draws.next_u32() as u8,
            2 => drop(bytes.drain(span)),
            3 => {
                // The same again, up to a million times.
                let part = bytes[span].to_vec();
                let most = (MOST - bytes.len().min(MOST)) / part.len().max(1);
                let most = most.min(1 << draws.below(20));
                let times = draws.below(most as u64 + 1) as usize;
                bytes.splice(at..at, part.repeat(times));
            }
            4 => {
                // A number at its bounds.
                let number = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX][draws.below(5) as usize];
                let width = [1, 2, 4][draws.below(3) as usize];
                let end = bytes.len().min(at + width);
                let patch =
                    if draws.below(2) == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
                bytes[at..end].copy_from_slice(&patch[..end - at]);
            }
            5 => {
                let other = seed(draws);
                let from = draws.below(other.len() as u64 + 1) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let digits = draws.next_u64().to_string();
                bytes.splice(at..at, digits.into_bytes());
            }
        }
        bytes.truncate(MOST);
    }
    bytes
}
