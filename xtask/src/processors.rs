//! Independent work on all processors; the results are in the order of the items.

use core::convert::Infallible;
use core::num::NonZeroUsize;
use std::thread;

use runner::stop::NEVER;
use runner::workers::Workers;

/// As many threads as there are processors.
pub(crate) fn workers() -> Workers<'static> {
    Workers::new(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN), &NEVER)
}

/// Does the work of each item.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let Ok(results) = workers().map(items, |item| Ok::<_, Infallible>(work(item)));
    results
}
