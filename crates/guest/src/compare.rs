//! The same scenario in two grades (modelled hosts, real kernels in virtual time, the wire), packet by packet.
//!
//! Packets are compared at the network card of the host that opened the connection, each direction
//! by itself, with numbers relative to the initial sequence numbers, which are random. Timestamps
//! are random too and not compared.

use packet::{Dir, Flags, Segment};
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use sim::scenario::{Scenario, TapPoint, TapSpec};
use units::{Bytes, Duration, Instant, SeqNum};

/// The fields of a packet that are compared.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ComparedPacket {
    /// Time at the network card, in nanoseconds.
    pub at_ns: u64,
    /// Sequence number, relative.
    pub seq: u32,
    /// Bytes of payload.
    pub len: u32,
    /// Acknowledgment number, relative; 0 without one.
    pub ack: u32,
    /// Control bits, in tcpdump's letters.
    pub flags: String,
    /// SACK blocks, relative.
    pub sack: Vec<(u32, u32)>,
    /// Window in bytes.
    pub window: u64,
}

/// The first field in which two packets differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// The packet is missing on one side.
    Missing,
    /// The sequence number.
    Seq,
    /// The payload.
    Len,
    /// The acknowledgment number.
    Ack,
    /// The control bits, except PSH.
    Flags,
    /// The SACK blocks.
    Sack,
    /// The time, by more than the tolerance.
    Time,
    /// The window.
    Window,
}

/// Two packets that differ.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// True if the packet travelled from the host that opened the connection.
    pub forward: bool,
    /// Index of the packet in its direction, from 0.
    pub index: usize,
    /// The first field in which they differ.
    pub field: Field,
    /// That of the first grade, and that of the second.
    pub packets: [Option<ComparedPacket>; 2],
    /// One of them retransmits data.
    pub retransmits: bool,
}

impl Difference {
    /// Time of the earlier packet.
    pub fn at_ns(&self) -> u64 {
        let times = self.packets.iter().flatten().map(|packet| packet.at_ns);
        times.min().unwrap_or(0)
    }
}

/// The comparison of one flow.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FlowComparison {
    /// Name of the flow.
    pub flow: String,
    /// Packets of both grades, both directions.
    pub packets: [usize; 2],
    /// The first difference in what was sent; `None` if everything is the same.
    pub first: Option<Difference>,
    /// Number of packets before the first difference in both directions; all packets if there is
    /// none.
    pub same_packets: usize,
    /// The largest time difference among these packets, in nanoseconds.
    pub largest_time_ns: u64,
    /// The first of these packets whose times differ by more than the tolerance.
    pub first_late: Option<Difference>,
    /// The first of these packets whose windows differ.
    pub first_window: Option<Difference>,
    /// Number of these packets that differ in PSH.
    pub other_push: usize,
}

impl FlowComparison {
    /// The kind of the first difference, for counts: direction, field, and whether one of the
    /// packets is a retransmission; `None` if all packets are equal.
    pub fn kind(&self) -> Option<String> {
        let first = self.first.as_ref()?;
        let way = if first.forward { "forward" } else { "return" };
        let field = match first.field {
            Field::Missing => "missing",
            Field::Seq => "seq",
            Field::Len => "len",
            Field::Ack => "ack",
            Field::Flags => "flags",
            Field::Sack => "sack",
            Field::Time => "time",
            Field::Window => "window",
        };
        let what = if first.retransmits {
            "retransmission"
        } else if first.packets.iter().flatten().any(|packet| packet.len > 0) {
            "new data"
        } else {
            "no data"
        };
        Some(format!("{way} {field}, {what}"))
    }
}

/// The windows of a sender at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSample {
    /// When.
    pub at: Instant,
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// Slow-start threshold, in bytes.
    pub ssthresh: Option<u64>,
}

/// Collects the packets of every flow at the card of the host that opened it.
#[derive(Debug)]
pub struct PacketRecord {
    /// Index of the tap of each flow.
    taps: Vec<usize>,
    /// The packets of both directions of each flow.
    flows: Vec<[Direction; 2]>,
    /// The state of each flow's sender, up to a time.
    states: Vec<Option<SenderState>>,
    /// The windows of each flow's sender, whenever they change.
    windows: Vec<Vec<WindowSample>>,
    until: Instant,
    senders: Vec<usize>,
    /// When the run ended.
    ended: Instant,
}

#[derive(Debug, Clone, Default)]
struct Direction {
    isn: SeqNum,
    scale: u8,
    packets: Vec<ComparedPacket>,
}

impl Direction {
    /// Whether packet `index` has data that was sent before.
    fn retransmits(&self, index: usize) -> bool {
        let Some(packet) = self.packets.get(index).filter(|packet| packet.len > 0) else {
            return false;
        };
        let ends = self.packets[..index].iter().filter(|before| before.len > 0);
        let newest = ends.map(|before| before.seq.wrapping_add(before.len)).max();
        newest.is_some_and(|newest| packet.seq < newest)
    }
}

impl PacketRecord {
    /// Creates a collector and adds its taps to `scenario`; sender states are recorded before
    /// `until`.
    pub fn new(scenario: &mut Scenario, until: Instant) -> Self {
        let flows = scenario.flows.len();
        let hosts: Vec<usize> = scenario.flows.iter().map(|flow| flow.from).collect();
        let tap = |&host: &usize| {
            let wanted = TapSpec { host, place: TapPoint::Wire };
            scenario.taps.iter().position(|tap| *tap == wanted).unwrap_or_else(|| {
                scenario.taps.push(wanted);
                scenario.taps.len() - 1
            })
        };
        Self {
            taps: hosts.iter().map(tap).collect(),
            flows: vec![Default::default(); flows],
            states: vec![None; flows],
            windows: vec![Vec::new(); flows],
            until,
            senders: hosts,
            ended: Instant::MAX,
        }
    }

    /// A record of no flows.
    pub fn empty() -> Self {
        Self::recorded(Vec::new(), Vec::new())
    }

    /// What was recorded of a kernel elsewhere: packets from and to the host that opened each flow, and the windows of
    /// that end.
    pub(crate) fn recorded(
        flows: Vec<[Vec<ComparedPacket>; 2]>,
        windows: Vec<Vec<WindowSample>>,
    ) -> Self {
        let direction = |packets| Direction { packets, ..Direction::default() };
        Self {
            taps: Vec::new(),
            states: vec![None; flows.len()],
            senders: Vec::new(),
            flows: flows.into_iter().map(|ways| ways.map(direction)).collect(),
            windows,
            until: Instant::ZERO,
            ended: Instant::MAX,
        }
    }

    /// The state of a flow's connecting endpoint after its last event before the requested time;
    /// `None` if the endpoint is a kernel.
    pub fn state(&self, flow: usize) -> Option<&SenderState> {
        self.states.get(flow)?.as_ref()
    }

    /// The run ended at `at`, since all connections were closed: packets of the other grade after that are no difference.
    pub const fn end(&mut self, at: Instant) {
        self.ended = at;
    }

    /// When the run ended; [`Instant::MAX`] if unknown.
    pub const fn ended(&self) -> Instant {
        self.ended
    }

    /// Adds the windows of the connecting end of a flow, known from elsewhere than events.
    pub fn add_window(&mut self, flow: usize, at: Instant, cwnd: u64, ssthresh: Option<u64>) {
        let Some(windows) = self.windows.get_mut(flow) else { return };
        if windows.last().is_none_or(|last| (last.cwnd, last.ssthresh) != (cwnd, ssthresh)) {
            windows.push(WindowSample { at, cwnd, ssthresh });
        }
    }

    /// The packets of a flow, from the host that opened it (`forward`) or to it.
    pub fn packets(&self, flow: usize, forward: bool) -> &[ComparedPacket] {
        self.flows.get(flow).map_or(&[], |ways| &ways[usize::from(!forward)].packets)
    }

    /// The windows of the connecting end of a flow, whenever they changed.
    pub fn windows(&self, flow: usize) -> &[WindowSample] {
        self.windows.get(flow).map_or(&[], Vec::as_slice)
    }
}

impl Recorder for PacketRecord {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, _: Event, state: Option<&SenderState>) {
        let flow = who.flow.0 as usize;
        let Some(state) = state else { return };
        if self.senders.get(flow) != Some(&usize::from(who.host.0)) {
            return;
        }
        if at < self.until {
            self.states[flow] = Some(*state);
        }
        self.add_window(flow, at, state.cwnd.get(), state.ssthresh.map(Bytes::get));
    }
}

impl Observer for PacketRecord {
    fn tap(&mut self, at: Instant, tap: usize, _: bool, segment: &Segment) {
        let flow = segment.flow.0 as usize;
        if self.taps.get(flow) != Some(&tap) {
            return;
        }
        let own = usize::from(segment.dir == Dir::Reverse);
        let directions = &mut self.flows[flow];
        if let packet::Options::Syn(options) = &segment.options {
            directions[own].isn = segment.seq;
            directions[own].scale = options.window_scale.unwrap_or(0);
        }
        let [isn, peer] = [directions[own].isn, directions[1 - own].isn];
        let relative = |number: SeqNum, isn: SeqNum| number.0.wrapping_sub(isn.0);
        let is_syn = segment.flags.has(Flags::SYN);
        let scale = if is_syn { 0 } else { directions[own].scale };
        let has_ack = segment.flags.has(Flags::ACK);
        directions[own].packets.push(ComparedPacket {
            at_ns: at.as_nanos(),
            seq: relative(segment.seq, isn),
            len: segment.payload,
            ack: if has_ack { relative(segment.ack, peer) } else { 0 },
            flags: segment.flags.to_string(),
            sack: segment
                .sack_blocks()
                .iter()
                .map(|block| (relative(block.left, peer), relative(block.right, peer)))
                .collect(),
            window: u64::from(segment.window) << scale,
        });
    }
}

/// The first field in which two packets differ.
fn difference(one: Option<&ComparedPacket>, other: Option<&ComparedPacket>) -> Option<Field> {
    let (Some(one), Some(other)) = (one, other) else {
        return (one.is_some() || other.is_some()).then_some(Field::Missing);
    };
    let no_push = |flags: &str| flags.replace('P', "");
    let fields = [
        (one.seq != other.seq, Field::Seq),
        (one.len != other.len, Field::Len),
        (one.ack != other.ack, Field::Ack),
        (no_push(&one.flags) != no_push(&other.flags), Field::Flags),
        (one.sack != other.sack, Field::Sack),
    ];
    fields.into_iter().find(|field| field.0).map(|field| field.1)
}

/// Compares what two grades recorded of each flow.
pub fn compare(
    scenario: &Scenario,
    one: &PacketRecord,
    other: &PacketRecord,
    tolerance: Duration,
) -> Vec<FlowComparison> {
    let ends = [one.ended, other.ended].map(Instant::as_nanos);
    let flows = scenario.flows.iter().zip(one.flows.iter().zip(&other.flows));
    flows
        .map(|(flow, (one, other))| compare_flow(&flow.name, [one, other], ends, tolerance))
        .collect()
}

fn compare_flow(
    name: &str,
    [one, other]: [&[Direction; 2]; 2],
    ends: [u64; 2],
    tolerance: Duration,
) -> FlowComparison {
    let pair =
        |way: usize, index: usize| (one[way].packets.get(index), other[way].packets.get(index));
    let made = |way: usize, index: usize, field: Field| {
        let (first, second) = pair(way, index);
        let retransmits = one[way].retransmits(index) || other[way].retransmits(index);
        let packets = [first.cloned(), second.cloned()];
        Difference { forward: way == 0, index, field, packets, retransmits }
    };
    let first_of = |way: usize| {
        let packets = one[way].packets.len().max(other[way].packets.len());
        (0..packets).find_map(|index| {
            let (one, other) = pair(way, index);
            let over = |packet: Option<&ComparedPacket>, end: u64| {
                packet.is_some_and(|packet| packet.at_ns >= end)
            };
            if (one.is_none() && over(other, ends[0])) || (other.is_none() && over(one, ends[1])) {
                return None;
            }
            difference(one, other).map(|field| made(way, index, field))
        })
    };
    let first = [first_of(0), first_of(1)].into_iter().flatten().min_by_key(Difference::at_ns);
    let before = first.as_ref().map_or(u64::MAX, Difference::at_ns);
    let mut comparison = FlowComparison {
        flow: name.to_owned(),
        packets: [one, other].map(|one| one.iter().map(|way| way.packets.len()).sum()),
        first,
        same_packets: 0,
        largest_time_ns: 0,
        first_late: None,
        first_window: None,
        other_push: 0,
    };
    for way in [0, 1] {
        for index in 0.. {
            let (Some(one), Some(other)) = pair(way, index) else { break };
            if one.at_ns.min(other.at_ns) >= before {
                break;
            }
            comparison.same_packets += 1;
            let apart = one.at_ns.abs_diff(other.at_ns);
            comparison.largest_time_ns = comparison.largest_time_ns.max(apart);
            comparison.other_push += usize::from(one.flags != other.flags);
            let earlier = |known: &Option<Difference>| {
                known.as_ref().is_none_or(|known| one.at_ns < known.at_ns())
            };
            if apart > tolerance.as_nanos() && earlier(&comparison.first_late) {
                comparison.first_late = Some(made(way, index, Field::Time));
            }
            if one.window != other.window && earlier(&comparison.first_window) {
                comparison.first_window = Some(made(way, index, Field::Window));
            }
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(at_ns: u64, seq: u32, len: u32) -> ComparedPacket {
        ComparedPacket {
            at_ns,
            seq,
            len,
            ack: 1,
            flags: ".".into(),
            sack: Vec::new(),
            window: 65_536,
        }
    }

    fn way(packets: &[ComparedPacket]) -> Direction {
        Direction { packets: packets.to_vec(), ..Direction::default() }
    }

    fn compared(model: &[Direction; 2], kernel: &[Direction; 2]) -> FlowComparison {
        compare_flow("up", [model, kernel], [2_500, u64::MAX], Duration::from_micros(1))
    }

    #[test]
    fn the_earliest_difference_of_both_directions_is_the_first() {
        let data = [packet(10, 1, 100), packet(20, 101, 100), packet(3_000, 201, 100)];
        let acks = [packet(15, 1, 0), packet(25, 1, 0)];
        let same = compared(&[way(&data), way(&acks)], &[way(&data), way(&acks)]);
        assert_eq!((same.first, same.same_packets), (None, 5));
        let mut other = data.clone();
        other[2].seq = 1;
        other[1].at_ns = 2_000;
        other[1].flags = "P.".into();
        let mut fewer = acks.to_vec();
        fewer.pop();
        let found = compared(&[way(&data), way(&acks)], &[way(&other), way(&acks)]);
        assert_eq!(found.kind().unwrap(), "forward seq, retransmission");
        let first = found.first.unwrap();
        assert_eq!((first.forward, first.index, first.field), (true, 2, Field::Seq));
        assert!(first.retransmits);
        assert_eq!((found.same_packets, found.largest_time_ns, found.other_push), (4, 1_980, 1));
        assert_eq!(found.first_late.unwrap().index, 1);
        let late = [packet(15, 1, 0), packet(25, 1, 0), packet(2_500, 1, 0)];
        assert_eq!(compared(&[way(&data), way(&acks)], &[way(&data), way(&late)]).first, None);
        let found = compared(&[way(&data), way(&late)], &[way(&data), way(&acks)]);
        assert_eq!(found.first.unwrap().index, 2);
        let found = compared(&[way(&data), way(&acks)], &[way(&other), way(&fewer)]);
        let first = found.first.unwrap();
        assert_eq!((first.forward, first.index, first.field), (false, 1, Field::Missing));
    }

    #[test]
    fn every_field_but_push_time_and_window_counts() {
        let one = packet(1, 1, 10);
        let with = |change: fn(&mut ComparedPacket)| {
            let mut other = one.clone();
            change(&mut other);
            difference(Some(&one), Some(&other))
        };
        assert_eq!(with(|p| p.len = 9), Some(Field::Len));
        assert_eq!(with(|p| p.ack = 9), Some(Field::Ack));
        assert_eq!(with(|p| p.flags = "F.".into()), Some(Field::Flags));
        assert_eq!(with(|p| p.sack = vec![(1, 2)]), Some(Field::Sack));
        assert_eq!(with(|p| p.flags = "P.".into()), None);
        assert_eq!(with(|p| p.window = 1), None);
        assert_eq!(with(|p| p.at_ns = 9), None);
    }
}
