//! Tests of sockets in one line and in two, times of every format, and broken lines.

use super::*;

fn read(text: &str) -> (Vec<SsSocket>, Vec<String>, SsStats) {
    let mut reader = SsReader::new(text.as_bytes());
    let (mut sockets, mut problems) = (Vec::new(), Vec::new());
    for item in reader.by_ref() {
        match item.unwrap() {
            SsItem::Socket(socket) => sockets.push(*socket),
            SsItem::Problem(problem) => problems.push(problem.to_string()),
        }
    }
    (sockets, problems, *reader.tally())
}

const HEAD: &str = "ESTAB 0      31856  10.83.77.1:40001 10.83.77.2:47101";
const VALUES: &str = "skmem:(r0,rb131072,t0,tb46080,f784,w40176,o0,bl0,d0) ts sack reno \
     wscale:10,10 rto:248 backoff:1 rtt:45.672/1.718 ato:40 mss:1448 pmtu:1500 rcvmss:536 \
     advmss:1448 cwnd:17 ssthresh:9 bytes_sent:39096 bytes_retrans:1448 bytes_acked:14481 \
     segs_out:29 segs_in:11 data_segs_out:27 bbr:(bw:1bps,mrtt:1,pacing_gain:2.88672,cwnd_gain:2) \
     send 4311788bps lastsnd:16 lastrcv:60 lastack:16 pacing_rate 8.6Mbps/9Gbps \
     delivery_rate 2500208bps delivered:11 app_limited busy:60ms rwnd_limited:12ms(20.0%) \
     sndbuf_limited:4ms(6.7%) unacked:17 retrans:1/5 lost:3 sacked:2 dsack_dups:1 reordering:4 \
     reord_seen:7 rcv_rtt:1.5 rcv_space:14480 rcv_ssthresh:64088 notsent:7240 minrtt:45.206 \
     snd_wnd:79872";

fn millis(micros: u64) -> Option<Duration> {
    Some(Duration::from_micros(micros))
}

fn info() -> SsInfo {
    SsInfo {
        cc: Some("reno".into()),
        rto: millis(248_000),
        rtt: millis(45_672),
        rttvar: millis(1_718),
        min_rtt: millis(45_206),
        mss: Some(1_448),
        cwnd: Some(17),
        ssthresh: Some(9),
        bytes_sent: Some(39_096),
        bytes_retrans: Some(1_448),
        bytes_acked: Some(14_481),
        bytes_received: None,
        data_segs_out: Some(27),
        delivered: Some(11),
        unacked: Some(17),
        retrans: Some((1, 5)),
        lost: Some(3),
        sacked: Some(2),
        dsack_dups: Some(1),
        reordering: Some(4),
        reord_seen: Some(7),
        notsent: Some(7_240),
        snd_wnd: Some(79_872),
        pacing_rate: Some(8_600_000),
        delivery_rate: Some(2_500_208),
        busy: millis(60_000),
        rwnd_limited: millis(12_000),
        sndbuf_limited: millis(4_000),
        app_limited: true,
    }
}

#[test]
fn one_line_or_two() {
    for text in [format!("{HEAD} {VALUES}\n"), format!("{HEAD}\n\t {VALUES}\n")] {
        let (sockets, problems, tally) = read(&format!("# t_us=100231.1\n{text}"));
        assert_eq!(problems, [""; 0]);
        let expected = SsSocket {
            line: 2,
            at: Some(Duration::from_nanos(100_231_100)),
            state: "ESTAB".into(),
            local: "10.83.77.1:40001".parse().unwrap(),
            remote: "10.83.77.2:47101".parse().unwrap(),
            receive_queue: 0,
            send_queue: 31_856,
            info: info(),
        };
        assert_eq!(sockets, [expected]);
        assert_eq!(tally, SsStats { polls: 1, sockets: 1, ..SsStats::default() });
    }
}

#[test]
fn tables_with_and_without_headings_families_and_states() {
    let text = "\
State    Recv-Q Send-Q Local Address:Port  Peer Address:Port Process
tcp   LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:((\"sshd\",pid=1,fd=3))
tcp   ESTAB 0 0 [::ffff:10.0.0.1]:22 [::ffff:10.0.0.2]:9 users:((\"sshd\",pid=1,fd=3)) timer:(on,200ms,0)
0 5 [fe80::1]%eth0:22 [2001:db8::2]:9
\t cubic cwnd:3
\t mss:9
udp   UNCONN 0 0 10.0.0.1%eth0:68 10.0.0.2:67
";
    let (sockets, problems, tally) = read(text);
    assert_eq!((problems.len(), tally.other_lines), (0, 3));
    let ends: Vec<_> =
        sockets.iter().map(|socket| format!("{} {}", socket.local, socket.remote)).collect();
    assert_eq!(ends, ["10.0.0.1:22 10.0.0.2:9", "[fe80::1]:22 [2001:db8::2]:9"]);
    assert_eq!(
        (&*sockets[1].state, sockets[1].info.cwnd, sockets[1].info.mss),
        ("", Some(3), Some(9))
    );
    assert_eq!(sockets[0].info, SsInfo::default());
    assert_eq!(sockets[0].at, None);
}

#[test]
fn times_of_every_format() {
    let noon = 1_795_348_800;
    for (line, nanos) in [
        ("1795348800", 0),
        ("1795348800.5", 500_000_000),
        ("# 1795348800.000000001", 1),
        ("2026-11-22 12:00:00.5", 500_000_000),
        ("=== 2026-11-22T12:00:00+00:00", 0),
        ("2026-11-22T12:00:00,25Z", 250_000_000),
        ("Sun Nov 22 12:00:00 UTC 2026", 0),
    ] {
        let (sockets, ..) = read(&format!("{line}\n{HEAD} cwnd:1\n"));
        let expected = Duration::from_nanos(noon * 1_000_000_000 + nanos);
        assert_eq!(sockets[0].at, Some(expected), "{line}");
    }
    for line in ["never", "Sun Nov 32 12:00:00 UTC 2026", "12:99:00", "t_us=x"] {
        let (sockets, _, tally) = read(&format!("{line}\n{HEAD}\n"));
        assert_eq!((sockets[0].at, tally.other_lines), (None, 1), "{line}");
    }
}

#[test]
fn invalid_values_are_reported_and_the_rest_kept() {
    let (sockets, problems, _) = read(&format!("{HEAD} rto:248 cwnd:many rtt:5 mss:7\n"));
    assert_eq!((sockets[0].info.mss, sockets[0].info.rto), (Some(7), millis(248_000)));
    assert_eq!(problems, ["line 1, column 68: cwnd: expected a number, found \"many\""]);
    for (values, expected) in [
        ("rtt:5", "rtt: expected two numbers with `/`, found \"5\""),
        ("busy:5s", "busy: expected milliseconds (`72ms`), found \"5s\""),
        ("pacing_rate fast", "pacing_rate: expected bits a second, found \"fast\""),
        ("rto:-1", "rto: expected milliseconds, found \"-1\""),
    ] {
        let (_, problems, _) = read(&format!("{HEAD} {values}\n"));
        assert!(problems[0].ends_with(expected), "{problems:?}");
    }
    let (sockets, problems, _) = read(&format!("{HEAD} cwnd:1"));
    assert_eq!(
        (sockets.len(), &*problems[0]),
        (1, "line 1, column 61: the last line has no newline")
    );
}
