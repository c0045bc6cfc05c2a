//! FreeBSD's default stack: every group of four is a loss to it.

use units::Duration;

use super::world::{Order, see};
use crate::cases::{CaseError, Row};

/// Times from the first packet of a group to its last that the rows try, in microseconds.
const GAPS_US: [u64; 7] = [0, 1_000, 3_000, 6_000, 11_250, 15_000, 22_500];

/// At least one false recovery in so many round trips, on average.
const ROUND_TRIPS: f64 = 4.0;

pub(super) fn rows() -> Result<Vec<Row>, CaseError> {
    let sorted = see(Order::LRO, &[])?;
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
    let kept = see(Order::Kept, &["duration=10s"])?.goodput();
    let mut shares = vec![
        Row::predicted("base stack, order kept: goodput of 10 s", "Mbit/s", None, Some(kept))
            .note("no figure"),
    ];
    for (name, order) in orders {
        let seen = see(order, &[])?;
        let row = Row::at_most(
            format!("base stack, {name}: round trips per false recovery"),
            "RTT",
            ROUND_TRIPS,
            seen.round_trips_each(),
        );
        rows.push(match order {
            Order::Reversed { gap, .. } if gap > SHORT => row.note(WITH_GAP),
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

/// Up to here the ACKs of a group come as one burst.
const SHORT: Duration = Duration::from_millis(1);

/// Why it misses.
const WITH_GAP: &str = "\
published: \"constantly\", \"never out for very long\"; the ACK that ends a recovery grows nothing \
(EXIT_RECOVERY comes behind cc_ack_received in tcp_do_segment), windows of 3 to 5 segments are left, \
and it takes a round trip a segment until a whole group is in flight again and gives three \
duplicates; time in recovery is told below";
