//! Pages in a browser: zoomed, read, looked at. Pictures are left in the directory of the tests.

mod browser;
mod million;
mod pages;
mod picture;

use std::path::{Path, PathBuf};
use std::process::Command;

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

/// A directory of one test, empty at its beginning.
fn place(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports").join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// What the program prints in a directory; an exit status of 1, a figure outside its band, is one
/// too.
fn ackclock(place: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ackclock"));
    let output = command.args(arguments).current_dir(place).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}
