//! Long calls: the work runs in its own thread without the GIL, while the calling thread handles
//! Ctrl-C and progress.

use core::ops::ControlFlow;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::RunError;

/// Polling interval of the calling thread.
const EVERY: Duration = Duration::from_millis(50);

/// The state shared by the two threads.
#[derive(Debug, Default)]
pub(crate) struct LongCall {
    stop: AtomicBool,
    over: AtomicBool,
    done: AtomicU64,
}

impl LongCall {
    /// The flag that cancels the work.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Reports the progress, in units of the total; breaks if the work is cancelled.
    pub(crate) fn reached(&self, done: u64) -> ControlFlow<()> {
        self.done.store(done, Ordering::Relaxed);
        if self.is_to_end() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Is the work cancelled?
    pub(crate) fn is_to_end(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Adds to the progress.
    pub(crate) fn more(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }
}

/// Runs `work` in another thread. `progress` is called with the progress and `total` in the calling
/// thread; an exception of it, or Ctrl-C, cancels the work and is raised here.
pub(crate) fn watch<T: Send>(
    py: Python<'_>,
    total: u64,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&LongCall) -> T + Send,
) -> PyResult<T> {
    let watched = LongCall::default();
    let caller = thread::current();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = catch_unwind(AssertUnwindSafe(|| work(&watched)));
            watched.over.store(true, Ordering::Release);
            caller.unpark();
            result
        });
        let mut raised = None;
        let mut reported = None;
        loop {
            let over = watched.over.load(Ordering::Acquire);
            if raised.is_none()
                && let Err(error) = look(py, &watched, total, progress, &mut reported)
            {
                watched.stop.store(true, Ordering::Relaxed);
                raised = Some(error);
            }
            if over {
                break;
            }
            py.detach(|| {
                if !watched.over.load(Ordering::Acquire) {
                    thread::park_timeout(EVERY);
                }
            });
        }
        // The work is finished or about to finish and does not need the GIL.
        let result = py.detach(|| worker.join());
        match (raised, result) {
            (Some(error), _) => Err(error),
            (None, Ok(Ok(value))) => Ok(value),
            (None, Ok(Err(thrown)) | Err(thrown)) => Err(fault(&thrown)),
        }
    })
}

fn look(
    py: Python<'_>,
    watched: &LongCall,
    total: u64,
    progress: Option<&Bound<'_, PyAny>>,
    reported: &mut Option<u64>,
) -> PyResult<()> {
    py.check_signals()?;
    let done = watched.done.load(Ordering::Relaxed).min(total);
    if let Some(progress) = progress
        && *reported != Some(done)
    {
        progress.call1((done, total))?;
        *reported = Some(done);
    }
    Ok(())
}

/// Converts a panic to an exception, so that it does not end the interpreter.
fn fault(thrown: &Box<dyn Any + Send>) -> PyErr {
    let message = thrown
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| thrown.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    RunError::new_err(format!("the program panicked, which is a bug; please report it: {message}"))
}
