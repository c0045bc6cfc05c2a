//! The time-sequence graph of a connection in the style of tcptrace, with its findings, and below
//! it the bytes in flight and the round trips.

use charts::downsample::{ThinnedRanges, ThinnedSeries, ValueRange};
use diagnose::rules::Finding;
use diagnose::{Analysis, FlowAnalysis};
use packet::{Dir, Flags};
use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
use units::{Instant, Offset, SeqNum};

use crate::run_page::{of_curve, of_spans};

/// Limit of the values in all series of a connection.
const POINTS: usize = 400_000;

/// Findings about the offered window.
const OF_WINDOW: [&str; 2] = ["CC401", "CC403"];

/// The graph data of a connection's packets.
struct GraphData {
    data: ThinnedRanges,
    retransmitted: ThinnedRanges,
    sacks: ThinnedRanges,
    doubles: ThinnedRanges,
    ack: ThinnedSeries,
    edge: ThinnedSeries,
    control: PlotSeries,
    /// Initial sequence number: offset 0.
    isn: Option<SeqNum>,
    una: u64,
    nxt: u64,
    /// Window scale; `None` if the handshake was not captured.
    shift: Option<u8>,
}

impl GraphData {
    fn new(analysis: &Analysis, dir: Dir) -> Self {
        let spans = |parts: usize| ThinnedRanges::new(POINTS * parts / 10);
        let scale =
            |end: Dir| analysis.observed_syns[end as usize].map(|syn| syn.options.window_scale);
        let shift = match (scale(dir), scale(dir.reversed())) {
            // RFC 7323 section 2.2: both ends or neither.
            (Some(Some(_)), Some(Some(theirs))) => Some(theirs.min(14)),
            (Some(_), Some(_)) => Some(0),
            _ => None,
        };
        Self {
            data: spans(4),
            retransmitted: spans(1),
            sacks: spans(2),
            doubles: spans(1),
            ack: ThinnedSeries::new(POINTS / 10),
            edge: ThinnedSeries::new(POINTS / 10),
            control: PlotSeries::new("SYN, FIN, RST", SeriesRole::Event, SeriesMark::Letters),
            isn: None,
            una: 0,
            nxt: 0,
            shift,
        }
    }

    fn stream_offset(&self, seq: SeqNum) -> u64 {
        let Some(isn) = self.isn else { return 0 };
        seq.near(isn, Offset(self.una)).map_or(0, |stream_offset| stream_offset.0)
    }

    fn draw(&mut self, packet: &diagnose::CapturedPacket, dir: Dir) {
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
            let low = self.stream_offset(segment.seq);
            let high = low + u64::from(segment.payload);
            if let Some((_, word)) = sign {
                self.control.push(x, axis(high), word);
            }
            if segment.payload == 0 {
                return;
            }
            let span =
                |low: u64, high: u64| ValueRange { x, low: axis(low), high: axis(high), word: 0 };
            if low < self.nxt {
                self.retransmitted.push(span(low, high.min(self.nxt)));
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
        let ack = self.stream_offset(segment.ack);
        // A reordered ACK is out of date.
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
            .map(|block| (self.stream_offset(block.left), self.stream_offset(block.right)))
            .collect();
        for (number, &(low, high)) in blocks.iter().enumerate() {
            let reported = ValueRange { x, low: axis(low), high: axis(high), word: 0 };
            // RFC 2883 section 4.
            let inside = blocks.get(1).is_some_and(|&(from, to)| from <= low && high <= to);
            if number == 0 && (high <= ack || inside) {
                self.doubles.push(reported);
            } else {
                self.sacks.push(reported);
            }
        }
    }
}

/// The graph of the data direction of `flow`.
pub(super) fn of(
    analysis: &Analysis,
    flow: &FlowAnalysis,
    findings: &[Finding],
    id: &str,
) -> Plots {
    let mut drawn = GraphData::new(analysis, flow.dir);
    for packet in &analysis.packets {
        drawn.draw(packet, flow.dir);
    }
    let whole = analysis.packets.len() as u64 == analysis.frames;
    // The window scales the axis, so it is drawn at once only if a finding concerns it.
    let concerns_window = findings.iter().any(|found| OF_WINDOW.contains(&found.code));
    let shown = |series: PlotSeries| if concerns_window { series } else { series.hidden() };
    let mut sequence = vec![
        shown(of_curve("receive window", SeriesRole::Window, SeriesMark::Step, drawn.edge)),
        of_curve("acknowledged", SeriesRole::Ack, SeriesMark::Step, drawn.ack),
        of_spans("SACK", SeriesRole::Sack, SeriesMark::BareBars, drawn.sacks),
        of_spans("duplicate (D-SACK)", SeriesRole::Spurious, SeriesMark::BareBars, drawn.doubles),
        of_spans("data", SeriesRole::Data, SeriesMark::Bars, drawn.data),
        of_spans(
            "retransmitted",
            SeriesRole::Retransmission,
            SeriesMark::CrossedBars,
            drawn.retransmitted,
        ),
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
    let bytes = |title: &str| PlotAxis::new(title, "B", 0).and_in("MSS", flow.mss.max(1));
    let (mut flight, mut window) =
        (ThinnedSeries::new(POINTS / 10), ThinnedSeries::new(POINTS / 10));
    let mut rtt = ThinnedSeries::new(POINTS / 10);
    for turn in &flow.turns {
        let x = time_axis(turn.at);
        flight.push(x, axis(turn.flight));
        if drawn.shift.is_some() && turn.window > 0 {
            window.push(x, axis(turn.window));
        }
        if !turn.rtt.is_zero() {
            rtt.push(x, axis(turn.rtt.as_nanos()));
        }
    }
    let mut windows = vec![
        shown(of_curve("receive window", SeriesRole::Window, SeriesMark::Step, window)),
        of_curve("in flight", SeriesRole::Flight, SeriesMark::Step, flight),
    ];
    windows.retain(|series| !series.x.is_empty());
    let rates = flow.rounds.iter().map(|round| {
        let bits = u128::from(round.delivered) * 8_000_000_000
            / u128::from(round.length().as_nanos().max(1));
        (time_axis(round.start), i64::try_from(bits).unwrap_or(i64::MAX))
    });
    let speeds = PlotSeries::new("delivered per round", SeriesRole::Rate, SeriesMark::Step)
        .with_points(rates);
    Plots {
        id: id.into(),
        title: "Time-sequence graph".into(),
        x: PlotAxis::new("time", "s", 9),
        panels: vec![
            PlotPanel { from_zero: false, ..PlotPanel::new(bytes("sequence"), sequence) }
                .height(380)
                .note(note),
            PlotPanel::new(bytes("in flight"), windows).height(200),
            PlotPanel::new(
                PlotAxis::new("round-trip time", "s", 9),
                vec![of_curve("measured", SeriesRole::Sample, SeriesMark::Dots, rtt)],
            )
            .height(160),
            PlotPanel::new(PlotAxis::new("rate", "bit/s", 0), vec![speeds]).height(160),
        ],
    }
}

/// Markers at the start of each finding.
fn pins(findings: &[Finding]) -> PlotSeries {
    let mut at: Vec<_> = findings.iter().map(|found| (found.interval.0, found)).collect();
    at.sort_by_key(|(from, _)| *from);
    let mut series = PlotSeries::new("findings", SeriesRole::Event, SeriesMark::Moments);
    for (from, found) in at {
        series.push(time_axis(from), 0, &format!("{}: {}", found.code, found.title));
    }
    series
}

/// A time as an axis coordinate.
pub(super) fn time_axis(at: Instant) -> i64 {
    axis(at.as_nanos())
}

/// A value as an axis coordinate.
fn axis(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
