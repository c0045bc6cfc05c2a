//! The runs of a sweep: a row for each flow of each run, as in `runs.csv`.

use std::io::{self, Write};

use super::{Cell, Column, Kind, Table};
use runner::sweep::Row;
use runner::sweep::csv::FIGURES;

/// Writes the runs of a sweep.
pub struct RunColumns<W: Write + Send>(Table<W>);

impl<W: Write + Send> RunColumns<W> {
    /// For axes over `keys`; `sha256` is that of the sweep's definition.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(keys: &[String], sha256: &str, out: W) -> io::Result<Self> {
        let mut columns = vec![
            Column::new("run", Kind::Whole, "", "number of the run, from 0"),
            Column::new("seed", Kind::Whole, "", "seed of every random stream"),
        ];
        for key in keys {
            columns.push(Column::new(key, Kind::Text, "", "value of this key of the scenario"));
        }
        columns.push(Column::new("flow", Kind::Text, "", "name of the flow"));
        columns.push(Column::new("profile", Kind::Text, "", "profile of the sending host"));
        columns.push(Column::new("cc", Kind::Text, "", "congestion control of the sending host"));
        columns.extend(
            FIGURES.iter().map(|f| Column::new(f.name, Kind::Number, unit_of(f.name), f.help)),
        );
        let about = [
            ("ackclock", env!("CARGO_PKG_VERSION").to_owned()),
            ("table", "runs".to_owned()),
            ("sweep_sha256", sha256.to_owned()),
        ];
        Table::new(&columns, &about, out).map(Self)
    }

    /// Adds a run.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add(&mut self, row: &Row) -> io::Result<()> {
        for flow in &row.flows {
            let head = [Cell::Whole(row.run), Cell::Whole(row.seed)];
            let set = row.set.iter().map(|(_, value)| Cell::Text(value));
            let names = [&*flow.name, &*flow.profile, &*flow.cc].map(Cell::Text);
            let figures = FIGURES.iter().map(|figure| Cell::from((figure.of)(row, flow)));
            self.0.push(head.into_iter().chain(set).chain(names).chain(figures))?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}

/// The unit that the name of a figure ends with.
fn unit_of(name: &str) -> &'static str {
    match name {
        name if name.ends_with("_bps") => "bit/s",
        name if name.ends_with("_s") => "s",
        name if name.ends_with("_bytes") || name == "bytes" => "B",
        _ => "",
    }
}
