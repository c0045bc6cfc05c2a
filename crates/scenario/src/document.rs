//! A scenario file as typed tables; reads it from text and is the only writer of such files.

use core::fmt::{self, Write};

use toml_edit::{Array, InlineTable, Key, Value};

use super::ScenarioError;
use super::keys::ScenarioReader;
use super::kinds::TableType;
use super::source::Sources;
use super::table::KeyTable;
use super::tree;
use super::world::SECTION;

pub use super::apps::{
    OnOffTable, PacedTable, PingTable, ReadsTable, RequestsTable, TransferSize, UdpTable,
};
pub use super::arrivals::{ArrivalsTable, TransferTable};
pub use super::bucket::{PolicerTable, ShaperTable};
pub use super::chance::{GilbertElliottTable, PacketRule, RuleTable};
pub use super::changes::{BufferChangesTable, DelayChangesTable, OverTime, RateChangesTable, Step};
pub use super::element::{ElementTable, LinkTable, OutageTable, ThinTable};
pub use super::exchange::{ExchangeStepTable, ExchangeTable};
pub use super::fabric::FabricTable;
pub use super::flow::FlowTable;
pub use super::host::HostTable;
pub use super::jitter::{JitterRule, JitterTable};
pub use super::keys::Located;
pub use super::listen::ListenTable;
pub use super::middlebox::{ForgetTable, MtuRule, MtuTable, ResetTable};
pub use super::offload::{GroTable, LroTable, ReceiveOffload};
pub use super::page::{ObjectSize, ObjectTable, PageTable};
pub use super::path::PathTable;
pub use super::queue::{CodelTable, Discipline, FqCodelTable, PieTable, RedTable};
pub use super::reorder::ReorderTable;
pub use super::setting::{ByName, RawValue, RawValues};
pub use super::slot::SlotTable;
pub use super::sweep::{SeriesTable, SweepTable};
pub use super::tap::TapTable;
pub use super::video::{PlayerRule, VideoTable};
pub use super::world::ScenarioFile;

/// Keys whose values are written as a table of their own.
const OWN_TABLE: [&str; 2] = ["knobs", "axes"];

/// Returns the value of a key set by a program.
pub fn given<T>(value: impl Into<T>) -> Option<Located<T>> {
    Some(Located::from(value.into()))
}

/// Returns a list of tables set by a program.
pub fn tables<T>(items: impl IntoIterator<Item = T>) -> Option<Located<Vec<Located<T>>>> {
    given(items.into_iter().map(Located::from).collect::<Vec<_>>())
}

/// Returns named tables or values set by a program.
pub fn named<T>(
    items: impl IntoIterator<Item = (impl Into<String>, T)>,
) -> Option<Located<ByName<T>>> {
    let named = items.into_iter().map(|(name, item)| (Located::from(name.into()), item));
    given(named.collect::<Vec<_>>())
}

impl ScenarioFile {
    /// Reads the tables of a text: every key with its value. References, knobs, traces and
    /// constraints between tables are checked by [`load`](super::load).
    ///
    /// # Errors
    /// All errors, in the order of the text.
    pub fn read(text: &str, file_name: &str) -> Result<Self, Vec<ScenarioError>> {
        let (sources, file) = Sources::new(file_name, text);
        let root = tree::parse(text, file).map_err(|faults| sources.errors(faults))?;
        let mut reader = ScenarioReader::default();
        match TableType::<Self>::of(&SECTION).table(&root, &mut reader) {
            Some(tables) if reader.errors.is_empty() => {
                Ok(Self { comment: head(text).collect(), ..tables })
            }
            _ => Err(sources.errors(reader.errors)),
        }
    }
}

/// Returns the lines of the comment at the head of a text.
fn head(text: &str) -> impl Iterator<Item = String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned())
}

/// Writes the comment, the top-level keys, a table for each host, path and flow, and a line for
/// each element of a path.
impl fmt::Display for ScenarioFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for line in &self.comment {
            // A line break would end the comment. Editors take `#:schema` for a directive.
            let line = line.replace(|c: char| c.is_control(), " ");
            let blank = if line.is_empty() || line.starts_with(':') { "" } else { " " };
            writeln!(text, "#{blank}{line}")?;
        }
        body(&mut text, &KeyTable::write(self))?;
        f.write_str(text.trim_start())
    }
}

fn body(text: &mut String, root: &InlineTable) -> fmt::Result {
    let (tables, keys): (Vec<_>, Vec<_>) = root.iter().partition(|(_, value)| is_section(value));
    if !text.is_empty() && !keys.is_empty() {
        text.push('\n');
    }
    keys.into_iter().try_for_each(|(key, value)| line(text, key, value))?;
    for (key, value) in tables {
        match value {
            Value::Array(list) => {
                let mut tables = list.iter().filter_map(Value::as_inline_table);
                tables.try_for_each(|table| section(text, &format!("[{key}]"), table))?;
            }
            Value::InlineTable(table) if table.iter().all(|(_, value)| value.is_inline_table()) => {
                for (name, table) in table.iter() {
                    let name = format!("{key}.{}", Key::new(name));
                    table.as_inline_table().map_or(Ok(()), |table| section(text, &name, table))?;
                }
            }
            Value::InlineTable(table) => section(text, key, table)?,
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether the value is written with headers of its own.
fn is_section(value: &Value) -> bool {
    match value {
        Value::InlineTable(_) => true,
        Value::Array(list) => holds_tables(list),
        _ => false,
    }
}

fn holds_tables(list: &Array) -> bool {
    list.iter().any(Value::is_inline_table)
}

fn section(text: &mut String, header: &str, table: &InlineTable) -> fmt::Result {
    writeln!(text, "\n[{header}]")?;
    for (key, value) in table.iter().filter(|(key, _)| !OWN_TABLE.contains(key)) {
        match value {
            Value::Array(list) if holds_tables(list) => {
                writeln!(text, "{key} = [")?;
                list.iter().try_for_each(|item| writeln!(text, "    {item},"))?;
                writeln!(text, "]")?;
            }
            _ => line(text, key, value)?,
        }
    }
    for (key, value) in table.iter().filter(|(key, _)| OWN_TABLE.contains(key)) {
        writeln!(text, "\n[{header}.{key}]")?;
        let settings = value.as_inline_table().into_iter().flat_map(InlineTable::iter);
        settings.into_iter().try_for_each(|(name, value)| line(text, name, value))?;
    }
    Ok(())
}

fn line(text: &mut String, key: &str, value: &Value) -> fmt::Result {
    writeln!(text, "{} = {value}", Key::new(key))
}
