//! Prints segments as packet lines.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use packet::wire::{Endpoints, OptionBytes};
use packet::{Flags, Segment};
use units::{Duration, Instant, SeqNum};

use super::clock::{write_date, write_time_of_day};
use super::options;

/// Format of the timestamp at the beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stamp {
    /// `07:46:01.100400`: time of day in UTC, as without an option.
    TimeOfDay,
    /// `1683013561.100400`: seconds since 1970 (`-tt`).
    Epoch,
    /// ` 00:00:00.000093`: time since the previous line (`-ttt`).
    SincePrevious,
    /// `2023-05-02 07:46:01.100400`: date and time in UTC (`-tttt`).
    Date,
    /// ` 00:00:00.100400`: time since the first line (`-ttttt`).
    SinceFirst,
    /// ` 0.100`: seconds since the first line, to the nearest millisecond.
    Seconds,
}

/// How hosts are printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostNaming {
    /// Address and port (`-n`).
    Numeric,
    /// These names, without the port; the address if a host has no name.
    Hosts(Vec<(IpAddr, String)>),
}

/// Format of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// The timestamp.
    pub stamp: Stamp,
    /// Time since 1970 at which virtual time begins.
    pub epoch: Duration,
    /// The hosts.
    pub names: HostNaming,
    /// Omit timestamps (and padding NOPs) from the first data of a connection on.
    pub brief: bool,
}

impl Style {
    /// The format of `tcpdump -n` with the option of `stamp`, and `TZ=UTC`.
    pub const fn tcpdump(stamp: Stamp, epoch: Duration) -> Self {
        Self { stamp, epoch, names: HostNaming::Numeric, brief: false }
    }

    /// The brief format used in mails.
    pub const fn brief(hosts: Vec<(IpAddr, String)>) -> Self {
        let names = HostNaming::Hosts(hosts);
        Self { stamp: Stamp::Seconds, epoch: Duration::ZERO, names, brief: true }
    }
}

/// Prints packets line by line.
///
/// ```
/// use packet::wire::Endpoints;
/// use packet::{Flags, Segment};
/// use trace::tcpdump::{Stamp, Style, TcpdumpWriter};
/// use units::{Duration, Instant, SeqNum};
/// # use ackclock_trace as trace;
///
/// let between = Endpoints {
///     src: "10.0.0.1:40000".parse().unwrap(),
///     dst: "10.0.0.2:5001".parse().unwrap(),
/// };
/// let style = Style::tcpdump(Stamp::SinceFirst, Duration::from_secs(1_683_013_561));
/// let mut writer = TcpdumpWriter::new(Vec::new(), style);
/// let syn = Segment { flags: Flags::SYN, seq: SeqNum(77), window: 65_535, ..Segment::default() };
/// writer.segment(Instant::ZERO, &syn, &between)?;
/// assert_eq!(
///     writer.finish()?,
///     b" 00:00:00.000000 IP 10.0.0.1.40000 > 10.0.0.2.5001: Flags [S], seq 77, win 65535, length 0\n"
/// );
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TcpdumpWriter<W> {
    out: W,
    style: Style,
    line: Vec<u8>,
    first: Option<Instant>,
    previous: Option<Instant>,
    connections: BTreeMap<(SocketAddr, SocketAddr), RelativeBase>,
}

/// Origin of the numbers of a connection.
#[derive(Debug, Clone, Copy)]
struct RelativeBase {
    /// ISN of the lower and the higher address; set by the first packet with the ACK flag, and by
    /// each SYN with one.
    base: Option<[SeqNum; 2]>,
    data_seen: bool,
}

impl<W: Write> TcpdumpWriter<W> {
    /// Writes lines to `out`.
    pub const fn new(out: W, style: Style) -> Self {
        Self {
            out,
            style,
            line: Vec::new(),
            first: None,
            previous: None,
            connections: BTreeMap::new(),
        }
    }

    /// Prints one segment; a burst is one line with its whole length.
    ///
    /// # Errors
    ///
    /// Those of the output; `InvalidInput` if the options do not fit into a header.
    pub fn segment(
        &mut self,
        at: Instant,
        segment: &Segment,
        between: &Endpoints,
    ) -> io::Result<()> {
        let raw = OptionBytes::of(segment)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut line = core::mem::take(&mut self.line);
        line.clear();
        self.write_stamp(&mut line, at)?;
        line.extend_from_slice(if between.src.is_ipv4() { b"IP " } else { b"IP6 " });
        self.write_host(&mut line, between.src)?;
        line.extend_from_slice(b" > ");
        self.write_host(&mut line, between.dst)?;
        self.write_tcp(&mut line, segment, between, raw.as_slice())?;
        line.push(b'\n');
        let written = self.out.write_all(&line);
        self.line = line;
        written
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_stamp(&mut self, line: &mut Vec<u8>, at: Instant) -> io::Result<()> {
        let first = *self.first.get_or_insert(at);
        let previous = self.previous.replace(at).unwrap_or(at);
        // tcpdump truncates timestamps to microseconds before it compares them.
        let epoch = self.style.epoch.as_nanos();
        let micros = |at: Instant| epoch.saturating_add(at.as_nanos()) / 1_000;
        let since = |line: &mut Vec<u8>, earlier: Instant| {
            line.push(if at < earlier { b'-' } else { b' ' });
            write_time_of_day(line, micros(at).abs_diff(micros(earlier)))
        };
        match self.style.stamp {
            Stamp::TimeOfDay => write_time_of_day(line, micros(at))?,
            Stamp::Epoch => {
                let micros = micros(at);
                write!(line, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)?;
            }
            Stamp::SincePrevious => since(line, previous)?,
            Stamp::Date => {
                write_date(line, micros(at))?;
                line.push(b' ');
                write_time_of_day(line, micros(at))?;
            }
            Stamp::SinceFirst => since(line, first)?,
            Stamp::Seconds => {
                line.push(if at < first { b'-' } else { b' ' });
                let nanos = at.as_nanos().abs_diff(first.as_nanos());
                let millis = nanos / 1_000_000 + u64::from(nanos % 1_000_000 >= 500_000);
                write!(line, "{}.{:03}", millis / 1_000, millis % 1_000)?;
            }
        }
        line.push(b' ');
        Ok(())
    }

    fn write_host(&self, line: &mut Vec<u8>, host: SocketAddr) -> io::Result<()> {
        let ip = host.ip();
        if let HostNaming::Hosts(names) = &self.style.names {
            return match names.iter().find(|(address, _)| *address == ip) {
                Some((_, name)) => line.write_all(name.as_bytes()),
                None => write_address(line, ip),
            };
        }
        write_address(line, ip)?;
        write!(line, ".{}", host.port())
    }

    /// Writes the rest of a line after the addresses: `tcp_print` of print-tcp.c.
    fn write_tcp(
        &mut self,
        line: &mut Vec<u8>,
        segment: &Segment,
        between: &Endpoints,
        raw_options: &[u8],
    ) -> io::Result<()> {
        let flags = segment.flags;
        let (seq, ack, sack_base, data_seen) = self.relative(segment, between);
        write!(line, ": Flags [{flags}]")?;
        let marks = flags.has(Flags::SYN) || flags.has(Flags::FIN) || flags.has(Flags::RST);
        if segment.payload > 0 || marks {
            write!(line, ", seq {}", seq.0)?;
            if segment.payload > 0 {
                write!(line, ":{}", seq.0.wrapping_add(segment.payload))?;
            }
        }
        if flags.has(Flags::ACK) {
            write!(line, ", ack {}", ack.0)?;
        }
        write!(line, ", win {}", segment.window)?;
        if flags.has(Flags::URG) {
            // The urgent pointer of every packet is 0.
            line.extend_from_slice(b", urg 0");
        }
        let brief = self.style.brief && data_seen;
        options::write(line, raw_options, sack_base, brief)?;
        write!(line, ", length {}", segment.payload)
    }

    /// Sequence and acknowledgment number as printed, the origin of SACK blocks, and whether the
    /// connection has carried data.
    fn relative(
        &mut self,
        segment: &Segment,
        between: &Endpoints,
    ) -> (SeqNum, SeqNum, SeqNum, bool) {
        let &Endpoints { src, dst } = between;
        let reversed = src > dst;
        let key = if reversed { (dst, src) } else { (src, dst) };
        let (own, peer) = if reversed { (1, 0) } else { (0, 1) };
        let connection =
            self.connections.entry(key).or_insert(RelativeBase { base: None, data_seen: false });
        if segment.flags.has(Flags::SYN) {
            connection.data_seen = false;
        }
        connection.data_seen |= segment.payload > 0;
        let data_seen = connection.data_seen;
        let (seq, ack) = (segment.seq, segment.ack);
        if !segment.flags.has(Flags::ACK) {
            return (seq, ack, SeqNum(0), data_seen);
        }
        match connection.base {
            Some(base) if !segment.flags.has(Flags::SYN) => {
                let seq = SeqNum(seq.0.wrapping_sub(base[own].0));
                let ack = SeqNum(ack.0.wrapping_sub(base[peer].0));
                (seq, ack, base[peer], data_seen)
            }
            _ => {
                let mut base = [seq; 2];
                base[peer] = SeqNum(ack.0.wrapping_sub(1));
                connection.base = Some(base);
                (seq, ack, base[peer], data_seen)
            }
        }
    }
}

/// Writes an address as tcpdump does: an IPv4 address embedded in IPv6 has dots.
fn write_address(line: &mut Vec<u8>, ip: IpAddr) -> io::Result<()> {
    match ip {
        IpAddr::V6(v6) if v6.segments()[..6] == [0; 6] && v6.segments()[6] != 0 => {
            let [.., a, b, c, d] = v6.octets();
            write!(line, "::{a}.{b}.{c}.{d}")
        }
        ip => write!(line, "{ip}"),
    }
}
