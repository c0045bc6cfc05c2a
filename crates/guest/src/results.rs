//! Results that a guest reports on its console: lines that begin with `ackclock:`.

use std::collections::BTreeMap;

use record::{Event, SenderState};
use units::{Bytes, Duration, Offset, Rate};

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
    /// The guest's time at the world's time 0.
    pub begins: Duration,
    /// Settings that the kernel refused, each with its error.
    pub refused: Vec<String>,
    /// `tcp_info` of senders over time, not yet recorded.
    pub(crate) samples: Vec<GuestTcpInfo>,
    /// Results of the system calls of a packet script, not yet taken.
    pub(crate) calls: Vec<String>,
    /// Why process 1 gave up.
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
    /// Reads a line of the console; one that is not for this program is the kernel's own.
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
            "call" => self.calls.push(rest.to_owned()),
            "tcp" => self.samples.extend(GuestTcpInfo::read(rest)),
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

/// `tcp_info` of a sender at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestTcpInfo {
    /// Index of the flow.
    pub flow: usize,
    /// It is the listening end.
    pub listens: bool,
    /// The guest's time.
    pub at: Duration,
    values: [u64; VALUES],
}

/// Values of [`GuestTcpInfo`], in the order in which recipe/init.c prints them.
const VALUES: usize = 20;
/// `TCP_INFINITE_SSTHRESH`, and a pacing rate without limit.
const NO_SSTHRESH: u64 = 0x7fff_ffff;
/// `TCP_CA_Recovery`; `TCP_CA_Loss` follows.
const RECOVERY: u64 = 3;

impl GuestTcpInfo {
    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let (flow, listens, at) = (next()? as usize, next()? != 0, Duration::from_nanos(next()?));
        let mut values = [0; VALUES];
        for value in &mut values {
            *value = next()?;
        }
        Some(Self { flow, listens, at, values })
    }

    /// The event of a row, and the sender's state in it. Before the connection is established there is none.
    pub fn row(&self) -> (Event, SenderState) {
        let [
            state,
            cwnd,
            ssthresh,
            mss,
            rtt,
            rto,
            pacing,
            unacked,
            sacked,
            lost,
            retrans,
            rest @ ..,
        ] = self.values;
        let [total_retrans, delivered, _, acked, sent, retransmitted, unsent, window, buffer] =
            rest;
        let event = Event::TcpInfo {
            sacked: sacked as u32,
            lost: lost as u32,
            retrans: retrans as u32,
            total_retrans: total_retrans as u32,
            delivered: delivered as u32,
        };
        // `tcpi_bytes_acked` of an end that opened its connection counts its SYN.
        let una = acked.saturating_sub(u64::from(!self.listens));
        let max = sent.saturating_sub(retransmitted).max(una);
        let segments = |count: u64| Bytes(count * mss);
        let state = SenderState {
            snd_una: Offset(una),
            snd_nxt: Offset(max),
            snd_max: Offset(max),
            cwnd: segments(cwnd),
            ssthresh: (ssthresh < NO_SSTHRESH).then(|| segments(ssthresh)),
            snd_wnd: Bytes(window),
            mss: Bytes(mss),
            buffered: Bytes(max - una + unsent),
            send_buffer: Bytes(buffer),
            srtt: (rtt > 0).then(|| Duration::from_micros(rtt)),
            rto: Duration::from_micros(rto),
            in_recovery: state >= RECOVERY,
            in_flight: Bytes(max - una),
            partial_acked: Bytes(0),
            bbr: None,
            pipe: segments((unacked + retrans).saturating_sub(sacked + lost)),
            pacing: pacing.checked_mul(8).and_then(Rate::from_bits_per_second),
        };
        (event, state)
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
            "ackclock: tcp 3 0 1001000000 3 20 14 1448 20123 224000 1600000 12 3 1 1 7 100 3 14481 43440 10136 5000 65536 87040",
            "ackclock: tcp 3 0 1001000000 0 10",
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
        let [sample] = &results.samples[..] else { panic!("{:?}", results.samples) };
        let (event, state) = sample.row();
        let counted =
            Event::TcpInfo { sacked: 3, lost: 1, retrans: 1, total_retrans: 7, delivered: 100 };
        assert_eq!(event, counted);
        assert_eq!((state.snd_una, state.snd_max), (Offset(14_480), Offset(33_304)));
        assert_eq!((state.cwnd, state.ssthresh), (Bytes(20 * 1_448), Some(Bytes(14 * 1_448))));
        assert_eq!((state.pipe, state.in_recovery), (Bytes(9 * 1_448), true));
        assert_eq!(state.pacing, Rate::from_bits_per_second(12_800_000));
    }
}
