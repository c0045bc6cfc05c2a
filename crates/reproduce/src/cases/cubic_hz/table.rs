//! The review's own figures, on a declared path: the review does not describe its own.

use super::world::{LanSender, Loss, NEWRENO, PATCHED, STOCK, sender, transfer};
use crate::cases::{CaseError, CaseRow, Workers, groups};

/// `kern.hz`, controller, Mbit/s at 1 % and at 2 %, in the order of the review.
const PUBLISHED: [(u32, &str, [f64; 2]); 6] = [
    (100_000, STOCK, [719.0, 547.0]),
    (10_000, STOCK, [923.0, 683.0]),
    (1_000, STOCK, [917.0, 527.0]),
    (100, NEWRENO, [915.0, 767.0]),
    (100, STOCK, [168.0, 83.8]),
    (100, PATCHED, [921.0, 876.0]),
];
const LOSS: [(&str, Loss); 2] = [("1", Loss::Periodic(100)), ("2", Loss::Periodic(50))];
/// The same loss rates at random.
const AT_RANDOM: [(&str, Loss); 2] = [("1", Loss::Random("1")), ("2", Loss::Random("2"))];
/// FreeBSD's default stack, and RACK, which detects lost retransmissions by time.
const BASE: &str = "freebsd-main";
const RACK: &str = "freebsd-rack-main";

fn name_of(cc: &str) -> &'static str {
    match cc {
        STOCK => "stock cubic",
        PATCHED => "cubic with D46546",
        _ => "newreno",
    }
}

/// The published and the measured figures for each loss process; none is derivable.
pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    groups(
        &[
            |workers| beside("", BASE, LOSS, workers),
            |workers| beside(" at random, default stack", BASE, AT_RANDOM, workers),
            |workers| beside(" at random, RACK stack", RACK, AT_RANDOM, workers),
        ],
        workers,
    )
}

fn beside(
    process: &str,
    profile: &'static str,
    losses: [(&str, Loss); 2],
    workers: &Workers<'_>,
) -> Result<Vec<CaseRow>, CaseError> {
    let mut rows = Vec::new();
    for (at, (percent, loss)) in losses.into_iter().enumerate() {
        rows.extend(workers.map(&PUBLISHED, |&(hz, cc, published)| {
            let mut set = sender(LanSender { hz, cc }, loss);
            set.push(format!("host.sender.profile={profile}"));
            set.push("duration=5s".into());
            let came = transfer(1, &set, workers)?;
            let why = if hz == 100_000 { "; what ticks cost the CPU is not modelled" } else { "" };
            let name = format!("{percent} % loss{process}, hz {hz}, {}", name_of(cc));
            Ok::<_, CaseError>(
                CaseRow::info(name, "Mbit/s", published[at], Some(came.mbits))
                    .note(format!("{} RTOs in 5 s{why}", came.rtos))
                    .by(profile),
            )
        })?);
    }
    Ok(rows)
}
