//! What a file is, by its content, and the command that is made for it.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use ingest::inputs::{InputKind, kind_of};
use scenario::nearest;

use crate::failure::Failure;
use crate::folders;
use crate::input;
use crate::visible::ShownPath as _;

/// Kind of a file that a command can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A capture or a log.
    Recording(InputKind),
    /// A scenario.
    Scenario,
    /// An ini file of OMNeT++.
    Ini,
    /// A packetdrill script.
    Script,
    /// The directory of a sweep.
    Sweep,
    /// A folder with captures or logs in it or below.
    Recordings,
    /// A folder with packetdrill scripts in it or below.
    Scripts,
}

impl FileKind {
    /// Detects the kind of a file or directory; `None` if no command reads such files, and for pipes.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            return Ok(Self::of_folder(path));
        }
        // The beginning of a pipe can be read only once.
        if !metadata.is_file() || input::is_own(path) {
            return Ok(None);
        }
        let mut begin = Vec::new();
        input::open_argument(path)?.take(folders::BEGINNING).read_to_end(&mut begin)?;
        Ok(Self::of_bytes(path, &begin))
    }

    /// Detects what a folder holds, in it or below; a scenario alone is for its own command.
    fn of_folder(path: &Path) -> Option<Self> {
        if path.join("sweep.json").exists() {
            return Some(Self::Sweep);
        }
        if folders::find(path, MOST_SEARCHED, folders::is_recording).is_some() {
            return Some(Self::Recordings);
        }
        let is_script = |file: &Path| file.extension().is_some_and(|end| end == "pkt");
        folders::find(path, MOST_SEARCHED, is_script).map(|_| Self::Scripts)
    }

    /// Detects the kind from the first bytes of a file and from the end of its name.
    pub(crate) fn of_bytes(path: &Path, begin: &[u8]) -> Option<Self> {
        if is_scenario(begin) {
            return Some(Self::Scenario);
        }
        if let Some(kind) = kind_of(begin) {
            return Some(Self::Recording(kind));
        }
        match path.extension().and_then(|end| end.to_str()) {
            Some("toml") if may_be_scenario(begin) => Some(Self::Scenario),
            Some("ini") => Some(Self::Ini),
            Some("pkt") => Some(Self::Script),
            _ => None,
        }
    }

    /// The kind with its article.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Recording(kind) => kind.to_string(),
            Self::Scenario => "a scenario".to_owned(),
            Self::Ini => "an ini file of OMNeT++".to_owned(),
            Self::Script => "a packet script".to_owned(),
            Self::Sweep => "a sweep".to_owned(),
            Self::Recordings => "a folder with captures or logs".to_owned(),
            Self::Scripts => "a folder with packet scripts".to_owned(),
        }
    }

    /// The command for files of this kind.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Recording(InputKind::Flent) => "read",
            Self::Recording(_) | Self::Recordings => "diagnose",
            Self::Scenario => "run",
            Self::Ini => "import-ini",
            Self::Script | Self::Scripts => "packetdrill",
            Self::Sweep => "table",
        }
    }
}

/// Files of a folder that are looked at.
const MOST_SEARCHED: usize = 10_000;

/// Whether a TOML text has a key or table of scenarios at its top, be it misspelt, or none at all:
/// then the reader of scenarios says what is missing. Other programs' files have others.
fn may_be_scenario(begin: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begin);
    let (mut in_table, mut keys) = (false, 0);
    for line in text.lines() {
        let header = line.strip_prefix('[').map(|rest| rest.trim_start_matches('['));
        let key = match header {
            Some(header) => header,
            None if in_table || !line.contains('=') => continue,
            None => line,
        };
        in_table |= header.is_some();
        let name = key.trim().trim_start_matches(['"', '\'']);
        let end = name.find(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
        let name = &name[..end.unwrap_or(name.len())];
        if name.is_empty() || line.starts_with('#') {
            continue;
        }
        keys += 1;
        if nearest(name, scenario::top_level_keys()).is_some() {
            return true;
        }
    }
    keys == 0
}

/// Has the text a table or key that only scenarios have? A scenario may quote packets in comments.
fn is_scenario(begin: &[u8]) -> bool {
    let text = String::from_utf8_lossy(begin);
    let heads = ["[host.", "[[path]]", "[[flow]]", "[host]", "host.", "#:schema "];
    text.lines().any(|line| heads.iter().any(|head| line.starts_with(head)))
}

/// What to do with a file that was given to the wrong command: the command for its kind. `None` if
/// the kind is unknown, or `command` is that command.
pub(crate) fn other_command(path: &Path, command: &str) -> Option<String> {
    let kind = FileKind::of(path).ok().flatten()?;
    let right = kind.command();
    let name = path.shown();
    (right != command).then(|| format!("{name} is {}: ackclock {right} {name}", kind.name()))
}

/// Returns an error for a file of another kind than `wanted`, that of `command`. A file of an
/// unknown kind may be one of those.
pub(crate) fn expect_kind(path: &Path, command: &str, wanted: &str) -> Result<(), Failure> {
    let Ok(Some(kind)) = FileKind::of(path) else { return Ok(()) };
    if kind.command() == command {
        return Ok(());
    }
    let message = format!("{} is {}, not {wanted}", path.shown(), kind.name());
    Err(Failure::new(message).hint(format!("try: ackclock {} {}", kind.command(), path.shown())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_decides() {
        let of = |name: &str, text: &[u8]| FileKind::of_bytes(Path::new(name), text);
        let pcap = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        assert_eq!(of("a.toml", &pcap), Some(FileKind::Recording(InputKind::Capture)));
        assert_eq!(of("a", b"# IP a > b: Flags [S]\n[host.a]\n"), Some(FileKind::Scenario));
        assert_eq!(of("a.toml", b"title = \"x\"\n"), Some(FileKind::Scenario));
        assert_eq!(of("a.toml", b"# nothing yet\n"), Some(FileKind::Scenario));
        assert_eq!(of("a.toml", b"[hots.a]\nprofile = \"rfc\"\n"), Some(FileKind::Scenario));
        let manifest = b"[package]\nname = \"x\"\ntitle = \"y\"\n[dependencies]\n";
        assert_eq!(of("Cargo.toml", manifest), None);
        assert_eq!(of("book.toml", b"[book]\ntitle = \"x\"\n"), None);
        assert_eq!(of("rustfmt.toml", b"max_width = 100\n"), None);
        assert_eq!(of("a.pkt", b"0 socket(...)\n"), Some(FileKind::Script));
        assert_eq!(of("a.ini", b"[General]\n"), Some(FileKind::Ini));
        assert_eq!(of("a.txt", b"hello\n"), None);
    }
}
