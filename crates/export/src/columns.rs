//! Tables as Parquet files, for pandas, polars, DuckDB and all that read Arrow; behind the feature
//! `parquet`.
//!
//! Each column says its unit and what it means in the metadata of its field (`unit`,
//! `description`); what the table is of stands in the metadata of the schema.
//!
//! Whole numbers are written as what they differ by from the row before (DELTA_BINARY_PACKED): most
//! either grow all the time or stay as they are, and a dictionary would look each of them up. Texts
//! and other numbers, of which there are few, have a dictionary; times, no two of which are alike,
//! none.

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
pub use runs::RunColumns;
pub use series::write_series;

/// Rows of a group, which has its own dictionaries.
const ROW_GROUP: usize = 1 << 16;

/// Rows that are encoded together: few enough to stay in a cache until they are.
const TOGETHER: usize = 1 << 10;

/// A column.
struct Column {
    name: String,
    kind: Kind,
    /// `s`, `B`, `bit/s`; empty for a number without.
    unit: &'static str,
    help: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Number,
    /// A number that hardly ever comes twice.
    Moment,
    Text,
    Switch,
}

/// A value, or none.
#[derive(Debug, Clone, Copy)]
enum Cell<'a> {
    None,
    Whole(u64),
    Number(f64),
    Text(&'a str),
}

impl From<Option<u64>> for Cell<'_> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::None, Self::Whole)
    }
}

impl From<Option<f64>> for Cell<'_> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::None, Self::Number)
    }
}

impl Column {
    fn new(name: &str, kind: Kind, unit: &'static str, help: &str) -> Self {
        Self { name: name.to_owned(), kind, unit, help: help.to_owned() }
    }

    fn field(&self) -> Field {
        let kind = match self.kind {
            Kind::Whole => DataType::UInt64,
            Kind::Number | Kind::Moment => DataType::Float64,
            Kind::Text => DataType::Utf8,
            Kind::Switch => DataType::Boolean,
        };
        let mut about = vec![("description".to_owned(), self.help.clone())];
        if !self.unit.is_empty() {
            about.push(("unit".to_owned(), self.unit.to_owned()));
        }
        Field::new(&self.name, kind, true).with_metadata(about.into_iter().collect::<Metadata>())
    }
}

/// What a table of a run says of it.
fn of_run(table: &str, scenario: &Scenario, sha256: &str) -> [(&'static str, String); 5] {
    [
        ("ackclock", env!("CARGO_PKG_VERSION").to_owned()),
        ("table", table.to_owned()),
        ("title", scenario.title.clone()),
        ("scenario_sha256", sha256.to_owned()),
        ("seed", scenario.seed.to_string()),
    ]
}

enum Builder {
    Whole(UInt64Builder),
    Number(Float64Builder),
    Text(StringBuilder),
    Switch(BooleanBuilder),
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Whole => Self::Whole(UInt64Builder::new()),
            Kind::Number | Kind::Moment => Self::Number(Float64Builder::new()),
            Kind::Text => Self::Text(StringBuilder::new()),
            Kind::Switch => Self::Switch(BooleanBuilder::new()),
        }
    }

    /// Adds a value; one of another kind than the column's counts as none. No table that is put
    /// together cell by cell has switches.
    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Whole(column), Cell::Whole(value)) => column.append_value(value),
            (Self::Number(column), Cell::Number(value)) => column.append_value(value),
            (Self::Text(column), Cell::Text(value)) => column.append_value(value),
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

/// The error of the writer below, as it was.
fn of_writer(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// How each column is written.
fn properties(columns: &[Column]) -> WriterProperties {
    let mut to = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP));
    for column in columns {
        // The path of a name with dots in it is that name.
        let path = || ColumnPath::new(vec![column.name.clone()]);
        to = match column.kind {
            Kind::Whole => to
                .set_column_dictionary_enabled(path(), false)
                .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED),
            Kind::Moment => to.set_column_dictionary_enabled(path(), false),
            // Every group has about the same names.
            Kind::Text => to.set_column_statistics_enabled(path(), EnabledStatistics::None),
            Kind::Number | Kind::Switch => to,
        };
    }
    to.build()
}

/// A table that is being written.
struct Table<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: Arc<Schema>,
    builders: Vec<Builder>,
    rows: usize,
}

impl<W: Write + Send> Table<W> {
    /// Of these columns; `about` says what the table is of.
    fn new(columns: &[Column], about: &[(&'static str, String)], out: W) -> io::Result<Self> {
        let fields: Vec<Field> = columns.iter().map(Column::field).collect();
        let about = about.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        let schema = Schema::new(fields).with_metadata(about.collect::<Metadata>());
        let schema = Arc::new(schema);
        let properties = Some(properties(columns));
        let writer =
            ArrowWriter::try_new(out, Arc::clone(&schema), properties).map_err(of_writer)?;
        let builders = columns.iter().map(|column| Builder::new(column.kind)).collect();
        Ok(Self { writer, schema, builders, rows: 0 })
    }

    /// Adds a row: a cell for each column.
    fn push<'a>(&mut self, cells: impl IntoIterator<Item = Cell<'a>>) -> io::Result<()> {
        let mut cells = cells.into_iter();
        for builder in &mut self.builders {
            builder.push(cells.next().unwrap_or(Cell::None));
        }
        self.rows += 1;
        if self.rows == TOGETHER { self.flush() } else { Ok(()) }
    }

    /// Adds rows, of each column its values.
    fn write(&mut self, columns: Vec<ArrayRef>) -> io::Result<()> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        self.writer.write(&batch.map_err(io::Error::other)?).map_err(of_writer)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let arrays = self.builders.iter_mut().map(Builder::finish).collect();
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
