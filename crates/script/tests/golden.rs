//! The packet scripts of `golden/`: 35 verified on real Linux kernels, and our own. All pass,
//! strictly.

use std::fs;
use std::path::{Path, PathBuf};

use ackclock_script::{RunOptions, ScriptOutcome, ScriptOverrides, ScriptVerdict, parse, run};
use tcp::profile::TcpProfile;

fn golden(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(part)
}

fn scripts(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            scripts(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "pkt") {
            found.push(entry);
        }
    }
}

fn outcome(path: &Path, text: &str) -> ScriptOutcome {
    let named = text.lines().find_map(|line| line.strip_prefix("// profile: "));
    let profile = TcpProfile::named(named.unwrap_or("linux-6.18")).expect("a profile");
    let script = parse(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let files = |name: &str| fs::read_to_string(path.parent()?.join(name)).ok();
    let overrides = ScriptOverrides::default();
    let options = RunOptions {
        profile: &profile,
        relaxed_psh: false,
        packets: true,
        overrides,
        files: &files,
        real: None,
    };
    run(text, &script, &options)
}

/// Runs all scripts of a directory; returns their number.
fn all_pass(part: &str) -> usize {
    let mut paths = Vec::new();
    scripts(&golden(part), &mut paths);
    let mut wrong = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        match outcome(path, &text).verdict {
            ScriptVerdict::Passed => {}
            ScriptVerdict::Failed(said) => wrong.push(format!("{}:{said}", path.display())),
            ScriptVerdict::Unsupported(said) => {
                wrong.push(format!("{}: unsupported: {said}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    paths.len()
}

#[test]
fn scripts_verified_on_real_kernels_pass() {
    assert_eq!(all_pass("packetdrill"), 35);
}

#[test]
fn our_own_scripts_pass_and_say_what_they_show() {
    let mut paths = Vec::new();
    scripts(&golden("scripts"), &mut paths);
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("// "), "{}", path.display());
        assert!(text.contains("\n// Shows: "), "{}", path.display());
    }
    assert_eq!(all_pass("scripts"), paths.len());
}

#[test]
fn the_packets_of_a_run_are_returned_in_the_syntax_of_scripts() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 700:700(0) win 65535 <mss 1000>
+0 > S. 0:0(0) ack 701 <...>
+.05 < P. 1:11(10) ack 1 win 1024
+0 > . 1:1(0) ack 11
";
    let mut lines = outcome(Path::new("a.pkt"), text).packets;
    // The window is not this test's subject.
    let ack = lines.pop().unwrap();
    assert!(ack.starts_with("0.050 > . 1:1(0) ack 11 win "), "{ack}");
    assert_eq!(
        lines,
        [
            "0.000 < S 700:700(0) win 65535 <mss 1000>",
            "0.000 > S. 0:0(0) ack 701 win 64240 <mss 1460>",
            "0.050 < P. 1:11(10) ack 1 win 1024",
        ]
    );
}

#[test]
fn udp_and_sctp_sockets_are_refused_by_name() {
    for (call, named) in [
        ("socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3", "UDP sockets"),
        ("socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3", "SCTP sockets"),
    ] {
        match outcome(Path::new("a.pkt"), &format!("0 {call}\n")).verdict {
            ScriptVerdict::Unsupported(said) => assert!(said.to_string().contains(named), "{said}"),
            other => panic!("{call}: {other:?}"),
        }
    }
}

#[test]
fn an_omitted_list_of_options_does_not_blame_the_next_event() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000>
+0 > S. 0:0(0) ack 1 win 64240
+0 accept(3, ..., ...) = 4
";
    match outcome(Path::new("a.pkt"), text).verdict {
        ScriptVerdict::Failed(said) => assert_eq!((said.line, said.column), (5, 31), "{said}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_changed_script_fails_where_it_was_changed() {
    let path = golden("packetdrill").join("rto-min-200ms-backoff.pkt");
    let text = fs::read_to_string(&path).unwrap();
    let reported = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        match outcome(&path, &text.replacen(from, to, 1)).verdict {
            ScriptVerdict::Failed(said) => said.to_string(),
            other => panic!("{from} to {to}: {other:?}"),
        }
    };
    let said = [
        reported("+.210 > P.", "+.210 > ."),
        reported("+.210 > P. 1:1001(1000)", "+.210 > P. 1:901(900)"),
        reported("+.210 >", "+.310 >"),
        reported("+.210 >", "+.110 >"),
        reported("+.420 > P. 1:1001(1000) ack 1", "+.420 > P. 1:1001(1000) ack 2"),
        reported("+.420 > P. 1:1001(1000) ack 1", "+.420 > P. 1:1001(1000) ack 1 win 7"),
        reported(
            "+.420 > P. 1:1001(1000) ack 1",
            "+.420 > P. 1:1001(1000) ack 1 <nop,nop,sack 1:2>",
        ),
        reported("+0 > S. 0:0(0) ack 1", "+0 > [ect0] S. 0:0(0) ack 1"),
        reported("wscale 8>", "wscale 9>"),
        reported("tcpi_snd_cwnd == 1,", "tcpi_snd_cwnd == 2,"),
        reported("1000) = 1000", "1000) = 999"),
        reported("+0 accept(3, ..., ...) = 4", "+0 accept(3, ..., ...) = -1 EAGAIN"),
        reported(" +.01 < . 1:1(0) ack 1001 win 1024\n", " +9 > . 1:1(0) ack 1\n"),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn what_packetdrill_refuses_is_refused() {
    let script = |first: &str, bind: &str, length: &str| {
        format!(
            "{first} socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind({bind}, ..., ...) = 0
+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [{length}]) = 0
"
        )
    };
    assert_eq!(outcome(Path::new("a.pkt"), &script("0", "3", "4")).verdict, ScriptVerdict::Passed);
    for (text, line, said) in [
        (script("+.1", "3", "4"), 1, "time 0"),
        (script("0", "4", "4"), 2, "EBADF"),
        (script("0", "3", "5"), 3, "another length"),
    ] {
        match outcome(Path::new("a.pkt"), &text).verdict {
            ScriptVerdict::Failed(found) => {
                assert_eq!(found.line, line, "{found}");
                assert!(found.to_string().contains(said), "{found}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn accurate_ecn_of_linux_6_18_is_refused_where_its_kernel_uses_it() {
    let verdict = |flags: &str, profile: &str| {
        let text = format!(
            "// profile: {profile}
`sysctl -q net.ipv4.tcp_ecn=1`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > SEW 0:0(0) <...>
+.05 < {flags} 0:0(0) ack 1 win 32767 <mss 1000,sackOK>
+0 > . 1:1(0) ack 1 <...>
"
        );
        match outcome(Path::new("a.pkt"), &text).verdict {
            ScriptVerdict::Passed => "passed",
            ScriptVerdict::Failed(_) => "failed",
            ScriptVerdict::Unsupported(said) if said.line == 7 => "refused",
            ScriptVerdict::Unsupported(_) => "refused elsewhere",
        }
    };
    for flags in ["S.", "SE.", "SEA.", "SEWA."] {
        assert_eq!(verdict(flags, "linux-6.18"), "passed", "{flags}");
    }
    for flags in ["SW.", "SEW.", "SA.", "SWA."] {
        assert_eq!(verdict(flags, "linux-6.18"), "refused", "{flags}");
        assert_eq!(verdict(flags, "linux-6.12"), "passed", "{flags}");
    }
}

#[test]
fn flow_labels_of_sent_packets_are_refused_by_name() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < (flowlabel 0x1) S 0:0(0) win 65535 <mss 1000>
+0 > (flowlabel 0x2) S. 0:0(0) ack 1 <...>
";
    match outcome(Path::new("a.pkt"), text).verdict {
        ScriptVerdict::Unsupported(said) => assert!(said.to_string().contains("flow labels")),
        other => panic!("{other:?}"),
    }
}
