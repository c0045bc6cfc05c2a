//! Tests under flent's names: rrul, rtt_fair and tcp_nup, in virtual time.
//!
//! Names of series, lengths and delays are those of flent 2.3 (`flent/tests/*.conf`): 200 ms a step,
//! 60 s of load that begins after 5 s, pings for 70 s. Differences: no queue here reads the DSCP, so
//! the marks of flent's streams have no effect; a ping is a request of 56 bytes and its response over
//! TCP (netperf's `TCP_RR`), a new one 200 ms after the last response; rates are those of the
//! receiving application.

mod data_file;
mod recorder;

use core::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use scenario::{Overrides, load};
use units::Duration;

use crate::SuiteError;
use crate::sender::SuiteSender;
use recorder::StreamRecorder;

pub use data_file::FlentResult;

/// Time before and after the load, flent's `DELAY`.
const DELAY_S: u64 = 5;
/// Payload of a ping and of its response.
const PING: &str = "56B";

/// A test of flent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlentTest {
    /// Real-time response under load: four uploads, four downloads and pings.
    Rrul,
    /// Uploads and downloads to four hosts whose round trips differ.
    RttFair,
    /// Uploads, as many as the user wants, and a ping.
    TcpNup,
}

impl FlentTest {
    /// Its name in flent.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rrul => "rrul",
            Self::RttFair => "rtt_fair",
            Self::TcpNup => "tcp_nup",
        }
    }

    /// Its description in flent.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Rrul => "Realtime Response Under Load",
            Self::RttFair => "RTT Fair Realtime Response Under Load",
            Self::TcpNup => "TCP upload - N streams w/ping",
        }
    }
}

/// A test and the path that it runs over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlentRequest {
    /// The test.
    pub test: FlentTest,
    /// The sender of all streams, up and down.
    pub sender: SuiteSender,
    /// Rate of the uplink, as in a scenario: `20Mbit/s`.
    pub up: String,
    /// Rate of the downlink.
    pub down: String,
    /// Round trip without queues in milliseconds; rtt_fair has hosts at one, two, four and eight of
    /// them.
    pub rtt_ms: u32,
    /// Capacity of each queue, as in a scenario: `100p`.
    pub buffer: String,
    /// Queue discipline of both links.
    pub queue: String,
    /// Seconds of load (flent's `-l`).
    pub length_s: u32,
    /// Streams of tcp_nup.
    pub streams: u32,
    /// Seed of the run.
    pub seed: u64,
}

/// What a stream of a test is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamKind {
    Upload,
    Download,
    Ping,
}

/// A stream of a test: a series of the data file.
#[derive(Debug, Clone)]
struct FlentStream {
    name: String,
    kind: StreamKind,
    /// Index of the host that it runs to.
    host: usize,
}

/// A round trip without queue, and a name of the host there.
struct FlentHost {
    name: String,
    rtt: Duration,
}

impl FlentRequest {
    fn hosts(&self) -> Vec<FlentHost> {
        let factors: &[u64] = if self.test == FlentTest::RttFair { &[1, 2, 4, 8] } else { &[1] };
        let host = |factor: &u64| {
            let ms = u64::from(self.rtt_ms) * factor;
            FlentHost { name: format!("server-{ms}ms"), rtt: Duration::from_millis(ms) }
        };
        factors.iter().map(host).collect()
    }

    fn streams(&self) -> Vec<FlentStream> {
        let stream = |name: String, kind: StreamKind, host: usize| FlentStream { name, kind, host };
        let mut all = Vec::new();
        match self.test {
            FlentTest::Rrul => {
                for class in ["BE", "BK", "CS5", "EF"] {
                    all.push(stream(format!("TCP upload {class}"), StreamKind::Upload, 0));
                    all.push(stream(format!("TCP download {class}"), StreamKind::Download, 0));
                }
                for ping in ["UDP EF", "UDP BK", "UDP BE", "ICMP"] {
                    all.push(stream(format!("Ping (ms) {ping}"), StreamKind::Ping, 0));
                }
            }
            FlentTest::RttFair => {
                let labels =
                    [("BE1", "ICMP1"), ("BE2", "ICMP2"), ("BK1", "ICMP3"), ("BK2", "ICMP4")];
                for (host, (at, (label, ping))) in
                    self.hosts().iter().zip(labels.iter().enumerate())
                {
                    let to = &host.name;
                    all.push(stream(format!("TCP upload {label} {to}"), StreamKind::Upload, at));
                    all.push(stream(
                        format!("TCP download {label} {to}"),
                        StreamKind::Download,
                        at,
                    ));
                    all.push(stream(format!("Ping (ms) {ping} {to}"), StreamKind::Ping, at));
                }
            }
            FlentTest::TcpNup => {
                let uploads = (1..=self.streams)
                    .map(|number| stream(format!("TCP upload::{number}"), StreamKind::Upload, 0));
                all.extend(uploads);
                all.push(stream("Ping (ms) ICMP".to_owned(), StreamKind::Ping, 0));
            }
        }
        all
    }

    fn total_s(&self) -> u64 {
        u64::from(self.length_s) + 2 * DELAY_S
    }

    /// The scenario file of the test. Each stream has hosts and a path of its own; all share the two
    /// links.
    pub fn scenario(&self) -> String {
        let mut text = format!(
            "title = \"{} of {}\"\nseed = {}\nduration = \"{}s\"\n\n",
            self.test.name(),
            self.sender,
            self.seed,
            self.total_s()
        );
        for (name, rate) in [("up", &self.up), ("down", &self.down)] {
            let _ = writeln!(
                text,
                "[shared.{name}]\nlink = {{ rate = {rate:?}, buffer = {:?}, queue = {:?} }}\n",
                self.buffer, self.queue
            );
        }
        let hosts = self.hosts();
        for (number, stream) in self.streams().iter().enumerate() {
            let (from, to) = (format!("from{number}"), format!("to{number}"));
            let way = hosts[stream.host].rtt.as_nanos() / 2;
            let (there, back) = match stream.kind {
                StreamKind::Download => ("down", "up"),
                StreamKind::Upload | StreamKind::Ping => ("up", "down"),
            };
            let app = match stream.kind {
                // A pause until the end of the run follows the load.
                StreamKind::Upload | StreamKind::Download => format!(
                    "start = \"{DELAY_S}s\"\non_off = {{ on = \"{}s\", off = \"{}s\" }}",
                    self.length_s,
                    self.total_s()
                ),
                StreamKind::Ping => format!(
                    "requests = {{ request = {PING:?}, response = {PING:?}, think = \"200ms\" \
                     }}\nnodelay = true"
                ),
            };
            let _ = writeln!(
                text,
                "{}\n[[path]]\nfrom = {from:?}\nto = {to:?}\nforward = [{{ shared = {there:?} }}, {{ \
                 delay = \"{way}ns\" }}]\nreturn = [{{ shared = {back:?} }}, {{ delay = \
                 \"{way}ns\" }}]\n\n[[flow]]\nname = {:?}\nfrom = {from:?}\nto = {to:?}\n{app}\n",
                self.sender.hosts(&from, &to, None),
                stream.name
            );
        }
        text
    }

    /// Runs the test.
    ///
    /// # Errors
    /// A value of the path is wrong; the run ends with an error, or `stop` was set.
    pub fn run(&self, stop: &AtomicBool) -> Result<FlentResult, SuiteError> {
        let text = self.scenario();
        let name = self.test.name();
        let loaded = load(&text, name, &Overrides::default()).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            SuiteError::World(errors.join("\n"))
        })?;
        let mut recorder = StreamRecorder::new(self);
        runner::stop::run_shared(&loaded.scenario, &mut recorder, stop)
            .map_err(|error| SuiteError::Run(name.to_owned(), error.to_string()))?;
        Ok(FlentResult::new(self, &recorder))
    }
}
