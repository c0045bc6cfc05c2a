//! FreeBSD's default stack: every group of four is a loss to it.

use units::Duration;

use super::world::{Order, see};
use crate::cases::{CaseError, Row, Stop};

/// Times from the first packet of a group to its last that the rows try, in microseconds.
const GAPS_US: [u64; 7] = [0, 1_000, 3_000, 6_000, 11_250, 15_000, 22_500];

/// At least one false recovery in so many round trips, on average.
const ROUND_TRIPS: f64 = 4.0;

pub(super) fn rows(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let sorted = see(Order::LRO, &[], stop)?;
    let mut rows = vec![
        Row::exact("base stack: ssthresh after the first burst", "MSS", 5.0, sorted.first_ssthresh)
            .note("half of IW 10"),
        Row::exact("base stack: packets lost on the way", "", 0.0, Some(sorted.lost as f64))
            .note("so every recovery is false"),
    ];
    let reversed = GAPS_US.map(|us| {
        let gap = Duration::from_micros(us);
        (format!("gap {} ms", us as f64 / 1_000.0), Order::reversed(gap))
    });
    let orders = core::iter::once(("LRO's sort".to_owned(), Order::LRO)).chain(reversed);
    let kept = see(Order::Kept, &["duration=10s"], stop)?.goodput();
    let mut shares = vec![
        Row::predicted("base stack, order kept: goodput of 10 s", "Mbit/s", None, Some(kept))
            .note("no figure"),
    ];
    for (name, order) in orders {
        let seen = see(order, &[], stop)?;
        let row = Row::at_most(
            format!("base stack, {name}: round trips per false recovery"),
            "RTT",
            ROUND_TRIPS,
            seen.round_trips_each(),
        );
        rows.push(match order {
            Order::Reversed { gap, .. } if gap > LONG => row.note(WITH_GAP),
            _ => row.note("published: \"constantly\", \"never out for very long\""),
        });
        let name = |what: &str| format!("base stack, {name}: {what}");
        let share = Some(seen.share_recovering());
        shares.push(Row::predicted(name("time in recovery"), "%", None, share).note("no figure"));
        let goodput = Some(seen.goodput());
        shares.push(Row::predicted(name("goodput"), "Mbit/s", None, goodput).note("no figure"));
    }
    rows.extend(shares);
    rows.extend(real_stack(stop)?);
    Ok(rows)
}

/// Gap in microseconds and goodput in Mbit/s of FreeBSD's complete TCP: 2 MB over 100 Mbit/s and 40 ms, groups
/// of four (reference: main of October 2024).
const REAL: [(u64, f64); 5] =
    [(0, 0.76), (1_000, 1.58), (5_000, 1.01), (15_000, 0.79), (20_000, 0.71)];

/// The base stack beside the real one. The gap is that from one packet of a group to the next here, and a group
/// ends after 500 us of silence: so the real stack's path was.
fn real_stack(stop: Stop<'_>) -> Result<Vec<Row>, CaseError> {
    let mut rows = Vec::new();
    for (us, mbits) in REAL {
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
        let seen = see(Order::Kept, &set, stop)?;
        let ms = us as f64 / 1_000.0;
        let name = format!("real base stack, {ms} ms between packets, 2 MB: goodput");
        let row =
            Row::band(name, "Mbit/s", mbits, Some(seen.goodput()), mbits * 0.95, mbits * 1.05);
        rows.push(row.note("FreeBSD's complete TCP, main of October 2024; 100 Mbit/s, 40 ms"));
    }
    Ok(rows)
}

/// Beyond this the gap counts in the round trip that the sender measures.
const LONG: Duration = Duration::from_millis(2);

/// Why it misses.
const WITH_GAP: &str = "\
published: \"constantly\", \"never out for very long\"; a miss of the kernel's own rules, which leave each \
recovery with two or few segments, so that four leave together a round trip later. A group's last packet, \
and with it the ACK that advances, comes a gap later: of the round trips that the sender measures, 45 ms \
and the gap, a false recovery takes 3.5 to 3.9; counted are those of the path, of 45 ms";
