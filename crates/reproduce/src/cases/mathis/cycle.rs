//! The limit cycles, round trip by round trip.

use record::{Event, Recorder, SenderState, SentKind, Who};
use units::{Duration, Instant};

use super::headline::acks;
use super::world::{Loss, PACKET, Variant};
use crate::cases::{CaseError, Row, Stop};

/// What the sender did, from a second after its start on.
#[derive(Debug, Default)]
struct Tape(Vec<(Instant, What)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// An ACK frame acknowledged something; window and counter behind it, in bytes.
    Ack,
    /// A loss was found.
    Loss,
    /// A packet left.
    Sent,
    /// The state after any of them.
    State { cwnd: u64, partial: u64 },
}

impl Recorder for Tape {
    const ON: bool = true;

    fn record(&mut self, at: Instant, _: Who, event: Event, state: Option<&SenderState>) {
        if at < Instant::ZERO + Duration::from_secs(3) {
            return;
        }
        let what = match event {
            Event::PacketsAcked { .. } => Some(What::Ack),
            Event::Lost { .. } => Some(What::Loss),
            Event::Sent { kind, .. } if kind != SentKind::Ack => Some(What::Sent),
            _ => None,
        };
        self.0.extend(what.map(|what| (at, what)));
        if let Some(state) = state {
            let (cwnd, partial) = (state.cwnd.get(), state.partial_acked.get());
            self.0.push((at, What::State { cwnd, partial }));
        }
    }
}

/// A cycle, one entry for each of its round trips.
#[derive(Debug, Default)]
struct Cycle {
    span: Duration,
    acks: Vec<u64>,
    sent: Vec<u64>,
    cwnd: Vec<u64>,
    partial: Vec<u64>,
    largest: u64,
}

/// The first whole cycle on the tape: from one loss found to the next.
fn first(tape: &Tape, rtt: Duration) -> Option<Cycle> {
    let mut losses = tape.0.iter().filter(|(_, what)| *what == What::Loss).map(|&(at, _)| at);
    let (from, to) = (losses.next()?, losses.next()?);
    let span = to.since(from);
    // A round is what happens within half a round trip of a multiple of it after the loss.
    let half = Duration::from_nanos(rtt.as_nanos() / 2);
    let count = (span + half).as_nanos() / rtt.as_nanos();
    let round_of = |at: Instant| (at + half).since(from).as_nanos() / rtt.as_nanos();
    let mut cycle = Cycle { span, ..Cycle::default() };
    for round in 0..count {
        let within =
            || tape.0.iter().filter(|(at, _)| *at + half >= from && round_of(*at) == round);
        let number = |wanted| within().filter(|(_, what)| *what == wanted).count() as u64;
        cycle.acks.push(number(What::Ack));
        cycle.sent.push(number(What::Sent));
        let mut states = within().filter_map(|&(_, what)| match what {
            What::State { cwnd, partial } => Some((cwnd, partial)),
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

pub(super) fn rows(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let mut rows = Vec::new();
    for published in PUBLISHED {
        let variant = Variant::new(published.every, Loss::Periodic(50)).round_trips(50);
        let (_, tape) = variant.run_with::<Tape>(stop)?;
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
        rows.push(Row::exact(name("largest window"), "packets", 10.0, largest));
        rows.push(
            Row::exact(name("length"), "RTT", published.round_trips, span)
                .note("from one loss found to the next, to the hundredth"),
        );
        rows.push(Row::text(name("ACKs a round"), published.acks, of(|cycle| &cycle.acks)));
        rows.push(Row::text(name("packets sent a round"), published.sent, of(|cycle| &cycle.sent)));
        rows.push(Row::text(name("window behind it"), published.cwnd, of(|cycle| &cycle.cwnd)));
        rows.push(Row::text(
            name("packets counted behind it"),
            published.partial,
            of(|cycle| &cycle.partial),
        ));
    }
    Ok(rows)
}
