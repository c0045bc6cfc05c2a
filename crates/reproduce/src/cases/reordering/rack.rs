//! FreeBSD's RACK stack: without any undo, with the two reverts of 14.3, and with that of D53832.

use recovery::rack_freebsd::{RackFreeBsd, ThreshParams};
use units::{Duration, Instant, Offset};

use super::world::{Order, RTT, ReorderingRun, run_order};
use crate::cases::{CaseError, CaseRow, Workers, by, groups};

/// The stack of the sender, with its settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackVariant {
    pub(crate) name: &'static str,
    pub(super) set: &'static [&'static str],
}

impl StackVariant {
    /// The profile of the sender.
    pub(super) fn profile(&self) -> &'static str {
        let named = self.set.iter().find_map(|set| set.strip_prefix("host.sender.profile="));
        named.unwrap_or("freebsd-14.3")
    }
}

/// A RACK stack with the older reverts switched off or on.
macro_rules! rack {
    ($name:literal, $profile:literal, $unsent:literal, $duplicates:literal) => {
        StackVariant {
            name: $name,
            set: &[
                concat!("host.sender.profile=", $profile),
                concat!("host.sender.knobs.\"rack.revert_unsent\"=", $unsent),
                concat!("host.sender.knobs.\"rack.revert_duplicates\"=", $duplicates),
            ],
        }
    };
}

/// The base stack.
pub(super) const BASE: StackVariant = StackVariant { name: "base stack", set: &[] };
/// RACK without any undo.
pub(super) const NONE: StackVariant = rack!("RACK, no undo", "freebsd-rack-14.3", "false", "false");
/// RACK as released in 14.3.
pub(super) const OLDER: StackVariant =
    rack!("RACK 14.3, both older reverts", "freebsd-rack-14.3", "true", "true");
/// RACK with D53832.
pub(super) const MAIN: StackVariant =
    rack!("RACK main, all three", "freebsd-rack-main", "true", "true");

/// Each rule alone, and all of them.
const RULES: [StackVariant; 6] = [
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

/// Runs one transfer of `size`.
pub(super) fn transfer(
    order: Order,
    stack: StackVariant,
    size: &str,
    workers: &Workers<'_>,
) -> Result<ReorderingRun, CaseError> {
    let size = format!("flow.0.requests.response={size}");
    let set: Vec<&str> = stack.set.iter().copied().chain([size.as_str()]).collect();
    run_order(order, &set, workers)
}

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    groups(
        &[
            |workers| Ok(by(NONE.profile(), without_undo(workers)?)),
            rules,
            |_| Ok(thresholds()),
            |workers| Ok(by(MAIN.profile(), against_order(workers)?)),
            |workers| Ok(by(OLDER.profile(), real_stack(workers)?)),
            |workers| Ok(by(MAIN.profile(), receiver(workers)?)),
        ],
        workers,
    )
}

/// Congestion avoidance for the rest of the transfer, over twenty seconds.
fn without_undo(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let span = Duration::from_secs(20);
    let open = |stack: StackVariant| {
        let set: Vec<&str> = stack.set.iter().copied().chain(["duration=20s"]).collect();
        run_order(gap(GAP_US), &set, workers)
    };
    let (rack, base) = (open(NONE)?, open(BASE)?);
    let name = |what: &str| format!("RACK, no undo, gap 15 ms, 20 s: {what}");
    let most = 5.0 + span.as_secs_f64() / RTT.as_secs_f64();
    Ok(vec![
        CaseRow::exact(name("packets lost on the way"), "", 0.0, Some(rack.lost as f64)),
        CaseRow::at_least(name("false recoveries"), "", 1.0, Some(rack.recoveries as f64))
            .note("RACK's window is a quarter of the RTT, 11.25 ms: the first flight causes a spurious recovery, and the packets that it spreads cause another"),
        CaseRow::exact(name("ssthresh as slow start ends"), "MSS", 5.0, rack.first_ssthresh)
            .note("half of IW 10 after the first flight"),
        CaseRow::predicted(name("ssthresh at the end"), "MSS", None, rack.ssthresh_segments)
            .note("a second spurious recovery by the kernel's own rules on this path: the recovery sends its packets over 8 ms, their group ends 45 + 8 + 15 = 68 ms after its first packet was sent, and after one round with D-SACKs RACK waits 1.5 x 45 = 67.5 ms; six segments are halved. With groups that end after 500 us without a packet, independent of the gap, there is one spurious recovery, and ssthresh stays at five"),
        CaseRow::at_most(name("window at the end"), "MSS", most, Some(rack.cwnd))
            .note("congestion avoidance for the rest: from 5, at most one segment per round trip; rack_ack_received counts two segments of an ACK of four"),
        CaseRow::at_least(
            "RACK without undo / base stack, gap 15 ms: goodput of 20 s",
            "x",
            1.0,
            Some(rack.goodput() / base.goodput()),
        )
        .note("published: \"three times\", of transfers too short to derive it from"),
    ])
}

/// Which rule undoes which recoveries, over 10 MB.
fn rules(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let runs = workers.map(&RULES, |stack| transfer(gap(GAP_US), *stack, "10MB", workers))?;
    let mut rows = Vec::new();
    for (stack, seen) in RULES.into_iter().zip(runs) {
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
        let profile = stack.profile();
        rows.push(CaseRow::predicted_text(name("end"), Some(counts)).by(profile));
        let goodput = Some(seen.goodput());
        rows.push(CaseRow::predicted(name("goodput"), "Mbit/s", None, goodput).by(profile));
    }
    Ok(rows)
}

/// RACK's threshold by the number of rounds with D-SACKs.
fn thresholds() -> Vec<CaseRow> {
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
        CaseRow::exact(name("before any D-SACK"), "x", 1.25, Some(times(0))),
        CaseRow::predicted(name("after a round with D-SACKs"), "x", None, Some(times(1))),
        CaseRow::exact(name("after 3 rounds with D-SACKs"), "x", 2.0, Some(times(3)))
            .note("published: \"up to two times the last RTT seen\""),
        CaseRow::exact(name("after 100 rounds with D-SACKs"), "x", 2.0, Some(times(100)))
            .note("published: \"up to two times the last RTT seen\""),
    ]
}

/// With the undo, compared with the same path without reordering.
fn against_order(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let mut rows = Vec::new();
    const SIZES: [&str; 2] = ["10MB", "100MB"];
    // In order, without a gap, then for each gap the stack and the one that waits.
    let per_size = || {
        let gaps = GAPS_US.into_iter().flat_map(|us| [(gap(us), MAIN), (gap(us), PATIENT)]);
        [(Order::Kept, MAIN), (gap(0), MAIN)].into_iter().chain(gaps)
    };
    let all: Vec<(Order, StackVariant, &str)> = SIZES
        .into_iter()
        .flat_map(|size| per_size().map(move |(order, stack)| (order, stack, size)))
        .collect();
    let goodputs = workers.map(&all, |&(order, stack, size)| {
        Ok::<_, CaseError>(transfer(order, stack, size, workers)?.goodput())
    })?;
    let mut goodputs = goodputs.into_iter();
    let mut next = || goodputs.next().unwrap_or(f64::NAN);
    for size in SIZES {
        let (kept, never) = (next(), next());
        rows.push(CaseRow::predicted(
            format!("RACK main, order kept, {size}: goodput"),
            "Mbit/s",
            None,
            Some(kept),
        ));
        rows.push(
            CaseRow::predicted(
                format!("RACK main, gap 0 ms, {size}: goodput / order kept"),
                "%",
                None,
                Some(100.0 * never / kept),
            )
            .note(CLOCK),
        );
        for us in GAPS_US {
            let (seen, patient) = (next(), next());
            let ms = us as f64 / 1_000.0;
            let share = 100.0 * seen / kept;
            let name = format!("RACK main, gap {ms} ms, {size}: goodput / order kept");
            let row = match us {
                // The middle of the interval.
                GAP_US => CaseRow::info(name, "%", 95.0, Some(share)),
                _ => CaseRow::predicted(name, "%", None, Some(share)),
            };
            rows.push(row.note(CLOCK));
            // A sender whose threshold is so wide that it never enters a spurious recovery.
            rows.push(CaseRow::at_least(
                format!(
                    "RACK main, gap {ms} ms, {size}: goodput / RACK that is never fooled there"
                ),
                "%",
                95.0,
                Some(100.0 * seen / patient),
            ));
        }
    }
    Ok(rows)
}

/// A threshold that no gap reaches: the reference for the cost of the undo itself.
const PATIENT: StackVariant = StackVariant {
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
/// Where it enters spurious recoveries: gap, their number, those undone if known, ssthresh at the
/// end in segments.
const REAL_SPURIOUS: [(u64, f64, Option<f64>, f64); 3] =
    [(11_250, 1.0, Some(0.0), 7.0), (15_000, 2.0, Some(1.0), 5.0), (22_500, 4.0, None, 4.0)];

/// RACK 14.3 compared with the real one.
fn real_stack(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    // The recorded transfers are uploads.
    let upload = "flow=[{ name = \"upload\", from = \"sender\", to = \"sink\", bulk = \"10MB\" }]";
    let set: Vec<&str> = OLDER.set.iter().copied().chain([upload]).collect();
    let runs = workers.map(&REAL, |&(us, _)| run_order(gap(us), &set, workers))?;
    let mut rows = Vec::new();
    for ((us, mbits), seen) in REAL.into_iter().zip(runs) {
        let name =
            |what: &str| format!("real rack.c, gap {} ms, 10 MB: {what}", us as f64 / 1_000.0);
        rows.push(
            CaseRow::band(
                name("goodput"),
                "Mbit/s",
                mbits,
                Some(seen.goodput_of_data()),
                mbits * 0.98,
                mbits * 1.02,
            )
            .note(REAL_RACK)
            .recorded(),
        );
        let spurious = REAL_SPURIOUS.into_iter().find(|(spurious, ..)| *spurious == us);
        let (_, recoveries, undone, ssthresh) = spurious.unwrap_or_default();
        let count = |what: &str, real: f64, ours: f64| {
            CaseRow::exact(name(what), "", real, Some(ours)).note(REAL_RACK).recorded()
        };
        rows.push(count("false recoveries", recoveries, seen.recoveries as f64));
        if spurious.is_some() {
            rows.extend(undone.map(|real| count("recoveries undone", real, seen.undone as f64)));
            rows.push(
                CaseRow::exact(
                    name("ssthresh at the end"),
                    "MSS",
                    ssthresh,
                    seen.ssthresh_segments,
                )
                .note(REAL_RACK)
                .recorded(),
            );
        }
    }
    Ok(rows)
}

const REAL_RACK: &str = "the complete stack with rack.c of July 2022, changed in the two places in which 14.x \
    differs in effect (golden/freebsd-rack-closed), an upload from its first data to its last read";

/// The effect of FreeBSD's own receiver on such a path.
fn receiver(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let set: Vec<&str> = MAIN
        .set
        .iter()
        .copied()
        .chain(["host.sink.knobs.\"net.inet.tcp.reass.maxqueuelen\"=100", "duration=5s"])
        .collect();
    let seen = run_order(gap(GAP_US), &set, workers)?;
    Ok(vec![
        CaseRow::predicted(
            "RACK main, gap 15 ms, net.inet.tcp.reass.maxqueuelen as released: goodput of 5 s",
            "Mbit/s",
            None,
            Some(seen.goodput()),
        )
        .note(
            "a FreeBSD sink holds 100 out-of-order ranges and drops data that needs another: at 1 Gbit/s \
             312 groups are open during such a gap. The other rows declare 10,000",
        ),
    ])
}

/// The reason why a reversed path is slower than one in order even without spurious recoveries.
const CLOCK: &str = "\
the kernel's own rules give this even without any recovery: a group of four gives one ACK that \
advances, worth two segments (L = 2), so a round of 45 ms plus the gap makes the window 1.5 times as \
large, where one in order, of 45 ms, at most doubles it. At 15 ms 6,906 segments from IW 10 take 14.4 \
rounds of 60 ms, with the handshake 0.96 s: 84 Mbit/s. The next row compares the undo with a RACK that \
never has a spurious recovery there";
