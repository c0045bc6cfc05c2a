//! What a build without PNG says.

use crate::commands::needs_features;
use crate::failure::Failure;

/// Refuses: releases have PNG.
pub(crate) fn of_svg(_: &str) -> Result<Vec<u8>, Failure> {
    needs_features(false, true).map(|()| Vec::new())
}
