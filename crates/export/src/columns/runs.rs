//! The runs of a sweep: a row per flow of each run, as in `runs.csv`.

use std::io::{self, Write};

use super::{ColumnKind, ParquetCell, ParquetColumn, ParquetTable};
use runner::sweep::SweepRow;
use runner::sweep::csv::FIGURES;

/// Writes the runs of a sweep.
pub struct SweepParquet<W: Write + Send>(ParquetTable<W>);

impl<W: Write + Send> SweepParquet<W> {
    /// A table for a sweep over `keys`; `sha256` is the checksum of the sweep's definition.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(keys: &[String], sha256: &str, out: W) -> io::Result<Self> {
        let mut columns = vec![
            ParquetColumn::new("run", ColumnKind::Whole, "", "number of the run, from 0"),
            ParquetColumn::new("seed", ColumnKind::Whole, "", "seed of every random stream"),
        ];
        for key in keys {
            columns.push(ParquetColumn::new(
                key,
                ColumnKind::Text,
                "",
                "value of this key of the scenario",
            ));
        }
        columns.push(ParquetColumn::new("flow", ColumnKind::Text, "", "name of the flow"));
        columns.push(ParquetColumn::new(
            "profile",
            ColumnKind::Text,
            "",
            "profile of the sending host",
        ));
        columns.push(ParquetColumn::new(
            "cc",
            ColumnKind::Text,
            "",
            "congestion control of the sending host",
        ));
        columns.extend(
            FIGURES
                .iter()
                .map(|f| ParquetColumn::new(f.name, ColumnKind::Number, unit_of(f.name), f.help)),
        );
        let about = [
            ("ackclock", env!("CARGO_PKG_VERSION").to_owned()),
            ("table", "runs".to_owned()),
            ("sweep_sha256", sha256.to_owned()),
        ];
        ParquetTable::new(&columns, &about, out).map(Self)
    }

    /// Appends a run.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add(&mut self, row: &SweepRow) -> io::Result<()> {
        for flow in &row.flows {
            let head = [ParquetCell::Whole(row.run), ParquetCell::Whole(row.seed)];
            let set = row.set.iter().map(|(_, value)| ParquetCell::Text(value));
            let names = [&*flow.name, &*flow.profile, &*flow.cc].map(ParquetCell::Text);
            let figures = FIGURES.iter().map(|figure| ParquetCell::from((figure.of)(row, flow)));
            self.0.push(head.into_iter().chain(set).chain(names).chain(figures))?;
        }
        Ok(())
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

/// The unit in the suffix of a figure's name.
fn unit_of(name: &str) -> &'static str {
    match name {
        name if name.ends_with("_bps") => "bit/s",
        name if name.ends_with("_s") => "s",
        name if name.ends_with("_bytes") || name == "bytes" => "B",
        _ => "",
    }
}
