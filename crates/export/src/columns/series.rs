//! Selected columns of senders over time, thinned or not.

use std::io::{self, Write};

use logs::series::{Collector, ColumnForm};
use sim::scenario::Scenario;

use super::{ColumnKind, ParquetCell, ParquetColumn, ParquetTable, of_run};

/// Writes the collected series of a run of `scenario` with this SHA-256.
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
        ParquetColumn::new("time_s", ColumnKind::Moment, "s", "virtual time"),
        ParquetColumn::new("time_ns", ColumnKind::Whole, "ns", "virtual time, exact"),
        ParquetColumn::new("flow", ColumnKind::Text, "", "name of the flow"),
    ];
    columns.extend(known.iter().map(|column| {
        let kind = match column.form {
            ColumnForm::Decimal(0) => ColumnKind::Whole,
            ColumnForm::Decimal(_) => ColumnKind::Number,
            ColumnForm::Name(_) => ColumnKind::Text,
        };
        ParquetColumn::new(column.name, kind, column.unit(), column.help)
    }));
    let mut table = ParquetTable::new(&columns, &of_run("series", scenario, sha256), out)?;
    collector.rows(|at, flow, values| {
        let head = [
            ParquetCell::Number(at.as_secs_f64()),
            ParquetCell::Whole(at.as_nanos()),
            ParquetCell::Text(flow),
        ];
        let cells = known.iter().zip(values).map(|(column, value)| match (column.form, *value) {
            (ColumnForm::Decimal(0), value) => ParquetCell::from(value),
            (ColumnForm::Decimal(decimals), value) => {
                ParquetCell::from(value.map(|value| value as f64 / 10_u64.pow(decimals) as f64))
            }
            (form, value) => value
                .and_then(|value| form.name(value))
                .map_or(ParquetCell::None, ParquetCell::Text),
        });
        table.push(head.into_iter().chain(cells))
    })?;
    table.finish()
}
