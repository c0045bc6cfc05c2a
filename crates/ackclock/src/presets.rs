//! `preset:NAME` where a scenario file is expected: a scenario that the program has in it.

use std::path::Path;

use samples::{PREFIX, Sample};
use scenario::sample;

use crate::failure::Failure;

/// Returns the scenario that the argument names; `None` if it names a file.
pub(crate) fn named(argument: &Path) -> Result<Option<&'static Sample>, Failure> {
    let Some(text) = argument.to_str() else { return Ok(None) };
    sample(text).map_err(|unknown| {
        let all = || "all are listed by: ackclock scenario new --list".to_owned();
        Failure::new(unknown.to_string()).hint(match unknown.nearest {
            Some(near) => format!("did you mean {PREFIX}{near}?"),
            None => all(),
        })
    })
}

/// Is it the name of a preset, be it misspelt?
pub(crate) fn is_named(argument: &Path) -> bool {
    argument.to_str().is_some_and(|text| text.starts_with(PREFIX))
}
