//! Long calls: the work goes on in a thread of its own without the GIL, while the calling one looks
//! after Ctrl-C and progress.

use core::ops::ControlFlow;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::RunError;

/// How often the calling thread looks.
const EVERY: Duration = Duration::from_millis(50);

/// What the two threads tell each other.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    stop: AtomicBool,
    over: AtomicBool,
    done: AtomicU64,
}

impl Watched {
    /// Set once the work is to end early.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Reports how much is done, in units of the total; breaks if the work is to end.
    pub(crate) fn reached(&self, done: u64) -> ControlFlow<()> {
        self.done.store(done, Ordering::Relaxed);
        if self.is_to_end() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Is the work to end early?
    pub(crate) fn is_to_end(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Tells that so much more is done.
    pub(crate) fn more(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }
}

/// Does `work` in another thread. `progress` is called with what is done and `total`, in the
/// calling thread; what it raises, or Ctrl-C, ends the work and is raised here.
pub(crate) fn watch<T: Send>(
    py: Python<'_>,
    total: u64,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watched) -> T + Send,
) -> PyResult<T> {
    let watched = Watched::default();
    let caller = thread::current();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = catch_unwind(AssertUnwindSafe(|| work(&watched)));
            watched.over.store(true, Ordering::Release);
            caller.unpark();
            result
        });
        let mut raised = None;
        let mut told = None;
        loop {
            let over = watched.over.load(Ordering::Acquire);
            if raised.is_none()
                && let Err(error) = look(py, &watched, total, progress, &mut told)
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
        // It is over, or as good as: this waits for nothing that needs the GIL.
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
    watched: &Watched,
    total: u64,
    progress: Option<&Bound<'_, PyAny>>,
    told: &mut Option<u64>,
) -> PyResult<()> {
    py.check_signals()?;
    let done = watched.done.load(Ordering::Relaxed).min(total);
    if let Some(progress) = progress
        && *told != Some(done)
    {
        progress.call1((done, total))?;
        *told = Some(done);
    }
    Ok(())
}

/// A fault of the program itself; it must not take the interpreter with it.
fn fault(thrown: &Box<dyn Any + Send>) -> PyErr {
    let message = thrown
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| thrown.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    RunError::new_err(format!("the program failed, which is a fault of its own: {message}"))
}
