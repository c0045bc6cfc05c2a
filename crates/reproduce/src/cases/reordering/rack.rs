//! FreeBSD's RACK stack: without any undo, with the two reverts of 14.3, and with that of D53832.

use recovery::rack_freebsd::{RackFreeBsd, ThreshParams};
use units::{Duration, Instant, Offset};

use super::world::{Order, RTT, Seen, see};
use crate::cases::{CaseError, Row, Stop};

/// The stack that runs at the sender, with its switches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack {
    pub(crate) name: &'static str,
    pub(super) set: &'static [&'static str],
}

/// The older reverts switched off or on, and D53832.
macro_rules! rack {
    ($name:literal, $profile:literal, $unsent:literal, $duplicates:literal) => {
        Stack {
            name: $name,
            set: &[
                concat!("host.sender.profile=", $profile),
                concat!("host.sender.knobs.\"rack.revert_unsent\"=", $unsent),
                concat!("host.sender.knobs.\"rack.revert_duplicates\"=", $duplicates),
            ],
        }
    };
}

/// The base stack of the other rows.
pub(super) const BASE: Stack = Stack { name: "base stack", set: &[] };
/// No undo of any kind.
pub(super) const NONE: Stack = rack!("RACK, no undo", "freebsd-rack-14.3", "false", "false");
/// As released in 14.3.
pub(super) const OLDER: Stack =
    rack!("RACK 14.3, both older reverts", "freebsd-rack-14.3", "true", "true");
/// With D53832.
pub(super) const MAIN: Stack = rack!("RACK main, all three", "freebsd-rack-main", "true", "true");

/// One rule at a time, and all.
const RULES: [Stack; 6] = [
    NONE,
    rack!("RACK, revert if nothing new was sent", "freebsd-rack-14.3", "true", "false"),
    rack!("RACK, revert after D-SACKs", "freebsd-rack-14.3", "false", "true"),
    OLDER,
    rack!("RACK, D53832 alone", "freebsd-rack-main", "false", "false"),
    MAIN,
];

/// Gap in the middle of the interval, in microseconds.
const GAP_US: u64 = 15_000;
/// Gaps within the interval of the default threshold, and at its edges, in microseconds.
const GAPS_US: [u64; 4] = [11_500, 15_000, 18_000, 22_000];

pub(super) fn gap(us: u64) -> Order {
    Order::reversed(Duration::from_micros(us))
}

/// What it does with one transfer of that size.
pub(super) fn transfer(
    order: Order,
    stack: Stack,
    size: &str,
    stop: Stop<'_>,
) -> Result<Seen, CaseError> {
    let size = format!("flow.0.requests.response={size}");
    let set: Vec<&str> = stack.set.iter().copied().chain([size.as_str()]).collect();
    see(order, &set, stop)
}

pub(super) fn rows(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let mut rows = without_undo(stop)?;
    rows.extend(rules(stop)?);
    rows.extend(thresholds());
    rows.extend(against_order(stop)?);
    rows.extend(real_stack(stop)?);
    rows.extend(receiver(stop)?);
    Ok(rows)
}

/// Congestion avoidance for the rest, at twenty seconds.
fn without_undo(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let span = Duration::from_secs(20);
    let open = |stack: Stack| {
        let set: Vec<&str> = stack.set.iter().copied().chain(["duration=20s"]).collect();
        see(gap(GAP_US), &set, stop)
    };
    let (rack, base) = (open(NONE)?, open(BASE)?);
    let name = |what: &str| format!("RACK, no undo, gap 15 ms, 20 s: {what}");
    let most = 5.0 + span.as_secs_f64() / RTT.as_secs_f64();
    Ok(vec![
        Row::exact(name("packets lost on the way"), "", 0.0, Some(rack.lost as f64)),
        Row::at_least(name("false recoveries"), "", 1.0, Some(rack.recoveries as f64))
            .note("RACK's window is a quarter of the round trip, 11.25 ms: the first flight fools it, and once more what that recovery spreads"),
        Row::exact(name("ssthresh as slow start ends"), "MSS", 5.0, rack.first_ssthresh)
            .note("half of IW 10 after the first flight"),
        Row::predicted(name("ssthresh at the end"), "MSS", None, rack.ssthresh_segments)
            .note("fooled once more by the kernel's own rules on this path: what the recovery sends leaves over 8 ms, its group ends 45 + 8 + 15 = 68 ms after its first packet left, and after one round with D-SACKs RACK waits 1.5 x 45 = 67.5 ms; six segments are halved again. With groups that end after 500 us of silence whatever the gap, it is fooled once, and five stay"),
        Row::at_most(name("window at the end"), "MSS", most, Some(rack.cwnd))
            .note("congestion avoidance for the rest: from 5, at most one segment a round trip; of an ACK of four segments rack_ack_received counts two"),
        Row::at_least(
            "RACK without undo / base stack, gap 15 ms: goodput of 20 s",
            "x",
            1.0,
            Some(rack.goodput() / base.goodput()),
        )
        .note("published: \"three times\", of transfers too short to derive it from"),
    ])
}

/// Which rule undoes what, over 10 MB.
fn rules(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let mut rows = Vec::new();
    for stack in RULES {
        let seen = transfer(gap(GAP_US), stack, "10MB", stop)?;
        let name = |what: &str| format!("{}, gap 15 ms, 10 MB: {what}", stack.name);
        let end = seen.ssthresh_segments.map_or("none".to_owned(), |mss| format!("{mss:.0} MSS"));
        let counts = format!(
            "{} and {} undone, ssthresh {end}",
            match seen.recoveries {
                1 => "1 recovery".to_owned(),
                many => format!("{many} recoveries"),
            },
            seen.undone
        );
        rows.push(Row::predicted_text(name("end"), Some(counts)));
        rows.push(Row::predicted(name("goodput"), "Mbit/s", None, Some(seen.goodput())));
    }
    Ok(rows)
}

/// RACK's window by the rounds in which duplicates were reported.
fn thresholds() -> Vec<Row> {
    let times = |rounds: u32| {
        let mut rack = RackFreeBsd::new(ThreshParams::DEFAULT);
        let now = Instant::ZERO + RTT;
        rack.on_reordering(now);
        for _ in 0..rounds {
            rack.on_duplicate(Offset(1));
            rack.on_ack(Offset(1));
        }
        rack.thresh(RTT, now).as_secs_f64() / RTT.as_secs_f64()
    };
    let name = |what: &str| format!("RACK's threshold {what} / last round trip");
    vec![
        Row::exact(name("before any D-SACK"), "x", 1.25, Some(times(0))),
        Row::predicted(name("after a round with D-SACKs"), "x", None, Some(times(1))),
        Row::exact(name("after 3 rounds with D-SACKs"), "x", 2.0, Some(times(3)))
            .note("published: \"up to two times the last RTT seen\""),
        Row::exact(name("after 100 rounds with D-SACKs"), "x", 2.0, Some(times(100)))
            .note("published: \"up to two times the last RTT seen\""),
    ]
}

/// With the undo, against the same path in order.
fn against_order(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let mut rows = Vec::new();
    for size in ["10MB", "100MB"] {
        let kept = transfer(Order::Kept, MAIN, size, stop)?.goodput();
        let never = transfer(gap(0), MAIN, size, stop)?.goodput();
        rows.push(Row::predicted(
            format!("RACK main, order kept, {size}: goodput"),
            "Mbit/s",
            None,
            Some(kept),
        ));
        rows.push(
            Row::predicted(
                format!("RACK main, gap 0 ms, {size}: goodput / order kept"),
                "%",
                None,
                Some(100.0 * never / kept),
            )
            .note(CLOCK),
        );
        for us in GAPS_US {
            let seen = transfer(gap(us), MAIN, size, stop)?;
            let ms = us as f64 / 1_000.0;
            let share = 100.0 * seen.goodput() / kept;
            let name = format!("RACK main, gap {ms} ms, {size}: goodput / order kept");
            let row = match us {
                // The middle of the interval.
                GAP_US => Row::info(name, "%", 95.0, Some(share)),
                _ => Row::predicted(name, "%", None, Some(share)),
            };
            rows.push(row.note(CLOCK));
            // A sender that never takes the flow for reordered: its window is as wide as it can be.
            let patient = transfer(gap(us), PATIENT, size, stop)?;
            rows.push(Row::at_least(
                format!(
                    "RACK main, gap {ms} ms, {size}: goodput / RACK that is never fooled there"
                ),
                "%",
                95.0,
                Some(100.0 * seen.goodput() / patient.goodput()),
            ));
        }
    }
    Ok(rows)
}

/// A threshold no gap reaches: the measure of what the undo itself costs.
const PATIENT: Stack = Stack {
    name: "RACK that waits",
    set: &[
        "host.sender.profile=freebsd-rack-main",
        "host.sender.knobs.\"net.inet.tcp.rack.misc.rack_dsack_ctl\"=0",
        "host.sender.knobs.\"net.inet.tcp.rack.tlp.pktdelay\"=\"45ms\"",
    ],
};

/// Gap in microseconds and goodput in Mbit/s, 10 MB, of the real rack.c
/// (golden/freebsd-rack-closed/seed-002-2022-07-as-14x.txt).
const REAL: [(u64, f64); 7] = [
    (0, 112.9),
    (1_000, 119.7),
    (3_000, 113.8),
    (6_000, 107.5),
    (11_250, 9.99),
    (15_000, 9.42),
    (22_500, 8.10),
];
/// Where it is fooled: gap, false recoveries, those undone if known, ssthresh at the end in segments.
const REAL_FOOLED: [(u64, f64, Option<f64>, f64); 3] =
    [(11_250, 1.0, Some(0.0), 7.0), (15_000, 2.0, Some(1.0), 5.0), (22_500, 4.0, None, 4.0)];

/// RACK 14.3 beside the real one.
fn real_stack(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let mut rows = Vec::new();
    for (us, mbits) in REAL {
        // The recorded transfers are uploads.
        let upload =
            "flow=[{ name = \"upload\", from = \"sender\", to = \"sink\", bulk = \"10MB\" }]";
        let set: Vec<&str> = OLDER.set.iter().copied().chain([upload]).collect();
        let seen = see(gap(us), &set, stop)?;
        let name =
            |what: &str| format!("real rack.c, gap {} ms, 10 MB: {what}", us as f64 / 1_000.0);
        rows.push(
            Row::band(
                name("goodput"),
                "Mbit/s",
                mbits,
                Some(seen.goodput_of_data()),
                mbits * 0.98,
                mbits * 1.02,
            )
            .note(REAL_RACK),
        );
        let fooled = REAL_FOOLED.into_iter().find(|(fooled, ..)| *fooled == us);
        let (_, recoveries, undone, ssthresh) = fooled.unwrap_or_default();
        let count = |what: &str, real: f64, ours: f64| {
            Row::exact(name(what), "", real, Some(ours)).note(REAL_RACK)
        };
        rows.push(count("false recoveries", recoveries, seen.recoveries as f64));
        if fooled.is_some() {
            rows.extend(undone.map(|real| count("recoveries undone", real, seen.undone as f64)));
            rows.push(
                Row::exact(name("ssthresh at the end"), "MSS", ssthresh, seen.ssthresh_segments)
                    .note(REAL_RACK),
            );
        }
    }
    Ok(rows)
}

const REAL_RACK: &str = "the complete stack with rack.c of July 2022, changed in the two places in which 14.x \
    differs in effect (golden/freebsd-rack-closed), an upload from its first data to its last read; at 0 ms, where \
    the packets of a group arrive at one instant, ours takes a round trip less, and no recording shows where";

/// What FreeBSD's own receiver does to such a path.
fn receiver(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let set: Vec<&str> = MAIN
        .set
        .iter()
        .copied()
        .chain(["host.sink.knobs.\"net.inet.tcp.reass.maxqueuelen\"=100", "duration=5s"])
        .collect();
    let seen = see(gap(GAP_US), &set, stop)?;
    Ok(vec![
        Row::predicted(
            "RACK main, gap 15 ms, net.inet.tcp.reass.maxqueuelen as released: goodput of 5 s",
            "Mbit/s",
            None,
            Some(seen.goodput()),
        )
        .note(
            "a FreeBSD sink holds 100 ranges out of order and drops what needs another: at 1 Gbit/s \
             312 groups are open behind such a gap. The other rows declare 10,000",
        ),
    ])
}

/// Why a reversed path is slower than one in order though nothing is taken for lost.
const CLOCK: &str = "\
the kernel's own rules give that where nothing is ever taken for lost, too: a group of four gives one \
ACK that advances, worth two segments (L = 2), so a round of 45 ms and the gap makes the window half \
as large again, where one in order, of 45 ms, doubles it at most. At 15 ms 6,906 segments from IW 10 take \
14.4 rounds of 60 ms, with the opening 0.96 s: 84 Mbit/s. The row beside this one sets the undo against \
a RACK that is never fooled there";
