//! Reads the output of `iperf3 --json`: the streams of TCP with the values of `struct tcp_info` that
//! iperf3 samples in each interval.
//!
//! Source of the format: src/iperf_api.c and src/iperf_tcp.c of esnet/iperf. Times are in microseconds,
//! windows in bytes. FreeBSD and Linux fill the same fields; on other systems they are missing or zero.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Deserializer;
use units::Duration;

/// A stream of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Iperf3Stream {
    /// Address and port of the host that wrote the output.
    pub local: SocketAddr,
    /// Address and port of the other host.
    pub remote: SocketAddr,
    /// Whether the host that wrote the output sends.
    pub is_sender: bool,
    /// Its intervals, in order of time.
    pub intervals: Vec<Iperf3Interval>,
    /// Shortest and mean round-trip time of the whole test, of senders.
    pub rtt: Option<(Duration, Duration)>,
}

/// An interval of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iperf3Interval {
    /// Its end, since the begin of the test.
    pub end: Duration,
    /// Payload.
    pub bytes: u64,
    /// Retransmitted packets; `None` if unknown.
    pub retransmits: Option<u64>,
    /// Congestion window in bytes; `None` if unknown.
    pub cwnd: Option<u64>,
    /// The peer's window in bytes; `None` if unknown.
    pub peer_window: Option<u64>,
    /// Smoothed round-trip time; `None` if unknown.
    pub rtt: Option<Duration>,
}

/// A test.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Iperf3Test {
    /// Its begin since 1970, in seconds.
    pub began_s: u64,
    /// Payload of a segment.
    pub mss: Option<u64>,
    /// Whether the host that wrote the output is the server: the other host opened the connections.
    pub is_server: bool,
    /// Rate that each stream is limited to (`-b`), in bit/s; `None` without a limit.
    pub target_bps: Option<u64>,
    /// The streams of TCP.
    pub streams: Vec<Iperf3Stream>,
    /// The error with which the test ended.
    pub error: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TestJson {
    start: Option<StartJson>,
    #[serde(default)]
    intervals: Vec<IntervalJson>,
    end: Option<EndJson>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct StartJson {
    #[serde(default)]
    connected: Vec<ConnectedJson>,
    timestamp: Option<TimestampJson>,
    accepted_connection: Option<IgnoredAny>,
    tcp_mss: Option<u64>,
    tcp_mss_default: Option<u64>,
    test_start: Option<TestStartJson>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct ConnectedJson {
    socket: i64,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TimestampJson {
    timesecs: u64,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TestStartJson {
    protocol: Option<String>,
    #[serde(default)]
    target_bitrate: u64,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct IntervalJson {
    #[serde(default)]
    streams: Vec<StreamJson>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct StreamJson {
    socket: i64,
    end: f64,
    bytes: u64,
    retransmits: Option<i64>,
    snd_cwnd: Option<u64>,
    snd_wnd: Option<u64>,
    rtt: Option<u64>,
    #[serde(default)]
    omitted: bool,
    sender: Option<bool>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct EndJson {
    #[serde(default)]
    streams: Vec<EndStreamJson>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct EndStreamJson {
    sender: Option<EndSenderJson>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct EndSenderJson {
    socket: i64,
    min_rtt: Option<u64>,
    mean_rtt: Option<u64>,
}

/// Does the text of a file begin like the output of `iperf3 --json`?
pub fn is_iperf3(begin: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(begin);
    let Some(rest) = begin.trim_start().strip_prefix('{') else { return false };
    rest.trim_start().starts_with("\"start\"")
        && (rest.contains("\"iperf 3") || rest.contains("\"connected\""))
}

/// What an output has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Iperf3Output {
    /// Tests of TCP. A server writes one document after another, one for each test.
    pub tests: Vec<Iperf3Test>,
    /// Why other documents were not read: they are no JSON of this form (with line and column), their
    /// test is not of TCP, or an address is none.
    pub problems: Vec<String>,
}

/// Reads the output of a client, or of a server with any number of tests.
pub fn read(input: impl Read) -> Iperf3Output {
    let mut output = Iperf3Output::default();
    for document in Deserializer::from_reader(input).into_iter::<TestJson>() {
        match document.map_err(|error| error.to_string()).and_then(test) {
            Ok(test) => output.tests.push(test),
            Err(problem) => output.problems.push(problem),
        }
    }
    output
}

fn test(test: TestJson) -> Result<Iperf3Test, String> {
    let Some(start) = test.start else {
        return Err(test.error.unwrap_or_else(|| "no `start`".to_owned()));
    };
    let known = start.test_start.as_ref();
    if let Some(protocol) = known.and_then(|known| known.protocol.as_deref())
        && protocol != "TCP"
    {
        return Err(format!("a test of {protocol}, not of TCP"));
    }
    let mut streams: BTreeMap<i64, Iperf3Stream> = BTreeMap::new();
    for one in &start.connected {
        let stream = Iperf3Stream {
            local: address(&one.local_host, one.local_port)?,
            remote: address(&one.remote_host, one.remote_port)?,
            is_sender: true,
            intervals: Vec::new(),
            rtt: None,
        };
        streams.insert(one.socket, stream);
    }
    for one in test.intervals.iter().flat_map(|interval| &interval.streams) {
        let Some(stream) = streams.get_mut(&one.socket).filter(|_| !one.omitted) else { continue };
        stream.is_sender = one.sender.unwrap_or(one.snd_cwnd.is_some());
        stream.intervals.push(Iperf3Interval {
            end: seconds(one.end),
            bytes: one.bytes,
            retransmits: one.retransmits.and_then(|count| u64::try_from(count).ok()),
            cwnd: one.snd_cwnd.filter(|&bytes| bytes > 0),
            peer_window: one.snd_wnd.filter(|&bytes| bytes > 0),
            rtt: one.rtt.filter(|&us| us > 0).map(micros),
        });
    }
    let ends = test.end.into_iter().flat_map(|end| end.streams);
    for end in ends.filter_map(|one| one.sender) {
        let times = end.min_rtt.zip(end.mean_rtt).filter(|&(min, _)| min > 0);
        if let Some(stream) = streams.get_mut(&end.socket) {
            stream.rtt = times.map(|(min, mean)| (micros(min), micros(mean)));
        }
    }
    Ok(Iperf3Test {
        began_s: start.timestamp.map_or(0, |stamp| stamp.timesecs),
        is_server: start.accepted_connection.is_some(),
        mss: start.tcp_mss.or(start.tcp_mss_default).filter(|&bytes| bytes > 0),
        target_bps: known.map(|known| known.target_bitrate).filter(|&rate| rate > 0),
        streams: streams.into_values().collect(),
        error: test.error,
    })
}

fn address(host: &str, port: u16) -> Result<SocketAddr, String> {
    let host = host.split('%').next().unwrap_or(host);
    let ip: IpAddr = host.parse().map_err(|_| format!("`{host}` is no address"))?;
    Ok(SocketAddr::new(ip.to_canonical(), port))
}

/// Damaged values saturate.
const fn micros(us: u64) -> Duration {
    Duration::from_nanos(us.saturating_mul(1_000))
}

fn seconds(value: f64) -> Duration {
    // Casts of negative and huge values saturate.
    Duration::from_nanos((value * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = r#"{
	"start":	{
		"connected":	[{"socket":5,"local_host":"10.0.0.1","local_port":40000,
			"remote_host":"10.0.0.2","remote_port":5201}],
		"version":	"iperf 3.16",
		"timestamp":	{"time":"Thu, 26 Nov 2026 03:00:00 GMT","timesecs":1795662000},
		"tcp_mss_default":	1448,
		"test_start":	{"protocol":"TCP","num_streams":1,"target_bitrate":0}
	},
	"intervals":	[
		{"streams":[{"socket":5,"start":0,"end":1.0,"seconds":1.0,"bytes":1000000,
			"retransmits":0,"snd_cwnd":400000,"snd_wnd":65536,"rtt":40500,"omitted":false,"sender":true}]},
		{"streams":[{"socket":5,"start":1,"end":2.0,"seconds":1.0,"bytes":1500000,
			"retransmits":2,"snd_cwnd":400000,"snd_wnd":65536,"rtt":40700,"omitted":false,"sender":true}]}],
	"end":	{"streams":[{"sender":{"socket":5,"bytes":2500000,"retransmits":2,"min_rtt":40100,"mean_rtt":40600}}]}
}"#;

    #[test]
    fn a_test_has_its_streams() {
        assert!(is_iperf3(TEST.as_bytes()));
        let output = read(TEST.as_bytes());
        let [test] = output.tests.as_slice() else { panic!("{output:?}") };
        assert_eq!((test.began_s, test.mss, test.target_bps), (1_795_662_000, Some(1_448), None));
        assert!(!test.is_server);
        let [stream] = test.streams.as_slice() else { panic!("{test:?}") };
        assert!(stream.is_sender && stream.local == "10.0.0.1:40000".parse().unwrap());
        assert_eq!(stream.intervals.len(), 2);
        assert_eq!(stream.intervals[1].retransmits, Some(2));
        assert_eq!(stream.rtt.unwrap().0, Duration::from_micros(40_100));
    }

    #[test]
    fn other_tests_are_refused_by_what_they_are() {
        for (text, part) in [
            (TEST.replace("\"TCP\"", "\"UDP\""), "a test of UDP"),
            (TEST.replace("10.0.0.1", "nowhere"), "`nowhere` is no address"),
            (TEST[..TEST.len() - 9].to_owned(), "line 15"),
            (
                TEST.replace("\"end\":\t{", "\"end\": 5, \"last\": {"),
                "expected an object at line 15",
            ),
        ] {
            let output = read(text.as_bytes());
            assert!(output.tests.is_empty(), "{output:?}");
            assert!(output.problems.len() == 1 && output.problems[0].contains(part), "{output:?}");
        }
        let failed = read(&br#"{"start":{},"error":"unable to connect"}"#[..]);
        assert_eq!(failed.tests[0].error.as_deref(), Some("unable to connect"));
    }

    /// Numbers that no test has saturate.
    #[test]
    fn huge_numbers_are_read() {
        for (value, huge) in [
            ("\"rtt\":40500", "\"rtt\":18446744073709551615"),
            ("\"min_rtt\":40100", "\"min_rtt\":18446744073709551615"),
            ("\"end\":1.0", "\"end\":1e300"),
            ("\"timesecs\":1795662000", "\"timesecs\":18446744073709551615"),
        ] {
            assert!(TEST.contains(value));
            let output = read(TEST.replace(value, huge).as_bytes());
            assert_eq!((output.tests.len(), output.problems.len()), (1, 0), "{huge}");
        }
    }

    /// A server that was killed amid its third test, of which the second was of UDP.
    #[test]
    fn a_server_writes_one_document_after_another() {
        let udp = TEST.replace("\"TCP\"", "\"UDP\"");
        let output = read(format!("{TEST}\n{udp}\n{TEST}\n{}", &TEST[..200]).as_bytes());
        assert_eq!(output.tests.len(), 2);
        assert_eq!(output.tests[0], output.tests[1]);
        let problems: Vec<_> = output.problems.iter().map(String::as_str).collect();
        let ["a test of UDP, not of TCP", end] = problems[..] else { panic!("{problems:?}") };
        assert!(end.contains("EOF"), "{end}");
    }
}
