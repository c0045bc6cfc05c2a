//! The examples in the help of every command are valid.

use std::process::Command;

use crate::documents::words;

fn help(command: &[String]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ackclock"));
    let output = program.args(command).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Checks the examples of a command and of its subcommands; returns their number.
fn check(command: &[String]) -> usize {
    let text = help(command);
    let mut count = 0;
    // Two spaces end an example; an explanation may follow.
    let examples = text.lines().filter_map(|line| line.strip_prefix("  ackclock "));
    for example in examples.map(|line| line.split("  ").next().unwrap()) {
        let mut program = Command::new(env!("CARGO_BIN_EXE_ackclock"));
        let answer = program.args(words(example)).arg("--help").output().unwrap();
        let shown = String::from_utf8_lossy(&answer.stderr);
        assert!(answer.status.success(), "{command:?}: {example}: {shown}");
        count += 1;
    }
    let listed = text.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    // A long description goes on in the next line, below its beginning.
    let listed = listed.lines().take_while(|line| line.starts_with("  "));
    for line in listed.filter(|line| !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        if name != "help" {
            count += check(&[command, &[name.to_owned()]].concat());
        }
    }
    count
}

#[test]
fn examples_of_every_help_are_valid() {
    let count = check(&[]);
    assert!(count > 100, "{count}");
}
