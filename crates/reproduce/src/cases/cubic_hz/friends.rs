//! CUBIC and NewReno on one link: their shares.

use cc::cubic::CubicVariant;

use super::world::NEWRENO;
use crate::cases::{CaseError, CaseRow, Workers, load, run};

/// Two senders on one link.
const LINE: &str = r#"
duration = "20s"

[host.cubic]
profile = "freebsd-main"
cc = "cubic"
tso = true

[host.reno]
profile = "freebsd-main"
cc = "newreno"
tso = true

[host.sink]
profile = "freebsd-main"

[shared.line]
link = { rate = "50Mbit/s", buffer = "100kB" }

[[path]]
from = "cubic"
to = "sink"
forward = [{ shared = "line" }, { delay = "1ms" }]
return = [{ delay = "1ms" }]

[[path]]
from = "reno"
to = "sink"
forward = [{ shared = "line" }, { delay = "1ms" }]
return = [{ delay = "1ms" }]

[[flow]]
name = "cubic"
from = "cubic"
to = "sink"
bulk = "unlimited"

[[flow]]
name = "reno"
from = "reno"
to = "sink"
start = "5ms"
bulk = "unlimited"
"#;

/// RTTs of the path in microseconds.
const RTTS: [u64; 5] = [100, 1_000, 10_000, 50_000, 200_000];

/// Goodput of each variant relative to NewReno.
pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    // Linux's own CUBIC requires its stack.
    let variants =
        cc::cubic::VARIANTS.iter().filter(|(_, variant)| *variant != CubicVariant::Linux);
    let variants = variants.map(|&(name, _)| name);
    let pairs: Vec<(&str, u64)> = [NEWRENO]
        .into_iter()
        .chain(variants)
        .flat_map(|name| RTTS.map(|rtt| (name, rtt)))
        .collect();
    workers.map(&pairs, |&(name, rtt)| {
        let delay = |path: usize| {
            [
                format!("path.{path}.forward.1.delay={}us", rtt / 2),
                format!("path.{path}.return.0.delay={}us", rtt / 2),
            ]
        };
        // A queue of one bandwidth-delay product, but at least 20 packets.
        let buffer = (rtt * 50 / 8).max(30_000);
        let mut set =
            vec![format!("host.cubic.cc={name}"), format!("shared.line.link.buffer={buffer}B")];
        set.extend(delay(0));
        set.extend(delay(1));
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let loaded = load(LINE, "line.toml", &set)?;
        let outcome = run(&loaded, &mut record::NullRecorder, workers)?;
        let bytes = |at: usize| outcome.flows.get(at).map_or(0, |flow| flow.bytes.get());
        let ratio = bytes(0) as f64 / bytes(1).max(1) as f64;
        let title = format!("{name} beside newreno, {} ms, 50 Mbit/s", rtt as f64 / 1e3);
        Ok(CaseRow::predicted(title, "times", None, Some(ratio))
            .note("goodput over NewReno's; hz 1000; queue of one bandwidth-delay product"))
    })
}
