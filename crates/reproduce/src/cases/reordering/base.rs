//! FreeBSD's default stack, which takes every group of four for a loss.

use units::Duration;

use super::world::{Order, RTT, run_order, run_text};
use crate::cases::{CaseError, CaseRow, Workers, by, groups};

/// Times from the first packet of a group to its last, in microseconds.
const GAPS_US: [u64; 7] = [0, 1_000, 3_000, 6_000, 11_250, 15_000, 22_500];

/// Maximum average number of round trips per spurious recovery where the gap is short.
const ROUND_TRIPS: f64 = 4.0;

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let sorted = run_order(Order::LRO, &[], workers)?;
    let mut rows = vec![
        CaseRow::exact(
            "base stack: ssthresh after the first burst",
            "MSS",
            5.0,
            sorted.first_ssthresh,
        )
        .note("half of IW 10"),
        CaseRow::exact("base stack: packets lost on the way", "", 0.0, Some(sorted.lost as f64))
            .note("so every recovery is spurious"),
    ];
    let reversed = GAPS_US.map(|us| {
        let gap = Duration::from_micros(us);
        (format!("gap {} ms", us as f64 / 1_000.0), Order::reversed(gap))
    });
    let orders = core::iter::once(("LRO's sort".to_owned(), Order::LRO)).chain(reversed);
    let kept = run_order(Order::Kept, &["duration=10s"], workers)?.goodput();
    let mut shares = vec![
        CaseRow::predicted("base stack, order kept: goodput of 10 s", "Mbit/s", None, Some(kept))
            .note("no figure"),
    ];
    let orders: Vec<(String, Order)> = orders.collect();
    let runs = workers.map(&orders, |(_, order)| run_order(*order, &[], workers))?;
    for ((name, order), seen) in orders.into_iter().zip(runs) {
        let each = seen.round_trips_each(seen.duration, RTT);
        let row = format!("base stack, {name}: round trips per false recovery");
        rows.push(match order {
            Order::Reversed { gap, .. } if gap > LONG => {
                CaseRow::predicted(row, "RTT", None, each).note(WITH_GAP)
            }
            _ => CaseRow::at_most(row, "RTT", ROUND_TRIPS, each)
                .note("published: \"constantly\", \"never out for very long\""),
        });
        let name = |what: &str| format!("base stack, {name}: {what}");
        let share = Some(seen.share_recovering());
        shares
            .push(CaseRow::predicted(name("time in recovery"), "%", None, share).note("no figure"));
        let goodput = Some(seen.goodput());
        shares.push(CaseRow::predicted(name("goodput"), "Mbit/s", None, goodput).note("no figure"));
    }
    rows.extend(shares);
    rows.extend(groups(
        &[|workers| Ok(by("freebsd-main", recorded(workers)?)), real_stack],
        workers,
    )?);
    Ok(rows)
}

/// Gap in microseconds and goodput in Mbit/s of FreeBSD's complete TCP: 2 MB over 100 Mbit/s and 40
/// ms, groups of four (reference: main of October 2024).
const REAL: [(u64, f64); 5] =
    [(0, 0.76), (1_000, 1.58), (5_000, 1.01), (15_000, 0.79), (20_000, 0.71)];

/// The base stack compared with the real one. Here the gap is that between two packets of a group,
/// and a group ends after 500 us without a packet, as on the path of the real stack.
fn real_stack(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    workers.map(&REAL, |&(us, mbits)| {
        let path = format!(
            "path.0.forward=[{{ link = {{ rate = \"100Mbit/s\", buffer = \"8MB\" }} }}, \
             {{ delay = \"20ms\" }}, {{ reorder = {{ reverse = 4, gap = \"{us}us\", \
             timeout = \"500us\" }}, only = \"data\" }}]"
        );
        let set = [
            "host.sender.profile=freebsd-main",
            "host.sink.profile=freebsd-main",
            path.as_str(),
            "path.0.return.1.delay=20ms",
            "flow=[{ name = \"upload\", from = \"sender\", to = \"sink\", bulk = \"2MB\" }]",
        ];
        let seen = run_order(Order::Kept, &set, workers)?;
        let ms = us as f64 / 1_000.0;
        let name = format!("real base stack, {ms} ms between packets, 2 MB: goodput");
        let row =
            CaseRow::band(name, "Mbit/s", mbits, Some(seen.goodput()), mbits * 0.95, mbits * 1.05);
        let note = "FreeBSD's complete TCP, main of October 2024; 100 Mbit/s, 40 ms";
        Ok(row.note(note).by("freebsd-main").recorded())
    })
}

/// The scenario of a recorded transfer of the complete stack in which the gap of a group, 6 ms, is long
/// beside the path's round trip of 8.802 ms (golden/freebsd-closed, freebsd-main, random-55).
const RECORDED: &str = r#"
title = "groups of four over a short path"
duration = "20s"
[host.sender]
profile = "freebsd-main"
cc = "newreno"
tso = true
knobs = { "kern.hz" = 100 }
[host.sink]
profile = "freebsd-main"
cc = "newreno"
tso = true
knobs = { "kern.hz" = 100 }
[[path]]
from = "sender"
to = "sink"
forward = [
    { link = { rate = "5Mbit/s", buffer = "30kB" } },
    { reorder = { reverse = 4, gap = "2ms", timeout = "5ms" }, only = "data" },
    { delay = "5ms" },
]
return = [{ link = { rate = "5Mbit/s", buffer = "1MB" } }, { delay = "3802us" }]
[[flow]]
name = "upload"
from = "sender"
to = "sink"
bulk = "241364B"
"#;
/// Round trip of its path.
const RECORDED_RTT: Duration = Duration::from_micros(8_802);
/// Spurious recoveries of the kernel in it, and their distance: 1.4234724 s in round trips, by 20.
const RECORDED_RECOVERIES: f64 = 20.0;
const RECORDED_ROUND_TRIPS: f64 = 8.086;

/// The transfer that shows that a long gap makes spurious recoveries rarer in the real stack too.
fn recorded(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let seen = run_text(RECORDED, "recorded.toml", &[], workers)?;
    let name = |what: &str| format!("real base stack, gap 6 ms, path of 8.8 ms: {what}");
    let each = seen.round_trips_each(seen.duration_of_data(), RECORDED_RTT);
    let [low, high] = [0.99, 1.01].map(|factor| factor * RECORDED_ROUND_TRIPS);
    let figures = [
        CaseRow::exact(name("packets lost on the way"), "", 0.0, Some(seen.lost as f64)),
        CaseRow::exact(
            name("false recoveries"),
            "",
            RECORDED_RECOVERIES,
            Some(seen.recoveries as f64),
        ),
        CaseRow::band(
            name("round trips per false recovery"),
            "RTT",
            RECORDED_ROUND_TRIPS,
            each,
            low,
            high,
        ),
    ];
    Ok(figures
        .map(|row| {
            row.note(
                "FreeBSD's complete TCP, main of October 2024 (golden/freebsd-closed, random-55)",
            )
            .recorded()
        })
        .into())
}

/// A longer gap counts in the RTT that the sender measures.
const LONG: Duration = Duration::from_millis(2);

/// Why no maximum is asserted where the gap is long.
const WITH_GAP: &str = "\
published: \"constantly\", \"never out for very long\"; 4 round trips is this project's reading of it, and false of \
the kernel where the gap is long beside the round trip: the recorded transfer of the complete stack below has a \
spurious recovery in 8.1 round trips of its path. Each recovery ends with a window of about two segments, so that four \
are sent together one round trip later. The last packet of a group, and with it the ACK that advances, comes one gap \
later: in round trips as the sender measures them, 45 ms plus the gap, there are 3.5 to 3.9 per spurious recovery; \
the row counts round trips of the path, of 45 ms";
