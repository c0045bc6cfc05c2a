//! What the cost of a segment grows with: `cargo bench -- costs`, or `-- costs flows loss` for some
//! of the tables.

use lab::workloads::{OneFlow, many_flows, one_flow};

use crate::measure::measure;

/// One table: what grows, and what a segment costs.
fn table(title: &str, rows: impl IntoIterator<Item = (String, String, u32)>) {
    println!("\n{title:<28} {:>12} {:>12} {:>12}", "segments", "ns/segment", "load");
    for (label, text, tries) in rows {
        let measured = measure(&text, 1, tries);
        println!(
            "{label:<28} {:>12} {:>12.1} {:>9.1} ms",
            measured.segments,
            measured.ns(),
            measured.load_seconds * 1e3
        );
    }
}

/// Tables whose title begins with one of these words, or all.
struct Chosen<'a>(&'a [String]);

impl Chosen<'_> {
    fn table<const N: usize>(
        &self,
        title: &str,
        rows: impl FnOnce() -> [(String, String, u32); N],
    ) {
        if self.0.is_empty() || self.0.iter().any(|word| title.starts_with(word.as_str())) {
            table(title, rows());
        }
    }
}

/// What the cost of a segment grows with.
pub(crate) fn costs(wanted: &[String]) {
    let chosen = Chosen(wanted);
    chosen.table("flows, 1 Mbit/s each", || {
        [1_u32, 10, 100, 1_000, 10_000, 100_000].map(|flows| {
            let millis = (3_000_000 / u64::from(flows)).clamp(2_000, 300_000);
            let tries = if flows > 1_000 { 1 } else { 3 };
            (format!("{flows}"), many_flows(flows, millis), tries)
        })
    });
    chosen.table("flight (BDP), segments", || {
        [10_u64, 100, 1_000, 10_000, 100_000].map(|flight| {
            // 1 Gbit/s are 83,333 packets a second: 12 us each.
            let one_way_us = flight * 12 / 2;
            let millis = (flight * 12 * 60 / 1_000).max(10_000);
            let flight_bytes = 2 * flight * 1_448;
            let flow =
                OneFlow { millis, one_way_us, flight: flight_bytes.max(1 << 20), ..OneFlow::W1 };
            (format!("{flight}"), one_flow(&flow), 3)
        })
    });
    chosen.table("random loss", || {
        [0_u32, 1, 10, 100, 300, 1_000].map(|loss| {
            let label = format!("{}.{:02} %", loss / 100, loss % 100);
            (label, one_flow(&OneFlow { loss, ..OneFlow::W2 }), 3)
        })
    });
    chosen.table("duration (W1), s", || {
        [1_u64, 10, 60, 600].map(|seconds| {
            let flow = OneFlow { millis: 1_000 * seconds, ..OneFlow::W1 };
            (format!("{seconds}"), one_flow(&flow), if seconds > 60 { 1 } else { 3 })
        })
    });
    chosen.table("sender (W1, 10 s)", || {
        [
            ("linux-6.18", "reno"),
            ("linux-6.18", "cubic"),
            ("freebsd-14.3", "newreno"),
            ("freebsd-14.3", "cubic"),
            ("freebsd-rack-14.3", "newreno"),
            ("rfc", "newreno"),
        ]
        .map(|(profile, cc)| {
            let flow = OneFlow { profile, cc, millis: 10_000, ..OneFlow::W1 };
            (format!("{profile} {cc}"), one_flow(&flow), 3)
        })
    });
}
