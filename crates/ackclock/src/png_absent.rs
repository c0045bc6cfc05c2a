//! The error of a build without PNG support.

use crate::commands::needs_features;
use crate::failure::Failure;

/// Returns an error: releases have PNG support.
pub(crate) fn of_svg(_: &str) -> Result<Vec<u8>, Failure> {
    needs_features(false, true).map(|()| Vec::new())
}
