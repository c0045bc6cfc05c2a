//! Loops, changes, several queues, settings of hosts, and links of mininet.

use super::super::import;
use super::{forward, refused};

const NETEM_20: &str = "{ netem = { delay = \"20ms\", limit = 1000 } },";

#[test]
fn a_change_before_the_path_is_used_replaces_and_a_last_removal_is_none() {
    let add = "tc qdisc add dev eth0 root handle 1: netem delay 5ms\n";
    let change = "tc qdisc change dev eth0 root netem delay 20ms\n";
    let remove = "tc qdisc del dev eth0 root\n";
    for script in [
        format!("{add}{change}"),
        format!("{add}{}", change.replace("change", "replace")),
        format!("{add}{remove}{}", change.replace("change", "add")),
        format!("{}sleep 10\n{remove}", change.replace("change", "add")),
        format!("{}tc qdisc show dev eth0\n{remove}", change.replace("change", "add")),
        "for D in eth0 eth1; do\n  tc qdisc add dev $D root netem delay 20ms\ndone\n".to_owned(),
    ] {
        assert_eq!(forward(&script), [NETEM_20], "{script}");
    }
    let below = "tc qdisc add dev eth0 root handle 1: netem delay 20ms\n\
                 tc qdisc add dev eth0 parent 1:1 fq_codel limit 77\n";
    assert_eq!(forward(below), [NETEM_20]);
    assert!(import(below).unwrap().contains("no packet waits in `fq_codel` below netem (77p"));
}

/// What is below a netem that is below a rate has the packets that wait for the rate.
#[test]
fn a_netem_between_two_qdiscs_is_a_delay_before_them() {
    let above = "tc qdisc add dev e root handle 1: htb default 1\n\
                 tc class add dev e parent 1: classid 1:1 htb rate 10mbit\n\
                 tc qdisc add dev e parent 1:1 handle 2: netem delay 20ms\n";
    let below = |qdisc: &str| format!("{above}tc qdisc add dev e parent 2:1 {qdisc}\n");
    let link = "{ link = { rate = \"10000000bit/s\", buffer = \"1000p\", queue = \"codel\" } },";
    assert_eq!(forward(&below("codel")), [NETEM_20, link]);
    let inner = "{ shaper = { rate = \"5000000bit/s\", burst = \"9000B\", buffer = \"90000B\", header = 14 } },";
    let outer = "{ shaper = { rate = \"10000000bit/s\", burst = \"3114B\", buffer = \"1000p\", header = 14 } },";
    assert_eq!(forward(&below("tbf rate 5mbit burst 9000 limit 90000")), [NETEM_20, inner, outer]);
    let faster = refused(&below("tbf rate 50mbit burst 9000 limit 90000"));
    assert!(
        faster.starts_with("4:tbf: `tbf` below netem is faster than the rate above"),
        "{faster}"
    );
}

#[test]
fn queues_of_mq_are_one_path_and_seeds_are_kept() {
    let shown = "qdisc mq 0: dev e root\n\
                 qdisc fq_codel 0: dev e parent :2 limit 10240p flows 1024 quantum 1514 target 5ms \
                 interval 100ms memory_limit 32Mb ecn drop_batch 64\n\
                 qdisc fq_codel 0: dev e parent :1 limit 10240p flows 1024 quantum 1514 target 5ms \
                 interval 100ms memory_limit 32Mb ecn drop_batch 64\n\
                 qdisc netem 8003: dev w root refcnt 5 limit 1000 delay 20ms seed 1234567890123456789\n";
    assert_eq!(forward(shown), [NETEM_20]);
    assert!(import(shown).unwrap().contains("\nseed = 1234567890123456789\n"));
    let each = "qdisc mq 8001: dev e root\n\
                qdisc netem 8002: dev e parent 8001:1 limit 1000 delay 20ms seed 3\n\
                qdisc netem 8003: dev e parent 8001:2 limit 1000 delay 20ms seed 4\n";
    assert_eq!(forward(each), [NETEM_20]);
    assert!(import(each).unwrap().contains("seed = 3 # not used: netem's seed 4\n"));
    let large = import("tc qdisc add dev e root netem delay 1 seed 18446744073709551615").unwrap();
    assert!(large.contains("seed = 1 # too large: netem's seed 18446744073709551615"), "{large}");
    // A percentage needs no sign.
    assert_eq!(forward("tc qdisc add dev e root netem loss 1"), ["{ loss = \"1%\" },"]);
}

#[test]
fn settings_of_hosts_are_kept() {
    let toml = import(
        "ip route change default via 10.0.0.1 dev eth0 initcwnd 20\n\
         sysctl -w net.ipv4.tcp_sack=0 net.ipv4.tcp_congestion_control=reno\n\
         tc qdisc add dev eth0 root netem delay 20ms\n",
    )
    .unwrap();
    let (sender, receiver) = toml.split_once("[host.receiver]").unwrap();
    assert!(
        sender.contains("cc = \"reno\"") && sender.contains("\"ip-route.initcwnd\" = 20"),
        "{toml}"
    );
    assert!(receiver.contains("\"net.ipv4.tcp_sack\" = false"), "{toml}");
    assert!(!receiver.contains("initcwnd"), "{toml}");
    let toml = import(
        "ip netns exec b sysctl -w net.ipv4.tcp_rmem='4096 87380 6291456'\n\
         ip netns exec a tc qdisc add dev v root netem delay 20ms\n\
         ip netns exec b tc qdisc add dev v root netem delay 20ms\n",
    )
    .unwrap();
    let (sender, receiver) = toml.split_once("[host.receiver]").unwrap();
    assert!(!sender.contains("tcp_rmem"), "{toml}");
    assert!(receiver.contains("\"net.ipv4.tcp_rmem\" = [\"4096B\", \"87380B\", \"6291456B\"]"));
    let wrong = "sysctl -w net.ipv4.tcp_congestion_control=nothing\ntc qdisc add dev e root netem delay 1\n";
    assert!(refused(wrong).starts_with("1:net.ipv4.tcp_congestion_control=nothing: no scenario"));
}

#[test]
fn a_link_of_mininet_has_the_commands_of_mininet() {
    let python = "from mininet.net import Mininet\nopts = dict(bw=10,\n  delay='5ms', loss=2)\n\
                  net.addLink('h1', 's1', **opts, max_queue_size=100, use_htb=True)\n";
    let commands = "tc qdisc add dev a root handle 5:0 htb default 1\n\
                    tc class add dev a parent 5:0 classid 5:1 htb rate 10.000000Mbit burst 15k\n\
                    tc qdisc add dev a parent 5:1 handle 10: netem delay 5ms loss 2.00000% limit 100\n";
    assert_eq!(forward(python), forward(commands));
    let toml = import(python).unwrap();
    assert_eq!(toml.matches("shaper = ").count(), 2, "{toml}");
    let delay = forward("net.addLink(a, b, delay='20ms')");
    assert_eq!(delay, [NETEM_20]);
}

/// What a rate counts beside the Ethernet header: bytes, a minimum and the cells of ATM (struct
/// tc_ratespec), and slots of a distribution.
#[test]
fn frames_of_a_rate_and_slots_of_a_distribution_are_read() {
    let tbf = |more: &str| {
        forward(&format!("tc qdisc add dev eth0 root tbf rate 2mbit burst 5k limit 30k {more}"))
    };
    let shaper = |more: &str| {
        format!(
            "{{ shaper = {{ rate = \"2000000bit/s\", burst = \"5120B\", buffer = \"30720B\", header = 14{more} }} }},"
        )
    };
    assert_eq!(tbf("overhead 24 mpu 64"), [shaper(", overhead = 24, mpu = 64")]);
    assert_eq!(tbf("linklayer adsl"), [shaper(", cell = 48, cell_overhead = 5")]);
    assert_eq!(tbf("linklayer ethernet"), [shaper("")]);
    let htb = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
               tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit overhead 18 linklayer atm\n";
    // The last packet exceeds the bucket: 1500 + 14 + 18 bytes are 32 cells of 53.
    let element = "{ shaper = { rate = \"2000000bit/s\", burst = \"3296B\", buffer = \"1000p\", header = 14, \
                   overhead = 18, cell = 48, cell_overhead = 5 } },";
    assert_eq!(forward(htb), [element]);
    // 32 cells of 53 bytes are 1696 of the bucket.
    let small =
        "tc qdisc add dev eth0 root tbf rate 2mbit burst 1600 limit 30k overhead 18 linklayer atm";
    let message = refused(small);
    assert!(message.starts_with("1:burst: tbf: the bucket has 1600 bytes"), "{message}");
    let slot = "tc qdisc add dev eth0 root netem slot distribution pareto 1ms 100us packets 9";
    let element = "{ slot = { delay = \"1ms\", jitter = \"100us\", distribution = \"pareto\", packets = 9 } },";
    assert_eq!(forward(slot), [element]);
    let message = refused("tc qdisc add dev eth0 root netem slot distribution mine 1ms 1ms");
    assert!(message.starts_with("1:mine: distribution `mine` is not supported"), "{message}");
    let stab =
        "tc qdisc add dev eth0 root handle 1: stab linklayer atm tbf rate 2mbit burst 5k limit 30k";
    assert!(refused(stab).starts_with("1:stab: tc: a table of sizes"), "{}", refused(stab));
}
