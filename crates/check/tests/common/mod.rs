//! A handmade record: a transfer of 4,000 bytes over a line of 8 Mbit/s, a microsecond per byte,
//! and 10 ms of delay each way. Its fourth segment is dropped at the full queue and retransmitted.

#![allow(dead_code, reason = "each test uses its own part")]

use ackclock_check as check;
use check::invariants::{ElementInvariants, QueueCapacity};
use check::world::{
    FlowModel, HostModel, OutputCalls, RecoveryLimit, RouteModel, TransportKind, WorldModel,
};
use check::{RecordItem, Rejection, ViolationKind};
use record::{
    Cause, ElementId, Event, EventSource, PacketEvent, PacketNumber, Purpose, SenderState,
    SentKind, TcpBits,
};
use units::{Bytes, Duration, Ecn, FlowId, HostId, Instant, Offset, Rate, SeqNum};

pub(crate) const CLIENT: HostId = HostId(0);
pub(crate) const SERVER: HostId = HostId(1);
/// The line, the delay after it, the delay of the reverse route.
pub(crate) const LINE: ElementId = ElementId(0);
pub(crate) const DELAY: ElementId = ElementId(1);
pub(crate) const BACK: ElementId = ElementId(2);

pub(crate) const fn us(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000)
}

pub(crate) fn world() -> WorldModel {
    let rate = Rate::from_bits_per_second(8_000_000).unwrap();
    let delay = ElementInvariants::delay(Duration::from_millis(10));
    WorldModel {
        hosts: vec![HostModel { mtu: Bytes(1_500), listen: None }; 2],
        hops: vec![ElementInvariants::link(rate, QueueCapacity::Packets(3)), delay, delay],
        routes: vec![
            RouteModel { from: CLIENT, to: SERVER, hops: vec![LINE, DELAY] },
            RouteModel { from: SERVER, to: CLIENT, hops: vec![BACK] },
        ],
        flows: vec![FlowModel {
            routes: [0, 1],
            ip_header: Bytes(20),
            transport: TransportKind::Tcp,
            recovery_limits: [RecoveryLimit::Pipe; 2],
            output_calls: [OutputCalls::AfterInput; 2],
            free_fins: [false; 2],
        }],
        traces: Vec::new(),
        changes: Vec::new(),
    }
}

/// A client's state: its buffer holds the unacknowledged data only.
pub(crate) fn state(una: u64, max: u64, cwnd: u64) -> SenderState {
    SenderState {
        snd_una: Offset(una),
        snd_nxt: Offset(max),
        snd_max: Offset(max),
        cwnd: Bytes(cwnd),
        ssthresh: None,
        snd_wnd: Bytes(65_535),
        mss: Bytes(1_000),
        buffered: Bytes(4_000_u64.saturating_sub(una)),
        send_buffer: Bytes(65_536),
        srtt: None,
        rto: Duration::from_secs(1),
        in_recovery: false,
        in_flight: Bytes(max - una),
        partial_acked: Bytes::ZERO,
        bbr: None,
        pipe: Bytes(max - una),
        pacing: None,
    }
}

/// Builds a record item by item.
pub(crate) struct RecordBuilder {
    pub(crate) items: Vec<RecordItem>,
    at: Instant,
}

impl RecordBuilder {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), at: Instant::ZERO }
    }

    pub(crate) fn at(&mut self, micros: u64) -> &mut Self {
        self.at = us(micros);
        self
    }

    pub(crate) fn event(&mut self, host: HostId, event: Event) -> &mut Self {
        self.report(host, event, None)
    }

    pub(crate) fn report(
        &mut self,
        host: HostId,
        event: Event,
        state: Option<SenderState>,
    ) -> &mut Self {
        let who = EventSource { host, flow: FlowId(0) };
        self.items.push(RecordItem::Event { at: self.at, who, event, state });
        self
    }

    pub(crate) fn moved(&mut self, movement: PacketEvent) -> &mut Self {
        self.items.push(RecordItem::PacketItem { at: self.at, movement });
        self
    }

    /// `kind` leaves the stack and the card as packet `number`.
    pub(crate) fn send(
        &mut self,
        (number, host): (u64, HostId),
        (at, len, kind): (u64, u32, SentKind),
        state: Option<SenderState>,
    ) -> &mut Self {
        let isn = if host == CLIENT { 100 } else { 5_000 };
        let syn = state.is_none();
        let seq = isn + at as u32 + u32::from(!syn);
        self.report(host, Event::Sent { at: Offset(at), len, kind }, state);
        self.moved(PacketEvent::Sent {
            host,
            flow: FlowId(0),
            packet: PacketNumber(number),
            seq: SeqNum(seq),
            len,
            size: len + if syn { 60 } else { 40 },
            ecn: Ecn::NotEct,
            tcp: TcpBits::default(),
        })
    }

    pub(crate) fn enter(&mut self, number: u64, hop_index: ElementId) -> &mut Self {
        self.moved(PacketEvent::Accepted { hop_index, packet: PacketNumber(number) })
    }

    pub(crate) fn leave(&mut self, number: u64, hop_index: ElementId) -> &mut Self {
        self.moved(PacketEvent::Forwarded { hop_index, packet: PacketNumber(number) })
    }

    pub(crate) fn arrive(&mut self, number: u64, host: HostId) -> &mut Self {
        self.moved(PacketEvent::Received {
            host,
            packet: PacketNumber(number),
            tcp: TcpBits::default(),
        })
    }

    /// Packet `number` leaves the line and enters the delay.
    fn pass_line(&mut self, number: u64, micros: u64) -> &mut Self {
        self.at(micros).leave(number, LINE).enter(number, DELAY)
    }

    fn reach_server(&mut self, number: u64, micros: u64) -> &mut Self {
        self.at(micros).leave(number, DELAY).arrive(number, SERVER)
    }

    fn reach_client(&mut self, number: u64, micros: u64) -> &mut Self {
        self.at(micros).leave(number, BACK).arrive(number, CLIENT)
    }
}

/// A record without violations.
pub(crate) fn good() -> Vec<RecordItem> {
    let mut story = RecordBuilder::new();
    let server = || Some(SenderState { buffered: Bytes(0), ..state(0, 0, 4_000) });
    let read = |upto| Event::AppRead { bytes: 1_000, total: Offset(upto) };
    let acked = |una, bytes| Event::Acked { una: Offset(una), bytes, nsegs: 1 };
    let bare = SentKind::Ack;

    // The handshake: 60 bytes on the line, then 10 ms, then 10 ms.
    story.at(0).send((0, CLIENT), (0, 0, SentKind::Control), None).enter(0, LINE);
    story.pass_line(0, 60);
    story.reach_server(0, 10_060);
    story.send((1, SERVER), (0, 0, SentKind::Control), None).enter(1, BACK);
    story.reach_client(1, 20_060);
    let began = Event::Window { cwnd: 4_000, ssthresh: u32::MAX, cause: Cause::Start };
    let empty = SenderState { buffered: Bytes(0), ..state(0, 0, 4_000) };
    story.event(CLIENT, Event::Connected).report(CLIENT, began, Some(empty));
    story.send((2, CLIENT), (0, 0, bare), Some(empty)).enter(2, LINE);

    // Four segments after the ACK: three wait, the fourth does not fit.
    story.event(CLIENT, Event::AppWrote { bytes: 4_000 });
    for n in 0..4 {
        let sent = (1_000 * n, 1_000, SentKind::New);
        story.send((3 + n, CLIENT), sent, Some(state(0, 1_000 * (n + 1), 4_000)));
        if n < 3 {
            story.enter(3 + n, LINE);
        }
    }
    story.moved(PacketEvent::Dropped { hop_index: LINE, packet: PacketNumber(6) });
    story.event(SERVER, Event::Dropped { element: 0, bytes: 1_040 });

    // 40 bytes, then three times 1,040; 10 ms later they arrive.
    story.pass_line(2, 20_100);
    story.pass_line(3, 21_140);
    story.pass_line(4, 22_180);
    story.pass_line(5, 23_220);
    story.reach_server(2, 30_100).event(SERVER, Event::Connected);
    story.report(SERVER, began, Some(empty));
    story.reach_server(3, 31_140).event(SERVER, read(1_000));
    story.reach_server(4, 32_180).event(SERVER, read(2_000));
    story.send((7, SERVER), (0, 0, bare), server()).enter(7, BACK);
    story.reach_server(5, 33_220).event(SERVER, read(3_000));
    story.reach_client(7, 42_180).report(
        CLIENT,
        acked(2_000, 2_000),
        Some(state(2_000, 4_000, 4_000)),
    );
    story.at(73_220).event(SERVER, Event::Timer(Purpose::DelayedAck));
    story.send((8, SERVER), (0, 0, bare), server()).enter(8, BACK);
    story.reach_client(8, 83_220).report(
        CLIENT,
        acked(3_000, 1_000),
        Some(state(3_000, 4_000, 4_000)),
    );

    // The fourth is retransmitted.
    story.at(300_000).event(CLIENT, Event::Timer(Purpose::Retransmit));
    let collapsed = Event::Window { cwnd: 1_000, ssthresh: 2_000, cause: Cause::Timeout };
    story.report(CLIENT, collapsed, Some(state(3_000, 4_000, 1_000)));
    let repeated = (3_000, 1_000, SentKind::Retransmission(Cause::Timeout));
    story.send((9, CLIENT), repeated, Some(state(3_000, 4_000, 1_000))).enter(9, LINE);
    story.pass_line(9, 301_040);
    story.reach_server(9, 311_040).event(SERVER, read(4_000));
    story.send((10, SERVER), (0, 0, bare), server()).enter(10, BACK);
    story.reach_client(10, 321_040);
    story.report(CLIENT, acked(4_000, 1_000), Some(state(4_000, 4_000, 1_000)));

    // The FIN, and its ACK.
    let closed = state(4_000, 4_001, 1_000);
    story.send((11, CLIENT), (4_000, 0, SentKind::Control), Some(closed)).enter(11, LINE);
    story.pass_line(11, 321_080);
    story.reach_server(11, 331_080);
    story.send((12, SERVER), (0, 0, bare), server()).enter(12, BACK);
    story.reach_client(12, 341_080).report(
        CLIENT,
        acked(4_001, 1),
        Some(state(4_001, 4_001, 1_000)),
    );
    story.items
}

/// All violations that the verifier finds.
pub(crate) fn all_breaches(world: &WorldModel, items: &[RecordItem]) -> Vec<ViolationKind> {
    match check::verify(world, items) {
        Ok(_) => Vec::new(),
        Err(Rejection::Record(found)) => found.iter().map(|violation| violation.what).collect(),
        Err(Rejection::World(error)) => panic!("{error:?}"),
    }
}

/// The first violation that the verifier finds.
pub(crate) fn first_breach(world: &WorldModel, items: &[RecordItem]) -> Option<ViolationKind> {
    all_breaches(world, items).first().copied()
}

/// Index of the first item that matches.
pub(crate) fn place(items: &[RecordItem], fits: impl Fn(&RecordItem) -> bool) -> usize {
    items.iter().position(fits).expect("the item to change")
}

/// Index of a packet event.
pub(crate) fn step(items: &[RecordItem], movement: PacketEvent) -> usize {
    place(
        items,
        |item| matches!(item, RecordItem::PacketItem { movement: m, .. } if *m == movement),
    )
}

/// Index of an event of a host.
pub(crate) fn reported(items: &[RecordItem], at: HostId, fits: impl Fn(&Event) -> bool) -> usize {
    place(
        items,
        |item| matches!(item, RecordItem::Event { who, event, .. } if who.host == at && fits(event)),
    )
}

pub(crate) fn set_time(item: &mut RecordItem, to: Instant) {
    match item {
        RecordItem::Event { at, .. } | RecordItem::PacketItem { at, .. } => *at = to,
    }
}

/// Changes the record and returns the first violation.
pub(crate) fn after(change: impl FnOnce(&mut Vec<RecordItem>)) -> Option<ViolationKind> {
    let mut items = good();
    change(&mut items);
    first_breach(&world(), &items)
}

/// Changes the first matching event of a host, or its state.
pub(crate) fn alter(
    items: &mut [RecordItem],
    host: HostId,
    fits: impl Fn(&Event) -> bool,
    change: impl FnOnce(&mut Event, &mut Option<SenderState>),
) {
    let place = reported(items, host, fits);
    let RecordItem::Event { event, state, .. } = &mut items[place] else { unreachable!() };
    change(event, state);
}

pub(crate) fn sent(at: u64, kind: SentKind) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Sent { at: a, kind: k, .. } if a.0 == at && *k == kind)
}

pub(crate) fn read_upto(upto: u64) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::AppRead { total: u, .. } if u.0 == upto)
}

pub(crate) fn acked_upto(upto: u64) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Acked { una, .. } if una.0 == upto)
}
