//! Counters of a host: nstat, `/proc/net/snmp`, `/proc/net/netstat`.

use std::io::{self, BufRead};

use diagnose::host_counters::HostCounters;
use logs::nstat::{NstatItem, NstatReader};

use super::super::File;

/// Reads counters; those of a second table are left out, since a table may count from boot or from the first.
pub(super) fn read(input: impl BufRead, file: &mut File) -> io::Result<()> {
    let mut counters = HostCounters::default();
    for item in NstatReader::new(input) {
        let counter = match item? {
            NstatItem::Problem(problem) => {
                file.problems.push(&problem);
                continue;
            }
            NstatItem::Counter(counter) => counter,
        };
        if counters.values.contains_key(&counter.name) {
            file.problems.push(&format!(
                "line {}: `{}` for the second time: only the first table is read; put each into a file of its own",
                counter.line, counter.name
            ));
            break;
        }
        file.frames += 1;
        counters.values.insert(counter.name, counter.value);
    }
    file.host_counters = (file.frames > 0).then(|| Box::new(counters));
    Ok(())
}
