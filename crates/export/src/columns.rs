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

use arrow_schema::{DataType, Field, Metadata, Schema};
use bytes::Bytes;
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::ColumnPath;
use sim::scenario::Scenario;

pub use events::EventColumns;
pub use runs::SweepParquet;
pub use series::write_series;

/// Rows per row group, which has its own dictionaries and is written at once.
const ROW_GROUP: usize = 1 << 16;

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
    Switch(bool),
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

/// The values of a column in the rows of an unfinished row group.
struct ColumnBuffer {
    /// For each row: 1 with a value, 0 without.
    present: Vec<i16>,
    values: ColumnValues,
}

enum ColumnValues {
    Whole(Vec<i64>),
    Number(Vec<f64>),
    /// All texts in one, and where each ends.
    Text(Vec<u8>, Vec<usize>),
    Switch(Vec<bool>),
}

impl ColumnBuffer {
    fn new(kind: ColumnKind) -> Self {
        let values = match kind {
            ColumnKind::Whole => ColumnValues::Whole(Vec::new()),
            ColumnKind::Number | ColumnKind::Moment => ColumnValues::Number(Vec::new()),
            ColumnKind::Text => ColumnValues::Text(Vec::new(), Vec::new()),
            ColumnKind::Switch => ColumnValues::Switch(Vec::new()),
        };
        Self { present: Vec::new(), values }
    }

    /// Appends a value; a value of another kind than the column's becomes null.
    fn push(&mut self, cell: ParquetCell<'_>) {
        let is_present = match (&mut self.values, cell) {
            // Parquet stores the bits of unsigned integers as signed ones.
            (ColumnValues::Whole(all), ParquetCell::Whole(value)) => {
                all.push(value.cast_signed());
                true
            }
            (ColumnValues::Number(all), ParquetCell::Number(value)) => {
                all.push(value);
                true
            }
            (ColumnValues::Text(all, ends), ParquetCell::Text(value)) => {
                all.extend_from_slice(value.as_bytes());
                ends.push(all.len());
                true
            }
            (ColumnValues::Switch(all), ParquetCell::Switch(value)) => {
                all.push(value);
                true
            }
            _ => false,
        };
        self.present.push(i16::from(is_present));
    }

    /// Writes the values as a column of a row group, and clears them.
    fn write(&mut self, to: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let present = Some(&*self.present);
        match &mut self.values {
            ColumnValues::Whole(all) => {
                to.typed::<Int64Type>().write_batch(all, present, None)?;
                all.clear();
            }
            ColumnValues::Number(all) => {
                to.typed::<DoubleType>().write_batch(all, present, None)?;
                all.clear();
            }
            ColumnValues::Text(all, ends) => {
                let text = Bytes::from(core::mem::take(all));
                let begins = core::iter::once(0).chain(ends.iter().copied());
                let of = |(begin, &end): (usize, &usize)| ByteArray::from(text.slice(begin..end));
                let values: Vec<ByteArray> = begins.zip(ends.iter()).map(of).collect();
                to.typed::<ByteArrayType>().write_batch(&values, present, None)?;
                ends.clear();
            }
            ColumnValues::Switch(all) => {
                to.typed::<BoolType>().write_batch(all, present, None)?;
                all.clear();
            }
        }
        self.present.clear();
        Ok(())
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
    let mut to = WriterProperties::builder().set_compression(Compression::SNAPPY);
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

/// A table in writing. It is written by the columns of its row groups: the writer of whole Arrow
/// arrays knows many more types, which takes more than a megabyte of code.
struct ParquetTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<ColumnBuffer>,
    /// Rows of the unfinished row group.
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
        let mut properties = properties(columns);
        // Types and metadata of the fields, for readers of Arrow.
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let stored = ArrowSchemaConverter::new().convert(&schema).map_err(of_writer)?;
        let writer = SerializedFileWriter::new(out, stored.root_schema_ptr(), Arc::new(properties));
        let columns = columns.iter().map(|column| ColumnBuffer::new(column.kind)).collect();
        Ok(Self { writer: writer.map_err(of_writer)?, columns, rows: 0 })
    }

    /// Appends a row: one cell per column.
    fn push<'a>(&mut self, cells: impl IntoIterator<Item = ParquetCell<'a>>) -> io::Result<()> {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            column.push(cells.next().unwrap_or(ParquetCell::None));
        }
        self.rows += 1;
        if self.rows == ROW_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes the unfinished row group.
    fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        self.write_group().map_err(of_writer)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            if let Some(mut to) = group.next_column()? {
                column.write(&mut to)?;
                to.close()?;
            }
        }
        group.close().map(drop)
    }

    fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.writer.into_inner().map_err(of_writer)
    }
}

#[cfg(test)]
mod tests;
