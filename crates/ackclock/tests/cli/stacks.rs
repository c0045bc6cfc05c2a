//! Tests of `ackclock stack` and of hosts that are real QUIC stacks. What runs one is in the tests of the crate `guest`.
#![cfg(target_os = "linux")]

use super::test_directory::{CommandOutput, TestDirectory};

/// A scenario whose client has these lines too, and a server that is modelled.
fn with(lines: &str) -> String {
    format!(
        "duration = \"5s\"\n[host.client]\n{lines}\n[host.server]\nprofile = \"quic-go-0.61\"\n\
         [[path]]\nfrom = \"client\"\nto = \"server\"\nforward = [{{ link = {{ rate = \"10Mbit/s\", buffer = \"60kB\" }} }}]\n\
         return = [{{ delay = \"10ms\" }}]\n[[flow]]\nname = \"up\"\nfrom = \"client\"\nto = \"server\"\nbulk = \"100kB\"\n"
    )
}

/// The output of a command with an empty cache.
fn without_stacks(place: &TestDirectory, arguments: &[&str]) -> CommandOutput {
    let mut command = place.command(arguments);
    CommandOutput::new(&command.env("XDG_CACHE_HOME", place.0.join("cache")).output().unwrap())
}

const QUIC_GO: &str = "profile = \"quic-go-0.61\"\nstack = ";

#[test]
fn hosts_that_cannot_be_stacks_are_refused_with_a_cure() {
    let place = TestDirectory::new("hosts_that_cannot_be_stacks");
    for (lines, expected) in [
        (format!("{QUIC_GO}\"quic-go-0.65\""), "`ackclock stack build quic-go@v0.65` builds it"),
        (format!("{QUIC_GO}\"quic-go-0.66\""), "did you mean \"quic-go-0.65\"?"),
        (
            "profile = \"linux-6.18\"\nstack = \"quic-go-0.65\"".to_owned(),
            "the profile is no model of one",
        ),
        (
            format!("{QUIC_GO}\"quic-go-0.65\"\n[host.client.knobs]\nmax_ack_delay = \"5ms\""),
            "a host with `stack` has no knobs",
        ),
        (format!("{QUIC_GO}\"quic-go-0.65\"\nkernel = \"linux-6.12\""), "a host has one of"),
    ] {
        place.write("a.toml", with(&lines));
        let answer = without_stacks(&place, &["run", "a.toml"]);
        assert_eq!(answer.code, 2, "{lines}");
        assert!(answer.err.contains(expected), "{lines}\n{}", answer.err);
        assert!(answer.err.contains("a.toml:"), "{}", answer.err);
    }
}

#[test]
fn a_stack_need_not_be_built_for_a_check_and_cannot_be_on_the_wire() {
    let place = TestDirectory::new("a_stack_need_not_be_built");
    place.write("a.toml", with(&format!("{QUIC_GO}\"quic-go-0.65\"")));
    let answer = place.run(&["scenario", "check", "a.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let answer = place.run(&["whatif", "a.toml"]);
    assert_eq!(answer.code, 2, "{}", answer.out);
}

#[test]
fn stacks_that_can_be_built_are_listed_and_others_refused() {
    let place = TestDirectory::new("stacks_that_can_be_built");
    let answer = without_stacks(&place, &["stack", "list"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    for (name, wanted) in [("quic-go-0.65", "quic-go@v0.65"), ("quinn-0.11", "quinn-proto@0.11.19")]
    {
        let line = format!("{name:<16} not built: ackclock stack build {wanted}\n");
        assert!(answer.out.contains(&line), "{}", answer.out);
    }
    for arguments in [&["stack", "build", "quic-go@v0.60"][..], &["stack", "check", "none"]] {
        let answer = without_stacks(&place, arguments);
        assert_eq!(answer.code, 2, "{}", answer.out);
        assert!(answer.err.contains("help: "), "{}", answer.err);
    }
}
