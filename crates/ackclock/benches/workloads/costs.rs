//! How the cost of a segment scales: `cargo bench -- costs`, or `-- costs flows loss` for some of
//! the tables.

use simtest::workloads::growths;

use crate::measure::measure;

/// Size of a scenario in bytes above which one run suffices: it has thousands of flows.
const MANY: usize = 1_000_000;

/// Prints the tables whose titles begin with one of these words, or all.
pub(crate) fn costs(wanted: &[String]) {
    for growth in growths(1.0) {
        if !wanted.is_empty() && !wanted.iter().any(|word| growth.title.starts_with(word.as_str()))
        {
            continue;
        }
        let title = growth.title;
        println!("\n{title:<28} {:>12} {:>12} {:>12}", "segments", "ns/segment", "load");
        for (label, text) in growth.worlds {
            let tries = if text.len() > MANY { 1 } else { 3 };
            let measured = measure(&text, 1, tries);
            println!(
                "{label:<28} {:>12} {:>12.1} {:>9.1} ms",
                measured.segments,
                measured.ns(),
                measured.load_seconds * 1e3
            );
        }
    }
}
