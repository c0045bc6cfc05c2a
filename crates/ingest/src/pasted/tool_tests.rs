//! Texts of tools that are rarer than iperf, ss and ping, as people paste them.

use super::{PastedReport, has_no_times, read, with_running_times};

fn report(text: &str) -> PastedReport {
    read(text).unwrap_or_else(|| panic!("not recognised: {text}"))
}

/// Returns the kinds of the sections and all that is said.
fn said(text: &str) -> (Vec<&'static str>, String) {
    let report = report(text);
    (report.sections.iter().map(|section| section.kind).collect(), report.text("a.txt"))
}

#[test]
fn tests_of_throughput_have_a_rate() {
    let netperf = "MIGRATED TCP STREAM TEST from 0.0.0.0 () port 0 AF_INET to 10.0.0.2 () port 0 AF_INET\n\
                   Recv   Send    Send\nSize   Size    Size     Time     Throughput\nbytes  bytes   bytes    \
                   secs.    10^6bits/sec\n\n 87380  16384  16384    10.03      42.10\n";
    let nuttcp = "   11.3125 MB /   1.00 sec =   94.8942 Mbps    12 retrans\n  103.1875 MB /  10.02 sec =   \
                  86.3900 Mbps 2 %TX 5 %RX 98 retrans 31.22 msRTT\n";
    let flent = "Summary of rrul test run 'x' (at 2024-01-01 10:00:00):\n\n                 avg       median\n \
                 Ping (ms) ICMP       :       145.34       150.00 ms        350\n TCP download sum     :        \
                 18.72        19.20 Mbits/s    301\n";
    let quality = "==== SUMMARY ====\nUplink capacity: 18.293 Mbps\nDownlink capacity: 243.157 Mbps\n\
                   Responsiveness: Low (60 RPM)\nIdle Latency: 24.125 milliseconds | 2400 RPM\n";
    for (text, kind, rate, fact) in [
        (netperf, "netperf", 42.1e6, "42.10 Mbit/s for 10.0 s"),
        (nuttcp, "nuttcp", 86.39e6, "98 segments retransmitted"),
        (flent, "flent", 18.72e6, "145.34 ms mean, during the load"),
        (quality, "networkQuality", 243.157e6, "60 round trips a minute under load, 1000 ms each"),
    ] {
        let (kinds, said) = said(text);
        assert_eq!(kinds, [kind], "{text}");
        let found = report(text).figures.rate.unwrap();
        assert!((found / rate - 1.0).abs() < 1e-9, "{kind}: {found}");
        assert!(said.contains(fact), "{kind}: {said}");
    }
    assert!(said(nuttcp).1.contains("98 retransmissions, 0.13 %"), "{}", said(nuttcp).1);
    assert_eq!(report(nuttcp).figures.rtt, Some((31.22, 31.22)));
    assert!(said(quality).1.contains("verdict: a queue on the path delays packets: 1000"));
}

#[test]
fn copies_have_a_rate() {
    let mebi = 8.0 * 1_048_576.0;
    for (text, rate) in [
        ("big.img           23%  240MB   1.1MB/s   12:05 ETA\n", 1.1 * mebi),
        ("sent 268,500,000 bytes  received 35 bytes  1,073,741.82 bytes/sec\n", 8_589_934.56),
        ("    268,435,456  25%    1.10MB/s    0:12:05\n", 1.1 * mebi),
        ("104857600 bytes (105 MB, 100 MiB) copied, 45.12 s, 2.3 MB/s\n", 18.4e6),
        (
            "file.iso             12%[=>        ] 128.00M   340KB/s    eta 45m 12s\n",
            340.0 * 8_192.0,
        ),
    ] {
        let found = report(text).figures.rate.unwrap();
        assert!((found - rate).abs() < 1.0, "{text}: {found}");
    }
    // A percentage alone is none.
    assert_eq!(read("the disk is 95% full, 12 files\n"), None);
}

#[test]
fn views_of_the_host_count_retransmissions() {
    let sar = "10:00:01 AM  atmptf/s  estres/s retrans/s isegerr/s   orsts/s\n10:00:02 AM      0.00      0.00     \
               52.00      0.00      1.00\nAverage:         0.00      0.00     50.00      0.00      1.00\n\n\
               10:00:01 AM  active/s passive/s    iseg/s    oseg/s\nAverage:         1.00      0.00   2000.00   \
               2500.00\n";
    let bcc = "TIME     PID    IP LADDR:LPORT          T> RADDR:RPORT          STATE\n\
               01:55:05 0      4  10.0.0.1:22          R> 10.0.0.2:34619       ESTABLISHED\n\
               01:55:07 0      4  10.0.0.1:22          L> 10.0.0.2:34619       ESTABLISHED\n";
    let metrics = "# TYPE node_netstat_Tcp_RetransSegs untyped\nnode_netstat_Tcp_RetransSegs 50000\n\
                   node_netstat_Tcp_OutSegs{instance=\"a\"} 1e+06\n";
    let sockets = "Total: 12\nTCP:   345 (estab 123, closed 200, orphaned 0, timewait 195)\n";
    for (text, kind, fact) in [
        (sar, "sar", "verdict: packets are lost or reordered: 2.00 % are retransmitted"),
        (bcc, "tcpretrans", "2 retransmissions to 1 hosts and ports in 2 s"),
        (metrics, "node exporter", "50000 of 1000000 (5.00 %) segments retransmitted, since boot"),
        (sockets, "ss -s", "sockets of TCP: 345 (estab 123"),
    ] {
        let (kinds, said) = said(text);
        assert_eq!(kinds, [kind], "{text}");
        assert!(said.contains(fact), "{kind}: {said}");
    }
    assert!(said(bcc).1.contains("ping -c 20 10.0.0.2"), "{}", said(bcc).1);
}

#[test]
fn probes_of_other_programs_are_read() {
    let fping = "10.0.0.2 : xmt/rcv/%loss = 100/97/3%, min/avg/max = 9.1/10.2/45.3\n";
    let tracert = "Tracing route to example.com [10.0.0.2]\nover a maximum of 30 hops:\n\n  1     1 ms    <1 ms    \
                   <1 ms  192.168.1.1\n  2     *        *        *     Request timed out.\n  3   110 ms   112 ms   \
                   111 ms  10.0.0.2\n\nTrace complete.\n";
    let win_mtr = "|                          WinMTR statistics                         |\n\
                   |   192.168.1.1 -    0 |  100 |  100 |    0 |    1 |   12 |    1 |\n\
                   |      10.0.0.2 -    4 |  100 |   96 |   40 |   42 |   90 |   41 |\n";
    let simple = "Ping: 23.4 ms\nDownload: 70.1 Mbit/s\nUpload: 4.8 Mbit/s\n";
    let ndt = "        Latency:    21.1 ms\n       Download:    12.3 Mbit/s\n Retransmission:    4.21 %\n";
    for (text, rtt, fact) in [
        (fping, 10.2, "verdict: the path loses packets: 3.0 %"),
        (tracert, 110.0, "hop 3, the last that answers: 110 ms"),
        (win_mtr, 42.0, "2 hops to 10.0.0.2: 4 % lost, 42 ms mean"),
        (simple, 23.4, "download 70.10 Mbit/s"),
        (ndt, 21.1, "verdict: packets are lost or reordered: 4.21 % are retransmitted"),
    ] {
        let (_, said) = said(text);
        assert!(said.contains(fact), "{said}");
        assert_eq!(report(text).figures.rtt.map(|(_, mean)| mean), Some(rtt), "{text}");
    }
}

const UNTIMED: &str = "\
IP 10.0.0.1.40000 > 10.0.0.2.443: Flags [S], seq 1000, win 64240, options [mss 1460,nop,wscale 7], length 0
IP 10.0.0.2.443 > 10.0.0.1.40000: Flags [S.], seq 5000, ack 1001, win 65160, options [mss 1460], length 0
IP 10.0.0.1.40000 > 10.0.0.2.443: Flags [P.], seq 1:1449, ack 1, win 502, length 1448
IP 10.0.0.1.40000 > 10.0.0.2.443: Flags [.], seq 1449:2897, ack 1, win 502, length 1448
IP 10.0.0.2.443 > 10.0.0.1.40000: Flags [.], ack 1, win 501, options [nop,nop,sack 1 {1449:2897}], length 0
IP 10.0.0.1.40000 > 10.0.0.2.443: Flags [P.], seq 1:1449, ack 1, win 502, length 1448
IP 10.0.0.2.443 > 10.0.0.1.40000: Flags [.], ack 2897, win 0, length 0
";

#[test]
fn packets_without_times_show_what_was_retransmitted() {
    assert!(has_no_times(UNTIMED));
    let (kinds, said) = said(UNTIMED);
    assert_eq!(kinds, ["tcpdump -t"]);
    for fact in [
        "7 packets of TCP in 1 connections, 4344 bytes",
        "1 segments of data that begin where one before did: retransmissions",
        "1 ACKs with SACK blocks",
        "1 with a window of zero",
        "print the capture without -t",
        "missing: the rate of the transfer",
        "33.33 % of the segments",
    ] {
        assert!(said.contains(fact), "{fact}: {said}");
    }
    let timed: String = UNTIMED.lines().map(|line| format!("10:11:12.000001 {line}\n")).collect();
    assert!(!has_no_times(&timed));
}

/// `-ttt` prints the time since the previous packet, `-ttttt` that since the first.
#[test]
fn times_since_the_previous_packet_are_summed() {
    let lines = UNTIMED.lines().zip([0, 30_000, 100, 20, 30_100, 5, 30_000]);
    let text: String = lines.map(|(line, us)| format!(" 00:00:00.{us:06} {line}\n")).collect();
    let running = with_running_times(&text).unwrap();
    let stamps: Vec<&str> = running.lines().map(|line| &line[1..16]).collect();
    assert_eq!(
        stamps[..4],
        ["00:00:00.000000", "00:00:00.030000", "00:00:00.030100", "00:00:00.030120"]
    );
    assert_eq!(stamps[6], "00:00:00.090225");
    assert_eq!(with_running_times(&running), None);
}

#[test]
fn an_excerpt_of_json_has_its_intervals() {
    let text = "   \"seconds\": 1.0,\n   \"bytes\": 1448000,\n   \"bits_per_second\": 11584000.5,\n   \"retransmits\": 10,\n   \
                \"snd_cwnd\": 590784,\n   \"rtt\": 1127,\n   \"sender\": true\n  }],\n  \"sum\": {\n   \"seconds\": 1.0,\n   \
                \"bytes\": 1448000,\n   \"bits_per_second\": 11584000.5,\n   \"retransmits\": 10\n  }\n }, {\n";
    let (kinds, said) = said(text);
    assert_eq!(kinds, ["iperf"]);
    assert!(said.contains("11.58 Mbit/s: mean of 1 intervals of an excerpt"), "{said}");
    assert!(said.contains("10 retransmissions, 1.00 %"), "{said}");
}
