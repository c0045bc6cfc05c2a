//! The registers of a guest's processes are set on every processor, AMX included.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(missing_docs, reason = "tests")]

use std::path::Path;
use std::process::Command;

/// Compiles the program with these options and returns its exit status.
fn set_part_of_the_state(name: &str, options: &[&str]) -> Option<i32> {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut gcc = Command::new("gcc");
    gcc.current_dir(crate_directory).args(["-w", "-O1"]).args(options);
    gcc.arg("-o").arg(&program).arg("tests/xstate.c");
    assert!(gcc.status().ok()?.success(), "the program does not compile");
    Command::new(&program).status().unwrap().code()
}

#[test]
#[expect(clippy::print_stderr, reason = "which tests are skipped")]
fn part_of_the_extended_state_is_set_as_the_whole() {
    let alone = set_part_of_the_state("state_alone", &[]);
    if alone != Some(1) {
        return eprintln!("skipped: it needs gcc, and a host that refuses a part of the state");
    }
    let whole = set_part_of_the_state("state_whole", &["-include", "recipe/xstate.h"]);
    assert_eq!(whole, Some(0));
}
