//! The values of a scenario that sliders change: of its first path, and of its sender.
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

/// The controls that apply to a scenario; none if the text is not TOML.
pub fn of(text: &str) -> Vec<Control> {
    let Ok(document) = text.parse::<DocumentMut>() else { return Vec::new() };
    let mut controls = Vec::new();
    let mut add = |name, text: Option<String>, value: Option<f64>| {
        controls.extend(text.map(|text| Control { name, text, value }));
    };
    let delay = value(&document, "forward", "delay", None);
    let nanos = delay.as_deref().and_then(|text| units_text::duration(text).ok());
    add(ControlName::Delay, delay, nanos.map(units::Duration::as_secs_f64));
    let rate = value(&document, "forward", "link", Some("rate"));
    let bits = rate.as_deref().and_then(|text| units_text::rate(text).ok());
    add(ControlName::Rate, rate, bits.map(|rate| rate.bits_per_second() as f64));
    if elements(&document, "forward").is_some() {
        let loss = value(&document, "forward", "loss", None);
        let rule = elements(&document, "forward").is_some_and(|all| all.iter().any(has("loss")));
        let fraction = match &loss {
            Some(text) => units_text::share(text).ok().map(units::Ratio::as_f64),
            None if rule => None,
            None => Some(0.0),
        };
        let unset = if rule { "by a rule" } else { "0%" };
        add(ControlName::Loss, Some(loss.unwrap_or_else(|| unset.into())), fraction);
    }
    let buffer = value(&document, "forward", "link", Some("buffer"));
    let bytes = buffer.as_deref().and_then(|text| match units_text::room(text) {
        Ok(BufferSize::Size(bytes)) => Some(bytes.get() as f64),
        _ => None,
    });
    add(ControlName::Buffer, buffer, bytes);
    add(
        ControlName::Controller,
        sender(&document).map(|host| {
            host.get("cc").and_then(Item::as_str).unwrap_or("the profile's").to_owned()
        }),
        None,
    );
    controls
}

/// The text with other values of controls.
///
/// # Errors
/// The text is not TOML, or has no such control.
pub fn apply(text: &str, changes: &[(ControlName, String)]) -> Result<String, Failure> {
    if changes.is_empty() {
        return Ok(text.to_owned());
    }
    let mut document: DocumentMut = text.parse()?;
    for (name, value) in changes {
        change(&mut document, *name, value)
            .ok_or_else(|| format!("the scenario has no control {name:?}").to_lowercase())?;
    }
    Ok(document.to_string())
}

fn change(document: &mut DocumentMut, name: ControlName, value: &str) -> Option<()> {
    match name {
        ControlName::Delay => {
            set(document, "forward", "delay", None, value)?;
            // The reverse direction follows, where it has a delay.
            let _ = set(document, "return", "delay", None, value);
        }
        ControlName::Rate => {
            set(document, "forward", "link", Some("rate"), value)?;
            let _ = set(document, "return", "link", Some("rate"), value);
        }
        ControlName::Buffer => set(document, "forward", "link", Some("buffer"), value)?,
        ControlName::Loss => set_loss(document, value)?,
        ControlName::Controller => {
            let name = sender_name(document)?;
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

fn set_loss(document: &mut DocumentMut, value: &str) -> Option<()> {
    let elements = elements_mut(document, "forward")?;
    if let Some(element) = elements.iter_mut().find(|value| has("loss")(value)) {
        let loss = element.as_inline_table_mut()?.get_mut("loss")?;
        replace(loss, value.into());
        return Some(());
    }
    let mut loss = InlineTable::new();
    loss.insert("loss", value.into());
    elements.insert(0, loss);
    Some(())
}

fn has(key: &str) -> impl Fn(&Value) -> bool + '_ {
    move |value| value.as_inline_table().is_some_and(|table| table.contains_key(key))
}

/// The first path.
fn path(document: &DocumentMut) -> Option<&dyn TableLike> {
    match document.get("path")? {
        Item::ArrayOfTables(paths) => paths.get(0).map(|path: &Table| path as &dyn TableLike),
        item => item.as_array()?.get(0)?.as_inline_table().map(|path| path as &dyn TableLike),
    }
}

fn elements<'d>(document: &'d DocumentMut, direction: &str) -> Option<&'d Array> {
    path(document)?.get(direction)?.as_array()
}

fn elements_mut<'d>(document: &'d mut DocumentMut, direction: &str) -> Option<&'d mut Array> {
    match document.get_mut("path")? {
        Item::ArrayOfTables(paths) => paths.get_mut(0)?.get_mut(direction)?.as_array_mut(),
        item => {
            let path = item.as_array_mut()?.get_mut(0)?.as_inline_table_mut()?;
            path.get_mut(direction)?.as_array_mut()
        }
    }
}

/// A text of the first element of this kind, or of a key of it.
fn value(document: &DocumentMut, direction: &str, kind: &str, key: Option<&str>) -> Option<String> {
    let element = elements(document, direction)?.iter().find(|value| has(kind)(value))?;
    let element = element.as_inline_table()?.get(kind)?;
    let value = match key {
        Some(key) => element.as_inline_table()?.get(key)?,
        None => element,
    };
    value.as_str().map(str::to_owned)
}

fn set(
    document: &mut DocumentMut,
    direction: &str,
    kind: &str,
    key: Option<&str>,
    text: &str,
) -> Option<()> {
    let elements = elements_mut(document, direction)?;
    let element = elements.iter_mut().find(|value| has(kind)(value))?;
    let element = element.as_inline_table_mut()?.get_mut(kind)?;
    let value = match key {
        Some(key) => element.as_inline_table_mut()?.get_mut(key)?,
        None => element,
    };
    replace(value, text.into());
    Some(())
}

/// Name of the host that sends the data of the first flow.
fn sender_name(document: &DocumentMut) -> Option<String> {
    let flow: &dyn TableLike = match document.get("flow")? {
        Item::ArrayOfTables(flows) => flows.get(0)?,
        item => item.as_array()?.get(0)?.as_inline_table()?,
    };
    let end = if flow.contains_key("requests") { "to" } else { "from" };
    flow.get(end)?.as_str().map(str::to_owned)
}

fn sender(document: &DocumentMut) -> Option<&dyn TableLike> {
    document.get("host")?.as_table_like()?.get(&sender_name(document)?)?.as_table_like()
}
