//! The values of a scenario that sliders change: those of a path, and of the host that sends on it.
//!
//! Changes are made in the text, so that comments and all else stay as the user wrote them.

use scenario::units_text::{self, BufferSize};
use serde::{Deserialize, Serialize};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::requests::Failure;

/// A control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlName {
    /// One-way delay of each direction.
    Delay,
    /// Rate of the first link of each direction.
    Rate,
    /// Packet loss of the forward direction.
    Loss,
    /// Buffer of the first link of the forward direction.
    Buffer,
    /// Congestion control of the sender.
    Controller,
}

/// A control with its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Control {
    /// The control.
    pub name: ControlName,
    /// The value as text, as the scenario has it.
    pub text: String,
    /// The value in seconds, bits per second, a fraction, bytes; `None` if it is not a number in
    /// these units (a controller, a buffer in packets, a rule of losses).
    pub value: Option<f64>,
}

/// The paths of a scenario, by name or by their hosts; none if the text is not TOML.
pub fn paths(text: &str) -> Vec<String> {
    let Ok(document) = text.parse::<DocumentMut>() else { return Vec::new() };
    let label = |path: &dyn TableLike| {
        let word = |key| path.get(key).and_then(Item::as_str).unwrap_or_default().to_owned();
        match word("name") {
            name if name.is_empty() => format!("{} to {}", word("from"), word("to")),
            name => name,
        }
    };
    (0..).map_while(|at| table_of(&document, "path", at)).map(label).collect()
}

/// The controls that apply to a path of a scenario, by its index; none if the text is not TOML.
pub fn of(text: &str, path: usize) -> Vec<Control> {
    let Ok(document) = text.parse::<DocumentMut>() else { return Vec::new() };
    let value = |direction, kind, key| value(&document, path, direction, kind, key);
    let mut controls = Vec::new();
    let mut add = |name, text: Option<String>, value: Option<f64>| {
        controls.extend(text.map(|text| Control { name, text, value }));
    };
    let delay = value("forward", "delay", None);
    let nanos = delay.as_deref().and_then(|text| units_text::duration(text).ok());
    add(ControlName::Delay, delay, nanos.map(units::Duration::as_secs_f64));
    let rate = value("forward", "link", Some("rate"));
    let bits = rate.as_deref().and_then(|text| units_text::rate(text).ok());
    add(ControlName::Rate, rate, bits.map(|rate| rate.bits_per_second() as f64));
    if elements(&document, path, "forward").is_some() {
        let loss = value("forward", "loss", None);
        let rule = place(&document, path, "forward", "loss").is_some();
        let fraction = match &loss {
            Some(text) => units_text::share(text).ok().map(units::Ratio::as_f64),
            None if rule => None,
            None => Some(0.0),
        };
        let unset = if rule { "by a rule" } else { "0%" };
        add(ControlName::Loss, Some(loss.unwrap_or_else(|| unset.into())), fraction);
    }
    let buffer = value("forward", "link", Some("buffer"));
    let bytes = buffer.as_deref().and_then(|text| match units_text::room(text) {
        Ok(BufferSize::Size(bytes)) => Some(bytes.get() as f64),
        _ => None,
    });
    add(ControlName::Buffer, buffer, bytes);
    add(
        ControlName::Controller,
        sender(&document, path).map(|host| {
            host.get("cc").and_then(Item::as_str).unwrap_or("the profile's").to_owned()
        }),
        None,
    );
    controls
}

/// The text with other values of a path's controls.
///
/// # Errors
/// The text is not TOML, or has no such control.
pub fn apply(
    text: &str,
    path: usize,
    changes: &[(ControlName, String)],
) -> Result<String, Failure> {
    if changes.is_empty() {
        return Ok(text.to_owned());
    }
    let mut document: DocumentMut = text.parse()?;
    for (name, value) in changes {
        change(&mut document, path, *name, value)
            .ok_or_else(|| format!("the scenario has no control {name:?}").to_lowercase())?;
    }
    Ok(document.to_string())
}

fn change(document: &mut DocumentMut, path: usize, name: ControlName, value: &str) -> Option<()> {
    match name {
        ControlName::Delay => {
            set(document, path, "forward", "delay", None, value)?;
            // The reverse direction follows, where it has a delay.
            let _ = set(document, path, "return", "delay", None, value);
        }
        ControlName::Rate => {
            set(document, path, "forward", "link", Some("rate"), value)?;
            let _ = set(document, path, "return", "link", Some("rate"), value);
        }
        ControlName::Buffer => set(document, path, "forward", "link", Some("buffer"), value)?,
        ControlName::Loss => set_loss(document, path, value)?,
        ControlName::Controller => {
            let name = sender_name(document, path)?;
            let host = document.get_mut("host")?.as_table_like_mut()?.get_mut(&name)?;
            let host = host.as_table_like_mut()?;
            match host.get_mut("cc").and_then(Item::as_value_mut) {
                Some(old) => replace(old, value.into()),
                None => drop(host.insert("cc", value.into())),
            }
        }
    }
    Some(())
}

/// Replaces a value; spaces and comments beside it stay.
fn replace(old: &mut Value, new: Value) {
    let decor = old.decor().clone();
    *old = new;
    *old.decor_mut() = decor;
}

fn set_loss(document: &mut DocumentMut, path: usize, value: &str) -> Option<()> {
    if place(document, path, "forward", "loss").is_some() {
        return set(document, path, "forward", "loss", None, value);
    }
    let mut loss = InlineTable::new();
    loss.insert("loss", value.into());
    elements_mut(document, path, "forward")?.insert(0, loss);
    Some(())
}

/// A table of a list of tables, in either notation of TOML.
fn table_of<'d>(document: &'d DocumentMut, list: &str, at: usize) -> Option<&'d dyn TableLike> {
    match document.get(list)? {
        Item::ArrayOfTables(all) => all.get(at).map(|table: &Table| table as &dyn TableLike),
        item => item.as_array()?.get(at)?.as_inline_table().map(|table| table as &dyn TableLike),
    }
}

fn elements<'d>(document: &'d DocumentMut, path: usize, direction: &str) -> Option<&'d Array> {
    table_of(document, "path", path)?.get(direction)?.as_array()
}

fn elements_mut<'d>(
    document: &'d mut DocumentMut,
    path: usize,
    direction: &str,
) -> Option<&'d mut Array> {
    match document.get_mut("path")? {
        Item::ArrayOfTables(paths) => paths.get_mut(path)?.get_mut(direction)?.as_array_mut(),
        item => {
            let path = item.as_array_mut()?.get_mut(path)?.as_inline_table_mut()?;
            path.get_mut(direction)?.as_array_mut()
        }
    }
}

/// Where an element of a path is written.
enum Place {
    /// In the path, at this index.
    Path(usize),
    /// In `[shared.NAME]`.
    Shared(String),
}

/// The first element of this kind in a direction.
fn place(document: &DocumentMut, path: usize, direction: &str, kind: &str) -> Option<Place> {
    elements(document, path, direction)?.iter().enumerate().find_map(|(at, element)| {
        let element = element.as_inline_table()?;
        if element.contains_key(kind) {
            return Some(Place::Path(at));
        }
        let name = element.get("shared")?.as_str()?;
        let shared = document.get("shared")?.get(name)?.as_table_like()?;
        shared.contains_key(kind).then(|| Place::Shared(name.to_owned()))
    })
}

/// A text of the first element of this kind, or of a key of it.
fn value(
    document: &DocumentMut,
    path: usize,
    direction: &str,
    kind: &str,
    key: Option<&str>,
) -> Option<String> {
    let element = match place(document, path, direction, kind)? {
        Place::Path(at) => {
            elements(document, path, direction)?.get(at)?.as_inline_table()?.get(kind)?
        }
        Place::Shared(name) => document.get("shared")?.get(&name)?.get(kind)?.as_value()?,
    };
    let value = match key {
        Some(key) => element.as_inline_table()?.get(key)?,
        None => element,
    };
    value.as_str().map(str::to_owned)
}

fn set(
    document: &mut DocumentMut,
    path: usize,
    direction: &str,
    kind: &str,
    key: Option<&str>,
    text: &str,
) -> Option<()> {
    let element = match place(document, path, direction, kind)? {
        Place::Path(at) => {
            let element = elements_mut(document, path, direction)?.get_mut(at)?;
            element.as_inline_table_mut()?.get_mut(kind)?
        }
        Place::Shared(name) => {
            document.get_mut("shared")?.get_mut(&name)?.get_mut(kind)?.as_value_mut()?
        }
    };
    let value = match key {
        Some(key) => element.as_inline_table_mut()?.get_mut(key)?,
        None => element,
    };
    replace(value, text.into());
    Some(())
}

/// Name of the host that sends the data of the first flow on a path.
fn sender_name(document: &DocumentMut, path: usize) -> Option<String> {
    let way = table_of(document, "path", path)?;
    let word =
        |table: &dyn TableLike, key| table.get(key).and_then(Item::as_str).map(str::to_owned);
    let is_on_path = |flow: &&dyn TableLike| match word(*flow, "path") {
        Some(name) => word(way, "name").as_ref() == Some(&name),
        None => {
            let (from, to) = (word(*flow, "from"), word(*flow, "to"));
            let (near, far) = (word(way, "from"), word(way, "to"));
            (from == near && to == far) || (from == far && to == near)
        }
    };
    let flow = (0..).map_while(|at| table_of(document, "flow", at)).find(is_on_path)?;
    word(flow, if flow.contains_key("requests") { "to" } else { "from" })
}

fn sender(document: &DocumentMut, path: usize) -> Option<&dyn TableLike> {
    document.get("host")?.as_table_like()?.get(&sender_name(document, path)?)?.as_table_like()
}
