//! Captures of a run: the addresses of its hosts, and recorders that write trace lines and pcapng
//! files from the scenario's taps.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use packet::wire::Endpoints;
use packet::{Dir, Flags, IpVersion, PacketTooBig, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{FlowSpec, Scenario, TapPoint};
use trace::pcapng::{InterfaceId, PacketDirection, PacketMeta, PcapngInterface, PcapngSection};
use trace::tcpdump::{Stamp, Style};
use trace::{pcapng, tcpdump};
use units::{Duration, FlowId, Instant, Offset, SeqNum};

/// Unix time at which virtual time begins in captures: 2 May 2023, 00:00 UTC.
pub const EPOCH: Duration = Duration::from_secs(1_682_985_600);

/// First client port: the dynamic range of RFC 6335.
const FIRST_CLIENT_PORT: u16 = 49_152;
const CLIENT_PORTS: u32 = 65_536 - FIRST_CLIENT_PORT as u32;
/// Server port: iperf's.
const SERVER_PORT: u16 = 5_001;

/// Address of host number `host`: 10.0.0.1 and fd00::1 for the first.
pub fn address(host: usize, ip: IpVersion) -> IpAddr {
    let number = host as u32 + 1;
    match ip {
        IpVersion::V4 => Ipv4Addr::from_bits(10 << 24 | number & 0xff_ffff).into(),
        IpVersion::V6 => Ipv6Addr::from_bits(0xfd << 120 | u128::from(number)).into(),
    }
}

/// Addresses and ports of each flow of this scenario, seen from its connecting side.
pub fn flow_endpoints(scenario: &Scenario) -> Vec<Endpoints> {
    let first = |(number, flow): (usize, &FlowSpec)| {
        let flow = Segment { flow: FlowId(number as u32), ip: flow.ip, ..Segment::default() };
        endpoints(scenario, &flow)
    };
    scenario.flows.iter().enumerate().map(first).collect()
}

/// Addresses and ports of a segment of this scenario.
pub fn endpoints(scenario: &Scenario, segment: &Segment) -> Endpoints {
    endpoints_of(scenario, (segment.flow, segment.dir, segment.ip))
}

/// The endpoints of one direction of a flow.
fn endpoints_of(scenario: &Scenario, (flow, dir, ip): (FlowId, Dir, IpVersion)) -> Endpoints {
    let number = flow.0;
    let (from, to) =
        scenario.flows.get(number as usize).map_or((0, 1), |flow| (flow.from, flow.to));
    let client = FIRST_CLIENT_PORT + (number % CLIENT_PORTS) as u16;
    let server = SERVER_PORT.wrapping_add((number / CLIENT_PORTS) as u16);
    let between = Endpoints {
        src: SocketAddr::new(address(from, ip), client),
        dst: SocketAddr::new(address(to, ip), server),
    };
    match dir {
        Dir::Forward => between,
        Dir::Reverse => between.reversed(),
    }
}

/// The style of trace lines: brief, with the hosts' names, if the scenario has one flow; otherwise
/// names would be ambiguous, and lines are those of `tcpdump -n -ttttt`.
pub fn style(scenario: &Scenario) -> Style {
    if scenario.flows.len() != 1 {
        return Style::tcpdump(Stamp::SinceFirst, EPOCH);
    }
    let names = scenario.hosts.iter().enumerate().flat_map(|(index, host)| {
        [IpVersion::V4, IpVersion::V6].map(|ip| (address(index, ip), host.name.clone()))
    });
    Style::brief(names.collect())
}

/// Index of the tap at `place` of `host`, which is added to the scenario if missing. A tap does not
/// change a run.
pub fn tap(scenario: &mut Scenario, host: usize, place: TapPoint) -> usize {
    let wanted = sim::scenario::TapSpec { host, place };
    scenario.taps.iter().position(|tap| *tap == wanted).unwrap_or_else(|| {
        scenario.taps.push(wanted);
        scenario.taps.len() - 1
    })
}

/// Prints the segments of one tap as trace lines.
#[derive(Debug)]
pub struct TraceLines<'s, W> {
    scenario: &'s Scenario,
    tap: usize,
    writer: tcpdump::TcpdumpWriter<W>,
    failed: Option<io::Error>,
}

impl<'s, W: Write> TraceLines<'s, W> {
    /// A recorder that prints the segments of tap `tap` to `out`.
    pub fn new(scenario: &'s Scenario, tap: usize, out: W) -> Self {
        let writer = tcpdump::TcpdumpWriter::new(out, style(scenario));
        Self { scenario, tap, writer, failed: None }
    }

    /// The first write error, after which nothing more is written.
    pub const fn error(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// The first error of the output.
    pub fn finish(self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }
}

impl<W: Write> Recorder for TraceLines<'_, W> {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl<W: Write> Observer for TraceLines<'_, W> {
    fn tap(&mut self, at: Instant, tap: usize, _: bool, segment: &Segment) {
        if tap == self.tap && self.failed.is_none() {
            let between = endpoints(self.scenario, segment);
            self.failed = self.writer.segment(at, segment, &between).err();
        }
    }
}

/// Writes the segments of some taps to a pcapng file, one interface per tap.
#[derive(Debug)]
pub struct PcapngRecorder<'s, W> {
    scenario: &'s Scenario,
    /// Interface of each tap of the scenario; `None` for taps that are not captured.
    interfaces: Vec<Option<InterfaceId>>,
    /// Two for each flow, one per direction.
    streams: Vec<StreamPosition>,
    writer: pcapng::PcapngWriter<W>,
    failed: Option<io::Error>,
}

/// Initial sequence number of a stream and its current offset.
#[derive(Debug, Clone, Copy, Default)]
struct StreamPosition {
    isn: SeqNum,
    at: Offset,
}

impl<'s, W: Write> PcapngRecorder<'s, W> {
    /// A recorder that writes the segments of the given taps to `out`; `comment` goes into the
    /// file's header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(scenario: &'s Scenario, taps: &[usize], comment: &str, out: W) -> io::Result<Self> {
        let application = concat!("ackclock ", env!("CARGO_PKG_VERSION"));
        let section =
            PcapngSection { application, comment, epoch: EPOCH, ..PcapngSection::default() };
        let mut writer = pcapng::PcapngWriter::new(out, &section)?;
        let mut interfaces = vec![None; scenario.taps.len()];
        for &number in taps {
            let Some(tap) = scenario.taps.get(number) else { continue };
            let host = scenario.hosts.get(tap.host).map_or("", |host| host.name.as_str());
            let (name, description) = match tap.place {
                TapPoint::Stack => (format!("{host}-stack"), "between stack and offloads"),
                TapPoint::Wire => (format!("{host}-wire"), "between offloads and path"),
            };
            interfaces[number] = Some(writer.add_interface(&PcapngInterface {
                name: &name,
                description,
                snaplen: 0,
            })?);
        }
        let streams = vec![StreamPosition::default(); scenario.flows.len() * 2];
        Ok(Self { scenario, interfaces, streams, writer, failed: None })
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// The first error of the output, or of a segment too long for an IP packet.
    pub fn finish(self) -> io::Result<W> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }

    /// Stream offset of the first payload byte, from 0.
    fn offset(&mut self, segment: &Segment) -> Offset {
        let index = segment.flow.0 as usize * 2 + usize::from(segment.dir == Dir::Reverse);
        let Some(stream) = self.streams.get_mut(index) else { return Offset(0) };
        if segment.flags.has(Flags::SYN) {
            *stream = StreamPosition { isn: SeqNum(segment.seq.0.wrapping_add(1)), at: Offset(0) };
            return Offset(0);
        }
        let place = segment.seq.near(stream.isn, stream.at).unwrap_or_default();
        stream.at = stream.at.max(place);
        place
    }
}

impl<W: Write> Recorder for PcapngRecorder<'_, W> {
    const ON: bool = false;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}

impl<W: Write> Observer for PcapngRecorder<'_, W> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        let Some(Some(interface)) = self.interfaces.get(tap).copied() else { return };
        if self.failed.is_some() {
            return;
        }
        let way = if outbound { PacketDirection::Out } else { PacketDirection::In };
        let between = endpoints(self.scenario, segment);
        let offset = self.offset(segment);
        // RFC 6864: a packet that is never fragmented needs no unique identification.
        let seen = PacketMeta { tap: interface, at, way };
        self.failed = self.writer.segment(seen, segment, &between, 0, offset).err();
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        let Some(Some(interface)) = self.interfaces.get(tap).copied() else { return };
        if self.failed.is_none() {
            let way = if outbound { PacketDirection::Out } else { PacketDirection::In };
            let seen = PacketMeta { tap: interface, at, way };
            let about = (message.flow, message.dir.reversed(), message.ip);
            let between = endpoints_of(self.scenario, about);
            self.failed = self.writer.too_big(seen, message, &between).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use units::FlowId;

    use super::*;
    use scenario::{Overrides, load};

    const SCENARIO: &str = r#"
host.a = { profile = "freebsd-13.2" }
host.b = { profile = "linux-6.18", cc = "reno" }
path = [ { from = "a", to = "b", forward = [], return = [] } ]
flow = [
    { name = "up", from = "a", to = "b", bulk = "1MB" },
    { name = "down", from = "b", to = "a", bulk = "1MB", ip = 6 },
]
tap = [ { host = "b", at = "wire" } ]
"#;

    fn scenario() -> Scenario {
        load(SCENARIO, "two.toml", &Overrides::default()).unwrap().scenario
    }

    #[test]
    fn each_flow_has_its_own_ports_and_both_directions_agree() {
        let scenario = scenario();
        let text = |flow, ip, dir| {
            let segment = Segment { flow: FlowId(flow), ip, dir, ..Segment::default() };
            let between = endpoints(&scenario, &segment);
            format!("{} > {}", between.src, between.dst)
        };
        let forward = text(0, IpVersion::V4, Dir::Forward);
        assert_eq!(forward, "10.0.0.1:49152 > 10.0.0.2:5001");
        let back = text(0, IpVersion::V4, Dir::Reverse);
        assert_eq!(back, "10.0.0.2:5001 > 10.0.0.1:49152");
        let other = text(1, IpVersion::V6, Dir::Forward);
        assert_eq!(other, "[fd00::2]:49153 > [fd00::1]:5001");
        // There are 16,384 ports; the flow after the last uses the next server port.
        let wrapped = text(16_384, IpVersion::V4, Dir::Forward);
        assert_eq!(wrapped, "10.0.0.1:49152 > 10.0.0.2:5002");
    }

    #[test]
    fn an_existing_tap_is_used_and_a_missing_one_is_added() {
        let mut scenario = scenario();
        assert_eq!(tap(&mut scenario, 1, TapPoint::Wire), 0);
        assert_eq!(tap(&mut scenario, 1, TapPoint::Stack), 1);
        assert_eq!(tap(&mut scenario, 1, TapPoint::Stack), 1);
        assert_eq!(scenario.taps.len(), 2);
    }

    #[test]
    fn host_names_are_used_for_a_single_flow() {
        let mut scenario = scenario();
        assert_eq!(style(&scenario), Style::tcpdump(Stamp::SinceFirst, EPOCH));
        scenario.flows.pop();
        let tcpdump::HostNaming::Hosts(names) = style(&scenario).names else { panic!("names") };
        assert!(names.contains(&(address(1, IpVersion::V6), "b".to_owned())));
    }

    #[test]
    fn retransmitted_bytes_are_the_same_bytes() {
        let scenario = scenario();
        let capture = |segments: &[Segment]| {
            let mut capture = PcapngRecorder::new(&scenario, &[0], "", Vec::new()).unwrap();
            for segment in segments {
                capture.tap(Instant::ZERO, 0, true, segment);
            }
            capture.finish().unwrap()
        };
        // The second segment is after the sequence number wraps.
        let isn = SeqNum(u32::MAX - 1_448);
        let syn = Segment { flags: Flags::SYN, seq: isn, ..Segment::default() };
        let data = |place: u64| Segment {
            flags: Flags::ACK,
            seq: Offset(1 + place).to_seq(isn),
            payload: 1_448,
            ..Segment::default()
        };
        let before = capture(&[syn, data(0)]).len();
        let once = capture(&[syn, data(0), data(1_448)]);
        let repeated = capture(&[syn, data(0), data(1_448), data(0)]);
        let block = once.len() - before;
        assert_eq!(once[before - block..before], repeated[once.len()..]);
        assert_ne!(once[before - block..before], once[before..]);
    }
}
