//! Runs external programs on the written files.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs `program` on `capture` and returns its lines; `None` if it is not installed, which is a
/// failure with `CI=true` in the environment.
pub(crate) fn lines(program: &str, args: &[&str], capture: &[u8]) -> Option<Vec<String>> {
    let name = format!("{program}-{}-{:?}.pcapng", capture.len(), std::thread::current().id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    File::create(&path).unwrap().write_all(capture).unwrap();
    let run = Command::new(program)
        .args(args)
        .args(["-r", "-"])
        .env("TZ", "UTC")
        .stdin(Stdio::from(File::open(&path).unwrap()))
        .output();
    std::fs::remove_file(&path).unwrap();
    match run {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip(program);
            None
        }
        Err(error) => panic!("{program}: {error}"),
        Ok(output) => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program}: {complaint}");
            let text = String::from_utf8(output.stdout).unwrap();
            Some(text.lines().map(str::to_owned).collect())
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "whether a skipped test is a failure depends on CI")]
#[expect(clippy::print_stderr, reason = "reports a skipped test")]
fn skip(program: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{program} not found, and CI=true allows no skipped test"
    );
    eprintln!("skipped: {program} not found, install it to run this test");
}
