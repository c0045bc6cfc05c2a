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
    let cwnd = figures.cwnd.unwrap();
    assert_eq!((cwnd.least.round(), cwnd.most.round(), cwnd.count), (34_714.0, 43_418.0, 3));
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

const BIDIR: &str = "\
[  5][TX-C]   0.00-1.00   sec  98.0 MBytes   822 Mbits/sec    0    512 KBytes
[  7][RX-C]   0.00-1.00   sec  21.0 MBytes   176 Mbits/sec
[ ID][Role] Interval           Transfer     Bitrate         Retr
[  5][TX-C]   0.00-1.00   sec  98.0 MBytes   822 Mbits/sec    0             sender
[  7][RX-C]   0.00-1.00   sec  22.0 MBytes   185 Mbits/sec   180             sender
[  7][RX-C]   0.00-1.00   sec  21.0 MBytes   176 Mbits/sec                  receiver
";

/// Each test of iperf counts, each direction of one in both, and the slowest is judged.
#[test]
fn every_test_of_iperf_is_read() {
    let two = "With `iperf3 -c h`:\n\
               [  5]   0.00-10.00  sec  1.09 GBytes   938 Mbits/sec    3             sender\n\
               [  5]   0.00-10.04  sec  1.09 GBytes   934 Mbits/sec                  receiver\n\
               and `iperf3 -c h -R`:\n\
               [  5]   0.00-10.04  sec  52.5 MBytes  43.9 Mbits/sec  1911             sender\n\
               [  5]   0.00-10.00  sec  51.2 MBytes  43.0 Mbits/sec                  receiver\n";
    for (text, lines, judged, rate, again) in [
        (two, &[2, 5][..], (2, 5), 43e6, Some(1911.0)),
        // The same without the words between them.
        (&two.replace("and", "").replace("With", ""), &[2, 5], (2, 5), 43e6, Some(1911.0)),
        (BIDIR, &[1, 2], (2, 2), 176e6, Some(180.0)),
        // Two tests of iperf 2, which has no word for a summary.
        (
            "[  3]  0.0- 1.0 sec  1.00 MBytes  8.39 Mbits/sec\n[  3]  1.0- 2.0 sec  1.00 MBytes  8.39 \
             Mbits/sec\n[  3]  0.0- 2.0 sec  2.00 MBytes  8.39 Mbits/sec\n[  3]  0.0- 1.0 sec  0.50 \
             MBytes  4.00 Mbits/sec\n[  3]  0.0- 1.0 sec  0.50 MBytes  4.00 Mbits/sec\n",
            &[1, 4],
            (2, 4),
            4e6,
            None,
        ),
    ] {
        let report = report(text);
        let found: Vec<usize> = report.sections.iter().map(|section| section.line).collect();
        assert_eq!(found, lines, "{text}");
        assert_eq!((report.figures.judged, report.figures.rate), (Some(judged), Some(rate)));
        let count = report.figures.retransmit_count().map(|count| count.retransmitted);
        assert_eq!(count, again, "{text}");
    }
    assert!(report(two).text("x").contains("judged: of 2 tests the slowest, in line 5\n"));
    assert!(report(two).json("x").contains("\"judged_line\":5"));
    assert!(!report(IPERF3).json("x").contains("judged_line"));
}

/// A ratio has figures of one tool: retransmissions of iperf are none of the segments of a host.
#[test]
fn figures_stay_with_their_tool() {
    let counters = "    2514220 segments sent out\n    48210 segments retransmitted\n";
    let mixed = report(&format!("{IPERF3}{counters}"));
    assert!(mixed.causes[0].contains("31 retransmissions, 1.34 %"), "{:?}", mixed.causes);
    let all = "all connections of the host, since it booted: 48210 retransmissions, 1.92 %";
    assert!(mixed.causes.iter().any(|cause| cause.contains(all)), "{:?}", mixed.causes);
    // The count of `nstat` alone has no segments, and those of iperf are not its own.
    let lossless = IPERF3.replace("   31 ", "    0 ").replace("12   42", " 0   42");
    let alone = report(&format!("{lossless}TcpRetransSegs   12   0.0\n"));
    assert!(!alone.causes.iter().any(|cause| cause.contains('%')), "{:?}", alone.causes);
    // Times of two tools are no range.
    let json = format!("{SS}{}", PING.replace("40.031/41.200/43.012", "1.0/2.0/3.0"));
    assert!(!report(&json).causes.iter().any(|cause| cause.contains("a queue on the path")));
    // BSD counts retransmissions that were not needed, too.
    let bsd = "\t\t2014220 data packets (2914220000 bytes)\n\t\t48210 data packets (69000000 bytes) \
               retransmitted\n\t\t12 data packets unnecessarily retransmitted\n";
    assert!(outcome(bsd).1.contains("48210 retransmissions, 2.34 %"), "{}", outcome(bsd).1);
    let windows = "TCP-Statistik für IPv4\n\n  Aktiv geöffnet = 1\n  B = 2\n  C = 3\n  D = 4\n  E = 5\n  F = 6\n  \
                   Gesendete Segmente = 1000\n  Erneut gesendete Segmente = 20\n";
    assert!(outcome(windows).1.contains("20 retransmissions, 2.00 %"));
}

/// Prefixes of lines belong to no tool.
#[test]
fn quoted_stamped_and_coloured_lines_are_read() {
    let prefixed =
        |prefix: &str| IPERF3.lines().map(|line| format!("{prefix}{line}\r\n")).collect::<String>();
    for prefix in [
        "> ",
        ">> ",
        "Mon Mar  4 10:11:12 2024 ",
        "Nov 12 08:14:02 gw1 iperf3[2231]: ",
        "2024-03-04T10:11:12.123Z stdout F ",
        "[2024-03-04 10:11:12] ",
        "\u{1b}[0;32m",
        "    ",
    ] {
        assert_eq!(report(&prefixed(prefix)).figures, report(IPERF3).figures, "{prefix}");
    }
}

#[test]
fn each_form_of_a_tool_is_read() {
    let extended = "[  1] 0.0000-1.0000 sec  2.00 MBytes  16.8 Mbits/sec  16/0         0       63K/40300(120) \
                    us  52\n[  1] 0.0000-2.0100 sec  4.00 MBytes  16.7 Mbits/sec  32/0         7       \
                    63K/40310(120) us  51\n";
    let figures = report(extended).figures;
    assert_eq!(figures.retransmit_count().map(|count| count.retransmitted), Some(7.0));
    assert_eq!(figures.rtt, Some((40.3, 40.305)));
    let ms = |text: &str| report(text).figures.rtt_range.unwrap();
    let windows = "Réponse de 8.8.8.8 : octets=32 temps=14 ms TTL=117\nDélai d'attente de la demande dépassé.\n    \
                   Paquets : envoyés = 4, reçus = 3, perdus = 1 (perte 25%),\n    Minimum = 14ms, Maximum = \
                   213ms, Moyenne = 80ms\n";
    assert_eq!(ms(windows), (14.0, 213.0));
    assert_eq!(report(windows).figures.probe_loss, Some(0.25));
    let lines = "64 bytes from h: icmp_seq=1 ttl=57 time=12.1 ms\n64 bytes from h: icmp_seq=2 ttl=57 time=312 ms\n";
    assert_eq!(ms(lines), (12.1, 312.0));
    let mtr = "HOST: a              Loss%   Snt   Last   Avg  Best  Wrst StDev\n  1.|-- 192.168.1.1   0.0%    10 \
               0.4   0.4   0.3   0.6   0.1\n  2.|-- ???     100.0    10   0.0  0.0  0.0  0.0   0.0\n  3. AS64496 \
               h  4.0%    10   40.1  41.0  40.0  44.0   1.0\n";
    let facts = &report(mtr).sections[0].facts;
    assert_eq!(facts, &["3 hops to h: 4 % lost, 41 ms mean", "the loss begins at hop 3, h"]);
    for (text, rate) in [
        (
            "  % Total    % Received % Xferd  Average Speed\n100  100M  100  100M    0     0   412k      0  0:04:08  \
          0:04:08 --:--:--  398k\n",
            412.0 * 1_024.0 * 8.0,
        ),
        ("2023-08-01 (1,21 MB/s) - »a« gespeichert [702545920/702545920]\n", 1.21 * 8_388_608.0),
        ("    Download:    93.21 Mbps (data used: 104.9 MB)\n", 93.21e6),
        ("Download: 93.21 Mbit/s\nUpload: 9.41 Mbit/s\n", 93.21e6),
        ("connect: 0.152 starttransfer: 0.471 total: 2.3\nspeed_download: 431200\n", 3_449_600.0),
        ("10:11:12.0 IP a.1 > b.2: tcp 1000\n10:11:13.0 IP a.1 > b.2: tcp 0\n", 8_000.0),
        (
            "2024-03-04 10:11:12.0 IP a.1 > b.2: tcp 1000\n2024-03-04 10:11:13.0 IP a.1 > b.2: tcp 0\n",
            8_000.0,
        ),
        ("0.5\t10.0.0.1\t10.0.0.2\t1\t2\t1000\n1.5\t10.0.0.2\t10.0.0.1\t2\t1\t0\n", 8_000.0),
    ] {
        let found = report(text).figures.rate.unwrap();
        assert!((found / rate - 1.0).abs() < 1e-6, "{text}{found}");
    }
    let drops = "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p\n Sent 9 bytes 300 pkt (dropped 100, \
                 overlimits 0 requeues 0)\n";
    assert!(outcome(drops).1.contains("drops packets: 100 by fq_codel of eth0 (25.00 %)"));
    let grepped = "     rx_out_of_buffer: 91823\n     rx_discards_phy: 121313\n";
    assert!(outcome(grepped).1.contains("121313 rx_discards_phy"));
    let table = "Iface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\neth0      1500  \
                 8123  0 77 0  100 0 0 0 BMRU\n";
    assert!(outcome(table).1.contains("77 RX-DRP of eth0"));
}

/// Rows of the protocols that TCP carries are packets of TCP; the share is one of data segments.
#[test]
fn columns_count_data_segments() {
    let rows = "No. Time Source Destination Protocol Length Info\n\
                1 0.000000 10.0.0.1 10.0.0.2 TCP 66 45670 → 80 [SYN] Seq=0 Win=64240 Len=0\n\
                2 0.040000 10.0.0.2 10.0.0.1 TCP 66 80 → 45670 [SYN, ACK] Seq=0 Ack=1 Win=65160 Len=0\n\
                3 0.041000 10.0.0.1 10.0.0.2 TCP 1514 45670 → 80 [ACK] Seq=1 Ack=1 Win=502 Len=1448\n\
                4 0.041000 10.0.0.1 10.0.0.2 HTTP 1066 POST /a HTTP/1.1\n\
                5 0.081000 10.0.0.2 10.0.0.1 TCP 66 80 → 45670 [ACK] Seq=1 Ack=1449 Win=501 Len=0\n\
                6 0.090000 10.0.0.1 10.0.0.2 DNS 80 Standard query\n\
                7 0.300000 10.0.0.1 10.0.0.2 TCP 1066 [TCP Retransmission] 45670 → 80 [ACK] Seq=1 Len=1000\n";
    let csv: String = rows
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.splitn(7, ' ').collect();
            format!("\"{}\"\n", fields.join("\",\""))
        })
        .collect();
    let dated = rows.replace(" 0.", " 2024-03-04 10:11:12.");
    for text in [rows, &csv, &dated] {
        let report = report(text);
        assert!(report.sections[0].facts[0].starts_with("6 packets of TCP, 3448 bytes in 0.300 s"));
        let count = report.figures.retransmit_count().unwrap();
        // Three data segments, and two SYNs.
        assert_eq!((count.retransmitted, count.sent), (1.0, Some(5.0)), "{text}");
    }
}

const JSON: &str = r#"{"start": {"connected": [{"remote_host": "10.0.0.2", "remote_port": 5201}],
  "test_start": {"protocol": "TCP", "num_streams": 1, "reverse": 0}},
 "intervals": [
  {"streams": [{"snd_cwnd": 120000, "rtt": 40000, "omitted": false}], "sum": {"bytes": 5000000, "seconds": 1, "retransmits": 0}},
  {"streams": [{"snd_cwnd": 120000, "rtt": 42000, "omitted": false}], "sum": {"bytes": 5000000, "seconds": 1, "retransmits": 3}}],
 "end": {"sum_sent": {"bytes": 10000000, "seconds": 2, "bits_per_second": 40000000, "retransmits": 3},
  "sum_received": {"bytes": 9900000, "seconds": 2, "bits_per_second": 39500000}}}"#;

#[test]
fn json_is_read_within_prose_and_cut() {
    let whole = report(&format!("My result:\n\n```\n$ iperf3 -J\n{JSON}\n```\n{PING}"));
    assert_eq!(whole.sections[0].line, 5);
    assert_eq!(whole.sections[1].kind, "ping");
    assert_eq!(whole.figures.rate, Some(39.5e6));
    assert_eq!(whole.figures.retransmit_count().map(|count| count.retransmitted), Some(3.0));
    assert_eq!(whole.figures.rtt, Some((40.0, 41.0)));
    // Cut at every byte: the figures that are there are read, and no others.
    for end in (0..JSON.len()).filter(|end| JSON.is_char_boundary(*end)) {
        for rest in ["", "\n...\n```\nIt is slow.\n"] {
            let Some(report) = read(&format!("{}{rest}", &JSON[..end])) else { continue };
            let rate = report.figures.rate.unwrap_or(40e6);
            assert!((39.5e6..=40e6).contains(&rate), "{end}: {rate}");
        }
    }
    assert!(read(&JSON[..JSON.len() - 200]).is_some());
    let ndt = r#"{"Key":"measurement","Value":{"AppInfo":{"NumBytes":12345678,"ElapsedTime":1000000},"TCPInfo":
        {"RTT":12345,"MinRTT":12000,"BusyTime":990000,"RWndLimited":700000,"BytesSent":12400000,"BytesRetrans":17136}}}"#;
    let ndt = &ndt.replace('\n', "");
    assert_eq!(outcome(ndt).1, "the receive window limits the sender in 71 % of its busy time");
    let events = format!(
        "{{\"event\":\"interval\",\"data\":{}}}\n",
        r#"{"sum":{"bytes":5000000,"seconds":1,"retransmits":0}}"#
    );
    assert_eq!(report(&events.repeat(2)).figures.rate, Some(40e6));
}

#[test]
fn a_scenario_has_the_streams_and_datagrams_of_the_test() {
    let parallel = "[  5]   0.00-2.00   sec  48.0 MBytes   201 Mbits/sec   44             sender\n\
                    [  7]   0.00-2.00   sec  47.2 MBytes   198 Mbits/sec   39             sender\n\
                    [SUM]   0.00-2.00   sec  95.2 MBytes   399 Mbits/sec   83             sender\n";
    let toml = scenario(&report(parallel).figures).unwrap();
    assert!(toml.contains("count = 2 # guess") && toml.contains("bulk = \"49912217B\""), "{toml}");
    let udp = "[  5]   0.00-10.00  sec  12.5 MBytes  10.5 Mbits/sec  0.012 ms  850/8500 (10%)  receiver\n";
    let toml = scenario(&report(udp).figures).unwrap();
    assert!(toml.contains("udp = { size") && toml.contains("loss = \"10.0000%\""), "{toml}");
    for text in [parallel, udp] {
        let toml = scenario(&report(text).figures).unwrap();
        let loaded = scenario::load(&toml, "pasted", &scenario::Overrides::default());
        assert!(loaded.is_ok(), "{toml}\n{loaded:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read(text in "[a-z0-9:%,./ \\[\\]{}\"\n-]{0,200}") {
        let _ = read(&text);
    }
}
