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
    Ok(rows)
}

/// Beyond this the gap is a large part of the round trip that the sender measures.
const LONG: Duration = Duration::from_millis(20);

/// Why it misses.
const WITH_GAP: &str = "\
published: \"constantly\", \"never out for very long\"; a group's last packet, and with it the ACK that \
advances, comes a gap later, so the sender's own round trip is 67.5 ms, of which a false recovery takes \
fewer than three; counted are those of the path, of 45 ms";
