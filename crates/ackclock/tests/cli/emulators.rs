//! Paths as commands of tc/netem and dummynet, and back.

use crate::test_directory::{SMALL, TestDirectory};

const PATH: &str = r#"
title = "path"
duration = "60s"
[host.a]
profile = "linux-6.18"
[host.b]
profile = "linux-6.18"
[[path]]
from = "a"
to = "b"
forward = [
    { loss = { gilbert_elliott = { p = "1%", r = "30%", h = "10%" } } },
    { link = { rate = "10Mbit/s", buffer = "60kB" } },
    { delay = "20ms" },
    { jitter = "2ms" },
]
return = [{ link = { rate = "1Gbit/s", buffer = "100p" } }, { delay = "20ms" }, { loss = "0.5%" }]
[[flow]]
name = "t"
from = "a"
to = "b"
bulk = "1MB"
"#;

#[test]
fn a_path_as_netem_comes_back() {
    let dir = TestDirectory::new("a_path_as_netem_comes_back");
    dir.write("path.toml", PATH);
    let commands = dir.run(&["scenario", "export", "path.toml", "--devices", "em0,em1"]).ok();
    // 40 packets of the buffer and 18 in the delay of 21 ms.
    let forward = "tc qdisc replace dev em0 root netem limit 58 delay 21000us 1000us \
                   loss gemodel 1% 30% 90% 0% rate 10000000bit -14\n";
    assert!(commands.contains(forward), "{commands}");
    dir.write("path.sh", &commands);
    dir.write("back.toml", dir.run(&["scenario", "import", "path.sh"]).ok());
    let again = dir.run(&["scenario", "export", "back.toml", "--devices", "em0,em1"]).ok();
    // The same options, those of the element `netem` last.
    let forward = "tc qdisc replace dev em0 root netem limit 58 loss gemodel 1% 30% 90% 0% delay 21ms \
                   1ms rate 10000000bit -14\n";
    assert!(again.contains(forward), "{again}");
    dir.write("again.sh", &again);
    let back = dir.run(&["scenario", "import", "again.sh"]).ok();
    assert_eq!(back, dir.run(&["scenario", "import", "path.sh"]).ok());
}

/// Each element is a qdisc below the one before; the path comes back from its commands.
#[test]
fn a_path_as_qdiscs_comes_back() {
    let dir = TestDirectory::new("a_path_as_qdiscs_comes_back");
    let export = |file: &str| {
        let arguments = ["scenario", "export", file, "--to", "tc", "--devices", "em0,em1"];
        dir.run(&arguments).ok()
    };
    let netem = "{ netem = { delay = \"20ms\", jitter = \"4ms\", distribution = \"normal\", correlation = \
                 \"25%\", reorder = \"7%\", gap = 3, limit = 300 } }";
    let forward = format!(
        "{{ loss = {{ share = \"0.3%\", correlation = \"10%\" }} }}, {netem}, \
         {{ shaper = {{ rate = \"10Mbit/s\", burst = \"9kB\", buffer = \"40p\" }} }}"
    );
    let back = "{ link = { rate = \"20Mbit/s\", buffer = \"50p\" } }, { delay = \"5ms\" }";
    let (head, rest) = PATH.split_once("forward = [").unwrap();
    let (_, tail) = rest.split_once("[[flow]]").unwrap();
    dir.write(
        "path.toml",
        format!("{head}forward = [{forward}]\nreturn = [{back}]\n[[flow]]{tail}"),
    );
    let commands = export("path.toml");
    for text in [
        "tc qdisc add dev em0 root handle 1: netem limit 300 loss 0.3% 10% delay 20ms 4ms 25% distribution \
         normal reorder 7% gap 3\n",
        "tc qdisc add dev em0 parent 1:1 handle 2: tbf rate 10000000bit burst 9000 limit 60000\n",
        "tc qdisc add dev em0 parent 2:1 handle 3: pfifo limit 40\n",
        "tc qdisc add dev em1 root handle 1: netem limit 51 rate 20000000bit -14\n",
        "tc qdisc add dev em1 parent 1:1 handle 2: netem limit 1000000 delay 5ms\n",
    ] {
        assert!(commands.contains(text), "{text}{commands}");
    }
    dir.write("path.sh", &commands);
    dir.write("back.toml", dir.run(&["scenario", "import", "path.sh"]).ok());
    // What came from tbf has its header.
    let note = "# tbf counts the Ethernet header: 14 bytes more a packet\n";
    assert!(commands.contains(note), "{commands}");
    assert_eq!(export("back.toml"), commands.replace(note, ""));
    dir.write("outage.toml", PATH.replace("{ jitter = \"2ms\" }", "{ mtu = \"1300B\" }"));
    let arguments = ["scenario", "export", "outage.toml", "--to", "tc"];
    let refused = dir.run(&arguments).refused();
    assert!(refused.contains("path 0, forward: tc has no MTU"), "{refused}");
}

#[test]
fn a_path_as_dummynet_comes_back() {
    let dir = TestDirectory::new("a_path_as_dummynet_comes_back");
    dir.write("small.toml", SMALL);
    let export = ["scenario", "export", "--to", "dummynet"];
    let commands = dir.run(&[&export[..], &["small.toml"]].concat()).ok();
    assert!(commands.contains("ipfw pipe 1 config bw 10000000bit/s "), "{commands}");
    assert!(
        commands.contains("ipfw add 200 pipe 2 ip from any to any out xmit eth1"),
        "{commands}"
    );
    dir.write("path.sh", &commands);
    dir.write("back.toml", dir.run(&["scenario", "import", "path.sh"]).ok());
    assert_eq!(dir.run(&[&export[..], &["back.toml"]].concat()).ok(), commands);
}

#[test]
fn what_tc_shows_is_read() {
    let dir = TestDirectory::new("what_tc_shows_is_read");
    let shown = "qdisc noqueue 0: dev lo root refcnt 2\n\
                 qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms  10ms loss 1% \
                 rate 10Mbit seed 17\n";
    dir.write("shown.txt", shown);
    let scenario = dir.run(&["scenario", "import", "shown.txt"]).ok();
    let netem = "netem = { delay = \"100ms\", jitter = \"10ms\", rate = \"10000000bit/s\", overhead = 14, \
                 limit = 1000 }";
    for text in ["loss = \"1%\"", netem] {
        assert!(scenario.contains(text), "{text}: {scenario}");
    }
    dir.write("shown.toml", scenario);
    dir.run(&["scenario", "check", "shown.toml"]).ok();
}

#[test]
fn a_number_alone_is_milliseconds_for_dummynet() {
    let dir = TestDirectory::new("a_number_alone_is_milliseconds");
    dir.write("pipe.sh", "ipfw pipe 1 config bw 1Mbit/s delay 20 queue 64KB\n");
    let scenario = dir.run(&["scenario", "import", "pipe.sh"]).ok();
    for text in ["delay = \"20ms\"", "buffer = \"65536B\""] {
        assert!(scenario.contains(text), "{text}: {scenario}");
    }
    dir.write("long.sh", "ipfw pipe 1 config queue 18446744073709551615KB\n");
    let refused = dir.run(&["scenario", "import", "long.sh"]).refused();
    let message = "`18446744073709551615KB`: expected a size, such as 50 or 64KBytes";
    assert!(refused.contains(message) && refused.contains("long.sh:1:26"), "{refused}");
    for share in ["nan", "-0.1", "1.5"] {
        dir.write("share.sh", format!("ipfw pipe 1 config plr {share}\n"));
        let refused = dir.run(&["scenario", "import", "share.sh"]).refused();
        let message = format!("plr `{share}`: expected 0 to 1");
        assert!(refused.contains(&message) && refused.contains("share.sh:1:24"), "{refused}");
    }
}

#[test]
fn what_cannot_be_emulated_is_an_error() {
    let dir = TestDirectory::new("what_cannot_be_emulated");
    dir.write("path.toml", PATH);
    for (arguments, message) in [
        (&["export", "path.toml", "--to", "dummynet"][..], "dummynet has no jitter"),
        (&["export", "path.toml", "--devices", "a;b,c"], "`a;b` is no name of a device"),
        (&["export", "path.toml", "--path", "1"], "--path 1: the scenario has 1 paths"),
        (&["import", "gap.sh"], "netem: reordering is not possible without a delay"),
        (&["import", "gap.sh"], "gap.sh:2:31"),
        (&["import", "path.toml"], "`title` is not supported, only `tc`, `ip`, `ipfw`"),
        (&["import", "none.sh"], "no qdisc and no pipe that changes a path"),
        (&["import", "long.sh"], "`delay` is more than 1000000s"),
        (&["import", "long.sh"], "long.sh:1:31"),
    ] {
        dir.write("none.sh", "# nothing\n");
        dir.write("long.sh", "tc qdisc add dev x root netem delay 2000000s\n");
        dir.write("gap.sh", "# netem\ntc qdisc add dev x root netem gap 5\n");
        let refused = dir.run(&[&["scenario"], arguments].concat()).refused();
        assert!(refused.contains(message), "{arguments:?}: {refused}");
    }
}
