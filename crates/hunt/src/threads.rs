//! Worlds on the threads of this machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::measure::{WorldFigure, figure};
use crate::world::HuntWorld;
use crate::{HuntError, HuntRequest};

/// Runs worlds on `threads` threads; their figures are in the order of the worlds. `finished` is
/// called after each.
///
/// # Errors
/// The first world that cannot be run; `stop` was set.
pub fn figures(
    request: &HuntRequest,
    worlds: &[HuntWorld],
    threads: usize,
    stop: &AtomicBool,
    finished: &(dyn Fn() + Sync),
) -> Result<Vec<WorldFigure>, HuntError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let results: Vec<Mutex<Option<Result<WorldFigure, HuntError>>>> =
        worlds.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, worlds.len().max(1)) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(world) = worlds.get(at) else { return };
                    let result = figure(world, &request.sender, request.goal, stop);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    if let Ok(mut kept) = results[at].lock() {
                        *kept = Some(result);
                    }
                    finished();
                }
            });
        }
    });
    let results: Vec<_> =
        results.into_iter().map(|kept| kept.into_inner().ok().flatten()).collect();
    if let Some(error) = results.iter().flatten().find_map(|result| result.as_ref().err()) {
        return Err(error.clone());
    }
    let no_figure = || HuntError::World("a thread ended early".to_owned());
    results.into_iter().map(|result| result.ok_or_else(no_figure)?).collect()
}
