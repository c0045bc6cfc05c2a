//! Tables as Parquet files, for pandas, polars, DuckDB and other readers of Arrow; enabled by the
//! feature `parquet`.
//!
//! The metadata of each field has its unit and description (`unit`, `description`); the metadata of
//! the schema describes the table.
//!
//! Integers are delta-encoded (DELTA_BINARY_PACKED): most grow steadily or stay constant, and a
//! dictionary would look up each of them. Strings and other numbers, which have few distinct
//! values, use a dictionary; times, which hardly repeat, do not.

mod events;
mod runs;
mod series;

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Metadata, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use sim::scenario::Scenario;

pub use events::EventColumns;
pub use runs::SweepParquet;
pub use series::write_series;

/// Rows per row group, which has its own dictionaries.
const ROW_GROUP: usize = 1 << 16;

/// Rows encoded per batch: few enough to stay in the cache.
const BATCH_ROWS: usize = 1 << 10;

/// A column.
struct ParquetColumn {
    name: String,
    kind: ColumnKind,
    /// `s`, `B`, `bit/s`; empty without a unit.
    unit: &'static str,
    help: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ColumnKind {
    Whole,
    Number,
    /// A number that hardly ever repeats.
    Moment,
    Text,
    Switch,
}

/// A value or null.
#[derive(Debug, Clone, Copy)]
enum ParquetCell<'a> {
    None,
    Whole(u64),
    Number(f64),
    Text(&'a str),
}

impl From<Option<u64>> for ParquetCell<'_> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::None, Self::Whole)
    }
}

impl From<Option<f64>> for ParquetCell<'_> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::None, Self::Number)
    }
}

impl ParquetColumn {
    fn new(name: &str, kind: ColumnKind, unit: &'static str, help: &str) -> Self {
        Self { name: name.to_owned(), kind, unit, help: help.to_owned() }
    }

    fn field(&self) -> Field {
        let kind = match self.kind {
            ColumnKind::Whole => DataType::UInt64,
            ColumnKind::Number | ColumnKind::Moment => DataType::Float64,
            ColumnKind::Text => DataType::Utf8,
            ColumnKind::Switch => DataType::Boolean,
        };
        let mut about = vec![("description".to_owned(), self.help.clone())];
        if !self.unit.is_empty() {
            about.push(("unit".to_owned(), self.unit.to_owned()));
        }
        Field::new(&self.name, kind, true).with_metadata(about.into_iter().collect::<Metadata>())
    }
}

/// The metadata of a table of a run.
fn of_run(table: &str, scenario: &Scenario, sha256: &str) -> [(&'static str, String); 5] {
    [
        ("ackclock", env!("CARGO_PKG_VERSION").to_owned()),
        ("table", table.to_owned()),
        ("title", scenario.title.clone()),
        ("scenario_sha256", sha256.to_owned()),
        ("seed", scenario.seed.to_string()),
    ]
}

enum ColumnBuilder {
    Whole(UInt64Builder),
    Number(Float64Builder),
    Text(StringBuilder),
    Switch(BooleanBuilder),
}

impl ColumnBuilder {
    fn new(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Whole => Self::Whole(UInt64Builder::new()),
            ColumnKind::Number | ColumnKind::Moment => Self::Number(Float64Builder::new()),
            ColumnKind::Text => Self::Text(StringBuilder::new()),
            ColumnKind::Switch => Self::Switch(BooleanBuilder::new()),
        }
    }

    /// Appends a value; a value of another kind than the column's becomes null. No table that is
    /// filled by cells has boolean columns.
    fn push(&mut self, cell: ParquetCell<'_>) {
        match (self, cell) {
            (Self::Whole(column), ParquetCell::Whole(value)) => column.append_value(value),
            (Self::Number(column), ParquetCell::Number(value)) => column.append_value(value),
            (Self::Text(column), ParquetCell::Text(value)) => column.append_value(value),
            (Self::Whole(column), _) => column.append_null(),
            (Self::Number(column), _) => column.append_null(),
            (Self::Text(column), _) => column.append_null(),
            (Self::Switch(column), _) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Whole(column) => Arc::new(column.finish()),
            Self::Number(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::Switch(column) => Arc::new(column.finish()),
        }
    }
}

/// The I/O error inside a Parquet error.
fn of_writer(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// The encoding of each column.
fn properties(columns: &[ParquetColumn]) -> WriterProperties {
    let mut to = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP));
    for column in columns {
        // The path of a dotted name is the whole name.
        let path = || ColumnPath::new(vec![column.name.clone()]);
        to = match column.kind {
            ColumnKind::Whole => to
                .set_column_dictionary_enabled(path(), false)
                .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED),
            ColumnKind::Moment => to.set_column_dictionary_enabled(path(), false),
            // Every row group has about the same names, so statistics are useless.
            ColumnKind::Text => to.set_column_statistics_enabled(path(), EnabledStatistics::None),
            ColumnKind::Number | ColumnKind::Switch => to,
        };
    }
    to.build()
}

/// A table in writing.
struct ParquetTable<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: Arc<Schema>,
    builders: Vec<ColumnBuilder>,
    rows: usize,
}

impl<W: Write + Send> ParquetTable<W> {
    /// A table of `columns`; `about` is its metadata.
    fn new(
        columns: &[ParquetColumn],
        about: &[(&'static str, String)],
        out: W,
    ) -> io::Result<Self> {
        let fields: Vec<Field> = columns.iter().map(ParquetColumn::field).collect();
        let about = about.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        let schema = Schema::new(fields).with_metadata(about.collect::<Metadata>());
        let schema = Arc::new(schema);
        let properties = Some(properties(columns));
        let writer =
            ArrowWriter::try_new(out, Arc::clone(&schema), properties).map_err(of_writer)?;
        let builders = columns.iter().map(|column| ColumnBuilder::new(column.kind)).collect();
        Ok(Self { writer, schema, builders, rows: 0 })
    }

    /// Appends a row: one cell per column.
    fn push<'a>(&mut self, cells: impl IntoIterator<Item = ParquetCell<'a>>) -> io::Result<()> {
        let mut cells = cells.into_iter();
        for builder in &mut self.builders {
            builder.push(cells.next().unwrap_or(ParquetCell::None));
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Appends rows, given as one array per column.
    fn write(&mut self, columns: Vec<ArrayRef>) -> io::Result<()> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        self.writer.write(&batch.map_err(io::Error::other)?).map_err(of_writer)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let arrays = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        self.rows = 0;
        self.write(arrays)
    }

    fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.writer.into_inner().map_err(of_writer)
    }
}

#[cfg(test)]
mod tests;
