//! Chosen columns of senders over time, thinned or not.

use std::io::{self, Write};

use logs::series::Collector;
use sim::scenario::Scenario;

use super::{Cell, Column, Kind, Table, of_run};

/// Writes what was collected of a run of `scenario`, whose text has this SHA-256.
///
/// # Errors
/// Those of the writer.
pub fn write_series<W: Write + Send>(
    collector: &mut Collector,
    scenario: &Scenario,
    sha256: &str,
    out: W,
) -> io::Result<W> {
    let known: Vec<_> = collector.columns().iter().copied().collect();
    let mut columns = vec![
        Column::new("time_s", Kind::Moment, "s", "virtual time"),
        Column::new("time_ns", Kind::Whole, "ns", "the same, exactly"),
        Column::new("flow", Kind::Text, "", "name of the flow"),
    ];
    columns.extend(known.iter().map(|column| {
        let kind = if column.decimals == 0 { Kind::Whole } else { Kind::Number };
        Column::new(column.name, kind, column.unit(), column.help)
    }));
    let mut table = Table::new(&columns, &of_run("series", scenario, sha256), out)?;
    collector.rows(|at, flow, values| {
        let head = [Cell::Number(at.as_secs_f64()), Cell::Whole(at.as_nanos()), Cell::Text(flow)];
        let cells = known.iter().zip(values).map(|(column, value)| match column.decimals {
            0 => Cell::from(*value),
            decimals => Cell::from(value.map(|value| value as f64 / 10_u64.pow(decimals) as f64)),
        });
        table.push(head.into_iter().chain(cells))
    })?;
    table.finish()
}
