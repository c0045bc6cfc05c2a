//! Known differing transfers, each with its first difference and the reason.

use std::fs;
use std::path::Path;

use serde::Deserialize;

/// File with the exceptions, beside the recordings.
const FILE: &str = "exceptions.toml";

/// A known differing transfer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// `FILE/TRANSFER`, the file of recordings without its extension.
    transfer: String,
    /// The first difference, as printed.
    first: String,
    /// Reason of the difference.
    reason: String,
}

/// The list of exceptions.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::golden) struct Exceptions {
    #[serde(default)]
    exception: Vec<Exception>,
}

impl Exceptions {
    /// Reads the list of a directory of recordings; without a list, no transfer may differ.
    ///
    /// # Errors
    /// The list cannot be read.
    pub(in crate::golden) fn read(place: &Path) -> Result<Self, String> {
        let file = place.join(FILE);
        if !file.is_file() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(&file).map_err(|error| format!("{FILE}: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("{FILE}: {error}"))
    }

    /// Returns the line to print for a transfer whose first difference is `first`.
    ///
    /// # Errors
    /// The transfer differs and is not listed, differs otherwise, or is listed and no longer
    /// differs.
    pub(in crate::golden) fn judge(
        &self,
        folder: &str,
        name: &str,
        first: Option<&str>,
    ) -> Result<Option<String>, String> {
        let of = |one: &&Exception| one.transfer == format!("{folder}/{name}");
        match (self.exception.iter().find(of), first) {
            (None, None) => Ok(None),
            (None, Some(first)) => Err(format!("differs: {first}")),
            (Some(_), None) => Err("no longer differs: remove its exception".to_owned()),
            (Some(known), Some(first)) if known.first == first => {
                Ok(Some(format!("{first}: {}", known.reason)))
            }
            (Some(known), Some(first)) => {
                Err(format!("differs: {first} (its exception: {})", known.first))
            }
        }
    }
}
