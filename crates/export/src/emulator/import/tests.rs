//! Nothing of a script is lost: each word is in the scenario, or an error names it.

mod forms;

use proptest::prelude::*;

use super::import;

/// Returns the elements of the direction `forward`, without comments.
fn forward(script: &str) -> Vec<String> {
    let toml = import(script).unwrap_or_else(|error| panic!("{script}\n{error}"));
    let (_, rest) = toml.split_once("forward = [\n").unwrap();
    let (elements, _) = rest.split_once("]\n").unwrap();
    let element = |line: &str| line.split('#').next().unwrap_or("").trim().to_owned();
    elements.lines().map(element).collect()
}

fn refused(script: &str) -> String {
    match import(script) {
        Ok(toml) => panic!("{script}\n{toml}"),
        Err(error) => {
            let at = error.position;
            let line = script.lines().nth(at.line - 1).unwrap_or_default();
            let word: String = line.chars().skip(at.column - 1).take(at.width).collect();
            format!("{}:{word}: {}", at.line, error.message)
        }
    }
}

#[test]
fn tbf_is_a_shaper() {
    let alone = "tc qdisc add dev eth0 root tbf rate 8mbit burst 32kb latency 50ms";
    let shaper = "{ shaper = { rate = \"8000000bit/s\", burst = \"32768B\", buffer = \"82768B\", header = 14 } },";
    assert_eq!(forward(alone), [shaper]);
    let below = "tc qdisc add dev eth0 root handle 1: netem delay 20ms loss 1%\n\
                 tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 8mbit burst 32kb limit 82768\n";
    let netem = "{ netem = { delay = \"20ms\", limit = 1000 } },";
    assert_eq!(forward(below), ["{ loss = \"1%\" },", netem, shaper]);
    // The queue of a tbf above netem is netem: 1000 packets less the 14 in the delay.
    let above = "tc qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 32kb latency 50ms\n\
                 tc qdisc add dev eth0 parent 1:1 netem delay 20ms\n";
    let limited = shaper.replace("82768B", "986p");
    assert_eq!(forward(above), [netem, limited.as_str()]);
    let shown = "qdisc tbf 8001: root refcnt 2 rate 8Mbit burst 32Kb lat 50ms \n";
    assert_eq!(forward(shown), [shaper]);
}

#[test]
fn netem_has_all_its_options() {
    let element = |options: &str| forward(&format!("tc qdisc add dev eth0 root netem {options}"));
    for (options, elements) in [
        ("delay 20ms", &["{ netem = { delay = \"20ms\", limit = 1000 } },"][..]),
        (
            "delay 20ms 5ms 25% distribution paretonormal limit 77",
            &[
                "{ netem = { delay = \"20ms\", jitter = \"5ms\", correlation = \"25%\", distribution = \
               \"paretonormal\", limit = 77 } },",
            ],
        ),
        (
            "delay 9ms reorder 25% 50% gap 5",
            &[
                "{ netem = { delay = \"9ms\", reorder = \"25%\", reorder_correlation = \"50%\", gap = 5, \
               limit = 1000 } },",
            ],
        ),
        // A gap alone is of all candidates.
        (
            "gap 5 delay 9ms",
            &["{ netem = { delay = \"9ms\", reorder = \"100%\", gap = 5, limit = 1000 } },"],
        ),
        (
            "rate 10mbit",
            &["{ netem = { rate = \"10000000bit/s\", overhead = 14, limit = 1000 } },"],
        ),
        ("rate 10mbit -14", &["{ netem = { rate = \"10000000bit/s\", limit = 1000 } },"]),
        (
            "rate 1mbit 20 48 5 limit 9",
            &[
                "{ netem = { rate = \"1000000bit/s\", overhead = 34, cell = 48, cell_overhead = 5, limit \
               = 9 } },",
            ],
        ),
        (
            "rate 1mbit packetoverhead 20 cellsize 48 celloverhead 5",
            &[
                "{ netem = { rate = \"1000000bit/s\", overhead = 34, cell = 48, cell_overhead = 5, limit \
               = 1000 } },",
            ],
        ),
        (
            "loss 0.3% 25% duplicate 1% corrupt 2% 10%",
            &[
                "{ duplicate = \"1%\" },",
                "{ loss = { share = \"0.3%\", correlation = \"25%\" } },",
                "{ corrupt = { share = \"2%\", correlation = \"10%\" } },",
            ],
        ),
        ("loss state 1% 10%", &["{ loss = { four_state = { p13 = \"1%\", p31 = \"10%\" } } },"]),
        (
            "slot 1ms 2ms packets 5 bytes 64k",
            &["{ slot = { min = \"1ms\", max = \"2ms\", packets = 5, bytes = \"65536B\" } },"],
        ),
    ] {
        assert_eq!(element(options), elements, "{options}");
    }
}

#[test]
fn one_class_of_htb_is_a_shaper() {
    let mininet = "tc qdisc add dev s1-eth1 root handle 5:0 htb default 1\n\
                   tc class add dev s1-eth1 parent 5:0 classid 5:1 htb rate 10.000000Mbit burst 15k\n\
                   tc qdisc add dev s1-eth1 parent 5:1 handle 10: netem delay 5ms loss 2% limit 100\n";
    // The bucket of `ceil` has 1600 bytes, and a packet may exceed it.
    let shaper = "{ shaper = { rate = \"10000000bit/s\", burst = \"3114B\", buffer = \"95p\", header = 14 } },";
    let netem = "{ netem = { delay = \"5ms\", limit = 100 } },";
    assert_eq!(forward(mininet), ["{ loss = \"2%\" },", netem, shaper]);
    let borrowing = "tc qdisc add dev e root handle 1: htb default 10\n\
                     tc class add dev e parent 1: classid 1:1 htb rate 50mbit\n\
                     tc class add dev e parent 1:1 classid 1:10 htb rate 1mbit ceil 20mbit cburst 6k\n";
    // The bucket of `ceil` has 6144 bytes.
    let shaper = "{ shaper = { rate = \"20000000bit/s\", burst = \"7658B\", buffer = \"1000p\", header = 14 } },";
    assert_eq!(forward(borrowing), [shaper]);
    // A class without a parent borrows nothing.
    let alone = "tc qdisc add dev e root handle 1: htb default 10\n\
                 tc class add dev e parent 1: classid 1:10 htb rate 1mbit ceil 20mbit burst 6k\n\
                 tc qdisc add dev e parent 1:10 handle 2: fq_codel target 10ms\n";
    let link = "{ link = { rate = \"1000000bit/s\", buffer = \"10240p\", queue = { fq_codel = { target = \
                \"10ms\" } } } },";
    assert_eq!(forward(alone), [link]);
}

/// A class that all packets have, beside others; a parent that does not exist is none.
#[test]
fn the_class_of_all_packets_counts() {
    let script = "tc qdisc add dev lo root handle 1a: htb default 1\n\
                  tc class add dev lo parent 1a: classid 1a:1 htb rate 1gbit\n\
                  tc class add dev lo parent 1a:99 classid 1a:104 htb rate 8mbit burst 3000 cburst 3000\n\
                  tc qdisc add dev lo parent 1a:104 handle 20: netem\n\
                  tc filter add dev lo protocol ip parent 1a: prio 5 u32 match ip dst 0.0.0.0/0 match ip \
                  src 0.0.0.0/0 flowid 1a:104\n";
    let shaper = "{ shaper = { rate = \"8000000bit/s\", burst = \"4514B\", buffer = \"1000p\", header = 14 } },";
    assert_eq!(forward(script), [shaper]);
    let some = script.replace("ip dst 0.0.0.0/0", "ip dst 10.0.0.1");
    // Packets that the filter does not select have the default class.
    let gigabit = shaper.replace("8000000", "1000000000").replace("4514B", "3114B");
    assert_eq!(forward(&some), [gigabit]);
    assert!(import(&some).unwrap().contains("class 1a:1: for the packets that no filter selects"));
    let default = script.replace("default 1\n", "default 104\n");
    let (default, _) = default.split_once("tc filter").unwrap();
    assert_eq!(forward(default), [shaper]);
}

#[test]
fn queues_below_a_rate_have_their_discipline() {
    let below = |queue: &str| {
        forward(&format!(
            "tc qdisc add dev e root handle 1: tbf rate 8mbit burst 3000 limit 9000\n\
             tc qdisc add dev e parent 1:1 {queue}\n"
        ))
    };
    let shaper = |buffer: &str| {
        format!(
            "{{ shaper = {{ rate = \"8000000bit/s\", burst = \"3000B\", buffer = \"{buffer}\", header = 14 }} }},"
        )
    };
    let link = |buffer: &str, queue: &str| {
        format!(
            "{{ link = {{ rate = \"8000000bit/s\", buffer = \"{buffer}\", queue = {queue} }} }},"
        )
    };
    for (queue, element) in [
        ("pfifo limit 50", shaper("50p")),
        ("bfifo limit 64k", shaper("65536B")),
        ("sfq perturb 10", shaper("127p")),
        ("fq", shaper("100p")),
        ("codel", link("1000p", "\"codel\"")),
        ("codel ecn target 3ms", link("1000p", "{ codel = { ecn = true, target = \"3ms\" } }")),
        ("pie tupdate 30ms", link("1000p", "{ pie = { update = \"30ms\" } }")),
        // 55 + 1 - 30 packets are fewer than (1 - (1 - 1/32)^55) * 32 = 26.4, and more than with 1/16.
        (
            "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02",
            link(
                "400000B",
                "{ red = { min = 30, max = 90, probability = \"2%\", weight = \"3.1250000%\", gentle = \
                 false } }",
            ),
        ),
    ] {
        assert_eq!(below(queue), [element], "{queue}");
    }
}

#[test]
fn packets_that_a_device_receives_are_a_direction() {
    let script = "modprobe ifb\nip link set dev ifb0 up mtu 1400\n\
                  tc qdisc add dev eth0 handle ffff: ingress\n\
                  tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred \
                  egress redirect dev ifb0\n\
                  tc qdisc add dev ifb0 root netem delay 5ms\n\
                  tc qdisc add dev eth0 root netem delay 7ms\n";
    assert_eq!(forward(script), ["{ netem = { delay = \"5ms\", limit = 1000 } },"]);
    let toml = import(script).unwrap();
    assert_eq!(toml.matches("mtu = \"1400B\"").count(), 2);
    assert!(toml.contains("return = [\n    { netem = { delay = \"7ms\""), "{toml}");
    let police = "tc qdisc add dev eth0 ingress\n\
                  tc filter add dev eth0 parent ffff: matchall police rate 8mbit burst 30k drop flowid :1\n";
    let element = "{ policer = { rate = \"8000000bit/s\", burst = \"30720B\" } },";
    assert_eq!(forward(police), [element]);
    assert!(import(police).unwrap().contains("return = [] # no command for this direction"));
    let exec = "#!/bin/sh\nLOSS=$1\necho \"delay $DELAY\"\ntc qdisc add dev eth0 root netem delay 5ms\nexec \"$@\"\n";
    assert_eq!(forward(exec), ["{ netem = { delay = \"5ms\", limit = 1000 } },"]);
    // Packets of both directions leave through the loopback.
    let loopback = import("tc qdisc add dev lo root netem delay 5ms").unwrap();
    assert_eq!(loopback.matches("delay = \"5ms\"").count(), 2);
}

#[test]
fn what_tc_shows_is_read_with_its_counters() {
    let shown = "qdisc noqueue 0: dev lo root refcnt 2 \n\
        qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000\n\
        \x20Sent 1234 bytes 12 pkt (dropped 0, overlimits 0 requeues 0) \n\
        \x20backlog 0b 0p requeues 0\n\
        qdisc fq_codel 10: dev eth0 parent 1:1 limit 10240p flows 1024 quantum 1514 target 5ms interval \
        100ms memory_limit 32Mb ecn drop_batch 64 \n\
        \x20 maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 0\n\
        class htb 1:1 root leaf 10: prio 0 rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b \n";
    let link = "{ link = { rate = \"10000000bit/s\", buffer = \"10240p\", queue = { fq_codel = { flows = \
                1024, quantum = \"1514B\", target = \"5ms\", interval = \"100ms\", ecn = true } } } },";
    assert_eq!(forward(shown), [link]);
}

#[test]
fn what_no_scenario_represents_is_named() {
    let netem = "tc qdisc add dev eth0 root handle 1: netem delay 20ms\n";
    let tbf = "tc qdisc add dev eth0 parent 1: handle 2: tbf rate 8mbit burst 32kb latency 50ms\n";
    for (script, message) in [
        (
            "tc qdisc add dev e root netem reorder 25%",
            "1:reorder: netem: reordering is not possible",
        ),
        ("tc qdisc add dev e root netem delay 9ms limit 0", "1:limit: netem: `limit 0` loses"),
        ("tc qdisc add dev e root netem loss 1% ecn", "1:ecn: netem: `ecn` marks packets"),
        ("tc qdisc add dev e root netem delay 9ms 3s", "1:delay: no scenario can have this"),
        ("tc qdisc add dev e root netem rate 1mbit -15", "1:-15: `-15`: expected -14 to 4096"),
        ("tc qdisc add dev e root netem delay 9ms delay 8ms", "1:delay: `delay` is given twice"),
        ("tc qdisc add dev e root netem delay 0.1ns", "1:0.1ns: `0.1ns` is out of range"),
        ("tc qdisc add dev e root netem delay 2000000s", "1:delay: no scenario can have this"),
        ("tc qdisc add dev e root handle 1: htb default 1", "1:htb: htb has no class"),
        (
            "tc class add dev e parent 1: classid 1:1 htb rate 1mbit",
            "1:1:1: class 1:1 has no qdisc",
        ),
        ("tc qdisc add dev e root fq_codel", "1:fq_codel: `fq_codel` has no rate above it"),
        ("tc qdisc add dev e root cake bandwidth 9mbit", "1:cake: qdisc `cake` is not modelled"),
        ("tc qdisc add dev e root hfsc default 1", "1:hfsc: qdisc `hfsc` is not modelled"),
        ("tc qdisc add dev e root dualpi2", "1:dualpi2: qdisc `dualpi2` is not modelled"),
        ("tc qdisc add dev e root nothing", "1:nothing: qdisc `nothing` is not known"),
        ("tc qdisc add dev e root netem delay $D", "1:$D: variable `D` has no value"),
        ("for d in a b; do", "1:for: `for` without `done`"),
        ("ip route add 10.0.0.0/8 via 10.0.0.1 initrwnd 30", "1:initrwnd: ip route: `initrwnd`"),
        (
            "sysctl -w net.ipv4.tcp_rmem='1 2'",
            "1:net.ipv4.tcp_rmem='1 2': sysctl: `net.ipv4.tcp_rmem` cannot have the value `1 2`",
        ),
        (
            "sysctl -w net.ipv4.tcp_fin_timeout=3",
            "1:net.ipv4.tcp_fin_timeout=3: sysctl: `net.ipv4.tcp_fin_timeout` is not a setting",
        ),
        (
            &format!("ip netns exec a sysctl -w net.ipv4.tcp_sack=0\n{netem}"),
            "1:net.ipv4.tcp_sack=0: no qdisc in this text is in the namespace `a`",
        ),
        (
            &format!("{netem}sleep 9\n{}", netem.replace("add", "change")),
            "3:netem: `netem` changes the path of line 1 after it was used",
        ),
        (
            &format!("{netem}ping h\ntc qdisc del dev eth0 root\n{netem}"),
            "4:netem: `netem` changes the path of line 3 after it was used",
        ),
        (
            "qdisc mq 0: dev e root\n\
             qdisc netem 1: dev e parent :1 limit 1000 delay 1ms\n\
             qdisc netem 2: dev e parent :2 limit 1000 delay 2ms\n",
            "3:netem: the queues of `mq` differ",
        ),
        ("net.addLink(a, b, bw=10, delay=d)", "1:addLink: addLink: `delay`: `d` is not a plain"),
        ("net.addLink(a, b)", "1:addLink: addLink: no link has `bw`"),
        (
            "net.addLink(a, b, bw=1)\nnet.addLink(b, c, bw=2)",
            "2:addLink: addLink: a second link with other parameters than that of line 1",
        ),
        (
            "tc qdisc add dev e root tbf rate 1mbit burst 9k limit 9k peakrate 2mbit",
            "1:peakrate: tbf",
        ),
        ("tc qdisc add dev e root tbf rate 1mbit burst 9k", "1:tbf: tbf: `limit` or `latency` is"),
        (
            "tc qdisc add dev e root tbf rate 1mbit burst 100 limit 9k",
            "1:burst: tbf: the bucket has",
        ),
        ("ip link set dev eth0 up bogus", "1:bogus: ip link: unexpected word `bogus`"),
        ("ip link add a type veth peer name b c", "1:c: ip link: unexpected word `c`"),
        ("ifconfig eth0 10.0.0.1 up bogus", "1:bogus: ifconfig: unexpected word `bogus`"),
        ("ethtool -K eth0 tso on", "1:tso: ethtool: `tso on` is not supported"),
        ("tc qdisc show | cat", "1:|: `|` is not supported"),
        ("tc qdisc add dev e root netem delay 9ms || exit", "1:||: `||` is not supported"),
        ("ipfw pipe 1 config delay 5 queue 10", "1:queue: dummynet: `queue` without `bw`"),
        ("ipfw pipe 1 config delay 5 mask all", "1:mask: dummynet: option `mask`"),
        (
            "ipfw pipe 1 config delay 5\nipfw add pipe 2 ip from any to any out",
            "2:2: pipe 2 is not",
        ),
        (
            "ipfw pipe 1 config delay 5\nipfw add pipe 1 tcp from any to any out",
            "2:tcp: expected `ip`",
        ),
        (
            "ipfw pipe 1 config delay 5\nipfw add pipe 1 ip from any to any via e",
            "2:1: the rule sends",
        ),
        (
            "ipfw pipe 1 config delay 5\nipfw pipe 1 config delay 6",
            "2:1: pipe 1 is configured twice",
        ),
        (&format!("{netem}{}", tbf.replace("1:", "3:")), "2:3:: parent `3:` is no qdisc or class"),
        (
            &format!("{netem}{netem}"),
            "2:root: the device has a root qdisc already, `netem` in line 1",
        ),
        (&format!("{netem}{tbf}{}", tbf.replace("1:", "2:")), "3:tbf: `tbf` below `tbf`"),
        (&format!("{netem}{tbf}{tbf}"), "3:tbf: `tbf` below 1:0: no packet of the path"),
        (
            "tc qdisc add dev e root handle 1: htb default 9\n\
             tc class add dev e parent 1: classid 1:1 htb rate 1mbit",
            "2:1:1: no packet reaches class 1:1",
        ),
        (
            "tc qdisc add dev e root handle 1: htb default 3\n\
             tc class add dev e parent 1: classid 1:1 htb rate 1mbit\n\
             tc class add dev e parent 1: classid 1:2 htb rate 1mbit",
            "3:1:2: htb has 2 classes at the ends",
        ),
        (&format!("{netem}{}", netem.replace("eth0", "lo")), "2:netem: the loopback with another"),
        (
            &format!("{netem}{tbf}tc qdisc del dev eth0 parent 1:"),
            "3:del: `del` removes `tbf` of line 2",
        ),
        (
            &format!(
                "{}{}",
                netem.replace("netem delay 20ms", "tbf rate 8mbit burst 9k limit 9k"),
                tbf
            ),
            "2:tbf: `tbf` below `tbf`",
        ),
        (
            &format!(
                "tc qdisc add dev eth0 root handle 1: tbf rate 1gbit burst 9k limit 9k\n\
                 {}",
                netem.replace("root handle 1:", "parent 1:").replace("20ms", "1s")
            ),
            "2:netem: netem: the delay alone has 83334 packets",
        ),
        (
            &format!("{netem}{}{}", netem.replace("eth0", "e1"), netem.replace("eth0", "e2")),
            "3:netem: expected one or two",
        ),
    ] {
        let error = refused(script);
        assert!(error.starts_with(message), "{script}\n{error}");
    }
}

#[test]
fn scripts_may_delete_what_was_there() {
    let script = "#!/bin/sh\nsudo tc qdisc del dev eth0 root 2>/dev/null || true\n\
                  ip netns exec a tc qdisc add dev eth0 root netem delay 20ms; \
                  ip netns exec b tc qdisc add dev eth0 root netem \\\n  delay 30ms\n";
    assert_eq!(forward(script), ["{ netem = { delay = \"20ms\", limit = 1000 } },"]);
    let script = "ipfw -q -f flush\nipfw pipe flush\nipfw pipe 1 config bw 1Mbit/s\n\
                  ipfw add pipe 1 ip from any to any out xmit em0\n";
    assert_eq!(forward(script), ["{ link = { rate = \"1000000bit/s\", buffer = \"50p\" } },"]);
}

/// Words of random scripts. A `#` in a word is replaced by a number.
const OPTIONS: &[&str] = &[
    "limit #",
    "delay #ms",
    "delay #ms #ms",
    "delay #us 1ms",
    "loss #%",
    "loss random #%",
    "loss gemodel #% #% #% #%",
    "loss gemodel p #% r #%",
    "duplicate #%",
    "corrupt #%",
    "corrupt #% #%",
    "rate #mbit",
    "rate #kbit",
    "rate #Mbit",
    "rate #bit",
    "reorder #% gap #",
    "slot #ms",
    "distribution normal",
    "delay #ms #ms #% distribution pareto",
    "loss #% #%",
    "loss state #% #%",
    "reorder #% #%",
    "gap #",
    "slot #ms #ms packets #",
    "rate #mbit # # #",
    "quantum #",
    "tupdate #ms",
    "perturb #",
    "bands #",
    "limit # min # max # avpkt # burst #",
    "distribution uniform",
    "ecn",
    "burst #kb",
    "burst #",
    "latency #ms",
    "limit #kb",
    "mtu #",
    "peakrate #mbit",
    "flows #",
    "target #ms",
    "seed #",
    "default #",
    "#",
];
const QDISCS: &[&str] = &[
    "netem", "netem", "netem", "tbf", "tbf", "htb", "prio", "pfifo", "bfifo", "fq_codel", "codel",
    "pie", "sfq", "fq", "red",
];
const PLACES: &[&str] = &[
    "root",
    "root",
    "root handle 1:",
    "root handle 1:",
    "parent 1:",
    "parent 1:1 handle 2:",
    "parent 2:",
];
const TBF: &str = "rate #mbit burst #kb latency #ms";

fn command() -> impl Strategy<Value = String> {
    let options = proptest::collection::vec(proptest::sample::select(OPTIONS), 0..4);
    let place = proptest::sample::select(PLACES);
    let qdisc = proptest::sample::select(QDISCS);
    (place, qdisc, options, 0..2_u8, any::<bool>()).prop_map(
        |(place, qdisc, options, device, whole)| {
            if qdisc == "htb" && whole {
                let class = "classid 1:1 htb rate #mbit ceil #mbit burst #k";
                return format!(
                    "tc qdisc add dev eth{device} root handle 1: htb default 1\n\
                     tc class add dev eth{device} parent 1: {class}\n"
                );
            }
            let whole = if qdisc == "tbf" && whole { TBF } else { "" };
            let options = options.join(" ");
            let options = if whole.is_empty() { options.as_str() } else { whole };
            format!("tc qdisc add dev eth{device} {place} {qdisc} {options}\n")
        },
    )
}

/// A script whose numbers are marked, and the numbers.
fn script() -> impl Strategy<Value = (String, Vec<u64>)> {
    proptest::collection::vec(command(), 1..4).prop_flat_map(|commands| {
        let script = commands.concat();
        let number = prop_oneof![1..100_u64, 1..100_000_u64, any::<u64>()];
        let count = script.matches('#').count();
        (Just(script), proptest::collection::vec(number, count))
    })
}

fn fill(script: &str, numbers: &[u64]) -> String {
    let mut parts = script.split('#');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for (part, number) in parts.zip(numbers) {
        filled += &format!("{number}{part}");
    }
    filled
}

/// The lines of the scenario.
fn elements(script: &str) -> Result<Vec<String>, String> {
    let toml = import(script).map_err(|error| {
        let lines = script.lines().count();
        assert!((1..=lines).contains(&error.position.line), "{script}\n{error}");
        assert!(!error.message.is_empty());
        error.to_string()
    })?;
    Ok(toml.lines().map(str::to_owned).collect())
}

/// Places between the words of a script.
fn gaps(script: &str) -> Vec<usize> {
    script.char_indices().filter(|(_, c)| *c == ' ' || *c == '\n').map(|(at, _)| at).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    /// A script is refused at one of its lines, or each of its numbers changes the scenario, and
    /// the scenario is valid.
    #[test]
    fn no_number_of_a_script_is_lost((script, numbers) in script()) {
        let whole = fill(&script, &numbers);
        let Ok(before) = elements(&whole) else { return Ok(()) };
        let toml = import(&whole).unwrap();
        prop_assert!(scenario::load(&toml, "import", &scenario::Overrides::default()).is_ok());
        for (index, &number) in numbers.iter().enumerate() {
            let mut changed = numbers.clone();
            changed[index] = number.wrapping_mul(2).wrapping_add(1);
            let changed = fill(&script, &changed);
            if let Ok(after) = elements(&changed) {
                prop_assert!(after != before, "{whole}{changed}{before:?}");
            }
        }
    }

    /// Each word of a script that is imported was read: one more anywhere is an error.
    #[test]
    fn no_word_of_a_script_is_skipped((script, numbers) in script(), place in any::<usize>()) {
        let whole = fill(&script, &numbers);
        if elements(&whole).is_err() {
            return Ok(());
        }
        let gaps = gaps(&whole);
        let at = gaps[place % gaps.len()];
        let more = format!("{} bogus{}", &whole[..at], &whole[at..]);
        prop_assert!(elements(&more).is_err(), "{more}");
    }

    /// No text makes the reader panic, and each error is at a word of the text.
    #[test]
    fn any_text_is_read(text in "[a-z0-9:%;&|#\\\\ \n.$='\"{}>-]{0,80}") {
        let _ = elements(&format!("tc {text}\n"));
    }
}
