//! What tools print, as people paste it.

use super::{read, scenario};

const IPERF3: &str = "\
My upload is slow:

Connecting to host 10.0.0.2, port 5201
[  5] local 10.0.0.1 port 45670 connected to 10.0.0.2 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.12 MBytes  9.43 Mbits/sec   12   42.4 KBytes       
[  5]   1.00-2.00   sec  1.05 MBytes  8.81 Mbits/sec   10   38.2 KBytes       
[  5]   2.00-3.00   sec  1.18 MBytes  9.90 Mbits/sec    9   33.9 KBytes       
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-3.00   sec  3.35 MBytes  9.38 Mbits/sec   31             sender
[  5]   0.00-3.04   sec  3.20 MBytes  8.83 Mbits/sec                  receiver

iperf Done.
";
const PING: &str = "\
PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=40.1 ms

--- 10.0.0.2 ping statistics ---
10 packets transmitted, 10 received, 0% packet loss, time 9012ms
rtt min/avg/max/mdev = 40.031/41.200/43.012/0.500 ms
";
const SS: &str = "\
ESTAB 0 31856 10.0.0.1:40001 10.0.0.2:5001
\t cubic wscale:10,10 rto:248 rtt:45.672/1.718 mss:1448 cwnd:170 bytes_sent:3000000 segs_out:2100 \
data_segs_out:2098 send 43117880bps delivery_rate 4200000bps busy:7000ms rwnd_limited:6300ms(90.0%) \
minrtt:40.1
";

fn report(text: &str) -> super::PastedReport {
    read(text).unwrap_or_else(|| panic!("not recognised: {text}"))
}

/// Returns the kinds of the sections, the verdict and the first command.
fn outcome(text: &str) -> (Vec<&'static str>, String, String) {
    let report = report(text);
    let kinds = report.sections.iter().map(|section| section.kind).collect();
    let verdict = report.causes.first().cloned().unwrap_or_default();
    (kinds, verdict, report.next.first().cloned().unwrap_or_default())
}

#[test]
fn iperf3_with_retransmissions_is_loss() {
    let (kinds, verdict, next) = outcome(IPERF3);
    assert_eq!(kinds, ["iperf"]);
    // 31 of 3.20 MiB / 1448 bytes.
    assert!(verdict.contains("31 retransmissions, 1.34 % of the segments"), "{verdict}");
    assert!(next.contains("tcpdump") && next.contains("host 10.0.0.2 and tcp port 5201"), "{next}");
    let figures = report(IPERF3).figures;
    assert_eq!(figures.rate, Some(8_830_000.0));
    let (least, _, most) = figures.cwnd.unwrap();
    assert_eq!((least.round(), most.round()), (34_714.0, 43_418.0));
    assert_eq!(report(IPERF3).sections[0].line, 6);
}

#[test]
fn several_texts_in_one_file_are_joined() {
    let (kinds, verdict, _) = outcome(&format!("{IPERF3}\nand\n{PING}"));
    assert_eq!(kinds, ["iperf", "ping"]);
    // 1448 * 8 / 41.2 ms * sqrt(1.5 / 0.01338) = 2.98 Mbit/s.
    assert!(verdict.contains("about 2.98 Mbit/s with it at 41.2 ms"), "{verdict}");
    let missing: Vec<_> = report(PING).missing.into_iter().map(|(what, _)| what).collect();
    assert!(missing[0].contains("rate") && missing[1].contains("lost"), "{missing:?}");
}

#[test]
fn each_tool_shows_its_limit() {
    let tshark = "    5 0.240200000     10.0.0.1 → 10.0.0.2     TCP 1514 [TCP Window Full] 40000 → 5201 [ACK] \
                  Seq=1 Ack=1 Win=64256 Len=1448\n    6 0.290200000     10.0.0.2 → 10.0.0.1     TCP 66 [TCP \
                  ZeroWindow] 5201 → 40000 [ACK] Seq=1 Ack=1449 Win=0 Len=0\n";
    let gigabit = "[  5]   0.00-10.00  sec  1.10 GBytes   941 Mbits/sec    0             sender\n";
    let udp = "[  5]   0.00-10.00  sec  12.5 MBytes  10.5 Mbits/sec  0.012 ms  850/8500 (10%)  receiver\n";
    let device = "2: eth0: <BROADCAST> mtu 1500 qdisc mq state UP\n    RX:  bytes packets errors dropped  missed \
                  mcast\n     1000  10  0  4711  0  0\n";
    let ethtool =
        "NIC statistics:\n     rx_packets: 12\n     rx_missed_errors: 991\n     tx_errors: 0\n";
    let sysctl = "net.ipv4.tcp_window_scaling = 0\nnet.ipv4.tcp_rmem = 4096\t131072\t6291456\n";
    let counters = "#kernel\nTcpOutSegs                      100000             0.0\nTcpRetransSegs \
                    2500               0.0\nTcpExtTCPRcvQDrop               0                  0.0\n";
    let netstat = "Tcp:\n    100000 segments sent out\n    2500 segments retransmitted\n";
    let mtr = "HOST: a              Loss%   Snt   Last   Avg  Best  Wrst StDev\n  1.|-- 192.168.1.1   0.0%    10 \
               0.4   0.4   0.3   0.6   0.1\n  2.|-- 10.0.0.2     10.0%    10   40.1  41.0  40.0  44.0   1.0\n";
    let curl = "time_namelookup: 0.004\ntime_connect: 0.040\ntime_appconnect: 0.110\ntime_starttransfer: \
                2.400\ntime_total: 2.500\n";
    let ookla = r#"{"type":"result","ping":{"jitter":0.5,"latency":12.1},"download":{"bandwidth":1000000,
                "bytes":12000000,"latency":{"iqm":310.5}},"upload":{"bandwidth":500000},"packetLoss":0}"#;
    for (text, kind, verdict) in [
        (SS, "ss", "the receive window limits the sender in 90 % of its busy time"),
        (tshark, "tshark", "the receiver closes its window in 2 packets"),
        (gigabit, "iperf", "the transfer fills a line of 1000 Mbit/s: 94.1 %"),
        (udp, "iperf", "10.00 % of the datagrams are lost"),
        (device, "ip -s link", "drops or damages packets: 4711 RX dropped of eth0"),
        (ethtool, "ethtool -S", "drops or damages packets: 991 rx_missed_errors"),
        (sysctl, "sysctl", "window scaling is off"),
        (counters, "nstat", "2500 retransmissions, 2.50 %"),
        (netstat, "nstat", "2500 retransmissions, 2.50 %"),
        (mtr, "mtr", "the path loses packets: 10.0 % of the probes"),
        (curl, "curl -w", "of 2500 ms the request spends 2290 ms in: wait for the server"),
        (ookla, "speed test", "a queue on the path delays packets: 310.5 ms, 12.1 ms at least"),
    ] {
        let (kinds, found, next) = outcome(text);
        assert_eq!(kinds, [kind], "{text}");
        assert!(found.contains(verdict), "{kind}: {found}");
        assert!(!next.is_empty());
    }
}

/// 256 kB a round trip of 50 ms, without a loss: half a buffer of 512 KiB.
#[test]
fn a_window_per_round_trip_is_a_buffer() {
    let text = "net.ipv4.tcp_rmem = 4096 131072 524288\nrtt min/avg/max/mdev = 50.0/50.0/50.1/0.1 ms\n\
                [  5]   0.00-10.00  sec  50.0 MBytes  41.9 Mbits/sec    0             sender\n";
    let (_, verdict, next) = outcome(text);
    assert!(
        verdict.contains("receive window of about 262 kB per round trip of 50 ms"),
        "{verdict}"
    );
    assert!(next.contains("tcp_rmem"), "{next}");
}

#[test]
fn a_rate_alone_needs_the_state_of_the_sender() {
    let text = "[  3] local 10.1.1.2 port 52046 connected with 10.1.1.1 port 5001\n[  3]  0.0-10.0 sec  23.4 \
                MBytes  19.6 Mbits/sec\n";
    let (kinds, verdict, next) = outcome(text);
    assert_eq!((kinds, verdict.as_str()), (vec!["iperf"], ""));
    assert!(next.contains("ss -tinO dst 10.1.1.1"), "{next}");
}

#[test]
fn prose_alone_is_not_recognised() {
    for text in [
        "",
        "hello",
        "the transfer took 10 sec [or more]",
        "{\"a\": 1}",
        "time: 5",
        "1 2 3\n4 5 6\n",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn a_scenario_names_its_guesses() {
    let figures = report(&format!("{IPERF3}{PING}")).figures;
    let toml = scenario(&figures).unwrap();
    assert!(toml.contains("# guess: each retransmission is a loss"), "{toml}");
    assert!(
        toml.contains("delay = \"20015500ns\"") && toml.contains("loss = \"1.3378%\""),
        "{toml}"
    );
    let loaded = scenario::load(&toml, "pasted", &scenario::Overrides::default());
    assert!(loaded.is_ok(), "{toml}\n{loaded:?}");
    assert_eq!(scenario(&report(PING).figures), None);
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "[a-z0-9:%,./ \\[\\]{}\"\n-]{0,200}") {
        let _ = read(&text);
    }
}
