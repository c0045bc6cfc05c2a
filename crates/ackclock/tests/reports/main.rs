//! Tests of pages in a browser. Screenshots are left in the directory of the tests.

mod browser;
mod million;
mod pages;
mod picture;

use std::path::{Path, PathBuf};
use std::process::Command;

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

/// The directory of a test, initially empty.
fn dir(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports").join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The output of the program in a directory; exit status 1, a figure outside its band, is allowed.
fn ackclock(dir: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ackclock"));
    let output = command.args(arguments).current_dir(dir).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {printed}");
    String::from_utf8(output.stdout).unwrap()
}
