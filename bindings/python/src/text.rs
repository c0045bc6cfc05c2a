//! Dictionaries as the text of a scenario file, so that there is one parser of scenarios with one
//! kind of error.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

/// Maximum nesting of lists and dictionaries: no scenario needs more.
const DEEPEST: usize = 32;

/// Converts a dictionary to a scenario file.
///
/// Raises TypeError, with the key, for a value that TOML does not have.
#[pyfunction]
pub(crate) fn to_toml(data: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut document = DocumentMut::new();
    fill(document.as_table_mut(), data, "", 0)?;
    Ok(document.to_string())
}

/// The scenarios that the package has: (name, title) of each.
#[pyfunction]
pub(crate) fn presets() -> Vec<(&'static str, &'static str)> {
    samples::SAMPLES.iter().map(|sample| (sample.name, sample.title())).collect()
}

/// The text of the scenario that `preset:NAME` names; None for any other text.
///
/// Raises ValueError if there is none of that name.
#[pyfunction]
pub(crate) fn preset_text(source: &str) -> PyResult<Option<&'static str>> {
    let found = scenario::sample(source).map_err(|unknown| {
        let near = unknown.nearest.map(|near| format!("; did you mean preset:{near}?"));
        PyValueError::new_err(format!("{unknown}{}", near.unwrap_or_default()))
    });
    found.map(|sample| sample.map(|sample| sample.text))
}

/// Tables become sections, so that lines stay short and errors point at them.
fn fill(table: &mut Table, data: &Bound<'_, PyDict>, at: &str, depth: usize) -> PyResult<()> {
    // Simple values come first: after the header of a sub-table they would belong to it.
    let mut tables = Vec::new();
    for (key, value) in data.iter() {
        let key = name(&key, at)?;
        match value.cast::<PyDict>() {
            Ok(inner) if depth < 3 => tables.push((key, inner.clone())),
            _ => {
                let here = key_path(at, &key);
                table.insert(&key, Item::Value(plain(&value, &here, depth + 1)?));
            }
        }
    }
    for (key, inner) in tables {
        let mut sub = Table::new();
        sub.set_implicit(inner.iter().all(|(_, value)| value.is_instance_of::<PyDict>()));
        fill(&mut sub, &inner, &key_path(at, &key), depth + 1)?;
        table.insert(&key, Item::Table(sub));
    }
    Ok(())
}

fn plain(value: &Bound<'_, PyAny>, at: &str, depth: usize) -> PyResult<Value> {
    if depth > DEEPEST {
        return Err(PyTypeError::new_err(format!("{at}: nested too deeply")));
    }
    // A bool is an int to Python.
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::from(value.extract::<bool>()?));
    }
    if value.is_instance_of::<PyInt>() {
        let whole = value.extract::<i64>();
        return whole
            .map(Value::from)
            .map_err(|_| PyTypeError::new_err(format!("{at}: {value} is beyond 64 bits")));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::from(value.extract::<f64>()?));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::from(text.to_str()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let mut array = Array::new();
        for (index, item) in value.try_iter()?.enumerate() {
            array.push(plain(&item?, &format!("{at}[{index}]"), depth + 1)?);
        }
        return Ok(Value::Array(array));
    }
    if let Ok(data) = value.cast::<PyDict>() {
        let mut table = InlineTable::new();
        for (key, value) in data.iter() {
            let key = name(&key, at)?;
            table.insert(&key, plain(&value, &key_path(at, &key), depth + 1)?);
        }
        return Ok(Value::InlineTable(table));
    }
    let kind = value.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!(
        "{at}: expected a str, int, float, bool, list or dict, found {kind}"
    )))
}

fn name(key: &Bound<'_, PyAny>, at: &str) -> PyResult<String> {
    match key.cast::<PyString>() {
        Ok(key) => Ok(key.to_str()?.to_owned()),
        Err(_) => {
            let key_path = if at.is_empty() { "the scenario" } else { at };
            Err(PyTypeError::new_err(format!("{key_path}: keys are str, found {}", key.repr()?)))
        }
    }
}

fn key_path(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}
