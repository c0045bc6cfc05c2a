//! The time-sequence graph of a connection in the tradition of tcptrace, with its findings, and
//! below it what was under way and the round trips.

use charts::thin::{Curve, Span, Spans};
use diagnose::rules::Finding;
use diagnose::{Analysis, Flow};
use packet::{Dir, Flags};
use report::plots::{Axis, Mark, Panel, Plots, Role, Series};
use units::{Offset, SeqNum};

use crate::run_page::{of_curve, of_spans};

/// Values that the series of a connection may hold together.
const POINTS: usize = 400_000;

/// What the packets of a connection draw.
struct Drawn {
    data: Spans,
    again: Spans,
    sacks: Spans,
    doubles: Spans,
    ack: Curve,
    edge: Curve,
    control: Series,
    /// Place 0: the first byte.
    isn: Option<SeqNum>,
    una: u64,
    nxt: u64,
    /// Shift of the windows offered; `None` if the opening was not seen.
    shift: Option<u8>,
}

impl Drawn {
    fn new(analysis: &Analysis, dir: Dir) -> Self {
        let spans = |parts: usize| Spans::new(POINTS * parts / 10);
        let scale = |end: Dir| analysis.openings[end as usize].map(|syn| syn.options.window_scale);
        let shift = match (scale(dir), scale(dir.back())) {
            // RFC 7323 section 2.2: both or none.
            (Some(Some(_)), Some(Some(theirs))) => Some(theirs.min(14)),
            (Some(_), Some(_)) => Some(0),
            _ => None,
        };
        Self {
            data: spans(4),
            again: spans(1),
            sacks: spans(2),
            doubles: spans(1),
            ack: Curve::new(POINTS / 10),
            edge: Curve::new(POINTS / 10),
            control: Series::new("SYN, FIN, RST", Role::Event, Mark::Letters),
            isn: None,
            una: 0,
            nxt: 0,
            shift,
        }
    }

    fn place(&self, seq: SeqNum) -> u64 {
        let Some(isn) = self.isn else { return 0 };
        seq.near(isn, Offset(self.una)).map_or(0, |place| place.0)
    }

    fn draw(&mut self, packet: &diagnose::Packet, dir: Dir) {
        let segment = &packet.segment;
        let x = axis(packet.at.as_nanos());
        let known = [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::RST, "RST")];
        let sign = known.into_iter().find(|(flag, _)| segment.flags.has(*flag));
        if segment.dir == dir {
            if segment.flags.has(Flags::SYN) {
                self.isn = Some(SeqNum(segment.seq.0.wrapping_add(1)));
                return self.control.push(x, 0, "SYN");
            }
            self.isn.get_or_insert(segment.seq);
            let low = self.place(segment.seq);
            let high = low + u64::from(segment.payload);
            if let Some((_, word)) = sign {
                self.control.push(x, axis(high), word);
            }
            if segment.payload == 0 {
                return;
            }
            let span = |low: u64, high: u64| Span { x, low: axis(low), high: axis(high), word: 0 };
            if low < self.nxt {
                self.again.push(span(low, high.min(self.nxt)));
            }
            if high > self.nxt {
                self.data.push(span(low.max(self.nxt), high));
                self.nxt = high;
            }
            return;
        }
        if let Some((_, word)) = sign {
            let word = format!("{word} of the peer");
            self.control.push(x, axis(self.una), &word);
        }
        if !segment.flags.has(Flags::ACK) || self.isn.is_none() {
            return;
        }
        let ack = self.place(segment.ack);
        // What an ACK that came late says is out of date.
        if ack >= self.una {
            self.una = ack;
            self.ack.push(x, axis(ack));
            if let Some(shift) = self.shift.filter(|_| !segment.flags.has(Flags::SYN)) {
                self.edge.push(x, axis(ack + (u64::from(segment.window) << shift)));
            }
        }
        let blocks: Vec<_> = segment
            .sack_blocks()
            .iter()
            .map(|block| (self.place(block.left), self.place(block.right)))
            .collect();
        for (number, &(low, high)) in blocks.iter().enumerate() {
            let told = Span { x, low: axis(low), high: axis(high), word: 0 };
            // RFC 2883 section 4.
            let inside = blocks.get(1).is_some_and(|&(from, to)| from <= low && high <= to);
            if number == 0 && (high <= ack || inside) {
                self.doubles.push(told);
            } else {
                self.sacks.push(told);
            }
        }
    }
}

/// The graph of the data of `flow`.
pub(super) fn of(analysis: &Analysis, flow: &Flow, findings: &[Finding], id: &str) -> Plots {
    let mut drawn = Drawn::new(analysis, flow.dir);
    for packet in &analysis.packets {
        drawn.draw(packet, flow.dir);
    }
    let whole = analysis.packets.len() as u64 == analysis.frames;
    let mut sequence = vec![
        of_curve("window offered", Role::Window, Mark::Step, drawn.edge).hidden(),
        of_curve("acknowledged", Role::Ack, Mark::Step, drawn.ack),
        of_spans("SACK", Role::Sack, Mark::BareBars, drawn.sacks),
        of_spans("reported as double", Role::Spurious, Mark::BareBars, drawn.doubles),
        of_spans("data", Role::Data, Mark::Bars, drawn.data),
        of_spans("sent again", Role::Again, Mark::CrossedBars, drawn.again),
        drawn.control,
        pins(findings),
    ];
    sequence.retain(|series| !series.x.is_empty());
    let mut note = "Bars are bytes that passed the capture point, the steps below them what the \
                    receiver had acknowledged. Findings stand where they begin."
        .to_owned();
    if !whole {
        let kept = analysis.packets.len();
        note += &format!(" The first {kept} of {} packets are drawn.", analysis.frames);
    }
    let bytes = |title: &str| Axis::new(title, "B", 0).and_in("MSS", flow.mss.max(1));
    let (mut flight, mut window) = (Curve::new(POINTS / 10), Curve::new(POINTS / 10));
    let mut rtt = Curve::new(POINTS / 10);
    for turn in &flow.turns {
        let x = axis(turn.at);
        flight.push(x, axis(turn.flight));
        if drawn.shift.is_some() && turn.window > 0 {
            window.push(x, axis(turn.window));
        }
        if turn.rtt > 0 {
            rtt.push(x, axis(turn.rtt));
        }
    }
    let mut windows = vec![
        of_curve("window offered", Role::Window, Mark::Step, window).hidden(),
        of_curve("in flight", Role::Flight, Mark::Step, flight),
    ];
    windows.retain(|series| !series.x.is_empty());
    let rates = flow.rounds.iter().map(|round| {
        let bits = u128::from(round.delivered) * 8_000_000_000 / u128::from(round.length().max(1));
        (axis(round.start), i64::try_from(bits).unwrap_or(i64::MAX))
    });
    let speeds = Series::new("delivered in the round", Role::Rate, Mark::Step).with_points(rates);
    Plots {
        id: id.into(),
        title: "Time-sequence graph".into(),
        x: Axis::new("time", "s", 9),
        panels: vec![
            Panel { from_zero: false, ..Panel::new(bytes("sequence"), sequence) }
                .height(380)
                .note(note),
            Panel::new(bytes("under way"), windows).height(200),
            Panel::new(
                Axis::new("round-trip time", "s", 9),
                vec![of_curve("measured", Role::Sample, Mark::Dots, rtt)],
            )
            .height(160),
            Panel::new(Axis::new("rate", "bit/s", 0), vec![speeds]).height(160),
        ],
    }
}

/// Where findings begin.
fn pins(findings: &[Finding]) -> Series {
    let mut at: Vec<_> = findings.iter().map(|found| (found.interval.0, found)).collect();
    at.sort_by_key(|(from, _)| *from);
    let mut series = Series::new("findings", Role::Event, Mark::Moments);
    for (from, found) in at {
        series.push(axis(from), 0, &format!("{}: {}", found.code, found.title));
    }
    series
}

/// A figure as a place on an axis.
fn axis(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
