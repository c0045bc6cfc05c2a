//! The number of threads of a command.

use core::num::NonZeroUsize;
use std::thread;

/// As many as `jobs`, or as many as processors.
pub(crate) fn threads(jobs: Option<NonZeroUsize>) -> NonZeroUsize {
    jobs.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}
