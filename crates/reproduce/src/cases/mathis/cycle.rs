//! The limit cycles, round trip by round trip.

use record::{Event, EventSource, Recorder, SenderState, SentKind};
use units::{Duration, Instant};

use super::headline::acks;
use super::world::{Loss, MathisVariant, PACKET};
use crate::cases::{CaseError, CaseRow, Workers};

/// The sender's events, from one second after its start.
#[derive(Debug, Default)]
struct SenderLog(Vec<(Instant, SenderStep)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SenderStep {
    /// An ACK frame acknowledged something.
    Ack,
    /// A loss was detected.
    Loss,
    /// A packet was sent.
    Sent,
    /// The state after any of them, in bytes.
    State { cwnd: u64, partial: u64 },
}

impl Recorder for SenderLog {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: EventSource, event: Event, state: Option<&SenderState>) {
        if at < Instant::ZERO + Duration::from_secs(3) {
            return;
        }
        let what = match event {
            Event::QuicPacketsAcked { .. } => Some(SenderStep::Ack),
            Event::Lost { .. } => Some(SenderStep::Loss),
            Event::Sent { kind, .. } if kind != SentKind::Ack => Some(SenderStep::Sent),
            _ => None,
        };
        self.0.extend(what.map(|what| (at, what)));
        if let Some(state) = state {
            let (cwnd, partial) = (state.cwnd.get(), state.partial_acked.get());
            self.0.push((at, SenderStep::State { cwnd, partial }));
        }
    }
}

/// A cycle, with one entry per round trip.
#[derive(Debug, Default)]
struct Cycle {
    span: Duration,
    acks: Vec<u64>,
    sent: Vec<u64>,
    cwnd: Vec<u64>,
    partial: Vec<u64>,
    largest: u64,
}

/// The first complete cycle: from one detected loss to the next.
fn first(tape: &SenderLog, rtt: Duration) -> Option<Cycle> {
    let mut losses = tape.0.iter().filter(|(_, what)| *what == SenderStep::Loss).map(|&(at, _)| at);
    let (from, to) = (losses.next()?, losses.next()?);
    let span = to.since(from);
    // A round is the time within half an RTT of a multiple of the RTT after the loss.
    let half = Duration::from_nanos(rtt.as_nanos() / 2);
    let count = (span + half).as_nanos() / rtt.as_nanos();
    let round_of = |at: Instant| (at + half).since(from).as_nanos() / rtt.as_nanos();
    let mut cycle = Cycle { span, ..Cycle::default() };
    for round in 0..count {
        let within =
            || tape.0.iter().filter(|(at, _)| *at + half >= from && round_of(*at) == round);
        let number = |wanted| within().filter(|(_, what)| *what == wanted).count() as u64;
        cycle.acks.push(number(SenderStep::Ack));
        cycle.sent.push(number(SenderStep::Sent));
        let mut states = within().filter_map(|&(_, what)| match what {
            SenderStep::State { cwnd, partial } => Some((cwnd, partial)),
            _ => None,
        });
        let (cwnd, partial) = states.next_back()?;
        cycle.cwnd.push(cwnd / PACKET);
        cycle.partial.push(partial / PACKET);
    }
    cycle.largest = cycle.cwnd.iter().copied().max()?;
    Some(cycle)
}

/// The published tables: ACKs, packets sent, window, counter of each round.
struct Published {
    every: u32,
    round_trips: f64,
    acks: &'static str,
    sent: &'static str,
    cwnd: &'static str,
    partial: &'static str,
}

const PUBLISHED: [Published; 2] = [
    Published {
        every: 1,
        round_trips: 7.0,
        acks: "9 6 5 6 7 8 9",
        sent: "6 5 6 7 8 9 10",
        cwnd: "5 5 6 7 8 9 10",
        partial: "0 0 0 0 0 0 0",
    },
    Published {
        every: 2,
        round_trips: 8.0,
        acks: "4 3 2 2 3 3 4 4",
        sent: "6 4 4 5 7 7 9 9",
        cwnd: "5 5 5 6 7 8 9 10",
        partial: "0 0 3 2 2 1 1 0",
    },
];

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let mut rows = Vec::new();
    for published in PUBLISHED {
        let variant = MathisVariant::new(published.every, Loss::Periodic(50)).round_trips(50);
        let (_, tape) = variant.run_with::<SenderLog>(workers)?;
        let cycle = first(&tape, variant.rtt);
        let words = acks(published.every);
        let of = |pick: fn(&Cycle) -> &Vec<u64>| {
            cycle.as_ref().map(|cycle| {
                let numbers: Vec<String> = pick(cycle).iter().map(ToString::to_string).collect();
                numbers.join(" ")
            })
        };
        let span = cycle.as_ref().map(|cycle| {
            let rtts = cycle.span.as_secs_f64() / variant.rtt.as_secs_f64();
            (rtts * 100.0).round() / 100.0
        });
        let name = |what: &str| format!("limit cycle, {words}: {what}");
        let largest = cycle.as_ref().map(|cycle| cycle.largest as f64);
        rows.push(CaseRow::exact(name("largest window"), "packets", 10.0, largest));
        rows.push(
            CaseRow::exact(name("length"), "RTT", published.round_trips, span)
                .note("from one detected loss to the next, to the hundredth"),
        );
        rows.push(CaseRow::text(name("ACKs a round"), published.acks, of(|cycle| &cycle.acks)));
        rows.push(CaseRow::text(
            name("packets sent a round"),
            published.sent,
            of(|cycle| &cycle.sent),
        ));
        rows.push(CaseRow::text(name("window behind it"), published.cwnd, of(|cycle| &cycle.cwnd)));
        rows.push(CaseRow::text(
            name("packets counted behind it"),
            published.partial,
            of(|cycle| &cycle.partial),
        ));
    }
    Ok(rows)
}
