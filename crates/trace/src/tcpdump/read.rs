//! Parses packet lines in any text.
//!
//! Grammar: print-ip.c and print-tcp.c of tcpdump 4.99, with blanks and line breaks allowed between
//! any two tokens after the timestamp.

use std::collections::BTreeMap;

use packet::{Flags, IpVersion};
use units::Duration;

use super::clock::TimestampKind;
use super::cursor::{Start, TokenCursor, packet_start};
use super::line::{Address, SeqNumbering, SeqRange, TcpdumpLine};
use super::{TextError, old, options};

/// Words that tcpdump prints after the addresses of packets that are not TCP.
const OTHERS: [&str; 12] =
    ["UDP", "ICMP", "ICMP6", "IGMP", "igmp", "ESP", "AH", "SCTP", "PIMv2", "udp", "icmp", "icmp6"];

/// Words that tcpdump prints after the addresses of a tunnel, in which is another IP packet; before them
/// `-vv` has `[no cksum]` or `[udp sum ok]`.
const TUNNELS: [&str; 6] = ["GREv0", "GREv1", "IP", "IP6", "VXLAN", "Geneve"];

/// Most tunnels within each other.
const MOST_TUNNELS: usize = 4;

const HALF_A_DAY: Duration = Duration::from_secs(43_200);
const DAY: Duration = Duration::from_secs(86_400);

/// Parses all packets of a text; prose, remarks (`//`) and packets of other protocols are skipped.
///
/// # Errors
///
/// [`TextError`] at the first packet line that is broken or truncated, or at the beginning if the
/// text has no packet line.
pub fn read(text: &str) -> Result<Vec<TcpdumpLine<'_>>, TextError> {
    let packets = TcpdumpLines::new(text).collect::<Result<Vec<_>, _>>()?;
    if packets.is_empty() {
        let expected = "a packet line of tcpdump (`0.100 IP a > b: Flags [.], ack 1, ...`)";
        return Err(TextError::new(text, 0, expected, "a text without one"));
    }
    Ok(packets)
}

/// Iterates over the packets of a text; ends at the first error.
#[derive(Debug, Clone)]
pub struct TcpdumpLines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    /// Timestamp of the last packet, and the midnights passed since the first.
    last: Duration,
    midnights: Duration,
    /// Timestamps count from the packet before (`-ttt`); known from the first packet.
    are_deltas: bool,
    any: bool,
    connections: BTreeMap<(Address<'a>, Address<'a>), SeqState>,
}

impl<'a> TcpdumpLines<'a> {
    /// Iterates over the packets of `text`.
    pub const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            line: 1,
            last: Duration::ZERO,
            midnights: Duration::ZERO,
            are_deltas: false,
            any: false,
            connections: BTreeMap::new(),
        }
    }

    /// Moves to byte `at`.
    fn go_to(&mut self, at: usize) {
        self.line += self.text[self.at..at].bytes().filter(|&byte| byte == b'\n').count();
        self.at = at;
    }

    fn go_to_next_line(&mut self) {
        let rest = &self.text[self.at..];
        self.go_to(self.at + rest.find('\n').map_or(rest.len(), |newline| newline + 1));
    }

    fn packet(&mut self, start: Start) -> Result<Option<TcpdumpLine<'a>>, TextError> {
        let stamp = self.at + start.margin;
        let mut from = TokenCursor::new(self.text, stamp, start.quotes);
        from.go_to(stamp + start.stamp.len);
        let read = read_packet(&mut from);
        let line = self.line;
        let clock = start.stamp.clock;
        if !self.any && clock == TimestampKind::TimeOfDay && start.stamp.at == Duration::ZERO {
            self.are_deltas = are_deltas(&self.text[self.at..]);
        }
        // Of `-ttt` the packets of other protocols count, too.
        let at = match self.are_deltas {
            true => self.add(start.stamp.at),
            false => Duration::ZERO,
        };
        self.go_to(from.at());
        self.go_to_next_line();
        let Some(packet) = read? else { return Ok(None) };

        let at = if self.are_deltas { at } else { self.unwrap_midnight(clock, start.stamp.at) };
        let numbers = self.numbers(&packet);
        Ok(Some(TcpdumpLine { line, clock, at, numbers, ..packet }))
    }

    /// Adds the time since the packet before.
    fn add(&mut self, delta: Duration) -> Duration {
        self.last += delta;
        self.any = true;
        self.last
    }

    /// Continues a time of day past midnight.
    fn unwrap_midnight(&mut self, clock: TimestampKind, at: Duration) -> Duration {
        let mut now = at + self.midnights;
        if clock == TimestampKind::TimeOfDay && now + HALF_A_DAY < self.last {
            self.midnights += DAY;
            now += DAY;
        }
        self.last = now;
        self.any = true;
        now
    }

    /// Origin of the numbers of `packet`, from the earlier packets of its connection.
    fn numbers(&mut self, packet: &TcpdumpLine<'a>) -> SeqNumbering {
        let reversed = packet.src > packet.dst;
        let key = if reversed { (packet.dst, packet.src) } else { (packet.src, packet.dst) };
        let connection = self.connections.entry(key).or_default();
        let (own, peer) = if reversed { (1, 0) } else { (0, 1) };
        if let (true, Some(seq)) = (packet.flags.has(Flags::SYN), packet.seq) {
            connection.isn[own] = Some(seq.start);
            if let Some(ack) = packet.ack {
                connection.isn[peer] = Some(ack.wrapping_sub(1));
            }
            connection.numbers = None;
            return SeqNumbering::Absolute;
        }
        let Some(ack) = packet.ack else { return SeqNumbering::Absolute };
        if let (None, Some(isn)) = (connection.numbers, connection.isn[peer]) {
            // Of the two interpretations, the correct one is nearer to the beginning.
            let absolute = ack.wrapping_sub(isn) < ack;
            connection.numbers =
                Some(if absolute { SeqNumbering::Absolute } else { SeqNumbering::Relative });
        }
        connection.numbers.unwrap_or(SeqNumbering::Unknown)
    }
}

/// Origin of the numbers of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct SeqState {
    /// Initial sequence numbers of the lower and the higher address.
    isn: [Option<u32>; 2],
    /// Known from the first packet after the handshake.
    numbers: Option<SeqNumbering>,
}

impl<'a> Iterator for TcpdumpLines<'a> {
    type Item = Result<TcpdumpLine<'a>, TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let line = rest.split('\n').next().unwrap_or_default();
            let found = match packet_start(line) {
                Some(start) => self.packet(start).transpose(),
                None => {
                    if self.are_deltas
                        && let Some(stamp) = super::clock::find(line.trim_start())
                    {
                        self.add(stamp.at);
                    }
                    let broken = broken_start(line, self.any && rest.trim() == line.trim());
                    let error = broken.map(|(margin, expected)| {
                        Err(TokenCursor::new(self.text, self.at + margin, 0).expected(expected))
                    });
                    self.go_to_next_line();
                    error
                }
            };
            if found.is_some() {
                if matches!(found, Some(Err(_))) {
                    self.at = self.text.len();
                }
                return found;
            }
        }
        None
    }
}

/// Shortest time after which a smaller timestamp shows that both count from the packet before.
const LONG_DELTA: Duration = Duration::from_millis(1);

/// Whether the timestamps of a text, of which the first is zero, count from the packet before (`-ttt`)
/// and not from the first (`-ttttt`): a timestamp is less than half of the one before. A second
/// capture in the text begins with zero.
fn are_deltas(text: &str) -> bool {
    let stamps = text.lines().filter_map(packet_start).map(|start| start.stamp);
    let mut last = Duration::ZERO;
    for stamp in stamps.filter(|stamp| stamp.clock == TimestampKind::TimeOfDay) {
        let is_less = stamp.at + stamp.at < last && stamp.at > Duration::ZERO;
        if is_less && last >= LONG_DELTA {
            return true;
        }
        last = stamp.at;
    }
    false
}

/// Detects the rest of a broken packet line: returns the offset of the error and the expected text.
/// `last`: packets came before and no text follows.
fn broken_start(line: &str, last: bool) -> Option<(usize, &'static str)> {
    let margin = line.len() - line.trim_start_matches(['>', ' ', '\t']).len();
    let body = line[margin..].trim_end();
    if body.starts_with("//") {
        return None;
    }
    match super::clock::find(body) {
        // A text truncated after its last timestamp.
        Some(stamp) if last && body.len() == stamp.len => {
            Some((margin + stamp.len, "`IP` or `IP6`"))
        }
        Some(stamp) if body.contains(": Flags [") => {
            let after = &body[stamp.len..];
            let blanks = after.len() - after.trim_start().len();
            Some((margin + stamp.len + blanks, "`IP` or `IP6`"))
        }
        None if body.contains(": Flags [") && !body.starts_with("Flags") => {
            Some((margin, "a time stamp (`0.100`, `07:46:01.100400`) and `IP`"))
        }
        _ => None,
    }
}

/// Parses a packet after its timestamp; `None` if it is not TCP.
fn read_packet<'a>(from: &mut TokenCursor<'a>) -> Result<Option<TcpdumpLine<'a>>, TextError> {
    let ip = ip_version(from)?;
    let (mut ip, mut depth) = (ip, 0);
    let (src, dst) = loop {
        skip_ip_header(from)?;
        let src = Address::split(from.until_blank("the sender's address")?);
        from.need(">")?;
        from.skip_blanks();
        let dst_at = from.at();
        let dst = from.until_blank("the receiver's address")?;
        let Some(dst) = dst.strip_suffix(':') else {
            return Err(from.wrong(dst_at, "the receiver's address and `:`", dst));
        };
        from.skip_blanks();
        let word = from.peek_word();
        let is_tunnel = TUNNELS.contains(&word) || from.rest().starts_with('[');
        if is_tunnel && depth < MOST_TUNNELS {
            let Some(inner) = inner_packet(from) else { return Ok(None) };
            (ip, depth) = (inner, depth + 1);
            continue;
        }
        if OTHERS.contains(&word) || word.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        break (src, Address::split(dst));
    };
    let line = read_tcp(
        from,
        TcpdumpLine {
            line: 0,
            clock: TimestampKind::Seconds,
            at: Duration::ZERO,
            ip,
            src,
            dst,
            flags: Flags::NONE,
            seq: None,
            ack: None,
            numbers: SeqNumbering::Unknown,
            window: 0,
            options: None,
            length: 0,
        },
    )?;
    Ok(Some(line))
}

/// Parses what precedes the IP header.
fn ip_version(from: &mut TokenCursor<'_>) -> Result<IpVersion, TextError> {
    from.skip_blanks();
    // Before version 3.8 the addresses follow the timestamp, or a link header.
    if let Some(source) = old::source(from.rest())
        && !from.rest()[..source].split_whitespace().any(|word| matches!(word, "IP" | "IP6"))
    {
        from.go_to(from.at() + source);
        let host = from.rest().split_whitespace().next().unwrap_or_default();
        let is_v6 = host.matches(':').count() > 1;
        return Ok(if is_v6 { IpVersion::V6 } else { IpVersion::V4 });
    }
    loop {
        // The interface and the direction may precede `IP` (`-i any`).
        match from.until_blank("`IP` or `IP6`")? {
            "IP" => return Ok(IpVersion::V4),
            "IP6" => return Ok(IpVersion::V6),
            // A link header (`-e`): `MAC > MAC, ethertype IPv4 (0x0800), length 74: `.
            "ethertype" => {
                let version = match from.until_blank("an ethertype")? {
                    "IPv4" => IpVersion::V4,
                    "IPv6" => IpVersion::V6,
                    _ => continue,
                };
                from.until_blank("the number of the ethertype")?;
                from.skip_blanks();
                if from.peek_word() == "length" {
                    from.until_blank("`length`")?;
                    from.until_blank("the length of the frame")?;
                }
                return Ok(version);
            }
            _ => {}
        }
    }
}

/// Skips `(tos 0x0, ttl 64, ...)` of `-v`, and `(0x0021), length 54:` of a header of PPP.
fn skip_ip_header(from: &mut TokenCursor<'_>) -> Result<(), TextError> {
    from.skip_clause()?;
    if from.take(",") {
        from.need_word("length")?;
        from.until_blank("the length of the packet")?;
    }
    Ok(())
}

/// Goes to the packet within a tunnel, after its `IP` or `IP6`; `None` if it has none.
fn inner_packet(from: &mut TokenCursor<'_>) -> Option<IpVersion> {
    loop {
        match from.until_blank("").ok()? {
            "IP" => return Some(IpVersion::V4),
            "IP6" => return Some(IpVersion::V6),
            _ => {}
        }
    }
}

/// `Flags [.], seq 1:1449, ack 1, win 65, options [..], length 1448`.
fn read_tcp<'a>(
    from: &mut TokenCursor<'a>,
    mut line: TcpdumpLine<'a>,
) -> Result<TcpdumpLine<'a>, TextError> {
    from.skip_blanks();
    let word = from.rest().split_whitespace().next().unwrap_or_default();
    // At the end of a text that was cut off, it may be the first letter of `Flags`.
    if old::is_flags(word) && from.rest().len() > word.len() {
        return old::read(from, line);
    }
    from.need_word("Flags")?;
    line.flags = read_flags(from)?;
    from.need(",")?;
    if from.take_word("cksum") {
        from.until_blank("the checksum")?;
        from.skip_clause()?;
        from.need(",")?;
    }
    let before_seq = from.clone();
    let seq = if from.take_word("seq") { Some(read_seq(from)?) } else { None };
    line.seq = seq.map(|(range, _)| range);
    if line.flags.has(Flags::ACK) {
        if !from.take_word("ack") {
            let expected = if seq.is_some() { "`ack`" } else { "`seq` or `ack`" };
            return Err(from.expected(expected));
        }
        line.ack = Some(from.number("the acknowledgment number")?);
        from.need(",")?;
    }
    from.need_word("win")?;
    line.window = from.number("the window")?;
    from.need(",")?;
    if from.take_word("urg") {
        from.number::<u16>("the urgent pointer")?;
        from.need(",")?;
    }
    if from.take_word("options") {
        line.options = Some(options::read(from)?);
        from.need(",")?;
    }
    from.need_word("length")?;
    line.length = from.number("the length of the payload")?;

    let marks = [Flags::SYN, Flags::FIN, Flags::RST].into_iter().any(|mark| line.flags.has(mark));
    match seq {
        None if line.length > 0 || marks => Err(before_seq.expected("`seq`")),
        Some((SeqRange { start, end }, end_at)) if end != start.wrapping_add(line.length) => {
            let (length, due) = (line.length, start.wrapping_add(line.length));
            let expected = format!("{due} ({start} and the length of {length})");
            Err(from.wrong(end_at, &expected, &end.to_string()))
        }
        _ => Ok(line),
    }
}

/// Parses `1:1449,` or `1,` after the word `seq`; also returns the offset of the second number.
fn read_seq(from: &mut TokenCursor<'_>) -> Result<(SeqRange, usize), TextError> {
    from.skip_blanks();
    let mut end_at = from.at();
    let start = from.number("the sequence number")?;
    let mut end = start;
    if from.take(":") {
        from.skip_blanks();
        end_at = from.at();
        end = from.number("the end of the sequence numbers")?;
    }
    from.need(",")?;
    Ok((SeqRange { start, end }, end_at))
}

/// `[S.]`, in the letters of [`Flags`].
fn read_flags(from: &mut TokenCursor<'_>) -> Result<Flags, TextError> {
    from.need("[")?;
    let mut flags = Flags::NONE;
    if from.take_word("none") {
        from.need("]")?;
        return Ok(flags);
    }
    loop {
        flags |= match from.rest().chars().next() {
            Some('F') => Flags::FIN,
            Some('S') => Flags::SYN,
            Some('R') => Flags::RST,
            Some('P') => Flags::PSH,
            Some('.') => Flags::ACK,
            Some('U') => Flags::URG,
            Some('E') => Flags::ECE,
            Some('W') => Flags::CWR,
            Some(']') if flags != Flags::NONE => {
                from.need("]")?;
                return Ok(flags);
            }
            _ => return Err(from.expected("a flag of `FSRP.UEW` or `]`")),
        };
        from.go_to(from.at() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: &str = "10.0.0.1.45670 > 10.0.0.2.5201: Flags [S], seq 7, win 64240, length 0";
    const ACK: &str = "10.0.0.2.5201 > 10.0.0.1.45670: Flags [.], ack 8, win 501, length 0";

    /// Microseconds and hosts of the packets of a text.
    fn packets(text: &str) -> Vec<(u64, String)> {
        let lines = read(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        lines.iter().map(|one| (one.at.as_micros(), one.src.host.to_string())).collect()
    }

    /// Tunnels, numbers and link headers are before the packet of TCP.
    #[test]
    fn headers_before_tcp_are_skipped() {
        let tos = "(tos 0x0, ttl 64, id 1, offset 0, flags [DF], proto TCP (6), length 52)";
        let outer = "192.0.2.1 > 192.0.2.2:";
        for header in [
            "IP 192.0.2.1 > 192.0.2.2: GREv0, length 56: IP ".to_owned(),
            "IP 192.0.2.1 > 192.0.2.2: IP ".to_owned(),
            "IP6 2001:db8::1 > 2001:db8::2: IP ".to_owned(),
            format!("IP {tos}\n    {outer} GREv0, Flags [none], length 56\n\tIP {tos}\n    "),
            format!("IP {tos}\n    {outer} IP {tos}\n    "),
            "IP 192.0.2.1.4 > 192.0.2.2.4789: VXLAN, flags [I] (0x08), vni 42\nIP ".to_owned(),
            format!("IP {tos}\n    192.0.2.1.4 > 192.0.2.2.4789: [no cksum] VXLAN, flags [I] (0x08), vni 42\nIP {tos}\n    "),
            "IP 192.0.2.1.4 > 192.0.2.2.6081: Geneve, Flags [none], vni 0x1: IP ".to_owned(),
            "PPPoE  [ses 0x11] IP ".to_owned(),
            "52:54:00:12:34:56 > 52:54:00:65:43:21, ethertype PPPoE S (0x8864), length 74: PPPoE  [ses \
             0x11] IP (0x0021), length 54: "
                .to_owned(),
        ] {
            for number in ["", "    1  "] {
                let text = format!("{number}10:00:00.000100 {header}{SYN}\n10:00:00.000200 IP {ACK}\n");
                let found = packets(&text);
                let hosts: Vec<&str> = found.iter().map(|(_, host)| host.as_str()).collect();
                assert_eq!(hosts, ["10.0.0.1", "10.0.0.2"], "{text}");
            }
        }
        // Others in a tunnel.
        let other = format!(
            "10:00:00.1 IP 192.0.2.1.4 > 192.0.2.2.4789: VXLAN, flags [I] (0x08), vni 42\n\
             ARP, Request who-has 10.0.0.1, length 28\n10:00:00.2 IP {SYN}\n"
        );
        assert_eq!(packets(&other).len(), 1);
    }

    #[test]
    fn times_since_the_packet_before_are_added() {
        let text = |stamps: [&str; 4]| {
            let [a, b, c, d] = stamps;
            format!(
                " {a} IP {SYN}\n {b} IP {ACK}\n {c} ARP, Request who-has 10.0.0.1, length 28\n {d} IP {ACK}\n"
            )
        };
        let times = |stamps| -> Vec<u64> {
            packets(&text(stamps)).into_iter().map(|(time, _)| time).collect()
        };
        let deltas = ["00:00:00.000000", "00:00:00.040000", "00:00:00.000005", "00:00:00.000100"];
        assert_eq!(times(deltas), [0, 40_000, 40_105]);
        // `-ttttt` counts from the first packet.
        let since = ["00:00:00.000000", "00:00:00.040000", "00:00:00.040005", "00:00:00.040100"];
        assert_eq!(times(since), [0, 40_000, 40_100]);
        // A second capture from zero.
        let twice = ["00:00:00.000000", "00:00:00.040000", "00:00:00.040005", "00:00:00.000000"];
        assert_eq!(times(twice), [0, 40_000, 0]);
    }
}
