//! `ackclock` alone: what can be done here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ingest::inputs::InputKind;

use crate::failure::Failure;
use crate::file_kind::FileKind;
use crate::folders;
use crate::output::print;
use crate::visible::ShownPath as _;

/// Files of a directory that are looked at.
const MOST_LOOKED_AT: usize = 200;
/// Folders of a directory that are looked into.
const MOST_FOLDERS: usize = 50;
/// Files shown of each kind.
const SHOWN: usize = 3;

const ABOUT: &str =
    "Ackclock finds out why a TCP or QUIC transfer is slow, and what would cure it.\n\n";

const NEXT: &str = "\
Without any file:
  ackclock demo                                  a diagnosis and its cure, in a second
  ackclock run preset:lte                        a line whose rate wanders; all: scenario new --list
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
            let command = format!("ackclock {} {}", kind.command(), name.shown());
            text += &format!("  {command:<45}  {}\n", purpose(kind));
        }
        text += "\n";
    }
    print(&(text + NEXT + MORE))?;
    Ok(ExitCode::SUCCESS)
}

/// The files of a directory and of its folders that a command reads: a few of each kind, the
/// directory's own first, by name.
fn files(directory: &Path) -> Vec<(PathBuf, FileKind)> {
    let Ok((own, folders)) = folders::entries(directory) else { return Vec::new() };
    let mut found = Vec::new();
    offer(own, &mut found);
    for folder in folders.into_iter().take(MOST_FOLDERS) {
        if folder.join("sweep.json").exists() {
            add(folder, FileKind::Sweep, &mut found);
        } else if let Ok((files, _)) = folders::entries(&folder) {
            offer(files, &mut found);
        }
    }
    found.sort_by_key(|(_, kind)| kind.command());
    found
}

/// Adds those of the files that a command reads.
fn offer(files: Vec<PathBuf>, found: &mut Vec<(PathBuf, FileKind)>) {
    // A link to a folder is a file here.
    for file in files.into_iter().filter(|file| !file.is_dir()).take(MOST_LOOKED_AT) {
        let Ok(Some(kind)) = FileKind::of(&file) else { continue };
        let is_offered = match kind {
            // A page may quote a scenario.
            FileKind::Scenario => file.extension().is_some_and(|end| end == "toml"),
            FileKind::Recording(InputKind::Flent) => true,
            FileKind::Recording(_) => folders::is_recording(&file),
            _ => true,
        };
        if is_offered {
            add(file, kind, found);
        }
    }
}

fn add(file: PathBuf, kind: FileKind, found: &mut Vec<(PathBuf, FileKind)>) {
    let same = found.iter().filter(|(_, other)| other.command() == kind.command());
    if same.count() < SHOWN {
        let name = file.strip_prefix(".").map(Path::to_path_buf).unwrap_or(file);
        found.push((name, kind));
    }
}

/// What the command for such a file answers.
const fn purpose(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Recording(_) | FileKind::Recordings => {
            "what limited each connection, and the cure"
        }
        FileKind::Scenario => "run this scenario",
        FileKind::Ini => "a scenario of this INET experiment",
        FileKind::Script | FileKind::Scripts => "run this packet script",
        FileKind::Sweep => "the results of this sweep",
    }
}
