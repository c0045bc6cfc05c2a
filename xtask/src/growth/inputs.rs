//! Inputs of any size, one case for each thing that a user's file may have many of.

use std::fmt::Write;

/// Files by name.
type Files = Vec<(&'static str, Vec<u8>)>;

/// A command whose input has n of one thing.
pub(super) struct GrowthCase {
    pub(super) name: &'static str,
    /// The least n.
    pub(super) n: usize,
    pub(super) files: fn(usize) -> Files,
    /// Arguments of `ackclock`, in the folder of the files.
    pub(super) arguments: &'static [&'static str],
}

/// All cases.
pub(super) const CASES: &[GrowthCase] = &[
    case("packets", 4_000, packets, &["diagnose", "--no-cures", "in.pcap"]),
    case("connections", 1_000, connections, &["diagnose", "--no-cures", "in.pcap"]),
    case("losses", 200, losses, &["diagnose", "--no-cures", "in.pcap"]),
    case("interfaces", 1_000, interfaces, &["diagnose", "--no-cures", "in.pcapng"]),
    // Below twenty seconds rules have too little to judge: an interval costs less than later.
    case("intervals", 200, intervals, &["diagnose", "--no-cures", "--every", "1s", "in.pcap"]),
    case("names", 1_000, names, &["diagnose", "--no-cures", "in.txt"]),
    case("events", 2_000, events, &["diagnose", "in.sqlog"]),
    case("traces", 16_000, traces, &["diagnose", "in.qlog"]),
    case("iperf-lines", 4_000, iperf_lines, &["diagnose", "in.txt"]),
    case("iperf-streams", 4_000, iperf_streams, &["diagnose", "in.txt"]),
    case("polls", 1_000, polls, &["diagnose", "in.txt"]),
    case("errors", 500, errors, &["scenario", "check", "in.toml"]),
    case("keys", 500, keys, &["scenario", "check", "in.toml"]),
    case("paths", 100, paths, &["scenario", "check", "in.toml"]),
    case("listed-losses", 100, listed_losses, &["run", "in.toml"]),
    case("flows", 200, flows, &["run", "in.toml"]),
    case("runs", 100, runs, &["sweep", "in.toml", "--dry-run"]),
    case("sockets", 500, sockets, &["packetdrill", "in.pkt"]),
    case("configs", 200, configs, &["import-ini", "--list", "in.ini"]),
    case("parameters", 4_000, parameters, &["import-ini", "in.ini"]),
    case("qdiscs", 200, qdiscs, &["scenario", "import", "in.sh"]),
];

const fn case(
    name: &'static str,
    n: usize,
    files: fn(usize) -> Files,
    arguments: &'static [&'static str],
) -> GrowthCase {
    GrowthCase { name, n, files, arguments }
}

/// One packet of TCP over IPv4: port of the client, whether it sends, sequence number, acknowledgment, flags, SACK
/// blocks and payload.
struct Packet {
    port: u16,
    is_client: bool,
    numbers: [u32; 2],
    flags: u8,
    sack: Vec<[u32; 2]>,
    payload: u16,
}

const ACK: u8 = 0x10;
const SYN: u8 = 0x02;

fn packet(port: u16, is_client: bool, numbers: [u32; 2], flags: u8, payload: u16) -> Packet {
    Packet { port, is_client, numbers, flags, sack: Vec::new(), payload }
}

impl Packet {
    fn bytes(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if self.flags & SYN != 0 {
            // MSS 1460, SACK permitted, window scale 7.
            options.extend([2, 4, 5, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]);
        }
        if !self.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * self.sack.len() as u8]);
            options.extend(self.sack.iter().flatten().flat_map(|edge| edge.to_be_bytes()));
        }
        let header = 20 + options.len() as u16;
        let hosts = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let ports = [self.port, 80];
        let (from, to) = if self.is_client { (0, 1) } else { (1, 0) };
        let mut bytes = vec![0x45, 0];
        bytes.extend((20 + header + self.payload).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        bytes.extend(hosts[from]);
        bytes.extend(hosts[to]);
        bytes.extend([ports[from], ports[to]].into_iter().flat_map(u16::to_be_bytes));
        bytes.extend(self.numbers.into_iter().flat_map(u32::to_be_bytes));
        bytes.extend([((header / 4) << 4) as u8, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes
    }
}

/// A pcap file of packets at times in ms, their payload cut.
fn pcap(packets: impl Iterator<Item = (u64, Packet)>) -> Files {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    // Zone, accuracy, snaplen, raw IP.
    file.extend([0, 0, 65_535, 101].into_iter().flat_map(u32::to_le_bytes));
    for (ms, packet) in packets {
        let bytes = packet.bytes();
        let whole = bytes.len() as u32 + u32::from(packet.payload);
        let times = [1_700_000_000 + (ms / 1_000) as u32, (ms % 1_000) as u32 * 1_000];
        let head = [times[0], times[1], bytes.len() as u32, whole];
        file.extend(head.into_iter().flat_map(u32::to_le_bytes));
        file.extend(bytes);
    }
    vec![("in.pcap", file)]
}

/// The handshake of a connection that begins at `ms`.
fn handshake(port: u16, ms: u64) -> [(u64, Packet); 3] {
    [
        (ms, packet(port, true, [0, 0], SYN, 0)),
        (ms + 10, packet(port, false, [0, 1], SYN | ACK, 0)),
        (ms + 20, packet(port, true, [1, 1], ACK, 0)),
    ]
}

fn packets(n: usize) -> Files {
    let one = |at: u32| {
        let ms = 30 + 2 * u64::from(at);
        let sent = packet(1_000, true, [1 + at * 1_000, 1], ACK, 1_000);
        [(ms, sent), (ms + 1, packet(1_000, false, [1, 1_001 + at * 1_000], ACK, 0))]
    };
    pcap(handshake(1_000, 0).into_iter().chain((0..n as u32).flat_map(one)))
}

fn connections(n: usize) -> Files {
    pcap((0..n).flat_map(|at| handshake(1_000 + at as u16, 100 * at as u64)))
}

/// A window of 2n packets of which every second is lost and repeated at the end.
fn losses(n: usize) -> Files {
    let n = n as u32;
    let seq = |at: u32| 1 + at * 1_000;
    let sent = (0..2 * n).map(|at| (30, packet(1_000, true, [seq(at), 1], ACK, 1_000)));
    let acks = (0..n).map(|at| {
        let mut ack = packet(1_000, false, [1, 1], ACK, 0);
        ack.sack = (at.saturating_sub(2)..=at)
            .rev()
            .map(|of| [seq(2 * of + 1), seq(2 * of + 2)])
            .collect();
        (40 + u64::from(at) / 10, ack)
    });
    let end = 50 + u64::from(n) / 10;
    let again = (0..n).flat_map(|at| {
        let ms = end + 20 * u64::from(at);
        let sent = packet(1_000, true, [seq(2 * at), 1], ACK, 1_000);
        [(ms, sent), (ms + 10, packet(1_000, false, [1, seq(2 * at + 2)], ACK, 0))]
    });
    pcap(handshake(1_000, 0).into_iter().chain(sent).chain(acks).chain(again))
}

/// 20 connections that send every second, for n seconds.
fn intervals(n: usize) -> Files {
    let one = |second: u32, port: u16| {
        let ms = 1_000 * u64::from(second) + 500 + u64::from(port);
        let sent = packet(port, true, [1 + second * 100, 1], ACK, 100);
        [(ms, sent), (ms + 10, packet(port, false, [1, 101 + second * 100], ACK, 0))]
    };
    let opened = (0..20).flat_map(|port| handshake(port, 0));
    pcap(
        opened.chain(
            (0..n as u32).flat_map(|second| (0..20).flat_map(move |port| one(second, port))),
        ),
    )
}

/// A pcapng file of n interfaces with a packet each.
fn interfaces(n: usize) -> Files {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let padded = body.len().next_multiple_of(4);
        let length = (padded as u32 + 12).to_le_bytes();
        file.extend(kind.to_le_bytes());
        file.extend(length);
        file.extend(body);
        file.extend(vec![0; padded - body.len()]);
        file.extend(length);
    };
    let mut head = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    head.extend([1, 0, 0, 0]);
    head.extend([0xff; 8]);
    block(0x0a0d_0d0a, &head);
    for _ in 0..n {
        block(1, &[101, 0, 0, 0, 0xff, 0xff, 0, 0]);
    }
    for at in 0..n as u32 {
        let bytes = packet(1_000, true, [0, 0], SYN, 0).bytes();
        let words = [at, 0, 1_000 * at, bytes.len() as u32, bytes.len() as u32];
        let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        body.extend(bytes);
        block(6, &body);
    }
    vec![("in.pcapng", file)]
}

/// Text of n parts.
fn text(
    name: &'static str,
    head: &str,
    n: usize,
    part: impl Fn(usize) -> String,
    tail: &str,
) -> Files {
    let parts: String = (0..n).map(part).collect();
    vec![(name, format!("{head}{parts}{tail}").into_bytes())]
}

fn names(n: usize) -> Files {
    let line = |at: usize| {
        let (minute, second, ms) = (at / 6_000 % 60, at / 100 % 60, at % 100 * 10);
        format!(
            "12:{minute:02}:{second:02}.{ms:03}000 IP client{at}.example.net.1000 > server{at}.example.com.80: \
             Flags [S], seq 1, win 65535, options [mss 1460], length 0\n"
        )
    };
    text("in.txt", "", n, line, "")
}

fn events(n: usize) -> Files {
    let head = "\u{1e}{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":\
                {\"type\":\"client\"},\"common_fields\":{\"time_format\":\"relative\",\"reference_time\":0}}}\n";
    let one = |at: usize| {
        format!(
            "\u{1e}{{\"time\":{},\"name\":\"transport:packet_sent\",\"data\":{{\"header\":{{\"packet_type\":\"1RTT\",\
             \"packet_number\":{at}}},\"raw\":{{\"length\":1200}},\"frames\":[{{\"frame_type\":\"stream\",\
             \"stream_id\":0,\"offset\":{},\"length\":1150}}]}}}}\n\
             \u{1e}{{\"time\":{},\"name\":\"transport:packet_received\",\"data\":{{\"header\":{{\"packet_type\":\"1RTT\",\
             \"packet_number\":{at}}},\"raw\":{{\"length\":40}},\"frames\":[{{\"frame_type\":\"ack\",\
             \"acked_ranges\":[[0,{at}]]}}]}}}}\n",
            2 * at,
            1_150 * at,
            2 * at + 1
        )
    };
    text("in.sqlog", head, n, one, "")
}

fn traces(n: usize) -> Files {
    let one = |at: usize| {
        format!(
            "{}{{\"vantage_point\":{{\"type\":\"client\"}},\"common_fields\":{{\"time_format\":\"relative\",\
             \"reference_time\":0}},\"events\":[{{\"time\":0,\"name\":\"transport:packet_sent\",\"data\":{{\"header\":\
             {{\"packet_type\":\"1RTT\",\"packet_number\":1}},\"raw\":{{\"length\":1200}},\"frames\":[]}}}}]}}",
            if at == 0 { "" } else { "," }
        )
    };
    text("in.qlog", "{\"qlog_version\":\"0.3\",\"traces\":[", n, one, "]}")
}

const IPERF: &str = "Connecting to host 10.0.0.2, port 5201\n";
const IPERF_HEAD: &str = "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n";

fn iperf_lines(n: usize) -> Files {
    let one = |at: usize| {
        let to = at + 1;
        format!("[  5]   {at}.00-{to}.00   sec  1.12 MBytes  9.43 Mbits/sec    0   94.7 KBytes\n")
    };
    text("in.txt", &format!("{IPERF}{IPERF_HEAD}"), n, one, "")
}

fn iperf_streams(n: usize) -> Files {
    let one = |at: usize| {
        format!("[{at:3}]   0.00-1.00   sec  1.12 MBytes  9.43 Mbits/sec    0   94.7 KBytes\n")
    };
    text("in.txt", &format!("{IPERF}{IPERF_HEAD}"), n, one, "")
}

fn polls(n: usize) -> Files {
    let one = |at: usize| {
        format!(
            "ESTAB 0 0 10.0.0.1:{} 10.0.0.2:80\n\t cubic wscale:7,7 rto:204 rtt:4.1/1.2 mss:1448 cwnd:10 \
             bytes_acked:{} segs_out:{} send 28.2Mbps delivery_rate 20Mbps\n",
            1_000 + at % 60_000,
            at * 1_000 + 1,
            at + 1
        )
    };
    text("in.txt", "", n, one, "")
}

fn errors(n: usize) -> Files {
    let one = |at: usize| format!("h{at} = {{ profil = \"linux-6.18\" }}, ");
    text("in.toml", "host = { ", n, one, "last = { profile = \"rfc\" } }\n")
}

fn keys(n: usize) -> Files {
    let one = |at: usize| format!("\"net.ipv4.tcp_{at}\" = 1, ");
    let head = "[host.a]\nprofile = \"linux-6.18\"\nknobs = { ";
    text("in.toml", head, n, one, "\"net.ipv4.tcp_sack\" = 1 }\n")
}

fn paths(n: usize) -> Files {
    let one = |at: usize| {
        format!(
            "[host.c{at}]\nprofile = \"rfc\"\n[[path]]\nfrom = \"c{at}\"\nto = \"server\"\nforward = \
             [{{ link = {{ rate = \"10Mbit/s\", buffer = \"1bdp\" }} }}, {{ delay = \"10ms\" }}]\n\
             return = [{{ delay = \"10ms\" }}]\n[[flow]]\nname = \"f{at}\"\nfrom = \"c{at}\"\nto = \"server\"\n\
             bulk = \"10kB\"\n"
        )
    };
    text("in.toml", "[host.server]\nprofile = \"rfc\"\n", n, one, "")
}

const PATH: &str = "[host.a]\nprofile = \"linux-6.18\"\n[host.b]\nprofile = \"linux-6.18\"\n";

fn listed_losses(n: usize) -> Files {
    let mut file = format!(
        "{PATH}[[path]]\nfrom = \"a\"\nto = \"b\"\nforward = [{{ link = {{ rate = \"100Mbit/s\", buffer = \"1bdp\" \
         }} }}, {{ delay = \"2ms\" }}, {{ loss = {{ packets = ["
    );
    for at in 0..n {
        // Writing to a String cannot fail.
        let _ = write!(file, "{}, ", 20 + 40 * at);
    }
    let _ = writeln!(
        file,
        "] }} }}]\nreturn = [{{ delay = \"2ms\" }}]\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"{}kB\"",
        58 * n
    );
    vec![("in.toml", file.into_bytes())]
}

/// n flows that fill a queue together.
fn flows(n: usize) -> Files {
    let head = format!(
        "{PATH}[[path]]\nfrom = \"a\"\nto = \"b\"\nforward = [{{ link = {{ rate = \"100Mbit/s\", buffer = \"1MB\" }} \
         }}, {{ delay = \"2ms\" }}]\nreturn = [{{ delay = \"2ms\" }}]\n"
    );
    let one = |at: usize| {
        format!("[[flow]]\nname = \"f{at}\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"10kB\"\n")
    };
    text("in.toml", &head, n, one, "")
}

fn runs(n: usize) -> Files {
    let head = format!(
        "{PATH}[[path]]\nfrom = \"a\"\nto = \"b\"\nforward = [{{ delay = \"2ms\" }}]\nreturn = [{{ delay = \"2ms\" }}]\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nbulk = \"10kB\"\n[sweep]\n\"flow.f.bulk\" = ["
    );
    text("in.toml", &head, n, |at| format!("\"{}kB\", ", at + 1), "]\n")
}

fn sockets(n: usize) -> Files {
    let one = |at: usize| {
        let fd = at + 3;
        format!(
            "0.000 socket(..., SOCK_STREAM, IPPROTO_TCP) = {fd}\n+0 setsockopt({fd}, SOL_SOCKET, SO_REUSEADDR, [1], 4) \
             = 0\n+0 bind({fd}, ..., ...) = 0\n+0 listen({fd}, 1) = 0\n"
        )
    };
    text("in.pkt", "", n, one, "")
}

fn configs(n: usize) -> Files {
    let one = |at: usize| {
        let base = at - at % 10;
        let extends = if at == base { String::new() } else { format!("extends = C{}\n", at - 1) };
        format!("[Config C{at}]\n{extends}**.linkDelay = {}ms\n", at + 1)
    };
    text("in.ini", "[General]\nnetwork = net\n", n, one, "")
}

fn parameters(n: usize) -> Files {
    text("in.ini", "[General]\nnetwork = net\n", n, |at| format!("**.a{at} = 1\n"), "")
}

fn qdiscs(n: usize) -> Files {
    let one = |at: usize| {
        format!(
            "tc class add dev eth0 parent 1: classid 1:{:x} htb rate {}kbit\n",
            at + 2,
            at + 100
        )
    };
    text("in.sh", "tc qdisc add dev eth0 root handle 1: htb default 2\n", n, one, "")
}
