//! Results that a guest reports on its console: lines that begin with `ackclock:`.

use std::collections::BTreeMap;

use units::Duration;

/// Results of the applications and the kernel of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostResults {
    /// Process 1 has configured the host.
    pub ready: bool,
    /// All applications have ended.
    pub done: bool,
    /// The endpoints of connections, in the order in which they ended.
    pub ends: Vec<EndResults>,
    /// Counters of the host that are not 0 (`TcpExt` of /proc/net/netstat).
    pub counters: BTreeMap<String, u64>,
    /// Facts that depend on the kernel's build, in the order of the report.
    pub facts: Vec<(String, String)>,
    /// Settings that the kernel refused, each with its error.
    pub refused: Vec<String>,
    /// Error that stopped process 1.
    pub(crate) error: Option<String>,
}

/// Results of one endpoint of a connection; the kernel's values are those of `tcp_info` at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndResults {
    /// Index of the flow.
    pub flow: usize,
    /// True for the listening endpoint.
    pub listens: bool,
    /// The endpoint completed its workload.
    pub finished: bool,
    /// The guest's time of the last byte read, or of the end if no byte was read.
    pub at: Duration,
    /// Bytes written.
    pub sent: u64,
    /// Bytes read.
    pub received: u64,
    /// The error of a system call (`ECONNRESET`).
    pub error: Option<String>,
    /// Congestion control.
    pub cc: String,
    /// The other values, by name.
    pub values: BTreeMap<String, u64>,
}

impl EndResults {
    /// Returns a value; 0 if it is missing.
    pub fn value(&self, name: &str) -> u64 {
        self.values.get(name).copied().unwrap_or(0)
    }
}

impl HostResults {
    /// Parses a line of the console; lines of the kernel are ignored.
    pub fn read_line(&mut self, line: &str) {
        let Some(text) = line.trim().strip_prefix("ackclock: ") else { return };
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "ready" => self.ready = true,
            "done" => self.done = true,
            "error" => self.error = Some(rest.to_owned()),
            "refused" => self.refused.push(rest.to_owned()),
            "fact" => {
                let fact = rest.split_once('=');
                self.facts.extend(fact.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            "counter" => {
                if let Some((name, Ok(value))) = rest.split_once('=').map(|(n, v)| (n, v.parse())) {
                    self.counters.insert(name.to_owned(), value);
                }
            }
            "end" => self.ends.push(end(rest)),
            _ => {}
        }
    }

    /// Returns the results of one endpoint of a flow.
    pub fn end(&self, flow: usize, listens: bool) -> Option<&EndResults> {
        self.ends.iter().find(|end| (end.flow, end.listens) == (flow, listens))
    }

    /// Returns a counter of the host; 0 if it is missing.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }
}

fn end(text: &str) -> EndResults {
    let mut end = EndResults::default();
    for (key, value) in text.split(' ').filter_map(|pair| pair.split_once('=')) {
        let number: u64 = value.parse().unwrap_or(0);
        match key {
            "flow" => end.flow = number as usize,
            "listens" => end.listens = number != 0,
            "finished" => end.finished = number != 0,
            "at" => end.at = Duration::from_nanos(number),
            "sent" => end.sent = number,
            "received" => end.received = number,
            "error" if value == "-" => {}
            "error" => end.error = Some(value.to_owned()),
            "cc" => end.cc = value.to_owned(),
            _ => {
                end.values.insert(key.to_owned(), number);
            }
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_this_program_are_read_and_the_kernels_are_not() {
        let mut results = HostResults::default();
        for line in [
            "[    0.000000] Linux version 6.12.117",
            "ackclock: ready at=37120",
            "ackclock: refused /proc/sys/net/ipv4/none=1: No such file or directory",
            "ackclock: end flow=3 listens=0 finished=1 at=1000 sent=5 received=6 error=EPIPE cc=bbr cwnd=10",
            "ackclock: counter TCPTimeouts=2\r",
            "ackclock: done",
        ] {
            results.read_line(line);
        }
        assert!(results.ready && results.done);
        assert_eq!(results.refused.len(), 1);
        assert_eq!(results.counter("TCPTimeouts"), 2);
        assert_eq!(results.counter("TCPLossProbes"), 0);
        assert_eq!(results.end(3, true), None);
        let end = results.end(3, false).unwrap();
        assert!(end.finished);
        assert_eq!((end.sent, end.received, end.at), (5, 6, Duration::from_nanos(1_000)));
        assert_eq!((end.error.as_deref(), end.cc.as_str()), (Some("EPIPE"), "bbr"));
        assert_eq!((end.value("cwnd"), end.value("mss")), (10, 0));
    }
}
