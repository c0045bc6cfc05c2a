//! `ackclock` alone: what can be done here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::failure::Failure;
use crate::file_kind::FileKind;
use crate::output::print;

/// Files of a directory that are looked at.
const MOST_LOOKED_AT: usize = 200;
/// Files shown of each kind.
const SHOWN: usize = 3;

const ABOUT: &str =
    "Ackclock finds out why a TCP or QUIC transfer is slow, and what would cure it.\n\n";

const NEXT: &str = "\
Without any file:
  ackclock demo                                  a diagnosis and its cure, in a second
  ackclock theory mathis --rtt 20ms --loss 0.1%  the throughput that a loss rate allows
  ackclock reproduce                             published findings, simulated

To take a capture, best on the host that sends, from before the connection opens:
  sudo tcpdump -i any -s 128 -w slow.pcap port 443
";

const MORE: &str =
    "\nAll commands: ackclock --help. A command's options and examples: ackclock run --help.\n";

pub(super) fn run() -> Result<ExitCode, Failure> {
    let found = files(Path::new("."));
    let mut text = ABOUT.to_owned();
    if !found.is_empty() {
        text += "In this directory:\n";
        for (name, kind) in found {
            let command = format!("ackclock {} {}", kind.command(), name.display());
            text += &format!("  {command:<45}  {}\n", purpose(kind));
        }
        text += "\n";
    }
    print(&(text + NEXT + MORE))?;
    Ok(ExitCode::SUCCESS)
}

/// The files of a directory that a command reads, by name: a few of each kind.
fn files(directory: &Path) -> Vec<(PathBuf, FileKind)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    let mut found: Vec<(PathBuf, FileKind)> = Vec::new();
    for name in names.into_iter().take(MOST_LOOKED_AT) {
        let name = PathBuf::from(name);
        let Ok(Some(kind)) = FileKind::of(&directory.join(&name)) else { continue };
        let same = found.iter().filter(|(_, other)| other.command() == kind.command());
        if same.count() < SHOWN {
            found.push((name, kind));
        }
    }
    found.sort_by_key(|(_, kind)| kind.command());
    found
}

/// What the command for such a file answers.
const fn purpose(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Recording(_) => "what limited each connection, and the cure",
        FileKind::Scenario => "run this scenario",
        FileKind::Ini => "a scenario of this INET experiment",
        FileKind::Script => "run this packet script",
        FileKind::Sweep => "the results of this sweep",
    }
}
