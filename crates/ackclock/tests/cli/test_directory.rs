//! Runs the binary in a directory of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The directory of a test, initially empty.
pub(crate) struct TestDirectory(pub(crate) PathBuf);

impl TestDirectory {
    pub(crate) fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Names of all files, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ackclock"));
        command.args(arguments).current_dir(&self.0);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::new(&self.command(arguments).output().unwrap())
    }
}

/// The output of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CommandOutput {
    pub(crate) fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            code: output.status.code().unwrap(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Standard output of a command that succeeded without messages but that of phases.
    pub(crate) fn ok(self) -> String {
        let is_other = |line: &&str| !line.starts_with("note: deterministic: the phases");
        let messages: Vec<_> = self.err.lines().filter(is_other).collect();
        assert_eq!((self.code, messages), (0, Vec::new()), "{}", self.out);
        self.out
    }

    /// Standard error of a command that rejected its input.
    pub(crate) fn refused(self) -> String {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{}", self.err);
        self.err
    }
}

/// A short scenario: 100 kB over 10 Mbit/s and 20 ms.
pub(crate) const SMALL: &str = r#"title = "small"
duration = "10s"

[host.sender]
profile = "freebsd-13.2"
cc = "newreno"

[host.sink]
profile = "linux-6.18"
cc = "reno"

[[path]]
from = "sender"
to = "sink"
forward = [{ link = { rate = "10Mbit/s", buffer = "100p" } }, { delay = "10ms" }]
return = [{ delay = "10ms" }]

[[flow]]
name = "bulk"
from = "sender"
to = "sink"
bulk = "100kB"
"#;
