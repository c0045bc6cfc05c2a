//! Tests of `ackclock kernel`, `compare`, and hosts that are real kernels. Tests that need a kernel
//! print why they are skipped.
#![cfg(target_os = "linux")]

use super::test_directory::{SMALL, TestDirectory};

/// A scenario of two Linux hosts of which the first is `kernel`.
fn with_kernel(kernel: &str) -> String {
    let linux = SMALL.replace("freebsd-13.2", "linux-6.18");
    linux.replacen("cc = \"newreno\"", &format!("cc = \"cubic\"\nkernel = {kernel:?}"), 1)
}

/// Returns whether the cache of the user has a kernel.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn has_kernel(place: &TestDirectory) -> bool {
    let found = !place.run(&["kernel", "list"]).out.is_empty();
    if !found {
        eprintln!("skipped: there is no kernel; `ackclock kernel build` makes one");
    }
    found
}

#[test]
fn what_is_no_kernel_is_refused_with_a_cure() {
    let place = TestDirectory::new("what_is_no_kernel_is_refused");
    place.write("path.toml", with_kernel("./linux"));
    let answer = place.run(&["run", "path.toml"]);
    // Without gcc process 1 cannot be compiled, which is reported first.
    if !answer.err.contains("without gcc") {
        assert!(answer.err.contains("--allow-exec"), "{}", answer.err);
    }
    assert_eq!(answer.code, 2);
    place.write("name.toml", with_kernel("linux-0.1"));
    let answer = place.run(&["run", "name.toml"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("linux-0.1") || answer.err.contains("gcc"), "{}", answer.err);
    // Commands that cannot run a kernel point at the key.
    let answer = place.run(&["sweep", "name.toml"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.err.contains("real kernel") && answer.err.contains("name.toml:"),
        "{}",
        answer.err
    );
    let answer = place.run(&["scenario", "check", "name.toml"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let answer = place.run(&["kernel", "build", "--source", "name.toml", "--jobs", "1"]);
    assert_eq!(answer.code, 2, "{}", answer.out);
}

#[test]
fn the_files_of_a_run_with_a_kernel_are_the_same_twice() {
    let place = TestDirectory::new("the_files_of_a_run_with_a_kernel");
    if !has_kernel(&place) {
        return;
    }
    place.write("small.toml", with_kernel("linux-6.12"));
    let run = |name: &str| {
        let (pcap, csv) = (format!("{name}.pcapng"), format!("{name}.csv"));
        let answer = place.run(&["run", "small.toml", "--json", "--pcap", &pcap, "--csv", &csv]);
        (answer.ok(), std::fs::read(place.0.join(pcap)).unwrap(), place.read(&csv))
    };
    let (json, pcap, csv) = run("one");
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["flows"][0]["profile"], "kernel");
    assert_eq!(value["flows"][0]["bytes"], 100_000);
    assert_eq!(value["flows"][0]["finished"], true);
    assert!(pcap.len() > 100_000);
    assert!(
        csv.iter().filter(|&&byte| byte == b'\n').count() > 10,
        "the reader is a model, which has rows"
    );
    assert_eq!((json, pcap, csv), run("two"));
}

#[test]
fn a_comparison_shows_the_first_difference_and_both_states() {
    let place = TestDirectory::new("a_comparison_shows_the_first_difference");
    if !has_kernel(&place) {
        return;
    }
    place.write("small.toml", with_kernel("linux-6.12"));
    // A kernel that requests ECN differs in its first packet from a model that does not.
    let other = "host.sender.sysctl={\"net.ipv4.tcp_ecn\" = 1}";
    let arguments = ["compare", "small.toml", "--model", "--kernel", "--set", other, "--json"];
    let answer = place.run(&arguments);
    assert_eq!(answer.code, 1, "{}", answer.err);
    let value: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let flow = &value["comparisons"][0]["flows"][0];
    let first = &flow["first"];
    assert_eq!(
        (&first["forward"], &first["index"], &first["field"]),
        (&true.into(), &0.into(), &"flags".into())
    );
    assert_eq!(flow["same_packets"], 0);
    assert!(flow["states"][1]["cwnd"].is_string(), "{value:#}");
    let text = place.run(&arguments[..6]);
    assert!(text.out.contains("packet 1 on the forward path"), "{}", text.out);
    let page = place.run(&[&arguments[..6], &["--report", "page.html"]].concat());
    assert_eq!(page.code, 1, "{}", page.err);
    let page = String::from_utf8(place.read("page.html")).unwrap();
    assert!(page.contains("First difference: packet 1 on the forward path"));
}
