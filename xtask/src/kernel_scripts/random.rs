//! Random scripts: a sender and a receiver behind a path that loses packets and ACKs.
//!
//! The script is made event by event: the model runs what there is, and the receiver answers the packets that it has
//! sent. After every ACK the script prints `tcp_info`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use units::RandomStream;

/// Payload of a packet.
const MSS: u64 = 1_000;
/// Maximum ACKs of a script.
const MOST_ACKS: usize = 150;
/// End of a script in microseconds.
const LONGEST: u64 = 40_000_000;
/// Fields of `tcp_info`.
const FIELDS: &str = "tcpi_ca_state, tcpi_snd_cwnd, tcpi_snd_ssthresh, tcpi_unacked, tcpi_sacked, tcpi_lost, \
    tcpi_retrans, tcpi_backoff, tcpi_reordering, tcpi_reord_seen, tcpi_dsack_dups, tcpi_delivered, tcpi_rtt, \
    tcpi_total_retrans, tcpi_bytes_retrans, tcpi_bytes_sent, tcpi_bytes_acked, tcpi_segs_in, tcpi_segs_out, \
    tcpi_data_segs_out, tcpi_rcv_wnd, tcpi_rcv_ssthresh, \
    tcpi_delivery_rate_app_limited";

/// Properties of a path and of a receiver.
struct Path {
    sack: bool,
    /// Round-trip time in microseconds.
    rtt: u64,
    /// Of 1,000: data packets and ACKs that are lost, packets that are late.
    loss: u64,
    ack_loss: u64,
    late: u64,
    /// Data packets per ACK.
    stretch: usize,
}

/// The receiver.
#[derive(Default)]
struct Receiver {
    next: u64,
    /// Segments beyond a gap, by number.
    waiting: BTreeSet<u64>,
    /// First segments of the blocks reported, the newest first.
    recent: Vec<u64>,
    duplicate: Option<u64>,
    unacked: usize,
}

impl Receiver {
    /// A segment arrives; returns whether it is to be acknowledged at once.
    fn receive(&mut self, segment: u64) -> bool {
        self.duplicate = None;
        if segment < self.next || self.waiting.contains(&segment) {
            self.duplicate = Some(segment);
            return true;
        }
        self.waiting.insert(segment);
        let filled = segment == self.next && self.waiting.len() > 1;
        while self.waiting.remove(&self.next) {
            self.next += 1;
        }
        if segment >= self.next {
            self.recent.insert(0, segment);
        }
        self.unacked += 1;
        filled || !self.waiting.is_empty()
    }

    /// The SACK blocks, D-SACK first, in the order of RFC 2018 and 2883.
    fn blocks(&self) -> Vec<(u64, u64)> {
        let mut blocks: Vec<(u64, u64)> =
            self.duplicate.map(|at| (at, at + 1)).into_iter().collect();
        let first = blocks.len();
        for &segment in &self.recent {
            if !self.waiting.contains(&segment) {
                continue;
            }
            let (mut left, mut right) = (segment, segment + 1);
            while left > 0 && self.waiting.contains(&(left - 1)) {
                left -= 1;
            }
            while self.waiting.contains(&right) {
                right += 1;
            }
            if !blocks[first..].contains(&(left, right)) {
                blocks.push((left, right));
            }
        }
        blocks.truncate(4);
        blocks
    }

    fn ack(&mut self, at: u64, sack: bool) -> String {
        self.unacked = 0;
        let mut line = format!("{} < . 1:1(0) ack {} win 1000", time(at), self.next * MSS + 1);
        let blocks = self.blocks();
        if sack && !blocks.is_empty() {
            line += " <nop,nop,sack";
            for (left, right) in blocks {
                let _ = write!(line, " {}:{}", left * MSS + 1, right * MSS + 1);
            }
            line += ">";
        }
        line
    }
}

/// Returns random script `number`; `run` returns the packets of a script on the model.
pub(super) fn script(seed: u64, number: u64, run: &dyn Fn(&str) -> Vec<String>) -> String {
    let mut draws = RandomStream::named(seed, "scripts", &format!("random {number}"));
    let path = Path {
        sack: draws.below(3) > 0,
        rtt: 10_000 + draws.below(190_000),
        loss: [20, 60, 150, 300][draws.below(4) as usize],
        ack_loss: [0, 0, 100, 300][draws.below(4) as usize],
        late: [0, 0, 30, 100][draws.below(4) as usize],
        stretch: 1 + draws.below(2) as usize,
    };
    let segments = 5 + draws.below(60);
    let congestion = ["cubic", "cubic", "reno"][draws.below(3) as usize];
    let options = if path.sack { "mss 1000,sackOK,nop,nop" } else { "mss 1000,nop,nop,nop,nop" };
    let options = format!("{options},nop,wscale 7");
    let mut text = format!(
        "`sysctl -q net.ipv4.tcp_congestion_control={congestion}\n\
         sysctl -q net.ipv4.tcp_wmem=\"4096 262144 4194304\"`\n\
         0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n\
         +0 bind(3, ..., ...) = 0\n\
         +0 listen(3, 1) = 0\n\
         +0 < S 0:0(0) win 65535 <{options}>\n\
         {} < . 1:1(0) ack 1 win 1000\n\
         +0 accept(3, ..., ...) = 4\n\
         +0 write(4, ..., {}) = {}\n",
        time(path.rtt),
        segments * MSS,
        segments * MSS,
    );
    let mut now = path.rtt;
    let mut receiver = Receiver::default();
    // Arrivals of the ACKs of segments: time and segment.
    let mut arrivals: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut seen = 0;
    let mut acks = 0;
    while receiver.next < segments && acks < MOST_ACKS && now < LONGEST {
        let until = arrivals.first().map_or(now + 200_000, |&(at, _)| at);
        let packets = run(&format!("{text}{} %{{ pass }}%\n", time(until)));
        let sent: Vec<(u64, u64)> = packets.iter().filter_map(|line| data(line)).collect();
        for &(at, segment) in sent.iter().skip(seen) {
            let lost = draws.below(1_000) < path.loss;
            let late = draws.below(1_000) < path.late;
            let jitter = draws.below(300) + if late { path.rtt / 4 } else { 0 };
            if !lost {
                arrivals.insert((at + path.rtt + jitter, segment));
            }
        }
        seen = sent.len();
        match arrivals.first().copied() {
            Some((at, segment)) if at <= until => {
                arrivals.remove(&(at, segment));
                now = at;
                let at_once = receiver.receive(segment);
                let last = arrivals.is_empty();
                if !at_once && !last && receiver.unacked < path.stretch {
                    continue;
                }
                if draws.below(1_000) < path.ack_loss {
                    continue;
                }
                acks += 1;
                let _ =
                    write!(text, "{}\n+0 %{{ print({FIELDS}) }}%\n", receiver.ack(at, path.sack));
            }
            _ => now = until,
        }
    }
    // Probes of the end.
    let _ = writeln!(text, "+2 %{{ print({FIELDS}) }}%");
    text
}

fn time(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Time and segment of a data packet that the host has sent: `0.100 > . 1:1001(1000) ack 1 ...`.
fn data(line: &str) -> Option<(u64, u64)> {
    let mut words = line.split(' ');
    let (at, direction, _, range) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let seq: u64 = range.split(':').next()?.parse().ok()?;
    let (seconds, fraction) = at.split_once('.')?;
    let fraction: u64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let micros = seconds.parse::<u64>().ok()? * 1_000_000 + fraction;
    (direction == ">" && !range.ends_with("(0)") && seq > 0).then(|| (micros, (seq - 1) / MSS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_reports_gaps_and_duplicates() {
        let mut receiver = Receiver::default();
        assert!(!receiver.receive(0));
        assert!(receiver.receive(2));
        assert!(receiver.receive(4));
        assert_eq!(receiver.blocks(), [(4, 5), (2, 3)]);
        assert!(receiver.receive(2));
        assert_eq!(
            receiver.ack(1_500_000, true),
            "1.500000 < . 1:1(0) ack 1001 win 1000 <nop,nop,sack 2001:3001 4001:5001 2001:3001>"
        );
        assert!(receiver.receive(1));
        assert_eq!((receiver.next, receiver.blocks()), (3, vec![(4, 5)]));
    }

    #[test]
    fn data_packets_are_read() {
        assert_eq!(data("0.1005 > P. 2001:3001(1000) ack 1 win 502"), Some((100_500, 2)));
        assert_eq!(data("0.100 > . 2001:2001(0) ack 1 win 502"), None);
        assert_eq!(data("0.000 > S. 0:0(0) ack 1 win 65535"), None);
        assert_eq!(data("0.100 < . 1:1001(1000) ack 1 win 502"), None);
    }
}
